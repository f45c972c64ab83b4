//! `multi-path`: every path of every branch can be scheduled, and joins count who is still missing.
//!
//! ElTantawy, Ma, O'Connor and Aamodt, *A scalable multi-path microarchitecture for efficient GPU control flow* (HPCA
//! 2014).
//!
//! Rule: one table holds the warp splits (lanes, pc, where they reconverge), another the joins (lanes that have
//! arrived, lanes that are missing). When a split's lanes part, each next pc becomes a split that reconverges at the
//! branch's immediate post-dominator in its function. A split that reaches it waits in the join until nobody is
//! missing. Of all splits that can run, the one with the smallest pc does. With `merge=yes`, splits at one pc that wait
//! for the same join become one.
//!
//! It reconverges where `ipdom` does, and needs as many fetches, whatever the order. Its gain is that paths hide each
//! other's latency (`path_parallelism` counts the paths that could have been scheduled, per fetch). With luck in the
//! order, merging finds the meeting places of unstructured control flow. It fails where `ipdom` does. It deadlocks
//! where lanes of one split want one lock: those that don't get it spin, and the lane that got it waits for them to
//! leave the loop with it. Where all splits wait at a barrier, the lanes in the innermost join go on without them.
//!
//! *Limitation*: as that of `ipdom`.
//!
//! Worked example: `if (a || b) X; Y` with a at 1, b at 3, X at 5, Y at 8. `1b 5 8`, `1b 3b 5 8` and `1b 3b 8` give
//! 1 (all), 3 (lanes 1 and 2), 5 (lane 0), 5 (lane 1), 8 (all); with merging, 5 runs once for lanes 0 and 1.

use crate::mechanisms::paths::{Order, Paths};
use crate::mechanisms::predication;
use crate::{Entry, Family, Parameter, Placement, Values};

pub(crate) const ENTRY: Entry = Entry {
    name: "multi-path",
    family: Family::Stack,
    rule: "As ipdom, but all paths can be scheduled; they wait for each other in a table of joins.",
    source: "ElTantawy et al. 2014",
    file: file!(),
    parameters: &[
        Parameter {
            name: "merge",
            values: Values::YesNo,
            default: 0,
            help: "whether splits at one pc that wait for the same join become one",
        },
        Placement::PARAMETER,
        predication::PARAMETER,
    ],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, _| {
        let paths = Paths::new(lanes, Order::Pc, Placement::of(settings));
        Box::new(Paths { merge: settings.is_yes("merge"), ..paths })
    },
};

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    const UNSTRUCTURED: [&str; 3] = ["1b 5 8", "1b 3b 5 8", "1b 3b 8"];

    #[test]
    fn lanes_wait_for_those_still_missing() {
        assert_eq!(schedule("multi-path", &UNSTRUCTURED), "1:0-2 3:1-2 5:0 5:1 8:0-2");
    }

    #[test]
    fn merging_finds_an_early_meeting_place() {
        assert_eq!(schedule("multi-path:merge=yes", &UNSTRUCTURED), "1:0-2 3:1-2 5:0-1 8:0-2");
    }

    #[test]
    fn a_join_inside_an_arm_comes_before_the_join_of_the_arms() {
        let lanes = ["1b 2b 3b 5b 9", "1b 2b 4 5b 9", "1b 7 9"];
        assert_eq!(schedule("multi-path", &lanes), "1:0-2 2:0-1 3:0 4:1 5:0-1 7:2 9:0-2");
    }

    #[test]
    fn lanes_that_leave_a_loop_wait_at_its_exit() {
        let lanes = ["1 2b 1 2b 1 2b 5", "1 2b 1 2b 5", "1 2b 5"];
        assert_eq!(schedule("multi-path", &lanes), "1:0-2 2:0-2 1:0-1 2:0-1 1:0 2:0 5:0-2");
    }
}
