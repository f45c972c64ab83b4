//! The memory of the Long family: the last block entries of each lane, and the priority that follows from them.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::{Lane, LaneSet, Together, WarpView};

/// The most block entries that a lane can be told to remember.
pub(crate) const MOST: u32 = 64;

/// Each lane's last N block-entry pcs; zeros at first.
pub(crate) struct History {
    entries: usize,
    /// By lane, one after another, its last entries; the oldest stands where `oldest` says.
    rings: Vec<Pc>,
    oldest: Vec<u8>,
    /// By pc: the lanes that remember it. Of pcs that nobody remembers some may be left.
    known: FxHashMap<Pc, LaneSet>,
}

impl History {
    pub(crate) fn new(entries: u32, lanes: usize) -> History {
        let entries = entries as usize;
        History {
            entries,
            rings: vec![Pc(0); entries * lanes],
            oldest: vec![0; lanes],
            known: std::iter::once((Pc(0), LaneSet::first(lanes))).collect(),
        }
    }

    /// The lanes enter a block at this pc.
    pub(crate) fn record(&mut self, lanes: LaneSet, pc: Pc) {
        // Lanes that run together mostly forget the same.
        let mut forgotten: Option<(Pc, LaneSet)> = None;
        for lane in lanes {
            let ring = &mut self.rings[lane.index() * self.entries..][..self.entries];
            let at = &mut self.oldest[lane.index()];
            let oldest = std::mem::replace(&mut ring[usize::from(*at)], pc);
            *at = if usize::from(*at) + 1 == self.entries { 0 } else { *at + 1 };
            if oldest == pc || ring.contains(&oldest) {
                continue;
            }
            match &mut forgotten {
                Some((same, lanes)) if *same == oldest => lanes.insert(lane),
                _ => {
                    if let Some((pc, lanes)) = forgotten.replace((oldest, LaneSet::only(lane))) {
                        self.forget(pc, lanes);
                    }
                }
            }
        }
        if let Some((pc, lanes)) = forgotten {
            self.forget(pc, lanes);
        }
        let known = self.known.entry(pc).or_default();
        *known = *known | lanes;
    }

    fn forget(&mut self, pc: Pc, lanes: LaneSet) {
        if let Some(known) = self.known.get_mut(&pc) {
            *known = *known - lanes;
        }
    }

    /// The lanes entered the blocks of a run together, led at its beginning by `reference`. The first segment counts
    /// unless that lane goes on inside a block.
    pub(crate) fn record_run(&mut self, run: &Together, reference: Option<Lane>) {
        let goes_on = reference.is_some_and(|l| run.lanes.contains(l) && !run.first_starts_block.contains(l));
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
    fn in_order(&self, lane: Lane) -> impl Iterator<Item = &Pc> + Clone {
        let ring = &self.rings[lane.index() * self.entries..][..self.entries];
        let (later, earlier) = ring.split_at(usize::from(self.oldest[lane.index()]));
        earlier.iter().chain(later)
    }

    /// The ready lanes of the highest priority. A lane's priority is how many other lanes (finished ones too) remember
    /// the pc at which it stands: those have been where it is, so it is behind them.
    pub(crate) fn furthest_behind(&self, warp: &WarpView) -> LaneSet {
        let mut best = (0, LaneSet::EMPTY);
        for group in warp.groups() {
            let know = self.known.get(&group.pc).copied().unwrap_or_default();
            let all = know.len();
            // A lane that itself remembers its pc has one lane fewer to count.
            for (lanes, priority) in [(group.lanes - know, all), (group.lanes & know, all.saturating_sub(1))] {
                if lanes.is_empty() {
                } else if best.1.is_empty() || priority > best.0 {
                    best = (priority, lanes);
                } else if priority == best.0 {
                    best.1 = best.1 | lanes;
                }
            }
        }
        best.1
    }
}

/// Whether the group chosen last goes on: its reference lane is ready and inside a basic block.
pub(crate) fn goes_on(warp: &WarpView, reference: Option<Lane>) -> Option<LaneSet> {
    let lane = reference.filter(|l| warp.ready().contains(*l) && !warp.lane(*l).starts_block)?;
    Some(warp.mates(lane))
}
