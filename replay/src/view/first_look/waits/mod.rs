//! What threads wait at that no function says by itself: barriers made of condition variables, semaphores that are
//! locks, and locks of a program's own.

pub(in crate::view) mod conditions;
pub(in crate::view) mod own_locks;
pub(in crate::view) mod semaphores;
