//! `long-minpc`: `long`, with ties broken by the smallest pc.
//!
//! Milanez et al., *Thread scheduling and memory coalescing for dynamic vectorization of SPMD workloads* (Parallel
//! Computing 40, 2014).
//!
//! Rule: at a block's start, among the lanes whose pc most other lanes remember, the one with the smallest pc runs,
//! with all ready lanes at its pc; inside a block the chosen lane goes on.
//!
//! It reconverges where `minpc` does while memories say nothing, and where `long` does when they say something.
//! It fails when a memory misleads: in a loop, the lane that went round again stands where the others were.
//!
//! Worked example: `1 2b 9b 3 4` and `1 2b 3 4`: after 2 nobody remembers 3 or 9; 3 is smaller, so lane 1 runs 3 and 4
//! and finishes; lane 0 follows alone.

use crate::models::long::{self, PARAMETER};
use crate::warp::history::Rule;
use crate::{Entry, Family};

pub(crate) const ENTRY: Entry = Entry {
    name: "long-minpc",
    family: Family::MinPc,
    rule: "At each block, among the lanes whose pc most other lanes remember, the smallest pc runs.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[PARAMETER],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| long::of(settings.count("n"), lanes, Rule::Smallest(|lane| (0, lane.pc))),
};

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn the_smallest_pc_breaks_a_tie() {
        assert_eq!(schedule("long-minpc", &["1 2b 9b 3 4", "1 2b 3 4"]), "1:0-1 2:0-1 3:1 4:1 9:0 3:0 4:0");
    }
}
