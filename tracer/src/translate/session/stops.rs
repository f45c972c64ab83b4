//! What each stop of a thread means.

use nix::libc;

use super::Session;
use super::processes::running;
use crate::engine::Exit;
use crate::images::sync_functions::Role;
use crate::kernel::ptrace::{self, EVENT_STOP, Stop, Tid};
use crate::translate::addresses::{CachePc, ProgramPc, RecordPlace};
use crate::translate::code::expansions::{SYSCALL_LEN, of_taskloop};
use crate::translate::code::superblock::Trap;
use crate::translate::layout::slot;
use crate::translate::remote::{Lost, Result};
use crate::usage::StopCauses;

/// `si_code` of a SIGTRAP that an instruction of the program raised.
pub const RAISED_BY_KERNEL: i32 = 0x80;

impl Session<'_> {
    /// Handles one stop, and lets the thread go on.
    pub(super) fn stopped(&mut self, tid: Tid, stop: Stop) {
        self.works_in_its_memory(tid);
        let full_buffers = self.causes().full_buffer;
        let handled = self.handle(tid, stop);
        // A thread that has filled a buffer goes on elsewhere while we read it.
        if self.causes().full_buffer == full_buffers {
            self.together.count_stop();
        }
        match handled {
            Ok(()) | Err(Lost::Gone) => {}
            Err(Lost::Stopped(stop)) => self.met.push_back((tid, stop)),
            Err(Lost::NoRoom) => {
                // The thread has no way on: neither its translation nor, with its registers half ours, its own code.
                self.stop_recording(
                    "the program had no memory left for its translation, so it was killed: use --engine step"
                        .to_owned(),
                );
                self.kill_process_of(tid);
            }
        }
    }

    /// The process of this thread is there, which others that have the same memory need not be.
    fn works_in_its_memory(&mut self, tid: Tid) {
        if let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) {
            translator.space.process = thread.process;
            translator.code.process = thread.process;
            translator.code.reader = tid;
        }
    }

    fn handle(&mut self, tid: Tid, stop: Stop) -> Result<()> {
        match stop {
            Stop::Exited(status) => self.gone(tid, Exit::Exited(status)),
            Stop::Killed(signal) => self.gone(tid, Exit::Signalled(signal)),
            Stop::Event { event: libc::PTRACE_EVENT_EXEC, .. } => {
                self.causes().thread += 1;
                self.exec(tid)?;
            }
            // It was killed before it began, and perhaps before it was announced.
            Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. } if !self.threads.contains_key(&tid) => {
                self.resume(tid, 0);
            }
            _ if !self.threads.contains_key(&tid) => {
                self.causes().thread += 1;
                self.first_stop(tid)?;
            }
            Stop::Event { event: EVENT_STOP, signal } if signal != libc::SIGTRAP => drop(ptrace::listen(tid)),
            Stop::Event { event: EVENT_STOP, .. } => {
                self.causes().asked += 1;
                self.retry_call(tid)?;
                self.moment_is_over(tid)?;
                self.resume(tid, 0);
            }
            Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. } => {
                self.causes().thread += 1;
                self.exiting(tid);
            }
            Stop::Event { event: libc::PTRACE_EVENT_CLONE, .. } => {
                self.causes().thread += 1;
                self.thread_made(tid)?;
            }
            Stop::Event { .. } => self.resume(tid, 0),
            Stop::Signal(libc::SIGTRAP) if self.our_trap(tid)? => {}
            Stop::Signal(libc::SIGSEGV) if self.empty_entry(tid)? => self.causes().new_code += 1,
            Stop::Signal(libc::SIGSEGV) if self.change_full_buffer(tid, |session| session.resume(tid, 0))? => {
                self.causes().full_buffer += 1;
            }
            Stop::Signal(libc::SIGSEGV) if self.number_faulted(tid)? || self.time_faulted(tid)? => {
                self.resume(tid, 0);
            }
            Stop::Signal(libc::SIGSEGV) if self.return_faulted(tid)? => self.causes().signal += 1,
            Stop::Signal(libc::SIGSEGV) if self.write_to_code(tid)? => self.causes().write_to_code += 1,
            Stop::Signal(signal) => {
                self.causes().signal += 1;
                self.signalled(tid, signal)?;
            }
        }
        Ok(())
    }

    fn causes(&mut self) -> &mut StopCauses {
        &mut self.found.translation.causes
    }

    /// An `int3` of ours, if it is one.
    fn our_trap(&mut self, tid: Tid) -> Result<bool> {
        let mut registers = ptrace::registers(tid)?;
        let at = CachePc(registers.rip).minus(1);
        let Ok(translator) = self.translator(tid) else { return Ok(false) };
        let Some(trap) = translator.trap(at) else { return Ok(false) };
        if matches!(trap, Trap::Syscall { .. } | Trap::Filling) && self.makes_room(tid, &registers)? {
            return Ok(true);
        }
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let causes = &mut self.found.translation.causes;
        *match trap {
            Trap::Missing(_) | Trap::Lookup => &mut causes.new_code,
            Trap::Rest => &mut causes.asked,
            Trap::Syscall { .. } | Trap::Filling | Trap::Fault(_) => &mut causes.system_call,
            Trap::Return => &mut causes.signal,
            Trap::Native(_) => &mut causes.outside,
            Trap::Gate(_) => &mut causes.gate,
            Trap::Hook(_) => &mut causes.function,
        } += 1;
        // Translated code has the place of the next record in r11, and the program's r11 in the slot.
        thread.hold(RecordPlace(registers.r11));
        registers.r11 = translator.space.value(thread.slot, slot::R11);
        registers.gs_base = thread.gs_base;
        match trap {
            Trap::Missing(pc) => {
                let returned_to = translator.code.returned_to(pc);
                self.run_on_at(tid, pc, returned_to)?;
                self.resume(tid, 0);
            }
            Trap::Lookup => {
                let target = ProgramPc(translator.space.value(thread.slot, slot::TARGET));
                self.run_on_at(tid, target, true)?;
                self.resume(tid, 0);
            }
            Trap::Rest => {
                registers.rip = translator.space.value(thread.slot, slot::NEXT);
                self.run_at(tid, &registers)?;
                self.resume_with_deferred(tid)?;
            }
            Trap::Hook(pc) => {
                registers.rip = pc.0;
                self.learn_hook(tid, pc, &registers);
                self.run_at(tid, &registers)?;
                self.resume(tid, 0);
            }
            Trap::Gate(pc) => {
                registers.rip = pc.0;
                self.come_to_gate(tid, &registers)?;
            }
            Trap::Native(pc) => {
                registers.rip = pc.0;
                translator.code.reader = tid;
                if translator.can_run_now(pc) {
                    self.run_at(tid, &registers)?;
                    self.resume(tid, 0);
                } else if !self.is_old_call(tid, &registers)? {
                    self.run_natively(tid, &registers)?;
                }
            }
            Trap::Syscall { next } => {
                self.end_quiet(tid)?;
                if !self.dispatches(tid, &registers, next)? {
                    self.syscall(tid, &registers, next)?;
                }
            }
            Trap::Filling => {
                let next = ProgramPc(translator.space.value(thread.slot, slot::NEXT));
                if !self.dispatches(tid, &registers, next)? {
                    self.call_fills(tid)?;
                }
            }
            Trap::Return => {
                registers.rip = translator.space.value(thread.slot, slot::NEXT) - SYSCALL_LEN;
                self.returns(tid, &registers)?;
                self.signal_return(tid, &registers)?;
            }
            Trap::Fault(call) => self.call_faulted(tid, call)?,
        }
        Ok(true)
    }

    /// A jump to 0 through an entry of the lookup table that holds nothing, if it is one.
    fn empty_entry(&mut self, tid: Tid) -> Result<bool> {
        let before = ptrace::registers(tid)?;
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Ok(false);
        };
        let Some(registers) = translator.space.after_empty_entry(thread.slot, &before) else { return Ok(false) };
        thread.hold(RecordPlace(before.r11));
        let registers = ptrace::Registers { gs_base: thread.gs_base, ..registers };
        self.run_from(tid, &registers, true)?;
        self.resume(tid, 0);
        Ok(true)
    }

    /// A hooked function is entered from a place, or with a routine, that is not known yet.
    fn learn_hook(&mut self, tid: Tid, pc: ProgramPc, registers: &ptrace::Registers) {
        let Ok(translator) = self.translator_mut(tid) else { return };
        let role = translator.code.look_up_hook(pc).map(|hook| translator.code.roles[hook.number as usize].1);
        if let Some(return_address) = ptrace::read_u64(tid, ptrace::Address(registers.rsp)) {
            translator.add_returns(&[ProgramPc(return_address)]);
        }
        if let Some(Role::MakesPieces) = role
            && let Some(words) = role.and_then(Role::words)
        {
            let at = ptrace::Address(words.address(registers)).plus(words.offset.into());
            let body = ptrace::read_u64(tid, at).unwrap_or(0);
            translator.code.taskloops.insert(body);
            translator.space.tables.mark_routine(of_taskloop(body));
        }
        if let Some(role @ Role::Sync { object, .. }) = role {
            match role.of_routine(registers, |at| ptrace::read_u64(tid, ptrace::Address(at))) {
                Some((routine, role)) => translator.add_routine(ProgramPc(routine), role),
                None => translator.space.tables.mark_routine(ProgramPc(object.value(registers, 0, &[]))),
            }
        }
    }
}
