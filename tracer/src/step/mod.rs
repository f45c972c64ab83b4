//! The engine `step`: every thread is stopped after each instruction (ptrace single step).
//!
//! It is slow (tens of thousands of instructions a second) and simple. Nothing is put into the program, so this engine
//! is the judge of others. One thread of ours handles the stops of all threads of the program, in rounds, so that none
//! of them waits for another.
//!
//! Where single stepping would be felt by the program, it is hidden: the flag that `pushf` shows, and what a step
//! does to a blocked SIGTRAP (`signals`). One difference stays: restartable sequences (`rseq`) answer ENOSYS, since a
//! stop inside of one makes the kernel start it again, for ever.

mod execution;
mod gates;
mod signals;
mod stops;
mod syscalls;
mod thread;

use std::fs;

use nix::libc;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{ThreadExit, ThreadId};

use crate::decode::InstructionDecoder;
use crate::engine::{Engine, Outcome, TraceOptions};
use crate::error::Result;
use crate::images::modules::Images;
use crate::kernel::interrupt::{Others, Watch};
use crate::kernel::ptrace::{self, Stop, Tid};
use crate::kernel::together::Together;
use crate::limit::Limit;
use crate::record::recorder::Recorder;
use crate::run::{Findings, Launched};
use crate::switch::Switch;
use crate::usage::Stopwatch;
use thread::{Process, Thread, TrapSignal};

/// The progress is told once in so many rounds: a few times a second.
const PROGRESS_ROUNDS: u64 = 1 << 14;

/// The engine; see the module.
pub struct Step;

impl Engine for Step {
    fn name(&self) -> &'static str {
        "step"
    }

    fn description(&self) -> &'static str {
        "ptrace single step: slow and simple, for short runs and as the judge of other engines"
    }

    fn run(&self, options: &TraceOptions) -> Result<Outcome> {
        let Launched { main, handle, recorder, stopwatch } = Launched::new(options, ptrace_options(options))?;
        let mut session = Session::new(options, main, recorder);
        let watch = Watch::start(&options.interrupt, handle, &session.others, &Together::default());
        session.note_warnings();
        session.begin_program();
        session.run_to_end();
        Ok(session.finish(&watch, &stopwatch))
    }
}

fn ptrace_options(options: &TraceOptions) -> i32 {
    let always =
        libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACEEXIT | libc::PTRACE_O_EXITKILL;
    let forks = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;
    if options.follow_forks { always | forks } else { always }
}

/// A thread that the kernel has announced, but that has not reached its first stop.
struct Birth {
    id: ThreadId,
    parent: ThreadId,
    process: Tid,
    trap: TrapSignal,
}

/// One run of a program.
struct Session<'a> {
    options: &'a TraceOptions,
    recorder: Recorder,
    decoder: InstructionDecoder,
    images: Images,
    main: Tid,
    threads: FxHashMap<Tid, Thread>,
    processes: FxHashMap<Tid, Process>,
    /// Announced, not yet stopped.
    births: FxHashMap<Tid, Birth>,
    /// Stopped, not yet announced.
    early: FxHashSet<Tid>,
    /// To be let go at their first stop.
    release: FxHashSet<Tid>,
    /// Whether instructions are still recorded. After that, the program runs on at full speed.
    recording: bool,
    /// Whether the program is in its window.
    switch: Switch,
    /// Instructions recorded so far.
    retired: u64,
    /// The processes besides the first one.
    others: Others,
    /// The results of the run so far.
    found: Findings,
}

impl<'a> Session<'a> {
    fn new(options: &'a TraceOptions, main: Tid, recorder: Recorder) -> Session<'a> {
        Session {
            options,
            recorder,
            decoder: InstructionDecoder::new(options.memory),
            images: Images::for_window(&options.window),
            main,
            threads: FxHashMap::default(),
            processes: FxHashMap::default(),
            births: FxHashMap::default(),
            early: FxHashSet::default(),
            release: FxHashSet::default(),
            recording: true,
            switch: Switch::new(&options.window),
            retired: 0,
            others: Others::default(),
            found: Findings::default(),
        }
    }

    fn note_warnings(&mut self) {
        let personality = fs::read_to_string(format!("/proc/{}/personality", self.main)).unwrap_or_default();
        let flags = u64::from_str_radix(personality.trim(), 16).unwrap_or(0);
        if !self.options.aslr && flags & libc::ADDR_NO_RANDOMIZE as u64 == 0 {
            self.found.warnings.push(
                "the kernel refused to fix the addresses (a container's seccomp profile?), so they differ from run \
                 to run"
                    .to_owned(),
            );
        }
    }

    /// The program stands at its exec event.
    fn begin_program(&mut self) {
        let Ok(registers) = ptrace::registers(self.main) else { return };
        let id = self.recorder.reserve_thread();
        self.recorder.start_thread(id, None, self.main.0, registers.rsp);
        self.threads.insert(self.main, Thread::new(id, self.main, registers));
        self.processes.insert(self.main, Process::default());
        self.refresh_modules(self.main);
        if self.limit_reached() {
            self.stop_at_limit();
        }
        self.come_to_gate(self.main);
        self.go_on(self.main, 0);
    }

    /// Handles stops until nobody is left.
    fn run_to_end(&mut self) {
        let mut round: Vec<(Tid, Stop)> = Vec::new();
        let mut rounds = 0u64;
        while let Ok(Some(first)) = ptrace::wait_any(true) {
            round.push(first);
            // All that have stopped are taken before any goes on: else those first in the kernel's list would always
            // come first.
            if self.threads.len() > 1 {
                while let Ok(Some(next)) = ptrace::wait_any(false) {
                    round.push(next);
                }
            }
            for (tid, stop) in round.drain(..) {
                self.stopped(tid, stop);
            }
            if self.recording && self.recorder.failed() {
                self.stop_recording("the trace could not be written".to_owned());
            }
            rounds += 1;
            if rounds.is_multiple_of(PROGRESS_ROUNDS)
                && let Some(tell) = &self.options.progress
            {
                tell(self.recorder.progress());
            }
        }
    }

    fn limit_reached(&self) -> bool {
        match self.options.limit {
            Some(Limit::Instructions(most)) => self.retired >= most,
            Some(limit) => self.recorder.has_reached(limit),
            None => false,
        }
    }

    fn stop_at_limit(&mut self) {
        if let Some(limit) = self.options.limit {
            self.stop_recording(format!("{limit} was reached"));
        }
    }

    /// From now on the program runs without being recorded: every thread goes on freely from its next stop.
    fn stop_recording(&mut self, reason: String) {
        self.recording = false;
        self.found.stopped_early.get_or_insert(reason);
        let mut tids: Vec<Tid> = self.threads.keys().copied().collect();
        tids.sort_by_key(|tid| self.threads[tid].id);
        for tid in tids {
            self.end_thread(tid, ThreadExit::StillRunning);
        }
        let births: Vec<Tid> = self.births.keys().copied().collect();
        for tid in births {
            self.stillborn(tid, ThreadExit::StillRunning);
        }
    }

    /// An announced thread is gone, or will not be recorded: its number has been given away already.
    fn stillborn(&mut self, tid: Tid, exit: ThreadExit) {
        if let Some(birth) = self.births.remove(&tid) {
            self.recorder.start_thread(birth.id, Some(birth.parent), tid.0, 0);
            self.recorder.end_thread(birth.id, exit);
        }
    }

    fn finish(self, watch: &Watch, stopwatch: &Stopwatch) -> Outcome {
        self.found.finish(self.recorder, &self.switch, &self.images, watch, stopwatch)
    }
}
