//! What speaks against lanes being the iterations of the source, and whether a verdict stands beside it.

use flowgraph::LoopId;
use heuristics::SegmentTable;
use machine::Condition;
use trace_format::{Pc, Trace};

use super::super::counts::{Counts, Told};
use super::super::named;
use super::given::Given;
use super::loops::{LoopsOf, segment_of_place};
use super::turns::Turns;
use crate::view::first_look::code::calls;
use crate::view::{View, WhichLoops};

/// Which loops were asked for, and what was found.
pub(super) struct Asked<'a> {
    pub which: &'a WhichLoops,
    pub wanted: &'a [LoopId],
    pub loops: &'a LoopsOf<'a>,
    pub segments: &'a SegmentTable,
    pub pieces: &'a [Pc],
    pub one_each: &'a [LoopId],
    pub turns: &'a [Turns],
    /// Whether it is unknown which team some threads were in.
    pub is_unsure: bool,
}

/// Why turns may be other things than iterations, or not all of them.
pub(super) struct Doubt {
    pub about: About,
    /// For people.
    pub why: String,
}

/// What a doubt is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The turns of this one of the loops that were asked for.
    Loop(usize),
    /// Iterations that are in no lane.
    Missed,
    /// Whether the right loops were found.
    All,
}

/// What speaks against each turn of these loops being an iteration, and their being all.
pub(super) fn doubts(trace: &Trace, asked: &Asked, given: &Given, counts: &Counts) -> Vec<Doubt> {
    let Asked { which, wanted, loops, pieces, one_each, turns, segments, is_unsure } = asked;
    let Counts { told, missed, split, .. } = counts;
    let mut all: Vec<Doubt> = Vec::new();
    let mut add = |about: About, why: String| all.push(Doubt { about, why });
    let at = |id: LoopId| named(trace, loops.ends(id, segments).0);
    let is_worksharing = **which == WhichLoops::Worksharing;
    let function_of = |pc: Pc| trace.symbol_of(pc).map(|symbol| symbol.pc);
    let has_loop = |function: Pc| wanted.iter().any(|id| function_of(loops.ends(*id, segments).0) == Some(function));
    let is_given = |id: &LoopId| given.loops.contains(id) || one_each.contains(id);
    let is_in_parts = |(number, id): &(usize, &LoopId)| {
        given.in_parts.contains(id)
            && !turns[*number].copies.is_proven
            && !told[*number].are_all()
            && told[*number].unlike == 0
    };
    for (number, id) in wanted.iter().enumerate().filter(is_in_parts) {
        add(
            About::Loop(number),
            format!(
                "the loop at {} ends by a part of its thread's share: a lane may be several iterations, as where the \
                 compiler vectorised or unrolled it; {PLAINLY}",
                at(*id)
            ),
        );
    }
    for (number, id) in wanted.iter().enumerate().filter(|(number, id)| {
        given.inner.contains(id) && turns[*number].copies.number == 0 && !told[*number].are_all()
    }) {
        add(
            About::Loop(number),
            format!(
                "behind the loop at {} is a test of whether there is another iteration, and no lane had one: its turns \
                 may be parts of one; trace the program with fewer threads, mark its iterations (lockstep cc \
                 --mark-iterations), or name the loop with --loop",
                at(*id)
            ),
        );
    }
    for (number, id) in wanted.iter().enumerate().filter(|(number, _)| turns[*number].is_incomplete) {
        if turns[number].may_be_chunks && told[number].assumed > 0 || !told[number].are_all() {
            add(
                About::Loop(number),
                format!("some iterations may run in other code than the loop at {}; {PLAINLY}", at(*id)),
            );
        }
    }
    let is_wide = |(number, id): &(usize, &LoopId)| {
        let told = told[*number];
        let has_rest = || given.asking_for_rest.contains(&function_of(loops.ends(**id, segments).0));
        is_given(id) && (told.are_apart || told.is_alone) && has_rest() && !told.are_all() && told.unlike == 0
    };
    for (number, id) in wanted.iter().enumerate().filter(is_wide) {
        add(
            About::Loop(number),
            format!(
                "the runtime gave out several numbers at a time to each turn of the loop at {}: a lane may be \
                 several iterations, as where the compiler unrolled it; {PLAINLY}",
                at(*id)
            ),
        );
    }
    // Lanes tell nothing of each other where there is only one: what looks dealt one by one may be a chunk.
    let is_single = |told: &Told| told.lanes + told.untold == 1 && !told.are_all() && told.unlike == 0;
    for (number, id) in
        wanted.iter().enumerate().filter(|(number, id)| given.cyclic.contains(id) && is_single(&told[*number]))
    {
        add(
            About::Loop(number),
            format!("the loop at {} made a single lane, which may be several iterations; {PLAINLY}", at(*id)),
        );
    }
    let is_unlike = |(told, id): (&Told, &LoopId)| told.unlike > 0 && (is_worksharing || is_given(id));
    for (number, (told, id)) in told.iter().zip(*wanted).enumerate().filter(|(_, one)| is_unlike(*one)) {
        add(
            About::Loop(number),
            format!(
                "{} lanes were made of {} iterations that the runtime gave to the loop at {}: the compiler may have \
                 unrolled or vectorised it, or it is another one; {PLAINLY}, or name the loop with --loop",
                told.lanes,
                told.iterations,
                at(*id)
            ),
        );
    }
    if is_worksharing && *missed > 0 && *split == 0 {
        add(
            About::Missed,
            format!(
                "{missed} iterations that the runtime gave out are in no lane: the compiler may have unrolled their \
                 loop; {PLAINLY}, or name the loop with --loop"
            ),
        );
    }
    if *split > 0 {
        add(
            About::All,
            format!(
                "{split} times an iteration started threads, and what these ran of it is in other lanes: trace the \
                 program with OMP_MAX_ACTIVE_LEVELS=1, or name the loop inside with --loop"
            ),
        );
    }
    if *is_unsure {
        add(About::All, SIDE_BY_SIDE.to_owned());
    }
    if is_worksharing && was_cancelled(trace, loops, segments) {
        add(
            About::All,
            "a loop was cancelled: which of its iterations ran is chance; run the program with OMP_CANCELLATION=false \
             and trace again"
                .to_owned(),
        );
    }
    for id in given.with_barriers.iter().filter(|_| is_worksharing) {
        add(
            About::Missed,
            format!(
                "threads wait for each other in the turns of the loop at {}, so that they are in no lane: take threads as \
                 lanes (without --lanes)",
                at(*id)
            ),
        );
    }
    if is_worksharing && pieces.is_empty() && !wanted.iter().any(is_given) {
        add(
            About::All,
            format!(
                "no loop was found whose end hangs on what OpenMP gave its thread: taken is {}; take threads as \
                 lanes (without --lanes), where each does what its number says, or name the loop with --loop (`replay \
                 --loops` lists those that ran)",
                wanted.iter().map(|id| at(*id)).collect::<Vec<_>>().join(" and ")
            ),
        );
    } else if is_worksharing && let Some(function) = given.lost.iter().find(|function| !has_loop(**function)) {
        add(
            About::Missed,
            format!(
                "of the iterations that {} shares out no loop was found: they are in no lane; {PLAINLY}, or name the \
                 loop with --loop",
                named(trace, *function)
            ),
        );
    }
    if is_worksharing && let Some(function) = given.in_rows.iter().find(|function| has_loop(**function)) {
        add(
            About::Missed,
            format!(
                "iterations in {} run one behind the other in no loop, as where the compiler unrolled them all: they \
                 are in no lane; {PLAINLY}, or name the loop with --loop",
                named(trace, *function)
            ),
        );
    }
    let is_taskloop = |name: &str| name.starts_with("__kmpc_taskloop") || name.starts_with("GOMP_taskloop");
    if is_worksharing && pieces.is_empty() && calls(trace, segments).any(|(_, name)| is_taskloop(name)) {
        add(
            About::All,
            "a taskloop ran, and the trace does not say which iterations its pieces have: none of them is a lane; \
             trace it again, or take --lanes tasks"
                .to_owned(),
        );
    }
    all
}

/// Whether a thread was told that what it runs was cancelled: behind the call that says so, it took the side of a
/// result that is not 0.
fn was_cancelled(trace: &Trace, loops: &LoopsOf, segments: &SegmentTable) -> bool {
    let of_place = segment_of_place(segments);
    let asks = |name: &str| {
        ["GOMP_cancel", "GOMP_cancellation_point", "__kmpc_cancel", "__kmpc_cancellationpoint"]
            .contains(&name.split('@').next().unwrap_or(name))
    };
    calls(trace, segments).filter(|(_, name)| asks(name)).any(|(id, _)| {
        let behind = segments.listing(id).last().and_then(|call| loops.node_at(call.next_pc()));
        let branch = behind.and_then(|node| segments.listing(of_place[node.index()]).last());
        let (Some(node), Some(branch)) = (behind, branch) else { return false };
        let side = match branch.condition() {
            Condition::Equal => Some(branch.next_pc()),
            Condition::NotEqual => branch.target(),
            _ => None,
        };
        let ran = side.and_then(|side| loops.node_at(side));
        ran.is_some_and(|side| loops.ran(node).contains(&side))
    })
}

/// What is said of them, where these loops are left out.
pub(super) fn said(doubts: Vec<Doubt>, left_out: &[String]) -> Vec<String> {
    let (of_loops, others): (Vec<Doubt>, Vec<Doubt>) =
        doubts.into_iter().partition(|doubt| matches!(doubt.about, About::Loop(_)));
    let mut all: Vec<String> = Vec::new();
    if let [first, rest @ ..] = left_out {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        all.push(format!(
            "left out: the loop at {first}{more}, of which a lane may be several iterations, or not all are lanes, as \
             where the compiler vectorised or unrolled; {PLAINLY}"
        ));
    } else {
        let more = of_loops.len().saturating_sub(MOST_SAID);
        all.extend(of_loops.into_iter().take(MOST_SAID).map(|doubt| doubt.why));
        if more > 0 {
            all.push(format!("the like holds {more} times more"));
        }
    }
    all.extend(others.into_iter().map(|doubt| doubt.why));
    all
}

/// Where the team of some threads is unknown.
pub(in crate::view::cut) const SIDE_BY_SIDE: &str = "\
    several threads forked the same region at the same time, and which others were whose team is not known: lanes are \
    iterations, but may share warps with those of another team; run it without nested parallelism";

/// Of so many doubts about loops the reasons are told.
const MOST_SAID: usize = 3;

/// How to get a loop of which a turn is an iteration.
const PLAINLY: &str = "mark its iterations (lockstep cc --mark-iterations), or build it without that \
                       (-fno-unroll-loops -fno-tree-vectorize, clang: -fno-vectorize) and trace again";

/// A verdict stands beside iterations that are not sure, and are left out, where they are at most this share of all.
pub(super) const MOST_UNSURE: f64 = 0.1;

/// How much of a region is in lanes, and how much beside them.
#[derive(Clone, Copy)]
pub(super) struct Weights {
    kept: f64,
    outside: f64,
    /// Of each call of a mathematical function.
    call: f64,
}

impl Weights {
    /// In instructions, those inside of mathematical functions with the others.
    pub fn of(view: &View, counts: &Counts) -> Weights {
        let [inside, outside] = counts.mathematics.map(|calls| calls as f64);
        let call = view.summary().mathematics as f64 / (inside + outside).max(1.0);
        Weights { kept: counts.kept as f64 + call * inside, outside: counts.outside as f64 + call * outside, call }
    }

    /// The share of what may be iterations that is in no lane, if these lanes alone are kept: 0 to 1. Where iterations
    /// were missed they are somewhere beside the lanes.
    pub fn unsure(self, kept: &Counts, is_missed: bool) -> f64 {
        let left = self.kept - (kept.kept as f64 + self.call * kept.mathematics[0] as f64);
        let missed = if is_missed { self.outside } else { 0.0 };
        (left + missed) / (self.kept + missed).max(1.0)
    }
}
