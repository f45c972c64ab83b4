//! What the program's files say about an address: functions, lines, instructions, marks.

pub mod disassembly;
pub(crate) mod marks;
pub(crate) mod place;
pub(crate) mod prediction;
pub(crate) mod separate;
pub(crate) mod source;
pub(crate) mod versions;
