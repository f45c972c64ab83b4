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

use heuristics::SegmentId;
use trace_format::{Kind, Pc};

use super::super::super::locks::HeldLock;
use super::super::{Counts, Expected, ThreadState};
use crate::Batch;
use crate::lanes::stream::BatchLengths;

/// How many codes a thread keeps at most since its first try.
const WINDOW: usize = 96;

/// A place in the stream to which it may be cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    sp: u64,
    level: u32,
    lengths: BatchLengths,
    counts: Counts,
    expected: Expected,
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

impl ThreadState<'_> {
    /// The stream as it is.
    fn cut(&self, batch: &Batch) -> Cut {
        let (sp, level) = (self.sp, self.frames.level());
        Cut { sp, level, lengths: batch.lengths(), counts: self.counts, expected: self.expected }
    }

    /// Whether the thread stands as it stood there, and has the same locks.
    fn stands_at(&self, cut: &Cut, held: &[HeldLock]) -> bool {
        (cut.sp, cut.level) == (self.sp, self.frames.level()) && held == self.held.locks()
    }

    /// What was kept since there was waiting.
    fn cut_back(&mut self, cut: &Cut, batch: &mut Batch) {
        batch.truncate(&cut.lengths);
        let mut counts = self.counts.since(&cut.counts);
        counts.spin += std::mem::take(&mut counts.kept);
        self.counts = cut.counts;
        self.counts.add(&counts);
        self.expected = cut.expected;
        self.spin.forget();
        self.turns.forget();
    }

    /// Before a segment that is kept and tries to take the lock, which the thread has from its first try on.
    pub(in crate::view::thread_state) fn try_to_take(
        &mut self,
        segment: SegmentId,
        word: u64,
        is_first: bool,
        batch: &mut Batch,
    ) {
        if is_first {
            let (held, from) = (self.held.locks().to_vec(), vec![(segment, self.cut(batch))]);
            self.tries = Some(Box::new(Tries { word, held, from, branch: Branch::IsToCome }));
            return;
        }
        let Some(mut tries) = self.tries.take_if(|tries| tries.word == word) else { return };
        let same = |(tried, cut): &(SegmentId, Cut)| *tried == segment && self.stands_at(cut, &tries.held);
        match tries.from.iter().rposition(same) {
            Some(at) => {
                self.cut_back(&tries.from[at].1, batch);
                tries.from[at].1.counts = self.counts;
                tries.from.truncate(at + 1);
                if at == 0 {
                    tries.branch = Branch::IsToCome;
                }
            }
            None => tries.from.push((segment, self.cut(batch))),
        }
        self.tries = Some(tries);
    }

    /// Before a segment that is kept: it may be where the first try leads that works.
    pub(in crate::view::thread_state) fn come_from_try(&mut self, segment: SegmentId, batch: &mut Batch) {
        let Some(mut tries) = self.tries.take() else { return };
        if batch.codes.len() > tries.from[0].1.lengths.codes() + WINDOW {
            return;
        }
        let now = self.plan.table[segment].start();
        tries.branch = match tries.branch {
            Branch::HasCome(cut, [one, other]) if now == one => Branch::Leads(cut, other),
            Branch::HasCome(cut, [one, other]) if now == other => Branch::Leads(cut, one),
            Branch::HasCome(..) => Branch::Gone,
            Branch::Leads(cut, works) if now == works && tries.from.len() > 1 && self.stands_at(&cut, &tries.held) => {
                self.cut_back(&cut, batch);
                return;
            }
            // Both ways lead there.
            Branch::Leads(_, works) if now == works => Branch::Gone,
            branch => branch,
        };
        self.tries = Some(tries);
    }

    /// Behind a segment that was kept.
    pub(in crate::view::thread_state) fn go_on_from_try(&mut self, segment: SegmentId, batch: &Batch) {
        let segment = &self.plan.table[segment];
        let is_branch = |tries: &mut Box<Tries>| matches!(tries.branch, Branch::IsToCome) && segment.last().kind == Kind::Branch;
        let Some(mut tries) = self.tries.take_if(is_branch) else { return };
        tries.branch = segment.ways.map_or(Branch::Gone, |ways| Branch::HasCome(self.cut(batch), ways));
        self.tries = Some(tries);
    }

    /// The batch was cut for another reason: what was kept of tries may be gone.
    pub(in crate::view::thread_state) fn perhaps_forget_tries(&mut self, batch: &Batch) {
        let is_gone = |cut: &Cut| cut.lengths.codes() > batch.codes.len();
        let Some(mut tries) = self.tries.take() else { return };
        tries.from.retain(|(_, cut)| !is_gone(cut));
        if let Branch::HasCome(cut, _) | Branch::Leads(cut, _) = &tries.branch
            && is_gone(cut)
        {
            tries.branch = Branch::Gone;
        }
        self.tries = Some(tries).filter(|tries| !tries.from.is_empty());
    }
}
