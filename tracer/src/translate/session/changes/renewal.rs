//! Throwing all translations of an address space away, when they have taken as much memory as they may.
//!
//! Every thread in it is brought *to rest*: to a place between two instructions of the program, at a trap that stays,
//! with all that it has recorded written to the trace. A thread that waits in the kernel is left there: the instruction
//! after its call stays too, and is told to go to that trap. Then nothing refers to a translation any more, and the
//! program starts again with whatever each thread reaches next. `gates` brings threads to rest as well.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use nix::libc;

use crate::kernel::calls::{asks_for_restart, is_futex_wait};
use crate::kernel::ptrace::{self, EVENT_STOP, ProcessHandle, Registers, Stop, Tid};
use crate::translate::addresses::{CachePc, RecordPlace};
use crate::translate::code::expansions::SYSCALL_LEN;
use crate::translate::code::superblock::Superblock;
use crate::translate::layout::slot;
use crate::translate::memory::space::Landing;
use crate::translate::remote::{Lost, Result, VITAL};
use crate::translate::session::Session;
use crate::translate::session::handlers::postponed::Claim;
use crate::translate::session::handlers::signals::is_fault;
use crate::translate::session::processes::running;
use crate::translate::session::state::{last_path, take_back_last};
use crate::translate::session::thread::{Rested, SpaceId, Thread};

/// At least so many stops of each thread for its code are handled before all is thrown away again: even a thread that
/// needs more code for its next few instructions than there is room for must make progress.
const STOPS_EACH: usize = 4;

/// Between two looks at threads that do not stop.
const PATIENCE: Duration = Duration::from_micros(50);

/// So often, and so long apart, threads in the kernel are looked at, before one is taken to stay there: 2 s.
const LOOKS: u32 = 1000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Calls that end with `EINTR` when their thread is stopped, and have done nothing then: they are made again.
const ENDED_BY_STOPS: [i64; 9] = [
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_read,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
];

/// What was done with a thread.
pub enum Resting {
    /// It stands at the trap, and goes on when it is resumed.
    AtTrap,
    /// It is in a system call or right behind it. The record of the call is held back: the call may be begun again.
    InCall(Option<Superblock>),
}

impl Session<'_> {
    /// Throws all translations away when it is time to. Stops that are to be handled are in `met`.
    pub(in crate::translate::session) fn renew_when_full(&mut self, next: (Tid, Stop)) -> Option<(Tid, Stop)> {
        let used = &mut self.found.translation;
        used.stops += 1;
        let Some(id) = self.threads.get(&next.0).map(|thread| thread.space) else { return Some(next) };
        let Some(space) = self.processes.space_mut(id) else { return Some(next) };
        let made = std::mem::take(&mut space.translator.made);
        used.superblocks += made.superblocks;
        used.instructions += made.instructions;
        used.recalled += made.recalled;
        used.thrown_away += made.thrown_away;
        used.again += made.again;
        used.again_the_same += made.again_the_same;
        used.revived += made.revived;
        used.without_room += made.without_room;
        used.times.translating += made.time;
        // Signals may come faster than any code is translated: they are no progress.
        let is_of_code = matches!(next.1, Stop::Signal(libc::SIGTRAP | libc::SIGSEGV));
        space.stops_since += usize::from(is_of_code);
        let (stops, no_room) = (space.stops_since, space.translator.space.tables.is_full());
        let [code, bookkeeping] = self.processes.held();
        used.most_code = used.most_code.max(code);
        used.most_bookkeeping = used.most_bookkeeping.max(bookkeeping);
        let threads = || self.threads.values().filter(|thread| thread.space == id).count();
        let full = no_room || self.processes.takes_too_much(id, self.options.translation);
        let due = full && stops > STOPS_EACH * threads();
        if !(due || is_of_code && self.moments.now()) {
            return Some(next);
        }
        if let Some(space) = self.processes.space_mut(id) {
            space.stops_since = 0;
        }
        used.renewals += 1;
        self.met.push_front(next);
        self.renew(id);
        self.met.pop_front()
    }

    fn renew(&mut self, space: SpaceId) {
        let Some(rested) = self.bring_to_rest(space) else { return };
        self.forget_translations(space);
        self.let_go_on(rested);
    }

    /// Brings every thread of an address space to rest. None where that cannot be done, since the program becomes
    /// another or a thread cannot be brought out of its translation.
    pub(in crate::translate::session) fn bring_to_rest(&mut self, space: SpaceId) -> Option<Rested> {
        let away = self.stop_those(space, |_, _| true)?;
        let tids = self.threads_in(space);
        let (mut resumable, mut calls) = (Vec::new(), Vec::new());
        for tid in tids {
            let resting = if away.contains(&tid) { self.rest_in_call(tid) } else { self.put_to_rest(tid) };
            match resting {
                Ok(resting) => {
                    if let Resting::InCall(held) = resting {
                        calls.push((tid, held));
                    }
                    if !away.contains(&tid) && !self.is_met(tid) {
                        resumable.push(tid);
                    }
                }
                Err(Lost::Gone) if self.sees_end(tid) => {}
                Err(Lost::Stopped(Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. })) => self.exiting(tid),
                Err(Lost::Gone | Lost::Stopped(_) | Lost::NoRoom) => {
                    self.give_program_up(tid);
                    return None;
                }
            }
        }
        Some(Rested { resumable, calls })
    }

    /// Waits for the end of a thread that was killed before it could be brought to rest, and reads its last records
    /// while the translations are there that they are of. False where it stops for something else.
    fn sees_end(&mut self, tid: Tid) -> bool {
        if self.threads.get(&tid).is_none_or(Thread::has_ended) {
            return true;
        }
        match ptrace::wait_for(tid) {
            Ok(Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. }) => self.exiting(tid),
            Ok(end @ (Stop::Exited(_) | Stop::Killed(_))) => {
                self.settle_unseen_end(tid);
                self.met.push_back((tid, end));
            }
            Ok(stop) => {
                self.met.push_back((tid, stop));
                return false;
            }
            // It was met already, or will be reported behind the other threads of its process.
            Err(_) => self.settle_unseen_end(tid),
        }
        true
    }

    /// Lets threads go on that are at rest.
    pub(in crate::translate::session) fn let_go_on(&mut self, Rested { resumable, calls }: Rested) {
        for (tid, held) in calls {
            self.record_again(tid, held);
        }
        for tid in resumable {
            self.resume(tid, 0);
        }
    }

    /// A thread cannot be brought out of code that is to be thrown away.
    pub(in crate::translate::session) fn give_program_up(&mut self, tid: Tid) {
        self.stop_recording("a thread could not be moved out of its translated code: use --engine step".to_owned());
        self.kill_process_of(tid);
    }

    /// Ends the process of a thread that has no way on.
    pub(in crate::translate::session) fn kill_process_of(&mut self, tid: Tid) {
        let process = self.threads.get(&tid).map_or(tid, |thread| thread.process);
        if let Ok(process) = ProcessHandle::open(process) {
            let _ = process.send(libc::SIGKILL);
        }
    }

    /// Forgets the translations of an address space. No thread may be in them.
    pub(in crate::translate::session) fn forget_translations(&mut self, space: SpaceId) {
        self.remember(space);
        if let Some(space) = self.processes.space_mut(space) {
            space.translator.forget_all();
            space.expander.clear();
        }
    }

    /// The threads in an address space that may run, in the order of their numbers.
    pub(in crate::translate::session) fn threads_in(&self, space: SpaceId) -> Vec<Tid> {
        let in_space = |thread: &Thread| !thread.has_ended() && !thread.is_lent && thread.space == space;
        let mut tids: Vec<Tid> = self.threads.iter().filter(|(_, t)| in_space(t)).map(|(&tid, _)| tid).collect();
        tids.sort_unstable();
        tids
    }

    /// Stops those threads of an address space that are `wanted` and not stopped yet, and returns those that are in the
    /// kernel and will stop before they come back. None when the program has become another in the meantime.
    pub(in crate::translate::session) fn stop_those(
        &mut self,
        space: SpaceId,
        wanted: impl Fn(Tid, &Thread) -> bool,
    ) -> Option<Vec<Tid>> {
        while let Ok(Some(stop)) = ptrace::wait_any(false) {
            self.met.push_back(stop);
        }
        for (tid, stop) in std::mem::take(&mut self.met) {
            if is_asked_for(stop) && self.threads.contains_key(&tid) && signal_waits(tid) {
                // It stands behind the instruction that raised it, and is no further before that is known.
                self.resume(tid, 0);
            } else {
                self.met_while_stopping(tid, stop, space);
            }
        }
        let stopped: Vec<Tid> = self.met.iter().map(|(tid, _)| *tid).collect();
        let mut waited_for = Vec::new();
        for (&tid, thread) in &mut self.threads {
            let runs = thread.space == space && !thread.has_ended() && !thread.is_lent && !stopped.contains(&tid);
            if runs && wanted(tid, thread) && ptrace::interrupt(tid).is_ok() {
                thread.interrupted = true;
                waited_for.push(tid);
            }
        }
        let (mut away, mut looks) = (Vec::new(), 0u32);
        while !waited_for.is_empty() && !self.becomes_another(space) {
            match ptrace::wait_any(false) {
                Ok(Some((tid, stop))) => {
                    let asked_for = waited_for.iter().position(|other| *other == tid);
                    let plain = is_asked_for(stop);
                    if plain && asked_for.is_some() && signal_waits(tid) {
                        // A trap or fault comes first, before it runs on.
                        self.resume(tid, 0);
                        continue;
                    }
                    if let Some(at) = asked_for {
                        waited_for.swap_remove(at);
                    }
                    if !plain || asked_for.is_none() {
                        self.met_while_stopping(tid, stop, space);
                        waited_for.retain(|tid| self.threads.get(tid).is_some_and(|thread| !thread.has_ended()));
                    }
                }
                Ok(None) => {
                    looks += 1;
                    if looks > 8 {
                        waited_for.retain(|&tid| match self.whereabouts(tid) {
                            Whereabouts::Unknown => true,
                            Whereabouts::InCall => {
                                away.push(tid);
                                false
                            }
                            Whereabouts::Gone => false,
                        });
                    }
                    std::thread::sleep(PATIENCE);
                }
                Err(_) => break,
            }
        }
        (!self.becomes_another(space)).then_some(away)
    }

    /// Waits for threads that `stop_those` has found in the kernel, until they stop on their way back: they were asked
    /// to, and do so soon where nothing but us, or other work of the machine, keeps them from it. Returns those that
    /// do not.
    pub(in crate::translate::session) fn wait_for_calls(
        &mut self,
        space: SpaceId,
        mut away: Vec<Tid>,
    ) -> Option<Vec<Tid>> {
        for _ in 0..LOOKS {
            if away.is_empty() {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
            away = self.stop_those(space, |tid, _| away.contains(&tid))?;
        }
        Some(away)
    }

    /// Whether a stop of this thread is still to be handled.
    pub(in crate::translate::session) fn is_met(&self, tid: Tid) -> bool {
        self.met.iter().any(|(other, _)| *other == tid)
    }

    /// Whether the only process in this memory has become another program.
    fn becomes_another(&self, space: SpaceId) -> bool {
        let exec = self.met.front().filter(|(_, stop)| is_exec(*stop));
        exec.is_some_and(|&(tid, _)| self.processes.is_only_user(tid, space))
    }

    /// A stop that nobody asked for is handled later, except for the end of a thread, whose last records are read with
    /// the translations there are.
    fn met_while_stopping(&mut self, tid: Tid, stop: Stop, space: SpaceId) {
        if matches!(stop, Stop::Event { event: libc::PTRACE_EVENT_EXIT, .. }) && self.threads.contains_key(&tid) {
            self.exiting(tid);
        } else if is_exec(stop) {
            // What the first thread stopped for before does not matter any more.
            self.met.retain(|(other, _)| *other != tid);
            if self.processes.is_only_user(tid, space) {
                self.met.push_front((tid, stop));
            } else {
                // It leaves the memory to others, and its last records are read with the translations there are.
                self.leave_for_exec(tid);
                self.met.push_back((tid, stop));
            }
        } else {
            self.met.push_back((tid, stop));
        }
    }

    /// Where a thread is that does not stop though it was asked to.
    fn whereabouts(&self, tid: Tid) -> Whereabouts {
        // "running", or the call's number, six arguments, stack pointer and pc.
        let Some(thread) = self.threads.get(&tid) else { return Whereabouts::Gone };
        let Ok(text) = fs::read_to_string(format!("/proc/{}/task/{tid}/syscall", thread.process)) else {
            return Whereabouts::Gone;
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let pc = words.last().and_then(|pc| u64::from_str_radix(pc.trim_start_matches("0x"), 16).ok()).map(CachePc);
        let landing = |pc| self.translator(tid).ok()?.space.landing(pc);
        match pc.and_then(landing) {
            Some(Landing::After) if words.len() == 9 => Whereabouts::InCall,
            _ => Whereabouts::Unknown,
        }
    }

    /// Brings a stopped thread to rest.
    pub(in crate::translate::session) fn put_to_rest(&mut self, tid: Tid) -> Result<Resting> {
        let registers = ptrace::registers(tid)?;
        let translator = self.translator(tid)?;
        if translator.space.landing(CachePc(registers.rip)) == Some(Landing::After) {
            // A signal that it stopped for has ended the call as well.
            if !self.is_met(tid) {
                self.retry_call(tid)?;
            }
            return self.rest_in_call(tid);
        }
        let at_trap = translator.trap(CachePc(registers.rip).minus(1)).is_some();
        let mut group_stopped = false;
        match take(&mut self.met, tid) {
            // The instruction that raised it runs again.
            Some(Stop::Signal(libc::SIGTRAP)) if at_trap => {
                ptrace::set_registers(tid, &Registers { rip: registers.rip - 1, ..registers })?;
            }
            Some(Stop::Signal(libc::SIGSEGV)) if self.guard_hit(tid)? => {}
            Some(Stop::Signal(signal)) => {
                let info = ptrace::signal_info(tid)?;
                if !is_fault(signal, &info) {
                    let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
                    match thread.signals.claim(signal, info) {
                        Claim::Kept(info) | Claim::New(info) => thread.signals.defer(signal, info),
                        Claim::Stray => {}
                    }
                }
            }
            Some(Stop::Event { event: EVENT_STOP, signal }) => group_stopped = signal != libc::SIGTRAP,
            Some(stop) => self.met.push_back((tid, stop)),
            None => {}
        }
        let mut registers = self.settle(tid)?;
        self.drain(tid);
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Err(Lost::Gone);
        };
        let space = &translator.space;
        space.set_value(thread.slot, slot::NEXT, registers.rip);
        space.set_value(thread.slot, slot::R11, registers.r11);
        space.set_value(thread.slot, slot::CALLING, 0);
        registers.rip = space.rest().0;
        registers.r11 = thread.pointer.0;
        registers.gs_base = space.slot_address(thread.slot);
        registers.orig_rax = u64::MAX;
        ptrace::set_registers(tid, &registers)?;
        if group_stopped {
            // It stops again before it runs, and is told to stay so.
            ptrace::interrupt(tid)?;
        }
        Ok(Resting::AtTrap)
    }

    fn rest_in_call(&mut self, tid: Tid) -> Result<Resting> {
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Err(Lost::Gone);
        };
        let space = &translator.space;
        space.set_value(thread.slot, slot::AFTER, space.rest().0);
        thread.pointer = RecordPlace(space.value(thread.slot, slot::POINTER));
        let mut words = Vec::new();
        space.all_records(thread.slot, thread.pointer, &mut words);
        // The path that ends with the call.
        let held = last_path(&words, translator).map(|(path, _)| {
            let call = translator.superblock(path.superblock).only(usize::from(path.executed) - 1);
            take_back_last(thread, translator, true);
            call
        });
        self.drain(tid);
        Ok(Resting::InCall(held))
    }

    /// Records again what was held back.
    fn record_again(&mut self, tid: Tid, held: Option<Superblock>) {
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else { return };
        if let Some(call) = held {
            let bytes = translator.adopt(call).to_le_bytes();
            translator.space.write_record(thread.slot, thread.pointer, &bytes);
            thread.pointer = thread.pointer.plus(bytes.len() as u64);
        }
        translator.space.set_value(thread.slot, slot::POINTER, thread.pointer.0);
    }

    /// Makes a system call again that has ended only because we stopped its thread.
    pub(in crate::translate::session) fn retry_call(&mut self, tid: Tid) -> Result<()> {
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Ok(());
        };
        if !std::mem::take(&mut thread.interrupted) {
            return Ok(());
        }
        let mut registers = ptrace::registers(tid)?;
        if translator.space.landing(CachePc(registers.rip)) != Some(Landing::After) {
            return Ok(());
        }
        let is_wait = registers.orig_rax.cast_signed() == libc::SYS_futex && is_futex_wait(registers.rsi as u32);
        if is_wait && asks_for_restart(&registers) {
            thread.stream.left_wait = Some(registers.rdi);
        }
        if registers.rax.cast_signed() == -i64::from(libc::EINTR)
            && ENDED_BY_STOPS.contains(&registers.orig_rax.cast_signed())
        {
            registers.rip -= SYSCALL_LEN;
            registers.rax = registers.orig_rax;
            registers.orig_rax = u64::MAX;
            ptrace::set_registers(tid, &registers)?;
        }
        Ok(())
    }
}

/// Where a thread is, as far as the kernel tells.
enum Whereabouts {
    InCall,
    Gone,
    Unknown,
}

/// Whether a trap or fault of this thread has not been reported yet.
fn signal_waits(tid: Tid) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let waiting = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    waiting.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & VITAL != 0)
}

/// Whether a thread has stopped since we have asked it to.
fn is_asked_for(stop: Stop) -> bool {
    matches!(stop, Stop::Event { event: EVENT_STOP, signal: libc::SIGTRAP })
}

fn is_exec(stop: Stop) -> bool {
    matches!(stop, Stop::Event { event: libc::PTRACE_EVENT_EXEC, .. })
}

/// Takes the first stop of a thread.
fn take(met: &mut VecDeque<(Tid, Stop)>, tid: Tid) -> Option<Stop> {
    let at = met.iter().position(|(other, _)| *other == tid)?;
    met.remove(at).map(|(_, stop)| stop)
}
