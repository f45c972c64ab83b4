//! `dws`: dynamic warp subdivision, a branch may split the warp into parts that run independently.
//!
//! Meng, Tarjan and Skadron, *Dynamic warp subdivision for integrated branch and memory divergence tolerance* (ISCA
//! 2010).
//!
//! Rule: a branch at which lanes part *subdivides* the warp where the block at its immediate post-dominator has at most
//! `longest` instructions. This block would run twice if the parts reached it one after another, so it should be short.
//! The parts don't wait for each other, and reunite when they stand at one pc. Any other branch makes a join at the
//! post-dominator, as in `multi-path`. Its parts wait there, and only parts that wait for the same join reunite. The
//! part with the smallest pc runs; with `order=turns` the parts take turns, an instruction each. Lanes that wait for a
//! lock are a part of their own.
//!
//! It reconverges as `minpc` does where it subdivides, and by chance with `order=turns`: parts that take turns keep
//! their distance unless one of them waits. (In the paper they reunite while a memory access stalls one part. A trace
//! has no such stalls.) It fails where a part runs ahead for long. It deadlocks where a lane that holds a lock waits in
//! a join for one that wants it.
//!
//! With `placement=structured` joins stand where compilers for GPUs let lanes wait, and `longest` counts the block
//! there.
//!
//! *Limitation*: warps are subdivided at branches only, not at cache misses; post-dominators as in `ipdom`.
//!
//! Worked example: `1b 2 3 4b 5` and `1b 4b 5`, where the block at 4 is short: lane 1 is met at 4: 1 (both), 2, 3 (lane
//! 0), 4, 5 (both). With `order=turns` the parts keep their distance: 2 (lane 0), 4 (lane 1), 3 (lane 0), 5 (lane 1),
//! then 4 and 5 (lane 0).

use crate::mechanisms::paths::{Order, Paths};
use crate::mechanisms::splits::Splits;
use crate::{Entry, Family, Parameter, Placement, Values};

pub(crate) const ENTRY: Entry = Entry {
    name: "dws",
    family: Family::SeveralWarps,
    rule: "Branches split the warp into parts that run independently and reunite at equal pcs; where that could cost \
         much, the parts wait for each other.",
    source: "Meng et al. 2010",
    file: file!(),
    parameters: &[
        Parameter {
            name: "longest",
            values: Values::Number(0, u32::MAX as i64),
            default: 50,
            help: "a branch subdivides if the block where its parts would wait for each other has at most this many \
                 instructions",
        },
        Parameter {
            name: "order",
            values: Values::OneOf(&["pc", "turns"]),
            default: 0,
            help: "which part runs: the one with the smallest pc, or each in turn",
        },
        Placement::PARAMETER,
    ],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, _| {
        let order = [Order::Pc, Order::Turns][settings.choice("order")];
        let placement = Placement::of(settings);
        let splits = Splits::new(lanes, Some(settings.count("longest")), placement);
        Box::new(Paths { splits, merge: true, parts_at_locks: true, ..Paths::new(lanes, order, placement) })
    },
};

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    const LANES: [&str; 2] = ["1b 2 3 4b 5", "1b 4b 5"];

    #[test]
    fn parts_that_take_turns_keep_their_distance() {
        assert_eq!(schedule("dws:order=turns", &LANES), "1:0-1 2:0 4:1 3:0 5:1 4:0 5:0");
    }

    #[test]
    fn parts_reunite_at_one_pc() {
        assert_eq!(schedule("dws", &LANES), "1:0-1 2:0 3:0 4:0-1 5:0-1");
    }

    #[test]
    fn parts_wait_for_each_other_where_the_block_after_them_is_long() {
        // The block at 4 has one instruction. Parts that take turns keep their distance behind it, unless they wait.
        assert_eq!(schedule("dws:longest=0,order=turns", &LANES), "1:0-1 2:0 3:0 4:0-1 5:0-1");
        assert_eq!(schedule("dws:longest=1,order=turns", &LANES), "1:0-1 2:0 4:1 3:0 5:1 4:0 5:0");
    }

    #[test]
    fn turns_of_a_loop_whose_end_is_doubled_meet_under_structured_placement() {
        // A turn is 1, then 2 and 3 or 5 and 6; 3 and 6 go back to 1 or leave for 9.
        let lanes = ["1b 5 6b 1b 2 3b 9", "1b 2 3b 1b 5 6b 9"];
        assert_eq!(
            schedule("dws:longest=0,placement=structured", &lanes),
            "1:0-1 2:1 3:1 5:0 6:0 1:0-1 2:0 3:0 5:1 6:1 9:0-1"
        );
        assert_eq!(schedule("dws:longest=0", &lanes).matches("1:").count(), 3);
    }

    #[test]
    fn a_part_that_runs_ahead_is_not_waited_for() {
        // The else arm lies after the join: with the smallest pc first, lane 0 runs ahead, unless the parts wait.
        let lanes = ["1 2b 3 4", "1 2b 9b 3 4"];
        assert_eq!(schedule("dws", &lanes), "1:0-1 2:0-1 3:0 4:0 9:1 3:1 4:1");
        assert_eq!(schedule("dws:longest=1", &lanes), "1:0-1 2:0-1 9:1 3:0-1 4:0-1");
    }
}
