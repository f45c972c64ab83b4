//! What a heuristic sees of its warp: lanes, groups, and the static program. Read-only; the engine owns it all.

pub(crate) mod future;
pub(crate) mod groups;
pub(crate) mod history;
pub(crate) mod lanes;
pub(crate) mod lead;
pub(crate) mod prediction;
pub(crate) mod ran;
pub(crate) mod reconvergence;
pub(crate) mod seats;

use std::sync::Arc;

use trace_format::Pc;

use crate::{
    ControlFlow, Future, Group, Groups, Lane, LaneSet, Lead, PlaceId, Predictions, Seats, Segment, SegmentId,
    SegmentTable,
};

/// Where a lane stands: all of it holds before its next instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// The address of its next instruction.
    pub pc: Pc,
    /// The segment in which that instruction is.
    pub segment: SegmentId,
    /// The place of that segment.
    pub place: PlaceId,
    /// Whether that segment is in a stub of the linkage table.
    pub in_stub: bool,
    /// Its stack pointer in bytes, relative to its first instruction: smaller is deeper.
    pub sp: i64,
    /// Its call level: 1 at its first instruction, one more in each function called.
    pub level: u32,
    /// Whether its next instruction starts a basic block: the one before it transferred control (branch, jump, call,
    /// return).
    pub starts_block: bool,
}

/// A warp as it stands before a choice; or a block of warps, for a model that runs such
/// ([`crate::Entry::runs_blocks`]).
#[derive(Clone, Copy)]
pub struct WarpView<'a> {
    states: &'a [LaneState],
    groups: &'a Groups,
    ready: LaneSet,
    live: LaneSet,
    waiting_for_lock: LaneSet,
    seats: &'a Seats,
    program: &'a Program,
    future: Option<&'a dyn Future>,
}

/// The static side of a replay: the same for all warps.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The segments.
    pub segments: SegmentTable,
    /// The control-flow graphs of its functions; empty unless a heuristic asked for them
    /// ([`crate::Entry::needs_control_flow`]).
    pub control_flow: Arc<ControlFlow>,
    /// By place: whether a GPU has no instruction there, as inside of a mathematical function.
    pub free: Arc<[bool]>,
    /// Where lanes are predicted to be collected best; `barrier` and `hanoi` look at them.
    pub predictions: Predictions,
}

impl Program {
    /// Whether a GPU has no instruction for this place.
    #[must_use]
    pub fn is_free(&self, place: crate::PlaceId) -> bool {
        self.free.get(place.0 as usize).copied().unwrap_or(false)
    }
}

impl<'a> WarpView<'a> {
    /// A view of these lanes. `waiting_for_lock` are those of `live` that wait for a lock. `groups` hold the lanes of
    /// `ready`, each once; the states of lanes that are not live mean nothing.
    #[inline]
    #[must_use]
    pub fn new(
        states: &'a [LaneState],
        groups: &'a Groups,
        ready: LaneSet,
        live: LaneSet,
        waiting_for_lock: LaneSet,
        seats: &'a Seats,
        program: &'a Program,
    ) -> WarpView<'a> {
        WarpView { states, groups, ready, live, waiting_for_lock, seats, program, future: None }
    }

    /// The same, with what its lanes will run.
    #[inline]
    #[must_use]
    pub fn with_future(self, future: &'a dyn Future) -> WarpView<'a> {
        WarpView { future: Some(future), ..self }
    }

    /// What its lanes will run, of those that are ready when a choice is asked for: known as far as
    /// [`crate::Heuristic::horizon`] asks for it.
    #[inline]
    #[must_use]
    pub fn future(&self) -> Option<&'a dyn Future> {
        self.future
    }

    /// Where the lanes sit: which of them could share a fetch.
    #[inline]
    #[must_use]
    pub fn seats(&self) -> &'a Seats {
        self.seats
    }

    /// How many lanes the warp has, finished ones included.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.states.len()
    }

    /// The lanes that can run now: live, and not waiting at a barrier or lock. Not empty when a choice is asked for.
    #[inline]
    #[must_use]
    pub fn ready(&self) -> LaneSet {
        self.ready
    }

    /// The lanes that are not finished.
    #[inline]
    #[must_use]
    pub fn live(&self) -> LaneSet {
        self.live
    }

    /// The lanes that wait for a lock; the other live lanes that are not ready wait at a barrier.
    #[inline]
    #[must_use]
    pub fn waiting_for_lock(&self) -> LaneSet {
        self.waiting_for_lock
    }

    /// The ready lanes by pc; the order of groups means nothing.
    #[inline]
    #[must_use]
    pub fn groups(&self) -> &'a [Group] {
        self.groups
    }

    /// Where a live lane stands. A lane that waits stands before the instruction that it will run next.
    #[inline]
    #[must_use]
    pub fn lane(&self, lane: Lane) -> &'a LaneState {
        &self.states[lane.index()]
    }

    /// The ready lanes at the pc of `lane`, itself included where it is ready.
    #[inline]
    #[must_use]
    pub fn mates(&self, lane: Lane) -> LaneSet {
        self.groups.at(self.lane(lane).pc)
    }

    /// The ready lanes that stand at the lowest pc in a stub of the linkage table to which they were sent; none where
    /// no lane stands in one. To the models that count calls a stub is a part of the instruction that led there, so it
    /// is run before anything else is.
    #[must_use]
    pub fn in_stub(&self) -> Option<LaneSet> {
        let in_stub = |lane: &Lane| self.lane(*lane).in_stub;
        let group = self.groups.iter().filter(|g| g.lanes.iter().any(|lane| in_stub(&lane))).min_by_key(|g| g.pc)?;
        Some(group.lanes.iter().filter(in_stub).collect())
    }

    /// The lead of other lanes ends where they do not go before this one.
    pub(crate) fn stop_behind(&self, lane: Lane, lead: &mut Lead) {
        let state = self.lane(lane);
        lead.stop_behind(state, &self.program.control_flow);
    }

    /// The static program.
    #[inline]
    #[must_use]
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// A segment's facts.
    #[inline]
    #[must_use]
    pub fn segment(&self, id: SegmentId) -> &'a Segment {
        &self.program.segments[id]
    }
}
