//! What a GPU issues, in tenths of an instruction: the column by which gains are promised (`gpu_issued` of a replay).
//!
//! For a GPU's own target these are its instructions. For x86-64 they are what the replay makes of the processor's: an
//! operand in memory is a load of its own, an index one more, a division many, a copy half an instruction; and a choice
//! between floating-point values is a branch with a move, since the code that runs has one.

use super::{CostModel, fetches, gpu, latency};
use crate::llvm::{Instruction, Module, Opcode, Shape, Use, Value};

/// An ordinary instruction.
const ONE: i64 = gpu::ONE as i64;
/// One that is often folded into another.
const HALF: i64 = gpu::HALF as i64;

/// What has lanes wait at a branch at which they part: one instruction before it, and one at the end of each side.
const BARRIERS: i64 = 30;

/// Sides of so many instructions are predicated: lanes need not wait for each other.
const PREDICATED: i64 = 4 * ONE;

/// An address with more uses than these is taken for a value.
const MOST_USES: usize = 64;

/// The costs on a GPU of code for x86-64, or for a GPU.
#[derive(Clone, Copy)]
pub(crate) enum OnGpu {
    /// By way of a processor's instructions.
    Processor,
    /// By its own.
    Gpu,
}

impl OnGpu {
    /// Those of a module's target.
    pub(crate) fn of(module: &Module) -> &'static OnGpu {
        match crate::spmd::Machine::of(module) {
            crate::spmd::Machine::Threads => &OnGpu::Processor,
            _ => &OnGpu::Gpu,
        }
    }

    /// Whether code is for a GPU.
    pub(crate) fn is_gpu(self) -> bool {
        matches!(self, OnGpu::Gpu)
    }

    /// Tenths as instructions.
    pub(crate) fn in_instructions(self, tenths: i64) -> i64 {
        (tenths + self.unit() / 2).div_euclid(self.unit())
    }

    /// What has lanes wait around sides of a branch of which the longer takes so much.
    pub(crate) fn barriers(longest: i64) -> i64 {
        if longest > PREDICATED { BARRIERS } else { 0 }
    }
}

impl CostModel for OnGpu {
    fn fetches<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        match self {
            OnGpu::Gpu => i64::from(gpu::tenths(i)),
            OnGpu::Processor => {
                by_processor(i, i.operands().get(1).copied(), fetches::fetches(i, beside)) + index_of(i)
            }
        }
    }

    fn fetches_of_joined<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        match self {
            OnGpu::Gpu => i64::from(gpu::tenths(i)),
            OnGpu::Processor => by_processor(i, None, fetches::fetches_of_joined(i, beside)),
        }
    }

    fn fetches_of_choices<'m>(&self, choices: &[(Value<'m>, Value<'m>)]) -> i64 {
        let (mut moves, mut branch) = (0, 0);
        for (yes, no) in choices {
            let constants = i64::from(yes.is_constant()) + i64::from(no.is_constant());
            let registers = fetches::registers(yes.type_of());
            let is_whole = matches!(yes.type_of().shape(), Shape::Integer(_) | Shape::Pointer);
            match self {
                OnGpu::Gpu => moves += ONE * i64::from(width(*yes).div_ceil(32).max(1)),
                OnGpu::Processor if is_whole => moves += registers * (ONE + HALF * constants),
                OnGpu::Processor => {
                    moves += registers * HALF;
                    branch = branch.max(ONE + if constants == 2 { ONE } else { 0 });
                }
            }
        }
        let looks = matches!(self, OnGpu::Processor) && !choices.is_empty();
        moves + branch + if looks { ONE } else { 0 }
    }

    fn copies<'m>(
        &self,
        i: Instruction<'m>,
        beside: &dyn Fn(Instruction<'m>) -> bool,
        is_free: &dyn Fn(usize) -> bool,
    ) -> i64 {
        match self {
            OnGpu::Gpu => 0,
            OnGpu::Processor => HALF * fetches::copies(i, beside, is_free),
        }
    }

    fn copies_of_choice(&self, of: Value<'_>) -> i64 {
        match self {
            OnGpu::Gpu => 0,
            OnGpu::Processor => HALF * fetches::registers(of.type_of()),
        }
    }

    fn latency<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        latency::latency(i, beside)
    }

    fn guard(&self) -> i64 {
        match self {
            OnGpu::Gpu => ONE,
            OnGpu::Processor => 2 * ONE,
        }
    }

    fn jump(&self) -> i64 {
        ONE
    }

    fn unit(&self) -> i64 {
        ONE
    }
}

/// The bits of a value's numbers; of an address 64.
fn width(of: Value<'_>) -> u32 {
    gpu::width(of.type_of().shape())
}

/// The numbers in a register of this shape, which a GPU has instructions of their own for.
fn elements_of(shape: Shape) -> i64 {
    if let Shape::Vector { bits, lanes, .. } = shape {
        i64::from((128 / bits.max(1)).clamp(1, lanes.max(1)))
    } else {
        1
    }
}

/// Of an instruction for which a processor has so many. `second` is its second operand, where it is the same for all.
fn by_processor<'m>(i: Instruction<'m>, second: Option<Value<'m>>, count: i64) -> i64 {
    use Opcode::*;
    let shape = i.type_of().shape();
    let elements = elements_of(shape);
    let wide = width(i.as_value()) > 32 && !matches!(shape, Shape::Float(_) | Shape::Vector { float: true, .. });
    let is_constant = second.is_some_and(Value::is_constant);
    match i.opcode() {
        LLVMLoad => ONE * elements * fetches::registers(i.type_of()),
        LLVMStore => {
            let stored = i.operand(0).type_of();
            ONE * elements_of(stored.shape()) * fetches::registers(stored)
        }
        LLVMGetElementPtr if accesses_only(i) => (variable(i) - 1).max(0) * (ONE + HALF),
        LLVMGetElementPtr => count * (ONE + HALF),
        LLVMAdd | LLVMSub | LLVMAnd | LLVMOr | LLVMXor | LLVMShl | LLVMLShr | LLVMAShr if elements == 1 => {
            // One with the store behind it counts nothing on the processor.
            count.max(1) * if wide { ONE + HALF } else { ONE }
        }
        LLVMMul if elements == 1 => {
            if wide {
                3 * ONE
            } else {
                ONE
            }
        }
        LLVMUDiv | LLVMURem | LLVMSDiv | LLVMSRem if !is_constant && elements == 1 => {
            i64::from(gpu::division_by_any(i, width(i.as_value())))
        }
        LLVMFDiv => count * elements * if width(i.as_value()) > 32 { 16 * ONE } else { 10 * ONE },
        LLVMICmp if matches!(i.operand(0).type_of().shape(), Shape::Integer(33..) | Shape::Pointer) => {
            count * (ONE + HALF)
        }
        LLVMCall
            if i.callee().is_some_and(|callee| callee.is_intrinsic() && callee.name().starts_with("llvm.sqrt")) =>
        {
            count * elements * if width(i.as_value()) > 32 { 13 * ONE } else { 5 * ONE }
        }
        _ => count * elements * ONE,
    }
}

/// Of a load or a store whose address has an index, wherever that is computed: the index is a part of the access.
fn index_of(i: Instruction<'_>) -> i64 {
    let address = match i.opcode() {
        Opcode::LLVMLoad => i.operand(0),
        Opcode::LLVMStore => i.operand(1),
        _ => return 0,
    };
    let computed = address.as_instruction().filter(|of| of.opcode() == Opcode::LLVMGetElementPtr);
    if computed.is_some_and(|of| variable(of) > 0 && accesses_only(of)) { ONE } else { 0 }
}

/// How many indices of an address are no constants.
fn variable(address: Instruction<'_>) -> i64 {
    address.operands().iter().skip(1).filter(|index| !index.is_constant()).count() as i64
}

/// Whether only loads and stores use an address.
fn accesses_only(address: Instruction<'_>) -> bool {
    let accesses = |of: &Use<'_>| match of.user.opcode() {
        Opcode::LLVMLoad => true,
        Opcode::LLVMStore => of.user.operand(0) != address.as_value(),
        _ => false,
    };
    let uses = address.as_value().few_uses(MOST_USES);
    uses.is_some_and(|uses| !uses.is_empty() && uses.iter().all(accesses))
}
