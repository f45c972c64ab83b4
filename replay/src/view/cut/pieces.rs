//! What a thread is cut into: lanes, and which others each was launched with.

use heuristics::SegmentId;

use super::counts::Counts;
use super::store::Store;
use crate::EpisodeId;

/// Which lanes were launched together: they share warps with each other only. Lanes of smaller ones run first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Launch {
    /// That of the threads.
    pub generation: u32,
    /// The team's; none where threads were not started as one.
    pub team: Option<EpisodeId>,
    /// Where it is no team's: the thread, and which of its parts that no other has a part in.
    pub alone: Option<(u32, u32)>,
    /// The barrier that its threads had reached last.
    pub behind: Option<EpisodeId>,
    /// The execution of a taskloop; then nothing above is told, since any thread runs its pieces.
    pub taskloop: Option<u32>,
    /// How often each of them had reached the loop since then.
    pub time: u32,
    pub of_loop: u32,
}

/// What a thread was cut into.
pub(super) struct Pieces {
    pub store: Store,
    /// By lane.
    pub lanes: Vec<Begun>,
    /// Those that lanes name, each once behind another.
    pub launches: Vec<Launch>,
    /// Addresses that turns accessed, the first few of each.
    pub accesses: Vec<Access>,
    pub counts: Counts,
}

/// How a lane began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// Its first stretch.
    pub stretch: u32,
    /// With which others it was launched, by number in [`Pieces::launches`].
    pub launch: u32,
    /// What orders its part among those of all teams of a construct.
    pub team: u32,
    /// In which chunk its thread ran it.
    pub chunk: u32,
    /// What orders that chunk where the trace says which iterations it has; of calls, the thread's last event before
    /// the lane; of a task, its number.
    pub first: Option<i64>,
    /// How many lanes with the numbers before this one's it goes on with: parts of a task.
    pub part: u32,
}

/// An access of a lane in its loop's own frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The lane's first stretch.
    pub lane: u32,
    /// Which access of which segment.
    pub by: (SegmentId, u32),
    pub address: u64,
}
