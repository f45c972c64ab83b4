//! Signals that come often: a shorter way into their handlers and out of them, and time for the program between two.
//!
//! In: once a signal was delivered often, the kernel is told of an entry of ours in place of the handler (`expansions::signal_entry`), which records that
//! the handler begins and looks it up. The thread's registers are made the program's, so that the frame that the kernel builds shows those, and it runs
//! on: it does not stop a second time. Out: the frame is told to lead to translated code, and the program itself makes the call by which it returns.
//!
//! Signals can come faster than they are handled like that. Then a signal that finds a thread that was let go only a moment ago is held back for a moment, and
//! sent to it anew: a program always gets on between two signals, however slow they are.

use std::time::{Duration, Instant};

use nix::libc;

use super::Session;
use super::layout::slot;
use super::lifecycle::CODE_64;
use super::processes::running;
use super::remote::{self, Lost, Result, VITAL};
use super::signals::{Action, FRAME_CS, FRAME_FLAGS, FRAME_MASK, FRAME_PC, FRAME_R11, FRAME_SP};
use super::space::Landing;
use crate::ptrace::{self, Address, Registers, SignalInfo, Stop, Tid};

/// A signal comes often when it was delivered so many times.
const OFTEN: u32 = 16;

/// The least time that a thread runs between two signals, if it does not wait in a system call: about as long as it takes to handle one.
const MOMENT: Duration = Duration::from_micros(25);

/// The flag by which a program steps through itself.
const STEP_FLAG: u64 = 0x100;

/// Results of system calls that were interrupted, as long as the program does not see them.
const ERESTARTSYS: i64 = -512;
const ERESTARTNOINTR: i64 = -513;

/// A frame's part that is looked at.
const FRAME_LEN: usize = FRAME_MASK as usize + 8;

impl Session<'_> {
    /// Delivers a signal to its handler by the short way, where there is one. `info` is known to the kernel. Whether it did.
    pub(super) fn deliver_shortly(&mut self, tid: Tid, signal: i32, info: &SignalInfo, action: Action) -> Result<bool> {
        let thread = self.threads.get(&tid).ok_or(Lost::Gone)?;
        let process = thread.process;
        if self.processes.count_delivery(process, signal) < OFTEN || thread.hidden_mask != 0 {
            return Ok(false);
        }
        let before = ptrace::registers(tid)?;
        let in_call = self.translator(tid)?.space.landing(before.rip) == Some(Landing::After);
        // A mask that was set for a wait only may hold vital signals.
        if in_call && ptrace::signal_mask(tid)? & VITAL != 0 {
            return Ok(false);
        }
        let known = running(&mut self.threads, &mut self.processes, tid).and_then(|(thread, translator)| {
            let converted = super::state::convert_ahead(before, thread, translator)?;
            thread.held = true;
            Some(Registers { orig_rax: before.orig_rax, ..converted })
        });
        let mut registers = match known {
            Some(registers) => registers,
            None => Registers { orig_rax: u64::MAX, ..self.settle(tid)? },
        };
        if !self.processes.is_direct(process, signal) {
            self.lead_to_entry(tid, signal, action, &registers)?;
            ptrace::set_signal_info(tid, info)?;
        }
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let result = registers.rax.cast_signed();
        let again = match result {
            ERESTARTNOINTR => true,
            ERESTARTSYS => action.flags & libc::SA_RESTART as u64 != 0,
            _ => false,
        };
        if in_call && again {
            super::state::take_back_last(thread, translator, true);
        }
        let space = &translator.space;
        let values = [
            (slot::POINTER, thread.pointer),
            (slot::HANDLER, action.handler),
            (slot::SIGNAL_SP, registers.rsp),
            (slot::CALLING, 0),
        ];
        for (place, value) in values {
            space.set_value(thread.slot, place, value);
        }
        registers.gs_base = space.slot_address(thread.slot);
        ptrace::set_registers(tid, &registers)?;
        thread.hidden_mask |= action.hides(signal);
        if action.flags & libc::SA_RESETHAND as u32 as u64 != 0 {
            self.processes.set_action(process, signal, None);
        }
        self.resume_after_signal(tid, signal);
        Ok(true)
    }

    /// Tells the kernel of our entry in place of a handler. The thread, which is stopped for the signal, is left with these registers.
    fn lead_to_entry(&mut self, tid: Tid, signal: i32, action: Action, registers: &Registers) -> Result<()> {
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let (space, process) = (&translator.space, thread.process);
        let handler = space.signal_entry;
        let told = action.with_handler(handler).for_kernel(signal);
        let told = space.scratch(thread.slot, &told.to_bytes());
        let at = space.syscall_at;
        ptrace::set_registers(tid, registers)?;
        if remote::call(tid, at, libc::SYS_rt_sigaction, [signal as u64, told, 0, 8, 0, 0])? == 0 {
            self.processes.set_direct(process, signal, true);
        }
        Ok(())
    }

    /// Tells the kernel of the handlers themselves again, in a process that goes on by itself: `tid` is a thread of it, `process` one that says the same.
    pub(super) fn lead_to_handlers(&mut self, tid: Tid, process: Tid, scratch: u64, syscall_at: u64) -> Result<()> {
        for (signal, action) in self.processes.direct(process) {
            if ptrace::write(tid, Address(scratch), &action.to_bytes()) {
                remote::call(tid, syscall_at, libc::SYS_rt_sigaction, [signal as u64, scratch, 0, 8, 0, 0])?;
            }
        }
        Ok(())
    }

    /// Returns from a handler by the short way, where there is one; `registers` are the program's before the call. Whether it did.
    pub(super) fn return_shortly(&mut self, tid: Tid, registers: &Registers) -> Result<bool> {
        // The handler's `ret` has taken the first word off the frame.
        let frame = Address(registers.rsp.wrapping_sub(8));
        let mut bytes = [0; FRAME_LEN];
        if ptrace::read(tid, frame, &mut bytes) < bytes.len() {
            return Ok(false);
        }
        let word = |at: u64| u64::from_le_bytes(bytes[at as usize..at as usize + 8].try_into().expect("eight bytes"));
        let [r11, sp, pc, flags, cs, mask] =
            [FRAME_R11, FRAME_SP, FRAME_PC, FRAME_FLAGS, FRAME_CS, FRAME_MASK].map(word);
        let thread = self.threads.get(&tid).ok_or(Lost::Gone)?;
        if cs & 0xffff != CODE_64 || flags & STEP_FLAG != 0 || !thread.deferred.is_empty() {
            return Ok(false);
        }
        self.drain(tid);
        let (thread, translator, at) = self.translation_at(tid, pc, false)?;
        let space = &translator.space;
        let (pointer, slot) = (thread.pointer, thread.slot);
        let (gs_base, rip) = (space.slot_address(slot), space.syscall_at);
        let mut new = bytes;
        for (place, value) in [(FRAME_R11, pointer), (FRAME_PC, at), (FRAME_MASK, mask & !VITAL)] {
            new[place as usize..place as usize + 8].copy_from_slice(&value.to_le_bytes());
        }
        let first = FRAME_R11 as usize;
        let last = if mask & VITAL == 0 { FRAME_PC as usize + 8 } else { FRAME_LEN };
        if !ptrace::write(tid, frame.plus(FRAME_R11), &new[first..last]) {
            return Ok(false);
        }
        space.set_value(slot, slot::R11, r11);
        space.set_value(slot, slot::POINTER, pointer);
        ptrace::set_registers(tid, &Registers { rip, gs_base, orig_rax: u64::MAX, ..*registers })?;
        let thread = self.threads.get_mut(&tid).ok_or(Lost::Gone)?;
        thread.hidden_mask = mask & VITAL;
        thread.returning = Some(mask & !VITAL);
        self.handler_left(tid, sp);
        self.resume_after_signal(tid, 0);
        Ok(true)
    }

    /// Lets a thread go on into a handler, or behind one.
    pub(super) fn resume_after_signal(&mut self, tid: Tid, signal: i32) {
        self.resume(tid, signal);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.signalled = Some(Instant::now());
        }
    }

    /// A thread has stopped for a signal. Whether it goes on without, to be sent the signal again in a moment.
    pub(super) fn postpones(&mut self, tid: Tid, signal: i32, info: &mut SignalInfo) -> Result<bool> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(false) };
        if thread.postponed.front().is_some_and(|(sent, _)| *sent == signal) && info.is_of_ours() {
            // Here it is again.
            if let Some((_, kept)) = thread.postponed.pop_front() {
                *info = kept;
                ptrace::set_signal_info(tid, info)?;
            }
            if !thread.postponed.is_empty() {
                self.postponed.push((Instant::now() + MOMENT, tid));
            }
            return Ok(false);
        }
        let is_early = thread.signalled.is_some_and(|since| since.elapsed() < MOMENT);
        if !is_early && thread.postponed.is_empty() {
            return Ok(false);
        }
        let process = thread.process;
        let handled = self.processes.action(process, signal).is_some_and(Action::is_handler);
        if !handled || super::signals::is_fault(signal, info) {
            return Ok(false);
        }
        // Who makes a call gets on, and who sends itself a signal by one gets it before the call is done.
        if self.translator(tid)?.space.landing(ptrace::registers(tid)?.rip) == Some(Landing::After) {
            return Ok(false);
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(false) };
        // The kernel keeps one of each kind waiting, but all of those for real time.
        if signal >= FIRST_QUEUED || thread.postponed.iter().all(|(kept, _)| *kept != signal) {
            if thread.postponed.is_empty() {
                self.postponed.push((Instant::now() + MOMENT, tid));
            }
            thread.postponed.push_back((signal, *info));
        }
        self.resume(tid, 0);
        Ok(true)
    }

    /// Sends signals again that were held back for long enough.
    fn send_postponed(&mut self) {
        let now = Instant::now();
        let (due, later) = std::mem::take(&mut self.postponed).into_iter().partition(|(when, _)| *when <= now);
        self.postponed = later;
        let due: Vec<(Instant, Tid)> = due;
        for (_, tid) in due {
            let Some(thread) = self.threads.get(&tid).filter(|thread| !thread.ended) else { continue };
            if let Some(&(signal, _)) = thread.postponed.front() {
                // It fails when the thread is gone.
                let _ = ptrace::send(thread.process, tid, signal);
            }
        }
    }

    /// A thread ends that has signals to come: another one of its process may get them.
    pub(super) fn hand_postponed_on(&mut self, tid: Tid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let process = thread.process;
        for (signal, _) in std::mem::take(&mut thread.postponed) {
            let _ = ptrace::ProcessHandle::open(process).and_then(|process| process.send(signal));
        }
    }

    /// The next stop of any thread; none when there is nobody left.
    pub(super) fn next_stop(&mut self) -> Option<(Tid, Stop)> {
        loop {
            if self.postponed.is_empty() {
                return ptrace::wait_any(true).ok().flatten();
            }
            self.send_postponed();
            match ptrace::wait_any(false) {
                Ok(None) => std::thread::sleep(MOMENT),
                Ok(stop) => return stop,
                Err(_) => return None,
            }
        }
    }
}

/// Signals from here on are queued.
const FIRST_QUEUED: i32 = 32;
