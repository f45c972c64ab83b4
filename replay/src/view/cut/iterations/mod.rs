//! Lanes that are iterations of loops: which loops, in which order their lanes are numbered, and what speaks against
//! their turns being the iterations of the source.

mod body;
mod branches;
mod copies;
mod doubts;
mod firsts;
mod given;
mod heads;
pub(super) mod loops;
mod ran;
mod retries;
mod straight;
mod turns;
mod values;

pub(in crate::view::cut) use self::doubts::SIDE_BY_SIDE;
pub use self::ran::{ArmRan, GUARDS, LoopRan, Merging, Paid, Spread, Waited};
pub(in crate::view) use self::straight::add_copies;
use std::collections::VecDeque;

use flowgraph::LoopId;
use heuristics::{ControlFlow, SegmentId, SegmentTable};
use machine::Instruction;
use trace_format::{Pc, Trace};

use self::copies::Copies;
use self::doubts::{About, Asked, Doubt, MOST_UNSURE, Weights, doubts, said};
use self::given::Given;
use self::loops::{LoopsOf, nodes};
use self::turns::{Finder, Turns};
use self::values::is_asked;
use super::counts::Counts;
use super::cutter::Rule;
use super::{Cut, Made, Order, cut, described, named};
use crate::view::first_look::code::{called, calls, name_of};
use crate::view::{View, WhichLoops};
use crate::{Error, LaneOrigin, Result};

/// Each turn of these loops is a lane. `bodies` are the functions that threads of a team run, `pieces` those that they
/// run a part of a taskloop in.
///
/// # Errors
/// When there is no such loop, or one of them lies in another.
pub(in crate::view) fn into_turns(
    view: &View,
    flow: &ControlFlow,
    which: &WhichLoops,
    (bodies, pieces): (&[Pc], &[Pc]),
) -> Result<Made> {
    let segments = view.segments();
    let nodes = nodes(&view.trace, segments);
    let loops = LoopsOf::of_functions(flow, &nodes).ok_or_else(|| no_loop(which))?;
    let name_of = |pc: Pc| name_of(&view.trace, pc).map(str::to_owned);
    let function_of = |pc: Pc| view.trace.symbol_of(pc).map(|symbol| symbol.pc);
    let functions = asking(view, bodies);
    // With debug information clang's body of a region calls one of nearly that name, which has its code.
    let plain_name = |function: Pc| Some(name_of(function)?.replace("_debug__", ""));
    let alone: Vec<String> = view.plan.episodes.forks_alone.iter().filter_map(|body| plain_name(*body)).collect();
    let alone = |function: Pc| plain_name(function).is_some_and(|name| alone.contains(&name));
    let called = |call: Instruction| {
        let shares_sections = view.plan.shares_sections.contains(&call.next_pc());
        call.target().filter(|_| !shares_sections).and_then(name_of)
    };
    let given = |loops: &LoopsOf| Given::of(loops, (&functions, pieces, &alone), segments, &called, &function_of);
    let mut loops = loops;
    let mut found = given(&loops);
    let ways_back = found.ways_back(&loops, &function_of);
    if !ways_back.is_empty() {
        loops = loops.with(&ways_back, &nodes);
        found = given(&loops);
        found.look_inside(&loops, &ways_back, &function_of);
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
            // What stands behind a loop, as the end of a reduction, has its line, too: a loop that a team shares is
            // meant, unless the line is that of a loop inside.
            let of = |places: &Vec<Pc>| loops.at(places, segments);
            let is_inner = |id: &LoopId| loops.outside(*id).any(|outer| given.loops.contains(&outer));
            let inner = all.first().map(of).filter(|found| found.iter().all(is_inner));
            let shared = |found: Vec<LoopId>| found.into_iter().filter(|id| given.loops.contains(id)).collect();
            let mut meant = inner.into_iter().chain(all.iter().map(of).map(shared)).chain(all.iter().map(of));
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
    let of_place = loops::segment_of_place(segments);
    let finder = Finder {
        loops: &loops,
        flow,
        segments,
        of_place: &of_place,
        tests: &given.tests,
        given: &given.loops,
        cyclic: &given.cyclic,
        by_chunks: &given.by_chunks,
        of_chunks: &given.of_chunks,
        answers: &given.answers,
        looks: &given.looks,
        writes: &writes,
    };
    let of_copies = copies::Finder { loops: &loops, segments, given: &given };
    // First iterations of a loop are that loop's.
    let wanted: Vec<LoopId> =
        wanted.iter().copied().filter(|id| !finder.is_first_of(*id).is_some_and(|of| wanted.contains(&of))).collect();
    let turns = |id: &LoopId| {
        if !given.loops.contains(id) {
            let is_dealt = one_each.contains(id);
            return if is_dealt { finder.dealt(*id) } else { Turns::at_header(&loops, *id) };
        }
        let turns = finder.turns(*id);
        Turns { copies: of_copies.with_tests(*id, &turns).unwrap_or_default(), ..turns }
    };
    let turns: Vec<Turns> = wanted.iter().map(turns).collect();
    let cut_into = |wanted: &[LoopId], turns: &[Turns]| {
        let plan = loops.plan((wanted, turns), segments, &is_dispatch, &deals_each, &writes);
        let order = match () {
            () if wanted.iter().any(|id| loops.parent(*id).is_some_and(deals) || given.cyclic.contains(id)) => {
                Order::Chunks
            }
            () if wanted.iter().any(|id| one_each.contains(id)) => Order::Unknown,
            () if wanted.iter().any(|id| loops.parent(*id).is_some_and(is_dispatch)) => Order::Unknown,
            () => Order::Threads,
        };
        cut(view, || Rule::Turns(&plan), order)
    };
    let attempt = |wanted: Vec<LoopId>, turns: Vec<Turns>| {
        let made = cut_into(&wanted, &turns)?;
        let is_unsure = view.plan.episodes.is_unsure;
        let (loops, one_each) = (&loops, &one_each[..]);
        let asked = Asked { which, wanted: &wanted, loops, segments, pieces, one_each, turns: &turns, is_unsure };
        let doubts = doubts(&view.trace, &asked, &given, &made.2);
        Ok(Attempt { wanted, turns, made, doubts })
    };
    let ways = |id: LoopId, turns: &Turns| match given.loops.contains(&id) && !deals_each(id) {
        true => of_copies.copies(id, turns).into_iter().chain(of_copies.straight(id, &is_dispatch)).collect(),
        false => VecDeque::new(),
    };
    let plain = attempt(wanted, turns)?;
    let Attempt { wanted, turns, mut made, doubts } = with_copies(plain, &ways, &attempt)?;
    let is_sure = |number: usize| doubts.iter().all(|doubt| doubt.about != About::Loop(number));
    let (sure, of_sure): (Vec<LoopId>, Vec<Turns>) = wanted
        .iter()
        .copied()
        .zip(turns.iter().cloned())
        .enumerate()
        .filter(|(n, _)| is_sure(*n))
        .map(|(_, l)| l)
        .unzip();
    let mut is_withheld = *which == WhichLoops::Worksharing;
    let mut taken = &wanted;
    let mut of_taken = &turns;
    if is_withheld && !sure.is_empty() && doubts.iter().all(|doubt| doubt.about != About::All) {
        let certain = if sure.len() < wanted.len() { Some(cut_into(&sure, &of_sure)?) } else { None };
        let is_missed = doubts.iter().any(|doubt| doubt.about == About::Missed);
        let kept = certain.as_ref().map_or(&made.2, |certain| &certain.2);
        if Weights::of(view, &made.2).unsure(kept, is_missed) <= MOST_UNSURE {
            (taken, of_taken, is_withheld) = (&sure, &of_sure, false);
            made = certain.unwrap_or(made);
        }
    }
    let place = |(id, turns): (&LoopId, &Turns)| {
        let several = match turns.copies.number {
            0 => String::new(),
            number if turns.copies.are_of_vectors => {
                format!(", vectorised {number} times (what works on a whole vector counts for each lane)")
            }
            number if turns.copies.is_vectorised => format!(", vectorised {number} times"),
            number => format!(", unrolled {number} times"),
        };
        named(&view.trace, loops.ends(*id, segments).0) + &several
    };
    let places: Vec<String> = taken.iter().zip(of_taken).map(place).collect();
    let listed = match &places[..] {
        [one] => format!("iterations of the loop at {one}"),
        [first, second] => format!("iterations of the loops at {first} and {second}"),
        several => format!("iterations of {} loops, the first at {}", several.len(), several[0]),
    };
    let mut made = described(made, listed);
    made.2.loops = taken.iter().map(|id| loops.taken(*id, segments)).collect();
    // Copies have registers of their own.
    made.2.dealt |= of_taken.iter().any(|turns| turns.copies.number > 0);
    made.2.is_withheld = is_withheld;
    made.2.is_shared_out = taken.iter().all(|id| given.loops.contains(id) || one_each.contains(id));
    let left_out: Vec<String> = if *which == WhichLoops::Worksharing && !is_withheld {
        wanted
            .iter()
            .filter(|id| !taken.contains(id))
            .map(|id| named(&view.trace, loops.ends(*id, segments).0))
            .collect()
    } else {
        Vec::new()
    };
    made.2.doubts = said(doubts, &left_out);
    Ok(made)
}

/// Loops that are taken, cut into lanes.
struct Attempt {
    wanted: Vec<LoopId>,
    turns: Vec<Turns>,
    made: (Cut, Vec<LaneOrigin>, Counts, Order),
    doubts: Vec<Doubt>,
}

impl Attempt {
    /// Whether something speaks against the turns of this loop, or they are none that are taken.
    fn is_doubtful(&self, id: LoopId) -> bool {
        let number = self.wanted.iter().position(|one| *one == id);
        number.is_none_or(|number| self.doubts.iter().any(|doubt| doubt.about == About::Loop(number)))
    }

    /// How much speaks against anything but the turns of a loop.
    fn beside_loops(&self) -> usize {
        self.doubts.iter().filter(|doubt| !matches!(doubt.about, About::Loop(_))).count()
    }

    /// The loops and their turns where these are such copies.
    fn with<'a>(&self, copies: impl Iterator<Item = &'a (LoopId, Copies)> + Clone) -> (Vec<LoopId>, Vec<Turns>) {
        let of = |id: LoopId, turns: &Turns| {
            let own = copies.clone().find(|(of, _)| *of == id).map(|(_, copies)| Turns::unrolled(copies.clone()));
            own.unwrap_or_else(|| turns.clone())
        };
        let is_merged = |id: LoopId| copies.clone().any(|(_, copies)| copies.merged.contains(&id));
        let left = self.wanted.iter().zip(&self.turns).filter(|(id, _)| !is_merged(**id));
        left.map(|(id, turns)| (*id, of(*id, turns))).unzip()
    }
}

/// Takes turns of loops in doubt for several iterations, where nothing speaks against that: of all such loops at once,
/// since each attempt cuts all threads, and those that it does not suit the next way.
fn with_copies(
    plain: Attempt,
    ways: &dyn Fn(LoopId, &Turns) -> VecDeque<Copies>,
    attempt: &dyn Fn(Vec<LoopId>, Vec<Turns>) -> Result<Attempt>,
) -> Result<Attempt> {
    let all = plain.wanted.iter().zip(&plain.turns).filter(|(id, _)| plain.is_doubtful(**id));
    let mut left: Vec<(LoopId, VecDeque<Copies>)> = all.map(|(id, turns)| (*id, ways(*id, turns))).collect();
    let mut taken: Vec<(LoopId, Copies)> = Vec::new();
    let mut last = None;
    loop {
        let mut tried: Vec<(LoopId, Copies)> = Vec::new();
        for (id, ways) in &mut left {
            let others = || taken.iter().chain(&tried);
            let is_free = |id: &LoopId| others().all(|(other, copies)| other != id && !copies.merged.contains(id));
            if [*id].iter().chain(ways.front().iter().flat_map(|first| &first.merged)).all(is_free)
                && let Some(first) = ways.pop_front()
            {
                tried.push((*id, first));
            }
        }
        if tried.is_empty() {
            break;
        }
        let (wanted, turns) = plain.with(taken.iter().chain(&tried));
        let found = attempt(wanted, turns)?;
        let count = tried.len();
        if found.beside_loops() <= plain.beside_loops() {
            tried.retain(|(id, _)| !found.is_doubtful(*id));
        } else {
            // One of them leaves something that no lane has.
            for (id, copies) in std::mem::take(&mut tried).into_iter().filter(|_| count > 1) {
                let one = (id, copies);
                let (wanted, turns) = plain.with(taken.iter().chain([&one]));
                let alone = attempt(wanted, turns)?;
                tried.extend((alone.beside_loops() <= plain.beside_loops() && !alone.is_doubtful(id)).then_some(one));
            }
        }
        last = (tried.len() == count).then_some(found);
        taken.extend(tried);
    }
    if taken.is_empty() {
        return Ok(plain);
    }
    let found = match last {
        Some(found) => found,
        None => {
            let (wanted, turns) = plain.with(taken.iter());
            attempt(wanted, turns)?
        }
    };
    if found.doubts.len() < plain.doubts.len() {
        return Ok(found);
    }
    // What some of them leave speaks against others.
    let mut best = plain;
    for one in &taken {
        let (wanted, turns) = best.with([one].into_iter());
        let found = attempt(wanted, turns)?;
        if !found.is_doubtful(one.0) && found.doubts.len() < best.doubts.len() {
            best = found;
        }
    }
    Ok(best)
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

fn no_loop(which: &WhichLoops) -> Error {
    Error::Request(match which {
        WhichLoops::Worksharing => {
            "no OpenMP parallel region of the trace ran a loop: take threads as lanes (without --lanes), where each \
             does what its number says, or name a loop with --loop FILE:LINE (`replay --loops` lists those that ran)"
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
