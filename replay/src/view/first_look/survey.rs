//! The first look at a trace: what threads' events say of regions and locks, and where blocks were left half-way.

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Block, BlockId, Event, Item, Pc, Seq, SyncFunction};
use trace_format::{ThreadExit, ThreadId, Trace};

use crate::Result;
use crate::view::code::sanitizers::is_of_sanitizer;
use crate::view::first_look::callable::Look;
use crate::view::first_look::episodes::{BarrierInit, BarrierWait};
use crate::view::first_look::leagues::TeamAt;
use crate::view::first_look::task_order::{Creation, TaskRun};
use crate::view::first_look::tasks::{Task, TaskFunctions};
use crate::view::locks::{self, Action, LockKind};
use crate::view::sync_stack::SyncStack;
use crate::view::waits::conditions::{ConditionCall, is_of_condition};
use crate::view::waits::gatherings::Sections;
use crate::view::waits::hand_overs::{HandOver, What};
use crate::view::waits::of_block::OfBlock;
use crate::view::waits::own_locks::{Acts, Uses};
use crate::view::waits::semaphores::SemaphoreUse;
use crate::waiting::{Code, Follower, Turns};

/// An execution of a thread's start routine or of a parallel region's body.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Body {
    /// [`SyncFunction::ThreadBody`], [`SyncFunction::ParallelBody`], or the body of teams or of a target region.
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
    /// Whether threads were forked by it itself.
    pub forks: bool,
    /// Whether it ran a team, or several.
    pub has_teams: bool,
}

/// A thread forks a team.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Fork {
    /// The body that the team runs.
    pub object: u64,
    pub enter: Seq,
    /// None when it was never left.
    pub leave: Option<Seq>,
    /// The team that the thread is, if it is one of a construct.
    pub team: Option<TeamAt>,
    /// Whether it makes a construct.
    pub makes_construct: bool,
    /// The body that the thread is in, as an index of its bodies.
    pub inside: Option<usize>,
}

/// How a thread started.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Start {
    /// The thread that started it; none for a process' first.
    pub parent: Option<usize>,
    pub sp: u64,
    pub seq: Seq,
}

/// A join that came back with success.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Join {
    /// The handle of the joined thread.
    pub handle: u64,
    pub enter: Seq,
    pub leave: Seq,
}

/// What the events of one thread say.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct ThreadSurvey {
    /// The addresses before which to cut, since a block was left there.
    pub cuts: FxHashSet<Pc>,
    pub bodies: Vec<Body>,
    pub forks: Vec<Fork>,
    pub waits: Vec<BarrierWait>,
    pub inits: Vec<BarrierInit>,
    /// By address: what it is, and how often the thread takes it, or tries to.
    pub locks: FxHashMap<u64, (LockKind, u32)>,
    pub semaphores: FxHashMap<u64, SemaphoreUse>,
    /// What it posts, and has waited for.
    pub hand_overs: Vec<HandOver>,
    /// Those that it asked for, and not only libraries for themselves.
    pub asked: FxHashSet<u64>,
    /// What it does with words that may be locks of the program's own.
    pub words: Uses,
    /// Its calls that wait for a condition, or say that it holds.
    pub conditions: Vec<ConditionCall>,
    /// When it had which mutex.
    pub mutexes: Sections,
    pub start: Option<Start>,
    /// When it ended; none where it was running when the recording stopped.
    pub end: Option<Seq>,
    pub joins: Vec<Join>,
    /// When it began to start each thread, of those that were started with success.
    pub creates: Vec<Seq>,
    /// The instructions that it ran while threads ran that it had started: from the last start to the next join.
    pub beside: u64,
    /// Turns of loops that could be waiting, and where loops end in which it would have waited, and found that over.
    pub turns: Turns,
    pub lone: FxHashSet<Pc>,
    /// The tasks of a pool of threads that it ran.
    pub tasks: Vec<Task>,
    /// The OpenMP tasks that it made and ran, and where calls returned that shared out sections.
    pub creations: Vec<Creation>,
    pub task_runs: Vec<TaskRun>,
    pub sections: FxHashSet<Pc>,
    /// The teams that it went on with, with the bodies of constructs at which it began.
    pub teams: Vec<TeamAt>,
    /// Whether it waited on a condition variable or a semaphore in what it was started for.
    pub waits_for_others: bool,
    /// Whether it took a mutex in what it was started for.
    pub takes_locks: bool,
}

/// Looks at all threads, in thread order; with turns of loops where what is known about code is given.
pub(in crate::view) fn survey(trace: &Trace, code: Option<&Code>, acts: &Acts) -> Result<Vec<ThreadSurvey>> {
    let of_pools = TaskFunctions::of(trace);
    let blocks = OfBlock::all(trace, code, acts);
    trace.threads().par_iter().map(|one| survey_thread(trace, one.id, &blocks, (code, acts), &of_pools)).collect()
}

fn survey_thread(
    trace: &Trace,
    thread: ThreadId,
    blocks: &[OfBlock],
    (code, acts): (Option<&Code>, &Acts),
    of_pools: &TaskFunctions,
) -> Result<ThreadSurvey> {
    let mut tasks = of_pools.meter(trace);
    let mut follower = code.map(Follower::new);
    let (mut surveyor, needs_ways) = (Surveyor::default(), acts.need_ways());
    let mut look: Option<Look<'_>> = None;
    let mut stream = trace.stream(thread);
    while let Some(item) = stream.next()? {
        match item {
            Item::Block { block, memory, .. } => {
                let OfBlock { length, of_library, .. } = blocks[block.index()];
                surveyor.is_in_library = of_library.unwrap_or(surveyor.is_in_library);
                if !surveyor.stack.in_leaf() {
                    surveyor.found.mutexes.runs(block, &blocks[block.index()]);
                }
                surveyor.act(acts, needs_ways, (block, length), memory);
                surveyor.instructions += u64::from(length);
                if look.is_some() || tasks.is_watching() {
                    look_on(&mut look, &mut surveyor, &trace.blocks()[block], length);
                    tasks.block(&trace.blocks()[block], length);
                }
                match &mut follower {
                    Some(follower) if surveyor.stack.in_leaf() => follower.elsewhere(block),
                    Some(follower) => follower.block(block),
                    None => {}
                }
            }
            Item::Partial { block, executed, memory, .. } => {
                surveyor.act(acts, needs_ways, (block, executed), memory);
                if let Some(follower) = &mut follower {
                    follower.interrupt();
                    follower.lose_stack();
                }
                surveyor.instructions += u64::from(executed);
                look_on(&mut look, &mut surveyor, &trace.blocks()[block], executed);
                tasks.block(&trace.blocks()[block], executed);
                surveyor.found.cuts.insert(trace.blocks()[block].instructions[executed as usize].pc);
            }
            // It says nothing of waiting, and stands where a runtime has returned, or a piece of a taskloop begins.
            Item::Event(Event::Chunk(chunk)) => surveyor.found.chunk(&chunk),
            Item::Event(event) => {
                if let Some(follower) = &mut follower
                    && !surveyor.stack.in_leaf()
                    && locks::is_blocking(&event)
                {
                    follower.blocks();
                }
                if let Some(follower) = follower.as_mut().filter(|_| !locks::is_part_of_waiting(&event)) {
                    follower.interrupt();
                    if !matches!(event, Event::Enter { .. } | Event::Leave { .. }) {
                        follower.lose_stack();
                    }
                }
                if matches!(event, Event::Signal { .. } | Event::SignalReturn | Event::Gap | Event::SetSp(_)) {
                    surveyor.found.words.lose_way();
                }
                if let Event::FutexWait { address, .. } = event {
                    surveyor.found.words.waits(address);
                }
                let yields = matches!(event, Event::Enter { function: SyncFunction::Yield, .. });
                if yields || matches!(event, Event::FutexWait { .. }) && !surveyor.stack.in_leaf() {
                    surveyor.found.words.yields();
                }
                surveyor.event(event);
                if let Event::Enter { function: SyncFunction::ThreadBody, object, .. } = event {
                    let begins = surveyor.body_has_begun() || surveyor.is_given(trace, object);
                    look = Look::begin(trace, Pc(object)).filter(|_| begins);
                }
            }
        }
    }
    if let Some(look) = look {
        surveyor.runs(&look);
    }
    surveyor.close_bodies(0);
    surveyor.joins_threads();
    surveyor.found.words.end();
    surveyor.found.tasks = tasks.finish();
    (surveyor.found.turns, surveyor.found.lone) = follower.map(Follower::finish).unwrap_or_default();
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
    /// The barrier waits that are open: nothing counts inside one, except for tasks and what they wait at.
    waits: Vec<usize>,
    /// The OpenMP tasks that are being made, and of the constructs whose bodies are open: which team the thread is.
    creations: Vec<usize>,
    teams: Vec<TeamAt>,
    /// The OpenMP tasks that are being run, with the instructions before each.
    tasks: Vec<(usize, u64)>,
    /// When the join was entered that is open.
    join: Seq,
    /// When the start of a thread that it is in was entered.
    create: Seq,
    /// The instructions before it last started a thread, of which it has joined none since.
    started: Option<u64>,
    /// Whether the block that it ran last, but for the loader's, is of a library whose locks functions know.
    is_in_library: bool,
}

impl Surveyor {
    /// Whether what was entered last is an outermost body of the thread.
    fn body_has_begun(&self) -> bool {
        self.bodies
            .last()
            .is_some_and(|(body, before)| self.found.bodies[*body].outermost && self.instructions == *before)
    }

    /// The thread runs so many instructions of a block, which may act on words.
    #[inline]
    fn act(&mut self, acts: &Acts, needs_ways: bool, (block, executed): (BlockId, u32), memory: &[u64]) {
        let own = Some(memory).filter(|_| !self.stack.in_leaf());
        if let Some(memory) = own.filter(|_| acts.has(block)) {
            self.found.words.block(acts, (block, executed), memory);
        }
        if needs_ways {
            self.found.words.ran(acts, (block, executed), own);
        }
    }

    /// A body has begun within the thread's own. Where that is a sanitizer's, which starts all threads by a routine of
    /// its own, the inner one is what the thread was started for, or finds it. There is none where the sanitizer jumps
    /// to what it was given.
    fn is_given(&mut self, trace: &Trace, routine: u64) -> bool {
        let of_threads = |body: &&mut Body| body.function == SyncFunction::ThreadBody && body.outermost;
        let Some(body) = self.found.bodies.iter_mut().rev().find(of_threads) else { return false };
        let own = Pc(body.object);
        let is_given = body.callable == body.object && is_of_sanitizer(trace, trace.module_of(own), own);
        if is_given {
            body.callable = routine;
        }
        is_given
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
                self.waits.clear();
                self.creations.clear();
                self.teams.clear();
                self.tasks.clear();
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
            SyncFunction::ThreadBody
            | SyncFunction::ParallelBody
            | SyncFunction::TeamsBody
            | SyncFunction::TargetBody => {
                let body = self.found.bodies.len();
                self.bodies.push((body, self.instructions));
                if matches!(function, SyncFunction::TeamsBody | SyncFunction::TargetBody) {
                    self.teams.push(TeamAt { body, league: 0, team: 0 });
                    self.found.teams.extend(self.teams.last());
                }
                self.found.bodies.push(Body {
                    function,
                    object,
                    callable: object,
                    calls: None,
                    enter: seq,
                    outermost: !is_nested,
                    instructions: 0,
                    forks: false,
                    has_teams: function == SyncFunction::TeamsBody,
                });
            }
            SyncFunction::ParallelFork | SyncFunction::TeamsFork | SyncFunction::TargetFork => {
                let makes_construct = function != SyncFunction::ParallelFork;
                let inside = self.bodies.last().map(|(body, _)| *body);
                let team = self.teams.last().copied().filter(|at| !makes_construct && inside == Some(at.body));
                if let Some(at) = team {
                    self.found.bodies[at.body].forks = true;
                }
                self.forks.push(self.found.forks.len());
                self.found.forks.push(Fork { object, enter: seq, leave: None, team, makes_construct, inside });
            }
            SyncFunction::TaskCreate => {
                self.creations.push(self.found.creations.len());
                self.found.creations.push(Creation { object, key: argument, enter: seq });
            }
            SyncFunction::TaskBody => {
                let is_behind = self.innermost_parallel_body().is_none();
                self.tasks.push((self.found.task_runs.len(), self.instructions));
                let run = TaskRun { object, key: argument, enter: seq, piece: None, instructions: 0, is_behind };
                self.found.task_runs.push(run);
            }
            SyncFunction::ConditionWait | SyncFunction::SemaphoreWait => {
                self.found.waits_for_others |= !self.bodies.is_empty();
            }
            SyncFunction::MutexLock | SyncFunction::CriticalEnter => self.found.takes_locks |= !self.bodies.is_empty(),
            SyncFunction::ThreadJoin => {
                self.join = seq;
                self.joins_threads();
            }
            SyncFunction::ThreadCreate => self.create = seq,
            SyncFunction::BarrierInit => self.found.inits.push(BarrierInit { object, count: argument, seq }),
            SyncFunction::BarrierWait | SyncFunction::TeamBarrier => {
                self.waits.push(self.found.waits.len());
                let is_team = function == SyncFunction::TeamBarrier;
                let body = self.innermost_parallel_body().filter(|_| is_team);
                let wait = BarrierWait { object, enter: seq, leave: None, body, is_late: !is_team && argument == 1 };
                self.found.waits.push(wait);
            }
            _ => {}
        }
        if is_of_condition(function) {
            self.found.conditions.push(ConditionCall { function, condition: object, mutex: argument, seq });
        }
        match function {
            SyncFunction::SemaphorePost => {
                self.found.semaphores.entry(object).or_default().post();
                self.found.hand_overs.push(HandOver { posts: true, what: What::Semaphore(object), seq });
            }
            SyncFunction::DoacrossPost => self.hand_over(true, argument, seq),
            _ => {}
        }
        if let Some(Action::Take { kind, .. }) = locks::action(function) {
            let object = locks::object_of(function, object);
            self.found.locks.entry(object).or_insert((kind, 0)).1 += 1;
            if !self.is_in_library || kind != LockKind::Mutex {
                self.found.asked.insert(object);
            }
        }
    }

    fn leave(&mut self, function: SyncFunction, result: u64, seq: Seq) {
        let Some(left) = self.stack.leave(function) else { return };
        if !left.counts {
            return;
        }
        self.found.mutexes.orders();
        self.found.mutexes.act(left.object, locks::takes_mutex(function, left.argument, result), seq);
        match function {
            SyncFunction::ThreadBody
            | SyncFunction::ParallelBody
            | SyncFunction::TeamsBody
            | SyncFunction::TargetBody => {
                let open = |(i, _): &(usize, u64)| self.found.bodies[*i].function == function;
                if let Some(at) = self.bodies.iter().rposition(open) {
                    self.close_bodies(at);
                }
            }
            SyncFunction::TaskBody => {
                let begun = self.tasks.pop().filter(|_| self.tasks.is_empty());
                if let Some((run, before)) = begun {
                    self.found.task_runs[run].instructions = self.instructions - before;
                }
            }
            // clang's names the task by its address, which the call gives.
            SyncFunction::TaskCreate => {
                let made = self.creations.pop().and_then(|made| self.found.creations.get_mut(made));
                if let Some(made) = made.filter(|made| made.key == 0) {
                    made.key = result;
                }
            }
            SyncFunction::TeamsNext if result & 0xff != 0 => self.next_team(left.argument != 0),
            SyncFunction::ParallelFork | SyncFunction::TeamsFork | SyncFunction::TargetFork => {
                if let Some(fork) = self.forks.pop() {
                    self.found.forks[fork].leave = Some(seq);
                }
            }
            SyncFunction::SemaphoreWait | SyncFunction::SemaphoreTryWait if result as u32 == 0 => {
                self.found.semaphores.entry(left.object).or_default().wait();
                self.found.hand_overs.push(HandOver { posts: false, what: What::Semaphore(left.object), seq });
            }
            SyncFunction::DoacrossWait => self.hand_over(false, left.argument, seq),
            // The functions return an `int`, 0 for success.
            SyncFunction::ThreadCreate if result as u32 == 0 => {
                self.found.creates.push(self.create);
                self.started = Some(self.instructions);
            }
            SyncFunction::ThreadJoin if result as u32 == 0 => {
                self.found.joins.push(Join { handle: left.object, enter: self.join, leave: seq });
            }
            function if locks::is_barrier(function) => {
                if let Some(wait) = self.waits.pop() {
                    self.found.waits[wait].leave = Some(seq);
                }
            }
            _ => {}
        }
    }

    /// The threads that it started last run on their own no longer.
    fn joins_threads(&mut self) {
        self.found.beside += self.started.take().map_or(0, |before| self.instructions - before);
    }

    /// The thread posts the iteration of this number of a doacross loop, or has waited for it.
    fn hand_over(&mut self, posts: bool, number: u64, seq: Seq) {
        let after = (self.found.bodies.len() as u32, self.found.waits.len() as u32);
        self.found.hand_overs.push(HandOver { posts, what: What::Iteration { number, after }, seq });
    }

    /// The thread goes on with another team, of another construct if it is the first.
    fn next_team(&mut self, is_first: bool) {
        let Some(at) = self.teams.last_mut() else { return };
        (at.league, at.team) = if is_first { (at.league + 1, 0) } else { (at.league, at.team + 1) };
        self.found.bodies[at.body].has_teams = true;
        self.found.teams.push(*at);
    }

    fn innermost_parallel_body(&self) -> Option<usize> {
        let mut open = self.bodies.iter().rev().map(|(i, _)| *i);
        open.find(|i| self.found.bodies[*i].function == SyncFunction::ParallelBody)
    }

    /// The bodies from this one on end here.
    fn close_bodies(&mut self, from: usize) {
        for (body, before) in self.bodies.drain(from..) {
            self.found.bodies[body].instructions = self.instructions - before;
            self.teams.pop_if(|at| at.body == body);
        }
    }
}
