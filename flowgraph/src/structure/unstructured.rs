//! Unstructured edges, and the regions around them.

use std::collections::BTreeSet;

use crate::{Dominators, Graph, Loops, NodeId, PostDominators};

/// An edge that makes a graph unstructured, and by which of three conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnstructuredEdge {
    /// Where it starts.
    pub from: NodeId,
    /// Where it leads.
    pub to: NodeId,
    /// It leads from a branch to a join, and neither dominates or post-dominates the other.
    pub crosses: bool,
    /// It leads into a loop at a node that does not dominate all of it.
    pub into_loop: bool,
    /// It leads out of a loop from a node that does not post-dominate all of it.
    pub out_of_loop: bool,
}

/// The edges that make a graph unstructured, in ascending order, when control may leave at the exits that `post` was
/// made with.
///
/// Source: Anantpur and Govindarajan, *Taming control divergence in GPUs through control flow linearization*, CC 2014,
/// definition 1. A loop is a strongly connected part, those inside found with the header taken out, so that irreducible
/// ones count. The definition is not complete: a statement before a `goto`, A → X, A → B, B → E, B → Z, E → X, X → Z,
/// has no such edge and is not structured all the same. [`Reduction`](crate::Reduction) decides; this names where to
/// look. O(m d) for m edges, and O(n d) to look at loops nested d deep.
#[must_use]
pub fn unstructured_edges(
    graph: &Graph,
    loops: &Loops,
    dominators: &Dominators,
    post: &PostDominators,
) -> Vec<UnstructuredEdge> {
    // What dominates or post-dominates the nearest that is common to all members does so for all.
    let heads: Vec<Option<NodeId>> = loops
        .ids()
        .map(|id| loops.members(id).iter().copied().map(Some).reduce(|a, b| dominators.nearest_common(a?, b?))?)
        .collect();
    let feet: Vec<Option<NodeId>> = loops
        .ids()
        .map(|id| loops.members(id).iter().copied().map(Some).reduce(|a, b| post.nearest_common(a?, b?))?)
        .collect();
    let around = |node| std::iter::successors(loops.innermost(node), |&id| loops.parent(id));
    let mut found = Vec::new();
    for &from in loops.order() {
        for &to in graph.successors(from) {
            // What the entry does not reach is no predecessor.
            let joins = graph.predecessors(to).iter().filter(|&&p| dominators.depth(p).is_some()).count() > 1;
            let related = dominators.dominates(from, to)
                || dominators.dominates(to, from)
                || post.post_dominates(from, to)
                || post.post_dominates(to, from);
            let edge = UnstructuredEdge {
                from,
                to,
                crosses: graph.successors(from).len() > 1 && joins && !related,
                into_loop: around(to).any(|id| {
                    let dominates = heads[id.index()].is_some_and(|head| dominators.dominates(to, head));
                    !loops.contains(id, from) && !dominates
                }),
                out_of_loop: around(from).any(|id| {
                    let dominates = feet[id.index()].is_some_and(|foot| post.post_dominates(from, foot));
                    !loops.contains(id, to) && !dominates
                }),
            };
            if edge.crosses || edge.into_loop || edge.out_of_loop {
                found.push(edge);
            }
        }
    }
    found.sort_unstable();
    found
}

/// The last node, not one of them, that every path to each of `nodes` goes through: their common immediate dominator.
/// `None` where there is none, as when the entry is among them, and for nodes that are not reached. O(k log n) for k.
#[must_use]
pub fn common_dominator(dominators: &Dominators, nodes: &[NodeId]) -> Option<NodeId> {
    let common = nodes.iter().copied().map(Some).reduce(|a, b| dominators.nearest_common(a?, b?))??;
    if nodes.contains(&common) { dominators.idom(common) } else { Some(common) }
}

/// The first node, not one of them, that every path from each of `nodes` to the end goes through: their common
/// immediate post-dominator. `None` where that is the end itself. O(k log n) for k nodes.
#[must_use]
pub fn common_post_dominator(post: &PostDominators, nodes: &[NodeId]) -> Option<NodeId> {
    let common = nodes.iter().copied().map(Some).reduce(|a, b| post.nearest_common(a?, b?))??;
    if nodes.contains(&common) { post.ipdom(common) } else { Some(common) }
}

/// A part of a graph with one node before it and one behind, between which all its paths run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnstructuredRegion {
    /// The node from which all edges into the region come: the common immediate dominator of the members, not one of
    /// them. `None` when the entry of the graph is a member.
    pub before: Option<NodeId>,
    /// The node to which all edges out of the region lead: the common immediate post-dominator of the members, not one
    /// of them. `None` when control ends inside.
    pub behind: Option<NodeId>,
    /// In ascending order.
    pub members: Vec<NodeId>,
}

impl UnstructuredRegion {
    /// The smallest region with all of `nodes`, which the entry must reach: those in the paper's definition 4.
    ///
    /// It grows from the nodes by what an edge leads from, up to their common immediate dominator, and by what an edge
    /// leads to, up to their common immediate post-dominator. Where an edge of the region leads back to the former, or
    /// one from the latter leads into it (a loop around it), that is a member too, and the bounds move out. What grows
    /// in must be in, so it is the least of all such regions. At most n rounds of O((n + m) log n).
    ///
    /// Source: the paper named at [`unstructured_edges`], algorithm 2. There dominance is not said to be strict, and
    /// the blocks "that can reach" and "reachable" may lie beyond the bounds, by which a region in a loop would take in
    /// what follows it.
    #[must_use]
    pub fn around(
        graph: &Graph,
        dominators: &Dominators,
        post: &PostDominators,
        nodes: &[NodeId],
    ) -> UnstructuredRegion {
        let mut members: BTreeSet<NodeId> = nodes.iter().copied().collect();
        loop {
            let list: Vec<NodeId> = members.iter().copied().collect();
            let (before, behind) = (common_dominator(dominators, &list), common_post_dominator(post, &list));
            // One step at a time: what an edge leads to from a node that has not moved the bounds yet may be the bound.
            for &node in &list {
                let from = graph.predecessors(node).iter();
                let from = from.filter(|&&p| Some(p) != before && dominators.depth(p).is_some());
                let to = graph.successors(node).iter().filter(|&&s| Some(s) != behind);
                members.extend(from.chain(to));
            }
            if members.len() == list.len() {
                return UnstructuredRegion { before, behind, members: list };
            }
        }
    }

    /// Whether `node` is a member. O(log n).
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.members.binary_search(&node).is_ok()
    }
}

/// The smallest region around each unstructured edge, each once, larger ones first; any two are disjoint or nested.
///
/// The paper holds that the smallest regions are so by themselves. Yet with A → C, A → D; B → C, B → E; C → B, C → E;
/// D → B, edge A → C has A, B, C, D and edge C → E has B, C, D, E, as the ends of an edge are to be members. Such
/// regions become the smallest one around both. O(k² n) for k edges and n nodes, and a region more for each that grows.
#[must_use]
pub fn unstructured_regions(
    graph: &Graph,
    dominators: &Dominators,
    post: &PostDominators,
    edges: &[UnstructuredEdge],
) -> Vec<UnstructuredRegion> {
    let around = |nodes: &[NodeId]| UnstructuredRegion::around(graph, dominators, post, nodes);
    let mut found: Vec<UnstructuredRegion> = Vec::new();
    let mut work: Vec<UnstructuredRegion> = edges.iter().map(|edge| around(&[edge.from, edge.to])).collect();
    work.sort_unstable();
    work.dedup();
    while let Some(next) = work.pop() {
        let overlaps = |other: &UnstructuredRegion| {
            let shared = next.members.iter().filter(|&&node| other.contains(node)).count();
            shared > 0 && shared < next.members.len().min(other.members.len())
        };
        if let Some(other) = found.iter().position(overlaps) {
            work.push(around(&[next.members, found.swap_remove(other).members].concat()));
        } else if !found.contains(&next) {
            found.push(next);
        }
    }
    found.sort_unstable_by(|a, b| b.members.len().cmp(&a.members.len()).then_with(|| a.cmp(b)));
    found
}
