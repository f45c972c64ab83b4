//! Failed tries to take a lock of the program's own, and wake-ups of who waits for one.
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
//!
//! ```text
//! xor eax, eax; xchg [w], eax    gives it, and finds whether another waits
//! cmp eax, 2; jne done
//! …; syscall                     wakes it
//! done: …
//! ```
//!
//! Nor does a lane wake another that waits only since lanes of this run were threads of a CPU: what it runs in between
//! goes as well, where a branch that hangs on what was found leads there, and the kernel is called.

use heuristics::{Segment, SegmentId};
use machine::{Instruction, Listing, Operand, Registers};
use trace_format::{Kind, Pc};

use super::super::super::locks::HeldLock;
use super::super::counts::Counts;
use super::super::expected::Expected;
use crate::lanes::stream::BatchLengths;

/// How many codes a thread keeps at most since its first try.
const WINDOW: usize = 256;

/// How many it keeps at most from where it gives a lock until it has woken another.
const WINDOW_OF_WAKES: usize = 64;

/// A place in the stream to which it may be cut.
#[derive(Clone, Copy, Debug)]
pub(in crate::view::thread_state) struct Cut {
    pub sp: u64,
    pub level: u32,
    pub lengths: BatchLengths,
    pub counts: Counts,
    pub expected: Expected,
}

/// A thread's tries to take a lock, from the first to the one that works; or its way from where it gives the lock.
#[derive(Clone, Debug)]
pub(in crate::view::thread_state) struct Tries {
    word: u64,
    /// The locks that the thread has, this one among them if it takes it.
    held: Vec<HeldLock>,
    /// The instructions that have tried, or the one that gives, each with the stream before it; never empty.
    from: Vec<(SegmentId, Cut)>,
    branch: Branch,
    /// Of who gives it.
    wake: Option<Wake>,
}

/// What who gives a lock does with what it finds there.
#[derive(Clone, Debug)]
struct Wake {
    /// What is made of it, in registers and flags, once it gives it; and whether in memory.
    found: Option<Registers>,
    is_in_memory: bool,
    /// Whether the kernel was called since a branch was decided by it.
    has_called: bool,
}

impl Wake {
    /// Behind this instruction. Whether what it does hangs on what was found.
    fn ran(&mut self, one: Instruction) -> bool {
        let Some(found) = self.found else {
            self.found = Some(one.writes());
            return false;
        };
        let loads = || (1..one.operand_count()).any(|n| one.operand(n) == Operand::Memory);
        let hangs = one.reads() & found != 0 || self.is_in_memory && loads();
        self.is_in_memory |= hangs && one.operand_count() > 0 && one.operand(0) == Operand::Memory;
        self.found = Some(if hangs { found | one.writes() } else { found & !one.writes() });
        hangs
    }
}

/// The branch that the first try decides, or what was found where the lock was given.
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
        Tries { word, held: held.to_vec(), from: vec![(segment, before)], branch: Branch::IsToCome, wake: None }
    }

    /// Of a thread that gives the lock by the first of these instructions, and has these locks then; the stream before
    /// it. None where nothing can look at what it finds.
    pub fn wake(word: u64, held: &[HeldLock], (segment, code): (SegmentId, Listing), before: Cut) -> Option<Tries> {
        let one = code.iter().next()??;
        let wake = Wake { found: None, is_in_memory: false, has_called: false };
        let is_looked_at = one.is_atomic() && one.writes() != 0;
        is_looked_at.then(|| Tries { wake: Some(wake), ..Tries::new(word, held, segment, before) })
    }

    /// Whether they are tries to take this lock.
    pub fn are_of(&self, word: u64) -> bool {
        self.wake.is_none() && self.word == word
    }

    /// Whether the thread has surely waited that comes to where the branch leads else.
    fn has_waited(&self) -> bool {
        self.wake.as_ref().map_or(self.from.len() > 1, |wake| wake.has_called)
    }

    /// The thread calls the kernel.
    pub fn call_kernel(&mut self) {
        let is_behind = matches!(self.branch, Branch::Leads(..));
        self.wake.iter_mut().for_each(|wake| wake.has_called |= is_behind);
    }

    /// Whether a thread that stands here stands as it stood there, with the locks that it had.
    fn stands_at(&self, cut: &Cut, now: &Cut, held: &[HeldLock]) -> bool {
        (cut.sp, cut.level) == (now.sp, now.level) && self.held == held
    }

    /// Another try, by this segment: the place to which the stream is cut, if the same has tried before and the thread
    /// is in no turn that is watched.
    pub fn again(&mut self, segment: SegmentId, now: &Cut, held: &[HeldLock], is_turning: bool) -> Option<Cut> {
        let same = |(tried, cut): &(SegmentId, Cut)| *tried == segment && self.stands_at(cut, now, held);
        let Some(at) = self.from.iter().rposition(same) else {
            self.from.push((segment, *now));
            return None;
        };
        if is_turning {
            return None;
        }
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
        let window = if self.wake.is_some() { WINDOW_OF_WAKES } else { WINDOW };
        let is_over = self.wake.is_some() && matches!(self.branch, Branch::Gone);
        if is_over || now.lengths.codes() > self.from[0].1.lengths.codes() + window {
            return Come::Away;
        }
        self.branch = match self.branch {
            Branch::HasCome(cut, [one, other]) if pc == one => Branch::Leads(cut, other),
            Branch::HasCome(cut, [one, other]) if pc == other => Branch::Leads(cut, one),
            Branch::HasCome(..) => Branch::Gone,
            Branch::Leads(cut, works) if pc == works && self.has_waited() && self.stands_at(&cut, now, held) => {
                return Come::Waited(cut);
            }
            // Both ways lead there.
            Branch::Leads(_, works) if pc == works => Branch::Gone,
            branch => branch,
        };
        Come::Behind
    }

    /// Behind a segment that was kept, of these instructions.
    pub fn ran(&mut self, segment: &Segment, code: Listing, now: &Cut) {
        if !matches!(self.branch, Branch::IsToCome) {
            return;
        }
        let mut hangs = true;
        if let Some(wake) = &mut self.wake {
            hangs = code.iter().map(|one| one.is_some_and(|one| wake.ran(one))).last().unwrap_or(false);
            if wake.found == Some(0) && !wake.is_in_memory {
                self.branch = Branch::Gone;
            }
        }
        if segment.last().kind == Kind::Branch {
            let ways = segment.ways.filter(|_| hangs);
            self.branch = ways.map_or(Branch::Gone, |ways| Branch::HasCome(*now, ways));
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
