//! Copies of a loop's body in an unrolled loop, and beside it: one turn of the machine's loop is several iterations.
//! Each is cut out and shown as what the loop would be if it had not been unrolled.
//!
//! A copy ends where the next one begins, often in one block that has both, mixed by the compiler's scheduler. So the
//! body is put together of what stands alone somewhere: the beginning of the first copy, the end of the last one with
//! the loop's test, and what lies between in any of them. A copy is one if its blocks have the same operations on
//! operands of the same kinds, and branches by the same conditions lead to the same places of the body; what steps
//! counters may be there or not.
//!
//! Example: `A B | C A' B | C' t`, where `C A'` is a block and `t` the test, is shown as `A B C' t` twice.

use std::collections::BTreeSet;

use flowgraph::{Builder, LoopId, NodeId, PostDominators, reached};
use heuristics::SegmentTable;
use rustc_hash::FxHashMap;

use super::body::{Body, Code};
use super::given::Given;
use super::loops::{LoopsOf, segment_of_place};
use super::turns::Turns;

/// What stands for a part of a segment in the lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view::cut) struct Part {
    /// A turn begins with it.
    pub begins: bool,
    /// A turn ends behind it.
    pub ends: bool,
    /// Where the code begins that stands for it.
    pub stands: NodeId,
    /// Which of the segment's addresses are its own, in order.
    pub takes: Vec<u32>,
}

/// The copies of a loop's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view::cut) struct Copies {
    /// How many a turn of the machine's loop has.
    pub number: usize,
    /// Where that turn begins, and the first of them.
    pub begin: NodeId,
    /// By place: what is shown of it, in order.
    pub shown: FxHashMap<NodeId, Vec<Part>>,
    /// Copies beside the loop, and what lies between them and the loop.
    pub beside: BTreeSet<NodeId>,
    /// Where copies beside the loop begin that have another shape: these stay as they are.
    pub loose: BTreeSet<NodeId>,
    /// The loops that hold no other copies than those.
    pub merged: Vec<LoopId>,
    /// Whether they are the numbers of vectors: what works on a whole one is shown for each.
    pub are_of_vectors: bool,
    /// Whether some code works on several of them as vectors.
    pub is_vectorised: bool,
    /// Whether each copy is surely an iteration, and all iterations are copies.
    pub is_proven: bool,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies {
            number: 0,
            begin: NodeId(0),
            shown: FxHashMap::default(),
            beside: BTreeSet::new(),
            loose: BTreeSet::new(),
            merged: Vec::new(),
            are_of_vectors: false,
            is_vectorised: false,
            is_proven: false,
        }
    }
}

impl Copies {
    /// Where turns begin that are not shown as they are.
    pub fn begins(&self) -> impl Iterator<Item = NodeId> {
        self.shown.iter().filter(|(_, parts)| parts.iter().any(|part| part.begins)).map(|(node, _)| *node)
    }
}

/// What copies are found by.
pub(super) struct Finder<'a> {
    pub loops: &'a LoopsOf<'a>,
    pub segments: &'a SegmentTable,
    pub given: &'a Given,
}

/// A turn has at most so many copies.
const MOST_COPIES: usize = 64;

impl Finder<'_> {
    /// All ways to take a loop's turn for several copies of one body, those with the most copies first.
    pub(super) fn copies(&self, id: LoopId, turns: &Turns) -> Vec<Copies> {
        let mut begins = turns.begins.iter().copied().filter(|node| self.loops.contains(id, *node));
        let (Some(begin), None) = (begins.next(), begins.next()) else { return Vec::new() };
        let of_place = segment_of_place(self.segments);
        let code = Code::new(self.segments, self.loops, &of_place);
        let mut all = self.copies_in(id, begin, &code);
        // The numbers of a vector, one by one.
        let of_vectors = self.copies_in(id, begin, &code.of_vectors()).into_iter();
        all.extend(of_vectors.map(|copies| Copies { is_proven: false, are_of_vectors: true, ..copies }));
        all
    }

    fn copies_in(&self, id: LoopId, begin: NodeId, code: &Code) -> Vec<Copies> {
        let graph = self.loops.graph();
        let is_own = |node: &NodeId| self.loops.contains(id, *node);
        let enters = |node: &&NodeId| **node != begin && graph.predecessors(**node).iter().any(|from| !is_own(from));
        if self.loops.members(id).iter().any(|node| enters(&node)) {
            return Vec::new();
        }
        let spine = self.spine(id, begin);
        let [_, between @ .., test] = &spine[..] else { return Vec::new() };
        let joins: Vec<NodeId> =
            between.iter().copied().filter(|node| code.join(*node, *test, begin).is_some()).collect();
        let periods = joins.len() + 1;
        let numbers = (2..=periods.min(MOST_COPIES)).rev().filter(|number| periods.is_multiple_of(*number));
        let of_number = |number: usize| {
            let every = periods / number;
            let joins: Vec<NodeId> = joins.iter().skip(every - 1).step_by(every).copied().collect();
            self.of_joins(id, code, (begin, &joins, *test))
        };
        numbers.filter_map(of_number).collect()
    }

    /// The copies of a loop's body that each have a test of their own behind them: turns begin with all of them.
    pub(super) fn with_tests(&self, id: LoopId, turns: &Turns) -> Option<Copies> {
        let of_place = segment_of_place(self.segments);
        let code = Code::new(self.segments, self.loops, &of_place);
        let is_own = |node: NodeId| self.loops.contains(id, node);
        let begins: Vec<NodeId> = turns.begins.iter().copied().filter(|node| is_own(*node)).collect();
        let [begin, _, ..] = begins[..] else { return None };
        let leaves = |node: NodeId| self.loops.graph().successors(node).iter().any(|next| !is_own(*next));
        let is_test = |node: NodeId| is_own(node) && self.given.tests.of(node).is_some() && leaves(node);
        let is_inside = |node: NodeId| is_own(node) && !begins.contains(&node) && !turns.aside.contains(&node);
        let (mut body, mut test) = (Body::new(&code, begin), None);
        let mut copies = Copies { number: begins.len(), begin, ..Copies::default() };
        for head in &begins {
            let mut shown = FxHashMap::from_iter([(*head, vec![code.same(*head, begin)?])]);
            let ends = body.walk(*head, &is_inside, Some(&is_test), &mut shown)?;
            let end = *ends.first().filter(|first| ends.iter().all(|end| end == *first))?;
            shown.insert(end, vec![code.tail(end, *test.get_or_insert(end))?]);
            let known = copies.shown.len() + shown.len();
            copies.shown.extend(shown);
            if copies.shown.len() < known {
                return None;
            }
        }
        copies.shown.retain(|node, parts| !matches!(&parts[..], [part] if part.stands == *node));
        Some(copies)
    }

    /// What each turn that begins there runs, in order: up to the test at the end.
    fn spine(&self, id: LoopId, begin: NodeId) -> Vec<NodeId> {
        let graph = self.loops.graph();
        let mut builder = Builder::new(graph.node_count());
        let mut ends = Vec::new();
        for node in self.loops.members(id) {
            let (on, over): (Vec<NodeId>, Vec<NodeId>) =
                graph.successors(*node).iter().partition(|next| **next != begin && self.loops.contains(id, **next));
            on.into_iter().for_each(|next| {
                builder.edge(*node, next);
            });
            if !over.is_empty() {
                ends.push(*node);
            }
        }
        let tree = PostDominators::of(&builder.build(begin), &ends);
        std::iter::successors(Some(begin), |node| tree.ipdom(*node)).collect()
    }

    /// The copies, where all but the first begin in these nodes.
    fn of_joins(&self, id: LoopId, code: &Code, (begin, joins, test): (NodeId, &[NodeId], NodeId)) -> Option<Copies> {
        let mut copies = Copies { number: joins.len() + 1, begin, ..Copies::default() };
        let mut body = Body::new(code, begin);
        let heads = [begin].into_iter().chain(joins.iter().copied());
        let ends: Vec<NodeId> = joins.iter().copied().chain([test]).collect();
        for (head, end) in heads.zip(&ends) {
            let is_inside = |node: NodeId| {
                self.loops.contains(id, node) && node != begin && (node == *end || !ends.contains(&node))
            };
            let is_end = |node: NodeId| node == *end;
            body.walk(head, &is_inside, Some(&is_end), &mut copies.shown)?;
        }
        for join in joins {
            copies.shown.insert(*join, code.join(*join, test, begin)?);
        }
        copies.shown.retain(|node, parts| !matches!(&parts[..], [part] if part.stands == *node));
        self.beside(id, code, (begin, test), &mut body, &mut copies);
        copies.is_proven = self.is_proven(id, (begin, false), code, &copies);
        Some(copies)
    }

    /// A way back to the beginning of a loop around this one leads to its next turn.
    pub(super) fn goes_on(&self, id: LoopId, from: NodeId, to: NodeId) -> bool {
        !self.loops.outside(id).any(|outer| self.loops.header(outer) == to && self.loops.contains(outer, from))
    }

    /// The nodes that can be reached from one, and those from which it can be, within a turn of the loops around.
    pub(super) fn near(&self, id: LoopId, from: &[NodeId]) -> [Vec<bool>; 2] {
        let graph = self.loops.graph();
        let behind = reached(graph, from.iter().copied(), |node| {
            graph.successors(node).iter().copied().filter(move |next| self.goes_on(id, node, *next))
        });
        let before = reached(graph, from.iter().copied(), |node| {
            graph.predecessors(node).iter().copied().filter(move |next| self.goes_on(id, *next, node))
        });
        [behind, before]
    }

    /// Copies of the body in front of the loop and behind it.
    fn beside(&self, id: LoopId, code: &Code, (begin, test): (NodeId, NodeId), body: &mut Body, copies: &mut Copies) {
        let graph = self.loops.graph();
        let [behind, before] = self.near(id, &[begin]);
        let is_near = |node: NodeId| {
            node != graph.entry() && (behind[node.index()] || before[node.index()]) && !self.loops.contains(id, node)
        };
        let mut all: FxHashMap<NodeId, Vec<Part>> = FxHashMap::default();
        let mut loose = BTreeSet::new();
        for first in graph.nodes().filter(|node| is_near(*node)) {
            let mut left = vec![first];
            let Some(part) = code.head(first, begin) else { continue };
            let mut of_row: FxHashMap<NodeId, Vec<Part>> = FxHashMap::from_iter([(first, vec![part])]);
            loose.insert(first);
            let mut known = BTreeSet::new();
            while let Some(head) = left.pop() {
                if !known.insert(head) {
                    continue;
                }
                let mut shown = FxHashMap::default();
                let Some(ends) = body.walk(head, &is_near, None, &mut shown) else {
                    of_row.clear();
                    break;
                };
                of_row.extend(shown);
                for end in ends {
                    if end == begin && code.may_lack_tail(test) {
                        continue;
                    }
                    let parts = if !is_near(end) {
                        None
                    } else if let Some(parts) = code.join(end, test, begin) {
                        left.push(end);
                        Some(parts)
                    } else {
                        code.tail(end, test).map(|part| vec![part])
                    };
                    let Some(parts) = parts else {
                        of_row.clear();
                        left.clear();
                        break;
                    };
                    of_row.insert(end, parts);
                }
            }
            if !of_row.is_empty() {
                loose.remove(&first);
            }
            for (node, parts) in of_row {
                let known = all.entry(node).or_default();
                if known.len() < parts.len() {
                    *known = parts;
                }
            }
        }
        loose.retain(|node| !all.contains_key(node));
        let begins = |parts: &&Vec<Part>| parts.iter().any(|part| part.begins);
        if loose.len() + all.values().filter(begins).count() < copies.number {
            copies.loose = loose;
        }
        let own: Vec<NodeId> = all.keys().chain(&copies.loose).copied().chain([begin]).collect();
        let [behind, before] = self.near(id, &own);
        let of_them = graph.nodes().filter(|node| behind[node.index()] && before[node.index()]);
        if own.len() > 1 {
            copies.beside = of_them.filter(|node| !self.loops.contains(id, *node)).collect();
            copies.beside.extend(all.keys());
        }
        let header = |other: &LoopId| self.loops.header(*other);
        copies.merged = self.given.loops.iter().copied().filter(|other| all.contains_key(&header(other))).collect();
        copies.shown.extend(all);
    }

    /// Whether a copy is an iteration and all iterations are copies, as the code says: it takes how many there are
    /// modulo the copies of a turn, or, unless that is needed, runs single ones; and nothing else that does anything
    /// stands between the first test and the loop.
    pub(super) fn is_proven(
        &self,
        id: LoopId,
        (begin, by_number): (NodeId, bool),
        code: &Code,
        copies: &Copies,
    ) -> bool {
        let graph = self.loops.graph();
        let [_, before] = self.near(id, &[begin]);
        let in_front =
            |node: &NodeId| before[node.index()] && *node != graph.entry() && !self.loops.contains(id, *node);
        let tests: Vec<NodeId> =
            graph.nodes().filter(|node| in_front(node) && self.given.tests.of(*node).is_some()).collect();
        // What stands behind the beginning of a copy is its own.
        let is_begin = |node: NodeId| copies.loose.contains(&node) || copies.shown.contains_key(&node);
        let behind = reached(graph, tests.iter().copied(), |node| {
            let next = if is_begin(node) { &[] } else { graph.successors(node) }.iter().copied();
            next.filter(move |next| self.goes_on(id, node, *next))
        });
        let is_rest = |node: &NodeId| in_front(node) && behind[node.index()];
        let mut rest = graph.nodes().filter(|node| is_rest(node) && !is_begin(*node) && !tests.contains(node));
        let all_are = !tests.is_empty() && !rest.any(|node| code.works(node));
        let has_single = || copies.begins().any(|node| copies.beside.contains(&node)) || !copies.loose.is_empty();
        let is_single = || !by_number && has_single();
        let mut powers = self.given.modulo.iter().filter(|(node, _)| in_front(node)).map(|(_, power)| *power);
        all_are
            && powers.next().map_or_else(is_single, |first| {
                [first].into_iter().chain(powers).all(|power| power == copies.number as i64)
            })
    }
}
