//! Places at which it would pay to wait, found without a run: a divergent loop inside of a loop, and a divergent branch
//! inside of one (the paper's section 4.5).
//!
//! ```text
//! loop merge           for (…) { prolog; while (d) BODY;  epilog; }
//! iteration delay      for (…) { prolog; if (d) { BODY }  epilog; }
//! ```
//!
//! # With a trace
//! What `replay --loops --json` says of a place (`--trips`) decides: how often warps issue its body without a wait and
//! with one, and what else they issue in the loops around it. Each body then takes [`QUESTIONS`] more, and each access
//! to memory in the rest counts [`ACCESS`] more, as lanes come there at different times. Where lanes take equal turns
//! nothing is gained, and nothing is taken. Of places in the loops of each other the one that gains most is.
//!
//! # By the code alone
//! What a warp issues for a task of each lane, by instructions of a GPU, loops inside weighted by how often they turn
//! (a guess, as [`TURNS`]); `rest` is prolog and epilog:
//!
//! - As it is, the rest runs once and the body as often as the lane with most turns has it, for turns that
//!   end with equal odds. An arm runs in each iteration, as some lane always takes it.
//! - With all waited for, the body runs as often as the lane has it that has most over all iterations, of which there
//!   are some ([`most_of`]), and the rest each time that a lane ends. With so many enough, lanes end until fewer are
//!   left, which takes ln(lanes / enough) of the mean; then the others are refilled at once. An arm runs once for each
//!   lane, and the rest until the last has come.
//!
//! A guess does not know whether lanes differ. Where they do not, a warp issues as many bodies as before, and with each
//! at most the questions and the rest besides: a place is taken only where that is within `risk`. Nor does it know
//! which of loops inside of each other differs among lanes: where both promise much ([`RIVAL`]), nothing is taken.
//!
//! *Limitation*: the rest is taken to run as long as the lane that has most of it, also where lanes part in it. Where
//! lanes meet at a loop anyhow ([`lanes_meet`]), nothing is taken in the loops around it.

use flowgraph::{LoopId, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::warp::Warp;
use crate::context::Context;
use crate::cost::{self, CostModel, OnGpu};
use crate::llvm::{Block, Instruction, Opcode};
use crate::trips::{Paid, PlaceRan, Sought, Trips};

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
    /// The same by a trace, where it decides.
    pub(super) by_trace: Option<ByTrace>,
    /// Why lanes should not wait there all the same, if so.
    pub(super) why_not: Option<&'static str>,
    /// The innermost loop that holds it.
    around: LoopId,
    /// What a warp issues more at most if lanes wait there for nothing, in percent.
    worst: i64,
    /// What a turn of the body takes, by the code.
    body: f64,
    /// What accesses to memory add to the rest, as a factor.
    accesses: f64,
}

/// What a trace says of a place.
pub(super) struct ByTrace {
    /// What is issued before / after, in percent.
    pub(super) gain: i64,
    /// How often the body is issued without a wait, and with one.
    pub(super) bodies: [i64; 2],
    /// Where it begins in the trace.
    pub(super) at: String,
}

/// Another place could be the right one.
const UNSURE: &str = "lanes may differ at another place in these loops, which `lockstep suggest` would try on a trace";
/// Lanes need not differ at all.
const UNKNOWN: &str = "whether lanes differ there is unknown, and waiting could cost more than `risk`: the loops of a trace say it \
                       (--trips FILE, as `replay --loops --json` prints them)";
/// What a trace says of turns would be so without that.
const MEET_BESIDE: &str =
    "in these loops lanes meet at another place already: they yield in a loop with an atomic operation";
/// There are only the means of a trace.
const OLD: &str =
    "the loops of the trace do not say how lanes differ there: print them again by `replay --loops --json`";
/// The trace has nothing of it.
const NOT_RUN: &str = "the trace has no such loop or branch: no lane came there, or each time once";
/// Lanes wait elsewhere.
const BESIDE: &str = "another place in these loops gains more";
/// See [`lanes_meet`].
pub(super) const MEET: &str = "lanes meet there already: they yield in a loop with an atomic operation";

/// The places of a function, those that gain most first.
pub(super) fn places<'m>(context: &mut Context<'m>, least: i64, risk: i64) -> Vec<Found<'m>> {
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
        let is_rest = |node: NodeId| !loops.contains(inner, node);
        let rest = sum(outer, &is_rest, ACCESS);
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
        // At least this is issued of it in each turn.
        let always = |node: &NodeId| loops.latches(inner).iter().all(|latch| dominators.dominates(*node, *latch));
        let least = loops.members(inner).iter().filter(|node| always(node)).map(|node| of_blocks[node.index()].0);
        let worst = (100.0 * (QUESTIONS + rest) / least.sum::<f64>().max(1.0)).ceil() as i64;
        let accesses = rest / sum(outer, &is_rest, 0.0).max(1.0);
        found.push(Found {
            place,
            enough,
            pattern: "loop merge",
            gain,
            by_trace: None,
            why_not,
            around: inner,
            worst,
            body,
            accesses,
        });
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
                let is_rest = |node: NodeId| !is_in_arm(node);
                let rest = sum(around, &is_rest, ACCESS);
                // Every other iteration takes it.
                let (apart, together) = (2.0 * (rest + body), body + 2.0 * most_of(1.0) * (rest + QUESTIONS));
                let place = flow.block(arm).first_insertion_point();
                let gain = (100.0 * apart / together) as i64;
                let mut inside = loops.ids().filter(|inner| is_in_arm(loops.header(*inner)));
                let why_not = inside.any(|inner| lanes_meet_at(context, inner)).then_some(MEET);
                let accesses = rest / sum(around, &is_rest, 0.0).max(1.0);
                found.push(Found {
                    place,
                    enough: None,
                    pattern: "iteration delay",
                    gain,
                    by_trace: None,
                    why_not,
                    around,
                    worst: i64::MAX,
                    body,
                    accesses,
                });
            }
        }
    }
    decide(context, found, least, risk)
}

/// Says of each place whether lanes should wait there: by the trace, where there is one.
fn decide<'m>(context: &mut Context<'m>, mut found: Vec<Found<'m>>, least: i64, risk: i64) -> Vec<Found<'m>> {
    let loops = context.loops();
    let are_nested = |a: &Found<'_>, b: &Found<'_>| {
        loops.contains(a.around, loops.header(b.around)) || loops.contains(b.around, loops.header(a.around))
    };
    let Some(knows_places) = context.trips().map(Trips::know_places) else {
        let is_rival = |of: &Found<'_>, other: &Found<'_>| {
            other.place != of.place && other.gain >= RIVAL && of.gain < 2 * other.gain && are_nested(of, other)
        };
        let unsure = |of: &Found<'_>| match () {
            () if found.iter().any(|other| is_rival(of, other)) => Some(UNSURE),
            () if of.worst > risk => Some(UNKNOWN),
            () => None,
        };
        let reasons: Vec<_> = found.iter().map(unsure).collect();
        found.iter_mut().zip(reasons).for_each(|(found, why)| found.why_not = found.why_not.or(why));
        found.sort_by_key(|found| std::cmp::Reverse(found.gain));
        return found;
    };
    for found in &mut found {
        match of_trace(context, found) {
            _ if !knows_places => found.why_not = found.why_not.or(Some(OLD)),
            None => found.why_not = found.why_not.or(Some(NOT_RUN)),
            Some((enough, by_trace)) => (found.enough, found.by_trace) = (enough, Some(by_trace)),
        }
        let is_beside = found.why_not.is_none() && lanes_meet_beside(context, found.around);
        found.why_not = found.why_not.or(is_beside.then_some(MEET_BESIDE));
    }
    let gain = |found: &Found<'_>| found.by_trace.as_ref().map_or(0, |by_trace| by_trace.gain);
    found.sort_by_key(|found| std::cmp::Reverse((gain(found), found.gain)));
    // Of places in the loops of each other the first gains most.
    for i in 0..found.len() {
        let is_taken = |other: &Found<'_>| other.why_not.is_none() && gain(other) >= least;
        let is_beside = found[..i].iter().any(|other| is_taken(other) && are_nested(other, &found[i]));
        found[i].why_not = found[i].why_not.or(is_beside.then_some(BESIDE));
    }
    found
}

/// How many lanes are enough at a place by the trace, and what waiting gains; none where no lane came there.
fn of_trace(context: &mut Context<'_>, found: &Found<'_>) -> Option<(Option<usize>, ByTrace)> {
    let (flow, loops) = (context.flow(), context.loops());
    let block = found.place.block()?;
    let is_arm = loops.header(found.around) != flow.node(block);
    let code = if is_arm {
        block.instructions()
    } else {
        let end = loops.latches(found.around).iter().map(|latch| flow.block(*latch).terminator());
        let own = loops.members(found.around).iter().filter(|node| loops.innermost(**node) == Some(found.around));
        end.take(1).chain(own.flat_map(|node| flow.block(*node).instructions())).collect()
    };
    let depth = std::iter::successors(Some(found.around), |of| loops.parent(*of)).count() as u32;
    let sought = Sought::of(code)?;
    let likely = context.trips()?.places(&sought, is_arm, depth);
    // Copies that the compiler made, as by unrolling, differ in their body.
    let difference = |place: &&PlaceRan| (place.body.max(1.0) / found.body.max(1.0)).ln().abs();
    let place = likely.into_iter().min_by(|a, b| difference(a).total_cmp(&difference(b)))?;
    let apart = place.apart.bodies * place.body + place.apart.rest;
    let together = |(enough, paid): &(Option<usize>, Paid)| {
        let issued = paid.bodies * (place.body + QUESTIONS) + paid.rest * found.accesses;
        (*enough, (100.0 * apart / issued.max(1.0)) as i64, paid.bodies)
    };
    let (enough, gain, with) = place.waits.iter().map(together).reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    let bodies = [place.apart.bodies as i64, with as i64];
    Some((enough, ByTrace { gain, bodies, at: place.at.clone() }))
}

/// Whether the lanes of a loop around a place meet at an inner loop without a wait.
fn lanes_meet_beside(context: &mut Context<'_>, place: LoopId) -> bool {
    let loops = context.loops();
    let region = std::iter::successors(Some(place), |of| loops.parent(*of)).last().expect("it is one itself");
    let inner = |of: &LoopId| loops.parent(*of).is_some() && loops.contains(region, loops.header(*of));
    loops.ids().filter(inner).any(|of| lanes_meet_at(context, of))
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
    trips.turns(&Sought::of(blocks.flat_map(Block::instructions))?)
}

/// What a GPU issues for a block, and how often it accesses memory.
fn cost(costs: OnGpu, block: Block<'_>) -> (f64, f64) {
    let beside = |user: Instruction<'_>| user.block() == Some(block);
    let code = block.instructions();
    let issued: i64 = code.iter().map(|i| costs.fetches(*i, &beside)).sum();
    let accesses = code.iter().filter(|i| matches!(i.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore)).count();
    (issued as f64 / 10.0, accesses as f64)
}
