//! System calls that change the memory map, or what memory holds.
//!
//! What was translated from that memory is given up, and left by all threads, before the call is made: after it the
//! memory may be written without our knowledge.

use nix::libc;

use crate::kernel::calls::arguments_of;
use crate::kernel::ptrace::{self, Registers, Tid};
use crate::translate::addresses::CachePc;
use crate::translate::code::expansions::SYSCALL_LEN;
use crate::translate::layout::{PAGE, slot};
use crate::translate::remote::{Lost, Result};
use crate::translate::session::Session;
use crate::translate::session::processes::running;
use crate::usage::Why;

/// Advice that takes away what memory holds. The `libc` crate does not have all of it.
const MADV_DONTNEED_LOCKED: i32 = 24;
const MADV_GUARD_INSTALL: i32 = 102;

/// Whether this advice, as for `madvise`, takes away what memory holds, at once or later.
fn discards(advice: u64) -> bool {
    matches!(
        advice as i32,
        libc::MADV_DONTNEED | libc::MADV_FREE | libc::MADV_REMOVE | MADV_DONTNEED_LOCKED | MADV_GUARD_INSTALL
    )
}

/// What a call does with memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Change {
    /// The memory that holds other code behind it: starts and lengths.
    pieces: Vec<(u64, u64)>,
    /// Whether the memory that is there has to be as the program knows it, since it is moved, or has to be writable.
    as_known: bool,
}

impl Change {
    /// What the call with these arguments will do.
    fn of(tid: Tid, number: i64, arguments: &[u64; 6]) -> Change {
        let [first, second, third, fourth, fifth, _] = *arguments;
        let mut change = Change::default();
        match number {
            libc::SYS_mmap if fourth & libc::MAP_FIXED as u64 != 0 => change.pieces.push((first, second)),
            libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect => change.pieces.push((first, second)),
            libc::SYS_mremap => {
                change.pieces.push((first, second.max(third)));
                if fourth & libc::MREMAP_FIXED as u64 != 0 {
                    change.pieces.push((fifth, third));
                }
                change.as_known = true;
            }
            libc::SYS_remap_file_pages => {
                change.pieces.push((first, second));
                change.as_known = true;
            }
            libc::SYS_madvise if discards(third) => {
                change.pieces.push((first, second));
                change.as_known = true;
            }
            // Only its own memory may be taken away like that.
            libc::SYS_process_madvise if discards(fourth) => {
                change.pieces = crate::translate::session::changes::code_writes::buffers_in_list(tid, second, third);
                change.as_known = true;
            }
            _ => {}
        }
        change
    }
}

/// Why code is thrown away that lies in memory which this call changes.
fn why(number: i64) -> Why {
    match number {
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => Why::Protection,
        _ => Why::Unmapped,
    }
}

impl Session<'_> {
    /// Makes a call that may change memory, or what is known about it, in the program's place. Returns what the kernel
    /// returned.
    pub(in crate::translate::session) fn memory_call(
        &mut self,
        tid: Tid,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<i64> {
        if self.would_hit_ours(tid, number, &arguments)? {
            return Ok(-i64::from(libc::ENOMEM));
        }
        if self.makes_new_code(tid, number, &arguments)? {
            return Ok(-i64::from(libc::EACCES));
        }
        let change = Change::of(tid, number, &arguments);
        self.before_new_view(tid, number, &arguments);
        if number == libc::SYS_madvise && arguments[2] as i32 == libc::MADV_FREE {
            self.translator_mut(tid)?.code.remember_freed(arguments[0], arguments[1]);
        }
        if change.as_known {
            for &(start, length) in &change.pieces {
                self.lift_within(tid, start, length)?;
            }
        }
        let translator = self.translator_mut(tid)?;
        for &(start, length) in &change.pieces {
            translator.memory_changes(start, length, why(number));
        }
        self.leave_changed(tid)?;
        let result = self.call(tid, number, arguments)?;
        if !(-4095..0).contains(&result) {
            self.memory_was_changed(tid, number, &arguments, result.cast_unsigned(), &change);
        }
        Ok(result)
    }

    /// The call was made. What memory shows may be known already where it was changed by the kernel alone.
    fn memory_was_changed(&mut self, tid: Tid, number: i64, arguments: &[u64; 6], result: u64, change: &Change) {
        let [first, second, third, ..] = *arguments;
        let code = third & libc::PROT_EXEC as u64 != 0;
        self.before_new_view(tid, number, arguments);
        match number {
            libc::SYS_mmap => {
                self.memory_changed(tid, result, second, why(number), code && arguments[4].cast_signed() as i32 >= 0);
            }
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => self.memory_changed(tid, first, second, why(number), code),
            libc::SYS_mremap => {
                self.memory_changed(tid, first, second, why(number), false);
                self.memory_changed(tid, result, third, why(number), false);
            }
            libc::SYS_shmat => self.memory_changed(tid, result, 1, why(number), false),
            _ => {
                for &(start, length) in &change.pieces {
                    self.memory_changed(tid, start, length, why(number), false);
                }
            }
        }
        let gives_code = matches!(number, libc::SYS_mprotect | libc::SYS_pkey_mprotect) && code;
        if let Ok(translator) = self.translator_mut(tid).map_err(drop)
            && gives_code
        {
            // What was written there can be taken away again.
            translator.space.tables.be_careful();
        }
    }

    /// After the call, shared memory can be written at one more place: what was translated from such memory is given
    /// up.
    fn before_new_view(&mut self, tid: Tid, number: i64, arguments: &[u64; 6]) {
        let writable = arguments[2] & libc::PROT_WRITE as u64 != 0;
        let Ok(translator) = self.translator_mut(tid) else { return };
        let new = match number {
            libc::SYS_mmap => writable && arguments[3] & libc::MAP_SHARED as u64 != 0,
            libc::SYS_mremap | libc::SYS_shmat => true,
            libc::SYS_mprotect | libc::SYS_pkey_mprotect if writable && !translator.code.shared_pages().is_empty() => {
                translator.code.map_changed();
                translator.code.region(arguments[0]).is_some_and(|region| region.shared)
            }
            _ => false,
        };
        if new {
            translator.shared_memory_changed();
        }
    }

    /// This memory may hold other code than before, or code now.
    fn memory_changed(&mut self, tid: Tid, start: u64, length: u64, why: Why, code: bool) {
        let Ok(translator) = self.translator_mut(tid) else { return };
        if start < PAGE {
            translator.space.tables.fill_all();
        }
        let had_code = translator.code.modules.has_code_in(start, length);
        translator.memory_changed(start, length, why);
        if code || had_code {
            self.refresh_modules(tid);
        }
    }

    /// Looks at the memory map, and writes which modules came and went.
    pub(in crate::translate::session) fn refresh_modules(&mut self, tid: Tid) {
        self.drain(tid);
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else { return };
        let changes = translator.code.refresh_modules(&mut self.images);
        translator.code.gates.modules_changed(&translator.code.modules);
        if self.recording {
            self.recorder.modules(thread.stream.id, &mut translator.code.modules, &changes);
        }
    }

    /// A thread stands before a call that it would make by itself at a landing. It is made in its place, and goes on
    /// behind it.
    pub(in crate::translate::session) fn make_at_landing(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        let arguments = arguments_of(registers);
        let result = self.memory_call(tid, registers.rax.cast_signed(), arguments)?;
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        translator.space.set_value(thread.slot, slot::POINTER, thread.pointer.0);
        let call = translator.space.call_near(CachePc(registers.rip)).ok_or(Lost::Gone)?;
        let rip = call.plus(SYSCALL_LEN).0;
        let rax = result.cast_unsigned();
        ptrace::set_registers(tid, &Registers { rip, rax, rcx: rip, r11: registers.eflags, ..*registers })?;
        Ok(())
    }
}
