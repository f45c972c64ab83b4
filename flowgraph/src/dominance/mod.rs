//! Which nodes every path passes before or after a node: dominators, post-dominators, and what follows from them.

pub(crate) mod control_dependence;
pub(crate) mod dominance_frontiers;
pub(crate) mod dominators;
pub(crate) mod post_dominators;
pub(crate) mod tree;
