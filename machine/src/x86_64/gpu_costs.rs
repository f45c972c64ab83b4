//! How many instructions a GPU has for one of x86-64's.
//!
//! Integer division, 64-bit multiplication, square roots and the like are several instructions there, as counted on an
//! NVIDIA H200. An operand in memory is a load of its own, and an indexed address one more instruction. Of what a
//! processor does for lack of registers nothing is left: pushes, slots of the frame, most copies between registers.
//!
//! *Limitation*: what has no count is an assumption. Copies and constants are half an instruction each, as some are
//! folded into others; additions and comparisons of 64 bits one and a half, as some work out addresses.

use iced_x86::Mnemonic as M;

use super::operation::moves;
use crate::{Instruction, Memory, Operand, Register};

/// An ordinary instruction.
const ONE: u32 = 10;
/// One that is often folded into another, or left out.
const HALF: u32 = 5;

/// In tenths.
pub(super) fn tenths(instruction: Instruction) -> u32 {
    let mnemonic = instruction.decoded.mnemonic();
    let kind = instruction.kind();
    if kind.transfers_control() {
        return ONE + instruction.memory().iter().map(access).sum::<u32>();
    }
    let is_of_frame = instruction.is_of_stack() || instruction.writes() & Register::SP.bit() != 0;
    if is_of_frame || matches!(mnemonic, M::Nop | M::Endbr64 | M::Int3 | M::Leave | M::Vzeroupper) {
        return 0;
    }
    let memory = instruction.memory().iter().map(access).sum::<u32>();
    let is_modified =
        instruction.memory().iter().any(|m| m.access.reads && m.access.writes && !instruction.is_atomic());
    memory * (1 + u32::from(is_modified)) + work(instruction, mnemonic)
}

/// Of a load or a store.
fn access(memory: &Memory) -> u32 {
    match () {
        () if memory.is_in_frame() => 0,
        // A constant beside the code.
        () if memory.by_pc && memory.index.is_none() && !memory.access.writes => 0,
        () if memory.index.is_some() => 2 * ONE,
        () => ONE,
    }
}

/// Whether a function is called for it, if only where operands are rare: as ptxas 13.5 has it for divisions of 64 bits,
/// and for divisions and roots of floats that are rounded as on a processor.
pub(super) fn calls(instruction: Instruction) -> bool {
    let name = instruction.decoded.mnemonic();
    match name {
        M::Div | M::Idiv => instruction.size_of(0) == 8,
        M::Divss | M::Vdivss | M::Divps | M::Vdivps | M::Divsd | M::Vdivsd | M::Divpd | M::Vdivpd => true,
        M::Sqrtss | M::Vsqrtss | M::Sqrtps | M::Vsqrtps | M::Sqrtsd | M::Vsqrtsd | M::Sqrtpd | M::Vsqrtpd => true,
        _ => false,
    }
}

/// Of what is done with values, once they are there, in tenths.
pub(super) fn work_of(instruction: Instruction) -> u32 {
    work(instruction, instruction.decoded.mnemonic())
}

/// The same.
fn work(instruction: Instruction, mnemonic: M) -> u32 {
    let is_wide = instruction.size_of(0) == 8 && instruction.register(0).is_none_or(|part| part.register.is_general());
    let by_width = |narrow, wide| if is_wide { wide } else { narrow };
    let has_memory = !instruction.memory().is_empty();
    match mnemonic {
        _ if instruction.is_atomic() => HALF,
        _ if moves(mnemonic) => match instruction.operand(1) {
            _ if is_packed(instruction) && has_memory => (elements(instruction, 4) - 1) * ONE,
            Operand::Constant(_) => HALF,
            _ if has_memory => 0,
            _ => HALF,
        },
        _ if instruction.zeroes() => HALF,
        M::Movzx | M::Movsx if has_memory => 0,
        M::Movsxd | M::Cdqe | M::Cwde | M::Cdq | M::Cqo | M::Cwd | M::Cbw => 0,
        M::Imul => by_width(ONE, 3 * ONE),
        M::Mul => by_width(3 * ONE, 6 * ONE),
        M::Div => by_width(18 * ONE, 79 * ONE),
        M::Idiv => by_width(25 * ONE, 95 * ONE),
        M::Rol | M::Ror => by_width(2 * ONE, 7 * ONE),
        M::Shl | M::Shr | M::Sar | M::Cmp | M::Test => by_width(ONE, 15),
        M::Add | M::Sub | M::And | M::Or | M::Xor | M::Lea | M::Neg => by_width(ONE, 15),
        M::Popcnt => by_width(ONE, 2 * ONE),
        M::Lzcnt | M::Bsr => by_width(ONE, 6 * ONE),
        M::Tzcnt | M::Bsf => by_width(2 * ONE, 6 * ONE),
        M::Divss | M::Vdivss | M::Divps | M::Vdivps => elements(instruction, 4) * 10 * ONE,
        M::Divsd | M::Vdivsd | M::Divpd | M::Vdivpd => elements(instruction, 8) * 16 * ONE,
        M::Sqrtss | M::Vsqrtss | M::Sqrtps | M::Vsqrtps => elements(instruction, 4) * 5 * ONE,
        M::Sqrtsd | M::Vsqrtsd | M::Sqrtpd | M::Vsqrtpd => elements(instruction, 8) * 13 * ONE,
        M::Minsd | M::Maxsd | M::Vminsd | M::Vmaxsd => 4 * ONE,
        _ if is_packed(instruction) => elements(instruction, 4) * ONE,
        _ => ONE,
    }
}

/// Whether it works on several numbers of a vector at once.
fn is_packed(instruction: Instruction) -> bool {
    let is_vector = instruction.register(0).is_some_and(|part| !part.register.is_general());
    let name = instruction.mnemonic();
    let is_scalar =
        ["ss", "sd"].iter().any(|end| name.ends_with(end)) || name.contains("cvt") || name.contains("ucomi");
    is_vector && !is_scalar && !matches!(&name[..], "movd" | "movq" | "vmovd" | "vmovq")
}

/// How many numbers of so many bytes it works on.
fn elements(instruction: Instruction, size: u32) -> u32 {
    if is_packed(instruction) { (instruction.size_of(0) as u32 / size).max(1) } else { 1 }
}
