//! The verbs, one file each.

pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod heuristics;
pub(crate) mod plot;
pub(crate) mod replay;
pub(crate) mod trace;
