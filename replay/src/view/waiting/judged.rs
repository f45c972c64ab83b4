//! What a thread's follower keeps of turns: those that it judged, the one that the thread goes on making, and the ways
//! that it met.

use rustc_hash::FxHashMap;
use trace_format::BlockId;

use super::turn::Deeds;
use super::{Found, Turn};

/// A turn that a thread goes on making.
pub(super) struct Going {
    pub(super) turn: usize,
    /// The segment of it with which it was begun.
    pub(super) head: usize,
    /// The segment of it that comes next.
    pub(super) next: usize,
    /// By block that is a part of turns, and the segment that comes before it: the one that comes behind it, and the
    /// turns that it ends.
    pub(super) blocks: FxHashMap<(BlockId, usize), (usize, u64)>,
}

/// What is known of a way from a segment back to it.
#[derive(Clone, Copy)]
pub(super) enum Met {
    /// It was met so often.
    Times(u32),
    /// It is this turn, entered at this segment of it.
    Turn(usize, usize),
    /// It is work.
    Work,
}

/// A turn that was judged.
pub(super) struct Judged {
    pub(super) segments: Turn,
    /// None where it is waiting only since the user said so.
    pub(super) deeds: Option<Deeds>,
    pub(super) instructions: u64,
    pub(super) found: Found,
    pub(super) left: u32,
}
