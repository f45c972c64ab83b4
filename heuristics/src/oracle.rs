//! `oracle`: a greedy look into the future, lanes make for the nearest place that two of them will come to.
//!
//! No paper. The simulator of Milanez et al. (Parallel Computing 40, 2014) has a greedy oracle with parameters of these
//! names; its rule is not published, and this one is ours.
//!
//! Rule: of every ready lane the pieces of blocks are known that begin less than `horizon` instructions ahead; its
//! distance to one is the number of instructions that it runs before it comes there first. A *meeting* is a place with
//! the two lanes nearest to it that don't stand at one pc now; its cost is the sum of their distances less `beta` times
//! the instructions that they run alike from there on, as far as they are known. Of the cheapest meeting (among equals
//! that of the smaller distances, then of the smaller pc) the lane that is further away runs (the lower one, if none
//! is), with all ready lanes at its pc. Where no two lanes will meet, `minsp-pc` decides.
//!
//! It reconverges wherever two lanes come to one place within the horizon: the one that is there already is never run
//! on. It fails where the nearest meeting spoils a better one, since it never looks at all lanes at once, and where a
//! detour is longer than the horizon. It is no bound: for two lanes `optimum` is the best that can be done, for more of
//! them `lower_bound` is below the best.
//!
//! Worked example: `1b 9b 3 4 5` and `1b 3 4 5`, the arm at 9 after the join at 3: lane 1 stands at 3, lane 0 will come
//! there after one instruction, so lane 0 runs 9, and 3, 4 and 5 are shared. `minpc` would run lane 1 ahead.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::{Ahead, Choice, Entry, Family, Heuristic, Lane, Parameter, PlaceId, Values, WarpView, min_sp_pc};

pub(crate) const ENTRY: Entry = Entry {
    name: "oracle",
    family: Family::Bounds,
    rule: "Knows the future of every lane up to a horizon; lanes make for the nearest place that two of them will come to.",
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
            help: "how many instructions of distance one instruction in common is worth",
        },
    ],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, _, _| {
        Box::new(Oracle {
            horizon: settings.count("horizon"),
            beta: settings.number("beta"),
            meetings: FxHashMap::default(),
        })
    },
};

struct Oracle {
    horizon: u32,
    beta: i64,
    /// Of the choice under way; kept for its memory.
    meetings: FxHashMap<PlaceId, Nearest>,
}

/// A lane that will come to a place.
#[derive(Clone, Copy)]
struct Comer {
    distance: u32,
    lane: Lane,
    /// Where it stands.
    pc: Pc,
    /// Which of the pieces of its future the place is.
    index: usize,
}

/// The nearest two that don't stand at one pc.
#[derive(Clone, Copy)]
struct Nearest {
    first: Comer,
    second: Option<Comer>,
}

impl Nearest {
    fn add(&mut self, new: Comer) {
        if new.pc == self.first.pc {
            if new.distance < self.first.distance {
                self.first = new;
            }
        } else if new.distance < self.first.distance {
            (self.first, self.second) = (new, Some(self.first));
        } else if self.second.is_none_or(|second| new.distance < second.distance) {
            self.second = Some(new);
        }
    }
}

impl Oracle {
    /// The lane that runs next; none where no two will meet.
    fn further_of_cheapest(&mut self, warp: &WarpView) -> Option<Lane> {
        let lanes: Vec<Lane> = warp.ready().iter().collect();
        let futures: Vec<Vec<Ahead>> = lanes.iter().map(|lane| warp.future(*lane, self.horizon)).collect();
        self.meetings.clear();
        for (lane, future) in lanes.iter().zip(&futures) {
            for (index, ahead) in future.iter().enumerate() {
                let new = Comer { distance: ahead.distance, lane: *lane, pc: warp.lane(*lane).pc, index };
                self.meetings
                    .entry(warp.segment(ahead.segment).place)
                    .and_modify(|nearest| nearest.add(new))
                    .or_insert(Nearest { first: new, second: None });
            }
        }
        let future_of = |lane: Lane| lanes.iter().position(|l| *l == lane).map_or(&[][..], |l| &futures[l]);
        let cost = |a: &Comer, b: &Comer| {
            let alike = in_common(warp, &future_of(a.lane)[a.index..], &future_of(b.lane)[b.index..]);
            i64::from(a.distance) + i64::from(b.distance) - self.beta * i64::from(alike)
        };
        let pairs = self.meetings.iter().filter_map(|(place, nearest)| Some((place, nearest.first, nearest.second?)));
        let cheapest = pairs.min_by_key(|(_, a, b)| {
            (cost(a, b), a.distance + b.distance, warp.segment(future_of(a.lane)[a.index].segment).start())
        });
        let (_, a, b) = cheapest?;
        Some(if a.distance == b.distance { a.lane.min(b.lane) } else { b.lane })
    }
}

/// How many instructions two futures begin with in common.
fn in_common(warp: &WarpView, a: &[Ahead], b: &[Ahead]) -> u32 {
    let alike = a.iter().zip(b).map(|(a, b)| (warp.segment(a.segment), warp.segment(b.segment)));
    alike.take_while(|(a, b)| a.place == b.place).map(|(a, _)| a.len() as u32).sum()
}

impl Heuristic for Oracle {
    fn horizon(&self) -> u32 {
        self.horizon
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        if let [only] = warp.groups() {
            return Choice::Run(only.lanes);
        }
        let lane = self.further_of_cheapest(warp).unwrap_or_else(|| min_sp_pc::among(warp, warp.ready()).0);
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
        // Lane 0 comes to 5 at once, and by way of 7 to what lane 1 does from 7 on.
        let lanes = ["1b 5b 7 8 9 10", "1b 7 8 9 10b 5"];
        assert_eq!(schedule("oracle:beta=1", &lanes), "1:0-1 5:0 7:0-1 8:0-1 9:0-1 10:0-1 5:1");
    }

    #[test]
    fn lanes_that_never_meet_run_deepest_first() {
        assert_eq!(schedule("oracle", &["1c 20 21", "1c 30 31"]), "1:0-1 20:0 21:0 30:1 31:1");
    }
}
