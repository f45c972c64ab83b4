//! What instructions do with values: copy one, add to one, or use several.

use super::x87;
use crate::accesses::{reads, writes};
use heuristics::{SegmentId, SegmentTable};
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};
use trace_format::Pc;

/// Registers as bits: the 16 general ones, then 32 of vectors, then 8 of masks, then the carry flag, the other flags as
/// one, and 8 of x87, counted from their stack's top.
pub(super) type Registers = u128;

/// The carry flag, which some instructions leave that change all others.
pub(super) const CARRY: u8 = 56;

/// The first of x87.
pub(super) const X87: u8 = 58;

/// How many there are.
pub(super) const REGISTERS: usize = X87 as usize + x87::DEPTH as usize;

/// By which an accumulator takes one more value; all of them are associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// A sum, or a difference of one accumulator and many values.
    Add,
    /// A product.
    Multiply,
    /// Bits that all have.
    And,
    /// Bits that one has.
    Or,
    /// Bits that an odd number has.
    Xor,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// One of both, chosen by a comparison.
    Select,
}

/// Where a value comes from, or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(u8),
    /// The access of this index.
    Memory(u8),
    Constant,
    /// Several values, which are used elsewhere.
    Several,
}

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub size: u8,
    pub reads: bool,
    pub writes: bool,
    /// It lies at a fixed place of the function's frame.
    pub in_frame: bool,
    /// It is what a push, a pop, a call or a return does.
    pub is_stack: bool,
    /// A comparison looks at it for a selection that follows and has it, too.
    pub is_selected: bool,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// A value is moved as it is.
    Copy { from: Operand, to: Operand },
    /// `to` becomes `acc` and one more value, `by`.
    Update { operator: Operator, acc: Operand, by: Operand, to: Operand, commutes: bool },
    /// Something else.
    Other,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub pc: Pc,
    pub accesses: Vec<Access>,
    /// Registers whose values are used, besides those that [`Does`] names.
    pub uses: Registers,
    pub writes: Registers,
    pub does: Does,
    /// What an update adds, where that is a constant.
    pub amount: i64,
    pub is_atomic: bool,
    /// Whether it first puts a value on the stack of x87 registers.
    pub pushes: bool,
    /// How many values it takes off there in the end.
    pub pops: u8,
    /// The register whose value it exchanges with the top.
    pub exchanges: Option<u8>,
}

fn number(register: Register) -> Option<u8> {
    let full = register.full_register();
    match () {
        () if full == Register::RSP || full.is_ip() || full.is_segment_register() => None,
        () if full.is_gpr() => Some(full.number() as u8),
        () if full.is_zmm() => Some(16 + full.number() as u8),
        () if full.is_k() => Some(48 + full.number() as u8),
        () => None,
    }
}

fn bit(register: Register) -> Registers {
    number(register).map_or(0, |number| 1 << number)
}

/// The instructions of a segment; of those whose bytes are not known only their accesses, as reads.
pub(super) fn of_segment(segments: &SegmentTable, id: SegmentId, factory: &mut InstructionInfoFactory) -> Vec<Ran> {
    let (mut code, mut decoded, mut all) = (segments.code(id), Vec::new(), Vec::new());
    for instruction in &segments[id].instructions {
        let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
        code = rest;
        let one = Decoder::with_ip(64, own, instruction.pc.0, DecoderOptions::NONE).decode();
        let mut ran = if own.is_empty() || one.is_invalid() { unknown(instruction.pc) } else { of(&one, factory) };
        let unknown =
            Access { size: 8, reads: true, writes: false, in_frame: false, is_stack: true, is_selected: false };
        ran.accesses.resize(usize::from(instruction.memory), unknown);
        decoded.push(one);
        all.push(ran);
    }
    comparisons_before_selections(&decoded, &mut all);
    all
}

/// An instruction of which nothing is known but where it is.
pub(super) fn unknown(pc: Pc) -> Ran {
    let (uses, writes, does) = (0, 0, Does::Other);
    let (pushes, pops, exchanges) = (false, 0, None);
    Ran { pc, accesses: Vec::new(), uses, writes, does, amount: 0, is_atomic: false, pushes, pops, exchanges }
}

/// `cmp a, b; cmovl a, b`: the comparison is a part of the selection, and no use of `a` by itself.
fn comparisons_before_selections(decoded: &[Instruction], all: &mut [Ran]) {
    for at in 0..decoded.len() {
        if !matches!(decoded[at].mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Comisd | Mnemonic::Comiss) {
            continue;
        }
        for next in at + 1..decoded.len() {
            if let Does::Update { operator: Operator::Select, acc, by, .. } = all[next].does {
                for operand in [acc, by] {
                    match operand {
                        Operand::Register(register) => all[at].uses &= !(1 << register),
                        Operand::Memory(_) if is_one_place(&decoded[at], &decoded[next]) => {
                            all[at].accesses.iter_mut().for_each(|access| access.is_selected = true);
                        }
                        _ => {}
                    }
                }
            } else if decoded[next].rflags_read() != 0 || decoded[next].rflags_modified() != 0 {
                break;
            }
        }
    }
}

/// Whether the memory operands of both are written alike.
fn is_one_place(a: &Instruction, b: &Instruction) -> bool {
    let place = |one: &Instruction| {
        (one.memory_base(), one.memory_index(), one.memory_index_scale(), one.memory_displacement64())
    };
    place(a) == place(b)
}

fn of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Ran {
    let info = factory.info(instruction);
    let mut ran = unknown(Pc(instruction.ip()));
    let (mut in_addresses, mut read) = (0, 0);
    for register in info.used_registers() {
        let (reads, writes) = (reads(register.access()), writes(register.access()));
        read |= if reads { bit(register.register()) } else { 0 };
        ran.writes |= if writes { bit(register.register()) } else { 0 };
    }
    let is_stack = instruction.is_stack_instruction();
    for memory in info.used_memory() {
        let (reads, writes) = match memory.access() {
            OpAccess::None | OpAccess::NoMemAccess => continue,
            OpAccess::Read | OpAccess::CondRead => (true, false),
            OpAccess::Write | OpAccess::CondWrite => (false, true),
            _ => (true, true),
        };
        in_addresses |= bit(memory.base()) | bit(memory.index());
        if memory.vsib_size() != 0 {
            continue;
        }
        let of_frame = matches!(memory.base(), Register::RSP | Register::RBP) && memory.index() == Register::None;
        let size = memory.memory_size().size().clamp(1, 64) as u8;
        ran.accesses.push(Access { size, reads, writes, in_frame: of_frame, is_stack, is_selected: false });
    }
    ran.is_atomic =
        instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg && !ran.accesses.is_empty();
    ran.does = does(instruction, &ran);
    ran.amount = amount(instruction);
    ran.uses = match ran.does {
        Does::Copy { .. } => in_addresses,
        Does::Update { by: Operand::Several, .. } => {
            in_addresses | bit(instruction.op_register(1)) | bit(instruction.op_register(2))
        }
        Does::Update { .. } if instruction.mnemonic() == Mnemonic::Lea => 0,
        Does::Update { .. } => in_addresses,
        Does::Other if zeroes(instruction) => 0,
        Does::Other if replaces(instruction) => (read & !bit(instruction.op0_register())) | in_addresses,
        Does::Other => read,
    };
    if x87::put(instruction, &mut ran) {
        ran.uses |= in_addresses;
    }
    ran.uses |= flags(instruction.rflags_read());
    ran.writes |= flags(instruction.rflags_modified());
    ran
}

/// The registers that stand for these flags: those that arithmetic sets.
fn flags(bits: u32) -> Registers {
    let others = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
    let bit = |is_one: bool, number: u8| if is_one { 1 << number } else { 0 };
    bit(bits & RflagsBits::CF != 0, CARRY) | bit(bits & others != 0, CARRY + 1)
}

/// The constant that an instruction adds, if it adds one.
fn amount(instruction: &Instruction) -> i64 {
    let constant = || instruction.try_immediate(1).map_or(0, u64::cast_signed);
    match instruction.mnemonic() {
        Mnemonic::Inc => 1,
        Mnemonic::Dec => -1,
        Mnemonic::Lea => instruction.memory_displacement64().cast_signed(),
        Mnemonic::Sub => constant().wrapping_neg(),
        _ => constant(),
    }
}

/// Both operands are one register, whose value the result does not depend on.
fn zeroes(instruction: &Instruction) -> bool {
    use Mnemonic::{Pxor, Sbb, Sub, Vpxor, Vxorpd, Vxorps, Xor, Xorpd, Xorps};
    let count = instruction.op_count();
    matches!(instruction.mnemonic(), Xor | Sub | Sbb | Pxor | Vpxor | Xorps | Xorpd | Vxorps | Vxorpd)
        && count >= 2
        && instruction.op_kind(count - 1) == OpKind::Register
        && instruction.op_kind(count - 2) == OpKind::Register
        && instruction.op_register(count - 1) == instruction.op_register(count - 2)
}

/// It leaves of its first register only parts that scalar code does not look at.
fn replaces(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Cvtsd2ss, Cvtsi2sd, Cvtsi2ss, Cvtss2sd, Movhpd, Movhps, Movlpd, Movlps, Movsd, Movss, Rcpss, Roundsd, Roundss,
        Rsqrtss, Sqrtsd, Sqrtss,
    };
    matches!(
        instruction.mnemonic(),
        Cvtsi2sd
            | Cvtsi2ss
            | Cvtss2sd
            | Cvtsd2ss
            | Sqrtsd
            | Sqrtss
            | Roundsd
            | Roundss
            | Rcpss
            | Rsqrtss
            | Movsd
            | Movss
            | Movlpd
            | Movlps
            | Movhpd
            | Movhps
    )
}

fn operand(instruction: &Instruction, index: u32) -> Option<Operand> {
    match instruction.op_kind(index) {
        OpKind::Register => number(instruction.op_register(index)).map(Operand::Register),
        OpKind::Memory => Some(Operand::Memory(0)),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => None,
        _ => Some(Operand::Constant),
    }
}

fn does(instruction: &Instruction, ran: &Ran) -> Does {
    let of = |index| operand(instruction, index);
    if let Some(copied) = copy(instruction, ran) {
        return copied;
    }
    let mnemonic = instruction.mnemonic();
    let update =
        |operator, acc: Option<Operand>, by: Option<Operand>, to: Option<Operand>, commutes| match (acc, by, to) {
            (Some(acc), Some(by), Some(to)) if to != Operand::Constant && acc != by => {
                Does::Update { operator, acc, by, to, commutes }
            }
            _ => Does::Other,
        };
    if zeroes(instruction) {
        return Does::Other;
    }
    match mnemonic {
        Mnemonic::Inc | Mnemonic::Dec => update(Operator::Add, of(0), Some(Operand::Constant), of(0), false),
        Mnemonic::Lea => {
            let [base, index] = [instruction.memory_base(), instruction.memory_index()].map(number);
            let register = |number: Option<u8>| number.map(Operand::Register);
            match (base, index, instruction.memory_index_scale()) {
                (Some(_), None, _) => update(Operator::Add, register(base), Some(Operand::Constant), of(0), false),
                (None, Some(_), 1) => update(Operator::Add, register(index), Some(Operand::Constant), of(0), false),
                (Some(_), Some(_), 1) => update(Operator::Add, register(base), register(index), of(0), true),
                (Some(_), Some(_), _) => update(Operator::Add, register(base), register(index), of(0), false),
                _ => Does::Other,
            }
        }
        Mnemonic::Adc | Mnemonic::Sbb => update(Operator::Add, of(0), Some(Operand::Several), of(0), false),
        _ if is_select(mnemonic) => update(Operator::Select, of(0), of(1), of(0), true),
        _ => match (operator(mnemonic), instruction.op_count()) {
            (Some((operator, commutes)), 2) => update(operator, of(0), of(1), of(0), commutes),
            (Some((operator, commutes)), 3) => update(operator, of(1), of(2), of(0), commutes),
            _ if adds_product(mnemonic) => update(Operator::Add, of(0), Some(Operand::Several), of(0), false),
            _ => Does::Other,
        },
    }
}

/// What moves a value as it is, or only makes it wider.
fn copy(instruction: &Instruction, ran: &Ran) -> Option<Does> {
    use Mnemonic::{
        Mov, Movapd, Movaps, Movd, Movdqa, Movdqu, Movq, Movsd, Movss, Movsx, Movsxd, Movupd, Movups, Movzx, Pop, Push,
        Vmovapd, Vmovaps, Vmovd, Vmovdqa, Vmovdqu, Vmovq, Vmovsd, Vmovss, Vmovupd, Vmovups,
    };
    let of = |index| operand(instruction, index);
    let (from, to) = match instruction.mnemonic() {
        Push if ran.accesses.len() == 1 => (of(0)?, Operand::Memory(0)),
        Pop if ran.accesses.len() == 1 => (Operand::Memory(0), of(0)?),
        Mov | Movapd | Movaps | Movd | Movdqa | Movdqu | Movq | Movsd | Movss | Movsx | Movsxd | Movupd | Movups
        | Movzx | Vmovapd | Vmovaps | Vmovd | Vmovdqa | Vmovdqu | Vmovq | Vmovsd | Vmovss | Vmovupd | Vmovups
            if instruction.op_count() == 2 =>
        {
            (of(1)?, of(0)?)
        }
        _ => return None,
    };
    let moves = matches!(
        (from, to),
        (Operand::Register(_), Operand::Register(_) | Operand::Memory(_)) | (Operand::Memory(_), Operand::Register(_))
    );
    let is_string =
        ran.accesses.len() != usize::from(!matches!((from, to), (Operand::Register(_), Operand::Register(_))));
    (moves && !is_string).then_some(Does::Copy { from, to })
}

fn is_select(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Cmova, Cmovae, Cmovb, Cmovbe, Cmove, Cmovg, Cmovge, Cmovl, Cmovle, Cmovne, Cmovno, Cmovnp, Cmovns, Cmovo,
        Cmovp, Cmovs,
    };
    matches!(
        mnemonic,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}

fn adds_product(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Vfmadd231pd, Vfmadd231ps, Vfmadd231sd, Vfmadd231ss, Vfnmadd231pd, Vfnmadd231ps, Vfnmadd231sd, Vfnmadd231ss,
    };
    matches!(
        mnemonic,
        Vfmadd231pd
            | Vfmadd231ps
            | Vfmadd231sd
            | Vfmadd231ss
            | Vfnmadd231pd
            | Vfnmadd231ps
            | Vfnmadd231sd
            | Vfnmadd231ss
    )
}

/// Of an instruction that takes one more value, and whether its two can change places.
fn operator(mnemonic: Mnemonic) -> Option<(Operator, bool)> {
    let name = format!("{mnemonic:?}").to_lowercase();
    let name = name.strip_prefix('v').unwrap_or(&name);
    let scalar = |stem: &str| ["ss", "sd", "ps", "pd"].iter().any(|end| name.strip_prefix(stem) == Some(end));
    let packed = |stem: &str| name.strip_prefix(stem).is_some_and(|rest| rest.len() <= 2);
    Some(match name {
        "add" => (Operator::Add, true),
        "sub" => (Operator::Add, false),
        "imul" => (Operator::Multiply, true),
        "and" | "pand" => (Operator::And, true),
        "or" | "por" => (Operator::Or, true),
        "xor" | "pxor" => (Operator::Xor, true),
        _ if scalar("add") || packed("padd") => (Operator::Add, true),
        _ if scalar("sub") || packed("psub") => (Operator::Add, false),
        _ if scalar("mul") || packed("pmull") => (Operator::Multiply, true),
        _ if scalar("min") || packed("pmins") || packed("pminu") => (Operator::Min, true),
        _ if scalar("max") || packed("pmaxs") || packed("pmaxu") => (Operator::Max, true),
        _ if scalar("and") => (Operator::And, true),
        _ if scalar("or") => (Operator::Or, true),
        _ if scalar("xor") => (Operator::Xor, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_bytes(bytes: &[u8]) -> Ran {
        let one = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        of(&one, &mut InstructionInfoFactory::new())
    }

    #[test]
    fn what_instructions_do_with_values() {
        let [eax, ebx] = [Operand::Register(0), Operand::Register(3)];
        // mov eax, ebx; push rbx; mov eax, [rsp+8].
        assert_eq!(of_bytes(&[0x89, 0xD8]).does, Does::Copy { from: ebx, to: eax });
        let push = of_bytes(&[0x53]);
        assert_eq!((push.does, push.uses), (Does::Copy { from: ebx, to: Operand::Memory(0) }, 0));
        let load = of_bytes(&[0x8B, 0x44, 0x24, 8]);
        assert_eq!(load.does, Does::Copy { from: Operand::Memory(0), to: eax });
        assert!(load.accesses[0].in_frame && load.accesses[0].size == 4);
        let add = |acc, by, commutes| Does::Update { operator: Operator::Add, acc, by, to: acc, commutes };
        // add eax, ebx; inc eax; sub eax, [rdi]; add [rdi], eax; lea eax, [rax+4].
        assert_eq!(of_bytes(&[0x01, 0xD8]).does, add(eax, ebx, true));
        assert_eq!(of_bytes(&[0xFF, 0xC0]).does, add(eax, Operand::Constant, false));
        let sub = of_bytes(&[0x2B, 0x07]);
        assert_eq!((sub.does, sub.uses), (add(eax, Operand::Memory(0), false), 1 << 7));
        assert_eq!(of_bytes(&[0x01, 0x07]).does, add(Operand::Memory(0), eax, true));
        assert_eq!(of_bytes(&[0x8D, 0x40, 4]).does, add(eax, Operand::Constant, false));
        // xor eax, eax; lock add [rdi], eax; pxor xmm0, xmm0; cvtsi2sd xmm0, eax.
        assert_eq!((of_bytes(&[0x31, 0xC0]).does, of_bytes(&[0x31, 0xC0]).uses), (Does::Other, 0));
        assert!(of_bytes(&[0xF0, 0x01, 0x07]).is_atomic);
        assert_eq!(of_bytes(&[0x66, 0x0F, 0xEF, 0xC0]).uses, 0);
        assert_eq!(of_bytes(&[0xF2, 0x0F, 0x2A, 0xC0]).uses, 1);
        // adc eax, ebx; setb al; inc eax; jne.
        let carry = 1 << CARRY;
        assert_eq!(of_bytes(&[0x11, 0xD8]).uses & (3 * carry), carry);
        assert_eq!(of_bytes(&[0x0F, 0x92, 0xC0]).uses, carry);
        assert_eq!(of_bytes(&[0xFF, 0xC0]).writes & (3 * carry), 2 * carry, "the carry flag stays");
        assert_eq!(of_bytes(&[0x75, 0xFE]).uses, 2 * carry);
        // fld st(0); fld dword [rdi]; faddp st1, st0; fsubr st0, st1; fstp qword [rdi]; fxch st(3).
        let st = |number: u8| Operand::Register(X87 + number);
        let load = of_bytes(&[0xD9, 0xC0]);
        assert_eq!((load.does, load.pushes), (Does::Copy { from: st(1), to: st(0) }, true));
        assert_eq!(of_bytes(&[0xD9, 0x07]).does, Does::Copy { from: Operand::Memory(0), to: st(0) });
        let taken = of_bytes(&[0xDE, 0xC1]);
        assert_eq!((taken.does, taken.pops), (add(st(1), st(0), true), 1));
        let reversed = Does::Update { operator: Operator::Add, acc: st(1), by: st(0), to: st(0), commutes: false };
        assert_eq!(of_bytes(&[0xD8, 0xE9]).does, reversed);
        let store = of_bytes(&[0xDD, 0x1F]);
        assert_eq!((store.does, store.pops), (Does::Copy { from: st(0), to: Operand::Memory(0) }, 1));
        assert_eq!(of_bytes(&[0xD9, 0xCB]).exchanges, Some(X87 + 3));
        // addsd xmm0, xmm1; maxsd xmm0, [rdi]; cmovl eax, ebx.
        let vectors = [Operand::Register(16), Operand::Register(17)];
        assert_eq!(of_bytes(&[0xF2, 0x0F, 0x58, 0xC1]).does, add(vectors[0], vectors[1], true));
        let kinds = [&[0xF2, 0x0F, 0x5F, 0x07][..], &[0x0F, 0x4C, 0xC3]].map(|bytes| match of_bytes(bytes).does {
            Does::Update { operator, .. } => operator,
            _ => Operator::Add,
        });
        assert_eq!(kinds, [Operator::Max, Operator::Select]);
    }
}
