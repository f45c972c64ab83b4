//! One instruction, and all that is known about it.

use iced_x86::{ConditionCode, Mnemonic, OpKind, Register as R};
use trace_format::{BlockCost, Kind, Pc, SpEffect};

use super::gpu_code::GpuInstruction;
use super::{Stack, flags, gpu_code, gpu_costs, kind, operation, part, sp_effect, step, target_of, x87};
use crate::{Access, Condition, Memory, Operand, Operation, Register, RegisterPart, Registers, Segment, Step, Use};

/// A decoded instruction of a [`Table`](crate::Table).
#[derive(Clone, Copy)]
pub struct Instruction<'a> {
    pub(super) decoded: &'a iced_x86::Instruction,
    uses: &'a [Use],
    memory: &'a [Memory],
}

impl<'a> Instruction<'a> {
    pub(super) fn new(decoded: &'a iced_x86::Instruction, uses: &'a [Use], memory: &'a [Memory]) -> Instruction<'a> {
        Instruction { decoded, uses, memory }
    }

    /// Its address.
    #[must_use]
    pub fn pc(self) -> Pc {
        Pc(self.decoded.ip())
    }

    /// The address behind it.
    #[must_use]
    pub fn next_pc(self) -> Pc {
        Pc(self.decoded.next_ip())
    }

    /// Its length in bytes.
    #[must_use]
    pub fn length(self) -> usize {
        self.decoded.len()
    }

    /// Its name in assembly language.
    #[must_use]
    pub fn mnemonic(self) -> String {
        format!("{:?}", self.decoded.mnemonic()).to_lowercase()
    }

    /// The extensions of the processor that it belongs to.
    #[must_use]
    pub fn extensions(self) -> Vec<String> {
        self.decoded.cpuid_features().iter().map(|extension| format!("{extension:?}")).collect()
    }

    /// Whether it does the same as another one, wherever the two stand.
    #[must_use]
    pub fn is_copy_of(self, other: Instruction) -> bool {
        self.decoded == other.decoded
    }

    /// A number for its name, the kinds of its operands and how it is encoded.
    #[must_use]
    pub fn form(self) -> u16 {
        self.decoded.code() as u16
    }

    /// What it is to control flow.
    #[must_use]
    pub fn kind(self) -> Kind {
        kind(self.decoded)
    }

    /// What it does to the stack pointer.
    #[must_use]
    pub fn sp(self) -> SpEffect {
        let is_written = |used: &Use| used.part.register == Register::SP && used.access.writes;
        sp_effect(self.decoded, || self.uses.iter().any(is_written))
    }

    /// Where it leads, if it is a jump, a branch or a call to a constant place.
    #[must_use]
    pub fn target(self) -> Option<Pc> {
        target_of(self.decoded)
    }

    /// When it is done.
    #[must_use]
    pub fn condition(self) -> Condition {
        match self.decoded.condition_code() {
            ConditionCode::e => Condition::Equal,
            ConditionCode::ne => Condition::NotEqual,
            ConditionCode::b => Condition::Below,
            ConditionCode::ae => Condition::NotBelow,
            _ => Condition::Other,
        }
    }

    /// Whether both are done by conditions, and always exactly one of them.
    #[must_use]
    pub fn is_opposite(self, other: Instruction) -> bool {
        let mut negated = *self.decoded;
        negated.negate_condition_code();
        let own = negated.condition_code();
        own != ConditionCode::None && own == other.decoded.condition_code()
    }

    /// What it is called.
    #[must_use]
    pub fn operation(self) -> Operation {
        operation::of(self.decoded)
    }

    /// How many operands it names.
    #[must_use]
    pub fn operand_count(self) -> usize {
        self.decoded.op_count() as usize
    }

    /// The operand of this index, which is below their count.
    #[must_use]
    pub fn operand(self, index: usize) -> Operand {
        let index = index as u32;
        match self.decoded.op_kind(index) {
            OpKind::Register => part(self.decoded.op_register(index)).map_or(Operand::Several, Operand::Register),
            OpKind::Memory => Operand::Memory,
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => Operand::Several,
            _ => self.constant(index as usize).map_or(Operand::Several, Operand::Constant),
        }
    }

    /// All operands.
    pub fn operands(self) -> impl Iterator<Item = Operand> {
        (0..self.operand_count()).map(move |index| self.operand(index))
    }

    /// The register that is the operand of this index, if it is one.
    #[must_use]
    pub fn register(self, index: usize) -> Option<RegisterPart> {
        let index = index as u32;
        let is_one = index < self.decoded.op_count() && self.decoded.op_kind(index) == OpKind::Register;
        is_one.then(|| self.decoded.op_register(index)).and_then(part)
    }

    /// The constant that is the operand of this index, if it is one.
    #[must_use]
    pub fn constant(self, index: usize) -> Option<i64> {
        let index = index as u32;
        (index < self.decoded.op_count()).then(|| self.decoded.try_immediate(index).ok())?.map(u64::cast_signed)
    }

    /// How many bytes the operand of this index has.
    #[must_use]
    pub fn size_of(self, index: usize) -> usize {
        self.register(index).map_or_else(|| self.decoded.memory_size().size(), |part| usize::from(part.size))
    }

    /// How many bytes one number has of what it names in memory: a vector has several; 0 where it names none.
    #[must_use]
    pub fn element(self) -> usize {
        self.decoded.memory_size().element_size()
    }

    /// The registers that it uses, named or not.
    #[must_use]
    pub fn uses(self) -> &'a [Use] {
        self.uses
    }

    /// The memory that it accesses: first what it names, then what it implies, as the stack.
    #[must_use]
    pub fn memory(self) -> &'a [Memory] {
        self.memory
    }

    /// The address that it names in brackets, accessed or not.
    #[must_use]
    pub fn address(self) -> Option<Memory> {
        let decoded = self.decoded;
        (0..decoded.op_count()).find(|index| decoded.op_kind(*index) == OpKind::Memory)?;
        let by_pc = decoded.is_ip_rel_memory_operand();
        Some(Memory {
            segment: segment(decoded.memory_segment()),
            base: part(decoded.memory_base()).filter(|_| !by_pc),
            index: part(decoded.memory_index()),
            scale: decoded.memory_index_scale() as u8,
            displacement: decoded.memory_displacement64().cast_signed(),
            size: decoded.memory_size().size() as u16,
            access: Access { reads: false, writes: false, may_keep: false },
            by_pc,
        })
    }

    /// The memory that it names as operands and accesses, each time once, with the instruction pointer as a base where
    /// the address counts from there.
    #[must_use]
    pub fn named_memory(self) -> Vec<Memory> {
        let decoded = self.decoded;
        let count = (0..decoded.op_count()).filter(|i| decoded.op_kind(*i) >= OpKind::MemorySegSI).count();
        let relative = match decoded.memory_base() {
            R::EIP => i64::from((decoded.memory_displacement32()).wrapping_sub(decoded.next_ip() as u32).cast_signed()),
            _ => decoded.memory_displacement64().wrapping_sub(decoded.next_ip()).cast_signed(),
        };
        let size = decoded.memory_size().size() as u16;
        let named = self.memory.iter().take(count).map(|memory| match memory.by_pc {
            true => Memory { base: part(decoded.memory_base()), displacement: relative, size, ..*memory },
            false => Memory { size, ..*memory },
        });
        named.collect()
    }

    /// The address beside the instruction that it names, if it names one.
    #[must_use]
    pub fn place(self) -> Option<u64> {
        self.decoded.is_ip_rel_memory_operand().then(|| self.decoded.ip_rel_memory_address())
    }

    /// The registers and flags that it reads.
    #[must_use]
    pub fn reads(self) -> Registers {
        self.each(|access| access.reads) | self.flags_read()
    }

    /// The registers and flags that it writes.
    #[must_use]
    pub fn writes(self) -> Registers {
        self.each(|access| access.writes) | self.flags_written()
    }

    fn each(self, which: impl Fn(Access) -> bool) -> Registers {
        let those = self.uses.iter().filter(|used| which(used.access));
        those.fold(0, |all, used| all | used.part.register.bit())
    }

    /// The flags that it reads.
    #[must_use]
    pub fn flags_read(self) -> Registers {
        flags(self.decoded.rflags_read())
    }

    /// The flags that it writes, or leaves undefined.
    #[must_use]
    pub fn flags_written(self) -> Registers {
        flags(self.decoded.rflags_modified())
    }

    /// Whether it pushes or pops, named or not: it moves the stack pointer by what it accesses there.
    #[must_use]
    pub fn is_of_stack(self) -> bool {
        self.decoded.is_stack_instruction()
    }

    /// Whether no other thread sees memory between what it reads and what it writes.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        super::is_atomic(self.decoded)
    }

    /// Whether it works on several numbers of a vector at once, or takes one out of it or puts one there.
    #[must_use]
    pub fn is_of_vectors(self) -> bool {
        let is_vector = |index| self.register(index).is_some_and(|part| !part.register.is_general());
        let name = self.mnemonic();
        let name = name.strip_prefix('v').unwrap_or(&name);
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        (0..self.operand_count()).any(is_vector)
            && (begins(&["p", "movd", "movq", "movap", "movup", "shuf", "unpck", "insert", "extract", "broadcast"])
                || name.ends_with("ps")
                || name.ends_with("pd"))
    }

    /// Whether a GPU's compiler calls a function for it, if only where operands are rare: a division of 64-bit
    /// integers, a division or a root of floats.
    #[must_use]
    pub fn calls_on_gpu(self) -> bool {
        super::gpu_costs::calls(self)
    }

    /// Whether both operands are one register and the result is 0.
    #[must_use]
    pub fn zeroes(self) -> bool {
        use Mnemonic::{Pxor, Sub, Vpxor, Vxorpd, Vxorps, Xor, Xorpd, Xorps};
        matches!(self.decoded.mnemonic(), Xor | Sub | Pxor | Vpxor | Xorps | Xorpd | Vxorps | Vxorpd)
            && self.takes_one_twice()
    }

    /// Whether its last two operands are one register.
    #[must_use]
    pub fn takes_one_twice(self) -> bool {
        let count = self.operand_count();
        count >= 2 && self.register(count - 1).is_some() && self.register(count - 1) == self.register(count - 2)
    }

    /// Whether it adds or subtracts the carry flag, too.
    #[must_use]
    pub fn takes_carry(self) -> bool {
        matches!(self.decoded.mnemonic(), Mnemonic::Adc | Mnemonic::Sbb)
    }

    /// How many instructions a GPU has for it, in tenths.
    #[must_use]
    pub fn gpu_tenths(self) -> u32 {
        gpu_costs::tenths(self)
    }

    /// What stands for it in a GPU's code, in order: at least one instruction.
    #[must_use]
    pub fn gpu_code(self) -> Vec<GpuInstruction> {
        gpu_code::of(self)
    }

    /// What it notes of the basic block that it begins, if it is such a note.
    #[must_use]
    pub fn block_cost(self) -> Option<BlockCost> {
        if self.decoded.mnemonic() != Mnemonic::Nop {
            return None;
        }
        let address = self.address()?;
        let is_it = |part: Option<RegisterPart>| part.is_some_and(|part| part.register == Register::CX);
        (is_it(address.base) && is_it(address.index) && address.scale == 1)
            .then(|| BlockCost::of_displacement(address.displacement))?
    }

    /// What it does with values.
    #[must_use]
    pub fn step(self) -> Step {
        self.x87().map_or_else(|| step::of(self), |stack| stack.step)
    }

    /// What it does to the registers of x87, if anything.
    #[must_use]
    pub fn x87(self) -> Option<Stack> {
        x87::of(self)
    }

    /// Whether it leaves of its first register only parts that scalar code does not look at.
    #[must_use]
    pub fn replaces(self) -> bool {
        step::replaces(self.decoded.mnemonic())
    }
}

/// The segment, where it does not begin at 0.
pub(super) fn segment(register: R) -> Option<Segment> {
    match register {
        R::FS => Some(Segment::Fs),
        R::GS => Some(Segment::Gs),
        _ => None,
    }
}
