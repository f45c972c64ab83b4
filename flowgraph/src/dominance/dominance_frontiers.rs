//! Dominance frontiers: where the nodes that a node dominates end.

use crate::graph::Rows;
use crate::{Dominators, Graph, NONE, NodeId};

/// By node `a`: the nodes with an edge from a node that `a` dominates, but which `a` does not strictly dominate. These
/// are the joins at which a value that `a` defines may meet another one.
///
/// Source: Cytron et al., *Efficiently computing static single assignment form and the control dependence graph*, ACM
/// TOPLAS 13(4), 1991. Time and memory are linear in the graph and in the answer, which may itself be quadratic: a
/// nest of n loops that are left from their ends has frontiers of n² / 2 nodes in all.
#[derive(Clone, Debug)]
pub struct DominanceFrontiers {
    rows: Rows,
}

impl DominanceFrontiers {
    /// The frontiers of every node that the entry reaches.
    #[must_use]
    pub fn of(graph: &Graph, dominators: &Dominators) -> DominanceFrontiers {
        let mut pairs: Vec<(u32, NodeId)> = Vec::new();
        // The last join that was added to the frontier of each node.
        let mut last = vec![NONE; graph.node_count()];
        for join in graph.nodes().filter(|&node| dominators.depth(node).is_some()) {
            let end = dominators.idom(join);
            for &predecessor in graph.predecessors(join) {
                if dominators.depth(predecessor).is_none() {
                    continue;
                }
                // All dominators of the predecessor up to the one that dominates the join. Where the path of another
                // predecessor was met, the rest of the path is done.
                let mut above = Some(predecessor);
                while let Some(node) = above.filter(|&node| Some(node) != end) {
                    if std::mem::replace(&mut last[node.index()], join.0) == join.0 {
                        break;
                    }
                    pairs.push((node.0, join));
                    above = dominators.idom(node);
                }
            }
        }
        DominanceFrontiers { rows: Rows::group(graph.node_count(), || pairs.iter().copied()) }
    }

    /// The frontier of `node`, in ascending order; empty for a node that is not reached.
    #[must_use]
    pub fn frontier(&self, node: NodeId) -> &[NodeId] {
        self.rows.row(node.index())
    }

    /// The frontier of a set of nodes, and of that set with its frontier, and so on until nothing is added: where a
    /// variable that is written at `nodes` needs a phi. In ascending order.
    #[must_use]
    pub fn iterated(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let mut found = vec![false; self.rows.row_count()];
        let mut open = nodes.to_vec();
        while let Some(node) = open.pop() {
            for &join in self.frontier(node) {
                if !std::mem::replace(&mut found[join.index()], true) {
                    open.push(join);
                }
            }
        }
        (0u32..).zip(found).filter(|&(_, found)| found).map(|(node, _)| NodeId(node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    #[test]
    fn the_arms_of_a_diamond_end_at_its_join_and_a_loop_at_its_own_header() {
        // 0; while (1) { if (2) 3 else 4; 5 } 6
        let g = graph(7, &[(0, 1), (1, 2), (1, 6), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1)]);
        let frontiers = DominanceFrontiers::of(&g, &Dominators::of(&g));
        let expected: [&[u32]; 7] = [&[], &[1], &[1], &[5], &[5], &[1], &[]];
        for (node, expected) in g.nodes().zip(expected) {
            assert_eq!(frontiers.frontier(node), nodes(expected), "frontier of {node:?}");
        }
        assert_eq!(frontiers.iterated(&nodes(&[3])), nodes(&[1, 5]));
        assert_eq!(frontiers.iterated(&nodes(&[0])), nodes(&[]));
    }
}
