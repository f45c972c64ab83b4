//! The engine `translate`: dynamic binary translation from outside of the program.
//!
//! The program runs copies of its own code, made and linked by this process in memory that both share (`space`). The
//! copies do what the originals do, and write down which path they took. In the long run nothing stops: system calls
//! are made by the program itself, and a thread stops for us only at code that it has not come to before (an `int3`),
//! when its buffer is full (a page that may not be touched), for the few system calls that change what we have to know
//! of, and for signals.
//!
//! - `layout`: what lies where; `tables`: how code is found at run time; `assembler`, `expansions`, `rewrite`: the code
//!   that is put between the program's own.
//! - `builder` translates one superblock, `translator` keeps all of them (`packed`, in few bytes), `program_code` reads
//!   the program.
//! - `route`: the way that code is seen to take when it runs often, for a translation that follows it.
//! - `code_writes`, `memory_calls`, `code_files`: code changes, by a write, a system call, or a write to its file;
//!   `changed_code`: threads leave what was translated of it.
//! - `remote` makes system calls in the program's place; `state` brings a stopped thread from the copy's registers to
//!   the program's.
//! - `forward` does the rest of an expansion for a thread that was killed in it.
//! - `processes`: the memory of each process with its translations. `forks`: processes that the program makes.
//! - `storms`: signals that come often; `handler_code`: how the program gets into their handlers and out by itself.
//! - `stops`, `syscalls`, `signals`, `lifecycle`: what each stop means. `renewal`: all translations are thrown away
//!   when they take too much memory. `gates`: recording begins and ends. `untraceable`: a process goes on by itself.
//!   `values`: what is recorded beside the path, for memory addresses. `expand`: from records to the trace.

mod addresses;
mod assembler;
mod builder;
mod changed_code;
mod code_files;
mod code_pages;
mod code_writes;
mod expand;
mod expansions;
mod forks;
mod forward;
mod gates;
mod handler_code;
mod layout;
mod lifecycle;
mod mapper;
mod memory_calls;
mod outside;
mod packed;
mod plan;
mod processes;
mod program_code;
mod remote;
mod renewal;
mod rewrite;
mod route;
mod signals;
mod space;
mod state;
mod stops;
mod storms;
mod superblock;
mod syscalls;
mod tables;
mod thread;
mod translator;
mod untraceable;
mod values;

use std::collections::VecDeque;
use std::time::Instant;

use nix::libc;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Finish, ThreadExit, ThreadId};

use crate::engine::{Engine, Exit, Outcome, TraceOptions, TranslationUse};
use crate::error::{Error, Result};
use crate::interrupt::{Others, Watch};
use crate::modules::Images;
use crate::program::Program;
use crate::ptrace::{self, ProcessHandle, Stop, Tid};
use crate::recorder::Recorder;
use crate::switch::Switch;
use crate::together::Together;
use expand::Clock;
use processes::{Processes, SpaceId, running};
use remote::Lost;
use renewal::Moments;
use thread::{Birth, Thread};
use translator::Translator;

/// The progress is told once in so many stops.
const PROGRESS_STOPS: u64 = 1 << 8;

/// The engine; see the module.
pub struct Translate;

impl Engine for Translate {
    fn name(&self) -> &'static str {
        "translate"
    }

    fn description(&self) -> &'static str {
        "dynamic binary translation: close to native speed"
    }

    fn run(&self, options: &TraceOptions) -> Result<Outcome> {
        let program = Program::find(&options.command)?;
        let main = program.launch(options.aslr, ptrace_options())?;
        let handle = ProcessHandle::open(main).ok();
        let recorder = match Recorder::create(options) {
            Ok(recorder) => recorder,
            Err(error) => {
                abandon(main, handle.as_ref());
                return Err(error.into());
            }
        };
        let mut session = Session::new(options, main, recorder);
        let watch = Watch::start(&options.interrupt, handle, &session.others, &session.together);
        if let Err(reason) = session.begin_program() {
            let handle = ProcessHandle::open(main).ok();
            drop(watch);
            abandon(main, handle.as_ref());
            return Err(Error::Unsupported { path: options.command[0].clone().into(), reason });
        }
        session.run_to_end();
        Ok(session.finish(&watch))
    }
}

fn ptrace_options() -> i32 {
    libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_EXITKILL
}

/// Ends a program that has not run yet.
fn abandon(main: Tid, handle: Option<&ProcessHandle>) {
    if handle.is_some_and(|handle| handle.send(libc::SIGKILL).is_ok()) {
        while let Ok(Some((tid, stop))) = ptrace::wait_any(true) {
            match stop {
                Stop::Exited(_) | Stop::Killed(_) if tid == main => return,
                Stop::Exited(_) | Stop::Killed(_) => {}
                Stop::Signal(_) | Stop::Event { .. } => drop(ptrace::resume(tid, 0)),
            }
        }
    }
}

/// One run of a program.
struct Session<'a> {
    options: &'a TraceOptions,
    recorder: Recorder,
    clock: Clock,
    images: Images,
    main: Tid,
    threads: FxHashMap<Tid, Thread>,
    /// Their processes, with the translations of each; none before a program begins.
    processes: Processes,
    /// Threads whose start is written, and in which a program begins: they are not among `threads` yet.
    beginning: FxHashMap<Tid, ThreadId>,
    /// Announced, not yet stopped.
    births: FxHashMap<Tid, Birth>,
    /// Stopped, not yet announced.
    early: FxHashSet<Tid>,
    /// Stops that were met while something else was waited for.
    met: VecDeque<(Tid, Stop)>,
    /// Threads to which signals are sent anew, and when.
    postponed: Vec<(Instant, Tid)>,
    /// Whether instructions are still recorded.
    recording: bool,
    /// Whether the program is in its window.
    switch: Switch,
    /// The processes beside the first one.
    others: Others,
    /// Keeps a program's only thread on our processor while it stops often.
    together: Together,
    exit: Option<Exit>,
    stopped_early: Option<String>,
    warnings: Vec<String>,
    /// Room for records on their way to the trace.
    words: Vec<u32>,
    /// When translations are thrown away without need.
    moments: Moments,
    translation: TranslationUse,
}

impl<'a> Session<'a> {
    fn new(options: &'a TraceOptions, main: Tid, recorder: Recorder) -> Session<'a> {
        Session {
            options,
            recorder,
            clock: Clock::start(),
            images: Images::for_window(&options.window),
            main,
            threads: FxHashMap::default(),
            processes: Processes::default(),
            beginning: FxHashMap::default(),
            births: FxHashMap::default(),
            early: FxHashSet::default(),
            met: VecDeque::new(),
            postponed: Vec::new(),
            recording: true,
            switch: Switch::new(&options.window),
            others: Others::default(),
            together: Together::default(),
            exit: None,
            stopped_early: None,
            warnings: Vec::new(),
            words: Vec::new(),
            moments: Moments::new(options.translation.thrown_away_at_random),
            translation: TranslationUse::default(),
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
        let mut stops = 0u64;
        loop {
            let next = match self.met.pop_front() {
                Some(met) => met,
                None => match self.next_stop() {
                    Some(stop) => stop,
                    None => break,
                },
            };
            let Some((tid, stop)) = self.renew_when_full(next) else { continue };
            self.stopped(tid, stop);
            self.follow_switch();
            if self.recording && self.recorder.failed() {
                self.stop_recording("the trace could not be written".to_owned());
            }
            stops += 1;
            self.together.count_stop();
            if stops.is_multiple_of(PROGRESS_STOPS)
                && let Some(tell) = &self.options.progress
            {
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
        self.stopped_early.get_or_insert(reason);
        let mut tids: Vec<Tid> = self.threads.keys().copied().collect();
        tids.sort_by_key(|tid| self.threads[tid].stream.id);
        for tid in tids {
            self.end_thread(tid, ThreadExit::StillRunning);
        }
        let beginning: Vec<Tid> = self.beginning.keys().copied().collect();
        for tid in beginning {
            self.end_thread(tid, ThreadExit::StillRunning);
        }
        let births: Vec<Tid> = self.births.keys().copied().collect();
        for tid in births {
            self.stillborn(tid, ThreadExit::StillRunning);
        }
    }

    fn finish(mut self, watch: &Watch) -> Outcome {
        self.together.end();
        let exit = self.exit.unwrap_or(Exit::Signalled(libc::SIGKILL));
        if watch.killed() {
            self.stopped_early.get_or_insert_with(|| "the program was interrupted".to_owned());
        }
        let (exit_status, signal) = match exit {
            Exit::Exited(status) => (Some(status), None),
            Exit::Signalled(signal) => (None, Some(signal)),
        };
        let never_began = self.switch.never_began(&self.images);
        self.warnings.extend(self.switch.never_ended(&self.images));
        let stopped_early = never_began.as_ref().or(self.stopped_early.as_ref()).cloned();
        let (progress, failure) = self.recorder.finish(&Finish { exit_status, signal, stopped_early });
        Outcome {
            exit,
            instructions: progress.instructions,
            threads: progress.threads,
            bytes: progress.bytes,
            stopped_early: self.stopped_early,
            failure: failure.map(Error::from).or(never_began.map(|reason| Error::NeverBegan { reason })),
            translation: self.translation,
            warnings: self.warnings,
        }
    }
}
