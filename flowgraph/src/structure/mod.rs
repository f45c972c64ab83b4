//! Parts with one entry and one exit, and what keeps a graph from consisting of them.

pub(crate) mod isomorphism;
pub(crate) mod reduction;
pub(crate) mod regions;
pub(crate) mod unstructured;
