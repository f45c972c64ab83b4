//! The control flow of a function as a graph, for the analyses of `flowgraph`.

use flowgraph::{Builder, Dominators, Graph, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::llvm::{Block, Function};

/// The blocks of a function, numbered in their order, and the edges between them (those of exceptions included).
pub struct Flow<'m> {
    blocks: Vec<Block<'m>>,
    numbers: FxHashMap<Block<'m>, NodeId>,
    graph: Graph,
}

impl<'m> Flow<'m> {
    /// The control flow as it is now.
    #[must_use]
    pub fn of(function: Function<'m>) -> Flow<'m> {
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

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A block's node.
    ///
    /// # Panics
    /// When the block is new, or was erased.
    #[must_use]
    pub fn node(&self, block: Block<'m>) -> NodeId {
        self.numbers[&block]
    }

    /// As [`Flow::node`], of a block that may have been erased.
    #[must_use]
    pub fn find(&self, block: Block<'m>) -> Option<NodeId> {
        self.numbers.get(&block).copied()
    }

    /// A node's block.
    #[must_use]
    pub fn block(&self, node: NodeId) -> Block<'m> {
        self.blocks[node.index()]
    }

    /// The blocks, by node.
    #[must_use]
    pub fn blocks(&self) -> &[Block<'m>] {
        &self.blocks
    }

    /// Whether every path from the entry to `node` takes the edge from `from` to `to`.
    #[must_use]
    pub(crate) fn edge_dominates(&self, dominators: &Dominators, from: NodeId, to: NodeId, node: NodeId) -> bool {
        let edges = self.block(from).terminator().successors();
        let single = edges.into_iter().filter(|&b| b == self.block(to)).count() == 1;
        let only_entry = |&p: &NodeId| p == from || dominators.depth(p).is_none() || dominators.dominates(to, p);
        single && dominators.dominates(to, node) && self.graph.predecessors(to).iter().all(only_entry)
    }
}

/// The nodes from which `ways` lead on and to which they lead, up to the `ends`, which are left out.
pub(crate) fn reached<'g>(
    from: &[NodeId],
    ends: &[NodeId],
    ways: impl Fn(NodeId) -> &'g [NodeId],
) -> FxHashSet<NodeId> {
    let mut seen: FxHashSet<NodeId> = ends.iter().copied().collect();
    let mut open = from.to_vec();
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            open.extend(ways(node));
        }
    }
    ends.iter().for_each(|end| _ = seen.remove(end));
    seen
}
