//! The kernel's part in a recording: ptrace, system calls, signals, processors.

pub(crate) mod calls;
pub(crate) mod debuggers;
pub(crate) mod frames;
pub(crate) mod interrupt;
pub(crate) mod ptrace;
pub(crate) mod together;
