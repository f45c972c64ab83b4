//! Signals: handlers that begin and end.
//!
//! A handler must find the registers of the program, and the kernel must build its frame from them. So the thread is
//! brought to a place between two instructions, its registers are set to the program's, and it runs one step with the
//! signal, into the handler. Then it goes on in the translation of the handler. `rt_sigreturn` goes back in the same
//! way.
//!
//! `storms` has a shorter way for signals that come often.

use nix::libc;

use crate::kernel::frames::{FRAME_MASK, FRAME_PC, FRAME_SP, FRAME_STACK};
use crate::kernel::ptrace::{self, Address, Registers, SignalInfo, Stop, Tid};
use crate::translate::remote::{self, Lost, Result, VITAL};
use crate::translate::session::Session;
use crate::translate::session::handlers::actions::Action;
use crate::translate::session::processes::running;

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
    /// A signal reaches a thread that is stopped for it, or for a trap.
    pub(in crate::translate::session) fn deliver(&mut self, tid: Tid, signal: i32, mut info: SignalInfo) -> Result<()> {
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
            thread.signals.defer(signal, info);
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
            crate::translate::session::state::take_back_last(thread, translator, true);
        }
        self.handler_entered(tid, signal, action, &now)?;
        self.run_at(tid, &now)?;
        self.has_signalled(tid);
        self.resume(tid, 0);
        Ok(())
    }

    /// Lets the kernel do at a signal what it does by default, so that it ends the program.
    pub(in crate::translate::session) fn reset_action(&mut self, tid: Tid, signal: i32) -> Result<()> {
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
        thread.signals.interrupt(interrupted_sp);
        let stream = &mut thread.stream;
        stream.handler_begins(interrupted_sp, alternate);
        let sp_before = std::mem::replace(&mut stream.sp, now.rsp);
        let id = stream.id;
        if self.recording {
            let handler = self.translator(tid)?.code.modules.pc(now.rip);
            self.recorder.signal(id, signal, handler, now.rsp, sp_before);
        }
        Ok(())
    }

    /// `rt_sigreturn`, which is recorded already. The thread stands at the call.
    pub(in crate::translate::session) fn signal_return(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        // The handler's `ret` has taken the first word off the frame.
        let mask_at = Address(registers.rsp.wrapping_sub(8)).plus(FRAME_MASK);
        let Some(mask) = ptrace::read_u64(tid, mask_at) else {
            // A frame that cannot be read: the program gets the fault that it would get.
            let known = running(&mut self.threads, &mut self.processes, tid);
            let (thread, translator) = known.ok_or(Lost::Gone)?;
            crate::translate::session::state::take_back_last(thread, translator, true);
            return self.run_natively(tid, registers);
        };
        // No other signal may come between the call and us: the mask is set afterwards.
        ptrace::write(tid, mask_at, &(!VITAL).to_le_bytes());
        let at = self.translator(tid)?.space.syscall_at;
        let call = Registers { rip: at, orig_rax: u64::MAX, ..*registers };
        ptrace::set_registers(tid, &call)?;
        remote::step_quietly(tid)?;
        let now = ptrace::registers(tid)?;
        ptrace::write(tid, mask_at, &mask.to_le_bytes());
        self.set_mask(tid, mask & !VITAL)?;
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
    pub(in crate::translate::session) fn resume_with_deferred(&mut self, tid: Tid) -> Result<()> {
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
