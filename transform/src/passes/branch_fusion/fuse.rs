//! The surgery.

use rustc_hash::FxHashMap;

use super::Diamond;
use super::align::{Piece, joined_operands};
use crate::alike;
use crate::context::Context;
use crate::llvm::{Block, Instruction, Value};

/// Values of one side and of the other, and what was chosen between them. The blocks in which choices are made dominate
/// each other in their order, so that a choice can be used again.
type Chosen<'m> = FxHashMap<[Value<'m>; 2], Value<'m>>;

/// Where the next piece goes.
#[derive(Clone, Copy)]
struct Place<'m> {
    block: Block<'m>,
    /// The two blocks that lead here, by the sides of the condition, where a piece apart came before.
    sides: Option<[Block<'m>; 2]>,
}

/// Makes one row of instructions of the two arms.
pub(super) fn fuse<'m>(diamond: &Diamond<'m>, pieces: Vec<Piece<'m>>, context: &mut Context<'m>) {
    let mut at = Place { block: diamond.head, sides: None };
    let mut chosen = Chosen::default();
    context.joined(at.block, diamond.join);
    // The branch's block loses its branch before the first piece is put there.
    diamond.head.terminator().erase();
    for piece in pieces {
        match piece {
            Piece::Pair(a, b) => pair(a, b, diamond.condition, at, &mut chosen),
            Piece::Apart(one, other) => {
                let branch = at.block;
                at = apart(one, other, diamond, branch);
                context.joined(branch, at.block);
            }
        }
    }
    close(diamond, at, &mut chosen);
}

/// The value of one side or of the other. Right behind a piece apart a phi does it, which costs nothing where each side
/// made its value; elsewhere a select.
fn choose<'m>(condition: Value<'m>, [yes, no]: [Value<'m>; 2], at: Place<'m>, chosen: &mut Chosen<'m>) -> Value<'m> {
    if yes == no {
        return yes;
    }
    *chosen.entry([yes, no]).or_insert_with(|| choose_anew(condition, [yes, no], at))
}

fn choose_anew<'m>(condition: Value<'m>, [yes, no]: [Value<'m>; 2], at: Place<'m>) -> Value<'m> {
    let made_here = |v: Value<'m>| v.as_instruction().is_some_and(|made| made.block() == Some(at.block));
    let Some(sides) = at.sides.filter(|_| !made_here(yes) && !made_here(no)) else {
        return at.block.select(condition, yes, no);
    };
    let incoming = [(yes, sides[0]), (no, sides[1])];
    if at.block.is_empty() {
        return at.block.add_phi(&incoming, "").as_value();
    }
    at.block.add_phi_in_front(&incoming, "").as_value()
}

/// One instruction for both, at the end of `at`.
fn pair<'m>(a: Instruction<'m>, b: Instruction<'m>, condition: Value<'m>, at: Place<'m>, chosen: &mut Chosen<'m>) {
    for (i, (x, y)) in joined_operands(a, b, &|x, y| x == y).into_iter().enumerate() {
        let operand = choose(condition, [x, y], at, chosen);
        if operand != a.operands()[i] {
            a.set_operand(i as u32, operand);
        }
    }
    a.move_to_end_of(at.block);
    alike::keep_what_both_promise(a, b);
    a.join_locations(a, b);
    if !b.type_of().is_void() {
        b.as_value().replace_all_uses_with(a.as_value());
    }
    b.erase();
}

/// Instructions without partners, each arm's in a block of its own; returns where both go on.
fn apart<'m>(
    one: Vec<Instruction<'m>>,
    other: Vec<Instruction<'m>>,
    diamond: &Diamond<'m>,
    at: Block<'m>,
) -> Place<'m> {
    let next = diamond.join.insert_before("next");
    let side = |instructions: Vec<Instruction<'m>>, name: &str| {
        if instructions.is_empty() {
            return next;
        }
        let block = next.insert_before(name);
        instructions.into_iter().for_each(|i| i.move_to_end_of(block));
        block.branch_to(next);
        block
    };
    let (yes, no) = (side(one, "only.then"), side(other, "only.else"));
    at.branch_on(diamond.condition, yes, no);
    Place { block: next, sides: Some([yes, no].map(|side| if side == next { at } else { side })) }
}

/// Leads on to the join, whose phis choose by the condition what they chose by the arm.
fn close<'m>(diamond: &Diamond<'m>, at: Place<'m>, chosen: &mut Chosen<'m>) {
    alike::join_phis(diamond.join, diamond.arms, at.block, |values| choose(diamond.condition, values, at, chosen));
    at.block.branch_to(diamond.join);
    diamond.arms.into_iter().for_each(Block::erase);
}
