//! Calls: what they call, what they pass, and how.

use llvm_sys::LLVMTailCallKind;
use llvm_sys::core::*;

use crate::llvm::{Instruction, Opcode, Type, Value};

impl<'m> Instruction<'m> {
    /// What a call calls; `None` for all that is no plain call.
    #[must_use]
    pub fn callee(self) -> Option<Value<'m>> {
        // SAFETY: the question is put to calls only.
        (self.opcode() == Opcode::LLVMCall)
            .then(|| Value::of_raw(unsafe { LLVMGetCalledValue(self.raw()) }, self.module()))
    }

    /// Whether it is a plain call of the function of this name, wherever that is defined.
    #[must_use]
    pub fn calls(self, name: &str) -> bool {
        self.callee().is_some_and(|callee| callee.is_function() && callee.name() == name)
    }

    /// What an `invoke` calls; `None` for all else.
    #[must_use]
    pub(crate) fn invoked(self) -> Option<Value<'m>> {
        // SAFETY: the question is put to invokes only.
        (self.opcode() == Opcode::LLVMInvoke)
            .then(|| Value::of_raw(unsafe { LLVMGetCalledValue(self.raw()) }, self.module()))
    }

    /// What a call passes; nothing for all that is no plain call.
    #[must_use]
    pub fn arguments(self) -> Vec<Value<'m>> {
        if self.opcode() != Opcode::LLVMCall {
            return Vec::new();
        }
        // SAFETY: the question is put to calls only.
        let count = unsafe { LLVMGetNumArgOperands(self.raw()) } as usize;
        self.operands().into_iter().take(count).collect()
    }

    /// The function type that a call uses.
    #[must_use]
    pub(crate) fn called_type(self) -> Option<Type<'m>> {
        // SAFETY: the question is put to calls only.
        (self.opcode() == Opcode::LLVMCall)
            .then(|| Type::of_raw(unsafe { LLVMGetCalledFunctionType(self.raw()) }, self.module()))
    }

    /// A call's calling convention, as LLVM numbers them; 0 is C.
    #[must_use]
    pub fn calling_convention(self) -> u32 {
        // SAFETY: the question is put to calls only.
        if self.opcode() == Opcode::LLVMCall { unsafe { LLVMGetInstructionCallConv(self.raw()) } } else { 0 }
    }

    /// Whether a call has operand bundles.
    #[must_use]
    pub(crate) fn has_bundles(self) -> bool {
        // SAFETY: the question is put to calls only.
        self.opcode() == Opcode::LLVMCall && unsafe { LLVMGetNumOperandBundles(self.raw()) } != 0
    }

    /// Whether a call must be a jump at the end of its function.
    #[must_use]
    pub(crate) fn must_be_tail(self) -> bool {
        // SAFETY: the question is put to calls only.
        self.opcode() == Opcode::LLVMCall
            && unsafe { LLVMGetTailCallKind(self.raw()) } == LLVMTailCallKind::LLVMTailCallKindMustTail
    }

    /// Whether a call may be a jump.
    #[must_use]
    pub(crate) fn may_be_tail(self) -> bool {
        // SAFETY: the question is put to calls only.
        self.opcode() == Opcode::LLVMCall
            && unsafe { LLVMGetTailCallKind(self.raw()) } == LLVMTailCallKind::LLVMTailCallKindTail
    }

    /// Takes the leave to be a jump from a call.
    ///
    /// # Panics
    /// When it is no call.
    pub(crate) fn forbid_tail(self) {
        assert!(self.opcode() == Opcode::LLVMCall, "only calls can be tail calls");
        // SAFETY: it is a call.
        unsafe { LLVMSetTailCallKind(self.raw(), LLVMTailCallKind::LLVMTailCallKindNone) };
    }
}
