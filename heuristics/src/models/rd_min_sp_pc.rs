//! `rd-minsp-pc`: `minsp-pc` that learns where lanes run one after another.
//!
//! Milanez et al., *Thread scheduling and memory coalescing for dynamic vectorization of SPMD workloads* (Parallel
//! Computing 40, 2014) and its simulator.
//!
//! Rule: each pc has a counter of redundancy. It is raised when the pc runs for lanes none of which ran it the time
//! before (the same work, done again). With `decrement=yes` it is lowered (not below 0) when the pc runs for exactly
//! the same lanes. Lanes whose counter is at most the smallest plus `hysteresis` compete by smallest stack pointer,
//! then pc; all do when the smallest counter has reached `threshold`.
//!
//! It reconverges as `minsp-pc` does, and defers code that was seen to run twice, so that lanes can gather before it.
//! It fails when what it learnt no longer holds.
//!
//! Worked example (`hysteresis=0,threshold=8`): two lanes reach 7 twice, lane 1 each time through 9. The first time 7
//! runs for lane 0, then for lane 1, and its counter becomes 1; the second time lane 0 is held back at 7 until lane 1
//! comes.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::models::min_sp_pc;
use crate::{Choice, Entry, Family, Heuristic, Lane, LaneSet, Lead, Parameter, Values, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "rd-minsp-pc",
    family: Family::MinPc,
    rule: "As minsp-pc, but code that was seen to run for one lane after another waits.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[
        Parameter {
            name: "hysteresis",
            values: Values::Number(0, u32::MAX as i64),
            default: 4,
            help: "how far above the smallest counter a lane's counter may be for the lane to compete",
        },
        Parameter {
            name: "threshold",
            values: Values::Number(0, u32::MAX as i64),
            default: 0,
            help: "when the smallest counter has reached this value, all lanes compete",
        },
        Parameter {
            name: "decrement",
            values: Values::YesNo,
            default: 0,
            help: "whether a counter goes down when its pc runs for the same lanes again",
        },
    ],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| {
        Box::new(RdMinSpPc {
            hysteresis: settings.count("hysteresis"),
            threshold: settings.count("threshold"),
            decrement: settings.is_yes("decrement"),
            all: LaneSet::first(lanes),
            seen: FxHashMap::default(),
        })
    },
};

struct RdMinSpPc {
    hysteresis: u32,
    threshold: u32,
    decrement: bool,
    all: LaneSet,
    /// Per pc: the lanes that ran it last (all of them at first), and its counter. Instructions of a segment
    /// always have the same, so the segment's first pc stands for them.
    seen: FxHashMap<Pc, (LaneSet, u32)>,
}

impl RdMinSpPc {
    fn counter(&self, pc: Pc) -> u32 {
        self.seen.get(&pc).map_or(0, |s| s.1)
    }

    /// Whether counters decide nothing: the smallest has always reached a threshold of 0.
    fn all_compete(&self) -> bool {
        self.threshold == 0
    }

    fn candidates(&self, warp: &WarpView) -> LaneSet {
        let least = warp.groups().iter().map(|g| self.counter(g.pc)).min().unwrap_or(0);
        if least >= self.threshold {
            return warp.ready();
        }
        let most = least.saturating_add(self.hysteresis);
        let eligible = warp.groups().iter().filter(|g| self.counter(g.pc) <= most);
        eligible.fold(LaneSet::EMPTY, |all, g| all | g.lanes)
    }

    fn learn(&mut self, pc: Pc, lanes: LaneSet) {
        let (last, counter) = self.seen.entry(pc).or_insert((self.all, 0));
        if last.is_disjoint(&lanes) {
            *counter = counter.saturating_add(1);
        } else if self.decrement && *last == lanes {
            *counter = counter.saturating_sub(1);
        }
        *last = lanes;
    }
}

impl Heuristic for RdMinSpPc {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        if self.all_compete() {
            return Choice::Run(min_sp_pc::among(warp, warp.ready()).1);
        }
        let (reference, lanes): (Lane, LaneSet) = min_sp_pc::among(warp, self.candidates(warp));
        self.learn(warp.lane(reference).pc, lanes);
        Choice::Run(lanes)
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        if self.all_compete() {
            min_sp_pc::leads(warp, lanes, lead);
        }
        self.all_compete()
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.all_compete()
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    const LANES: [&str; 2] = ["1 2b 7 8b 20b 2b 7 8b 30", "1 2b 9b 7 8b 20b 2b 9b 7 8b 30"];

    #[test]
    fn code_that_ran_twice_is_held_back_the_next_time() {
        let first = "1:0-1 2:0-1 7:0 8:0 9:1 7:1 8:1 20:0-1 2:0-1";
        assert_eq!(schedule("rd-minsp-pc:hysteresis=0,threshold=8", &LANES), format!("{first} 9:1 7:0-1 8:0-1 30:0-1"));
    }

    #[test]
    fn with_threshold_zero_it_is_minsp_pc() {
        assert_eq!(schedule("rd-minsp-pc", &LANES), schedule("minsp-pc", &LANES));
        assert!(schedule("minsp-pc", &LANES).ends_with("2:0-1 7:0 8:0 9:1 7:1 8:1 30:0-1"));
    }
}
