//! The passes, one file (or folder) each.

pub(crate) mod fcs;
pub(crate) mod layout;
pub(crate) mod none;
