//! Registers, flags and slots of the frame as bits, and what instructions do to them.

use machine::{Instruction, Memory, Operation, Register, RegisterPart};
use trace_format::Marker;

/// Registers and slots, a bit each: general registers, vectors and flags as [`machine`] numbers them; from
/// [`FIRST_SLOT`] on, slots of the frame that the turn finds filled.
pub(crate) type Registers = u128;

/// The bit of the first slot.
pub(super) const FIRST_SLOT: usize = 64;

/// How often each general register lies saved on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    times: [u32; Register::VECTORS.index()],
    /// Those that do. What is watched is held against them at each touch, so they are at hand as bits.
    pub registers: Registers,
}

impl Saved {
    /// This one is saved once more.
    pub fn save(&mut self, one: Registers) {
        self.times[one.trailing_zeros() as usize] += 1;
        self.registers |= one;
    }

    /// This one is taken back; whether it was saved.
    pub fn restore(&mut self, one: Registers) -> bool {
        let times = &mut self.times[one.trailing_zeros() as usize];
        let was_saved = *times > 0;
        *times -= u32::from(was_saved);
        if *times == 0 {
            self.registers &= !one;
        }
        was_saved
    }
}

/// The bit of the frame pointer.
pub(super) const FRAME_POINTER: Registers = Register::BP.bit();

/// Slots that a turn may find filled.
pub(super) const MOST_SLOTS: usize = 48;

/// Registers and flags that are followed.
pub(super) const COUNT: usize = FIRST_FLAG + 7;
pub(super) const FIRST_FLAG: usize = Register::FLAGS.index();
pub(super) const ALL_FLAGS: Registers = (1 << COUNT) - (1 << FIRST_FLAG);

/// Linux x86-64 system calls that wait and do nothing else: `sched_yield`, `nanosleep`, `futex`, `clock_nanosleep`.
pub(super) const WAITS: [u64; 4] = [24, 35, 202, 230];

/// The number of a register; none for those that are not followed.
pub(super) fn number(part: RegisterPart) -> Option<usize> {
    (part.register < Register::FLAGS).then(|| part.register.index())
}

/// Whether a function leaves the register of this number as it was.
pub(crate) fn is_preserved(register: usize) -> bool {
    // rbx, rsp, rbp, r12 to r15.
    [3, 4, 5, 12, 13, 14, 15].contains(&register)
}

/// An instruction that writes to memory what leaves it as it was, where it finds what it waits for to be otherwise.
pub(super) fn leaves_what_it_finds(instruction: Instruction) -> bool {
    let zero = || (1..instruction.operand_count()).any(|index| instruction.constant(index) == Some(0));
    instruction.is_atomic()
        && match instruction.operation() {
            Operation::Exchange | Operation::CompareExchange => true,
            Operation::TestAndSet | Operation::TestAndClear => true,
            Operation::Or | Operation::Add | Operation::Xor | Operation::Subtract => zero(),
            _ => false,
        }
}

/// A fence written as a locked operation that changes nothing: its value decides nothing.
pub(super) fn is_fence(instruction: Instruction) -> bool {
    let adds = matches!(instruction.operation(), Operation::Or | Operation::Add | Operation::Xor | Operation::Subtract);
    adds && leaves_what_it_finds(instruction)
}

/// Whether instructions could be a part of a turn that does nothing, at a first look: what they write may be stack. A
/// marked iteration is work, if it does nothing else.
pub(crate) fn may_wait(all: &[Instruction]) -> bool {
    all.iter().all(|instruction| {
        let on_stack = |memory: &Memory| {
            memory.index.is_none() && memory.base.is_some_and(|b| [Register::SP, Register::BP].contains(&b.register))
        };
        let writes_elsewhere = instruction.memory().iter().any(|m| m.access.writes && !on_stack(m));
        let is_strange = |register: Register| (Register::X87..Register::POINTERS).contains(&register);
        let strange = instruction.uses().iter().any(|used| is_strange(used.part.register));
        let marker = instruction.address().and_then(|address| Marker::of_displacement(address.displacement));
        let is_marked = marker.is_some_and(Marker::is_of_iteration);
        !strange && !is_marked && (!writes_elsewhere || leaves_what_it_finds(*instruction))
    })
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
pub(super) fn touches(all: &[Instruction]) -> (Registers, Vec<Touch>) {
    let mut touches = Vec::new();
    all.iter().for_each(|instruction| touch(*instruction, &mut touches));
    let every = touches.iter().fold(0, |every, touch| match touch {
        Touch::Uses(read, written) => every | read | written,
        Touch::Saves(one) | Touch::Restores(one) => every | one,
        Touch::ReadsSlot(..) | Touch::WritesSlot(..) => every | FRAME_POINTER,
    });
    (every, touches)
}

fn touch(instruction: Instruction, all: &mut Vec<Touch>) {
    let one = |part: RegisterPart| number(part).map_or(0, |n| 1 << n);
    let named = instruction.register(0).filter(|part| part.register.is_general() && part.size == 8);
    match (instruction.operation(), named) {
        (Operation::Push, Some(part)) => return all.push(Touch::Saves(one(part))),
        (Operation::Pop, Some(part)) => return all.push(Touch::Restores(one(part))),
        (Operation::Leave, _) => return all.push(Touch::Restores(FRAME_POINTER)),
        _ => {}
    }
    let (mut read, mut written) = (0, 0);
    for used in instruction.uses() {
        let is_part = used.part.register.is_general() && used.part.size <= 2;
        if (used.access.reads || used.access.may_keep) && !instruction.zeroes() {
            read |= one(used.part);
        }
        if used.access.writes && !used.access.may_keep && !is_part {
            written |= one(used.part);
        }
    }
    if instruction.operation() == Operation::Address
        && let Some(address) = instruction.address()
        && let Some(base) = address.base.filter(|b| b.is_whole(Register::SP) || b.is_whole(Register::BP))
        && named.is_none_or(|to| to.register != Register::SP)
    {
        // Where what lies there goes to is not followed: it may be read.
        all.push(Touch::ReadsSlot(base.register == Register::BP, address.displacement, 1));
    }
    let slots = || instruction.memory().iter().filter(|memory| memory.is_in_frame());
    let by_frame = |memory: &Memory| memory.is_at(Register::BP);
    for memory in slots().filter(|m| m.access.reads || m.access.may_keep) {
        all.push(Touch::ReadsSlot(by_frame(memory), memory.displacement, memory.bytes()));
    }
    let [flags_read, flags_written] = [instruction.flags_read(), instruction.flags_written()].map(|f| f & ALL_FLAGS);
    all.push(Touch::Uses(read | flags_read, written | flags_written));
    for memory in slots().filter(|m| m.access.writes && !m.access.may_keep) {
        all.push(Touch::WritesSlot(by_frame(memory), memory.displacement, memory.bytes()));
    }
}
