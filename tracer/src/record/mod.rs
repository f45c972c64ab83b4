//! What is written to the trace.

pub(crate) mod blocks;
pub(crate) mod output;
pub(crate) mod recorder;
pub(crate) mod sync_stack;
