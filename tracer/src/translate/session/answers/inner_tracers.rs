//! A process that traces threads of the program itself, and has their memory, as the leak checker of sanitizers makes
//! one when the program ends: a thread can have one tracer, and that is us. So we answer for the kernel.
//!
//! The process runs the program's own code, is not recorded, and stops for us at each system call. What it asks of
//! `ptrace` and `wait4` about threads that we record is answered here; all else it asks of the kernel. A thread that it
//! attaches to is brought to rest, and *lent*: it stays there, with the registers of the program for whoever asks,
//! until the process lets it go or ends.
//!
//! *Limitation.* It may look at threads, and end them, but not change their registers or lead them from step to step;
//! such requests fail with `EPERM`, as all do under another tracer.

use nix::libc;

use crate::kernel::calls::arguments_of;
use crate::kernel::ptrace::{self, Address, CALL_STOP, EVENT_STOP, Registers, Stop, Tid};
use crate::translate::addresses::CachePc;
use crate::translate::layout::slot;
use crate::translate::memory::space::Landing;
use crate::translate::remote::{Lost, Result};
use crate::translate::session::Session;
use crate::translate::session::changes::renewal::Resting;
use crate::translate::session::thread::{InnerTracer, Lent, Rested};

/// The set of general registers, in requests for sets.
const NT_PRSTATUS: u64 = 1;
/// No set of registers is longer.
const LONGEST_SET: usize = 16 << 10;
/// The wait status of a thread that has stopped at an attach.
const STOPPED: i32 = libc::SIGSTOP << 8 | 0x7f;
/// As the number of a system call: the call is left out.
const NO_CALL: u64 = u64::MAX;

impl Session<'_> {
    /// A process that was made in this way, and stands at the program's own code, begins.
    pub(in crate::translate::session) fn begin_inner_tracer(&mut self, tid: Tid, maker: Tid) -> Result<()> {
        ptrace::stop_at_calls(tid)?;
        self.inner_tracers.insert(tid, InnerTracer { maker, answer: None, in_call: false, lent: Vec::new() });
        Ok(ptrace::resume_to_call(tid, 0)?)
    }

    /// Looks at a stop of such a process, or of a thread that one has. Returns any other.
    pub(in crate::translate::session) fn without_inner_tracers(
        &mut self,
        (tid, stop): (Tid, Stop),
    ) -> Option<(Tid, Stop)> {
        if self.inner_tracers.is_empty() {
            return Some((tid, stop));
        }
        if self.inner_tracers.contains_key(&tid) {
            // When this fails the process has been killed; its end will be reported.
            let _ = self.inner_tracer_stopped(tid, stop);
            return None;
        }
        let ends = matches!(stop, Stop::Exited(_) | Stop::Killed(_))
            || matches!(stop, Stop::Event { event: libc::PTRACE_EVENT_EXIT | libc::PTRACE_EVENT_EXEC, .. });
        let lent = self.inner_tracers.values_mut().flat_map(|tracer| &mut tracer.lent).find(|lent| lent.tid == tid);
        match lent {
            Some(lent) if !ends => {
                lent.met.push(stop);
                None
            }
            Some(_) => {
                self.take_back_where(|lent| lent.tid == tid, false);
                Some((tid, stop))
            }
            None => Some((tid, stop)),
        }
    }

    fn inner_tracer_stopped(&mut self, tid: Tid, stop: Stop) -> Result<()> {
        match stop {
            Stop::Exited(_) | Stop::Killed(_) => {
                let Some(tracer) = self.inner_tracers.remove(&tid) else { return Ok(()) };
                for lent in tracer.lent {
                    self.take_back(lent, true);
                }
                Ok(())
            }
            Stop::Signal(CALL_STOP) => self.inner_tracer_calls(tid),
            Stop::Event { event: EVENT_STOP, signal } if signal != libc::SIGTRAP => Ok(ptrace::listen(tid)?),
            Stop::Event { .. } => Ok(ptrace::resume_to_call(tid, 0)?),
            Stop::Signal(signal) => Ok(ptrace::resume_to_call(tid, signal)?),
        }
    }

    /// It stands before a system call, or behind one.
    fn inner_tracer_calls(&mut self, tid: Tid) -> Result<()> {
        let mut registers = ptrace::registers(tid)?;
        let tracer = self.inner_tracers.get_mut(&tid).ok_or(Lost::Gone)?;
        tracer.in_call = !tracer.in_call;
        if tracer.in_call {
            let answer = self.answer_inner_tracer(tid, registers.orig_rax.cast_signed(), arguments_of(&registers));
            if answer.is_some() {
                registers.orig_rax = NO_CALL;
                ptrace::set_registers(tid, &registers)?;
            }
            self.inner_tracers.get_mut(&tid).ok_or(Lost::Gone)?.answer = answer;
        } else if let Some(answer) = tracer.answer.take() {
            registers.rax = answer.cast_unsigned();
            ptrace::set_registers(tid, &registers)?;
        }
        Ok(ptrace::resume_to_call(tid, 0)?)
    }

    /// What the process is told in the kernel's place; `None` where the kernel answers.
    fn answer_inner_tracer(&mut self, tracer: Tid, number: i64, arguments: [u64; 6]) -> Option<i64> {
        let [first, second, third, fourth, ..] = arguments;
        match number {
            libc::SYS_ptrace => {
                let target = Tid(second as i32);
                self.threads.get(&target).filter(|thread| !thread.has_ended())?;
                Some(match self.trace_for(tracer, target, first as u32, third, fourth) {
                    Ok(()) => 0,
                    Err(errno) => -i64::from(errno),
                })
            }
            libc::SYS_wait4 => {
                let (target, status) = (Tid(first as i32), second);
                let lent = self.inner_tracers.get_mut(&tracer)?.lent.iter_mut().find(|lent| lent.tid == target)?;
                if std::mem::replace(&mut lent.is_reported, true) {
                    return None;
                }
                let written = status == 0 || ptrace::write(tracer, Address(status), &STOPPED.to_le_bytes());
                Some(if written { target.0.into() } else { -i64::from(libc::EFAULT) })
            }
            _ => None,
        }
    }

    /// Does what `ptrace` would do for the process with one of our threads, or says which error it has.
    fn trace_for(
        &mut self,
        tracer: Tid,
        target: Tid,
        request: u32,
        address: u64,
        data: u64,
    ) -> std::result::Result<(), i32> {
        let has = self.inner_tracers.get(&tracer).is_some_and(|tracer| tracer.lent.iter().any(|l| l.tid == target));
        if request == libc::PTRACE_ATTACH && !has {
            return self.lend(tracer, target).map_err(|_| libc::EPERM);
        }
        if !has {
            return Err(libc::ESRCH);
        }
        let registers = |session: &Self| session.lent_registers(target).map_err(|_| libc::ESRCH);
        match request {
            libc::PTRACE_DETACH | libc::PTRACE_CONT => {
                self.take_back_where(|lent| lent.tid == target, true);
                Ok(())
            }
            libc::PTRACE_KILL => {
                self.kill_process_of(target);
                Ok(())
            }
            libc::PTRACE_GETREGS => give(tracer, data, &bytes_of(&registers(self)?)),
            libc::PTRACE_GETREGSET => {
                let word = |at: u64| ptrace::read_u64(tracer, Address(at)).ok_or(libc::EFAULT);
                let (place, room) = (word(data)?, word(data.wrapping_add(8))?);
                let mut bytes = match address {
                    NT_PRSTATUS => bytes_of(&registers(self)?),
                    set => ptrace::register_set(target, set, LONGEST_SET).map_err(|errno| errno as i32)?,
                };
                bytes.truncate(room as usize);
                give(tracer, place, &bytes)?;
                give(tracer, data.wrapping_add(8), &(bytes.len() as u64).to_le_bytes())
            }
            _ => Err(libc::EPERM),
        }
    }

    /// Brings a thread to rest for the process.
    fn lend(&mut self, tracer: Tid, target: Tid) -> Result<()> {
        let maker = self.inner_tracers.get(&tracer).ok_or(Lost::Gone)?.maker;
        let thread = self.threads.get(&target).filter(|thread| thread.process == maker && !thread.is_lent);
        let space = thread.ok_or(Lost::Gone)?.space;
        let away = self.stop_those(space, |tid, _| tid == target).ok_or(Lost::Gone)?;
        let away = self.wait_for_calls(space, away).ok_or(Lost::Gone)?;
        if away.contains(&target) {
            // It is in the kernel, where nobody can read its registers, and stops before it comes back.
            return Err(Lost::Gone);
        }
        let calls = match self.put_to_rest(target) {
            Ok(Resting::InCall(held)) => vec![(target, held)],
            Ok(Resting::AtTrap) => Vec::new(),
            Err(lost) => {
                // What it stopped for instead is handled next.
                self.lost(target, Err(lost));
                return Err(lost);
            }
        };
        let rested = Rested { resumable: vec![target], calls };
        self.threads.get_mut(&target).ok_or(Lost::Gone)?.is_lent = true;
        let lent = Lent { tid: target, rested, is_reported: false, met: Vec::new() };
        self.inner_tracers.get_mut(&tracer).ok_or(Lost::Gone)?.lent.push(lent);
        Ok(())
    }

    /// The program's registers of a thread that is lent.
    fn lent_registers(&self, tid: Tid) -> Result<Registers> {
        let registers = ptrace::registers(tid)?;
        let thread = self.threads.get(&tid).ok_or(Lost::Gone)?;
        let space = &self.translator(tid)?.space;
        let value = |name| space.value(thread.slot, name);
        let gs_base = thread.gs_base;
        let rip = value(slot::NEXT);
        Ok(match space.landing(CachePc(registers.rip)) {
            Some(Landing::After) => Registers { rip, rcx: rip, gs_base, ..registers },
            _ => Registers { rip, r11: value(slot::R11), gs_base, ..registers },
        })
    }

    /// Threads that are lent, and are to go on or are gone.
    fn take_back_where(&mut self, is_meant: impl Fn(&Lent) -> bool, goes_on: bool) {
        let tracers = self.inner_tracers.values_mut();
        let back: Vec<Lent> = tracers.flat_map(|tracer| tracer.lent.extract_if(.., |lent| is_meant(lent))).collect();
        for lent in back {
            self.take_back(lent, goes_on);
        }
    }

    fn take_back(&mut self, Lent { tid, rested, met, .. }: Lent, goes_on: bool) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.is_lent = false;
        }
        if !goes_on {
            return;
        }
        let waits = self.is_met(tid) || !met.is_empty();
        self.met.extend(met.into_iter().map(|stop| (tid, stop)));
        // A stop of its own is handled first, and lets it go on.
        self.let_go_on(Rested { resumable: if waits { Vec::new() } else { rested.resumable }, ..rested });
    }
}

fn give(tracer: Tid, place: u64, bytes: &[u8]) -> std::result::Result<(), i32> {
    if ptrace::write(tracer, Address(place), bytes) { Ok(()) } else { Err(libc::EFAULT) }
}

/// Registers as the kernel lays them out: 27 words in the order of their declaration.
fn bytes_of(r: &Registers) -> Vec<u8> {
    let words = [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx, r.rsi, r.rdi,
        r.orig_rax, r.rip, r.cs, r.eflags, r.rsp, r.ss, r.fs_base, r.gs_base, r.ds, r.es, r.fs, r.gs,
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
