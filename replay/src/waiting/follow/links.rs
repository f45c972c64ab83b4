//! Turns of one loop that go on in each other: a thread that looks the more rarely, the longer it waits, makes another
//! turn whenever it has counted further.
//!
//! Each of them reads what the one before carries. That is no use of it where all of them wait. So what is read of a
//! turn that a thread has left counts only once it is sure that the thread does not come back to where that turn asks
//! memory; if it does, and the way there is a turn, what the first carries is followed on as what that one does
//! ([`Found::goes_on`](super::super::cycle::Found::goes_on)).

use heuristics::SegmentId;

use super::super::candidate::Candidate;
use super::super::cycle::Turn;
use super::super::live_out::LiveOut;
use super::Follower;

impl Follower<'_> {
    /// The thread is back at this place of the run. Where a turn that it has left asks memory there, and the way is
    /// a turn of the same loop, what that carries goes on in this one.
    pub(super) fn link(&mut self, at: usize) {
        let head = self.run[at];
        let asks = |watched: &LiveOut| self.candidates[watched.turn].found.by_memory.contains(&head);
        if self.watched.iter().any(|watched| watched.is_whole_up_to(at, self.number) && asks(watched)) {
            let way: Turn = self.run[at..].into();
            if let Some((turn, place)) = self.turn_of(&way) {
                self.go_on_with(turn, place, at);
                self.watch_for(turn, place);
            }
        }
    }

    /// From this place of the run on the thread has made this turn, and once more this segment of it. What turns carry
    /// that it has left before, and which ask the same memory, goes on in this one: it waits, or none of them does.
    pub(super) fn go_on_with(&mut self, turn: usize, place: usize, at: usize) {
        let Candidate { segments, effects, .. } = self.candidates[turn].clone();
        let Some(effects) = effects else { return };
        for watched in self.watched.iter_mut().filter(|watched| watched.is_whole_up_to(at, self.number)) {
            let from = &mut self.candidates[watched.turn];
            if from.found.by_memory.iter().any(|one| segments.contains(one)) {
                let slots = from.effects.as_ref().map_or(&[][..], |effects| &effects.slots);
                watched.hand_over(slots, &effects.watched(turn, place), &effects.slots);
                from.found.goes_on(watched.left_at, &from.segments, &segments);
                // It is watched another time.
                from.left = from.left.saturating_sub(1);
                // This one begins with what the other has left, as after a turn of its own.
                self.candidates[turn].found.repeats = true;
            }
        }
        self.has_reads = self.watched.iter().any(|watched| watched.read_at.is_some());
        self.end_watching();
    }

    /// The thread comes back to no turn that it has left: what it read of theirs was for something else.
    #[inline]
    pub(super) fn take_reads_for_work(&mut self) {
        if std::mem::take(&mut self.has_reads) {
            for watched in &mut self.watched {
                self.candidates[watched.turn].found.lives_on |= watched.read_at.take().is_some();
            }
            self.end_watching();
        }
    }

    /// Before a segment that is no part of a turn. The loader's is none of the program's: how the thread goes on is
    /// seen another time.
    #[inline]
    pub(super) fn forget_before(&mut self, segment: SegmentId) {
        if self.has_reads && self.code.is_loaders(self.code.table[segment].start()) {
            for watched in self.watched.iter().filter(|watched| watched.read_at.is_some()) {
                let candidate = &mut self.candidates[watched.turn];
                candidate.left = candidate.left.saturating_sub(1);
            }
            self.watched.retain(|watched| watched.read_at.is_none());
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
            watched.run += u32::from(watched.run == self.number);
            self.candidates[watched.turn].found.lives_on |= has_read && watched.read_at.is_none();
        }
    }
}
