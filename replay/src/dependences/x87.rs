//! What instructions do with x87 registers: these are a stack, whose top is register 0. Loads put a value on it, so
//! that all others have a number one higher; instructions that pop take one off.
//!
//! Example: `fld [rdi]; faddp st1, st0` takes a value from memory into the accumulator that was the top.

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::code::{Does, Operand, Operator, Ran, Registers, X87};

/// How many there are.
pub(super) const DEPTH: u8 = 8;

/// What an instruction does with x87 registers, put into what is known of it; false where it does nothing with them.
pub(super) fn put(instruction: &Instruction, ran: &mut Ran) -> bool {
    use Mnemonic as M;
    let pops = pops(instruction.mnemonic());
    let st = |number: u8| Operand::Register(X87 + number);
    let bit = |number: u8| 1 << (X87 + number) as Registers;
    let operand = |index: u32| match instruction.op_kind(index) {
        OpKind::Register if instruction.op_register(index).is_st() => st(instruction.op_register(index).number() as u8),
        _ => Operand::Memory(0),
    };
    let number = |operand: Operand| if let Operand::Register(number) = operand { 1 << number } else { 0 };
    // With one operand the top is the other, and what changes.
    let (to, by) = match instruction.op_count() {
        0 => (st(0), st(1)),
        1 => (st(0), operand(0)),
        _ => (operand(0), operand(1)),
    };
    let (mut uses, mut writes, mut does) = (0, 0, Does::Other);
    let mut pushes = false;
    match instruction.mnemonic() {
        M::Fld => {
            pushes = true;
            writes = bit(0);
            // Numbers count from behind the push.
            does = match operand(0) {
                Operand::Register(from) if from + 1 < X87 + DEPTH => {
                    Does::Copy { from: Operand::Register(from + 1), to: st(0) }
                }
                Operand::Memory(_) if ran.accesses.len() == 1 => Does::Copy { from: Operand::Memory(0), to: st(0) },
                _ => Does::Other,
            };
        }
        M::Fild | M::Fbld | M::Fld1 | M::Fldz | M::Fldpi | M::Fldl2e | M::Fldl2t | M::Fldlg2 | M::Fldln2 => {
            pushes = true;
            writes = bit(0);
        }
        M::Fst | M::Fstp => match operand(0) {
            to @ Operand::Register(_) => (writes, does) = (number(to), Does::Copy { from: st(0), to }),
            to if ran.accesses.len() == 1 => does = Does::Copy { from: st(0), to },
            _ => uses = bit(0),
        },
        M::Fist | M::Fistp | M::Fisttp | M::Fbstp => uses = bit(0),
        M::Fadd | M::Faddp | M::Fiadd => (writes, does) = (number(to), update(Operator::Add, to, by, to, true)),
        M::Fmul | M::Fmulp | M::Fimul => (writes, does) = (number(to), update(Operator::Multiply, to, by, to, true)),
        M::Fsub | M::Fsubp | M::Fisub => (writes, does) = (number(to), update(Operator::Add, to, by, to, false)),
        // The other one less this one.
        M::Fsubr | M::Fsubrp | M::Fisubr => (writes, does) = (number(to), update(Operator::Add, by, to, to, false)),
        M::Fdiv | M::Fdivp | M::Fdivr | M::Fdivrp | M::Fidiv | M::Fidivr => {
            (uses, writes) = (number(to) | number(by), number(to));
        }
        M::Fcmovb | M::Fcmovbe | M::Fcmove | M::Fcmovnb | M::Fcmovnbe | M::Fcmovne | M::Fcmovnu | M::Fcmovu => {
            (writes, does) = (bit(0), update(Operator::Select, st(0), by, st(0), true));
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
        | M::Ficomp => uses = number(to) | number(by),
        M::Fcompp | M::Fucompp => uses = bit(0) | bit(1),
        M::Ftst | M::Fxam => uses = bit(0),
        M::Fchs | M::Fabs | M::Fsqrt | M::Frndint | M::Fsin | M::Fcos | M::F2xm1 => (uses, writes) = (bit(0), bit(0)),
        M::Fscale | M::Fprem | M::Fprem1 => (uses, writes) = (bit(0) | bit(1), bit(0)),
        M::Fyl2x | M::Fyl2xp1 | M::Fpatan => (uses, writes) = (bit(0) | bit(1), bit(1)),
        // From the top, which is the second behind the push.
        M::Fsincos | M::Fptan | M::Fxtract => {
            pushes = true;
            (uses, writes) = (bit(1), bit(0) | bit(1));
        }
        M::Fxch => ran.exchanges = Some(if let Operand::Register(one) = by { one } else { X87 + 1 }),
        M::Ffree | M::Finit | M::Fninit | M::Frstor | M::Fxrstor | M::Fxrstor64 | M::Xrstor | M::Xrstor64 | M::Emms => {
            writes = (0..DEPTH).map(bit).sum();
        }
        _ => return false,
    }
    (ran.pushes, ran.pops, ran.does) = (pushes, pops, does);
    ran.uses |= uses;
    ran.writes |= writes;
    true
}

fn update(operator: Operator, acc: Operand, by: Operand, to: Operand, commutes: bool) -> Does {
    if acc == by { Does::Other } else { Does::Update { operator, acc, by, to, commutes } }
}

/// How many values it takes off the stack.
fn pops(mnemonic: Mnemonic) -> u8 {
    use Mnemonic as M;
    match mnemonic {
        M::Fcompp | M::Fucompp => 2,
        M::Fstp
        | M::Fistp
        | M::Fisttp
        | M::Fbstp
        | M::Faddp
        | M::Fmulp
        | M::Fsubp
        | M::Fsubrp
        | M::Fdivp
        | M::Fdivrp
        | M::Fcomp
        | M::Fucomp
        | M::Fcomip
        | M::Fucomip
        | M::Ficomp
        | M::Fyl2x
        | M::Fyl2xp1
        | M::Fpatan => 1,
        _ => 0,
    }
}
