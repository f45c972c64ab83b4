//! Places at which it would pay to wait, found without a run: a divergent loop inside of a loop, and a divergent branch
//! inside of one (the paper's section 4.5).
//!
//! ```text
//! loop merge           for (…) { prolog; while (d) BODY;  epilog; }
//! iteration delay      for (…) { prolog; if (d) { BODY }  epilog; }
//! ```
//!
//! What a warp issues for a task of each lane, by instructions of a GPU, loops inside weighted by how often they turn
//! (a guess, as [`TURNS`]); `rest` is prolog and epilog, where each access to memory counts [`ACCESS`] more, as lanes
//! come there at different times:
//!
//! - As it is, the rest runs once and the body as often as the lane with most turns has it, for turns that
//!   end with equal odds. An arm runs in each iteration, as some lane always takes it.
//! - With all waited for, the body runs as often as the lane has it that has most over all iterations, of which there
//!   are some ([`most_of`]), and the rest each time that a lane ends. With so many enough, lanes end until fewer are
//!   left, which takes ln(lanes / enough) of the mean; then the others are refilled at once. An arm runs once for each
//!   lane, and the rest until the last has come.
//!
//! Of loops inside of each other one may differ among lanes and the other may not, and a guess does not know which:
//! where both promise much ([`RIVAL`]), nothing is taken, nor is a loop at which lanes meet anyhow. The mean turns of a
//! trace (`--trips`) stand for the guess, where they know the loop.
//!
//! *Limitation*: neither knows how the turns of the lanes differ. Where they do not, waiting costs what the questions
//! cost. `lockstep suggest` tries places on a trace; `--predict` takes what it finds.

use flowgraph::{LoopId, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::warp::Warp;
use crate::context::Context;
use crate::cost::{self, CostModel, OnGpu};
use crate::llvm::{Block, Instruction, Opcode};

/// How often a loop turns: as in [`crate::cost`].
const TURNS: f64 = 10.0;

/// The greatest of 32 lanes' sums over so many tasks, by the mean, of turns of which each is the last with equal odds:
/// of one task it is the sum of 1/i, which is 4.06; of many, sums spread as a normal distribution, whose greatest of 32
/// lies 2.07 deviations above the mean.
fn most_of(tasks: f64) -> f64 {
    1.0 + 2.07 / tasks.max(1.0).sqrt() + 0.99 / tasks.max(1.0)
}

/// The lanes of a warp.
const LANES: f64 = 32.0;

/// What a turn takes besides: questions, and branches by their answers. By PTX of the benchmarks.
const QUESTIONS: f64 = 8.0;

/// What an access to memory outside of the body counts more: it is made for lanes of different iterations.
const ACCESS: f64 = 2.0;

/// What another place in the same loops promises that makes it unsure which is right, in percent. Of the benchmarks the
/// right place has rivals with 144 (`mcb`), 137 (`mc-gpu`) and 225 (`rsbench`), and `mummer`'s wrong one has 191.
const RIVAL: i64 = 150;

/// A place, what it would gain, and how.
pub(super) struct Found<'m> {
    pub(super) place: Instruction<'m>,
    pub(super) enough: Option<usize>,
    pub(super) pattern: &'static str,
    /// What is issued before / after, in percent.
    pub(super) gain: i64,
    /// Why lanes should not wait there all the same, if so.
    pub(super) why_not: Option<&'static str>,
    around: LoopId,
}

/// Another place could be the right one.
const UNSURE: &str = "lanes may differ at another place in these loops, which `lockstep suggest` would try on a trace";
/// See [`lanes_meet`].
pub(super) const MEET: &str = "lanes meet there already: they yield in a loop with an atomic operation";

/// The places of a function, those that gain most first.
pub(super) fn places<'m>(context: &mut Context<'m>) -> Vec<Found<'m>> {
    let (flow, loops, dominators) = (context.flow(), context.loops(), context.dominators());
    let costs = OnGpu::of(flow.block(NodeId(0)).function().module());
    let of_blocks: Vec<(f64, f64)> = flow.blocks().iter().map(|block| cost(*costs, *block)).collect();
    let turns: FxHashMap<LoopId, f64> = loops
        .ids()
        .map(|of| {
            let own = loops.members(of).iter().filter(|node| loops.innermost(**node) == Some(of));
            (of, known(context, own.map(|node| flow.block(*node))).unwrap_or(TURNS))
        })
        .collect();
    // How often a block runs in a turn of a loop around it.
    let times = |of: LoopId, node: NodeId| -> f64 {
        let inside = std::iter::successors(loops.innermost(node), |of| loops.parent(*of)).take_while(|at| *at != of);
        inside.map(|at| turns[&at]).product()
    };
    // What a turn of a loop takes in some of its blocks.
    let sum = |of: LoopId, holds: &dyn Fn(NodeId) -> bool, access: f64| -> f64 {
        let nodes = loops.members(of).iter().filter(|node| holds(**node));
        let weighted = |node: &NodeId| {
            let (issued, accesses) = of_blocks[node.index()];
            (issued + access * accesses) * times(of, *node)
        };
        nodes.map(weighted).sum()
    };
    let mut found = Vec::new();
    for inner in loops.ids().filter(|of| !loops.is_irreducible(*of)) {
        let is_left = |node: &&NodeId| flow.graph().successors(**node).iter().any(|to| !loops.contains(inner, *to));
        let is_divergent = |node: &NodeId| !context.lanes_stay_together_at(flow.block(*node));
        let Some(outer) = loops.parent(inner).filter(|outer| !loops.is_irreducible(*outer)) else { continue };
        if !loops.members(inner).iter().filter(is_left).any(is_divergent) {
            continue;
        }
        let body = sum(inner, &|_| true, 0.0);
        let rest = sum(outer, &|node| !loops.contains(inner, node), ACCESS);
        let tasks: f64 = std::iter::successors(Some(outer), |of| loops.parent(*of)).map(|of| turns[&of]).product();
        let (turns, most) = (turns[&inner], most_of(tasks));
        let apart = rest + body * turns * most_of(1.0);
        let all = turns * (body + QUESTIONS) * most + turns.min(LANES) * rest;
        let trials = [4usize, 8, 16].map(|enough| {
            let cycle = (body + QUESTIONS) * turns * most * (LANES / enough as f64).ln() + rest;
            (Some(enough), cycle * LANES / (LANES - enough as f64))
        });
        let best = |a: (Option<usize>, f64), b: (Option<usize>, f64)| if b.1 < a.1 { b } else { a };
        let (enough, together) = trials.into_iter().fold((None, all), best);
        let (place, gain) =
            (flow.block(loops.header(inner)).first_insertion_point(), (100.0 * apart / together) as i64);
        let why_not = lanes_meet_at(context, inner).then_some(MEET);
        found.push(Found { place, enough, pattern: "loop merge", gain, why_not, around: inner });
    }
    // Where a loop turns a few times only, lanes leave it before they could wait.
    for around in loops.ids().filter(|of| !loops.is_irreducible(*of) && turns[of] >= 2.0 * most_of(1.0)) {
        for &node in loops.members(around).iter().filter(|node| loops.innermost(**node) == Some(around)) {
            let ways = flow.graph().successors(node);
            if ways.len() < 2 || context.lanes_stay_together_at(flow.block(node)) {
                continue;
            }
            for &arm in ways.iter().filter(|arm| loops.contains(around, **arm) && **arm != loops.header(around)) {
                let is_all = loops.latches(around).iter().all(|latch| dominators.dominates(arm, *latch));
                if is_all || flow.graph().predecessors(arm) != [node] {
                    continue;
                }
                let is_in_arm = |node: NodeId| dominators.dominates(arm, node);
                let body = sum(around, &is_in_arm, 0.0);
                let rest = sum(around, &|node| !is_in_arm(node), ACCESS);
                // Every other iteration takes it.
                let (apart, together) = (2.0 * (rest + body), body + 2.0 * most_of(1.0) * (rest + QUESTIONS));
                let place = flow.block(arm).first_insertion_point();
                let gain = (100.0 * apart / together) as i64;
                let mut inside = loops.ids().filter(|inner| is_in_arm(loops.header(*inner)));
                let why_not = inside.any(|inner| lanes_meet_at(context, inner)).then_some(MEET);
                found.push(Found { place, enough: None, pattern: "iteration delay", gain, why_not, around });
            }
        }
    }
    let are_nested = |a: LoopId, b: LoopId| loops.contains(a, loops.header(b)) || loops.contains(b, loops.header(a));
    let rivals: Vec<bool> = (0..found.len())
        .map(|i| {
            let is_rival = |(j, other): (usize, &Found<'_>)| {
                let is_near = other.gain >= RIVAL && found[i].gain < 2 * other.gain;
                j != i && is_near && are_nested(found[i].around, other.around)
            };
            found.iter().enumerate().any(is_rival)
        })
        .collect();
    for (found, _) in found.iter_mut().zip(rivals).filter(|(_, has_rival)| *has_rival) {
        found.why_not = found.why_not.or(Some(UNSURE));
    }
    found.sort_by_key(|found| std::cmp::Reverse(found.gain));
    found
}

/// Whether lanes meet at a place without a wait, as it is where an inner loop begins at whose header they do.
pub(super) fn lanes_meet<'m>(context: &mut Context<'m>, place: Instruction<'m>) -> bool {
    let (flow, loops) = (context.flow(), context.loops());
    let node = place.block().and_then(|block| flow.find(block));
    let inner = node.and_then(|node| loops.innermost(node).filter(|inner| loops.header(*inner) == node));
    inner.is_some_and(|inner| loops.parent(inner).is_some() && lanes_meet_at(context, inner))
}

/// Whether the lanes of an inner loop meet at its header without a wait, on NVIDIA's: `ptxas` puts YIELD into a loop
/// with an atomic operation of its own, from sm_90 on if a function is called in it, or behind it before another turn
/// of a loop around it (docs/fidelity.md).
fn lanes_meet_at(context: &mut Context<'_>, inner: LoopId) -> bool {
    let (flow, loops) = (context.flow(), context.loops());
    let function = flow.block(NodeId(0)).function();
    let warp = Warp::of(function.module());
    if warp == Some(Warp::Amd) {
        return false;
    }
    let is_atomic = |i: &Instruction<'_>| matches!(i.opcode(), Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg);
    let own = loops.members(inner).iter().filter(|node| loops.innermost(**node) == Some(inner));
    if !own.flat_map(|node| flow.block(*node).instructions()).any(|i| is_atomic(&i)) {
        return false;
    }
    if warp.is_some_and(|warp| warp.is_before(function, 90)) {
        return true;
    }
    let mut next: Vec<NodeId> = loops.members(inner).to_vec();
    let mut seen: FxHashSet<NodeId> = next.iter().copied().collect();
    while let Some(node) = next.pop() {
        if flow.block(node).instructions().into_iter().any(cost::calls) {
            return true;
        }
        let around = || std::iter::successors(loops.innermost(node), |of| loops.parent(*of));
        let goes_back = |to: &NodeId| around().any(|of| loops.header(of) == *to);
        next.extend(flow.graph().successors(node).iter().copied().filter(|to| !goes_back(to) && seen.insert(*to)));
    }
    false
}

/// The turns that a lane takes in a loop with this code, if the trip counts of a trace know it.
fn known<'m>(context: &Context<'m>, blocks: impl Iterator<Item = Block<'m>>) -> Option<f64> {
    let trips = context.trips()?;
    let code: Vec<Instruction<'m>> = blocks.flat_map(Block::instructions).collect();
    let function = code.first()?.block()?.function().name();
    let places: Vec<_> = code.into_iter().filter_map(Instruction::place).collect();
    trips.turns(&function, places.iter().map(|place| (place.file.rsplit('/').next().unwrap_or_default(), place.line)))
}

/// What a GPU issues for a block, and how often it accesses memory.
fn cost(costs: OnGpu, block: Block<'_>) -> (f64, f64) {
    let beside = |user: Instruction<'_>| user.block() == Some(block);
    let code = block.instructions();
    let issued: i64 = code.iter().map(|i| costs.fetches(*i, &beside)).sum();
    let accesses = code.iter().filter(|i| matches!(i.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore)).count();
    (issued as f64 / 10.0, accesses as f64)
}
