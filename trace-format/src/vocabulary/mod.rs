//! The terms of a trace: threads, blocks, addresses, events, modules.

pub(crate) mod address;
pub(crate) mod block;
pub(crate) mod event;
pub(crate) mod ids;
pub(crate) mod library_code;
pub(crate) mod marker;
pub(crate) mod module;
pub mod names;
