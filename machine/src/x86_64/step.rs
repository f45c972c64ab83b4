//! What instructions do with values.

use iced_x86::{ConditionCode, FlowControl, Mnemonic};

use super::instruction::Instruction;
use super::operation::moves;
use crate::{Operand, Operator, Register, RegisterPart, Step};

pub(super) fn of(instruction: Instruction) -> Step {
    use Mnemonic as M;
    let decoded = instruction.decoded;
    let operand = |index| instruction.operand(index);
    let copy = |from, to, is_signed| {
        // What pushes memory, or moves a string, has two places.
        let places = [from, to].into_iter().filter(|operand| *operand == Operand::Memory).count();
        let is_plain = places < 2 && instruction.memory().len() == places;
        if is_plain { Step::Copy { from, to, is_signed } } else { Step::Other }
    };
    let update = |operator, acc, by, commutes| Step::Update { operator, acc, by, to: operand(0), commutes };
    let count = instruction.operand_count();
    match decoded.mnemonic() {
        M::Push if count == 1 && operand(0) != Operand::Memory => copy_to_stack(instruction, operand(0), true),
        M::Pop if count == 1 && operand(0) != Operand::Memory => copy_to_stack(instruction, operand(0), false),
        mnemonic if moves(mnemonic) && count == 2 && operand(1) != Operand::Several => {
            copy(operand(1), operand(0), false)
        }
        M::Movzx => copy(operand(1), operand(0), false),
        M::Movsx | M::Movsxd => copy(operand(1), operand(0), true),
        _ if instruction.zeroes() => copy(Operand::Constant(0), operand(0), false),
        M::Inc => update(Operator::Add, operand(0), Operand::Constant(1), false),
        M::Dec => update(Operator::Add, operand(0), Operand::Constant(-1), false),
        M::Lea => address(instruction),
        M::Sbb if instruction.takes_one_twice() => Step::Other,
        M::Adc | M::Sbb => update(Operator::Add, operand(0), Operand::Several, false),
        M::Sub => match operand(1) {
            Operand::Constant(by) => update(Operator::Add, operand(0), Operand::Constant(by.wrapping_neg()), false),
            by => update(Operator::Add, operand(0), by, false),
        },
        _ if is_select(instruction) => update(Operator::Select, operand(0), operand(1), true),
        _ => match (operator(instruction), count) {
            (Some((operator, commutes)), 2) => update(operator, operand(0), operand(1), commutes),
            (Some((operator, commutes)), 3) => update(operator, operand(1), operand(2), commutes),
            _ if adds_product(instruction) => update(Operator::Add, operand(0), Operand::Several, false),
            _ => Step::Other,
        },
    }
}

fn copy_to_stack(instruction: Instruction, named: Operand, pushes: bool) -> Step {
    let (from, to) = if pushes { (named, Operand::Memory) } else { (Operand::Memory, named) };
    if instruction.memory().len() == 1 { Step::Copy { from, to, is_signed: false } } else { Step::Other }
}

/// What `lea` does: it adds.
fn address(instruction: Instruction) -> Step {
    let Some(address) = instruction.address() else { return Step::Other };
    let to = instruction.operand(0);
    let constant = |value| Step::Copy { from: Operand::Constant(value), to, is_signed: false };
    if let Some(place) = instruction.place() {
        return constant(place.cast_signed());
    }
    let (acc, by, commutes) = match (address.base, address.index, address.scale) {
        (Some(one), None, _) | (None, Some(one), 1) => (one, Operand::Constant(address.displacement), false),
        (Some(base), Some(index), scale) => (base, Operand::Register(index), scale == 1),
        (None, Some(_), _) => return Step::Other,
        (None, None, _) => return constant(address.displacement),
    };
    Step::Update { operator: Operator::Add, acc: Operand::Register(acc), by, to, commutes }
}

fn is_select(instruction: Instruction) -> bool {
    let decoded = instruction.decoded;
    decoded.condition_code() != ConditionCode::None
        && decoded.flow_control() == FlowControl::Next
        && decoded.op_count() == 2
}

pub(super) fn replaces(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Cvtsd2ss, Cvtsi2sd, Cvtsi2ss, Cvtss2sd, Movhpd, Movhps, Movlpd, Movlps, Movsd, Movss, Rcpss, Roundsd, Roundss,
        Rsqrtss, Sqrtsd, Sqrtss,
    };
    let all = [
        Cvtsi2sd, Cvtsi2ss, Cvtss2sd, Cvtsd2ss, Sqrtsd, Sqrtss, Roundsd, Roundss, Rcpss, Rsqrtss, Movsd, Movss, Movlpd,
        Movlps, Movhpd, Movhps,
    ];
    all.contains(&mnemonic)
}

/// The name of an instruction that makes a vector: there is one for each width of elements.
fn vector_name(instruction: Instruction) -> Option<String> {
    let is_vector = |part: &RegisterPart| (Register::VECTORS..Register::FLAGS).contains(&part.register);
    instruction.register(0).filter(is_vector).map(|_| instruction.mnemonic())
}

fn adds_product(instruction: Instruction) -> bool {
    let name = vector_name(instruction).unwrap_or_default();
    name.starts_with("vfmadd231") || name.starts_with("vfnmadd231")
}

/// Of an instruction that takes one more value, and whether its two can change places.
fn operator(instruction: Instruction) -> Option<(Operator, bool)> {
    match instruction.decoded.mnemonic() {
        Mnemonic::Add => return Some((Operator::Add, true)),
        Mnemonic::Imul => return Some((Operator::Multiply, true)),
        Mnemonic::And => return Some((Operator::And, true)),
        Mnemonic::Or => return Some((Operator::Or, true)),
        Mnemonic::Xor => return Some((Operator::Xor, true)),
        _ => {}
    }
    let name = vector_name(instruction)?;
    let name = name.strip_prefix('v').unwrap_or(&name);
    let scalar = |stem: &str| ["ss", "sd", "ps", "pd"].iter().any(|end| name.strip_prefix(stem) == Some(end));
    let packed = |stem: &str| name.strip_prefix(stem).is_some_and(|rest| rest.len() <= 2);
    Some(match name {
        "pand" => (Operator::And, true),
        "por" => (Operator::Or, true),
        "pxor" => (Operator::Xor, true),
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
    use trace_format::Pc;

    use super::*;
    use crate::Table;

    fn step(bytes: &[u8]) -> (Step, Option<i64>) {
        let table = Table::first(Pc(0x1000), bytes);
        let instruction = table.all().get(0).unwrap();
        let slot = instruction.memory().iter().find(|memory| memory.is_in_frame());
        (instruction.step(), slot.map(|memory| memory.displacement))
    }

    #[test]
    fn values_are_followed_through_registers_and_slots() {
        let part = |number, size| Operand::Register(RegisterPart { register: Register(number), size, is_high: false });
        let copy = |from, to| Step::Copy { from, to, is_signed: false };
        let add = |acc, by, to| Step::Update { operator: Operator::Add, acc, by, to, commutes: false };
        let (memory, constant) = (Operand::Memory, Operand::Constant);
        for (bytes, expected, text) in [
            (&[0xb8, 7, 0, 0, 0][..], (copy(constant(7), part(0, 4)), None), "mov eax, 7"),
            (&[0x48, 0x89, 0xe5], (copy(part(4, 8), part(5, 8)), None), "mov rbp, rsp"),
            (&[0x89, 0x45, 0xf8], (copy(part(0, 4), memory), Some(-8)), "mov [rbp-8], eax"),
            (&[0xc7, 0x44, 0x24, 4, 9, 0, 0, 0], (copy(constant(9), memory), Some(4)), "mov dword [rsp+4], 9"),
            (&[0x48, 0x8b, 0x44, 0x24, 0x10], (copy(memory, part(0, 8)), Some(16)), "mov rax, [rsp+16]"),
            (&[0x53], (copy(part(3, 8), memory), Some(-8)), "push rbx"),
            (&[0x5b], (copy(memory, part(3, 8)), Some(0)), "pop rbx"),
            (&[0x48, 0x8d, 0x54, 0x24, 0x0c], (add(part(4, 8), constant(12), part(2, 8)), None), "lea rdx, [rsp+12]"),
            (&[0x48, 0x83, 0xe8, 1], (add(part(0, 8), constant(-1), part(0, 8)), None), "sub rax, 1"),
            (&[0x8d, 0x05, 0, 1, 0, 0], (copy(constant(0x1106), part(0, 4)), None), "lea eax, [rip+0x100]"),
            (&[0x31, 0xc0], (copy(constant(0), part(0, 4)), None), "xor eax, eax"),
            (&[0xf7, 0xf1], (Step::Other, None), "div ecx"),
            (&[0x87, 0x07], (Step::Other, None), "xchg [rdi], eax"),
        ] {
            assert_eq!(step(bytes), expected, "{text}");
        }
        let signed = Step::Copy { from: part(0, 4), to: part(0, 8), is_signed: true };
        assert_eq!(step(&[0x48, 0x63, 0xc0]).0, signed, "movsxd rax, eax");
    }
}
