//! The gates of the window: where recording begins and ends.
//!
//! Superblocks end before a gate, and the one that starts there has a trap at its head, as long as the gate would
//! change anything. If it would, every thread is brought to rest and its records are read and written down, or left
//! out; then the threads go on. Translations stay as they are: outside of the window they make records too, since
//! functions that are entered and left are followed there as well.

use nix::libc;
use trace_format::{Event, ThreadId};

use super::Session;
use super::processes::running;
use super::thread::{Rested, SpaceId};
use crate::kernel::ptrace::{self, Address, Registers, Stop, Tid};
use crate::switch::Arrival;
use crate::translate::addresses::ProgramPc;
use crate::translate::program::gates::Gates;
use crate::translate::remote::{Lost, Result};
use crate::usage::Why;
use crate::window::Gate;

impl Session<'_> {
    /// A thread stands at the trap of a gate; `registers` are the program's. It goes on, unless recording begins or
    /// ends here: then it is stopped until that is done.
    pub(super) fn come_to_gate(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Err(Lost::Gone);
        };
        let (pc, sp) = (ProgramPc(registers.rip), registers.rsp);
        if !self.recording {
            // Nothing will be recorded any more: no gate stops the program again.
            translator.code.gates = Gates::default();
            translator.give_up(pc, Why::Gate);
            self.run_at(tid, registers)?;
            self.resume(tid, 0);
            return Ok(());
        }
        let known = thread.passed.take() == Some((pc, sp));
        let mut code = [0; 16];
        let length = ptrace::read_code(tid, Address(pc.0), &mut code);
        if let Some(gate) = translator.code.gates.at(pc, &code[..length]).filter(|_| !known) {
            let top = ptrace::read_u64(tid, Address(sp)).unwrap_or(0);
            let arrival = Arrival { thread: thread.stream.id, pc: pc.0, sp, top };
            self.switch.arrive(gate, arrival);
            if gate == Gate::Function {
                translator.add_gate(ProgramPc(top));
            }
            if self.switch.is_open() == self.recorder.is_paused() {
                // It reaches the trap once more, after it was at rest like the others.
                thread.passed = Some((pc, sp));
                self.met.push_front((tid, Stop::Signal(libc::SIGTRAP)));
                return Ok(());
            }
        }
        // Behind the trap.
        self.resume(tid, 0);
        Ok(())
    }

    /// The program of a thread has become another one, which has not begun: none of its calls will return.
    pub(super) fn calls_are_replaced(&mut self, thread: ThreadId) {
        let was_paused = self.recorder.is_paused();
        self.switch.calls_are_gone(thread);
        self.follow_switch();
        if self.recording && self.recorder.is_paused() && !was_paused {
            // It is among no threads now.
            self.recorder.event(thread, Event::Gap);
        }
    }

    fn switch_is_due(&self) -> bool {
        self.recording && self.switch.is_open() == self.recorder.is_paused()
    }

    /// Begins or ends to record, where the switch says so. That takes all threads of all processes at rest.
    pub(super) fn follow_switch(&mut self) {
        if !self.switch_is_due() {
            return;
        }
        let spaces: Vec<SpaceId> = self.processes.spaces().collect();
        let rested: Vec<Option<Rested>> = spaces.into_iter().map(|space| self.bring_to_rest(space)).collect();
        // Else it stays due, and is tried again behind the next stop.
        if rested.iter().all(Option::is_some) && self.switch_is_due() {
            self.change_recording();
        }
        for rested in rested.into_iter().flatten() {
            self.let_go_on(rested);
        }
    }

    fn change_recording(&mut self) {
        let streams = self.threads.values().filter(|thread| thread.recording).map(|thread| &thread.stream);
        let mut open: Vec<(ThreadId, u64)> = streams.map(|stream| (stream.id, stream.sp)).collect();
        open.sort_unstable();
        if self.switch.is_open() {
            self.recorder.go_on(&open);
        } else {
            self.recorder.pause(&open.iter().map(|(id, _)| *id).collect::<Vec<_>>());
        }
        for space in self.processes.spaces_mut() {
            space.expander.change_tables();
            space.translator.heed(&self.switch);
        }
    }
}
