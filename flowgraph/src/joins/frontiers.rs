//! Thread frontiers: where threads may wait while a block runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Graph, NodeId};

/// By node: the nodes in which threads may stand while the node runs, if among all nodes in which threads stand the one
/// of the highest priority (the lowest number) always runs. The highest priority comes first. All of them have a lower
/// priority than the node itself. The successors of the graph's entry start runs of their own, in which no thread waits
/// at first.
///
/// Source: Diamos et al., *SIMD re-convergence at thread frontiers*, MICRO 2011, section 4. Their pass visits the
/// blocks once, in the order of priorities. Here loops are visited until nothing changes, so that what waits after a
/// loop is known in its header too.
///
/// ```
/// use flowgraph::{Builder, NodeId, frontiers, priorities};
///
/// // 0 leads to 1; if (1) { 2 } 3
/// let mut builder = Builder::new(4);
/// for (from, to) in [(0, 1), (1, 2), (1, 3), (2, 3)] {
///     builder.edge(NodeId(from), NodeId(to));
/// }
/// let graph = builder.build(NodeId(0));
/// assert_eq!(frontiers(&graph, &priorities(&graph))[2], [NodeId(3)]);
/// ```
#[must_use]
pub fn frontiers(graph: &Graph, priorities: &[u32]) -> Vec<Vec<NodeId>> {
    let priority = |node: NodeId| priorities[node.index()];
    let mut frontiers: Vec<Vec<NodeId>> = vec![Vec::new(); graph.node_count()];
    let mut reached = vec![false; graph.node_count()];
    let mut to_do = BinaryHeap::new();
    for node in graph.successors(graph.entry()) {
        reached[node.index()] = true;
        to_do.push(Reverse((priority(*node), *node)));
    }
    while let Some(Reverse((_, node))) = to_do.pop() {
        while to_do.peek().is_some_and(|Reverse((_, other))| *other == node) {
            to_do.pop();
        }
        let first = frontiers[node.index()].first().copied();
        let mut standing: Vec<NodeId> =
            graph.successors(node).iter().chain(&frontiers[node.index()]).copied().collect();
        standing.sort_unstable_by_key(|n| priority(*n));
        standing.dedup();
        // The node that runs next: the first of the frontier, or a successor with a higher priority.
        let next = standing.iter().take_while(|n| first.is_none_or(|first| priority(**n) <= priority(first)));
        for next in next.copied() {
            let behind = standing.iter().copied().filter(|n| priority(*n) > priority(next));
            let grows = unite(&mut frontiers[next.index()], behind, priority);
            if grows || !std::mem::replace(&mut reached[next.index()], true) {
                to_do.push(Reverse((priority(next), next)));
            }
        }
    }
    frontiers
}

/// Adds nodes, both in the order of priorities; whether there was a new one.
fn unite(all: &mut Vec<NodeId>, more: impl Iterator<Item = NodeId>, priority: impl Fn(NodeId) -> u32) -> bool {
    let before = all.len();
    for node in more {
        if let Err(at) = all.binary_search_by_key(&priority(node), |n| priority(*n)) {
            all.insert(at, node);
        }
    }
    all.len() > before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};
    use crate::priorities;

    fn of(count: usize, edges: &[(u32, u32)]) -> Vec<Vec<NodeId>> {
        let graph = graph(count, edges);
        frontiers(&graph, &priorities(&graph))
    }

    #[test]
    fn one_arm_runs_while_others_wait_in_the_other() {
        // if (1) { 2 } else { 3 } 4
        let f = of(5, &[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)]);
        assert_eq!(f, [nodes(&[]), nodes(&[]), nodes(&[3]), nodes(&[4]), nodes(&[])]);
    }

    #[test]
    fn threads_that_left_a_loop_wait_behind_its_header() {
        // 1 is the header, 2 the body, 3 what follows.
        let f = of(4, &[(0, 1), (1, 2), (1, 3), (2, 1)]);
        assert_eq!(f[1..], [nodes(&[3]), nodes(&[3]), nodes(&[])]);
    }

    #[test]
    fn functions_are_runs_of_their_own() {
        let f = of(5, &[(0, 1), (0, 3), (1, 2), (3, 4)]);
        assert!(f.iter().all(Vec::is_empty), "{f:?}");
    }

    #[test]
    fn a_short_circuit_waits_in_its_body() {
        // if (1 || 2) 3; 4
        let f = of(5, &[(0, 1), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]);
        assert_eq!(f[1..], [nodes(&[]), nodes(&[3]), nodes(&[4]), nodes(&[])]);
    }
}
