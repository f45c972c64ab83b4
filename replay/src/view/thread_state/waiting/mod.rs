//! What a thread runs only since it waits, taken out of the stream again: passes of loops with a `pause` or a yield,
//! turns without effect, and failed tries to take a lock of the program's own.

pub(super) mod spin;
pub(super) mod tries;
pub(super) mod turns;
