//! What lies on common cycles, and in which order to lay it out.

pub(crate) mod components;
pub(crate) mod layout;
pub(crate) mod loops;
pub(crate) mod turn_distances;
