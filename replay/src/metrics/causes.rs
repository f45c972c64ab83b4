//! Causes: why each lane-slot is lost.
//!
//! Formula: a fetch of a warp of W seats with k active lanes loses W - k lane-slots, one for each seat without an
//! active lane; summed over fetches that is fetches x W - thread instructions. Each is charged to one [`Cause`], to the
//! instruction after which the lane of the seat parted from the active lanes (the last one that it ran in a fetch with
//! any of them), and to the instruction that was fetched without it. A lane that waits or has finished is charged to
//! what it waits for or to its end, any other to the way in which it parted from the active lanes.
//!
//! Worked number: W = 4, three lanes. All three run a branch; lanes 0 and 1 take it and run 2 instructions, lane 2 does
//! not and runs 3; then all run 1. Of the 1 + 2 + 3 + 1 = 7 fetches each loses one slot to the empty seat: 7. The 2
//! lose one each to the branch (lane 2), the 3 lose two each (lanes 0 and 1): 2 + 6 = 8. Together 15 = 7 x 4 - 13.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::call_paths::{CallPaths, PathId};
use super::{LostSlots, Measure, Measured, Warp};
use crate::Column;
use crate::entry::{Entry, of};

/// The measure; `--by` and `--annotate` imply it.
pub(crate) static ENTRY: Entry = Entry {
    name: "causes",
    file: "replay/src/metrics/causes.rs",
    switch: None,
    needs_addresses: false,
    measure: Some(|_| Causes::measure()),
    columns: &[
        Column::counted(
            "lost_to_branch",
            "The part of lost_slots, with --by, where the lane took the other side of \
             a branch.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Branch)),
        ),
        Column::counted("lost_to_loop", "The lane runs a loop more often, or less, than the active lanes.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::LoopTripCount))
        }),
        Column::counted(
            "lost_to_call_target",
            "The lane called another function, or returned to another caller.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::CallTarget)),
        ),
        Column::counted(
            "lost_to_lock",
            "The lane waits for a lock, or has come apart from the active lanes at one.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Lock)),
        ),
        Column::counted(
            "lost_to_barrier",
            "The lane waits at a barrier, or has come apart from the active lanes at one.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Barrier)),
        ),
        Column::counted(
            "lost_to_schedule",
            "The lane stood where the active lanes did, and the model ran them apart.",
            |o| of(o, |found: &Causes| found.lost_to(Cause::Schedule)),
        ),
        Column::counted("lost_to_finished", "The lane has finished.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::Finished))
        }),
        Column::counted("lost_to_empty_seat", "The warp has fewer lanes than seats.", |o| {
            of(o, |found: &Causes| found.lost_to(Cause::EmptySeat))
        }),
    ],
    table: None,
};

/// What a lane-slot is lost to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The lane and the active ones took different sides of a branch, or different targets of a jump through a table.
    Branch,
    /// They went different ways at a branch of a natural loop that can leave the loop: one of them runs it more often.
    LoopTripCount,
    /// They called different functions, or returned to different callers.
    CallTarget,
    /// The lane waits for a lock, or has fallen behind or run ahead since one of them waited for it.
    Lock,
    /// The lane waits at a barrier, or they came apart at one.
    Barrier,
    /// They stood at one pc, and the model ran them apart; or they began at different pcs and have never met.
    Schedule,
    /// The lane has finished.
    Finished,
    /// The seat has no lane: there are fewer lanes than seats.
    EmptySeat,
}

impl Cause {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Cause; 8] = [
        Cause::Branch,
        Cause::LoopTripCount,
        Cause::CallTarget,
        Cause::Lock,
        Cause::Barrier,
        Cause::Schedule,
        Cause::Finished,
        Cause::EmptySeat,
    ];

    /// Its name for people, and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Branch => "branch",
            Cause::LoopTripCount => "loop trip count",
            Cause::CallTarget => "call target",
            Cause::Lock => "lock",
            Cause::Barrier => "barrier",
            Cause::Schedule => "schedule",
            Cause::Finished => "finished",
            Cause::EmptySeat => "empty seat",
        }
    }
}

/// Lost lane-slots of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Charge {
    /// What they are lost to.
    pub cause: Cause,
    /// The instruction after which the lanes parted: the last that ran in one fetch for both. None for an empty seat,
    /// and for lanes that never shared a fetch.
    pub parted_at: Option<Pc>,
    /// The instruction that was fetched without them.
    pub issued: Pc,
    /// The call path at which it was fetched: that of the lowest active lane.
    pub path: PathId,
}

/// What was fetched of an instruction at a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Issued {
    /// Warp instructions.
    pub fetches: u64,
    /// Thread instructions.
    pub thread_instructions: u64,
}

/// The lost lane-slots of a replay, and what they are lost to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Causes {
    /// Lost lane-slots, in the order of their charges; each charge once, none of 0.
    pub charges: Vec<(Charge, u64)>,
    /// What was fetched, by instruction and call path, in that order.
    pub issued: Vec<((Pc, PathId), Issued)>,
    /// The call paths.
    pub paths: CallPaths,
}

impl Causes {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| Some(Box::new(LostSlots::new(warp.lanes().len(), warp.seats()))))
            .with_control_flow()
    }

    /// Asks for them with call paths that tell the calls of one function apart: there are many more of those.
    #[must_use]
    pub fn by_call() -> Measure {
        let lost = |warp: &Warp| LostSlots::new(warp.lanes().len(), warp.seats()).by_call();
        Measure::new(ENTRY.name, move |warp| Some(Box::new(lost(warp)))).with_control_flow()
    }

    /// All lost lane-slots.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.charges.iter().map(|(_, slots)| slots).sum()
    }

    /// The lane-slots lost to one cause.
    #[must_use]
    pub fn lost_to(&self, cause: Cause) -> u64 {
        self.charges.iter().filter(|(charge, _)| charge.cause == cause).map(|(_, slots)| slots).sum()
    }
}

impl Measured for Causes {
    fn merge(&mut self, other: &Causes) {
        let names = self.paths.add(&other.paths);
        let name = |path: PathId| names[path.0 as usize];
        let mut charges: FxHashMap<Charge, u64> = self.charges.drain(..).collect();
        for (charge, slots) in &other.charges {
            *charges.entry(Charge { path: name(charge.path), ..*charge }).or_default() += slots;
        }
        let mut issued: FxHashMap<(Pc, PathId), Issued> = self.issued.drain(..).collect();
        for ((pc, path), more) in &other.issued {
            issued.entry((*pc, name(*path))).or_default().add(more.fetches, more.thread_instructions);
        }
        (self.charges, self.issued) = (sorted(charges), sorted(issued));
    }
}

impl Issued {
    pub(super) fn add(&mut self, fetches: u64, thread_instructions: u64) {
        self.fetches += fetches;
        self.thread_instructions += thread_instructions;
    }
}

pub(super) fn sorted<K: Copy + Ord, V>(map: FxHashMap<K, V>) -> Vec<(K, V)> {
    let mut all: Vec<(K, V)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(key, _)| *key);
    all
}
