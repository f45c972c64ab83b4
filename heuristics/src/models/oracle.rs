//! `oracle`: a greedy look into the future, lanes head for the nearest place that two of them will reach.
//!
//! No paper. The simulator of Milanez et al. (Parallel Computing 40, 2014) has a greedy oracle with parameters of these
//! names; its rule is not published, and this one is ours.
//!
//! Rule: the model knows, for every ready lane, the pieces of blocks that begin less than `horizon` instructions ahead.
//! The *distance* of a lane to such a piece is the number of instructions that it runs before it first gets there. A
//! *meeting* is a place with the two lanes nearest to it that don't stand at one pc now. Its *cost* is the sum of their
//! distances less `beta` times the instructions that they run alike from there on, as far as they are known.
//!
//! The cheapest meeting is taken; among equals the one of smaller distances, then of the smaller pc. Of its two lanes
//! the one that is further away runs (the lower one, if none is), with all ready lanes at its pc. Where no two lanes
//! will meet, `minsp-pc` decides.
//!
//! It reconverges wherever two lanes reach one place within the horizon: the lane that is there already never runs on.
//! It fails where the nearest meeting spoils a better one, since it never looks at all lanes at once, and where a
//! detour is longer than the horizon. It is not a bound. For two lanes `optimum` is the best possible; for more lanes
//! `lower_bound` is below the best.
//!
//! Worked example: `1b 9b 3 4 5` and `1b 3 4 5`, the arm at 9 after the join at 3: lane 1 stands at 3, and lane 0 will
//! reach 3 after one instruction, so lane 0 runs 9, and 3, 4 and 5 are shared. `minpc` would run lane 1 ahead.

mod meetings;

use meetings::Meetings;

use crate::models::min_sp_pc;
use crate::{Choice, Entry, Family, Heuristic, Parameter, Values, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "oracle",
    family: Family::Bounds,
    rule: "Knows the future of every lane up to a horizon; lanes run towards the nearest place that two of them will \
         reach.",
    source: "ours; the name from Milanez et al. 2014",
    file: file!(),
    // Of horizons 16, 64, 256, 1024 and betas 0, 1, 2, 4 the pair that needs the fewest fetches of the 24 conformance
    // programs, each in one warp: 36,189; the next best is 36,493 (64 and 2), the worst 38,983 (256 and 4), the best
    // other model 42,037.
    parameters: &[
        Parameter {
            name: "horizon",
            values: Values::Number(1, 1 << 16),
            default: 64,
            help: "how many instructions ahead the future is known",
        },
        Parameter {
            name: "beta",
            values: Values::Number(0, 1 << 16),
            default: 1,
            help: "how many instructions of distance a common instruction is worth",
        },
    ],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, _, _| {
        Box::new(Oracle {
            horizon: settings.count("horizon"),
            beta: settings.number("beta"),
            meetings: Meetings::new(settings.count("horizon"), settings.number("beta")),
        })
    },
};

struct Oracle {
    horizon: u32,
    beta: i64,
    meetings: Meetings,
}

impl Heuristic for Oracle {
    fn horizon(&self) -> u32 {
        self.horizon
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        if let [only] = warp.groups() {
            return Choice::Run(only.lanes);
        }
        let lane = self.meetings.further_of_cheapest(warp);
        debug_assert_eq!(lane, Meetings::new(self.horizon, self.beta).further_of_cheapest(warp), "kept or made anew");
        let lane = lane.unwrap_or_else(|| min_sp_pc::among(warp, warp.ready()).0);
        Choice::Run(warp.mates(lane))
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_lane_waits_where_another_will_come() {
        assert_eq!(schedule("oracle", &["1b 9b 3 4 5", "1b 3 4 5"]), "1:0-1 9:0 3:0-1 4:0-1 5:0-1");
    }

    #[test]
    fn a_detour_beyond_the_horizon_is_not_waited_for() {
        let lanes = ["1b 9 10 11b 3 4", "1b 3 4"];
        assert_eq!(schedule("oracle:horizon=4", &lanes), "1:0-1 9:0 10:0 11:0 3:0-1 4:0-1");
        assert_eq!(schedule("oracle:horizon=2", &lanes), "1:0-1 3:1 4:1 9:0 10:0 11:0 3:0 4:0");
    }

    #[test]
    fn a_long_common_way_is_worth_a_distance() {
        // Lane 0 reaches 5 at once, and through 7 what lane 1 does from 7 on.
        let lanes = ["1b 5b 7 8 9 10", "1b 7 8 9 10b 5"];
        assert_eq!(schedule("oracle:beta=1", &lanes), "1:0-1 5:0 7:0-1 8:0-1 9:0-1 10:0-1 5:1");
    }

    #[test]
    fn lanes_that_never_meet_run_deepest_first() {
        assert_eq!(schedule("oracle", &["1c 20 21", "1c 30 31"]), "1:0-1 20:0 21:0 30:1 31:1");
    }
}
