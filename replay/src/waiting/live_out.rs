//! What a turn carries, followed after the thread has left it: whether it is read, or written over first.

use super::registers::{Carried, FIRST_SLOT, FRAME_POINTER, Registers, Saved, Touch};

/// All that runs: where the stack pointer is followed.
pub(super) const EVERYTHING: Registers = 1 << 127;

/// Registers and slots that are followed after a loop.
#[derive(Clone)]
pub(super) struct LiveOut {
    pub turn: usize,
    pub registers: Registers,
    /// The slots among them that the stack pointer finds.
    pub in_stack: Registers,
    /// Where the stack pointer is, from where it was at the turn's beginning.
    pub sp: i64,
    pub saved: Saved,
    /// The segment of the turn behind which the thread has left it.
    pub left_at: usize,
    /// The run of the thread in which it has left it, where in that this segment stands, and where something of what
    /// the turn carries was read first.
    pub run: u32,
    pub left_from: usize,
    pub read_at: Option<usize>,
}

impl LiveOut {
    /// What of the registers is not saved, but in use.
    fn here(&self) -> Registers {
        self.registers & !self.saved.registers
    }

    /// Whether slots are followed, and the thread is in the function whose frame holds them.
    fn sees_frame(&self) -> bool {
        self.has_slots() && self.saved.registers & FRAME_POINTER == 0
    }

    fn has_slots(&self) -> bool {
        self.registers >> FIRST_SLOT != 0
    }

    fn drop_frame(&mut self, slots: &[Carried]) {
        for slot in slots.iter().filter(|slot| slot.by_frame) {
            self.registers &= !(1 << slot.bit);
        }
    }

    /// Whether the thread has left its turn in this run, and read nothing of it before this place of that.
    pub fn is_whole_up_to(&self, at: usize, run: u32) -> bool {
        self.run == run && self.read_at.is_none_or(|read| read >= at)
    }

    /// What another turn carries, too, is followed for that one from here on. Each of them has slots of its own.
    pub fn hand_over(&mut self, slots: &[Carried], to: &LiveOut, slots_of_it: &[Carried]) {
        let (here, there) = (self.sp, to.sp);
        self.registers &= !(to.registers & ((1 << FIRST_SLOT) - 1));
        for slot in slots {
            let is_same = |other: &&Carried| {
                let apart = if slot.by_frame { 0 } else { here - there };
                other.by_frame == slot.by_frame && other.size == slot.size && slot.at - other.at == apart
            };
            if slots_of_it.iter().any(|other| is_same(&other)) {
                self.registers &= !(1 << slot.bit);
            }
        }
        self.read_at = None;
    }

    /// What is looked for in code.
    pub fn wants(&self) -> Registers {
        self.registers
            | if self.has_slots() { FRAME_POINTER } else { 0 }
            | if self.registers & self.in_stack != 0 { EVERYTHING } else { 0 }
    }

    /// The stack pointer has moved to there: slots below it are gone.
    pub fn move_to(&mut self, sp: i64, slots: &[Carried]) {
        self.sp = sp;
        for slot in slots.iter().filter(|slot| !slot.by_frame && slot.at < sp) {
            self.registers &= !(1 << slot.bit);
        }
    }
}

/// What one touch does to what is watched; whether something of that is read.
pub(super) fn follow(watched: &mut LiveOut, touch: Touch, slots: &[Carried], is_elsewhere: bool) -> bool {
    let sees = |by_frame: bool| if by_frame { watched.sees_frame() } else { !is_elsewhere };
    let from = |by_frame: bool| if by_frame { 0 } else { watched.sp };
    let overlapping = |by_frame: bool, at: i64, size: usize| {
        let overlap = move |slot: &&Carried| {
            slot.by_frame == by_frame && slot.at < at + size as i64 && at < slot.at + slot.size as i64
        };
        slots.iter().filter(overlap)
    };
    match touch {
        Touch::Saves(one) if one & watched.wants() != 0 => watched.saved.save(one),
        Touch::Restores(one) if one & watched.wants() != 0 => {
            let was_saved = watched.saved.restore(one);
            if !was_saved {
                watched.registers &= !one;
                if one == FRAME_POINTER {
                    watched.drop_frame(slots);
                }
            }
        }
        Touch::Uses(read, written) => {
            let here = watched.here();
            let was_frame = watched.sees_frame();
            watched.registers &= !(written & here);
            if was_frame && written & FRAME_POINTER != 0 {
                watched.drop_frame(slots);
            }
            return read & here != 0;
        }
        Touch::ReadsSlot(by_frame, at, size) if sees(by_frame) => {
            let at = at + from(by_frame);
            return overlapping(by_frame, at, size).any(|slot| watched.registers & 1 << slot.bit != 0);
        }
        Touch::WritesSlot(by_frame, at, size) if sees(by_frame) => {
            let at = at + from(by_frame);
            let written = overlapping(by_frame, at, size)
                .filter(|slot| at <= slot.at && slot.at + slot.size as i64 <= at + size as i64);
            watched.registers = written.fold(watched.registers, |all, slot| all & !(1 << slot.bit));
        }
        _ => {}
    }
    false
}
