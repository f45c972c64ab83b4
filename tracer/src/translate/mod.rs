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
use trace_format::{ThreadExit, ThreadId};

use crate::engine::{Engine, Outcome, TraceOptions};
use crate::error::{Error, Result};
use crate::interrupt::{Others, Watch};
use crate::modules::Images;
use crate::ptrace::{Stop, Tid};
use crate::recorder::Recorder;
use crate::run::{Findings, Launched, abandon};
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
pub struct Translate(pub Hooks);

impl Translate {
    /// As users have it.
    pub const PLAIN: Translate = Translate(Hooks { thrown_away_at_random: None, routes_at_once: false });
}

/// What tests have the engine do that it would do seldom, or late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Throws all translations away at random moments as well, chosen by this number.
    pub thrown_away_at_random: Option<u64>,
    /// Follows the ways that the records show after the first looks, not only where code runs often.
    pub routes_at_once: bool,
}

impl Engine for Translate {
    fn name(&self) -> &'static str {
        "translate"
    }

    fn description(&self) -> &'static str {
        "dynamic binary translation: close to native speed"
    }

    fn run(&self, options: &TraceOptions) -> Result<Outcome> {
        let Launched { main, handle, recorder } = Launched::new(options, ptrace_options())?;
        let mut session = Session::new(options, self.0, main, recorder);
        let watch = Watch::start(&options.interrupt, handle, &session.others, &session.together);
        if let Err(reason) = session.begin_program() {
            drop(watch);
            abandon(main);
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
    /// Threads that are not among these yet.
    coming: Coming,
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
            coming: Coming::default(),
            met: VecDeque::new(),
            postponed: Vec::new(),
            recording: true,
            switch: Switch::new(&options.window),
            others: Others::default(),
            together: Together::default(),
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

    fn finish(self, watch: &Watch) -> Outcome {
        self.together.end();
        self.found.finish(self.recorder, &self.switch, &self.images, watch)
    }
}
