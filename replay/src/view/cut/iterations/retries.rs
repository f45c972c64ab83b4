//! Turns that only wait: a thread that did not get what it needs goes back to the loop's head, to try again.
//!
//! ```text
//! head: xor eax, eax; lock cmpxchg [rbx], ecx; jne wait
//!       …                                                  what a turn of the source's loop does
//!       jmp head
//! wait: pause; jmp head
//! ```
//!
//! The loop that waits and the one around it have one head. To the graph both ways back are turns of one loop, or,
//! where a compiler copied the head, of two nested ones.

use flowgraph::{Graph, LoopId, Loops, NodeId, reached};
use heuristics::{SegmentId, SegmentTable};
use machine::{Condition, Instruction, Operation, Register};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc, Trace, names};

use crate::view::first_look::code::called;
use crate::waiting::{is_preserved, may_wait};

/// What a segment does, as far as loops that wait are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// It only looks, or tries to take something.
    Looks,
    /// It lets others run.
    Rests,
    /// Anything else.
    Works,
}

/// Functions that wait for a while, and that try to take a lock: the last part of their names.
const RESTS: [&str; 11] = [
    "sched_yield",
    "pthread_yield",
    "thrd_yield",
    "yield_now",
    "yield",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "thrd_sleep",
    "sleep_for",
    "sleep",
];
const TRIES: [&str; 6] = [
    "pthread_mutex_trylock",
    "pthread_spin_trylock",
    "pthread_rwlock_trywrlock",
    "pthread_rwlock_tryrdlock",
    "mtx_trylock",
    "sem_trywait",
];

impl Does {
    /// What this segment does.
    fn of(trace: &Trace, segments: &SegmentTable, segment: SegmentId) -> Does {
        let Some(code) = segments.listing(segment).iter().collect::<Option<Vec<Instruction>>>() else {
            return Does::Works;
        };
        if !may_wait(&code) || code.iter().any(|one| one.kind() == Kind::Syscall) {
            return Does::Works;
        }
        if code.iter().any(|one| one.kind() == Kind::Pause) {
            return Does::Rests;
        }
        match segments[segment].last().kind {
            Kind::Call | Kind::IndirectCall => {
                let name = called(trace, segments, segment).map(names::demangled);
                let name =
                    name.as_deref().map(|name| names::without_result(name).split(['@', '(']).next().unwrap_or(""));
                match name.and_then(|name| name.rsplit("::").next()) {
                    Some(name) if RESTS.contains(&name) => Does::Rests,
                    Some(name) if TRIES.contains(&name) => Does::Looks,
                    _ => Does::Works,
                }
            }
            Kind::Return | Kind::IndirectJump => Does::Works,
            _ => Does::Looks,
        }
    }
}

/// What the nodes of a graph of what ran do.
pub(in crate::view::cut) struct Nodes<'a> {
    trace: &'a Trace,
    pub(super) segments: &'a SegmentTable,
    /// By node a segment that begins there.
    pub(super) of_place: Vec<SegmentId>,
}

impl<'a> Nodes<'a> {
    /// Those of a trace; with a segment that begins at each place.
    pub fn new(trace: &'a Trace, segments: &'a SegmentTable, of_place: Vec<SegmentId>) -> Nodes<'a> {
        Nodes { trace, segments, of_place }
    }

    /// The instructions of one; none for each that is not known. A node that is no place has none.
    pub(super) fn code(&self, node: NodeId) -> impl DoubleEndedIterator<Item = Option<Instruction<'a>>> {
        let segment = self.of_place.get(node.index());
        segment.into_iter().flat_map(|segment| self.segments.listing(*segment).iter())
    }

    fn begin(&self, node: NodeId) -> Pc {
        self.segments[self.of_place[node.index()]].start()
    }

    fn does(&self, node: NodeId) -> Does {
        self.of_place.get(node.index()).map_or(Does::Works, |segment| Does::of(self.trace, self.segments, *segment))
    }
}

/// The graph of what ran, its loops, and what its nodes do.
pub(super) struct Ran<'a> {
    pub graph: &'a Graph,
    pub loops: &'a Loops,
    pub nodes: &'a Nodes<'a>,
}

impl Ran<'_> {
    /// Where the turns of a loop begin that has one head with a loop that waits: the one place to which the wait leads;
    /// and the nodes in which threads wait.
    pub fn behind_wait(&self, of: LoopId) -> Option<(NodeId, Vec<NodeId>)> {
        let (graph, head) = (self.graph, self.loops.header(of));
        let is_idle = |node: &NodeId| self.loops.contains(of, *node) && self.does(*node) != Does::Works;
        if self.loops.is_irreducible(of) || !is_idle(&head) {
            return None;
        }
        let looked = reached(graph, [head], |node| graph.successors(node).iter().copied().filter(is_idle));
        let again = self.loops.latches(of).iter().copied().filter(|latch| looked[latch.index()]);
        let is_looked = |node: &NodeId| looked[node.index()];
        let tries = reached(graph, again, |node| graph.predecessors(node).iter().copied().filter(is_looked));
        if !tries[head.index()] {
            return None;
        }
        let trying: Vec<NodeId> = graph.nodes().filter(|node| tries.get(node.index()) == Some(&true)).collect();
        let ways = trying.iter().flat_map(|node| graph.successors(*node)).copied();
        let mut behind: Vec<NodeId> = ways.filter(|to| !tries[to.index()] && self.loops.contains(of, *to)).collect();
        behind.sort_unstable();
        behind.dedup();
        let [behind] = behind[..] else { return None };
        let rest = self.loops.members(of).iter().copied().filter(|node| !tries[node.index()]).collect();
        self.waits((head, behind), &tries, (&trying, rest)).then_some((behind, trying))
    }

    fn does(&self, node: NodeId) -> Does {
        self.nodes.does(node)
    }

    fn code(&self, node: NodeId) -> impl DoubleEndedIterator<Item = Instruction<'_>> {
        self.nodes.code(node).flatten()
    }

    /// Whether who goes round through these nodes waits: it lets others run each time, and at most counts what the rest
    /// of the loop does not read, or leaves everything as it was.
    fn waits(&self, (head, behind): (NodeId, NodeId), tries: &[bool], (all, rest): (&[NodeId], Vec<NodeId>)) -> bool {
        if !all.iter().all(|node| self.has_failed(*node, tries)) {
            return false;
        }
        let written = all.iter().flat_map(|node| self.code(*node)).fold(0, |all, one| all | written(one));
        let carried = self.read_from(head, all) & written & !Register::SP.bit();
        let goes_on = |node: NodeId| {
            let behind = self.graph.successors(node).iter().copied();
            behind.filter(|to| tries[to.index()] && self.does(*to) != Does::Rests)
        };
        if self.does(head) == Does::Rests || !reached(self.graph, goes_on(head), goes_on)[head.index()] {
            return carried & self.read_from(behind, &rest) == 0;
        }
        let stores = |one: Instruction| !one.is_atomic() && one.memory().iter().any(|memory| memory.access.writes);
        carried == 0 && !all.iter().any(|node| self.code(*node).any(|one| !one.kind().is_call() && stores(one)))
    }

    /// Whether what the node may have changed in memory shows that it did not, where the thread goes on trying.
    fn has_failed(&self, node: NodeId, tries: &[bool]) -> bool {
        let Some(tried) = self.code(node).find(|one| one.is_atomic()) else { return true };
        let Some(branch) = self.code(node).last().filter(|last| last.kind() == Kind::Branch) else { return false };
        let ways = self.graph.successors(node).iter();
        let mut again = ways.clone().filter(|to| tries[to.index()]).map(|to| self.nodes.begin(*to));
        match (tried.operation(), branch.condition()) {
            (Operation::CompareExchange, Condition::NotEqual) => again.all(|to| Some(to) == branch.target()),
            (Operation::CompareExchange, Condition::Equal) => again.all(|to| to == branch.next_pc()),
            (Operation::CompareExchange, _) => false,
            _ => ways.len() > again.count(),
        }
    }

    /// The registers that these nodes read, from this one on, before they write them.
    fn read_from(&self, begin: NodeId, all: &[NodeId]) -> u128 {
        let mut read: FxHashMap<NodeId, u128> = FxHashMap::default();
        loop {
            let mut is_settled = true;
            for node in all {
                let behind = self.graph.successors(*node).iter().filter_map(|to| read.get(to));
                let behind = behind.fold(0, |all, read| all | read);
                let own = |read, one: Instruction| match one.zeroes() {
                    true => read & !written(one),
                    false => read & !written(one) | one.reads(),
                };
                let before = self.code(*node).rev().fold(behind, own);
                is_settled &= read.insert(*node, before) == Some(before);
            }
            if is_settled {
                break;
            }
        }
        read.get(&begin).copied().unwrap_or(0)
    }
}

/// The registers that an instruction writes, or the function that it calls.
fn written(one: Instruction) -> u128 {
    let clobbered = (0..Register::VECTORS.index()).filter(|register| !is_preserved(*register));
    one.writes() | if one.kind().is_call() { clobbered.fold(0, |all, register| all | 1 << register) } else { 0 }
}
