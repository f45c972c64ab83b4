//! The SIMT stack behind `ipdom`, and behind `tbc` and `lwm`, which run it for a whole block of warps.

use trace_format::Pc;

use crate::warp::reconvergence::{Branch, Points, Reconvergence, by_pc};
use crate::{Choice, LaneSet, Lead, Order, Placement, WarpView};

#[derive(Clone, Copy)]
struct StackEntry {
    lanes: LaneSet,
    at: Reconvergence,
    /// The lanes that it had when it was made, or after its last branch.
    of: LaneSet,
    /// Whether it was made for the lanes that leave a loop.
    for_exits: bool,
}

/// What the stack lets run.
pub(crate) struct Next {
    /// Ready lanes, all at one pc.
    pub(crate) lanes: LaneSet,
    /// The lanes that their entry had after its last branch: none of the bottom entry, which is as old as the program.
    pub(crate) of: Option<LaneSet>,
}

pub(crate) struct Stack {
    /// The bottom entry, which never reconverges, is never popped; the top is last.
    entries: Vec<StackEntry>,
    last: Option<Branch>,
    placement: Placement,
    /// The most entries that there were when lanes ran.
    deepest: usize,
}

impl Stack {
    pub(crate) fn new(lanes: usize, placement: Placement) -> Stack {
        let all = LaneSet::first(lanes);
        let bottom = StackEntry { lanes: all, at: Reconvergence { pc: None, level: 0 }, of: all, for_exits: false };
        Stack { entries: vec![bottom], last: None, placement, deepest: 1 }
    }

    /// The lanes that run next.
    ///
    /// # Errors
    /// The deadlock, where none can.
    pub(crate) fn next(&mut self, warp: &WarpView) -> Result<Next, Choice> {
        self.settle(warp);
        self.deepest = self.deepest.max(self.entries.len());
        let mut above = LaneSet::EMPTY;
        for (height, entry) in self.entries.iter().enumerate().rev() {
            let lanes = entry.lanes - above;
            // A lane that waits for a lock spins; the lane that has it waits, in this entry or below, for the spinning
            // ones to come along.
            let spinning = lanes & warp.waiting_for_lock();
            if !spinning.is_empty() {
                return Err(Choice::Deadlock(spinning));
            }
            let ready = lanes & warp.ready();
            if let Some(lane) = ready.lowest() {
                return Ok(Next { lanes: ready & warp.mates(lane), of: (height > 0).then_some(entry.of) });
            }
            above = above | lanes;
        }
        Err(Choice::Deadlock(warp.live()))
    }

    /// The most entries that there were when lanes ran, the bottom one included: 1 where none ever parted.
    pub(crate) fn deepest(&self) -> u64 {
        self.deepest as u64
    }

    /// These lanes have run; the branch is the last instruction of that.
    pub(crate) fn ran(&mut self, branch: Branch) {
        self.last = Some(branch);
    }

    /// Until when lanes that are all of an entry run on that no other is above, except for lanes that wait at barriers
    /// of the program: see [`crate::Heuristic::runs_on`].
    pub(crate) fn runs_on(&self, lanes: LaneSet, lead: &mut Lead) -> bool {
        let mut above = LaneSet::EMPTY;
        let runs = self.entries.iter().rposition(|entry| {
            let own = entry.lanes - above;
            above = above | entry.lanes;
            !own.is_disjoint(&lanes)
        });
        let Some(height) = runs.filter(|height| self.entries[*height].lanes - self.above(*height) == lanes) else {
            return false;
        };
        lead.restart(Order::None);
        // Lanes that leave a loop may be awaited by any entry; none is by the bottom one.
        let first = if self.placement == Placement::Binary { height } else { 1 };
        self.entries[first.min(height)..=height].iter().for_each(|entry| entry.at.ends(lead));
        true
    }

    /// Whether no lane waits for others.
    pub(crate) fn is_whole(&self) -> bool {
        self.entries.len() == 1
    }

    /// Brings the stack to where the lanes of the entry that runs stand at one pc: the highest that has a lane which
    /// waits at no barrier of the program.
    fn settle(&mut self, warp: &WarpView) {
        let mut height = self.entries.len() - 1;
        loop {
            let above = self.above(height);
            if self.placement != Placement::Binary {
                self.leave_loops(warp, height, above);
            }
            let entry = &mut self.entries[height];
            entry.lanes = entry.lanes & warp.live();
            let at = entry.at;
            // The bottom entry never reconverges.
            let waits = if height == 0 { LaneSet::EMPTY } else { entry.lanes - above };
            let arrived: LaneSet = waits.iter().filter(|lane| at.is_reached(warp.lane(*lane))).collect();
            if !arrived.is_empty() {
                // Some went on and some have arrived: a branch all the same, one side of which is over.
                entry.lanes = entry.lanes - arrived;
                entry.of = entry.lanes;
            }
            // Once nobody has left the loop, those that go on need not be kept apart.
            let (is_empty, for_exits, lanes) = (entry.lanes.is_empty(), entry.for_exits, entry.lanes);
            let needless = for_exits && above.is_empty() && lanes == self.entries[height - 1].lanes & warp.live();
            if (is_empty && height > 0) || needless {
                self.entries.remove(height);
                height -= 1;
                continue;
            }
            let lanes = lanes - above;
            // Mostly all stand in one group.
            if !lanes.lowest().is_none_or(|lane| lanes.is_subset(&warp.mates(lane))) {
                let parts = by_pc(warp, lanes);
                if parts.len() > 1 {
                    self.part(warp, height, lanes, parts);
                    height = self.entries.len() - 1;
                    continue;
                }
            }
            let can_go_on = !(lanes & (warp.ready() | warp.waiting_for_lock())).is_empty();
            if can_go_on || height == 0 {
                return;
            }
            height -= 1;
        }
    }

    /// Takes the lanes of an entry off it, and off all down to the one that reconverges where they stand: they have
    /// left a loop whose other lanes wait for each other further up.
    fn leave_loops(&mut self, warp: &WarpView, height: usize, above: LaneSet) {
        for lane in self.entries[height].lanes - above {
            let state = warp.lane(lane);
            let behind = (1..height).find(|&below| self.entries[below].at.is_reached(state));
            for entry in behind.map_or(&mut [][..], |below| &mut self.entries[below..=height]) {
                entry.lanes.remove(lane);
                entry.of = entry.lanes;
            }
        }
    }

    /// The lanes of the entries above this one.
    fn above(&self, height: usize) -> LaneSet {
        self.entries[height + 1..].iter().fold(LaneSet::EMPTY, |all, entry| all | entry.lanes)
    }

    /// These lanes of an entry, those that are in none above it, stand at several pcs: an entry each, above one
    /// that waits at the post-dominator.
    fn part(&mut self, warp: &WarpView, height: usize, lanes: LaneSet, mut parts: Vec<(Pc, LaneSet)>) {
        let entry = self.entries[height];
        // Lanes may also disagree without a branch of their own: when a function's return joined lanes of several
        // callers.
        let branch = self.last.filter(|b| !b.lanes.is_disjoint(&lanes));
        let stays = || Points { first: entry.at, around: Vec::new() };
        let begin = || Points::of_beginnings(warp, lanes, self.placement).unwrap_or_else(stays);
        let points = branch.map_or_else(begin, |b| b.points(warp, self.placement));
        let at = points.first;
        let mut place = height + 1;
        // One that reconverges there already is replaced, unless it also waits for lanes above.
        if at == entry.at && height > 0 && entry.lanes == lanes {
            self.entries.remove(height);
            place = height;
        }
        // Lanes that leave a loop wait behind it, unless an entry below reconverges there already.
        let has = |point: &Reconvergence| *point == entry.at || self.entries[1..place].iter().any(|e| e.at == *point);
        let new = points.new_around(has).iter().rev();
        let of_exits = new.map(|&at| StackEntry { lanes, at, of: lanes, for_exits: true });
        let of_exits: Vec<StackEntry> = of_exits.collect();
        let falls_to = branch.and_then(|b| b.falls_to);
        parts.sort_by_key(|(pc, _)| (Some(*pc) != falls_to, *pc));
        let parts = parts.into_iter().map(|(_, lanes)| StackEntry { lanes, at, of: lanes, for_exits: false });
        self.entries.splice(place..place, of_exits.into_iter().chain(parts));
        self.last = None;
    }
}
