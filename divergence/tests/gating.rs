//! Gates against brute force: paths of random graphs are enumerated.

use divergence::{Builder, Choice, Decision, Gates, Kind, Op, Selection};
use flowgraph::{Dominators, Graph, NodeId};

/// A small generator of numbers: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn random(seed: u64) -> std::sync::Arc<divergence::Function> {
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let count = 3 + numbers.below(7);
    let mut builder = Builder::new(count);
    let by = builder.free(Kind::Bits(1), Op::Uniform, "c");
    // Every other function is without loops, and its branches lead not far: parts of it lie in one another.
    let is_nested = seed % 2 == 1;
    for i in 0..count - 1 {
        let node = NodeId(i as u32);
        if is_nested {
            for _ in 0..1 + numbers.below(2) {
                builder.edge(node, NodeId((i + 1 + numbers.below(3)).min(count - 1) as u32));
                builder.decide(node, Decision::By(by));
            }
            continue;
        }
        // Mostly forward, so that joins and loops are both there.
        builder.edge(node, NodeId((i + 1 + numbers.below(2).min(count - 2 - i)) as u32));
        for _ in 0..numbers.below(3) {
            builder.edge(node, NodeId(1 + numbers.below(count - 1) as u32));
            builder.decide(node, Decision::By(by));
        }
    }
    builder.build()
}

/// All paths from `from` to `join` that visit no node twice, with the block from which each reaches the join. None of
/// the nodes is `barred`.
fn paths(graph: &Graph, from: NodeId, join: NodeId, barred: Option<NodeId>) -> Vec<Vec<NodeId>> {
    let mut found = Vec::new();
    let mut stack = vec![vec![from]];
    while let Some(path) = stack.pop() {
        let last = *path.last().unwrap();
        for &next in graph.successors(last) {
            if next == join {
                found.push(path.clone());
            } else if !path.contains(&next) && Some(next) != barred {
                let mut longer = path.clone();
                longer.push(next);
                stack.push(longer);
            }
        }
    }
    found
}

/// What the selection says about a branch against what the paths say: it decides when two paths from it reach the
/// join by different edges and share no node but the branch.
fn check(graph: &Graph, join: NodeId, selection: &Selection, top: NodeId, edges: &[NodeId]) {
    let inside: Vec<NodeId> = graph
        .nodes()
        .filter(|&b| {
            let to_join = !paths(graph, b, join, (b != top).then_some(top)).is_empty() || b == top;
            let from_top =
                b == top || paths(graph, top, b, Some(join)).iter().any(|p| p[1..].iter().all(|&n| n != top));
            to_join && from_top && b != join || b == top
        })
        .collect();
    for &block in &inside {
        let all: Vec<Vec<NodeId>> = paths(graph, block, join, None)
            .into_iter()
            .filter(|p| edges.contains(p.last().unwrap()) && p.iter().all(|n| inside.contains(n)))
            .collect();
        let apart = all
            .iter()
            .enumerate()
            .any(|(i, a)| all[..i].iter().any(|b| a.last() != b.last() && a[1..].iter().all(|n| !b[1..].contains(n))));
        let decides = selection.deciders.iter().any(|(b, _)| *b == block);
        assert_eq!(decides, apart, "{block:?} before {join:?}, {selection:?}, {all:?}");
    }
}

/// The edge by which the path reaches the join, as the selection tells: the last decision of each branch counts.
fn follow(selection: &Selection, path: &[NodeId], join: NodeId) -> NodeId {
    let mut choice = selection.root;
    for _ in 0..100 {
        match choice {
            Choice::Edge(from) => return from,
            Choice::Decider(block) => {
                let (_, ways) = selection.deciders.iter().find(|(b, _)| *b == block).expect("a decider has ways");
                let place = path.iter().rposition(|b| *b == block).expect("a decider is on the path");
                let next = path.get(place + 1).copied().unwrap_or(join);
                choice = ways.iter().find(|(to, _)| *to == next).expect("the way is known").1;
            }
        }
    }
    panic!("the selection does not end");
}

#[test]
fn gates_are_what_enumerated_paths_say() {
    let (mut joins, mut turns, mut deciders) = (0, 0, 0);
    for seed in 0..4000 {
        let function = random(seed);
        let graph = function.graph();
        let (gates, dominators) = (Gates::of(&function), Dominators::of(graph));
        for join in graph.nodes() {
            let Some(arrival) = gates.arrival(join) else { continue };
            let is_back = |b: &NodeId| arrival.turn.is_some() && dominators.dominates(join, *b);
            let reached: Vec<NodeId> =
                graph.predecessors(join).iter().copied().filter(|&b| dominators.depth(b).is_some()).collect();
            let (back, enter): (Vec<NodeId>, Vec<NodeId>) = reached.iter().partition(|b| is_back(b));
            if let Some(top) = dominators.idom(join) {
                check(graph, join, &arrival.enter, top, &enter);
                for path in paths(graph, top, join, None).iter().filter(|p| enter.contains(p.last().unwrap())) {
                    assert_eq!(follow(&arrival.enter, path, join), *path.last().unwrap(), "{seed}");
                }
                joins += 1;
                deciders += arrival.enter.deciders.len();
            }
            if let Some(turn) = &arrival.turn {
                for path in paths(graph, join, join, None).iter().filter(|p| back.contains(p.last().unwrap())) {
                    assert_eq!(follow(turn, path, join), *path.last().unwrap(), "{seed}");
                }
                turns += 1;
            }
        }
    }
    assert!(joins > 3000 && turns > 500 && deciders > 3000, "{joins} joins, {turns} loops, {deciders} deciders");
}

/// A loop's gate against paths: a branch decides when it can go back to the header and out without sharing a node.
#[test]
fn the_gates_of_loops_are_what_enumerated_paths_say() {
    let mut decided = 0;
    for seed in 0..4000 {
        let function = random(seed);
        let graph = function.graph();
        let gates = Gates::of(&function);
        let loops = gates.loops();
        for id in loops.ids().filter(|&id| !loops.is_irreducible(id)) {
            let header = loops.header(id);
            let inside = |n: &NodeId| loops.contains(id, *n);
            let scope = gates.scope_of(id).expect("a reducible loop has a scope");
            for &block in loops.members(id) {
                let back: Vec<_> =
                    paths(graph, block, header, None).into_iter().filter(|p| p.iter().all(inside)).collect();
                let out: Vec<_> = graph
                    .nodes()
                    .filter(|n| !inside(n))
                    .flat_map(|n| paths(graph, block, n, None))
                    .filter(|p| p.iter().all(inside) && p[1..].iter().all(|n| *n != header))
                    .collect();
                let apart =
                    back.iter().any(|a| out.iter().any(|b| a[1..].iter().all(|n| !b[1..].contains(n) && *n != header)));
                let decides = gates.deciders(gates.scope(scope).gate).contains(&block);
                assert_eq!(decides, apart, "{seed}: {block:?} in the loop of {header:?}");
                decided += usize::from(decides);
            }
        }
    }
    assert!(decided > 500, "{decided}");
}
