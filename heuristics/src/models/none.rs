//! `none`: every lane alone.
//!
//! No paper: the far end of the scale, a machine that shares nothing.
//!
//! Rule: the ready lane with the lowest number runs, alone; the next one runs when it waits or has ended.
//!
//! It never reconverges: its fetches are the thread instructions, which no schedule exceeds (`upper_bound`). It never
//! deadlocks: a lane that waits for a lock or barrier makes room for those it waits for. `round-robin` has the same
//! fetches in another order.
//!
//! Worked example: `1 2b 3 5` and `1 2b 4 5` give the fetches 1, 2, 3, 5 (lane 0), then 1, 2, 4, 5 (lane 1).

use crate::{Choice, Entry, Family, Heuristic, LaneSet, Lead, Order, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "none",
    family: Family::Bounds,
    rule: "Lanes run one after another, each alone: nothing is shared.",
    source: "the upper bound on fetches",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_, _, _| Box::new(Alone),
};

struct Alone;

impl Heuristic for Alone {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        Choice::Run(warp.ready().lowest().map_or(LaneSet::EMPTY, LaneSet::only))
    }

    fn runs_on(&self, _warp: &WarpView, _lanes: LaneSet, lead: &mut Lead) -> bool {
        lead.restart(Order::None);
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn lanes_run_one_after_another() {
        assert_eq!(schedule("none", &["1 2b 3 5", "1 2b 4 5"]), "1:0 2:0 3:0 5:0 1:1 2:1 4:1 5:1");
    }
}
