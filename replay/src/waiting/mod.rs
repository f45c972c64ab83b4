//! Loops that wait: turns (iterations) without effect, found by following each thread once.
//!
//! A thread that comes back to a segment, and has run on the way nothing that writes elsewhere than to its stack, has
//! made a *turn*. A turn is a ring of segments: where it is entered does not matter, nor how the recording cut the way
//! into blocks. Each is judged once ([`loop_effects::effects`]). One that could be waiting is waiting for sure when
//!
//! - it carries nothing from turn to turn: then it can be left only because memory has changed that another writes; or
//! - another has written what a branch of it follows from: a thread left it there; or, where the memory's address
//!   stands in the code, a thread went by there; or a thread left it otherwise and then waited in the kernel; and no
//!   thread reads later what it carries.
//!
//! A branch whose other way stays in the loop ends no wait: what it carries is read there ([`liveness`]). Where a
//! thread goes on from there with another turn of the loop, that is no use of it: all of them wait, or none
//! ([`settle`]), and they wait only if a thread has gone out of one of them there, by a way on which nothing that they
//! carry is read.
//!
//! Of the others, those whose carried registers nobody reads later look like waiting; they are told, and left out on
//! request.

mod candidate;
mod code;
mod cycle;
mod follow;
mod live_out;
mod liveness;
mod lock_outcome;
mod lone;
mod loop_effects;
mod reaching_constants;
mod registers;

use heuristics::{SegmentId, SegmentTable};
use machine::{Instruction, Operand, Operation, Register};
use rustc_hash::FxHashSet;
use trace_format::Pc;

pub(crate) use code::{Code, Writes};
pub(crate) use cycle::{Found, Turn, Turns, leads_to};
pub(crate) use follow::Follower;
pub(crate) use registers::{is_preserved, may_wait};

use cycle::{begins, canonical, goes_along, heads, parts};

/// Adds what another thread made of turns.
pub(crate) fn merge(all: &mut Turns, more: Turns) {
    for (turn, found) in more {
        all.entry(turn).or_default().add(&found);
    }
}

/// Once all threads were followed: looks where they went at the branches of turns. Turns of one loop between which
/// threads went, each of which reads what the one before carries (as where threads look the more rarely, the longer
/// they wait), wait where the last of them do. What was read on a way that is no part of any turn was used.
pub(crate) fn settle(all: &mut Turns, code: &Code) {
    let known = parts(all);
    let used: Vec<Turn> = all.iter().filter(|(_, found)| found.is_used(&known)).map(|(turn, _)| turn.clone()).collect();
    for turn in used {
        all.entry(turn).or_default().lives_on = true;
    }
    let linked: Vec<Turn> =
        all.iter().filter(|(_, found)| !found.went_on_with.is_empty()).map(|(turn, _)| turn.clone()).collect();
    let settled: Vec<Settled> = linked.iter().map(|turn| Settled::of(turn, all, code)).collect();
    for found in all.values_mut().filter(|found| found.went_on_with.is_empty()) {
        found.left_by_memory |= !found.left_at.is_empty();
        found.left_by_memory |= found.exits.iter().any(|(from, to)| code.has_gone(*from, *to));
    }
    for (turn, Settled { left_by_memory, lives_on }) in linked.iter().zip(settled) {
        if let Some(found) = all.get_mut(turn) {
            found.left_by_memory |= left_by_memory;
            // What only counts is read by whichever of them comes next.
            found.lives_on |= lives_on || !found.left_by_memory;
        }
    }
}

/// What holds for a turn because of those with which threads went on.
struct Settled {
    left_by_memory: bool,
    lives_on: bool,
}

impl Settled {
    fn of(turn: &Turn, all: &Turns, code: &Code) -> Settled {
        let mut reached: Vec<&Turn> = vec![turn];
        let mut next = 0;
        while let Some(one) = reached.get(next).copied() {
            next += 1;
            for further in all.get(one).into_iter().flat_map(|found| &found.went_on_with) {
                if !reached.contains(&further) {
                    reached.push(further);
                }
            }
        }
        let found = |one: &&Turn| all.get(*one);
        let stays = |at: &SegmentId| reached.iter().filter_map(found).any(|one| one.went_on_at.contains(at));
        let is_left = |one: &Found| {
            let has_gone = |at| one.exits.iter().any(|(from, to)| from == at && code.has_gone(*from, *to));
            one.ends.iter().any(|at| !stays(at) && (one.left_at.contains(at) || has_gone(at)))
        };
        Settled {
            left_by_memory: !all[turn].ends.is_empty() && reached.iter().filter_map(found).any(is_left),
            lives_on: reached.iter().any(|one| found(one).is_none_or(Found::may_live_on)),
        }
    }
}

/// The turns that are left out of the streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    turns: FxHashSet<Turn>,
    /// By segment: whether one may be entered with it.
    heads: Vec<bool>,
    /// By segment: whether it is one of them.
    members: Vec<bool>,
    /// By segment: whether whoever comes there waits for others, if there is anything to wait for.
    lone: Vec<bool>,
    /// By segment: whether it asks the kernel for what another may give.
    asks: Vec<bool>,
    /// By segment of one: nothing where it does more than to try again to change what it has read; else whether it
    /// tries to.
    tries: Vec<Option<bool>>,
    /// The most segments of one.
    longest: usize,
}

impl Waiting {
    /// Of these turns, and of the segments at these places: of loops that wait, and that ask the kernel.
    pub fn new(turns: impl Iterator<Item = Turn>, [lone, asks]: [&FxHashSet<Pc>; 2], table: &SegmentTable) -> Waiting {
        let mut all = Waiting { turns: turns.collect(), ..Waiting::default() };
        if all.turns.is_empty() && lone.is_empty() && asks.is_empty() {
            return all;
        }
        [all.lone, all.asks] =
            [lone, asks].map(|places| table.iter().map(|(_, segment)| places.contains(&segment.start())).collect());
        all.heads = vec![false; table.len()];
        all.members = vec![false; table.len()];
        all.tries = vec![None; table.len()];
        for turn in &all.turns {
            for segment in turn.iter() {
                all.members[segment.0 as usize] = true;
                all.tries[segment.0 as usize] = tries(*segment, table);
            }
            let heads = heads(turn, table).filter(|head| begins(turn[*head], turn));
            heads.for_each(|head| all.heads[turn[head].0 as usize] = true);
            all.longest = all.longest.max(turn.len());
        }
        all
    }

    /// Whether it is a loop that waits, if the thread has to.
    pub fn is_lone(&self, segment: SegmentId) -> bool {
        self.lone.get(segment.0 as usize) == Some(&true)
    }

    /// Whether it asks the kernel for what another may give.
    pub fn asks(&self, segment: SegmentId) -> bool {
        self.asks.get(segment.0 as usize) == Some(&true)
    }

    pub fn is_head(&self, segment: SegmentId) -> bool {
        self.heads.get(segment.0 as usize) == Some(&true)
    }

    pub fn is_member(&self, segment: SegmentId) -> bool {
        self.members.get(segment.0 as usize) == Some(&true)
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether a turn only tries again to change what it has read, as an atomic operation made of `cmpxchg` does: it
    /// waits for nobody. One that expects a number of its own waits until another has put it there.
    pub fn is_retry(&self, turn: &[SegmentId]) -> bool {
        let tries = |before, segment: &SegmentId| self.tries[segment.0 as usize].map(|tries| before || tries);
        turn.iter().try_fold(false, tries) == Some(true)
    }

    /// Whether this way, and this segment behind it, are a part of a turn.
    pub fn go_on(&self, way: &[SegmentId], to: SegmentId) -> bool {
        if !self.is_member(to) {
            return false;
        }
        let way = [way, &[to]].concat();
        self.turns.iter().any(|turn| (0..turn.len()).any(|at| goes_along(turn, at, &way)))
    }

    /// Whether these segments are a turn, from where it can be told from the next one.
    pub fn contains(&self, segments: &[SegmentId], table: &SegmentTable) -> bool {
        segments.len() <= self.longest
            && segments.first().is_some_and(|first| begins(*first, segments))
            && (self.turns.contains(segments)
                || canonical(segments, table).is_some_and(|(turn, _)| self.turns.contains(&turn)))
    }
}

/// Whether a segment tries to change what was read before; nothing where it does more than that.
fn tries(segment: SegmentId, table: &SegmentTable) -> Option<bool> {
    let is_exchange = |one: &Instruction| one.operation() == Operation::CompareExchange;
    let reads_what_to_expect = |one: &Instruction| {
        one.writes() & Register::AX.bit() == 0
            || matches!(one.operation(), Operation::Move | Operation::Extend) && one.operand(1) == Operand::Memory
    };
    table.listing(segment).iter().try_fold(false, |tries, one| {
        let one = one?;
        (is_exchange(&one) || reads_what_to_expect(&one)).then_some(tries || is_exchange(&one))
    })
}

/// The turns with the segments of another table, which cuts more finely; those that it cuts in two are gone.
pub(crate) fn in_other_table(turns: Turns, old: &SegmentTable, new: &SegmentTable) -> Turns {
    let parts = |segment: &SegmentId| {
        let (block, first) = old[*segment].origin;
        let (first, end) = (first as usize, first as usize + old[*segment].len());
        let mut at = 0;
        let mut parts = Vec::new();
        for part in new.of_block(block) {
            let (begin, behind) = (at, at + new[*part].len());
            at = behind;
            if begin >= first && behind <= end {
                parts.push(*part);
            } else if begin < end && first < behind {
                return None;
            }
        }
        Some(parts)
    };
    let turn = |(turn, found): (Turn, Found)| {
        let all: Option<Vec<Vec<SegmentId>>> = turn.iter().map(parts).collect();
        Some((canonical(&all?.concat(), new)?.0, found))
    };
    turns.into_iter().filter_map(turn).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use trace_format::{
        Block, Event, Finish, Instruction, Kind, Meta, Pc, Seq, SpEffect, ThreadExit, ThreadId, Trace, TraceWriter,
    };

    use super::*;

    /// A block that walks along a list, `mov rax, [rax]; test rax, rax`, and jumps on from it.
    fn walks(at: u64, to: u64) -> Block {
        let one = |pc, len, kind| Instruction { pc: Pc(pc), len, kind, sp: SpEffect::Add(0), memory: 0 };
        let instructions = vec![one(at, 3, Kind::Plain), one(at + 3, 3, Kind::Plain), one(at + 6, 2, Kind::Branch)];
        let by = to.wrapping_sub(at + 8) as u8;
        Block { instructions, code: vec![0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, by], ..Block::default() }
    }

    #[test]
    fn a_ring_that_is_work_is_judged_once_wherever_it_is_entered() {
        let places = [0x100, 0x120, 0x140, 0x130];
        let mut writer = TraceWriter::new(Vec::new(), "made by hand", &Meta::default()).unwrap();
        let next = places.iter().cycle().skip(1);
        let ring: Vec<_> = places.iter().zip(next).map(|(at, to)| writer.add_block(walks(*at, *to)).unwrap()).collect();
        let seq = Seq(1);
        writer.event(ThreadId(0), Event::ThreadStart { parent: None, os_tid: 1, sp: 0x7000_0000, seq }).unwrap();
        for _ in 0..20 {
            ring.iter().for_each(|block| writer.block(ThreadId(0), *block, &[], &[]).unwrap());
        }
        writer.event(ThreadId(0), Event::ThreadEnd { exit: ThreadExit::Exited(0), seq: Seq(2) }).unwrap();
        let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made by hand").unwrap();
        let table = SegmentTable::new(trace.blocks(), &[]);
        let code = Code::new(&trace, &table, &[]);
        // Nor again for each thread.
        for _ in 0..3 {
            let mut follower = Follower::new(&code);
            (0..20).for_each(|_| ring.iter().for_each(|block| follower.block(*block)));
            assert!(follower.finish().0.is_empty());
        }
        assert_eq!(code.judgements.load(Ordering::Relaxed), 1);
    }
}
