//! A scheduler of warp splits, which `dual-path`, `multi-path` and `dws` share.
//!
//! The splits and their joins are those of [`Splits`]; the models differ in which splits compete (the entries of a
//! stack, or all), in which of them goes first, and in whether splits that stand at one pc become one.

use crate::mechanisms::splits::{Split, Splits};
use crate::warp::reconvergence::Branch;
use crate::{Choice, Extent, Heuristic, LaneSet, Lead, Placement, Ran, Tally, Together, WarpView};

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
    /// The splits in groups: the first group with one that can run is scheduled.
    pub(crate) entries: fn(&[Split]) -> Vec<Vec<usize>>,
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
        Paths { splits, entries: all, order, merge: false, parts_at_locks: false, schedulable: 1, paths: 0 }
    }

    /// Whether a lane of the split can run now.
    fn can_run(&self, split: &Split, warp: &WarpView) -> bool {
        let spins = !split.lanes.is_disjoint(&warp.waiting_for_lock());
        !split.lanes.is_disjoint(&warp.ready()) && (self.parts_at_locks || !spins)
    }

    /// Of these splits the one that goes first.
    fn first(&self, splits: &[Split], among: &[usize], warp: &WarpView) -> Option<usize> {
        let can_run = among.iter().filter(|s| self.can_run(&splits[**s], warp));
        let ready = can_run.filter_map(|s| Some((*s, (splits[*s].lanes & warp.ready()).lowest()?)));
        let key = |split: usize, pc: trace_format::Pc| match self.order {
            Order::Pc => pc.0,
            Order::Turns => splits[split].turn,
        };
        ready.min_by_key(|(split, lane)| (key(*split, warp.lane(*lane).pc), *lane)).map(|(split, _)| split)
    }
}

fn all(splits: &[Split]) -> Vec<Vec<usize>> {
    vec![(0..splits.len()).collect()]
}

impl Heuristic for Paths {
    fn extent(&self) -> Extent {
        match self.order {
            Order::Pc => Extent::Segment,
            Order::Turns => Extent::Instruction,
        }
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        loop {
            self.splits.settle_all(warp);
            let splits = self.splits.all();
            for entry in (self.entries)(splits) {
                if let Some(first) = self.first(splits, &entry, warp) {
                    if self.parts_at_locks {
                        self.splits.part_from_spinning(first, warp);
                    }
                    let lanes =
                        if self.merge { self.splits.merge(first, warp) } else { self.splits.all()[first].lanes };
                    let splits = self.splits.all();
                    self.schedulable = entry.iter().filter(|s| self.can_run(&splits[**s], warp)).count() as u64;
                    return Choice::Run(ready_together(warp, lanes));
                }
                let waiting = entry.iter().fold(LaneSet::EMPTY, |all, s| all | splits[*s].lanes);
                let for_lock = waiting & warp.waiting_for_lock();
                if !for_lock.is_empty() {
                    return Choice::Deadlock(for_lock);
                }
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
        let splits = self.splits.all();
        let Some(own) = splits.iter().position(|split| split.lanes == lanes) else { return false };
        lead.restart(crate::Order::Pc);
        self.splits.ends(own, lead);
        let entries = (self.entries)(splits);
        let rivals = entries.iter().find(|entry| entry.contains(&own)).map_or(&[][..], Vec::as_slice);
        for rival in rivals.iter().filter(|rival| **rival != own) {
            let ready = splits[*rival].lanes & warp.ready();
            if let Some(lane) = ready.lowest().filter(|_| self.can_run(&splits[*rival], warp)) {
                warp.stop_behind(lane, lead);
            }
        }
        if self.merge {
            // Lanes that wait there are taken along.
            let others = splits.iter().filter(|split| split.lanes != lanes);
            others.filter_map(|split| split.lanes.lowest()).for_each(|lane| lead.stop_at(warp.lane(lane).pc));
        }
        true
    }

    fn stays_together(&self, _warp: &WarpView) -> bool {
        self.splits.is_whole()
    }

    fn ran_together(&mut self, run: &Together) {
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
