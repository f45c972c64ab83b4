//! The turn as a constant, where the branch that decided it was kept.
//!
//! ```text
//! before                              after
//! A:                                  A:
//!   turn = a ? X : B                    branch a, X, on
//!   branch a, X, on                   X:
//! X:                                    next = Y
//!   next = Y                            goto on
//!   goto on                           on:
//! on:                                   phi (B from A, Y from X)
//!   phi (turn from A, Y from X)
//! ```
//!
//! At level 4, a guard in a part's block decides by the condition of the part's branch. After it the turn is known: a
//! constant, which takes no instruction of its own on most paths, while the choice takes up to four on x86-64.

use flowgraph::NodeId;

use crate::context::Context;
use crate::llvm::{Instruction, Opcode, Use, Value};

/// Replaces these choices by what they are on each way from the branch behind them, and takes those away that nothing
/// uses then. Variables must be values already.
pub(super) fn settle<'m>(choices: &[Instruction<'m>], context: &mut Context<'m>) {
    let (flow, dominators) = (context.flow(), context.dominators());
    for &choice in choices {
        let block = choice.block().expect("a choice that was not erased");
        let (condition, end) = (choice.operand(0), block.terminator());
        let ways = end.successors();
        if choice.opcode() != Opcode::LLVMSelect || end.condition() != Some(condition) || ways[0] == ways[1] {
            continue;
        }
        let from = flow.node(block);
        let known = |place: &Use<'m>| -> Option<Value<'m>> {
            let needed = place.needed_in()?;
            let taken = |way: usize| {
                let on_edge = place.user.is_phi() && needed == block && place.user.block() == Some(ways[way]);
                let to: NodeId = flow.node(ways[way]);
                on_edge || flow.edge_dominates(&dominators, from, to, flow.node(needed))
            };
            (0..2).find(|&way| taken(way)).map(|way| choice.operand(1 + way as u32))
        };
        for place in choice.as_value().uses() {
            if let Some(value) = known(&place) {
                place.user.set_operand(place.operand, value);
            }
        }
        if choice.as_value().uses().is_empty() {
            choice.erase();
        }
    }
}
