//! How the instructions of paired blocks are aligned, and what the melded subgraph costs.

use flowgraph::Loops;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Options;
use super::matching::{can_be_one, joined_operands};
use super::pairs::{Candidate, body, can_be_speculated};
use super::region::{Region, Subgraph};
use crate::alignment::{Piece, align};
use crate::cost::{self, CostModel};
use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Value};
use crate::remark::Melding;

/// The turns that a loop inside of a subgraph is taken to make, and how deep loops count.
const TRIPS: i64 = 10;
const DEEPEST: u32 = 3;

/// A step of a melded block.
pub(super) enum Step<'m> {
    /// One instruction for two.
    Pair(Instruction<'m>, Instruction<'m>),
    /// Instructions of one side each, which only its lanes run.
    Guarded(Vec<Instruction<'m>>, Vec<Instruction<'m>>),
    /// Instructions of one side that all lanes run, or that only its lanes come to.
    Plain(Vec<Instruction<'m>>),
}

/// What is to become of a candidate.
pub(super) struct Plan<'m> {
    /// By cell.
    pub(super) steps: Vec<Vec<Step<'m>>>,
    /// Phis of which one stands for both.
    pub(super) phis: Vec<[Instruction<'m>; 2]>,
    /// What that gains.
    pub(super) melding: Melding,
}

/// The costs of blocks, by how often they are taken to run.
pub(super) struct Weights<'a, 'm> {
    pub(super) flow: &'a Flow<'m>,
    pub(super) loops: &'a Loops,
    /// How deep in loops the region's branch is.
    pub(super) depth: u32,
}

impl<'m> Weights<'_, 'm> {
    fn of(&self, block: Block<'m>) -> i64 {
        let depth = self.loops.depth(self.flow.node(block)).saturating_sub(self.depth);
        TRIPS.pow(depth.min(DEEPEST))
    }
}

/// The ways in which alignments are scored; the one that needs the fewest fetches is taken. Which operands will have to
/// be chosen is not known before the pairs are: those made inside of both subgraphs are taken to be paired, those from
/// outside of both to be chosen once for all, unless a way says otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// FP_I of the paper: cycles, less one for each operand of which one half only is made inside.
    Cycles,
    /// Fetches, and the choices that cycles count.
    Fetches,
    /// Fetches, and operands from outside count too.
    AllChoices,
}

/// Which pairs of the region come before and behind a candidate.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// It is the first.
    pub(super) is_first: bool,
    /// The next follows at once, so that the paths do not part in between.
    pub(super) goes_on: bool,
}

/// The plan for a candidate that needs the fewest fetches.
pub(super) fn plan<'m>(
    region: &Region<'m>,
    candidate: &Candidate<'m>,
    weights: &Weights<'_, 'm>,
    around: Around,
    costs: &dyn CostModel,
    options: Options,
) -> Plan<'m> {
    let planner = Planner { around, ..Planner::of(region, candidate, weights, costs, options) };
    let plans = [Way::Cycles, Way::Fetches, Way::AllChoices].map(|way| planner.plan(way));
    plans.into_iter().min_by_key(|plan| plan.melding.melded).expect("three plans")
}

/// The product of the lengths of the blocks that would be aligned, summed over the cells.
pub(super) fn work(candidate: &Candidate<'_>) -> usize {
    let lengths = |cell: &super::pairs::Cell<'_>| match cell.blocks {
        [Some(one), Some(other)] => one.len() * other.len(),
        _ => 0,
    };
    candidate.cells.iter().map(lengths).sum()
}

struct Planner<'a, 'm> {
    region: &'a Region<'m>,
    candidate: &'a Candidate<'m>,
    weights: &'a Weights<'a, 'm>,
    costs: &'a dyn CostModel,
    options: Options,
    around: Around,
    /// What is made in the subgraph of each side.
    inside: [FxHashSet<Value<'m>>; 2],
    /// By block of a side: its cell.
    cells: FxHashMap<Block<'m>, usize>,
}

impl<'a, 'm> Planner<'a, 'm> {
    fn of(
        region: &'a Region<'m>,
        candidate: &'a Candidate<'m>,
        weights: &'a Weights<'a, 'm>,
        costs: &'a dyn CostModel,
        options: Options,
    ) -> Planner<'a, 'm> {
        let made = |side: usize| {
            let blocks = &region.paths[side][candidate.places[side]].blocks;
            blocks.iter().flat_map(|block| block.instructions()).map(Instruction::as_value).collect()
        };
        let by_cell = candidate.cells.iter().enumerate();
        let cells = by_cell.flat_map(|(i, cell)| cell.blocks.into_iter().flatten().map(move |block| (block, i)));
        let around = Around { is_first: true, goes_on: false };
        let (inside, cells) = ([0, 1].map(made), cells.collect());
        Planner { region, candidate, weights, costs, options, around, inside, cells }
    }

    fn cost(&self, i: Instruction<'m>) -> i64 {
        let beside = |user: Instruction<'m>| user.block() == i.block();
        self.costs.fetches(i, &beside)
    }

    fn latency(&self, i: Instruction<'m>) -> i64 {
        let beside = |user: Instruction<'m>| user.block() == i.block();
        self.costs.latency(i, &beside)
    }

    fn saving(&self, a: Instruction<'m>, b: Instruction<'m>, way: Way) -> Option<i64> {
        if !can_be_one(a, b) {
            return None;
        }
        let is_mixed = |&(x, y): &(Value<'m>, Value<'m>)| {
            let inside = (self.inside[0].contains(&x), self.inside[1].contains(&y));
            let known = inside == (false, false) && self.region.chosen.contains(&(x, y));
            x != y && !known && inside != (true, true) && (inside != (false, false) || way == Way::AllChoices)
        };
        let chosen: Vec<_> = joined_operands(a, b, &|x, y| x == y).into_iter().filter(is_mixed).collect();
        Some(match way {
            Way::Cycles => self.latency(a).min(self.latency(b)) - chosen.len() as i64,
            _ => self.cost(a).min(self.cost(b)) - self.costs.fetches_of_choices(&chosen),
        })
    }

    fn plan(&self, way: Way) -> Plan<'m> {
        // Without unpredication gaps cost nothing; only what may trap is guarded.
        let (gap, turn) = if self.options.unpredicate { (self.costs.guard(), self.costs.jump()) } else { (0, 0) };
        let mut steps = Vec::new();
        let mut partner: FxHashMap<Value<'m>, Value<'m>> = FxHashMap::default();
        for cell in &self.candidate.cells {
            let pieces = match cell.blocks {
                [Some(one), Some(other)] => align(&body(one), &body(other), gap, turn, |a, b| self.saving(a, b, way)),
                [Some(one), None] => vec![Piece::Apart(body(one), Vec::new())],
                [None, Some(other)] => vec![Piece::Apart(Vec::new(), body(other))],
                [None, None] => Vec::new(),
            };
            let mut of_cell = Vec::new();
            for piece in pieces {
                match piece {
                    Piece::Pair(a, b) => {
                        partner.insert(a.as_value(), b.as_value());
                        of_cell.push(Step::Pair(a, b));
                    }
                    Piece::Apart(one, other) if cell.has_both() => self.part(one, other, &mut of_cell),
                    Piece::Apart(one, other) => of_cell.extend([one, other].map(Step::Plain)),
                }
            }
            of_cell.retain(|step| !matches!(step, Step::Plain(list) if list.is_empty()));
            steps.push(of_cell);
        }
        let phis = self.joined_phis(&partner);
        partner.extend(phis.iter().map(|[a, b]| (a.as_value(), b.as_value())));
        let melding = self.melding(&steps, &partner);
        Plan { steps, phis, melding }
    }

    /// What has no partner: under a branch of its own, unless it costs no more than that and cannot trap.
    fn part(&self, one: Vec<Instruction<'m>>, other: Vec<Instruction<'m>>, steps: &mut Vec<Step<'m>>) {
        if one.is_empty() && other.is_empty() {
            return;
        }
        let all = || one.iter().chain(&other).copied();
        if self.options.unpredicate {
            let cheap = all().map(|i| self.cost(i)).sum::<i64>() <= self.costs.guard();
            if cheap && all().all(can_be_speculated) {
                steps.extend([one, other].map(Step::Plain));
            } else {
                steps.push(Step::Guarded(one, other));
            }
            return;
        }
        for (side, list) in [one, other].into_iter().enumerate() {
            for i in list {
                let free = can_be_speculated(i);
                match (free, steps.last_mut()) {
                    (true, Some(Step::Plain(list))) => list.push(i),
                    (true, _) => steps.push(Step::Plain(vec![i])),
                    (false, Some(Step::Guarded(mine, theirs))) if side == 0 && theirs.is_empty() => mine.push(i),
                    (false, Some(Step::Guarded(_, theirs))) if side == 1 => theirs.push(i),
                    (false, _) if side == 0 => steps.push(Step::Guarded(vec![i], Vec::new())),
                    (false, _) => steps.push(Step::Guarded(Vec::new(), vec![i])),
                }
            }
        }
    }

    /// Phis of paired blocks that bring the same from each block inside, once pairs are one: in a loop each may depend
    /// on the others, so all are taken for alike until one is found not to be.
    fn joined_phis(&self, partner: &FxHashMap<Value<'m>, Value<'m>>) -> Vec<[Instruction<'m>; 2]> {
        let mut pairs: Vec<[Instruction<'m>; 2]> = Vec::new();
        let phis_of_one_cell = |x: Value<'m>, y: Value<'m>| {
            let cell = |v: Value<'m>| {
                let phi = v.as_instruction().filter(|i| i.is_phi())?;
                self.cells.get(&phi.block()?).copied()
            };
            x.type_of() == y.type_of() && cell(x).is_some_and(|of_x| cell(y) == Some(of_x))
        };
        for cell in &self.candidate.cells {
            let [Some(one), Some(other)] = cell.blocks else { continue };
            let mut free = other.phis();
            for phi in one.phis() {
                let same = |x, y| x == y || partner.get(&x) == Some(&y) || phis_of_one_cell(x, y);
                let found = free.iter().position(|&other| self.phis_agree(phi, other, &same));
                pairs.extend(found.map(|place| [phi, free.remove(place)]));
            }
        }
        loop {
            let known: FxHashSet<[Value; 2]> = pairs.iter().map(|pair| pair.map(Instruction::as_value)).collect();
            let before = pairs.len();
            let same = |x, y| x == y || partner.get(&x) == Some(&y) || known.contains(&[x, y]);
            pairs.retain(|&[a, b]| self.phis_agree(a, b, &same));
            if pairs.len() == before {
                return pairs;
            }
        }
    }

    /// Whether two phis bring the same from each block inside, of which there is one at least.
    fn phis_agree(&self, a: Instruction<'m>, b: Instruction<'m>, same: &dyn Fn(Value<'m>, Value<'m>) -> bool) -> bool {
        let inside = |phi: Instruction<'m>, side: usize| {
            let incoming = phi.incoming().into_iter();
            let by_cell = incoming.filter_map(move |(value, from)| Some((*self.cells.get(&from)?, value, from)));
            let of_side = move |&(cell, _, from): &(usize, Value<'m>, Block<'m>)| {
                self.candidate.cells[cell].blocks[side] == Some(from)
            };
            by_cell.filter(of_side).map(|(cell, value, _)| (cell, value)).collect::<FxHashMap<_, _>>()
        };
        let (ours, theirs) = (inside(a, 0), inside(b, 1));
        let agree = |(cell, x): (&usize, &Value<'m>)| theirs.get(cell).is_some_and(|y| same(*x, *y));
        a.type_of() == b.type_of() && !ours.is_empty() && ours.len() == theirs.len() && ours.iter().all(agree)
    }

    /// What it costs, apart and melded.
    fn melding(&self, steps: &[Vec<Step<'m>>], partner: &FxHashMap<Value<'m>, Value<'m>>) -> Melding {
        let costs = self.costs;
        let same = |x: Value<'m>, y: Value<'m>| x == y || partner.get(&x) == Some(&y);
        let from_outside = |x: Value<'m>, y: Value<'m>| !self.inside[0].contains(&x) && !self.inside[1].contains(&y);
        let (mut apart, mut melded, mut cycles_apart, mut cycles_melded) = (0, 0, 0, 0);
        let (mut pairs, mut selects, mut branches) = (0, 0, 0);
        let hoisted = self.hoisted_anyway(steps);
        apart -= hoisted.iter().map(|&i| self.cost(i)).sum::<i64>();
        cycles_apart -= hoisted.iter().map(|&i| self.latency(i)).sum::<i64>();
        let mut outside = Vec::new();
        let mut known_outside = FxHashSet::default();
        for (cell, steps) in self.candidate.cells.iter().zip(steps) {
            let weight = cell.blocks.iter().flatten().map(|&block| self.weights.of(block)).max().unwrap_or(1);
            for &block in cell.blocks.iter().flatten() {
                let test = i64::from(block.terminator().condition().is_some());
                apart += weight * (body(block).into_iter().map(|i| self.cost(i)).sum::<i64>() + test);
                cycles_apart += weight * (body(block).into_iter().map(|i| self.latency(i)).sum::<i64>() + test);
            }
            let mut known = FxHashSet::default();
            let mut chosen = Vec::new();
            let mut choose = |x: Value<'m>, y: Value<'m>, chosen: &mut Vec<_>| {
                let before = from_outside(x, y) && self.region.chosen.contains(&(x, y));
                if same(x, y) || before {
                } else if from_outside(x, y) {
                    outside.extend(known_outside.insert((x, y)).then_some((x, y)));
                } else {
                    chosen.extend(known.insert((x, y)).then_some((x, y)));
                }
            };
            let mut here = 0;
            let mut cycles_here = 0;
            for step in steps {
                match step {
                    Step::Pair(a, b) => {
                        let mut differs = false;
                        for (i, (x, y)) in joined_operands(*a, *b, &same).into_iter().enumerate() {
                            differs |= i == 1 && !same(x, y);
                            choose(x, y, &mut chosen);
                        }
                        let beside = |user: Instruction<'m>| user.block() == a.block();
                        here += if differs { costs.fetches_of_joined(*a, &beside) } else { self.cost(*a) };
                        cycles_here += self.latency(*a).max(self.latency(*b));
                        pairs += 1;
                    }
                    Step::Guarded(one, other) => {
                        let jump = if one.is_empty() || other.is_empty() { 0 } else { costs.jump() };
                        let all = one.iter().chain(other);
                        here += costs.guard() + jump + all.clone().map(|&i| self.cost(i)).sum::<i64>();
                        cycles_here += costs.guard() + all.map(|&i| self.latency(i)).sum::<i64>();
                        branches += 1;
                    }
                    Step::Plain(list) => {
                        here += list.iter().map(|&i| self.cost(i)).sum::<i64>();
                        cycles_here += list.iter().map(|&i| self.latency(i)).sum::<i64>();
                    }
                }
            }
            let conditions = cell.blocks.map(|block| block.and_then(|b| b.terminator().condition()));
            match conditions {
                [Some(x), Some(y)] => choose(x, y, &mut chosen),
                [None, None] => {}
                // The other side's lanes are steered by a constant.
                _ => here += i64::from(cell.steer.is_some()) * costs.guard(),
            }
            let test = i64::from(conditions.iter().any(Option::is_some));
            selects += chosen.len();
            let choices = costs.fetches_of_choices(&chosen);
            melded += weight * (here + test + choices);
            cycles_melded += weight * (cycles_here + test + chosen.len() as i64);
        }
        let (exits, constants) = self.exit_choices(partner);
        selects += outside.len() + exits.len();
        let (before, after) = self.branches_around();
        let kept = i64::from(branches + selects > 1 && cost::is_comparison(self.region.condition));
        melded += costs.fetches_of_choices(&outside) + costs.fetches_of_choices(&exits) + after + kept;
        cycles_melded += (outside.len() + exits.len()) as i64 + after;
        Melding {
            case: self.candidate.case,
            score: (self.candidate.score * 100.0).round() as i64,
            pairs,
            selects,
            branches,
            apart: apart + before + constants,
            melded,
            cycles: cycles_apart + before - cycles_melded,
            loops: self.blocks_in_loops(),
            exit_phis: self.exit_phis(),
            carried: self.carried(partner),
        }
    }

    /// Of the first block, what both sides make of the same values without memory: code generation makes it once, in
    /// front of the branch (LLVM's MachineCSE), so that melding saves nothing by it.
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

    fn subgraph(&self, side: usize) -> &Subgraph<'m> {
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

    /// What the two sides bring to the phis of one exit, where that differs; and how many constants must be moved to
    /// their registers for it while the sides are apart.
    fn exit_choices(&self, partner: &FxHashMap<Value<'m>, Value<'m>>) -> (Vec<(Value<'m>, Value<'m>)>, i64) {
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

    /// The fetches of the region's branch: before; and after, where it stays in front of the melded subgraph, behind
    /// it, both, or goes.
    fn branches_around(&self) -> (i64, i64) {
        let one = self.costs.guard() + self.costs.jump();
        let [ours, theirs] = [0, 1].map(|side| &self.region.paths[side][self.candidate.places[side]]);
        let first = |path: usize| {
            let entry = if path == 0 { ours.entry } else { theirs.entry };
            let successor = self.region.head.terminator().successors()[path];
            self.weights.flow.find(successor) == Some(entry)
        };
        let stays_before = if !self.around.is_first || (first(0) && first(1)) { 0 } else { one };
        let stays_behind = if ours.exit == theirs.exit || self.around.goes_on { 0 } else { one };
        (if self.around.is_first { one } else { 0 }, stays_before + stays_behind)
    }
}
