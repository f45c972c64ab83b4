//! Writes to memory from which code was translated: by an instruction of the program, or by the kernel in a system
//! call.
//!
//! Such pages, and other pages that show the same memory, are read-only while there are translations (`program_code`).
//! The first write gives the translations up and lifts the protection, until code is translated from there again.
//!
//! Writes that bypass the memory map are not seen: to the file that is mapped, by another process (see `code_files` for
//! those of this one), and to `/proc/self/mem`.

use nix::libc;

use crate::kernel::calls::arguments_of;
use crate::kernel::ptrace::{self, Address, Registers, Tid};
use crate::translate::addresses::{CachePc, RecordPlace};
use crate::translate::calls::WRITING_CALLS;
use crate::translate::layout::{PAGE, slot};
use crate::translate::remote::{self, Lost, Result};
use crate::translate::session::Session;
use crate::translate::session::processes::running;
use crate::usage::Why;

/// `si_code` of a SIGSEGV for memory that is mapped, but not for this use.
const NOT_ALLOWED: i32 = 2;
/// A buffer whose length no argument tells is taken to be no longer.
const LONGEST_BUFFER: u64 = 64 << 10;
/// Arguments above are no lengths.
const LONGEST: u64 = 1 << 30;
/// The most buffers of one call: `UIO_MAXIOV`.
const MOST_BUFFERS: u64 = 1024;

impl Session<'_> {
    /// A fault of a write to a page that we made read-only, if it is one.
    pub(in crate::translate::session) fn write_to_code(&mut self, tid: Tid) -> Result<bool> {
        let info = ptrace::signal_info(tid)?;
        let page = info.address() & !(PAGE - 1);
        let Ok(translator) = self.translator_mut(tid) else { return Ok(false) };
        if info.code() != NOT_ALLOWED || !translator.code.protected_once.contains(&page) {
            return Ok(false);
        }
        if !translator.code.protected.contains_key(&page) {
            // Another thread's write may have lifted the protection in the meantime. Outside of translated code nothing
            // runs in which that could have been: this is another fault, as that of code that may not be executed.
            let pc = CachePc(ptrace::registers(tid)?.rip);
            translator.code.map_changed();
            let lifted = translator.space.is_ours(pc) && translator.code.region(page).is_some_and(|r| r.writable);
            if lifted {
                self.resume(tid, 0);
            }
            return Ok(lifted);
        }
        let registers = self.settle(tid)?;
        self.lift(tid, &[page], Why::Written)?;
        // The write itself is done outside of the cache: a superblock that writes to its own page would never make
        // progress.
        self.run_natively(tid, &registers)?;
        Ok(true)
    }

    /// Gives up what was translated from the memory that these protected pages show, and lets the program write to it.
    fn lift(&mut self, tid: Tid, pages: &[u64], why: Why) -> Result<()> {
        let translator = self.translator_mut(tid)?;
        for &page in pages {
            translator.memory_changes(page, PAGE, why);
        }
        self.leave_changed(tid)?;
        for &page in pages {
            let translator = self.translator_mut(tid)?;
            let Some(protected) = translator.code.protected.get(&page) else { continue };
            let arguments = [page, PAGE, protected.allowed, 0, 0, 0];
            remote::call(tid, translator.space.syscall_at, libc::SYS_mprotect, arguments)?;
            translator.memory_changed(page, PAGE, why);
        }
        Ok(())
    }

    /// Lifts the protection of all of this memory: what is mapped elsewhere must be mapped as the program knows it.
    pub(in crate::translate::session) fn lift_within(&mut self, tid: Tid, start: u64, length: u64) -> Result<()> {
        let pages = self.translator(tid)?.code.protected_in(&[(start, length)]);
        self.lift(tid, &pages, Why::Unmapped)
    }

    /// A system call that changes memory is about to be made at a landing.
    pub(in crate::translate::session) fn call_fills(&mut self, tid: Tid) -> Result<()> {
        let registers = ptrace::registers(tid)?;
        match registers.rax.cast_signed() {
            libc::SYS_brk => {}
            libc::SYS_madvise => self.make_at_landing(tid, &registers)?,
            number => match WRITING_CALLS.into_iter().find(|(call, _)| *call == number) {
                Some((_, at)) => self.write_to_file(tid, &registers, arguments_of(&registers)[at])?,
                None => drop(self.lift_for_call(tid, number.cast_unsigned(), &registers)?),
            },
        }
        self.resume(tid, 0);
        Ok(())
    }

    /// A system call, made by the instruction at `call`, has ended with `EFAULT`. Where a buffer of it lies in
    /// protected pages, it is made again.
    pub(in crate::translate::session) fn call_faulted(&mut self, tid: Tid, call: CachePc) -> Result<()> {
        let registers = ptrace::registers(tid)?;
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Err(Lost::Gone);
        };
        let number = translator.space.value(thread.slot, slot::NUMBER);
        let after = thread.pointer;
        // What was recorded of the call is taken back.
        thread.pointer = RecordPlace(translator.space.value(thread.slot, slot::POINTER));
        let before = thread.pointer;
        if self.lift_for_call(tid, number, &registers)? {
            ptrace::set_registers(tid, &Registers { rip: call.0, rax: number, r11: before.0, ..registers })?;
        } else if let Some(thread) = self.threads.get_mut(&tid) {
            thread.pointer = after;
        }
        self.resume(tid, 0);
        Ok(())
    }

    /// Lifts the protection of the buffers of a system call. False when none was protected.
    fn lift_for_call(&mut self, tid: Tid, number: u64, registers: &Registers) -> Result<bool> {
        let translator = self.translator(tid)?;
        if translator.code.protected.is_empty() {
            return Ok(false);
        }
        let arguments = arguments_of(registers);
        let pages = translator.code.protected_in(&buffers(tid, number.cast_signed(), &arguments));
        self.lift(tid, &pages, Why::WrittenByCall)?;
        Ok(!pages.is_empty())
    }
}

/// The memory that a system call with these arguments may write to: starts and lengths.
fn buffers(tid: Tid, number: i64, arguments: &[u64; 6]) -> Vec<(u64, u64)> {
    let word = |address: u64| ptrace::read_u64(tid, Address(address)).unwrap_or(0);
    let list = |at, count| buffers_in_list(tid, at, count);
    let [_, second, third, fourth, fifth, _] = *arguments;
    match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => vec![(second, third)],
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 | libc::SYS_process_vm_readv => list(second, third),
        // Of whatever process: pages of this one, if it is another, are protected again when they are next translated.
        libc::SYS_process_vm_writev => list(fourth, fifth),
        libc::SYS_recvmsg => list(word(second.wrapping_add(16)), word(second.wrapping_add(24))),
        _ => {
            let length = arguments.iter().copied().filter(|&n| n < LONGEST).max().unwrap_or(0).max(LONGEST_BUFFER);
            arguments.iter().map(|&start| (start, length)).collect()
        }
    }
}

/// The buffers in a list of them, as for `readv`: starts and lengths.
pub fn buffers_in_list(tid: Tid, at: u64, count: u64) -> Vec<(u64, u64)> {
    let word = |address: u64| ptrace::read_u64(tid, Address(address)).unwrap_or(0);
    let entries = (0..count.min(MOST_BUFFERS)).map(|entry| at.wrapping_add(16 * entry));
    entries.map(|at| (word(at), word(at.wrapping_add(8)))).collect()
}
