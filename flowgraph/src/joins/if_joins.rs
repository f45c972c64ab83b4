//! Where the arms of a branch meet, when paths that break, continue or return early are left out.

use crate::{Dominators, Graph, Join, Loops, NodeId, StructuredJoins};

/// For each branch, the node at which its arms meet for a compiler that knows them as the arms of an `if`.
///
/// A [join](StructuredJoins::join) must lie on every path to the end of the turn. So in `while (…) { if (a) { if (b)
/// continue; x } y }` the join of the branch at a is the end of the turn, since the path through `continue` does not
/// reach y. Yet every other path does, and a compiler that has the nesting of the source lets those lanes wait for each
/// other at y. So here, where the join is the end of the turn or of the graph:
///
/// - the join of a branch b is the last node, in [`crate::loop_order`], that b immediately dominates, that stands in
///   the same turn (or heads a loop there), and to which two edges or more lead, not counting those back to a loop's
///   head;
/// - if every path from b that does not reach it stays among nodes that b dominates, until it returns to the head of
///   the innermost loop around b (`continue`), leaves that loop (`break`), or ends (`return`). Else control flow is not
///   nested as the arms of an `if` are, and the branch keeps its join.
///
/// So a lane of the branch reaches the join, or is known to have gone to the end of the turn or out of the loop: that
/// is the condition itself, and no other path leaves the nodes that b dominates. Source: the rule by which arms meet is
/// that of Ramsey, *Beyond Relooper: recursive translation of unstructured control flow to structured control flow*
/// (ICFP 2022): a node with several forward edges follows the block that immediately dominates it. O(n s) at worst,
/// where s is how many nodes a branch dominates.
#[derive(Clone, Debug)]
pub struct IfJoins {
    /// By node.
    joins: Vec<Option<Join>>,
}

impl IfJoins {
    /// The joins of every node.
    #[must_use]
    pub fn of(graph: &Graph, structured: &StructuredJoins) -> IfJoins {
        let loops = structured.loops();
        let dominators = Dominators::of(graph);
        let last_meetings = last_meetings(graph, loops, &dominators);
        let join = |node: NodeId| match (structured.join(node), last_meetings[node.index()]) {
            (None | Some(Join::TurnEnd(_)), Some(meeting)) if is_nested(graph, loops, &dominators, node, meeting) => {
                Some(Join::Node(meeting))
            }
            (join, _) => join,
        };
        IfJoins { joins: graph.nodes().map(join).collect() }
    }

    /// Where the arms of a branch meet; see the type.
    #[must_use]
    pub fn join(&self, node: NodeId) -> Option<Join> {
        self.joins[node.index()]
    }
}

/// By node: the last that it immediately dominates at which paths meet, in its own turn.
fn last_meetings(graph: &Graph, loops: &Loops, dominators: &Dominators) -> Vec<Option<NodeId>> {
    let mut meetings = vec![None; graph.node_count()];
    for &node in loops.order() {
        let Some(above) = dominators.idom(node) else { continue };
        let own = loops.headed_by(node);
        let around = own.map_or(loops.innermost(node), |id| loops.parent(id));
        let goes_back = |from: NodeId| own.is_some_and(|id| loops.contains(id, from));
        let mut forward: Vec<NodeId> = graph.predecessors(node).to_vec();
        forward.retain(|&from| dominators.depth(from).is_some() && !goes_back(from));
        forward.dedup();
        if around == loops.innermost(above) && forward.len() > 1 {
            meetings[above.index()] = Some(node);
        }
    }
    meetings
}

/// Whether all paths from a branch reach a meeting, go on to the end of the turn, or leave the loop, and pass only
/// nodes that the branch dominates before.
fn is_nested(graph: &Graph, loops: &Loops, dominators: &Dominators, branch: NodeId, meeting: NodeId) -> bool {
    let around = loops.innermost(branch);
    let leaves = |to: NodeId| around.is_some_and(|id| !loops.contains(id, to) || loops.header(id) == to);
    let mut seen = std::collections::BTreeSet::from([meeting]);
    let mut work = graph.successors(branch).to_vec();
    while let Some(node) = work.pop() {
        if leaves(node) || !seen.insert(node) {
            continue;
        }
        if node == branch || !dominators.dominates(branch, node) {
            return false;
        }
        work.extend(graph.successors(node));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::graph;

    fn joins(count: u32, edges: &[(u32, u32)], exit: u32) -> (StructuredJoins, IfJoins) {
        let g = graph(count as usize, edges);
        let structured = StructuredJoins::of(&g, &[NodeId(exit)]);
        let found = IfJoins::of(&g, &structured);
        (structured, found)
    }

    #[test]
    fn who_continues_is_not_waited_for_at_the_end_of_the_arm() {
        // while (0) { if (1) { if (2) continue; 3 } 4 } 5
        let (structured, found) = joins(6, &[(0, 1), (0, 5), (1, 2), (1, 4), (2, 0), (2, 3), (3, 4), (4, 0)], 5);
        assert!(matches!(structured.join(NodeId(1)), Some(Join::TurnEnd(_))));
        assert_eq!(found.join(NodeId(1)), Some(Join::Node(NodeId(4))));
        assert_eq!(found.join(NodeId(2)), structured.join(NodeId(2)));
    }

    #[test]
    fn who_returns_early_is_not_waited_for_either() {
        // if (0) { if (1) return by 5; 2 } 3; 4
        let edges = [(0, 1), (0, 3), (1, 5), (1, 2), (2, 3), (3, 4)];
        let g = graph(6, &edges);
        let structured = StructuredJoins::of(&g, &[NodeId(4), NodeId(5)]);
        assert_eq!(structured.join(NodeId(0)), None);
        assert_eq!(IfJoins::of(&g, &structured).join(NodeId(0)), Some(Join::Node(NodeId(3))));
    }

    #[test]
    fn what_is_not_nested_has_the_join_that_it_had() {
        // 0 leads to 1 and 2; both lead to 3 and 4, which return; 1 to 3 by 5 as well.
        let edges = [(0, 1), (0, 2), (1, 3), (1, 5), (5, 3), (5, 4), (2, 3), (2, 4)];
        let g = graph(6, &edges);
        let structured = StructuredJoins::of(&g, &[NodeId(3), NodeId(4)]);
        let found = IfJoins::of(&g, &structured);
        assert_eq!(found.join(NodeId(1)), None);
        assert_eq!(found.join(NodeId(2)), None);
    }
}
