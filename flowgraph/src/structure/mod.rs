//! Parts with one way in and one way out, and what keeps a graph from being made of them.

pub(crate) mod isomorphism;
pub(crate) mod reduction;
pub(crate) mod regions;
pub(crate) mod structured_regions;
pub(crate) mod unstructured;
