//! Threads leave translations whose code is about to change.
//!
//! A superblock that was given up is trapped at its entries only. A thread in the middle of it would run the old
//! translation, and a route may lead from the instruction that writes the code, or from the one that waits for it, into
//! the code itself. So before memory with code is written to, or changes in another way, every other thread that stands
//! in such a superblock is brought to rest, and goes on in a new translation.
//!
//! Threads in system calls are left alone: after the call they jump to the entry of a superblock.

use std::sync::atomic::{Ordering, fence};

use crate::kernel::ptrace::{self, Stop, Tid};
use crate::translate::addresses::CachePc;
use crate::translate::layout::slot;
use crate::translate::remote::{Lost, Result};
use crate::translate::session::Session;

impl Session<'_> {
    /// Brings all other threads that have the memory of this one, which is stopped, out of code that has been given up
    /// since it changes.
    pub(in crate::translate::session) fn leave_changed(&mut self, tid: Tid) -> Result<()> {
        let space = self.threads.get(&tid).ok_or(Lost::Gone)?.space;
        let translator = self.translator_in(space)?;
        if !translator.has_changed() {
            return Ok(());
        }
        let others: Vec<Tid> = self.threads_in(space).into_iter().filter(|other| *other != tid).collect();
        // A thread that is found in a call from here on finds the traps behind it.
        fence(Ordering::SeqCst);
        let is_calling = |other: &Tid| {
            let slot = self.threads.get(other).map(|thread| thread.slot);
            slot.is_some_and(|slot| translator.space.value(slot, slot::CALLING) != 0)
        };
        let running: Vec<Tid> = others.iter().copied().filter(|other| !is_calling(other)).collect();
        if !running.is_empty() {
            let away = self.stop_those(space, |other, _| running.contains(&other)).ok_or(Lost::Gone)?;
            for other in running.into_iter().filter(|other| !away.contains(other)) {
                self.leave_or_go_on(other)?;
            }
        }
        self.translator_in_mut(space)?.has_left_changed();
        Ok(())
    }

    /// A thread is stopped, and a stop of it may still be to be handled.
    fn leave_or_go_on(&mut self, tid: Tid) -> Result<()> {
        let Some(thread) = self.threads.get(&tid).filter(|thread| !thread.has_ended()) else { return Ok(()) };
        let space = thread.space;
        let Ok(registers) = ptrace::registers(tid) else { return Ok(()) };
        if self.translator_in(space)?.is_in_changed(CachePc(registers.rip)) {
            match self.put_to_rest(tid) {
                Ok(_) | Err(Lost::Gone) => {}
                Err(Lost::Stopped(Stop::Event { event: nix::libc::PTRACE_EVENT_EXIT, .. })) => self.exiting(tid),
                Err(Lost::Stopped(_) | Lost::NoRoom) => {
                    self.give_program_up(tid);
                    return Err(Lost::Gone);
                }
            }
        }
        if !self.is_met(tid) {
            self.retry_call(tid)?;
            self.resume(tid, 0);
        }
        Ok(())
    }
}
