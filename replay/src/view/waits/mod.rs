//! What threads wait at that no function says by itself: barriers made of condition variables, semaphores that are
//! locks, locks of a program's own, and waits that order nothing.

pub(super) mod conditions;
pub(super) mod own_locks;
pub(super) mod semaphores;
pub(super) mod unordered;
mod values;
