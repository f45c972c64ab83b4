//! The trace: its records, its block table, and how both are written, read and recovered.
//!
//! What a thread did is which block it ran, one after another ([`Item`]); what is the same each time is in the
//! [`BlockTable`]. `docs/trace-format.md` describes the file byte by byte.

mod address;
mod block;
mod bytes;
mod chunk;
mod contents;
mod converted;
mod error;
mod event;
mod event_codec;
mod failure;
mod ids;
pub mod layout;
mod marker;
mod module;
pub mod names;
mod numbering;
mod reader;
mod rows;
mod shape;
mod source;
mod stream_codec;
mod table_codec;
mod text;
mod thread_stream;
mod writer;

pub use address::{Address, Source, Term};
pub use block::{Block, BlockTable, Instruction, Kind, SpEffect};
pub use chunk::{COMPRESSION_LEVEL, VALUES_COMPRESSION_LEVEL};
pub use error::{Action, Error, Result};
pub use event::{Chunk, Event, Seq, SyncFunction, ThreadExit};
pub use event_codec::{EVENT_CODES, EXIT_CODES};
pub use ids::{BlockId, ModuleId, Pc, ThreadId};
pub use marker::Marker;
pub use module::{Finish, Mapping, Meta, Module, ModuleRole, STUB_NAME, Symbol};
pub use numbering::{MAX_NAMED, NUMBERED};
pub use reader::{ThreadSummary, Trace};
pub use rows::{CONTEXTS, MAX_COLUMNS, MAX_ROW_VALUES};
pub use text::{read_text, write_text};
pub use thread_stream::{Item, ThreadStream};
pub use writer::{Execution, KnownBlock, MAX_BUFFERED, TraceWriter};
