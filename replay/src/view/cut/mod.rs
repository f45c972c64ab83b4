//! Lanes that are parts of what a thread ran: its calls of a function, or the iterations (*turns*) of a loop. The view
//! makes threads' streams as usual. Here they are cut, once, into lanes that are kept ([`store`]), so that 10^6 of them
//! can be read in any order.
//!
//! What is a lane is a [`Lanes`](super::Lanes): each has its rule in [`cutter`].

mod chunks;
mod counts;
mod cutter;
mod iterations;
mod marks;
mod numbering;
mod phases;
mod pieces;
mod rows;
mod store;
mod track;

use std::sync::Arc;

use heuristics::SegmentId;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Pc, Seq, Trace};

use self::counts::Counts;
use self::cutter::{Cutter, Rule};
use self::iterations::loops::{LoopsOf, nodes};
use self::iterations::{SIDE_BY_SIDE, TeamCall, team_call};
use self::marks::{MarkCutter, MarkPlan};
use self::pieces::{Begun, Launch};
use self::rows::AllRows;
use self::store::{Lane, Link, Store, Stretch, links_of};
use super::stacks::OnStacks;
use super::{CutInto, View};
use crate::lanes::brief::Brief;
use crate::lanes::kept::Keeper;
use crate::survey::Survey;
use crate::{Batch, Error, LaneOrigin, Result, Rows};

pub use iterations::{ArmRan, LoopRan, Paid, Spread, Waited};
pub use iterations::{GUARDS, Merging};
pub(super) use iterations::{add_copies, into_turns};
pub(crate) use phases::Phases;

/// How the lanes of a launch are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Those of a thread follow one another: the order of the iterations, where each thread is given one part of them.
    Threads,
    /// As `schedule(static, n)` deals chunks: the first of each thread, then the second of each.
    Chunks,
    /// By the addresses that one of their instructions accessed: those rise or fall from one to the next.
    Addresses,
    /// As the trace says which iterations each chunk has.
    Given,
    /// As calls began, by the events that threads had seen before; those behind one event as [`Order::Threads`].
    Begun,
    /// As tasks were made.
    Created {
        /// Whether the trace says so of all of them.
        all: bool,
    },
    /// Team by team, those of each as [`Order::Threads`].
    Teams,
    /// As [`Order::Threads`], though a runtime has handed chunks out as they were asked for.
    Unknown,
}

/// So many accesses of a turn are remembered where its number is to be found by them.
const ACCESSES: usize = 6;

/// Where more than this share of all is not known, lanes are not.
const MOST_UNKNOWN: f64 = 0.1;

/// The lanes of all threads.
pub(super) struct Cut {
    stores: Vec<Store>,
    /// Which stretches lanes of several go on with.
    links: Vec<Link>,
    /// What they name.
    rows: Arc<Rows>,
    /// By lane: its first stretch.
    of: Vec<Stretch>,
}

/// A lane: its launch's number among all, what orders its chunk where chunks count, its thread, and its first stretch
/// there.
type Numbered = (u32, i64, u32, u32);

/// Cut lanes, who each is, and what to say about them.
pub(super) type Made = (Cut, Vec<LaneOrigin>, CutInto);

impl Cut {
    /// Only the lanes of these numbers.
    pub fn sample(self, numbers: &[usize]) -> Cut {
        Cut { of: numbers.iter().map(|lane| self.of[*lane]).collect(), ..self }
    }

    /// A lane's stream from its beginning.
    pub fn stream(&self, lane: usize) -> Lane<'_> {
        Lane::new((&self.stores, &self.links, &self.rows), self.of[lane])
    }
}

/// Each time that a thread reached the region is a lane.
pub(super) fn into_calls(view: &View, is_auto: bool, on_stacks: &[OnStacks]) -> Result<Made> {
    let what = "each time that a thread came to the region".to_owned();
    let mut made = described(cut(view, || Rule::Extents, Order::Begun)?, what);
    let threads = made.1.iter().map(|lane| lane.thread).collect::<FxHashSet<_>>().len();
    if is_auto && threads > 1 && made.1.len() == threads {
        made.2.doubts.push(format!(
            "each of these calls is all that one of {threads} threads ran, and no piece of its work: name the function \
             of a piece with --region (if it was inlined, it needs noinline), or take the iterations of the loop that \
             takes pieces (replay --loops)"
        ));
    }
    if let Some(why) = on_other_stacks(&made.2, made.1.len(), on_stacks) {
        made.2.is_withheld = true;
        made.2.doubts.push(format!(
            "these calls go on with other stacks, as threads of the program's own do that wait, {why}; take whole \
             threads as lanes (without --lanes), or name a function that does not wait"
        ));
    }
    Ok(made)
}

/// Why calls that went on with other stacks are not known, if they are not.
fn on_other_stacks(what: &CutInto, lanes: usize, on_stacks: &[OnStacks]) -> Option<String> {
    let left: usize = on_stacks.iter().map(|of| of.left).sum();
    let beside: u64 = on_stacks.iter().map(|of| of.beside).sum();
    if OnStacks::are_shared(on_stacks) {
        return Some("and one thread may go on with what another began".to_owned());
    }
    if left as f64 > MOST_UNKNOWN * lanes as f64 {
        return Some(format!("and {left} of {lanes} did not come back to theirs"));
    }
    (beside as f64 > MOST_UNKNOWN * what.kept as f64)
        .then(|| "and what runs there, as a part of them or not, is in no call".to_owned())
}

/// Each OpenMP task is a lane.
pub(super) fn into_tasks(view: &View) -> Result<Made> {
    let tasks = &view.plan.tasks;
    let are_told = tasks.numbers.iter().any(|of_thread| !of_thread.is_empty());
    let order = if are_told { Order::Created { all: tasks.all_known } } else { Order::Begun };
    Ok(described(cut(view, || Rule::Extents, order)?, "each task".to_owned()))
}

/// Each iteration that is marked is a lane.
pub(super) fn into_marked(view: &View) -> Result<Made> {
    let segments = view.segments();
    let begins_loop = |id: SegmentId| team_call(&view.trace, segments, id) == Some(TeamCall::Loop);
    let plan = MarkPlan::new(segments, &view.plan.choice.marks, &begins_loop);
    let mut made =
        described(cut(view, || Rule::Marks(&plan), Order::Threads)?, "iterations that are marked".to_owned());
    // What happens to registers between them is in no lane.
    made.2.dealt = true;
    made.2.is_withheld = view.plan.episodes.is_unsure;
    if made.2.is_withheld {
        made.2.doubts.push(SIDE_BY_SIDE.to_owned());
    }
    if let Some(call) = plan.without_marks().first() {
        made.2.doubts.push(format!(
            "threads were given iterations at {} that have no marks, and are no lanes",
            named(&view.trace, *call)
        ));
    }
    Ok(made)
}

/// An address with the function that it lies in.
fn named(trace: &Trace, pc: Pc) -> String {
    trace
        .symbol_of(pc)
        .map_or_else(|| pc.to_string(), |symbol| format!("{pc} (in {})", trace_format::names::demangled(&symbol.name)))
}

/// The loops that lanes turned; with the spread of their turns among the lanes of warps, if that is asked for.
pub(super) fn loops_ran(view: &View, warp: usize, spreads: bool) -> Result<Vec<LoopRan>> {
    let survey = Survey::new(view, true)?;
    let nodes = nodes(&view.trace, view.segments());
    let Some(loops) = LoopsOf::of(&survey.control_flow, &nodes) else { return Ok(Vec::new()) };
    let briefs = Brief::with_costs(view.segments(), &|id| view.gpu_cost(id));
    let counting = view.segments().iter().map(|(id, _)| view.counts_up(id)).collect();
    let counter = loops.count(view.segments(), (briefs, counting), spreads);
    let generation = |lane: usize| view.lanes()[lane].generation;
    let numbers: Vec<usize> = (0..view.lanes().len()).collect();
    let launches = numbers.chunk_by(|a, b| generation(*a) == generation(*b)).flat_map(|of_one| of_one.chunks(warp));
    let warps: Vec<&[usize]> = launches.collect();
    // A counter's size grows with the program: many short lanes share one, and those of a warp do for their spread.
    let share = |count: usize| count.div_ceil(4 * rayon::current_num_threads()).max(1);
    let shares = if spreads { warps.clone() } else { numbers.chunks(share(numbers.len())).collect() };
    let of_shares = |shares: &[&[usize]]| -> Result<_> {
        let (mut counter, mut batch, mut trips) = (counter.clone(), Batch::default(), Vec::new());
        for lanes in shares {
            let mut records = Vec::new();
            for lane in *lanes {
                let mut stream = survey.stream(*lane);
                while stream.next_batch(&mut batch)? {
                    counter.see(&batch);
                }
                trips.push(counter.end());
                records.extend(counter.records());
            }
            counter.issues(&records);
        }
        Ok((counter, trips))
    };
    let counted: Vec<_> = shares.par_chunks(share(shares.len())).map(of_shares).collect::<Result<_>>()?;
    let mut all = counter.clone();
    let mut trips = Vec::with_capacity(numbers.len());
    for (one, of_lanes) in counted {
        all.merge(&one);
        trips.extend(of_lanes);
    }
    let warps: Vec<&[_]> = warps.iter().map(|lanes| &trips[lanes[0]..=lanes[lanes.len() - 1]]).collect();
    all.merging(&warps);
    Ok(all.finish())
}

/// Cuts all threads; by lane, the launch that it is of.
fn cut<'a>(
    view: &View,
    rule: impl Fn() -> Rule<'a> + Sync,
    order: Order,
) -> Result<(Cut, Vec<LaneOrigin>, Counts, Order)> {
    let briefs = Brief::with_costs(view.segments(), &|id| view.gpu_cost(id));
    let most_accesses = if order == Order::Unknown { ACCESSES } else { 0 };
    let keeper = Keeper::beside((0..view.lanes.len()).filter_map(|lane| view.kept(lane)));
    let rows = AllRows::new(&view.plan.blocks.rows);
    let of_thread = |lane: usize| {
        let origin = view.lanes[lane];
        let rule = rule();
        let mut batch = Batch::default();
        let mut stream = view.kept(lane).map_or_else(|| view.stream(lane), |kept| kept.stream());
        if let Rule::Marks(plan) = rule {
            let mut cutter = MarkCutter::new(plan, (&briefs, &rows), &origin, &keeper);
            while stream.next_folded(&mut batch)? {
                cutter.see(&batch)?;
            }
            return cutter.finish();
        }
        let mut cutter = Cutter::new((rule, most_accesses), (&briefs, &rows), origin.generation, &keeper);
        while stream.next_folded(&mut batch)? {
            cutter.see(&batch)?;
        }
        cutter.finish()
    };
    let cut: Vec<_> = (0..view.lanes.len()).into_par_iter().map(of_thread).collect::<Result<_>>()?;
    let rows = Arc::new(rows.finish());
    let dealt = cut.iter().flat_map(|pieces| &pieces.lanes).any(|lane| lane.chunk > 0);
    let mut counts = Counts { dealt, ..Counts::default() };
    let mut all: Vec<Numbered> = Vec::new();
    let mut stores = Vec::with_capacity(cut.len());
    let mut accesses = Vec::with_capacity(cut.len());
    let mut parts: FxHashMap<Stretch, u32> = FxHashMap::default();
    let mut launches: Vec<Launch> = cut.iter().flat_map(|pieces| &pieces.launches).copied().collect();
    launches.sort_unstable();
    launches.dedup();
    let number = |launch: &Launch| launches.partition_point(|one| one < launch) as u32;
    let numbers: Vec<Vec<u32>> = cut.iter().map(|pieces| pieces.launches.iter().map(number).collect()).collect();
    let lanes = || cut.iter().zip(&numbers).flat_map(|(of, numbers)| of.lanes.iter().map(move |l| (l, numbers)));
    // By launch: whether the trace does not say which iterations each lane's chunk has.
    let mut untold = vec![false; launches.len()];
    lanes().for_each(|(lane, numbers)| untold[numbers[lane.launch as usize] as usize] |= lane.first.is_none());
    let told = lanes().any(|(lane, numbers)| !untold[numbers[lane.launch as usize] as usize]);
    let in_teams = lanes().any(|(lane, _)| lane.team > 0);
    for (thread, (pieces, numbers)) in cut.into_iter().zip(&numbers).enumerate() {
        counts.add(&pieces.counts);
        let key = |lane: &Begun| {
            let launch = numbers[lane.launch as usize];
            let chunk = match lane.first {
                Some(first) if !untold[launch as usize] => first,
                _ if order == Order::Chunks => i64::from(lane.team) << 32 | i64::from(lane.chunk),
                _ => i64::from(lane.team) << 32,
            };
            (launch, chunk, thread as u32, lane.stretch)
        };
        all.extend(pieces.lanes.iter().map(key));
        let further = pieces.lanes.iter().filter(|lane| lane.part > 0);
        parts.extend(further.map(|lane| ((thread as u32, lane.stretch), lane.part)));
        stores.push(pieces.store);
        accesses.push(pieces.accesses);
    }
    if all.is_empty() {
        return Err(Error::Request("none of the lanes asked for ran any instruction".to_owned()));
    }
    all.sort_unstable();
    for lanes in all.chunk_by(|a, b| a.0 == b.0).filter(|lanes| !untold[lanes[0].0 as usize]) {
        let are_apart = lanes.len() > 1 && lanes.windows(2).all(|pair| pair[1].1.saturating_sub(pair[0].1) > 1);
        let of_loop = launches[lanes[0].0 as usize].of_loop as usize;
        counts.told.iter_mut().skip(of_loop).take(1).for_each(|told| {
            told.are_apart |= are_apart;
            told.is_alone |= lanes.len() == 1;
        });
    }
    let mut links = links_of(&stores);
    if !parts.is_empty() {
        join(&mut all, &parts, &mut links);
    }
    let order = match order {
        Order::Begun if all.is_sorted_by_key(|(launch, _, thread, number)| (*launch, *thread, *number)) => {
            Order::Threads
        }
        Order::Begun | Order::Created { .. } => order,
        _ if !untold.contains(&true) => Order::Given,
        Order::Threads if in_teams => Order::Teams,
        Order::Unknown if !told && numbering::by_addresses(&mut all, &accesses) => Order::Addresses,
        order => order,
    };
    let mut lanes = Vec::with_capacity(all.len());
    for (generation, launch) in all.chunk_by(|a, b| a.0 == b.0).enumerate() {
        let origin = |thread: u32| LaneOrigin {
            thread: view.lanes[thread as usize].thread,
            first: Seq::default(),
            generation: generation as u32,
        };
        lanes.extend(launch.iter().map(|(_, _, thread, _)| origin(*thread)));
    }
    let of = all.into_iter().map(|(_, _, thread, number)| (thread, number)).collect();
    Ok((Cut { stores, links, rows, of }, lanes, counts, order))
}

/// Makes one lane of all parts of a task.
fn join(all: &mut Vec<Numbered>, parts: &FxHashMap<Stretch, u32>, links: &mut Vec<Link>) {
    // The task's launch and the number of its first part, and where its last one ended.
    let (mut task, mut end, mut joined) = (None, (0, 0), Vec::new());
    all.retain(|(launch, number, thread, stretch)| {
        let begin = (*thread, *stretch);
        let of = Some((*launch, number - i64::from(parts.get(&begin).copied().unwrap_or(0))));
        let goes_on = std::mem::replace(&mut task, of) == of;
        if goes_on {
            joined.push((end, begin));
        }
        end = begin;
        while let Ok(link) = links.binary_search_by_key(&end, |(before, _)| *before) {
            end = links[link].1;
        }
        !goes_on
    });
    links.extend(joined);
    links.sort_unstable();
}

fn described((cut, lanes, counts, order): (Cut, Vec<LaneOrigin>, Counts, Order), what: String) -> Made {
    let Counts { kept, outside, mathematics, last_tests, barriers, dealt, .. } = counts;
    let launches = lanes.last().map_or(0, |lane| lane.generation as usize + 1);
    let order = match order {
        Order::Threads => "numbered thread by thread, in the order in which each ran them",
        Order::Begun => {
            "numbered in the order in which they began, where locks and other events tell it; else thread by thread"
        }
        Order::Chunks => "numbered as schedule(static, n) deals chunks to threads",
        Order::Given => "numbered as the loop counts, by the chunks that the trace says each thread was given",
        Order::Created { all: true } => "numbered in the order in which they were made",
        Order::Created { all: false } => {
            "numbered in the order in which they were made, where the trace says when; else in the order in which \
             they began"
        }
        Order::Teams => {
            "numbered team by team, within a team thread by thread, in the order in which each thread \
             ran them"
        }
        Order::Addresses => "numbered by the addresses that they access",
        Order::Unknown => {
            "numbered thread by thread, in the order in which each ran them, as the chunks that the runtime handed out are \
             not known (a static schedule has the loop's own numbers, and trace --memory often tells them)"
        }
    };
    (
        cut,
        lanes,
        CutInto {
            what,
            launches,
            kept,
            outside,
            mathematics,
            last_tests,
            barriers,
            dealt,
            order,
            loops: Vec::new(),
            is_withheld: false,
            is_shared_out: false,
            doubts: Vec::new(),
        },
    )
}
