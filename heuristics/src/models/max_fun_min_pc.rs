//! `maxfun-minpc`: most calls open first.
//!
//! Milanez et al., *Thread scheduling and memory coalescing for dynamic vectorization of SPMD workloads* (Parallel
//! Computing 40, 2014).
//!
//! Rule: the ready lane with the highest call level runs; among equals, by `mode`: 1 the smallest pc; 2 the largest
//! stack pointer, then the smallest pc; 3 the smallest stack pointer, then the smallest pc. All ready lanes at its pc
//! run with it.
//!
//! A stub of the linkage table is not a function. It is a part of the call that leads there: lanes in a stub run on at
//! once.
//!
//! It reconverges as `minsp-pc` does, with frames counted instead of measured: frames of different size don't mislead
//! it. It fails where `minsp-pc` does, and where a lane leaves frames without returning.
//!
//! Worked example: lane 0 calls a function at 20, lane 1 waits for it at 5: `1 2b 3c 20 21r 5` and `1 2b 5` give
//! 1, 2 (both), 3, 20, 21 (lane 0), 5 (both).

use std::cmp::Reverse;

use crate::mechanisms::minimum::with_smallest;
use crate::{Choice, Entry, Family, Heuristic, Lane, LaneSet, Lead, Order, Parameter, Values, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "maxfun-minpc",
    family: Family::MinPc,
    rule: "The lanes at the highest call level run; mode decides among equals.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[Parameter {
        name: "mode",
        values: Values::Number(1, 3),
        default: 1,
        help: "among equal levels: 1 smallest pc; 2 largest stack pointer, then pc; 3 smallest stack pointer, then pc",
    }],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, _, _| Box::new(MaxFunMinPc { mode: settings.count("mode") }),
};

struct MaxFunMinPc {
    mode: u32,
}

impl Heuristic for MaxFunMinPc {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        if let Some(lanes) = warp.in_stub() {
            return Choice::Run(lanes);
        }
        let (_, lanes) = match self.mode {
            2 => with_smallest(warp, warp.ready(), |l| (Reverse(l.level), -l.sp, l.pc)),
            3 => with_smallest(warp, warp.ready(), |l| (Reverse(l.level), l.sp, l.pc)),
            _ => with_smallest(warp, warp.ready(), |l| (Reverse(l.level), 0, l.pc)),
        };
        Choice::Run(lanes)
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        let in_stub = |lane: &Lane| warp.lane(*lane).in_stub;
        if self.mode != 1 || (warp.ready() - lanes).iter().any(|lane| in_stub(&lane)) {
            return false;
        }
        lead.restart(Order::LevelAndPc);
        lead.stop_at_stubs();
        // Where others stand they run with the chosen ones, whatever their levels.
        lead.stop_at_others();
        for group in warp.groups().iter().filter(|group| group.lanes != lanes) {
            let highest = group.lanes.iter().max_by_key(|lane| warp.lane(*lane).level);
            highest.into_iter().for_each(|lane| warp.stop_behind(lane, lead));
        }
        true
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn the_lane_inside_a_call_runs_first() {
        let lanes = ["1 2b 3c 20 21r 5", "1 2b 5"];
        assert_eq!(schedule("maxfun-minpc", &lanes), "1:0-1 2:0-1 3:0 20:0 21:0 5:0-1");
    }

    #[test]
    fn a_stub_is_a_part_of_its_call() {
        // Lane 0 calls a function of the replay by the stub at 30, lane 1 one that is left out: then it is at 4 again,
        // at level 1.
        let lanes = ["1 2b 3c 30s 20 21r 6", "1 2b 4c 40s 5- 6"];
        assert_eq!(schedule("maxfun-minpc", &lanes), "1:0-1 2:0-1 3:0 30:0 20:0 21:0 4:1 40:1 5:1 6:0-1");
    }

    #[test]
    fn modes_differ_where_stacks_do() {
        // After 8, which pushes, lane 0 stands deeper than lane 1 does at 10; their levels are equal.
        let lanes = ["1 2b 8p 9 10", "1 2b 6 7 10"];
        assert_eq!(schedule("maxfun-minpc:mode=1", &lanes), "1:0-1 2:0-1 6:1 7:1 8:0 9:0 10:0-1");
        assert_eq!(schedule("maxfun-minpc:mode=2", &lanes), "1:0-1 2:0-1 6:1 7:1 8:0 10:1 9:0 10:0");
        assert_eq!(schedule("maxfun-minpc:mode=3", &lanes), "1:0-1 2:0-1 6:1 7:1 8:0 9:0 10:0-1");
    }
}
