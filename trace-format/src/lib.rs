//! The trace: its records, its block table, and how both are written, read and recovered.
//!
//! What a thread did is which block it ran, one after another (`Item`); what is the same each time is in the
//! [`BlockTable`]. `docs/trace-format.md` describes the file byte by byte.

mod block;
mod error;
mod event;
mod ids;
mod module;

pub use block::{Block, BlockTable, Instruction, Kind, SpEffect};
pub use error::{Error, Result};
pub use event::{Event, Seq, SyncFunction, ThreadExit};
pub use ids::{BlockId, ModuleId, Pc, ThreadId};
pub use module::{Finish, Mapping, Meta, Module, ModuleRole, Symbol};
