//! The program's files in memory: what is mapped where, their symbols, and the functions that are written to the trace.

pub(crate) mod copies;
pub(crate) mod elf;
pub(crate) mod library_waits;
pub(crate) mod linkage;
pub(crate) mod loop_calls;
pub(crate) mod modules;
pub(crate) mod symbols;
pub(crate) mod sync_functions;
pub(crate) mod task_calls;
