//! What a recording costs, and why: for users who ask why it is slow.

use std::ops::AddAssign;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// What the engine `translate` did, under [`crate::TranslationLimits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TranslationUse {
    /// How often all translations were thrown away.
    pub renewals: u64,
    /// The most bytes of translated code that there were at once.
    pub most_code: u64,
    /// The same for bookkeeping in this process.
    pub most_bookkeeping: u64,
    /// How often a thread stopped for this process.
    pub stops: u64,
    /// Why.
    pub causes: StopCauses,
    /// How many bytes of records the threads wrote for this process.
    pub record_bytes: u64,
    /// What was in them.
    pub records: Records,
    /// How many superblocks were translated.
    pub superblocks: u64,
    /// How many instructions they have.
    pub instructions: u64,
    /// How many superblocks of them former runs had, and were translated before this one reached them.
    pub recalled: u64,
    /// How many superblocks were thrown away, and why.
    pub thrown_away: ThrownAway,
    /// How many of those thrown away since their code changed, or could have, were translated again, and how many of
    /// these had the code that they had before, as far as that was looked at (the first 64 bytes).
    pub again: u64,
    /// See there.
    pub again_the_same: u64,
    /// How many others of these came back as they were, without being translated, since their code had not changed.
    pub revived: u64,
    /// For how many MiB of the program's code there was no room for translations near it: all places were tried that
    /// could have been free, with a system call each.
    pub without_room: u64,
    /// What the tracer did in which time.
    pub times: Times,
}

/// Why a superblock is thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Written,
    WrittenByCall,
    Unmapped,
    Protection,
    Shared,
    Route,
    Function,
    Gate,
    Late,
}

/// Superblocks that were thrown away, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrownAway {
    /// The program wrote to the page of its code.
    pub written: u64,
    /// A system call did, or wrote to the file.
    pub written_by_call: u64,
    /// Its memory was unmapped, given back, or mapped again.
    pub unmapped: u64,
    /// What the program may do with its memory was changed (`mprotect`).
    pub protection: u64,
    /// Its memory is shown in one more place, where it can be written.
    pub shared: u64,
    /// It runs often, and was translated again along the route that is mostly taken.
    pub route: u64,
    /// It calls a synchronisation function, or is called by one, which was not known before.
    pub function: u64,
    /// Recording may begin or end in it.
    pub gate: u64,
    /// Its code could not be run, and was mapped later.
    pub late: u64,
    /// All were thrown away, since they took as much memory as they may.
    pub renewal: u64,
}

impl ThrownAway {
    pub(crate) fn add(&mut self, why: Why) {
        *match why {
            Why::Written => &mut self.written,
            Why::WrittenByCall => &mut self.written_by_call,
            Why::Unmapped => &mut self.unmapped,
            Why::Protection => &mut self.protection,
            Why::Shared => &mut self.shared,
            Why::Route => &mut self.route,
            Why::Function => &mut self.function,
            Why::Gate => &mut self.gate,
            Why::Late => &mut self.late,
        } += 1;
    }
}

impl AddAssign for ThrownAway {
    fn add_assign(&mut self, other: ThrownAway) {
        self.written += other.written;
        self.written_by_call += other.written_by_call;
        self.unmapped += other.unmapped;
        self.protection += other.protection;
        self.shared += other.shared;
        self.route += other.route;
        self.function += other.function;
        self.gate += other.gate;
        self.late += other.late;
        self.renewal += other.renewal;
    }
}

/// How often threads stopped, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopCauses {
    /// Code comes next that is not translated, or not any more.
    pub new_code: u64,
    /// The buffer for records is full.
    pub full_buffer: u64,
    /// A system call that the tracer has to know of.
    pub system_call: u64,
    /// A signal, or a return from a handler that has to be looked at.
    pub signal: u64,
    /// A synchronisation function is entered from a place, or with a routine, that is not known.
    pub function: u64,
    /// A place where recording may begin or end.
    pub gate: u64,
    /// An instruction that does not run in translated code.
    pub outside: u64,
    /// A write to memory from which code was translated.
    pub write_to_code: u64,
    /// A thread, process or program begins or ends.
    pub thread: u64,
    /// The tracer has asked for it.
    pub asked: u64,
}

/// Records of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub number: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Counted {
    /// So many more, of so many words of four bytes.
    pub(crate) fn add(&mut self, number: u64, words: usize) {
        self.number += number;
        self.bytes += 4 * words as u64;
    }
}

impl AddAssign for Counted {
    fn add_assign(&mut self, other: Counted) {
        self.number += other.number;
        self.bytes += other.bytes;
    }
}

/// What translated code wrote down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Paths through superblocks, with the values that belong to them.
    pub paths: Counted,
    /// Entries into synchronisation functions.
    pub entries: Counted,
    /// Returns from them.
    pub returns: Counted,
    /// Waits in the kernel.
    pub waits: Counted,
    /// Signal handlers that begin and end.
    pub handlers: Counted,
}

impl AddAssign for Records {
    fn add_assign(&mut self, other: Records) {
        self.paths += other.paths;
        self.entries += other.entries;
        self.returns += other.returns;
        self.waits += other.waits;
        self.handlers += other.handlers;
    }
}

/// Time of the thread that traces, by what it does; the rest of the run is stops handled otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// It waits for a stop.
    pub waiting: Duration,
    /// It translates.
    pub translating: Duration,
    /// It reads records and writes the trace, as far as no other thread does.
    pub records: Duration,
}

/// What the run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// From the program's launch to the end of the trace.
    pub wall: Duration,
    /// Processor time of the program, in translated code and in the kernel; of those of its processes that were waited
    /// for.
    pub program: Duration,
    /// Processor time of this process in the meantime.
    pub tracer: Duration,
}

/// A run under way.
pub(crate) struct Stopwatch {
    start: std::time::Instant,
    before: [Duration; 2],
}

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch { start: std::time::Instant::now(), before: processor_times() }
    }

    pub(crate) fn read(&self) -> RunTimes {
        let [tracer, program] = processor_times();
        RunTimes {
            wall: self.start.elapsed(),
            program: program.saturating_sub(self.before[1]),
            tracer: tracer.saturating_sub(self.before[0]),
        }
    }
}

/// The processor time of this process, and of those that it has waited for.
fn processor_times() -> [Duration; 2] {
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(|who| {
        let time = |usage: nix::sys::resource::Usage| usage.user_time() + usage.system_time();
        // It fails for no process that there is.
        getrusage(who).map_or(Duration::ZERO, |usage| {
            Duration::from_micros(u64::try_from(time(usage).num_microseconds()).unwrap_or(0))
        })
    })
}
