//! Which instructions become one, and how much that saves.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Diamond;
use crate::alignment::{self, align, pairs};
use crate::alike;
use crate::cost::{self, CostModel};
use crate::joining::{Exchange, beside_each_other, can_be_chosen};
use crate::llvm::{Instruction, Opcode, Value};

/// The operands of a pair beside each other, in the order of the first. Those of a sum and its like are exchanged where
/// more of them are the same then.
pub(super) fn joined_operands<'m>(
    a: Instruction<'m>,
    b: Instruction<'m>,
    same: &dyn Fn(Value<'m>, Value<'m>) -> bool,
) -> Vec<(Value<'m>, Value<'m>)> {
    beside_each_other(a, b, Exchange::No, same)
}

/// A piece of the fused arms.
pub(super) type Piece<'m> = alignment::Piece<Instruction<'m>>;

/// Whether two instructions can be one at all, with choices for their operands. Of calls only those of intrinsics.
fn can_be_one<'m>(a: Instruction<'m>, b: Instruction<'m>) -> bool {
    let calls = a.opcode() == Opcode::LLVMCall && !a.callee().is_some_and(Value::is_intrinsic);
    // A field of a structure is a constant, and cannot be chosen; nor, for a like reason, further indices in general.
    let index = |i: usize, _: Value<'m>, _: Value<'m>| i == 0 || a.operands().len() <= 2;
    !calls && alike::instructions(a, b) && can_be_chosen(a, b, index)
}

/// What a pair costs itself, and the operands that must be chosen for it.
fn fetches_of_pair<'m>(
    costs: &dyn CostModel,
    a: Instruction<'m>,
    b: Instruction<'m>,
    beside: &dyn Fn(Instruction<'m>) -> bool,
    same: &dyn Fn(Value<'m>, Value<'m>) -> bool,
) -> (i64, Vec<(Value<'m>, Value<'m>)>) {
    let mut chosen = Vec::new();
    let mut second_differs = false;
    for (i, (x, y)) in joined_operands(a, b, same).into_iter().enumerate() {
        if !same(x, y) {
            chosen.push((x, y));
            second_differs |= i == 1;
        }
    }
    let itself = if second_differs { costs.fetches_of_joined(a, beside) } else { costs.fetches(a, beside) };
    (itself, chosen)
}

/// Whose choices an alignment counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    /// Those of every pair.
    All,
    /// Those between a value of an arm and one from outside: others are taken to be made for many pairs at once.
    Mixed,
    /// None, nor gaps: as many instructions as possible are paired, to see what that would cost.
    None,
}

/// What one instruction for both saves; none where they cannot be one. Operands made in the arms are taken to be paired
/// too.
fn saving<'m>(costs: &dyn CostModel, a: Instruction<'m>, b: Instruction<'m>, counted: Counted) -> Option<i64> {
    if !can_be_one(a, b) {
        return None;
    }
    let made_in = |arm: Instruction<'m>, v: Value<'m>| v.as_instruction().is_some_and(|i| i.block() == arm.block());
    let same = |x: Value<'m>, y: Value<'m>| {
        let inside = (made_in(a, x), made_in(b, y));
        x == y
            || inside == (true, true)
            || counted == Counted::None
            || (counted == Counted::Mixed && inside == (false, false))
    };
    let in_arm = |user: Instruction<'m>| user.block() == a.block() || user.block() == b.block();
    let (itself, chosen) = fetches_of_pair(costs, a, b, &in_arm, &same);
    let apart = costs.fetches(a, &in_arm) + costs.fetches(b, &in_arm);
    Some(apart - itself - costs.fetches_of_choices(&chosen))
}

/// The alignment of a diamond's arms that needs the fewest fetches, and how many fetches the arms take where lanes
/// part, separate and fused. None if nothing can be paired.
pub(super) fn best<'m>(diamond: &Diamond<'m>) -> Option<(Vec<Piece<'m>>, i64, i64)> {
    let way = |counted| {
        let gap = if counted == Counted::None { 0 } else { diamond.costs.guard() };
        let [one, other] = &diamond.bodies;
        let pieces = align(one, other, [gap, 0], usize::MAX, |a, b| saving(diamond.costs, a, b, counted));
        let after = fused(diamond, &pieces);
        Some((pieces, after)).filter(|(pieces, _)| pairs(pieces).next().is_some())
    };
    let worth_it = [Counted::Mixed, Counted::All].into_iter().filter_map(way).min_by_key(|(_, after)| *after);
    let (pieces, after) = worth_it.or_else(|| way(Counted::None))?;
    Some((pieces, apart(diamond), after))
}

/// What the two arms bring to the phis of the join, where they differ.
fn joined<'m>(diamond: &Diamond<'m>) -> Vec<(Value<'m>, Value<'m>)> {
    let values = diamond.join.phis().into_iter().map(|phi| diamond.arms.map(|arm| phi.incoming_from(arm)));
    let both = values.filter_map(|values| if let [Some(x), Some(y)] = values { Some((x, y)) } else { None });
    both.filter(|(x, y)| x != y).collect()
}

/// How many fetches the arms are where lanes part.
fn apart(diamond: &Diamond<'_>) -> i64 {
    let bodies = &diamond.bodies;
    let of_arm = |body: &Vec<Instruction<'_>>| -> i64 {
        let beside = |user: Instruction<'_>| body.first().is_some_and(|first| user.block() == first.block());
        body.iter().map(|&i| diamond.costs.fetches(i, &beside)).sum()
    };
    let jump = if bodies.iter().any(Vec::is_empty) { 0 } else { diamond.costs.jump() };
    // A constant that goes to the join is moved into its register.
    let constants = joined(diamond).into_iter().flat_map(|(x, y)| [x, y]).filter(|v| v.is_constant()).count();
    bodies.iter().map(of_arm).sum::<i64>() + diamond.costs.guard() + jump + constants as i64
}

/// How many fetches the fused arms are.
fn fused<'m>(diamond: &Diamond<'m>, pieces: &[Piece<'m>]) -> i64 {
    let (straight, costs) = (&straight_pieces(pieces), diamond.costs);
    let partner: FxHashMap<Value, Value> = pairs(pieces).map(|(a, b)| (a.as_value(), b.as_value())).collect();
    let same = |x: Value<'m>, y: Value<'m>| x == y || partner.get(&x) == Some(&y);
    let beside = |here: usize| move |user: Instruction<'m>| straight.get(&user) == Some(&here);
    let (mut total, mut looks, mut here) = (0, 0, 0);
    // A choice is made once.
    let mut known = FxHashSet::default();
    let mut choose = |mut values: Vec<(Value<'m>, Value<'m>)>, here: usize| {
        values.retain(|&values| known.insert(values));
        let (by_select, moves) = split_choices(values, here, straight);
        let by_select = costs.fetches_of_choices(&by_select);
        looks += i64::from(by_select > 0);
        by_select + moves
    };
    for piece in pieces {
        total += match piece {
            Piece::Pair(a, b) => {
                let (itself, chosen) = fetches_of_pair(costs, *a, *b, &beside(here), &same);
                itself + choose(chosen, here)
            }
            Piece::Apart(one, other) => {
                let jump = if one.is_empty() || other.is_empty() { 0 } else { costs.jump() };
                let first: i64 = one.iter().map(|&i| costs.fetches(i, &beside(here + 1))).sum();
                let second: i64 = other.iter().map(|&i| costs.fetches(i, &beside(here + 2))).sum();
                here += 3;
                costs.guard() + jump + first + second
            }
        };
    }
    total += choose(joined(diamond).into_iter().filter(|&(x, y)| !same(x, y)).collect(), here);
    looks += pieces.len() as i64 - pairs(pieces).count() as i64;
    // A condition that is looked at again must be kept in a register.
    total + i64::from(looks > 1 && cost::is_comparison(diamond.condition))
}

/// The values that selects choose between, and how many moves the other choices take: right after instructions of one
/// side, phis make the choice, unless a pair after them made one of the two.
fn split_choices<'m>(
    values: Vec<(Value<'m>, Value<'m>)>,
    here: usize,
    straight: &FxHashMap<Instruction<'m>, usize>,
) -> (Vec<(Value<'m>, Value<'m>)>, i64) {
    let made_in = |v: Value<'m>| v.as_instruction().and_then(|made| straight.get(&made)).copied();
    let (by_phi, by_select): (Vec<_>, Vec<_>) =
        values.into_iter().partition(|&(x, y)| here > 0 && made_in(x) != Some(here) && made_in(y) != Some(here));
    let moves = by_phi.into_iter().map(|(x, y)| {
        let from_outside = [made_in(x) != Some(here - 2), made_in(y) != Some(here - 1)];
        let constants = i64::from(x.is_constant()) + i64::from(y.is_constant());
        constants.max(i64::from(from_outside.contains(&true)))
    });
    let moves = moves.sum();
    (by_select, moves)
}

/// Which instructions will stand in one block: pairs that follow each other, and each side of what is apart, by a
/// number.
fn straight_pieces<'m>(pieces: &[Piece<'m>]) -> FxHashMap<Instruction<'m>, usize> {
    let mut numbers = FxHashMap::default();
    let mut number = 0;
    for piece in pieces {
        match piece {
            Piece::Pair(a, b) => {
                numbers.insert(*a, number);
                numbers.insert(*b, number);
            }
            Piece::Apart(one, other) => {
                numbers.extend(one.iter().map(|&i| (i, number + 1)));
                numbers.extend(other.iter().map(|&i| (i, number + 2)));
                number += 3;
            }
        }
    }
    numbers
}
