//! Conversion between the registers of the translated code and those of the program.

use std::time::Instant;

use nix::libc;

use super::Session;
use super::forward;
use super::processes::{AddressSpace, running};
use super::thread::Thread;
use crate::kernel::frames::CODE_64;
use crate::kernel::frames::FRAME_PC;
use crate::kernel::ptrace::{self, Address, Registers, Stop, Tid};
use crate::translate::addresses::{CachePc, ProgramPc, RecordPlace};
use crate::translate::code::expansions::SYSCALL_LEN;
use crate::translate::code::loop_code;
use crate::translate::code::superblock::{Borrowed, MAX_HOT_INSTRUCTIONS, Trap};
use crate::translate::code::values::{Value, register_value};
use crate::translate::layout::{PAGE, record, slot};
use crate::translate::memory::space::{Landing, Written};
use crate::translate::remote::{self, Lost, Result};
use crate::translate::translator::{Path, Translator};

/// Translated code is never so long without a mark: a thread that does not reach one is lost.
const MOST_STEPS: u32 = 20_000;

/// No expansion has more instructions.
const MOST_AHEAD: u32 = 128;

/// So many words of a buffer are read at once: 64 KiB, which stay in a level-2 cache until they are expanded. The
/// longest record, of [`MAX_HOT_INSTRUCTIONS`] with three values each, is shorter.
const PIECE: usize = 16 << 10;
const _: () = assert!(MAX_HOT_INSTRUCTIONS * 3 * 8 < 4 * PIECE);

/// Sets a general register by the processor's number.
fn set_register(registers: &mut Registers, number: u8, value: u64) {
    match number {
        0 => registers.rax = value,
        1 => registers.rcx = value,
        2 => registers.rdx = value,
        3 => registers.rbx = value,
        6 => registers.rsi = value,
        7 => registers.rdi = value,
        _ => unreachable!("expansions borrow no other register"),
    }
}

/// Puts the registers of a thread that stands in translated code into the program's form, notes where its next record
/// goes, and records what it has run. None where it stands in the middle of an expansion.
fn convert(mut registers: Registers, thread: &mut Thread, translator: &mut Translator) -> Option<Registers> {
    let at = CachePc(registers.rip);
    if let Some(found) = translator.space.after_empty_entry(thread.slot, &registers) {
        thread.pointer = RecordPlace(registers.r11);
        return Some(Registers { gs_base: thread.gs_base, ..found });
    }
    if let Some(found) = translator.space.around_handler(thread.slot, &registers) {
        thread.pointer = RecordPlace(registers.r11);
        return Some(Registers { gs_base: thread.gs_base, ..found });
    }
    registers.gs_base = thread.gs_base;
    if !translator.space.is_ours(at) {
        return Some(registers);
    }
    let value = |name| translator.space.value(thread.slot, name);
    let trap = translator.trap(at);
    let before_call = matches!(trap, Some(Trap::Filling | Trap::Return));
    if let Some(trap) = trap.filter(|_| !before_call) {
        thread.pointer = RecordPlace(registers.r11);
        registers.r11 = value(slot::R11);
        registers.rip = match trap {
            Trap::Filling | Trap::Return => unreachable!("they are looked at below"),
            Trap::Missing(pc) | Trap::Native(pc) | Trap::Hook(pc) | Trap::Gate(pc) => pc.0,
            Trap::Lookup => value(slot::TARGET),
            Trap::Rest => value(slot::NEXT),
            Trap::Fault(_) => {
                registers.rcx = value(slot::NEXT);
                registers.rcx
            }
            Trap::Syscall { next } => {
                take_back_last(thread, translator, true);
                next.minus(SYSCALL_LEN).0
            }
        };
        return Some(registers);
    }
    let returning = translator.space.returning(at);
    if returning == Some((Landing::Before, true)) {
        // It makes the call again, with the frame as the program knows it.
        let pc = Address(registers.rsp.wrapping_sub(8)).plus(FRAME_PC);
        ptrace::write(translator.space.process, pc, &value(slot::RETURN_TO).to_le_bytes());
    }
    let call = translator.space.landing(at).or(returning.map(|(call, _)| call));
    if let Some(call) = call.or(before_call.then_some(Landing::Before)) {
        thread.pointer = RecordPlace(value(slot::POINTER));
        registers.rip = value(slot::NEXT);
        registers.rcx = registers.rip;
        if call == Landing::Before {
            registers.r11 = value(slot::R11);
            registers.rip -= SYSCALL_LEN;
            take_back_last(thread, translator, true);
        }
        return Some(registers);
    }
    let (number, mark) = translator.mark(at)?;
    if mark.pointer_in_r11 {
        thread.pointer = RecordPlace(registers.r11);
        registers.r11 = value(slot::R11);
    } else {
        thread.pointer = RecordPlace(value(slot::POINTER));
    }
    let executed = mark.executed;
    let pc = translator.superblock(number).pc_after(executed.into());
    registers.rip = pc.0;
    match mark.borrowed {
        Borrowed::Nothing => {}
        Borrowed::Rcx => registers.rcx = value(slot::RCX),
        Borrowed::Register(borrowed) => set_register(&mut registers, borrowed, value(slot::BORROWED)),
        Borrowed::BeforeSyscall => {
            take_back_last(thread, translator, false);
        }
        Borrowed::AfterSyscall => return Some(registers),
    }
    if executed == 0 && translator.is_gated(number) {
        // It stands behind the trap.
        thread.passed = Some((pc, registers.rsp));
    }
    if executed > 0 {
        record_part(thread, translator, Path { superblock: number, executed });
    }
    Some(registers)
}

/// The same, also where the thread stands in the middle of an expansion, when the rest of it can be carried out here.
pub fn convert_ahead(registers: Registers, thread: &mut Thread, translator: &mut Translator) -> Option<Registers> {
    let mut ahead = registers;
    for _ in 0..MOST_AHEAD {
        let converted = convert(ahead, thread, translator);
        if converted.is_some() || !forward::step(&mut ahead, thread.slot, &translator.space) {
            return converted;
        }
    }
    None
}

/// Ends the record of a path early. Its values are written already.
fn record_part(thread: &mut Thread, translator: &mut Translator, path: Path) {
    let number = translator.partial_path(path);
    translator.space.write_record(thread.slot, thread.pointer, &number.to_le_bytes());
    thread.pointer = thread.pointer.plus(record::path_len(translator.values_of(path)).into());
}

/// The path recorded last ends with an instruction that has not run yet. With `shorten`, what comes before it is
/// recorded.
pub fn take_back_last(thread: &mut Thread, translator: &mut Translator, shorten: bool) {
    let mut words = Vec::new();
    translator.space.all_records(thread.slot, thread.pointer, &mut words);
    let Some((path, length)) = last_path(&words, translator) else { return };
    thread.pointer = thread.pointer.minus(length.into());
    if shorten && path.executed > 1 {
        record_part(thread, translator, Path { executed: path.executed - 1, ..path });
    }
}

/// The path that the records end with, and the length of its record in bytes.
pub fn last_path(words: &[u32], translator: &Translator) -> Option<(Path, u32)> {
    let (mut rest, mut last) = (words, None);
    while let Some(&word) = rest.first() {
        let path = record::other_len(word).is_none().then(|| translator.path(word)).flatten();
        let length = match path {
            Some(path) => record::path_len(translator.values_of(path)),
            None => record::other_len(word)?,
        };
        last = path.map(|path| (path, length));
        rest = rest.get((length / 4) as usize..)?;
    }
    last
}

impl Session<'_> {
    /// Brings a stopped thread to a place between two instructions of the program, and returns the registers that the
    /// program has there. They are not yet the thread's.
    pub(super) fn settle(&mut self, tid: Tid) -> Result<Registers> {
        for _ in 0..MOST_STEPS {
            let registers = ptrace::registers(tid)?;
            let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
                return Err(Lost::Gone);
            };
            if let Some(registers) = convert_ahead(registers, thread, translator) {
                thread.hold(thread.pointer);
                return Ok(registers);
            }
            match remote::step_quietly(tid) {
                Err(Lost::Stopped(Stop::Signal(libc::SIGSEGV)))
                    if self.guard_hit(tid)? || self.number_faulted(tid)? || self.time_faulted(tid)? => {}
                done => done?,
            }
        }
        Err(Lost::Gone)
    }

    /// The same for a thread that is about to end and cannot be moved: what it has run is recorded as far as that is
    /// known.
    pub(super) fn settle_at_end(&mut self, tid: Tid) {
        // A thread that was killed while we worked on it: its place for records is up to date, and its registers may
        // not be.
        if let Ok(registers) = ptrace::registers(tid)
            && !self.threads.get(&tid).is_some_and(Thread::is_held)
        {
            self.carry_forward(tid, registers);
        }
    }

    /// Carries out what is left of the expansion that these registers of a thread stand in, as far as it makes records.
    fn carry_forward(&mut self, tid: Tid, mut registers: Registers) {
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else { return };
        // Killed after an `int3` of ours, which will not be reported any more: what follows it is not code, or is other
        // code.
        let at = CachePc(registers.rip);
        if translator.mark(at).is_none() && translator.trap(at.minus(1)).is_some() {
            registers.rip = at.minus(1).0;
        }
        for _ in 0..MOST_STEPS {
            if convert(registers, thread, translator).is_some() {
                return;
            }
            if !forward::step(&mut registers, thread.slot, &translator.space) {
                break;
            }
        }
        // In a lookup, which comes behind the record of its path.
        let buffer = translator.space.buffer(thread.slot);
        let (end, r11) = (translator.space.buffer_end(thread.slot).plus(PAGE), RecordPlace(registers.r11));
        let in_slot = || RecordPlace(translator.space.value(thread.slot, slot::POINTER));
        thread.pointer = if (buffer..=end).contains(&r11) { r11 } else { in_slot() };
    }

    /// Puts a thread with these registers of the program into the translation of its code. It is not resumed yet.
    pub(super) fn run_at(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        self.run_from(tid, registers, false)
    }

    /// The same for a thread that stands at an `int3` of ours, and whose registers are not changed until it goes on at
    /// `pc`: it has the program's already, except for that of the record pointer.
    pub(super) fn run_on_at(&mut self, tid: Tid, pc: ProgramPc, looked_up: bool) -> Result<()> {
        let (_, _, at) = self.translation_at(tid, pc, looked_up)?;
        Ok(ptrace::set_pc(tid, at.0)?)
    }

    /// Whether the thread goes on after a call whose return is not recorded yet, of a synchronisation function or of
    /// one that has given it iterations of a loop: it was brought to rest before it reached the code that does so, to
    /// which only lookups lead.
    fn has_return_due(&self, tid: Tid, pc: ProgramPc, sp: u64) -> bool {
        let (Some(thread), Ok(translator)) = (self.threads.get(&tid), self.translator(tid)) else { return false };
        let is_due = |place| {
            let due = translator.space.value(thread.slot, place);
            let untimed = || due.wrapping_add(slot::UNTIMED.into());
            due == slot::ANY_DUE || due != 0 && [due, untimed()].iter().any(|due| due.wrapping_add(sp) == 0)
        };
        translator.code.returned_to(pc) && (is_due(slot::CHUNK_DUE) || is_due(translator.space.tables.lookup.due(sp)))
    }

    /// Where the translation of the code at `pc` lies, with the thread that is about to run it.
    pub(super) fn translation_at(
        &mut self,
        tid: Tid,
        pc: ProgramPc,
        looked_up: bool,
    ) -> Result<(&Thread, &Translator, CachePc)> {
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let at = translator.enter(tid, pc, looked_up)?;
        translator.space.set_value(thread.slot, slot::CALLING, 0);
        if thread.passed.is_some_and(|(gate, _)| gate == pc) && !translator.has_gate(pc) {
            thread.passed = None;
        }
        Ok((thread, translator, at))
    }

    /// The same as [`Session::run_at`]; `looked_up` tells whether a lookup has led here.
    pub(super) fn run_from(&mut self, tid: Tid, registers: &Registers, looked_up: bool) -> Result<()> {
        let mut registers = *registers;
        let pc = ProgramPc(registers.rip);
        let looked_up = looked_up || self.has_return_due(tid, pc, registers.rsp);
        let (thread, translator, at) = self.translation_at(tid, pc, looked_up)?;
        registers.rip = at.0;
        translator.space.set_value(thread.slot, slot::R11, registers.r11);
        registers.r11 = thread.pointer.0;
        registers.gs_base = translator.space.slot_address(thread.slot);
        registers.orig_rax = u64::MAX;
        Ok(ptrace::set_registers(tid, &registers)?)
    }

    /// Puts a thread with these registers of the program before a system call that it makes by itself, and behind which
    /// it goes on at `next`. The path that ends with the call is recorded.
    pub(super) fn stand_before_call(&mut self, tid: Tid, registers: &Registers, next: ProgramPc) -> Result<()> {
        let (thread, translator) = running(&mut self.threads, &mut self.processes, tid).ok_or(Lost::Gone)?;
        let after = translator.enter(tid, next, false)?;
        let space = &translator.space;
        for (place, value) in [
            (slot::POINTER, thread.pointer.0),
            (slot::R11, registers.r11),
            (slot::NUMBER, registers.rax),
            (slot::CALLING, 1),
            (slot::NEXT, next.0),
            (slot::AFTER, after.0),
        ] {
            space.set_value(thread.slot, place, value);
        }
        let (rip, gs_base) = (space.call().0, space.slot_address(thread.slot));
        ptrace::set_registers(tid, &Registers { rip, gs_base, orig_rax: u64::MAX, ..*registers })?;
        thread.give_back();
        Ok(())
    }

    /// Whether the fault that a thread is stopped for comes from its full buffer. If so, it can go on where it is.
    pub(super) fn guard_hit(&mut self, tid: Tid) -> Result<bool> {
        self.change_full_buffer(tid, |_| ())
    }

    /// The same; `resume` lets the thread go on, which it does in its other buffer while the full one is read.
    pub(super) fn change_full_buffer(&mut self, tid: Tid, resume: impl FnOnce(&mut Self)) -> Result<bool> {
        let address = ptrace::signal_info(tid)?.address();
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Ok(false);
        };
        let mut registers = ptrace::registers(tid)?;
        let space = &mut translator.space;
        if !space.is_guard(thread.slot, address) || !space.is_ours(CachePc(registers.rip)) {
            return Ok(false);
        }
        let unfinished = RecordPlace(registers.r11);
        thread.hold(unfinished);
        let full = space.written(thread.slot, unfinished);
        let has_second = space.has_second(thread.slot);
        if !has_second {
            self.read_records(tid, full);
        }
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Ok(false);
        };
        thread.pointer = translator.space.change_buffer(thread.slot, unfinished);
        registers.r11 = thread.pointer.0;
        let done = ptrace::set_registers(tid, &registers);
        if done.is_ok() {
            thread.give_back();
            resume(self);
        }
        if has_second {
            self.read_records(tid, full);
        }
        if let Err(gone) = done {
            // It was killed meanwhile, before it could write the record for which there is room now.
            self.carry_forward(tid, registers);
            return Err(gone.into());
        }
        Ok(true)
    }

    /// Whether a thread is stopped for a fault in reading what a call has given it, or is given: numbers of iterations,
    /// the data of a task. If so, it can go on behind that.
    pub(super) fn number_faulted(&mut self, tid: Tid) -> Result<bool> {
        let registers = ptrace::registers(tid)?;
        let at = CachePc(registers.rip);
        let translator = self.translator(tid)?;
        let is_read = translator.space.code_at(at).starts_with(&loop_code::READ);
        if !translator.space.is_ours(at) || !is_read || translator.mark(at).is_some() {
            return Ok(false);
        }
        let mut bytes = [0; 8];
        ptrace::read(tid, Address(registers.rcx), &mut bytes);
        let (rip, rcx) = (at.plus(loop_code::READ.len() as u64).0, u64::from_le_bytes(bytes));
        ptrace::set_registers(tid, &Registers { rip, rcx, orig_rax: u64::MAX, ..registers })?;
        Ok(true)
    }

    /// Writes the thread's records to the trace. Its pointer must be up to date.
    pub(super) fn drain(&mut self, tid: Tid) {
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else { return };
        let written = translator.space.written(thread.slot, thread.pointer);
        thread.pointer = translator.space.restart(thread.slot);
        self.read_records(tid, written);
    }

    /// Writes these records of a thread to the trace, which nobody writes to meanwhile.
    fn read_records(&mut self, tid: Tid, written: Written) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let Some(AddressSpace { translator, expander, .. }) = self.processes.space_mut(thread.space) else { return };
        self.found.translation.record_bytes += 4 * written.words as u64;
        let (start, mut read) = (Instant::now(), 0);
        while read < written.words {
            translator.space.records(written, read..written.words.min(read + PIECE), &mut self.words);
            let mut expanded = self.words.len();
            if self.recording && thread.recording {
                expander.left = self.recorder.instructions_left(self.options.limit);
                expanded = expander.expand(&self.words, &mut thread.stream, translator, &mut self.recorder);
            }
            translator.sample(&self.words);
            // What is left is the start of a record, or not wanted any more.
            read += if expander.left == 0 { self.words.len() } else { expanded };
            assert!(expanded > 0 || expander.left == 0, "a piece has room for a record");
        }
        self.found.translation.records += std::mem::take(&mut expander.counted);
        self.found.translation.times.records += start.elapsed();
        translator.space.records_are_read(written);
        if let Some(limit) = self.options.limit.filter(|&limit| self.recording && self.recorder.has_reached(limit)) {
            self.stop_recording(format!("{limit} was reached"));
        }
    }

    /// Runs the one instruction at the registers' pc outside of the cache, and goes on behind it. A signal that it
    /// raises is left to be handled like any other stop.
    pub(super) fn run_natively(&mut self, tid: Tid, registers: &Registers) -> Result<()> {
        let pc = ProgramPc(registers.rip);
        ptrace::set_registers(tid, registers)?;
        remote::step_quietly(tid)?;
        let after = ptrace::registers(tid)?;
        let own_trap = ptrace::signal_info(tid)?.code() == super::stops::RAISED_BY_KERNEL;
        if after.cs != CODE_64 {
            // It makes that jump again, by itself.
            ptrace::set_registers(tid, registers)?;
            return self.go_on_untraced(tid, registers, super::untraceable::NARROW_CODE);
        }
        let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) else {
            return Err(Lost::Gone);
        };
        translator.code.reader = tid;
        if after.rip != pc.0 || own_trap {
            if let Some((path, values)) = translator.single_path(pc) {
                let mut bytes = path.to_le_bytes().to_vec();
                for value in values {
                    let value = match value {
                        Value::Register(number) => register_value(registers, number),
                        Value::StackPointer => after.rsp,
                    };
                    bytes.extend(value.to_le_bytes());
                }
                translator.space.write_record(thread.slot, thread.pointer, &bytes);
                thread.pointer = thread.pointer.plus(bytes.len() as u64);
            }
            thread.stream.segments = [registers.fs_base, thread.gs_base];
            self.drain(tid);
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.gs_base = after.gs_base;
            thread.stream.segments = [after.fs_base, after.gs_base];
        }
        if own_trap {
            let info = ptrace::signal_info(tid)?;
            return self.deliver(tid, libc::SIGTRAP, info);
        }
        self.run_at(tid, &after)?;
        self.resume(tid, 0);
        Ok(())
    }

    /// A thread is gone that has not been seen to end: it was killed while it was stopped, went on to the stop at its
    /// end, and that was the stop which it was told to go on from. So it has run nothing since the stop before.
    pub(super) fn settle_unseen_end(&mut self, tid: Tid) {
        if let Some(registers) = self.threads.get_mut(&tid).and_then(Thread::take_let_go_with) {
            self.carry_forward(tid, registers);
        }
        self.drain(tid);
    }

    /// Lets a thread go on.
    pub(super) fn resume(&mut self, tid: Tid, signal: i32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.let_go(|| ptrace::registers(tid).ok());
        }
        if let Some((thread, translator)) = running(&mut self.threads, &mut self.processes, tid) {
            let look = thread.signals.hidden_mask != 0
                || !thread.signals.deferred.is_empty()
                || thread.signals.quiet.is_some();
            translator.space.set_value(thread.slot, slot::LOOK_AT_RETURN, look.into());
        }
        // Fails only when the thread has been killed; its end will be reported.
        let _ = ptrace::resume(tid, signal);
    }
}
