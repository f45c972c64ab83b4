//! System calls that concern the recording: what they ask for before, what they did after.

use nix::libc;
use trace_format::{Event, ThreadExit};

use super::Session;
use super::thread::{Child, Syscall};
use crate::kernel::calls::{arguments_of, asks_for_restart, is_futex_wait, set_argument};
use crate::kernel::debuggers::{TRACED_BY_ITS_MAKER, asks_maker, note_inner_tracer, note_refusal};
use crate::kernel::ptrace::{self, Address, Registers, Tid};

/// Numbers that the `libc` crate does not have.
const FUTEX_WAIT_CALL: i64 = 455;
const FUTEX_WAITV: i64 = 449;
/// A number that no system call has: the kernel answers ENOSYS.
const NO_SYSCALL: u64 = u64::MAX;

impl Session<'_> {
    /// The thread stands before a `syscall` instruction. When it is answered here, returns the registers after it.
    pub(super) fn before_syscall(&mut self, tid: Tid) -> Option<Registers> {
        let thread = self.thread(tid);
        let mut registers = thread.registers;
        let number = registers.rax;
        let arguments = arguments_of(&registers);
        thread.syscall = Some(Syscall { number, arguments, restore: None, child: Child::Unannounced });
        let process = thread.process;
        match number.cast_signed() {
            libc::SYS_rt_sigprocmask => return self.change_mask(tid, &registers),
            libc::SYS_rt_sigreturn => self.before_sigreturn(tid, &registers),
            libc::SYS_rt_sigaction => self.before_sigaction(tid, arguments),
            libc::SYS_rt_sigsuspend
            | libc::SYS_ppoll
            | libc::SYS_pselect6
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2 => self.before_temporary_mask(tid, &mut registers),
            libc::SYS_rseq => {
                registers.rax = NO_SYSCALL;
                let _ = ptrace::set_registers(tid, &registers);
            }
            libc::SYS_execve | libc::SYS_execveat => {
                self.processes.entry(process).or_default().exec_thread = Some(tid);
            }
            libc::SYS_clone => note_inner_tracer(&mut self.found.warnings, arguments[0]),
            call if asks_maker(call, arguments[0]) => self.leave_to_its_maker(tid),
            _ => {}
        }
        None
    }

    /// A thread asks to be traced by the process that made its own. It goes on by itself, before the call, where it is
    /// the only one of a process that the program has made: else the call fails, as it does under any tracer.
    fn leave_to_its_maker(&mut self, tid: Tid) {
        let process = self.thread(tid).process;
        let is_alone = !self.threads.iter().any(|(other, thread)| *other != tid && thread.process == process)
            && !self.births.values().any(|birth| birth.process == process);
        if process != self.main && is_alone {
            self.found.warnings.push(format!("process {process} is not recorded any further: {TRACED_BY_ITS_MAKER}"));
            self.end_thread(tid, ThreadExit::StillRunning);
            self.thread(tid).leaves = true;
        }
    }

    /// Gives back the argument that was changed for the call. `in_handler`: a signal came between, so that it lies in
    /// the frame of the handler, whose first instruction is next.
    pub(super) fn restore_argument(&mut self, tid: Tid, registers: &mut Registers, in_handler: bool) {
        let Some(call) = self.threads.get_mut(&tid).and_then(|thread| thread.syscall.as_mut()) else { return };
        let Some(number) = call.restore else { return };
        let value = call.arguments[number];
        if in_handler {
            let place = Address(registers.rsp).plus(super::signals::FRAME_ARGUMENTS[number]);
            ptrace::write(tid, place, &value.to_le_bytes());
        } else if asks_for_restart(registers) {
            // The kernel may start the call again, and needs the changed one.
            return;
        } else {
            set_argument(registers, number, value);
            let _ = ptrace::set_registers(tid, registers);
        }
        call.restore = None;
    }

    /// Whether the system call that has just stopped was interrupted, and may be started again.
    pub(super) fn will_restart(&self, tid: Tid, registers: &Registers) -> bool {
        let by_itself =
            self.threads[&tid].syscall.is_some_and(|call| call.number.cast_signed() == libc::SYS_rt_sigreturn);
        !by_itself && asks_for_restart(registers)
    }

    /// The thread's system call is done, its instruction written.
    pub(super) fn after_syscall(&mut self, tid: Tid, now: &Registers) {
        let thread = self.thread(tid);
        let (id, process) = (thread.id, thread.process);
        let Some(call) = thread.syscall.take() else { return };
        let [first, second, third, ..] = call.arguments;
        let result = now.rax.cast_signed();
        let succeeded = !(-4095..0).contains(&result);
        match call.number.cast_signed() {
            libc::SYS_futex if is_futex_wait(second as u32) && result != -i64::from(libc::EAGAIN) => {
                self.recorder.futex_wait(id, first);
            }
            FUTEX_WAIT_CALL if result != -i64::from(libc::EAGAIN) => self.recorder.futex_wait(id, first),
            FUTEX_WAITV if result != -i64::from(libc::EAGAIN) => {
                // An array of { value, address, flags }: the first stands for all.
                let address = ptrace::read_u64(tid, Address(first).plus(8)).unwrap_or(0);
                self.recorder.futex_wait(id, address);
            }
            libc::SYS_rt_sigreturn => {
                let thread = self.thread(tid);
                thread.sync.signal_return();
                self.recorder.event(id, Event::SignalReturn);
            }
            libc::SYS_mmap if succeeded => self.memory_changed(tid, now.rax, second),
            libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect if succeeded => {
                self.memory_changed(tid, first, second);
            }
            libc::SYS_mremap if succeeded => {
                self.memory_changed(tid, first, second);
                self.memory_changed(tid, now.rax, third);
            }
            libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 if result > 0 => {
                let child = result as u32;
                match call.child {
                    Child::Thread => {}
                    Child::Process(thread) => self.recorder.event(id, Event::Fork { child, thread: Some(thread) }),
                    Child::Unannounced => self.recorder.event(id, Event::Fork { child, thread: None }),
                }
            }
            libc::SYS_execve | libc::SYS_execveat => {
                self.processes.entry(process).or_default().exec_thread = None;
            }
            libc::SYS_ptrace => note_refusal(&mut self.found.warnings, first, result),
            _ => {}
        }
    }

    /// Code may have changed in this memory. Where there was none, it is found when it first runs.
    fn memory_changed(&mut self, tid: Tid, start: u64, length: u64) {
        let process = self.threads[&tid].process;
        let process = self.processes.entry(process).or_default();
        if process.modules.has_code_in(start, length) {
            process.forget(&(start..start.saturating_add(length.next_multiple_of(4096))));
            self.refresh_modules(tid);
        }
    }

    /// The flags of the `clone` that a thread is in.
    pub(super) fn clone_flags(&self, tid: Tid) -> u64 {
        let Some(call) = self.threads[&tid].syscall else { return 0 };
        match call.number.cast_signed() {
            libc::SYS_clone3 => ptrace::read_u64(tid, Address(call.arguments[0])).unwrap_or(0),
            libc::SYS_clone => call.arguments[0],
            _ => 0,
        }
    }
}
