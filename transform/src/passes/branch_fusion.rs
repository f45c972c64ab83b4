//! `branch-fusion`: the two arms of a branch, merged instruction by instruction.
//!
//! ```text
//! before                              after
//!   branch c, then, else                s = select c, a, b
//! then:                                 x = s * 3
//!   x = a * 3                           branch c, only.then, next
//!   x2 = x + i                        only.then:
//!   goto join                           x2 = x + i
//! else:                                 goto next
//!   y = b * 3                         next:
//!   goto join                           p = select c, x2, x
//! join:                                 goto join
//!   p = phi [x2, then], [y, else]
//! ```
//!
//! Where both arms do alike things to different values, lanes that part can do them together, each on its own values. It is a baseline of the paper that
//! `fcs` implements, and it stops where that begins: at calls.
//!
//! # Steps
//! 1. Find a branch whose arms are one block each, entered from it only, and go on to one join; neither calls anything.
//! 2. Align the instructions of the arms: the pairs, in the order of both, with the highest sum of savings.
//! 3. Put the pairs in a row after the branch's block, with a select for each operand that differs. What has no partner runs in between, under
//!    a branch of its own on the same condition.
//! 4. Phis of the join choose by the same condition. [`crate::ssa`] gives each use a definition that dominates it.
//!
//! # Why the meaning is kept
//! Instructions of one arm keep their order, and run when they ran before: a pair always stands for the one whose arm would have been taken, and gets its
//! operands by the condition. Flags and metadata of a pair are those that both had.
//!
//! # Limitation
//! Arms of several blocks, branches without an else, and arms with calls are left.
//!
//! Source: Coutinho, Sampaio, Pereira, Meira, *Divergence analysis and optimizations*, PACT 2011, section 5, whose instruction alignment is that of
//! Smith and Waterman; here global, since what stands before and after the best run can be paired too.

use crate::candidate::place;
use crate::llvm::{Block, Instruction, Module, Opcode, Value};
use crate::registry::Options;
use crate::{Candidate, Result, Verdict, ssa};

const NAME: &str = "branch-fusion";

/// Arms are aligned in time and space of the product of their lengths: this many pairs take some milliseconds.
const MOST_PAIRS: usize = 250_000;

/// What a branch of its own costs the instructions without a partner: the branch and the jump back.
const GUARD: i64 = 2;

/// Fuses arms in every function.
pub(crate) fn run(module: &mut Module, options: &Options) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    let mut changed = false;
    for function in module.functions() {
        let mut branches = Vec::new();
        for block in function.blocks() {
            fuse_at(block, options, &mut branches, &mut candidates);
        }
        if !branches.is_empty() {
            ssa::repair(function, &branches);
            changed = true;
        }
    }
    if changed {
        module.run_passes(ssa::MEMORY_TO_REGISTERS)?;
    }
    Ok(candidates)
}

/// A branch whose arms can be fused.
struct Diamond<'m> {
    head: Block<'m>,
    condition: Value<'m>,
    arms: [Block<'m>; 2],
    join: Block<'m>,
    bodies: [Vec<Instruction<'m>>; 2],
}

/// A piece of the fused arms.
enum Piece<'m> {
    /// One instruction for two.
    Pair(Instruction<'m>, Instruction<'m>),
    /// Instructions of the first arm, and of the second, that have no partner.
    Apart(Vec<Instruction<'m>>, Vec<Instruction<'m>>),
}

fn fuse_at<'m>(head: Block<'m>, options: &Options, branches: &mut Vec<Block<'m>>, candidates: &mut Vec<Candidate>) {
    // An arm of a diamond that was fused is out of the function, and empty.
    let Some(diamond) = Some(head).filter(|head| !head.is_empty()).and_then(Diamond::at) else { return };
    let pieces = align(&diamond.bodies);
    let paired = pieces.iter().filter(|piece| matches!(piece, Piece::Pair(..))).count();
    if paired == 0 {
        return;
    }
    let (gain, cost) = value(&pieces);
    let how = format!("{paired} pairs save about {gain} instructions and cost {cost}");
    let taken = gain - cost >= options.threshold;
    candidates.push(Candidate {
        pass: NAME,
        function: head.function().name(),
        subject: "arms".to_owned(),
        places: diamond.bodies.iter().map(|body| body.first().map_or_else(|| "?".to_owned(), |i| place(*i))).collect(),
        verdict: if taken { Verdict::Taken(how) } else { Verdict::Left(format!("no profit: {how}")) },
    });
    if taken {
        fuse(&diamond, pieces, branches);
    }
}

impl<'m> Diamond<'m> {
    fn at(head: Block<'m>) -> Option<Diamond<'m>> {
        let condition = head.terminator().condition()?;
        let arms: [Block; 2] = head.terminator().successors().try_into().ok()?;
        let is_arm = |arm: Block<'m>| {
            let jumps = arm.terminator().opcode() == Opcode::LLVMBr && arm.terminator().successors().len() == 1;
            arm.entering() == [head.terminator()] && jumps && !arm.has_address() && arm.phis().is_empty()
        };
        let joins = arms.map(|arm| arm.terminator().successors().first().copied());
        let join = joins[0].filter(|_| arms[0] != arms[1] && joins[0] == joins[1])?;
        if !arms.into_iter().all(is_arm) || arms.contains(&join) || join == head {
            return None;
        }
        let bodies = arms.map(|arm| {
            let mut body = arm.instructions();
            body.pop();
            body
        });
        let movable = |i: &Instruction<'m>| i.opcode() != Opcode::LLVMCall && !i.begins_handler();
        let small = bodies[0].len() * bodies[1].len() <= MOST_PAIRS;
        (small && bodies.iter().flatten().all(movable)).then_some(Diamond { head, condition, arms, join, bodies })
    }
}

/// How many simple instructions one of this kind is worth: about its latency on a processor of today.
fn weight(instruction: Instruction<'_>) -> i64 {
    use crate::llvm::Opcode::*;
    match instruction.opcode() {
        LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem | LLVMFRem => 20,
        LLVMFDiv => 12,
        LLVMLoad | LLVMStore | LLVMFAdd | LLVMFSub | LLVMFMul => 4,
        LLVMMul => 3,
        _ => 1,
    }
}

/// What one instruction for both saves, less a select for each operand that differs; none where they cannot be one. Operands made in the arms are taken
/// to be paired too.
fn saving(a: Instruction<'_>, b: Instruction<'_>) -> Option<i64> {
    if !a.does_the_same_as(b) {
        return None;
    }
    let operands: Vec<_> = a.operands().into_iter().zip(b.operands()).collect();
    // A field of a structure is a constant, and cannot be chosen; nor, for a like reason, further indices in general.
    let indices = a.opcode() == Opcode::LLVMGetElementPtr && operands.len() > 2;
    if indices && operands.iter().skip(1).any(|(x, y)| x != y) {
        return None;
    }
    let arm_of = |i: Instruction<'_>, v: Value<'_>| v.as_instruction().is_some_and(|made| made.block() == i.block());
    let selects = operands.iter().filter(|(x, y)| x != y && !(arm_of(a, *x) && arm_of(b, *y))).count();
    Some(weight(a) - selects as i64)
}

/// Pairs in the order of both bodies with the highest sum of savings, and what stands between them.
fn align<'m>(bodies: &[Vec<Instruction<'m>>; 2]) -> Vec<Piece<'m>> {
    let (rows, columns) = (bodies[0].len(), bodies[1].len());
    // best[i][j]: the highest sum for what follows the first i and the first j.
    let mut best = vec![vec![0_i64; columns + 1]; rows + 1];
    let mut savings = vec![vec![None; columns]; rows];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            savings[i][j] = saving(bodies[0][i], bodies[1][j]).filter(|saved| *saved >= 0);
            let paired = savings[i][j].map_or(i64::MIN, |saved| saved + best[i + 1][j + 1]);
            best[i][j] = paired.max(best[i + 1][j]).max(best[i][j + 1]);
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pieces = Vec::new();
    let mut apart = (Vec::new(), Vec::new());
    while i < rows || j < columns {
        let paired = i < rows && j < columns && savings[i][j].is_some_and(|s| s + best[i + 1][j + 1] == best[i][j]);
        if paired {
            flush(&mut apart, &mut pieces);
            pieces.push(Piece::Pair(bodies[0][i], bodies[1][j]));
            (i, j) = (i + 1, j + 1);
        } else if i < rows && (j == columns || best[i + 1][j] == best[i][j]) {
            apart.0.push(bodies[0][i]);
            i += 1;
        } else {
            apart.1.push(bodies[1][j]);
            j += 1;
        }
    }
    flush(&mut apart, &mut pieces);
    pieces
}

fn flush<'m>(apart: &mut (Vec<Instruction<'m>>, Vec<Instruction<'m>>), pieces: &mut Vec<Piece<'m>>) {
    let (one, other) = std::mem::take(apart);
    if !one.is_empty() || !other.is_empty() {
        pieces.push(Piece::Apart(one, other));
    }
}

/// What the pairs save, and what the branches around the rest cost, beyond the one branch that was there.
fn value(pieces: &[Piece<'_>]) -> (i64, i64) {
    let gain = pieces.iter().map(|piece| match piece {
        Piece::Pair(a, b) => saving(*a, *b).unwrap_or(0),
        Piece::Apart(..) => 0,
    });
    let guards = pieces.iter().filter(|piece| matches!(piece, Piece::Apart(..))).count() as i64;
    (gain.sum(), (guards - 1).max(0) * GUARD)
}

fn fuse<'m>(diamond: &Diamond<'m>, pieces: Vec<Piece<'m>>, branches: &mut Vec<Block<'m>>) {
    let was = diamond.head.terminator();
    let mut at = diamond.head;
    let mut ended = Some(was);
    for piece in pieces {
        // The branch's block loses its branch before the first piece is put there.
        if let Some(branch) = ended.take() {
            branches.push(at);
            branch.erase();
        }
        match piece {
            Piece::Pair(a, b) => pair(a, b, diamond.condition, at),
            Piece::Apart(one, other) => {
                branches.push(at);
                at = apart(one, other, diamond, at);
            }
        }
    }
    close(diamond, at, branches);
}

/// One instruction for both, at the end of `at`.
fn pair<'m>(a: Instruction<'m>, b: Instruction<'m>, condition: Value<'m>, at: Block<'m>) {
    let operands = a.operands().into_iter().zip(b.operands()).enumerate();
    for (i, (x, y)) in operands {
        if x != y {
            a.set_operand(i as u32, at.select(condition, x, y));
        }
    }
    a.move_to_end_of(at);
    a.intersect_flags(b);
    a.intersect_metadata(b);
    a.join_locations(a, b);
    if !b.type_of().is_void() {
        b.as_value().replace_all_uses_with(a.as_value());
    }
    b.erase();
}

/// Instructions without partners, each arm's in a block of its own; returns the block in which both go on.
fn apart<'m>(
    one: Vec<Instruction<'m>>,
    other: Vec<Instruction<'m>>,
    diamond: &Diamond<'m>,
    at: Block<'m>,
) -> Block<'m> {
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
    next
}

/// Leads on to the join, whose phis choose by the condition what they chose by the arm.
fn close<'m>(diamond: &Diamond<'m>, at: Block<'m>, branches: &mut Vec<Block<'m>>) {
    for phi in diamond.join.phis() {
        let incoming = phi.incoming();
        let from =
            |arm: Block<'m>| incoming.iter().find(|(_, block)| *block == arm).expect("a phi names each predecessor").0;
        let (x, y) = (from(diamond.arms[0]), from(diamond.arms[1]));
        let value = if x == y { x } else { at.select(diamond.condition, x, y) };
        let mut rest: Vec<_> = incoming.into_iter().filter(|(_, block)| !diamond.arms.contains(block)).collect();
        rest.push((value, at));
        let new = diamond.join.add_phi_in_front(&rest, "");
        new.take_location(phi);
        phi.as_value().replace_all_uses_with(new.as_value());
        phi.erase();
    }
    at.branch_to(diamond.join);
    // An arm may be the head of a diamond that was fused before.
    branches.retain(|branch| !diamond.arms.contains(branch));
    diamond.arms.into_iter().for_each(Block::erase);
}
