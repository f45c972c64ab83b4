//! The text form: one line per executed instruction, as in the conformance vectors.
//!
//! ```text
//! # a comment
//! thread 0
//! 400000 0 -
//! 400004 -8 C
//! 400100 -16 B 7ffe0010
//! ```
//! A line `thread T` opens a thread; every other line is `pc sp flags [addresses]`. Pc and addresses are hex; `sp` is
//! decimal, in bytes, before the instruction runs, relative to the thread's first instruction. Flags: `B` the
//! instruction starts a basic block, `W` the thread waited at a barrier before it, `C` it calls, `R` it returns, `-`
//! none.

mod read;
mod write;

pub use read::read_text;
pub use write::write_text;

/// The first lines of a text trace.
const COMMENT: &str = "\
# pc sp flags [addresses]: pc and addresses in hex, sp in bytes against the thread's first instruction
# B: starts a basic block, W: waited at a barrier before it, C: calls, R: returns, -: none of these
";
