//! What the divergence analysis claims, held against what a replay shows: for `lockstep verify`.
//!
//! 1. `code`: which instruction of the IR an instruction of the trace was made of.
//! 2. `observed`: where lanes that were together parted, and how their addresses lay.
//! 3. `judged`: claims and observations, side by side.

pub(crate) mod code;
pub(crate) mod judged;
pub(crate) mod observed;
