//! The memory of the Long family: the last block entries of each lane, and the priority that follows from them.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::{Lane, LaneSet, Lead, MAX_LANES, Order, Together, WarpView};

/// The most block entries that a lane can be told to remember.
pub(crate) const MOST: u32 = 64;

/// Each lane's last N block-entry pcs; zeros at first. Beside them, where the lanes stand, so that a choice looks at
/// those lanes only whose priority may have changed.
pub(crate) struct History {
    entries: usize,
    /// By lane, one after another, its last entries, each the number of a pc; the oldest stands where `oldest` says.
    rings: Vec<u32>,
    oldest: Vec<u8>,
    numbers: FxHashMap<Pc, u32>,
    /// By number of a pc.
    known: Vec<Known>,
    /// By lane: the number of the pc at which it stood when it was looked at last.
    at: Vec<u32>,
    /// By lane: its priority then.
    priorities: Vec<u8>,
    /// By priority: the lanes that had it.
    by_priority: Vec<LaneSet>,
    /// The priorities that lanes had: a bit for each.
    taken: LaneSet,
    /// The lanes that may have moved since, or may have another priority.
    changed: LaneSet,
    /// The lanes that were ready then: others have run under another model since, if at all.
    were_ready: LaneSet,
}

/// What is known of a pc.
struct Known {
    pc: Pc,
    /// The lanes that remember it.
    by: LaneSet,
    /// How many they are.
    count: usize,
    /// The lanes that stood there when they were looked at last.
    standing: LaneSet,
}

impl Known {
    fn new(pc: Pc) -> Known {
        Known { pc, by: LaneSet::EMPTY, count: 0, standing: LaneSet::EMPTY }
    }

    fn set(&mut self, by: LaneSet) {
        (self.by, self.count) = (by, by.len());
    }
}

impl History {
    pub(crate) fn new(entries: u32, lanes: usize) -> History {
        let (entries, all) = (entries as usize, LaneSet::first(lanes));
        let mut zero = Known { standing: all, ..Known::new(Pc(0)) };
        zero.set(all);
        let mut by_priority = vec![LaneSet::EMPTY; MAX_LANES];
        by_priority[0] = all;
        History {
            entries,
            rings: vec![0; entries * lanes],
            oldest: vec![0; lanes],
            numbers: std::iter::once((Pc(0), 0)).collect(),
            known: vec![zero],
            at: vec![0; lanes],
            priorities: vec![0; lanes],
            by_priority,
            taken: LaneSet::only(Lane(0)),
            changed: all,
            were_ready: LaneSet::EMPTY,
        }
    }

    /// The number of the pc, which is likely to have this one.
    fn number(&mut self, pc: Pc, likely: u32) -> u32 {
        if self.known[likely as usize].pc == pc {
            return likely;
        }
        let next = self.known.len() as u32;
        let number = *self.numbers.entry(pc).or_insert(next);
        if number == next {
            self.known.push(Known::new(pc));
        }
        number
    }

    /// The lanes enter a block at this pc, and run on from there.
    pub(crate) fn record(&mut self, lanes: LaneSet, pc: Pc) {
        let Some(first) = lanes.lowest() else { return };
        let number = self.number(pc, self.at[first.index()]);
        // Lanes that run together mostly forget the same.
        let mut forgotten: Option<(u32, LaneSet)> = None;
        for lane in lanes {
            let ring = &mut self.rings[lane.index() * self.entries..][..self.entries];
            let at = &mut self.oldest[lane.index()];
            let oldest = std::mem::replace(&mut ring[usize::from(*at)], number);
            *at = if usize::from(*at) + 1 == self.entries { 0 } else { *at + 1 };
            if oldest == number || ring.contains(&oldest) {
                continue;
            }
            match &mut forgotten {
                Some((same, lanes)) if *same == oldest => lanes.insert(lane),
                _ => {
                    if let Some((number, lanes)) = forgotten.replace((oldest, LaneSet::only(lane))) {
                        self.remembers(number, |by| by - lanes);
                    }
                }
            }
        }
        if let Some((number, lanes)) = forgotten {
            self.remembers(number, |by| by - lanes);
        }
        self.remembers(number, |by| by | lanes);
        self.changed = self.changed | lanes;
    }

    /// Other lanes remember a pc: those that stand there have another priority.
    fn remembers(&mut self, number: u32, of: impl Fn(LaneSet) -> LaneSet) {
        let known = &mut self.known[number as usize];
        known.set(of(known.by));
        self.changed = self.changed | known.standing;
    }

    /// The lanes entered the blocks of a run together, led at its beginning by `reference`. The first segment counts
    /// unless that lane goes on inside a block.
    pub(crate) fn record_run(&mut self, run: &Together, reference: Option<Lane>) {
        let goes_on = reference.is_some_and(|l| run.lanes.contains(l) && !run.first_starts_block.contains(l));
        self.changed = self.changed | run.lanes;
        let mut last: Vec<Pc> = run.block_entries_backwards(!goes_on).take(self.entries).collect();
        last.reverse();
        for pc in last {
            self.record(run.lanes, pc);
        }
    }

    /// Whether all these lanes remember the same.
    pub(crate) fn alike(&self, lanes: LaneSet) -> bool {
        let mut rings = lanes.iter().map(|l| self.in_order(l));
        let Some(first) = rings.next() else { return true };
        rings.all(|ring| ring.eq(first.clone()))
    }

    /// What a lane remembers, the oldest first.
    fn in_order(&self, lane: Lane) -> impl Iterator<Item = &u32> + Clone {
        let ring = &self.rings[lane.index() * self.entries..][..self.entries];
        let (later, earlier) = ring.split_at(usize::from(self.oldest[lane.index()]));
        earlier.iter().chain(later)
    }

    /// The ready lanes of the highest priority. A lane's priority is how many other lanes (finished ones too) remember
    /// the pc at which it stands: those have been where it is, so it is behind them.
    pub(crate) fn furthest_behind(&mut self, warp: &WarpView) -> LaneSet {
        let ready = warp.ready();
        let changed = (self.changed | (ready - self.were_ready)) & ready;
        (self.changed, self.were_ready) = (LaneSet::EMPTY, ready);
        for lane in changed {
            self.look_at(lane, warp.lane(lane).pc);
        }
        // The priorities of lanes that are not ready are left where they are.
        let mut taken = self.taken;
        while let Some(priority) = taken.highest() {
            let lanes = self.by_priority[priority.index()] & ready;
            if !lanes.is_empty() {
                return lanes;
            }
            taken.remove(priority);
        }
        LaneSet::EMPTY
    }

    /// The group chosen last, where it goes on: its reference lane is ready and inside a basic block.
    pub(crate) fn goes_on(&mut self, warp: &WarpView, reference: Option<Lane>) -> Option<LaneSet> {
        let lane = reference.filter(|l| warp.ready().contains(*l) && !warp.lane(*l).starts_block)?;
        let lanes = warp.mates(lane);
        self.changed = self.changed | lanes;
        Some(lanes)
    }

    /// The lane stands at this pc.
    fn look_at(&mut self, lane: Lane, pc: Pc) {
        let l = lane.index();
        let before = self.at[l];
        let number = self.number(pc, before);
        if number != before {
            self.known[before as usize].standing.remove(lane);
            self.known[number as usize].standing.insert(lane);
            self.at[l] = number;
        }
        let known = &self.known[number as usize];
        // A lane that itself remembers its pc has one lane fewer to count: so there are at most 255.
        let priority = (known.count - usize::from(known.by.contains(lane))) as u8;
        let before = std::mem::replace(&mut self.priorities[l], priority);
        if before != priority {
            let left = &mut self.by_priority[usize::from(before)];
            left.remove(lane);
            if left.is_empty() {
                self.taken.remove(Lane(before));
            }
            self.by_priority[usize::from(priority)].insert(lane);
            self.taken.insert(Lane(priority));
        }
    }
}

/// The lanes of a group that goes on inside a basic block run on until they come to others, or to the block's end.
pub(crate) fn leads(lead: &mut Lead) {
    lead.restart(Order::None);
    lead.stop_at_blocks();
    lead.stop_at_others();
}
