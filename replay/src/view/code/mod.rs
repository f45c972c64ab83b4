//! What code is to a view: whether it is replayed, and what it costs on a GPU.

pub(super) mod costs;
pub(super) mod filter;
mod mathematics;
pub(super) mod sanitizers;
pub(super) mod switches;
