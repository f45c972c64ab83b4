//! The gates of the window: where recording begins and ends.
//!
//! Superblocks end before a gate, and the one that starts there has a trap at its head, as long as the gate would
//! change anything. Where it does, every thread is brought to rest and its records are read as what they are, written
//! down or left out; then they go on. Translations stay as they are: outside of the window they make records too, since
//! functions that are entered and left are followed there as well.

use nix::libc;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Event, ThreadId};

use super::Session;
use super::addresses::ProgramPc;
use super::plan::Source;
use super::processes::{SpaceId, running};
use super::remote::{Lost, Result};
use super::renewal::Rested;
use super::superblock::Trap;
use super::translator::Translator;
use crate::modules::ModuleMap;
use crate::ptrace::{self, Address, Registers, Stop, Tid};
use crate::switch::{Arrival, Switch};
use crate::window::Gate;

/// The gates of a process, as its code is translated.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// Whether there can be any.
    any: bool,
    /// Whether markers are gates.
    pub with_markers: bool,
    /// Whether entering the window would change anything, and leaving it.
    heeds: [bool; 2],
    /// In functions.
    places: FxHashMap<ProgramPc, Gate>,
    /// Where functions may return to.
    returns: FxHashSet<ProgramPc>,
}

impl Gates {
    /// Whether there is none.
    pub fn are_none(&self) -> bool {
        !self.any
    }

    /// From now on gates are heeded as the switch says.
    pub fn follow(&mut self, switch: &Switch) {
        self.any = switch.has_gates();
        self.with_markers = switch.has_markers();
        self.heeds = [Gate::Start, Gate::Stop].map(|gate| switch.heeds(gate));
    }

    /// Modules have come or gone.
    pub fn modules_changed(&mut self, modules: &ModuleMap) {
        if self.any {
            self.places = modules.gates().into_iter().map(|(pc, gate)| (ProgramPc(pc), gate)).collect();
        }
    }

    /// The gate at an address with these bytes of code.
    pub fn at(&self, pc: ProgramPc, code: &[u8]) -> Option<Gate> {
        let in_function = self.places.get(&pc).copied();
        let returned_to = || self.returns.contains(&pc).then_some(Gate::Return);
        in_function.or_else(returned_to).or_else(|| Gate::marker(code).filter(|_| self.with_markers))
    }

    /// Whether coming to it would change anything.
    pub fn heeded(&self, gate: Gate) -> bool {
        match gate {
            Gate::Start => self.heeds[0],
            Gate::Stop => self.heeds[1],
            Gate::Function | Gate::Return | Gate::Begin | Gate::End => true,
        }
    }
}

impl Translator {
    /// Whether the superblock starts with the trap of a gate.
    pub fn is_gated(&self, number: u32) -> bool {
        matches!(self.trap(self.superblock(number).body), Some(Trap::Gate(_)))
    }

    /// Whether the code of `pc` starts with the trap of a gate, or will when it is translated.
    pub fn has_gate(&mut self, pc: ProgramPc) -> bool {
        self.code.gate(pc) == Some(true)
    }

    /// Gates are heeded from now on as the switch says: what starts at one is translated anew.
    fn heed(&mut self, switch: &Switch) {
        self.code.gates.follow(switch);
        let changed: Vec<ProgramPc> = self.code.gates.places.keys().copied().collect();
        for pc in changed {
            self.give_up(pc);
        }
    }

    /// A call may return to this address, which is a gate from now on: all that runs into it is translated anew.
    fn add_gate(&mut self, pc: ProgramPc) {
        if self.code.gates.returns.insert(pc) {
            self.give_up_all_with(pc);
        }
    }
}

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
            translator.give_up(pc);
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
                // It comes to the trap once more, after it was at rest like the others.
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
