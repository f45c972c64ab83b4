//! Graphs of a million nodes, on a thread whose stack is too small for any recursion over them. Quadratic work would
//! show as a test that does not end.

use flowgraph::{
    Builder, Components, DepthFirst, Dominators, Graph, Loops, NodeId, PostDominators, Regions, priorities,
};

const NODES: u32 = 1_000_000;

fn build(node_count: u32, entry: NodeId, edges: impl Iterator<Item = (u32, u32)>) -> Graph {
    let mut builder = Builder::new(node_count as usize);
    for (from, to) in edges {
        builder.edge(NodeId(from), NodeId(to));
    }
    builder.build(entry)
}

/// Runs it with 64 KiB of stack: less than a tenth of a byte per node.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(run);
    thread.expect("a thread can be started").join().expect("the checks pass");
}

#[test]
fn a_chain() {
    on_a_small_stack(|| {
        let last = NodeId(NODES - 1);
        let middle = NodeId(NODES / 2);
        let graph = build(NODES, NodeId(0), (1..NODES).map(|node| (node - 1, node)));
        assert_eq!(DepthFirst::of(&graph).postorder()[0], last);
        let dominators = Dominators::of(&graph);
        assert_eq!(dominators.depth(last), Some(NODES - 1));
        assert_eq!(dominators.nearest_common(last, middle), Some(middle));
        let post = PostDominators::of(&graph, &[last]);
        assert_eq!(post.depth(NodeId(0)), NODES);
        assert_eq!(Regions::of(&graph, &dominators, &post).count(), 0);
        assert_eq!(post.ipdom(middle), Some(NodeId(NODES / 2 + 1)));
        assert_eq!(Components::of(&graph).count(), NODES as usize);
        assert_eq!(Loops::of(&graph).count(), 0);
        assert_eq!(priorities(&graph)[last.index()], NODES - 1);
    });
}

/// Two rails with rungs from each to the other, and a return at the end of each.
#[test]
fn a_ladder() {
    on_a_small_stack(|| {
        let rails = (2..NODES).map(|node| (node - 2, node));
        let rungs = (0..NODES / 2).map(|rung| (2 * rung, 2 * rung + 1));
        let graph = build(NODES, NodeId(0), rails.chain(rungs));
        let (left, right) = (NodeId(NODES - 2), NodeId(NODES - 1));
        let dominators = Dominators::of(&graph);
        assert_eq!(dominators.idom(left), Some(NodeId(NODES - 4)));
        assert_eq!(dominators.idom(right), Some(NodeId(0)));
        let post = PostDominators::of(&graph, &[left, right]);
        assert_eq!(post.ipdom(NodeId(0)), None);
        assert_eq!(post.ipdom(NodeId(1)), Some(NodeId(3)));
        assert_eq!(Regions::of(&graph, &dominators, &post).count(), 0);
        let priorities = priorities(&graph);
        let forward =
            |node: NodeId| graph.successors(node).iter().all(|to| priorities[node.index()] < priorities[to.index()]);
        assert!(graph.nodes().all(forward));
    });
}

/// A chain with an edge back from each node of its second half to its mirror image in the first: half a million loops,
/// each inside the one before.
#[test]
fn loops_nested_half_a_million_deep() {
    on_a_small_stack(|| {
        let chain = (1..NODES).map(|node| (node - 1, node));
        let back = (0..NODES / 2).map(|node| (NODES - 1 - node, node));
        let graph = build(NODES, NodeId(0), chain.chain(back));
        let loops = Loops::of(&graph);
        assert_eq!(loops.count(), (NODES / 2) as usize);
        assert_eq!(loops.depth(NodeId(NODES / 2)), NODES / 2);
        let outermost = loops.headed_by(NodeId(0)).expect("the entry heads a loop");
        assert_eq!(loops.members(outermost).len(), NODES as usize);
        assert!(loops.ids().all(|id| !loops.is_irreducible(id)));
        let post = PostDominators::of(&graph, &[]);
        assert_eq!(post.pseudo_exits(), [NodeId(NODES - 1)]);
        assert_eq!(post.depth(NodeId(0)), NODES);
        // Each but the outermost loop is left to the latch of the one around it.
        let regions = Regions::of(&graph, &Dominators::of(&graph), &post);
        assert_eq!(regions.count(), (NODES / 2 - 1) as usize);
    });
}

/// A chain with edges back as before, whose every node is also entered from a second chain outside: a quarter of a
/// million loops, each inside the one before, and all irreducible.
#[test]
fn irreducible_loops_nested_a_quarter_of_a_million_deep() {
    on_a_small_stack(|| {
        let half = NODES / 2;
        let chain = (1..half).map(|node| (node - 1, node));
        let back = (0..half / 2).map(|node| (half - 1 - node, node));
        let outside = (half + 1..NODES).map(|node| (node - 1, node));
        let into = (0..half).map(|node| (half + node, node));
        let entry = NodeId(half);
        let graph = build(NODES, entry, chain.chain(back).chain(outside).chain(into));
        let loops = Loops::of(&graph);
        assert_eq!(loops.count(), (half / 2) as usize);
        assert!(loops.ids().all(|id| loops.is_irreducible(id)));
        assert_eq!(Components::of(&graph).count(), half as usize + 1);
        let dominators = Dominators::of(&graph);
        assert!((0..half).all(|node| dominators.idom(NodeId(node)) == Some(entry)));
    });
}
