//! What threads wait at that no function says by itself: barriers made of condition variables, semaphores that are
//! locks and those by which threads hand over, locks and barriers of a program's own, and waits that order nothing.

pub(super) mod conditions;
pub(super) mod hand_overs;
pub(super) mod own_locks;
pub(super) mod semaphores;
pub(super) mod unordered;
mod values;

use trace_format::{Module, Pc, Trace};

/// Whether locks are known there by their functions.
fn is_in_library(trace: &Trace, pc: Pc) -> bool {
    trace.module_of(pc).is_none_or(Module::has_known_locks)
}
