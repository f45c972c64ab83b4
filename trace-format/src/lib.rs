//! The trace: its records, its block table, and how both are written, read and recovered.
//!
//! A thread's stream says which blocks it ran, one after another ([`Item`]). What is the same each time a block runs is
//! in the [`BlockTable`]. `docs/trace-format.md` describes the file byte by byte.

mod codec;
mod converted;
mod error;
mod file;
pub mod layout;
mod vocabulary;

pub use codec::event_codec::{EVENT_CODES, EXIT_CODES};
pub use codec::numbering::{MAX_NAMED, NUMBERED};
pub use codec::rows::{CONTEXTS, MAX_COLUMNS, MAX_ROW_VALUES};
pub use error::{Action, Error, Result};
pub use file::chunk::{COMPRESSION_LEVEL, VALUES_COMPRESSION_LEVEL};
pub use file::reader::{ThreadSummary, Trace};
pub use file::stop::Stop;
pub use file::text::{read_text, write_text};
pub use file::thread_stream::{Item, ThreadStream};
pub use file::writer::{Execution, KnownBlock, MAX_BUFFERED, TraceWriter};
pub use vocabulary::address::{Address, Source, Term};
pub use vocabulary::block::{Block, BlockTable, Instruction, Kind, SpEffect};
pub use vocabulary::event::{Chunk, Event, Seq, SyncFunction, ThreadExit};
pub use vocabulary::ids::{BlockId, ModuleId, Pc, ThreadId};
pub use vocabulary::library_code::LibraryCode;
pub use vocabulary::marker::{BlockCost, Marker};
pub use vocabulary::module::{Architecture, Finish, Mapping, Meta, Module, ModuleRole, STUB_NAME, Symbol};
pub use vocabulary::names;
