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
