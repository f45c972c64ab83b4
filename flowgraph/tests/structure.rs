//! What is structured and what is not: the paper's figures (see `unstructured_edges`), all graphs of five nodes of a
//! kind, and random ones, against the definitions.

mod five;

use flowgraph::{
    Builder, Dominators, Graph, Loops, NodeId, PostDominators, Reduction, StructuredRegion, UnstructuredEdge,
    UnstructuredRegion, common_dominator, common_post_dominator, structured_regions, unstructured_edges,
    unstructured_regions,
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

    fn regions(&self) -> Vec<UnstructuredRegion> {
        unstructured_regions(&self.graph, &self.dominators, &self.post, &self.edges)
    }

    fn reached(&self, node: NodeId) -> bool {
        self.dominators.depth(node).is_some()
    }

    /// Whether the set is a region by the paper's definition 4.
    fn is_region(&self, set: &[NodeId]) -> bool {
        let (before, behind) = (common_dominator(&self.dominators, set), common_post_dominator(&self.post, set));
        let within = |node: &NodeId| set.contains(node);
        set.iter().all(|&node| {
            let mut from = self.graph.predecessors(node).iter().filter(|&&from| self.reached(from));
            from.all(|from| within(from) || Some(*from) == before)
                && self.graph.successors(node).iter().all(|to| within(to) || Some(*to) == behind)
        })
    }

    fn structured(&self) -> Vec<StructuredRegion> {
        let nodes: Vec<NodeId> = self.graph.nodes().collect();
        structured_regions(&self.graph, &self.dominators, &self.post, &nodes)
    }

    /// Whether the set is a structured region by the paper's definition 5, between these two: it holds both, the one
    /// is the common immediate dominator of all others and the other their common immediate post-dominator, no edge
    /// comes in or goes out elsewhere, and it holds no unstructured edge.
    fn is_structured(&self, set: &[NodeId], first: NodeId, last: NodeId) -> bool {
        let but = |bound| set.iter().copied().filter(|&node| node != bound).collect::<Vec<_>>();
        let within = |node: &NodeId| set.contains(node);
        let bounded = common_dominator(&self.dominators, &but(first)) == Some(first)
            && common_post_dominator(&self.post, &but(last)) == Some(last);
        let from = |node| self.graph.predecessors(node).iter().filter(|&&from| self.reached(from)).all(within);
        let to = |node| self.graph.successors(node).iter().all(within);
        let closed = set.iter().all(|&node| (node == first || from(node)) && (node == last || to(node)));
        bounded && closed && !self.edges.iter().any(|edge| within(&edge.from) && within(&edge.to))
    }

    /// What is found must be the smallest set by definition 5 between each node and its immediate post-dominator, of
    /// which it is the immediate dominator. Where nothing is found, there must be none, or one that does not reduce:
    /// how many of these there are.
    fn check_structured(&self) -> usize {
        let found = self.structured();
        let reached: Vec<NodeId> = self.graph.nodes().filter(|&node| self.reached(node)).collect();
        let mut escaped = 0;
        for &first in &reached {
            let here = found.iter().find(|region| region.first == first);
            let Some(last) = self.post.ipdom(first).filter(|&last| self.dominators.idom(last) == Some(first)) else {
                assert!(here.is_none(), "{here:?} of {:?}", self.graph);
                continue;
            };
            let least = (1_u32..1 << reached.len())
                .map(|bits| (0..reached.len()).filter(|i| bits >> i & 1 == 1).map(|i| reached[i]).collect::<Vec<_>>())
                .filter(|set| [first, last].iter().all(|bound| set.contains(bound)))
                .filter(|set| self.is_structured(set, first, last))
                .min_by_key(Vec::len);
            match (here, least) {
                (Some(region), Some(least)) => assert_eq!(region.members, least, "of {:?}", self.graph),
                (None, Some(_)) => escaped += 1,
                (Some(region), None) => panic!("{region:?} is none by definition 5 in {:?}", self.graph),
                (None, None) => {}
            }
        }
        for (i, outer) in found.iter().enumerate() {
            for inner in &found[i + 1..] {
                let shared = inner.members.iter().filter(|&&node| outer.contains(node)).count();
                let follow = outer.last == inner.first || inner.last == outer.first;
                let fits = shared == 0 || follow || shared == inner.members.len();
                assert!(fits, "{outer:?}, {inner:?} of {:?}", self.graph);
            }
        }
        escaped
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
        let reached: Vec<NodeId> = self.graph.nodes().filter(|&node| self.reached(node)).collect();
        let sets: Vec<Vec<NodeId>> = (1_u32..1 << reached.len())
            .map(|bits| (0..reached.len()).filter(|i| bits >> i & 1 == 1).map(|i| reached[i]).collect::<Vec<_>>())
            .filter(|set| self.is_region(set))
            .collect();
        for edge in &self.edges {
            let ends = [edge.from, edge.to];
            let found = UnstructuredRegion::around(&self.graph, &self.dominators, &self.post, &ends);
            assert_eq!(found.before, common_dominator(&self.dominators, &found.members));
            assert_eq!(found.behind, common_post_dominator(&self.post, &found.members));
            assert!(sets.contains(&found.members), "{found:?} of {:?}", self.graph);
            for set in sets.iter().filter(|set| ends.iter().all(|end| set.contains(end))) {
                assert!(found.members.iter().all(|node| set.contains(node)), "{found:?}, not {set:?}");
            }
        }
        let regions = self.regions();
        for (i, outer) in regions.iter().enumerate() {
            for inner in &regions[i + 1..] {
                let shared = inner.members.iter().filter(|&&node| outer.contains(node)).count();
                assert!(shared == 0 || shared == inner.members.len(), "{outer:?}, {inner:?} of {:?}", self.graph);
            }
        }
    }
}

fn numbers(nodes: &[NodeId]) -> Vec<u32> {
    nodes.iter().map(|node| node.0).collect()
}

#[test]
fn short_circuit_of_figure_1() {
    // B1 to B6 are 1 to 6; 0 is the entry.
    let found = known(7, &[(0, 1), (1, 2), (1, 3), (2, 3), (2, 5), (3, 4), (3, 5), (4, 6), (5, 6)], &[6]);
    assert_eq!(found.named(), [(2, 3), (2, 5), (3, 5)], "as the paper has them");
    assert!(found.edges.iter().all(|edge| edge.crosses && !edge.into_loop && !edge.out_of_loop));
    let [region] = &found.regions()[..] else { panic!("{:?}", found.regions()) };
    assert_eq!(numbers(&region.members), [2, 3, 4, 5]);
    assert_eq!((region.before, region.behind), (Some(NodeId(1)), Some(NodeId(6))));
    assert!(!found.reduction.is_structured());
    found.check();
}

#[test]
fn jumps_out_of_the_loop_of_figure_5() {
    let found = known(7, &[(0, 1), (1, 2), (2, 3), (2, 5), (3, 4), (3, 6), (4, 2), (5, 6)], &[6]);
    assert_eq!(found.named(), [(2, 5), (3, 6)], "as the paper has them");
    assert!(found.edges.iter().all(|edge| edge.out_of_loop));
    let regions: Vec<Vec<u32>> = found.regions().iter().map(|region| numbers(&region.members)).collect();
    // Edge 3 to 6 makes 6 a member of its region.
    assert_eq!(regions, [vec![2, 3, 4, 5, 6], vec![2, 3, 4, 5]]);
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
fn a_region_in_a_loop_does_not_take_in_what_follows_it() {
    // while (1) { if (2 || 3) 4; 5; 6 } 7
    let edges = [(0, 1), (1, 2), (1, 7), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5), (5, 6), (6, 1)];
    let found = known(8, &edges, &[7]);
    let [region] = &found.regions()[..] else { panic!("{:?}", found.regions()) };
    assert_eq!(numbers(&region.members), [3, 4]);
    assert_eq!(found.reduction.of_node(NodeId(6)), NodeId(5));
    found.check();
}

#[test]
fn structured_parts_of_an_unstructured_region() {
    // if (1 || 2) { while (3) if (4) 5; else 6; 7 } 8
    let loop_of = [(3, 4), (3, 8), (4, 5), (4, 6), (5, 7), (6, 7), (7, 3)];
    let edges: Vec<(u32, u32)> = [(0, 1), (1, 3), (1, 2), (2, 3), (2, 8)].into_iter().chain(loop_of).collect();
    let found = known(9, &edges, &[8]);
    assert!(found.edges.iter().any(|edge| (edge.from.0, edge.to.0) == (2, 3)));
    let parts: Vec<Vec<u32>> = found.structured().iter().map(|region| numbers(&region.members)).collect();
    assert_eq!(parts, [vec![4, 5, 6, 7], vec![0, 1]]);
    assert_eq!(found.check_structured(), 0);
    // Figure 1 has none but what lies before it, figure 2(a) is one.
    let figure_1 = known(7, &[(0, 1), (1, 2), (1, 3), (2, 3), (2, 5), (3, 4), (3, 5), (4, 6), (5, 6)], &[6]);
    let parts: Vec<Vec<u32>> = figure_1.structured().iter().map(|region| numbers(&region.members)).collect();
    assert_eq!(parts, [vec![0, 1]]);
    let figure_2 = known(8, &[(0, 1), (0, 4), (1, 2), (1, 3), (4, 5), (4, 6), (2, 7), (3, 7), (5, 7), (6, 7)], &[7]);
    assert_eq!(numbers(&figure_2.structured()[0].members), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn regions_that_would_overlap_become_one() {
    let found = known(5, &[(0, 2), (0, 3), (1, 2), (1, 4), (2, 1), (2, 4), (3, 1)], &[4]);
    let around =
        |a, b| UnstructuredRegion::around(&found.graph, &found.dominators, &found.post, &[NodeId(a), NodeId(b)]);
    assert_eq!(numbers(&around(0, 2).members), [0, 1, 2, 3]);
    assert_eq!(numbers(&around(2, 4).members), [1, 2, 3, 4]);
    assert_eq!(numbers(&found.regions()[0].members), [0, 1, 2, 3, 4]);
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
    let (mut all, mut unreducible, mut escape, mut escaped_parts) = (0, 0, 0, 0);
    five::all(|edges| {
        let found = known(5, edges, &[4]);
        found.check();
        escaped_parts += found.check_structured();
        all += 1;
        unreducible += usize::from(!found.reduction.is_structured());
        escape += usize::from(!found.reduction.is_structured() && found.edges.is_empty());
    });
    assert_eq!((all, unreducible, escape), (2325, 1125, 60));
    // What definition 5 takes for structured and does not reduce: the 60, and 18 loops of three nodes that are
    // continued at two places (D → P, D → X; P → X; X → D).
    assert_eq!(escaped_parts, 78);
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
        found.check_structured();
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
