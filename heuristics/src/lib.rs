//! Reconvergence models: which lanes of a warp run next.

mod lanes;
mod segment;

pub use lanes::{Lane, LaneSet, Lanes, MAX_LANES};
pub use segment::{PlaceId, Segment, SegmentId, SegmentTable};
