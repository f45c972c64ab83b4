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
//! end comes first; then again, until none is left. A merge changes what the join and the new block have in common, and
//! nothing else, so that only these two are looked at again.
//!
//! # Why the meaning is kept
//! Each path runs the same instructions in the same order on the same values, with a jump more.
//!
//! # Limitation
//! Operands are not joined by phis, as registers are not by a code generator's tail merging. Calls are merged when all
//! arguments are the same, volatile and atomic accesses never. The common end begins behind what would hold up lanes
//! that wait for each other (`crate::waits`): a lock that both arms took is given back in each.
//!
//! Source: the tail merging (cross jumping) of compilers, here as a baseline of the paper that `fcs` implements.

use std::collections::BinaryHeap;
use std::rc::Rc;

use flowgraph::{Dominators, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Place;
use crate::alike;
use crate::context::{Context, ONLY_DIVERGENT, THRESHOLD};
use crate::flow::{Flow, reached};
use crate::llvm::{Block, Function, Instruction, Opcode, Value};
use crate::pass::{Pass, Run};
use crate::remark::Reason;
use crate::waits::{Code, InFunction};

/// So many arms of a join are compared with each other: each with each, so that the time grows with the square.
const MOST_ARMS: usize = 32;

/// So often arms of one join are merged: each time costs as much as the join has arms.
const MOST_MERGES: usize = 64;

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "tail-merge",
    summary: "lets arms that end with the same instructions share them",
    source: "a baseline of the paper of fcs",
    parameters: &[THRESHOLD, ONLY_DIVERGENT],
    structures: false,
    run: Run::each(run),
};

/// Merges tails in a function.
fn run<'m>(function: &mut Function<'m>, context: &mut Context<'m>) {
    let together = Together::of(context);
    let mut tails = Tails::of(*function, together, context);
    // That comes with the new block.
    let jumps = context.costs().jump();
    while let Some(tail) = tails.longest() {
        let common = tail.matched.len();
        let gain = common as i64 - jumps;
        let [one, other] = tail.matched.last().copied().unwrap_or(tail.arms.map(Block::terminator));
        let taken = gain >= context.threshold();
        let reason = if taken { Reason::TailsMerged { common } } else { Reason::TailsWithoutProfit { common, jumps } };
        context.remark("arms that end alike".to_owned(), vec![one.place(), other.place()], reason, Some(gain));
        if !taken {
            break;
        }
        let merged = merge(&tail);
        tails.together.made.insert(merged, tail.arms[0]);
        tails.merged(&tail, merged, context);
    }
    let mut held = std::mem::take(&mut tails.together.held);
    held.sort_by_key(|places| format!("{places:?}"));
    held.dedup();
    for places in held {
        context.remark("arms that end alike".to_owned(), places.to_vec(), Reason::HeldUp, None);
    }
    for places in std::mem::take(&mut tails.together.left) {
        context.remark("arms that end alike".to_owned(), places.to_vec(), Reason::LanesAgree, None);
    }
    if tails.given_up > 0 {
        let reason = Reason::GoneOver { left: tails.given_up };
        context.remark("arms that end alike".to_owned(), Vec::new(), reason, None);
    }
}

/// Two predecessors of a join and what they have in common at their ends: pairs of instructions, the last first.
struct Tail<'m> {
    join: Block<'m>,
    arms: [Block<'m>; 2],
    matched: Vec<[Instruction<'m>; 2]>,
}

/// The longest tail of each join.
struct Tails<'m> {
    by_join: FxHashMap<Block<'m>, Tail<'m>>,
    /// How long each join's tail is, its place in the function, and the join's number. Some are out of date.
    heap: BinaryHeap<(usize, u128, usize)>,
    /// By number.
    joins: Vec<Block<'m>>,
    /// By join: its place, and the last place before it, where nothing else is.
    places: FxHashMap<Block<'m>, (u128, u128)>,
    merges: FxHashMap<Block<'m>, usize>,
    /// Joins whose arms were merged as often as may be, and that have more.
    given_up: usize,
    together: Together<'m>,
}

/// Arms between which lanes never part: by the function as it was before the first merge, which leaves the ways to its
/// blocks as they are.
struct Together<'m> {
    asked: bool,
    /// As many instructions are worth it.
    least: i64,
    flow: Rc<Flow<'m>>,
    dominators: Rc<Dominators>,
    /// Where arms were left for that: the places of their ends.
    left: Vec<[Option<Place>; 2]>,
    waits: InFunction<'m>,
    /// Blocks made by merges, by an arm that leads there.
    made: FxHashMap<Block<'m>, Block<'m>>,
    /// Where more is alike than lanes may do together, as they could hold each other up: the places of its beginning.
    held: Vec<[Option<Place>; 2]>,
}

impl<'m> Together<'m> {
    fn of(context: &mut Context<'m>) -> Together<'m> {
        let (flow, dominators, waits) = (context.flow(), context.dominators(), context.waits());
        let least = context.threshold() + context.costs().jump();
        let (made, left, held) = (FxHashMap::default(), Vec::new(), Vec::new());
        Together { asked: context.only_divergent(), least, flow, dominators, left, waits, made, held }
    }

    /// What lanes run between where they part and the ends of these two arms, the arms left out.
    fn front(&self, arms: [Block<'m>; 2]) -> Code {
        let graph = self.flow.graph();
        let node = |mut arm: Block<'m>| {
            while let Some(&from) = self.made.get(&arm) {
                arm = from;
            }
            self.flow.find(arm)
        };
        let [Some(one), Some(other)] = arms.map(node) else { return Code::default() };
        let ends: Vec<NodeId> = self.dominators.nearest_common(one, other).into_iter().chain([one, other]).collect();
        let from: Vec<NodeId> = [one, other].iter().flat_map(|&arm| graph.predecessors(arm)).copied().collect();
        let nodes = reached(&from, &ends, |node| graph.predecessors(node));
        self.waits.blocks(nodes.into_iter().map(|node| self.flow.block(node)))
    }

    /// How many of these pairs lanes may do together without holding each other up.
    fn harmless(&self, arms: [Block<'m>; 2], matched: &[[Instruction<'m>; 2]]) -> usize {
        if !self.waits.any() || matched.is_empty() {
            return matched.len();
        }
        let front = self.front(arms);
        let ways = [0, 1].map(|side| {
            let mut rest = arms[side].instructions();
            rest.truncate(rest.iter().position(|i| *i == matched[matched.len() - 1][side]).unwrap_or(rest.len()));
            rest
        });
        let holds_up = |count: usize| {
            let (common, rest) = matched.split_at(count);
            let common = self.waits.code(common.iter().map(|pair| pair[0]));
            let front = [0, 1].map(|side| {
                front | self.waits.code(ways[side].iter().copied().chain(rest.iter().map(|pair| pair[side])))
            });
            Code::holds_up(front, common, [Code::default(); 2])
        };
        (0..=matched.len()).rev().find(|&count| !holds_up(count)).unwrap_or(0)
    }
}

/// Between the places of two blocks, for those that come between: each halves what is left.
const GAP: u128 = 1 << 90;

impl<'m> Tails<'m> {
    fn of(function: Function<'m>, together: Together<'m>, context: &Context<'m>) -> Tails<'m> {
        let mut tails = Tails {
            by_join: FxHashMap::default(),
            heap: BinaryHeap::new(),
            joins: Vec::new(),
            places: FxHashMap::default(),
            merges: FxHashMap::default(),
            given_up: 0,
            together,
        };
        for (i, block) in function.blocks().into_iter().enumerate() {
            tails.places.insert(block, ((i as u128 + 1) * GAP, i as u128 * GAP));
            tails.look_at(block, context);
        }
        tails
    }

    /// Finds the longest tail of a join again.
    fn look_at(&mut self, join: Block<'m>, context: &Context<'m>) {
        self.by_join.remove(&join);
        let Some(tail) = longest_tail(join, &mut self.together, context) else { return };
        self.heap.push((tail.matched.len(), self.places[&join].0, self.joins.len()));
        self.joins.push(join);
        self.by_join.insert(join, tail);
    }

    /// Takes the longest tail out; of equals that of the last block.
    fn longest(&mut self) -> Option<Tail<'m>> {
        while let Some((length, _, number)) = self.heap.pop() {
            let join = self.joins[number];
            // What is out of date was looked at again, and has an entry of its own.
            if self.by_join.get(&join).is_none_or(|tail| tail.matched.len() != length) {
                continue;
            }
            if self.merges.get(&join).is_some_and(|&merges| merges >= MOST_MERGES) {
                self.by_join.remove(&join);
                self.given_up += 1;
                continue;
            }
            return self.by_join.remove(&join);
        }
        None
    }

    /// Takes note of a merge: `merged` stands just before the join.
    fn merged(&mut self, tail: &Tail<'m>, merged: Block<'m>, context: &Context<'m>) {
        let (place, before) = self.places[&tail.join];
        let between = before.midpoint(place);
        self.places.insert(merged, (between, before));
        self.places.insert(tail.join, (place, between));
        *self.merges.entry(tail.join).or_default() += 1;
        // Blocks split from one join share its measure.
        self.merges.insert(merged, self.merges[&tail.join]);
        self.look_at(tail.join, context);
        self.look_at(merged, context);
    }
}

/// The longest common end of any two predecessors of the block, if there is one at all.
fn longest_tail<'m>(join: Block<'m>, together: &mut Together<'m>, context: &Context<'m>) -> Option<Tail<'m>> {
    let mut arms: Vec<Block> = Vec::new();
    for terminator in join.entering() {
        let jumps = terminator.opcode() == Opcode::LLVMBr && terminator.successors().len() == 1;
        arms.extend(terminator.block().filter(|&arm| jumps && arm != join));
    }
    arms.truncate(MOST_ARMS);
    let mut best: Option<Tail> = None;
    for (i, &one) in arms.iter().enumerate() {
        for &other in &arms[i + 1..] {
            let matched = common_end(join, [one, other], together);
            if matched.len() > best.as_ref().map_or(0, |b| b.matched.len()) {
                let Together { asked, least, flow, dominators, left, .. } = &mut *together;
                let asks = *asked && matched.len() as i64 >= *least;
                if asks && context.lanes_stay_together(flow, dominators, [one, other]) {
                    let [a, b] = matched.last().copied().unwrap_or([one.terminator(), other.terminator()]);
                    left.push([a.place(), b.place()]);
                    continue;
                }
                best = Some(Tail { join, arms: [one, other], matched });
            }
        }
    }
    best
}

/// The matched instructions, the last first. An instruction is taken for the same as its counterpart before its
/// operands were looked at; where they turn out not to be, the match ends before the first use.
fn common_end<'m>(join: Block<'m>, arms: [Block<'m>; 2], together: &mut Together<'m>) -> Vec<[Instruction<'m>; 2]> {
    let bodies = arms.map(|arm| {
        let mut body: Vec<_> = arm.instructions().into_iter().filter(|i| !i.is_phi() && !i.begins_handler()).collect();
        body.pop();
        body
    });
    let pairs = bodies[0].iter().rev().zip(bodies[1].iter().rev()).map(|(a, b)| [*a, *b]);
    let mut matched: Vec<_> = pairs.take_while(|[a, b]| alike::instructions(*a, *b)).collect();
    // Shorter until each operand of a matched instruction is the same, or matched too, and each result is used in the
    // tail or joined.
    let cut = |matched: &mut Vec<_>| {
        while let Some(bad) = first_fault(join, arms, matched) {
            matched.truncate(bad);
        }
    };
    cut(&mut matched);
    let harmless = together.harmless(arms, &matched);
    if harmless < matched.len() {
        together.held.push(matched[harmless].map(Instruction::place));
        matched.truncate(harmless);
        cut(&mut matched);
    }
    matched
}

/// The number of matched instructions up to which all is well, where not all are.
fn first_fault<'m>(join: Block<'m>, arms: [Block<'m>; 2], matched: &[[Instruction<'m>; 2]]) -> Option<usize> {
    let counterparts: FxHashMap<Value, Value> = matched.iter().map(|[a, b]| (a.as_value(), b.as_value())).collect();
    let same = |a: Value<'m>, b: Value<'m>| a == b || counterparts.get(&a) == Some(&b);
    let mine: [FxHashSet<Instruction>; 2] = [0, 1].map(|side| matched.iter().map(|pair| pair[side]).collect());
    let joined: Vec<[Value; 2]> = join
        .phis()
        .into_iter()
        .map(|phi| arms.map(|arm| phi.incoming_from(arm).expect("a phi names each predecessor")))
        .collect();
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

/// Makes one end of two; returns the block that holds it.
fn merge<'m>(tail: &Tail<'m>) -> Block<'m> {
    let [one, other] = tail.arms;
    let merged = tail.join.insert_before("tail");
    let counterparts: FxHashMap<Value, Value> =
        tail.matched.iter().map(|[a, b]| (b.as_value(), a.as_value())).collect();
    alike::join_phis(tail.join, tail.arms, merged, |[a, b]| {
        if a == b || counterparts.get(&b) == Some(&a) {
            a
        } else {
            merged.add_phi(&[(a, one), (b, other)], "").as_value()
        }
    });
    for [kept, _] in tail.matched.iter().rev() {
        kept.move_to_end_of(merged);
    }
    for [kept, dropped] in &tail.matched {
        alike::keep_what_both_promise(*kept, *dropped);
        kept.join_locations(*kept, *dropped);
        dropped.erase();
    }
    for arm in [one, other] {
        arm.terminator().set_successor(0, merged);
    }
    merged.branch_to(tail.join).take_location(one.terminator());
    merged
}
