//! `tail-merge`: common ends of the arms of a branch, once.
//!
//! ```text
//! before                              after
//! then:                               then:
//!   x = id + 1                          x = id + 1
//!   store x, p                          store x, p
//!   store 1, done                       goto tail
//!   goto join                         else:
//! else:                                 store 0, p
//!   store 0, p                          goto tail
//!   store 1, done                     tail:
//!   goto join                           store 1, done
//!                                       goto join
//! ```
//!
//! Arms that end with the same instructions can share them: lanes that parted meet before the join. Compilers do it to
//! save space. It is a baseline here: it finds only what stands at the very end and is identical, operands included.
//!
//! # Steps
//! For each block and each two of its predecessors that end with a plain jump to it: compare their instructions from
//! the end backwards, as long as they do the same with the same operands, an operand being the same also when it is
//! made by instructions already matched. Move the matched instructions of one into a new block before the join, drop
//! those of the other, and let both jump there. Phis of the join get one value from the new block instead of two: the
//! result of a matched pair where they have both halves of it, else a phi of two values that are made before the tail.
//! Where a phi has one half of a pair and another value beside it, the match ends before that pair. The longest common
//! end comes first; then again, until none is left.
//!
//! # Why the meaning is kept
//! Each path runs the same instructions in the same order on the same values, with a jump more.
//!
//! # Limitation
//! Operands are not joined by phis, as registers are not by a code generator's tail merging. Calls are merged when all
//! arguments are the same, volatile and atomic accesses never.
//!
//! Source: the tail merging (cross jumping) of compilers, here as a baseline of the paper that `fcs` implements.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidate::place;
use crate::llvm::{Block, Function, Instruction, Module, Opcode, Value};
use crate::registry::Options;
use crate::{Candidate, Result, Verdict};

const NAME: &str = "tail-merge";

/// So many arms of a join are compared with each other: each with each, so that the time grows with the square.
const MOST_ARMS: usize = 32;

/// The jump that comes with a new block.
const COST: i64 = 1;

/// Merges tails in every function.
pub(crate) fn run(module: &mut Module, options: &Options) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for function in module.functions_to_optimise() {
        in_function(function, options, &mut candidates);
    }
    Ok(candidates)
}

/// Two predecessors of a join and what they have in common at their ends: pairs of instructions, the last first.
struct Tail<'m> {
    join: Block<'m>,
    arms: [Block<'m>; 2],
    matched: Vec<[Instruction<'m>; 2]>,
}

fn in_function<'m>(function: Function<'m>, options: &Options, candidates: &mut Vec<Candidate>) {
    loop {
        let tails = function.blocks().into_iter().flat_map(longest_tail);
        let Some(tail) = tails.max_by_key(|tail| tail.matched.len()) else { break };
        let profit = tail.matched.len() as i64 - COST;
        let [one, other] = tail.matched.last().copied().unwrap_or(tail.arms.map(Block::terminator));
        let verdict = if profit < options.threshold {
            Verdict::Left(format!("no profit: {} instructions in common, {COST} jump more", tail.matched.len()))
        } else {
            Verdict::Taken(format!("{} instructions in common", tail.matched.len()))
        };
        let candidate = Candidate {
            pass: NAME,
            function: function.name(),
            subject: "arms that end alike".to_owned(),
            places: vec![place(one), place(other)],
            verdict,
        };
        let taken = candidate.is_taken();
        candidates.push(candidate);
        if !taken {
            break;
        }
        merge(&tail);
    }
}

/// The longest common end of any two predecessors of the block, if there is one at all.
fn longest_tail(join: Block<'_>) -> Option<Tail<'_>> {
    let mut arms: Vec<Block> = Vec::new();
    for terminator in join.entering() {
        let jumps = terminator.opcode() == Opcode::LLVMBr && terminator.successors().len() == 1;
        arms.extend(terminator.block().filter(|&arm| jumps && arm != join));
    }
    arms.truncate(MOST_ARMS);
    let mut best: Option<Tail> = None;
    for (i, &one) in arms.iter().enumerate() {
        for &other in &arms[i + 1..] {
            let matched = common_end(join, [one, other]);
            if matched.len() > best.as_ref().map_or(0, |b| b.matched.len()) {
                best = Some(Tail { join, arms: [one, other], matched });
            }
        }
    }
    best
}

/// The matched instructions, the last first. An instruction is taken for the same as its counterpart before its
/// operands were looked at; where they turn out not to be, the match ends before the first use.
fn common_end<'m>(join: Block<'m>, arms: [Block<'m>; 2]) -> Vec<[Instruction<'m>; 2]> {
    let bodies = arms.map(|arm| {
        let mut body: Vec<_> = arm.instructions().into_iter().filter(|i| !i.is_phi() && !i.begins_handler()).collect();
        body.pop();
        body
    });
    let pairs = bodies[0].iter().rev().zip(bodies[1].iter().rev()).map(|(a, b)| [*a, *b]);
    let mut matched: Vec<_> = pairs.take_while(|[a, b]| can_be_one(*a, *b)).collect();
    // Shorter until each operand of a matched instruction is the same, or matched too, and each result is used in the
    // tail or joined.
    while let Some(bad) = first_fault(join, arms, &matched) {
        matched.truncate(bad);
    }
    matched
}

fn can_be_one<'m>(a: Instruction<'m>, b: Instruction<'m>) -> bool {
    a.calls_the_same_as(b) || a.does_the_same_as(b)
}

/// The number of matched instructions up to which all is well, where not all are.
fn first_fault<'m>(join: Block<'m>, arms: [Block<'m>; 2], matched: &[[Instruction<'m>; 2]]) -> Option<usize> {
    let counterparts: FxHashMap<Value, Value> = matched.iter().map(|[a, b]| (a.as_value(), b.as_value())).collect();
    let same = |a: Value<'m>, b: Value<'m>| a == b || counterparts.get(&a) == Some(&b);
    let mine: [FxHashSet<Instruction>; 2] = [0, 1].map(|side| matched.iter().map(|pair| pair[side]).collect());
    let joined: Vec<[Value; 2]> = join.phis().into_iter().map(|phi| arms.map(|arm| value_from(phi, arm))).collect();
    matched.iter().position(|[a, b]| {
        let mut operands = a.operands().into_iter().zip(b.operands());
        let used_here = |i: Instruction<'m>, side: usize| {
            i.as_value().uses().into_iter().all(|u| {
                let in_phi = u.user.is_phi() && u.user.block() == Some(join) && u.needed_in() == Some(arms[side]);
                mine[side].contains(&u.user) || in_phi
            })
        };
        // A phi of the join gets one value for both arms: the pair's, if it has either of the two.
        let joined_alike = joined.iter().all(|&[x, y]| (x == a.as_value()) == (y == b.as_value()));
        !used_here(*a, 0) || !used_here(*b, 1) || !joined_alike || operands.any(|(x, y)| !same(x, y))
    })
}

/// What a phi takes when control comes from this block.
fn value_from<'m>(phi: Instruction<'m>, from: Block<'m>) -> Value<'m> {
    phi.incoming().into_iter().find(|(_, block)| *block == from).expect("a phi names each predecessor").0
}

fn merge(tail: &Tail<'_>) {
    let [one, other] = tail.arms;
    let merged = tail.join.insert_before("tail");
    let counterparts: FxHashMap<Value, Value> =
        tail.matched.iter().map(|[a, b]| (b.as_value(), a.as_value())).collect();
    join_phis(tail, merged, &counterparts);
    for [kept, _] in tail.matched.iter().rev() {
        kept.move_to_end_of(merged);
    }
    for [kept, dropped] in &tail.matched {
        if kept.opcode() == Opcode::LLVMCall {
            kept.intersect_attributes(*dropped);
            if !dropped.may_be_tail() {
                kept.forbid_tail();
            }
        }
        kept.intersect_flags(*dropped);
        kept.intersect_metadata(*dropped);
        kept.join_locations(*kept, *dropped);
        dropped.erase();
    }
    for arm in [one, other] {
        arm.terminator().set_successor(0, merged);
    }
    merged.branch_to(tail.join).take_location(one.terminator());
}

/// Gives each phi of the join one value from the new block instead of one from each arm.
fn join_phis<'m>(tail: &Tail<'m>, merged: Block<'m>, counterparts: &FxHashMap<Value<'m>, Value<'m>>) {
    for phi in tail.join.phis() {
        let incoming = phi.incoming();
        let [a, b] = tail.arms.map(|arm| value_from(phi, arm));
        let value = if a == b || counterparts.get(&b) == Some(&a) {
            a
        } else {
            merged.add_phi(&[(a, tail.arms[0]), (b, tail.arms[1])], "").as_value()
        };
        let mut rest: Vec<_> = incoming.into_iter().filter(|(_, block)| !tail.arms.contains(block)).collect();
        rest.push((value, merged));
        let new = tail.join.add_phi_in_front(&rest, "");
        new.take_location(phi);
        phi.as_value().replace_all_uses_with(new.as_value());
        phi.erase();
    }
}
