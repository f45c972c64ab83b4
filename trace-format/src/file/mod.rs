//! Traces as files: chunks, written, read, and in their text form.

pub(crate) mod chunk;
pub(crate) mod contents;
pub(crate) mod failure;
pub(crate) mod reader;
pub(crate) mod source;
pub(crate) mod stop;
pub(crate) mod text;
pub(crate) mod thread_stream;
pub(crate) mod writer;
