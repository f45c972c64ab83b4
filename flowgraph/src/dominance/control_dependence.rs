//! Control dependence: which branches decide whether a node runs.

use crate::graph::Rows;
use crate::{Graph, NONE, NodeId, PostDominators};

/// For each node the branches that it depends on, and for each branch the nodes that depend on it. `b` depends on `a`
/// when `b` post-dominates a successor of `a`, but does not strictly post-dominate `a`: one successor of `a` leads to
/// `b` for certain, another need not. The header of a loop may depend on itself.
///
/// The branches that `b` depends on are its post-dominance frontier.
///
/// Source: Ferrante, Ottenstein and Warren, *The program dependence graph and its use in optimization*, ACM TOPLAS
/// 9(3),
/// 1987. Time and memory are linear in the graph and in the answer, which may be quadratic in nests of loops.
#[derive(Clone, Debug)]
pub struct ControlDependence {
    branches: Rows,
    dependents: Rows,
}

impl ControlDependence {
    /// The dependences between all nodes of `graph`, reached or not, for the exits that `post` was made with.
    #[must_use]
    pub fn of(graph: &Graph, post: &PostDominators) -> ControlDependence {
        // (branch, dependent)
        let mut pairs: Vec<(u32, NodeId)> = Vec::new();
        // The last branch that each node was found to depend on.
        let mut last = vec![NONE; graph.node_count()];
        for branch in graph.nodes() {
            let end = post.ipdom(branch);
            for &successor in graph.successors(branch) {
                let mut above = Some(successor);
                while let Some(node) = above.filter(|&node| Some(node) != end) {
                    if std::mem::replace(&mut last[node.index()], branch.0) == branch.0 {
                        break;
                    }
                    pairs.push((branch.0, node));
                    above = post.ipdom(node);
                }
            }
        }
        let count = graph.node_count();
        ControlDependence {
            branches: Rows::group(count, || pairs.iter().map(|&(branch, node)| (node.0, NodeId(branch)))),
            dependents: Rows::group(count, || pairs.iter().copied()),
        }
    }

    /// The branches that `node` depends on, in ascending order.
    #[must_use]
    pub fn branches(&self, node: NodeId) -> &[NodeId] {
        self.branches.row(node.index())
    }

    /// The nodes that depend on `branch`, in no particular order.
    #[must_use]
    pub fn dependents(&self, branch: NodeId) -> &[NodeId] {
        self.dependents.row(branch.index())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    #[test]
    fn arms_depend_on_their_branch_and_a_loop_on_its_own_test() {
        // 0; while (1) { if (2) 3 else 4; 5 } 6
        let g = graph(7, &[(0, 1), (1, 2), (1, 6), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1)]);
        let dependence = ControlDependence::of(&g, &PostDominators::of(&g, &nodes(&[6])));
        let expected: [&[u32]; 7] = [&[], &[1], &[1], &[2], &[2], &[1], &[]];
        for (node, expected) in g.nodes().zip(expected) {
            assert_eq!(dependence.branches(node), nodes(expected), "branches of {node:?}");
        }
        let mut of_loop = dependence.dependents(NodeId(1)).to_vec();
        of_loop.sort_unstable();
        assert_eq!(of_loop, nodes(&[1, 2, 5]));
    }
}
