//! `refused`: a pass that breaks the code and is then refused, for tests of what follows; and `spoilt`, whose broken
//! work only the verifier detects. They are not listed.
//!
//! In each function the result becomes an undefined value; then an instruction is erased that is still used, which the
//! layer below does not allow.

use parameters::Settings;

use crate::Remark;
use crate::llvm::{Module, Opcode};
use crate::pass::{Pass, Run};

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "refused",
    summary: "breaks the code and then detects it: for tests",
    source: "lockstep",
    parameters: &[],
    structures: false,
    run: Run::Module(run),
};

/// Never returns where a function has an instruction that another uses.
fn run(module: &mut Module, _settings: &Settings) -> Vec<Remark> {
    for function in module.functions() {
        let instructions: Vec<_> = function.blocks().into_iter().flat_map(|block| block.instructions()).collect();
        for end in instructions.iter().filter(|i| i.opcode() == Opcode::LLVMRet) {
            if let Some(result) = end.operands().first() {
                end.set_operand(0, result.type_of().undef());
            }
        }
        let used = instructions.into_iter().find(|i| !i.as_value().uses().is_empty());
        used.into_iter().for_each(|instruction| instruction.erase());
    }
    Vec::new()
}

/// The same, which does not notice it.
pub(crate) const SPOILT: Pass = Pass {
    name: "spoilt",
    summary: "breaks the code and does not detect it: for tests",
    source: "lockstep",
    parameters: &[],
    structures: false,
    run: Run::Module(run_unnoticed),
};

/// Leaves a use before its definition, if a function's first block begins with two values and one uses the other.
fn run_unnoticed(module: &mut Module, _settings: &Settings) -> Vec<Remark> {
    for function in module.functions() {
        if let [first, second, ..] = function.blocks()[0].instructions()[..]
            && second.operands().contains(&first.as_value())
        {
            second.move_before(first);
        }
    }
    Vec::new()
}
