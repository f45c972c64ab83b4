//! What is measured while lanes run, one file each; counts that every replay has are the engine's own.

pub(crate) mod active_lanes;
pub(crate) mod alu;
mod call_paths;
pub(crate) mod causes;
pub(crate) mod checker;
pub(crate) mod contention;
mod counter;
pub(crate) mod divergence;
pub(crate) mod edges;
pub(crate) mod fetch_units;
pub(crate) mod gpu_memory;
mod gpu_time;
pub(crate) mod lane_map;
mod lost_slots;
mod measure;
pub(crate) mod memory;
mod operands;
mod partings;
pub(crate) mod passes;
mod pieces;
pub(crate) mod schedule;
pub(crate) mod spaces;
pub(crate) mod spill_memory;
pub(crate) mod stalls;
pub(crate) mod traffic;

use std::ops::Range;

use heuristics::{Lane, LaneSet, LaneState, PlaceId, Program, Seats, SegmentId};
use trace_format::Instruction;

pub use active_lanes::{ActiveCounter, ActiveLanes};
pub use alu::Alu;
pub use call_paths::{CallPaths, Entered, PathId};
pub use causes::{Cause, Causes, Charge, Issued};
pub use checker::Checker;
pub use contention::{Contention, ContentionMeter, LockSite, LockUse};
pub use divergence::{Divergence, DivergenceMeter};
pub use edges::{Crossed, Edge, EdgeCounter, Edges};
pub use fetch_units::{Cycles, FetchUnits, MOST_FETCH_UNITS};
pub use gpu_memory::GpuMemory;
pub use gpu_time::{Bound, GpuTime};
pub use lane_map::{Cell, Kept, LaneMap, LaneMapPlan, LaneMapper, LaneMaps, Level, Stretch, Window};
pub use lost_slots::LostSlots;
pub use measure::{Ended, Finding, Findings, Measure, Measured, Warp};
pub use memory::{Classes, MemoryClasses};
pub use passes::Passes;
pub use schedule::{ScheduleHash, ScheduleHashes, ScheduleWriter};
pub use spaces::{Counted, Spaces};
pub use spill_memory::SpillMemory;
pub use stalls::{StallMeter, Stalls};
pub use traffic::{ACCESS_HEADER, Accesses, Space, Strides, TRANSACTION_SIZES, Traffic, TrafficMeter};

use crate::Result;
use crate::engine::{Cursor, SyncEvent};
use crate::lanes::brief::Brief;

/// Instructions that were just fetched, one after another, for the same lanes.
#[derive(Clone, Copy)]
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
    pub(crate) standing: Standing<'a>,
}

/// Where the lanes of a step stand before it.
#[derive(Clone, Copy)]
pub(crate) struct Standing<'a> {
    /// By lane: its stream.
    pub cursors: &'a [Cursor<'a>],
    /// By lane: the index of its next instruction in its segment.
    pub offsets: &'a [u32],
    /// By lane: its state.
    pub states: &'a [LaneState],
    pub program: &'a Program,
    pub briefs: &'a [Brief],
    pub seats: &'a Seats,
    /// How many addresses of the active lanes have passed since their cursors stood where they do.
    pub addresses: usize,
}

/// Segments that were just run whole, one after another, by the same lanes, without a control between them. The other
/// lanes stood still meanwhile.
pub struct Run<'a> {
    /// The step of its first segment.
    pub first: Step<'a>,
    /// All its segments.
    pub segments: &'a [SegmentId],
    /// Their instructions.
    pub fetches: u64,
}

impl<'a> Run<'a> {
    /// The lanes that ran.
    #[must_use]
    pub fn lanes(&self) -> LaneSet {
        self.first.lanes
    }

    /// Its steps, one segment after another.
    ///
    /// # Errors
    /// What `see` says.
    pub fn steps(&self, see: &mut dyn FnMut(&Step) -> Result<()>) -> Result<()> {
        let Step { lanes, standing, .. } = self.first;
        let mut states = standing.states.to_vec();
        let (mut addresses, mut recorded) = (standing.addresses, 0);
        for (id, brief) in self.briefs() {
            for lane in lanes {
                let state = &mut states[lane.index()];
                (state.segment, state.pc) = (id, brief.start);
            }
            let standing = Standing { states: &states, addresses, ..standing };
            let instructions = &standing.program.segments[id].instructions;
            see(&Step { instructions, standing, ..self.first })?;
            for lane in lanes {
                let cursor = &self.first.standing.cursors[lane.index()];
                cursor.goes_through(brief, recorded, &mut states[lane.index()]);
            }
            addresses += brief.addresses as usize;
            recorded += usize::from(brief.recorded);
        }
        Ok(())
    }

    /// The instructions of its segments, one segment after another.
    pub fn instructions(&self) -> impl Iterator<Item = &'a [Instruction]> + use<'_, 'a> {
        let segments = &self.first.standing.program.segments;
        self.segments.iter().map(move |id| &segments[*id].instructions[..])
    }

    /// Its segments, in short.
    pub(crate) fn briefs(&self) -> impl DoubleEndedIterator<Item = (SegmentId, &'a Brief)> + use<'_, 'a> {
        let briefs = self.first.standing.briefs;
        self.segments.iter().map(move |id| (*id, &briefs[id.0 as usize]))
    }
}

impl<'a> Step<'a> {
    /// Where the lanes sit.
    #[must_use]
    pub fn seats(&self) -> &'a Seats {
        self.standing.seats
    }

    /// Where a live lane stands before this step.
    #[must_use]
    pub fn state(&self, lane: Lane) -> &'a LaneState {
        &self.standing.states[lane.index()]
    }

    /// The segment that the lowest active lane runs, and the index there of the first of these instructions. Equal
    /// for all active lanes but where some run a segment with its call elided.
    ///
    /// # Panics
    /// When no lane is active: a step has at least one.
    #[must_use]
    pub fn place(&self) -> (SegmentId, u32) {
        let lowest = self.lanes.lowest().expect("a step has an active lane").index();
        (self.standing.states[lowest].segment, self.standing.offsets[lowest])
    }

    /// Whether these instructions are a stub of the linkage table, to which a call led.
    ///
    /// # Panics
    /// When no lane is active: a step has at least one.
    #[must_use]
    pub fn is_in_stub(&self) -> bool {
        self.standing.program.segments[self.place().0].in_stub
    }

    /// The place of these instructions' segment, the same for all active lanes.
    ///
    /// # Panics
    /// When no lane is active: a step has at least one.
    #[must_use]
    pub fn place_id(&self) -> PlaceId {
        self.standing.program.segments[self.place().0].place
    }

    /// The lane's stack before this step; none where it is not known, as in traces without addresses or read from text.
    #[must_use]
    pub fn stack(&self, lane: Lane) -> Option<Stack> {
        let (zero, above) = self.standing.cursors[lane.index()].stack()?;
        let lowest = zero.wrapping_add_signed(self.state(lane).sp - RED_ZONE);
        Some(Stack { zero, addresses: lowest..zero.saturating_add(u64::from(above)) })
    }

    /// The memory addresses of an active lane in these instructions, in order.
    #[must_use]
    pub fn addresses(&self, lane: Lane) -> &'a [u64] {
        let before = self.addresses_before(lane);
        let count: usize = self.instructions.iter().map(|i| usize::from(i.memory)).sum();
        &self.standing.cursors[lane.index()].addresses()[before..before + count]
    }

    /// How many addresses of an active lane lie before those of these instructions, from where its cursor stands.
    fn addresses_before(&self, lane: Lane) -> usize {
        let l = lane.index();
        let skipped = match self.standing.offsets[l] as usize {
            0 => &[],
            skipped => &self.standing.program.segments[self.standing.states[l].segment].instructions[..skipped],
        };
        self.standing.addresses + skipped.iter().map(|i| usize::from(i.memory)).sum::<usize>()
    }
}

/// A lane's stack, as it lies when it runs an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The address for which its stack pointers stand that are 0.
    pub zero: u64,
    /// Its addresses: from the red zone below the stack pointer to the thread's first one.
    pub addresses: Range<u64>,
}

/// The bytes below the stack pointer that a function may use without moving it: the System V ABI for x86-64, section
/// 3.2.2.
const RED_ZONE: i64 = 128;

/// Something that is measured over the steps of one warp's replay.
pub trait Metric {
    /// Called for every step, in order.
    ///
    /// # Errors
    /// When a result cannot be written, or the step breaks a rule.
    fn step(&mut self, step: &Step) -> Result<()>;

    /// Called for a run of segments, in place of a step for each of them. What is the same for all of a run need not be
    /// found out again for each step of it. Default: a step for each segment.
    ///
    /// # Errors
    /// As [`Metric::step`].
    fn ran(&mut self, run: &Run) -> Result<()> {
        run.steps(&mut |step| self.step(step))
    }

    /// Whether the model is to be asked before each segment while this is measured, also where it says that it would
    /// choose the same lanes again. The result is the same, as tests show, but the cost is several times higher.
    /// Default: no.
    fn asks_each_step(&self) -> bool {
        false
    }

    /// Called when the replay is over, also where it ended in a deadlock: what was found.
    ///
    /// # Errors
    /// When what was seen breaks a rule.
    fn finish(self: Box<Self>, ended: &Ended) -> Result<Finding>;

    /// Called for what happened between lanes, in order: after the step that made it happen, before the next. Default:
    /// nothing.
    fn synchronised(&mut self, _event: &SyncEvent) {}
}
