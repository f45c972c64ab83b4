//! Turns of one loop that go on in each other: a thread that looks the more rarely, the longer it waits, makes another
//! turn whenever it has counted further.
//!
//! Each of them reads what the one before carries. That is no use of it where all of them wait. So what is read of a
//! turn that a thread has left counts only once it is sure that the thread does not come back to where that turn asks
//! memory; if it does, and the way there is a turn, what the first carries is followed on as what that one does
//! ([`Found::goes_on`](super::super::cycle::Found::goes_on)).

use heuristics::SegmentId;

use super::super::candidate::{Candidate, Met};
use super::super::cycle::{MOST_SEGMENTS, Turn};
use super::super::live_out::LiveOut;
use super::Follower;

/// Ways behind a turn that may be parts of others; a thread that goes more of them has work of its own there.
const MOST_BEGUN: usize = 16;

impl Follower<'_> {
    /// The thread is back at this place of the run. Where a turn that it has left asks memory there, or the way does
    /// that read what it carries, and the way is a turn of the same loop, what that carries goes on in this one.
    pub(super) fn link(&mut self, at: usize) {
        let head = self.run[at];
        let may_ask = |watched: &LiveOut| {
            watched.read_at.is_some() || self.candidates[watched.turn].found.by_memory.contains(&head)
        };
        if !self.watched.iter().any(|watched| watched.is_whole_up_to(at, self.number) && may_ask(watched)) {
            return;
        }
        let (turn, place) = match self.known.get(&self.run[at..]) {
            Some(Met::Turn(turn, place)) => (*turn, *place),
            Some(Met::Work) => return,
            _ => match self.turn_of(&self.run[at..].into()) {
                Some(known) => known,
                None => return,
            },
        };
        if self.candidates[turn].found.by_memory.contains(&head) && self.go_on_with(turn, place, at) {
            self.watch_for(turn, place, self.run.len());
        }
    }

    /// Before the thread goes on to this segment: where it has left a turn, and leaves the loop in the first turn of
    /// another form, what the first carries goes on in that one. Nobody need ever have made that whole, as where a long
    /// rest comes in it.
    pub(super) fn leave_in_first(&mut self, to: SegmentId) {
        for watched in 0..self.watched.len() {
            let first = self.watched.get(watched).and_then(|watched| self.first_of_other(watched, to));
            let Some((turn, place, from)) = first.and_then(|(way, from)| {
                let (turn, begin) = self.turn_of(&way)?;
                Some((turn, (begin + self.run.len() - 1 - from) % way.len(), from))
            }) else {
                continue;
            };
            let Candidate { segments, effects, found, .. } = &mut self.candidates[turn];
            if found.ends.contains(&segments[place]) {
                if effects.as_ref().is_some_and(|effects| effects.behind[place].by_memory) {
                    found.left_at.insert(segments[place]);
                }
                if self.go_on_with(turn, place, from) {
                    self.watch_for(turn, place, self.run.len() - 1);
                    return;
                }
            }
        }
    }

    /// The turn of another form than one that the thread has left, if it is in that and goes on to this segment instead
    /// of back to where it would be in the other again: the way that it went since, and the rest of the turn that it
    /// has left. And where in the run it begins.
    fn first_of_other(&self, watched: &LiveOut, to: SegmentId) -> Option<(Turn, usize)> {
        let (Candidate { segments, found, .. }, table) = (&self.candidates[watched.turn], self.code.table);
        let last = *self.run.last().filter(|_| watched.run == self.number)?;
        if watched.read_at.is_none() || segments.contains(&last) && !found.ends.contains(&last) {
            return None;
        }
        let back = table[last].ways?.into_iter().find(|way| *way != table[to].start())?;
        let at = segments.iter().position(|segment| table[*segment].start() == back)?;
        // Where the thread would come back behind where it has left the turn, the other one begins there.
        let behind = (watched.left_at + 1) % segments.len();
        let from = watched.left_from + usize::from(at == behind);
        let rest = (at..at + segments.len()).map(|place| place % segments.len());
        let rest = rest.take_while(|place| at != behind && *place != watched.left_at).map(|place| segments[place]);
        let way: Turn = self.run.get(from..)?.iter().copied().chain(rest).collect();
        (way.len() <= MOST_SEGMENTS).then_some((way, from))
    }

    /// From where in the run on the thread has made this turn, and nothing else: it begins with this segment of it at a
    /// place, and all that came right before is of it, too.
    pub(super) fn made_from(&self, turn: usize, place: usize, at: usize) -> usize {
        let segments = &self.candidates[turn].segments;
        let before = segments[..place].iter().rev().chain(segments.iter().rev().cycle());
        at - self.run[..at].iter().rev().zip(before).take_while(|(ran, of_turn)| ran == of_turn).count()
    }

    /// From this place of the run on the thread has made this turn, and once more this segment of it. What turns of the
    /// same loop carry that it has left before goes on in this one: it waits, or none of them does.
    /// Says whether there are such.
    pub(super) fn go_on_with(&mut self, turn: usize, place: usize, at: usize) -> bool {
        let Candidate { segments, effects: Some(effects), .. } = &self.candidates[turn] else { return false };
        let (segments, effects) = (segments.clone(), effects.clone());
        let mut is_linked = false;
        for watched in self.watched.iter_mut().filter(|watched| watched.is_whole_up_to(at, self.number)) {
            let from = &mut self.candidates[watched.turn];
            if from.segments.iter().any(|one| segments.contains(one)) {
                let slots = from.effects.as_ref().map_or(&[][..], |effects| &effects.slots);
                watched.hand_over(slots, &effects.watched(turn, place), &effects.slots);
                from.found.goes_on(watched.left_at, &from.segments, &segments);
                // It is watched another time.
                from.watch_again();
                // This one begins with what the other has left, as after a turn of its own.
                self.candidates[turn].found.repeats = true;
                is_linked = true;
            }
        }
        self.has_reads = self.watched.iter().any(|watched| watched.read_at.is_some());
        self.end_watching();
        is_linked
    }

    /// The thread comes back to no turn that it has left: what it read of theirs was for something else. It may have
    /// left the loop in the first turn of another form, though, which has read it: how it goes on is seen another time.
    #[inline]
    pub(super) fn take_reads_for_work(&mut self) {
        if std::mem::take(&mut self.has_reads) {
            for watched in std::mem::take(&mut self.watched) {
                match watched.read_at {
                    None => self.watched.push(watched),
                    Some(read) => self.begins_with(&watched, read),
                }
            }
            self.end_watching();
        }
    }

    /// The thread has read what that turn carries at this place of the run, on a way that may be a turn's.
    fn begins_with(&mut self, watched: &LiveOut, read: usize) {
        let way = self.run.get(watched.left_from..=read).filter(|_| watched.run == self.number);
        let found = &mut self.candidates[watched.turn].found;
        // There is no way where it was read before the turn was left.
        match way.filter(|way| (1..=MOST_SEGMENTS).contains(&way.len())) {
            Some(way) if found.begun.contains(way) => {}
            Some(way) if found.begun.len() < MOST_BEGUN => {
                found.begun.insert(way.into());
                self.candidates[watched.turn].watch_again();
            }
            _ => found.lives_on = true,
        }
    }

    /// Before a segment that is no part of a turn. The loader's is none of the program's: how the thread goes on is
    /// seen another time.
    #[inline]
    pub(super) fn forget_before(&mut self, segment: SegmentId) {
        if !self.watched.is_empty() && self.code.is_loaders(self.code.table[segment].start()) {
            for watched in self.watched.iter().filter(|watched| watched.run == self.number) {
                self.candidates[watched.turn].watch_again();
            }
            self.watched.retain(|watched| watched.run != self.number);
            self.has_reads = false;
            self.end_watching();
        }
        self.forget();
    }

    /// The run loses so many segments at its beginning, and is another one from then on.
    pub(super) fn cut_off(&mut self, count: usize) {
        for watched in &mut self.watched {
            let has_read = watched.read_at.is_some();
            watched.read_at = watched.read_at.and_then(|read| read.checked_sub(count));
            watched.left_from = watched.left_from.saturating_sub(count);
            watched.run += u32::from(watched.run == self.number);
            self.candidates[watched.turn].found.lives_on |= has_read && watched.read_at.is_none();
        }
    }
}
