//! Code changes: by a write, a system call, or a write to its file; translations are given up.

pub(super) mod changed_code;
pub(super) mod code_writes;
pub(super) mod file_writes;
pub(super) mod memory_calls;
pub(super) mod renewal;
mod room;
