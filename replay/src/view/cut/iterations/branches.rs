//! Branches that compare what a runtime gave a thread.

use std::collections::BTreeSet;

use flowgraph::{Graph, LoopId, Loops, NodeId, reached};
use rustc_hash::FxHashMap;

/// Branches that compare what a runtime gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tests(pub FxHashMap<NodeId, Test>);

/// One of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Test {
    /// Whether a constant was added to what it compares: an iteration came before it, or it looks further ahead.
    pub is_stepped: bool,
    /// Whether the number of threads was added to what it compares: of iterations that are dealt out in turn, one came
    /// before it.
    pub is_counted: bool,
    /// Whether it compares two values that hang on the thread's number, and both as they are.
    pub is_of_bounds: bool,
    /// Whether it compares two values that hang on the thread's number, whatever was made of it.
    pub is_of_two: bool,
    /// Whether it asks whether a thread's share is more than so many iterations, one or more.
    pub is_of_share: bool,
    /// Whether it asks whether two values are the same.
    pub is_of_equality: bool,
    /// Whether no lane took its other side.
    pub is_one_way: bool,
    /// How far the one is from a number that it compares with another which is less far.
    pub ahead: Option<i64>,
}

impl Test {
    /// Whether it asks whether there is an iteration so many further on.
    pub fn is_of_next(self) -> bool {
        self.is_stepped && self.is_of_bounds && self.is_of_two
    }
}

impl Tests {
    /// Whether the branch at the end of this node asks whether there is an iteration so many further on, or whether a
    /// thread's share is more than so many.
    pub fn is_rung(&self, node: NodeId) -> bool {
        self.of(node).is_some_and(|test| test.is_of_next() || test.is_of_share)
    }

    /// Whether it asks whether there is any iteration.
    pub fn is_of_first(&self, node: NodeId) -> bool {
        self.of(node).is_some_and(|test| test.is_of_bounds && !test.is_stepped)
    }

    /// The branch at the end of this node, if it is one.
    pub fn of(&self, node: NodeId) -> Option<Test> {
        self.0.get(&node).copied()
    }
}

/// Where iterations are of which a compiler made no turn of a loop: one behind the other, each with its own test of
/// whether there is another.
pub(super) struct Rungs<'a> {
    pub graph: &'a Graph,
    pub loops: &'a Loops,
    /// The loops that turn by what a runtime gave.
    pub given: &'a [LoopId],
    pub tests: &'a Tests,
    /// Nodes with such a test in the middle.
    pub inner: &'a BTreeSet<NodeId>,
    /// Where threads of a team wait for each other.
    pub barriers: &'a BTreeSet<NodeId>,
}

impl Rungs<'_> {
    /// The nodes, of those that `is_known` holds, behind an iteration that is neither the beginning nor the rest of a
    /// loop: none comes before or behind it, up to where threads wait, or ask anew.
    pub fn alone(&self, is_known: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let graph = self.graph;
        let is_near = |from: NodeId| {
            let behind = self.reached(from, |node| graph.successors(node));
            let before = self.reached(from, |node| graph.predecessors(node));
            let members = self.given.iter().flat_map(|id| self.loops.members(*id));
            members.into_iter().any(|node| behind[node.index()] || before[node.index()])
        };
        let nodes = graph.nodes().filter(|node| is_known(*node) && self.is_rung(*node));
        nodes.filter(|node| !is_near(*node)).collect()
    }

    /// Whether a test behind this loop asks for a further iteration, of which no lane had one, and does not say where
    /// that would be: the loop may be in one of the source's that no lane turned.
    pub fn may_be_inside(&self, id: LoopId) -> bool {
        let Rungs { graph, loops, .. } = self;
        let is_it = |node: NodeId| self.is_rung(node) && self.tests.of(node).is_some_and(|test| test.is_one_way);
        let exits = loops.members(id).iter().flat_map(|node| graph.successors(*node)).copied();
        exits.filter(|next| !loops.contains(id, *next)).any(|next| {
            let behind = self.reached(next, |node| graph.successors(node));
            graph.nodes().any(|node| behind[node.index()] && is_it(node))
        })
    }

    fn is_rung(&self, node: NodeId) -> bool {
        let is_it = self.inner.contains(&node) || self.tests.is_rung(node);
        is_it && !self.given.iter().any(|id| self.loops.contains(*id, node)) && !self.turns(node)
    }

    /// Whether a side of the branch leads to the head of a loop that it is in.
    fn turns(&self, node: NodeId) -> bool {
        let Rungs { graph, loops, .. } = self;
        let around = || std::iter::successors(loops.innermost(node), |id| loops.parent(*id));
        let is_head = |side: NodeId| around().any(|id| loops.header(id) == side);
        graph
            .successors(node)
            .iter()
            .any(|side| is_head(*side) || graph.successors(*side).iter().any(|to| is_head(*to)))
    }

    /// What can be reached from a node without a wait, or another test of whether there are any iterations.
    fn reached<'n>(&self, from: NodeId, on: impl Fn(NodeId) -> &'n [NodeId]) -> Vec<bool> {
        let is_end = |node: NodeId| self.barriers.contains(&node) || self.tests.is_of_first(node);
        let on = |node: NodeId| if node != from && is_end(node) { &[] } else { on(node) };
        reached(self.graph, [from], |node| on(node).iter().copied())
    }
}
