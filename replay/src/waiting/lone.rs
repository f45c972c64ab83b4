//! Loops that wait, if the thread has to: found without anybody who waited there.
//!
//! Such a loop changes nothing, and only memory ends it. So who comes to it waits for others, also where it finds the
//! wait over. It shows where a thread goes on at a branch that may lead back to where it came from:
//!
//! ```text
//! look: mov eax, [flag]; test eax, eax; je look
//! ```

use heuristics::{Segment, SegmentId};
use machine::{Instruction, Operation, Register};
use rustc_hash::FxHashSet;
use trace_format::{BlockId, Kind, Pc};

use super::code::Code;
use super::cycle::{Turn, canonical};
use super::loop_effects::Effects;

/// How many bytes a `pause` has, alone and with a `nop`.
const PAUSE: u64 = 2;
const PAUSE_AND_NOP: u64 = 3;

/// How often a thread goes on at one branch, where it could have gone back, before that is no longer looked at.
const MOST_PASSED: u8 = 16;

/// How many segments a way from such a branch and back has at most.
const MOST_BACK: usize = 32;

/// Linux x86-64 system calls that wait until there is something: `read`, `poll`, `select`, `accept`, `recvfrom`,
/// `recvmsg`, `flock`, `epoll_wait`, `pselect6`, `ppoll`, `epoll_pwait`, `accept4`, `recvmmsg`, `epoll_pwait2`.
const QUESTIONS: [u64; 14] = [0, 7, 23, 43, 45, 47, 73, 232, 270, 271, 281, 288, 299, 441];

/// The waits of a thread that were over when it came there.
pub(super) struct Passes {
    /// By segment: how often it will still be looked at where the thread goes on from it.
    left: Vec<u8>,
    /// The last segments of those loops.
    pub waits: FxHashSet<Pc>,
}

impl Passes {
    pub fn new(code: &Code) -> Passes {
        let left = code.leads_back.iter().map(|leads| if *leads { MOST_PASSED } else { 0 });
        Passes { left: left.collect(), waits: FxHashSet::default() }
    }

    /// Whether the thread goes on where it could have gone back: from this segment to the block, or in it.
    #[inline]
    pub fn may_pass(&self, latest: Option<SegmentId>, block: BlockId, code: &Code) -> bool {
        let may_pass = |segment: &SegmentId| self.left[segment.0 as usize] > 0;
        latest.as_ref().is_some_and(may_pass)
            || code.can_block_wait(block) && code.whole(block).leading_back.iter().any(may_pass)
    }

    /// The thread goes on from the last of these segments, and has made no turn.
    pub fn go_on(&mut self, run: &[SegmentId], code: &Code) {
        let Some((last, before)) = run.split_last() else { return };
        let left = &mut self.left[last.0 as usize];
        let Some(ways) = code.table[*last].ways.filter(|_| *left > 0) else { return };
        *left -= 1;
        let recent = &before[before.len().saturating_sub(MOST_BACK)..];
        let leads_there = |segment: &SegmentId| ways.contains(&code.table[*segment].start());
        if let Some(from) = recent.iter().rposition(leads_there) {
            let turn = &run[before.len() - recent.len() + from..];
            if code.is_lone(turn, turn.len() - 1) {
                self.waits.insert(code.table[*last].start());
            }
        }
    }
}

impl Code<'_> {
    /// Where loops of one segment begin that only memory ends, and which change none: whoever comes there waits for
    /// others, also where it finds the wait over. A `pause` before the segment belongs to its loop, though no thread
    /// may have run it.
    pub fn lone_waits(&self) -> FxHashSet<Pc> {
        let all = self.table.iter().filter(|(id, segment)| {
            let leads_back = |way: &Pc| {
                match segment.start().0.checked_sub(way.0) {
                    Some(0) => self.can_wait(*id),
                    Some(PAUSE) => self.starting_at(*way).is_empty(),
                    // Without optimisation a `nop` follows.
                    Some(PAUSE_AND_NOP) => self.starting_at(*way).is_empty() && self.has_frame(segment.start()),
                    _ => false,
                }
            };
            segment.ways.is_some_and(|ways| ways.iter().any(leads_back))
        });
        all.filter(|(id, _)| self.is_lone(&[*id], 0)).map(|(_, segment)| segment.start()).collect()
    }

    /// Where system calls are made that may wait for what another thread gives: input, mostly.
    pub fn questions(&self) -> FxHashSet<Pc> {
        let asks = |(id, segment): &(SegmentId, &Segment)| {
            segment.last().kind == Kind::Syscall && self.call_of(*id).is_some_and(|call| QUESTIONS.contains(&call))
        };
        self.table.iter().filter(asks).map(|(_, segment)| segment.start()).collect()
    }

    /// The number of the system call at a segment's end, where code says it.
    fn call_of(&self, id: SegmentId) -> Option<u64> {
        let writes = |one: &Instruction| one.writes() & Register::AX.bit() != 0;
        let one = self.table.listing(id).iter().rev().skip(1).map_while(|one| one).find(writes)?;
        let moved = one.constant(1).filter(|_| one.operation() == Operation::Move);
        if one.zeroes() { Some(0) } else { moved.map(i64::cast_unsigned) }
    }

    /// Whether only memory ends the loop that these segments make, which is of the program's own, at the branch behind
    /// that one of them, and nothing in it changes memory: what tries to is a lock by its form, or work.
    pub(super) fn is_lone(&self, segments: &[SegmentId], at: usize) -> bool {
        let is_plain = |id: &SegmentId| {
            !self.libraries.has(self.table[*id].start())
                && self.table.listing(*id).iter().all(|one| one.is_some_and(|one| !one.is_atomic()))
        };
        let is_candidate = |(turn, from): (Turn, usize)| {
            self.candidate(&turn).is_some_and(|one| {
                let by_memory = |effects: &Effects| effects.behind[(from + at) % turn.len()].by_memory;
                let changes = one.found.carries || one.found.is_endless;
                !changes && one.effects.as_deref().is_some_and(by_memory)
            })
        };
        segments.iter().all(is_plain) && canonical(segments, self.table).is_some_and(is_candidate)
    }
}
