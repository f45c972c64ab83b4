//! Changes of edges and blocks that keep the meaning.

use flowgraph::DepthFirst;
use rustc_hash::FxHashMap;

use crate::context::Context;
use crate::llvm::{Block, Instruction, Opcode, Value};

/// Leads edges to `target` through a new block: those from blocks that `which` holds of. Returns the new block; phis of
/// `target` that were replaced are noted in `replaced`.
pub(super) fn gather<'m>(
    target: Block<'m>,
    name: &str,
    which: impl Fn(Block<'m>) -> bool,
    replaced: &mut FxHashMap<Instruction<'m>, Instruction<'m>>,
) -> Block<'m> {
    let new = target.insert_before(name);
    for phi in target.phis() {
        let (through, rest): (Vec<_>, Vec<_>) = phi.incoming().into_iter().partition(|(_, from)| which(*from));
        let Some(&(first, _)) = through.first() else { continue };
        let alike = through.iter().all(|(value, _)| *value == first) && first != phi.as_value();
        let value = if alike { first } else { new.add_phi(&through, "").as_value() };
        let mut incoming = rest;
        incoming.push((value, new));
        let kept = target.add_phi_in_front(&incoming, "");
        kept.take_location(phi);
        phi.as_value().replace_all_uses_with(kept.as_value());
        phi.erase();
        replaced.insert(phi, kept);
    }
    for terminator in target.entering() {
        let from = terminator.block().filter(|&from| from != new && which(from));
        if from.is_some() {
            for (i, successor) in terminator.successors().into_iter().enumerate() {
                if successor == target {
                    terminator.set_successor(i, new);
                }
            }
        }
    }
    new.branch_to(target);
    new
}

/// Replaces the phis of a block with one predecessor by the values that they bring.
pub(super) fn drop_single_phis(block: Block<'_>) {
    for phi in block.phis() {
        if let [(value, _)] = phi.incoming()[..]
            && value != phi.as_value()
        {
            phi.as_value().replace_all_uses_with(value);
            phi.erase();
        }
    }
}

/// Where a branch's two sides are empty and lead to one block, with choices in the place of what the phis there chose.
pub(super) fn fold<'m>(head: Block<'m>) -> bool {
    let terminator = head.terminator();
    let Some(condition) = terminator.condition() else { return false };
    let sides = terminator.successors();
    let is_empty_way = |block: &Block<'m>| {
        let only = block.first().filter(|i| i.opcode() == Opcode::LLVMBr && i.successors().len() == 1);
        only.is_some() && block.entering() == [terminator] && !block.has_address()
    };
    if sides[0] == sides[1] || !sides.iter().all(is_empty_way) {
        return false;
    }
    let [yes, no] = [sides[0], sides[1]];
    let join = yes.terminator().successors()[0];
    if no.terminator().successors()[0] != join || [yes, no, head].contains(&join) {
        return false;
    }
    let mut chosen: FxHashMap<[Value<'m>; 2], Value<'m>> = FxHashMap::default();
    terminator.erase();
    crate::alike::join_phis(join, [yes, no], head, |values| {
        let [a, b] = values;
        if a == b { a } else { *chosen.entry(values).or_insert_with(|| head.select(condition, a, b)) }
    });
    head.branch_to(join);
    for side in [yes, no] {
        side.terminator().erase();
        side.erase();
    }
    true
}

/// Choices that were made before need not be made again: what was melded bit by bit chose the same addresses each time.
pub(super) fn choose_once<'m>(context: &mut Context<'m>) {
    let (flow, dominators) = (context.flow(), context.dominators());
    let mut made: FxHashMap<[Value<'m>; 3], Vec<Instruction<'m>>> = FxHashMap::default();
    // A dominator comes before what it dominates.
    for &node in DepthFirst::of(flow.graph()).preorder() {
        for select in flow.block(node).instructions() {
            if select.opcode() != Opcode::LLVMSelect {
                continue;
            }
            let [condition, yes, no] = [0, 1, 2].map(|i| select.operand(i));
            let same = made.entry([condition, yes, no]).or_default();
            let is_before = |of: &&Instruction<'m>| {
                let of = of.block().and_then(|block| flow.find(block));
                of.is_some_and(|of| dominators.dominates(of, node))
            };
            if let Some(&before) = same.iter().find(is_before) {
                before.intersect_flags(select);
                select.as_value().replace_all_uses_with(before.as_value());
                select.erase();
            } else {
                same.push(select);
            }
        }
    }
}

/// Moves the content of a block into the only block that it leads to, if nothing else leads there.
pub(super) fn straighten(block: Block<'_>) -> bool {
    let successors = block.terminator().successors();
    let [next] = successors[..] else { return false };
    let plain = block.terminator().opcode() == Opcode::LLVMBr && next.entering() == [block.terminator()];
    if !plain || next == block || next.has_address() || block.has_address() || next.is_handler() {
        return false;
    }
    drop_single_phis(next);
    if !next.phis().is_empty() || block.function().entry() == block {
        return false;
    }
    let first = next.first().expect("a finished block");
    block.terminator().erase();
    for instruction in block.instructions() {
        instruction.move_before(first);
    }
    block.move_entries_to(next);
    block.erase();
    true
}
