//! Signals, and what the program does at them.

pub(super) mod actions;
pub(super) mod signals;
pub(super) mod storms;
