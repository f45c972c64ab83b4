//! The parts of a graph that are structured, between two nodes each.

use std::collections::BTreeSet;

use crate::{Builder, Dominators, Graph, NodeId, PostDominators, Reduction};

/// A structured part of a graph: all that control can pass between its first node and its last one, both included.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StructuredRegion {
    /// Where control comes in: the immediate dominator of `last`.
    pub first: NodeId,
    /// Where control leaves: the immediate post-dominator of `first`.
    pub last: NodeId,
    /// In ascending order, both bounds included.
    pub members: Vec<NodeId>,
}

impl StructuredRegion {
    /// All that lies between two nodes, if the first is the immediate dominator of the last and that the immediate
    /// post-dominator of the first, every edge into it leads to the first, every edge out of it comes from the last,
    /// and it reduces to one node ([`Reduction`]). O((n + m) d log n) for n members with m edges and branches of d
    /// ways.
    ///
    /// Source: the paper named at [`unstructured_edges`](crate::unstructured_edges), definition 5 and algorithm 3.
    /// There the bounds have to be the *immediate* dominator and post-dominator of each member, which they can be of
    /// arms of one block only, and the first node alone is asked for unstructured edges. The paper wants a part without
    /// such edges. As these do not name all that is unstructured, the reduction decides here; it leaves no part that
    /// has one.
    #[must_use]
    pub fn between(
        graph: &Graph,
        dominators: &Dominators,
        post: &PostDominators,
        first: NodeId,
        last: NodeId,
    ) -> Option<StructuredRegion> {
        if first == last || post.ipdom(first) != Some(last) || dominators.idom(last) != Some(first) {
            return None;
        }
        let forward = walk(first, last, |node| graph.successors(node));
        let backward = walk(last, first, |node| graph.predecessors(node));
        let members: BTreeSet<NodeId> =
            forward.union(&backward).copied().filter(|&node| dominators.depth(node).is_some()).collect();
        // An edge may come in from behind the last node, in a loop around both: then there are two ways in.
        let inside = |node: &NodeId| dominators.depth(*node).is_none() || members.contains(node);
        let closed = |&node: &NodeId| {
            dominators.dominates(first, node)
                && post.post_dominates(last, node)
                && (node == first || graph.predecessors(node).iter().all(inside))
                && (node == last || graph.successors(node).iter().all(inside))
        };
        if !members.iter().all(closed) {
            return None;
        }
        let members: Vec<NodeId> = members.into_iter().collect();
        let (part, exit) = part(graph, &members, first, last);
        Reduction::of(&part, &[exit]).is_structured().then_some(StructuredRegion { first, last, members })
    }

    /// Whether `node` is a member. O(log n).
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.members.binary_search(&node).is_ok()
    }
}

/// The structured parts of a graph that begin at one of `nodes`, each between a node and its immediate post-dominator,
/// larger ones first. Two of them are apart, or one is inside the other, or the last node of one is the first of the
/// other: then they share that node, and the loop at whose head it is. O(k n m) at worst for k nodes.
#[must_use]
pub fn structured_regions(
    graph: &Graph,
    dominators: &Dominators,
    post: &PostDominators,
    nodes: &[NodeId],
) -> Vec<StructuredRegion> {
    let between = |&first: &NodeId| StructuredRegion::between(graph, dominators, post, first, post.ipdom(first)?);
    let mut found: Vec<StructuredRegion> = nodes.iter().filter_map(between).collect();
    found.sort_unstable_by(|a, b| b.members.len().cmp(&a.members.len()).then_with(|| a.cmp(b)));
    found.dedup();
    found
}

/// What is reached from `start`, both ends included, without going on from `end`.
fn walk<'a>(start: NodeId, end: NodeId, next: impl Fn(NodeId) -> &'a [NodeId]) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::from([start, end]);
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        open.extend(next(node).iter().copied().filter(|&to| seen.insert(to)));
    }
    seen
}

/// The members as a graph of their own, and the number of the last one there.
fn part(graph: &Graph, members: &[NodeId], first: NodeId, last: NodeId) -> (Graph, NodeId) {
    let number = |node: NodeId| members.binary_search(&node).ok().map(|at| NodeId(at as u32));
    let mut builder = Builder::new(members.len());
    for &from in members {
        for (a, b) in graph.successors(from).iter().filter_map(|&to| Some((number(from)?, number(to)?))) {
            builder.edge(a, b);
        }
    }
    let at = |node| number(node).expect("both bounds are members");
    (builder.build(at(first)), at(last))
}
