//! Unstructured edges.

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
