//! What each stop of a thread means.

use nix::libc;
use trace_format::{Event, ThreadExit};

use super::thread::{Child, Process, Thread};
use super::{Birth, Session};
use crate::decode::Class;
use crate::engine::Exit;
use crate::kernel::frames::CODE_64;
use crate::kernel::ptrace::{self, EVENT_STOP, Registers, Stop, Tid};

/// `si_code` of the SIGTRAP after one instruction.
const TRAP_TRACE: i32 = 2;
/// `si_code` of the SIGTRAP after a system call that was stepped over (and of `int1`).
const TRAP_BREAKPOINT: i32 = 1;
/// `si_code` of the SIGTRAP at the first instruction of a signal handler.
const TRAP_HANDLER: i32 = libc::SIGTRAP;
/// The mark of a new thread, among the flags of `clone`.
const CLONE_THREAD: u64 = libc::CLONE_THREAD as u64;

impl Session<'_> {
    /// Handles one stop, and lets the thread go on.
    pub(super) fn stopped(&mut self, tid: Tid, stop: Stop) {
        match stop {
            Stop::Exited(status) => self.gone(tid, Exit::Exited(status)),
            Stop::Killed(signal) => self.gone(tid, Exit::Signalled(signal)),
            Stop::Event { event: libc::PTRACE_EVENT_EXEC, .. } => self.exec(tid),
            // It was killed before it began, and perhaps before it was announced.
            Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. } if !self.threads.contains_key(&tid) => {
                let _ = ptrace::resume(tid, 0);
            }
            _ if !self.threads.contains_key(&tid) => self.first_stop(tid),
            Stop::Event { event: EVENT_STOP, signal } => self.group_stop(tid, signal),
            Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. } => self.exiting(tid),
            Stop::Event { event, .. } => self.child_made(tid, event),
            Stop::Signal(_) if !self.recording => self.signal_unrecorded(tid, stop),
            Stop::Signal(libc::SIGTRAP) => self.trap(tid),
            Stop::Signal(signal) => self.signal(tid, signal),
        }
    }

    /// The registers of a stopped thread, after an argument changed for a system call got its own value back; `code` is
    /// the `si_code` of its signal. None when the thread was killed in the meantime.
    fn registers_at_stop(&mut self, tid: Tid, code: i32) -> Option<Registers> {
        let mut registers = ptrace::registers(tid).ok()?;
        self.restore_argument(tid, &mut registers, code == TRAP_HANDLER);
        Some(registers)
    }

    /// SIGTRAP: a step is done, a handler begins, or it is the program's own.
    fn trap(&mut self, tid: Tid) {
        let Ok(info) = ptrace::signal_info(tid) else { return };
        let Some(registers) = self.registers_at_stop(tid, info.code()) else { return };
        let thread = &self.threads[&tid];
        let moved = registers.rip != thread.registers.rip;
        let class = thread.next.decoded.class;
        match info.code() {
            TRAP_TRACE if !moved && class == Class::RepString => {
                let thread = self.thread(tid);
                thread.repeating.get_or_insert(thread.registers);
                thread.registers = registers;
                self.go_on(tid, 0);
            }
            TRAP_TRACE => self.step_done(tid, &registers),
            TRAP_BREAKPOINT if class != Class::Breakpoint => {
                if class == Class::Syscall && moved && self.will_restart(tid, &registers) {
                    self.thread(tid).restarting = true;
                    self.go_on(tid, 0);
                } else if moved {
                    self.step_done(tid, &registers);
                } else {
                    // The end of an `execve`: the new program has not begun.
                    self.thread(tid).registers = registers;
                    self.go_on(tid, 0);
                }
            }
            TRAP_HANDLER => {
                self.handler_entered(tid, &registers);
                self.go_on(tid, 0);
            }
            _ => {
                if moved && !thread.restarting {
                    self.retire(tid, &registers);
                    self.prepare(tid);
                }
                let signal = self.program_trap(tid, info);
                self.go_on(tid, signal);
            }
        }
    }

    fn step_done(&mut self, tid: Tid, registers: &Registers) {
        self.retire(tid, registers);
        self.prepare(tid);
        let signal = self.deferred_trap(tid);
        self.go_on(tid, signal);
    }

    /// A signal is about to be delivered.
    fn signal(&mut self, tid: Tid, signal: i32) {
        let Some(registers) = self.registers_at_stop(tid, 0) else { return };
        let thread = &self.threads[&tid];
        // A fault leaves the pc where it was: that instruction has not run.
        if registers.rip != thread.registers.rip && !thread.restarting {
            self.retire(tid, &registers);
            self.prepare(tid);
        }
        self.go_on(tid, signal);
    }

    /// A signal of a thread that is no longer recorded. The trap of its last step is ours.
    fn signal_unrecorded(&mut self, tid: Tid, stop: Stop) {
        let Stop::Signal(signal) = stop else { return };
        let code = match ptrace::signal_info(tid) {
            Ok(info) if signal == libc::SIGTRAP && self.threads[&tid].stepping => info.code(),
            _ => 0,
        };
        if self.registers_at_stop(tid, code).is_none() {
            return;
        }
        let ours = matches!(code, TRAP_TRACE | TRAP_BREAKPOINT | TRAP_HANDLER);
        self.go_on(tid, if ours { 0 } else { signal });
    }

    /// Lets a thread go on: for one step while it is recorded, else until something happens.
    pub(super) fn go_on(&mut self, tid: Tid, signal: i32) {
        let recording = self.recording;
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if thread.leaves {
            self.let_go(tid);
            return;
        }
        thread.injected = signal;
        thread.stepping = recording && thread.recording;
        // Both fail only when the thread has been killed; its end will be reported.
        if thread.stepping {
            let _ = ptrace::step(tid, signal);
        } else {
            if std::mem::take(&mut thread.trap.blocked)
                && let Ok(mask) = ptrace::signal_mask(tid)
            {
                let _ = ptrace::set_signal_mask(tid, mask | super::signals::TRAP_BIT);
            }
            let _ = ptrace::resume(tid, signal);
        }
    }

    /// The only thread of a process goes on by itself from here.
    fn let_go(&mut self, tid: Tid) {
        let Some(thread) = self.threads.remove(&tid) else { return };
        if thread.trap.blocked
            && let Ok(mask) = ptrace::signal_mask(tid)
        {
            let _ = ptrace::set_signal_mask(tid, mask | super::signals::TRAP_BIT);
        }
        self.processes.remove(&tid);
        self.others.set(tid, false);
        // It fails when the process has been killed.
        let _ = ptrace::detach(tid);
    }

    /// The thread stops with its whole process, or comes back from that.
    fn group_stop(&mut self, tid: Tid, signal: i32) {
        if signal == libc::SIGTRAP {
            self.go_on(tid, 0);
        } else {
            let _ = ptrace::listen(tid);
        }
    }

    /// The first stop of a thread that is not known yet.
    fn first_stop(&mut self, tid: Tid) {
        if self.release.remove(&tid) {
            let _ = ptrace::detach(tid);
        } else if let Some(birth) = self.births.remove(&tid) {
            self.begin_thread(tid, birth);
        } else if self.recording {
            self.early.insert(tid);
        } else {
            let _ = ptrace::resume(tid, 0);
        }
    }

    fn begin_thread(&mut self, tid: Tid, birth: Birth) {
        let Ok(registers) = ptrace::registers(tid) else {
            self.births.insert(tid, birth);
            return;
        };
        self.recorder.start_thread(birth.id, Some(birth.parent), tid.0, registers.rsp);
        let mut thread = Thread::new(birth.id, birth.process, registers);
        thread.trap = birth.trap;
        self.threads.insert(tid, thread);
        self.come_to_gate(tid);
        self.prepare(tid);
        self.go_on(tid, 0);
    }

    /// A thread made another thread, or a process.
    fn child_made(&mut self, tid: Tid, event: i32) {
        let Ok(message) = ptrace::event_message(tid) else { return };
        let child = Tid(message as i32);
        if !self.recording {
            if self.early.remove(&child) {
                let _ = ptrace::resume(child, 0);
            }
            self.go_on(tid, 0);
            return;
        }
        let is_thread = event == libc::PTRACE_EVENT_CLONE && self.clone_flags(tid) & CLONE_THREAD != 0;
        if is_thread || self.options.follow_forks {
            let id = self.recorder.reserve_thread();
            let thread = self.thread(tid);
            let (parent, process, mut trap) = (thread.id, thread.process, thread.trap);
            trap.deferred = None;
            if let Some(syscall) = &mut thread.syscall {
                syscall.child = if is_thread { Child::Thread } else { Child::Process(id) };
            }
            let process = if is_thread {
                process
            } else {
                let copy = self.processes[&process].clone();
                self.processes.insert(child, copy);
                self.others.set(child, true);
                child
            };
            self.births.insert(child, Birth { id, parent, process, trap });
        } else {
            self.release.insert(child);
        }
        if self.early.remove(&child) {
            self.first_stop(child);
        }
        self.go_on(tid, 0);
    }

    /// The thread is about to end; its registers can still be read.
    fn exiting(&mut self, tid: Tid) {
        if self.threads[&tid].recording {
            let registers = self.registers_at_stop(tid, 0);
            if let Some(registers) = registers.filter(|r| r.rip != self.threads[&tid].registers.rip) {
                self.retire(tid, &registers);
            }
            let status = ptrace::event_message(tid).unwrap_or(0) as i32;
            let exit = match status & 0x7f {
                0 if self.is_replaced(tid, status) => ThreadExit::Replaced,
                0 => ThreadExit::Exited(status >> 8 & 0xff),
                signal => ThreadExit::Killed(signal),
            };
            self.end_thread(tid, exit);
        }
        let _ = ptrace::resume(tid, 0);
    }

    /// Whether a thread that ends with this status was removed by another thread's `execve`.
    fn is_replaced(&self, tid: Tid, status: i32) -> bool {
        let thread = &self.threads[&tid];
        let by_itself =
            thread.syscall.is_some_and(|call| matches!(call.number as i64, libc::SYS_exit | libc::SYS_exit_group));
        let exec = self.processes.get(&thread.process).and_then(|process| process.exec_thread);
        status == 0 && !by_itself && exec.is_some_and(|other| other != tid)
    }

    /// Writes what a thread has run, and its end. Nothing when that was done before.
    pub(super) fn end_thread(&mut self, tid: Tid, exit: ThreadExit) {
        if self.threads.get(&tid).is_some_and(|thread| thread.recording) {
            self.flush(tid);
            let thread = self.thread(tid);
            thread.recording = false;
            let id = thread.id;
            self.recorder.end_thread(id, exit);
            self.calls_are_gone(id);
        }
    }

    /// The thread is gone.
    fn gone(&mut self, tid: Tid, exit: Exit) {
        let thread_exit = match exit {
            Exit::Exited(status) => ThreadExit::Exited(status),
            Exit::Signalled(signal) => ThreadExit::Killed(signal),
        };
        self.end_thread(tid, thread_exit);
        self.stillborn(tid, thread_exit);
        self.threads.remove(&tid);
        self.processes.remove(&tid);
        self.others.set(tid, false);
        self.early.remove(&tid);
        self.release.remove(&tid);
        if tid == self.main {
            self.found.exit = Some(exit);
        }
        if self.threads.is_empty() && self.births.is_empty() {
            // Processes whose maker was killed before it could announce them go on by themselves.
            for orphan in self.early.drain() {
                let _ = ptrace::detach(orphan);
            }
        }
    }

    /// The process has become another program; `tid` is the only thread left, with the number of the process.
    fn exec(&mut self, tid: Tid) {
        let former = ptrace::event_message(tid).map_or(tid, |message| Tid(message as i32));
        if former != tid
            && let Some(thread) = self.threads.remove(&former)
        {
            self.end_thread(tid, ThreadExit::Replaced);
            self.threads.insert(tid, thread);
        }
        let others: Vec<Tid> =
            self.threads.iter().filter(|(t, thread)| thread.process == tid && **t != tid).map(|(t, _)| *t).collect();
        for other in others {
            self.end_thread(other, ThreadExit::Replaced);
            self.threads.remove(&other);
        }
        let (Ok(registers), true) = (ptrace::registers(tid), self.threads.contains_key(&tid)) else { return };
        if self.threads[&tid].recording {
            self.begin_image(tid, &registers);
        }
        self.go_on(tid, 0);
    }

    fn begin_image(&mut self, tid: Tid, registers: &Registers) {
        let thread = self.thread(tid);
        let next = thread.next.clone();
        let before = thread.registers;
        if next.decoded.class == Class::Syscall {
            thread.pending.push(&next.decoded, &before, before.rsp);
            self.retired += u64::from(!self.recorder.is_paused());
        }
        self.flush(tid);
        let thread = self.thread(tid);
        let id = thread.id;
        thread.sync.clear();
        thread.syscall = None;
        thread.restarting = false;
        thread.repeating = None;
        thread.other_stack = None;
        thread.registers = *registers;
        self.recorder.event(id, Event::Exec);
        self.recorder.event(id, Event::SetSp(registers.rsp));
        self.calls_are_gone(id);
        let trap_ignored = self.processes.get(&tid).is_some_and(|process| process.trap_ignored);
        self.processes.insert(tid, Process { trap_ignored, ..Process::default() });
        if registers.cs == CODE_64 {
            self.refresh_modules(tid);
            self.come_to_gate(tid);
            self.prepare(tid);
        } else {
            self.stop_recording("the program started a 32-bit program, which cannot be recorded".to_owned());
        }
    }

    /// A thread that is known to be there.
    pub(super) fn thread(&mut self, tid: Tid) -> &mut Thread {
        self.threads.get_mut(&tid).expect("callers have seen the thread in the map")
    }
}
