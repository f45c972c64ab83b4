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

use crate::mechanisms::history::{self, History};
use crate::{Choice, Entry, Family, Heuristic, Lane, LaneSet, Lead, Parameter, Together, Values, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "long",
    family: Family::MinPc,
    rule: "At each block the lane whose pc most other lanes remember runs; equals take turns.",
    source: "Long et al. 2010; Milanez et al. 2014",
    file: file!(),
    parameters: &[PARAMETER],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| Box::new(Long::new(settings.count("n"), lanes)),
};

/// How many block entries a lane remembers: the parameter of the whole family.
pub(crate) const PARAMETER: Parameter = Parameter {
    name: "n",
    values: Values::Number(1, history::MOST as i64),
    default: 4,
    help: "how many block entries a lane remembers",
};

pub(crate) struct Long {
    history: History,
    /// Lanes of equal priority that have not run yet, in lane order.
    queue: LaneSet,
    reference: Option<Lane>,
}

impl Long {
    pub(crate) fn new(n: u32, lanes: usize) -> Long {
        Long { history: History::new(n, lanes), queue: LaneSet::EMPTY, reference: None }
    }

    /// A new choice, whatever ran before.
    pub(crate) fn choose_anew(&mut self, warp: &WarpView) -> LaneSet {
        self.queue = self.queue & warp.ready();
        if self.queue.is_empty() {
            self.queue = self.history.furthest_behind(warp);
        }
        let Some(reference) = self.queue.lowest() else { return LaneSet::EMPTY };
        let lanes = warp.mates(reference).from_lane(reference);
        self.queue = self.queue - lanes;
        self.history.record(lanes, warp.lane(reference).pc);
        self.reference = Some(reference);
        lanes
    }
}

impl Heuristic for Long {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let goes_on = self.history.goes_on(warp, self.reference);
        Choice::Run(goes_on.unwrap_or_else(|| self.choose_anew(warp)))
    }

    fn runs_on(&self, _warp: &WarpView, _lanes: LaneSet, lead: &mut Lead) -> bool {
        history::leads(lead);
        true
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
}
