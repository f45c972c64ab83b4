//! Loops whose inner loop begins at the same place, told apart.
//!
//! Where an outer loop's turn begins with an inner loop, and the compiler tests the inner loop at its head, both have
//! one header: `do { while (a) …; … } while (b)`. In the graph they are one loop with several ways back. Compilers for
//! GPUs have two, whose lanes meet behind the inner one before they go on. So here: the ways back of the outer loop
//! lead to a node of its own in front of the header.
//!
//! Which ways back are the outer loop's is told as LLVM's `LoopSimplify` tells it (`separateNestedLoop`): something
//! that a turn finds, a register or a slot of the frame, stays as it was on the inner loop's ways back, and is changed
//! on the outer's. Where something else is changed on the inner's alone, either loop could be around the other, and
//! they stay one. So they do where ways of the inner loop leave both, other than at the header, and where all ways back
//! count the same turns: compilers for processors double the end of a turn, with the exit behind it.

use flowgraph::{Builder, Graph, LoopId, Loops, NodeId};
use machine::{Instruction, Operand, Operator, Register, Registers, Step};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Kind, Pc};

use crate::program::yields::{CHANGED_BY_CALLS, slot};
use crate::{SegmentId, SegmentTable};

/// A graph with headers of their own for outer loops.
#[derive(Debug)]
pub(super) struct Nests {
    pub graph: Graph,
    /// By node: instructions, and first pc. An outer header has none, and the pc of the inner one.
    pub lengths: Vec<u32>,
    pub starts: Vec<Pc>,
}

impl Nests {
    /// Those of a graph whose nodes are the places of these segments, and one more; none where there are none.
    pub(super) fn of(graph: &Graph, segments: &SegmentTable, lengths: &[u32], starts: &[Pc]) -> Option<Nests> {
        let mut found: Option<Nests> = None;
        let mut of_place: Vec<Option<SegmentId>> = vec![None; segments.places()];
        segments.iter().for_each(|(id, segment)| of_place[segment.place.0 as usize] = Some(id));
        // An outer loop may have another around it that begins there, too.
        for _ in 0..MOST {
            let graph = found.as_ref().map_or(graph, |found| &found.graph);
            let loops = Loops::of(graph);
            let code = Code { graph, loops: &loops, segments, of_place: &of_place };
            let split: Vec<_> =
                loops.ids().filter_map(|id| Some((loops.header(id), code.inner_latches(id)?))).collect();
            if split.is_empty() {
                break;
            }
            let (mut starts, mut lengths) = found.as_ref().map_or_else(
                || (starts.to_vec(), lengths.to_vec()),
                |found| (found.starts.clone(), found.lengths.clone()),
            );
            starts.resize(graph.node_count(), Pc(0));
            lengths.resize(graph.node_count(), 0);
            starts.extend(split.iter().map(|(header, _)| starts[header.index()]).collect::<Vec<_>>());
            lengths.resize(starts.len(), 0);
            found = Some(Nests { graph: with_headers(graph, &split), lengths, starts });
        }
        found
    }
}

/// So many loops at most begin at one place.
const MOST: usize = 4;

/// The graph with one more node for each of these headers, to which all ways lead that led to the header, but for those
/// of these latches.
fn with_headers(graph: &Graph, split: &[(NodeId, Vec<NodeId>)]) -> Graph {
    let own = graph.node_count();
    let mut builder = Builder::new(own + split.len());
    for from in graph.nodes() {
        for to in graph.successors(from) {
            let outer = split.iter().position(|(header, inner)| header == to && !inner.contains(&from));
            builder.edge(from, outer.map_or(*to, |number| NodeId((own + number) as u32)));
        }
    }
    for (number, (header, _)) in split.iter().enumerate() {
        builder.edge(NodeId((own + number) as u32), *header);
    }
    builder.build(graph.entry())
}

/// A register, or a slot of the frame: the register that it lies at, and how far from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Home {
    Register(Register),
    Slot((Register, i64)),
}

/// The register to which an instruction adds a constant.
fn added(instruction: Instruction) -> Option<(Register, i64)> {
    match instruction.step() {
        Step::Update {
            operator: Operator::Add, acc: Operand::Register(from), by: Operand::Constant(by), to, ..
        } => (to == Operand::Register(from)).then_some((from.register, by)),
        _ => None,
    }
}

impl Home {
    /// Those among registers and flags that hold values.
    fn registers(among: Registers) -> impl Iterator<Item = Register> {
        (0..Register::FLAGS.0).map(Register).filter(move |register| among & register.bit() != 0)
    }

    fn is_read(self, by: Instruction) -> bool {
        match self {
            Home::Register(register) => by.reads() & register.bit() != 0 && !by.zeroes(),
            Home::Slot(own) => by.memory().iter().any(|memory| memory.access.reads && slot(memory) == Some(own)),
        }
    }

    fn is_written(self, by: Instruction) -> bool {
        match self {
            Home::Register(register) if by.kind() == Kind::Call => CHANGED_BY_CALLS & register.bit() != 0,
            Home::Register(register) => by.writes() & register.bit() != 0,
            Home::Slot(own) => by.memory().iter().any(|memory| memory.access.writes && slot(memory) == Some(own)),
        }
    }
}

struct Code<'a> {
    graph: &'a Graph,
    loops: &'a Loops,
    segments: &'a SegmentTable,
    of_place: &'a [Option<SegmentId>],
}

impl<'a> Code<'a> {
    fn instructions(&self, node: NodeId) -> impl Iterator<Item = Instruction<'a>> {
        let segment = self.of_place.get(node.index()).copied().flatten();
        let listing = segment.map(|segment| self.segments.listing(segment));
        listing.into_iter().flat_map(|listing| listing.iter().flatten())
    }

    /// The sources of the ways back of an inner loop that begins where this loop does, if there is one.
    fn inner_latches(&self, id: LoopId) -> Option<Vec<NodeId>> {
        let latches = self.loops.latches(id);
        if latches.len() < 2 || self.loops.is_irreducible(id) {
            return None;
        }
        let changed: Vec<FxHashSet<Home>> = latches.iter().map(|latch| self.changed_before(id, *latch)).collect();
        let mut homes: Vec<Home> = changed.iter().flatten().copied().collect::<FxHashSet<_>>().into_iter().collect();
        homes.retain(|home| !changed.iter().all(|changed| changed.contains(home)) && self.is_found(id, *home));
        // By home: which latches' ways change it.
        let ways = |home: &Home| changed.iter().map(|changed| changed.contains(home)).collect::<Vec<bool>>();
        let mut ways: Vec<Vec<bool>> = homes.iter().map(ways).collect();
        ways.sort_unstable();
        ways.dedup();
        let [outer] = &ways[..] else { return None };
        let inner = latches.iter().zip(outer).filter(|(_, is_outer)| !**is_outer).map(|(latch, _)| *latch);
        let inner: Vec<NodeId> = inner.collect();
        if self.has_a_counter_of_its_own(id) {
            return None;
        }
        let leaves = |node: NodeId| self.graph.successors(node).iter().any(|to| !self.loops.contains(id, *to));
        let header = self.loops.header(id);
        let ways = inner.iter().flat_map(|latch| self.before(id, *latch));
        (!ways.into_iter().any(|node| node != header && leaves(node))).then_some(inner)
    }

    /// What lies on the ways from the loop's header to this latch, both included.
    fn before(&self, id: LoopId, latch: NodeId) -> FxHashSet<NodeId> {
        let header = self.loops.header(id);
        let (mut seen, mut work) = (FxHashSet::from_iter([header, latch]), vec![latch]);
        while let Some(node) = work.pop().filter(|node| *node != header) {
            work.extend(self.graph.predecessors(node).iter().filter(|from| seen.insert(**from)));
        }
        seen
    }

    /// What is changed on the ways from the loop's header back to it by this latch.
    fn changed_before(&self, id: LoopId, latch: NodeId) -> FxHashSet<Home> {
        let instructions = self.before(id, latch).into_iter().flat_map(|node| self.instructions(node));
        let mut changed = FxHashSet::default();
        for instruction in instructions {
            let slots = instruction.memory().iter().filter(|memory| memory.access.writes).filter_map(slot);
            changed.extend(slots.map(Home::Slot));
            let is_call = instruction.kind() == Kind::Call;
            let registers = if is_call { CHANGED_BY_CALLS } else { instruction.writes() & !Register::SP.bit() };
            changed.extend(Home::registers(registers).map(Home::Register));
        }
        changed
    }

    /// Whether each way back adds the same constant to something, and does nothing else with it: it counts the turns of
    /// one loop.
    fn has_a_counter_of_its_own(&self, id: LoopId) -> bool {
        let header = self.loops.header(id);
        let counters = |latch: &NodeId| {
            let nodes = self.before(id, *latch).into_iter().filter(|node| *node != header);
            let mut steps: FxHashMap<Register, Option<i64>> = FxHashMap::default();
            for instruction in nodes.flat_map(|node| self.instructions(node)) {
                let step = added(instruction);
                for register in Home::registers(instruction.writes()) {
                    let own = step.and_then(|(own, by)| (own == register).then_some(by));
                    steps.entry(register).and_modify(|known| *known = None).or_insert(own);
                }
            }
            steps.into_iter().filter_map(|(register, by)| Some((register, by?))).collect::<FxHashSet<_>>()
        };
        let of_all = self.loops.latches(id).iter().map(counters).reduce(|one, other| &one & &other);
        of_all.is_some_and(|counters| !counters.is_empty())
    }

    /// Whether a turn of the loop finds something there, and reads it before it is changed.
    fn is_found(&self, id: LoopId, home: Home) -> bool {
        let header = self.loops.header(id);
        let (mut seen, mut work) = (FxHashSet::from_iter([header]), vec![header]);
        while let Some(node) = work.pop() {
            let mut instructions = self.instructions(node);
            match instructions.find_map(|by| (home.is_read(by) || home.is_written(by)).then(|| home.is_read(by))) {
                Some(true) => return true,
                Some(false) => {}
                None => {
                    let next = self.graph.successors(node).iter().filter(|to| self.loops.contains(id, **to));
                    work.extend(next.filter(|to| seen.insert(**to)));
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::control_flow;

    const COMPARE: (&[u8], Kind) = (&[0x39, 0xC8], Kind::Plain); // cmp eax, ecx
    const SUBTRACT: (&[u8], Kind) = (&[0x29, 0xC8], Kind::Plain); // sub eax, ecx
    const DECREMENT: (&[u8], Kind) = (&[0xFF, 0xC8], Kind::Plain); // dec eax
    const HALVE: (&[u8], Kind) = (&[0xD1, 0xE9], Kind::Plain); // shr ecx
    const COUNT: (&[u8], Kind) = (&[0xFF, 0xC7], Kind::Plain); // inc edi
    const BRANCH: (&[u8], Kind) = (&[0x75, 0x00], Kind::Branch); // jne, wherever
    const BACK: (&[u8], Kind) = (&[0xEB, 0x00], Kind::Jump); // jmp, wherever
    const RETURN: (&[u8], Kind) = (&[0xC3], Kind::Return);

    /// Whether lanes wait at 3 that part at the branch of 0, of `do { while (0) 1; 3 } while (…); 4`: the code of 1 and
    /// 3, and what lanes run.
    fn waits_behind(inner: &[(&[u8], Kind)], rest: &[(&[u8], Kind)], runs: &[usize]) -> bool {
        // No lane runs what stands behind 1.
        let blocks = [&[COMPARE, BRANCH], inner, &[RETURN], rest, &[RETURN]];
        let (flow, starts) = control_flow(&blocks, runs);
        flow.structured_joins(flow.place_at(starts[0]).unwrap()).contains(&Some(starts[3]))
    }

    const RUNS: &[usize] = &[0, 1, 0, 1, 0, 3, 0, 3, 4];

    #[test]
    fn lanes_meet_behind_an_inner_loop_that_begins_where_the_outer_one_does() {
        assert!(waits_behind(&[SUBTRACT, BACK], &[HALVE, DECREMENT, BRANCH], RUNS));
    }

    #[test]
    fn ways_back_of_one_loop_stay_its_turns_end() {
        // Each counts the turn.
        assert!(!waits_behind(&[SUBTRACT, COUNT, BACK], &[HALVE, DECREMENT, COUNT, BRANCH], RUNS));
        // Each changes something that the other leaves.
        assert!(!waits_behind(&[SUBTRACT, BACK], &[HALVE, BRANCH], RUNS));
        // Both leave the loop.
        let runs = [0, 1, 0, 1, 4, 0, 3, 0, 3, 4];
        assert!(!waits_behind(&[SUBTRACT, BRANCH], &[HALVE, DECREMENT, BRANCH], &runs));
    }
}
