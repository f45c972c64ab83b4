//! The passes, one file (or folder) each.

pub(crate) mod branch_fusion;
pub(crate) mod fcs;
pub(crate) mod layout;
pub(crate) mod linearize;
pub(crate) mod meld;
pub(crate) mod none;
pub(crate) mod refused;
pub(crate) mod speculative;
pub(crate) mod spill;
pub(crate) mod split_nodes;
pub(crate) mod structurizecfg;
pub(crate) mod tail_merge;
