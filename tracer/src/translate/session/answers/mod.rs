//! System calls that are answered in the kernel's place.

pub(super) mod inner_tracers;
pub(super) mod own_calls;
