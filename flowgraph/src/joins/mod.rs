//! Where threads that part at a branch can come together again.

pub(crate) mod collecting;
pub(crate) mod frontiers;
pub(crate) mod if_joins;
pub(crate) mod partial_joins;
pub(crate) mod structured;
