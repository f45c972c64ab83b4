//! `dual-path`: a SIMT stack whose top entry holds two paths, both of which can be scheduled.
//!
//! Rhu and Erez, *The dual-path execution model for efficient GPU control flow* (HPCA 2013).
//!
//! Rule: as `ipdom`, but the two paths of the branch taken last share the top of the stack and may take turns: of the
//! paths that can run, the one with the smaller pc does. A branch within one path hides the other until its own paths
//! have joined. A branch with more than two targets is a chain of pairs.
//!
//! It reconverges where `ipdom` does, and needs as many fetches. Its gain is that two paths hide each other's latency
//! (`path_parallelism` counts the paths that could have been scheduled, per fetch). It fails where `ipdom` does. It
//! deadlocks where lanes of both paths on top, or of the only one left, spin on a lock. Where both wait at a barrier,
//! the paths below run. Where none of those can run, the lanes in the innermost join go on without the missing ones.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: `1b 2b 3b 5b 9`, `1b 2b 4 5b 9` and `1b 7 9`: after 1, the paths at 2 (lanes 0 and 1) and 7 (lane 2)
//! are on top, and 2 has the smaller pc. Its own branch hides lane 2: 3 (lane 0), 4 (lane 1), 5 (both), then 7 (lane 2)
//! and 9 (all).

use crate::mechanisms::paths::{Order, Paths};
use crate::mechanisms::predication;
use crate::{Entry, Family, Placement};

pub(crate) const ENTRY: Entry = Entry {
    name: "dual-path",
    family: Family::Stack,
    rule: "As ipdom, but the two paths on top of the stack can both be scheduled.",
    source: "Rhu and Erez 2013",
    file: file!(),
    parameters: &[Placement::PARAMETER, predication::PARAMETER],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, _| {
        Box::new(Paths { by_rank: true, ..Paths::new(lanes, Order::Pc, Placement::of(settings)) })
    },
};

#[cfg(test)]
mod tests {
    use crate::example::{schedule, tally};

    #[test]
    fn a_branch_in_one_path_hides_the_other() {
        // 7 shares the top with 2, but 2 goes first, and then 13 and 14 are on top; 15 shares it with 7 again.
        let lanes = ["1b 2b 13b 15b 19", "1b 2b 14 15b 19", "1b 7b 19"];
        assert_eq!(schedule("dual-path", &lanes), "1:0-2 2:0-1 13:0 14:1 7:2 15:0-1 19:0-2");
        assert_eq!(schedule("multi-path", &lanes), "1:0-2 2:0-1 7:2 13:0 14:1 15:0-1 19:0-2");
    }

    #[test]
    fn two_of_three_targets_share_the_top() {
        let lanes = ["1b 2b 9", "1b 4b 9", "1b 6 9"];
        assert_eq!(schedule("dual-path", &lanes), "1:0-2 4:1 6:2 2:0 9:0-2");
    }

    #[test]
    fn the_worked_example() {
        let lanes = ["1b 2b 3b 5b 9", "1b 2b 4 5b 9", "1b 7 9"];
        assert_eq!(schedule("dual-path", &lanes), "1:0-2 2:0-1 3:0 4:1 5:0-1 7:2 9:0-2");
        // In the order of the fetches: 1 + 2 + 2 + 1 + 2 + 1 + 1. The path at 7 is hidden at 3 and 4, but not from
        // multi-path.
        assert_eq!(tally("dual-path", &lanes).paths, Some(10));
        assert_eq!(tally("multi-path", &lanes).paths, Some(12));
    }
}
