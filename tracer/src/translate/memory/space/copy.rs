//! Memory for a process that was forked: it has ours of the process that made it, and gets its own, with the same
//! contents at the same places.

use nix::libc;

use super::{Cache, NAME_AT, Space};
use crate::kernel::ptrace::Tid;
use crate::translate::layout::{CACHE_LEN, COLD_START, TABLES_LEN, slots_len};
use crate::translate::memory::mapper::{Mapper, SetUpError};

impl Space {
    /// Replaces this memory in `child`, a copy of the process to which it belongs, by its copy, whose slots are all
    /// free. What is marked in the tables of bytes is left out.
    pub fn copy_for(&self, child: Tid) -> Result<Space, SetUpError> {
        self.slots.write(NAME_AT as usize, b"lockstep\0");
        let mapper = Mapper { process: child, syscall_at: self.syscall_at, name: self.slot_base + NAME_AT };
        let readable = libc::PROT_READ;
        let place = self.tables.lookup.tables;
        let tables = mapper.replace(place, TABLES_LEN, readable, |memory| self.tables.copy_to(memory))?;
        let mut caches = Vec::new();
        for cache in &self.caches {
            let memory = mapper.replace(cache.base.0, CACHE_LEN, readable | libc::PROT_EXEC, |memory| {
                memory.copy_from(&cache.memory, 0, cache.hot as usize);
                memory.copy_from(&cache.memory, COLD_START as usize, (cache.cold - COLD_START) as usize);
            })?;
            caches.push(Cache { memory, ..*cache });
        }
        // The name lies in a slot, so they come last.
        let slots = mapper.replace(self.slot_base, slots_len(self.buffer_len), libc::PROT_NONE, |_| ())?;
        let copy = Space {
            process: child,
            buffer_len: self.buffer_len,
            room: self.room,
            small: self.small,
            open: Vec::new(),
            syscall_at: self.syscall_at,
            first_break: self.first_break,
            no_new_code: if self.no_new_code & 2 == 0 { self.no_new_code } else { 0 },
            refused: None,
            tables: self.tables.in_copy(tables),
            slots,
            slot_base: self.slot_base,
            free_slots: Vec::new(),
            next_slot: 0,
            caches,
            crowded: self.crowded.clone(),
            without_room: 0,
            traps: self.traps.clone(),
            rest: self.rest,
            signal_entry: self.signal_entry,
            signal_lookup: self.signal_lookup,
            signal_left: self.signal_left,
            left_lookup: self.left_lookup,
        };
        copy.watch_break();
        Ok(copy)
    }
}
