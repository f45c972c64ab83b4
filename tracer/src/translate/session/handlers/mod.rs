//! Signals, and what the program does with them.

pub(super) mod actions;
pub(super) mod postponed;
pub(super) mod signals;
pub(super) mod storms;
