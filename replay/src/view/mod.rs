//! From a raw trace to lanes: which part of each thread is replayed, and how locks and barriers count.
//!
//! A trace is faithful; meaning is chosen here. A [`View`] looks at all events once, decides which part of each thread
//! is the region, which waits are one barrier episode and which addresses are locks, cuts the blocks into segments,
//! and reads each thread once more to count what is kept. Its stages are values, each made of the one before:
//! `Looked`, `Choice`, `Plan`, `Threads`, and the lanes with their `Streams`. Then each lane can be streamed
//! as often as needed: a stream reads the thread's part of the trace as it goes and holds no more than a batch.
//!
//! Traces read from text are taken as they stand: they are streams already.

mod as_source;
mod blocks;
mod code;
mod cut;
mod first_look;
mod frames;
mod locks;
mod options;
mod plan;
mod stacks;
mod stream;
mod summary;
mod sync_stack;
mod text;
mod thread_state;
mod threads;
mod waits;

use std::ops::Range;
use std::sync::Arc;

use heuristics::{ControlFlow, SegmentId, SegmentTable};
use machine::{Instruction, Operation};
use trace_format::{Module, ModuleRole, Pc, Stop, Trace};

use self::cut::Cut;
use self::first_look::code::{bodies, calls, marks, taskloops};
use self::first_look::region::Choice;
use self::first_look::segments::Looked;
use self::plan::Plan;
use self::stacks::OnStacks;
use self::threads::{Stayed, Threads, lanes_of};
use crate::survey::Survey;
use crate::{EpisodeId, Error, GpuCost, Kept, LaneOrigin, LaneStream, LockId, Locks, Result};

pub(crate) use cut::Phases;
pub use cut::{ArmRan, GUARDS, LoopRan, Merging, Paid, Spread, Waited};
pub use options::{CodeFilter, Lanes, Region, Spin, ViewOptions, WhichLoops};
pub use summary::{CutInto, LeftOut, LoopSeen, LoopTaken, Share, Summary};

/// The lanes that a trace is replayed as.
pub struct View {
    trace: Trace,
    locks: Locks,
    plan: Arc<Plan>,
    lanes: Vec<LaneOrigin>,
    streams: Streams,
    summary: Summary,
    /// By segment.
    gpu_costs: Arc<[GpuCost]>,
}

/// A trace that was looked at for lanes that are iterations of a loop. Each of its loops in turn has a view, and what
/// all of those need was worked out once.
pub struct Loops {
    uncut: Uncut,
    flow: ControlFlow,
}

/// A view whose lanes are still threads, and what it takes to cut those.
struct Uncut {
    whole: View,
    /// The code of OpenMP's regions, and of its taskloops.
    bodies: Vec<Pc>,
    pieces: Vec<Pc>,
    on_stacks: Vec<OnStacks>,
}

/// Where lanes' streams come from.
enum Streams {
    /// Lanes are threads, or stays of threads in the region: each stream is made from its thread's as it is read.
    Whole {
        /// By lane: the extents of its thread that are its own; of several threads, where one went on with what
        /// another was.
        stays: Vec<Vec<Stayed>>,
        /// By lane: its stream, where it was kept.
        kept: Vec<Option<Kept>>,
    },
    /// Lanes are parts of what threads ran.
    Cut(Cut),
}

impl View {
    /// Looks at the whole trace and decides what its lanes are.
    ///
    /// # Errors
    /// When the trace cannot be read, or has no lane under these options; the message then says why and
    /// what to do.
    pub fn new(trace: &Trace, options: &ViewOptions) -> Result<View> {
        let options = as_marked(options, trace);
        Uncut::new(trace, &options)?.cut(&options)
    }

    /// The view whose lanes are parts of these, which are threads.
    fn with(&self, (cut, lanes, mut what): (Cut, Vec<LaneOrigin>, CutInto)) -> View {
        let View { trace, locks, plan, summary, gpu_costs, .. } = self;
        let (kept, count) = (what.kept, lanes.len());
        let [inside, outside] = what.mathematics.map(u128::from);
        let all = u128::from(summary.mathematics);
        let mathematics = (all * inside).checked_div(inside + outside).unwrap_or(all) as u64;
        what.outside += summary.mathematics - mathematics;
        let summary = Summary { kept, mathematics, lanes: count, generations: 1, cut: Some(what), ..summary.clone() };
        let (trace, plan, gpu_costs) = (trace.clone(), Arc::clone(plan), Arc::clone(gpu_costs));
        View { trace, locks: *locks, plan, lanes, streams: Streams::Cut(cut), summary, gpu_costs }
    }

    /// The view of some of its lanes, whose numbers rise: what judges a run that is too long to be replayed whole. Its
    /// summary stays that of all.
    #[must_use]
    pub fn sample(self, numbers: &[usize]) -> View {
        let lanes = numbers.iter().map(|lane| self.lanes[*lane]).collect();
        let streams = match self.streams {
            Streams::Cut(cut) => Streams::Cut(cut.sample(numbers)),
            Streams::Whole { stays, mut kept } => Streams::Whole {
                stays: numbers.iter().map(|lane| stays[*lane].clone()).collect(),
                kept: numbers.iter().map(|lane| kept[*lane].take()).collect(),
            },
        };
        View { lanes, streams, ..self }
    }

    /// The loops that the lanes turned, those with the most instructions first: what could be lanes of their own, and
    /// what merging two of them would be in warps of so many lanes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn loops_ran(&self, warp: usize) -> Result<Vec<LoopRan>> {
        cut::loops_ran(self, warp, false)
    }

    /// The same, with how the turns of lanes differ at loops in others and at arms of branches.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn loops_with_spread(&self, warp: usize) -> Result<Vec<LoopRan>> {
        cut::loops_ran(self, warp, true)
    }

    /// The segments that the streams are made of.
    #[must_use]
    pub fn segments(&self) -> &SegmentTable {
        &self.plan.table
    }

    /// What a GPU has for a segment: see [`LaneSource::gpu_cost`](crate::LaneSource::gpu_cost).
    #[must_use]
    pub fn gpu_cost(&self, id: SegmentId) -> GpuCost {
        self.gpu_costs.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Memory that the program cannot write, in the order of addresses: of each module what was mapped before the last
    /// part, which has its variables.
    #[must_use]
    pub fn constants(&self) -> Vec<Range<u64>> {
        let of_module = |module: &Module| {
            let mut parts: Vec<Range<u64>> = module.mappings.iter().map(|part| part.start.0..part.end.0).collect();
            parts.sort_unstable_by_key(|part| part.start);
            parts.pop();
            parts
        };
        let mut all: Vec<Range<u64>> = self.trace.modules().iter().flat_map(of_module).collect();
        all.sort_unstable_by_key(|part| part.start);
        all
    }

    /// The highest address of all threads' stacks.
    #[must_use]
    pub fn stack_end(&self) -> u64 {
        self.plan.stack_end
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
        match &self.streams {
            Streams::Cut(cut) => Box::new(cut.stream(lane)),
            Streams::Whole { stays, .. } => stream::read_all(&self.trace, &self.plan, &stays[lane]),
        }
    }

    /// The lane's whole stream, where it was kept when the view was made: that of a thread that is one lane. All of
    /// them together take at most [`KEEP_BYTES`](crate::KEEP_BYTES) and, packed,
    /// [`PACKED_BYTES`](crate::PACKED_BYTES) of memory; what does not fit is in a temporary file.
    #[must_use]
    pub fn kept(&self, lane: usize) -> Option<&Kept> {
        match &self.streams {
            Streams::Cut(_) => None,
            Streams::Whole { kept, .. } => kept[lane].as_ref(),
        }
    }

    /// Whether the lanes' streams are in memory, or in a file of this process, however they are read: keeping them is
    /// of no use.
    #[must_use]
    pub fn is_at_hand(&self) -> bool {
        matches!(self.streams, Streams::Cut(_))
    }

    /// What was taken of the trace, and what was not.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Says, in what it says of itself, the second name of each pair for the first.
    pub fn rename(&mut self, names: &[(String, String)]) {
        self.summary.rename(names);
    }

    /// How work on it is asked to end: as its trace says.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.trace.stop().clone()
    }

    /// The rule for locks that it was made with.
    #[must_use]
    pub fn locks(&self) -> Locks {
        self.locks
    }

    /// Whether a parallel region begins with this episode.
    #[must_use]
    pub fn begins_launch(&self, episode: EpisodeId) -> bool {
        self.plan.episodes.forks.contains(&episode)
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
    pub fn module_role(&self, pc: Pc) -> Option<ModuleRole> {
        self.trace.module_of(pc).map(|module| module.role)
    }

    /// Whether a segment of the program's own adds to a number in memory and knows the one that was there, as threads
    /// do to number themselves, or to get the next piece of work. What takes away counts the users of something (C++'s
    /// `shared_ptr`), and locks of the program's own are locks.
    #[must_use]
    pub fn counts_up(&self, id: SegmentId) -> bool {
        let table = self.segments();
        if self.module_role(table[id].start()) != Some(ModuleRole::Main) || self.plan.blocks.act(id).is_some() {
            return false;
        }
        let row: Vec<Instruction> = table.listing(id).iter().flatten().collect();
        (0..row.len()).filter(|at| row[*at].is_atomic()).any(|at| match row[at].operation() {
            Operation::ExchangeAdd => !takes_away(&row[..=at]),
            Operation::CompareExchange => puts_sum(&row[..=at]),
            _ => false,
        })
    }

    /// Whether memory addresses were recorded.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.trace.meta().memory
    }
}

impl Loops {
    /// Looks at a trace. The options say of it what they say to [`View::new`], but for the lanes.
    ///
    /// # Errors
    /// As [`View::new`].
    pub fn new(trace: &Trace, options: &ViewOptions) -> Result<Loops> {
        let lanes = Lanes::Iterations(WhichLoops::At(Vec::new()));
        let uncut = Uncut::new(trace, &ViewOptions { lanes, ..options.clone() })?;
        let flow = Survey::new(&uncut.whole, true)?.control_flow;
        Ok(Loops { uncut, flow })
    }

    /// The view whose lanes are the iterations of the loop that begins there.
    ///
    /// # Errors
    /// When the trace cannot be read, or no such loop ran.
    pub fn at(&self, head: Pc) -> Result<View> {
        let Uncut { whole, bodies, pieces, .. } = &self.uncut;
        let cut = cut::into_turns(whole, &self.flow, &WhichLoops::At(vec![head]), (bodies, pieces))?;
        Ok(whole.with(cut))
    }
}

impl Uncut {
    fn new(trace: &Trace, options: &ViewOptions) -> Result<Uncut> {
        if trace.instructions() == 0 {
            return Err(nothing_recorded(trace));
        }
        let Looked { threads, own_locks, segments } = Looked::at(trace, &options.spin)?;
        let chosen = Choice::of(options, trace, &threads)?;
        let mut segments = segments.cut(trace, &threads, &own_locks, &chosen);
        if matches!(options.lanes, Lanes::Iterations(_)) {
            cut::add_copies(&mut segments.table);
        }
        let loops = segments.loops(&options.spin);
        let plan = Plan::new(trace, options, (&threads, &own_locks), (chosen, segments));
        let followed = Threads::follow(trace, &plan)?;
        let (stays, unsure_joins) = followed.stays(&threads);
        let mut summary = followed.summary(trace, &plan);
        let are_numbers = options.lanes == Lanes::Threads && plan.choice.rule.is_parallel();
        let first = are_numbers.then_some(&plan.episodes.seats[..]);
        let (lanes, stays) = lanes_of(trace, stays, first, plan.is_text);
        summary.lanes = lanes.len();
        summary.generations = lanes.last().map_or(0, |lane| lane.generation as usize + 1);
        summary.unsure_joins = unsure_joins;
        summary.loops = loops.into_iter().filter(|seen| plan.can_keep(seen.pc)).collect();
        summary.own_locks = followed.own_locks();
        summary.asks = followed.asks();
        summary.unordered = unordered(trace, &plan, followed.unordered(&threads), own_locks.doubtful);
        summary.waits_for_work = threads.iter().any(|thread| thread.waits_for_others);
        let task_runs = || threads.iter().flat_map(|thread| &thread.task_runs);
        summary.tasks = (task_runs().count(), task_runs().map(|run| run.instructions).sum());
        summary.teams_are_mixed = plan.episodes.teams_are_mixed;
        summary.takes_locks = threads.iter().any(|thread| thread.takes_locks);
        if lanes.is_empty() {
            return Err(nothing_left(options, &summary));
        }
        let on_stacks = followed.stacks();
        let kept = followed.kept(&stays);
        let streams = Streams::Whole { stays, kept };
        let gpu_costs = code::costs::of_segments(trace, &plan.table, options.code).into();
        let (trace, plan) = (trace.clone(), Arc::new(plan));
        let whole = View { trace, locks: options.locks, plan, lanes, streams, summary, gpu_costs };
        Ok(Uncut { whole, bodies: bodies(&threads), pieces: taskloops(&threads), on_stacks })
    }

    /// The view of the lanes that are asked for.
    fn cut(self, options: &ViewOptions) -> Result<View> {
        let Uncut { whole, bodies, pieces, on_stacks } = self;
        let cut = match &options.lanes {
            Lanes::Threads => return Ok(whole),
            Lanes::Calls => cut::into_calls(&whole, options.region == Region::Auto, &on_stacks)?,
            Lanes::Tasks => cut::into_tasks(&whole)?,
            Lanes::Marks => cut::into_marked(&whole)?,
            Lanes::Iterations(loops) => {
                cut::into_turns(&whole, &Survey::new(&whole, true)?.control_flow, loops, (&bodies, &pieces))?
            }
        };
        Ok(whole.with(cut))
    }
}

/// Whether the last of these instructions, which run in a row, adds a constant below 0.
fn takes_away(row: &[Instruction]) -> bool {
    let [before @ .., last] = row else { return false };
    let Some(added) = last.register(1) else { return false };
    let set = before.iter().rfind(|one| one.writes() & added.register.bit() != 0);
    let constant = set.filter(|one| one.operation() == Operation::Move).and_then(|one| one.constant(1));
    // A move of 32 bits has no sign in the other half.
    constant.is_some_and(|constant| if added.size == 4 { (constant as i32) < 0 } else { constant < 0 })
}

/// Whether the last of these instructions, which run in a row, exchanges what is in memory for a sum made among them.
fn puts_sum(row: &[Instruction]) -> bool {
    let [before @ .., last] = row else { return false };
    let Some(mut new) = last.register(1) else { return false };
    for one in before.iter().rev() {
        match (one.operation(), one.register(1)) {
            _ if one.writes() & new.register.bit() == 0 => {}
            (Operation::Add | Operation::Address, _) => return true,
            (Operation::Move, Some(from)) => new = from,
            (Operation::Move, None) => return false,
            // The lesser of two numbers is kept by a condition.
            _ if one.mnemonic() == "inc" => return true,
            _ => {}
        }
    }
    false
}

/// The options; iterations of OpenMP's loops are those that are marked, where some are.
fn as_marked(options: &ViewOptions, trace: &Trace) -> ViewOptions {
    let is_asked = options.lanes == Lanes::Iterations(WhichLoops::Worksharing) && trace.meta().engine != "text";
    match is_asked && !marks(trace).is_empty() {
        true => ViewOptions { lanes: Lanes::Marks, ..options.clone() },
        false => options.clone(),
    }
}

/// Waits that are seen, and order no lanes.
fn unordered(trace: &Trace, plan: &Plan, (loops, conditions): (u64, usize), doubtful: usize) -> Vec<String> {
    let mut all = Vec::new();
    if loops > 0 {
        all.push(format!(
            "{loops} waits until another thread writes something, as at barriers made of atomics, \
             semaphores of C++ or channels"
        ));
    }
    if conditions > 0 {
        all.push(format!("{conditions} condition variables that one thread signals for another"));
    }
    if doubtful > 0 {
        all.push(format!("{doubtful} words that may be locks or flags, at which nobody had to wait"));
    }
    let handed_over = &plan.episodes.hand_overs;
    if handed_over.unknown_semaphores > 0 {
        all.push(format!("{} semaphores that one thread posts for another", handed_over.unknown_semaphores));
    }
    // A trace of an older version has their calls, and not what they say.
    let is_doacross = |(_, name): (_, &str)| ["GOMP_doacross_", "__kmpc_doacross_"].iter().any(|p| name.starts_with(p));
    let is_told = handed_over.has_loops && !handed_over.unknown_loops;
    if !is_told && calls(trace, &plan.table).any(is_doacross) {
        all.push("iterations of doacross loops (ordered(n), depend(sink))".to_owned());
    }
    all
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
