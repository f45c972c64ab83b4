//! System calls that we make in the program's place.

use nix::errno::Errno;
use nix::libc;

use crate::kernel::ptrace::{self, EVENT_STOP, Registers, Stop, Tid};

/// Signals that our own stops raise, which the kernel must never find blocked: it would take the program's handlers
/// away.
pub const VITAL: u64 = 1 << (libc::SIGSEGV - 1) | 1 << (libc::SIGTRAP - 1) | 1 << (libc::SIGBUS - 1);

/// A thread that can no longer be worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It was killed; its end will be reported.
    Gone,
    /// It reached this stop instead of the place where it was sent.
    Stopped(Stop),
    /// There is no memory in the program for its translation.
    NoRoom,
}

impl From<Errno> for Lost {
    fn from(_: Errno) -> Lost {
        // Requests to a thread that is stopped for us fail only when it has been killed.
        Lost::Gone
    }
}

/// The result of working on a stopped thread.
pub type Result<T> = std::result::Result<T, Lost>;

/// Lets the thread run one instruction, during which no signal is delivered.
pub fn step_quietly(tid: Tid) -> Result<()> {
    let mask = ptrace::signal_mask(tid)?;
    ptrace::set_signal_mask(tid, !VITAL)?;
    let before = ptrace::registers(tid)?.rip;
    loop {
        ptrace::step(tid, 0)?;
        match ptrace::wait_for(tid)? {
            Stop::Signal(libc::SIGTRAP) => break,
            // A group stop, or its end: it is reported again when the thread goes on.
            Stop::Event { event: EVENT_STOP, .. } if ptrace::registers(tid)?.rip == before => {}
            stop => {
                // A fault: the mask is put back for whoever handles it.
                let _ = ptrace::set_signal_mask(tid, mask);
                return Err(Lost::Stopped(stop));
            }
        }
    }
    ptrace::set_signal_mask(tid, mask)?;
    Ok(())
}

/// Makes a system call in a stopped thread, at a `syscall` instruction at this address. The thread's registers are as
/// before afterwards. Returns what the kernel returned.
pub fn call(tid: Tid, at: u64, number: i64, arguments: [u64; 6]) -> Result<i64> {
    let saved = ptrace::registers(tid)?;
    let mut registers = saved;
    registers.rip = at;
    registers.rax = number.cast_unsigned();
    registers.orig_rax = u64::MAX;
    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = arguments;
    ptrace::set_registers(tid, &registers)?;
    step_quietly(tid)?;
    let result = ptrace::registers(tid)?.rax.cast_signed();
    ptrace::set_registers(tid, &Registers { orig_rax: u64::MAX, ..saved })?;
    Ok(result)
}
