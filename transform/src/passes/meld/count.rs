//! What a planned melding costs, compared with both sides apart: what a GPU issues and cycles, choices, copies, and the
//! branches with the barriers around.

use rustc_hash::{FxHashMap, FxHashSet};

use super::matching::{can_be_one, joined_operands};
use super::pairs::{body, can_be_speculated};
use super::plan::{Planner, Step};
use super::region::Subgraph;
use crate::cost::{self, CostModel, OnGpu};
use crate::llvm::{Block, Instruction, Opcode, Value};
use crate::remark::Melding;

/// A block after instructions of one side each: a value that was neither made nor chosen in it is joined by a phi.
#[derive(Default)]
struct Behind<'m> {
    /// What each side made.
    sides: Option<[FxHashSet<Value<'m>>; 2]>,
    /// What was made since.
    made: FxHashSet<Value<'m>>,
    /// What was joined since.
    known: FxHashSet<(Value<'m>, Value<'m>)>,
}

impl<'m> Behind<'m> {
    fn instructions(one: &[Instruction<'m>], other: &[Instruction<'m>]) -> Behind<'m> {
        let values = |list: &[Instruction<'m>]| list.iter().map(|i| i.as_value()).collect();
        Behind { sides: Some([values(one), values(other)]), ..Behind::default() }
    }

    /// How many moves a phi of two values is, where it is one: a value that its side did not make right before it is
    /// moved to the place of the other, and a constant to a register.
    fn by_phi(&self, x: Value<'m>, y: Value<'m>) -> Option<i64> {
        let [one, other] = self.sides.as_ref()?;
        let is_phi = !self.made.contains(&x) && !self.made.contains(&y);
        let constants = i64::from(x.is_constant()) + i64::from(y.is_constant());
        is_phi.then(|| constants.max(i64::from(!one.contains(&x) || !other.contains(&y))))
    }
}

/// How many operands of pairs each choice stands for: all, and those that are still to come.
struct Exchanges<'m> {
    of: FxHashMap<(Value<'m>, Value<'m>), (usize, usize)>,
}

impl<'m> Exchanges<'m> {
    fn of(steps: &[Vec<Step<'m>>], same: &dyn Fn(Value<'m>, Value<'m>) -> bool) -> Exchanges<'m> {
        let mut of: FxHashMap<_, (usize, usize)> = FxHashMap::default();
        for step in steps.iter().flatten() {
            let Step::Pair(a, b) = step else { continue };
            for values in joined_operands(*a, *b, same).into_iter().filter(|(x, y)| !same(*x, *y)) {
                let (all, left) = of.entry(values).or_default();
                (*all, *left) = (*all + 1, *left + 1);
            }
        }
        Exchanges { of }
    }

    /// Whether nothing more comes of a choice, one operand taken.
    fn is_last(&mut self, x: Value<'m>, y: Value<'m>) -> bool {
        let left = self.of.get_mut(&(x, y)).map(|(_, left)| left);
        left.is_none_or(|left| {
            *left = left.saturating_sub(1);
            *left == 0
        })
    }
}

/// What is counted on the way through a plan.
struct Tally<'p, 'm> {
    planner: &'p Planner<'p, 'm>,
    partner: &'p FxHashMap<Value<'m>, Value<'m>>,
    exchanges: Exchanges<'m>,
    apart: i64,
    melded: i64,
    cycles_apart: i64,
    cycles_melded: i64,
    pairs: usize,
    selects: usize,
    branches: usize,
    /// Choices between values from outside of both sides, and the copies that they need.
    outside: Vec<(Value<'m>, Value<'m>)>,
    known_outside: FxHashSet<(Value<'m>, Value<'m>)>,
    copies_outside: i64,
}

/// What is counted in a cell, each time it runs.
#[derive(Default)]
struct OfCell<'m> {
    number: usize,
    known: FxHashSet<(Value<'m>, Value<'m>)>,
    chosen: Vec<(Value<'m>, Value<'m>)>,
    /// Copies that choices need.
    copies: i64,
    fetches: i64,
    cycles: i64,
    /// What stands right behind instructions of one side each.
    behind: Behind<'m>,
}

impl<'m> Tally<'_, 'm> {
    fn same(&self, x: Value<'m>, y: Value<'m>) -> bool {
        x == y || self.partner.get(&x) == Some(&y)
    }

    fn is_outside(&self, x: Value<'m>, y: Value<'m>) -> bool {
        !self.planner.inside[0].contains(&x) && !self.planner.inside[1].contains(&y)
    }

    /// A choice between two values, where there must be one.
    fn choose(&mut self, x: Value<'m>, y: Value<'m>, cell: &mut OfCell<'m>) {
        let outside = self.is_outside(x, y);
        if self.same(x, y) || (outside && self.planner.was_chosen(x, y)) {
            return;
        }
        let here = self.planner.is_late(cell.number) && x.is_constant() && y.is_constant();
        if outside && !here {
            if self.known_outside.insert((x, y)) {
                self.outside.push((x, y));
                self.copies_outside += self.planner.copies_of_choice(x, y, &self.exchanges);
            }
        } else if cell.known.insert((x, y)) {
            cell.chosen.push((x, y));
            cell.copies += self.planner.copies_of_choice(x, y, &self.exchanges);
        }
    }

    fn pair(&mut self, a: Instruction<'m>, b: Instruction<'m>, cell: &mut OfCell<'m>) {
        let (planner, costs) = (self.planner, self.planner.machine);
        let before = cell.chosen.len();
        let mut differs = false;
        let mut free = FxHashSet::default();
        let operands = joined_operands(a, b, &|x, y| self.same(x, y));
        for (i, (x, y)) in operands.into_iter().enumerate() {
            let same = self.same(x, y);
            differs |= (i == 1 || a.opcode() == Opcode::LLVMLoad) && !same;
            let by_phi = cell.behind.by_phi(x, y).filter(|_| !same && !self.is_outside(x, y));
            if let Some(moves) = by_phi {
                cell.fetches += if cell.behind.known.insert((x, y)) { moves * costs.unit() / 2 } else { 0 };
            } else {
                self.choose(x, y, cell);
            }
            let last = if same {
                !x.is_constant() && !planner.lives.on(x, a) && !planner.lives.on(y, b)
            } else {
                self.exchanges.is_last(x, y)
            };
            free.extend(last.then_some(i));
        }
        // Those of one instruction stand side by side.
        cell.fetches += costs.fetches_of_choices(&cell.chosen[before..]);
        let beside = |user: Instruction<'m>| user.block() == a.block();
        cell.fetches += if differs { costs.fetches_of_joined(a, &beside) } else { planner.issued(a) };
        cell.fetches += costs.copies(a, &beside, &|i| free.contains(&i));
        cell.cycles += planner.latency(a).max(planner.latency(b));
        // What both call is run once.
        let callee = planner.weights.of_callee(a);
        cell.fetches += callee.fetches * costs.unit();
        cell.cycles += callee.latency;
        self.pairs += 1;
        cell.behind.made.extend([a.as_value(), b.as_value()]);
    }

    fn step(&mut self, step: &Step<'m>, cell: &mut OfCell<'m>) {
        let planner = self.planner;
        match step {
            Step::Pair(a, b) => self.pair(*a, *b, cell),
            Step::Guarded(one, other) => {
                let jump = if one.is_empty() || other.is_empty() { 0 } else { planner.machine.jump() };
                let of = |list: &[Instruction<'m>]| list.iter().map(|&i| planner.fetches_of(i)).sum::<i64>();
                let sides = [of(one), of(other)];
                let barriers = OnGpu::barriers(sides[0].max(sides[1]));
                cell.fetches += planner.machine.guard() + jump + barriers + sides[0] + sides[1];
                let all = one.iter().chain(other);
                cell.cycles += planner.costs.guard() + all.map(|&i| planner.cycles_of(i)).sum::<i64>();
                self.branches += 1;
                cell.behind = Behind::instructions(one, other);
            }
            Step::Plain(list) => {
                cell.behind.made.extend(list.iter().map(|i| i.as_value()));
                cell.fetches += list.iter().map(|&i| planner.fetches_of(i)).sum::<i64>();
                cell.cycles += list.iter().map(|&i| planner.cycles_of(i)).sum::<i64>();
            }
        }
    }

    /// A cell as a whole: what it is apart, its steps, its branch.
    fn cell(&mut self, number: usize, steps: &[Step<'m>]) {
        let planner = self.planner;
        let cell = &planner.candidate.cells[number];
        let weight = cell.blocks.iter().flatten().map(|&block| planner.weights.of(block)).max().unwrap_or(1);
        for &block in cell.blocks.iter().flatten() {
            let test = i64::from(block.terminator().condition().is_some());
            let body = body(block);
            let branch = test * planner.machine.unit() + planner.barriers_behind(block);
            self.apart += weight * (body.iter().map(|&i| planner.fetches_of(i)).sum::<i64>() + branch);
            self.cycles_apart += weight * (body.iter().map(|&i| planner.cycles_of(i)).sum::<i64>() + test);
        }
        let mut here = OfCell { number, ..OfCell::default() };
        for step in steps {
            self.step(step, &mut here);
        }
        let before = here.chosen.len();
        let conditions = cell.blocks.map(|block| block.and_then(|b| b.terminator().condition()));
        match conditions {
            [Some(x), Some(y)] => self.choose(x, y, &mut here),
            [None, None] => {}
            // The other side's lanes are steered by a constant.
            _ => here.fetches += i64::from(cell.steer.is_some()) * planner.machine.guard(),
        }
        let test = i64::from(conditions.iter().any(Option::is_some));
        let barriers = cell.blocks.iter().flatten().map(|&block| planner.barriers_behind(block)).max().unwrap_or(0);
        let branch = test * planner.machine.unit() + barriers;
        let choices = here.copies + planner.machine.fetches_of_choices(&here.chosen[before..]);
        self.selects += here.chosen.len();
        self.melded += weight * (here.fetches + branch + choices);
        self.cycles_melded += weight * (here.cycles + test + here.chosen.len() as i64);
    }
}

impl<'m> Planner<'_, 'm> {
    /// What a GPU issues for an instruction on its own side, with what it calls.
    fn fetches_of(&self, i: Instruction<'m>) -> i64 {
        self.issued_with_copies(i) + self.weights.of_callee(i).fetches * self.machine.unit()
    }

    /// What has lanes wait that part at the end of a block, by the sides that begin right behind it.
    fn barriers_behind(&self, block: Block<'m>) -> i64 {
        let end = block.terminator();
        if end.condition().is_none() {
            return 0;
        }
        let sides = end.successors().into_iter().filter(|to| self.cells.contains_key(to) && to.entering() == [end]);
        let of = |side: Block<'m>| body(side).into_iter().map(|i| self.fetches_of(i)).sum::<i64>();
        OnGpu::barriers(sides.map(of).max().unwrap_or(0))
    }

    /// Its cycles, with what it calls.
    fn cycles_of(&self, i: Instruction<'m>) -> i64 {
        self.latency(i) + self.weights.of_callee(i).latency
    }

    /// What it costs, apart and melded, that in tenths of the GPU's instructions, and what was chosen from outside; but
    /// not what lanes lose that agree.
    pub(super) fn melding(
        &self,
        steps: &[Vec<Step<'m>>],
        partner: &FxHashMap<Value<'m>, Value<'m>>,
    ) -> (Melding, [i64; 2], FxHashSet<(Value<'m>, Value<'m>)>) {
        let costs = self.machine;
        let mut hoisted: FxHashSet<Instruction> = self.hoisted_anyway(steps).into_iter().collect();
        let sunk = self.sunk_anyway();
        // Then there is no branch left.
        let all_sunk = !sunk.is_empty()
            && self.begins_paths()
            && (0..2).all(|side| {
                self.subgraph(side).blocks.iter().map(|&block| body(block).len()).sum::<usize>() == sunk.len()
            });
        hoisted.extend(sunk);
        let mut tally = Tally {
            planner: self,
            partner,
            exchanges: Exchanges::of(steps, &|x, y| x == y || partner.get(&x) == Some(&y)),
            apart: -hoisted.iter().map(|&i| self.issued(i)).sum::<i64>(),
            melded: 0,
            cycles_apart: -hoisted.iter().map(|&i| self.latency(i)).sum::<i64>(),
            cycles_melded: 0,
            pairs: 0,
            selects: 0,
            branches: 0,
            outside: Vec::new(),
            known_outside: FxHashSet::default(),
            copies_outside: 0,
        };
        for (number, steps) in steps.iter().enumerate() {
            tally.cell(number, steps);
        }
        let Tally { apart, mut melded, cycles_apart, mut cycles_melded, pairs, branches, .. } = tally;
        let Tally { mut selects, outside, known_outside, copies_outside, .. } = tally;
        let (exits, constants) = self.exit_choices(partner);
        selects += outside.len() + exits.len();
        let one = costs.guard() + costs.jump();
        let side = |number: usize| {
            let blocks = self.subgraph(number).blocks.iter();
            blocks.flat_map(|&block| body(block)).map(|i| self.issued(i)).sum::<i64>()
        };
        let (before, after) = self.branches_around(one + OnGpu::barriers(side(0).max(side(1))));
        let cycles_around = self.branches_around(self.costs.guard() + self.costs.jump());
        let kept = i64::from(branches + selects > 1 && cost::is_comparison(self.region.condition)) * costs.unit();
        let phis = self.phis_of_one_side(partner) as i64 * costs.unit() / 2;
        melded += phis
            + copies_outside
            + costs.fetches_of_choices(&outside)
            + costs.fetches_of_choices(&exits)
            + after
            + kept;
        cycles_melded += (outside.len() + exits.len()) as i64 + cycles_around.1;
        let apart = if all_sunk { melded } else { apart + before + constants * costs.unit() / 2 };
        let issued = [apart, melded];
        let [apart, melded] = issued.map(|tenths| costs.in_instructions(tenths));
        let melding = Melding {
            case: self.candidate.case,
            score: (self.candidate.score * 100.0).round() as i64,
            pairs,
            selects,
            branches,
            apart,
            melded,
            cycles: cycles_apart + cycles_around.0 - cycles_melded,
            loops: self.blocks_in_loops(),
            exit_phis: self.exit_phis(),
            carried: self.carried(partner),
            places: 0,
            saved: apart - melded,
            loss: 0,
            loss_of_turn: 0,
        };
        (melding, issued, known_outside)
    }

    /// What a choice costs more where both values are needed afterwards.
    fn copies_of_choice(&self, x: Value<'m>, y: Value<'m>, exchanges: &Exchanges<'m>) -> i64 {
        let times = exchanges.of.get(&(x, y)).map_or(0, |(all, _)| *all);
        let lives_on =
            |side: usize, value: Value<'m>| !value.is_constant() && self.lives.on_without(side, value, times);
        if lives_on(0, x) && lives_on(1, y) { self.machine.copies_of_choice(x) } else { 0 }
    }

    /// In the first block: values that both sides compute alike without memory. Code generation computes them once,
    /// before the branch (LLVM's MachineCSE), so that melding saves nothing by them.
    fn hoisted_anyway(&self, steps: &[Vec<Step<'m>>]) -> Vec<Instruction<'m>> {
        let mut hoisted = Vec::new();
        let mut same: FxHashSet<(Value<'m>, Value<'m>)> = FxHashSet::default();
        let cell = &self.candidate.cells[0];
        let is_entered = |(side, block): (usize, &Option<Block<'m>>)| {
            *block == Some(self.region.head.terminator().successors()[side])
        };
        if !cell.blocks.iter().enumerate().all(is_entered) {
            return hoisted;
        }
        for step in steps.first().into_iter().flatten() {
            let Step::Pair(a, b) = step else { continue };
            let operands = joined_operands(*a, *b, &|x, y| x == y || same.contains(&(x, y)));
            if can_be_speculated(*a) && operands.into_iter().all(|(x, y)| x == y || same.contains(&(x, y))) {
                same.insert((a.as_value(), b.as_value()));
                hoisted.push(*a);
            }
        }
        hoisted
    }

    /// Of two blocks that lead to one: what LLVM's SimplifyCFG takes out of their ends, where it comes behind this
    /// pass. It stops where an instruction needs more than one choice between values that it did not take out.
    fn sunk_anyway(&self) -> Vec<Instruction<'m>> {
        let [Some(one), Some(other)] = self.candidate.cells[0].blocks else { return Vec::new() };
        // Behind what is melded, two blocks that are left apart need the branch again.
        let alone = self.around.is_first && self.subgraph(0).exit == self.subgraph(1).exit;
        if !self.options.sinks_behind || self.candidate.cells.len() > 1 || !alone {
            return Vec::new();
        }
        let (ours, theirs) = (body(one), body(other));
        let both = ours.into_iter().rev().zip(theirs.into_iter().rev());
        let run: Vec<_> = both.take_while(|(a, b)| can_be_one(*a, *b) && a.does_the_same_as(*b)).collect();
        let known: FxHashSet<[Value<'m>; 2]> = run.iter().map(|(a, b)| [a.as_value(), b.as_value()]).collect();
        let differs = |&(x, y): &(Value<'m>, Value<'m>)| x != y && !known.contains(&[x, y]);
        let is_sunk = |&(a, b): &(Instruction<'m>, Instruction<'m>)| {
            a.operands().into_iter().zip(b.operands()).filter(differs).count() <= 1
        };
        run.into_iter().take_while(is_sunk).map(|(a, _)| a).collect()
    }

    pub(super) fn subgraph(&self, side: usize) -> &Subgraph<'m> {
        &self.region.paths[side][self.candidate.places[side]]
    }

    fn blocks_in_loops(&self) -> usize {
        let turns = |block: &Block<'m>| self.weights.of(*block) > 1;
        self.candidate.cells.iter().filter(|cell| cell.blocks.iter().flatten().any(turns)).count()
    }

    fn exit_phis(&self) -> usize {
        let of_side = |side: usize| {
            let Subgraph { exit, blocks, .. } = self.subgraph(side);
            let exit = self.weights.flow.block(*exit);
            exit.phis().into_iter().filter(|phi| blocks.iter().any(|&b| phi.incoming_from(b).is_some())).count()
        };
        of_side(0).max(of_side(1))
    }

    /// Where the sides go on apart: phis of their exits that all lanes now move, though one side alone has them.
    fn phis_of_one_side(&self, partner: &FxHashMap<Value<'m>, Value<'m>>) -> usize {
        if self.subgraph(0).exit == self.subgraph(1).exit {
            return 0;
        }
        let [ours, theirs] = [0, 1].map(|side| {
            let Subgraph { exit, blocks, .. } = self.subgraph(side);
            let phis = self.weights.flow.block(*exit).phis().into_iter();
            phis.filter(|phi| blocks.iter().any(|&b| phi.incoming_from(b).is_some())).collect::<Vec<_>>()
        });
        let same = |x: Value<'m>, y: Value<'m>| x == y || partner.get(&x) == Some(&y);
        let agree = |phi: &&Instruction<'m>| theirs.iter().any(|&other| self.phis_agree(**phi, other, &same));
        ours.len() + theirs.len() - 2 * ours.iter().filter(agree).count().min(theirs.len())
    }

    /// What the two sides bring to the phis of one exit, where that differs; and how many constants must be moved to
    /// their registers for it while the sides are apart.
    pub(super) fn exit_choices(&self, partner: &FxHashMap<Value<'m>, Value<'m>>) -> (Vec<(Value<'m>, Value<'m>)>, i64) {
        let (mut choices, mut constants) = (Vec::new(), 0);
        let exit = self.subgraph(0).exit;
        if exit != self.subgraph(1).exit || self.around.goes_on {
            return (choices, constants);
        }
        for phi in self.weights.flow.block(exit).phis() {
            let of_side = |side: usize| {
                let blocks = self.subgraph(side).blocks.iter();
                blocks
                    .filter_map(|&block| Some((self.cells.get(&block)?, phi.incoming_from(block)?)))
                    .collect::<Vec<_>>()
            };
            let (ours, theirs) = (of_side(0), of_side(1));
            let (Some(&(_, one)), Some(&(_, other))) = (ours.first(), theirs.first()) else { continue };
            constants += ours.iter().chain(&theirs).filter(|(_, value)| value.is_constant()).count() as i64;
            let same = |x: Value<'m>, y: Value<'m>| x == y || partner.get(&x) == Some(&y);
            let agree = |&(cell, x): &(&usize, Value<'m>)| theirs.iter().any(|&(of, y)| of == cell && same(x, y));
            let all_alike = ours.iter().chain(&theirs).all(|(_, value)| *value == one);
            let joined = ours.len() == theirs.len() && ours.iter().all(agree);
            if !all_alike && !joined {
                choices.push((one, other));
            }
        }
        (choices, constants)
    }

    /// Values of one side, made before the melded subgraph or in it, that are used in it or behind it, so that they no
    /// longer dominate their uses.
    fn carried(&self, partner: &FxHashMap<Value<'m>, Value<'m>>) -> usize {
        let partners: FxHashSet<Value> = partner.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let of_side = |side: usize| {
            let place = self.candidate.places[side];
            let path = &self.region.paths[side];
            let up_to = path[..=place].iter().flat_map(|s| s.blocks.iter().map(move |&b| (s.entry, b)));
            let alone = up_to.flat_map(|(of, b)| b.instructions().into_iter().map(move |i| (of, i)));
            let is_carried = |&(of, i): &(flowgraph::NodeId, Instruction<'m>)| {
                let here = |block: Block<'m>| path[..=place].iter().any(|s| s.entry == of && s.blocks.contains(&block));
                let used_later = |block: Block<'m>| path[place..].iter().any(|s| s.blocks.contains(&block));
                let uses = i.as_value().uses();
                let later = uses.into_iter().any(|u| u.needed_in().is_some_and(|b| !here(b) && used_later(b)));
                !partners.contains(&i.as_value()) && later
            };
            alone.filter(is_carried).count()
        };
        of_side(0) + of_side(1)
    }

    /// Whether the branch leads right to both subgraphs.
    pub(super) fn begins_paths(&self) -> bool {
        let successors = self.region.head.terminator().successors();
        (0..2).all(|side| self.weights.flow.find(successors[side]) == Some(self.subgraph(side).entry))
    }

    /// What the region's branch takes, of which each is `one`, before and after: it may stay before the melded
    /// subgraph, after it, at both places, or vanish.
    pub(super) fn branches_around(&self, one: i64) -> (i64, i64) {
        let [ours, theirs] = [0, 1].map(|side| &self.region.paths[side][self.candidate.places[side]]);
        let stays_before = if !self.around.is_first || self.begins_paths() { 0 } else { one };
        let stays_behind = if ours.exit == theirs.exit || self.around.goes_on { 0 } else { one };
        (if self.around.is_first { one } else { 0 }, stays_before + stays_behind)
    }
}
