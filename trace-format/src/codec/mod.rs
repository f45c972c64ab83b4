//! What is in a chunk, as bytes.

pub(crate) mod bytes;
pub(crate) mod column;
pub(crate) mod event_codec;
pub(crate) mod numbering;
pub(crate) mod rows;
pub(crate) mod shape;
pub(crate) mod stream_codec;
pub(crate) mod table_codec;
