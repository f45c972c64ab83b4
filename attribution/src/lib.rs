//! What a replay found, by function, source line, branch, call path, lock and instruction.
//!
//! A [`Source`] tells which function and line an instruction belongs to; it reads symbols and line tables once. From it
//! and the results of measures come rows: [`lost`] lane-slots, [`memory`] accesses and [`locks`], each about a
//! [`Subject`]. Rows are shown by two renderers: [`table`]s for people (and the [`listing`] of a source file), and
//! [`json`].

pub mod dependences;
pub mod locks;
pub mod lost;
pub mod memory;
mod program;
mod shown;
mod subject;

pub use program::disassembly;
pub use program::marks::{Mark, MarkKind};
pub use program::place::Place;
pub use program::prediction::typed_prediction;
pub use program::source::{Line, Source, is_of_library};
pub use program::versions::{Versions, Was};
pub use shown::fit::Width;
pub use shown::json;
pub use shown::listing;
pub use shown::table;
pub use shown::unlike;
pub use subject::Subject;
