//! A turn as a ring of segments, and what threads made of it.

use std::sync::Arc;

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::Pc;

/// The most segments of a turn.
pub(super) const MOST_SEGMENTS: usize = 256;

/// The segments of a turn, in order, in the one form of all that are the same ring ([`canonical`]).
pub(crate) type Turn = Arc<[SegmentId]>;

/// What threads made of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where it begins.
    pub head: Pc,
    /// Instructions of all turns.
    pub instructions: u64,
    /// A thread came by its branches three times in a row: from the second on a turn finds only what a turn left, and
    /// goes on as that did.
    pub(super) repeats: bool,
    /// It carries registers or slots.
    pub(super) carries: bool,
    /// It has no branch, and so no end.
    pub(super) is_endless: bool,
    /// A thread went on from it all the same.
    pub(super) has_ended: bool,
    /// The segments whose branches follow from memory, unless what it carries is read where they lead out of it.
    pub(super) ends: Vec<SegmentId>,
    /// Those of them whose memory's address stands in the code, and where they lead.
    pub(super) exits: Vec<(SegmentId, Pc)>,
    /// The segments whose branches follow from memory, and from nothing that it carries.
    pub(super) by_memory: Vec<SegmentId>,
    /// Those of them at which a thread left it.
    pub(super) left_at: FxHashSet<SegmentId>,
    /// The turns of the same loop with which a thread went on, with what it carries; and where its way parted from
    /// theirs.
    pub(super) went_on_at: FxHashSet<SegmentId>,
    pub(super) went_on_with: FxHashSet<Turn>,
    /// The ways from where threads have left it up to where they read what it carries, if they did not come back: no
    /// use of it where they are a part of a turn, which was not made whole.
    pub(super) begun: FxHashSet<Turn>,
    /// Memory has ended it: a thread left it since that had changed, came by and did not stay, or waited in the kernel
    /// behind it.
    pub(super) left_by_memory: bool,
    /// A thread was followed until what it carries was gone, or the thread.
    pub(super) was_followed: bool,
    /// A thread read later what it carries.
    pub(super) lives_on: bool,
}

impl Found {
    /// Whether it is waiting for sure.
    pub fn waits(&self) -> bool {
        let has_end = self.is_endless && self.has_ended;
        self.repeats && !has_end && (!self.carries || self.left_by_memory && !self.may_live_on())
    }

    /// Whether it is not known that nobody reads later what it carries.
    pub(super) fn may_live_on(&self) -> bool {
        self.lives_on || self.carries && !self.was_followed
    }

    /// Whether it is waiting as far as can be told, and not for sure.
    pub fn looks_like_waiting(&self) -> bool {
        !self.waits() && !self.lives_on
    }

    /// Whether a thread that has left it read what it carries on a way that is none of these.
    pub(super) fn is_used(&self, parts: &FxHashSet<&Turn>) -> bool {
        !self.begun.iter().all(|way| parts.contains(way))
    }

    /// A thread has left this turn behind this segment of it, and went on with one of the same loop.
    pub(super) fn goes_on(&mut self, left_at: usize, turn: &Turn, with: &Turn) {
        let step = |turn: &Turn, at: usize| (turn[at], turn[(at + 1) % turn.len()]);
        let way = step(turn, left_at);
        if !(0..with.len()).any(|at| step(with, at) == way) {
            self.went_on_at.insert(turn[left_at]);
        }
        if !self.went_on_with.contains(with) {
            self.went_on_with.insert(with.clone());
        }
    }

    pub(super) fn add(&mut self, other: &Found) {
        self.head = other.head;
        self.ends.clone_from(&other.ends);
        self.exits.clone_from(&other.exits);
        self.by_memory.clone_from(&other.by_memory);
        self.left_at.extend(&other.left_at);
        self.went_on_at.extend(&other.went_on_at);
        self.went_on_with.extend(other.went_on_with.iter().cloned());
        self.begun.extend(other.begun.iter().cloned());
        self.instructions += other.instructions;
        self.repeats |= other.repeats;
        self.carries |= other.carries;
        self.is_endless |= other.is_endless;
        self.has_ended |= other.has_ended;
        self.left_by_memory |= other.left_by_memory;
        self.was_followed |= other.was_followed;
        self.lives_on |= other.lives_on;
    }
}

/// The turns that could be waiting.
pub(crate) type Turns = FxHashMap<Turn, Found>;

/// Whether a branch with these ways could have gone there.
pub(crate) fn leads_to(ways: Option<[Pc; 2]>, to: Option<Pc>) -> bool {
    ways.zip(to).is_some_and(|(ways, to)| ways.contains(&to))
}

/// Whether this way is a part of a turn, from this place of the ring on.
pub(super) fn goes_along(turn: &[SegmentId], at: usize, way: &[SegmentId]) -> bool {
    way.len() <= turn.len() && turn[at..].iter().chain(&turn[..at]).zip(way).all(|(one, ran)| one == ran)
}

/// The ways that threads have begun behind turns, and that are parts of turns.
pub(super) fn parts(all: &Turns) -> FxHashSet<&Turn> {
    let mut begun: FxHashMap<SegmentId, Vec<&Turn>> = FxHashMap::default();
    for way in all.values().flat_map(|found| &found.begun) {
        begun.entry(way[0]).or_default().push(way);
    }
    let mut parts = FxHashSet::default();
    for (turn, at) in all.keys().flat_map(|turn| (0..turn.len()).map(move |at| (turn, at))) {
        parts.extend(begun.get(&turn[at]).into_iter().flatten().filter(|way| goes_along(turn, at, way)));
    }
    parts
}

/// Whether a turn can be told from the next one at this segment of it: in a loop that it goes through, it cannot, since
/// a way from one iteration of that to another one has the form of a turn that makes fewer of them.
pub(super) fn begins(segment: SegmentId, turn: &[SegmentId]) -> bool {
    let times = |one: &SegmentId| turn.iter().filter(|other| *other == one).count();
    match times(&segment) {
        0 => false,
        1 => true,
        _ => turn.iter().all(|one| times(one) > 1),
    }
}

/// Where a turn can be entered: the places of segments to which the thread jumps, rather than falls through.
pub(super) fn heads<'t>(turn: &'t [SegmentId], table: &'t SegmentTable) -> impl Iterator<Item = usize> + 't {
    (0..turn.len()).filter(|place| {
        let before = turn[(place + turn.len() - 1) % turn.len()];
        table[before].last().next_pc() != Some(table[turn[*place]].start())
    })
}

/// The same ring of segments from its lowest head on, and where in it the one given begins. None where nothing in it
/// jumps.
pub(super) fn canonical(turn: &[SegmentId], table: &SegmentTable) -> Option<(Turn, usize)> {
    let from = |head: usize| turn[head..].iter().chain(&turn[..head]);
    let order = |a: &usize, b: &usize| {
        let pc = |head: usize| table[turn[head]].start();
        pc(*a).cmp(&pc(*b)).then_with(|| from(*a).cmp(from(*b)))
    };
    let head = heads(turn, table).min_by(order)?;
    Some((from(head).copied().collect(), (turn.len() - head) % turn.len()))
}
