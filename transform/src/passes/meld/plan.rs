//! How the instructions of paired blocks are aligned; [`super::count`] says what that costs.

use flowgraph::{Dominators, Loops};
use rustc_hash::{FxHashMap, FxHashSet};

use super::lives::Lives;
use super::matching::{can_be_one, joined_operands};
use super::pairs::{Candidate, body, can_be_speculated};
use super::region::Region;
use super::{MOST_PAIRS, Options};
use crate::alignment::{Piece, align};
use crate::context::Context;
use crate::cost::{Busy, Cost, CostModel, OnGpu};
use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Value};
use crate::remark::Melding;
use crate::spmd::Machine;

/// The number of iterations that a loop inside of a subgraph is taken to run, and how deep loops count.
const TRIPS: i64 = 10;
const DEEPEST: u32 = 3;

/// A step of a melded block.
pub(super) enum Step<'m> {
    /// One instruction for two.
    Pair(Instruction<'m>, Instruction<'m>),
    /// Instructions of one side each, which only its lanes run.
    Guarded(Vec<Instruction<'m>>, Vec<Instruction<'m>>),
    /// Instructions of one side that all lanes run, or that only its lanes reach.
    Plain(Vec<Instruction<'m>>),
}

/// What is to become of a candidate.
pub(super) struct Plan<'m> {
    /// By cell.
    pub(super) steps: Vec<Vec<Step<'m>>>,
    /// By cell, whether choices between constants are made in it, not in front of the subgraph: what only a block under
    /// an if needs would take registers up to there.
    pub(super) late: Vec<bool>,
    /// Pairs of phis that become one.
    pub(super) phis: Vec<[Instruction<'m>; 2]>,
    /// What that gains.
    pub(super) melding: Melding,
    /// What a GPU issues for both sides apart, and melded, in tenths.
    pub(super) issued: [i64; 2],
    /// What that saves of its time, in tenths of an instruction.
    pub(super) saved: i64,
    /// What later pairs of the region find.
    pub(super) known: Known<'m>,
}

/// What the pairs of a region that were planned leave for the next one.
#[derive(Clone, Default)]
pub(super) struct Known<'m> {
    /// What is made on both sides by one instruction: of one side, and of the other.
    partner: FxHashMap<Value<'m>, Value<'m>>,
    /// Between which values was chosen in a block that dominates the next pair.
    chosen: FxHashSet<(Value<'m>, Value<'m>)>,
}

/// The costs of blocks, by how often they are taken to run.
pub(super) struct Weights<'a, 'm> {
    pub(super) flow: &'a Flow<'m>,
    pub(super) loops: &'a Loops,
    pub(super) dominators: &'a Dominators,
    /// What functions that are called take.
    pub(super) callees: &'a FxHashMap<Value<'m>, Cost>,
    /// How deep in loops the region's branch is.
    pub(super) depth: u32,
    /// What a GPU is busy with in the whole function, where the code is for one.
    pub(super) whole: Option<Busy>,
}

impl<'m> Weights<'_, 'm> {
    /// What the function takes that an instruction calls, if it is a call.
    pub(super) fn of_callee(&self, i: Instruction<'m>) -> Cost {
        i.callee().and_then(|callee| self.callees.get(&callee)).copied().unwrap_or_default()
    }

    pub(super) fn of(&self, block: Block<'m>) -> i64 {
        let depth = self.loops.depth(self.flow.node(block)).saturating_sub(self.depth);
        TRIPS.pow(depth.min(DEEPEST))
    }
}

/// What a GPU is busy with in a whole function. None for code of a processor, whose memory is not that of a GPU.
pub(super) fn busy_with(context: &mut Context<'_>) -> Option<Busy> {
    let (flow, loops) = (context.flow(), context.loops());
    let module = flow.block(flowgraph::NodeId(0)).function().module();
    let (costs, machine) = (OnGpu::of(module), Machine::of(module));
    if !costs.is_gpu() {
        return None;
    }
    let mut all = Busy::default();
    for &block in flow.blocks() {
        for i in block.instructions() {
            let mut issued = costs.fetches(i, &|user| user.block() == Some(block));
            if let Some(callee) = i.callee().filter(|callee| !callee.is_intrinsic() && !callee.is_inline_assembly()) {
                issued += context.cost_of_call(callee).fetches * costs.unit();
            }
            all += Busy::of(i, machine).issuing(issued) * turns(loops.depth(flow.node(block)));
        }
    }
    Some(all)
}

/// How often what is so deep in loops of the function is taken to run.
pub(super) fn turns(depth: u32) -> i64 {
    TRIPS.pow(depth.min(2 * DEEPEST))
}

/// The ways in which alignments are scored; the one that needs the fewest fetches is taken. Which operands will have to
/// be chosen is not known before the pairs are: those made inside of both subgraphs are taken to be paired, those from
/// outside of both to be chosen once for all, unless a way says otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// FP_I of the paper: cycles, less one for each operand if only one half of it is made inside.
    Cycles,
    /// What a GPU issues, and the choices that cycles count.
    Issued,
    /// The same, and operands from outside count too.
    AllChoices,
}

/// Which pairs of the region come before and after a candidate.
pub(super) struct Around<'m> {
    /// It is the first.
    pub(super) is_first: bool,
    /// The next follows at once, so that the paths do not part in between.
    pub(super) goes_on: bool,
    /// What those before left, where they go on to this one.
    pub(super) known: Known<'m>,
}

/// The plan for a candidate for which a GPU issues least.
pub(super) fn plan<'m>(
    region: &Region<'m>,
    candidate: &Candidate<'m>,
    weights: &Weights<'_, 'm>,
    around: Around<'m>,
    costs: &dyn CostModel,
    options: Options,
) -> Plan<'m> {
    let planner = Planner::of(region, candidate, weights, around, costs, options);
    let plans = [Way::Cycles, Way::Issued, Way::AllChoices].map(|way| planner.plan(way));
    plans.into_iter().min_by_key(|plan| plan.issued[1]).expect("three plans")
}

/// What a plan is made from.
pub(super) struct Planner<'a, 'm> {
    pub(super) region: &'a Region<'m>,
    pub(super) candidate: &'a Candidate<'m>,
    pub(super) weights: &'a Weights<'a, 'm>,
    /// What lanes lose by that agree is said in the processor's instructions,
    pub(super) costs: &'a dyn CostModel,
    /// and decided is by the GPU's.
    pub(super) machine: &'static OnGpu,
    pub(super) options: Options,
    pub(super) around: Around<'m>,
    pub(super) lives: Lives<'m>,
    /// What is made in the subgraph of each side.
    pub(super) inside: [FxHashSet<Value<'m>>; 2],
    /// By block of a side: its cell.
    pub(super) cells: FxHashMap<Block<'m>, usize>,
}

impl<'m> Plan<'m> {
    /// What only one side's lanes run of it.
    pub(super) fn apart(&self) -> impl Iterator<Item = Instruction<'m>> {
        self.steps.iter().flatten().flat_map(|step| match step {
            Step::Pair(..) => Vec::new(),
            Step::Guarded(one, other) => [&one[..], other].concat(),
            Step::Plain(list) => list.clone(),
        })
    }
}

impl<'a, 'm> Planner<'a, 'm> {
    fn of(
        region: &'a Region<'m>,
        candidate: &'a Candidate<'m>,
        weights: &'a Weights<'a, 'm>,
        around: Around<'m>,
        costs: &'a dyn CostModel,
        options: Options,
    ) -> Planner<'a, 'm> {
        let made = |side: usize| {
            let blocks = &region.paths[side][candidate.places[side]].blocks;
            blocks.iter().flat_map(|block| block.instructions()).map(Instruction::as_value).collect()
        };
        let by_cell = candidate.cells.iter().enumerate();
        let cells = by_cell.flat_map(|(i, cell)| cell.blocks.into_iter().flatten().map(move |block| (block, i)));
        let (inside, cells) = ([0, 1].map(made), cells.collect());
        let lives = Lives::of(region, candidate.places, weights);
        let machine = OnGpu::of(region.head.function().module());
        Planner { region, candidate, weights, costs, machine, options, around, lives, inside, cells }
    }

    pub(super) fn cost(&self, i: Instruction<'m>) -> i64 {
        let beside = |user: Instruction<'m>| user.block() == i.block();
        self.costs.fetches(i, &beside)
    }

    /// What a GPU issues for it.
    pub(super) fn issued(&self, i: Instruction<'m>) -> i64 {
        let beside = |user: Instruction<'m>| user.block() == i.block();
        self.machine.fetches(i, &beside)
    }

    /// The same with the copies of what it destroys, on its own side.
    pub(super) fn issued_with_copies(&self, i: Instruction<'m>) -> i64 {
        let beside = |user: Instruction<'m>| user.block() == i.block();
        let operands = i.operands();
        let is_free = |number: usize| !operands[number].is_constant() && !self.lives.on(operands[number], i);
        self.machine.fetches(i, &beside) + self.machine.copies(i, &beside, &is_free)
    }

    pub(super) fn latency(&self, i: Instruction<'m>) -> i64 {
        let beside = |user: Instruction<'m>| user.block() == i.block();
        self.costs.latency(i, &beside)
    }

    fn saving(&self, a: Instruction<'m>, b: Instruction<'m>, way: Way) -> Option<i64> {
        if !can_be_one(a, b) {
            return None;
        }
        let is_mixed = |&(x, y): &(Value<'m>, Value<'m>)| {
            let inside = (self.inside[0].contains(&x), self.inside[1].contains(&y));
            let known = inside == (false, false) && self.was_chosen(x, y);
            x != y && !known && inside != (true, true) && (inside != (false, false) || way == Way::AllChoices)
        };
        let chosen: Vec<_> = joined_operands(a, b, &|x, y| x == y).into_iter().filter(is_mixed).collect();
        Some(match way {
            Way::Cycles => self.latency(a).min(self.latency(b)) - chosen.len() as i64,
            _ => self.issued(a).min(self.issued(b)) - self.machine.fetches_of_choices(&chosen),
        })
    }

    /// Whether a cell runs no more often than the branch, and not always.
    pub(super) fn is_late(&self, cell: usize) -> bool {
        let often = |block: &Block<'m>| self.weights.of(*block) > 1;
        cell > 0 && !self.candidate.cells[cell].blocks.iter().flatten().any(often)
    }

    /// Whether there is a choice between two values that dominates the subgraph, or need not be one.
    pub(super) fn was_chosen(&self, x: Value<'m>, y: Value<'m>) -> bool {
        let Known { partner, chosen } = &self.around.known;
        partner.get(&x) == Some(&y) || chosen.contains(&(x, y)) || self.region.chosen.contains(&(x, y))
    }

    fn plan(&self, way: Way) -> Plan<'m> {
        // Without unpredication gaps cost nothing; only what may trap is guarded.
        let by: &dyn CostModel = if way == Way::Cycles { self.costs } else { self.machine };
        let (gap, turn) = if self.options.unpredicate { (by.guard(), by.jump()) } else { (0, 0) };
        // Where the cells are aligned one after the other, they share what may be looked at.
        let both = self.candidate.cells.iter().filter(|cell| cell.blocks.iter().all(Option::is_some)).count();
        let most = MOST_PAIRS / both.max(1);
        let mut steps = Vec::new();
        let mut partner: FxHashMap<Value<'m>, Value<'m>> = self.around.known.partner.clone();
        for cell in &self.candidate.cells {
            let pieces = match cell.blocks {
                [Some(one), Some(other)] => {
                    align(&body(one), &body(other), [gap, turn], most, |a, b| self.saving(a, b, way))
                }
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
        let (mut melding, issued, chosen) = self.melding(&steps, &partner);
        let (traffic, places) = self.traffic(&steps, &partner);
        let saved = self.saved(issued, traffic);
        melding.places = places;
        if saved != issued[0] - issued[1] {
            melding.saved = self.machine.in_instructions(saved);
        }
        (melding.loss, melding.loss_of_turn) = self.loss(&steps, &partner, &phis, melding.carried);
        let known = self.left_behind(partner, chosen);
        let late = (0..self.candidate.cells.len()).map(|cell| self.is_late(cell)).collect();
        Plan { steps, late, phis, melding, issued, saved, known }
    }

    /// Instructions without a partner: under a branch of their own, unless the branch costs more than they do and they
    /// cannot trap.
    fn part(&self, one: Vec<Instruction<'m>>, other: Vec<Instruction<'m>>, steps: &mut Vec<Step<'m>>) {
        if one.is_empty() && other.is_empty() {
            return;
        }
        let all = || one.iter().chain(&other).copied();
        if self.options.unpredicate {
            let cheap = all().map(|i| self.issued(i)).sum::<i64>() <= self.machine.guard();
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

    /// Whether two phis bring the same from each block inside; there must be at least one such block.
    pub(super) fn phis_agree(
        &self,
        a: Instruction<'m>,
        b: Instruction<'m>,
        same: &dyn Fn(Value<'m>, Value<'m>) -> bool,
    ) -> bool {
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

    /// What the next pair of the region finds, if it follows at once: the phis of the exits that bring the same become
    /// one, and choices stand in front of it.
    fn left_behind(
        &self,
        mut partner: FxHashMap<Value<'m>, Value<'m>>,
        chosen: FxHashSet<(Value<'m>, Value<'m>)>,
    ) -> Known<'m> {
        if !self.around.goes_on {
            return Known::default();
        }
        let [ours, theirs] = [0, 1].map(|side| self.weights.flow.block(self.subgraph(side).exit).phis());
        let mut joined = Vec::new();
        for phi in ours {
            let same = |x: Value<'m>, y: Value<'m>| x == y || partner.get(&x) == Some(&y);
            let all_from_cells = |phi: &Instruction<'m>| phi.incoming().iter().all(|(_, b)| self.cells.contains_key(b));
            let alike = |other: &&Instruction<'m>| {
                all_from_cells(&phi) && all_from_cells(other) && self.phis_agree(phi, **other, &same)
            };
            joined.extend(theirs.iter().find(alike).map(|other| (phi.as_value(), other.as_value())));
        }
        partner.extend(joined);
        // Elsewhere choices are phis of a block where paths meet, which are made again.
        let stands = !self.around.is_first || self.begins_paths();
        let chosen = if stands { chosen } else { FxHashSet::default() };
        Known { partner, chosen: chosen.into_iter().chain(self.around.known.chosen.iter().copied()).collect() }
    }
}
