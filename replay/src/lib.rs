//! Replays a trace in lockstep under a reconvergence model, and counts.
//!
//! A [`view::View`] makes lanes of a trace; [`replay`] puts them into warps, runs each warp under each heuristic, and
//! returns an [`Outcome`] per heuristic.

mod bounds;
mod columns;
pub mod engine;
mod error;
pub mod in_memory;
mod lanes_source;
pub mod metrics;
mod outcome;
mod replay;
mod stream;
mod survey;
pub mod view;
mod warps;

pub use bounds::Optimum;
pub use columns::{COLUMNS, Column, Setting, strides, to_json, write_csv};
pub use engine::{Deadlock, LockWait, SyncEvent};
pub use error::{Error, Result};
pub use lanes_source::LaneSource;
pub use outcome::{Outcome, Profile};
pub use replay::{Contended, Prepared, ReplayOptions, ScheduleFile, replay};
pub use stream::{Batch, Code, Control, Entry, LaneOrigin, LaneStream, LockId, MeetingId};
pub use survey::{KEEP_BYTES, Survey};
pub use warps::Grouping;
