//! Signals: handlers that begin and end, and SIGTRAP, which the program must not lose to our stepping.
//!
//! A step ends with a SIGTRAP that the kernel forces on the thread. Where the program blocks or ignores SIGTRAP (glibc
//! blocks all signals while it makes a thread), forcing it resets the program's handler. So the kernel never finds
//! SIGTRAP blocked: it is taken out of every mask on its way to the kernel, and put back on its way to the program.

use nix::libc;

use super::Session;
use super::thread::{Syscall, Thread};
use crate::kernel::calls::set_argument;
use crate::kernel::frames::{FRAME_MASK, FRAME_PC, FRAME_SP, FRAME_STACK};
use crate::kernel::ptrace::{self, Address, Registers, SignalInfo, Tid};
use crate::record::sync_stack::Interrupted;

/// SIGTRAP in a signal mask.
pub(super) const TRAP_BIT: u64 = 1 << (libc::SIGTRAP - 1);
/// Signals that cannot be blocked.
const NEVER_BLOCKED: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
/// Below the stack pointer, functions may use so many bytes without moving it.
const RED_ZONE: u64 = 128;
/// In the frame of a handler: the saved argument registers of system calls, in order.
pub(super) const FRAME_ARGUMENTS: [u64; 6] = [112, 120, 144, 64, 48, 56];

impl Session<'_> {
    /// The kernel has built the frame of a signal handler; its first instruction is next.
    pub(super) fn handler_entered(&mut self, tid: Tid, registers: &Registers) {
        let frame = Address(registers.rsp);
        let word = |offset| ptrace::read_u64(tid, frame.plus(offset));
        let interrupted_pc = word(FRAME_PC).unwrap_or(0);
        let thread = self.thread(tid);
        if std::mem::take(&mut thread.restarting) {
            // Returning to the call itself, it has not run yet; returning behind it, it has.
            if interrupted_pc != thread.registers.rip {
                let mut after = thread.registers;
                after.rip = interrupted_pc;
                after.rax = (-i64::from(libc::EINTR)).cast_unsigned();
                self.retire(tid, &after);
            }
        }
        self.flush(tid);
        let interrupted_sp = word(FRAME_SP).unwrap_or(registers.rsp);
        let alternate = match (word(FRAME_STACK), word(FRAME_STACK + 16)) {
            (Some(start), Some(size)) if start <= registers.rsp && registers.rsp < start.saturating_add(size) => {
                Some(start..start + size)
            }
            _ => None,
        };
        let thread = self.thread(tid);
        thread.sync.signal(Interrupted { sp: interrupted_sp, transferred: false }, alternate);
        thread.repeating = None;
        thread.syscall = None;
        let sp_before = std::mem::replace(&mut thread.registers, *registers).rsp;
        show_trap_in_frame(tid, frame, &mut thread.trap.blocked);
        let (id, number, process) = (thread.id, thread.injected, thread.process);
        let handler = self.processes.entry(process).or_default().modules.pc(registers.rip);
        self.recorder.signal(id, number, handler, registers.rsp, sp_before);
        self.come_to_gate(tid);
        self.prepare(tid);
    }

    /// A SIGTRAP of the program's own: returns the signal to deliver now.
    pub(super) fn program_trap(&mut self, tid: Tid, info: SignalInfo) -> i32 {
        let process = self.threads[&tid].process;
        if self.processes.get(&process).is_some_and(|process| process.trap_ignored) {
            return 0;
        }
        let thread = self.thread(tid);
        if thread.trap.blocked {
            thread.trap.deferred = Some(info);
            return 0;
        }
        libc::SIGTRAP
    }

    /// The thread is stopped after a step: the SIGTRAP that waited, if the program no longer blocks it.
    pub(super) fn deferred_trap(&mut self, tid: Tid) -> i32 {
        let trap = &mut self.thread(tid).trap;
        if trap.blocked {
            return 0;
        }
        match trap.deferred.take() {
            Some(info) if ptrace::set_signal_info(tid, &info).is_ok() => libc::SIGTRAP,
            _ => 0,
        }
    }

    /// `rt_sigprocmask(how, set, old, size)` is answered here wherever SIGTRAP is concerned.
    pub(super) fn change_mask(&mut self, tid: Tid, registers: &Registers) -> Option<Registers> {
        let thread = self.thread(tid);
        let Syscall { arguments: [how, set, old, size, ..], .. } = thread.syscall?;
        if size != 8 {
            return None;
        }
        let set = match set {
            0 => None,
            address => Some(ptrace::read_u64(tid, Address(address))?),
        };
        if !thread.trap.blocked && set.is_none_or(|set| set & TRAP_BIT == 0) {
            return None;
        }
        let kernel = ptrace::signal_mask(tid).ok()?;
        let current = if thread.trap.blocked { kernel | TRAP_BIT } else { kernel };
        let new = match (set, how as i32) {
            (None, _) => current,
            (Some(set), libc::SIG_BLOCK) => current | set,
            (Some(set), libc::SIG_UNBLOCK) => current & !set,
            (Some(set), libc::SIG_SETMASK) => set,
            _ => return None,
        } & !NEVER_BLOCKED;
        ptrace::set_signal_mask(tid, new & !TRAP_BIT).ok()?;
        thread.trap.blocked = new & TRAP_BIT != 0;
        let stored = old == 0 || ptrace::write(tid, Address(old), &current.to_le_bytes());
        let mut after = *registers;
        after.rip += 2;
        after.rax = if stored { 0 } else { (-i64::from(libc::EFAULT)).cast_unsigned() };
        after.rcx = after.rip;
        after.r11 = after.eflags;
        after.orig_rax = u64::MAX;
        Some(after)
    }

    /// `rt_sigreturn` sets the mask from the frame: SIGTRAP is taken out of that.
    pub(super) fn before_sigreturn(&mut self, tid: Tid, registers: &Registers) {
        // The handler's `ret` has taken the first word off the frame.
        let mask_at = Address(registers.rsp - 8).plus(FRAME_MASK);
        if let Some(mask) = ptrace::read_u64(tid, mask_at) {
            self.thread(tid).trap.blocked = mask & TRAP_BIT != 0;
            if mask & TRAP_BIT != 0 {
                ptrace::write(tid, mask_at, &(mask & !TRAP_BIT).to_le_bytes());
            }
        }
    }

    /// `rt_sigaction(signal, new, old, size)`: notes whether SIGTRAP is ignored.
    pub(super) fn before_sigaction(&mut self, tid: Tid, [signal, new, ..]: [u64; 6]) {
        if signal as i32 == libc::SIGTRAP
            && new != 0
            && let Some(handler) = ptrace::read_u64(tid, Address(new))
        {
            let process = self.threads[&tid].process;
            self.processes.entry(process).or_default().trap_ignored = handler == libc::SIG_IGN as u64;
        }
    }

    /// Calls that set a mask while they wait are given a copy of it without SIGTRAP, below the stack.
    pub(super) fn before_temporary_mask(&mut self, tid: Tid, registers: &mut Registers) {
        let Thread { syscall: Some(call), .. } = self.thread(tid) else { return };
        // Where the mask's address is: the number of the argument.
        let (argument, in_pair) = match call.number.cast_signed() {
            libc::SYS_rt_sigsuspend => (0, false),
            libc::SYS_ppoll => (3, false),
            libc::SYS_pselect6 => (5, true),
            _ => (4, false),
        };
        let given = Address(call.arguments[argument]);
        let mask_at = if in_pair { ptrace::read_u64(tid, given).map(Address) } else { Some(given) };
        let Some(mask) = mask_at.and_then(|address| ptrace::read_u64(tid, address)) else { return };
        if mask & TRAP_BIT == 0 {
            return;
        }
        let copy = (registers.rsp - RED_ZONE - 64) & !15;
        let mut bytes = (mask & !TRAP_BIT).to_le_bytes().to_vec();
        bytes.extend(copy.to_le_bytes());
        bytes.extend(8u64.to_le_bytes());
        if ptrace::write(tid, Address(copy), &bytes) {
            call.restore = Some(argument);
            set_argument(registers, argument, if in_pair { copy + 8 } else { copy });
            let _ = ptrace::set_registers(tid, registers);
        }
    }
}

/// A handler runs with SIGTRAP blocked when its mask says so, or when it was before: the kernel forgets, we remember.
/// The frame tells the program of the mask before.
fn show_trap_in_frame(tid: Tid, frame: Address, blocked: &mut bool) {
    if *blocked && let Some(saved) = ptrace::read_u64(tid, frame.plus(FRAME_MASK)) {
        ptrace::write(tid, frame.plus(FRAME_MASK), &(saved | TRAP_BIT).to_le_bytes());
    }
    if let Ok(mask) = ptrace::signal_mask(tid)
        && mask & TRAP_BIT != 0
    {
        let _ = ptrace::set_signal_mask(tid, mask & !TRAP_BIT);
        *blocked = true;
    }
}
