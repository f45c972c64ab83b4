//! `long-minsp-pc`: `long`, with ties broken by the deepest stack, then the smallest pc.
//!
//! Milanez et al., *Thread scheduling and memory coalescing for dynamic vectorization of SPMD workloads* (Parallel
//! Computing 40, 2014).
//!
//! Rule: at a block's start, among the lanes whose pc most other lanes remember, the one with the smallest stack
//! pointer, then pc, runs, with all ready lanes at its pc; inside a block the chosen lane goes on.
//!
//! It reconverges as `minsp-pc` while memories say nothing, and as `long` when they say something. It fails when a
//! memory misleads, as in `long-minpc`.
//!
//! Worked example: lane 0 calls a function at 20, lane 1 waits for it at 5: `1 2b 3c 20 21r 5` and `1 2b 5`. After 2
//! nobody remembers anything useful, 3 is smallest and runs; then the callee, whose stack is deeper; then 5 is shared.

use crate::models::long::{self, PARAMETER};
use crate::warp::history::Rule;
use crate::{Entry, Family};

pub(crate) const ENTRY: Entry = Entry {
    name: "long-minsp-pc",
    family: Family::MinPc,
    rule: "At each block, among the lanes whose pc most other lanes remember, the smallest stack pointer runs, then the smallest pc.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[PARAMETER],
    needs_control_flow: false,
    runs_blocks: false,
    build: |settings, lanes, _| long::of(settings.count("n"), lanes, Rule::Smallest(|lane| (lane.sp, lane.pc))),
};

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn the_deepest_stack_breaks_a_tie() {
        let lanes = ["1 2b 3c 20 21r 5", "1 2b 5"];
        assert_eq!(schedule("long-minsp-pc", &lanes), "1:0-1 2:0-1 3:0 20:0 21:0 5:0-1");
        assert_eq!(schedule("long-minpc", &lanes), "1:0-1 2:0-1 3:0 5:1 20:0 21:0 5:0");
    }
}
