//! The verbs, one file each.

#[cfg(feature = "transform")]
pub(crate) mod analyze;
#[cfg(feature = "transform")]
pub(crate) mod cc;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod heuristics;
pub(crate) mod new_model;
pub(crate) mod plot;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod setup;
pub(crate) mod suggest;
pub(crate) mod trace;
#[cfg(feature = "transform")]
pub(crate) mod transform;
#[cfg(feature = "transform")]
pub(crate) mod verify;
