//! What the engine knows of a thread.

use std::time::Instant;

use trace_format::ThreadId;

use super::expand::Stream;
use super::processes::SpaceId;
use crate::ptrace::{Registers, SignalInfo, Tid};

/// A thread of the program.
pub struct Thread {
    /// Its process.
    pub process: Tid,
    /// The memory it runs in.
    pub space: SpaceId,
    /// Its slot there.
    pub slot: u32,
    /// Where its next record goes. Up to date while the thread is stopped and its registers are the program's.
    pub pointer: u64,
    /// Whether we hold its registers: its own are out of date, or are not those of translated code. While it runs it is
    /// false.
    pub held: bool,
    /// The registers with which it was let go last, when they were those of translated code and its place for records
    /// follows from them.
    pub let_go_with: Option<Registers>,
    /// Those of the vital signals that the program believes blocked.
    pub hidden_mask: u64,
    /// Signals that came while the program believed them blocked.
    pub deferred: Vec<(i32, SignalInfo)>,
    /// When it was last let go into a handler, or out of one.
    pub signalled: Option<Instant>,
    /// Signals that are held back until it has run for a moment.
    pub postponed: Vec<Postponed>,
    /// The signals that it had blocked before all were, so that it runs for a moment, and its pc, stack pointer and r11
    /// then.
    pub quiet: Option<(u64, [u64; 3])>,
    /// How many signals have come in a row, each before it had run for a moment.
    pub early: u32,
    /// How many of those held back were sent to it anew and have not come, though it has got a signal like that.
    pub strays: u32,
    /// The base of gs, as the program set it.
    pub gs_base: u64,
    /// What is written of it.
    pub stream: Stream,
    /// The gate that it has come to, with its stack pointer there, while it has not run the instruction behind it.
    pub passed: Option<(u64, u64)>,
    /// Whether its end has not been written yet.
    pub recording: bool,
    /// Whether it was asked to stop, and the stop has not been seen.
    pub interrupted: bool,
    /// Whether it runs no more of the program.
    pub ended: bool,
}

impl Thread {
    /// A thread that begins, with a slot whose records start at `pointer`.
    #[must_use]
    pub fn new(space: SpaceId, slot: u32, pointer: u64, stream: Stream) -> Thread {
        Thread {
            process: stream.process,
            space,
            slot,
            pointer,
            held: true,
            let_go_with: None,
            hidden_mask: 0,
            deferred: Vec::new(),
            signalled: None,
            postponed: Vec::new(),
            quiet: None,
            early: 0,
            strays: 0,
            gs_base: 0,
            stream,
            passed: None,
            recording: true,
            interrupted: false,
            ended: false,
        }
    }
}

/// A signal that is held back.
pub struct Postponed {
    /// Which.
    pub signal: i32,
    /// What the kernel has said of it.
    pub info: SignalInfo,
    /// Whether it was sent to the thread anew.
    pub sent: bool,
}

/// A thread that the kernel has announced, but that has not come to its first stop.
#[derive(Clone, Copy)]
pub struct Birth {
    /// Its process.
    pub process: Tid,
    /// The memory it runs in.
    pub space: SpaceId,
    /// Its number in the trace.
    pub id: ThreadId,
    /// Who made it.
    pub parent: ThreadId,
    /// What it inherits.
    pub hidden_mask: u64,
    /// The base of gs.
    pub gs_base: u64,
    /// Where it goes on in the program.
    pub next: u64,
    /// Whether its start and end have been written already: it is not recorded.
    pub ended: bool,
}
