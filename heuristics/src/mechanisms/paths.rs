//! A scheduler of warp splits, which `dual-path`, `multi-path` and `dws` share.
//!
//! The splits and their joins are those of [`Splits`]; the models differ in which splits compete (the entries of a
//! stack, or all), in which of them goes first, and in whether splits that stand at one pc become one.

use trace_format::Pc;

use crate::mechanisms::splits::{Split, Splits};
use crate::warp::reconvergence::Branch;
use crate::{Choice, Extent, Heuristic, Lane, LaneSet, Lead, Placement, Ran, Seats, Tally, Together, WarpView};

/// Which of the splits that can run goes first. Among equals the one with the lowest lane does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The one with the smallest pc.
    Pc,
    /// The one that ran longest ago: they take turns, an instruction each.
    Turns,
}

/// A model of splits.
pub(crate) struct Paths {
    pub(crate) splits: Splits,
    /// Whether the splits compete by rank: those of the highest rank one of which can run, as on top of a stack. Else
    /// all do.
    pub(crate) by_rank: bool,
    pub(crate) order: Order,
    /// Whether splits at one pc that lead to the same join become one.
    pub(crate) merge: bool,
    /// Whether those of a split's lanes that wait for a lock become a split of their own; else the split can't run.
    pub(crate) parts_at_locks: bool,
    /// How many paths could have run when the last choice was made.
    pub(crate) schedulable: u64,
    /// That, summed over fetches.
    pub(crate) paths: u64,
}

impl Paths {
    /// All splits compete, and none merge.
    pub(crate) fn new(lanes: usize, order: Order, placement: Placement) -> Paths {
        let splits = Splits::new(lanes, None, placement);
        Paths { splits, by_rank: false, order, merge: false, parts_at_locks: false, schedulable: 1, paths: 0 }
    }

    /// Whether a lane of the split can run now.
    fn can_run(&self, split: &Split, warp: &WarpView) -> bool {
        if split.standing().is_some() {
            return true;
        }
        let spins = !split.lanes.is_disjoint(&warp.waiting_for_lock());
        !split.lanes.is_disjoint(&warp.ready()) && (self.parts_at_locks || !spins)
    }

    /// The pc and the lowest of the lanes of a split that can run now; none where none can.
    fn stands(&self, split: &Split, warp: &WarpView) -> Option<(Pc, Lane)> {
        split.standing().or_else(|| {
            let lowest = (split.lanes & warp.ready()).lowest().filter(|_| self.can_run(split, warp))?;
            Some((warp.lane(lowest).pc, lowest))
        })
    }

    /// The splits that compete with each other: all, or those of a rank.
    fn compete(&self, rank: u64) -> impl Iterator<Item = (usize, &Split)> {
        self.splits.all().iter().enumerate().filter(move |(_, split)| !self.by_rank || split.rank == rank)
    }

    /// The highest rank below this one, or of all: that of the splits that compete next.
    fn rank_below(&self, before: Option<u64>) -> Option<u64> {
        if !self.by_rank {
            return before.is_none().then_some(0);
        }
        let ranks = self.splits.all().iter().map(|split| split.rank);
        ranks.filter(|rank| before.is_none_or(|before| *rank < before)).max()
    }

    /// Of the splits of this rank the one that goes first.
    fn first(&self, rank: u64, warp: &WarpView) -> Option<usize> {
        let key = |split: &Split, pc: Pc| match self.order {
            Order::Pc => pc.0,
            Order::Turns => split.turn,
        };
        let stands = |(index, split)| self.stands(split, warp).map(|(pc, lane)| ((key(split, pc), lane), index));
        self.compete(rank).filter_map(stands).min().map(|(_, index)| index)
    }
}

impl Heuristic for Paths {
    fn extent(&self, _: &Seats) -> Extent {
        match self.order {
            Order::Pc => Extent::Segment,
            Order::Turns => Extent::Instruction,
        }
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        loop {
            self.splits.settle_all(warp);
            let mut rank = self.rank_below(None);
            while let Some(here) = rank {
                if let Some(first) = self.first(here, warp) {
                    if self.parts_at_locks {
                        self.splits.part_from_spinning(first, warp);
                    }
                    let lanes =
                        if self.merge { self.splits.merge(first, warp) } else { self.splits.all()[first].lanes };
                    self.schedulable = self.compete(here).filter(|(_, split)| self.can_run(split, warp)).count() as u64;
                    return Choice::Run(ready_together(warp, lanes));
                }
                let waiting = self.compete(here).fold(LaneSet::EMPTY, |all, (_, split)| all | split.lanes);
                let for_lock = waiting & warp.waiting_for_lock();
                if !for_lock.is_empty() {
                    return Choice::Deadlock(for_lock);
                }
                rank = self.rank_below(rank);
            }
            if !self.splits.give_up_a_join(warp) {
                return Choice::Deadlock(warp.live());
            }
        }
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        self.paths += self.schedulable * ran.since_chosen;
        self.splits.ran(Branch::of(warp, ran));
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        if self.order != Order::Pc {
            return false;
        }
        let own = |split: &&Split| split.lanes == lanes;
        let Some((index, own)) = self.splits.all().iter().enumerate().find(|(_, split)| own(split)) else {
            return false;
        };
        lead.restart(crate::Order::Pc);
        self.splits.ends(index, lead);
        let rivals = self.compete(own.rank).filter(|(rival, _)| *rival != index);
        rivals.filter_map(|(_, rival)| self.stands(rival, warp)).for_each(|(pc, _)| lead.stop_behind_pc(pc));
        if self.merge {
            // Who stands there is taken along, whether it waits or not.
            lead.stop_at_others();
            (warp.live() - warp.ready()).iter().for_each(|lane| lead.stop_at(warp.lane(lane).pc));
        }
        true
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.splits.is_whole()
    }

    fn ran(&mut self, run: &Together) {
        self.paths += run.instructions();
        self.splits.ran(Branch::of_run(run));
    }

    fn tally(&self) -> Tally {
        Tally { paths: Some(self.paths), ..Tally::default() }
    }
}

/// Those of a split's lanes that are ready, at one pc: where lanes were freed from a wait, they may stand elsewhere
/// than the others.
fn ready_together(warp: &WarpView, lanes: LaneSet) -> LaneSet {
    let ready = lanes & warp.ready();
    ready.lowest().map_or(LaneSet::EMPTY, |lane| ready & warp.mates(lane))
}
