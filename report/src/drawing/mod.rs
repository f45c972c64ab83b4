//! Pictures: marks, text, axes and formats, and layouts that several kinds of charts share.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod format;
pub(crate) mod frame;
pub(crate) mod lines;
pub(crate) mod palette;
pub(crate) mod pdf;
pub(crate) mod picture;
pub(crate) mod stacks;
pub(crate) mod text;
