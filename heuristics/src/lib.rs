//! Reconvergence models: which lanes of a warp run next.
//!
//! A model is a [`Heuristic`]: it sees its warp through a read-only [`WarpView`] and answers with a [`Choice`]; the
//! engine (in the crate `replay`) checks the answer and moves the lanes. Each model is one file and one line of the
//! [`REGISTRY`].

#[cfg(test)]
mod collected;
mod entry;
#[cfg(test)]
mod example;
mod family;
mod heuristic;
mod mechanisms;
mod models;
mod program;
mod registry;
mod warp;

pub use entry::Entry;
pub use family::Family;
pub use flowgraph::{BarrierAction, BarrierFault};
pub use heuristic::{Choice, Extent, Heuristic, Tally};
pub use mechanisms::barrier_operations::{BarrierOperation, barrier_faults, barrier_operations};
pub use parameters::{Error as ParseError, Parameter, Registered, Settings, Values};
pub use program::arms::Arm;
pub use program::control_flow::{ControlFlow, Observer, RowOfSegments};
pub use program::placement::Placement;
pub use program::segment::{PlaceId, Segment, SegmentId, SegmentTable};
pub use registry::{REGISTRY, Spec, all, brief, bring, build, collects, longest_predicated};
pub use warp::future::Future;
pub use warp::groups::{Group, Groups};
pub use warp::lanes::{Lane, LaneSet, Lanes, MAX_LANES};
pub use warp::lead::{Lead, Next, Order};
pub use warp::prediction::{Copied, Deconflict, Prediction, Predictions, calls_of, calls_towards};
pub use warp::ran::{Ran, Together};
pub use warp::seats::Seats;
pub use warp::{LaneState, Program, WarpView};
