//! Values and types.

use std::hash::{Hash, Hasher};

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMTypeKind};
use rustc_hash::FxHashMap;

use crate::llvm::{Instruction, Module, Use};

/// What an instruction can use or make: an instruction, a parameter, a constant, a function, a block as an operand.
#[derive(Clone, Copy)]
pub struct Value<'m> {
    raw: LLVMValueRef,
    module: &'m Module,
}

impl<'m> Value<'m> {
    pub(in crate::llvm) fn of_raw(raw: LLVMValueRef, module: &'m Module) -> Value<'m> {
        assert!(!raw.is_null(), "LLVM returned no value where it always has one");
        Value { raw, module }
    }

    pub(in crate::llvm) fn raw(self) -> LLVMValueRef {
        self.raw
    }

    pub(in crate::llvm) fn module(self) -> &'m Module {
        self.module
    }

    /// Refuses what nothing in this module may use: parts of another module, and instructions and blocks that were
    /// erased.
    #[track_caller]
    pub(in crate::llvm) fn assert_usable_in(self, module: &Module) {
        module.assert_is(self.module);
        if let Some(instruction) = self.as_instruction() {
            instruction.assert_in_block();
        }
    }

    /// The instruction that makes it, if one does.
    #[must_use]
    pub fn as_instruction(self) -> Option<Instruction<'m>> {
        // SAFETY: the value is alive; LLVM is asked which kind it is.
        let is_instruction = unsafe { !LLVMIsAInstruction(self.raw).is_null() };
        is_instruction.then(|| Instruction::of_raw(self.raw, self.module))
    }

    /// Its type.
    #[must_use]
    pub fn type_of(self) -> Type<'m> {
        // SAFETY: the value is alive, and every value has a type.
        Type { raw: unsafe { LLVMTypeOf(self.raw) }, module: self.module }
    }

    /// Its name; empty where it has none, as after a compiler that discards names.
    #[must_use]
    pub fn name(self) -> String {
        let mut length = 0;
        // SAFETY: the text belongs to the value, which is alive.
        unsafe { crate::llvm::owned_text(LLVMGetValueName2(self.raw, &raw mut length), length) }
    }

    /// Whether it is an intrinsic function of LLVM's.
    #[must_use]
    pub(crate) fn is_intrinsic(self) -> bool {
        // SAFETY: the question is put to functions only.
        unsafe { self.is_function() && LLVMGetIntrinsicID(self.raw) != 0 }
    }

    /// Whether it is a function.
    #[must_use]
    pub fn is_function(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { !LLVMIsAFunction(self.raw).is_null() }
    }

    /// The function, if it is one with a body.
    #[must_use]
    pub(crate) fn as_defined_function(self) -> Option<crate::llvm::Function<'m>> {
        // SAFETY: the second question is put to functions only.
        let defined = unsafe { self.is_function() && !LLVMGetFirstBasicBlock(self.raw).is_null() };
        defined.then(|| crate::llvm::Function::of_raw(self.raw, self.module))
    }

    /// Whether it is inline assembly.
    #[must_use]
    pub(crate) fn is_inline_assembly(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { !LLVMIsAInlineAsm(self.raw).is_null() }
    }

    /// Whether it is a constant (functions and addresses of globals are).
    #[must_use]
    pub fn is_constant(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { LLVMIsConstant(self.raw) != 0 }
    }

    /// The number that it is, if it is a constant integer of at most 64 bits; with its sign.
    #[must_use]
    pub fn as_number(self) -> Option<i64> {
        // SAFETY: the value is asked for where LLVM says that it is a constant integer, of a width that fits.
        unsafe {
            let fits = !LLVMIsAConstantInt(self.raw).is_null() && LLVMGetIntTypeWidth(LLVMTypeOf(self.raw)) <= 64;
            fits.then(|| LLVMConstIntGetSExtValue(self.raw))
        }
    }

    /// All places that use it; none for constants, whose uses reach across functions.
    #[must_use]
    pub fn uses(self) -> Vec<Use<'m>> {
        self.few_uses(usize::MAX).unwrap_or_default()
    }

    /// As [`Value::uses`], unless there are more than `most`.
    #[must_use]
    pub(crate) fn few_uses(self, most: usize) -> Option<Vec<Use<'m>>> {
        let mut uses: Vec<Use<'m>> = Vec::new();
        if self.is_constant() {
            return Some(uses);
        }
        // SAFETY: the value is alive, and its list of uses does not change while it is walked; users that are no
        // instructions (metadata that wraps a value) are left out.
        unsafe {
            let mut link = LLVMGetFirstUse(self.raw);
            while !link.is_null() {
                let user = LLVMGetUser(link);
                if !LLVMIsAInstruction(user).is_null() {
                    if uses.len() == most {
                        return None;
                    }
                    uses.push(Use { user: Instruction::of_raw(user, self.module), operand: operand_of(user, link) });
                }
                link = LLVMGetNextUse(link);
            }
        }
        // Each user's operands together and in order, the users in the order in which LLVM has them.
        let mut places = FxHashMap::default();
        for u in &uses {
            let next = places.len();
            places.entry(u.user).or_insert(next);
        }
        uses.sort_by_key(|u| (places[&u.user], u.operand));
        Some(uses)
    }

    /// Makes all that uses this use `other` instead.
    ///
    /// # Panics
    /// When the types differ, this is a constant, one of them was erased, or they are of two modules.
    #[track_caller]
    pub(crate) fn replace_all_uses_with(self, other: Value<'m>) {
        self.assert_usable_in(other.module);
        other.assert_usable_in(self.module);
        assert!(!self.is_constant(), "a constant is replaced in all of the module");
        assert!(self.type_of().is_first_class(), "what is no value of the program is replaced");
        assert!(self.type_of() == other.type_of(), "a value is replaced by one of another type");
        assert!(self != other, "a value is replaced by itself");
        // SAFETY: both are alive, differ, and have the same type.
        unsafe { LLVMReplaceAllUsesWith(self.raw, other.raw) };
    }

    /// Whether it is the address of an error result of Swift's convention: it stands in a register, may only be loaded
    /// from, stored to and passed on, and nothing may be put in its place.
    #[must_use]
    pub(crate) fn is_swift_error(self) -> bool {
        // SAFETY: it is a value, and alive.
        unsafe { lockstep_is_swift_error(self.raw) }
    }

    /// The opcode, for instructions.
    #[must_use]
    pub fn opcode(self) -> Option<LLVMOpcode> {
        self.as_instruction().map(Instruction::opcode)
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Value<'_> {}

impl Hash for Value<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

/// Which operand of its user a use is.
///
/// # Safety
/// `user` is an instruction, alive, and `link` one of the uses that it is the user of.
unsafe fn operand_of(user: LLVMValueRef, link: LLVMUseRef) -> u32 {
    // SAFETY: the caller says so, and each index is below the count. LLVM keeps the operands of an instruction in one
    // array of uses, so that two neighbours tell how large one is; the answer is looked up before it is believed.
    unsafe {
        let count = LLVMGetNumOperands(user) as u32;
        let first = LLVMGetOperandUse(user, 0);
        if count > 1 {
            let size = LLVMGetOperandUse(user, 1) as usize - first as usize;
            let index = ((link as usize).wrapping_sub(first as usize) / size) as u32;
            if index < count && LLVMGetOperandUse(user, index) == link {
                return index;
            }
        }
        let found = (0..count).find(|&i| LLVMGetOperandUse(user, i) == link);
        found.expect("a use is one of its user's operands")
    }
}

/// What a type is, as far as the cost of its values goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An integer of so many bits.
    Integer(u32),
    /// A floating-point number of so many bits.
    Float(u32),
    /// An address.
    Pointer,
    /// Several integers (or addresses) or floating-point numbers of so many bits each.
    Vector {
        /// Whether they are floating-point numbers.
        float: bool,
        /// The width of each.
        bits: u32,
        /// How many.
        lanes: u32,
    },
    /// A structure, an array, or what has no values.
    Other,
}

/// A type. LLVM keeps one copy of each, so that two are the same when their addresses are.
#[derive(Clone, Copy)]
pub struct Type<'m> {
    raw: LLVMTypeRef,
    module: &'m Module,
}

impl<'m> Type<'m> {
    pub(in crate::llvm) fn of_raw(raw: LLVMTypeRef, module: &'m Module) -> Type<'m> {
        Type { raw, module }
    }

    pub(in crate::llvm) fn raw(self) -> LLVMTypeRef {
        self.raw
    }

    pub(in crate::llvm) fn module(self) -> &'m Module {
        self.module
    }

    fn kind(self) -> LLVMTypeKind {
        // SAFETY: types live as long as the context.
        unsafe { LLVMGetTypeKind(self.raw) }
    }

    /// What it is, as far as the cost of its values goes.
    #[must_use]
    pub fn shape(self) -> Shape {
        use LLVMTypeKind::*;
        // SAFETY: each question is put to the kind of type that it is defined for.
        unsafe {
            match self.kind() {
                LLVMIntegerTypeKind => Shape::Integer(LLVMGetIntTypeWidth(self.raw)),
                LLVMPointerTypeKind => Shape::Pointer,
                LLVMHalfTypeKind | LLVMBFloatTypeKind => Shape::Float(16),
                LLVMFloatTypeKind => Shape::Float(32),
                LLVMDoubleTypeKind => Shape::Float(64),
                LLVMX86_FP80TypeKind => Shape::Float(80),
                LLVMFP128TypeKind | LLVMPPC_FP128TypeKind => Shape::Float(128),
                LLVMVectorTypeKind => {
                    let element = Type::of_raw(LLVMGetElementType(self.raw), self.module);
                    let (float, bits) = match element.shape() {
                        Shape::Integer(bits) => (false, bits),
                        Shape::Float(bits) => (true, bits),
                        _ => (false, 64),
                    };
                    Shape::Vector { float, bits, lanes: LLVMGetVectorSize(self.raw) }
                }
                _ => Shape::Other,
            }
        }
    }

    /// Whether values of it can be stored in memory and joined by a phi: not tokens, labels, metadata, void or
    /// functions.
    #[must_use]
    pub(crate) fn is_first_class(self) -> bool {
        use LLVMTypeKind::*;
        !matches!(
            self.kind(),
            LLVMVoidTypeKind
                | LLVMLabelTypeKind
                | LLVMMetadataTypeKind
                | LLVMTokenTypeKind
                | LLVMFunctionTypeKind
                | LLVMTargetExtTypeKind
                | LLVMX86_AMXTypeKind
        )
    }

    /// Whether it is `void`.
    #[must_use]
    pub fn is_void(self) -> bool {
        matches!(self.kind(), LLVMTypeKind::LLVMVoidTypeKind)
    }

    /// Whether its values are addresses.
    #[must_use]
    pub fn is_pointer(self) -> bool {
        matches!(self.kind(), LLVMTypeKind::LLVMPointerTypeKind)
    }

    /// The type itself, or that of a vector's elements.
    fn scalar(self) -> Type<'m> {
        use LLVMTypeKind::*;
        if !matches!(self.kind(), LLVMVectorTypeKind | LLVMScalableVectorTypeKind) {
            return self;
        }
        // SAFETY: it is a type of vectors.
        Type::of_raw(unsafe { LLVMGetElementType(self.raw) }, self.module)
    }

    /// Whether its values are integers, or vectors of integers.
    #[must_use]
    pub(crate) fn is_integers(self) -> bool {
        matches!(self.scalar().kind(), LLVMTypeKind::LLVMIntegerTypeKind)
    }

    /// Whether its values are addresses, or vectors of addresses.
    #[must_use]
    pub(crate) fn is_pointers(self) -> bool {
        self.scalar().is_pointer()
    }

    /// Whether its values have a size in memory.
    #[must_use]
    pub(crate) fn is_sized(self) -> bool {
        // SAFETY: types live as long as the context.
        unsafe { LLVMTypeIsSized(self.raw) != 0 }
    }

    /// The types of its parameters, and whether there may be more arguments, if it is a type of functions.
    #[must_use]
    pub fn parameters(self) -> Option<(Vec<Type<'m>>, bool)> {
        if !matches!(self.kind(), LLVMTypeKind::LLVMFunctionTypeKind) {
            return None;
        }
        // SAFETY: it is a type of functions; the array is as long as LLVM says.
        let (raw, variadic) = unsafe {
            let mut raw = vec![std::ptr::null_mut(); LLVMCountParamTypes(self.raw) as usize];
            LLVMGetParamTypes(self.raw, raw.as_mut_ptr());
            (raw, LLVMIsFunctionVarArg(self.raw) != 0)
        };
        Some((raw.into_iter().map(|raw| Type::of_raw(raw, self.module)).collect(), variadic))
    }

    /// Whether nothing may depend on some value of it: also where no pass may make or keep one, as of tiles of a matrix
    /// unit.
    pub(in crate::llvm) fn has_poison(self) -> bool {
        use LLVMTypeKind::*;
        let none = [LLVMVoidTypeKind, LLVMLabelTypeKind, LLVMMetadataTypeKind, LLVMTokenTypeKind, LLVMFunctionTypeKind];
        !none.contains(&self.kind())
    }

    /// Whether its values are tokens, which tie instructions together.
    pub(in crate::llvm) fn is_token(self) -> bool {
        matches!(self.kind(), LLVMTypeKind::LLVMTokenTypeKind)
    }

    /// The value that stands for "whatever": what nothing sensible reads.
    ///
    /// # Panics
    /// When there can be no values of this type.
    #[must_use]
    pub fn undef(self) -> Value<'m> {
        assert!(self.is_first_class(), "an undefined value of a type without values");
        // SAFETY: the type has values.
        Value::of_raw(unsafe { LLVMGetUndef(self.raw) }, self.module)
    }

    /// The value on which nothing may depend, as on a path that is never taken.
    ///
    /// # Panics
    /// When there can be no values of this type.
    #[must_use]
    pub fn poison(self) -> Value<'m> {
        assert!(self.is_first_class(), "poison of a type without values");
        // SAFETY: the type has values.
        Value::of_raw(unsafe { LLVMGetPoison(self.raw) }, self.module)
    }
}

/// As IR text.
impl std::fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: types live as long as the context; LLVM returns a text of its own making, which `taken_message`
        // frees.
        f.write_str(&unsafe { crate::llvm::ir::module::taken_message(LLVMPrintTypeToString(self.raw)) })
    }
}

impl PartialEq for Type<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Type<'_> {}

unsafe extern "C" {
    fn lockstep_is_swift_error(value: LLVMValueRef) -> bool;
}
