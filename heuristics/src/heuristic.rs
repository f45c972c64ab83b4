//! The trait that every reconvergence model implements.

use crate::{LaneSet, Lead, Ran, Seats, Together, WarpView};

/// What runs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// These lanes: at least one, all ready, all at one pc, no two of one home.
    Run(LaneSet),
    /// The model would never run again: it must run these lanes first, and they wait.
    Deadlock(LaneSet),
}

/// How far a choice holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// To the end of the segment: the model would choose the same lanes at each of its instructions.
    Segment,
    /// For one instruction.
    Instruction,
}

/// What only some models count, besides what the engine counts of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Fetches for no lane at all, which a machine makes that does not know where its lanes stand. They are not among
    /// the fetches counted elsewhere.
    pub empty_fetches: Option<u64>,
    /// Paths (lanes apart from others) that could have been scheduled, summed over fetches.
    pub paths: Option<u64>,
    /// Thread instructions of lanes that were predicated off: they ran nothing, and were active all the same.
    pub predicated_off: Option<u64>,
    /// Instructions of a GPU by which lanes that part wait for each other (BSSY, BSYNC): not among the fetches.
    pub sync_fetches: u64,
    /// Those, times the lanes that issue them.
    pub sync_instructions: u64,
    /// Masks of lanes that found no barrier register free and were spilled to a general one.
    pub barrier_spills: Option<u64>,
    /// How often lanes that were collected at a predicted point went on without those that they waited for, since
    /// nobody else could run; or lanes yielded for which others waited (`hanoi`).
    pub yields: Option<u64>,
    /// Instructions that the barriers of predictions take, one each for lanes that run together: they join and cancel
    /// (two each, with the barrier behind the region), wait and join again, leave a barrier of a branch that conflicts,
    /// and four more where a soft barrier counts them. They are not among the fetches.
    pub barrier_operations: Option<u64>,
    /// Instructions of the code that has lanes of a GPU wait at predicted points (`lockstep transform --pass
    /// speculative`): they note where they stand, ask each other, and branch. They are not among the fetches.
    pub wait_instructions: Option<u64>,
    /// The most entries that a stack had when lanes ran, the bottom one included; of several warps, the most of any.
    pub stack_depth: Option<u64>,
}

impl Tally {
    /// Adds that of another warp.
    pub fn add(&mut self, other: &Tally) {
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.empty_fetches = sum(self.empty_fetches, other.empty_fetches);
        self.paths = sum(self.paths, other.paths);
        self.predicated_off = sum(self.predicated_off, other.predicated_off);
        self.sync_fetches += other.sync_fetches;
        self.sync_instructions += other.sync_instructions;
        self.barrier_spills = sum(self.barrier_spills, other.barrier_spills);
        self.yields = sum(self.yields, other.yields);
        self.barrier_operations = sum(self.barrier_operations, other.barrier_operations);
        self.wait_instructions = sum(self.wait_instructions, other.wait_instructions);
        self.stack_depth = self.stack_depth.max(other.stack_depth);
    }
}

/// A reconvergence model: answers which lanes run next. The engine checks the answer and moves the lanes.
///
/// A heuristic must be deterministic: the same warp gives the same choices, whatever runs beside it.
pub trait Heuristic: Send {
    /// How far a choice holds, of lanes that sit so. Default: [`Extent::Segment`].
    fn extent(&self, _seats: &Seats) -> Extent {
        Extent::Segment
    }

    /// How many instructions of every ready lane's future it looks at ([`WarpView::future`]): no hardware does.
    /// Default: 0.
    fn horizon(&self) -> u32 {
        0
    }

    /// Picks the lanes that run next. At least one lane is ready.
    fn choose(&mut self, warp: &WarpView) -> Choice;

    /// Called after `choose`: how many lanes that are not among the chosen ones are active while those run, predicated
    /// off. Default: none.
    fn predicated_off(&self) -> usize {
        0
    }

    /// Called after the chosen lanes have run and moved on. `warp` is the state after it.
    fn executed(&mut self, _warp: &WarpView, _ran: &Ran) {}

    /// Whether, now that all live lanes are ready at one pc, the model would run them all for as long as they stay
    /// together. A run skipped ends where a basic block ends. Where it says yes, the engine may skip `choose` and
    /// `executed` for such a run, and calls [`Heuristic::ran`] once for all of it. Default: no.
    fn stays_together(&self, _warp: &WarpView) -> bool {
        false
    }

    /// Called after `choose` with what it chose, before they run: writes down for how long it would choose the same
    /// lanes again, while no other lane moves ([`Lead`]). Where it says yes, the engine may skip `choose` and
    /// `executed` for a run of segments that they all run, and calls `executed` once, for the last of them. The lanes
    /// begin and end segments together, and nothing happens to them between that the model could see: they come to no
    /// barrier or lock at which a lane waits, or by which another one no longer does. Default: no.
    fn runs_on(&self, _warp: &WarpView, _lanes: LaneSet, _lead: &mut Lead) -> bool {
        false
    }

    /// Called after a run of segments that was not chosen one by one: all of it. One for which
    /// [`Heuristic::stays_together`] said yes is told always, one for which [`Heuristic::runs_on`] did where the lead
    /// asks for it ([`Lead::tell_run`]), before `executed`; of that the first segment was chosen.
    fn ran(&mut self, _run: &Together) {}

    /// What it has counted itself. Default: nothing.
    fn tally(&self) -> Tally {
        Tally::default()
    }
}
