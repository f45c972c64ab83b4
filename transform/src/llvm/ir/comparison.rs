//! Comparisons whose operands stand the other way round.

use llvm_sys::core::*;
use llvm_sys::{LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

use crate::llvm::Instruction;

impl<'m> Instruction<'m> {
    /// Whether both compare values of one type, and this one's predicate is the other's with its operands exchanged:
    /// `a < b` and `d > c`. Not true of two that do the same anyway, such as two tests for equality.
    #[must_use]
    pub(crate) fn compares_the_other_way_round(self, other: Instruction<'m>) -> bool {
        if self.opcode() != other.opcode() || self.type_of() != other.type_of() {
            return false;
        }
        let of_one_type = || self.operand(0).type_of() == other.operand(0).type_of();
        // SAFETY: each question is put to the kind that it is defined for, since both are of that kind.
        unsafe {
            match self.opcode() {
                LLVMOpcode::LLVMICmp => {
                    let (mine, others) = (LLVMGetICmpPredicate(self.raw()), LLVMGetICmpPredicate(other.raw()));
                    of_one_type() && mine != others && exchanged(mine) == others
                }
                LLVMOpcode::LLVMFCmp => {
                    let (mine, others) = (LLVMGetFCmpPredicate(self.raw()), LLVMGetFCmpPredicate(other.raw()));
                    of_one_type() && mine != others && exchanged_real(mine) == others
                }
                _ => false,
            }
        }
    }
}

impl Instruction<'_> {
    /// Whether it is an `fcmp` that asks whether both are numbers and equal, or the opposite: `oeq` and `une`.
    #[must_use]
    pub(crate) fn compares_floats_for_equality(self) -> bool {
        use LLVMRealPredicate::{LLVMRealOEQ, LLVMRealUNE};
        // SAFETY: it is an `fcmp` when it is asked for its predicate.
        self.opcode() == LLVMOpcode::LLVMFCmp
            && matches!(unsafe { LLVMGetFCmpPredicate(self.raw()) }, LLVMRealOEQ | LLVMRealUNE)
    }
}

/// The predicate that says the same of operands that are exchanged.
fn exchanged(predicate: LLVMIntPredicate) -> LLVMIntPredicate {
    use LLVMIntPredicate::*;
    match predicate {
        LLVMIntUGT => LLVMIntULT,
        LLVMIntULT => LLVMIntUGT,
        LLVMIntUGE => LLVMIntULE,
        LLVMIntULE => LLVMIntUGE,
        LLVMIntSGT => LLVMIntSLT,
        LLVMIntSLT => LLVMIntSGT,
        LLVMIntSGE => LLVMIntSLE,
        LLVMIntSLE => LLVMIntSGE,
        LLVMIntEQ | LLVMIntNE => predicate,
    }
}

/// As [`exchanged`], of floating-point numbers.
fn exchanged_real(predicate: LLVMRealPredicate) -> LLVMRealPredicate {
    use LLVMRealPredicate::*;
    match predicate {
        LLVMRealOGT => LLVMRealOLT,
        LLVMRealOLT => LLVMRealOGT,
        LLVMRealOGE => LLVMRealOLE,
        LLVMRealOLE => LLVMRealOGE,
        LLVMRealUGT => LLVMRealULT,
        LLVMRealULT => LLVMRealUGT,
        LLVMRealUGE => LLVMRealULE,
        LLVMRealULE => LLVMRealUGE,
        _ => predicate,
    }
}
