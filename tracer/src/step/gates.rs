//! The gates of the window: where recording begins and ends.

use trace_format::ThreadId;

use super::Session;
use crate::kernel::ptrace::{self, Address, Tid};
use crate::switch::Arrival;
use crate::window::Gate;

impl Session<'_> {
    /// The thread stands before an instruction that it has just reached.
    pub(super) fn come_to_gate(&mut self, tid: Tid) {
        if !self.recording || !self.switch.has_gates() {
            return;
        }
        let code = self.code_at(tid);
        let thread = &self.threads[&tid];
        let (pc, sp) = (thread.registers.rip, thread.registers.rsp);
        let gate = code.gate.or(self.switch.is_return(pc).then_some(Gate::Return));
        let Some(gate) = gate.filter(|_| thread.passed != Some((pc, sp))) else { return };
        let top = ptrace::read_u64(tid, Address(sp)).unwrap_or(0);
        let arrival = Arrival { thread: thread.id, pc, sp, top };
        self.thread(tid).passed = Some((pc, sp));
        self.switch.arrive(gate, arrival);
        self.follow_switch();
    }

    /// None of the calls that a thread is in will return.
    pub(super) fn calls_are_gone(&mut self, thread: ThreadId) {
        self.switch.calls_are_gone(thread);
        self.follow_switch();
    }

    /// Records or does not, as the switch says.
    fn follow_switch(&mut self) {
        if self.switch.is_open() != self.recorder.is_paused() {
            return;
        }
        let mut open: Vec<(ThreadId, u64, Tid)> =
            self.threads.iter().filter(|(_, t)| t.recording).map(|(&tid, t)| (t.id, t.registers.rsp, tid)).collect();
        open.sort_unstable_by_key(|(id, ..)| *id);
        for &(_, _, tid) in &open {
            self.flush(tid);
        }
        if self.switch.is_open() {
            self.recorder.go_on(&open.iter().map(|&(id, sp, _)| (id, sp)).collect::<Vec<_>>());
        } else {
            self.recorder.pause(&open.iter().map(|&(id, ..)| id).collect::<Vec<_>>());
        }
    }
}
