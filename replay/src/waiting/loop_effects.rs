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
//! - a branch of it follows from memory, and from nothing else that changes from turn to turn; or it has no branch, so
//!   that it never ends (`for (;;);`).
//!
//! Registers and slots of the frame that a turn both reads from the turn before and changes are *carried*. A turn that
//! carries none leaves the thread as it was: it can end by nothing but a change of memory that another makes. One that
//! carries some (a bound on the spinning, a backoff) is waiting when nobody reads them after the loop.
//!
//! A call of a function that waits (`sched_yield`) is one step: what happens in it is no part of the turn.

use heuristics::SegmentId;
use machine::{Instruction, Memory, Operand, Operation, Operator, Register, RegisterPart, Step, low_bytes};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc, SpEffect};

use super::code::Code;
use super::live_out::LiveOut;
use super::lock_outcome::{LockFlag, LockOutcome, says};
use super::registers::{
    ALL_FLAGS, COUNT, Carried, FIRST_FLAG, FIRST_SLOT, MOST_SLOTS, Registers, Saved, Touch, WAITS, is_fence,
    is_preserved, leaves_what_it_finds, number, touches,
};

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
    LockOutcome(LockOutcome),
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
pub(crate) struct Effects {
    /// What it carries from turn to turn.
    pub carried: Registers,
    /// The slots among that.
    pub slots: Vec<Carried>,
    /// By segment of the turn.
    pub behind: Vec<Behind>,
    /// It has no branch.
    pub is_endless: bool,
}

/// What holds behind a segment of a turn, at its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Where the stack pointer is, from where it was at the turn's beginning.
    pub sp: i64,
    /// Where the calls return to that are open, the latest last.
    pub calls: Vec<Pc>,
    /// See [`LiveOut::saved`](super::live_out::LiveOut::saved).
    pub saved: Saved,
    /// Whether the branch follows from memory, and from nothing that the turn carries.
    pub by_memory: bool,
    /// Memory that it follows from, where the address stands in the code.
    pub places: Vec<u64>,
}

impl Effects {
    /// The segments of the turn whose branches follow from memory, and from nothing that it carries.
    pub(super) fn by_memory(&self, turn: &[SegmentId]) -> Vec<SegmentId> {
        turn.iter().zip(&self.behind).filter(|(_, behind)| behind.by_memory).map(|(segment, _)| *segment).collect()
    }

    /// What the turn of this number carries, to be followed from behind this segment of it.
    pub(super) fn watched(&self, turn: usize, segment: usize) -> LiveOut {
        let in_stack = self.slots.iter().filter(|slot| !slot.by_frame).fold(0, |all, slot| all | 1 << slot.bit);
        let Behind { sp, saved, .. } = self.behind[segment];
        LiveOut {
            turn,
            registers: self.carried,
            in_stack,
            sp,
            saved,
            left_at: segment,
            run: 0,
            left_from: 0,
            read_at: None,
        }
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
    calls: Vec<Pc>,
    /// The flag that tells of a locked operation, where it is not overwritten yet.
    pub(super) flag: Option<LockFlag>,
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
    /// No jump of it could lead elsewhere.
    is_endless: bool,
}

/// All of `rax`.
const RAX: RegisterPart = RegisterPart { register: Register::AX, size: 8, is_high: false };

fn entry(bit: usize) -> Value {
    Value { from: 1 << bit, loads: 0, outside: false, known: Known::Entry(bit) }
}

/// What this turn does, segment by segment, where it could be waiting; none where it is work.
pub(super) fn effects(turn: &[Vec<Instruction>], code: &Code) -> Option<Effects> {
    let begin = turn[0][0].pc();
    let mut walk = Walk {
        code,
        begin,
        registers: std::array::from_fn(entry),
        has_frame: code.has_frame(begin),
        calls: Vec::new(),
        flag: None,
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
        is_endless: turn.iter().flatten().all(|one| !matches!(one.kind(), Kind::Branch | Kind::IndirectJump)),
    };
    walk.registers[Register::SP.index()] = Value { known: Known::Stack(0), ..Value::CONSTANT };
    let mut behind: Vec<Behind> = Vec::with_capacity(turn.len());
    for (at, segment) in turn.iter().enumerate() {
        for instruction in segment {
            walk.instruction(at, *instruction)?;
        }
        let next = turn[(at + 1) % turn.len()][0].pc();
        walk.come_to(segment[segment.len() - 1], next)?;
        let Known::Stack(sp) = walk.registers[Register::SP.index()].known else { return None };
        let saved = saves(segment, behind.last().map(|behind| &behind.saved));
        behind.push(Behind { sp, calls: walk.calls.clone(), saved, by_memory: false, places: Vec::new() });
    }
    let effects = walk.end(behind)?;
    let is_taken = |slot: &Carried| code.is_taken(begin, slot.by_frame, slot.at);
    (!effects.slots.iter().any(is_taken)).then_some(effects)
}

/// The registers that lie saved on the stack behind a segment, from those before it.
fn saves(segment: &[Instruction], before: Option<&Saved>) -> Saved {
    let mut saved = before.copied().unwrap_or_default();
    for touch in touches(segment).1 {
        match touch {
            Touch::Saves(one) if one != 0 => saved.save(one),
            Touch::Restores(one) if one != 0 => {
                saved.restore(one);
            }
            _ => {}
        }
    }
    saved
}

impl Walk<'_> {
    /// After the last instruction of a segment, the thread reaches this address.
    fn come_to(&mut self, last: Instruction, next: Pc) -> Option<()> {
        if last.kind() == Kind::Branch
            && let Some(flag) = self.flag
            && let Some(when) = says(last.condition(), flag.flag)
        {
            if (when == (last.target() == Some(next))) == flag.when_changed {
                return None;
            }
            self.failed |= 1 << flag.operation;
        }
        // The way is no ring where it comes back from a call to another place.
        if last.kind() == Kind::Return && self.calls.pop() != Some(next) {
            return None;
        }
        let goes_away = matches!(last.kind(), Kind::Call | Kind::IndirectCall | Kind::IndirectJump);
        if goes_away && last.target() != Some(next) && self.calls.last() == Some(&next) {
            self.calls.pop();
            self.waited()?;
        }
        Some(())
    }

    /// The thread is back from a function that waits.
    fn waited(&mut self) -> Option<()> {
        let rsp = Register::SP.index();
        let Known::Stack(sp) = self.registers[rsp].known else { return None };
        self.registers[rsp].known = Known::Stack(sp.checked_add(8)?);
        for register in (0..COUNT).filter(|r| !is_preserved(*r)) {
            self.registers[register] = Value { outside: true, ..Value::CONSTANT };
        }
        self.low = [None; 16];
        self.flag = None;
        // What it returns hangs on what others did.
        self.addresses.push(Value::CONSTANT);
        self.registers[0] = Value { loads: 1 << (self.addresses.len() - 1).min(63), ..Value::CONSTANT };
        Some(())
    }

    fn end(self, mut behind: Vec<Behind>) -> Option<Effects> {
        let rsp = Register::SP.index();
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
        if self.is_endless {
            // Nobody reads what it carries.
            return Some(Effects { carried: 0, slots: Vec::new(), behind, is_endless: true });
        }
        behind.iter().any(|behind| behind.by_memory).then_some(Effects { carried, slots, behind, is_endless: false })
    }

    pub(super) fn value(&self, register: RegisterPart) -> Value {
        let Some(number) = number(register) else { return Value::CONSTANT };
        let whole = self.registers[number];
        if register.is_high {
            return Value { known: Known::Nothing, ..whole };
        }
        let Some(Some((size, low))) = self.low.get(number) else { return whole };
        match low.known {
            _ if usize::from(register.size) == *size => *low,
            // Of all that is read only these bytes are known.
            Known::LockOutcome(outcome) => {
                Value { known: outcome.within(8 * *size as u32).map_or(Known::Nothing, Known::LockOutcome), ..whole }
            }
            _ => whole,
        }
    }

    /// What this register held at the turn's beginning, where all code that leads there says so.
    pub(super) fn at_begin(&self, register: usize) -> Option<u64> {
        self.code.constant_at(self.begin, register)
    }

    fn set(&mut self, register: RegisterPart, value: Value) {
        let Some(number) = number(register) else { return };
        if number < 16 && register.size <= 2 {
            let known = match value.known {
                Known::LockOutcome(_) | Known::Constant(_) if !register.is_high => value.known,
                _ => Known::Nothing,
            };
            self.low[number] = (!register.is_high).then_some((register.size.into(), Value { known, ..value }));
            self.registers[number].add(value);
            return;
        }
        if number < 16 {
            self.low[number] = None;
        }
        self.registers[number] = value;
    }

    /// The slot of a memory operand that lies at a known place of the stack.
    fn slot(&self, memory: &Memory) -> Option<Slot> {
        let base = memory.base.filter(|_| memory.index.is_none() && memory.segment.is_none())?;
        let known = self.value(base).known;
        if matches!(known, Known::Entry(_)) && !base.is_whole(Register::BP) {
            return None;
        }
        match self.moved(known, memory.displacement) {
            Known::Stack(at) => Some((None, at)),
            Known::Frame(at) => Some((Some(Register::BP.index()), at)),
            _ => None,
        }
    }

    /// What is known of a value once so much was added to it.
    fn moved(&self, known: Known, by: i64) -> Known {
        match known {
            Known::Stack(at) => Known::Stack(at.wrapping_add(by)),
            Known::Frame(at) => Known::Frame(at.wrapping_add(by)),
            Known::Entry(r) if r == Register::BP.index() && self.has_frame => Known::Frame(by),
            _ => Known::Nothing,
        }
    }

    fn overlaps((base, at): Slot, size: usize, (other, other_at): Slot, other_size: usize) -> bool {
        base == other && at < other_at + other_size as i64 && other_at < at + size as i64
    }

    fn load(&mut self, memory: &Memory, slot: Option<Slot>) -> Option<Value> {
        let size = memory.bytes();
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
        let mut address = memory.base.map_or(Value::CONSTANT, |base| self.value(base));
        address.add(memory.index.map_or(Value::CONSTANT, |index| self.value(index)));
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

    /// Follows an instruction of the turn's segment of this number: first what it reads, then where it goes, then what
    /// it writes; none where the turn is work by it.
    fn instruction(&mut self, at: usize, instruction: Instruction) -> Option<()> {
        let is_strange = |register: Register| (Register::MASKS..Register::POINTERS).contains(&register);
        if instruction.uses().iter().any(|used| is_strange(used.part.register)) {
            return None;
        }
        if instruction.operation() == Operation::Syscall {
            let Known::Constant(call) = self.registers[0].known else { return None };
            if !WAITS.contains(&call) {
                return None;
            }
            for used in instruction.uses().iter().filter(|used| used.access.writes) {
                self.set(used.part, Value { outside: true, ..Value::CONSTANT });
            }
            self.set(RAX, Value { outside: true, ..Value::CONSTANT });
            return Some(());
        }
        let mut input = self.input(instruction);
        let mut exact = None;
        for memory in instruction.memory().iter().filter(|memory| memory.access.reads) {
            let slot = self.slot(memory);
            let value = self.load(memory, slot)?;
            self.read |= value.from;
            exact = Some(value);
            if slot.is_none()
                && let Some(place) = instruction.place()
            {
                self.places.push((value.loads, place));
            }
            input.add(value);
            let may_leave = memory.access.writes && leaves_what_it_finds(instruction) && !is_fence(instruction);
            if slot.is_none() && may_leave {
                self.locked |= value.loads;
            }
        }
        input.outside |= instruction.operation() == Operation::Outside;
        match instruction.kind() {
            Kind::Branch => self.branches.push((at, input)),
            Kind::Call | Kind::IndirectCall => self.calls.push(instruction.next_pc()),
            _ => {}
        }
        let frame = self.registers[Register::BP.index()];
        let outcome = self.outcome(instruction, exact);
        let mut result = self.result(instruction, input, exact);
        if let Some(outcome) = outcome {
            result.known = Known::LockOutcome(outcome);
        }
        for memory in instruction.memory().iter().filter(|memory| memory.access.writes) {
            match self.slot(memory) {
                _ if leaves_what_it_finds(instruction) => {}
                Some(slot) => self.store(slot, memory.bytes(), self.stored(instruction, memory, input, outcome))?,
                None => return None,
            }
        }
        let flag = self.tries(instruction, exact)?;
        let is_sp = |register: Register| register == Register::SP;
        for used in instruction.uses().iter().filter(|used| used.access.writes && !is_sp(used.part.register)) {
            self.set(used.part, result);
        }
        let modified = instruction.flags_written() & ALL_FLAGS;
        if modified != 0 {
            self.flag = flag;
        }
        for flag in (FIRST_FLAG..COUNT).filter(|flag| modified >> flag & 1 == 1) {
            let by = if instruction.zeroes() { Value::CONSTANT } else { input };
            self.registers[flag] = Value { known: Known::Nothing, ..by };
        }
        let rsp = Register::SP.index();
        let Known::Stack(sp) = self.registers[rsp].known else { return None };
        let sp = match (instruction.sp(), instruction.operation()) {
            (SpEffect::Add(by), _) => sp.checked_add(by.into())?,
            (SpEffect::Recorded, Operation::Leave) => match frame.known {
                Known::Stack(frame) => frame.checked_add(8)?,
                _ => return None,
            },
            (SpEffect::Recorded, Operation::Move | Operation::Address) => match result.known {
                Known::Stack(to) => to,
                _ => return None,
            },
            (SpEffect::Recorded, _) => return None,
        };
        self.registers[rsp].known = Known::Stack(sp);
        Some(())
    }

    /// What an instruction reads from registers and flags, besides the stack pointer.
    fn input(&mut self, instruction: Instruction) -> Value {
        let mut input = Value::CONSTANT;
        if instruction.zeroes() {
            return input;
        }
        let reads = instruction.uses().iter().filter(|used| used.access.reads || used.access.may_keep);
        let registers = reads.filter(|used| used.part.register != Register::SP).map(|used| self.value(used.part));
        let read = instruction.flags_read();
        let flags = (FIRST_FLAG..COUNT).filter(|flag| read >> flag & 1 == 1).map(|flag| self.registers[flag]);
        for value in registers.chain(flags).collect::<Vec<_>>() {
            self.read |= value.from;
            input.add(value);
        }
        input
    }

    /// What the instruction leaves in the register that it writes.
    fn result(&self, instruction: Instruction, input: Value, loaded: Option<Value>) -> Value {
        let plain = Value { known: Known::Nothing, ..input };
        let known = |known| Value { known, ..plain };
        if instruction.zeroes() {
            return Value::constant(0);
        }
        if instruction.operation() == Operation::Leave {
            return loaded.unwrap_or(plain);
        }
        match instruction.step() {
            Step::Copy { from, to: Operand::Register(to), is_signed: false } if to.register.is_general() => {
                match from {
                    Operand::Constant(value) if instruction.operation() == Operation::Move => {
                        Value::constant(value.cast_unsigned() & low_bytes(to.size.into()))
                    }
                    Operand::Register(from) if from.register.is_general() => match self.value(from).known {
                        _ if from.size == 8 => self.value(from),
                        Known::Constant(value) if from.size < to.size || to.size == 4 => {
                            known(Known::Constant(value & low_bytes(from.size.into())))
                        }
                        Known::Entry(register) if register < 16 && from.size == 4 => known(Known::Low(register)),
                        _ => plain,
                    },
                    Operand::Memory => loaded
                        .filter(|loaded| {
                            let is_whole = to.size == 8 && instruction.operation() != Operation::Extend;
                            is_whole || matches!(loaded.known, Known::Constant(_))
                        })
                        .unwrap_or(plain),
                    _ => plain,
                }
            }
            Step::Update {
                operator: Operator::Add,
                acc: Operand::Register(acc),
                by: Operand::Constant(by),
                to: Operand::Register(to),
                ..
            } if acc.size == 8 && to.size == 8 => known(self.moved(self.value(acc).known, by)),
            _ => plain,
        }
    }

    /// What the instruction leaves in the slot that it writes.
    fn stored(&self, instruction: Instruction, memory: &Memory, input: Value, outcome: Option<LockOutcome>) -> Value {
        let plain = Value { known: outcome.map_or(Known::Nothing, Known::LockOutcome), ..input };
        match instruction.step() {
            Step::Copy { from: Operand::Constant(value), to: Operand::Memory, .. } => {
                Value::constant(value.cast_unsigned() & low_bytes(memory.size.into()))
            }
            Step::Copy { from: Operand::Register(from), to: Operand::Memory, .. } if from.register.is_general() => {
                let value = self.value(from);
                match value.known {
                    _ if from.size == 8 => value,
                    Known::Constant(known) => {
                        Value { known: Known::Constant(known & low_bytes(from.size.into())), ..value }
                    }
                    _ => plain,
                }
            }
            _ => plain,
        }
    }
}
