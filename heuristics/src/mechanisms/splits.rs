//! Warp splits that wait for each other at immediate post-dominators: the tables behind [`crate::mechanisms::paths`].
//!
//! A *split* is lanes that run together. When they part at a branch, each next pc becomes a split, and a *join* stands
//! for where they meet again: lanes that come there are kept in it until no split is left that leads to it, and are
//! then a split again. Joins form a tree: the split that parted led to a join itself, and so will the joined lanes.

use trace_format::Pc;

use crate::warp::reconvergence::{Branch, Points, Reconvergence, by_pc};
use crate::{Lane, LaneSet, Lead, Placement, WarpView};

/// Lanes that run together: those that are ready stand at one pc.
pub(crate) struct Split {
    pub(crate) lanes: LaneSet,
    /// The join to which they lead.
    join: usize,
    /// When it was made, counted in pairs of paths: the last two paths of the branch taken last have the highest.
    pub(crate) rank: u64,
    /// When it ran last or was made, counted in choices.
    pub(crate) turn: u64,
    last: Option<Branch>,
    /// Where all of its lanes stand, ready, and the lowest of them; none where they may have moved since it was
    /// settled.
    standing: Option<(Pc, Lane)>,
}

impl Split {
    /// Where all of its lanes stand, ready, and the lowest of them, as far as that is known.
    #[inline]
    pub(crate) fn standing(&self) -> Option<(Pc, Lane)> {
        self.standing
    }
}

struct Join {
    at: Reconvergence,
    parent: usize,
    /// The rank of the split that parted, which the joined lanes get.
    rank: u64,
    arrived: LaneSet,
    /// Whether it was made for the lanes that leave a loop.
    for_exits: bool,
    /// Splits and joins that lead here; 0: the join is free to be used again.
    leading_here: usize,
}

/// The splits of a warp.
pub(crate) struct Splits {
    splits: Vec<Split>,
    /// The first is the end of the program, where nobody arrives.
    joins: Vec<Join>,
    ranks: u64,
    turns: u64,
    /// Branches whose lanes reconverge at a block of at most so many instructions make no join.
    longest: Option<u32>,
    placement: Placement,
}

impl Splits {
    /// All lanes in one split. Branches whose lanes reconverge at a block of at most `longest` instructions will make
    /// no join.
    pub(crate) fn new(lanes: usize, longest: Option<u32>, placement: Placement) -> Splits {
        let at = Reconvergence { pc: None, level: 0 };
        let end = Join { at, parent: 0, rank: 0, arrived: LaneSet::EMPTY, for_exits: false, leading_here: 1 };
        let all = Split { lanes: LaneSet::first(lanes), join: 0, rank: 0, turn: 0, last: None, standing: None };
        Splits { splits: vec![all], joins: vec![end], ranks: 0, turns: 0, longest, placement }
    }

    /// The splits. Their order means nothing.
    pub(crate) fn all(&self) -> &[Split] {
        &self.splits
    }

    /// Settles the splits: of none have all lanes finished, and each one's lanes stand at one pc.
    pub(crate) fn settle_all(&mut self, warp: &WarpView) {
        let mut i = 0;
        while i < self.splits.len() {
            let removed = self.splits[i].standing.is_none() && self.settle(i, warp);
            // Splits that came to be meanwhile are at the end, and so is the one that took the place of a removed one.
            i += usize::from(!removed);
        }
    }

    /// Lets lanes that have arrived go on without those that they wait for: the join made last that holds a ready one.
    /// Whether there was one.
    pub(crate) fn give_up_a_join(&mut self, warp: &WarpView) -> bool {
        let holds_ready = |join: &Join| !(join.arrived & warp.ready()).is_empty();
        let held = (0..self.joins.len()).filter(|j| holds_ready(&self.joins[*j])).max_by_key(|j| self.joins[*j].rank);
        let Some(join) = held else { return false };
        let lanes = std::mem::take(&mut self.joins[join].arrived);
        let (parent, rank) = (self.joins[join].parent, self.joins[join].rank);
        self.push(lanes, parent, rank, None);
        true
    }

    /// Unites the split with all others that lead to the same join and stand at the same pc in a frame of the same
    /// level.
    pub(crate) fn merge(&mut self, split: usize, warp: &WarpView) -> LaneSet {
        let place = |s: &Split| s.lanes.lowest().map(|l| (s.join, warp.lane(l).pc, warp.lane(l).level));
        let here = place(&self.splits[split]);
        let mut lanes = self.splits[split].lanes;
        for other in (0..self.splits.len()).filter(|s| *s != split) {
            if place(&self.splits[other]) == here {
                lanes = lanes | std::mem::take(&mut self.splits[other].lanes);
                self.splits[other].standing = None;
            }
        }
        let own = &mut self.splits[split];
        if own.lanes != lanes {
            (own.lanes, own.standing) = (lanes, None);
        }
        lanes
    }

    /// Makes a split of its own of those lanes of the split that wait for a lock, where others of it are ready; it
    /// leads to the same join.
    pub(crate) fn part_from_spinning(&mut self, split: usize, warp: &WarpView) {
        let Split { lanes, join, rank, .. } = self.splits[split];
        let spinning = lanes & warp.waiting_for_lock();
        if !spinning.is_empty() && !lanes.is_disjoint(&warp.ready()) {
            self.splits[split].lanes = lanes - spinning;
            self.push(spinning, join, rank, None);
        }
    }

    /// These lanes, all of one split, have run; the branch is the last instruction of that.
    pub(crate) fn ran(&mut self, branch: Branch) {
        self.turns += 1;
        if let Some(split) = self.splits.iter_mut().find(|s| !s.lanes.is_disjoint(&branch.lanes)) {
            split.turn = self.turns;
            split.last = Some(branch);
            split.standing = None;
        }
    }

    /// Where the lanes of a split that run on reach a join.
    pub(crate) fn ends(&self, split: usize, lead: &mut Lead) {
        let mut join = self.splits[split].join;
        while join != 0 {
            self.joins[join].at.ends(lead);
            // Lanes that leave a loop reach a join further out.
            join = if self.placement == Placement::Binary { 0 } else { self.joins[join].parent };
        }
    }

    /// Whether all lanes are in one split that waits for no others.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(&self.splits[..], [only] if only.join == 0)
    }

    /// Brings a split to where its lanes stand at one pc; whether it was removed.
    fn settle(&mut self, index: usize, warp: &WarpView) -> bool {
        let split = &mut self.splits[index];
        split.lanes = split.lanes & warp.live();
        let (mut join, mut lanes) = (split.join, split.lanes);
        let own = join;
        // Lanes that leave a loop reach a join further out, past those inside.
        while join != 0 && (join == own || self.placement != Placement::Binary) {
            let at = self.joins[join].at;
            let arrived: LaneSet = lanes.iter().filter(|l| at.is_reached(warp.lane(*l))).collect();
            lanes = lanes - arrived;
            self.joins[join].arrived = self.joins[join].arrived | arrived;
            join = self.joins[join].parent;
        }
        let split = &mut self.splits[index];
        split.lanes = lanes;
        // Once nobody has left the loop, those that go on need not be kept apart.
        while self.joins[split.join].for_exits && self.joins[split.join].leading_here == 1 {
            let needless = split.join;
            if !self.joins[needless].arrived.is_empty() || lanes.is_empty() {
                break;
            }
            split.join = self.joins[needless].parent;
            self.joins[needless].leading_here = 0;
        }
        let Some(lowest) = lanes.lowest() else {
            self.remove(index, warp);
            return true;
        };
        if lanes.is_subset(&warp.mates(lowest)) {
            split.standing = Some((warp.lane(lowest).pc, lowest));
            return false;
        }
        // Lanes that wait stand elsewhere once they are freed.
        let parts = by_pc(warp, lanes);
        if parts.len() == 1 {
            return false;
        }
        self.part(index, parts, warp);
        true
    }

    /// The split's lanes stand at several pcs: a split each, which lead to the branch's reconvergence.
    fn part(&mut self, index: usize, mut parts: Vec<(Pc, LaneSet)>, warp: &WarpView) {
        let (lanes, join, rank) = (self.splits[index].lanes, self.splits[index].join, self.splits[index].rank);
        // Lanes may also disagree without a branch of their own: when a function's return joined lanes of several
        // callers.
        let branch = self.splits[index].last.filter(|b| !b.lanes.is_disjoint(&lanes));
        let stays = || Points { first: self.joins[join].at, around: Vec::new() };
        let begin = || Points::of_beginnings(warp, lanes, self.placement).unwrap_or_else(stays);
        let points = branch.map_or_else(begin, |b| b.points(warp, self.placement));
        let at = points.first;
        let leads_to = if at == self.joins[join].at || branch.is_some_and(|b| self.makes_no_join(b, warp)) {
            join
        } else {
            // Lanes that leave a loop wait behind it, unless a join further out stands there already.
            let new = points.new_around(|point| self.leads_to(join, *point)).iter().rev();
            let new = new.map(|at| (*at, true)).chain([(at, false)]);
            let mut parent = join;
            for (at, for_exits) in new {
                parent = self.open(Join { at, parent, rank, arrived: LaneSet::EMPTY, for_exits, leading_here: 0 });
            }
            parent
        };
        let falls_to = branch.and_then(|b| b.falls_to);
        parts.sort_by_key(|(pc, _)| (Some(*pc) != falls_to, *pc));
        let pairs = parts.len().div_ceil(2) as u64;
        for (i, (_, lanes)) in parts.into_iter().rev().enumerate() {
            let rank = self.ranks + pairs - i as u64 / 2;
            self.push(lanes, leads_to, rank, None);
        }
        self.ranks += pairs;
        self.splits.swap_remove(index);
        self.left(join, warp, None);
    }

    /// Whether this join, or one further out, stands at a place.
    fn leads_to(&self, mut join: usize, at: Reconvergence) -> bool {
        while join != 0 {
            if self.joins[join].at == at {
                return true;
            }
            join = self.joins[join].parent;
        }
        false
    }

    fn makes_no_join(&self, branch: Branch, warp: &WarpView) -> bool {
        let length = || branch.block_length_after(warp, self.placement);
        self.longest.is_some_and(|longest| length().is_some_and(|length| length <= longest))
    }

    fn remove(&mut self, index: usize, warp: &WarpView) {
        let split = self.splits.swap_remove(index);
        self.left(split.join, warp, split.last);
    }

    /// One that led to this join leads there no longer. When it was the last, the lanes that arrived go on.
    fn left(&mut self, join: usize, warp: &WarpView, last: Option<Branch>) {
        let mut join = join;
        loop {
            self.joins[join].leading_here -= 1;
            if self.joins[join].leading_here > 0 || join == 0 {
                return;
            }
            let lanes = std::mem::take(&mut self.joins[join].arrived) & warp.live();
            let (parent, rank) = (self.joins[join].parent, self.joins[join].rank);
            if !lanes.is_empty() {
                self.push(lanes, parent, rank, last);
            }
            join = parent;
        }
    }

    fn push(&mut self, lanes: LaneSet, join: usize, rank: u64, last: Option<Branch>) {
        self.joins[join].leading_here += 1;
        self.splits.push(Split { lanes, join, rank, turn: self.turns, last, standing: None });
    }

    fn open(&mut self, join: Join) -> usize {
        self.joins[join.parent].leading_here += 1;
        let free = (1..self.joins.len()).find(|j| self.joins[*j].leading_here == 0);
        match free {
            Some(index) => {
                self.joins[index] = join;
                index
            }
            None => {
                self.joins.push(join);
                self.joins.len() - 1
            }
        }
    }
}
