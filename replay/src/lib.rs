//! Replays a trace in lockstep under a reconvergence model, and counts.

mod error;
mod stream;
pub mod view;

pub use error::{Error, Result};
pub use stream::{Batch, Code, Control, Entry, LaneOrigin, LaneStream, LockId, MeetingId};
