//! One thread is followed, segment by segment: which turns it makes, how it leaves them, and whether what they carry is
//! read later.

mod links;
mod watching;

use heuristics::SegmentId;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Pc};

use super::candidate::{Candidate, Going, Met};
use super::code::{Code, bit};
use super::cycle::{MOST_SEGMENTS, Turn, Turns, canonical, leads_to};
use super::live_out::LiveOut;
use super::lone::Passes;
use super::registers::Registers;

/// Turns that are told apart in one thread; further ones are taken for work.
const MOST_TURNS: usize = 1 << 14;

/// Times that a thread's registers are watched after it has left a turn.
const MOST_WATCHED: u32 = 4;

/// How often a way is met before it is judged: most ways of a search are met once, and a wait goes the same way again.
const JUDGED_AT: u32 = 3;

/// Turns that begin at one segment and are none that wait, before the segment is no longer looked at.
const MOST_REFUSED: u32 = 256;

/// Blocks within which a thread that left a turn goes on to wait in the kernel, where the turn spun before that.
const BLOCKS_AT: u32 = 8;

/// Follows one thread.
pub(crate) struct Follower<'a> {
    code: &'a Code<'a>,
    /// The segments since one that does something, the latest last; turns that were made are taken out.
    run: Vec<SegmentId>,
    /// Blocks whose segments, from these on, come behind those of the run: none of them came back.
    behind: Vec<(BlockId, usize)>,
    /// The last segment behind the run, or of it.
    latest: Option<SegmentId>,
    /// How many segments those are.
    behind_count: usize,
    /// Bits of all segments of the run and behind it.
    seen: u64,
    /// By segment: the last run that it was in, or behind.
    seen_in: Vec<u32>,
    /// By segment: where it stands in the run, and which run that is.
    last: Vec<(u32, u32)>,
    number: u32,
    candidates: Vec<Candidate>,
    /// By segments, as they were met.
    known: FxHashMap<Turn, Met>,
    /// By segments, in the one form of all ways around a ring: none where it is work.
    by_segments: FxHashMap<Turn, Option<usize>>,
    /// By segment: of how many segments the shortest way was from it back to it.
    shortest: Vec<usize>,
    /// By segment: how many turns began at it that are none that wait.
    refused: Vec<u32>,
    /// By block: whether all of its segments were refused so often that they are no longer looked at.
    all_refused: Vec<bool>,
    /// What waits it has passed by.
    passes: Passes,
    going: Option<Going>,
    watched: Vec<LiveOut>,
    watching: Registers,
    /// Whether one of those was read since the thread has left its turn, and the thread may yet come back to it.
    has_reads: bool,
    /// Whether the thread was in a function that is no part of any turn.
    was_elsewhere: bool,
    /// The turn that it left last, and for how many more blocks that counts.
    left: (usize, u32),
}

impl<'a> Follower<'a> {
    pub fn new(code: &'a Code<'a>) -> Follower<'a> {
        Follower {
            code,
            run: Vec::new(),
            behind: Vec::new(),
            latest: None,
            behind_count: 0,
            seen: 0,
            seen_in: vec![0; code.table.len()],
            last: vec![(0, 0); code.table.len()],
            number: 1,
            candidates: Vec::new(),
            known: FxHashMap::default(),
            by_segments: FxHashMap::default(),
            shortest: vec![usize::MAX; code.table.len()],
            refused: vec![0; code.table.len()],
            all_refused: vec![false; code.block_count()],
            passes: Passes::new(code),
            going: None,
            watched: Vec::new(),
            watching: 0,
            has_reads: false,
            was_elsewhere: false,
            left: (0, 0),
        }
    }

    /// The thread runs a block.
    #[inline]
    pub fn block(&mut self, block: BlockId) {
        let mut segments = self.code.table.of_block(block);
        // Who is followed nowhere need not be followed back.
        self.was_elsewhere &= !self.watched.is_empty();
        self.left.1 = self.left.1.saturating_sub(1);
        if self.going.is_none() && self.passes.may_pass(self.latest, block, self.code) {
            self.catch_up();
            return self.segments(segments);
        }
        if self.going.is_none() && self.watching == 0 && !self.code.can_block_wait(block) {
            self.went(segments[0]);
            self.forget_before(segments[0]);
            return;
        }
        let is_free = self.going.is_none() && self.watching == 0 && !self.has_reads && !self.was_elsewhere;
        if is_free && self.passes(block, segments) {
            return;
        }
        self.catch_up();
        let Some(Going { turn, next, times, blocks, .. }) = &mut self.going else { return self.segments(segments) };
        let (turn, before) = (*turn, *next);
        if Some(&self.candidates[turn].segments[before]) == segments.first() {
            // The turn knows where the stack pointer is.
            self.was_elsewhere = false;
        }
        if let Some((behind, turns)) = blocks.get(&(block, before)) {
            *next = *behind;
            *times += *turns;
            let candidate = &mut self.candidates[turn];
            candidate.found.instructions += turns * candidate.instructions;
            return;
        }
        let instructions = self.candidates[turn].found.instructions;
        segments = self.go_on(segments);
        if segments.is_empty()
            && let Some(Going { next, blocks, .. }) = &mut self.going
        {
            let candidate = &self.candidates[turn];
            let turns = (candidate.found.instructions - instructions) / candidate.instructions;
            blocks.insert((block, before), (*next, turns));
        } else {
            self.segments(segments);
        }
    }

    /// Follows a block as a whole, where no turn begins in it; says whether it did.
    #[inline]
    fn passes(&mut self, block: BlockId, segments: &[SegmentId]) -> bool {
        let code = self.code;
        let whole = code.whole(block);
        // A segment that comes back begins no turn if it was refused often enough.
        let is_refused = |s: &SegmentId| self.refused[s.0 as usize] >= MOST_REFUSED;
        let all_refused = self.all_refused[block.index()] || segments.iter().all(is_refused);
        if !all_refused {
            let is_back = |s: &SegmentId| self.seen_in[s.0 as usize] == self.number && !is_refused(s);
            if whole.before & self.seen != 0 && segments[..whole.before_count].iter().any(is_back)
                || !whole.again.iter().all(is_refused)
            {
                return false;
            }
        }
        self.all_refused[block.index()] = all_refused;
        self.went(segments[0]);
        if whole.has_cut {
            self.forget();
        }
        if whole.first_left < segments.len() {
            self.behind.push((block, whole.first_left));
            self.latest = segments.last().copied();
            self.behind_count += segments.len() - whole.first_left;
            self.seen |= whole.left;
            if !all_refused {
                segments[whole.first_left..].iter().for_each(|s| self.seen_in[s.0 as usize] = self.number);
            }
            if self.behind_count > 4 * MOST_SEGMENTS {
                self.shorten();
            }
        }
        true
    }

    /// Forgets what lies too far back to be a part of a turn.
    fn shorten(&mut self) {
        self.take_reads_for_work();
        self.run.clear();
        self.number += 1;
        let count = |(block, first): &(BlockId, usize)| self.code.table.of_block(*block).len() - first;
        let mut left = 0;
        let kept = self.behind.iter().rposition(|part| {
            left += count(part);
            left >= MOST_SEGMENTS
        });
        self.behind.drain(..kept.unwrap_or(0));
        self.behind_count = left;
        let bits = |(block, _): &(BlockId, usize)| self.code.whole(*block).left;
        self.seen = self.behind.iter().fold(0, |seen, part| seen | bits(part));
        for (block, first) in &self.behind {
            let left = &self.code.table.of_block(*block)[*first..];
            left.iter().for_each(|s| self.seen_in[s.0 as usize] = self.number);
        }
    }

    /// Puts the segments that ran behind the run into it.
    #[inline]
    fn catch_up(&mut self) {
        if self.behind_count > 0 {
            self.behind_count = 0;
            for (block, first) in std::mem::take(&mut self.behind) {
                self.code.table.of_block(block)[first..].iter().for_each(|segment| self.push(*segment));
            }
        }
    }

    /// The thread runs a block inside of a function that is no part of any turn.
    pub fn elsewhere(&mut self, block: BlockId) {
        self.was_elsewhere = true;
        for segment in self.code.table.of_block(block) {
            if self.watching == 0 {
                return;
            }
            self.watch(*segment, true);
        }
    }

    /// The thread begins to wait in the kernel until another wakes it.
    pub fn blocks(&mut self) {
        let (turn, blocks) = self.left;
        if blocks > 0 && self.going.is_none() {
            self.candidates[turn].found.left_by_memory = true;
        }
    }

    fn segments(&mut self, mut segments: &[SegmentId]) {
        if self.was_elsewhere {
            self.come_back();
        }
        loop {
            if self.going.is_some() {
                segments = self.go_on(segments);
            }
            let Some((first, rest)) = segments.split_first() else { return };
            if self.going.is_some() {
                self.leave(Some(*first));
            }
            if self.has_reads {
                self.leave_in_first(*first);
            }
            if self.watching != 0 {
                self.watch(*first, false);
            }
            self.passes.go_on(&self.run, self.code);
            self.went(*first);
            if !self.code.can_wait(*first) {
                self.forget_before(*first);
            } else if self.begins_turn(*first) {
                continue;
            } else {
                self.push(*first);
            }
            segments = rest;
        }
    }

    /// The thread makes its turn over and over; returns the first segments that are none of it.
    fn go_on<'s>(&mut self, segments: &'s [SegmentId]) -> &'s [SegmentId] {
        let Some(Going { turn, head, next, times, .. }) = &mut self.going else { return segments };
        let Candidate { segments: turn, instructions, found, .. } = &mut self.candidates[*turn];
        for (i, segment) in segments.iter().enumerate() {
            if turn[*next] != *segment {
                return &segments[i..];
            }
            *next = if *next + 1 == turn.len() { 0 } else { *next + 1 };
            if *next == *head {
                found.instructions += *instructions;
                *times += 1;
            }
        }
        &[]
    }

    /// The thread reached this segment from the last one of the run, or behind it.
    #[inline]
    fn went(&self, to: SegmentId) {
        if let Some(from) = self.latest {
            self.code.went(from, to);
        }
    }

    fn push(&mut self, segment: SegmentId) {
        if self.run.len() == 4 * MOST_SEGMENTS {
            let cut = 3 * MOST_SEGMENTS;
            let kept = self.run.split_off(cut);
            self.cut_off(cut);
            self.forget_run();
            kept.into_iter().for_each(|segment| self.push(segment));
        }
        self.last[segment.0 as usize] = (self.run.len() as u32, self.number);
        self.seen |= bit(segment);
        self.seen_in[segment.0 as usize] = self.number;
        self.run.push(segment);
        self.latest = Some(segment);
    }

    /// The thread does something that is no part of a turn.
    pub fn interrupt(&mut self) {
        if self.going.is_some() {
            self.leave(None);
        }
        self.forget();
    }

    #[inline]
    fn forget(&mut self) {
        self.take_reads_for_work();
        if self.seen != 0 {
            self.forget_run();
        }
    }

    fn forget_run(&mut self) {
        self.run.clear();
        self.behind.clear();
        self.latest = None;
        (self.behind_count, self.seen) = (0, 0);
        self.number += 1;
    }

    /// Before this segment: whether the way since it ran before is a turn that could be waiting, and begins again.
    fn begins_turn(&mut self, segment: SegmentId) -> bool {
        let (at, number) = self.last[segment.0 as usize];
        let at = at as usize;
        if number != self.number || self.run.get(at) != Some(&segment) || self.run.len() - at > MOST_SEGMENTS {
            return false;
        }
        if !self.watched.is_empty() {
            self.link(at);
        }
        let shortest = &mut self.shortest[segment.0 as usize];
        *shortest = (*shortest).min(self.run.len() - at);
        if self.refused[segment.0 as usize] >= MOST_REFUSED {
            return false;
        }
        let met = match self.known.get_mut(&self.run[at..]) {
            Some(Met::Times(times)) if *times + 1 < JUDGED_AT => {
                *times += 1;
                Met::Work
            }
            Some(Met::Times(_)) => self.judge(at),
            Some(known) => *known,
            None => {
                if self.known.len() < MOST_TURNS {
                    self.known.insert(self.run[at..].into(), Met::Times(1));
                }
                Met::Work
            }
        };
        let Met::Turn(turn, head) = met else {
            self.refused[segment.0 as usize] += 1;
            return false;
        };
        let (before, way) = self.run.split_at(at);
        let times = before.rchunks(way.len()).take_while(|earlier| *earlier == way).count() as u64;
        // In a loop that a turn goes through, the way from its last iteration to the first one of the next turn is as
        // long as a turn that goes through it once.
        if times == 0 && self.shortest[segment.0 as usize] < way.len() {
            return false;
        }
        if !self.watched.is_empty() {
            self.go_on_with(turn, head, self.made_from(turn, head, at));
            self.take_reads_for_work();
        }
        self.candidates[turn].found.instructions += self.candidates[turn].instructions;
        self.going = Some(Going { turn, head, next: head, times, blocks: FxHashMap::default() });
        let before = at.saturating_sub(self.run.len() - at);
        self.run.truncate(at);
        for (place, segment) in self.run.iter().enumerate().skip(before) {
            self.last[segment.0 as usize] = (place as u32, self.number);
        }
        self.latest = self.run.last().copied();
        true
    }

    /// What the way from this place of the run is.
    fn judge(&mut self, from: usize) -> Met {
        let way: Turn = self.run[from..].into();
        let met = self.turn_of(&way).map_or(Met::Work, |(turn, head)| Met::Turn(turn, head));
        self.known.insert(way, met);
        met
    }

    /// The turn that a way is, and where in it the way begins; none where it is work.
    fn turn_of(&mut self, way: &Turn) -> Option<(usize, usize)> {
        let (segments, head) = canonical(way, self.code.table)?;
        // One that is work is met once for each of its segments: it is judged once all the same.
        let known = self.by_segments.get(&segments).copied();
        let turn = known.unwrap_or_else(|| {
            let candidate = self.code.candidate(&segments).map(|candidate| {
                self.candidates.push(candidate);
                self.candidates.len() - 1
            });
            self.by_segments.insert(segments, candidate);
            candidate
        });
        Some((turn?, head))
    }

    /// The thread leaves the turn that it went on making, for this segment.
    fn leave(&mut self, to: Option<SegmentId>) {
        let Some(Going { turn, head, next, times, .. }) = self.going.take() else { return };
        self.left = (turn, BLOCKS_AT);
        let candidate = &mut self.candidates[turn];
        // What the first turn found may come from before the loop; the second goes on as all others would.
        let repeats = times >= if next == head { 2 } else { 1 };
        candidate.found.repeats |= repeats;
        candidate.found.has_ended |= to.is_some();
        let count = candidate.segments.len();
        let left = (next + count - 1) % count;
        if let Some(effects) = &candidate.effects {
            // The stack pointer was followed up to the turn's head.
            let moved = effects.behind[left].sp - effects.behind[(head + count - 1) % count].sp;
            self.watched.iter_mut().for_each(|watched| watched.sp += moved);
            if to.is_some() && repeats && effects.behind[left].by_memory {
                candidate.found.left_at.insert(candidate.segments[left]);
            }
        }
        let candidate = &self.candidates[turn];
        let last: Vec<SegmentId> = if next != head {
            (0..(next + count - head) % count).map(|i| candidate.segments[(head + i) % count]).collect()
        } else {
            let before = self.run.last().map(|before| self.code.table[*before].ways);
            let to = to.map(|to| self.code.table[to].start());
            if leads_to(before.flatten(), to) {
                Vec::new()
            } else {
                candidate.segments.iter().cycle().skip(head).take(count).copied().collect()
            }
        };
        last.into_iter().for_each(|segment| self.push(segment));
        self.watch_for(turn, left, self.run.len() - 1);
    }

    /// The turns that could be waiting, and what the thread made of them; and where loops end in which it would have
    /// waited.
    pub fn finish(mut self) -> (Turns, FxHashSet<Pc>) {
        self.interrupt();
        for watched in &self.watched {
            self.candidates[watched.turn].found.was_followed = true;
        }
        (
            self.candidates.into_iter().map(|candidate| (candidate.segments, candidate.found)).collect(),
            self.passes.waits,
        )
    }
}
