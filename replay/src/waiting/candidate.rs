//! What is judged of turns, and what a thread's follower keeps of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use trace_format::BlockId;

use super::code::Code;
use super::cycle::{Found, Turn, heads};
use super::liveness;
use super::loop_effects::{self, Effects};

/// Beginnings of a turn that are tried: one that waits has few, and a long way through a search has hundreds.
const MOST_HEADS: usize = 8;

/// A turn that a thread goes on making.
pub(super) struct Going {
    pub(super) turn: usize,
    /// The segment of it with which it was begun.
    pub(super) head: usize,
    /// The segment of it that comes next.
    pub(super) next: usize,
    /// How often the thread has made it in a row, except once.
    pub(super) times: u64,
    /// By block that is a part of turns, and the segment that comes before it: the one that comes behind it, and the
    /// turns that it ends.
    pub(super) blocks: FxHashMap<(BlockId, usize), (usize, u64)>,
}

/// What is known about a way from a segment back to it.
#[derive(Clone, Copy)]
pub(super) enum Met {
    /// It was met so often.
    Times(u32),
    /// It is this turn, entered at this segment of it.
    Turn(usize, usize),
    /// It is work.
    Work,
}

/// A turn that could be waiting, as a thread makes it.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) segments: Turn,
    /// None where it is waiting only since the user said so.
    pub(super) effects: Option<Arc<Effects>>,
    pub(super) instructions: u64,
    pub(super) found: Found,
    pub(super) left: u32,
}

impl Candidate {
    /// What it carries is followed once more.
    pub(super) fn watch_again(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

/// What the code of a turn says about it, before any thread makes it; none where it is work.
pub(super) fn judge(segments: &Turn, code: &Code) -> Option<Candidate> {
    let decoded: Option<Vec<_>> = segments.iter().map(|segment| code.decode(*segment)).collect();
    let decoded = decoded?;
    let is_named = segments.iter().any(|segment| code.is_named(*segment));
    // Where a turn begins decides whether a slot is written before it is read: any beginning will do.
    // One within a loop that it goes through is the worst.
    let times = |head: &usize| segments.iter().filter(|segment| **segment == segments[*head]).count();
    let mut beginnings: Vec<usize> = heads(segments, code.table).collect();
    beginnings.sort_by_key(times);
    beginnings.truncate(MOST_HEADS);
    let mut candidate = beginnings.into_iter().find_map(|head| {
        let mut turn = decoded.clone();
        turn.rotate_left(head);
        let mut effects = loop_effects::effects(&turn, code)?;
        effects.behind.rotate_right(head);
        Some((Some(effects), head))
    });
    if candidate.is_none() && is_named {
        candidate = Some((None, 0));
    }
    let (effects, head) = candidate?;
    let table = code.table;
    let (mut ends, mut exits) = (Vec::new(), Vec::new());
    if let Some(effects) = &effects {
        for (place, behind) in effects.behind.iter().enumerate().filter(|(_, behind)| behind.by_memory) {
            let next = table[segments[(place + 1) % segments.len()]].start();
            let other = table[segments[place]].ways.and_then(|ways| ways.into_iter().find(|way| *way != next));
            // A branch whose other way stays in the loop ends no wait.
            if other.is_some_and(|other| liveness::is_read_from(other, place, segments, effects, code)) {
                continue;
            }
            ends.push(segments[place]);
            // Threads that look at memory of their own go different ways there, and no other thread need write it.
            if !behind.places.is_empty() {
                exits.extend(other.map(|other| (segments[place], other)));
            }
        }
    }
    let found = Found {
        carries: effects.as_ref().is_none_or(|effects| effects.carried != 0),
        is_endless: effects.as_ref().is_some_and(|effects| effects.is_endless),
        ends,
        exits,
        by_memory: effects.as_ref().map_or_else(Vec::new, |effects| effects.by_memory(segments)),
        head: table[segments[head]].start(),
        ..Found::default()
    };
    let instructions = segments.iter().map(|segment| table[*segment].len() as u64).sum();
    Some(Candidate { segments: segments.clone(), effects: effects.map(Arc::new), instructions, found, left: 0 })
}
