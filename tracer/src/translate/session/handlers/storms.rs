//! Signals that come often: a shorter way into their handlers and out of them, and time for the program between two.
//!
//! In: once a signal was delivered often, the kernel is told about an entry of ours in place of the handler
//! (`handler_code::signal_entry`), which records that the handler begins and looks it up. The thread's registers are
//! made the program's, so that the frame that the kernel builds shows those, and it runs on: it does not stop a second
//! time. Out: the program makes the call by which it returns, from a frame that leads to code of ours
//! (`handler_code::signal_return`). So a signal costs one stop, that for its delivery, which no tracer can do without.
//!
//! Signals can come faster than they are handled like that. Then a signal for a thread that was let go only a moment
//! ago is held back, with all that follow, until the thread has run for a moment; then it is sent again. So a program
//! always makes progress between two signals, however slow they are. That moment is the longer, the more handlers are
//! open, and lasts until few are: those that interrupt each other fill the stack where none of them ends. What is held
//! back counts as waiting: of the standard signals one of each kind is kept, as the kernel does.

use std::time::{Duration, Instant};

use nix::libc;

use crate::kernel::frames::FRAME_SP;
use crate::kernel::ptrace::{self, Address, Registers, SignalInfo, Stop, Tid};
use crate::translate::addresses::{CachePc, RecordPlace};
use crate::translate::code::expansions::SYSCALL_LEN;
use crate::translate::layout::slot;
use crate::translate::memory::space::Landing;
use crate::translate::remote::{self, Lost, Result, VITAL};
use crate::translate::session::Session;
use crate::translate::session::handlers::actions::Action;
use crate::translate::session::handlers::postponed::{Claim, FEW_OPEN, FIRST_QUEUED, MOMENT};
use crate::translate::session::processes::running;
use crate::translate::session::thread::{Postponed, Quiet};

/// A signal comes often when it was delivered so many times.
const OFTEN: u32 = 16;

/// Once in so many deliveries, a program with one thread and its tracer are brought together.
const DELIVERIES: u32 = 256;

/// A thread that was asked to stop is asked again after this time.
const REMINDER: Duration = Duration::from_millis(2);

/// So many signals may come one right after the other, as those do that were blocked.
const MOST_EARLY: u32 = 4;

/// Signals that instructions raise: the kernel ends a program that blocks them then.
const UNBLOCKABLE: u64 = VITAL | 1 << (libc::SIGFPE - 1) | 1 << (libc::SIGILL - 1) | 1 << (libc::SIGSYS - 1);

/// Results of system calls that were interrupted, as long as the program does not see them.
const ERESTARTSYS: i64 = -512;
const ERESTARTNOINTR: i64 = -513;

/// Calls that wait with another mask of signals.
const WAITS_WITH_MASK: [i64; 6] = [
    libc::SYS_rt_sigsuspend,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_io_uring_enter,
];

/// Between two looks at threads that are about to begin to handle a signal, and the most looks.
const PATIENCE: Duration = Duration::from_micros(50);
const MOST_LOOKS: u32 = 40_000;

/// A signal for a handler, as it comes.
struct Arrival {
    signal: i32,
    action: Action,
    /// What the kernel is to say about it, where that is not what it says.
    info: Option<SignalInfo>,
    /// The thread's registers, as they are.
    registers: Registers,
    /// Whether the thread is in a system call, or right behind it.
    in_call: bool,
}

/// Whether instructions can raise the signal.
fn may_be_fault(signal: i32) -> bool {
    matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP)
}

impl Session<'_> {
    /// A thread has stopped for a signal that is none of ours.
    pub(in crate::translate::session) fn signalled(&mut self, tid: Tid, signal: i32) -> Result<()> {
        let thread = self.threads.get(&tid).ok_or(Lost::Gone)?;
        let action = self.processes.action(thread.process, signal).filter(|action| action.is_handler());
        let Some(action) = action.filter(|_| !may_be_fault(signal)) else {
            let info = ptrace::signal_info(tid)?;
            return self.deliver(tid, signal, info);
        };
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        if thread.signals.quiet.is_some() {
            // It waits with another mask. The frame of the handler has to hold the program's, so the signal comes
            // again.
            let info = ptrace::signal_info(tid)?;
            match thread.signals.claim(signal, info) {
                Claim::Kept(info) | Claim::New(info) => {
                    thread.signals.postponed.push(Postponed { signal, info, sent: false });
                }
                Claim::Stray => {}
            }
            self.end_quiet(tid)?;
            self.resume(tid, 0);
            return Ok(());
        }
        if thread.signals.deferred.iter().any(|(other, _)| *other == signal) {
            // Those of a kind come in their order.
            let info = ptrace::signal_info(tid)?;
            thread.signals.defer(signal, info);
            self.resume(tid, 0);
            return Ok(());
        }
        let registers = ptrace::registers(tid)?;
        let in_call = self.translator(tid)?.space.landing(CachePc(registers.rip)) == Some(Landing::After);
        let mut arrival = Arrival { signal, action, info: None, registers, in_call };
        if self.is_held_back(tid, &mut arrival)? {
            self.resume(tid, 0);
            return Ok(());
        }
        if self.deliver_shortly(tid, &arrival)? {
            return Ok(());
        }
        let info = match arrival.info {
            Some(info) => info,
            None => ptrace::signal_info(tid)?,
        };
        self.deliver(tid, signal, info)
    }

    /// Whether a thread is to go on without this signal, which it gets later, or has got before.
    fn is_held_back(&mut self, tid: Tid, arrival: &mut Arrival) -> Result<bool> {
        let signal = arrival.signal;
        let has_not_run = self.translator(tid)?.space.has_not_run(CachePc(arrival.registers.rip));
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let (process, mut waits) = (thread.process, false);
        if !thread.signals.postponed.is_empty() || thread.signals.strays > 0 {
            let info = ptrace::signal_info(tid)?;
            match thread.signals.claim(signal, info) {
                Claim::Kept(kept) => {
                    arrival.info = Some(kept);
                    thread.signals.early = 0;
                    return Ok(false);
                }
                Claim::Stray => return Ok(true),
                Claim::New(_) => waits = thread.signals.postponed.iter().any(|kept| kept.signal == signal),
            }
        }
        // A thread that makes a call gets on; one that sends itself a signal by a call gets it before the call is done.
        if arrival.in_call {
            return Ok(false);
        }
        let is_early =
            has_not_run || thread.signals.signalled.is_some_and(|since| since.elapsed() < thread.signals.moment());
        let info = if is_early || waits { Some(ptrace::signal_info(tid)?) } else { None };
        let Some(info) = info else {
            thread.signals.early = 0;
            return Ok(false);
        };
        // Signals that waited until they were no longer blocked come before anything else is done.
        thread.signals.early += 1;
        let early = thread.signals.early;
        let is_deep = thread.signals.open.len() > FEW_OPEN + MOST_EARLY as usize;
        let alone = || self.threads.values().filter(|thread| !thread.has_ended()).count() == 1;
        if !waits && (early <= MOST_EARLY && !is_deep || info.is_from(process) && alone()) {
            return Ok(false);
        }
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        if signal >= FIRST_QUEUED || !waits {
            thread.signals.postponed.push(Postponed { signal, info, sent: false });
        }
        self.begin_quiet(tid, &arrival.registers)?;
        Ok(true)
    }

    /// Sets the signals that a thread blocks, which its handler's return says.
    pub(in crate::translate::session) fn set_mask(&mut self, tid: Tid, mask: u64) -> Result<()> {
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let mask = match &mut thread.signals.quiet {
            Some(quiet) => {
                quiet.mask = mask;
                !UNBLOCKABLE
            }
            None => mask,
        };
        Ok(ptrace::set_signal_mask(tid, mask)?)
    }

    /// No signal reaches a thread from now on that could wait, until it has run for a moment: each would stop it, and
    /// where they come faster than stops are handled, it would never get on.
    fn begin_quiet(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        let mask = ptrace::signal_mask(tid)?;
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        let until = Instant::now() + thread.signals.moment();
        if thread.signals.quiet.is_none() {
            ptrace::set_signal_mask(tid, !UNBLOCKABLE)?;
            let registers = [registers.rip, registers.rsp, registers.r11];
            thread.signals.quiet = Some(Quiet { mask, registers, until });
        }
        self.postponed.push((until, tid));
        Ok(())
    }

    /// A thread has stopped since we have asked it to, or for another reason: its signals come again where it has run.
    pub(in crate::translate::session) fn moment_is_over(&mut self, tid: Tid) -> Result<()> {
        let Some(quiet) = self.threads.get(&tid).and_then(|thread| thread.signals.quiet.as_ref()) else {
            return Ok(());
        };
        let registers = ptrace::registers(tid)?;
        let in_call = self.translator(tid)?.space.landing(CachePc(registers.rip)).is_some();
        let is_over = quiet.until <= Instant::now();
        if in_call || is_over && quiet.registers != [registers.rip, registers.rsp, registers.r11] {
            return self.end_quiet(tid);
        }
        if is_over {
            self.postponed.push((Instant::now() + MOMENT, tid));
        }
        Ok(())
    }

    /// A thread stands at the call by which a handler returns.
    pub(in crate::translate::session) fn returns(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        // The handler's `ret` has taken the first word off the frame.
        let frame = Address(registers.rsp.wrapping_sub(8));
        let sp = ptrace::read_u64(tid, frame.plus(FRAME_SP)).unwrap_or(u64::MAX);
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        if thread.signals.is_over_at(sp) { self.end_quiet(tid) } else { Ok(()) }
    }

    /// Signals reach this thread again, which is stopped: those first that were held back.
    pub(in crate::translate::session) fn end_quiet(&mut self, tid: Tid) -> Result<()> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(()) };
        if let Some(quiet) = thread.signals.quiet.take() {
            ptrace::set_signal_mask(tid, quiet.mask)?;
            for kept in thread.signals.postponed.iter_mut().filter(|kept| !kept.sent) {
                kept.sent = ptrace::send(thread.process, tid, kept.signal).is_ok();
            }
            if thread.signals.postponed.iter().any(|kept| !kept.sent) {
                // The kernel takes no more for now.
                self.postponed.push((Instant::now() + MOMENT, tid));
            }
        }
        Ok(())
    }

    /// Delivers a signal to its handler by the short way, where there is one. Whether it did.
    fn deliver_shortly(&mut self, tid: Tid, arrival: &Arrival) -> Result<bool> {
        let Arrival { signal, action, info, registers: before, in_call } = *arrival;
        let thread = self.threads.get(&tid).ok_or(Lost::Gone)?;
        let (process, number) = (thread.process, self.translator(tid)?.space.value(thread.slot, slot::NUMBER));
        let delivered = self.processes.count_delivery(process, signal);
        if delivered < OFTEN || thread.signals.hidden_mask != 0 || !thread.signals.deferred.is_empty() {
            return Ok(false);
        }
        // A mask that was set for a wait only may hold vital signals.
        let other_mask = in_call && WAITS_WITH_MASK.contains(&number.cast_signed());
        if other_mask && ptrace::signal_mask(tid)? & VITAL != 0 {
            return Ok(false);
        }
        if delivered.is_multiple_of(DELIVERIES) && self.threads.len() == 1 && self.coming.births.is_empty() {
            self.together.begin(tid);
        }
        let known = running(&mut self.threads, &mut self.processes, tid).and_then(|(thread, translator)| {
            let converted = crate::translate::session::state::convert_ahead(before, thread, translator)?;
            thread.hold(thread.pointer);
            Some(Registers { orig_rax: before.orig_rax, ..converted })
        });
        let leads_to_us = self.processes.is_direct(process, signal);
        let info = match info {
            None if known.is_none() || !leads_to_us => Some(ptrace::signal_info(tid)?),
            info => info,
        };
        let mut registers = match known {
            Some(registers) => registers,
            None => Registers { orig_rax: u64::MAX, ..self.settle(tid)? },
        };
        if !leads_to_us {
            self.lead_to_entry(tid, signal, action, &registers)?;
        }
        if let Some(info) = info {
            ptrace::set_signal_info(tid, &info)?;
        }
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let again = match registers.rax.cast_signed() {
            ERESTARTNOINTR => true,
            ERESTARTSYS => action.flags & libc::SA_RESTART as u64 != 0,
            _ => false,
        };
        if in_call && again {
            crate::translate::session::state::take_back_last(thread, translator, true);
        }
        let space = &translator.space;
        let values = [
            (slot::POINTER, thread.pointer.0),
            (slot::HANDLER, action.handler),
            (slot::SIGNAL_SP, registers.rsp),
            (slot::CALLING, 0),
        ];
        for (place, value) in values {
            space.set_value(thread.slot, place, value);
        }
        registers.gs_base = space.slot_address(thread.slot);
        ptrace::set_registers(tid, &registers)?;
        thread.signals.hidden_mask |= action.hides(signal);
        thread.signals.interrupt(registers.rsp);
        if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
            self.processes.set_action(process, signal, None);
        }
        self.has_signalled(tid);
        self.resume(tid, signal);
        Ok(true)
    }

    /// Tells the kernel of our entry in place of a handler. The thread, which is stopped for the signal, is left with
    /// these registers.
    fn lead_to_entry(&mut self, tid: Tid, signal: i32, action: Action, registers: &Registers) -> Result<()> {
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let (space, process) = (&translator.space, thread.process);
        let told = action.with_handler(space.signal_entry.0).for_kernel(signal);
        let told = space.scratch(thread.slot, &told.to_bytes());
        let at = space.syscall_at;
        ptrace::set_registers(tid, registers)?;
        if remote::call(tid, at, libc::SYS_rt_sigaction, [signal as u64, told, 0, 8, 0, 0])? == 0 {
            self.processes.set_direct(process, signal, true);
        }
        Ok(())
    }

    /// Tells the kernel of the handlers themselves again, in a process that goes on by itself: `tid` is a thread of it,
    /// `process` one that says the same.
    pub(in crate::translate::session) fn lead_to_handlers(
        &mut self,
        tid: Tid,
        process: Tid,
        scratch: u64,
        syscall_at: u64,
    ) -> Result<()> {
        for (signal, action) in self.processes.direct(process) {
            if ptrace::write(tid, Address(scratch), &action.to_bytes()) {
                remote::call(tid, syscall_at, libc::SYS_rt_sigaction, [signal as u64, scratch, 0, 8, 0, 0])?;
            }
        }
        Ok(())
    }

    /// What is done at a signal is about to change. Threads that were let go into our entry for its handler begin it
    /// first: they have the program's registers, and would run its own code if the signal were ignored.
    pub(in crate::translate::session) fn let_handlers_begin(&mut self, tid: Tid, signal: i32) {
        let Some(process) = self.threads.get(&tid).map(|thread| thread.process) else { return };
        if !self.processes.is_direct(process, signal) {
            return;
        }
        let begins = |session: &Self| {
            session.threads.iter().any(|(&other, thread)| {
                let value = |space: &crate::translate::memory::space::Space| space.value(thread.slot, slot::HANDLER);
                let is_told = || session.translator(other).is_ok_and(|translator| value(&translator.space) != 0);
                other != tid && !thread.has_ended() && is_told()
            })
        };
        let mut looks = 0;
        while looks < MOST_LOOKS && begins(self) {
            looks += 1;
            std::thread::sleep(PATIENCE);
        }
    }

    /// A fault in the way out of a handler, if it is one: the frame cannot be read or written.
    pub(in crate::translate::session) fn return_faulted(&mut self, tid: Tid) -> Result<bool> {
        let registers = ptrace::registers(tid)?;
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Ok(false);
        };
        let space = &translator.space;
        if !matches!(space.returning(CachePc(registers.rip)), Some((Landing::Before, _))) {
            return Ok(false);
        }
        let value = |name| space.value(thread.slot, name);
        let (pointer, rip, r11) = (value(slot::POINTER), value(slot::NEXT) - SYSCALL_LEN, value(slot::R11));
        thread.hold(RecordPlace(pointer));
        let registers = Registers { rip, r11, gs_base: thread.gs_base, ..registers };
        self.signal_return(tid, &registers)?;
        Ok(true)
    }

    /// A thread is let go into a handler, or behind one.
    pub(in crate::translate::session) fn has_signalled(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signals.signalled = Some(Instant::now());
        }
    }

    /// Asks threads to stop that have been left alone for long enough.
    fn end_moments(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.postponed).into_iter().partition(|(when, _)| *when <= now);
        self.postponed = later;
        let due: Vec<(Instant, Tid)> = due;
        for (_, tid) in due {
            let Some(thread) = self.threads.get_mut(&tid).filter(|thread| !thread.has_ended()) else { continue };
            if thread.signals.quiet.is_some() {
                // It fails when the thread is gone. The stop may be taken for another that was asked for.
                thread.interrupted |= ptrace::interrupt(tid).is_ok();
                self.postponed.push((now + REMINDER, tid));
                continue;
            }
            for kept in thread.signals.postponed.iter_mut().filter(|kept| !kept.sent) {
                kept.sent = ptrace::send(thread.process, tid, kept.signal).is_ok();
            }
            if thread.signals.postponed.iter().any(|kept| !kept.sent) {
                self.postponed.push((now + MOMENT, tid));
            }
        }
    }

    /// Threads of this process no longer wait for this signal, which has no handler any more.
    pub(in crate::translate::session) fn forget_postponed(&mut self, process: Tid, signal: i32) {
        for thread in self.threads.values_mut().filter(|thread| thread.process == process) {
            let sent = thread.signals.postponed.extract_if(.., |kept| kept.signal == signal).filter(|kept| kept.sent);
            thread.signals.strays += sent.count() as u32;
        }
    }

    /// A thread ends that has signals to come: another one of its process may get them.
    pub(in crate::translate::session) fn hand_postponed_on(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let process = thread.process;
        for kept in std::mem::take(&mut thread.signals.postponed) {
            let _ = ptrace::ProcessHandle::open(process).and_then(|process| process.send(kept.signal));
        }
    }

    /// The next stop of any thread; none when there is nobody left.
    pub(in crate::translate::session) fn next_stop(&mut self) -> Option<(Tid, Stop)> {
        loop {
            if self.postponed.is_empty() {
                let start = Instant::now();
                let stop = ptrace::wait_any(true).ok().flatten();
                self.found.translation.times.waiting += start.elapsed();
                return stop;
            }
            self.end_moments();
            match ptrace::wait_any(false) {
                Ok(None) => std::thread::sleep(MOMENT),
                Ok(stop) => return stop,
                Err(_) => return None,
            }
        }
    }
}
