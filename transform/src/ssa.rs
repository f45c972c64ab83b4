//! Making SSA form again after the control flow was changed.
//!
//! A pass that joins paths leaves values that no longer dominate their uses, although on each path that the program really takes the
//! definition still comes first. Each such value gets a variable in the stack frame: stored after the definition, loaded at the uses
//! that are no longer dominated. LLVM's `mem2reg` then turns the variables into phis, with undefined values on the paths on which nothing was
//! stored, which are the paths that the program cannot take.
//!
//! In a loop, such a path would lead through the definition of the turn before, and the phi would carry that value around the loop for
//! nothing. So the value is *forgotten* (an undefined one is stored) at each branch whose paths were joined and that strictly dominates
//! the definition. That is sound: from such a branch no path leads to a use without the definition, or a path from the entry to the
//! branch and on to the use would avoid the definition, which dominated the use before the change.

use flowgraph::Dominators;
use rustc_hash::FxHashMap;

use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Opcode, Slot, Use, Value};

/// What has to follow when a function was repaired: the passes that turn variables into phis.
pub(crate) const MEMORY_TO_REGISTERS: &str = "function(mem2reg)";

/// Gives every use a definition that dominates it. `branches` are the blocks whose paths were joined. Returns how many values had to
/// go through a variable.
pub(crate) fn repair(function: Function<'_>, branches: &[Block<'_>]) -> usize {
    let flow = Flow::of(function);
    let dominators = flow.dominators();
    let mut repaired = 0;
    for &block in flow.blocks() {
        if dominators.depth(flow.node(block)).is_none() {
            continue;
        }
        for instruction in block.instructions() {
            let broken = broken_uses(instruction, block, &flow, &dominators);
            if !broken.is_empty() {
                through_variable(instruction, block, &broken, branches, &flow, &dominators);
                repaired += 1;
            }
        }
    }
    repaired
}

/// The uses that the definition does not dominate.
fn broken_uses<'m>(
    instruction: Instruction<'m>,
    block: Block<'m>,
    flow: &Flow<'m>,
    dominators: &Dominators,
) -> Vec<Use<'m>> {
    if instruction.type_of().is_void() {
        return Vec::new();
    }
    let node = flow.node(block);
    let is_broken = |u: &Use<'m>| {
        u.needed_in().is_some_and(|b| {
            let needed = flow.node(b);
            dominators.depth(needed).is_some() && !dominators.dominates(node, needed)
        })
    };
    instruction.as_value().uses().into_iter().filter(is_broken).collect()
}

fn through_variable<'m>(
    instruction: Instruction<'m>,
    block: Block<'m>,
    broken: &[Use<'m>],
    branches: &[Block<'m>],
    flow: &Flow<'m>,
    dominators: &Dominators,
) {
    let slot = block.function().add_slot(instruction.type_of());
    slot.store_before(instruction.as_value(), after(instruction, block));
    for &branch in branches {
        if branch != block && dominators.dominates(flow.node(branch), flow.node(block)) {
            slot.store_before(slot.holds().undef(), branch.terminator());
        }
    }
    // A phi may name a block twice, and then wants the same value for both.
    let mut at_end: FxHashMap<Block<'m>, Value<'m>> = FxHashMap::default();
    for u in broken {
        let value = load_for(*u, slot, &mut at_end);
        u.user.set_operand(u.operand, value);
    }
}

fn load_for<'m>(u: Use<'m>, slot: Slot<'m>, at_end: &mut FxHashMap<Block<'m>, Value<'m>>) -> Value<'m> {
    match u.needed_in() {
        Some(block) if u.user.is_phi() => *at_end.entry(block).or_insert_with(|| slot.load_before(block.terminator())),
        _ => slot.load_before(u.user),
    }
}

/// The first instruction at which the value is there: for the result of an invoke, in the block where it goes on.
fn after<'m>(instruction: Instruction<'m>, block: Block<'m>) -> Instruction<'m> {
    if instruction.opcode() == Opcode::LLVMInvoke {
        return instruction.successors()[0].first_insertion_point();
    }
    if instruction.is_phi() || instruction.begins_handler() {
        return block.first_insertion_point();
    }
    let mut rest = block.instructions().into_iter().skip_while(|&i| i != instruction);
    rest.nth(1).expect("what makes a value does not end a block")
}
