//! Orders of the nodes in which loops stay together.

use crate::{Graph, Loops, NodeId};

/// The nodes that the entry reaches, in topological order except for back edges. The members of each loop (see
/// [`Loops`]) are contiguous, its header first: every edge leads forward, or from a member of a loop to its header.
/// Where that leaves a choice, the first successor's side comes first.
///
/// Source: the *weak topological ordering* of Bourdoncle, *Efficient chaotic iteration strategies with widenings*,
/// 1993: what its figure 4 gets by decomposing components recursively (O(n + m) per level of nesting) is read here off
/// the loop forest, so O((n + m) log n) however deep loops nest.
#[must_use]
pub fn loop_order(graph: &Graph) -> Vec<NodeId> {
    Loops::of(graph).order().to_vec()
}

/// By node: its priority for thread frontiers, 0 for the entry, which is the highest; no two nodes share one.
///
/// Source: Diamos et al., *SIMD re-convergence at thread frontiers*, MICRO 2011: threads that wait in the block of the
/// highest priority run first, and any topological order that ignores back edges will do. This is the place in
/// [`loop_order`]. A plain reverse postorder would be topological too, but may put what follows a loop before the
/// loop's body; threads that leave the loop early would then run ahead instead of waiting for the others. Nodes that
/// the entry does not reach come after all others, in ascending order.
#[must_use]
pub fn priorities(graph: &Graph) -> Vec<u32> {
    const UNSET: u32 = u32::MAX;
    let mut priorities = vec![UNSET; graph.node_count()];
    let mut next = 0;
    for node in loop_order(graph).into_iter().chain(graph.nodes()) {
        if priorities[node.index()] == UNSET {
            priorities[node.index()] = next;
            next += 1;
        }
    }
    priorities
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    #[test]
    fn arms_come_in_the_order_of_the_successors() {
        assert_eq!(loop_order(&graph(4, &[(0, 2), (0, 1), (1, 3), (2, 3)])), nodes(&[0, 2, 1, 3]));
    }

    #[test]
    fn what_follows_a_loop_comes_after_its_body_whichever_successor_it_is() {
        // 1 is the header, 2 the body, 3 what follows.
        assert_eq!(loop_order(&graph(4, &[(0, 1), (1, 2), (1, 3), (2, 1)])), nodes(&[0, 1, 2, 3]));
        assert_eq!(loop_order(&graph(4, &[(0, 1), (1, 3), (1, 2), (2, 1)])), nodes(&[0, 1, 2, 3]));
    }

    #[test]
    fn an_inner_loop_stays_together() {
        // The outer loop 1 holds 2 <-> 3 and 4; 3 leaves both loops to 5.
        let g = graph(6, &[(0, 1), (1, 5), (1, 2), (2, 4), (2, 3), (3, 5), (3, 2), (4, 1)]);
        assert_eq!(loop_order(&g), nodes(&[0, 1, 2, 3, 4, 5]));
        assert_eq!(priorities(&g), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn nodes_that_are_not_reached_have_the_lowest_priorities() {
        let g = graph(5, &[(0, 4), (4, 2), (1, 2), (3, 3)]);
        assert_eq!(loop_order(&g), nodes(&[0, 4, 2]));
        assert_eq!(priorities(&g), [0, 3, 2, 4, 1]);
    }
}
