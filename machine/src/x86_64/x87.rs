//! What instructions do with x87 registers: these are a stack, whose top is register 0. Loads put a value on it, so
//! that all others have a number one higher; instructions that pop take one off.
//!
//! Example: `fld [rdi]; faddp st1, st0` takes a value from memory into the accumulator that was the top.

use iced_x86::{Mnemonic, OpKind};

use super::instruction::Instruction;
use crate::{Operand, Operator, Register, RegisterPart, Registers, Step};

/// How many there are.
const DEPTH: u8 = 8;

/// What an instruction does to the registers of x87. Numbers count from behind the push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// What it does with values.
    pub step: Step,
    /// Those whose values are used, besides those that the step names.
    pub reads: Registers,
    /// Those that get a value.
    pub writes: Registers,
    /// Whether it first puts a value on the stack.
    pub pushes: bool,
    /// How many values it takes off there in the end.
    pub pops: u8,
    /// The register whose value it exchanges with the top.
    pub exchanges: Option<Register>,
}

fn st(number: u8) -> Operand {
    Operand::Register(RegisterPart { register: Register(Register::X87.0 + number), size: 10, is_high: false })
}

/// What an instruction does with x87 registers; none where it does nothing with them.
pub(super) fn of(instruction: Instruction) -> Option<Stack> {
    use Mnemonic as M;
    let bit = |number: u8| Register(Register::X87.0 + number).bit();
    let decoded = instruction.decoded;
    let operand = |index: u32| match decoded.op_kind(index) {
        OpKind::Register if decoded.op_register(index).is_st() => st(decoded.op_register(index).number() as u8),
        _ => Operand::Memory,
    };
    let number = |operand: Operand| if let Operand::Register(part) = operand { part.register.bit() } else { 0 };
    let copy = |from, to| Step::Copy { from, to, is_signed: false };
    // With one operand the top is the other, and what changes.
    let (to, by) = match decoded.op_count() {
        0 => (st(0), st(1)),
        1 => (st(0), operand(0)),
        _ => (operand(0), operand(1)),
    };
    let update = |operator, acc, by, to, commutes| Step::Update { operator, acc, by, to, commutes };
    let (mut reads, mut writes, mut step, mut exchanges) = (0, 0, Step::Other, None);
    let mut pushes = false;
    let has_one_place = instruction.memory().len() == 1;
    match decoded.mnemonic() {
        M::Fld => {
            pushes = true;
            writes = bit(0);
            // Numbers count from behind the push.
            step = match operand(0) {
                Operand::Register(from) if from.register.0 + 1 < Register::X87.0 + DEPTH => {
                    copy(st(from.register.0 + 1 - Register::X87.0), st(0))
                }
                Operand::Memory if has_one_place => copy(Operand::Memory, st(0)),
                _ => Step::Other,
            };
        }
        M::Fild | M::Fbld | M::Fld1 | M::Fldz | M::Fldpi | M::Fldl2e | M::Fldl2t | M::Fldlg2 | M::Fldln2 => {
            pushes = true;
            writes = bit(0);
        }
        M::Fst | M::Fstp => match operand(0) {
            to @ Operand::Register(_) => (writes, step) = (number(to), copy(st(0), to)),
            to if has_one_place => step = copy(st(0), to),
            _ => reads = bit(0),
        },
        M::Fist | M::Fistp | M::Fisttp | M::Fbstp => reads = bit(0),
        M::Fadd | M::Faddp | M::Fiadd => (writes, step) = (number(to), update(Operator::Add, to, by, to, true)),
        M::Fmul | M::Fmulp | M::Fimul => (writes, step) = (number(to), update(Operator::Multiply, to, by, to, true)),
        M::Fsub | M::Fsubp | M::Fisub => (writes, step) = (number(to), update(Operator::Add, to, by, to, false)),
        // The other one less this one.
        M::Fsubr | M::Fsubrp | M::Fisubr => (writes, step) = (number(to), update(Operator::Add, by, to, to, false)),
        M::Fdiv | M::Fdivp | M::Fdivr | M::Fdivrp | M::Fidiv | M::Fidivr => {
            (reads, writes) = (number(to) | number(by), number(to));
        }
        M::Fcmovb | M::Fcmovbe | M::Fcmove | M::Fcmovnb | M::Fcmovnbe | M::Fcmovne | M::Fcmovnu | M::Fcmovu => {
            (writes, step) = (bit(0), update(Operator::Select, st(0), by, st(0), true));
        }
        M::Fcom
        | M::Fcomp
        | M::Fucom
        | M::Fucomp
        | M::Fcomi
        | M::Fcomip
        | M::Fucomi
        | M::Fucomip
        | M::Ficom
        | M::Ficomp => reads = number(to) | number(by),
        M::Fcompp | M::Fucompp => reads = bit(0) | bit(1),
        M::Ftst | M::Fxam => reads = bit(0),
        M::Fchs | M::Fabs | M::Fsqrt | M::Frndint | M::Fsin | M::Fcos | M::F2xm1 => (reads, writes) = (bit(0), bit(0)),
        M::Fscale | M::Fprem | M::Fprem1 => (reads, writes) = (bit(0) | bit(1), bit(0)),
        M::Fyl2x | M::Fyl2xp1 | M::Fpatan => (reads, writes) = (bit(0) | bit(1), bit(1)),
        // From the top, which is the second behind the push.
        M::Fsincos | M::Fptan | M::Fxtract => {
            pushes = true;
            (reads, writes) = (bit(1), bit(0) | bit(1));
        }
        M::Fxch => exchanges = if let Operand::Register(one) = by { Some(one.register) } else { None },
        M::Ffree | M::Finit | M::Fninit | M::Frstor | M::Fxrstor | M::Fxrstor64 | M::Xrstor | M::Xrstor64 | M::Emms => {
            writes = (0..DEPTH).map(bit).sum();
        }
        _ => return None,
    }
    let pops = pops(decoded.mnemonic());
    Some(Stack { step, reads, writes, pushes, pops, exchanges })
}

/// How many values it takes off the stack.
fn pops(mnemonic: Mnemonic) -> u8 {
    use Mnemonic::{
        Faddp, Fbstp, Fcomip, Fcomp, Fcompp, Fdivp, Fdivrp, Ficomp, Fistp, Fisttp, Fmulp, Fpatan, Fstp, Fsubp, Fsubrp,
        Fucomip, Fucomp, Fucompp, Fyl2x, Fyl2xp1,
    };
    let one = [
        Fstp, Fistp, Fisttp, Fbstp, Faddp, Fmulp, Fsubp, Fsubrp, Fdivp, Fdivrp, Fcomp, Fucomp, Fcomip, Fucomip, Ficomp,
        Fyl2x, Fyl2xp1, Fpatan,
    ];
    if [Fcompp, Fucompp].contains(&mnemonic) { 2 } else { one.contains(&mnemonic).into() }
}
