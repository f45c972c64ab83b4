//! What instructions, functions and globals say about themselves, for analyses: promises, strides, address spaces,
//! uses across the module.

use llvm_sys::core::*;
use llvm_sys::prelude::LLVMValueRef;
use llvm_sys::target::*;
use llvm_sys::{LLVMAtomicOrdering, LLVMAttributeFunctionIndex, LLVMIntPredicate, LLVMLinkage, LLVMTypeKind};

use super::{Comparison, Function, Instruction, Module, Opcode, Shape, Type, Value};

/// The parts of an address computation: a base, indices with their strides in bytes, and a distance in bytes.
pub struct AddressParts<'m> {
    /// What is counted from.
    pub base: Value<'m>,
    /// Indices that are no constants, with their strides.
    pub terms: Vec<(Value<'m>, i64)>,
    /// The rest.
    pub offset: i64,
}

impl<'m> Instruction<'m> {
    /// Whether the instruction promises not to wrap: signed (`nsw`), unsigned (`nuw`).
    #[must_use]
    pub fn promises(self) -> (bool, bool) {
        use llvm_sys::LLVMOpcode::*;
        // SAFETY: the flags are asked for of the kinds that have them.
        let flags = || unsafe { (LLVMGetNSW(self.raw()) != 0, LLVMGetNUW(self.raw()) != 0) };
        let wraps = matches!(self.opcode(), LLVMAdd | LLVMSub | LLVMMul | LLVMShl | LLVMTrunc);
        if wraps { flags() } else { (false, false) }
    }

    /// Whether an `or` promises that its operands have no bit in common.
    #[must_use]
    pub fn is_disjoint_or(self) -> bool {
        // SAFETY: the flag is asked for of what has it.
        self.opcode() == Opcode::LLVMOr && unsafe { LLVMGetIsDisjoint(self.raw()) != 0 }
    }

    /// Whether a `zext` promises that its operand is not negative.
    #[must_use]
    pub fn is_non_negative_extension(self) -> bool {
        // SAFETY: the flag is asked for of what has it.
        self.opcode() == Opcode::LLVMZExt && unsafe { LLVMGetNNeg(self.raw()) != 0 }
    }

    /// How an `icmp` compares.
    #[must_use]
    pub fn comparison(self) -> Option<Comparison> {
        use LLVMIntPredicate::*;
        if self.opcode() != Opcode::LLVMICmp {
            return None;
        }
        // SAFETY: it is an `icmp`.
        Some(match unsafe { LLVMGetICmpPredicate(self.raw()) } {
            LLVMIntEQ => Comparison::Equal,
            LLVMIntNE => Comparison::NotEqual,
            LLVMIntULT => Comparison::ULess,
            LLVMIntULE => Comparison::ULessEqual,
            LLVMIntUGT => Comparison::UGreater,
            LLVMIntUGE => Comparison::UGreaterEqual,
            LLVMIntSLT => Comparison::SLess,
            LLVMIntSLE => Comparison::SLessEqual,
            LLVMIntSGT => Comparison::SGreater,
            LLVMIntSGE => Comparison::SGreaterEqual,
        })
    }

    /// What a `getelementptr` adds to what: see [`Value::address_parts`].
    #[must_use]
    pub fn address_parts(self) -> Option<AddressParts<'m>> {
        self.as_value().address_parts()
    }

    /// Whether a load or store is volatile.
    #[must_use]
    pub fn is_volatile(self) -> bool {
        let accesses = matches!(self.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore);
        // SAFETY: the question is put to loads and stores only.
        accesses && unsafe { LLVMGetVolatile(self.raw()) != 0 }
    }

    /// Whether a load or store is atomic.
    #[must_use]
    pub(crate) fn is_atomic_access(self) -> bool {
        let accesses = matches!(self.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore);
        // SAFETY: the question is put to loads and stores only.
        accesses && unsafe { LLVMGetOrdering(self.raw()) != LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic }
    }

    /// Whether it adds a constant to memory, or takes one from it, in one step: another number than 0.
    #[must_use]
    pub(crate) fn is_atomic_count(self) -> bool {
        use llvm_sys::LLVMAtomicRMWBinOp::{LLVMAtomicRMWBinOpAdd, LLVMAtomicRMWBinOpSub};
        // SAFETY: the question is put to such operations only.
        self.opcode() == Opcode::LLVMAtomicRMW
            && matches!(unsafe { LLVMGetAtomicRMWBinOp(self.raw()) }, LLVMAtomicRMWBinOpAdd | LLVMAtomicRMWBinOpSub)
            && self.operand(1).as_number().is_some_and(|number| number != 0)
    }

    /// Whether it has metadata of this kind, such as `invariant.load`.
    #[must_use]
    pub(crate) fn has_metadata(self, kind: &str) -> bool {
        // SAFETY: it is an instruction, and alive; pointer and length are those of a live text.
        unsafe {
            LLVMHasMetadata(self.raw()) != 0 && {
                let kind = LLVMGetMDKindIDInContext(self.module().context(), kind.as_ptr().cast(), kind.len() as u32);
                !LLVMGetMetadata(self.raw(), kind).is_null()
            }
        }
    }

    /// How many bytes a load reads or a store writes; none for other instructions, and vectors of unknown length.
    #[must_use]
    pub(crate) fn access_size(self) -> Option<u64> {
        let of = match self.opcode() {
            Opcode::LLVMLoad | Opcode::LLVMAtomicRMW => self.type_of(),
            Opcode::LLVMStore => self.operand(0).type_of(),
            Opcode::LLVMAtomicCmpXchg => self.operand(1).type_of(),
            _ => return None,
        };
        of.layout().map(|(_, stored, _)| stored)
    }

    /// What a call of a function says about memory, on the call or on the function: LLVM's number for it (0: none is
    /// touched), where it says something.
    #[must_use]
    pub(crate) fn memory_effects(self) -> Option<u64> {
        let callee = self.callee()?;
        let kind = super::ir::attributes::kind_named("memory");
        // SAFETY: it is a call, whose attributes at this index are asked for; an attribute that is there has a number.
        unsafe {
            let here = LLVMGetCallSiteEnumAttribute(self.raw(), LLVMAttributeFunctionIndex, kind);
            let attribute = if here.is_null() && callee.is_function() {
                LLVMGetEnumAttributeAtIndex(callee.raw(), LLVMAttributeFunctionIndex, kind)
            } else {
                here
            };
            (!attribute.is_null()).then(|| LLVMGetEnumAttributeValue(attribute))
        }
    }
}

impl<'m> Type<'m> {
    /// The number of the address space that an address is of; 0 for what is none.
    #[must_use]
    pub fn address_space(self) -> u32 {
        // SAFETY: the question is put to addresses only.
        if self.is_pointer() { unsafe { LLVMGetPointerAddressSpace(self.raw()) } } else { 0 }
    }

    /// Whether it is a vector of unknown length.
    #[must_use]
    pub(crate) fn is_scalable(self) -> bool {
        // SAFETY: types live as long as the context.
        unsafe { LLVMGetTypeKind(self.raw()) == LLVMTypeKind::LLVMScalableVectorTypeKind }
    }

    /// How many bits an address or an integer has.
    #[must_use]
    pub fn bits(self) -> Option<u32> {
        match self.shape() {
            Shape::Integer(bits) => Some(bits),
            // SAFETY: the layout is the module's.
            Shape::Pointer => Some(unsafe {
                8 * LLVMPointerSizeForAS(LLVMGetModuleDataLayout(self.module().raw()), self.address_space())
            }),
            _ => None,
        }
    }
}

impl<'m> Value<'m> {
    /// Whether it is undefined or poison.
    #[must_use]
    pub fn is_undefined(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { LLVMIsUndef(self.raw()) != 0 || LLVMIsPoison(self.raw()) != 0 }
    }

    /// Whether it is the null address.
    #[must_use]
    pub fn is_null(self) -> bool {
        // SAFETY: the value is alive.
        self.is_constant() && unsafe { LLVMIsNull(self.raw()) != 0 }
    }

    /// What a constant expression does.
    fn constant_opcode(self) -> Option<Opcode> {
        // SAFETY: the second question is put to constant expressions only.
        unsafe { (!LLVMIsAConstantExpr(self.raw()).is_null()).then(|| LLVMGetConstOpcode(self.raw())) }
    }

    /// The number that a constant address is, if it is one.
    #[must_use]
    pub(crate) fn as_address_number(self) -> Option<i64> {
        if self.constant_opcode() == Some(Opcode::LLVMIntToPtr) {
            // SAFETY: a cast has an operand.
            return Value::of_raw(unsafe { LLVMGetOperand(self.raw(), 0) }, self.module()).as_number();
        }
        (self.type_of().is_pointer() && self.is_null()).then_some(0)
    }

    /// What a `getelementptr`, an instruction or a constant, adds to what; none for other values, and for those with
    /// vectors or with types whose size is unknown.
    #[must_use]
    pub fn address_parts(self) -> Option<AddressParts<'m>> {
        // SAFETY: the value is alive.
        let is_address = unsafe { !LLVMIsAGetElementPtrInst(self.raw()).is_null() }
            || self.constant_opcode() == Some(Opcode::LLVMGetElementPtr);
        if !is_address || self.type_of().shape() != Shape::Pointer {
            return None;
        }
        // SAFETY: it has operands, and the index is below their count.
        let operands: Vec<Value<'m>> = unsafe {
            let count = LLVMGetNumOperands(self.raw()) as u32;
            (0..count).map(|i| Value::of_raw(LLVMGetOperand(self.raw(), i), self.module())).collect()
        };
        let (base, indices) = operands.split_first()?;
        let mut parts = AddressParts { base: *base, terms: Vec::new(), offset: 0 };
        // SAFETY: it is a `getelementptr`; the layout is the module's. Each type is looked into as its kind allows, and
        // its size is asked for where it has one; a structure's field is a constant that it has.
        unsafe {
            let layout = LLVMGetModuleDataLayout(self.module().raw());
            let mut of = LLVMGetGEPSourceElementType(self.raw());
            for (i, index) in indices.iter().enumerate() {
                if i > 0 {
                    match LLVMGetTypeKind(of) {
                        LLVMTypeKind::LLVMStructTypeKind => {
                            let field = u32::try_from(index.as_number()?).ok()?;
                            if field >= LLVMCountStructElementTypes(of) || LLVMTypeIsSized(of) == 0 {
                                return None;
                            }
                            parts.offset = parts.offset.checked_add(LLVMOffsetOfElement(layout, of, field) as i64)?;
                            of = LLVMStructGetTypeAtIndex(of, field);
                            continue;
                        }
                        LLVMTypeKind::LLVMArrayTypeKind | LLVMTypeKind::LLVMVectorTypeKind => {
                            of = LLVMGetElementType(of);
                        }
                        _ => return None,
                    }
                }
                let shape = Type::of_raw(of, self.module());
                if !shape.is_sized() || shape.is_scalable() {
                    return None;
                }
                let stride = i64::try_from(LLVMABISizeOfType(layout, of)).ok()?;
                match index.as_number() {
                    Some(number) => parts.offset = parts.offset.checked_add(number.checked_mul(stride)?)?,
                    None if matches!(index.type_of().shape(), Shape::Integer(_)) => parts.terms.push((*index, stride)),
                    None => return None,
                }
            }
        }
        Some(parts)
    }

    /// Whether it is the address of a global variable.
    #[must_use]
    pub(crate) fn is_global_variable(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { !LLVMIsAGlobalVariable(self.raw()).is_null() }
    }

    /// Whether it is a global variable to which only this module can refer.
    #[must_use]
    pub(crate) fn is_internal_global(self) -> bool {
        // SAFETY: the second question is put to global variables only.
        let linkage = self.is_global_variable().then(|| unsafe { LLVMGetLinkage(self.raw()) });
        matches!(linkage, Some(LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage))
    }

    /// What a global variable of this module holds at first.
    #[must_use]
    pub(crate) fn initializer(self) -> Option<Value<'m>> {
        // SAFETY: the question is put to global variables only.
        let first = self.is_global_variable().then(|| unsafe { LLVMGetInitializer(self.raw()) })?;
        (!first.is_null()).then(|| Value::of_raw(first, self.module()))
    }

    /// The parts of a constant: operands of an expression, elements of an array, a vector or a structure. None for
    /// numbers, for arrays of numbers, and for globals.
    #[must_use]
    pub(crate) fn constant_operands(self) -> Vec<Value<'m>> {
        // SAFETY: operands are asked for of expressions and of constants with elements, which have as many.
        unsafe {
            let raw = self.raw();
            let has_parts = !LLVMIsAConstantExpr(raw).is_null()
                || !LLVMIsAConstantArray(raw).is_null()
                || !LLVMIsAConstantStruct(raw).is_null()
                || !LLVMIsAConstantVector(raw).is_null();
            let count = if has_parts { LLVMGetNumOperands(raw) as u32 } else { 0 };
            (0..count).map(|i| Value::of_raw(LLVMGetOperand(raw, i), self.module())).collect()
        }
    }

    /// Whether it is a constant address whose target is unknown: an alias, a function that is chosen when the program
    /// starts, a number.
    #[must_use]
    pub(crate) fn is_opaque_constant(self) -> bool {
        // SAFETY: the value is alive.
        unsafe {
            let other = !LLVMIsAGlobalValue(self.raw()).is_null() && LLVMIsAGlobalVariable(self.raw()).is_null();
            (other && !self.is_function()) || self.constant_opcode() == Some(Opcode::LLVMIntToPtr)
        }
    }

    /// The global variable whose address it is, or into which it points by constants.
    #[must_use]
    pub(crate) fn global_variable(self) -> Option<Value<'m>> {
        let mut value = self;
        // SAFETY: a constant expression has operands, of which the first is its base.
        while unsafe { !LLVMIsAConstantExpr(value.raw()).is_null() && LLVMGetNumOperands(value.raw()) > 0 } {
            // SAFETY: as above.
            value = Value::of_raw(unsafe { LLVMGetOperand(value.raw(), 0) }, self.module());
        }
        value.is_global_variable().then_some(value)
    }

    /// Whether it is a global variable that nobody may write.
    #[must_use]
    pub(crate) fn is_constant_global(self) -> bool {
        // SAFETY: the second question is put to global variables only.
        self.is_global_variable() && unsafe { LLVMIsGlobalConstant(self.raw()) != 0 }
    }

    /// Whether it is a global variable with a copy for each thread.
    #[must_use]
    pub(crate) fn is_thread_local(self) -> bool {
        // SAFETY: the second question is put to global variables only.
        self.is_global_variable() && unsafe { LLVMIsThreadLocal(self.raw()) != 0 }
    }

    /// The text of inline assembly.
    #[must_use]
    pub fn assembly(self) -> Option<String> {
        let mut length = 0;
        // SAFETY: the text is asked for where there is one, and belongs to the value.
        self.is_inline_assembly()
            .then(|| unsafe { super::owned_text(LLVMGetInlineAsmAsmString(self.raw(), &raw mut length), length) })
    }

    /// Instructions that use this function or global, and whether there are no other users (constants, initialisers).
    #[must_use]
    pub(crate) fn users_in_code(self) -> (Vec<Instruction<'m>>, bool) {
        let (mut users, mut complete) = (Vec::new(), true);
        // SAFETY: the question is put to globals, whose users are of their module; the list does not change while it is
        // walked.
        unsafe {
            if LLVMIsAGlobalValue(self.raw()).is_null() {
                return (users, false);
            }
            let mut link = LLVMGetFirstUse(self.raw());
            while !link.is_null() {
                let user = LLVMGetUser(link);
                if LLVMIsAInstruction(user).is_null() {
                    complete &= is_kept_only(user);
                } else {
                    users.push(Instruction::of_raw(user, self.module()));
                }
                link = LLVMGetNextUse(link);
            }
        }
        users.reverse();
        users.dedup();
        (users, complete)
    }
}

/// Whether a constant is there only to keep what it names in the program (`llvm.used`).
///
/// # Safety
/// `user` is a value of a living module.
unsafe fn is_kept_only(user: LLVMValueRef) -> bool {
    // SAFETY: the caller says so; only constants are asked for their users, and lists do not change while they are
    // walked.
    unsafe {
        if !LLVMIsAGlobalVariable(user).is_null() {
            let mut length = 0;
            let name = super::owned_text(LLVMGetValueName2(user, &raw mut length), length);
            return name == "llvm.used" || name == "llvm.compiler.used";
        }
        if LLVMIsAConstant(user).is_null() || !LLVMIsAGlobalValue(user).is_null() {
            return false;
        }
        let mut link = LLVMGetFirstUse(user);
        let mut kept = !link.is_null();
        while kept && !link.is_null() {
            kept = is_kept_only(LLVMGetUser(link));
            link = LLVMGetNextUse(link);
        }
        kept
    }
}

impl<'m> Function<'m> {
    /// Whether only this module can refer to it.
    #[must_use]
    pub(crate) fn is_internal(self) -> bool {
        // SAFETY: the function is alive.
        let linkage = unsafe { LLVMGetLinkage(self.raw()) };
        matches!(linkage, LLVMLinkage::LLVMInternalLinkage | LLVMLinkage::LLVMPrivateLinkage)
    }

    /// Whether the linker may take another function of this name, which does something else.
    #[must_use]
    pub(crate) fn may_be_replaced(self) -> bool {
        // SAFETY: the function is alive.
        let linkage = unsafe { LLVMGetLinkage(self.raw()) };
        matches!(
            linkage,
            LLVMLinkage::LLVMWeakAnyLinkage
                | LLVMLinkage::LLVMLinkOnceAnyLinkage
                | LLVMLinkage::LLVMExternalWeakLinkage
                | LLVMLinkage::LLVMCommonLinkage
        )
    }

    /// Its calling convention, as LLVM numbers them; 0 is C.
    #[must_use]
    pub fn calling_convention(self) -> u32 {
        // SAFETY: the function is alive.
        unsafe { LLVMGetFunctionCallConv(self.raw()) }
    }
}

impl Module {
    /// The functions with a body that a list of the module's (`nvvm.annotations`) gives this word and the number 1, as
    /// in `!{ptr @f, !"kernel", i32 1}`.
    #[must_use]
    pub fn annotated(&self, list: &str, word: &str) -> Vec<Function<'_>> {
        let Ok(list) = std::ffi::CString::new(list) else { return Vec::new() };
        let mut found = Vec::new();
        // SAFETY: the module is alive; arrays have the lengths that LLVM told; words are asked for where it says that
        // something is one, and the bytes of one are its own.
        unsafe {
            let count = LLVMGetNamedMetadataNumOperands(self.raw(), list.as_ptr()) as usize;
            let mut nodes = vec![std::ptr::null_mut(); count];
            LLVMGetNamedMetadataOperands(self.raw(), list.as_ptr(), nodes.as_mut_ptr());
            for node in nodes {
                let mut parts = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
                LLVMGetMDNodeOperands(node, parts.as_mut_ptr());
                let Some((&function, pairs)) = parts.split_first() else { continue };
                let is_meant = pairs.chunks_exact(2).any(|pair| {
                    let mut length = 0;
                    let is_word = !pair[0].is_null() && !LLVMIsAMDString(pair[0]).is_null();
                    let text = if is_word { LLVMGetMDString(pair[0], &raw mut length) } else { std::ptr::null() };
                    let is_one = !pair[1].is_null() && Value::of_raw(pair[1], self).as_number() == Some(1);
                    !text.is_null()
                        && std::slice::from_raw_parts(text.cast::<u8>(), length as usize) == word.as_bytes()
                        && is_one
                });
                if is_meant && !function.is_null() {
                    found.extend(Value::of_raw(function, self).as_defined_function());
                }
            }
        }
        found
    }

    /// The target triple; empty where there is none.
    #[must_use]
    pub fn target(&self) -> String {
        // SAFETY: the module is alive, and the text its own.
        unsafe {
            let text: *const std::ffi::c_char = LLVMGetTarget(self.raw());
            if text.is_null() { String::new() } else { std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned() }
        }
    }
}
