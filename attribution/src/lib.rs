//! What a replay found, by function, source line, branch, call path, lock and instruction.
//!
//! A [`Source`] tells which function and line an instruction belongs to; it reads symbols and line tables once. From it
//! and the results of measures come rows: [`lost`] lane-slots, [`memory`] accesses and [`locks`], each about a
//! [`Subject`]. Rows are shown by three renderers: [`table`]s for people (and the [`listing`] of a source file),
//! [`json`], and the [`page`] of `lockstep report`.

pub mod dependences;
pub mod disassembly;
mod fit;
pub mod json;
pub mod listing;
pub mod locks;
pub mod lost;
mod marks;
pub mod memory;
pub mod page;
mod prediction;
mod separate;
mod source;
mod subject;
pub mod table;
pub mod unlike;
pub mod verdict;

pub use fit::Width;
pub use marks::{Mark, MarkKind};
pub use prediction::typed_prediction;
pub use source::{Line, Source};
pub use subject::Subject;
