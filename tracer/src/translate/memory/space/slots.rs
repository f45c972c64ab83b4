//! The slots of the threads: values that translated code saves, and the buffers of records.

use std::ops::Range;

use nix::libc;

use super::Space;
use crate::kernel::ptrace::{Registers, Tid};
use crate::translate::addresses::RecordPlace;
use crate::translate::layout::{BUFFER_LEN, LONG_BUFFERS, PAGE, SLOTS, slot, slot_offset};
use crate::translate::remote::{self, Result};

/// So many buffers may stay mapped into this process once they have been read; where a program has more threads at
/// once, none does.
const SLOTS_IN_SIGHT: u32 = 128;

/// Which of the two buffers of a slot is written to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Open {
    /// Where its records start, from the slot's start on.
    start: u64,
    /// Whether it is the second one.
    is_second: bool,
}

/// Records that a thread has written.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    slot: u32,
    /// Where they lie in the memory of the slots.
    place: usize,
    /// How many words they have.
    pub words: usize,
}

impl Space {
    /// A slot for a new thread. None when all are taken.
    pub fn take_slot(&mut self, thread: Tid) -> Result<Option<u32>> {
        if let Some(slot) = self.free_slots.pop() {
            self.reset(slot);
            return Ok(Some(slot));
        }
        if u64::from(self.next_slot) == SLOTS {
            return Ok(None);
        }
        let slot = self.next_slot;
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let start = self.slot_address(slot);
        let buffer = self.buffer_len(slot);
        let first = (start, PAGE + buffer);
        let second = (start + first.1 + PAGE, buffer);
        for (start, length) in [first, second].into_iter().take(1 + usize::from(self.has_second(slot))) {
            let arguments = [start, length, protection, 0, 0, 0];
            if remote::call(thread, self.syscall_at, libc::SYS_mprotect, arguments)? != 0 {
                return Ok(None);
            }
        }
        self.next_slot += 1;
        self.reset(slot);
        Ok(Some(slot))
    }

    /// Whether this slot has two buffers: not where there are so many threads that some always run while one waits.
    #[must_use]
    pub fn has_second(&self, slot: u32) -> bool {
        slot < LONG_BUFFERS && self.small.may_be_two(slot)
    }

    /// The thread of this slot is gone.
    pub fn give_slot_back(&mut self, slot: u32) {
        self.slots.give_back(self.place(slot, PAGE), self.buffers_len(slot));
        self.free_slots.push(slot);
    }

    fn reset(&mut self, slot: u32) {
        let start = self.restart(slot);
        self.set_value(slot, slot::POINTER, start.0);
        self.set_value(slot, slot::HANDLER, 0);
        self.set_value(slot, slot::CHUNK_DUE, 0);
        self.slots.write(self.place(slot, slot::DUE.into()), &[0; 8 * slot::DUE_ENTRIES as usize]);
    }

    /// The buffer was read: the next records start here.
    pub fn restart(&mut self, slot: u32) -> RecordPlace {
        self.restart_with(slot, 0)
    }

    /// The same when a partly written record goes on in it; so many of its bytes are written.
    fn restart_with(&mut self, slot: u32, kept: u64) -> RecordPlace {
        let index = slot as usize;
        if self.open.len() <= index {
            self.open.resize(index + 1, Open::default());
        }
        let room = self.room.min(self.buffer_len(slot));
        let room = self.small.next(kept).map_or(room, |small| small.min(room));
        self.open[index].start = self.end_offset(slot) - room;
        self.buffer(slot)
    }

    /// The registers of the program for the thread of this slot, if it has reached 0 through an entry of the first
    /// lookup table that holds nothing (see `tables`). What it looks for comes next.
    #[must_use]
    pub fn after_empty_entry(&self, slot: u32, registers: &Registers) -> Option<Registers> {
        let by_lookup = registers.rip == 0 && registers.gs_base == self.slot_address(slot);
        by_lookup.then(|| self.before_target(slot, registers))
    }

    /// The registers of the program for a thread in a lookup: what it looks for, in rcx, comes next.
    pub(super) fn before_target(&self, slot: u32, registers: &Registers) -> Registers {
        Registers {
            rip: registers.rcx,
            rcx: self.value(slot, slot::RCX),
            rax: self.value(slot, slot::RAX),
            r11: self.value(slot, slot::R11),
            ..*registers
        }
    }

    fn offset(&self, slot: u32) -> u64 {
        slot_offset(slot.into(), self.buffer_len)
    }

    /// The bytes of each of its buffers.
    fn buffer_len(&self, slot: u32) -> u64 {
        if slot < LONG_BUFFERS { self.buffer_len } else { BUFFER_LEN }
    }

    /// The bytes of all of its buffers, with the pages between them and behind.
    fn buffers_len(&self, slot: u32) -> usize {
        (self.offset(slot + 1) - self.offset(slot) - PAGE) as usize
    }

    /// Where a slot lies in the program.
    #[must_use]
    pub fn slot_address(&self, slot: u32) -> u64 {
        self.slot_base + self.offset(slot)
    }

    /// Where the records in its buffer start.
    #[must_use]
    pub fn buffer(&self, slot: u32) -> RecordPlace {
        RecordPlace(self.slot_address(slot) + self.open[slot as usize].start)
    }

    /// Where its buffer ends.
    #[must_use]
    pub fn buffer_end(&self, slot: u32) -> RecordPlace {
        RecordPlace(self.slot_address(slot) + self.end_offset(slot))
    }

    /// The same from the slot's start on.
    fn end_offset(&self, slot: u32) -> u64 {
        let buffer = self.buffer_len(slot);
        let before = if self.open[slot as usize].is_second { buffer + PAGE } else { 0 };
        before + PAGE + buffer
    }

    /// Whether the address lies in the page behind its buffer.
    #[must_use]
    pub fn is_guard(&self, slot: u32, address: u64) -> bool {
        let end = self.buffer_end(slot).0;
        (end..end + PAGE).contains(&address)
    }

    fn place(&self, slot: u32, offset: u64) -> usize {
        (self.offset(slot) + offset) as usize
    }

    /// A value of a slot.
    #[must_use]
    pub fn value(&self, slot: u32, name: u32) -> u64 {
        self.slots.load(self.place(slot, name.into()))
    }

    /// Sets a value of a slot.
    pub fn set_value(&self, slot: u32, name: u32, value: u64) {
        self.slots.store(self.place(slot, name.into()), value);
    }

    /// Puts bytes into the scratch room of a slot and returns where they lie in the program.
    pub fn scratch(&self, slot: u32, bytes: &[u8]) -> u64 {
        assert!(bytes.len() <= (slot::DUE - slot::SCRATCH) as usize, "the scratch room is short");
        self.slots.write(self.place(slot, slot::SCRATCH.into()), bytes);
        self.slot_address(slot) + u64::from(slot::SCRATCH)
    }

    /// The records in the buffer of a slot, up to `pointer`.
    #[must_use]
    pub fn written(&self, slot: u32, pointer: RecordPlace) -> Written {
        let start = self.open[slot as usize].start;
        // What is written when a full buffer is left lies in the page behind it, which only the program may not touch.
        let length = pointer.behind(self.buffer(slot)).min(self.end_offset(slot) + PAGE - start);
        Written { slot, place: self.place(slot, start), words: (length / 4) as usize }
    }

    /// Some of these words.
    pub fn records(&self, written: Written, which: Range<usize>, words: &mut Vec<u32>) {
        self.slots.read_words(written.place + 4 * which.start, words, which.len());
    }

    /// All of them, up to `pointer`.
    pub fn all_records(&self, slot: u32, pointer: RecordPlace, words: &mut Vec<u32>) {
        let written = self.written(slot, pointer);
        self.records(written, 0..written.words, words);
    }

    /// These words were read, and will not be looked at again.
    pub fn records_are_read(&self, written: Written) {
        if self.next_slot > SLOTS_IN_SIGHT && 4 * written.words as u64 > PAGE {
            self.slots.look_away(self.place(written.slot, PAGE), self.buffers_len(written.slot));
        }
    }

    /// Writes bytes of records at this address. The page behind the buffer takes them too.
    pub fn write_record(&self, slot: u32, at: RecordPlace, bytes: &[u8]) {
        let offset = at.0 - self.slot_address(slot);
        assert!(offset + bytes.len() as u64 <= self.end_offset(slot) + PAGE, "a record lies in its buffer");
        self.slots.write(self.place(slot, offset), bytes);
    }

    /// The same where it is not sure that they belong there: says whether they do.
    pub fn try_write_record(&self, slot: u32, at: RecordPlace, bytes: &[u8]) -> bool {
        let fits = at >= self.buffer(slot) && at.0 + bytes.len() as u64 <= self.buffer_end(slot).0 + PAGE;
        if fits {
            self.write_record(slot, at, bytes);
        }
        fits
    }

    /// The next records go to the other buffer, or to the start of the only one, and there this returns. The part of a
    /// record from `pointer` on, which was written when the buffer became full, goes there too.
    pub fn change_buffer(&mut self, slot: u32, pointer: RecordPlace) -> RecordPlace {
        let end = self.buffer_end(slot);
        let mut words = Vec::new();
        let kept = if pointer < end { end.behind(pointer) } else { 0 };
        let from = self.place(slot, pointer.0 - self.slot_address(slot));
        self.open[slot as usize].is_second ^= self.has_second(slot);
        let start = self.restart_with(slot, kept);
        if kept > 0 {
            self.slots.read_words(from, &mut words, (kept / 4) as usize);
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.write_record(slot, start, &bytes);
        }
        start
    }
}
