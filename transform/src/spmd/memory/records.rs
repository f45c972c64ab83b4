//! What threads find in the records that they get when they are started.
//!
//! ```c
//! for (long i = 0; i < n; i++) {
//!     data[i].id = i;                                       // or a record that malloc gives in each turn
//!     data[i].table = table;
//!     pthread_create(&data[i].thread, NULL, work, &data[i]);
//! }
//! void *work(void *p) { … ((struct data *)p)->id … }       // the thread's number; ->table is the same for all
//! ```
//!
//! A load in the start routine, at a fixed distance from its parameter, gives what a store in the loop put there, if
//!
//! - the routine is run by that call alone, and the store runs before it in each turn, at the same distance from what it
//!   passes;
//! - records do not overlap: each is new, or the address grows from turn to turn by more than all that is written in
//!   one ([`Record::extent`]);
//! - no other late write can reach the place: each is at another fixed distance from what is passed, in the same loop,
//!   or from the routine's parameter. What is written early is overwritten by the store.
//!
//! *Limitation*: records that are filled in a loop of their own, or handed on to other functions, are not followed.

use flowgraph::{Dominators, LoopId, Loops};
use rustc_hash::FxHashMap;

use super::MemoryFacts;
use super::library::{Effect, effect};
use crate::flow::Flow;
use crate::llvm::{Function, Instruction, Opcode, Value};
use crate::spmd::calls::all_callers_known;
use crate::spmd::sources::{Sources, Start};

/// A load of a start routine, and the store that filled what it reads.
pub(crate) struct Record<'m> {
    /// The function that starts threads.
    pub(crate) within: Function<'m>,
    /// The call that does.
    pub(crate) call: Instruction<'m>,
    pub(crate) store: Instruction<'m>,
    /// What threads run.
    pub(crate) runs: Function<'m>,
    pub(crate) load: Instruction<'m>,
    /// How many bytes of a record are used: no less may lie between the addresses of two turns; none for records that
    /// are new in each turn.
    pub(crate) extent: Option<u64>,
}

/// An address in parts: from where, plus indices times strides, plus a distance.
struct Place<'m> {
    base: Value<'m>,
    terms: Vec<(Value<'m>, i64)>,
    offset: i64,
}

impl<'m> Place<'m> {
    fn of(address: Value<'m>) -> Option<Place<'m>> {
        let mut place = Place { base: address, terms: Vec::new(), offset: 0 };
        while let Some(parts) = place.base.address_parts() {
            place.base = parts.base;
            place.terms.extend(parts.terms);
            place.offset = place.offset.checked_add(parts.offset)?;
        }
        Some(place)
    }

    /// How far it is from another that is counted in the same way.
    fn distance(&self, from: &Place<'m>) -> Option<i64> {
        let mut left = from.terms.clone();
        for term in &self.terms {
            left.remove(left.iter().position(|other| other == term)?);
        }
        (self.base == from.base && left.is_empty()).then(|| self.offset.checked_sub(from.offset))?
    }
}

/// Bytes of a record: from its address on.
#[derive(Clone, Copy, PartialEq)]
struct Span {
    from: i64,
    to: i64,
}

impl Span {
    fn of(from: i64, bytes: Option<u64>) -> Option<Span> {
        Some(Span { from, to: from.checked_add(i64::try_from(bytes?).ok()?)? })
    }

    fn overlaps(self, other: Span) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// All loads of which that is known.
pub(crate) fn records<'m>(memory: &MemoryFacts<'m>, whole: bool, sources: &Sources<'m>) -> Vec<Record<'m>> {
    let mut found = Vec::new();
    for start in sources.starts.iter().filter(|start| !start.shared) {
        found.extend(of_start(memory, whole, sources, start).unwrap_or_default());
    }
    found
}

fn of_start<'m>(
    memory: &MemoryFacts<'m>,
    whole: bool,
    sources: &Sources<'m>,
    start: &Start<'m>,
) -> Option<Vec<Record<'m>>> {
    let (users, _) = start.runs.as_value().users_in_code();
    if !all_callers_known(start.runs, whole, sources) || users.iter().any(|user| *user != start.call) {
        return None;
    }
    let [Some(argument)] = start.passes[..] else { return None };
    let parameter = *start.runs.parameters().first()?;
    let passed = Place::of(*start.call.arguments().get(argument as usize)?)?;
    let around = Around::of(start)?;
    let is_new = passed.terms.is_empty() && around.makes_anew(passed.base);
    let mut writes: Vec<(Span, Instruction<'m>)> = Vec::new();
    for write in memory.points.late_writes(parameter)? {
        if is_new && write.by.as_value() == passed.base {
            continue;
        }
        let to = Place::of(write.to)?;
        let block = write.by.block()?;
        let distance = match around.has(block) {
            true => to.distance(&passed)?,
            false if to.base == parameter && to.terms.is_empty() => to.offset,
            false => return None,
        };
        writes.push((Span::of(distance, write.bytes)?, write.by));
    }
    let mut loads = Vec::new();
    for load in start.runs.blocks().into_iter().flat_map(crate::llvm::Block::instructions) {
        if load.opcode() != Opcode::LLVMLoad || load.is_volatile() || load.is_atomic_access() {
            continue;
        }
        let Some(place) = Place::of(load.operand(0)).filter(|p| p.base == parameter && p.terms.is_empty()) else {
            continue;
        };
        loads.push((Span::of(place.offset, load.access_size())?, load));
    }
    let used: Vec<Span> = writes.iter().map(|w| w.0).chain(loads.iter().map(|l| l.0)).collect();
    let (first, last) = (used.iter().map(|s| s.from).min()?, used.iter().map(|s| s.to).max()?);
    let extent = (!is_new).then(|| last.abs_diff(first));
    let mut found = Vec::new();
    for (span, load) in loads {
        let mut over = writes.iter().filter(|(other, _)| other.overlaps(span));
        let (Some((same, store)), None) = (over.next(), over.next()) else { continue };
        let is_value = store.opcode() == Opcode::LLVMStore
            && !store.is_volatile()
            && !store.is_atomic_access()
            && store.operand(0).type_of() == load.type_of();
        if *same == span && is_value && around.comes_before_start(*store) {
            let (store, extent) = (*store, extent);
            found.push(Record { within: start.within, call: start.call, store, runs: start.runs, load, extent });
        }
    }
    Some(found)
}

/// The loop in which threads are started.
struct Around<'m> {
    flow: Flow<'m>,
    loops: Loops,
    dominators: Dominators,
    id: LoopId,
    call: Instruction<'m>,
    /// Places of the call's block.
    order: FxHashMap<Instruction<'m>, usize>,
}

impl<'m> Around<'m> {
    fn of(start: &Start<'m>) -> Option<Around<'m>> {
        let flow = Flow::of(start.within);
        let (loops, dominators) = (Loops::of(flow.graph()), Dominators::of(flow.graph()));
        let block = start.call.block()?;
        let id = loops.innermost(flow.node(block))?;
        let order = block.instructions().into_iter().enumerate().map(|(i, instruction)| (instruction, i)).collect();
        Some(Around { flow, loops, dominators, id, call: start.call, order })
    }

    /// Whether a block is run once a turn at most: it is in the loop, and in no other within.
    fn has(&self, block: crate::llvm::Block<'m>) -> bool {
        self.flow.find(block).is_some_and(|node| self.loops.innermost(node) == Some(self.id))
    }

    /// Whether an instruction runs in each turn that starts a thread, before it does.
    fn comes_before_start(&self, instruction: Instruction<'m>) -> bool {
        let (Some(block), Some(end)) = (instruction.block(), self.call.block()) else { return false };
        if !self.has(block) {
            return false;
        }
        match (self.order.get(&instruction), self.order.get(&self.call)) {
            (Some(own), Some(call)) => own < call,
            _ => self.dominators.dominates(self.flow.node(block), self.flow.node(end)),
        }
    }

    /// Whether a value is memory that a library function gives anew in each turn.
    fn makes_anew(&self, value: Value<'m>) -> bool {
        let Some(call) = value.as_instruction().filter(|call| self.comes_before_start(*call)) else { return false };
        let callee = call.callee().filter(|callee| callee.is_function() && callee.as_defined_function().is_none());
        callee.is_some_and(|callee| effect(&callee.name()) == Effect::Allocates)
    }
}
