//! What turns carry, followed after the thread has left them.

use heuristics::SegmentId;
use trace_format::SpEffect;

use super::super::live_out::{EVERYTHING, LiveOut, follow};
use super::{Follower, MOST_WATCHED};

impl Follower<'_> {
    /// What this turn carries is followed from behind this segment of it on, which stands at that place of the run.
    pub(super) fn watch_for(&mut self, turn: usize, left: usize, left_from: usize) {
        let candidate = &mut self.candidates[turn];
        let Some(effects) = &candidate.effects else { return };
        candidate.left += 1;
        if effects.carried != 0 && !candidate.found.lives_on && candidate.left <= MOST_WATCHED {
            let watched = LiveOut { run: self.number, left_from, ..effects.watched(turn, left) };
            self.watching |= watched.wants();
            self.watched.push(watched);
        }
    }

    /// Whether the registers and slots that are followed are read, or written over, in this segment.
    pub(super) fn watch(&mut self, segment: SegmentId, is_elsewhere: bool) {
        let code = self.code;
        let sp = code.table[segment].sp;
        let is_lost = !is_elsewhere && (sp == SpEffect::Recorded || code.is_loaders(code.table[segment].start()));
        if self.watching & EVERYTHING != 0 && is_lost {
            self.lose_stack();
        }
        let (every, touches) = code.touches(segment);
        if (*every | EVERYTHING) & self.watching == 0 {
            return;
        }
        for watched in &mut self.watched {
            let slots = self.candidates[watched.turn].effects.as_ref().map_or(&[][..], |effects| &effects.slots);
            let mut is_read = false;
            for touch in touches.iter() {
                is_read |= follow(watched, *touch, slots, is_elsewhere);
            }
            if let SpEffect::Add(by) = sp
                && !is_elsewhere
            {
                watched.move_to(watched.sp + i64::from(by), slots);
            }
            if is_read && is_elsewhere {
                self.candidates[watched.turn].found.lives_on = true;
            } else if is_read {
                watched.read_at.get_or_insert(self.run.len());
                self.has_reads = true;
            }
        }
        self.end_watching();
    }

    /// Forgets what need not be watched any more.
    pub(super) fn end_watching(&mut self) {
        for watched in &self.watched {
            self.candidates[watched.turn].found.was_followed |= watched.registers == 0;
        }
        let candidates = &self.candidates;
        self.watched.retain(|watched| {
            (watched.registers != 0 || watched.read_at.is_some()) && !candidates[watched.turn].found.lives_on
        });
        self.watching = self.watched.iter().fold(0, |all, watched| all | watched.wants());
    }

    /// The thread is back from such a function, which has taken its return address from the stack.
    pub(super) fn come_back(&mut self) {
        self.was_elsewhere = false;
        for watched in &mut self.watched {
            let slots = self.candidates[watched.turn].effects.as_ref().map_or(&[][..], |effects| &effects.slots);
            watched.move_to(watched.sp + 8, slots);
        }
        self.end_watching();
    }

    /// It is not known where the stack pointer is: what it finds can no longer be followed.
    pub fn lose_stack(&mut self) {
        for watched in self.watched.iter().filter(|watched| watched.registers & watched.in_stack != 0) {
            // It will be watched another time.
            let candidate = &mut self.candidates[watched.turn];
            candidate.watch_again();
            candidate.found.lives_on |= watched.read_at.is_some();
        }
        self.watched.retain(|watched| watched.registers & watched.in_stack == 0);
        self.watching = self.watched.iter().fold(0, |all, watched| all | watched.wants());
    }
}
