//! The blocks of a function, cut after calls, as a graph: these pieces correspond to the places of replays.

use flowgraph::{Builder, Graph, NodeId};
use rustc_hash::FxHashMap;

use crate::Place;
use crate::llvm::{Block, Function, Instruction, Opcode};

/// Pieces of blocks, in order, and the edges between them. The entry of the graph is the last node, which stands for no
/// code.
pub(super) struct Pieces<'m> {
    pieces: Vec<Vec<Instruction<'m>>>,
    nodes: FxHashMap<Instruction<'m>, NodeId>,
    graph: Graph,
}

impl<'m> Pieces<'m> {
    pub(super) fn of(function: Function<'m>) -> Pieces<'m> {
        let mut pieces: Vec<Vec<Instruction<'m>>> = Vec::new();
        let mut firsts: FxHashMap<Block<'m>, NodeId> = FxHashMap::default();
        let blocks = function.blocks();
        for block in &blocks {
            firsts.insert(*block, NodeId(pieces.len() as u32));
            pieces.push(Vec::new());
            let instructions = block.instructions();
            for (i, at) in instructions.iter().enumerate() {
                pieces.last_mut().expect("a piece was begun").push(*at);
                if is_call(*at) && i + 1 < instructions.len() {
                    pieces.push(Vec::new());
                }
            }
        }
        let mut builder = Builder::new(pieces.len() + 1);
        let entry = NodeId(pieces.len() as u32);
        builder.edge(entry, NodeId(0));
        let mut nodes = FxHashMap::default();
        for (piece, node) in pieces.iter().zip((0..).map(NodeId)) {
            nodes.extend(piece.iter().map(|at| (*at, node)));
            match piece.last().filter(|last| last.is_terminator()) {
                Some(last) => {
                    last.successors().into_iter().for_each(|to| _ = builder.edge(node, firsts[&to]));
                }
                None => _ = builder.edge(node, NodeId(node.0 + 1)),
            }
        }
        Pieces { graph: builder.build(entry), pieces, nodes }
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The piece with an instruction.
    pub(super) fn node(&self, at: Instruction<'m>) -> NodeId {
        self.nodes[&at]
    }

    /// The first and the last instruction of a piece.
    pub(super) fn ends(&self, node: NodeId) -> (Instruction<'m>, Instruction<'m>) {
        let piece = &self.pieces[node.index()];
        (piece[0], piece[piece.len() - 1])
    }

    /// Where a piece begins in the source: the place of the first instruction that makes code there and has a line.
    pub(super) fn place_of(&self, node: NodeId) -> Option<Place> {
        place_of(&self.pieces[node.index()])
    }
}

/// The place of the first of some instructions that makes code and has a line.
pub(super) fn place_of(code: &[Instruction<'_>]) -> Option<Place> {
    let makes_code = |at: &&Instruction| !at.is_phi() && !is_note(**at);
    code.iter().filter(makes_code).filter_map(|at| at.place()).find(|place| place.line > 0)
}

/// Whether it makes a call in machine code, as far as that can be said: of intrinsics it cannot.
fn is_call(at: Instruction<'_>) -> bool {
    at.callee().is_some_and(|callee| !(callee.is_inline_assembly() || callee.is_function() && callee.is_intrinsic()))
}

/// Whether it says something and does nothing: notes for a debugger, and on lifetimes.
fn is_note(at: Instruction<'_>) -> bool {
    let names = ["llvm.dbg.", "llvm.lifetime.", "llvm.assume", "llvm.experimental.noalias"];
    at.opcode() == Opcode::LLVMCall
        && at.callee().is_some_and(|callee| callee.is_function() && names.iter().any(|n| callee.name().starts_with(n)))
}
