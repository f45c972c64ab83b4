//! What users type: options that several verbs share, and what they mean.

pub(crate) mod by;
pub(crate) mod checked;
pub(crate) mod lanes;
pub(crate) mod machine;
pub(crate) mod measures;
pub(crate) mod models;
pub(crate) mod predict;
pub(crate) mod reorder;
pub(crate) mod selection;
pub(crate) mod spin;
pub(crate) mod syntax;
pub(crate) mod widths;
