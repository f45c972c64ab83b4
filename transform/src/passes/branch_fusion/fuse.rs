//! The surgery.

use rustc_hash::FxHashMap;

use super::Diamond;
use super::align::{Piece, joined_operands};
use crate::alike;
use crate::context::Context;
use crate::joining::{Place, pair};
use crate::llvm::{Block, Value};

/// Values of one side and of the other, and what was chosen between them. The blocks in which choices are made dominate
/// each other in their order, so that a choice can be used again.
type Chosen<'m> = FxHashMap<[Value<'m>; 2], Value<'m>>;

/// Makes one row of instructions of the two arms.
pub(super) fn fuse<'m>(diamond: &Diamond<'m>, pieces: Vec<Piece<'m>>, context: &mut Context<'m>) {
    let mut at = Place::at(diamond.head);
    let mut chosen = Chosen::default();
    context.joined(at.block, diamond.join);
    // The branch's block loses its branch before the first piece is put there.
    diamond.head.terminator().erase();
    for piece in pieces {
        match piece {
            Piece::Pair(a, b) => {
                let operands = joined_operands(a, b, &|x, y| x == y);
                pair([a, b], at.block, operands, |values| choose(diamond.condition, values, at, &mut chosen));
            }
            Piece::Apart(one, other) => {
                let next = diamond.join.insert_before("next");
                at = at.apart(diamond.condition, [one, other], next, context);
            }
        }
    }
    close(diamond, at, &mut chosen);
}

/// The value of one side or of the other.
fn choose<'m>(condition: Value<'m>, [yes, no]: [Value<'m>; 2], at: Place<'m>, chosen: &mut Chosen<'m>) -> Value<'m> {
    if yes == no {
        return yes;
    }
    *chosen.entry([yes, no]).or_insert_with(|| at.choose(condition, [yes, no]))
}

/// Leads on to the join, whose phis choose by the condition what they chose by the arm.
fn close<'m>(diamond: &Diamond<'m>, at: Place<'m>, chosen: &mut Chosen<'m>) {
    alike::join_phis(diamond.join, diamond.arms, at.block, |values| choose(diamond.condition, values, at, chosen));
    at.block.branch_to(diamond.join);
    diamond.arms.into_iter().for_each(Block::erase);
}
