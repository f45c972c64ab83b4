//! What a melded pair costs lanes that agree. Lanes of one side alone pass choices and branches that only lanes of both
//! sides need, and instructions of the other side that stand under no branch.
//!
//! The bound adds up the worst of each: a choice with its test of the condition and its copy, a copy for each pair that
//! overwrites an operand, loads and addresses that no longer become operands, branches around instructions of one side,
//! moves to the phis after them, values that code generation computed only in the arm that needed them, and one more
//! register for each value that both sides' lanes now keep, which is saved and restored ([`REGISTER`]). Only the jump
//! of the saved branch is subtracted. A cell's loss is that of the side which loses more. Between two iterations of
//! loops, lanes reach a cell at most once, so the sum of all cells' losses bounds the path to the first iteration, and
//! the sum of those in loops bounds each iteration.

use rustc_hash::{FxHashMap, FxHashSet};

use super::matching::joined_operands;
use super::plan::{Planner, Step};
use crate::cost;
use crate::llvm::{Block, Instruction, Value};

/// The loss in one cell: of the lanes of each side.
struct OfCell<'p, 'm> {
    planner: &'p Planner<'p, 'm>,
    number: usize,
    sides: [i64; 2],
    /// Whether what was one block is several.
    apart: bool,
    chosen: FxHashSet<(Value<'m>, Value<'m>)>,
}

impl<'m> OfCell<'_, 'm> {
    fn both(&mut self, more: i64) {
        self.sides = self.sides.map(|side| side + more);
    }

    /// An instruction at its worst: no operand may be overwritten, and where the block is cut, nothing of it becomes an
    /// operand.
    fn worst(&self, i: Instruction<'m>, differs: bool) -> i64 {
        let costs = self.planner.costs;
        let here = |user: Instruction<'m>| user.block() == i.block();
        let by = |beside: &dyn Fn(Instruction<'m>) -> bool| {
            let joined = if differs { costs.fetches_of_joined(i, beside) } else { 0 };
            joined.max(costs.fetches(i, beside)) + costs.copies(i, beside, &|_| false)
        };
        if self.apart { by(&here).max(by(&|_| false)) } else { by(&here) }
    }

    fn pair(&mut self, a: Instruction<'m>, b: Instruction<'m>, differs: bool) {
        let worst = self.worst(a, differs).max(self.worst(b, differs));
        for (side, own) in [a, b].into_iter().enumerate() {
            self.sides[side] += worst - self.planner.cost(own);
        }
    }

    /// Instructions that lanes of both sides run, or that stand under a branch.
    fn alone(&mut self, list: &[Instruction<'m>], all_run_it: bool) {
        let blocks = &self.planner.candidate.cells[self.number].blocks;
        for &i in list {
            let worst = self.worst(i, false);
            for (side, block) in blocks.iter().enumerate() {
                if *block == i.block() {
                    self.sides[side] += worst - self.planner.cost(i);
                } else if all_run_it {
                    self.sides[side] += worst;
                }
            }
        }
    }
}

/// A register more: a store and a load, of the value that it takes the place of or of the caller's.
const REGISTER: i64 = 2;

/// What was computed for one side only is followed so far back.
const DEEPEST: usize = 4;

impl<'m> Planner<'_, 'm> {
    /// The highest cost of a choice, alone in the code.
    fn worst_choice(&self, x: Value<'m>, y: Value<'m>) -> i64 {
        let register = if x.is_constant() && y.is_constant() { 0 } else { REGISTER };
        let computed = self.computed_for(0, x, DEEPEST) + self.computed_for(1, y, DEEPEST);
        self.costs.fetches_of_choices(&[(x, y)]) + self.costs.copies_of_choice(x) + register + computed
    }

    /// What computes a value from outside that only one arm needs: code generation sinks it there (LLVM's MachineSink),
    /// unless a choice needs it on both sides.
    fn computed_for(&self, side: usize, value: Value<'m>, depth: usize) -> i64 {
        let Some(i) = value.as_instruction().filter(|i| depth > 0 && !i.is_phi()) else { return 0 };
        let of_side = |block: Block<'m>| self.region.paths[side].iter().any(|s| s.blocks.contains(&block));
        let made_before = i.block().is_some_and(|block| !of_side(block));
        let uses = value.uses();
        if !made_before || !uses.iter().all(|u| u.needed_in().is_some_and(of_side) || depth < DEEPEST) {
            return 0;
        }
        let before = i.operands().into_iter().filter(|operand| operand.uses().len() == 1);
        self.cost(i) + before.map(|operand| self.computed_for(side, operand, depth - 1)).sum::<i64>()
    }

    /// Fetches that lanes which agree lose at most: each time that they come by, and more for each turn of a loop.
    pub(super) fn loss(
        &self,
        steps: &[Vec<Step<'m>>],
        partner: &FxHashMap<Value<'m>, Value<'m>>,
        phis: &[[Instruction<'m>; 2]],
        carried: usize,
    ) -> (i64, i64) {
        let same = |x: Value<'m>, y: Value<'m>| x == y || partner.get(&x) == Some(&y);
        let (mut once, mut turn, mut moved) = (0, 0, 0);
        let mut outside = FxHashSet::default();
        for (number, steps) in steps.iter().enumerate() {
            let cell = &self.candidate.cells[number];
            let apart = steps.iter().any(|step| matches!(step, Step::Guarded(..)));
            let mut here = OfCell { planner: self, number, sides: [0; 2], apart, chosen: FxHashSet::default() };
            let mut choose = |x: Value<'m>, y: Value<'m>, here: &mut OfCell<'_, 'm>| {
                if same(x, y) {
                    return;
                }
                let is_outside = !self.inside[0].contains(&x) && !self.inside[1].contains(&y);
                let late = self.is_late(number) && x.is_constant() && y.is_constant();
                if !is_outside || late {
                    let worst = if here.chosen.insert((x, y)) { self.worst_choice(x, y) } else { 0 };
                    here.both(worst);
                } else if !self.was_chosen(x, y) && outside.insert((x, y)) {
                    once += self.worst_choice(x, y);
                }
            };
            for (side, block) in cell.blocks.iter().enumerate() {
                for phi in block.iter().flat_map(|block| block.phis()) {
                    if let Some([a, b]) = phis.iter().find(|pair| pair[side] == phi) {
                        let of_outside = |phi: &Instruction<'m>, side: usize| {
                            let incoming = phi.incoming().into_iter();
                            let mut brought = incoming.filter(|(_, from)| !self.is_member(side, *from));
                            brought.next().map(|(value, _)| value)
                        };
                        if let (0, Some(x), Some(y)) = (side, of_outside(a, 0), of_outside(b, 1)) {
                            choose(x, y, &mut here);
                        }
                    } else {
                        // Lanes of the other side move it too.
                        here.sides[1 - side] += 1;
                        moved += REGISTER;
                    }
                }
            }
            for step in steps {
                match step {
                    Step::Pair(a, b) => {
                        let mut differs = false;
                        for (i, (x, y)) in joined_operands(*a, *b, &same).into_iter().enumerate() {
                            differs |= i == 1 && !same(x, y);
                            choose(x, y, &mut here);
                        }
                        here.pair(*a, *b, differs);
                    }
                    Step::Guarded(one, other) => {
                        here.both(self.costs.guard() + self.costs.jump());
                        [one, other].into_iter().for_each(|list| here.alone(list, false));
                    }
                    Step::Plain(list) => here.alone(list, cell.has_both()),
                }
            }
            match cell.blocks.map(|block| block.and_then(|b| b.terminator().condition())) {
                [Some(x), Some(y)] => {
                    choose(x, y, &mut here);
                    // Both comparisons are kept in registers, the one that is chosen is looked at.
                    here.both(if same(x, y) { 0 } else { self.costs.guard() + 1 });
                }
                [None, None] => {}
                _ => here.both(if cell.steer.is_some() { self.costs.guard() + self.costs.jump() } else { 0 }),
            }
            let worst = here.sides.into_iter().max().unwrap_or(0);
            once += worst;
            turn += if cell.blocks.iter().flatten().any(|&b| self.weights.of(b) > 1) { worst } else { 0 };
        }
        let (exits, _) = self.exit_choices(partner);
        let behind: i64 = exits.iter().map(|&(x, y)| self.worst_choice(x, y)).sum();
        // The condition is kept in a register for what follows.
        let kept = i64::from(cost::is_comparison(self.region.condition)) + REGISTER;
        let jump = i64::from(self.around.is_first);
        let carried = carried as i64 * (1 + REGISTER);
        (
            (once + moved + behind + carried + kept + self.branches_around(self.costs.guard() + self.costs.jump()).1
                - jump)
                .max(0),
            turn,
        )
    }

    fn is_member(&self, side: usize, block: Block<'m>) -> bool {
        self.subgraph(side).blocks.contains(&block)
    }
}
