//! The memory of the Long family: the last block entries, or instructions, of each lane, and the choice that follows
//! from them.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::{Choice, Lane, LaneSet, LaneState, Lead, Order, Together, WarpView};

/// The most block entries that a lane can be told to remember.
pub(crate) const MOST: u32 = 64;

/// What lanes remember, and which of equal priority runs.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// They remember where they entered blocks, and take turns in lane order, each with the mates of higher numbers.
    BlocksInTurns,
    /// So they do, and remember each instruction that they run.
    InstructionsInTurns,
    /// They remember where they entered blocks; the one with the smallest key runs, among equals the lowest, with all
    /// of its mates.
    Smallest(fn(&LaneState) -> (i64, Pc)),
}

/// A model of the Long family.
pub(crate) struct Memory {
    history: History,
    rule: Rule,
    /// Where lanes take turns: those of equal priority that have not run yet.
    queue: LaneSet,
    /// The lane that led the last choice.
    reference: Option<Lane>,
}

impl Memory {
    /// Of so many lanes, which remember so many entries.
    pub(crate) fn new(n: u32, lanes: usize, rule: Rule) -> Memory {
        Memory { history: History::new(n as usize, lanes), rule, queue: LaneSet::EMPTY, reference: None }
    }

    /// Whether it chooses again at each instruction.
    pub(crate) fn is_by_instruction(&self) -> bool {
        matches!(self.rule, Rule::InstructionsInTurns)
    }

    pub(crate) fn choose(&mut self, warp: &WarpView) -> Choice {
        // Inside a block the lane that led goes on.
        let goes_on = |lane: &Lane| warp.ready().contains(*lane) && !warp.lane(*lane).starts_block;
        if let Some(lane) = self.reference.filter(goes_on).filter(|_| !self.is_by_instruction()) {
            return Choice::Run(warp.mates(lane));
        }
        let (reference, lanes) = match self.rule {
            Rule::BlocksInTurns | Rule::InstructionsInTurns => {
                self.queue = self.queue & warp.ready();
                if self.queue.is_empty() {
                    self.queue = self.history.furthest_behind(warp);
                }
                let Some(reference) = self.queue.lowest() else { return Choice::Run(LaneSet::EMPTY) };
                let lanes = warp.mates(reference).from_lane(reference);
                self.queue = self.queue - lanes;
                (reference, lanes)
            }
            Rule::Smallest(key) => {
                let furthest = self.history.furthest_behind(warp);
                let smallest = furthest.iter().min_by_key(|lane| key(warp.lane(*lane)));
                let Some(reference) = smallest else { return Choice::Run(LaneSet::EMPTY) };
                (reference, warp.mates(reference))
            }
        };
        self.history.record(lanes, warp.lane(reference).pc);
        self.reference = Some(reference);
        Choice::Run(lanes)
    }

    /// Inside of a block nothing is remembered, and the mates of the lane that led go on with it.
    pub(crate) fn runs_on(&self, lead: &mut Lead) -> bool {
        lead.restart(Order::None);
        lead.stop_at_blocks();
        lead.stop_at_others();
        !self.is_by_instruction()
    }

    /// Whether lanes that are all at one pc stay together.
    pub(crate) fn stays_together(&self, live: LaneSet) -> bool {
        // Lanes that remember the same have the same priority, so the lowest leads and all go with it.
        matches!(self.rule, Rule::Smallest(_)) || self.queue.is_empty() && self.history.alike(live)
    }

    /// The lanes ran a run of segments together. Where blocks are remembered, the first segment counts unless the lane
    /// that led goes on inside a block; who led does not matter beyond: a new choice follows.
    pub(crate) fn ran(&mut self, run: &Together) {
        let within = |l: Lane| run.lanes.contains(l) && !run.first_starts_block.contains(l);
        let goes_on = self.reference.is_some_and(within);
        let entries = self.history.entries;
        let mut last: Vec<Pc> = match self.is_by_instruction() {
            false => run.block_entries_backwards(!goes_on).take(entries).collect(),
            true => run.pcs_backwards().take(entries).collect(),
        };
        last.reverse();
        last.into_iter().for_each(|pc| self.history.record(run.lanes, pc));
    }
}

/// Each lane's last N pcs; zeros at first.
struct History {
    entries: usize,
    /// By lane, one after another, its last entries; the oldest stands where `oldest` says.
    rings: Vec<Pc>,
    oldest: Vec<u8>,
    /// By pc: the lanes that remember it, finished ones too.
    by: FxHashMap<Pc, LaneSet>,
}

impl History {
    fn new(entries: usize, lanes: usize) -> History {
        History {
            entries,
            rings: vec![Pc(0); entries * lanes],
            oldest: vec![0; lanes],
            by: std::iter::once((Pc(0), LaneSet::first(lanes))).collect(),
        }
    }

    /// The lanes remember a pc.
    fn record(&mut self, lanes: LaneSet, pc: Pc) {
        for lane in lanes {
            let ring = &mut self.rings[lane.index() * self.entries..][..self.entries];
            let at = &mut self.oldest[lane.index()];
            let forgotten = std::mem::replace(&mut ring[usize::from(*at)], pc);
            *at = (*at + 1) % self.entries as u8;
            if forgotten != pc
                && !ring.contains(&forgotten)
                && let Some(by) = self.by.get_mut(&forgotten)
            {
                by.remove(lane);
            }
        }
        let by = self.by.entry(pc).or_default();
        *by = *by | lanes;
    }

    /// Whether all these lanes remember the same.
    fn alike(&self, lanes: LaneSet) -> bool {
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
    fn furthest_behind(&self, warp: &WarpView) -> LaneSet {
        let (mut furthest, mut most) = (LaneSet::EMPTY, 0);
        for group in warp.groups() {
            let by = self.by.get(&group.pc).copied().unwrap_or_default();
            // A lane that itself remembers its pc has one lane fewer to count.
            let others = group.lanes - by;
            let (lanes, priority) = if others.is_empty() { (group.lanes, by.len() - 1) } else { (others, by.len()) };
            if priority > most {
                (furthest, most) = (lanes, priority);
            } else if priority == most {
                furthest = furthest | lanes;
            }
        }
        furthest
    }
}
