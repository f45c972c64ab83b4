//! What all lanes of a view share: the static program, and what the first look at the trace decided.

use heuristics::SegmentTable;

use super::blocks::BlockFacts;
use super::first_look::episodes::Episodes;
use super::first_look::region::RegionRule;
use super::first_look::task_order::TaskOrder;
use super::locks::LockTable;
use crate::Locks;
use crate::waiting::{Waiting, Writes};

/// How the streams of threads become streams of lanes.
pub(super) struct Plan {
    pub table: SegmentTable,
    pub blocks: BlockFacts,
    pub region: RegionRule,
    pub lock_rule: Locks,
    pub locks: LockTable,
    pub episodes: Episodes,
    /// The numbers of OpenMP tasks, where each is a lane.
    pub tasks: TaskOrder,
    /// The turns of loops that are left out.
    pub waiting: Waiting,
    /// Which segments write elsewhere than to the stack.
    pub writes: Writes,
    /// The trace was read from text: threads are lanes just as they stand.
    pub is_text: bool,
    /// Streams tell where extents of the region begin.
    pub tells_extents: bool,
    /// The trace has memory addresses, so that streams tell where stacks lie.
    pub has_memory: bool,
}
