//! What the engine knows about a thread.

use std::time::Instant;

use trace_format::ThreadId;

use crate::kernel::ptrace::{Registers, SignalInfo, Stop, Tid};
use crate::translate::addresses::{ProgramPc, RecordPlace};
use crate::translate::code::superblock::Superblock;
use crate::translate::expand::Stream;

/// The number of an address space; each program that begins gets a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceId(pub u32);

/// Whose registers a thread has. What has ended stays so.
#[expect(clippy::large_enum_variant, reason = "there is one for each thread")]
enum State {
    /// Its own: those of translated code. It runs, waits in the kernel, or has stopped and was not looked at.
    Own {
        /// Those with which it was let go last, when its place for records follows from them.
        let_go_with: Option<Registers>,
    },
    /// It is stopped, and we hold the program's: its own are out of date, or are not those of translated code.
    Held,
    /// It runs no more of the program.
    Ended,
}

/// A thread of the program.
pub struct Thread {
    /// Its process.
    pub process: Tid,
    /// The memory it runs in.
    pub space: SpaceId,
    /// Its slot there.
    pub slot: u32,
    /// Where its next record goes. Up to date while the thread is stopped and its registers are the program's.
    pub pointer: RecordPlace,
    state: State,
    /// Its signals.
    pub signals: Signals,
    /// The base of gs, as the program set it.
    pub gs_base: u64,
    /// What is written of it.
    pub stream: Stream,
    /// The gate that it has reached, with its stack pointer there, as long as it has not run the instruction after it.
    pub passed: Option<(ProgramPc, u64)>,
    /// Whether its end has not been written yet.
    pub recording: bool,
    /// Whether it was asked to stop, and the stop has not been seen.
    pub interrupted: bool,
    /// Which of its system calls are its own to handle.
    pub dispatch: Option<Dispatch>,
    /// Whether it is at rest, and stays so until an inner tracer lets it go.
    pub is_lent: bool,
}

impl Thread {
    /// A thread that begins, with a slot whose records start at `pointer`.
    #[must_use]
    pub fn new(space: SpaceId, slot: u32, pointer: RecordPlace, stream: Stream) -> Thread {
        Thread {
            process: stream.process,
            space,
            slot,
            pointer,
            state: State::Held,
            signals: Signals::default(),
            gs_base: 0,
            stream,
            passed: None,
            recording: true,
            interrupted: false,
            dispatch: None,
            is_lent: false,
        }
    }

    /// It is stopped, and we hold its registers from now on; its next record goes to this place.
    pub fn hold(&mut self, pointer: RecordPlace) {
        self.pointer = pointer;
        self.enter(State::Held);
    }

    /// Whether we hold its registers.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Held)
    }

    /// It is still stopped, and has the registers of translated code again.
    pub fn give_back(&mut self) {
        self.enter(State::Own { let_go_with: None });
    }

    /// It is about to go on. `own` reads its registers, which are asked for where we do not hold them.
    pub fn let_go(&mut self, own: impl FnOnce() -> Option<Registers>) {
        let let_go_with = if self.is_held() { None } else { own() };
        self.enter(State::Own { let_go_with });
    }

    /// The registers with which it was let go last, if its place for records follows from them.
    pub fn take_let_go_with(&mut self) -> Option<Registers> {
        match &mut self.state {
            State::Own { let_go_with } => let_go_with.take(),
            State::Held | State::Ended => None,
        }
    }

    /// It runs no more of the program. False where it had ended before.
    pub fn end(&mut self) -> bool {
        !matches!(std::mem::replace(&mut self.state, State::Ended), State::Ended)
    }

    /// Whether it runs no more of the program.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    fn enter(&mut self, state: State) {
        if !self.has_ended() {
            self.state = state;
        }
    }
}

/// What is known about a thread's signals.
#[derive(Default)]
pub struct Signals {
    /// Those of the vital signals that the program believes blocked.
    pub hidden_mask: u64,
    /// Signals that came while the program believed them blocked.
    pub deferred: Vec<(i32, SignalInfo)>,
    /// When it was last let go into a handler, or out of one.
    pub signalled: Option<Instant>,
    /// Signals that are held back until it has run for a moment.
    pub postponed: Vec<Postponed>,
    /// No signal reaches it, so that it runs for a moment.
    pub quiet: Option<Quiet>,
    /// The stack pointers at which handlers interrupted it that have not returned, the first one first.
    pub open: Vec<u64>,
    /// How many signals have come in a row, each before it had run for a moment.
    pub early: u32,
    /// How many of those held back were sent to it again and have not come, though it has got a signal like that.
    pub strays: u32,
}

/// A moment in which no signal reaches a thread.
pub struct Quiet {
    /// The signals that it had blocked before all were.
    pub mask: u64,
    /// Its pc, stack pointer and r11 then.
    pub registers: [u64; 3],
    /// When it ends, if the thread makes no system call before.
    pub until: Instant,
}

/// A signal that is held back.
pub struct Postponed {
    /// Which.
    pub signal: i32,
    /// What the kernel has said about it.
    pub info: SignalInfo,
    /// Whether it was sent to the thread again.
    pub sent: bool,
}

/// A thread that the kernel has announced, but that has not reached its first stop.
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
    pub next: ProgramPc,
    /// Whether its start and end have been written already: it is not recorded.
    pub ended: bool,
}

/// Which calls a thread handles itself.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// The code whose calls are made: its start and length.
    pub made: (u64, u64),
    /// Where the byte lies that decides about the others; 0: all are dispatched.
    pub selector: u64,
}

/// The threads of an address space, all at rest.
pub struct Rested {
    /// Those that go on when they are resumed.
    pub resumable: Vec<Tid>,
    /// Those in system calls, with what was held back.
    pub calls: Vec<(Tid, Option<Superblock>)>,
}

/// A process that traces threads of the program.
pub struct InnerTracer {
    /// The process whose memory it has.
    pub maker: Tid,
    /// The answer to the call that it stands in, where we give it.
    pub answer: Option<i64>,
    /// Whether it stands in a call.
    pub in_call: bool,
    /// The threads that it has.
    pub lent: Vec<Lent>,
}

/// A thread that it has.
pub struct Lent {
    pub tid: Tid,
    /// How it goes on.
    pub rested: Rested,
    /// Whether it was told that the thread has stopped.
    pub is_reported: bool,
    /// What came meanwhile.
    pub met: Vec<Stop>,
}
