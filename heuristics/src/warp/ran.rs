//! What a model is told about what has run.

use trace_format::{Instruction, Kind, Pc};

use crate::{ControlFlow, LaneSet, SegmentId, SegmentTable};

/// What has just run.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// The lanes that ran.
    pub lanes: LaneSet,
    /// How many instructions they ran of that segment.
    pub instructions: u32,
    /// How many they ran since they were chosen: more, where segments before it ran without a choice
    /// ([`crate::Heuristic::runs_on`]).
    pub since_chosen: u64,
    /// The segment that they ran (that of the lowest lane; pcs are the same for all).
    pub segment: SegmentId,
    /// The call level at which it ran (of the lowest lane).
    pub level: u32,
    /// The address of the last instruction that ran.
    pub last_pc: Pc,
    /// The kind of that instruction.
    pub last_kind: Kind,
    /// The address after that instruction, where its length is known: where a branch falls through to.
    pub falls_to: Option<Pc>,
}

impl Ran {
    /// These lanes, which have run nothing yet.
    #[inline]
    #[must_use]
    pub fn of(lanes: LaneSet) -> Ran {
        Ran {
            lanes,
            instructions: 0,
            since_chosen: 0,
            segment: SegmentId(0),
            level: 0,
            last_pc: Pc(0),
            last_kind: Kind::Plain,
            falls_to: None,
        }
    }

    /// This was the last instruction.
    #[inline]
    pub fn ends_with(&mut self, last: &Instruction) {
        (self.last_pc, self.last_kind, self.falls_to) = (last.pc, last.kind, last.next_pc());
    }
}

/// A run of segments that lanes of the warp executed together.
#[derive(Clone, Copy)]
pub struct Together<'a> {
    /// The lanes: all that are live, unless the first segment was chosen.
    pub lanes: LaneSet,
    /// Whether the first segment was chosen, after which they ran on; nothing was asked of the others.
    pub chosen: bool,
    /// The segments in order; never empty.
    pub run: &'a [SegmentId],
    /// The call level of the last of them.
    pub last_level: u32,
    /// The lanes for which the first of them starts a basic block: others reached it without a transfer of control.
    pub first_starts_block: LaneSet,
    /// The segments' facts.
    pub segments: &'a SegmentTable,
    /// The control-flow graphs; empty unless the heuristic asked for them.
    pub control_flow: &'a ControlFlow,
}

impl Together<'_> {
    /// The last segment of the run.
    #[must_use]
    pub fn last(&self) -> SegmentId {
        self.run[self.run.len() - 1]
    }

    /// How many instructions the run has.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.run.iter().map(|id| self.segments[*id].len() as u64).sum()
    }

    /// The call level at which each segment of the run began, in order.
    #[must_use]
    pub fn levels(&self) -> Vec<u32> {
        let mut levels = vec![self.last_level; self.run.len()];
        for i in (1..self.run.len()).rev() {
            levels[i - 1] = match self.segments[self.run[i - 1]].last().kind {
                kind if kind.is_call() => levels[i].saturating_sub(1).max(1),
                Kind::Return => levels[i] + 1,
                _ => levels[i],
            };
        }
        levels
    }

    /// The first pcs of the basic blocks that were entered, the last one first. `first` tells whether the first segment
    /// counts.
    pub fn block_entries_backwards(&self, first: bool) -> impl Iterator<Item = Pc> {
        (0..self.run.len()).rev().filter_map(move |i| {
            let starts = match i {
                0 => first,
                _ => self.segments[self.run[i - 1]].last().kind.transfers_control(),
            };
            starts.then(|| self.segments[self.run[i]].start())
        })
    }

    /// The pcs of all instructions, the last one first.
    pub fn pcs_backwards(&self) -> impl Iterator<Item = Pc> {
        self.run.iter().rev().flat_map(|id| self.segments[*id].instructions.iter().rev().map(|i| i.pc))
    }
}
