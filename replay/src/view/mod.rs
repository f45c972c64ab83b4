//! From a raw trace to lanes: which part of each thread is replayed, and how locks and barriers count.
//!
//! A trace is faithful; meaning is chosen here. A [`View`] looks at all events once, decides which part of each thread
//! is the region, which waits are one barrier episode and which addresses are locks, cuts the blocks into segments, and
//! reads each thread once more to count what is kept. Then each lane can be streamed as often as needed: a stream reads
//! the thread's part of the trace as it goes and holds no more than a batch.
//!
//! Traces read from text are taken as they stand: they are streams already.

mod as_source;
mod blocks;
mod code_filter;
mod cut;
mod first_look;
mod frames;
mod locks;
mod options;
mod plan;
mod spin;
mod stream;
mod summary;
mod sync_stack;
mod text;
mod thread_state;

use std::ops::Range;

use heuristics::SegmentTable;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Instruction, Pc, Seq, Trace};

use self::blocks::BlockFacts;
use self::code_filter::Classifier;
use self::cut::Cut;
use self::first_look::episodes::Episodes;
use self::first_look::generations::{Part, Stay, WHOLE_THREAD};
use self::first_look::region::Choice;
use self::first_look::survey::ThreadSurvey;
use self::first_look::task_order::TaskOrder;
use self::locks::LockTable;
use self::plan::Plan;
use self::stream::Followed;
use crate::lanes::kept::Keeper;
use crate::waiting::{self, Code, Found, Turn, Turns, Waiting, Writes};
use crate::{Error, Kept, LaneOrigin, LaneStream, LockId, Locks, Result};

pub(crate) use cut::Phases;
pub use cut::{GUARDS, LoopRan, Merging};
pub use options::{CodeFilter, Lanes, Region, Spin, ViewOptions, WhichLoops};
pub use summary::{CutInto, LeftOut, LoopSeen, LoopTaken, Share, Summary};

/// The lanes that a trace is replayed as.
pub struct View {
    trace: Trace,
    locks: Locks,
    plan: Plan,
    lanes: Vec<LaneOrigin>,
    /// By lane: the extents of its thread that are its own.
    extents: Vec<Range<u64>>,
    /// By lane: its stream, where it was kept.
    kept: Vec<Option<Kept>>,
    /// The lanes, where they are parts of what threads ran.
    cut: Option<Cut>,
    summary: Summary,
}

impl View {
    /// Looks at the whole trace and decides what its lanes are.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no lane under these options; the message then says why and
    /// what to do.
    pub fn new(trace: &Trace, options: &ViewOptions) -> Result<View> {
        let is_text = trace.meta().engine == "text";
        if trace.instructions() == 0 {
            return Err(nothing_recorded(trace));
        }
        let table = SegmentTable::new(trace.blocks(), &[]);
        let code = (!is_text && options.spin != Spin::Keep).then(|| Code::new(trace, &table, options.spin.places()));
        let mut threads = first_look::survey::survey(trace, code.as_ref())?;
        let mut turns = all_turns(&mut threads);
        if let Some(code) = &code {
            waiting::settle(&mut turns, code);
        }
        if !options.spin.places().is_empty() && !turns.keys().any(|turn| runs(&table, turn, options.spin.places())) {
            return Err(Error::Request(
                "no loop that could be spin-waiting runs there: the iterations of such a loop write no memory except \
                 the thread's stack"
                    .into(),
            ));
        }
        let choice = choose(options, trace, &threads, is_text)?;
        let (table, turns) = cut_segments(trace, &threads, &choice, table, turns);
        let classifier = (!is_text).then(|| Classifier::new(trace, options.code));
        let blocks = BlockFacts::new(trace, &table, classifier.as_ref(), &choice.rule);
        let segments = table.len();
        let mut plan = Plan {
            table,
            blocks,
            region: choice.rule.clone(),
            lock_rule: if is_text { Locks::Ignore } else { options.locks },
            locks: lock_table(&threads),
            episodes: Episodes::new(&threads),
            tasks: match options.lanes {
                Lanes::Tasks | Lanes::Iterations(_) => TaskOrder::new(&threads),
                Lanes::Threads | Lanes::Calls => TaskOrder::default(),
            },
            waiting: Waiting::default(),
            writes: Writes::new(segments),
            is_text,
            tells_extents: options.lanes != Lanes::Threads,
            has_memory: trace.meta().memory,
        };
        let waits = turns.iter().filter(|(turn, found)| waits(&plan.table, turn, found, &options.spin));
        plan.waiting = Waiting::new(waits.map(|(turn, _)| turn.clone()), &plan.table);
        plan.blocks.mark(trace, &plan.table, &plan.waiting);
        let (counted, mut streams) = count(trace, &plan)?;
        let (stays, unsure_joins) = stays(&threads, &counted);
        let mut summary = summarize(trace, &choice, &counted, is_text);
        let (lanes, extents) = take_lanes(trace, stays, is_text);
        summary.lanes = lanes.len();
        summary.generations = lanes.last().map_or(0, |lane| lane.generation as usize + 1);
        summary.unsure_joins = unsure_joins;
        summary.loops = loops(&plan.table, &turns, &options.spin);
        summary.beginnings = beginnings(trace, &plan, &counted);
        summary.shares.clone_from(&choice.shares);
        summary.waits_for_work = threads.iter().any(|thread| thread.waits_for_others);
        summary.takes_locks = threads.iter().any(|thread| thread.takes_locks);
        if lanes.is_empty() {
            return Err(nothing_left(options, &summary));
        }
        // The stream of a thread that is one lane was made when it was counted.
        let of_lane = |(lane, own): (&LaneOrigin, &Range<u64>)| {
            if *own == WHOLE_THREAD { streams[lane.thread.index()].take() } else { None }
        };
        let kept = lanes.iter().zip(&extents).map(of_lane).collect();
        let mut view =
            View { trace: trace.clone(), locks: options.locks, plan, lanes, extents, kept, cut: None, summary };
        if options.lanes != Lanes::Threads {
            view.cut_into(&options.lanes, &threads)?;
        }
        Ok(view)
    }

    /// The lanes, which are still threads, become parts of these.
    fn cut_into(&mut self, lanes: &Lanes, threads: &[ThreadSurvey]) -> Result<()> {
        let made = match lanes {
            Lanes::Threads => return Ok(()),
            Lanes::Calls => cut::into_calls(self, "each time that a thread came to the region")?,
            Lanes::Tasks => cut::into_tasks(self)?,
            Lanes::Iterations(loops) => cut::into_turns(self, loops, &[bodies(threads), taskloops(threads)].concat())?,
        };
        let (cut, lanes, what) = made;
        self.summary.kept = what.kept;
        self.summary.lanes = lanes.len();
        self.summary.generations = 1;
        self.summary.cut = Some(what);
        (self.lanes, self.cut) = (lanes, Some(cut));
        (self.extents, self.kept) = (Vec::new(), Vec::new());
        Ok(())
    }

    /// The loops that the lanes turned, those with the most instructions first: what could be lanes of their own, and
    /// what merging two of them would be in warps of so many lanes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn loops_ran(&self, warp: usize) -> Result<Vec<LoopRan>> {
        cut::loops_ran(self, warp)
    }

    /// The segments that the streams are made of.
    #[must_use]
    pub fn segments(&self) -> &SegmentTable {
        &self.plan.table
    }

    /// The lanes: by generation, those of one in thread order.
    #[must_use]
    pub fn lanes(&self) -> &[LaneOrigin] {
        &self.lanes
    }

    /// A lane's stream from its beginning.
    ///
    /// # Panics
    /// When there is no lane of this number.
    #[must_use]
    pub fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_> {
        if let Some(cut) = &self.cut {
            return Box::new(cut.stream(lane));
        }
        stream::read(&self.trace, &self.plan, self.lanes[lane].thread, self.extents[lane].clone())
    }

    /// The lane's whole stream, where it was kept when the view was made: that of a thread that is one lane. All of
    /// them together take at most [`KEEP_BYTES`](crate::KEEP_BYTES) and, packed,
    /// [`PACKED_BYTES`](crate::PACKED_BYTES) of memory; what does not fit is in a temporary file.
    #[must_use]
    pub fn kept(&self, lane: usize) -> Option<&Kept> {
        self.kept.get(lane)?.as_ref()
    }

    /// Whether the lanes' streams are in memory, or in a file of this process, however they are read: keeping them is
    /// of no use.
    #[must_use]
    pub fn is_at_hand(&self) -> bool {
        self.cut.is_some()
    }

    /// What was taken of the trace, and what was not.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The rule for locks that it was made with.
    #[must_use]
    pub fn locks(&self) -> Locks {
        self.locks
    }

    /// A lock's name for people: `mutex 0x404080 (tree_lock)`.
    #[must_use]
    pub fn lock_name(&self, lock: LockId) -> String {
        self.plan.locks.name(lock, &self.trace)
    }

    /// The address of a lock in the program; none for what has no address, as an unnamed critical section.
    #[must_use]
    pub fn lock_address(&self, lock: LockId) -> Option<u64> {
        self.plan.locks.address(lock)
    }

    /// What the module of an address is to the program; none outside of all modules.
    #[must_use]
    pub fn module_role(&self, pc: Pc) -> Option<trace_format::ModuleRole> {
        self.trace.module_of(pc).map(|module| module.role)
    }

    /// Whether memory addresses were recorded.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.trace.meta().memory
    }
}

/// The region. Where each turn of a loop is a lane, a program without threads is all region.
fn choose(options: &ViewOptions, trace: &Trace, threads: &[ThreadSurvey], is_text: bool) -> Result<Choice> {
    if (&options.lanes, &options.region) == (&Lanes::Tasks, &Region::Auto) {
        return first_look::region::tasks_of_openmp(trace, threads, &bodies(threads));
    }
    let mut chosen = first_look::region::choose(&options.region, trace, threads, is_text);
    if let (Lanes::Iterations(_), Region::Auto, Ok(choice)) = (&options.lanes, &options.region, &mut chosen) {
        choice.rule.add_taskloops(&taskloops(threads));
    }
    match (&options.lanes, &options.region) {
        (Lanes::Iterations(WhichLoops::At(_)), Region::Auto) if chosen.is_err() => {
            first_look::region::choose(&Region::All, trace, threads, is_text)
        }
        _ => chosen,
    }
}

/// Where the bodies of parallel regions begin, and those of teams that run their part alone.
fn bodies(threads: &[ThreadSurvey]) -> Vec<Pc> {
    let bodies = threads.iter().flat_map(|thread| &thread.bodies);
    let parallel = bodies.filter(|body| body.function == trace_format::SyncFunction::ParallelBody);
    let alone = first_look::region::alone(threads).into_iter().map(Pc);
    let mut all: Vec<Pc> = parallel.map(|body| Pc(body.object)).chain(alone).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Where the bodies of taskloops begin whose pieces are known.
fn taskloops(threads: &[ThreadSurvey]) -> Vec<Pc> {
    let runs = threads.iter().flat_map(|thread| &thread.task_runs).filter(|run| run.piece.is_some());
    let mut all: Vec<Pc> = runs.map(|run| Pc(run.object)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The segments: cut also where blocks were left half-way, and where the region's function begins. With the turns that
/// are made of them.
fn cut_segments(
    trace: &Trace,
    threads: &[ThreadSurvey],
    choice: &Choice,
    table: SegmentTable,
    turns: Turns,
) -> (SegmentTable, Turns) {
    let mut cuts: FxHashSet<Pc> =
        choice.rule.entries.iter().chain(choice.rule.exits.iter().flatten()).copied().collect();
    cuts.extend(threads.iter().flat_map(|t| &t.cuts));
    let mut cuts: Vec<Pc> = cuts.into_iter().collect();
    cuts.sort_unstable();
    let is_cut = |i: &Instruction| cuts.binary_search(&i.pc).is_ok();
    if cuts.is_empty() || !table.iter().any(|(_, segment)| segment.instructions[1..].iter().any(is_cut)) {
        return (table, turns);
    }
    let finer = SegmentTable::new(trace.blocks(), &cuts);
    let turns = waiting::in_other_table(turns, &table, &finer);
    (finer, turns)
}

fn lock_table(threads: &[ThreadSurvey]) -> LockTable {
    let mut found = FxHashMap::default();
    for (object, kind) in threads.iter().flat_map(|t| &t.locks) {
        let known = found.entry(*object).or_insert(*kind);
        *known = (*known).min(*kind);
    }
    LockTable::new(found)
}

/// The turns of all threads.
fn all_turns(threads: &mut [ThreadSurvey]) -> Turns {
    let mut all = Turns::default();
    threads.iter_mut().for_each(|thread| waiting::merge(&mut all, std::mem::take(&mut thread.turns)));
    all
}

/// Whether the turn is left out.
fn waits(table: &SegmentTable, turn: &Turn, found: &Found, spin: &Spin) -> bool {
    match spin {
        Spin::Keep => false,
        Spin::Auto => found.waits(),
        Spin::At(places) => found.waits() || runs(table, turn, places),
    }
}

/// Whether the turn runs an instruction at one of these addresses.
fn runs(table: &SegmentTable, turn: &Turn, places: &[Pc]) -> bool {
    let mut instructions = turn.iter().flat_map(|segment| &table[*segment].instructions);
    instructions.any(|instruction| places.contains(&instruction.pc))
}

/// The loops that are not left out and could be, those with the most instructions first.
fn loops(table: &SegmentTable, turns: &Turns, spin: &Spin) -> Vec<LoopSeen> {
    let mut by_head: FxHashMap<Pc, LoopSeen> = FxHashMap::default();
    for (_, found) in turns.iter().filter(|(turn, found)| !waits(table, turn, found, spin)) {
        let pc = found.head;
        let seen = by_head.entry(pc).or_insert(LoopSeen { pc, instructions: 0, looks_like_waiting: true });
        seen.instructions += found.instructions;
        seen.looks_like_waiting &= found.looks_like_waiting();
    }
    let mut all: Vec<LoopSeen> = by_head.into_values().collect();
    all.sort_unstable_by_key(|seen| (std::cmp::Reverse(seen.instructions), seen.pc));
    all
}

/// What becomes of each thread, and its stream.
fn count(trace: &Trace, plan: &Plan) -> Result<(Vec<Followed>, Vec<Option<Kept>>)> {
    let keeper = Keeper::beside(std::iter::empty());
    let threads = trace.threads().par_iter().map(|thread| {
        let (followed, kept) = stream::count(trace, plan, thread.id, &keeper)?;
        Ok((followed, Some(kept)))
    });
    threads.collect()
}

/// At how many places the lanes of a recorded part begin. All lanes of a whole recording begin where their region does,
/// or differ since their threads do.
fn beginnings(trace: &Trace, plan: &Plan, counted: &[Followed]) -> usize {
    if trace.meta().window.is_none() {
        return 0;
    }
    let first = counted.iter().filter_map(|thread| Some(plan.table[thread.begins_with?].start()));
    first.collect::<FxHashSet<Pc>>().len()
}

/// The stays of threads in the region that are lanes, and of how many joins it is not known whom they joined.
fn stays(threads: &[ThreadSurvey], counted: &[Followed]) -> (Vec<Stay>, usize) {
    let parts: Vec<Vec<Part>> = counted.iter().map(|c| c.parts.clone()).collect();
    let kept: Vec<u64> = counted.iter().map(|c| c.counts.kept).collect();
    first_look::generations::generations(threads, &parts, &kept)
}

/// The lanes, and by lane the extents of its thread. Of a trace read from text each thread is a lane, whatever is in
/// it.
fn take_lanes(trace: &Trace, stays: Vec<Stay>, is_text: bool) -> (Vec<LaneOrigin>, Vec<Range<u64>>) {
    if is_text {
        let lane = |thread| LaneOrigin { thread, first: Seq::default(), generation: 0 };
        return trace.threads().iter().map(|thread| (lane(thread.id), WHOLE_THREAD)).unzip();
    }
    let lane = |stay: Stay| {
        let thread = trace.threads()[stay.thread].id;
        (LaneOrigin { thread, first: stay.begin, generation: stay.generation }, stay.extents)
    };
    stays.into_iter().map(lane).unzip()
}

/// What is kept of the trace, and what is not.
fn summarize(trace: &Trace, choice: &Choice, counted: &[Followed], is_text: bool) -> Summary {
    let mut summary = Summary { threads: trace.threads().len(), region: choice.words.clone(), ..Summary::default() };
    for (i, (thread, Followed { counts, first, .. })) in trace.threads().iter().zip(counted).enumerate() {
        summary.instructions += thread.instructions;
        summary.kept += counts.kept;
        summary.outside_region += counts.outside_region;
        summary.outside_main += counts.outside_main;
        summary.sync_runtime += counts.sync_runtime;
        summary.critical += counts.critical;
        summary.spin += counts.spin;
        summary.own_waits += counts.own_waits;
        if counts.kept > 0 || is_text {
            continue;
        }
        let reason = match (choice.others.get(&i), first) {
            (Some(other), _) => other.clone(),
            (None, None) => "never in the region".into(),
            (None, Some(_)) => "nothing of it is kept".into(),
        };
        match summary.left_out.iter_mut().find(|l| l.reason == reason) {
            Some(left) => left.threads.push(thread.id),
            None => summary.left_out.push(LeftOut { threads: vec![thread.id], reason }),
        }
    }
    summary
}

fn nothing_recorded(trace: &Trace) -> Error {
    let why = trace.finish().and_then(|finish| finish.stopped_early.as_deref());
    let why = why.unwrap_or("was the recording stopped before it began?");
    Error::Request(format!("the trace holds no instructions: {why}"))
}

/// Why there is no lane, and the way out.
fn nothing_left(options: &ViewOptions, summary: &Summary) -> Error {
    let dropped: Vec<String> = summary.dropped().into_iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    let mut ways_out = vec!["`--region all`"];
    if options.code == CodeFilter::Main {
        ways_out.push("`--code all`");
    }
    if options.locks == Locks::Drop {
        ways_out.push("`--locks serialize`");
    }
    Error::Request(format!(
        "nothing is left to replay: of {} thread instructions, {} were dropped ({}); try {}",
        summary.instructions,
        summary.instructions - summary.kept,
        dropped.join(", "),
        ways_out.join(" or ")
    ))
}
