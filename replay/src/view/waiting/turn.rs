//! What one turn of a loop does, from its code bytes: whether it is waiting, if nothing of it lives on. It has more
//! than 500 lines since what instructions mean to values, slots and watched registers is one list of rules.
//!
//! The turn is followed instruction by instruction from the loop's head back to it. Each register, and each slot of the
//! stack at a known place, has a value: which registers of the turn's beginning it follows from, and which loads. A
//! turn does nothing when
//!
//! - it writes no memory, but slots of its own stack that it reads only after it has written them, and locked
//!   operations that leave what they find when they fail (`xchg`, `cmpxchg`, `bts` and their kin) where what they find
//!   decides a branch;
//! - no address that it reads follows from what a turn before has changed: a walk along a list or a table is work;
//! - a branch of it follows from memory, and from nothing else that changes from turn to turn.
//!
//! Registers that a turn both reads from the turn before and changes are *carried*. A turn that carries none leaves the
//! thread as it was: it can end by nothing but a change of memory that another makes. One that carries some (a bound on
//! the spinning, a backoff) is waiting when nobody reads them after the loop.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits, UsedMemory,
};
use rustc_hash::FxHashMap;
use trace_format::Block;

/// Registers, a bit each: 16 general ones, 32 vectors, the flags.
pub(in crate::view) type Registers = u64;

const FLAGS: [u32; 7] =
    [RflagsBits::CF, RflagsBits::PF, RflagsBits::AF, RflagsBits::ZF, RflagsBits::SF, RflagsBits::OF, RflagsBits::DF];
const FIRST_FLAG: usize = 48;
const COUNT: usize = FIRST_FLAG + FLAGS.len();

/// Linux x86-64 system calls that wait and do nothing else: `sched_yield`, `nanosleep`, `futex`, `clock_nanosleep`.
const WAITS: [u64; 4] = [24, 35, 202, 230];

/// The number of a register; none for those that are not followed.
fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    if full.is_gpr64() {
        return Some(full.number());
    }
    register.is_vector_register().then(|| 16 + full.number()).filter(|n| *n < FIRST_FLAG)
}

fn flags(bits: u32) -> Registers {
    let numbers = FLAGS.iter().enumerate().filter(|(_, flag)| bits & **flag != 0);
    numbers.fold(0, |all, (i, _)| all | 1 << (FIRST_FLAG + i))
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// A write that leaves something of what was there.
fn merges(access: OpAccess) -> bool {
    matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

/// Whether both operands are one register and the result is 0.
fn zeroes(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Pxor | Mnemonic::Vpxor | Mnemonic::Xorps | Mnemonic::Vxorps
    ) && instruction.op_kind(0) == OpKind::Register
        && {
            let last = instruction.op_count() - 1;
            instruction.op_kind(last) == OpKind::Register
                && instruction.op_register(last) == instruction.op_register(last - 1)
        }
}

/// An instruction that writes to memory what leaves it as it was, where it finds what it waits for to be otherwise.
fn leaves_what_it_finds(instruction: &Instruction) -> bool {
    let locked = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    let zero = (1..instruction.op_count()).any(|i| instruction.try_immediate(i).is_ok_and(|value| value == 0));
    locked
        && match instruction.mnemonic() {
            Mnemonic::Xchg | Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => true,
            Mnemonic::Bts | Mnemonic::Btr => true,
            Mnemonic::Or | Mnemonic::Add | Mnemonic::Xor | Mnemonic::Sub => zero,
            _ => false,
        }
}

/// A fence written as a locked operation that changes nothing: its value decides nothing.
fn is_fence(instruction: &Instruction) -> bool {
    leaves_what_it_finds(instruction)
        && matches!(instruction.mnemonic(), Mnemonic::Or | Mnemonic::Add | Mnemonic::Xor | Mnemonic::Sub)
}

/// The instructions of a block, decoded; none where their bytes are not known or say something else by now.
pub(in crate::view) fn decode(block: &Block) -> Option<Vec<Instruction>> {
    if block.code.is_empty() {
        return None;
    }
    let mut at = 0;
    let mut all = Vec::with_capacity(block.instructions.len());
    for instruction in &block.instructions {
        let bytes = block.code.get(at..at + usize::from(instruction.len))?;
        at += bytes.len();
        let decoded = Decoder::with_ip(64, bytes, instruction.pc.0, DecoderOptions::NONE).decode();
        if decoded.is_invalid() || decoded.len() != bytes.len() {
            return None;
        }
        all.push(decoded);
    }
    Some(all)
}

/// Whether a block could be a part of a turn that does nothing, at a first look: what it writes may be stack.
pub(in crate::view) fn may_wait(block: &Block, factory: &mut InstructionInfoFactory) -> bool {
    let Some(all) = decode(block) else { return false };
    all.iter().all(|instruction| {
        let info = factory.info(instruction);
        let on_stack = |memory: &UsedMemory| {
            matches!(memory.base().full_register(), Register::RSP | Register::RBP) && memory.index() == Register::None
        };
        let writes_elsewhere = info.used_memory().iter().any(|m| writes(m.access()) && !on_stack(m));
        let strange = info.used_registers().iter().any(|r| r.register().is_st() || r.register().is_mm());
        !strange && (!writes_elsewhere || leaves_what_it_finds(instruction))
    })
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    /// It is what this register had at the turn's beginning.
    Entry(usize),
    /// So far above the stack pointer of the turn's beginning.
    Stack(i64),
    Constant(u64),
}

/// What a value follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    /// Registers as they were at the turn's beginning.
    from: Registers,
    /// Loads of this turn.
    loads: u64,
    /// Something else: a clock, the kernel.
    outside: bool,
    known: Known,
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
    /// By block of the turn: whether its branches follow from memory, and from nothing that a turn carries.
    pub by_memory: Vec<bool>,
}

struct Walk {
    registers: [Value; COUNT],
    /// What the low byte or word of a general register was set to alone.
    low: [Option<Value>; 16],
    slots: FxHashMap<Slot, (usize, Value)>,
    /// Slots that were read before they were written.
    found: Vec<(Slot, usize)>,
    /// What was read of the registers of the beginning.
    read: Registers,
    /// What each address that was read follows from.
    addresses: Vec<Value>,
    /// Loads of locked operations that write.
    locked: u64,
    /// What conditional branches follow from, by block.
    branches: Vec<(usize, Value)>,
}

/// What this turn does, where it could be waiting; none where it is work.
pub(in crate::view) fn deeds(turn: &[&Block], factory: &mut InstructionInfoFactory) -> Option<Deeds> {
    let entry = |r| Value { from: 1u64 << r, loads: 0, outside: false, known: Known::Entry(r) };
    let mut walk = Walk {
        registers: std::array::from_fn(entry),
        low: [None; 16],
        slots: FxHashMap::default(),
        found: Vec::new(),
        read: 0,
        addresses: Vec::new(),
        locked: 0,
        branches: Vec::new(),
    };
    walk.registers[Register::RSP.number()] = Value { known: Known::Stack(0), ..Value::CONSTANT };
    for (at, block) in turn.iter().enumerate() {
        for instruction in decode(block)? {
            walk.instruction(at, &instruction, factory)?;
        }
    }
    walk.end(turn.len())
}

impl Walk {
    fn end(self, blocks: usize) -> Option<Deeds> {
        let rsp = Register::RSP.number();
        if self.registers[rsp].known != Known::Stack(0) {
            return None;
        }
        let changed = (0..COUNT).filter(|r| *r != rsp && self.registers[*r].known != Known::Entry(*r));
        let carried = changed.fold(0, |all, r| all | 1u64 << r) & self.read;
        if self.addresses.iter().any(|address| address.from & carried != 0 || address.outside) {
            return None;
        }
        let deciding = self.branches.iter().fold(0, |all, (_, value)| all | value.loads);
        if self.locked & !deciding != 0 {
            return None;
        }
        let mut by_memory = vec![None; blocks];
        for (at, value) in &self.branches {
            let by = value.loads != 0 && value.from & carried == 0 && !value.outside;
            by_memory[*at] = Some(by && by_memory[*at].unwrap_or(true));
        }
        let by_memory: Vec<bool> = by_memory.into_iter().map(|by| by.unwrap_or(false)).collect();
        by_memory.iter().any(|by| *by).then_some(Deeds { carried, by_memory })
    }

    fn value(&self, register: Register) -> Value {
        let Some(number) = number(register) else { return Value::CONSTANT };
        match self.low.get(number) {
            Some(Some(low)) if register.size() <= 2 => *low,
            _ => self.registers[number],
        }
    }

    fn set(&mut self, register: Register, value: Value) {
        let Some(number) = number(register) else { return };
        if number < 16 && register.size() <= 2 {
            self.low[number] = Some(Value { known: Known::Nothing, ..value });
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
            Known::Entry(r) if r == Register::RBP.number() && memory.base() == Register::RBP => {
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
            self.found.push((slot, size));
        }
        let mut address = self.value(memory.base());
        address.add(self.value(memory.index()));
        self.addresses.push(address);
        address.loads |= 1 << (self.addresses.len() - 1).min(63);
        Some(address)
    }

    fn store(&mut self, slot: Slot, size: usize, value: Value) -> Option<()> {
        if self.found.iter().any(|(found, of)| Walk::overlaps(slot, size, *found, *of)) {
            return None;
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
        if instruction.code() == Code::Syscall {
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
        if instruction.flow_control() == FlowControl::ConditionalBranch {
            self.branches.push((at, input));
        }
        // What it writes.
        let result = self.result(instruction, input, exact);
        for memory in info.used_memory().iter().filter(|m| writes(m.access())) {
            match self.slot(memory) {
                _ if leaves_what_it_finds(instruction) => {}
                Some(slot) => {
                    self.store(slot, memory.memory_size().size().max(1), self.stored(instruction, input))?;
                }
                None => return None,
            }
        }
        let written = info.used_registers().iter().filter(|r| writes(r.access())).map(|r| r.register());
        let moves_sp = written.clone().any(|register| register.full_register() == Register::RSP);
        for register in written.filter(|register| register.full_register() != Register::RSP) {
            self.set(register, result);
        }
        let modified = flags(instruction.rflags_modified());
        for flag in FIRST_FLAG..COUNT {
            if modified & 1 << flag != 0 {
                self.registers[flag] =
                    Value { known: Known::Nothing, ..if zeroes(instruction) { Value::CONSTANT } else { input } };
            }
        }
        // The stack pointer.
        let Known::Stack(sp) = self.registers[rsp].known else { return None };
        let sp = match instruction.mnemonic() {
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
            Mnemonic::Mov if is_wide && instruction.try_immediate(1).is_ok() => Value::constant(
                instruction.try_immediate(1).unwrap_or_default() & if is_whole { u64::MAX } else { 0xffff_ffff },
            ),
            Mnemonic::Mov if is_whole && instruction.op_kind(1) == OpKind::Register => {
                self.value(instruction.op1_register())
            }
            Mnemonic::Mov if is_whole => loaded.unwrap_or(plain),
            Mnemonic::Pop if is_whole => loaded.unwrap_or(plain),
            Mnemonic::Lea
                if is_whole
                    && instruction.memory_index() == Register::None
                    && !instruction.is_ip_rel_memory_operand() =>
            {
                let by = instruction.memory_displacement64().cast_signed();
                match self.value(instruction.memory_base()).known {
                    Known::Stack(at) => Value { known: Known::Stack(at.wrapping_add(by)), ..plain },
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
    fn stored(&self, instruction: &Instruction, input: Value) -> Value {
        let plain = Value { known: Known::Nothing, ..input };
        let operand = match instruction.mnemonic() {
            Mnemonic::Push => 0,
            Mnemonic::Mov => 1,
            _ => return plain,
        };
        let is_register =
            instruction.op_kind(operand) == OpKind::Register && instruction.op_register(operand).is_gpr64();
        if is_register { self.value(instruction.op_register(operand)) } else { plain }
    }
}

/// What an instruction does to registers that are watched after a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Touch {
    /// Reads these; then writes those as a whole.
    Uses(Registers, Registers),
    /// Saves this one on the stack.
    Saves(Registers),
    /// Takes this one back from the stack.
    Restores(Registers),
}

/// What a block does to registers, and all that it touches.
pub(in crate::view) fn touches(block: &Block, factory: &mut InstructionInfoFactory) -> (Registers, Vec<Touch>) {
    let touch = |instruction: &Instruction| {
        let one = |register: Register| number(register).map_or(0, |n| 1u64 << n);
        if instruction.op_count() == 1
            && instruction.op_kind(0) == OpKind::Register
            && instruction.op0_register().is_gpr64()
        {
            match instruction.mnemonic() {
                Mnemonic::Push => return Touch::Saves(one(instruction.op0_register())),
                Mnemonic::Pop => return Touch::Restores(one(instruction.op0_register())),
                _ => {}
            }
        }
        let info = factory.info(instruction);
        let (mut read, mut written) = (0, 0);
        for used in info.used_registers() {
            let is_part = used.register().is_gpr() && used.register().size() <= 2;
            if (reads(used.access()) || merges(used.access())) && !zeroes(instruction) {
                read |= one(used.register());
            }
            if writes(used.access()) && !merges(used.access()) && !is_part {
                written |= one(used.register());
            }
        }
        Touch::Uses(read | flags(instruction.rflags_read()), written | flags(instruction.rflags_modified()))
    };
    let all: Vec<Touch> = decode(block).unwrap_or_default().iter().map(touch).collect();
    let every = all.iter().fold(0, |every, touch| match touch {
        Touch::Uses(read, written) => every | read | written,
        Touch::Saves(one) | Touch::Restores(one) => every | one,
    });
    (every, all)
}
