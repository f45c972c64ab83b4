//! From where to where each value is needed, in the order of the code.

use flowgraph::NodeId;
use rustc_hash::FxHashMap;

use crate::flow::Flow;
use crate::llvm::{Instruction, Opcode, Shape, Type, Value};

/// A value that needs a register from its definition to its last use, places between included: uses are at even
/// places, definitions at odd ones.
#[derive(Clone, Copy)]
pub(super) struct Interval<'m> {
    pub(super) value: Value<'m>,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Whether there is a place for a store of it.
    pub(super) can_spill: bool,
}

/// The order of the code as places.
struct Places<'m> {
    of: FxHashMap<Instruction<'m>, u32>,
    /// By block: first and last.
    blocks: Vec<(u32, u32)>,
}

impl<'m> Places<'m> {
    fn of(flow: &Flow<'m>) -> Places<'m> {
        let (mut places, mut next) = (Places { of: FxHashMap::default(), blocks: Vec::new() }, 2);
        for block in flow.blocks() {
            let first = next;
            for instruction in block.instructions() {
                // Phis are all made where their block begins.
                if !instruction.is_phi() {
                    next += 2;
                }
                places.of.insert(instruction, next);
            }
            places.blocks.push((first, next));
            next += 2;
        }
        places
    }
}

/// Whether a value of this type takes one of the registers that are counted: a number, an address, or a vector of them.
/// Truth values are in predicate registers, as a GPU's are; structures are in none.
pub(super) fn takes_register(of_type: Type<'_>) -> bool {
    !matches!(of_type.shape(), Shape::Integer(1) | Shape::Vector { bits: 1, .. } | Shape::Other)
        && of_type.layout().is_some()
}

/// The values of a function that need registers, with their intervals, in the order of their definitions; frame
/// addresses need none, and unused values neither.
pub(super) fn of<'m>(flow: &Flow<'m>, free: Option<Value<'m>>) -> Vec<Interval<'m>> {
    let places = Places::of(flow);
    let mut intervals = Vec::new();
    let mut seen = Seen { stamp: 0, stamps: vec![0; flow.blocks().len()] };
    let entry = flow.blocks()[0];
    for parameter in entry.function().parameters() {
        if takes_register(parameter.type_of()) && free != Some(parameter) {
            // There is no place for what must stay in its register.
            let can_spill = !parameter.is_swift_error();
            intervals.extend(interval(parameter, NodeId(0), 1, can_spill, flow, &places, &mut seen));
        }
    }
    for (i, block) in flow.blocks().iter().enumerate() {
        for instruction in block.instructions() {
            let value = instruction.as_value();
            let is_frame = instruction.opcode() == Opcode::LLVMAlloca;
            if is_frame || !takes_register(instruction.type_of()) || free == Some(value) {
                continue;
            }
            let can_spill = !instruction.is_terminator() || stored_behind(instruction, flow).is_some();
            let from = places.of[&instruction] + 1;
            intervals.extend(interval(value, NodeId(i as u32), from, can_spill, flow, &places, &mut seen));
        }
    }
    intervals.sort_by_key(|interval| interval.from);
    intervals
}

/// Before which instruction the result of a call that may throw can be stored: in the block where it goes on, if
/// nothing else leads there.
pub(super) fn stored_behind<'m>(end: Instruction<'m>, flow: &Flow<'m>) -> Option<Instruction<'m>> {
    let next = *end.successors().first().filter(|_| end.opcode() == Opcode::LLVMInvoke)?;
    (flow.graph().predecessors(flow.node(next)).len() == 1).then(|| next.first_insertion_point())
}

/// Blocks that were seen for the value that is looked at.
struct Seen {
    stamp: u32,
    stamps: Vec<u32>,
}

fn interval<'m>(
    value: Value<'m>,
    home: NodeId,
    from: u32,
    can_spill: bool,
    flow: &Flow<'m>,
    places: &Places<'m>,
    seen: &mut Seen,
) -> Option<Interval<'m>> {
    let mut interval = Interval { value, from, to: from, can_spill };
    let mut todo: Vec<NodeId> = Vec::new();
    let uses = value.uses();
    if uses.is_empty() {
        return None;
    }
    seen.stamp += 1;
    for used in uses {
        let Some(block) = used.needed_in().and_then(|block| flow.find(block)) else { continue };
        let place = if used.user.is_phi() { places.blocks[block.index()].1 } else { places.of[&used.user] };
        // A phi may use itself, or what is made behind it, one turn later: the value is then alive at the end of the
        // turn, and where it is made again not any more.
        interval.to = interval.to.max(place);
        if block != home {
            todo.push(block);
        }
    }
    while let Some(block) = todo.pop() {
        if std::mem::replace(&mut seen.stamps[block.index()], seen.stamp) == seen.stamp {
            continue;
        }
        interval.from = interval.from.min(places.blocks[block.index()].0);
        for &before in flow.graph().predecessors(block) {
            interval.to = interval.to.max(places.blocks[before.index()].1);
            if before != home {
                todo.push(before);
            }
        }
    }
    Some(interval)
}
