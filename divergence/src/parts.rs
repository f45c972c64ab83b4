//! Parts of a graph and which branches in them decide: see [`crate::Gates`].

use flowgraph::{Builder, Graph, NodeId, PostDominators};
use rustc_hash::FxHashMap;

use crate::{Choice, Selection};

/// Numbers the nodes of parts of one graph, part after part.
pub(crate) struct Part<'g> {
    pub(crate) graph: &'g Graph,
    /// By node: its number in the current part; `NONE` for others.
    number: Vec<u32>,
    /// The nodes of the part.
    nodes: Vec<NodeId>,
    /// By node: for a join that ends a closed part, the node where that part begins.
    begins: Vec<Option<NodeId>>,
    /// By node: the join at which the closed part that begins here ends.
    ends: Vec<Option<NodeId>>,
    /// How many nodes all parts had together.
    pub(crate) visited: u64,
}

const NONE: u32 = u32::MAX;

/// A loop without its back edges.
pub(crate) struct Round {
    after: PostDominators,
    end: NodeId,
    numbers: FxHashMap<NodeId, u32>,
    nodes: Vec<NodeId>,
}

impl Round {
    /// The branches from which one path leads back to the header and another out.
    pub(crate) fn deciders(&self) -> Vec<NodeId> {
        let decides = |&(i, _): &(usize, &NodeId)| self.after.ipdom(NodeId(i as u32)) == Some(self.end);
        self.nodes.iter().enumerate().filter(decides).map(|(_, &b)| b).collect()
    }

    pub(crate) fn post_dominates(&self, a: NodeId, b: NodeId) -> bool {
        self.after.post_dominates(NodeId(self.numbers[&a]), NodeId(self.numbers[&b]))
    }
}

impl<'g> Part<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Part<'g> {
        let count = graph.node_count();
        let (begins, ends) = (vec![None; count], vec![None; count]);
        Part { graph, number: vec![NONE; count], nodes: Vec::new(), begins, ends, visited: 0 }
    }

    fn clear(&mut self) {
        for node in self.nodes.drain(..) {
            self.number[node.index()] = NONE;
        }
    }

    fn add(&mut self, node: NodeId) {
        if self.number[node.index()] == NONE {
            self.visited += 1;
            self.number[node.index()] = self.nodes.len() as u32;
            self.nodes.push(node);
        }
    }

    /// Collects the nodes on paths from `top` to the ends that do not pass `join` before. Nodes inside a closed part
    /// are left out if `jumps`. Returns whether a path passes `join`.
    fn between(&mut self, top: NodeId, join: Option<NodeId>, ends: &[NodeId], jumps: bool) -> bool {
        self.clear();
        self.add(top);
        for &end in ends {
            self.add(end);
        }
        let (mut next, mut passes_join) = (1, false);
        while next < self.nodes.len() {
            let node = self.nodes[next];
            next += 1;
            let begin = self.begins[node.index()].filter(|_| jumps);
            let before = begin.as_ref().map_or(self.graph.predecessors(node), std::slice::from_ref);
            for &before in before {
                if Some(before) == join {
                    passes_join = true;
                } else {
                    self.add(before);
                }
            }
        }
        passes_join
    }

    /// The join where a closed part ends that begins at this node and was jumped over.
    fn jump(&self, node: NodeId) -> Option<NodeId> {
        self.ends[node.index()].filter(|end| self.number[end.index()] != NONE)
    }

    /// Whether every edge of the current part stays in it, away from `top`, or leads to `join`, and no edge to `join`
    /// comes from elsewhere.
    fn is_closed(&self, top: NodeId, join: NodeId) -> bool {
        let inside = |node: &NodeId| self.number[node.index()] != NONE;
        let stays = |next: &NodeId| *next == join || *next != top && inside(next);
        let closed = |&node: &NodeId| self.jump(node).is_some() || self.graph.successors(node).iter().all(stays);
        self.graph.predecessors(join).iter().all(inside) && self.nodes.iter().all(closed)
    }

    /// How control reaches one of the edges to `join` from `top`; their sources are given.
    ///
    /// If these are all edges into `join`, no edge leads out or to `top`, and no path from `join` back to it avoids
    /// `top`, the part is *closed*: all paths from it pass `join`, so nothing in it decides anything beyond. Later
    /// selections jump from `join` to `top`, so that each of nested ifs costs only its own part.
    pub(crate) fn selection(&mut self, top: NodeId, join: NodeId, edges: &[NodeId]) -> Selection {
        let passes_join = self.between(top, (top != join).then_some(join), edges, true);
        if top != join && !passes_join && self.is_closed(top, join) {
            self.begins[join.index()] = Some(top);
            self.ends[top.index()] = Some(join);
        }
        let count = self.nodes.len();
        let place: FxHashMap<NodeId, usize> = edges.iter().enumerate().map(|(i, &b)| (b, i)).collect();
        let end = NodeId((count + edges.len()) as u32);
        let mut builder = Builder::new(count + edges.len() + 1);
        for (i, &block) in self.nodes.iter().enumerate() {
            if let Some(end) = self.jump(block) {
                builder.edge(NodeId(i as u32), NodeId(self.number[end.index()]));
                continue;
            }
            for &next in self.graph.successors(block) {
                if next == join {
                    if let Some(edge) = place.get(&block) {
                        builder.edge(NodeId(i as u32), NodeId((count + edge) as u32));
                    }
                } else if self.number[next.index()] != NONE {
                    builder.edge(NodeId(i as u32), NodeId(self.number[next.index()]));
                }
            }
        }
        for edge in 0..edges.len() {
            builder.edge(NodeId((count + edge) as u32), end);
        }
        let part = builder.build(NodeId(0));
        let after = PostDominators::of(&part, &[end]);
        // The last node before the end that every path passes, found once for all nodes on the way there.
        let mut last = vec![NONE; count + edges.len() + 1];
        let mut choice = |from: NodeId| {
            let (mut node, mut way) = (from, Vec::new());
            while last[node.index()] == NONE {
                way.push(node);
                match after.ipdom(node) {
                    Some(next) if next != end => node = next,
                    _ => last[node.index()] = node.0,
                }
            }
            let found = last[node.index()];
            for step in way {
                last[step.index()] = found;
            }
            match (found as usize).checked_sub(count) {
                Some(edge) => Choice::Edge(edges[edge]),
                None => Choice::Decider(self.nodes[found as usize]),
            }
        };
        let root = choice(NodeId(0));
        let mut deciders = Vec::new();
        for (i, &block) in self.nodes.iter().enumerate() {
            if choice(NodeId(i as u32)) != Choice::Decider(block) {
                continue;
            }
            let mut ways = Vec::new();
            for &next in self.graph.successors(block) {
                if next == join {
                    if place.contains_key(&block) {
                        ways.push((next, Choice::Edge(block)));
                    }
                } else if self.number[next.index()] != NONE {
                    ways.push((next, choice(NodeId(self.number[next.index()]))));
                }
            }
            deciders.push((block, ways));
        }
        deciders.sort_unstable_by_key(|(block, _)| *block);
        Selection { root, deciders }
    }

    /// The branches between `top` and these edges from which paths lead to edges with different ends.
    pub(crate) fn entries(&mut self, top: NodeId, edges: &[(NodeId, NodeId)]) -> Vec<NodeId> {
        let sources: Vec<NodeId> = edges.iter().map(|e| e.0).collect();
        self.between(top, None, &sources, false);
        let mut targets: Vec<NodeId> = edges.iter().map(|e| e.1).collect();
        targets.sort_unstable();
        targets.dedup();
        let count = self.nodes.len();
        let mut builder = Builder::new(count + targets.len() + 1);
        let end = NodeId((count + targets.len()) as u32);
        for (i, &block) in self.nodes.iter().enumerate() {
            for &next in self.graph.successors(block) {
                if let Ok(target) = targets.binary_search(&next) {
                    builder.edge(NodeId(i as u32), NodeId((count + target) as u32));
                } else if self.number[next.index()] != NONE {
                    builder.edge(NodeId(i as u32), NodeId(self.number[next.index()]));
                }
            }
        }
        for target in 0..targets.len() {
            builder.edge(NodeId((count + target) as u32), end);
        }
        let after = PostDominators::of(&builder.build(NodeId(0)), &[end]);
        let decides = |&(i, _): &(usize, &NodeId)| after.ipdom(NodeId(i as u32)) == Some(end);
        self.nodes.iter().enumerate().filter(decides).map(|(_, &b)| b).collect()
    }

    /// These members of a loop, with one node for the way back to its header and one for all ways out.
    pub(crate) fn round(&mut self, header: NodeId, members: &[NodeId]) -> Round {
        self.clear();
        for &member in members {
            self.add(member);
        }
        let count = members.len() as u32;
        let (back, out, end) = (NodeId(count), NodeId(count + 1), NodeId(count + 2));
        let mut builder = Builder::new(members.len() + 3);
        for (i, &block) in self.nodes.iter().enumerate() {
            for &next in self.graph.successors(block) {
                let to = match self.number[next.index()] {
                    _ if next == header => back,
                    NONE => out,
                    number => NodeId(number),
                };
                builder.edge(NodeId(i as u32), to);
            }
        }
        builder.edge(back, end).edge(out, end);
        let after = PostDominators::of(&builder.build(NodeId(self.number[header.index()])), &[end]);
        let numbers = self.nodes.iter().enumerate().map(|(i, &b)| (b, i as u32)).collect();
        Round { after, end, numbers, nodes: self.nodes.clone() }
    }
}
