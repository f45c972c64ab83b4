//! What users read: tables, verdicts, rows, pages.

pub(crate) mod as_lanes;
pub(crate) mod dependences;
pub(crate) mod events;
pub(crate) mod grouping;
pub(crate) mod loops;
pub(crate) mod proofs;
pub(crate) mod regions;
pub(crate) mod reorder;
pub(crate) mod rows;
pub(crate) mod stats;
pub(crate) mod table;
