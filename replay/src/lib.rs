//! Replays a trace in lockstep under a reconvergence model, and counts.
//!
//! A [`view::View`] makes lanes from a trace. [`replay`] puts them into warps, runs each warp under each heuristic, and
//! returns an [`Outcome`] per heuristic.

mod accesses;
mod bounds;
mod columns;
pub mod dependences;
pub mod engine;
mod entry;
mod error;
mod grouping;
mod lanes;
mod linearized;
pub mod metrics;
mod outcome;
pub mod registry;
pub mod reorder;
mod replay;
pub mod suggest;
mod survey;
mod value;
pub mod view;
mod waiting;
mod warps;

pub use accesses::{MemoryOperands, memory_operands};
pub use bounds::Optimum;
pub use columns::{Column, Setting};
pub use engine::{Deadlock, LockWait, SyncEvent};
pub use error::{Error, Result};
pub use grouping::{Grouping, SortKey};
pub use lanes::brief::GpuCost;
pub use lanes::in_memory;
pub use lanes::kept::{KEEP_BYTES, Kept, PACKED_BYTES};
pub use lanes::lanes_source::LaneSource;
pub use lanes::locks::Locks;
pub use lanes::stream::{Batch, Code, Control, Entry, EpisodeId, LaneOrigin, LaneStream, LockId, Rows};
pub use linearized::linearized_fetches;
pub use outcome::{MOST_LANES_LISTED, Outcome, Unit};
pub use registry::{write_csv, write_csv_of};
pub use replay::{Prepared, ReplayOptions, ScheduleFile, replay};
pub use survey::Survey;
pub use value::{Kind, Value};
