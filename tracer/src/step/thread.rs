//! What the engine knows about a thread and a process.

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Pc, ThreadId};

use crate::decode::Decoded;
use crate::images::loop_calls;
use crate::images::modules::{ModuleMap, regions};
use crate::images::sync_functions::Role;
use crate::kernel::ptrace::{Registers, SignalInfo, Tid};
use crate::record::blocks::PendingBlock;
use crate::record::sync_stack::SyncStack;
use crate::window::Gate;

/// An instruction of a process, decoded once.
#[derive(Debug)]
pub struct Code {
    /// What it is.
    pub decoded: Decoded,
    /// The synchronisation function that starts here.
    pub role: Option<Role>,
    /// The place at which the window may begin or end.
    pub gate: Option<Gate>,
    /// Whether its bytes have to be looked at each time, since they can change unseen.
    pub volatile: bool,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// What is mapped where.
    pub modules: ModuleMap,
    /// The instructions seen, by address.
    pub code: FxHashMap<u64, Rc<Code>>,
    /// The places of functions at which the window may begin or end.
    pub gates: FxHashMap<u64, Gate>,
    /// Routines that were handed to a function that runs them.
    pub routines: FxHashMap<u64, Role>,
    /// Bodies of taskloops, where their calls do not tell.
    pub taskloops: FxHashSet<u64>,
    /// Whether the program ignores SIGTRAP (the kernel no longer does, see `signals`).
    pub trap_ignored: bool,
    /// The thread that is about to replace the process by another program.
    pub exec_thread: Option<Tid>,
}

impl Process {
    /// Gives the routine at this address a role.
    pub fn add_routine(&mut self, address: u64, role: Role) {
        self.routines.entry(address).or_insert(role);
        if let Some(code) = self.code.get_mut(&address)
            && code.role.is_none()
        {
            *code = Rc::new(Code { decoded: code.decoded.clone(), role: Some(role), ..**code });
        }
    }

    /// Forgets the instructions in this memory.
    pub fn forget(&mut self, memory: &Range<u64>) {
        self.code.retain(|pc, _| !memory.contains(pc));
    }
}

/// A system call that a thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Syscall {
    /// Its number.
    pub number: u64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// The register of the argument with this number was changed for the call and gets its own value back afterwards.
    pub restore: Option<usize>,
    /// What the kernel has announced of the thread or process that it made.
    pub child: Child,
}

/// A thread or process that a system call made.
#[derive(Clone, Copy, Debug)]
pub enum Child {
    /// Nothing was announced: there is none, or it is a process that runs by itself.
    Unannounced,
    /// A thread of the same process.
    Thread,
    /// A process whose first thread has this number in the trace.
    Process(ThreadId),
}

/// SIGTRAP as the program sees it. The kernel must never find it blocked, or a step would undo the program's handler.
#[derive(Clone, Copy, Default)]
pub struct TrapSignal {
    /// Whether the program blocks it.
    pub blocked: bool,
    /// One that came while it was blocked.
    pub deferred: Option<SignalInfo>,
}

/// A thread.
pub struct Thread {
    /// Its number in the trace.
    pub id: ThreadId,
    /// Its process.
    pub process: Tid,
    /// The registers before the next instruction.
    pub registers: Registers,
    /// The next instruction.
    pub next: Rc<Code>,
    /// What it has run since its last block was written.
    pub pending: PendingBlock,
    /// The synchronisation functions it is in.
    pub sync: SyncStack,
    /// The system call it is in.
    pub syscall: Option<Syscall>,
    /// The system call was interrupted, and the kernel may start it again.
    pub restarting: bool,
    /// The registers before the first iteration of the `rep` instruction that it is in.
    pub repeating: Option<Registers>,
    /// The signal it was resumed with.
    pub injected: i32,
    /// Whether it is let go for good when it goes on.
    pub leaves: bool,
    /// SIGTRAP as the program sees it.
    pub trap: TrapSignal,
    /// The number of threads set for its next parallel region.
    pub team_size: u64,
    /// The last call for iterations of a loop.
    pub loop_call: Option<loop_calls::Open>,
    /// Memory that holds a stack other than that of the functions it is in.
    pub other_stack: Option<Range<u64>>,
    /// The gate that it has reached, with its stack pointer there, as long as it has not run the instruction after it.
    pub passed: Option<(u64, u64)>,
    /// Whether its end has not been written yet.
    pub recording: bool,
    /// Whether it was last resumed for one step.
    pub stepping: bool,
}

impl Thread {
    /// A thread that stands before its first instruction.
    pub fn new(id: ThreadId, process: Tid, registers: Registers) -> Thread {
        let decoded = Decoded::unknown(Pc(registers.rip));
        Thread {
            id,
            process,
            registers,
            next: Rc::new(Code { decoded, role: None, gate: None, volatile: true }),
            pending: PendingBlock::default(),
            sync: SyncStack::default(),
            syscall: None,
            restarting: false,
            repeating: None,
            injected: 0,
            leaves: false,
            trap: TrapSignal::default(),
            team_size: 0,
            loop_call: None,
            other_stack: None,
            passed: None,
            recording: true,
            stepping: false,
        }
    }

    /// Whether both addresses lie on one stack. To be asked only when a function seems to have been unwound.
    pub fn same_stack(other: &mut Option<Range<u64>>, process: Tid, a: u64, b: u64) -> bool {
        if other.as_ref().is_some_and(|stack| stack.contains(&b)) {
            return false;
        }
        let regions = regions(process);
        match regions.iter().find(|r| r.contains(b)) {
            Some(region) if !region.contains(a) => {
                *other = Some(region.start..region.end);
                false
            }
            _ => true,
        }
    }
}
