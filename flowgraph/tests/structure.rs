//! What is structured and what is not: the paper's figures (see `unstructured_edges`), all graphs of five nodes of a
//! kind, and random ones, against the definitions.

mod five;

use flowgraph::{
    Builder, Dominators, Graph, Loops, NodeId, PostDominators, Reduction, UnstructuredEdge, unstructured_edges,
};
use proptest::prelude::*;

struct Known {
    graph: Graph,
    dominators: Dominators,
    post: PostDominators,
    loops: Loops,
    edges: Vec<UnstructuredEdge>,
    reduction: Reduction,
}

fn known(count: u32, edges: &[(u32, u32)], exits: &[u32]) -> Known {
    let mut builder = Builder::new(count as usize);
    for &(from, to) in edges {
        builder.edge(NodeId(from), NodeId(to));
    }
    let graph = builder.build(NodeId(0));
    let exits: Vec<NodeId> = exits.iter().map(|&exit| NodeId(exit)).collect();
    let (dominators, post) = (Dominators::of(&graph), PostDominators::of(&graph, &exits));
    let (loops, reduction) = (Loops::of(&graph), Reduction::of(&graph, &exits));
    let edges = unstructured_edges(&graph, &loops, &dominators, &post);
    Known { graph, dominators, post, loops, edges, reduction }
}

impl Known {
    fn named(&self) -> Vec<(u32, u32)> {
        self.edges.iter().map(|edge| (edge.from.0, edge.to.0)).collect()
    }

    fn reached(&self, node: NodeId) -> bool {
        self.dominators.depth(node).is_some()
    }

    /// Definition 1 for one edge, one node after the other.
    fn conditions(&self, from: NodeId, to: NodeId) -> [bool; 3] {
        let ahead = self.graph.predecessors(to).iter().filter(|&&node| self.reached(node)).count();
        let related = [(from, to), (to, from)]
            .iter()
            .any(|&(a, b)| self.dominators.dominates(a, b) || self.post.post_dominates(a, b));
        let around = |inside: NodeId, outside: NodeId| {
            self.loops.ids().filter(move |&id| self.loops.contains(id, inside) && !self.loops.contains(id, outside))
        };
        [
            self.graph.successors(from).len() > 1 && ahead > 1 && !related,
            around(to, from).any(|id| self.loops.members(id).iter().any(|&m| !self.dominators.dominates(to, m))),
            around(from, to).any(|id| self.loops.members(id).iter().any(|&m| !self.post.post_dominates(from, m))),
        ]
    }

    fn check(&self) {
        for from in self.graph.nodes().filter(|&node| self.reached(node)) {
            for &to in self.graph.successors(from) {
                let expected = self.conditions(from, to);
                let found = self.edges.iter().find(|edge| (edge.from, edge.to) == (from, to));
                let found = found.map_or([false; 3], |edge| [edge.crosses, edge.into_loop, edge.out_of_loop]);
                assert_eq!(found, expected, "{from:?} to {to:?} of {:?}", self.graph);
            }
        }
        assert!(!self.reduction.is_structured() || self.edges.is_empty(), "{:?} has {:?}", self.graph, self.edges);
    }
}

#[test]
fn short_circuit_of_figure_1() {
    // B1 to B6 are 1 to 6; 0 is the entry.
    let found = known(7, &[(0, 1), (1, 2), (1, 3), (2, 3), (2, 5), (3, 4), (3, 5), (4, 6), (5, 6)], &[6]);
    assert_eq!(found.named(), [(2, 3), (2, 5), (3, 5)], "as the paper has them");
    assert!(found.edges.iter().all(|edge| edge.crosses && !edge.into_loop && !edge.out_of_loop));
    assert!(!found.reduction.is_structured());
    found.check();
}

#[test]
fn jumps_out_of_the_loop_of_figure_5() {
    let found = known(7, &[(0, 1), (1, 2), (2, 3), (2, 5), (3, 4), (3, 6), (4, 2), (5, 6)], &[6]);
    assert_eq!(found.named(), [(2, 5), (3, 6)], "as the paper has them");
    assert!(found.edges.iter().all(|edge| edge.out_of_loop));
    found.check();
}

#[test]
fn jumps_into_the_loops_of_figure_6() {
    let found = known(7, &[(0, 1), (1, 2), (1, 5), (2, 3), (3, 4), (4, 5), (5, 3), (5, 6)], &[6]);
    assert_eq!(found.named(), [(1, 5), (2, 3)], "as the paper has them");
    assert!(found.edges.iter().all(|edge| edge.into_loop));
    found.check();
    // (c): two nodes that lead to each other, both entered from outside.
    let found = known(5, &[(0, 1), (1, 2), (1, 3), (2, 3), (3, 2), (3, 4)], &[4]);
    assert!(!found.reduction.is_structured());
    assert!(found.edges.iter().any(|edge| edge.into_loop));
    found.check();
}

#[test]
fn a_statement_before_a_goto_is_unstructured_though_no_edge_is() {
    let found = known(5, &[(0, 3), (0, 1), (1, 2), (1, 4), (2, 3), (3, 4)], &[4]);
    assert_eq!(found.named(), []);
    assert!(!found.reduction.is_structured());
}

#[test]
fn all_graphs_of_five_nodes() {
    let (mut all, mut unreducible, mut escape) = (0, 0, 0);
    five::all(|edges| {
        let found = known(5, edges, &[4]);
        found.check();
        all += 1;
        unreducible += usize::from(!found.reduction.is_structured());
        escape += usize::from(!found.reduction.is_structured() && found.edges.is_empty());
    });
    assert_eq!((all, unreducible, escape), (2325, 1125, 60));
}

fn any_graph() -> impl Strategy<Value = (u32, Vec<(u32, u32)>, Vec<u32>)> {
    (2_u32..9).prop_flat_map(|n| {
        let edges = prop::collection::vec((0..n, 0..n), 1..(2 * n as usize));
        (Just(n), edges, Just((0..n).collect::<Vec<u32>>()).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn random_graphs_meet_the_definitions_whatever_their_numbers((n, edges, names) in any_graph()) {
        let found = known(n, &edges, &[n - 1]);
        found.check();
        // The entry keeps its number.
        let at = names.iter().position(|&name| name == 0).expect("a name is 0");
        let mut names = names.clone();
        names.swap(0, at);
        let named = |node: u32| names[node as usize];
        let renamed: Vec<(u32, u32)> = edges.iter().rev().map(|&(from, to)| (named(from), named(to))).collect();
        let again = known(n, &renamed, &[named(n - 1)]);
        prop_assert_eq!(found.reduction.left().len(), again.reduction.left().len());
        prop_assert_eq!(found.reduction.is_structured(), again.reduction.is_structured());
    }
}
