//! The kernel's side of tracing: requests to stopped threads, waiting, memory of the program, starting it, signals to
//! us.
//!
//! This is the only folder of the crate with `unsafe`. `nix` covers a part of it only: its `Signal` knows no real-time
//! signals, which the program may use and glibc does, so requests and wait statuses are read here, as plain numbers.
#![allow(unsafe_code)]

mod heap;
mod launch;
mod memory;
mod request;
mod shared;
mod signals;
mod wait;

pub use heap::use_large_pages;
pub use launch::{LaunchError, launch};
pub use memory::{read, read_code, read_u64, write};
pub use nix::libc::user_regs_struct as Registers;
pub use request::{
    CALL_STOP, SignalInfo, detach, event_message, interrupt, listen, poke, register_set, registers, resume,
    resume_to_call, send, set_pc, set_registers, set_signal_info, set_signal_mask, signal_info, signal_mask, step,
    stop_at_calls,
};
pub use shared::{SharedMemory, timestamp};
pub use signals::{ProcessHandle, Received, ignored_before, received, watch_signals};
pub use wait::{EVENT_STOP, Stop, wait_any, wait_for};

/// The kernel's number of a thread (of a process too, as that of its first thread).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub i32);

/// An address in the traced program (never one of ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// The address so many bytes further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Address {
        Address(self.0.wrapping_add(bytes))
    }
}

impl std::fmt::Display for Tid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Registers that are all zero.
#[must_use]
pub fn no_registers() -> Registers {
    // SAFETY: `user_regs_struct` holds numbers only, for which zero is valid.
    unsafe { std::mem::zeroed() }
}
