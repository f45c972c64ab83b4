//! What one turn of a loop does, from its code bytes: whether it is waiting, if nothing of it lives on. It has more
//! than 500 lines since what instructions mean to values, slots and watched registers is one list of rules.
//!
//! The turn is followed instruction by instruction from the loop's head back to it. Each register, and each slot of the
//! stack at a known place, has a value: which registers of the turn's beginning it follows from, and which loads. A
//! turn does nothing when
//!
//! - it writes no memory, except slots of its own stack, and locked operations that leave what they find when they fail
//!   (`xchg`, `cmpxchg`, `bts` and their kin) where what they find decides a branch, and that did not succeed;
//! - no address that it reads follows from what a turn before has changed: a walk along a list or a table is work;
//! - a branch of it follows from memory, and from nothing else that changes from turn to turn.
//!
//! Registers and slots of the frame that a turn both reads from the turn before and changes are *carried*. A turn that
//! carries none leaves the thread as it was: it can end by nothing but a change of memory that another makes. One that
//! carries some (a bound on the spinning, a backoff) is waiting when nobody reads them after the loop.
//!
//! A call of a function that waits (`sched_yield`) is one step: what happens in it is no part of the turn.

use iced_x86::{
    Code as Form, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::code::Code;
use super::registers::{
    COUNT, Carried, FIRST_FLAG, FIRST_SLOT, MOST_SLOTS, Registers, Saved, Touch, WAITS, flags, is_fence, is_high,
    is_preserved, leaves_what_it_finds, low_bytes, merges, number, touches, zeroes,
};
use super::tells::{Told, Tried, says};
use super::watched::Watched;
use crate::accesses::{reads, writes};

/// What is known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Nothing,
    /// It is what this register had at the turn's beginning.
    Entry(usize),
    /// The low half of what this register had at the turn's beginning.
    Low(usize),
    /// So far above the stack pointer of the turn's beginning.
    Stack(i64),
    /// So far above the frame pointer of the turn's beginning.
    Frame(i64),
    Constant(u64),
    /// It tells whether a locked operation changed memory.
    Tells(Told),
}

/// What a value follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// Registers as they were at the turn's beginning.
    from: Registers,
    /// Loads of this turn.
    loads: u64,
    /// Something else: a clock, the kernel.
    outside: bool,
    pub(super) known: Known,
}

impl Value {
    const CONSTANT: Value = Value { from: 0, loads: 0, outside: false, known: Known::Nothing };

    fn constant(value: u64) -> Value {
        Value { known: Known::Constant(value), ..Value::CONSTANT }
    }

    fn add(&mut self, other: Value) {
        self.from |= other.from;
        self.loads |= other.loads;
        self.outside |= other.outside;
        self.known = Known::Nothing;
    }
}

/// A place on the stack: relative to the stack pointer, or to a frame pointer, at the turn's beginning.
type Slot = (Option<usize>, i64);

/// What a turn does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view) struct Deeds {
    /// What it carries from turn to turn.
    pub carried: Registers,
    /// The slots among that.
    pub slots: Vec<Carried>,
    /// By segment of the turn.
    pub behind: Vec<Behind>,
}

/// What holds behind a segment of a turn, at its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view) struct Behind {
    /// Where the stack pointer is, from where it was at the turn's beginning.
    pub sp: i64,
    /// Where the calls return to that are open, the latest last.
    pub calls: Vec<u64>,
    /// See [`Watched::saved`](super::watched::Watched::saved).
    pub saved: Saved,
    /// Whether the branch follows from memory, and from nothing that the turn carries.
    pub by_memory: bool,
    /// Memory that it follows from, where the address stands in the code.
    pub places: Vec<u64>,
}

impl Deeds {
    /// What the turn of this number carries, to be followed from behind this segment of it.
    pub(super) fn watched(&self, turn: usize, segment: usize) -> Watched {
        let in_stack = self.slots.iter().filter(|slot| !slot.by_frame).fold(0, |all, slot| all | 1 << slot.bit);
        let Behind { sp, saved, .. } = self.behind[segment];
        Watched { turn, registers: self.carried, in_stack, sp, saved }
    }
}

pub(super) struct Walk<'a> {
    pub(super) code: &'a Code<'a>,
    /// Where the turn begins.
    begin: Pc,
    registers: [Value; COUNT],
    /// What the low byte or word of a general register was set to alone, and how many bytes that is.
    low: [Option<(usize, Value)>; 16],
    slots: FxHashMap<Slot, (usize, Value)>,
    /// Slots that were read before they were written, by the bits from [`FIRST_SLOT`] on.
    found: Vec<(Slot, usize)>,
    /// Whether the frame pointer is one.
    has_frame: bool,
    /// Where the calls that are open return to.
    calls: Vec<u64>,
    /// The flag that tells of a locked operation, where it is not overwritten yet.
    pub(super) tried: Option<Tried>,
    /// The locked operations so far.
    pub(super) operations: u32,
    /// Those of them that changed nothing, a bit each.
    failed: u64,
    /// What was read of the registers of the beginning.
    read: Registers,
    /// What each address that was read follows from.
    addresses: Vec<Value>,
    /// Loads of locked operations that write.
    locked: u64,
    /// Loads from addresses that stand in the code.
    places: Vec<(u64, u64)>,
    /// What conditional branches follow from, by block.
    branches: Vec<(usize, Value)>,
}

fn entry(bit: usize) -> Value {
    Value { from: 1 << bit, loads: 0, outside: false, known: Known::Entry(bit) }
}

/// What this turn does, segment by segment, where it could be waiting; none where it is work.
pub(super) fn deeds(turn: &[Vec<Instruction>], code: &Code, factory: &mut InstructionInfoFactory) -> Option<Deeds> {
    let begin = Pc(turn[0][0].ip());
    let mut walk = Walk {
        code,
        begin,
        registers: std::array::from_fn(entry),
        has_frame: code.has_frame(begin),
        calls: Vec::new(),
        tried: None,
        operations: 0,
        failed: 0,
        low: [None; 16],
        slots: FxHashMap::default(),
        found: Vec::new(),
        read: 0,
        addresses: Vec::new(),
        locked: 0,
        places: Vec::new(),
        branches: Vec::new(),
    };
    walk.registers[Register::RSP.number()] = Value { known: Known::Stack(0), ..Value::CONSTANT };
    let mut behind: Vec<Behind> = Vec::with_capacity(turn.len());
    for (at, segment) in turn.iter().enumerate() {
        for instruction in segment {
            walk.instruction(at, instruction, factory)?;
        }
        let next = turn[(at + 1) % turn.len()][0].ip();
        walk.come_to(segment[segment.len() - 1], next)?;
        let Known::Stack(sp) = walk.registers[Register::RSP.number()].known else { return None };
        let saved = saves(segment, behind.last().map(|behind| &behind.saved), factory);
        behind.push(Behind { sp, calls: walk.calls.clone(), saved, by_memory: false, places: Vec::new() });
    }
    let deeds = walk.end(behind)?;
    let is_taken = |slot: &Carried| code.is_taken(begin, slot.by_frame, slot.at);
    (!deeds.slots.iter().any(is_taken)).then_some(deeds)
}

/// The registers that lie saved on the stack behind a segment, from those before it.
fn saves(segment: &[Instruction], before: Option<&Saved>, factory: &mut InstructionInfoFactory) -> Saved {
    let mut saved = before.copied().unwrap_or([0; FIRST_SLOT]);
    for touch in touches(segment, factory).1 {
        match touch {
            Touch::Saves(one) if one != 0 => saved[one.trailing_zeros() as usize] += 1,
            Touch::Restores(one) if one != 0 => {
                let saved = &mut saved[one.trailing_zeros() as usize];
                *saved = saved.saturating_sub(1);
            }
            _ => {}
        }
    }
    saved
}

impl Walk<'_> {
    /// After the last instruction of a segment, the thread reaches this address.
    fn come_to(&mut self, last: Instruction, next: u64) -> Option<()> {
        if last.flow_control() == FlowControl::ConditionalBranch
            && let Some(tried) = self.tried
            && let Some(when) = says(last.condition_code(), tried.flag)
        {
            if (when == (last.near_branch_target() == next)) == tried.when_changed {
                return None;
            }
            self.failed |= 1 << tried.operation;
        }
        // The way is no ring where it comes back from a call to another place.
        if last.flow_control() == FlowControl::Return && self.calls.pop() != Some(next) {
            return None;
        }
        let goes_away =
            matches!(last.flow_control(), FlowControl::Call | FlowControl::IndirectCall | FlowControl::IndirectBranch);
        if goes_away && last.near_branch_target() != next && self.calls.last() == Some(&next) {
            self.calls.pop();
            self.waited()?;
        }
        Some(())
    }

    /// The thread is back from a function that waits.
    fn waited(&mut self) -> Option<()> {
        let rsp = Register::RSP.number();
        let Known::Stack(sp) = self.registers[rsp].known else { return None };
        self.registers[rsp].known = Known::Stack(sp.checked_add(8)?);
        for register in (0..COUNT).filter(|r| !is_preserved(*r)) {
            self.registers[register] = Value { outside: true, ..Value::CONSTANT };
        }
        self.low = [None; 16];
        self.tried = None;
        // What it returns hangs on what others did.
        self.addresses.push(Value::CONSTANT);
        self.registers[0] = Value { loads: 1 << (self.addresses.len() - 1).min(63), ..Value::CONSTANT };
        Some(())
    }

    fn end(self, mut behind: Vec<Behind>) -> Option<Deeds> {
        let rsp = Register::RSP.number();
        if self.registers[rsp].known != Known::Stack(0) || !self.calls.is_empty() {
            return None;
        }
        // One that may have changed memory has done something.
        if self.failed.count_ones() != self.operations {
            return None;
        }
        let changed = (0..COUNT).filter(|r| *r != rsp && self.registers[*r].known != Known::Entry(*r));
        let mut carried = changed.fold(0, |all, r| all | (1 << r)) & self.read;
        let mut slots = Vec::new();
        for (i, (slot, size)) in self.found.iter().enumerate() {
            let bit = FIRST_SLOT + i;
            if self.slots.get(slot).is_some_and(|(_, value)| value.known != Known::Entry(bit)) {
                carried |= 1 << bit;
                slots.push(Carried { by_frame: slot.0.is_some(), at: slot.1, size: *size, bit });
            }
        }
        if self.addresses.iter().any(|address| address.from & carried != 0 || address.outside) {
            return None;
        }
        let deciding = self.branches.iter().fold(0, |all, (_, value)| all | value.loads);
        if self.locked & !deciding != 0 {
            return None;
        }
        for (at, value) in &self.branches {
            let by = value.loads != 0 && value.from & carried == 0 && !value.outside;
            let decides = |(load, _): &&(u64, u64)| by && load & value.loads != 0;
            behind[*at].places.extend(self.places.iter().filter(decides).map(|(_, place)| *place));
            behind[*at].by_memory = by;
        }
        behind.iter().any(|behind| behind.by_memory).then_some(Deeds { carried, slots, behind })
    }

    pub(super) fn value(&self, register: Register) -> Value {
        let Some(number) = number(register) else { return Value::CONSTANT };
        let whole = self.registers[number];
        if is_high(register) {
            return Value { known: Known::Nothing, ..whole };
        }
        let Some(Some((size, low))) = self.low.get(number) else { return whole };
        match low.known {
            _ if register.size() == *size => *low,
            // Of all that is read only these bytes are known.
            Known::Tells(told) => {
                Value { known: told.within(8 * *size as u32).map_or(Known::Nothing, Known::Tells), ..whole }
            }
            _ => whole,
        }
    }

    /// What this register held at the turn's beginning, where all code that leads there says so.
    pub(super) fn at_begin(&self, register: usize) -> Option<u64> {
        self.code.constant_at(self.begin, register)
    }

    fn set(&mut self, register: Register, value: Value) {
        let Some(number) = number(register) else { return };
        if number < 16 && register.size() <= 2 {
            let known = match value.known {
                Known::Tells(_) | Known::Constant(_) if !is_high(register) => value.known,
                _ => Known::Nothing,
            };
            self.low[number] = (!is_high(register)).then_some((register.size(), Value { known, ..value }));
            self.registers[number].add(value);
            return;
        }
        if number < 16 {
            self.low[number] = None;
        }
        self.registers[number] = value;
    }

    /// The slot of a memory operand that lies at a known place of the stack.
    fn slot(&self, memory: &UsedMemory) -> Option<Slot> {
        if memory.index() != Register::None
            || !matches!(memory.segment(), Register::SS | Register::DS | Register::ES | Register::None)
        {
            return None;
        }
        let displacement = memory.displacement().cast_signed();
        match self.value(memory.base()).known {
            Known::Stack(at) => Some((None, at.wrapping_add(displacement))),
            Known::Frame(at) => Some((Some(Register::RBP.number()), at.wrapping_add(displacement))),
            Known::Entry(r) if r == Register::RBP.number() && memory.base() == Register::RBP && self.has_frame => {
                Some((Some(r), displacement))
            }
            _ => None,
        }
    }

    fn overlaps((base, at): Slot, size: usize, (other, other_at): Slot, other_size: usize) -> bool {
        base == other && at < other_at + other_size as i64 && other_at < at + size as i64
    }

    fn load(&mut self, memory: &UsedMemory, slot: Option<Slot>) -> Option<Value> {
        let size = memory.memory_size().size().max(1);
        if let Some(slot) = slot {
            if let Some((written, value)) = self.slots.get(&slot)
                && *written >= size
            {
                return Some(if *written == size { *value } else { Value { known: Known::Nothing, ..*value } });
            }
            if self.slots.iter().any(|(other, (of, _))| Walk::overlaps(slot, size, *other, *of)) {
                return None;
            }
            if self.found.len() == MOST_SLOTS {
                return None;
            }
            // Nobody else writes a slot whose address goes nowhere.
            let is_own = !self.code.is_taken(self.begin, slot.0.is_some(), slot.1);
            let loads = if is_own { 0 } else { self.next_load(Value::CONSTANT) };
            let value = Value { loads, ..entry(FIRST_SLOT + self.found.len()) };
            self.found.push((slot, size));
            self.slots.insert(slot, (size, value));
            return Some(value);
        }
        let mut address = self.value(memory.base());
        address.add(self.value(memory.index()));
        address.loads |= self.next_load(address);
        Some(address)
    }

    /// The bit of another load, from an address that follows from this.
    fn next_load(&mut self, address: Value) -> u64 {
        self.addresses.push(address);
        1 << (self.addresses.len() - 1).min(63)
    }

    fn store(&mut self, slot: Slot, size: usize, value: Value) -> Option<()> {
        for (found, of) in &self.found {
            // A slot that the turn found filled may be carried where it lies in a frame; not where it lies in parts.
            let is_carried = (*found, *of) == (slot, size) && (slot.0.is_some() || slot.1 >= 0);
            if !is_carried && Walk::overlaps(slot, size, *found, *of) {
                return None;
            }
        }
        let exact = self.slots.contains_key(&slot);
        if !exact && self.slots.iter().any(|(other, (of, _))| Walk::overlaps(slot, size, *other, *of)) {
            // Another view of the same bytes: a later frame at the same place. What lay there is gone.
            self.slots.retain(|other, (of, _)| !Walk::overlaps(slot, size, *other, *of));
        }
        self.slots.insert(slot, (size, value));
        Some(())
    }

    fn instruction(
        &mut self,
        at: usize,
        instruction: &Instruction,
        factory: &mut InstructionInfoFactory,
    ) -> Option<()> {
        let rsp = Register::RSP.number();
        let info = factory.info(instruction);
        if info.used_registers().iter().any(|r| r.register().is_st() || r.register().is_mm() || r.register().is_k()) {
            return None;
        }
        if instruction.code() == Form::Syscall {
            let Known::Constant(call) = self.registers[0].known else { return None };
            if !WAITS.contains(&call) {
                return None;
            }
            let outside = Value { outside: true, ..Value::CONSTANT };
            for register in [Register::RAX, Register::RCX, Register::R11] {
                self.set(register, outside);
            }
            return Some(());
        }
        // What it reads.
        let mut input = Value::CONSTANT;
        if !zeroes(instruction) {
            for used in info.used_registers() {
                let is_sp = used.register().full_register() == Register::RSP;
                if (reads(used.access()) || merges(used.access())) && !is_sp {
                    let value = self.value(used.register());
                    self.read |= value.from;
                    input.add(value);
                }
            }
            let read = flags(instruction.rflags_read());
            for (flag, value) in self.registers.iter().enumerate().skip(FIRST_FLAG) {
                if read & 1 << flag != 0 {
                    self.read |= value.from;
                    input.add(*value);
                }
            }
        }
        let mut exact = None;
        for memory in info.used_memory() {
            let slot = self.slot(memory);
            if reads(memory.access()) && memory.access() != OpAccess::NoMemAccess {
                let value = self.load(memory, slot)?;
                self.read |= value.from;
                exact = Some(value);
                if slot.is_none() && instruction.is_ip_rel_memory_operand() {
                    self.places.push((value.loads, instruction.ip_rel_memory_address()));
                }
                input.add(value);
                if slot.is_none()
                    && writes(memory.access())
                    && leaves_what_it_finds(instruction)
                    && !is_fence(instruction)
                {
                    self.locked |= value.loads;
                }
            }
        }
        if matches!(
            instruction.mnemonic(),
            Mnemonic::Rdtsc
                | Mnemonic::Rdtscp
                | Mnemonic::Rdrand
                | Mnemonic::Rdseed
                | Mnemonic::Cpuid
                | Mnemonic::Rdpid
                | Mnemonic::In
                | Mnemonic::Xbegin
        ) {
            input.outside = true;
        }
        // Where it goes.
        match instruction.flow_control() {
            FlowControl::ConditionalBranch => self.branches.push((at, input)),
            FlowControl::Call | FlowControl::IndirectCall => self.calls.push(instruction.next_ip()),
            _ => {}
        }
        let frame = self.registers[Register::RBP.number()];
        // What it writes.
        let told = self.told(instruction, exact);
        let mut result = self.result(instruction, input, exact);
        if let Some(told) = told {
            result.known = Known::Tells(told);
        }
        for memory in info.used_memory().iter().filter(|m| writes(m.access())) {
            match self.slot(memory) {
                _ if leaves_what_it_finds(instruction) => {}
                Some(slot) => {
                    self.store(slot, memory.memory_size().size().max(1), self.stored(instruction, input, told))?;
                }
                None => return None,
            }
        }
        let tried = self.tries(instruction, exact)?;
        let written = info.used_registers().iter().filter(|r| writes(r.access())).map(|r| r.register());
        let moves_sp = written.clone().any(|register| register.full_register() == Register::RSP);
        for register in written.filter(|register| register.full_register() != Register::RSP) {
            self.set(register, result);
        }
        let modified = flags(instruction.rflags_modified());
        if modified != 0 {
            self.tried = tried;
        }
        for flag in FIRST_FLAG..COUNT {
            if modified & 1 << flag != 0 {
                self.registers[flag] =
                    Value { known: Known::Nothing, ..if zeroes(instruction) { Value::CONSTANT } else { input } };
            }
        }
        // The stack pointer.
        let Known::Stack(sp) = self.registers[rsp].known else { return None };
        let sp = match instruction.mnemonic() {
            Mnemonic::Leave => match frame.known {
                Known::Stack(frame) => frame.checked_add(8)?,
                _ => return None,
            },
            Mnemonic::Enter => return None,
            _ if instruction.is_stack_instruction() => {
                sp.checked_add(i64::from(instruction.stack_pointer_increment()))?
            }
            Mnemonic::Add | Mnemonic::Sub if instruction.op0_register() == Register::RSP => {
                let by = instruction.try_immediate(1).ok()?.cast_signed();
                if instruction.mnemonic() == Mnemonic::Add { sp.checked_add(by)? } else { sp.checked_sub(by)? }
            }
            Mnemonic::Lea if instruction.op0_register() == Register::RSP => match result.known {
                Known::Stack(to) => to,
                _ => return None,
            },
            Mnemonic::Mov if instruction.op0_register() == Register::RSP => match result.known {
                Known::Stack(to) => to,
                _ => return None,
            },
            _ if moves_sp => return None,
            _ => sp,
        };
        self.registers[rsp].known = Known::Stack(sp);
        Some(())
    }

    /// What the instruction leaves in the register that it writes.
    fn result(&self, instruction: &Instruction, input: Value, loaded: Option<Value>) -> Value {
        let plain = Value { known: Known::Nothing, ..input };
        if zeroes(instruction) {
            return Value::constant(0);
        }
        let is_whole = instruction.op_count() > 0
            && instruction.op_kind(0) == OpKind::Register
            && instruction.op0_register().is_gpr64();
        let is_wide = is_whole
            || instruction.op_count() > 0
                && instruction.op_kind(0) == OpKind::Register
                && instruction.op0_register().is_gpr32();
        match instruction.mnemonic() {
            Mnemonic::Mov if instruction.op_kind(0) == OpKind::Register && instruction.try_immediate(1).is_ok() => {
                let mask = low_bytes(instruction.op0_register().size());
                Value::constant(instruction.try_immediate(1).unwrap_or_default() & mask)
            }
            Mnemonic::Mov if is_whole && instruction.op_kind(1) == OpKind::Register => {
                self.value(instruction.op1_register())
            }
            Mnemonic::Mov if is_wide && instruction.op_kind(1) == OpKind::Register => {
                match self.value(instruction.op1_register()).known {
                    Known::Constant(value) => Value { known: Known::Constant(value & 0xffff_ffff), ..plain },
                    Known::Entry(register) if register < 16 => Value { known: Known::Low(register), ..plain },
                    _ => plain,
                }
            }
            Mnemonic::Mov | Mnemonic::Movzx
                if (!is_whole || instruction.mnemonic() == Mnemonic::Movzx)
                    && instruction.op_kind(1) == OpKind::Memory
                    && let Some(Value { known: Known::Constant(_), .. }) = loaded =>
            {
                loaded.unwrap_or(plain)
            }
            Mnemonic::Movzx if instruction.op_kind(1) == OpKind::Register => {
                match self.value(instruction.op1_register()).known {
                    Known::Constant(value) => {
                        let mask = low_bytes(instruction.op1_register().size());
                        Value { known: Known::Constant(value & mask), ..plain }
                    }
                    _ => plain,
                }
            }
            Mnemonic::Mov if is_whole => loaded.unwrap_or(plain),
            Mnemonic::Pop if is_whole => loaded.unwrap_or(plain),
            Mnemonic::Leave => loaded.unwrap_or(plain),
            Mnemonic::Lea
                if is_whole
                    && instruction.memory_index() == Register::None
                    && !instruction.is_ip_rel_memory_operand() =>
            {
                let by = instruction.memory_displacement64().cast_signed();
                match self.value(instruction.memory_base()).known {
                    Known::Stack(at) => Value { known: Known::Stack(at.wrapping_add(by)), ..plain },
                    Known::Frame(at) => Value { known: Known::Frame(at.wrapping_add(by)), ..plain },
                    Known::Entry(r) if r == Register::RBP.number() && self.has_frame => {
                        Value { known: Known::Frame(by), ..plain }
                    }
                    _ => plain,
                }
            }
            Mnemonic::Add | Mnemonic::Sub if is_whole => {
                match (self.value(instruction.op0_register()).known, instruction.try_immediate(1)) {
                    (Known::Stack(at), Ok(by)) if instruction.mnemonic() == Mnemonic::Add => {
                        Value { known: Known::Stack(at.wrapping_add(by.cast_signed())), ..plain }
                    }
                    (Known::Stack(at), Ok(by)) => {
                        Value { known: Known::Stack(at.wrapping_sub(by.cast_signed())), ..plain }
                    }
                    _ => plain,
                }
            }
            _ => plain,
        }
    }

    /// What the instruction leaves in the slot that it writes.
    fn stored(&self, instruction: &Instruction, input: Value, told: Option<Told>) -> Value {
        let plain = Value { known: told.map_or(Known::Nothing, Known::Tells), ..input };
        let operand = match instruction.mnemonic() {
            Mnemonic::Push => 0,
            Mnemonic::Mov => 1,
            _ => return plain,
        };
        if let Ok(value) = instruction.try_immediate(operand) {
            return Value::constant(value & low_bytes(instruction.memory_size().size()));
        }
        if instruction.op_kind(operand) != OpKind::Register {
            return plain;
        }
        let register = instruction.op_register(operand);
        let value = self.value(register);
        match value.known {
            _ if register.is_gpr64() => value,
            Known::Constant(known) => Value { known: Known::Constant(known & low_bytes(register.size())), ..value },
            _ => plain,
        }
    }
}
