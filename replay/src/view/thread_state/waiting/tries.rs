//! Failed tries to take a lock of the program's own.
//!
//! ```text
//! lock cmpxchg [w], ecx     fails
//! jne slow                  the other way is the one of a try that works
//! …
//! slow: …; xchg [w], eax    tries again
//! ```
//!
//! A thread has such a lock from its first try on. Where it tries again with the same instruction, what it ran since
//! the first try is taken out of the stream; where it tries with another, as in the slow path of a lock that waits in
//! the kernel, and comes to where the first try leads that works, all behind that one is. So a lane that had to wait
//! runs what one runs that had not. A thread that runs much between its tries has not only waited.

use heuristics::{Segment, SegmentId};
use trace_format::{Kind, Pc};

use super::super::super::locks::HeldLock;
use super::super::counts::Counts;
use super::super::expected::Expected;
use crate::lanes::stream::BatchLengths;

/// How many codes a thread keeps at most since its first try.
const WINDOW: usize = 256;

/// A place in the stream to which it may be cut.
#[derive(Clone, Copy, Debug)]
pub(in crate::view::thread_state) struct Cut {
    pub sp: u64,
    pub level: u32,
    pub lengths: BatchLengths,
    pub counts: Counts,
    pub expected: Expected,
}

/// A thread's tries to take a lock, from the first to the one that works.
#[derive(Clone, Debug)]
pub(in crate::view::thread_state) struct Tries {
    word: u64,
    /// The locks that the thread has, this one among them.
    held: Vec<HeldLock>,
    /// The instructions that have tried, each with the stream before it; never empty.
    from: Vec<(SegmentId, Cut)>,
    branch: Branch,
}

/// The branch that the first try decides.
#[derive(Clone, Copy, Debug)]
enum Branch {
    IsToCome,
    /// The stream behind it, and where it can lead.
    HasCome(Cut, [Pc; 2]),
    /// The stream behind it, and where it leads when the try works, which it did not if there are others.
    Leads(Cut, Pc),
    Gone,
}

/// Where a thread is that comes from a try.
pub(in crate::view::thread_state) enum Come {
    /// Somewhere behind it.
    Behind,
    /// Where the first try leads that works, though it did not: what was kept since this place was waiting.
    Waited(Cut),
    /// So far behind it that it has done more than to wait.
    Away,
}

impl Tries {
    /// The first, by this segment, of a thread that has these locks; the stream before it.
    pub fn new(word: u64, held: &[HeldLock], segment: SegmentId, before: Cut) -> Tries {
        Tries { word, held: held.to_vec(), from: vec![(segment, before)], branch: Branch::IsToCome }
    }

    /// Whether they are of this lock.
    pub fn are_of(&self, word: u64) -> bool {
        self.word == word
    }

    /// Whether a thread that stands here stands as it stood there, with the locks that it had.
    fn stands_at(&self, cut: &Cut, now: &Cut, held: &[HeldLock]) -> bool {
        (cut.sp, cut.level) == (now.sp, now.level) && self.held == held
    }

    /// Another try, by this segment: the place to which the stream is cut, if the same has tried before.
    pub fn again(&mut self, segment: SegmentId, now: &Cut, held: &[HeldLock]) -> Option<Cut> {
        let same = |(tried, cut): &(SegmentId, Cut)| *tried == segment && self.stands_at(cut, now, held);
        let Some(at) = self.from.iter().rposition(same) else {
            self.from.push((segment, *now));
            return None;
        };
        self.from.truncate(at + 1);
        if at == 0 {
            self.branch = Branch::IsToCome;
        }
        Some(self.from[at].1)
    }

    /// The stream was cut to where the last try begins, and has these counts now.
    pub fn were_cut(&mut self, counts: Counts) {
        if let Some((_, cut)) = self.from.last_mut() {
            cut.counts = counts;
        }
    }

    /// Before a segment that is kept, at this pc.
    pub fn come_to(&mut self, pc: Pc, now: &Cut, held: &[HeldLock]) -> Come {
        if now.lengths.codes() > self.from[0].1.lengths.codes() + WINDOW {
            return Come::Away;
        }
        self.branch = match self.branch {
            Branch::HasCome(cut, [one, other]) if pc == one => Branch::Leads(cut, other),
            Branch::HasCome(cut, [one, other]) if pc == other => Branch::Leads(cut, one),
            Branch::HasCome(..) => Branch::Gone,
            Branch::Leads(cut, works) if pc == works && self.from.len() > 1 && self.stands_at(&cut, now, held) => {
                return Come::Waited(cut);
            }
            // Both ways lead there.
            Branch::Leads(_, works) if pc == works => Branch::Gone,
            branch => branch,
        };
        Come::Behind
    }

    /// Behind a segment that was kept.
    pub fn ran(&mut self, segment: &Segment, now: &Cut) {
        if matches!(self.branch, Branch::IsToCome) && segment.last().kind == Kind::Branch {
            self.branch = segment.ways.map_or(Branch::Gone, |ways| Branch::HasCome(*now, ways));
        }
    }

    /// The batch was cut for another reason, to so many codes. Whether something is left of the tries.
    pub fn are_left(&mut self, codes: usize) -> bool {
        let is_gone = |cut: &Cut| cut.lengths.codes() > codes;
        self.from.retain(|(_, cut)| !is_gone(cut));
        if let Branch::HasCome(cut, _) | Branch::Leads(cut, _) = &self.branch
            && is_gone(cut)
        {
            self.branch = Branch::Gone;
        }
        !self.from.is_empty()
    }
}
