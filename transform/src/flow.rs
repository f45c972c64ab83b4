//! The control flow of a function as a graph, for the analyses of `flowgraph`.

use flowgraph::{Builder, Dominators, Graph, Loops, NodeId};
use rustc_hash::FxHashMap;

use crate::llvm::{Block, Function};

/// The blocks of a function, numbered in their order, and the edges between them (those of exceptions included).
pub(crate) struct Flow<'m> {
    blocks: Vec<Block<'m>>,
    numbers: FxHashMap<Block<'m>, NodeId>,
    graph: Graph,
}

impl<'m> Flow<'m> {
    /// The control flow as it is now.
    pub(crate) fn of(function: Function<'m>) -> Flow<'m> {
        let blocks = function.blocks();
        let numbers: FxHashMap<_, _> = blocks.iter().enumerate().map(|(i, &b)| (b, NodeId(i as u32))).collect();
        let mut builder = Builder::new(blocks.len());
        for (i, block) in blocks.iter().enumerate() {
            for successor in block.terminator().successors() {
                builder.edge(NodeId(i as u32), numbers[&successor]);
            }
        }
        Flow { graph: builder.build(NodeId(0)), blocks, numbers }
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn node(&self, block: Block<'m>) -> NodeId {
        self.numbers[&block]
    }

    pub(crate) fn block(&self, node: NodeId) -> Block<'m> {
        self.blocks[node.index()]
    }

    pub(crate) fn blocks(&self) -> &[Block<'m>] {
        &self.blocks
    }

    pub(crate) fn dominators(&self) -> Dominators {
        Dominators::of(&self.graph)
    }

    pub(crate) fn loops(&self) -> Loops {
        Loops::of(&self.graph)
    }

    /// The nodes that control can reach after `from` without going through `without`.
    pub(crate) fn reached(&self, from: NodeId, without: NodeId) -> Vec<bool> {
        let mut seen = vec![false; self.graph.node_count()];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for &successor in self.graph.successors(node) {
                if successor != without && !std::mem::replace(&mut seen[successor.index()], true) {
                    open.push(successor);
                }
            }
        }
        seen
    }

    /// Whether every path from the entry to `node` takes the edge from `from` to `to`.
    pub(crate) fn edge_dominates(&self, dominators: &Dominators, from: NodeId, to: NodeId, node: NodeId) -> bool {
        let edges = self.block(from).terminator().successors();
        let single = edges.into_iter().filter(|&b| b == self.block(to)).count() == 1;
        let only_entry = |&p: &NodeId| p == from || dominators.depth(p).is_none() || dominators.dominates(to, p);
        single && dominators.dominates(to, node) && self.graph.predecessors(to).iter().all(only_entry)
    }
}
