//! `long`: lanes remember where they have been, and those that stand where others were are behind.
//!
//! Long et al., *Minimal multi-threading: finding and removing redundant instructions in multi-threaded processors*
//! (MICRO 2010), as the simulator of Milanez et al. runs it.
//!
//! Rule: each lane remembers its last `n` block entries. At a block's start the model chooses a lane whose pc most
//! other lanes remember. Lanes of equal priority are queued and take turns in lane order; each runs with the lanes at
//! its pc that have the same or a higher number. When the queue is empty, priorities are counted again. Inside a block
//! the chosen lane goes on, with the lanes at its pc.
//!
//! It reconverges wherever a lane ahead has passed the place at which a lane behind stands, whatever the layout. It
//! fails when the lane ahead has forgotten the place (a long arm, a loop), and it needs time to notice.
//!
//! Worked example: `1 2b 3b 5` and `1 2b 9b 3b 5` (lane 1 takes a detour): after 2 nobody remembers 3 or 9, so both are
//! queued and lane 0 runs 3, then lane 1 runs 9. Now lane 1 stands at 3, which lane 0 remembers: it catches up, and 5
//! is shared.

use crate::mechanisms::history::{self, History, Remembers};
use crate::warp::mask::Mask;
use crate::{
    Choice, Entry, Extent, Family, Heuristic, Lane, LaneSet, LaneState, Parameter, SegmentTable, Together, Tracking,
    Values, WarpView,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "long",
    family: Family::MinPc,
    rule: "At each block the lane whose pc most other lanes remember runs; equals take turns.",
    source: "Long et al. 2010; Milanez et al. 2014",
    file: file!(),
    parameters: &[PARAMETER],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| of(settings.count("n"), lanes, Remembers::Blocks),
};

/// How many block entries a lane remembers: the parameter of the whole family.
pub(crate) const PARAMETER: Parameter = Parameter {
    name: "n",
    values: Values::Number(1, history::MOST as i64),
    default: 4,
    help: "how many block entries a lane remembers",
};

pub(crate) struct Long<M> {
    history: History<M>,
    remembers: Remembers,
    /// Lanes of equal priority that have not run yet, in lane order.
    queue: M,
    reference: Option<Lane>,
}

/// The model of a warp of so many lanes that remember so many entries.
pub(crate) fn of(n: u32, lanes: usize, remembers: Remembers) -> Box<dyn Heuristic> {
    if lanes <= 64 {
        Box::new(Long::<u64>::new(n, lanes, remembers))
    } else {
        Box::new(Long::<LaneSet>::new(n, lanes, remembers))
    }
}

impl<M: Mask> Long<M> {
    fn new(n: u32, lanes: usize, remembers: Remembers) -> Long<M> {
        Long { history: History::new(n, lanes, remembers), remembers, queue: M::EMPTY, reference: None }
    }

    /// A new choice, whatever ran before.
    #[inline]
    fn pick_anew(&mut self) -> M {
        self.queue = self.queue.and(self.history.standing());
        if self.queue.is_empty() {
            self.queue = self.history.furthest_behind();
        }
        let Some(reference) = self.queue.lowest() else { return M::EMPTY };
        let lanes = self.history.mates(reference).from_lane(reference);
        self.queue = self.queue.without(lanes);
        self.history.enter(lanes, reference);
        self.reference = Some(reference);
        lanes
    }
}

impl<M: Mask> Heuristic for Long<M> {
    fn extent(&self) -> Extent {
        match self.remembers {
            Remembers::Blocks => Extent::Segment,
            Remembers::Instructions => Extent::Instruction,
        }
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        self.history.look(warp);
        Choice::Run(self.pick(warp.states()))
    }

    fn tracking(&mut self) -> Option<&mut dyn Tracking> {
        Some(self)
    }

    fn stays_together(&self, warp: &WarpView) -> bool {
        // Lanes that remember the same have the same priority, so the lowest leads and all go with it.
        self.queue.is_empty() && self.history.alike(warp.live())
    }

    fn ran_together(&mut self, run: &Together) {
        // Who led the last block does not matter: a new choice follows.
        self.history.record_run(run, self.reference);
    }
}

impl<M: Mask> Tracking for Long<M> {
    fn restart(&mut self) {
        self.history.restart();
    }

    fn stand(&mut self, lanes: LaneSet, state: &LaneState, instruction: u32, segments: &SegmentTable) {
        self.history.stand(M::of(lanes), state, instruction, segments);
    }

    fn pick(&mut self, states: &[LaneState]) -> LaneSet {
        let inside = match self.remembers {
            Remembers::Blocks => self.history.goes_on(self.reference, states),
            Remembers::Instructions => None,
        };
        inside.unwrap_or_else(|| self.pick_anew()).lanes()
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_lane_that_stands_where_another_was_catches_up() {
        assert_eq!(schedule("long", &["1 2b 3b 5", "1 2b 9b 3b 5"]), "1:0-1 2:0-1 3:0 9:1 3:1 5:0-1");
    }

    #[test]
    fn with_a_short_memory_a_long_arm_is_forgotten() {
        let lanes = ["1 2b 3b 4b 5b 6 7 8b 10", "1 2b 9b 9b 3b 4b 5b 6 7 8b 10"];
        let fetches = |spec| schedule(spec, &lanes).split(' ').count();
        assert!(fetches("long:n=1") > fetches("long:n=8"));
    }

    #[test]
    fn more_than_64_lanes_run_as_fewer_do() {
        let pair = ["1 2b 3b 5", "1 2b 9b 3b 5"];
        for spec in ["long", "long-irb", "long-minpc", "long-minsp-pc"] {
            let pcs = |pairs| {
                let fetches = schedule(spec, &pair.repeat(pairs));
                fetches.split(' ').filter_map(|f| Some(f.split_once(':')?.0.to_owned())).collect::<Vec<_>>()
            };
            assert_eq!(pcs(32), pcs(40), "{spec}");
        }
    }
}
