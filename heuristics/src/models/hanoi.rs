//! `hanoi`: a stack of warp splits, and barrier registers in which lanes wait for each other.
//!
//! Shoushtary, Tubella and González, *Control flow management in modern GPUs* (arXiv 2407.02944, 2024): a mechanism
//! that does what NVIDIA's Turing does with its control-flow instructions. Forward progress: Diamos et al., *Execution
//! of divergent threads using a convergence barrier* (US patent 10,067,768, 2018).
//!
//! Rule: the model keeps a stack of warp splits; a split is lanes that run together. The top one runs. `placement` says
//! where a branch's lanes wait. These instructions act on the stack and on the barrier registers:
//!
//! | instruction | what it does |
//! |---|---|
//! | BSSY, at the branch | puts the mask of the split's lanes and the place at which they wait into a barrier register |
//! | the branch | where lanes part, each side is a split; the fall-through is on top, or else the smallest pc |
//! | BSYNC, at the place | blocks a lane until all of the mask that are left in it are blocked; then they are one split, on top |
//! | BREAK, where a lane leaves a loop | takes it off the masks of the loop's registers |
//! | EXIT | takes a lane off all masks |
//! | BMOV | spills a register to a general one, where a split holds more than `registers`; that costs no fetch, and is counted in `barrier_spills` |
//! | WARPSYNC | a barrier of the program: lanes wait there for others in whatever split |
//! | YIELD, in a loop | takes the lanes that go round once more, while others leave it, off the masks of the registers behind the loop and around it; others run first |
//!
//! `ptxas` puts YIELD where an exit of the loop hangs on what an atomic operation of the loop found: a lock that is
//! tried, a compare-and-swap that is tried again. Lanes that wait for a lock of the program are in such a loop. So a
//! short lock costs more than itself: lanes that had to wait for it are not awaited behind it, up to the next barrier
//! of the program. With lanes made to meet behind the lock (`--locks simt`) it costs itself alone. The rule was found
//! by counters of an NVIDIA H200 (docs/fidelity.md).
//!
//! It collects lanes at predicted points, as `barrier` does (docs/speculation.md). Each such barrier that lanes have
//! joined takes one of their registers, a soft one three (Damani et al., figure 6), beside that behind its region.
//!
//! In an inner loop with an atomic operation that decides no exit, `ptxas` has lanes yield too if the loop or code
//! behind it calls a function, as divisions and roots do. Others run until they come there, so lanes meet at the
//! loop's header across iterations of the loop around it, as at a predicted point.
//!
//! It reconverges where `ipdom` with the same `placement` does, and needs as many fetches where no lane yields. Which
//! lanes share a mask depends on where they went, never on which split runs first. It fails where `ipdom` does. It
//! never deadlocks: when all lanes that can run are blocked, the lanes that wait elsewhere count as arrived. So the
//! lanes blocked at the innermost register go on.
//!
//! *Limitation*: as that of `ipdom`. The paper's second stack, of reconvergences, is a list of registers here. A BSSY
//! whose lanes do not part is left out. So is one for the lanes that leave a loop while nobody has left it. NVIDIA does
//! not say which side of a branch goes on first; no count depends on it where no lane waits for a lock and none is
//! collected.
//!
//! Worked example: `1b 2 3b 7 8`, `1b 2 3b 8` and `1b 5 8`: at 1 a register gets all three lanes, until 8. The lower
//! side goes on: 2 and 3 (lanes 0 and 1). At 3 no other register is filled, since those lanes wait at 8 already. 7
//! (lane 0), then the next split of the stack: 5 (lane 2), and 8 (all).

use crate::mechanisms::convergence::Convergence;
use crate::mechanisms::predication;
use crate::warp::reconvergence::Branch;
use crate::{
    Choice, Entry, Family, Heuristic, LaneSet, Lead, Order, Parameter, Placement, Ran, Tally, Together, Values,
    WarpView,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "hanoi",
    family: Family::Barriers,
    rule: "A stack of warp splits; lanes that part wait for each other in barrier registers, as on NVIDIA's Turing.",
    source: "Shoushtary et al. 2024",
    file: file!(),
    parameters: &[
        Parameter {
            name: "registers",
            values: Values::Number(1, 256),
            default: 16,
            help: "how many barrier registers there are; masks beyond that number are spilled, and counted in \
                 barrier_spills",
        },
        Placement::STRUCTURED_BY_DEFAULT,
        predication::PARAMETER,
    ],
    needs_control_flow: true,
    runs_blocks: false,
    build: |settings, lanes, program| {
        let registers = settings.count("registers") as usize;
        let warp = Convergence::new(lanes, registers, Placement::of(settings), program);
        Box::new(Hanoi { warp: warp.with_yields(program, lanes) })
    },
};

struct Hanoi {
    warp: Convergence,
}

impl Heuristic for Hanoi {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        loop {
            self.warp.settle(warp);
            if self.warp.yield_at_locks(warp) {
                self.warp.settle(warp);
            }
            let splits = self.warp.splits();
            let can_run = |i: &usize| !splits[*i].lanes.is_disjoint(&warp.ready());
            // The last of equals; who waits at a soft point for nobody lets others come there first.
            if let Some(top) = (0..splits.len()).filter(can_run).max_by_key(|i| !splits[*i].passes) {
                let top = self.warp.part_from_spinning(top, warp);
                return Choice::Run(self.warp.ready_of(top, warp));
            }
            if !self.warp.clear_a_register(warp) {
                return Choice::Deadlock(warp.live());
            }
        }
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        self.warp.ran(Branch::of(warp, ran));
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        let runs_on = self.warp.runs_on(lanes, Order::None, lead);
        self.warp.stop_where_lanes_yield(lanes, lead, &warp.program().control_flow);
        runs_on
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.warp.is_whole()
    }

    fn ran(&mut self, run: &Together) {
        self.warp.ran_run(run);
    }

    fn tally(&self) -> Tally {
        let yields = Some(self.warp.yields).filter(|yields| *yields > 0);
        let Convergence { sync_fetches, sync_instructions, spills, .. } = self.warp;
        Tally { barrier_spills: Some(spills), yields, sync_fetches, sync_instructions, ..self.warp.tally() }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, tally};

    #[test]
    fn the_worked_example() {
        let lanes = ["1b 2 3b 7 8", "1b 2 3b 8", "1b 5 8"];
        assert_eq!(schedule("hanoi", &lanes), "1:0-2 2:0-1 3:0-1 7:0 5:2 8:0-2");
    }

    #[test]
    fn who_leaves_a_loop_is_taken_off_the_registers_inside() {
        // A turn is 1, then 2 and 3 or 5 and 6; 3 and 6 go back to 1 or leave for 9.
        let lanes = ["1b 2 3b 1b 2 3b 9", "1b 5 6b 1b 5 6b 9", "1b 5 6b 9"];
        assert_eq!(schedule("hanoi", &lanes), "1:0-2 2:0 3:0 5:1-2 6:1-2 1:0-1 2:0 3:0 5:1 6:1 9:0-2");
        // At the post-dominator of the branch at 1 all wait behind the loop.
        assert_eq!(schedule("hanoi:placement=binary", &lanes).matches("1:").count(), 3);
    }

    #[test]
    fn masks_beyond_the_registers_are_spilled() {
        // Three branches inside of each other, with a join each.
        let lanes = ["1b 2b 3b 4 5 6b 7b 8", "1b 2b 3b 5 6b 7b 8", "1b 2b 6b 7b 8", "1b 7b 8"];
        assert_eq!(tally("hanoi", &lanes).barrier_spills, Some(0));
        assert_eq!(tally("hanoi:registers=2", &lanes).barrier_spills, Some(1));
        assert_eq!(tally("hanoi:registers=1", &lanes).barrier_spills, Some(2));
        assert_eq!(schedule("hanoi:registers=1", &lanes), schedule("hanoi", &lanes));
    }

    #[test]
    fn an_early_return_reconverges_after_the_call() {
        let lanes = ["1c 20 21b 22r 2", "1c 20 21b 30 31r 2"];
        assert_eq!(schedule("hanoi", &lanes), "1:0-1 20:0-1 21:0-1 22:0 30:1 31:1 2:0-1");
    }

    #[test]
    fn a_recursive_call_does_not_reconverge_in_the_wrong_frame() {
        let lanes = ["1c 20 21b 22c 20 21b 23r 23r 2", "1c 20 21b 23r 2"];
        assert_eq!(schedule("hanoi", &lanes), "1:0-1 20:0-1 21:0-1 22:0 20:0 21:0 23:0 23:0-1 2:0-1");
    }
}
