//! A turn as a ring of segments, and what threads made of it.

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::FxHashMap;
use trace_format::Pc;

/// The most segments of a turn.
pub(super) const MOST_SEGMENTS: usize = 256;

/// The segments of a turn, in order, in the one form of all that are the same ring ([`canonical`]).
pub(crate) type Turn = Box<[SegmentId]>;

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
    /// The branches that follow from memory whose address stands in the code, and where they lead out of it, unless
    /// what it carries is read there.
    pub(super) exits: Vec<(SegmentId, Pc)>,
    /// The program writes where it looks; or a thread left it since memory had changed, came by and did not stay, or
    /// waited in the kernel behind it.
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
        self.repeats && !has_end && (!self.carries || self.left_by_memory && self.was_followed && !self.lives_on)
    }

    /// Whether it is waiting as far as can be told, and not for sure.
    pub fn looks_like_waiting(&self) -> bool {
        !self.waits() && !self.lives_on
    }

    pub(super) fn add(&mut self, other: &Found) {
        self.head = other.head;
        self.exits.clone_from(&other.exits);
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
