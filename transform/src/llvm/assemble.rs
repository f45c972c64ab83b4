//! A builder of instructions of all common kinds, at the end of a block or before an instruction.

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMInlineAsmDialect, LLVMIntPredicate, LLVMOpcode};

use super::{Block, Function, Instruction, Module, Opcode, Type, Value};

const UNNAMED: *const std::ffi::c_char = c"".as_ptr();

/// Where instructions are put.
#[derive(Clone, Copy)]
pub struct Builder<'m> {
    block: Block<'m>,
    before: Option<Instruction<'m>>,
}

/// What is done to two integers, or two vectors of integers, of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are LLVM's")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
}

/// How two integers or addresses, or two vectors of them, are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are LLVM's: U is unsigned, S is signed")]
pub enum Comparison {
    Equal,
    NotEqual,
    ULess,
    ULessEqual,
    UGreater,
    UGreaterEqual,
    SLess,
    SLessEqual,
    SGreater,
    SGreaterEqual,
}

impl<'m> Builder<'m> {
    /// Puts instructions at the end of a block.
    #[must_use]
    pub(crate) fn at_end_of(block: Block<'m>) -> Builder<'m> {
        Builder { block, before: None }
    }

    /// Puts instructions before another.
    ///
    /// # Panics
    /// When that was erased.
    #[must_use]
    #[track_caller]
    pub fn before(instruction: Instruction<'m>) -> Builder<'m> {
        Builder { block: instruction.assert_in_block(), before: Some(instruction) }
    }

    pub(super) fn module(self) -> &'m Module {
        self.block.module()
    }

    pub(crate) fn function(self) -> Function<'m> {
        self.block.function()
    }

    /// LLVM's builder, after a look at where it stands and at what the new instruction will use.
    #[track_caller]
    pub(super) fn raw(self, uses: &[Value<'m>]) -> LLVMBuilderRef {
        self.block.assert_in_function();
        if let Some(before) = self.before {
            assert!(before.assert_in_block() == self.block, "the place of a builder was moved to another block");
        }
        uses.iter().for_each(|value| value.assert_usable_in(self.module()));
        self.module().builder_at(self.block.raw(), self.before.map_or(std::ptr::null_mut(), Instruction::raw))
    }

    /// Integer arithmetic; a constant where LLVM can work it out.
    ///
    /// # Panics
    /// When the types differ or are no integers, or something was erased or is of another module, as in all that
    /// follow.
    #[track_caller]
    pub fn binary(self, operation: Binary, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        use LLVMOpcode::*;
        assert!(
            a.type_of() == b.type_of() && a.type_of().is_integers(),
            "arithmetic on what are no integers of one type"
        );
        let opcode = match operation {
            Binary::Add => LLVMAdd,
            Binary::Sub => LLVMSub,
            Binary::Mul => LLVMMul,
            Binary::UDiv => LLVMUDiv,
            Binary::SDiv => LLVMSDiv,
            Binary::URem => LLVMURem,
            Binary::SRem => LLVMSRem,
            Binary::Shl => LLVMShl,
            Binary::LShr => LLVMLShr,
            Binary::AShr => LLVMAShr,
            Binary::And => LLVMAnd,
            Binary::Or => LLVMOr,
            Binary::Xor => LLVMXor,
        };
        let builder = self.raw(&[a, b]);
        // SAFETY: the builder stands in a live block; both operands are integers of one type.
        Value::of_raw(unsafe { LLVMBuildBinOp(builder, opcode, a.raw(), b.raw(), UNNAMED) }, self.module())
    }

    /// Both bits, in each place.
    #[track_caller]
    pub fn and(self, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        self.binary(Binary::And, a, b)
    }

    /// Either bit, in each place.
    #[track_caller]
    pub fn or(self, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        self.binary(Binary::Or, a, b)
    }

    /// The other bit, in each place.
    #[track_caller]
    pub fn not(self, a: Value<'m>) -> Value<'m> {
        assert!(a.type_of().is_integers(), "the other bits of what is no integer");
        let builder = self.raw(&[a]);
        // SAFETY: the builder stands in a live block; the operand is an integer.
        Value::of_raw(unsafe { LLVMBuildNot(builder, a.raw(), UNNAMED) }, self.module())
    }

    /// A comparison: a truth value, or a vector of them.
    #[track_caller]
    pub fn compare(self, comparison: Comparison, a: Value<'m>, b: Value<'m>) -> Value<'m> {
        use LLVMIntPredicate::*;
        let of_type = a.type_of();
        let comparable = of_type.is_integers() || of_type.is_pointers();
        assert!(of_type == b.type_of() && comparable, "a comparison of what are no integers or addresses of one type");
        let predicate = match comparison {
            Comparison::Equal => LLVMIntEQ,
            Comparison::NotEqual => LLVMIntNE,
            Comparison::ULess => LLVMIntULT,
            Comparison::ULessEqual => LLVMIntULE,
            Comparison::UGreater => LLVMIntUGT,
            Comparison::UGreaterEqual => LLVMIntUGE,
            Comparison::SLess => LLVMIntSLT,
            Comparison::SLessEqual => LLVMIntSLE,
            Comparison::SGreater => LLVMIntSGT,
            Comparison::SGreaterEqual => LLVMIntSGE,
        };
        let builder = self.raw(&[a, b]);
        // SAFETY: the builder stands in a live block; both operands are of one type that can be compared.
        Value::of_raw(unsafe { LLVMBuildICmp(builder, predicate, a.raw(), b.raw(), UNNAMED) }, self.module())
    }

    /// The choice between two values.
    #[track_caller]
    pub fn select(self, condition: Value<'m>, yes: Value<'m>, no: Value<'m>) -> Value<'m> {
        let builder = self.raw(&[condition, yes, no]);
        assert!(condition.type_of() == self.block.function().truth_type(), "a choice by what is no truth value");
        assert!(yes.type_of() == no.type_of() && yes.type_of().is_first_class(), "a choice between two types");
        // SAFETY: the builder stands in a live block; the types were looked at.
        let raw = unsafe { LLVMBuildSelect(builder, condition.raw(), yes.raw(), no.raw(), UNNAMED) };
        Value::of_raw(raw, self.module())
    }

    /// A load.
    #[track_caller]
    pub fn load(self, of_type: Type<'m>, address: Value<'m>) -> Value<'m> {
        self.assert_storable(of_type, address);
        let builder = self.raw(&[address]);
        // SAFETY: the builder stands in a live block; the type has a size, and the address is a pointer.
        Value::of_raw(unsafe { LLVMBuildLoad2(builder, of_type.raw(), address.raw(), UNNAMED) }, self.module())
    }

    /// A store.
    #[track_caller]
    pub fn store(self, value: Value<'m>, address: Value<'m>) -> Instruction<'m> {
        self.assert_storable(value.type_of(), address);
        let builder = self.raw(&[value, address]);
        // SAFETY: as in `load`.
        Instruction::of_raw(unsafe { LLVMBuildStore(builder, value.raw(), address.raw()) }, self.module())
    }

    #[track_caller]
    fn assert_storable(self, of_type: Type<'m>, address: Value<'m>) {
        self.module().assert_is(of_type.module());
        assert!(address.type_of().is_pointer(), "an access by what is no address");
        assert!(of_type.is_first_class() && of_type.is_sized(), "an access of what has no size");
    }

    /// Room for a value in the stack frame, where the builder stands; its address.
    #[track_caller]
    pub fn alloca(self, of_type: Type<'m>) -> Value<'m> {
        self.module().assert_is(of_type.module());
        assert!(of_type.is_first_class() && of_type.is_sized(), "room for what has no size");
        let builder = self.raw(&[]);
        // SAFETY: the builder stands in a live block; the type has a size.
        Value::of_raw(unsafe { LLVMBuildAlloca(builder, of_type.raw(), UNNAMED) }, self.module())
    }

    /// A call, in C's calling convention.
    ///
    /// # Panics
    /// When the type is no function's, what is called is no address, or the arguments do not fit.
    #[track_caller]
    pub fn call(self, of_type: Type<'m>, callee: Value<'m>, arguments: &[Value<'m>]) -> Instruction<'m> {
        self.module().assert_is(of_type.module());
        assert!(callee.type_of().is_pointer(), "a call of what is no address");
        let (parameters, variadic) = of_type.parameters().expect("a call by what is no type of functions");
        let fit = parameters.len() == arguments.len() || (variadic && parameters.len() < arguments.len());
        assert!(fit, "a call with another number of arguments than the callee takes");
        let alike = arguments.iter().zip(&parameters).all(|(argument, parameter)| argument.type_of() == *parameter);
        assert!(alike && arguments.iter().all(|a| a.type_of().is_first_class()), "an argument of another type");
        let builder = self.raw(&[arguments, &[callee]].concat());
        let mut raw: Vec<LLVMValueRef> = arguments.iter().map(|argument| argument.raw()).collect();
        // SAFETY: the builder stands in a live block; the arguments are of the types that the function type says, and
        // the array is as long as the count says.
        let call = unsafe {
            LLVMBuildCall2(builder, of_type.raw(), callee.raw(), raw.as_mut_ptr(), raw.len() as u32, UNNAMED)
        };
        Instruction::of_raw(call, self.module())
    }

    /// A call of one of LLVM's intrinsics; `types` are those that its name leaves open.
    ///
    /// # Panics
    /// When LLVM has none of this name, or the arguments do not fit.
    #[track_caller]
    pub fn intrinsic(self, name: &str, types: &[Type<'m>], arguments: &[Value<'m>]) -> Instruction<'m> {
        types.iter().for_each(|of_type| self.module().assert_is(of_type.module()));
        let mut raw: Vec<LLVMTypeRef> = types.iter().map(|of_type| of_type.raw()).collect();
        // SAFETY: module and context are alive, the name is copied, and the array is as long as the count says.
        let (of_type, callee) = unsafe {
            let number = LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
            assert!(number != 0, "LLVM has no intrinsic {name}");
            let (types, count) = (raw.as_mut_ptr(), raw.len());
            (
                LLVMIntrinsicGetType(self.module().context(), number, types, count),
                LLVMGetIntrinsicDeclaration(self.module().raw(), number, types, count),
            )
        };
        self.call(Type::of_raw(of_type, self.module()), Value::of_raw(callee, self.module()), arguments)
    }

    /// Inline assembly, in the syntax that LLVM takes by default, as something to call; it has effects that LLVM does
    /// not see.
    ///
    /// # Panics
    /// When the type is no function's, or the constraints do not fit it.
    #[track_caller]
    pub(crate) fn inline_assembly(self, of_type: Type<'m>, text: &str, constraints: &str) -> Value<'m> {
        self.module().assert_is(of_type.module());
        let (parameters, variadic) = of_type.parameters().expect("inline assembly of what is no type of functions");
        assert!(
            !variadic && fits(of_type, &parameters, constraints),
            "inline assembly with the constraints {constraints}"
        );
        // SAFETY: pointers and lengths are those of live texts, which are copied; LLVM's parser took such constraints.
        let raw = unsafe {
            let (text, constraints) = (text.as_bytes(), constraints.as_bytes());
            LLVMGetInlineAsm(
                of_type.raw(),
                text.as_ptr().cast(),
                text.len(),
                constraints.as_ptr().cast(),
                constraints.len(),
                1,
                0,
                LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
                0,
            )
        };
        Value::of_raw(raw, self.module())
    }

    /// A switch by an integer of at most 64 bits.
    ///
    /// # Panics
    /// When the value is none, or a block is of another function.
    #[track_caller]
    pub fn switch(self, value: Value<'m>, otherwise: Block<'m>, cases: &[(u64, Block<'m>)]) -> Instruction<'m> {
        let of_type = value.type_of();
        assert!(matches!(of_type.shape(), super::Shape::Integer(1..=64)), "a switch by what is no integer of 64 bits");
        cases.iter().map(|case| case.1).chain([otherwise]).for_each(|to| self.block.assert_can_lead_to(to));
        let builder = self.raw(&[value]);
        self.module().note_flow_change();
        // SAFETY: the builder stands in a live block of the function that all others are of; each case is a constant of
        // the value's type.
        unsafe {
            let switch = LLVMBuildSwitch(builder, value.raw(), otherwise.raw(), cases.len() as u32);
            for (case, to) in cases {
                LLVMAddCase(switch, LLVMConstInt(of_type.raw(), *case, 0), to.raw());
            }
            Instruction::of_raw(switch, self.module())
        }
    }
}

/// Whether LLVM's parser takes these constraints for inline assembly of this type: its C interface does not look.
fn fits(of_type: Type<'_>, parameters: &[Type<'_>], constraints: &str) -> bool {
    if !constraints.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\') {
        return false;
    }
    let arguments: Vec<String> = parameters.iter().map(|parameter| format!("{parameter} undef")).collect();
    let call = format!("call {of_type} asm sideeffect \"\", \"{constraints}\"({})", arguments.join(", "));
    Module::parse(format!("define void @f() {{\n{call}\nret void\n}}\n").as_bytes(), "constraints").is_ok()
}

impl<'m> Function<'m> {
    /// The type of integers of so many bits.
    ///
    /// # Panics
    /// When LLVM has none: 0 bits, or more than 2^23.
    #[must_use]
    pub(crate) fn integer_type(self, bits: u32) -> Type<'m> {
        assert!((1..=1 << 23).contains(&bits), "integers of {bits} bits");
        // SAFETY: the context is alive, and the width is one that LLVM has.
        Type::of_raw(unsafe { LLVMIntTypeInContext(self.module().context(), bits) }, self.module())
    }

    /// The type of functions that it is called by.
    #[must_use]
    pub fn type_of_calls(self) -> Type<'m> {
        // SAFETY: it is a function, and alive.
        Type::of_raw(unsafe { LLVMGlobalGetValueType(self.raw()) }, self.module())
    }

    /// A type of functions.
    ///
    /// # Panics
    /// When a parameter has no values, or a type is of another module.
    #[must_use]
    #[track_caller]
    pub(crate) fn function_type(self, result: Option<Type<'m>>, parameters: &[Type<'m>]) -> Type<'m> {
        for of_type in result.iter().chain(parameters) {
            self.module().assert_is(of_type.module());
            assert!(of_type.is_first_class(), "a function on what has no values");
        }
        let mut raw: Vec<LLVMTypeRef> = parameters.iter().map(|parameter| parameter.raw()).collect();
        // SAFETY: the context is alive; the array is as long as the count says.
        let made = unsafe {
            let result = result.map_or_else(|| LLVMVoidTypeInContext(self.module().context()), Type::raw);
            LLVMFunctionType(result, raw.as_mut_ptr(), raw.len() as u32, 0)
        };
        Type::of_raw(made, self.module())
    }
}

impl<'m> Type<'m> {
    /// The constant of this type with these bits.
    ///
    /// # Panics
    /// When it is no type of integers.
    #[must_use]
    #[track_caller]
    pub fn number(self, bits: u64) -> Value<'m> {
        assert!(matches!(self.shape(), super::Shape::Integer(_)), "a number of a type that has none");
        // SAFETY: it is a type of integers.
        Value::of_raw(unsafe { LLVMConstInt(self.raw(), bits, 0) }, self.module())
    }
}

impl<'m> Instruction<'m> {
    /// Whether there may be a copy of it: not of calls that forbid it, of tokens, and of jumps to the addresses of
    /// blocks.
    #[must_use]
    pub(crate) fn can_be_copied(self) -> bool {
        let jumps = matches!(self.opcode(), Opcode::LLVMIndirectBr | Opcode::LLVMCallBr);
        let made = self.type_of().is_void() || self.type_of().is_first_class();
        let funclet = matches!(
            self.opcode(),
            Opcode::LLVMCatchSwitch | Opcode::LLVMCatchRet | Opcode::LLVMCleanupRet | Opcode::LLVMInvoke
        ) && self.operands().into_iter().any(|o| !o.type_of().is_first_class() && o.type_of().is_token());
        made && !jumps && !funclet && !self.call_has("noduplicate") && !self.call_has("convergent")
    }
}

#[cfg(test)]
mod tests;
