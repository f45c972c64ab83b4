//! Instructions as they run: what is known before, what is written after.

use std::rc::Rc;

use trace_format::{Event, Instruction, Kind, Pc, SpEffect, SyncFunction};

use super::Session;
use super::thread::{Code, Thread};
use crate::decode::{Class, Decoded, MAX_LENGTH};
use crate::images::loop_calls;
use crate::images::sync_functions::{self, Role};
use crate::images::task_calls::{TaskCall, Words};
use crate::kernel::frames::STEP_FLAG;
use crate::kernel::ptrace::{self, Address, Registers, Tid};
use crate::window::Gate;

impl Session<'_> {
    /// The thread's next instruction has run; `now` are the registers after it.
    pub(super) fn retire(&mut self, tid: Tid, now: &Registers) {
        let thread = self.threads.get_mut(&tid).expect("callers have seen the thread in the map");
        let code = thread.next.clone();
        let learned;
        let decoded = if code.decoded.class == Class::Unknown {
            learned = learn(tid, thread.registers.rip, now.rip);
            &learned
        } else {
            &code.decoded
        };
        let sp_before = thread.registers.rsp;
        let before = thread.repeating.take().unwrap_or(thread.registers);
        thread.pending.push(decoded, &before, now.rsp);
        if thread.passed == Some((thread.registers.rip, sp_before)) {
            thread.passed = None;
        }
        thread.registers = *now;
        thread.restarting = false;
        self.retired += u64::from(!self.recorder.is_paused());
        let expected_sp = match decoded.instruction.sp {
            SpEffect::Add(change) => sp_before.wrapping_add_signed(change.into()),
            SpEffect::Recorded => now.rsp,
        };
        let surprise = expected_sp != now.rsp;
        if decoded.ends_block() || thread.pending.is_full() || surprise {
            self.recorder.block(thread.id, &mut thread.pending, &self.processes[&thread.process].modules);
        }
        match decoded.class {
            Class::Syscall => self.after_syscall(tid, now),
            Class::PushFlags if before.eflags & STEP_FLAG == 0 => hide_step_flag(tid, now.rsp),
            _ => {}
        }
        if surprise && !self.recorder.is_paused() {
            let id = self.thread(tid).id;
            self.recorder.event(id, Event::SetSp(now.rsp));
        }
        let transferred = decoded.instruction.kind.transfers_control();
        if transferred {
            self.functions_left(tid);
        }
        self.come_to_gate(tid);
        if transferred {
            self.function_entered(tid);
        }
        if self.limit_reached() && self.recording {
            self.stop_at_limit();
        }
    }

    /// Functions that this transfer leaves.
    fn functions_left(&mut self, tid: Tid) {
        let thread = self.threads.get_mut(&tid).expect("callers have seen the thread in the map");
        let Thread { id, process, registers, sync, other_stack, .. } = thread;
        while !sync.is_empty() {
            let same_stack = |a, b| Thread::same_stack(other_stack, *process, a, b);
            let Some(function) = sync.leave(registers.rsp, same_stack) else { break };
            self.recorder.leave(*id, function, registers.rax);
        }
        let Some(open) = thread.loop_call.take_if(|open| open.sp.wrapping_add(8) == thread.registers.rsp) else {
            return;
        };
        let word = |address| ptrace::read_u64(tid, Address(address)).unwrap_or(0);
        let read = loop_calls::Read {
            numbers: open.addresses.map(|address| if address == 0 { 0 } else { word(address) }),
            step: open.step,
            last: open.last,
            are_sections: open.are_sections,
            result: thread.registers.rax,
        };
        let site = self.processes[&thread.process].modules.pc(thread.registers.rip);
        if let Some(chunk) = open.call.chunk(site, &read) {
            self.recorder.event(thread.id, Event::Chunk(chunk));
        }
    }

    /// The function that this transfer enters.
    fn function_entered(&mut self, tid: Tid) {
        let code = self.code_at(tid);
        if let Some(role) = code.role {
            self.entered(tid, role);
        }
    }

    fn entered(&mut self, tid: Tid, role: Role) {
        let thread = self.threads.get_mut(&tid).expect("callers have seen the thread in the map");
        let registers = &thread.registers;
        let words = role.words().map_or_else(Vec::new, |words| read_words(tid, words, registers));
        match role {
            Role::SetsTeamSize(size) => thread.team_size = size.value(registers, 0, &[]),
            Role::MakesPieces => {
                self.processes.entry(thread.process).or_default().taskloops.extend(words);
            }
            Role::BeginsAlone => {
                let process = self.processes.entry(thread.process).or_default();
                let caller = words.first().copied().unwrap_or(0);
                self.recorder.begin_alone(thread.id, &mut thread.sync, (registers.rip, caller), &process.modules);
            }
            Role::EndsAlone => self.recorder.end_alone(thread.id, &mut thread.sync),
            Role::BeginsTask => {
                let process = self.processes.entry(thread.process).or_default();
                let task = (words.first().copied().unwrap_or(0), registers.rdx);
                self.recorder.begin_task(thread.id, &mut thread.sync, task, &process.modules);
            }
            Role::EndsTask => self.recorder.end_task(thread.id, &mut thread.sync),
            Role::GivesChunk(call) => {
                let word = |address| ptrace::read_u64(tid, Address(address)).unwrap_or(0);
                thread.loop_call = Some(loop_calls::Open::at(call, registers, word));
            }
            Role::Sync { function, object, argument } => {
                let object = object.value(registers, 0, &words);
                let argument = argument.value(registers, thread.team_size, &words);
                let has_begun = function == SyncFunction::TaskBody && thread.sync.has_begun(argument);
                if has_begun || !thread.sync.enter(function, registers.rsp) {
                    return;
                }
                let process = self.processes.entry(thread.process).or_default();
                self.recorder.enter(thread.id, function, object, argument, &process.modules);
                let is_taskloop = process.taskloops.contains(&object);
                let piece = |call: TaskCall| call.piece(process.modules.pc(object), &words, is_taskloop);
                if let Some(piece) = role.task().and_then(piece) {
                    self.recorder.event(thread.id, Event::Chunk(piece));
                }
                if sync_functions::takes_team_size(function) {
                    thread.team_size = 0;
                }
                let word = |at| ptrace::read_u64(tid, Address(at));
                if let Some((routine, role)) = role.of_routine(registers, word) {
                    process.add_routine(routine, role);
                }
            }
        }
    }

    /// Gets ready for the thread's next instruction. System calls that are answered here are done with afterwards.
    pub(super) fn prepare(&mut self, tid: Tid) {
        while self.recording {
            let code = self.code_at(tid);
            let is_syscall = code.decoded.class == Class::Syscall;
            self.thread(tid).next = code;
            let Some(after) = is_syscall.then(|| self.before_syscall(tid)).flatten() else { return };
            if ptrace::set_registers(tid, &after).is_err() {
                return;
            }
            self.retire(tid, &after);
        }
    }

    /// The instruction that the thread stands at.
    pub(super) fn code_at(&mut self, tid: Tid) -> Rc<Code> {
        let thread = &self.threads[&tid];
        let (pc, pid) = (thread.registers.rip, thread.process);
        let process = self.processes.entry(pid).or_default();
        if let Some(code) = process.code.get(&pc) {
            if !code.volatile || is_current(tid, pc, &code.decoded) {
                return code.clone();
            }
            process.code.remove(&pc);
        }
        if process.modules.code_at(pc).is_none() {
            self.refresh_modules(tid);
        }
        let process = self.processes.entry(pid).or_default();
        let mut bytes = [0; MAX_LENGTH];
        let length = ptrace::read_code(tid, Address(pc), &mut bytes);
        let region = process.modules.code_at(pc);
        let marker = Gate::marker(&bytes[..length]).filter(|_| self.switch.has_markers());
        let code = Rc::new(Code {
            decoded: self.decoder.decode(Pc(pc), &bytes[..length], process.modules.wants_atomics(pc)),
            gate: process.gates.get(&pc).copied().or(marker),
            role: process.modules.role(pc).or_else(|| process.routines.get(&pc).copied()),
            volatile: region.is_none_or(crate::images::modules::Region::is_volatile),
        });
        if region.is_some() {
            process.code.insert(pc, code.clone());
        }
        code
    }

    /// Writes the instructions that a thread has run since its last block.
    pub(super) fn flush(&mut self, tid: Tid) {
        let thread = self.threads.get_mut(&tid).expect("callers have seen the thread in the map");
        if !thread.pending.is_empty() {
            let modules = &self.processes.entry(thread.process).or_default().modules;
            self.recorder.block(thread.id, &mut thread.pending, modules);
        }
    }

    /// Looks at the memory map of a thread's process, and writes what came and went.
    pub(super) fn refresh_modules(&mut self, tid: Tid) {
        self.flush(tid);
        let thread = &self.threads[&tid];
        let process = self.processes.entry(thread.process).or_default();
        let changes = process.modules.refresh(thread.process, &mut self.images);
        process.gates = process.modules.gates().into_iter().collect();
        self.recorder.modules(thread.id, &mut process.modules, &changes);
    }
}

/// What is to be read of memory where a function is entered; 0 where nothing is mapped.
fn read_words(tid: Tid, words: Words, registers: &Registers) -> Vec<u64> {
    let address = words.address(registers);
    let word = |number: u8| {
        let mut bytes = [0; 8];
        if address != 0 {
            let at = Address(address).plus(u64::from(words.offset) + 8 * u64::from(number));
            ptrace::read(tid, at, &mut bytes);
        }
        u64::from_le_bytes(bytes)
    };
    (0..words.count).map(word).collect()
}

/// Whether the memory still holds the instruction as decoded.
fn is_current(tid: Tid, pc: u64, decoded: &Decoded) -> bool {
    let mut bytes = [0; MAX_LENGTH];
    let length = decoded.code().len();
    length > 0 && ptrace::read(tid, Address(pc), &mut bytes[..length]) == length && bytes[..length] == *decoded.code()
}

/// What can be said about an instruction that could not be decoded, but ran.
fn learn(tid: Tid, pc: u64, next: u64) -> Decoded {
    let mut decoded = Decoded::unknown(Pc(pc));
    let length = next.wrapping_sub(pc) as usize;
    if (1..=MAX_LENGTH).contains(&length) && ptrace::read_code(tid, Address(pc), &mut decoded.bytes[..length]) == length
    {
        decoded.instruction =
            Instruction { pc: Pc(pc), len: length as u8, kind: Kind::Plain, sp: SpEffect::Recorded, memory: 0 };
    }
    decoded
}

/// `pushf` has put the flags on the stack, with the flag by which we step: the program must not see it.
fn hide_step_flag(tid: Tid, sp: u64) {
    let address = Address(sp).plus(1);
    let mut byte = [0];
    if ptrace::read(tid, address, &mut byte) == 1 && byte[0] & 1 != 0 {
        ptrace::write(tid, address, &[byte[0] & !1]);
    }
}
