//! What a program cannot do while it is translated. From there it runs on unrecorded, or is killed if it cannot.
//!
//! - A seccomp filter, or strict mode, would refuse the system calls that we make in the program's place, or kill the
//!   program for them.
//! - The kernel does not give a program that is traced the rights of its set-user-id file, unless the tracer has them
//!   all.
//! - 32-bit code, and the 32-bit system calls of `int 0x80`.
//!
//! A process that the program has made and that asks to be traced by it goes on by itself. If the first process asks
//! for that, or a process asks to trace one that is recorded, the call fails as it does under any tracer; the outcome
//! says why. There are no user shadow stacks: programs that would use them run without.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::libc;
use trace_format::ThreadExit;

use super::Session;
use super::processes::running;
use crate::kernel::debuggers::{TRACED_BY_ITS_MAKER, asks_maker};
use crate::kernel::ptrace::{self, Address, ProcessHandle, Registers, Tid};
use crate::program::changes_user;
use crate::translate::addresses::ProgramPc;
use crate::translate::code::expansions::SYSCALL_LEN;
use crate::translate::layout::PAGE;
use crate::translate::remote::{self, Lost, Result, VITAL};

/// `seccomp` operations: the `libc` crate has them as other types.
const SET_MODE_STRICT: u64 = 0;
const SET_MODE_FILTER: u64 = 1;
/// The longest path, as for the kernel.
const PATH_MAX: usize = 4096;
/// `int 0x80`.
const OLD_SYSCALL: [u8; 2] = [0xcd, 0x80];

/// Why a process cannot be recorded any further.
#[derive(Clone, Copy)]
pub struct Obstacle {
    what: &'static str,
    /// The way out, if there is one, in brackets.
    way_out: &'static str,
}

const FILTER: Obstacle =
    Obstacle { what: "it restricts its system calls (seccomp)", way_out: " (use --engine step to record it)" };
const PRIVILEGES: Obstacle = Obstacle {
    what: "it starts a set-user-id program, and the kernel takes its privileges away when it is traced",
    way_out: " (run trace as root, or use a copy of that program without the permission bit, to record it)",
};
const OLD_CALL: Obstacle = Obstacle { what: "it makes a 32-bit system call", way_out: "" };
const TRACED: Obstacle = Obstacle { what: TRACED_BY_ITS_MAKER, way_out: "" };
/// A jump into it has been made.
pub const NARROW_CODE: Obstacle = Obstacle { what: "it runs 32-bit code", way_out: "" };

impl Session<'_> {
    /// A thread stands before a call that it makes by itself, if it can be made in translated code. `registers` are the
    /// program's.
    pub(super) fn call_if_traceable(&mut self, tid: Tid, registers: &Registers, next: ProgramPc) -> Result<()> {
        let obstacle = match registers.rax.cast_signed() {
            libc::SYS_seccomp | libc::SYS_prctl if installs_filter(registers) => FILTER,
            libc::SYS_ptrace => TRACED,
            libc::SYS_execve | libc::SYS_execveat if becomes_privileged(tid, registers) => PRIVILEGES,
            _ => {
                self.stand_before_call(tid, registers, next)?;
                self.resume(tid, 0);
                return Ok(());
            }
        };
        self.go_on_untraced(tid, &Registers { rip: next.minus(SYSCALL_LEN).0, ..*registers }, obstacle)
    }

    /// Whether this is a call by which a process that the program has made asks to be traced by it. It then goes on by
    /// itself: a process has one tracer.
    pub(super) fn asks_its_maker(&self, tid: Tid, registers: &Registers) -> bool {
        let Some(process) = self.threads.get(&tid).map(|thread| thread.process) else { return false };
        let is_alone = !self.threads.iter().any(|(other, t)| *other != tid && t.process == process && !t.has_ended());
        asks_maker(registers.rax.cast_signed(), registers.rdi) && process != self.main && is_alone
    }

    /// A thread reaches an instruction that cannot be translated; `registers` are the program's. Returns whether it
    /// runs on by itself from there, since it cannot be recorded.
    pub(super) fn is_old_call(&mut self, tid: Tid, registers: &Registers) -> Result<bool> {
        let mut code = [0; 2];
        let found = ptrace::read_code(tid, Address(registers.rip), &mut code) == code.len() && code == OLD_SYSCALL;
        if found {
            self.go_on_untraced(tid, registers, OLD_CALL)?;
        }
        Ok(found)
    }

    /// The process of a thread goes on by itself from these registers, or is ended when it has other threads.
    pub(super) fn go_on_untraced(&mut self, tid: Tid, registers: &Registers, obstacle: Obstacle) -> Result<()> {
        let Obstacle { what, way_out } = obstacle;
        self.together.end();
        let process = self.threads.get(&tid).ok_or(Lost::Gone)?.process;
        let is_alone = !self.threads.iter().any(|(other, t)| *other != tid && t.process == process && !t.has_ended())
            && !self.coming.births.values().any(|birth| birth.process == process);
        self.drain(tid);
        if !is_alone {
            self.say_and_stop(format!(
                "{what}; it has several threads, which cannot run on without lockstep, so it was killed{way_out}"
            ));
            self.kill_process_of(tid);
            return Ok(());
        }
        self.take_hands_off(tid, process, registers)?;
        if process == self.main {
            self.say_and_stop(format!("{what}: it runs on from there without being recorded{way_out}"));
        } else {
            self.found.warnings.push(format!("process {process} is not recorded any further: {what}{way_out}"));
        }
        self.end_thread(tid, ThreadExit::StillRunning);
        self.forget_thread(tid);
        self.processes.end(process);
        self.others.set(process, false);
        ptrace::detach(tid)?;
        Ok(())
    }

    fn say_and_stop(&mut self, reason: String) {
        self.found.warnings.push(format!("the recording stopped early: {reason}"));
        self.stop_recording(reason);
    }

    /// Gives the only thread of a process its own code, registers, signals and memory back.
    fn take_hands_off(&mut self, tid: Tid, process: Tid, registers: &Registers) -> Result<()> {
        self.end_quiet(tid)?;
        for signal in (1..=64).filter(|signal| VITAL & 1 << (signal - 1) != 0) {
            let Some(action) = self.processes.action(process, signal) else { continue };
            let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
            let action = translator.space.scratch(thread.slot, &action.to_bytes());
            let at = translator.space.syscall_at;
            remote::call(tid, at, libc::SYS_rt_sigaction, [signal as u64, action, 0, 8, 0, 0])?;
        }
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let (scratch, at) = (translator.space.scratch(thread.slot, &[]), translator.space.syscall_at);
        self.lead_to_handlers(tid, process, scratch, at)?;
        self.lift_within(tid, 0, u64::MAX - PAGE)?;
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let (gs_base, hidden) = (thread.gs_base, thread.signals.hidden_mask);
        ptrace::set_registers(tid, &Registers { gs_base, orig_rax: u64::MAX, ..*registers })?;
        let mask = ptrace::signal_mask(tid)?;
        ptrace::set_signal_mask(tid, mask | hidden)?;
        let postponed = std::mem::take(&mut thread.signals.postponed).into_iter().filter(|kept| !kept.sent);
        let postponed: Vec<i32> = postponed.map(|kept| kept.signal).collect();
        for signal in
            std::mem::take(&mut thread.signals.deferred).into_iter().map(|(signal, _)| signal).chain(postponed)
        {
            // It waits in the kernel now, where it is blocked.
            let _ = ProcessHandle::open(process).and_then(|process| process.send(signal));
        }
        Ok(())
    }
}

/// Whether a call of `seccomp` or `prctl` restricts the system calls of its thread. Without an argument programs only
/// ask what there is.
fn installs_filter(registers: &Registers) -> bool {
    let strict = u64::from(libc::SECCOMP_MODE_STRICT);
    if registers.rax.cast_signed() == libc::SYS_seccomp {
        return registers.rdi == SET_MODE_STRICT || registers.rdi == SET_MODE_FILTER && registers.rdx != 0;
    }
    registers.rdi == libc::PR_SET_SECCOMP as u64 && (registers.rsi == strict || registers.rdx != 0)
}

/// Whether a call of `execve` or `execveat` starts a program that gets other rights than this process has.
fn becomes_privileged(tid: Tid, registers: &Registers) -> bool {
    if nix::unistd::geteuid().is_root() {
        return false;
    }
    let (folder, path) = match registers.rax.cast_signed() {
        libc::SYS_execve => (libc::AT_FDCWD, registers.rdi),
        _ => (registers.rdi as i32, registers.rsi),
    };
    let mut bytes = [0; PATH_MAX];
    let length = ptrace::read(tid, Address(path), &mut bytes);
    let Some(end) = bytes[..length].iter().position(|&byte| byte == 0) else { return false };
    let folder = match folder {
        libc::AT_FDCWD => format!("/proc/{tid}/cwd"),
        number => format!("/proc/{tid}/fd/{number}"),
    };
    let file = Path::new(&folder).join(OsStr::from_bytes(&bytes[..end]));
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && changes_user(&metadata))
}
