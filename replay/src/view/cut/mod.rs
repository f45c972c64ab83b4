//! Lanes that are parts of what a thread ran: its calls of a function, or the iterations (*turns*) of a loop. The view
//! makes threads' streams as usual. Here they are cut, once, into lanes that are kept ([`store`]), so that 10^6 of them
//! can be read in any order.
//!
//! What is a lane is a [`Lanes`](super::Lanes): each has its rule in [`cutter`].

mod counts;
mod cutter;
mod given;
mod loops;
mod marks;
mod merging;
mod numbering;
mod phases;
mod rows;
mod store;
mod track;
mod turns;

use std::sync::Arc;

use flowgraph::LoopId;
use heuristics::{SegmentId, SegmentTable};
use rayon::prelude::*;
use trace_format::{Pc, Seq, Trace};

use self::counts::{Counts, Told};
use self::cutter::{Begun, Cutter, Launch, Rule};
use self::given::Given;
use self::loops::LoopsOf;
use self::marks::{MarkCutter, MarkPlan};
use self::rows::AllRows;
use self::store::{Lane, Store};
use self::turns::{Finder, Turns};
use super::{CutInto, View, WhichLoops};
use crate::lanes::brief::Brief;
use crate::lanes::kept::Keeper;
use crate::survey::Survey;
use crate::{Batch, Error, LaneOrigin, Result, Rows};

pub use loops::LoopRan;
pub use merging::{GUARDS, Merging};
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

/// The lanes of all threads.
pub(super) struct Cut {
    stores: Vec<Store>,
    /// What they name.
    rows: Arc<Rows>,
    /// By lane: its thread's store, and its number there.
    of: Vec<(u32, u32)>,
}

/// A lane: its launch's number among all, what orders its chunk where chunks count, its thread, and its number among
/// the thread's lanes.
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
        let (store, number) = self.of[lane];
        self.stores[store as usize].stream(number as usize, &self.rows)
    }
}

/// Each time that a thread reached the region is a lane.
pub(super) fn into_calls(view: &View, what: &str) -> Result<Made> {
    let made = cut(view, || Rule::Extents, Order::Begun)?;
    Ok(described(made, what.to_owned()))
}

/// Each OpenMP task is a lane.
pub(super) fn into_tasks(view: &View) -> Result<Made> {
    let tasks = &view.plan.tasks;
    let are_told = tasks.numbers.iter().any(|of_thread| !of_thread.is_empty());
    let order = if are_told { Order::Created { all: tasks.all_known } } else { Order::Begun };
    let made = cut(view, || Rule::Extents, order)?;
    Ok(described(made, "each task".to_owned()))
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
        made.2.doubts.push(
            "several threads forked the same region at the same time, and which others were whose team is not known: \
             lanes are iterations, but may share warps with those of another team; run it without nested parallelism"
                .to_owned(),
        );
    }
    if let Some(call) = plan.without_marks().first() {
        made.2.doubts.push(format!(
            "threads were given iterations or sections at {} that have no marks, and are no lanes",
            named(&view.trace, *call)
        ));
    }
    Ok(made)
}

/// Each turn of these loops is a lane. `bodies` are the functions that threads of a team run, `pieces` those that they
/// run a part of a taskloop in.
///
/// # Errors
/// When there is no such loop, or one of them lies in another.
pub(super) fn into_turns(view: &View, which: &WhichLoops, bodies: &[Pc], pieces: &[Pc]) -> Result<Made> {
    let segments = view.segments();
    let survey = Survey::new(view, true)?;
    let loops = LoopsOf::of_functions(&survey.control_flow, segments).ok_or_else(|| no_loop(which))?;
    let called = |pc: Pc| Some(view.trace.symbol_of(pc).filter(|symbol| symbol.pc == pc)?.name.clone());
    let function_of = |pc: Pc| view.trace.symbol_of(pc).map(|symbol| symbol.pc);
    let functions = asking(view, bodies);
    let given = |loops: &LoopsOf| Given::of(loops, (&functions, pieces), segments, &called, &function_of);
    let mut loops = loops;
    let mut found = given(&loops);
    let ways_back = found.ways_back(&loops);
    if !ways_back.is_empty() {
        loops = loops.with(&ways_back);
        found = given(&loops);
    }
    let given = found;
    let calls = |id: LoopId, wanted: &dyn Fn(TeamCall) -> bool| {
        loops.has(id, segments, &|segment| team_call(&view.trace, segments, segment).is_some_and(wanted))
    };
    let deals = |id: LoopId| given.of_chunks.contains(&id);
    let is_dispatch = |id: LoopId| deals(id) || calls(id, &|call| call == TeamCall::Chunk);
    let is_around = |id: LoopId| deals(id) || calls(id, &|_| true);
    let mut one_each = Vec::new();
    let wanted = match which {
        WhichLoops::Worksharing => {
            // A loop that gets one iteration a time has none inside.
            let holds = |outer: LoopId| given.loops.iter().any(|id| loops.is_in(*id, outer));
            one_each = loops.ids().filter(|id| calls(*id, &|call| call == TeamCall::Chunk) && !holds(*id)).collect();
            one_each.retain(|id| !given.loops.contains(id));
            let bodies = if given.loops.is_empty() && one_each.is_empty() { bodies } else { &[] };
            let with_loops: Vec<Option<Pc>> =
                given.loops.iter().map(|id| function_of(loops.ends(*id, segments).0)).collect();
            let others = pieces.iter().copied().filter(|piece| !with_loops.contains(&Some(*piece)));
            let functions: Vec<Pc> = bodies.iter().copied().chain(others).collect();
            let mut all = loops.outermost(&functions, &is_around);
            all.extend(given.loops.iter().chain(&one_each));
            all.sort_unstable();
            all.dedup();
            all
        }
        WhichLoops::At(places) => loops.at(places, segments),
    };
    if wanted.is_empty() {
        return Err(no_loop(which));
    }
    if let Some((inner, outer)) = loops.nested(&wanted) {
        let header = |id| loops.ends(id, segments).0;
        return Err(Error::Request(format!(
            "two loops are meant, one in the other, at {} and {}: name one by its address, as --loop {0}",
            header(outer),
            header(inner)
        )));
    }
    let deals_each = |id: LoopId| given.cyclic.contains(&id) || one_each.contains(&id);
    let writes = |segment: SegmentId| view.plan.writes.is_set(segment, segments);
    let finder = Finder {
        loops: &loops,
        flow: &survey.control_flow,
        segments,
        tests: &given.tests,
        given: &given.loops,
        cyclic: &given.cyclic,
        writes: &writes,
    };
    let turns = |id: &LoopId| {
        if given.loops.contains(id) { finder.turns(*id) } else { Turns::at_header(&loops, *id) }
    };
    let turns: Vec<Turns> = wanted.iter().map(turns).collect();
    let plan = loops.plan((&wanted, &turns), segments, &is_dispatch, &deals_each, &writes);
    let order = match () {
        () if wanted.iter().any(|id| loops.parent(*id).is_some_and(deals) || given.cyclic.contains(id)) => {
            Order::Chunks
        }
        () if !one_each.is_empty() => Order::Unknown,
        () if wanted.iter().any(|id| loops.parent(*id).is_some_and(is_dispatch)) => Order::Unknown,
        () => Order::Threads,
    };
    let made = cut(view, || Rule::Turns(&plan), order)?;
    let places: Vec<String> = wanted.iter().map(|id| named(&view.trace, loops.ends(*id, segments).0)).collect();
    let listed = match &places[..] {
        [one] => format!("iterations of the loop at {one}"),
        [first, second] => format!("iterations of the loops at {first} and {second}"),
        several => format!("iterations of {} loops, the first at {}", several.len(), several[0]),
    };
    let (told, missed) = (made.2.told.clone(), made.2.missed);
    let mut made = described(made, listed);
    made.2.loops = wanted.iter().map(|id| loops.taken(*id, segments)).collect();
    let asked = Asked { which, wanted: &wanted, loops: &loops, segments, pieces, one_each: &one_each, turns: &turns };
    made.2.is_withheld = *which == WhichLoops::Worksharing;
    made.2.doubts = doubts(&view.trace, &asked, &given, (&told, missed));
    Ok(made)
}

/// These functions, and those that call what gives a thread its part.
fn asking(view: &View, bodies: &[Pc]) -> Vec<Pc> {
    let segments = view.segments();
    let calls = segments.iter().filter(|(_, segment)| segment.last().kind.is_call());
    let asks = calls.filter_map(|(id, segment)| {
        let target = segments.listing(id).last()?.target()?;
        let name = &view.trace.symbol_of(target).filter(|symbol| symbol.pc == target)?.name;
        given::is_asked(name).then(|| view.trace.symbol_of(segment.last().pc).map(|symbol| symbol.pc))?
    });
    let mut all: Vec<Pc> = bodies.iter().copied().chain(asks).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Which loops were asked for, and what was found.
struct Asked<'a> {
    which: &'a WhichLoops,
    wanted: &'a [LoopId],
    loops: &'a LoopsOf<'a>,
    segments: &'a SegmentTable,
    pieces: &'a [Pc],
    one_each: &'a [LoopId],
    turns: &'a [Turns],
}

/// Why turns may be other things than iterations.
fn doubts(trace: &Trace, asked: &Asked, given: &Given, (told, missed): (&[Told], u64)) -> Vec<String> {
    let Asked { which, wanted, loops, pieces, one_each, turns, segments } = asked;
    let mut all = Vec::new();
    let at = |id: LoopId| named(trace, loops.ends(id, segments).0);
    let is_worksharing = **which == WhichLoops::Worksharing;
    let function_of = |pc: Pc| trace.symbol_of(pc).map(|symbol| symbol.pc);
    let has_loop = |function: Pc| wanted.iter().any(|id| function_of(loops.ends(*id, segments).0) == Some(function));
    let is_given = |id: &LoopId| given.loops.contains(id) || one_each.contains(id);
    let is_in_parts = |(number, id): &(usize, &LoopId)| given.in_parts.contains(id) && !told[*number].are_all();
    for (_, id) in wanted.iter().enumerate().filter(is_in_parts) {
        all.push(format!(
            "the loop at {} ends by a part of its thread's share: a lane may be several iterations, as where the \
             compiler vectorised or unrolled it; {PLAINLY}",
            at(*id)
        ));
    }
    for (number, id) in wanted.iter().enumerate().filter(|(number, _)| turns[*number].is_incomplete) {
        if !told[number].are_all() {
            all.push(format!("some iterations may run in other code than the loop at {}; {PLAINLY}", at(*id)));
        }
    }
    let unlike = told.iter().zip(*wanted).filter(|(told, id)| told.unlike > 0 && (is_worksharing || is_given(id)));
    for (told, id) in unlike {
        all.push(format!(
            "{} lanes were made of {} iterations that the runtime gave to the loop at {}: the compiler may have \
             unrolled or vectorised it, or it is another one; {PLAINLY}, or name the loop with --loop",
            told.lanes,
            told.iterations,
            at(*id)
        ));
    }
    if is_worksharing && missed > 0 {
        all.push(format!(
            "{missed} iterations that the runtime gave out are in no lane: the compiler may have unrolled their loop; \
             {PLAINLY}, or name the loop with --loop"
        ));
    }
    if is_worksharing && pieces.is_empty() && !wanted.iter().any(is_given) {
        all.push(format!(
            "no loop was found whose end hangs on what OpenMP gave its thread: taken is {}; name the loop with --loop \
             (`replay --loops` lists those that ran)",
            wanted.iter().map(|id| at(*id)).collect::<Vec<_>>().join(" and ")
        ));
    } else if is_worksharing && let Some(function) = given.lost.iter().find(|function| !has_loop(**function)) {
        all.push(format!(
            "of the iterations that {} shares out no loop was found: they are in no lane; {PLAINLY}, or name the loop \
             with --loop",
            named(trace, *function)
        ));
    }
    all
}

/// How to get a loop of which a turn is an iteration.
const PLAINLY: &str =
    "build it without that (-fno-unroll-loops -fno-tree-vectorize, clang: -fno-vectorize) and trace again";

fn no_loop(which: &WhichLoops) -> Error {
    Error::Request(match which {
        WhichLoops::Worksharing => {
            "no OpenMP parallel region of the trace ran a loop: name a loop with --loop FILE:LINE (`replay --loops` \
             lists those that ran)"
                .to_owned()
        }
        WhichLoops::At(_) => {
            "no loop ran there in the region: `replay --loops` lists the loops that ran; with --region all it also \
                              lists those outside of start routines"
                .to_owned()
        }
    })
}

/// An address with the function that it lies in.
fn named(trace: &Trace, pc: Pc) -> String {
    trace
        .symbol_of(pc)
        .map_or_else(|| pc.to_string(), |symbol| format!("{pc} (in {})", trace_format::names::demangled(&symbol.name)))
}

/// What a call is to a team's loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TeamCall {
    /// It hands the thread the next chunk of a loop's iterations.
    Chunk,
    /// It begins a loop that clang's runtime shares out.
    Loop,
    /// Whatever else all threads of a team reach: barriers, the beginning and the end of a loop that they share. No
    /// iteration of such a loop does.
    Other,
}

/// The runtime's function that a segment calls, if it is one.
fn team_call(trace: &Trace, segments: &SegmentTable, segment: SegmentId) -> Option<TeamCall> {
    let target = segments.listing(segment).last()?.target()?;
    let name = &trace.symbol_of(target).filter(|symbol| symbol.pc == target)?.name;
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match () {
        () if begins(&["GOMP_loop_"]) && name.contains("_next") || begins(&["__kmpc_dispatch_next"]) => {
            Some(TeamCall::Chunk)
        }
        () if begins(&["__kmpc_for_static_init", "__kmpc_dist_for_static_init", "__kmpc_dispatch_init"]) => {
            Some(TeamCall::Loop)
        }
        () if begins(&[
            "GOMP_loop_",
            "GOMP_barrier",
            "GOMP_teams4",
            "GOMP_taskloop",
            "__kmpc_taskloop",
            "__kmpc_barrier",
            "__kmpc_for_static_fini",
        ]) =>
        {
            Some(TeamCall::Other)
        }
        () => None,
    }
}

/// The loops that lanes turned.
pub(super) fn loops_ran(view: &View, warp: usize) -> Result<Vec<LoopRan>> {
    let survey = Survey::new(view, true)?;
    let Some(loops) = LoopsOf::of(&survey.control_flow) else { return Ok(Vec::new()) };
    let counter = loops.count(view.segments());
    // A counter's size grows with the program: many short lanes share one.
    let lanes = view.lanes().len();
    let share = lanes.div_ceil(4 * rayon::current_num_threads()).max(1);
    let shares: Vec<usize> = (0..lanes).step_by(share).collect();
    let of_share = |first: usize| -> Result<_> {
        let (mut counter, mut batch, mut trips) = (counter.clone(), Batch::default(), Vec::new());
        for lane in first..(first + share).min(lanes) {
            let mut stream = survey.stream(lane);
            while stream.next_batch(&mut batch)? {
                counter.see(&batch);
            }
            trips.push(counter.end());
        }
        Ok((counter, trips))
    };
    let counted: Vec<_> = shares.into_par_iter().map(of_share).collect::<Result<_>>()?;
    let mut all = counter.clone();
    let mut trips = Vec::with_capacity(lanes);
    for (one, of_lanes) in counted {
        all.merge(&one);
        trips.extend(of_lanes);
    }
    let generation = |lane: usize| view.lanes()[lane].generation;
    let numbers: Vec<usize> = (0..lanes).collect();
    let launches = numbers.chunk_by(|a, b| generation(*a) == generation(*b)).flat_map(|of_one| of_one.chunks(warp));
    let warps: Vec<&[_]> = launches.map(|lanes| &trips[lanes[0]..=lanes[lanes.len() - 1]]).collect();
    all.merging(&warps);
    Ok(all.finish())
}

/// Cuts all threads; by lane, the launch that it is of.
fn cut<'a>(
    view: &View,
    rule: impl Fn() -> Rule<'a> + Sync,
    order: Order,
) -> Result<(Cut, Vec<LaneOrigin>, Counts, Order)> {
    let briefs = Brief::all(view.segments());
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
        let key = |(number, lane): (usize, &Begun)| {
            let launch = numbers[lane.launch as usize];
            let chunk = match lane.first {
                Some(first) if !untold[launch as usize] => first,
                _ if order == Order::Chunks => i64::from(lane.team) << 32 | i64::from(lane.chunk),
                _ => i64::from(lane.team) << 32,
            };
            (launch, chunk, thread as u32, number as u32)
        };
        all.extend(pieces.lanes.iter().enumerate().map(key));
        stores.push(pieces.store);
        accesses.push(pieces.accesses);
    }
    if all.is_empty() {
        return Err(Error::Request("none of the lanes asked for ran any instruction".to_owned()));
    }
    all.sort_unstable();
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
    Ok((Cut { stores, rows, of }, lanes, counts, order))
}

fn described((cut, lanes, counts, order): (Cut, Vec<LaneOrigin>, Counts, Order), what: String) -> Made {
    let Counts { kept, outside, last_tests, barriers, dealt, .. } = counts;
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
            last_tests,
            barriers,
            dealt,
            order,
            loops: Vec::new(),
            is_withheld: false,
            doubts: Vec::new(),
        },
    )
}
