//! Preparation of a function before its parts are put in a row: switches become branches, and all ends become one.

use std::cell::RefCell;
use std::rc::Rc;

use flowgraph::Loops;
use rustc_hash::FxHashMap;

use crate::alike;
use crate::flow::Flow;
use crate::llvm::{Binary, Block, Builder, Comparison, Function, Instruction, Opcode, Value};
use crate::remark::Reason;
use crate::waits::{InFunction, Waits};

/// Why a function is left whatever its control flow, with the instruction that is the reason.
pub(crate) fn obstacle<'m>(function: Function<'m>) -> Option<(Instruction<'m>, Reason)> {
    function.blocks().into_iter().find_map(|block| {
        let of_instruction = |i: Instruction<'m>| {
            let of_type = i.type_of();
            let reason = match i.opcode() {
                Opcode::LLVMIndirectBr => Reason::AddressTaken,
                Opcode::LLVMCallBr => Reason::EnteredByAssembly,
                Opcode::LLVMInvoke | Opcode::LLVMResume => Reason::MayUnwind,
                Opcode::LLVMBr | Opcode::LLVMRet | Opcode::LLVMUnreachable => return None,
                Opcode::LLVMSwitch if is_narrow(i) => return None,
                _ if i.is_terminator() || i.begins_handler() => Reason::MayUnwind,
                _ if i.must_be_tail() => Reason::MustBeTail,
                Opcode::LLVMCall if i.call_has("returns_twice") => Reason::ReturnsTwice,
                _ if !of_type.is_void() && !of_type.is_first_class() => Reason::UnstorableValue,
                _ => return None,
            };
            Some((i, reason))
        };
        let address = block.has_address().then(|| (block.terminator(), Reason::AddressTaken));
        address.or_else(|| block.instructions().into_iter().find_map(of_instruction))
    })
}

/// The first call of a function that must not depend on more branches than before.
pub(crate) fn convergent_in(function: Function<'_>) -> Option<(Instruction<'_>, Reason)> {
    function.blocks().into_iter().find_map(convergent).map(|call| (call, Reason::Convergent))
}

/// Whether lanes of the function could hold each other up by waiting, with the end of its first block: where lanes meet
/// in it becomes another.
pub(crate) fn held_up<'m>(function: Function<'m>, waits: &Rc<RefCell<Waits<'m>>>) -> Option<(Instruction<'m>, Reason)> {
    let flow = Flow::of(function);
    let waits = InFunction::of(waits, &flow, &Loops::of(flow.graph()));
    waits.hold_up_anywhere(function.blocks()).then(|| (function.entry().terminator(), Reason::HeldUp))
}

/// Takes the permission to be tail calls from calls that do not directly precede a return. Code generation gives their
/// block a return of its own, so that it can jump to the callee, and takes intrinsics for calls there: `if (a || b)
/// return x` has two ends then, and so has `if (a || b) return x; return f();`.
pub(super) fn keep_returns(function: Function<'_>) {
    let goes_on = |block: &Block<'_>| block.terminator().opcode() != Opcode::LLVMRet;
    let calls = function.blocks().into_iter().filter(goes_on).flat_map(Block::instructions);
    calls.filter(|call| call.may_be_tail()).for_each(Instruction::forbid_tail);
}

/// A call that must not depend on more branches than before, such as a GPU's barrier.
pub(crate) fn convergent(block: Block<'_>) -> Option<Instruction<'_>> {
    block.instructions().into_iter().find(|i| alike::is_convergent(*i))
}

/// Whether a switch decides by an integer of at most 64 bits.
fn is_narrow(switch: Instruction<'_>) -> bool {
    matches!(switch.operand(0).type_of().shape(), crate::llvm::Shape::Integer(1..=64))
}

/// The blocks that end with a switch.
pub(crate) fn switches(function: Function<'_>) -> Vec<Block<'_>> {
    let is_switch = |block: &Block<'_>| block.terminator().opcode() == Opcode::LLVMSwitch;
    function.blocks().into_iter().filter(is_switch).collect()
}

/// Makes branches of a switch: one for each target but the default, in the order of the cases. Cases in a row are one
/// look, and a default where control must not come gets none.
pub(crate) fn lower_switch<'m>(switch: Instruction<'m>) {
    let block = switch.block().expect("a switch that was not erased");
    let (value, default) = (switch.operand(0), switch.successors()[0]);
    let mut targets: Vec<(Block<'m>, Vec<i64>)> = Vec::new();
    let mut places: FxHashMap<Block<'m>, usize> = FxHashMap::default();
    for (i, target) in switch.successors().into_iter().enumerate().skip(1).filter(|(_, target)| *target != default) {
        let place = *places.entry(target).or_insert(targets.len());
        if place == targets.len() {
            targets.push((target, Vec::new()));
        }
        targets[place].1.push(switch.operand(2 * i as u32).as_number().expect("a case of at most 64 bits"));
    }
    let impossible = default.first().is_some_and(|i| i.opcode() == Opcode::LLVMUnreachable);
    switch.erase();
    let mut at = block;
    let mut from: Vec<(Block<'m>, Block<'m>)> = Vec::new();
    let last = targets.len().saturating_sub(1);
    for (number, (target, cases)) in targets.iter().enumerate() {
        from.push((*target, at));
        if number == last && impossible {
            at.branch_to(*target);
            break;
        }
        let is_case = one_of(at, value, cases.clone());
        let no = if number == last { default } else { next_block(at) };
        at.branch_on(is_case, *target, no);
        if number == last {
            from.push((default, at));
        }
        at = no;
    }
    if targets.is_empty() {
        block.branch_to(default);
        from.push((default, block));
    }
    if impossible && default.entering().is_empty() {
        default.erase();
    }
    for (target, new) in from {
        for phi in target.phis() {
            let taken = phi.incoming_from(block).expect("a phi names each predecessor");
            let mut incoming = phi.incoming();
            incoming.retain(|(_, from)| *from != block);
            incoming.push((taken, new));
            replace_phi(target, phi, &incoming);
        }
    }
}

/// An empty block just behind another.
fn next_block(block: Block<'_>) -> Block<'_> {
    let next = block.function().add_block("case");
    next.move_after(block);
    next
}

/// Puts another phi in the place of one.
pub(crate) fn replace_phi<'m>(block: Block<'m>, phi: Instruction<'m>, incoming: &[(Value<'m>, Block<'m>)]) {
    let new = block.add_phi_in_front(incoming, "");
    new.take_location(phi);
    phi.as_value().replace_all_uses_with(new.as_value());
    // One that joined itself does so no more.
    phi.erase();
}

/// At the end of a block: whether a value is one of these.
fn one_of<'m>(block: Block<'m>, value: Value<'m>, mut cases: Vec<i64>) -> Value<'m> {
    let (at, of_type) = (Builder::at_end_of(block), value.type_of());
    cases.sort_unstable();
    let mut found: Option<Value<'m>> = None;
    let mut rest = &cases[..];
    while let Some(&low) = rest.first() {
        let length = rest.iter().enumerate().take_while(|&(i, &case)| low.checked_add(i as i64) == Some(case)).count();
        rest = &rest[length..];
        let all = of_type.bits().is_some_and(|bits| bits < 64 && length as u64 >= 1 << bits);
        let is_one = if all {
            block.function().truth(true)
        } else if length == 1 {
            at.compare(Comparison::Equal, value, of_type.number(low as u64))
        } else {
            let above = at.binary(Binary::Sub, value, of_type.number(low as u64));
            at.compare(Comparison::ULess, above, of_type.number(length as u64))
        };
        found = Some(found.map_or(is_one, |found| at.or(found, is_one)));
    }
    found.expect("a target has a case")
}

/// Lets control leave at one place: where it must not come counts as a place where it leaves.
pub(crate) fn one_end(function: Function<'_>) {
    let ends: Vec<Instruction<'_>> =
        function.blocks().into_iter().map(Block::terminator).filter(|end| end.successors().is_empty()).collect();
    if ends.len() < 2 {
        return;
    }
    let end = function.add_block("end");
    let returns: Vec<_> = ends.iter().filter(|end| end.opcode() == Opcode::LLVMRet).collect();
    let value = returns.first().and_then(|first| first.operands().first().copied());
    let joined = value.map(|value| {
        let incoming: Vec<_> = ends
            .iter()
            .map(|end| (end.operands().first().copied().unwrap_or(value.type_of().undef()), block_of(*end)))
            .collect();
        end.add_phi(&incoming, "").as_value()
    });
    let kept = *returns.first().unwrap_or(&&ends[0]);
    for &other in &ends {
        let block = block_of(other);
        if other == *kept {
            other.move_to_end_of(end);
        } else {
            other.erase();
        }
        block.branch_to(end);
    }
    if let Some(joined) = joined {
        kept.set_operand(0, joined);
    }
}

/// A block to which control does not come.
pub(crate) fn nowhere(function: Function<'_>) -> Block<'_> {
    let nowhere = function.add_block("nowhere");
    nowhere.end_unreachable();
    nowhere
}

fn block_of(instruction: Instruction<'_>) -> Block<'_> {
    instruction.block().expect("an instruction that was not erased")
}
