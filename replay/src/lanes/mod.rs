//! What a lane does, and where lanes come from: streams, as they are, kept, or made by hand.

pub(crate) mod brief;
pub mod in_memory;
pub(crate) mod kept;
pub(crate) mod lanes_source;
pub(crate) mod locks;
pub(crate) mod stream;
