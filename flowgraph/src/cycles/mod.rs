//! Cycles: components, loops, and orders of the nodes that keep loops together.

pub(crate) mod components;
pub(crate) mod layout;
pub(crate) mod loops;
pub(crate) mod turn_distances;
