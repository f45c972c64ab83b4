//! System calls that we make for the program, and what follows from them.

use nix::libc;

use super::Session;
use super::answers::own_calls;
use super::handlers::actions::Action;
use super::thread::Thread;
use crate::kernel::debuggers::note_refusal;
use crate::kernel::ptrace::{self, Address, Registers, Tid};
use crate::translate::addresses::ProgramPc;
use crate::translate::remote::{self, Lost, Result, VITAL};

/// `arch_prctl` codes: the `libc` crate does not have them.
const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_GS: u64 = 0x1004;
const ARCH_SHSTK_FIRST: u64 = 0x5001;
const ARCH_SHSTK_LAST: u64 = 0x5005;

fn error(errno: i32) -> i64 {
    -i64::from(errno)
}

/// Whether a call tells on which processors a thread may run, depends on it, or hands it on.
fn shows_processors(number: i64) -> bool {
    [
        libc::SYS_sched_getaffinity,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_fork,
        libc::SYS_vfork,
        libc::SYS_clone,
        libc::SYS_clone3,
    ]
    .contains(&number)
}

impl Session<'_> {
    /// The thread stands behind a recorded `syscall` instruction that has not been executed. `registers` are the
    /// program's.
    pub(super) fn syscall(&mut self, tid: Tid, registers: &Registers, next: ProgramPc) -> Result<()> {
        let number = registers.rax.cast_signed();
        if shows_processors(number) {
            self.together.end();
        }
        match number {
            libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 => {
                return self.make_child(tid, registers, next);
            }
            libc::SYS_ptrace if self.asks_its_maker(tid, registers) => {
                return self.call_if_traceable(tid, registers, next);
            }
            libc::SYS_prctl if own_calls::is_own(registers.rdi) => {}
            libc::SYS_execve | libc::SYS_execveat | libc::SYS_prctl | libc::SYS_seccomp => {
                return self.call_if_traceable(tid, registers, next);
            }
            _ => {}
        }
        let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        let mut after = *registers;
        after.rip = next.0;
        let result = match number {
            // A restartable sequence could not be restarted in the cache.
            libc::SYS_rseq => error(libc::ENOSYS),
            libc::SYS_rt_sigprocmask => self.change_mask(tid, arguments)?,
            libc::SYS_rt_sigaction => self.change_action(tid, arguments)?,
            libc::SYS_prctl => self.own_prctl(tid, arguments)?,
            libc::SYS_arch_prctl => self.arch_prctl(tid, arguments, &mut after)?,
            _ => self.memory_call(tid, number, arguments)?,
        };
        if number == libc::SYS_ptrace {
            note_refusal(&mut self.found.warnings, arguments[0], result);
        }
        after.rax = result.cast_unsigned();
        after.rcx = next.0;
        after.r11 = after.eflags;
        self.run_at(tid, &after)?;
        self.resume_with_deferred(tid)
    }

    /// Makes a call in the program's place.
    pub(super) fn call(&mut self, tid: Tid, number: i64, arguments: [u64; 6]) -> Result<i64> {
        let at = self.translator(tid)?.space.syscall_at;
        remote::call(tid, at, number, arguments)
    }

    fn arch_prctl(&mut self, tid: Tid, arguments: [u64; 6], after: &mut Registers) -> Result<i64> {
        match arguments[0] {
            ARCH_SET_FS => {
                after.fs_base = arguments[1];
                // What was recorded before is relative to the former base.
                self.drain(tid);
                let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
                thread.stream.segments[0] = arguments[1];
            }
            ARCH_SET_GS => {
                let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
                thread.gs_base = arguments[1];
            }
            ARCH_GET_GS => {
                let base = self.threads.get(&tid).ok_or(Lost::Gone)?.gs_base;
                if !ptrace::write(tid, Address(arguments[1]), &base.to_le_bytes()) {
                    return Ok(error(libc::EFAULT));
                }
            }
            // Shadow stacks are none of ours: as on processors that do not have them.
            ARCH_SHSTK_FIRST..=ARCH_SHSTK_LAST => return Ok(error(libc::EINVAL)),
            _ => return self.call(tid, libc::SYS_arch_prctl, arguments),
        }
        Ok(0)
    }

    /// `rt_sigprocmask(how, set, old, size)`: the vital signals are never blocked, but the program believes they are.
    fn change_mask(&mut self, tid: Tid, arguments: [u64; 6]) -> Result<i64> {
        let [how, set, old, size, ..] = arguments;
        if size != 8 {
            return Ok(error(libc::EINVAL));
        }
        let set = match set {
            0 => None,
            address => match ptrace::read_u64(tid, Address(address)) {
                Some(set) => Some(set),
                None => return Ok(error(libc::EFAULT)),
            },
        };
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let kernel = ptrace::signal_mask(tid)?;
        let current = kernel & !VITAL | thread.signals.hidden_mask;
        let new = match (set, how as i32) {
            (None, _) => current,
            (Some(set), libc::SIG_BLOCK) => current | set,
            (Some(set), libc::SIG_UNBLOCK) => current & !set,
            (Some(set), libc::SIG_SETMASK) => set,
            _ => return Ok(error(libc::EINVAL)),
        };
        thread.signals.hidden_mask = new & VITAL;
        if set.is_some() {
            ptrace::set_signal_mask(tid, new & !VITAL)?;
        }
        if old != 0 && !ptrace::write(tid, Address(old), &current.to_le_bytes()) {
            return Ok(error(libc::EFAULT));
        }
        Ok(0)
    }

    /// `rt_sigaction(signal, new, old, size)`: the handler's mask reaches the kernel without the vital signals.
    fn change_action(&mut self, tid: Tid, arguments: [u64; 6]) -> Result<i64> {
        let [signal, new, old, size, ..] = arguments;
        let number = signal as i32;
        let Thread { slot, process, .. } = *self.threads.get(&tid).ok_or(Lost::Gone)?;
        let before = self.processes.action(process, number);
        let mut wanted = None;
        let mut given = new;
        if new != 0 && size == 8 {
            let mut bytes = [0; Action::LEN];
            if ptrace::read(tid, Address(new), &mut bytes) < bytes.len() {
                return Ok(error(libc::EFAULT));
            }
            let action = Action::from_bytes(&bytes);
            wanted = Some(action);
            let translator = self.translator(tid)?;
            given = translator.space.scratch(slot, &action.for_kernel(number).to_bytes());
        }
        if wanted.is_some() {
            self.let_handlers_begin(tid, number);
        }
        let result = self.call(tid, libc::SYS_rt_sigaction, [signal, given, old, size, 0, 0])?;
        if result == 0 {
            if old != 0
                && let Some(before) = before
            {
                ptrace::write(tid, Address(old), &before.to_bytes());
            }
            if let Some(action) = wanted {
                self.processes.set_action(process, number, Some(action));
                if !action.is_handler() {
                    self.forget_postponed(process, number);
                }
            }
        }
        Ok(result)
    }
}
