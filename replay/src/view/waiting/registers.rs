//! Registers, flags and slots of the frame as bits, and what instructions do to them.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
    UsedMemory,
};
use trace_format::Block;

use crate::accesses::{reads, writes};

/// Registers and slots, a bit each: 16 general registers, 32 vectors, the flags; from [`FIRST_SLOT`] on, slots of the
/// frame that the turn finds filled.
pub(in crate::view) type Registers = u128;

/// The bit of the first slot.
pub(super) const FIRST_SLOT: usize = 64;

/// By register: how often it lies saved on the stack.
pub(super) type Saved = [u32; FIRST_SLOT];

/// The bit of the frame pointer.
pub(super) const FRAME_POINTER: Registers = 1 << 5;

/// Slots that a turn may find filled.
pub(super) const MOST_SLOTS: usize = 48;

pub(super) const FLAGS: [u32; 7] =
    [RflagsBits::CF, RflagsBits::PF, RflagsBits::AF, RflagsBits::ZF, RflagsBits::SF, RflagsBits::OF, RflagsBits::DF];
pub(super) const FIRST_FLAG: usize = 48;
pub(super) const COUNT: usize = FIRST_FLAG + FLAGS.len();
pub(super) const CARRY: usize = FIRST_FLAG;
pub(super) const ZERO: usize = FIRST_FLAG + 3;

/// Linux x86-64 system calls that wait and do nothing else: `sched_yield`, `nanosleep`, `futex`, `clock_nanosleep`.
pub(super) const WAITS: [u64; 4] = [24, 35, 202, 230];

/// The number of a register; none for those that are not followed.
pub(super) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    if full.is_gpr64() {
        return Some(full.number());
    }
    register.is_vector_register().then(|| 16 + full.number()).filter(|n| *n < FIRST_FLAG)
}

pub(super) fn flags(bits: u32) -> Registers {
    let numbers = FLAGS.iter().enumerate().filter(|(_, flag)| bits & **flag != 0);
    numbers.fold(0, |all, (i, _)| all | 1 << (FIRST_FLAG + i))
}

/// A write that leaves something of what was there.
pub(super) fn merges(access: OpAccess) -> bool {
    matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite)
}

/// Whether a function leaves the register of this number as it was.
pub(super) fn is_preserved(register: usize) -> bool {
    let preserved =
        [Register::RBX, Register::RBP, Register::RSP, Register::R12, Register::R13, Register::R14, Register::R15];
    preserved.iter().any(|preserved| preserved.number() == register)
}

/// Whether it is the second byte of a register.
pub(super) fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}

/// So many low bytes, all ones.
pub(super) fn low_bytes(size: usize) -> u64 {
    if size < 8 { (1 << (8 * size)) - 1 } else { u64::MAX }
}

/// Whether both operands are one register and the result is 0.
pub(super) fn zeroes(instruction: &Instruction) -> bool {
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
pub(super) fn leaves_what_it_finds(instruction: &Instruction) -> bool {
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
pub(super) fn is_fence(instruction: &Instruction) -> bool {
    leaves_what_it_finds(instruction)
        && matches!(instruction.mnemonic(), Mnemonic::Or | Mnemonic::Add | Mnemonic::Xor | Mnemonic::Sub)
}

/// The code of a block from one instruction on.
pub(super) fn bytes(block: &Block, first: usize) -> &[u8] {
    let before: usize = block.instructions[..first].iter().map(|i| usize::from(i.len)).sum();
    block.code.get(before..).unwrap_or_default()
}

/// So many instructions of a block from one on, decoded; none where their bytes are not known or say something else by
/// now.
pub(super) fn decode(block: &Block, first: usize, count: usize) -> Option<Vec<Instruction>> {
    let code = bytes(block, first);
    if code.is_empty() {
        return None;
    }
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    let mut all = Vec::with_capacity(count);
    for instruction in &block.instructions[first..first + count] {
        decoder.set_ip(instruction.pc.0);
        let decoded = decoder.decode();
        if decoded.is_invalid() || decoded.len() != usize::from(instruction.len) {
            return None;
        }
        all.push(decoded);
    }
    Some(all)
}

/// Whether instructions could be a part of a turn that does nothing, at a first look: what they write may be stack.
pub(super) fn may_wait(all: &[Instruction], factory: &mut InstructionInfoFactory) -> bool {
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

/// The address that an instruction writes to, where it stands in the code.
pub(super) fn written_place(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Option<u64> {
    let writes = |memory: &UsedMemory| writes(memory.access());
    (instruction.is_ip_rel_memory_operand() && factory.info(instruction).used_memory().iter().any(writes))
        .then(|| instruction.ip_rel_memory_address())
}

/// A slot of the frame that a turn carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    /// Whether it is found by the frame pointer; else by the stack pointer at the turn's beginning.
    pub by_frame: bool,
    /// How far from that.
    pub at: i64,
    pub size: usize,
    pub bit: usize,
}

/// What an instruction does to registers and slots that are watched after a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// Reads these; then writes those as a whole.
    Uses(Registers, Registers),
    /// Saves this one on the stack.
    Saves(Registers),
    /// Takes this one back from the stack.
    Restores(Registers),
    /// Reads so many bytes so far from the frame pointer, or else from the stack pointer; or takes their address.
    ReadsSlot(bool, i64, usize),
    /// Writes them.
    WritesSlot(bool, i64, usize),
}

/// What a segment does to registers, and all that it touches.
pub(super) fn touches(all: &[Instruction], factory: &mut InstructionInfoFactory) -> (Registers, Vec<Touch>) {
    let mut touches = Vec::new();
    for instruction in all {
        touch(instruction, factory, &mut touches);
    }
    let every = touches.iter().fold(0, |every, touch| match touch {
        Touch::Uses(read, written) => every | read | written,
        Touch::Saves(one) | Touch::Restores(one) => every | one,
        Touch::ReadsSlot(..) | Touch::WritesSlot(..) => every | FRAME_POINTER,
    });
    (every, touches)
}

fn touch(instruction: &Instruction, factory: &mut InstructionInfoFactory, all: &mut Vec<Touch>) {
    let one = |register: Register| number(register).map_or(0, |n| 1 << n);
    if instruction.op_count() == 1
        && instruction.op_kind(0) == OpKind::Register
        && instruction.op0_register().is_gpr64()
    {
        match instruction.mnemonic() {
            Mnemonic::Push => return all.push(Touch::Saves(one(instruction.op0_register()))),
            Mnemonic::Pop => return all.push(Touch::Restores(one(instruction.op0_register()))),
            _ => {}
        }
    }
    if instruction.mnemonic() == Mnemonic::Leave {
        return all.push(Touch::Restores(FRAME_POINTER));
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
    let by_frame = |base: Register| base == Register::RBP;
    let base = instruction.memory_base();
    if instruction.mnemonic() == Mnemonic::Lea
        && matches!(base, Register::RBP | Register::RSP)
        && instruction.op0_register() != Register::RSP
    {
        // Where what lies there goes to is not followed: it may be read.
        all.push(Touch::ReadsSlot(by_frame(base), instruction.memory_displacement64().cast_signed(), 1));
    }
    let in_frame = |m: &&UsedMemory| matches!(m.base(), Register::RBP | Register::RSP) && m.index() == Register::None;
    let slots: Vec<UsedMemory> = info.used_memory().iter().filter(in_frame).copied().collect();
    let size = |memory: &UsedMemory| memory.memory_size().size().max(1);
    for memory in slots.iter().filter(|m| reads(m.access()) || merges(m.access())) {
        all.push(Touch::ReadsSlot(by_frame(memory.base()), memory.displacement().cast_signed(), size(memory)));
    }
    all.push(Touch::Uses(read | flags(instruction.rflags_read()), written | flags(instruction.rflags_modified())));
    for memory in slots.iter().filter(|m| writes(m.access()) && !merges(m.access())) {
        all.push(Touch::WritesSlot(by_frame(memory.base()), memory.displacement().cast_signed(), size(memory)));
    }
}
