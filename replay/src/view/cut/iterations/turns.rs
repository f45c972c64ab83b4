//! Where the turns of a loop begin: at its header; or, where iterations that a runtime gave out turn, behind each
//! test that asks whether there is one more.
//!
//! A compiler may test in the middle of a loop, let the first iteration run in front of it, or jump into it. It may
//! also step to the next row of a collapsed loop by a branch, where a GPU divides. What stands between a test and the
//! code of an iteration is the loop's, and no turn's.

use std::collections::BTreeSet;

use flowgraph::{LoopId, NodeId, reached};
use heuristics::{ControlFlow, PlaceId, SegmentId, SegmentTable};
use machine::{Instruction, Operand, Operation, Operator, Step};
use trace_format::Kind;

use super::branches::Tests;
use super::copies::Copies;
use super::loops::LoopsOf;

/// Where turns of a loop begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::view::cut) struct Turns {
    /// One begins here, wherever the thread comes from.
    pub begins: BTreeSet<NodeId>,
    /// One begins here if the thread was in none.
    pub enters: BTreeSet<NodeId>,
    /// These are the loop's, and no turn's.
    pub aside: BTreeSet<NodeId>,
    /// Those of them behind which the loop's next chunk comes, where the loop over chunks and the one in it are one.
    pub ends_chunk: BTreeSet<NodeId>,
    /// First iterations stand here, in front of the loop.
    pub before: BTreeSet<NodeId>,
    /// Whether iterations may run beside the loop, unless it is known how many there are.
    pub is_incomplete: bool,
    /// Whether its turns may be chunks of iterations, unless each chunk was told.
    pub may_be_chunks: bool,
    /// Whether what turns is found by tests: then no turn is only a test.
    pub by_tests: bool,
    /// Of a loop that was unrolled: its copies.
    pub copies: Copies,
}

impl Turns {
    /// Those of the same loop where each is several iterations.
    pub(super) fn unrolled(copies: Copies) -> Turns {
        let begin = Some(copies.begin).filter(|begin| !copies.shown.contains_key(begin));
        Turns {
            begins: copies.loose.iter().copied().chain(begin).collect(),
            before: copies.beside.clone(),
            is_incomplete: !copies.is_proven,
            by_tests: true,
            copies,
            ..Turns::default()
        }
    }

    /// Those of a loop of which nothing else is known.
    pub(super) fn at_header(loops: &LoopsOf, id: LoopId) -> Turns {
        Turns { begins: BTreeSet::from([loops.header(id)]), ..Turns::default() }
    }
}

/// What turns are found by.
pub(super) struct Finder<'a> {
    pub loops: &'a LoopsOf<'a>,
    pub flow: &'a ControlFlow,
    pub segments: &'a SegmentTable,
    /// By node: its segment.
    pub of_place: &'a [SegmentId],
    pub tests: &'a Tests,
    /// The loops that turn by what a runtime gave.
    pub given: &'a [LoopId],
    /// Those of them of which each turn may be a chunk.
    pub cyclic: &'a [LoopId],
    /// Those of them that do not count one by one.
    pub by_chunks: &'a [LoopId],
    /// Loops whose turns are chunks.
    pub of_chunks: &'a [LoopId],
    /// Branches that ask whether the runtime has given a chunk.
    pub answers: &'a BTreeSet<NodeId>,
    /// Where memory is read at an address that hangs on an iteration's number.
    pub looks: &'a BTreeSet<NodeId>,
    /// Whether a segment writes to memory other than the frame.
    pub writes: &'a dyn Fn(SegmentId) -> bool,
}

impl Finder<'_> {
    /// The turns of a loop, and the iterations in front of it.
    pub(super) fn turns(&self, id: LoopId) -> Turns {
        let (loops, graph) = (self.loops, self.loops.graph());
        let header = loops.header(id);
        let mut turns = Turns::default();
        for test in &self.ends(id) {
            let (inside, outside): (Vec<NodeId>, Vec<NodeId>) =
                graph.successors(*test).iter().partition(|next| loops.contains(id, **next));
            // Each lane may have had another one behind.
            let turns_on = |next| self.is_next(*test) && next == header || self.is_copy(*test);
            let is_given = !self.by_chunks.contains(&id);
            let next = match &inside[..] {
                [next] if !outside.is_empty() || is_given && turns_on(*next) => next,
                _ => continue,
            };
            let ahead = loops.test(id);
            let is_ahead = *next != header && ahead.contains(test);
            let ahead: Vec<NodeId> = ahead.into_iter().take_while(|node| node != test).chain([*test]).collect();
            // An iteration that finds nothing to do only looks, and counts before the test.
            let works = |node: &&NodeId| self.does_more(**node);
            let row: Vec<SegmentId> = ahead.iter().map(|node| self.of_place[node.index()]).collect();
            let is_idle = || {
                self.counts_on(&row)
                    && !loops.members(id).iter().filter(|node| !ahead.contains(node)).any(|n| works(&n))
            };
            if is_ahead && !ahead.iter().any(|node| works(&node)) && !is_idle() {
                turns.aside.extend(ahead);
                turns.begins.insert(*next);
            } else if let Some((steps, behind)) = self.steps(*next, id) {
                turns.aside.extend(steps);
                turns.begins.insert(behind);
            } else {
                turns.begins.insert(*next);
            }
        }
        turns.by_tests = !turns.begins.is_empty();
        // A test that ends nothing may end a chunk, where the loop over chunks and the one in it are one.
        let is_inner = |node: &NodeId| {
            self.tests.of(*node).is_some_and(|test| test.is_of_bounds || test.is_of_two)
                && graph.successors(*node).iter().all(|next| loops.contains(id, *next))
        };
        if self.by_chunks.contains(&id) {
            turns.may_be_chunks = true;
            let inner: Vec<NodeId> = loops.members(id).iter().copied().filter(is_inner).collect();
            for test in inner {
                self.split(id, test, &mut turns);
            }
            turns.is_incomplete = true;
        }
        let is_entry =
            |node: &NodeId| *node == header || graph.predecessors(*node).iter().any(|from| !loops.contains(id, *from));
        let entries: BTreeSet<NodeId> = loops.members(id).iter().copied().filter(is_entry).collect();
        if !turns.by_tests {
            // Whoever enters elsewhere has done a part of an iteration before.
            let is_incomplete = turns.is_incomplete || entries.len() > 1;
            let may_be_chunks = turns.may_be_chunks;
            return Turns { is_incomplete, may_be_chunks, ..Turns::at_header(loops, id) };
        }
        turns.begins.retain(|node| !turns.aside.contains(node));
        // What goes on to where a turn begins, and does nothing else, is none.
        for node in turns.begins.clone() {
            let row = self.row(node, &turns.begins);
            if let [next] = graph.successors(row[row.len() - 1])
                && turns.begins.contains(next)
                && !row.contains(next)
                && !row.iter().any(|one| entries.contains(one) || self.does_more(*one))
            {
                turns.begins.remove(&node);
                turns.aside.extend(row);
            }
        }
        // A turn that begins by counting would differ from the first, which enters behind that.
        for node in turns.begins.clone() {
            let row = self.row(node, &entries);
            let is_last = |from: &NodeId| row.last() == Some(from) || !loops.contains(id, *from);
            if let [next] = graph.successors(row[row.len() - 1])
                && entries.contains(next)
                && !turns.aside.contains(next)
                && graph.predecessors(*next).iter().all(is_last)
                && row.iter().all(|one| !entries.contains(one) && self.only_counts(self.of_place[one.index()]))
            {
                turns.begins.remove(&node);
                turns.begins.insert(*next);
                turns.aside.extend(row);
            }
        }
        turns.enters = entries.iter().copied().filter(|node| !turns.aside.contains(node)).collect();
        self.look_before(id, &entries, &mut turns);
        turns
    }

    /// Where the loop over chunks and the one in it are one: turns that would begin with the inner test begin behind
    /// it, on the side that comes back to it before the outer one, where the other does nothing but go on to the next
    /// chunk.
    fn split(&self, id: LoopId, test: NodeId, turns: &mut Turns) {
        let (loops, graph) = (self.loops, self.loops.graph());
        let is_outer = |node: NodeId| {
            self.tests.of(node).is_some() && graph.successors(node).iter().any(|next| !loops.contains(id, *next))
        };
        let before_outer = |side: NodeId| {
            reached(graph, [side], |node| {
                let on = if is_outer(node) || node == test { &[][..] } else { graph.successors(node) };
                on.iter().copied().filter(|next| loops.contains(id, *next))
            })
        };
        let sides = graph.successors(test);
        let (body, ends): (Vec<NodeId>, Vec<NodeId>) =
            sides.iter().partition(|side| before_outer(**side)[test.index()]);
        let ([body], [end]) = (&body[..], &ends[..]) else { return };
        let behind = before_outer(*end);
        let steps: Vec<NodeId> = graph.nodes().filter(|node| behind[node.index()]).collect();
        if !turns.begins.contains(&test)
            || [test].iter().chain(&steps).any(|node| self.works(self.of_place[node.index()]))
        {
            return;
        }
        turns.begins.remove(&test);
        turns.begins.insert(*body);
        turns.aside.insert(test);
        turns.aside.extend(&steps);
        turns.ends_chunk.extend(steps);
    }

    /// The branches of a loop that ask whether its turns go on. Where two numbers tell that, one that compares with a
    /// constant does not: an iteration finds its own number to be 0, as the last one does of a share that counts down.
    pub(super) fn ends(&self, id: LoopId) -> BTreeSet<NodeId> {
        let (loops, graph) = (self.loops, self.loops.graph());
        let tests = || loops.members(id).iter().copied().filter(|node| self.tests.of(*node).is_some());
        let leaves = |node: NodeId| graph.successors(node).iter().any(|next| !loops.contains(id, *next));
        let is_of_two = |node: NodeId| self.tests.of(node).is_some_and(|test| test.is_of_two);
        let turns = |node: NodeId| graph.successors(node) == [loops.header(id)];
        let tells =
            |node: NodeId| leaves(node) && is_of_two(node) || turns(node) && self.is_next(node) || self.is_copy(node);
        let by_two = !self.by_chunks.contains(&id) && tests().any(tells);
        tests().filter(|node| is_of_two(*node) || !by_two).collect()
    }

    /// Whether a test asks for the next iteration, and no lane lacked it.
    fn is_next(&self, node: NodeId) -> bool {
        self.tests.of(node).is_some_and(|test| test.is_one_way && test.is_of_next())
    }

    /// Whether such a test is a copy of one at the end of a loop.
    fn is_copy(&self, node: NodeId) -> bool {
        let graph = self.loops.graph();
        let test = |node: NodeId| {
            let mut code = self.segments.listing(self.of_place[node.index()]).iter().flatten();
            code.rfind(|one| one.operation() == Operation::Compare)
        };
        let Some(own) = test(node).filter(|_| self.is_next(node)) else { return false };
        let is_it = |id: LoopId, other: NodeId| {
            let leaves = || graph.successors(other).iter().any(|next| !self.loops.contains(id, *next));
            let is_of_two = self.tests.of(other).is_some_and(|test| test.is_of_two);
            is_of_two && leaves() && test(other).is_some_and(|other| own.is_copy_of(other))
        };
        self.given.iter().any(|id| self.loops.members(*id).iter().any(|other| is_it(*id, *other)))
    }

    fn works(&self, segment: SegmentId) -> bool {
        self.segments[segment].last().kind.is_call() || (self.writes)(segment)
    }

    /// Whether a segment reads an element of something, by an index.
    fn reads_one_of(&self, segment: SegmentId) -> bool {
        let mut code = self.segments.listing(segment).iter().flatten();
        code.any(|one| one.memory().iter().any(|part| part.access.reads && part.index.is_some()))
    }

    /// What stands in a row from here on, before any of `ends`, and neither calls nor writes: it may have been cut.
    fn row(&self, from: NodeId, ends: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let graph = self.loops.graph();
        let mut row = vec![from];
        while let [next] = graph.successors(row[row.len() - 1])
            && graph.predecessors(*next).len() == 1
            && !row.contains(next)
            && !ends.contains(next)
            && !self.works(self.of_place[next.index()])
        {
            row.push(*next);
        }
        row
    }

    /// Where code from here on only counts on to the next iteration, row by row: that code, and where it ends.
    ///
    /// Example: `x += 1; if (x == W) { y += 1; x = 0; }`, as gcc makes of `collapse(2)`.
    fn steps(&self, from: NodeId, id: LoopId) -> Option<(BTreeSet<NodeId>, NodeId)> {
        let (loops, graph) = (self.loops, self.loops.graph());
        let row = self.row(from, &BTreeSet::new());
        let last = row[row.len() - 1];
        let join = self.flow.immediate_post_dominator(PlaceId(last.0)).and_then(|pc| loops.node_at(pc))?;
        let segments: Vec<SegmentId> = row.iter().map(|node| self.of_place[node.index()]).collect();
        if !loops.contains(id, join) || !self.counts_on(&segments) {
            return None;
        }
        let (mut steps, mut left) = (BTreeSet::from_iter(row.iter().copied()), vec![last]);
        while let Some(node) = left.pop() {
            for next in graph.successors(node).iter().filter(|next| **next != join) {
                let turns = loops.around(*next).next() != Some(id);
                let segment = self.of_place[next.index()];
                let does = self.works(segment) || self.looks.contains(next) || self.reads_one_of(segment);
                let is_idle = loops.contains(id, *next) && !turns && !does;
                if !is_idle || self.tests.of(*next).is_some() || steps.len() > MOST_STEPS {
                    return None;
                }
                if steps.insert(*next) {
                    left.push(*next);
                }
            }
        }
        let resets = |node: &NodeId| !row.contains(node) && self.resets(self.of_place[node.index()]);
        steps.iter().any(resets).then_some((steps, join))
    }

    /// Whether segments in a row add a constant to a counter and end with a branch on it.
    fn counts_on(&self, row: &[SegmentId]) -> bool {
        let code = || row.iter().flat_map(|segment| self.segments.listing(*segment).iter());
        let mut counter = None;
        let mut is_asked = false;
        for instruction in code().flatten() {
            if let Step::Update { operator: Operator::Add, acc, by: Operand::Constant(_), to, .. } = instruction.step()
                && acc == to
            {
                (counter, is_asked) = (Some(to), true);
            } else if instruction.flags_written() != 0 {
                is_asked = [0, 1].iter().any(|index| Some(instruction.operand(*index)) == counter);
            }
        }
        is_asked && code().last().flatten().is_some_and(|last| last.kind() == Kind::Branch)
    }

    /// Whether a segment does nothing but add constants to counters and copy them.
    fn only_counts(&self, segment: SegmentId) -> bool {
        self.segments.listing(segment).iter().all(|instruction| {
            instruction.is_some_and(|one| match one.step() {
                Step::Update { operator: Operator::Add, acc, by: Operand::Constant(_), to, .. } => acc == to,
                Step::Copy { from: Operand::Register(_), to: Operand::Register(_), .. } => true,
                _ => one.kind() == Kind::Jump && one.memory().is_empty(),
            })
        })
    }

    /// Whether a segment sets a register or a place in the frame to what it was.
    fn resets(&self, segment: SegmentId) -> bool {
        self.segments.listing(segment).iter().flatten().any(|instruction| match instruction.step() {
            Step::Copy { from: Operand::Constant(_) | Operand::Register(_) | Operand::Memory, .. } => true,
            Step::Update { operator: Operator::Xor, acc, by, .. } => acc == by,
            _ => false,
        })
    }

    /// Whether a node calls, writes, reads what is an iteration's own, or works with vectors.
    pub(super) fn does_more(&self, node: NodeId) -> bool {
        let segment = self.of_place[node.index()];
        let is_of_vectors =
            |instruction: Instruction| instruction.uses().iter().any(|used| !used.part.register.is_general());
        self.works(segment)
            || self.looks.contains(&node)
            || self.segments.listing(segment).iter().flatten().any(is_of_vectors)
    }
}

/// The code that steps to the next row has at most so many branches for each loop of the source.
const MOST_STEPS: usize = 12;
