//! Where the turns of a loop begin: at its header; or, where iterations that a runtime gave out turn, behind each
//! test that asks whether there is one more.
//!
//! A compiler may test in the middle of a loop, let the first iteration run in front of it, or jump into it. It may
//! also step to the next row of a collapsed loop by a branch, where a GPU divides. What stands between a test and the
//! code of an iteration is the loop's, and no turn's.

use std::collections::BTreeSet;

use flowgraph::{LoopId, NodeId, reached};
use heuristics::{ControlFlow, PlaceId, SegmentId, SegmentTable};
use machine::{Instruction, Operand, Operator, Step};
use trace_format::Kind;

use super::branches::Tests;
use super::copies::Copies;
use super::loops::{LoopsOf, segment_of_place};

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
    pub tests: &'a Tests,
    /// The loops that turn by what a runtime gave.
    pub given: &'a [LoopId],
    /// Those of them of which each turn may be a chunk.
    pub cyclic: &'a [LoopId],
    /// Those of them that do not count one by one.
    pub by_chunks: &'a [LoopId],
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
        let of_place = segment_of_place(self.segments);
        let header = loops.header(id);
        let mut turns = Turns::default();
        for test in loops.members(id).iter().filter(|node| self.tests.of(**node).is_some()) {
            let (inside, outside): (Vec<NodeId>, Vec<NodeId>) =
                graph.successors(*test).iter().partition(|next| loops.contains(id, **next));
            let ([next], [_, ..]) = (&inside[..], &outside[..]) else { continue };
            let ahead = loops.test(id);
            let is_ahead = *next != header && ahead.contains(test);
            let ahead: Vec<NodeId> = ahead.into_iter().take_while(|node| node != test).chain([*test]).collect();
            // An iteration that finds nothing to do only looks, and counts before the test.
            let works = |node: &&NodeId| self.does_more(**node, &of_place);
            let row: Vec<SegmentId> = ahead.iter().map(|node| of_place[node.index()]).collect();
            let is_idle = || {
                self.counts_on(&row)
                    && !loops.members(id).iter().filter(|node| !ahead.contains(node)).any(|n| works(&n))
            };
            if is_ahead && !ahead.iter().any(|node| works(&node)) && !is_idle() {
                turns.aside.extend(ahead);
                turns.begins.insert(*next);
            } else if let Some((steps, behind)) = self.steps(*next, id, &of_place) {
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
                self.split(id, test, &of_place, &mut turns);
            }
            turns.is_incomplete = true;
        }
        if !turns.by_tests {
            let Turns { is_incomplete, may_be_chunks, .. } = turns;
            return Turns { is_incomplete, may_be_chunks, ..Turns::at_header(loops, id) };
        }
        turns.begins.retain(|node| !turns.aside.contains(node));
        let is_entry =
            |node: &NodeId| *node == header || graph.predecessors(*node).iter().any(|from| !loops.contains(id, *from));
        let entries: BTreeSet<NodeId> = loops.members(id).iter().copied().filter(is_entry).collect();
        // What goes on to where a turn begins, and does nothing else, is none.
        for node in turns.begins.clone() {
            let row = self.row(node, &of_place, &turns.begins);
            if let [next] = graph.successors(row[row.len() - 1])
                && turns.begins.contains(next)
                && !row.contains(next)
                && !row.iter().any(|one| entries.contains(one) || self.does_more(*one, &of_place))
            {
                turns.begins.remove(&node);
                turns.aside.extend(row);
            }
        }
        // A turn that begins by counting would differ from the first, which enters behind that.
        for node in turns.begins.clone() {
            let row = self.row(node, &of_place, &entries);
            let is_last = |from: &NodeId| row.last() == Some(from) || !loops.contains(id, *from);
            if let [next] = graph.successors(row[row.len() - 1])
                && entries.contains(next)
                && !turns.aside.contains(next)
                && graph.predecessors(*next).iter().all(is_last)
                && row.iter().all(|one| !entries.contains(one) && self.only_counts(of_place[one.index()]))
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
    fn split(&self, id: LoopId, test: NodeId, of_place: &[SegmentId], turns: &mut Turns) {
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
        if !turns.begins.contains(&test) || [test].iter().chain(&steps).any(|node| self.works(of_place[node.index()])) {
            return;
        }
        turns.begins.remove(&test);
        turns.begins.insert(*body);
        turns.aside.insert(test);
        turns.aside.extend(&steps);
        turns.ends_chunk.extend(steps);
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
    fn row(&self, from: NodeId, of_place: &[SegmentId], ends: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let graph = self.loops.graph();
        let mut row = vec![from];
        while let [next] = graph.successors(row[row.len() - 1])
            && graph.predecessors(*next).len() == 1
            && !row.contains(next)
            && !ends.contains(next)
            && !self.works(of_place[next.index()])
        {
            row.push(*next);
        }
        row
    }

    /// Where code from here on only counts on to the next iteration, row by row: that code, and where it ends.
    ///
    /// Example: `x += 1; if (x == W) { y += 1; x = 0; }`, as gcc makes of `collapse(2)`.
    fn steps(&self, from: NodeId, id: LoopId, of_place: &[SegmentId]) -> Option<(BTreeSet<NodeId>, NodeId)> {
        let (loops, graph) = (self.loops, self.loops.graph());
        let row = self.row(from, of_place, &BTreeSet::new());
        let last = row[row.len() - 1];
        let join = self.flow.immediate_post_dominator(PlaceId(last.0)).and_then(|pc| loops.node_at(pc))?;
        let segments: Vec<SegmentId> = row.iter().map(|node| of_place[node.index()]).collect();
        if !loops.contains(id, join) || !self.counts_on(&segments) {
            return None;
        }
        let (mut steps, mut left) = (BTreeSet::from_iter(row.iter().copied()), vec![last]);
        while let Some(node) = left.pop() {
            for next in graph.successors(node).iter().filter(|next| **next != join) {
                let turns = loops.around(*next).next() != Some(id);
                let segment = of_place[next.index()];
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
        let resets = |node: &NodeId| !row.contains(node) && self.resets(of_place[node.index()]);
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

    /// The loop of which this one has the first iterations, in copies: that loop's code goes on where this one is left
    /// without a test, and where this one is left by its test none of both comes.
    ///
    /// Example: the iterations of a thread up to the first that finds a flag set, which stays set.
    pub(super) fn is_first_of(&self, id: LoopId) -> Option<LoopId> {
        let (loops, graph) = (self.loops, self.loops.graph());
        let around: Vec<NodeId> = loops.outside(id).map(|outer| loops.header(outer)).collect();
        let is_test = |node: NodeId| self.tests.of(node).is_some();
        let behind = |side: NodeId, goes_on: &dyn Fn(NodeId) -> bool| {
            reached(graph, [side], |node| {
                let next = if goes_on(node) { graph.successors(node) } else { &[] };
                next.iter().copied().filter(|next| !around.contains(next))
            })
        };
        // Each way out is followed once, however many loops there are.
        let (mut of_tests, mut straight) = (Vec::new(), Vec::new());
        for from in loops.members(id) {
            for side in graph.successors(*from).iter().filter(|side| !loops.contains(id, **side)) {
                straight.push(behind(*side, &|node| !is_test(node)));
                of_tests.extend(is_test(*from).then(|| behind(*side, &|_| true)));
            }
        }
        let given = self.given.iter().copied().filter(|other| *other != id);
        let mut others = given.filter(|other| loops.parent(*other) == loops.parent(id));
        others.find(|other| {
            let head = loops.header(*other).index();
            of_tests.iter().any(|reached| !reached[head]) && straight.iter().any(|reached| reached[head])
        })
    }

    /// Looks for iterations in front of the loop: what stands between a test whose other side ends the loop and the
    /// next such test.
    fn look_before(&self, id: LoopId, entries: &BTreeSet<NodeId>, turns: &mut Turns) {
        let (loops, graph) = (self.loops, self.loops.graph());
        let of_place = segment_of_place(self.segments);
        let around: Vec<LoopId> = loops.outside(id).collect();
        // A way back to the beginning of a loop around this one leads to its next turn.
        let goes_on = |from: NodeId, to: NodeId| {
            !around.iter().any(|outer| loops.header(*outer) == to && loops.contains(*outer, from))
        };
        let leads_there = reached(graph, entries.iter().copied(), |node| {
            let from = graph.predecessors(node).iter().copied();
            from.filter(move |from| !loops.contains(id, *from) && goes_on(*from, node))
        });
        let exits: BTreeSet<NodeId> = loops
            .members(id)
            .iter()
            .flat_map(|node| graph.successors(*node))
            .copied()
            .filter(|next| !loops.contains(id, *next))
            .collect();
        let behind_it = |from: NodeId, is_passed: &dyn Fn(NodeId) -> bool| -> BTreeSet<NodeId> {
            let there = reached(graph, [from], |node| {
                let next = graph.successors(node).iter().copied();
                next.filter(move |next| goes_on(node, *next) && is_passed(*next))
            });
            graph.nodes().filter(|node| there[node.index()]).collect()
        };
        let leads = |node: NodeId| leads_there[node.index()];
        let in_front = |node: NodeId| leads(node) && !loops.contains(id, node);
        let headers: Vec<NodeId> = self.given.iter().map(|id| loops.header(*id)).collect();
        let is_exit = |side: NodeId| {
            let comes_to_another = || behind_it(side, &|_| true).iter().any(|node| headers.contains(node));
            !leads(side) && (exits.contains(&side) || !comes_to_another())
        };
        // The tests with their sides that lead to the loop.
        let mut tests: Vec<(NodeId, NodeId)> = Vec::new();
        for node in graph.nodes().filter(|node| in_front(*node) && self.tests.of(*node).is_some()) {
            let (goes, leaves): (Vec<NodeId>, Vec<NodeId>) =
                graph.successors(node).iter().partition(|next| leads(**next));
            // That there was nothing for a thread to do may never have happened.
            let is_of_bounds = || self.tests.of(node).is_some_and(|test| test.is_of_bounds || test.is_of_two);
            let ends = leaves.first().map_or_else(is_of_bounds, |side| is_exit(*side));
            if let ([goes], true) = (&goes[..], ends) {
                tests.push((node, *goes));
            }
        }
        // Of a chunk that the runtime has given no test asks first whether it has any iteration.
        let is_stepped = |(test, _): &(NodeId, NodeId)| self.tests.of(*test).is_some_and(|test| test.is_stepped);
        if tests.iter().all(is_stepped) {
            for node in graph.nodes().filter(|node| in_front(*node) && self.answers.contains(node)) {
                let mut goes = graph.successors(node).iter().filter(|next| leads(**next));
                if let (Some(goes), None) = (goes.next(), goes.next()) {
                    tests.push((node, *goes));
                }
            }
        }
        let is_in_loop = |node: NodeId| loops.around(node).any(|of| self.is_first_of(of) == Some(id));
        for (test, goes) in &tests {
            if !in_front(*goes) {
                continue;
            }
            let behind = behind_it(*goes, &in_front);
            let reaches = |nodes: &BTreeSet<NodeId>| {
                nodes.iter().any(|node| graph.successors(*node).iter().any(|next| entries.contains(next)))
            };
            let is_next = |(next, _): &&(NodeId, NodeId)| {
                let is_dealt = self.cyclic.contains(&id);
                let is_stepped = self.tests.of(*next).is_some_and(|of| of.is_stepped || is_dealt && of.is_counted);
                // An iteration stands between them only where more is done than to compare.
                let between = || behind_it(*goes, &|node| in_front(node) && node != *next);
                let does = |node: NodeId| self.does_more(node, &of_place);
                behind.contains(next)
                    && (next != test || is_in_loop(*next))
                    && is_stepped
                    && (does(*next) || between().into_iter().any(does))
            };
            let next: BTreeSet<NodeId> = tests.iter().filter(is_next).map(|(next, _)| *next).collect();
            if !next.is_empty() {
                // Without one of them the loop is reached, too: then these may be iterations or not.
                let mut left = vec![*goes];
                let mut seen = BTreeSet::new();
                while let Some(from) = left.pop() {
                    if !in_front(from) || !seen.insert(from) {
                        continue;
                    }
                    let first = behind_it(from, &|node| in_front(node) && !next.contains(&node));
                    if next.contains(&from) || !reaches(&first) {
                        turns.begins.insert(from);
                        // Each turn of a loop around may begin with such an iteration, as the first does.
                        let heads = around.iter().map(|outer| loops.header(*outer)).filter(|head| first.contains(head));
                        for head in heads.take(1).filter(|head| *head != from) {
                            let ahead = behind_it(from, &|node| in_front(node) && node != head);
                            if next.is_disjoint(&ahead) {
                                turns.begins.remove(&from);
                                turns.begins.insert(head);
                                turns.aside.extend(ahead);
                            }
                        }
                    } else if !first.iter().any(|node| graph.successors(*node).iter().any(|to| next.contains(to))) {
                        turns.aside.extend(first);
                    } else if self.does_more(from, &of_place) {
                        // Without one of them the loop is reached, too: then these may be iterations or not.
                        turns.is_incomplete = true;
                    } else {
                        turns.aside.insert(from);
                        left.extend(graph.successors(from));
                    }
                }
                turns.before.extend(behind);
            } else {
                turns.aside.extend(behind);
            }
        }
        // What comes behind the only test is none of the loop.
        turns.aside.retain(|node| loops.contains(id, *node) || turns.before.contains(node));
        turns.begins.retain(|node| !turns.aside.contains(node));
    }

    /// Whether a node calls, writes, reads what is an iteration's own, or works with vectors.
    fn does_more(&self, node: NodeId, of_place: &[SegmentId]) -> bool {
        let segment = of_place[node.index()];
        let is_of_vectors =
            |instruction: Instruction| instruction.uses().iter().any(|used| !used.part.register.is_general());
        self.works(segment)
            || self.looks.contains(&node)
            || self.segments.listing(segment).iter().flatten().any(is_of_vectors)
    }
}

/// The code that steps to the next row has at most so many branches for each loop of the source.
const MOST_STEPS: usize = 12;
