//! The first look at a trace: what each thread's events say of regions, barriers and locks, and where blocks were left
//! half-way.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Block, Event, Item, Pc, Seq, SyncFunction, ThreadExit, ThreadId, Trace};

use super::callable::Look;
use super::locks::{self, Action, LockKind};
use super::meetings::{BarrierInit, BarrierWait};
use super::sync_stack::SyncStack;
use super::tasks::{Task, TaskFunctions};
use super::waiting::{Code, Follower, Turns};
use crate::Result;

/// An execution of a thread's start routine or of a parallel region's body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body {
    /// [`SyncFunction::ThreadBody`] or [`SyncFunction::ParallelBody`].
    pub function: SyncFunction,
    /// The routine.
    pub object: u64,
    /// What the routine runs, where it is a library's that was given something to call; else the routine.
    pub callable: u64,
    /// The first function of the program that it calls, where the callable's name says nothing.
    pub calls: Option<u64>,
    pub enter: Seq,
    /// Whether it lies in no other body of the same kind.
    pub outermost: bool,
    /// The instructions in it.
    pub instructions: u64,
}

/// A thread forks a team.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    /// The body that the team runs.
    pub object: u64,
    pub enter: Seq,
    /// None when it was never left.
    pub leave: Option<Seq>,
}

/// How a thread started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// The thread that started it; none for a process' first.
    pub parent: Option<usize>,
    pub sp: u64,
    pub seq: Seq,
}

/// A join that came back with success.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    /// The handle of whom it joined.
    pub handle: u64,
    pub enter: Seq,
    pub leave: Seq,
}

/// What the events of one thread say.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadSurvey {
    /// The addresses before which to cut, since a block was left there.
    pub cuts: FxHashSet<Pc>,
    pub bodies: Vec<Body>,
    pub forks: Vec<Fork>,
    pub waits: Vec<BarrierWait>,
    pub inits: Vec<BarrierInit>,
    pub locks: FxHashMap<u64, LockKind>,
    pub start: Option<Start>,
    /// When it ended; none where it was running when the recording stopped.
    pub end: Option<Seq>,
    pub joins: Vec<Join>,
    /// When it began to start each thread, of those that were started with success.
    pub creates: Vec<Seq>,
    /// Turns of loops that could be waiting.
    pub turns: Turns,
    /// The tasks of a pool of threads that it ran.
    pub tasks: Vec<Task>,
    /// Whether it waited on a condition variable or a semaphore in what it was started for.
    pub waits_for_others: bool,
    /// Whether it took a mutex in what it was started for.
    pub takes_locks: bool,
}

/// Whether the function is a barrier at which threads meet.
pub(super) fn is_barrier(function: SyncFunction) -> bool {
    matches!(function, SyncFunction::BarrierWait | SyncFunction::TeamBarrier)
}

/// Whether a turn of a loop that waits may have this in it: functions that wait, and locks, which the turn must give
/// back.
pub(super) fn is_part_of_waiting(event: &Event) -> bool {
    match event {
        Event::FutexWait { .. } => true,
        Event::Enter { function, .. } | Event::Leave { function, .. } => {
            matches!(function, SyncFunction::Yield | SyncFunction::ConditionWait)
                || matches!(locks::action(*function), Some(Action::Take { .. } | Action::Give))
        }
        _ => false,
    }
}

/// Whether the thread waits in the kernel from here on, until another wakes it.
fn is_blocking(event: &Event) -> bool {
    matches!(event, Event::FutexWait { .. } | Event::Enter { function: SyncFunction::ConditionWait, .. })
}

/// Looks at all threads, in thread order; with turns of loops where what is known of code is given.
pub(super) fn survey(trace: &Trace, code: Option<&Code>) -> Result<Vec<ThreadSurvey>> {
    let lengths: Vec<u32> = trace.blocks().iter().map(|(_, b)| b.instructions.len() as u32).collect();
    let of_pools = TaskFunctions::of(trace);
    let survey = |thread: ThreadId| survey_thread(trace, thread, &lengths, code, &of_pools);
    trace.threads().par_iter().map(|thread| survey(thread.id)).collect()
}

fn survey_thread(
    trace: &Trace,
    thread: ThreadId,
    lengths: &[u32],
    code: Option<&Code>,
    of_pools: &TaskFunctions,
) -> Result<ThreadSurvey> {
    let mut tasks = of_pools.meter(trace);
    let mut follower = code.map(Follower::new);
    let mut surveyor = Surveyor::default();
    let mut look: Option<Look<'_>> = None;
    let mut stream = trace.stream(thread);
    while let Some(item) = stream.next()? {
        match item {
            Item::Block { block, .. } => {
                surveyor.instructions += u64::from(lengths[block.index()]);
                look_on(&mut look, &mut surveyor, &trace.blocks()[block], lengths[block.index()]);
                tasks.block(&trace.blocks()[block], lengths[block.index()]);
                match &mut follower {
                    Some(follower) if surveyor.stack.in_leaf() => follower.elsewhere(block),
                    Some(follower) => follower.block(block),
                    None => {}
                }
            }
            Item::Partial { block, executed, .. } => {
                if let Some(follower) = &mut follower {
                    follower.interrupt();
                    follower.lose_stack();
                }
                surveyor.instructions += u64::from(executed);
                look_on(&mut look, &mut surveyor, &trace.blocks()[block], executed);
                tasks.block(&trace.blocks()[block], executed);
                surveyor.found.cuts.insert(trace.blocks()[block].instructions[executed as usize].pc);
            }
            // It says nothing of waiting, and stands where a runtime has returned.
            Item::Event(Event::Chunk(_)) => {}
            Item::Event(event) => {
                if let Some(follower) = &mut follower
                    && !surveyor.stack.in_leaf()
                    && is_blocking(&event)
                {
                    follower.blocks();
                }
                if let Some(follower) = follower.as_mut().filter(|_| !is_part_of_waiting(&event)) {
                    follower.interrupt();
                    if !matches!(event, Event::Enter { .. } | Event::Leave { .. }) {
                        follower.lose_stack();
                    }
                }
                surveyor.event(event);
                if let Event::Enter { function: SyncFunction::ThreadBody, object, .. } = event {
                    look = Look::begin(trace, Pc(object)).filter(|_| surveyor.body_has_begun());
                }
            }
        }
    }
    if let Some(look) = look {
        surveyor.runs(&look);
    }
    surveyor.close_bodies(0);
    surveyor.found.tasks = tasks.finish();
    surveyor.found.turns = follower.map(Follower::finish).unwrap_or_default();
    Ok(surveyor.found)
}

/// The thread runs a part of a block: it is looked at for what the thread was started for.
fn look_on(look: &mut Option<Look<'_>>, surveyor: &mut Surveyor, block: &Block, executed: u32) {
    let Some(looking) = look else { return };
    looking.block(block, executed as usize);
    if looking.is_over() {
        surveyor.runs(looking);
        *look = None;
    }
}

/// Where the survey of a thread stands.
#[derive(Default)]
struct Surveyor {
    found: ThreadSurvey,
    stack: SyncStack,
    instructions: u64,
    /// The bodies that are open, with the instructions before each.
    bodies: Vec<(usize, u64)>,
    /// The forks that are open.
    forks: Vec<usize>,
    /// The barrier wait that is open: there is one at most, since nothing counts inside it.
    wait: Option<usize>,
    /// When the join was entered that is open.
    join: Seq,
    /// When the start of a thread that it is in was entered.
    create: Seq,
}

impl Surveyor {
    /// Whether what was entered last is an outermost body of the thread.
    fn body_has_begun(&self) -> bool {
        self.bodies
            .last()
            .is_some_and(|(body, before)| self.found.bodies[*body].outermost && self.instructions == *before)
    }

    /// What the outermost body of the thread runs, where that is known.
    fn runs(&mut self, look: &Look<'_>) {
        let last = self.found.bodies.iter_mut().rev();
        let body = last.into_iter().find(|body| body.function == SyncFunction::ThreadBody && body.outermost);
        if let (Some(body), Some(callable)) = (body, look.callable()) {
            body.callable = callable.0;
            body.calls = look.calls().map(|pc| pc.0);
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Enter { function, object, argument, seq } => self.enter(function, object, argument, seq),
            Event::Leave { function, result, seq } => self.leave(function, result, seq),
            Event::ThreadStart { parent, sp, seq, .. } => {
                self.found.start = Some(Start { parent: parent.map(ThreadId::index), sp, seq });
            }
            Event::ThreadEnd { exit, seq } if exit != ThreadExit::StillRunning => self.found.end = Some(seq),
            Event::Exec => {
                self.stack.clear();
                self.close_bodies(0);
                self.forks.clear();
                self.wait = None;
            }
            _ => {}
        }
    }

    fn enter(&mut self, function: SyncFunction, object: u64, argument: u64, seq: Seq) {
        let is_nested = self.stack.is_in(function);
        if !self.stack.enter(function, object, argument).counts {
            return;
        }
        match function {
            SyncFunction::ThreadBody | SyncFunction::ParallelBody => {
                self.bodies.push((self.found.bodies.len(), self.instructions));
                self.found.bodies.push(Body {
                    function,
                    object,
                    callable: object,
                    calls: None,
                    enter: seq,
                    outermost: !is_nested,
                    instructions: 0,
                });
            }
            SyncFunction::ParallelFork => {
                self.forks.push(self.found.forks.len());
                self.found.forks.push(Fork { object, enter: seq, leave: None });
            }
            SyncFunction::ConditionWait | SyncFunction::SemaphoreWait => {
                self.found.waits_for_others |= !self.bodies.is_empty();
            }
            SyncFunction::MutexLock => self.found.takes_locks |= !self.bodies.is_empty(),
            SyncFunction::ThreadJoin => self.join = seq,
            SyncFunction::ThreadCreate => self.create = seq,
            SyncFunction::BarrierInit => self.found.inits.push(BarrierInit { object, count: argument, seq }),
            SyncFunction::BarrierWait | SyncFunction::TeamBarrier => {
                self.wait = Some(self.found.waits.len());
                let is_team = function == SyncFunction::TeamBarrier;
                let body = self.innermost_parallel_body().filter(|_| is_team);
                self.found.waits.push(BarrierWait { object, enter: seq, leave: None, body });
            }
            _ => {}
        }
        if let Some(Action::Take { kind, .. }) = locks::action(function) {
            self.found.locks.entry(object).or_insert(kind);
        }
    }

    fn leave(&mut self, function: SyncFunction, result: u64, seq: Seq) {
        let Some(left) = self.stack.leave(function) else { return };
        if !left.counts {
            return;
        }
        match function {
            SyncFunction::ThreadBody | SyncFunction::ParallelBody => {
                let open = |(i, _): &(usize, u64)| self.found.bodies[*i].function == function;
                if let Some(at) = self.bodies.iter().rposition(open) {
                    self.close_bodies(at);
                }
            }
            SyncFunction::ParallelFork => {
                if let Some(fork) = self.forks.pop() {
                    self.found.forks[fork].leave = Some(seq);
                }
            }
            // The functions return an `int`, 0 for success.
            SyncFunction::ThreadCreate if result as u32 == 0 => self.found.creates.push(self.create),
            SyncFunction::ThreadJoin if result as u32 == 0 => {
                self.found.joins.push(Join { handle: left.object, enter: self.join, leave: seq });
            }
            function if is_barrier(function) => {
                if let Some(wait) = self.wait.take() {
                    self.found.waits[wait].leave = Some(seq);
                }
            }
            _ => {}
        }
    }

    fn innermost_parallel_body(&self) -> Option<usize> {
        let mut open = self.bodies.iter().rev().map(|(i, _)| *i);
        open.find(|i| self.found.bodies[*i].function == SyncFunction::ParallelBody)
    }

    /// The bodies from this one on end here.
    fn close_bodies(&mut self, from: usize) {
        for (body, before) in self.bodies.drain(from..) {
            self.found.bodies[body].instructions = self.instructions - before;
        }
    }
}
