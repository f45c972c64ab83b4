//! Every answer against its definition, computed the slow and obvious way, on all small graphs and on random larger
//! ones.

mod parts;

use std::collections::BTreeSet;

use flowgraph::{
    Builder, Components, DepthFirst, Dominators, Graph, Loops, NodeId, PostDominators, loop_order, priorities,
};
use proptest::prelude::*;

type Set = BTreeSet<NodeId>;

fn build(node_count: u32, edges: &[(u32, u32)]) -> Graph {
    let mut builder = Builder::new(node_count as usize);
    for &(from, to) in edges {
        builder.edge(NodeId(from), NodeId(to));
    }
    builder.build(NodeId(0))
}

fn edges(graph: &Graph) -> impl Iterator<Item = (NodeId, NodeId)> {
    graph.nodes().flat_map(|from| graph.successors(from).iter().map(move |&to| (from, to)))
}

/// What a path from `start` reaches (itself included) through nodes of `within`; nothing when `start` is outside.
fn reach(graph: &Graph, start: NodeId, within: &Set) -> Set {
    let mut reached = Set::new();
    let mut work = vec![start];
    while let Some(node) = work.pop() {
        if within.contains(&node) && reached.insert(node) {
            work.extend(graph.successors(node));
        }
    }
    reached
}

fn all(graph: &Graph) -> Set {
    graph.nodes().collect()
}

fn without(set: &Set, node: NodeId) -> Set {
    set.iter().copied().filter(|&other| other != node).collect()
}

/// The components of the part of the graph that is `within`.
fn components(graph: &Graph, within: &Set) -> BTreeSet<Set> {
    let reached = |node| reach(graph, node, within);
    within.iter().map(|&a| reached(a).into_iter().filter(|&b| reached(b).contains(&a)).collect()).collect()
}

fn is_cyclic(graph: &Graph, component: &Set) -> bool {
    let first = *component.first().expect("a component has members");
    component.len() > 1 || graph.successors(first).contains(&first)
}

/// Checks everything that this crate says about the graph.
fn check(graph: &Graph, exits: &[NodeId]) {
    check_graph(graph);
    check_walk(graph, &DepthFirst::of(graph), &|node| graph.successors(node).to_vec());
    check_walk(graph, &DepthFirst::last_successor_first(graph), &|node| {
        graph.successors(node).iter().rev().copied().collect()
    });
    check_dominators(graph);
    check_post_dominators(graph, exits);
    check_components(graph);
    check_loops(graph);
    check_layout(graph);
    parts::check(graph, exits);
}

fn check_graph(graph: &Graph) {
    for node in graph.nodes() {
        let sources: Vec<_> = edges(graph).filter(|&(_, to)| to == node).map(|(from, _)| from).collect();
        assert_eq!(graph.predecessors(node), sources);
    }
}

/// The definition by recursion, as in every textbook.
fn check_walk(graph: &Graph, walk: &DepthFirst, successors: &dyn Fn(NodeId) -> Vec<NodeId>) {
    struct Record<'a> {
        successors: &'a dyn Fn(NodeId) -> Vec<NodeId>,
        path: Vec<NodeId>,
        ancestors: Vec<(NodeId, Vec<NodeId>)>,
        postorder: Vec<NodeId>,
    }
    fn visit(node: NodeId, record: &mut Record) {
        record.path.push(node);
        record.ancestors.push((node, record.path.clone()));
        for successor in (record.successors)(node) {
            if record.ancestors.iter().all(|&(seen, _)| seen != successor) {
                visit(successor, record);
            }
        }
        record.path.pop();
        record.postorder.push(node);
    }
    let mut record = Record { successors, path: vec![], ancestors: vec![], postorder: vec![] };
    visit(graph.entry(), &mut record);
    assert_eq!(walk.preorder(), record.ancestors.iter().map(|&(node, _)| node).collect::<Vec<_>>());
    assert_eq!(walk.postorder(), record.postorder);
    for node in graph.nodes() {
        let place = record.ancestors.iter().position(|&(other, _)| other == node);
        let path = place.map_or(&[][..], |place| &record.ancestors[place].1);
        assert_eq!(walk.number(node), place.map(|place| place as u32));
        assert_eq!(walk.reaches(node), place.is_some());
        assert_eq!(walk.parent(node), path.len().checked_sub(2).map(|above| path[above]));
        for ancestor in graph.nodes() {
            assert_eq!(walk.is_ancestor(ancestor, node), path.contains(&ancestor));
        }
    }
}

/// `above[b]` is the set of nodes that dominate `b`, empty when `b` takes no part.
fn check_tree(
    above: &[Set],
    dominates: impl Fn(NodeId, NodeId) -> bool,
    immediate: impl Fn(NodeId) -> Option<NodeId>,
    depth: impl Fn(NodeId) -> Option<usize>,
    nearest_common: impl Fn(NodeId, NodeId) -> Option<NodeId>,
) {
    let nodes = || (0..above.len() as u32).map(NodeId);
    // Of a chain of dominators, the nearest is the one that all the others dominate.
    let nearest = |set: &Set| set.iter().copied().max_by_key(|node| above[node.index()].len());
    for b in nodes() {
        let over_b = &above[b.index()];
        assert_eq!(immediate(b), nearest(&without(over_b, b)), "immediate dominator of {b:?}");
        assert_eq!(depth(b), over_b.len().checked_sub(1), "depth of {b:?}");
        for a in nodes() {
            assert_eq!(dominates(a, b), a == b || over_b.contains(&a), "{a:?} dominates {b:?}");
            let both: Set = over_b.intersection(&above[a.index()]).copied().collect();
            assert_eq!(nearest_common(a, b), nearest(&both), "nearest common dominator of {a:?} and {b:?}");
        }
    }
}

fn check_dominators(graph: &Graph) {
    let reached = reach(graph, graph.entry(), &all(graph));
    let mut above = vec![Set::new(); graph.node_count()];
    for &a in &reached {
        let still_reached = reach(graph, graph.entry(), &without(&reached, a));
        for &b in reached.difference(&still_reached) {
            above[b.index()].insert(a);
        }
    }
    let dominators = Dominators::of(graph);
    check_tree(
        &above,
        |a, b| dominators.dominates(a, b),
        |node| dominators.idom(node),
        |node| dominators.depth(node).map(|depth| depth as usize),
        |a, b| dominators.nearest_common(a, b),
    );
}

fn check_post_dominators(graph: &Graph, exits: &[NodeId]) {
    let post = PostDominators::of(graph, exits);
    let nodes = all(graph);
    // One pseudo exit in each component that nothing leaves and that has no exit, and no others.
    let mut pseudo = post.pseudo_exits().to_vec();
    for component in components(graph, &nodes) {
        let left = edges(graph).any(|(from, to)| component.contains(&from) && !component.contains(&to));
        let expected = usize::from(!left && !exits.iter().any(|exit| component.contains(exit)));
        let before = pseudo.len();
        pseudo.retain(|node| !component.contains(node));
        assert_eq!(before - pseudo.len(), expected, "pseudo exits in {component:?}");
    }
    assert!(pseudo.is_empty());
    let ends: Set = exits.iter().chain(post.pseudo_exits()).copied().collect();
    let can_end = |node, within: &Set| !reach(graph, node, within).is_disjoint(&ends);
    let mut above = vec![Set::new(); graph.node_count()];
    for &b in &nodes {
        assert!(can_end(b, &nodes), "{b:?} has no way out");
        above[b.index()] = nodes.iter().copied().filter(|&a| !can_end(b, &without(&nodes, a))).collect();
    }
    check_tree(
        &above,
        |a, b| post.post_dominates(a, b),
        |node| post.ipdom(node),
        // The virtual exit is one more above each node.
        |node| Some(post.depth(node) as usize - 1),
        |a, b| post.nearest_common(a, b),
    );
}

fn check_components(graph: &Graph) {
    let found = Components::of(graph);
    let expected = components(graph, &all(graph));
    assert_eq!(found.count(), expected.len());
    for id in found.ids() {
        let members: Set = found.members(id).iter().copied().collect();
        assert_eq!(members.len(), found.members(id).len());
        assert!(expected.contains(&members), "{members:?} is no component");
        assert_eq!(found.is_cyclic(id), is_cyclic(graph, &members));
        assert!(members.iter().all(|&node| found.component(node) == id));
    }
    for (from, to) in edges(graph) {
        assert!(found.component(from) <= found.component(to));
    }
}

/// The definition of a loop, by recursion: components with a cycle, then the same without their headers.
fn check_loops(graph: &Graph) {
    let loops = Loops::of(graph);
    let walk = DepthFirst::last_successor_first(graph);
    let reached = reach(graph, graph.entry(), &all(graph));
    let mut expected_depth = vec![0; graph.node_count()];
    let mut expected_count = 0;
    let mut work = vec![(reached.clone(), None)];
    while let Some((within, parent)) = work.pop() {
        for component in components(graph, &within) {
            if !is_cyclic(graph, &component) {
                continue;
            }
            let header = *component.iter().min_by_key(|&&node| walk.number(node)).expect("a component has members");
            let id = loops.headed_by(header).expect("the first node entered heads a loop");
            assert_eq!(loops.header(id), header);
            assert_eq!(loops.parent(id), parent);
            assert!(parent.is_none_or(|parent| parent < id));
            assert_eq!(loops.members(id).iter().copied().collect::<Set>(), component);
            assert_eq!(loops.members(id).len(), component.len());
            for node in graph.nodes() {
                assert_eq!(loops.contains(id, node), component.contains(&node));
            }
            let latches = graph.predecessors(header).iter().copied().filter(|node| component.contains(node));
            assert_eq!(loops.latches(id), latches.collect::<Vec<_>>());
            check_entries(graph, &loops, &reached, &component, header);
            for member in &component {
                expected_depth[member.index()] += 1;
            }
            expected_count += 1;
            work.push((without(&component, header), Some(id)));
        }
    }
    assert_eq!(loops.count(), expected_count);
    for node in graph.nodes() {
        assert_eq!(loops.depth(node), expected_depth[node.index()]);
        let innermost =
            loops.ids().filter(|&id| loops.contains(id, node)).max_by_key(|&id| loops.depth(loops.header(id)));
        assert_eq!(loops.innermost(node), innermost);
    }
}

/// A loop is reducible when it is entered at its header only; then it is the natural loop of its back edges.
fn check_entries(graph: &Graph, loops: &Loops, reached: &Set, component: &Set, header: NodeId) {
    let id = loops.headed_by(header).expect("a header");
    let jumps_in = |&(from, to): &(NodeId, NodeId)| {
        reached.contains(&from) && !component.contains(&from) && component.contains(&to)
    };
    let mut entries: Set = edges(graph).filter(jumps_in).map(|(_, to)| to).collect();
    if component.contains(&graph.entry()) {
        entries.insert(graph.entry());
    }
    assert!(entries.contains(&header));
    assert_eq!(loops.is_irreducible(id), entries.len() > 1, "the loop of {header:?} is entered at {entries:?}");
    if loops.is_irreducible(id) {
        return;
    }
    // The natural loop: the header, and what reaches a back edge without passing the header.
    let avoiding = without(reached, header);
    let runs_to_latch =
        |&node: &NodeId| loops.latches(id).iter().any(|latch| reach(graph, node, &avoiding).contains(latch));
    let mut natural: Set = avoiding.iter().copied().filter(runs_to_latch).collect();
    natural.insert(header);
    assert_eq!(&natural, component);
    let dominators = Dominators::of(graph);
    assert!(component.iter().all(|&member| dominators.dominates(header, member)));
}

fn check_layout(graph: &Graph) {
    let order = loop_order(graph);
    let reached = reach(graph, graph.entry(), &all(graph));
    assert_eq!(order.iter().copied().collect::<Set>(), reached);
    assert_eq!(order.len(), reached.len());
    assert_eq!(order[0], graph.entry());
    let place = |node| order.iter().position(|&other| other == node).expect("a node that is reached");
    let loops = Loops::of(graph);
    for (from, to) in edges(graph).filter(|(from, _)| reached.contains(from)) {
        let back = loops.headed_by(to).is_some_and(|id| loops.contains(id, from));
        assert!(back || place(from) < place(to), "{from:?} -> {to:?} leads backwards in {order:?}");
    }
    for id in loops.ids() {
        let mut places: Vec<_> = loops.members(id).iter().map(|&node| place(node)).collect();
        assert_eq!(places[0], place(loops.header(id)));
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[0] + 1 == pair[1]), "the loop {id:?} is torn apart in {order:?}");
        assert_eq!(places[0], place(loops.header(id)));
    }
    let rest = graph.nodes().filter(|node| !reached.contains(node));
    let by_priority: Vec<_> = order.iter().copied().chain(rest).collect();
    let priorities = priorities(graph);
    assert!(by_priority.iter().enumerate().all(|(priority, node)| priorities[node.index()] == priority as u32));
}

/// The graph of `node_count` nodes whose edges are the bits of `bits`.
fn nth(node_count: u32, bits: u32) -> Graph {
    let edges: Vec<_> = (0..node_count * node_count)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| (bit / node_count, bit % node_count))
        .collect();
    build(node_count, &edges)
}

#[test]
fn all_graphs_of_three_nodes_with_all_sets_of_exits() {
    for bits in 0..1 << 9 {
        let graph = nth(3, bits);
        for chosen in 0..8u32 {
            check(&graph, &graph.nodes().filter(|node| chosen >> node.0 & 1 == 1).collect::<Vec<_>>());
        }
    }
}

#[test]
fn all_graphs_of_four_nodes_without_edges_to_themselves() {
    for bits in 0..1u32 << 12 {
        // Spread the 12 bits over the 16 places, leaving out the diagonal.
        let mut places = (0..16u32).filter(|place| place % 5 != 0);
        let spread = (0..12).fold(0, |all, bit| {
            let place = places.next().expect("12 places");
            all | (bits >> bit & 1) << place
        });
        check(&nth(4, spread), &[NodeId(3)]);
    }
}

/// Any graph: often irreducible, with nodes that are not reached, endless loops and dead ends.
fn any_graph(nodes: u32) -> impl Strategy<Value = (u32, Vec<(u32, u32)>, Vec<u32>)> {
    (1..=nodes).prop_flat_map(|n| {
        let edges = prop::collection::vec((0..n, 0..n), 0..=2 * n as usize);
        (Just(n), edges, prop::collection::vec(0..n, 0..4))
    })
}

/// A graph like that of a function: blocks fall through to the next, some branch ahead or back, the last returns.
fn function_graph(nodes: u32) -> impl Strategy<Value = (u32, Vec<(u32, u32)>, Vec<u32>)> {
    (2..=nodes).prop_flat_map(|n| {
        let branches = prop::collection::vec((0..n, 0..n), 0..=n as usize);
        let cuts = prop::collection::btree_set(0..n - 1, 0..=n as usize / 5);
        (Just(n), branches, cuts).prop_map(|(n, mut edges, cuts)| {
            edges.extend((0..n - 1).filter(|node| !cuts.contains(node)).map(|node| (node, node + 1)));
            (n, edges, vec![n - 1])
        })
    })
}

/// A function made of nothing but sequences, branches and loops: never irreducible.
fn structured(depth: u32) -> impl Strategy<Value = (u32, Vec<(u32, u32)>, Vec<u32>)> {
    #[derive(Clone, Debug)]
    enum Part {
        Block,
        Sequence(Vec<Part>),
        Branch(Box<Part>, Box<Part>),
        Loop(Box<Part>),
    }
    /// Adds the part behind `from`; returns its last node.
    fn emit(part: &Part, from: u32, count: &mut u32, edges: &mut Vec<(u32, u32)>) -> u32 {
        let mut node = |after: u32, edges: &mut Vec<(u32, u32)>| {
            *count += 1;
            edges.push((after, *count - 1));
            *count - 1
        };
        match part {
            Part::Block => node(from, edges),
            Part::Sequence(parts) => parts.iter().fold(from, |from, part| emit(part, from, count, edges)),
            Part::Branch(then, other) => {
                let branch = node(from, edges);
                let ends = [emit(then, branch, count, edges), emit(other, branch, count, edges)];
                let join = *count;
                *count += 1;
                edges.extend(ends.map(|end| (end, join)));
                join
            }
            Part::Loop(body) => {
                let header = node(from, edges);
                let end = emit(body, header, count, edges);
                edges.push((end, header));
                header
            }
        }
    }
    let part = Just(Part::Block).prop_recursive(depth, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Sequence),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| Part::Branch(Box::new(a), Box::new(b))),
            inner.prop_map(|body| Part::Loop(Box::new(body))),
        ]
    });
    part.prop_map(|part| {
        let (mut count, mut edges) = (1, vec![]);
        let last = emit(&part, 0, &mut count, &mut edges);
        (count, edges, vec![last])
    })
}

fn check_described((node_count, edges, exits): (u32, Vec<(u32, u32)>, Vec<u32>)) -> Graph {
    let graph = build(node_count, &edges);
    check(&graph, &exits.into_iter().map(NodeId).collect::<Vec<_>>());
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_graph_meets_the_definitions(described in any_graph(14)) {
        check_described(described);
    }

    #[test]
    fn graphs_like_those_of_functions_meet_the_definitions(described in function_graph(20)) {
        check_described(described);
    }

    #[test]
    fn structured_graphs_meet_the_definitions_and_are_reducible(described in structured(4)) {
        let loops = Loops::of(&check_described(described));
        prop_assert!(loops.ids().all(|id| !loops.is_irreducible(id)));
    }
}
