//! What threads wait at that no function says by itself: barriers made of condition variables, semaphores that are
//! locks, and locks of a program's own.

pub(super) mod conditions;
pub(super) mod own_locks;
pub(super) mod semaphores;
mod values;
