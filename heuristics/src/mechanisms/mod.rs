//! Mechanisms that several models share: stacks, paths, splits, barriers, predication.

pub(crate) mod barrier_operations;
pub(crate) mod block_stack;
pub(crate) mod convergence;
pub(crate) mod frontier;
pub(crate) mod minimum;
pub(crate) mod paths;
pub(crate) mod predication;
pub(crate) mod speculation;
pub(crate) mod splits;
pub(crate) mod stack;
