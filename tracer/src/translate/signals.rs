//! Signals: handlers that begin and end.
//!
//! A handler must find the registers of the program, and the kernel must build its frame from them: the thread is
//! brought to a place between two instructions, its registers are set to the program's, and it runs one step with the
//! signal, into the handler. Then it goes on in the translation of the handler. `rt_sigreturn` is the same way back.
//!
//! `storms` has a shorter way for signals that come often.

use nix::libc;

use super::Session;
use super::processes::running;
use super::remote::{self, Lost, Result, VITAL};
use super::syscalls::SA_NODEFER;
use crate::ptrace::{self, Address, Registers, SignalInfo, Stop, Tid};

/// Where things lie in the frame that the kernel builds for a handler, from the stack pointer at its first instruction
/// on.
pub const FRAME_STACK: u64 = 24;
pub const FRAME_SP: u64 = 168;
pub const FRAME_PC: u64 = 176;
pub const FRAME_FLAGS: u64 = 184;
pub const FRAME_CS: u64 = 192;
pub const FRAME_MASK: u64 = 304;

/// The flag by which a thread is stepped, by itself or by its tracer: programs see it in r11 behind a call.
pub const STEP_FLAG: u64 = 0x100;

/// What the program does at a signal, as `rt_sigaction` was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Where the handler starts.
    pub handler: u64,
    /// The flags, as `SA_RESTART`.
    pub flags: u64,
    restorer: u64,
    mask: u64,
}

impl Action {
    /// The length of the kernel's form.
    pub const LEN: usize = 32;

    /// From the kernel's form.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Action::LEN]) -> Action {
        let [handler, flags, restorer, mask] =
            [0, 8, 16, 24].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")));
        Action { handler, flags, restorer, mask }
    }

    /// To the kernel's form.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Action::LEN] {
        let mut bytes = [0; Action::LEN];
        for (place, value) in bytes.chunks_mut(8).zip([self.handler, self.flags, self.restorer, self.mask]) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// The same with another handler.
    #[must_use]
    pub fn with_handler(self, handler: u64) -> Action {
        Action { handler, ..self }
    }

    /// What the kernel is told: no vital signal is blocked by the handler, or ignored.
    #[must_use]
    pub fn for_kernel(self, signal: i32) -> Action {
        let vital = VITAL & 1u64 << (signal - 1).clamp(0, 63) != 0;
        let flags = if vital { self.flags | SA_NODEFER } else { self.flags };
        let handler = if vital && self.handler == libc::SIG_IGN as u64 { libc::SIG_DFL as u64 } else { self.handler };
        Action { handler, flags, mask: self.mask & !VITAL, ..self }
    }

    /// The vital signals that the program believes blocked while the handler runs.
    pub fn hides(self, signal: i32) -> u64 {
        let own = if self.flags & SA_NODEFER == 0 { 1u64 << (signal - 1).clamp(0, 63) } else { 0 };
        (self.mask | own) & VITAL
    }

    /// Whether a function of the program handles the signal.
    pub fn is_handler(self) -> bool {
        self.handler != libc::SIG_DFL as u64 && self.handler != libc::SIG_IGN as u64
    }
}

/// Whether nothing is done at a signal: since the program says so, or by default.
fn is_ignored(signal: i32, action: Option<Action>) -> bool {
    match action.map_or(libc::SIG_DFL as u64, |action| action.handler) as usize {
        libc::SIG_DFL => matches!(signal, libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH),
        handler => handler == libc::SIG_IGN,
    }
}

/// Whether the kernel raises the signal because of the instruction that the thread stands at.
pub fn is_fault(signal: i32, info: &SignalInfo) -> bool {
    matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP) && info.code() > 0
}

impl Session<'_> {
    /// A signal comes to a thread that is stopped for it, or for a trap.
    pub(super) fn deliver(&mut self, tid: Tid, signal: i32, mut info: SignalInfo) -> Result<()> {
        self.end_quiet(tid)?;
        let process = self.threads.get(&tid).ok_or(Lost::Gone)?.process;
        let action = self.processes.action(process, signal);
        let fault = is_fault(signal, &info);
        // The kernel is not asked: another thread might name a handler before it looks.
        if is_ignored(signal, action) && !fault {
            self.resume(tid, 0);
            return Ok(());
        }
        let action = action.filter(|action| action.is_handler());
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let hidden = 1u64 << (signal - 1).clamp(0, 63) & thread.signals.hidden_mask != 0;
        if hidden && !fault {
            thread.signals.deferred.push((signal, info));
            self.resume(tid, 0);
            return Ok(());
        }
        let Some(action) = action.filter(|_| !hidden) else {
            if hidden {
                // The kernel ends a program that blocks the signal of its own fault.
                self.reset_action(tid, signal)?;
                ptrace::set_signal_info(tid, &info)?;
            }
            self.resume(tid, signal);
            return Ok(());
        };
        let mut registers = self.settle(tid)?;
        if fault && matches!(signal, libc::SIGFPE | libc::SIGILL) {
            info.set_address(registers.rip);
        }
        // Restarting a system call is for the kernel to decide, which needs to know of it.
        registers.orig_rax = ptrace::registers(tid)?.orig_rax;
        ptrace::set_signal_info(tid, &info)?;
        ptrace::set_registers(tid, &registers)?;
        ptrace::step(tid, signal)?;
        match ptrace::wait_for(tid)? {
            Stop::Signal(libc::SIGTRAP) => {}
            stop => return Err(Lost::Stopped(stop)),
        }
        let mut now = ptrace::registers(tid)?;
        // The kernel may have been told of our entry for handlers.
        now.rip = action.handler;
        let back_to = ptrace::read_u64(tid, Address(now.rsp).plus(FRAME_PC));
        if back_to != Some(registers.rip)
            && let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid)
        {
            // The kernel will start an interrupted system call again: it has not run yet.
            super::state::take_back_last(thread, translator, true);
        }
        self.handler_entered(tid, signal, action, &now)?;
        self.run_at(tid, &now)?;
        self.has_signalled(tid);
        self.resume(tid, 0);
        Ok(())
    }

    fn reset_action(&mut self, tid: Tid, signal: i32) -> Result<()> {
        let saved = self.settle(tid)?;
        let slot = self.threads.get(&tid).ok_or(Lost::Gone)?.slot;
        let translator = self.translator(tid)?;
        let action = translator.space.scratch(slot, &[0; Action::LEN]);
        let at = translator.space.syscall_at;
        ptrace::set_registers(tid, &saved)?;
        remote::call(tid, at, libc::SYS_rt_sigaction, [signal as u64, action, 0, 8, 0, 0])?;
        Ok(())
    }

    fn handler_entered(&mut self, tid: Tid, signal: i32, action: Action, now: &Registers) -> Result<()> {
        self.drain(tid);
        let frame = Address(now.rsp);
        let word = |offset| ptrace::read_u64(tid, frame.plus(offset));
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        if let Some(mask) = word(FRAME_MASK) {
            ptrace::write(tid, frame.plus(FRAME_MASK), &(mask & !VITAL | thread.signals.hidden_mask).to_le_bytes());
        }
        thread.signals.hidden_mask |= action.hides(signal);
        // A mask that was set for a wait only may have held vital signals.
        let mask = ptrace::signal_mask(tid)?;
        if mask & VITAL != 0 {
            ptrace::set_signal_mask(tid, mask & !VITAL)?;
        }
        if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
            self.processes.set_action(thread.process, signal, None);
        }
        let interrupted_sp = word(FRAME_SP).unwrap_or(now.rsp);
        let alternate = match (word(FRAME_STACK), word(FRAME_STACK + 16)) {
            (Some(start), Some(size)) if start <= now.rsp && now.rsp < start.saturating_add(size) => {
                Some(start..start + size)
            }
            _ => None,
        };
        let stream = &mut thread.stream;
        stream.sync.signal(interrupted_sp, alternate);
        let sp_before = std::mem::replace(&mut stream.sp, now.rsp);
        stream.transferred = false;
        let id = stream.id;
        if self.recording {
            let handler = self.translator(tid)?.code.modules.pc(now.rip);
            self.recorder.signal(id, signal, handler, now.rsp, sp_before);
        }
        Ok(())
    }

    /// `rt_sigreturn`, which is recorded already. The thread stands at the call.
    pub(super) fn signal_return(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        // The handler's `ret` has taken the first word off the frame.
        let mask_at = Address(registers.rsp.wrapping_sub(8)).plus(FRAME_MASK);
        let Some(mask) = ptrace::read_u64(tid, mask_at) else {
            // A frame that cannot be read: the program gets the fault that it would get.
            let known = running(&mut self.threads, &mut self.processes, tid);
            let (thread, translator) = known.ok_or(Lost::Gone)?;
            super::state::take_back_last(thread, translator, true);
            return self.run_natively(tid, registers);
        };
        // No other signal shall come between the call and us: the mask is set afterwards.
        ptrace::write(tid, mask_at, &(!VITAL).to_le_bytes());
        let at = self.translator(tid)?.space.syscall_at;
        let call = Registers { rip: at, orig_rax: u64::MAX, ..*registers };
        ptrace::set_registers(tid, &call)?;
        remote::step_quietly(tid)?;
        let now = ptrace::registers(tid)?;
        ptrace::write(tid, mask_at, &mask.to_le_bytes());
        ptrace::set_signal_mask(tid, mask & !VITAL)?;
        self.drain(tid);
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        thread.signals.hidden_mask = mask & VITAL;
        let recorder = self.recording.then_some(&mut self.recorder);
        let mut recorder = recorder.filter(|_| thread.recording);
        thread.stream.left_handler(now.rsp, |id, event| {
            if let Some(recorder) = &mut recorder {
                recorder.event(id, event);
            }
        });
        self.run_at(tid, &now)?;
        self.has_signalled(tid);
        self.resume_with_deferred(tid)
    }

    /// Lets a thread go on that stands at a trap of ours, after delivering a signal that it no longer blocks.
    pub(super) fn resume_with_deferred(&mut self, tid: Tid) -> Result<()> {
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let mut blocked = thread.signals.hidden_mask;
        if !thread.signals.deferred.is_empty() {
            // The handler of one of its kind may run.
            blocked |= ptrace::signal_mask(tid)?;
        }
        let ready = thread.signals.deferred.iter().position(|(signal, _)| 1u64 << (signal - 1) & blocked == 0);
        match ready {
            Some(ready) => {
                let (signal, info) = thread.signals.deferred.remove(ready);
                ptrace::set_signal_info(tid, &info)?;
                self.deliver(tid, signal, info)
            }
            None => {
                self.resume(tid, 0);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_keeps_its_form() {
        let action = Action { handler: 1, flags: 2, restorer: 3, mask: u64::MAX };
        assert_eq!(Action::from_bytes(&action.to_bytes()), action);
    }

    #[test]
    fn the_kernel_never_blocks_a_vital_signal() {
        let action = Action { handler: 0x1000, flags: 0, restorer: 0, mask: u64::MAX };
        assert_eq!(action.for_kernel(libc::SIGUSR1).mask & VITAL, 0);
        assert_eq!(action.for_kernel(libc::SIGUSR1).flags, 0);
        assert_eq!(action.for_kernel(libc::SIGSEGV).flags, SA_NODEFER);
        let ignored = Action { handler: libc::SIG_IGN as u64, ..action };
        assert_eq!(ignored.for_kernel(libc::SIGSEGV).handler, libc::SIG_DFL as u64, "a forced signal would reset it");
        assert_eq!(ignored.for_kernel(libc::SIGUSR1), Action { mask: !VITAL, ..ignored });
        assert_eq!(action.hides(libc::SIGUSR1), VITAL);
        assert_eq!(Action { mask: 0, ..action }.hides(libc::SIGSEGV), 1 << (libc::SIGSEGV - 1));
    }
}
