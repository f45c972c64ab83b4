//! Reconvergence models: which lanes of a warp run next.
//!
//! A model is a [`Heuristic`]: it sees its warp through a read-only [`WarpView`] and answers with a [`Choice`]; the
//! engine (in the crate `replay`) checks the answer and moves the lanes. Each model is one file and one line of the
//! [`REGISTRY`].

mod arms;
mod barrier;
mod barrier_operations;
mod block_stack;
#[cfg(test)]
mod collected;
mod control_flow;
mod convergence;
mod direct_branch;
mod distance;
mod dual_path;
mod dwf;
mod dws;
mod entry;
#[cfg(test)]
mod example;
mod family;
mod frontier;
mod future;
mod hanoi;
mod heuristic;
mod history;
mod ipdom;
mod joins;
mod lanes;
mod lead;
mod lee;
mod linkage;
mod long;
mod long_irb;
mod long_min_pc;
mod long_min_sp_pc;
mod lwm;
mod max_fun_min_pc;
mod min_pc;
mod min_sp_pc;
mod minimum;
mod multi_path;
mod none;
mod operations;
mod oracle;
mod paths;
mod placement;
mod predication;
mod prediction;
mod ran;
mod rd_min_sp_pc;
mod reconvergence;
mod registry;
mod rotation;
mod round_robin;
mod round_robin_eq;
mod seats;
mod segment;
mod speculation;
mod splits;
mod stack;
mod tbc;
mod tf_branch;
mod tf_stack;
mod turn_ranks;
mod warp;
mod wave;

pub use arms::Arm;
pub use barrier_operations::{BarrierOperation, barrier_faults, barrier_operations};
pub use control_flow::{ControlFlow, Observer, RowOfSegments};
pub use entry::Entry;
pub use family::Family;
pub use flowgraph::{BarrierAction, BarrierFault};
pub use future::Future;
pub use heuristic::{Choice, Extent, Heuristic, Tally};
pub use lanes::{Lane, LaneSet, Lanes, MAX_LANES};
pub use lead::{Lead, Next, Order};
pub use parameters::{Error as ParseError, Parameter, Settings, Values};
pub use placement::Placement;
pub use prediction::{Copied, Deconflict, Prediction, Predictions, calls_of, calls_towards};
pub use ran::{Ran, Together};
pub use registry::{REGISTRY, Spec, brief, build};
pub use rotation::{Rotation, Round};
pub use seats::Seats;
pub use segment::{PlaceId, Segment, SegmentId, SegmentTable};
pub use warp::{Group, LaneState, Program, WarpView};
