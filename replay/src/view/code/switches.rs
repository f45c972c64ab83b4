//! Instructions that may go on with another stack, as green threads do: they set the stack pointer to what was loaded
//! or handed over. One that makes room (`sub rsp, rax`, or by way of another register) or ends a frame
//! (`mov rsp, rbp`) stays on its stack.

use heuristics::{SegmentId, SegmentTable};
use machine::{Listing, Operand, Operation, Register, Step};
use rustc_hash::FxHashMap;
use trace_format::{SpEffect, Trace};

use crate::view::first_look::callable::name_at;

/// Functions that go on with another stack: of the C library, of boost's and LLVM's fibers, of libco and libaco.
const SWITCHES: [&str; 7] =
    ["swapcontext", "setcontext", "jump_fcontext", "ontop_fcontext", "co_switch", "co_swap", "acosw"];

/// The segments that end with such an instruction, and whether it surely is one, wherever the other stack lies: by the
/// function's name, or since the stack pointer was kept in memory before, as none does that makes a long jump.
pub(in crate::view) fn switches(trace: &Trace, table: &SegmentTable) -> FxHashMap<SegmentId, bool> {
    let recorded = table.iter().filter(|(_, segment)| segment.sp == SpEffect::Recorded);
    let those = recorded.filter(|(id, _)| may_switch(table.listing(*id)));
    let is_sure = |id: SegmentId| {
        let function = trace.symbol_of(table[id].last().pc).map(|symbol| symbol.pc);
        function.and_then(|pc| name_at(trace, pc)).is_some_and(|name| SWITCHES.contains(&name))
    };
    those.map(|(id, _)| (id, is_sure(id) || keeps(table.listing(id)))).collect()
}

/// Whether one of these instructions keeps the stack pointer in memory outside of a frame.
fn keeps(listing: Listing<'_>) -> bool {
    let is_sp = |operand| matches!(operand, Operand::Register(part) if part.register == Register::SP);
    listing.iter().flatten().any(|instruction| match instruction.step() {
        Step::Copy { from, to: Operand::Memory, .. } if is_sp(from) => !instruction.memory()[0].is_in_frame(),
        _ => false,
    })
}

/// Whether the last of these instructions sets the stack pointer to what was not made of itself.
fn may_switch(listing: Listing<'_>) -> bool {
    let mut before = listing.iter().rev();
    let Some(Some(last)) = before.next() else { return false };
    if last.operation() == Operation::Leave {
        return false;
    }
    let mut from = match made_of(last.step(), Register::SP) {
        // What exchanges registers is no step.
        None => return last.operation() == Operation::Exchange,
        Some(None) => return true,
        Some(Some(register)) => register,
    };
    for instruction in before {
        if from == Register::SP || from == Register::BP {
            return false;
        }
        let Some(instruction) = instruction else { return true };
        if instruction.writes() & from.bit() != 0 {
            match made_of(instruction.step(), from) {
                Some(Some(register)) => from = register,
                Some(None) | None => return true,
            }
        }
    }
    from != Register::SP && from != Register::BP
}

/// The register that this step makes another one of; none inside where it is made of something else. None where it
/// is no step to that one.
fn made_of(step: Step, made: Register) -> Option<Option<Register>> {
    let (from, to) = match step {
        Step::Copy { from, to, .. } => (from, to),
        Step::Update { acc, to, .. } => (acc, to),
        Step::Other => return None,
    };
    let register = |operand: Operand| match operand {
        Operand::Register(part) => Some(part.register),
        _ => None,
    };
    (register(to) == Some(made)).then(|| register(from))
}

#[cfg(test)]
mod tests {
    use machine::Table;
    use trace_format::Pc;

    use super::*;

    fn of(code: &[u8]) -> bool {
        may_switch(Table::row(Pc(0x1000), code).all())
    }

    #[test]
    fn what_was_loaded_or_handed_over_may_be_another_stack() {
        assert!(of(&[0x48, 0x8b, 0x26]), "mov rsp, [rsi]");
        assert!(of(&[0x48, 0x89, 0xfc]), "mov rsp, rdi");
        assert!(of(&[0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc]), "mov rax, rsp; mov rsp, rdi");
        assert!(of(&[0x5c]), "pop rsp");
        assert!(of(&[0x48, 0x87, 0x27]), "xchg [rdi], rsp");
        assert!(of(&[0x48, 0x94]), "xchg rax, rsp");
    }

    #[test]
    fn who_keeps_the_stack_pointer_comes_back_to_it() {
        let keeps = |code: &[u8]| keeps(Table::row(Pc(0x1000), code).all());
        assert!(keeps(&[0x48, 0x89, 0x27, 0x48, 0x8b, 0x26]), "mov [rdi], rsp; mov rsp, [rsi]");
        assert!(!keeps(&[0x4c, 0x89, 0xc4]), "mov rsp, r8");
        assert!(!keeps(&[0x48, 0x89, 0x65, 0xf8, 0x48, 0x8b, 0x65, 0xf0]), "mov [rbp-8], rsp; mov rsp, [rbp-16]");
    }

    #[test]
    fn room_and_frames_are_on_the_same_stack() {
        assert!(!of(&[0x48, 0x29, 0xc4]), "sub rsp, rax");
        assert!(!of(&[0x48, 0x83, 0xe4, 0xf0]), "and rsp, -16");
        assert!(!of(&[0x48, 0x89, 0xec]), "mov rsp, rbp");
        assert!(!of(&[0xc9]), "leave");
        assert!(!of(&[0x48, 0x8d, 0x65, 0xd8]), "lea rsp, [rbp-0x28]");
        assert!(
            !of(&[0x48, 0x89, 0xe0, 0x48, 0x29, 0xc8, 0x48, 0x89, 0xc4]),
            "mov rax, rsp; sub rax, rcx; mov rsp, rax"
        );
    }
}
