//! Compares the claims of the divergence analysis with what a replay shows: for `lockstep verify`.
//!
//! 1. `code`: which instruction of the IR an instruction of the trace was compiled from.
//! 2. `observations`: where lanes that were together parted, and how their addresses lay.
//! 3. `comparison`: claims against observations.

pub(crate) mod code;
pub(crate) mod comparison;
pub(crate) mod observations;
