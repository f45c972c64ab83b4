//! One run of a program: its threads, and what each of their stops means.
//!
//! - `thread`, `processes`: what is known about each thread, and of the memory of each process with its translations.
//! - `stops`: what a stop means; `syscalls`, `signals`, `lifecycle`, `forks` for system calls, signals, threads and
//!   programs that begin and end, and processes that the program makes. `storms`: signals that come often.
//! - `state` brings a stopped thread from the copy's registers to the program's; `forward` does the rest of an
//!   expansion for a thread that was killed in it.
//! - `code_writes`, `memory_calls`, `file_writes`: code changes, by a write, a system call, or a write to its file;
//!   `changed_code`: threads leave what was translated of it.
//! - `renewal`: all translations are thrown away when they take too much memory. `gates`: recording begins and ends.
//!   `untraceable`: a process goes on by itself. `answers`: calls that are answered in the kernel's place.

mod answers;
mod changes;
mod forks;
mod forward;
mod gates;
mod handlers;
mod lifecycle;
mod processes;
mod state;
mod stops;
mod syscalls;
mod thread;
mod translation_cache;
mod untraceable;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use nix::libc;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{ThreadExit, ThreadId};

use crate::engine::{Outcome, TraceOptions};
use crate::error::{Error, Result};
use crate::images::modules::Images;
use crate::kernel::interrupt::{Others, Watch};
use crate::kernel::ptrace::{Stop, Tid};
use crate::kernel::together::Together;
use crate::record::recorder::Recorder;
use crate::run::{Findings, Launched, abandon};
use crate::switch::Switch;
use crate::translate::Hooks;
use crate::translate::expand::Clock;
use crate::translate::hooks::Moments;
use crate::translate::remote::{self, Lost};
use crate::translate::translator::Translator;
use crate::usage::Stopwatch;
use processes::{Processes, running};
use thread::{Birth, InnerTracer, SpaceId, Thread};
use translation_cache::Recollections;

/// How often the progress is told, at the next stop: looking at the clock is nothing beside a stop.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// How long threads that are killed have to come to their ends, where tests ask for that.
const TO_ENDS: Duration = Duration::from_millis(2);

/// Runs the program of the options to its end, and records it.
pub fn record(options: &TraceOptions, hooks: Hooks) -> Result<Outcome> {
    let Launched { main, handle, recorder, stopwatch } = Launched::new(options, ptrace_options())?;
    let mut session = Session::new(options, hooks, main, recorder);
    let watch = Watch::start(&options.interrupt, handle, &session.others, &session.together);
    if let Err(reason) = session.begin_program() {
        drop(watch);
        abandon(main);
        return Err(Error::Unsupported { path: options.command[0].clone().into(), reason });
    }
    session.run_to_end();
    Ok(session.finish(&watch, &stopwatch))
}

fn ptrace_options() -> i32 {
    libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_EXITKILL
}

/// Threads that are about to run.
#[derive(Default)]
struct Coming {
    /// Those whose start is written, and in which a program begins.
    beginning: FxHashMap<Tid, ThreadId>,
    /// Announced, not yet stopped.
    births: FxHashMap<Tid, Birth>,
    /// Stopped, not yet announced.
    early: FxHashSet<Tid>,
}

/// One run of a program.
struct Session<'a> {
    options: &'a TraceOptions,
    hooks: Hooks,
    recorder: Recorder,
    clock: Clock,
    images: Images,
    main: Tid,
    threads: FxHashMap<Tid, Thread>,
    /// Their processes, with the translations of each; none before a program begins.
    processes: Processes,
    /// Processes that trace some of them.
    inner_tracers: FxHashMap<Tid, InnerTracer>,
    /// Threads that are not among these yet.
    coming: Coming,
    /// Stops that were met while something else was waited for.
    met: VecDeque<(Tid, Stop)>,
    /// Threads to which signals are sent again, and when.
    postponed: Vec<(Instant, Tid)>,
    /// Whether instructions are still recorded.
    recording: bool,
    /// Whether the program is in its window.
    switch: Switch,
    /// The processes besides the first one.
    others: Others,
    /// Keeps a program's only thread on our processor while it stops often.
    together: Together,
    /// What is remembered of former runs, and will be of this one.
    recollections: Recollections,
    /// What has come of the run so far.
    found: Findings,
    /// Room for records on their way to the trace.
    words: Vec<u32>,
    /// When translations are thrown away without need.
    moments: Moments,
}

impl<'a> Session<'a> {
    fn new(options: &'a TraceOptions, hooks: Hooks, main: Tid, recorder: Recorder) -> Session<'a> {
        Session {
            options,
            hooks,
            recorder,
            clock: Clock::start(),
            images: Images::for_window(&options.window),
            main,
            threads: FxHashMap::default(),
            processes: Processes::default(),
            inner_tracers: FxHashMap::default(),
            coming: Coming::default(),
            met: VecDeque::new(),
            postponed: Vec::new(),
            recording: true,
            switch: Switch::new(&options.window),
            others: Others::default(),
            together: Together::default(),
            recollections: Recollections::new(options),
            found: Findings::default(),
            words: Vec::new(),
            moments: Moments::new(hooks.thrown_away_at_random),
        }
    }

    /// The translations that a thread runs.
    fn translator(&self, tid: Tid) -> remote::Result<&Translator> {
        let thread = self.threads.get(&tid).ok_or(Lost::Gone)?;
        self.translator_in(thread.space)
    }

    /// The same, to be changed.
    fn translator_mut(&mut self, tid: Tid) -> remote::Result<&mut Translator> {
        running(&mut self.threads, &mut self.processes, tid).map(|(_, translator)| translator).ok_or(Lost::Gone)
    }

    /// The translations of an address space.
    fn translator_in(&self, space: SpaceId) -> remote::Result<&Translator> {
        self.processes.space(space).map(|space| &space.translator).ok_or(Lost::Gone)
    }

    /// The same, to be changed.
    fn translator_in_mut(&mut self, space: SpaceId) -> remote::Result<&mut Translator> {
        self.processes.space_mut(space).map(|space| &mut space.translator).ok_or(Lost::Gone)
    }

    /// Handles stops until nobody is left.
    fn run_to_end(&mut self) {
        let mut told = Instant::now();
        loop {
            let next = match self.met.pop_front() {
                Some(met) => met,
                None => match self.next_stop() {
                    Some(stop) => stop,
                    None => break,
                },
            };
            let next = self.renew_when_full(next).and_then(|next| self.without_inner_tracers(next));
            let Some((tid, stop)) = next else { continue };
            if self.hooks.killed_after == Some(self.found.translation.stops) {
                self.kill_process_of(tid);
                // Its threads go on to the stops at their ends, while what they stopped for before is handled.
                std::thread::sleep(TO_ENDS);
            }
            self.stopped(tid, stop);
            self.follow_switch();
            if self.recording && self.recorder.failed() {
                self.stop_recording("the trace could not be written".to_owned());
            }
            if let Some(tell) = &self.options.progress
                && told.elapsed() >= PROGRESS_INTERVAL
            {
                told = Instant::now();
                tell(self.recorder.progress());
            }
        }
    }

    /// From now on the program runs without being recorded.
    fn stop_recording(&mut self, reason: String) {
        self.recording = false;
        let room = self.room();
        for space in self.processes.spaces_mut() {
            space.translator.space.room = room;
        }
        self.found.stopped_early.get_or_insert(reason);
        let mut tids: Vec<Tid> = self.threads.keys().copied().collect();
        tids.sort_by_key(|tid| self.threads[tid].stream.id);
        for tid in tids {
            self.end_thread(tid, ThreadExit::StillRunning);
        }
        let beginning: Vec<Tid> = self.coming.beginning.keys().copied().collect();
        for tid in beginning {
            self.end_thread(tid, ThreadExit::StillRunning);
        }
        let births: Vec<Tid> = self.coming.births.keys().copied().collect();
        for tid in births {
            self.stillborn(tid, ThreadExit::StillRunning);
        }
    }

    fn finish(self, watch: &Watch, stopwatch: &Stopwatch) -> Outcome {
        self.together.end();
        self.recollections.write();
        self.found.finish(self.recorder, &self.switch, &self.images, watch, stopwatch)
    }
}
