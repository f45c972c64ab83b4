//! Lanes that are iterations of loops: which loops, in which order their lanes are numbered, and what speaks against
//! their turns being the iterations of the source.

mod counter;
mod given;
pub(super) mod loops;
mod merging;
mod turns;
mod values;

pub use self::loops::LoopRan;
pub use self::merging::{GUARDS, Merging};
use flowgraph::LoopId;
use heuristics::{SegmentId, SegmentTable};
use trace_format::{Pc, Trace};

use self::given::Given;
use self::loops::LoopsOf;
use self::turns::{Finder, Turns};
use self::values::is_asked;
use super::counts::Told;
use super::cutter::Rule;
use super::{Made, Order, cut, described, named};
use crate::survey::Survey;
use crate::view::first_look::code::{called, calls};
use crate::view::{View, WhichLoops};
use crate::{Error, Result};

/// Each turn of these loops is a lane. `bodies` are the functions that threads of a team run, `pieces` those that they
/// run a part of a taskloop in.
///
/// # Errors
/// When there is no such loop, or one of them lies in another.
pub(in crate::view) fn into_turns(view: &View, which: &WhichLoops, bodies: &[Pc], pieces: &[Pc]) -> Result<Made> {
    let segments = view.segments();
    let survey = Survey::new(view, true)?;
    let loops = LoopsOf::of_functions(&survey.control_flow, segments).ok_or_else(|| no_loop(which))?;
    let name_of = |pc: Pc| Some(view.trace.symbol_of(pc).filter(|symbol| symbol.pc == pc)?.name.clone());
    let function_of = |pc: Pc| view.trace.symbol_of(pc).map(|symbol| symbol.pc);
    let functions = asking(view, bodies);
    // With debug information clang's body of a region calls one of nearly that name, which has its code.
    let plain_name = |function: Pc| Some(name_of(function)?.replace("_debug__", ""));
    let alone: Vec<String> = view.plan.episodes.forks_alone.iter().filter_map(|body| plain_name(*body)).collect();
    let alone = |function: Pc| plain_name(function).is_some_and(|name| alone.contains(&name));
    let given = |loops: &LoopsOf| Given::of(loops, (&functions, pieces, &alone), segments, &name_of, &function_of);
    let mut loops = loops;
    let mut found = given(&loops);
    let ways_back = found.ways_back(&loops);
    if !ways_back.is_empty() {
        loops = loops.with(&ways_back);
        found = given(&loops);
    }
    let given = found;
    let reaches = |id: LoopId, wanted: &dyn Fn(TeamCall) -> bool| {
        loops.has(id, segments, &|segment| team_call(&view.trace, segments, segment).is_some_and(wanted))
    };
    let deals = |id: LoopId| given.of_chunks.contains(&id);
    let is_dispatch = |id: LoopId| deals(id) || reaches(id, &|call| call == TeamCall::Chunk);
    let is_around = |id: LoopId| deals(id) || reaches(id, &|_| true);
    let mut one_each = Vec::new();
    let wanted = match which {
        WhichLoops::Worksharing => {
            // A loop that gets one iteration a time has none inside.
            let holds = |outer: LoopId| given.loops.iter().any(|id| loops.is_in(*id, outer));
            one_each = loops.ids().filter(|id| reaches(*id, &|call| call == TeamCall::Chunk) && !holds(*id)).collect();
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
        WhichLoops::Near(all) => {
            // What stands behind a loop, as the end of a reduction, has its line, too.
            let of = |places: &Vec<Pc>| loops.at(places, segments);
            let shared = |found: Vec<LoopId>| found.into_iter().filter(|id| given.loops.contains(id)).collect();
            let mut meant = all.iter().map(of).map(shared).chain(all.iter().map(of));
            meant.find(|found: &Vec<LoopId>| !found.is_empty()).unwrap_or_default()
        }
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
    let asks = calls(&view.trace, segments).filter(|(_, name)| is_asked(name));
    let asks = asks.filter_map(|(id, _)| view.trace.symbol_of(segments[id].last().pc).map(|symbol| symbol.pc));
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
        if turns[number].may_be_chunks && told[number].assumed > 0 || !told[number].are_all() {
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
    let is_taskloop = |name: &str| name.starts_with("__kmpc_taskloop") || name.starts_with("GOMP_taskloop");
    if is_worksharing && pieces.is_empty() && calls(trace, segments).any(|(_, name)| is_taskloop(name)) {
        all.push(
            "a taskloop ran, and the trace does not say which iterations its pieces have: none of them is a lane; \
             trace it again, or take --lanes tasks"
                .to_owned(),
        );
    }
    all
}

/// How to get a loop of which a turn is an iteration.
const PLAINLY: &str = "mark its iterations (lockstep cc --mark-iterations), or build it without that \
                       (-fno-unroll-loops -fno-tree-vectorize, clang: -fno-vectorize) and trace again";

fn no_loop(which: &WhichLoops) -> Error {
    Error::Request(match which {
        WhichLoops::Worksharing => {
            "no OpenMP parallel region of the trace ran a loop: name a loop with --loop FILE:LINE (`replay --loops` \
             lists those that ran)"
                .to_owned()
        }
        WhichLoops::At(_) | WhichLoops::Near(_) => {
            "no loop ran there in the region: `replay --loops` lists the loops that ran; with --region all it also \
                              lists those outside of start routines"
                .to_owned()
        }
    })
}

/// What a call is to a team's loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TeamCall {
    /// It hands the thread the next chunk of a loop's iterations.
    Chunk,
    /// It begins a loop that clang's runtime shares out.
    Loop,
    /// Whatever else all threads of a team reach: barriers, the beginning and the end of a loop that they share. No
    /// iteration of such a loop does.
    Other,
}

/// The runtime's function that a segment calls, if it is one.
pub(super) fn team_call(trace: &Trace, segments: &SegmentTable, segment: SegmentId) -> Option<TeamCall> {
    let name = called(trace, segments, segment)?;
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
