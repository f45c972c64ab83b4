//! Threads that take part in what they started others for, and never enter the start routine.
//!
//! A program of P threads often starts P - 1 and runs the P-th part on the thread that started them. Where that calls
//! the start routine it is a lane like the others. But compilers put the routine into its caller, and in many programs
//! the routine only hands on to a function that the first thread calls itself. Then the region has to be that function:
//! the outermost one that every thread of the routine runs once, that holds nearly all that they run, and that holds
//! most of what the other thread runs beside them. Where there is none, because all of it was put into both, nothing
//! but the number of instructions speaks for a lane that is missing, and `replay` says so.

use std::collections::BTreeSet;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Block, Event, Item, Kind, Pc, SyncFunction, ThreadId, Trace};

use crate::Result;
use crate::view::CodeFilter;
use crate::view::code::filter::{Class, Classifier};
use crate::view::first_look::callable::name_at;
use crate::view::first_look::survey::ThreadSurvey;
use crate::view::locks::{self, Action};

/// So many calls deep in the start routine functions are looked at.
const DEPTH: usize = 8;

/// The least share of the routine's instructions that must be in a function that stands for it.
const NEARLY_ALL: f64 = 0.9;

/// With fewer instructions than these a thread waits, and works on nothing.
const LEAST: u64 = 500;

/// Threads that run beside those of a start routine what may be the same.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct Beside {
    /// The threads that started others, and are in no region of their own; with how much they ran meanwhile.
    threads: Vec<(usize, u64)>,
    /// How much a thread of the routine runs in the mean.
    mean: u64,
}

/// A function that stands for a start routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) struct StandsFor {
    pub function: Pc,
    /// How many threads run it that do not run the routine.
    pub others: usize,
    /// How many locks the routine's threads take in it outside of the function.
    pub locks: u64,
}

impl Beside {
    /// Of a routine that these threads run, so many instructions in all.
    pub fn of(threads: &[ThreadSurvey], runs: &BTreeSet<usize>, instructions: u64) -> Beside {
        let mean = instructions / (runs.len() as u64).max(1);
        let is_one = |(t, thread): &(usize, &ThreadSurvey)| {
            thread.bodies.is_empty() && !runs.contains(t) && thread.beside >= least(mean)
        };
        let such = threads.iter().enumerate().filter(is_one).map(|(t, thread)| (t, thread.beside));
        Beside { threads: such.collect(), mean }
    }

    /// Of each thread, why it may be a lane that is missing.
    pub fn may_be_lanes(&self) -> impl Iterator<Item = String> {
        self.threads.iter().map(|(thread, ran)| {
            format!(
                "thread {thread} ran {ran} instructions while those that it had started ran {} each, and is no lane: if \
                 it did a part of their work, write that as a function of its own that is not put into others \
                 (noinline, in Rust #[inline(never)]), and name it with --region",
                self.mean
            )
        })
    }

    fn is_enough(&self, instructions: u64) -> bool {
        instructions >= least(self.mean)
    }

    /// Threads of these that enter the routine themselves are lanes already, and no more of them.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn stands_for(&mut self, trace: &Trace, routine: Pc, runs: &BTreeSet<usize>) -> Result<Option<StandsFor>> {
        if self.threads.is_empty() {
            return Ok(None);
        }
        let classifier = Classifier::new(trace, CodeFilter::All);
        let is_work = |pc| matches!(classifier.class(pc), Class::Keep | Class::Mathematics);
        let facts = |block: &Block| Facts { transfers: transfers(block), is_work: is_work(block.start()) };
        let blocks: Vec<Facts> = trace.blocks().iter().map(|(_, block)| facts(block)).collect();
        let meter = |thread: usize, wanted: Wanted<'_>| Meter::new(trace, wanted).run(&blocks, thread);
        let of_routine = |thread: &usize| meter(*thread, Wanted::Inside(routine));
        let inside: Vec<(Found, u64)> = runs.par_iter().map(of_routine).collect::<Result<_>>()?;
        let inside: Vec<Found> = inside.into_iter().map(|(found, _)| found).collect();
        let all = |pc: Pc| inside.iter().filter_map(|found| found.get(&pc)).fold(Ran::default(), Ran::and);
        let whole = all(routine);
        let stands = |pc: &Pc| {
            let times = |found: &Found, pc| found.get(pc).map_or(0, |ran: &Ran| ran.times);
            inside.iter().all(|found| times(found, pc) == times(found, &routine))
                && all(*pc).instructions as f64 >= NEARLY_ALL * whole.instructions as f64
        };
        let mut candidates: FxHashSet<Pc> = inside.first().into_iter().flatten().map(|(pc, _)| *pc).collect();
        candidates.retain(stands);
        candidates.insert(routine);
        let beside = self.threads.par_iter().map(|(thread, _)| meter(*thread, Wanted::Any(&candidates)));
        let beside: Vec<(Found, u64)> = beside.collect::<Result<_>>()?;
        let mut found: Vec<Found> = Vec::new();
        for ((thread, ran), (of_thread, work)) in std::mem::take(&mut self.threads).into_iter().zip(beside) {
            if !of_thread.contains_key(&routine) && self.is_enough(work) {
                self.threads.push((thread, ran.min(work)));
                found.push(of_thread);
            }
        }
        candidates.remove(&routine);
        let of_others = |pc: Pc| found.iter().filter_map(move |of_thread| of_thread.get(&pc));
        let most = self.threads.iter().map(|(_, ran)| *ran).max().unwrap_or(0);
        let runs_most = |pc: &Pc| of_others(*pc).any(|ran| ran.instructions.saturating_mul(2) >= most);
        let outermost = candidates.into_iter().filter(runs_most).max_by_key(|pc| (all(*pc).instructions, *pc));
        Ok(outermost.map(|function| StandsFor {
            function,
            others: of_others(function).count(),
            locks: whole.locks - all(function).locks,
        }))
    }
}

/// How much a thread must run to be said to work where others run so much.
fn least(mean: u64) -> u64 {
    LEAST.max(mean / 10)
}

/// What a meter needs to know of a block.
struct Facts {
    transfers: Transfers,
    /// Whether it is of no thread runtime, nor the loader's.
    is_work: bool,
}

/// Where a block transfers control, but for conditional branches: after which of its instructions, and how.
type Transfers = Box<[(u32, Kind)]>;

fn transfers(block: &Block) -> Transfers {
    let all = block.instructions.iter().zip(0..).map(|(instruction, at)| (at, instruction.kind));
    all.filter(|(_, kind)| kind.transfers_control() && *kind != Kind::Branch).collect()
}

/// What a thread ran of a function.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    times: u32,
    instructions: u64,
    locks: u64,
}

impl Ran {
    fn and(self, other: &Ran) -> Ran {
        Ran {
            times: self.times + other.times,
            instructions: self.instructions + other.instructions,
            locks: self.locks + other.locks,
        }
    }
}

/// By function.
type Found = FxHashMap<Pc, Ran>;

/// Which functions are of interest.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// This one, and what is called in it.
    Inside(Pc),
    Any(&'a FxHashSet<Pc>),
}

/// A function that runs.
struct Open {
    function: Pc,
    depth: i64,
    before: Ran,
}

/// Counts what one thread runs of functions.
struct Meter<'t> {
    trace: &'t Trace,
    wanted: Wanted<'t>,
    open: Vec<Open>,
    depth: i64,
    /// What it ran so far.
    ran: Ran,
    /// How the last block was left, where it was by a transfer that counts.
    before: Option<Kind>,
    found: Found,
    /// What it ran so far of work, and of that while threads ran that it had started.
    work: u64,
    beside: u64,
    /// What it had run of work when it last started a thread, of which it has joined none since.
    started: Option<u64>,
}

impl<'t> Meter<'t> {
    fn new(trace: &'t Trace, wanted: Wanted<'t>) -> Meter<'t> {
        let (open, ran, found) = (Vec::new(), Ran::default(), Found::default());
        Meter { trace, wanted, open, depth: 0, ran, before: None, found, work: 0, beside: 0, started: None }
    }

    /// What it ran of functions, and how much it worked while threads ran that it had started.
    fn run(mut self, blocks: &[Facts], thread: usize) -> Result<(Found, u64)> {
        let mut stream = self.trace.stream(ThreadId(thread as u32));
        while let Some(item) = stream.next()? {
            match item {
                Item::Block { block, .. } => {
                    let of = &self.trace.blocks()[block];
                    self.block(of, &blocks[block.index()], of.instructions.len() as u32);
                }
                Item::Partial { block, executed, .. } => {
                    self.block(&self.trace.blocks()[block], &blocks[block.index()], executed);
                }
                Item::Event(Event::Enter { function, .. }) => {
                    self.ran.locks += u64::from(matches!(locks::action(function), Some(Action::Take { .. })));
                    if function == SyncFunction::ThreadJoin {
                        self.joins();
                    }
                }
                Item::Event(Event::Leave { function: SyncFunction::ThreadCreate, .. }) => {
                    self.started = Some(self.work)
                }
                Item::Event(_) => {}
            }
        }
        self.close(i64::MIN);
        self.joins();
        Ok((self.found, self.beside))
    }

    fn joins(&mut self) {
        self.beside += self.started.take().map_or(0, |before| self.work - before);
    }

    fn block(&mut self, block: &Block, facts: &Facts, executed: u32) {
        if let Some(kind) = self.before.take() {
            self.go(kind, block.start());
        }
        for (at, kind) in facts.transfers.iter().take_while(|(at, _)| *at < executed) {
            match block.instructions[..executed as usize].get(*at as usize + 1) {
                Some(next) => self.go(*kind, next.pc),
                None => self.before = Some(*kind),
            }
        }
        self.ran.instructions += u64::from(executed);
        self.work += if facts.is_work { u64::from(executed) } else { 0 };
    }

    fn go(&mut self, kind: Kind, pc: Pc) {
        if kind == Kind::Return {
            self.depth -= 1;
            self.close(self.depth);
            return;
        }
        self.depth += i64::from(kind.is_call());
        // A jump to where a function begins is a call whose return is its caller's.
        let enters = || kind.is_call() || name_at(self.trace, pc).is_some();
        let is_wanted = match self.wanted {
            Wanted::Inside(outermost) => match self.open.is_empty() {
                true => pc == outermost,
                false => self.open.len() < DEPTH && enters(),
            },
            Wanted::Any(those) => those.contains(&pc),
        };
        if is_wanted && !self.open.iter().any(|open| open.function == pc) {
            self.open.push(Open { function: pc, depth: self.depth, before: self.ran });
        }
    }

    /// Functions that are deeper have returned.
    fn close(&mut self, depth: i64) {
        while let Some(open) = self.open.pop_if(|open| open.depth > depth) {
            let ran = self.found.entry(open.function).or_default();
            ran.times += 1;
            ran.instructions += self.ran.instructions - open.before.instructions;
            ran.locks += self.ran.locks - open.before.locks;
        }
    }
}
