//! Post-dominators: which nodes every path from a node to the end goes through.

use crate::{Builder, Components, Dominators, Graph, NodeId};

/// The post-dominator tree of a graph. `a` post-dominates `b` when every path from `b` to the *virtual exit* goes
/// through `a`; each node post-dominates itself. The immediate post-dominator of a branch is where its paths meet again
/// at the latest, whichever side they take.
///
/// Every exit has an edge to the virtual exit, as the STOP node of Ferrante, Ottenstein and Warren, *The program
/// dependence graph and its use in optimization*, ACM TOPLAS 9(3), 1987. An exit may have successors too.
///
/// # Endless loops and dead ends
/// From some nodes no path may lead to an exit. Follow their edges for long enough, and a strongly connected component
/// is reached that no edge leaves. Each such component without an exit gets one *pseudo exit*, a node with an edge to
/// the virtual exit, so that every node has post-dominators:
///
/// - a dead end (one node without successors) is its own pseudo exit;
/// - in an endless loop, let the header be the node through which a depth-first walk enters (from the entry, successors
///   in their order). The loop is taken to end where an iteration ends: at the node from which an edge returns to the
///   header, if there is exactly one; else at the header, where the iterations meet.
///
/// So the arms of an `if` in `for (;;) { if … else …; join }` meet at the join, as in a loop that ends. LLVM's
/// `PostDominatorTree` takes the last node of a depth-first walk instead; that agrees for a loop without branches, but
/// with branches the last node may be an arm, and the other arm would then meet it only an iteration later.
///
/// Source: dominators of the reversed graph, see [`Dominators`]. O((n + m) log n). Nodes that the entry does not reach
/// have post-dominators like all others, and change nothing for those that it reaches.
#[derive(Clone, Debug)]
pub struct PostDominators {
    /// Of the reversed graph, whose entry is the virtual exit, numbered after all nodes.
    reversed: Dominators,
    virtual_exit: NodeId,
    pseudo_exits: Vec<NodeId>,
}

impl PostDominators {
    /// The post-dominators of every node, when control may leave at `exits` (any number of them, also none).
    ///
    /// # Panics
    /// When an exit is not a node of the graph.
    #[must_use]
    pub fn of(graph: &Graph, exits: &[NodeId]) -> PostDominators {
        let n = graph.node_count();
        if let Some(outside) = exits.iter().find(|exit| exit.index() >= n) {
            panic!("exit {outside:?} in a graph of {n} nodes");
        }
        let pseudo_exits = pseudo_exits(graph, exits);
        let virtual_exit = NodeId(n as u32);
        let mut builder = Builder::new(n + 1);
        for &exit in exits.iter().chain(&pseudo_exits) {
            builder.edge(virtual_exit, exit);
        }
        for node in graph.nodes() {
            for &successor in graph.successors(node) {
                builder.edge(successor, node);
            }
        }
        let reversed = Dominators::of(&builder.build(virtual_exit));
        PostDominators { reversed, virtual_exit, pseudo_exits }
    }

    /// The immediate post-dominator: the first node, other than itself, that every path from `node` to the end goes
    /// through.
    /// `None` when that is the virtual exit.
    #[must_use]
    pub fn ipdom(&self, node: NodeId) -> Option<NodeId> {
        self.real(self.reversed.idom(node))
    }

    /// Whether every path from `b` to the virtual exit goes through `a`. O(1).
    #[must_use]
    pub fn post_dominates(&self, a: NodeId, b: NodeId) -> bool {
        self.reversed.dominates(a, b)
    }

    /// How many nodes post-dominate `node`, itself included: 1 when its immediate post-dominator is the virtual exit.
    #[must_use]
    pub fn depth(&self, node: NodeId) -> u32 {
        self.reversed.depth(node).expect("every node has a path to the virtual exit")
    }

    /// The first node that every path from `a` and every path from `b` goes through; `None` when that is the virtual
    /// exit. O(log n).
    #[must_use]
    pub fn nearest_common(&self, a: NodeId, b: NodeId) -> Option<NodeId> {
        self.real(self.reversed.nearest_common(a, b))
    }

    /// The nodes that were given an edge to the virtual exit because none of the exits could be reached; see above. In
    /// topological order of their components.
    #[must_use]
    pub fn pseudo_exits(&self) -> &[NodeId] {
        &self.pseudo_exits
    }

    fn real(&self, node: Option<NodeId>) -> Option<NodeId> {
        node.filter(|&node| node != self.virtual_exit)
    }
}

/// One node of each component that no edge leaves and that has no exit.
fn pseudo_exits(graph: &Graph, exits: &[NodeId]) -> Vec<NodeId> {
    let components = Components::of(graph);
    let mut ends = vec![true; components.count()];
    for &exit in exits {
        ends[components.component(exit).index()] = false;
    }
    for node in graph.nodes() {
        let component = components.component(node);
        if graph.successors(node).iter().any(|&successor| components.component(successor) != component) {
            ends[component.index()] = false;
        }
    }
    let endless = components.ids().filter(|component| ends[component.index()]);
    endless
        .map(|component| {
            let header = components.members(component)[0];
            let mut latches =
                graph.predecessors(header).iter().filter(|&&node| components.component(node) == component);
            match (latches.next(), latches.next()) {
                (Some(&only), None) => only,
                _ => header,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    fn ipdoms(edges: &[(u32, u32)], count: u32, exits: &[u32]) -> Vec<Option<u32>> {
        let post = PostDominators::of(&graph(count as usize, edges), &nodes(exits));
        (0..count).map(|node| post.ipdom(NodeId(node)).map(|p| p.0)).collect()
    }

    #[test]
    fn the_arms_of_a_diamond_meet_at_its_join() {
        assert_eq!(ipdoms(&[(0, 1), (0, 2), (1, 3), (2, 3)], 4, &[3]), [Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn arms_that_both_return_meet_at_the_virtual_exit() {
        assert_eq!(ipdoms(&[(0, 1), (0, 2)], 3, &[1, 2]), [None, None, None]);
    }

    #[test]
    fn the_body_of_a_loop_meets_at_its_header_and_the_header_at_the_way_out() {
        assert_eq!(ipdoms(&[(0, 1), (1, 2), (2, 1), (1, 3)], 4, &[3]), [Some(1), Some(3), Some(1), None]);
    }

    /// `if (a || b) X; Y`: a = 0, b = 1, X = 2, Y = 3.
    #[test]
    fn a_short_circuit_meets_after_the_statement() {
        assert_eq!(ipdoms(&[(0, 2), (0, 1), (1, 2), (1, 3), (2, 3)], 4, &[3]), [Some(3), Some(3), Some(3), None]);
    }

    #[test]
    fn an_exit_may_have_successors() {
        assert_eq!(ipdoms(&[(0, 1), (1, 2)], 3, &[1, 2]), [Some(1), None, None]);
    }

    #[test]
    fn an_endless_loop_ends_where_its_turn_ends() {
        // 1 branches to 2 and 3, which meet at 4, which leads back to the start.
        let edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1)];
        assert_eq!(ipdoms(&edges, 5, &[]), [Some(1), Some(4), Some(4), Some(4), None]);
        let post = PostDominators::of(&graph(5, &edges), &[]);
        assert_eq!(post.pseudo_exits(), nodes(&[4]));
        assert_eq!((post.depth(NodeId(4)), post.depth(NodeId(0))), (1, 3));
    }

    #[test]
    fn an_endless_loop_with_two_ways_back_ends_at_its_header() {
        let edges = [(0, 1), (1, 2), (2, 1), (2, 3), (3, 1)];
        assert_eq!(ipdoms(&edges, 4, &[]), [Some(1), None, Some(1), Some(1)]);
    }

    #[test]
    fn an_endless_loop_inside_an_endless_loop_is_not_where_it_ends() {
        // 2 <-> 3 is an inner loop: the turn of the outer one ends at 4.
        let edges = [(0, 1), (1, 2), (2, 3), (3, 2), (2, 4), (4, 1)];
        assert_eq!(ipdoms(&edges, 5, &[]), [Some(1), Some(2), Some(4), Some(2), None]);
    }

    #[test]
    fn a_way_into_an_endless_loop_does_not_hide_the_exit_of_others() {
        // 0 may return at 3 or spin at 2.
        assert_eq!(ipdoms(&[(0, 1), (1, 2), (2, 2), (1, 3)], 4, &[3]), [Some(1), None, None, None]);
        let post = PostDominators::of(&graph(4, &[(0, 1), (1, 2), (2, 2), (1, 3)]), &nodes(&[3]));
        assert_eq!(post.pseudo_exits(), nodes(&[2]));
        assert_eq!(post.nearest_common(NodeId(2), NodeId(3)), None);
        assert_eq!(post.nearest_common(NodeId(0), NodeId(1)), Some(NodeId(1)));
    }

    #[test]
    fn a_dead_end_that_is_no_exit_becomes_one() {
        assert_eq!(ipdoms(&[(0, 1), (0, 2)], 3, &[1]), [None, None, None]);
    }

    #[test]
    fn nodes_that_are_not_reached_do_not_disturb_the_others() {
        // 3 and 4 are not reached; 3 leads into the diamond's arm, 4 spins.
        let edges = [(0, 1), (0, 2), (1, 5), (2, 5), (3, 1), (4, 4)];
        assert_eq!(ipdoms(&edges, 6, &[5]), [Some(5), Some(5), Some(5), Some(1), None, None]);
    }

    #[test]
    #[should_panic(expected = "in a graph of 2 nodes")]
    fn an_exit_outside_the_graph_is_refused() {
        let _ = PostDominators::of(&graph(2, &[(0, 1)]), &nodes(&[2]));
    }
}
