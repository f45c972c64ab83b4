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
//! - the routine is run by that call alone, and the store runs before it in each turn, at the same distance from what
//!   it passes;
//! - records do not overlap: each is new, or the address grows from turn to turn by more than all that is written in
//!   one ([`Record::extent`]);
//! - no other late write can reach the place: each is at another fixed distance from what is passed, in the same loop,
//!   or from the routine's parameter. What is written early is overwritten by the store.
//!
//! Where the loop was unrolled, each call has its own store, and what is stored must be a progression.
//!
//! *Limitation*: records that are filled in a loop of their own, or handed on to other functions, are not followed.

use flowgraph::{Dominators, LoopId, Loops};
use rustc_hash::FxHashMap;

use super::MemoryFacts;
use super::library::{Effect, effect};
use super::points::Write;
use crate::flow::Flow;
use crate::llvm::{Function, Instruction, Opcode, Value};
use crate::spmd::sources::{Sources, Start, all_callers_known};

/// A load of a start routine, and the stores that filled what it reads.
pub(crate) struct Record<'m> {
    /// The function that starts threads.
    pub(crate) within: Function<'m>,
    /// The calls that do: one in a loop, or one for each thread.
    pub(crate) calls: Vec<Instruction<'m>>,
    /// By call: the store.
    pub(crate) stores: Vec<Instruction<'m>>,
    /// What threads run.
    pub(crate) runs: Function<'m>,
    pub(crate) load: Instruction<'m>,
    /// How many bytes of a record are used: no less may lie between the addresses of two turns; none for records that
    /// are known to be apart.
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

/// All such loads.
pub(crate) fn records<'m>(memory: &MemoryFacts<'m>, whole: bool, sources: &Sources<'m>) -> Vec<Record<'m>> {
    let mut found = Vec::new();
    let mut seen: Vec<Function<'m>> = Vec::new();
    for start in &sources.starts {
        if !seen.contains(&start.runs) {
            seen.push(start.runs);
            found.extend(of_routine(memory, whole, sources, start.runs).unwrap_or_default());
        }
    }
    found
}

fn of_routine<'m>(
    memory: &MemoryFacts<'m>,
    whole: bool,
    sources: &Sources<'m>,
    runs: Function<'m>,
) -> Option<Vec<Record<'m>>> {
    let starts: Vec<&Start<'m>> = sources.starts.iter().filter(|start| start.runs == runs).collect();
    let within = starts.first()?.within;
    let (users, _) = runs.as_value().users_in_code();
    let by_these = |user: &Instruction<'m>| starts.iter().any(|start| start.call == *user);
    let plain = |start: &&&Start<'m>| !start.shared && start.within == within && start.passes.len() == 1;
    if !all_callers_known(runs, whole, sources)
        || !users.iter().all(by_these)
        || starts.iter().filter(plain).count() < starts.len()
    {
        return None;
    }
    let parameter = *runs.parameters().first()?;
    let reader = Reader { runs, parameter, loads: loads(runs, parameter)? };
    let starter = Starter::of(within);
    let writes = memory.points.writes(parameter)?;
    match starts.as_slice() {
        [start] if starter.turn(start.call).is_some() => in_a_loop(&reader, &starter, start, &writes),
        _ => one_by_one(&reader, &starter, &starts, &writes),
    }
}

/// A start routine's loads from its record.
struct Reader<'m> {
    runs: Function<'m>,
    parameter: Value<'m>,
    loads: Vec<(Span, Instruction<'m>)>,
}

fn loads<'m>(runs: Function<'m>, parameter: Value<'m>) -> Option<Vec<(Span, Instruction<'m>)>> {
    let mut loads = Vec::new();
    for load in runs.blocks().into_iter().flat_map(crate::llvm::Block::instructions) {
        if load.opcode() != Opcode::LLVMLoad || load.is_volatile() || load.is_atomic_access() {
            continue;
        }
        let place = Place::of(load.operand(0)).filter(|p| p.base == parameter && p.terms.is_empty());
        if let Some(place) = place {
            loads.push((Span::of(place.offset, load.access_size())?, load));
        }
    }
    Some(loads)
}

impl<'m> Reader<'m> {
    /// How far from its record the routine itself writes: none where that is not known.
    fn own(&self, write: &Write<'m>) -> Option<i64> {
        let inside = write.by.block().is_some_and(|block| block.function() == self.runs);
        let to = Place::of(write.to)?;
        (inside && to.base == self.parameter && to.terms.is_empty()).then_some(to.offset)
    }

    /// The one that writes what a load reads, where it is a plain store of such a value.
    fn store(&self, of: (Span, Instruction<'m>), writes: &[(Span, Instruction<'m>)]) -> Option<Instruction<'m>> {
        let (span, load) = of;
        let mut over = writes.iter().filter(|(other, _)| other.overlaps(span));
        let (Some((same, store)), None) = (over.next(), over.next()) else { return None };
        let is_value = store.opcode() == Opcode::LLVMStore
            && !store.is_volatile()
            && !store.is_atomic_access()
            && store.operand(0).type_of() == load.type_of();
        (*same == span && is_value).then_some(*store)
    }
}

/// Threads that a loop starts: what is written early lies below what is stored in each turn.
fn in_a_loop<'m>(
    reader: &Reader<'m>,
    starter: &Starter<'m>,
    start: &Start<'m>,
    all: &[Write<'m>],
) -> Option<Vec<Record<'m>>> {
    let passed = Place::of(start.passed()?)?;
    let turn = starter.turn(start.call)?;
    let is_new = passed.terms.is_empty()
        && starter.makes_anew(passed.base).is_some_and(|made| starter.comes_before(made, start.call));
    let mut writes: Vec<(Span, Instruction<'m>)> = Vec::new();
    for write in all.iter().filter(|write| !write.early) {
        if is_new && write.by.as_value() == passed.base {
            continue;
        }
        let distance = match reader.own(write) {
            Some(distance) => distance,
            None if write.by.block().is_some_and(|block| starter.innermost(block) == Some(turn)) => {
                Place::of(write.to)?.distance(&passed)?
            }
            None => return None,
        };
        writes.push((Span::of(distance, write.bytes)?, write.by));
    }
    let used: Vec<Span> = writes.iter().map(|w| w.0).chain(reader.loads.iter().map(|l| l.0)).collect();
    let (first, last) = (used.iter().map(|s| s.from).min()?, used.iter().map(|s| s.to).max()?);
    let extent = (!is_new).then(|| last.abs_diff(first));
    let stored = |&(span, load): &(Span, Instruction<'m>)| {
        let store = reader.store((span, load), &writes).filter(|store| starter.comes_before(*store, start.call))?;
        let (calls, stores) = (vec![start.call], vec![store]);
        Some(Record { within: start.within, calls, stores, runs: reader.runs, load, extent })
    };
    Some(reader.loads.iter().filter_map(stored).collect())
}

/// Threads that are started one by one, as where such a loop was unrolled: each record has a store of its own, and is
/// written nowhere else, early or late.
fn one_by_one<'m>(
    reader: &Reader<'m>,
    starter: &Starter<'m>,
    starts: &[&Start<'m>],
    all: &[Write<'m>],
) -> Option<Vec<Record<'m>>> {
    let passed: Vec<Place<'m>> =
        starts.iter().map(|start| start.passed().and_then(Place::of)).collect::<Option<Vec<_>>>()?;
    if starts.iter().any(|start| starter.turn(start.call).is_some()) {
        return None;
    }
    let own: Vec<(Span, Instruction<'m>)> = all
        .iter()
        .filter_map(|write| reader.own(write).map(|distance| Some((Span::of(distance, write.bytes)?, write.by))))
        .collect::<Option<Vec<_>>>()?;
    let used: Vec<Span> = own.iter().map(|w| w.0).chain(reader.loads.iter().map(|l| l.0)).collect();
    let mut by_start: Vec<Vec<(Span, Instruction<'m>)>> = vec![own; starts.len()];
    for write in all.iter().filter(|write| reader.own(write).is_none()) {
        let makes = starter.makes_anew(write.by.as_value()).is_some() || write.by.opcode() == Opcode::LLVMAlloca;
        if makes && write.by.as_value() == write.to {
            continue;
        }
        let to = Place::of(write.to)?;
        for (of, writes) in passed.iter().zip(&mut by_start) {
            match to.distance(of) {
                Some(distance) => writes.push((Span::of(distance, write.bytes)?, write.by)),
                None if starter.are_apart(to.base, of.base) => {}
                None => return None,
            }
        }
    }
    let (first, last) = (used.iter().map(|s| s.from).min()?, used.iter().map(|s| s.to).max()?);
    for (i, a) in passed.iter().enumerate() {
        for b in &passed[..i] {
            let apart = match a.distance(b) {
                Some(distance) => distance.unsigned_abs() >= last.abs_diff(first),
                None => starter.are_apart(a.base, b.base),
            };
            if !apart {
                return None;
            }
        }
    }
    let stored = |&(span, load): &(Span, Instruction<'m>)| {
        let store = |(start, writes): (&&Start<'m>, &Vec<_>)| {
            reader.store((span, load), writes).filter(|store| starter.comes_before(*store, start.call))
        };
        let stores = starts.iter().zip(&by_start).map(store).collect::<Option<Vec<_>>>()?;
        let calls = starts.iter().map(|start| start.call).collect();
        Some(Record { within: starter.function, calls, stores, runs: reader.runs, load, extent: None })
    };
    Some(reader.loads.iter().filter_map(stored).collect())
}

/// The function in which threads are started.
struct Starter<'m> {
    function: Function<'m>,
    flow: Flow<'m>,
    loops: Loops,
    dominators: Dominators,
    /// Places of instructions in their blocks.
    order: FxHashMap<Instruction<'m>, usize>,
}

impl<'m> Starter<'m> {
    fn of(function: Function<'m>) -> Starter<'m> {
        let flow = Flow::of(function);
        let (loops, dominators) = (Loops::of(flow.graph()), Dominators::of(flow.graph()));
        let blocks = function.blocks().into_iter();
        let order = blocks.flat_map(|block| block.instructions().into_iter().enumerate().map(|(i, own)| (own, i)));
        Starter { function, loops, dominators, order: order.collect(), flow }
    }

    /// The innermost loop around a block of this function.
    fn innermost(&self, block: crate::llvm::Block<'m>) -> Option<LoopId> {
        self.flow.find(block).and_then(|node| self.loops.innermost(node))
    }

    fn turn(&self, call: Instruction<'m>) -> Option<LoopId> {
        self.innermost(call.block()?)
    }

    /// Whether an instruction runs before another each time that one runs: once in the same turn of the same loop.
    fn comes_before(&self, instruction: Instruction<'m>, call: Instruction<'m>) -> bool {
        let (Some(block), Some(end)) = (instruction.block(), call.block()) else { return false };
        let (Some(node), Some(last)) = (self.flow.find(block), self.flow.find(end)) else { return false };
        let earlier = if block == end {
            self.order.get(&instruction) < self.order.get(&call)
        } else {
            self.dominators.dominates(node, last)
        };
        earlier && self.loops.innermost(node) == self.loops.innermost(last)
    }

    /// The call of a library function whose result, new memory, a value is.
    fn makes_anew(&self, value: Value<'m>) -> Option<Instruction<'m>> {
        let call = value.as_instruction().filter(|call| call.opcode() == Opcode::LLVMCall)?;
        let callee = call.callee().filter(|callee| callee.is_function() && callee.as_defined_function().is_none())?;
        (effect(&callee.name()) == Effect::Allocates).then_some(call)
    }

    /// Whether two are the beginnings of different memory: variables, and what library functions made in no loop.
    fn are_apart(&self, a: Value<'m>, b: Value<'m>) -> bool {
        let is_one = |value: Value<'m>| {
            let made = self
                .makes_anew(value)
                .or_else(|| value.as_instruction().filter(|instruction| instruction.opcode() == Opcode::LLVMAlloca));
            let once = made.is_some_and(|made| made.block().is_some_and(|block| self.innermost(block).is_none()));
            value.is_global_variable() || once
        };
        a != b && is_one(a) && is_one(b)
    }
}
