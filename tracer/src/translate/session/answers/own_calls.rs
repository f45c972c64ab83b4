//! Settings by which the kernel would hit our code in the program, made by `prctl`: it looks at the address of what
//! runs, or at memory that we have changed. They are kept here in its place.
//!
//! - *System calls that are dispatched to the program* (`PR_SET_SYSCALL_USER_DISPATCH`): calls from outside of a range
//!   of code raise SIGSYS, as long as a byte of the program says so. Ours are all made from our own code. So all calls
//!   of the process are looked at from then on, and those that are dispatched are not made.
//! - *No new code* (`PR_SET_MDWE`): memory may not become executable, and not be writable and executable. Where code is
//!   translated we take the right to write away for a while, and could not give it back.
//! - *No time stamps* (`PR_SET_TSC`) hold in the kernel: our records of time fault, and are written here.
//!
//! *Limitation.* Returns from signal handlers are never dispatched. No new code is not handed on to the program that a
//! process becomes.

use nix::libc;

use crate::kernel::ptrace::{self, Address, Registers, SignalInfo, Tid, timestamp};
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::memory::space::END;
use crate::translate::remote::{Lost, Result};
use crate::translate::session::Session;
use crate::translate::session::processes::running;
use crate::translate::session::thread::Dispatch;

/// Options of `prctl`; the `libc` crate does not have all.
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
const PR_SET_MDWE: u64 = 65;
const PR_GET_MDWE: u64 = 66;
/// Of [`PR_SET_MDWE`]: on, and not for children.
const REFUSE_EXEC_GAIN: u64 = 1;
const NO_INHERIT: u64 = 2;
/// What the byte of the program says: calls are made, or dispatched.
const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
/// The instruction `rdtsc`.
const RDTSC: [u8; 2] = [0x0f, 0x31];

/// Whether `prctl` with this option is answered here.
pub(in crate::translate::session) fn is_own(option: u64) -> bool {
    matches!(option, PR_SET_SYSCALL_USER_DISPATCH | PR_SET_MDWE | PR_GET_MDWE)
}

fn error(errno: i32) -> i64 {
    -i64::from(errno)
}

impl Session<'_> {
    /// Such a call, answered as the kernel does.
    pub(in crate::translate::session) fn own_prctl(&mut self, tid: Tid, arguments: [u64; 6]) -> Result<i64> {
        let [option, first, second, third, fourth, _] = arguments;
        if option == PR_SET_SYSCALL_USER_DISPATCH {
            return self.set_dispatch(tid, first, (second, third), fourth);
        }
        if second != 0 || third != 0 || fourth != 0 || option == PR_GET_MDWE && first != 0 {
            return Ok(error(libc::EINVAL));
        }
        let space = &mut self.translator_mut(tid)?.space;
        if option == PR_GET_MDWE {
            return Ok(space.no_new_code.cast_signed());
        }
        if first & !(REFUSE_EXEC_GAIN | NO_INHERIT) != 0 || first == NO_INHERIT {
            return Ok(error(libc::EINVAL));
        }
        if space.no_new_code != 0 && space.no_new_code != first {
            return Ok(error(libc::EPERM));
        }
        space.no_new_code = first;
        Ok(0)
    }

    fn set_dispatch(&mut self, tid: Tid, mode: u64, made: (u64, u64), selector: u64) -> Result<i64> {
        let dispatch = match mode {
            0 if made == (0, 0) && selector == 0 => None,
            1 if made.0 != 0 && made.0.checked_add(made.1).is_none_or(|end| end <= made.0) => {
                return Ok(error(libc::EINVAL));
            }
            1 if selector >= END => return Ok(error(libc::EFAULT)),
            1 => Some(Dispatch { made, selector }),
            _ => return Ok(error(libc::EINVAL)),
        };
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        if dispatch.is_some() {
            translator.space.tables.watch_all_calls();
        }
        thread.dispatch = dispatch;
        Ok(0)
    }

    /// A thread stands before a system call behind which it goes on at `next`; its registers are the program's. If the
    /// call is dispatched, the thread gets the signal in place of it, and true is returned.
    pub(in crate::translate::session) fn dispatches(
        &mut self,
        tid: Tid,
        registers: &Registers,
        next: ProgramPc,
    ) -> Result<bool> {
        let Some(Dispatch { made, selector }) = self.threads.get(&tid).and_then(|thread| thread.dispatch) else {
            return Ok(false);
        };
        if next.0.wrapping_sub(made.0) < made.1 {
            return Ok(false);
        }
        let mut byte = [BLOCK];
        let is_known = selector == 0 || ptrace::read(tid, Address(selector), &mut byte) == byte.len();
        let ends_with = match byte[0] {
            _ if !is_known => libc::SIGSEGV,
            ALLOW => return Ok(false),
            BLOCK => 0,
            _ => libc::SIGSYS,
        };
        if ends_with != 0 {
            self.reset_action(tid, ends_with)?;
            self.resume(tid, ends_with);
            return Ok(true);
        }
        let number = registers.rax;
        self.run_at(tid, &Registers { rip: next.0, rcx: next.0, r11: registers.eflags, ..*registers })?;
        self.deliver(tid, libc::SIGSYS, SignalInfo::dispatched(number, next.0))?;
        Ok(true)
    }

    /// Whether a call would make new code where the program has switched that off.
    pub(in crate::translate::session) fn makes_new_code(
        &mut self,
        tid: Tid,
        number: i64,
        arguments: &[u64; 6],
    ) -> Result<bool> {
        let (write, execute) = (libc::PROT_WRITE as u64, libc::PROT_EXEC as u64);
        let [start, length, protection, ..] = *arguments;
        let translator = self.translator_mut(tid)?;
        if translator.space.no_new_code == 0 || protection & execute == 0 {
            return Ok(false);
        }
        let both = protection & write != 0;
        Ok(match number {
            libc::SYS_mmap => both,
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
                let meets = |region: &crate::images::modules::Region| {
                    region.start < start.saturating_add(length) && start < region.end
                };
                both || translator.space.others().iter().any(|region| meets(region) && !region.executable)
            }
            _ => false,
        })
    }

    /// Whether a thread is stopped for a fault in our reading of the time, which the program has switched off. If so,
    /// it can go on behind that.
    pub(in crate::translate::session) fn time_faulted(&mut self, tid: Tid) -> Result<bool> {
        let registers = ptrace::registers(tid)?;
        let at = CachePc(registers.rip);
        let translator = self.translator(tid)?;
        let is_ours = translator.space.is_ours(at) && translator.mark(at).is_none();
        if !is_ours || !translator.space.code_at(at).starts_with(&RDTSC) {
            return Ok(false);
        }
        let (now, rip) = (timestamp(), at.plus(RDTSC.len() as u64).0);
        let (rax, rdx) = (now & u64::from(u32::MAX), now >> 32);
        ptrace::set_registers(tid, &Registers { rip, rax, rdx, orig_rax: u64::MAX, ..registers })?;
        Ok(true)
    }
}
