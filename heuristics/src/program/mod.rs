//! The program as a replay sees it: segments, the graph of their edges, and where lanes that part come together.

pub(crate) mod arms;
pub(crate) mod control_flow;
pub(crate) mod decoded;
pub(crate) mod joins;
pub(crate) mod linkage;
pub(crate) mod placement;
pub(crate) mod segment;
pub(crate) mod turn_ranks;
pub(crate) mod yields;
