//! What is measured while lanes run, one file each; counts that every replay has are the engine's own.

mod active_lanes;
mod call_paths;
mod causes;
mod checker;
mod edges;
mod lane_map;
mod memory;
mod partings;
mod schedule;

use heuristics::{Lane, LaneSet, LaneState, PlaceId, Program, Seats, SegmentId};
use trace_format::Instruction;

pub use active_lanes::{ActiveCounter, ActiveLanes};
pub use call_paths::{CallPaths, PathId};
pub use causes::{Cause, Causes, Charge, Issued, LostSlots};
pub use checker::Checker;
pub use edges::{Crossed, Edge, EdgeCounter, Edges};
pub use lane_map::{Cell, Kept, LaneMap, LaneMapPlan, LaneMapper, Level, Stretch, Window};
pub use memory::{Classes, MemoryClasses};
pub use schedule::{ScheduleHash, ScheduleWriter};

use crate::Result;
use crate::engine::Cursor;

/// Instructions that were just fetched, one after another, for the same lanes.
pub struct Step<'a> {
    /// The instructions: one fetch each.
    pub instructions: &'a [Instruction],
    /// The active lanes.
    pub lanes: LaneSet,
    /// The lanes that are not finished, those that wait included.
    pub live: LaneSet,
    /// The live lanes that wait for a lock.
    pub at_lock: LaneSet,
    /// The live lanes that wait at a barrier.
    pub at_barrier: LaneSet,
    cursors: &'a [Cursor<'a>],
    offsets: &'a [u32],
    states: &'a [LaneState],
    program: &'a Program,
    seats: &'a Seats,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        instructions: &'a [Instruction],
        lanes: LaneSet,
        live: LaneSet,
        (at_lock, at_barrier): (LaneSet, LaneSet),
        (cursors, offsets, states): (&'a [Cursor<'a>], &'a [u32], &'a [LaneState]),
        (program, seats): (&'a Program, &'a Seats),
    ) -> Step<'a> {
        Step { instructions, lanes, live, at_lock, at_barrier, cursors, offsets, states, program, seats }
    }

    /// Where the lanes sit.
    #[must_use]
    pub fn seats(&self) -> &'a Seats {
        self.seats
    }

    /// Where a live lane stands before this step.
    #[must_use]
    pub fn state(&self, lane: Lane) -> &'a LaneState {
        &self.states[lane.index()]
    }

    /// The segment that the lowest active lane runs, and the index there of the first of these instructions. Equal
    /// for all active lanes but where some run a segment with its call elided.
    ///
    /// # Panics
    /// When no lane is active: a step has at least one.
    #[must_use]
    pub fn place(&self) -> (SegmentId, u32) {
        let lowest = self.lanes.lowest().expect("a step has an active lane").index();
        (self.states[lowest].segment, self.offsets[lowest])
    }

    /// The place of these instructions' segment, the same for all active lanes.
    ///
    /// # Panics
    /// When no lane is active: a step has at least one.
    #[must_use]
    pub fn place_id(&self) -> PlaceId {
        self.program.segments[self.place().0].place
    }

    /// The memory addresses of an active lane in these instructions, in order.
    #[must_use]
    pub fn addresses(&self, lane: Lane) -> &'a [u64] {
        let l = lane.index();
        let segment = &self.program.segments[self.states[l].segment];
        let before = segment.instructions[..self.offsets[l] as usize].iter().map(|i| usize::from(i.memory)).sum();
        let count: usize = self.instructions.iter().map(|i| usize::from(i.memory)).sum();
        &self.cursors[l].addresses()[before..before + count]
    }
}

/// Something that is measured over the steps of one warp's replay.
pub trait Metric {
    /// Called for every step, in order.
    ///
    /// # Errors
    /// When a result cannot be written, or the step breaks a rule.
    fn step(&mut self, step: &Step) -> Result<()>;
}
