//! What instructions do with values that lanes can hand on: copy one, add to one, or use several.

use heuristics::{SegmentId, SegmentTable};
use machine::{Instruction, Operation, Register, RegisterPart, Step};
use trace_format::Pc;

pub use machine::Operator;

/// Registers as bits, as [`machine`] numbers them. Followed are the general ones except the stack pointer, vectors,
/// masks, the carry flag, the other flags of arithmetic as one, and x87.
pub(super) type Registers = machine::Registers;

/// The carry flag, which some instructions leave that change all others.
pub(super) const CARRY: u8 = Register::CARRY.0;

/// The other flags.
const OTHERS: Registers = 0x1f << (CARRY + 1);

/// The first of x87.
pub(super) const X87: u8 = Register::X87.0;

/// How many there are.
pub(super) const REGISTERS: usize = Register::MMX.index();

/// Where a value comes from, or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(u8),
    /// The first access.
    Memory,
    Constant(i64),
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
    pub is_atomic: bool,
    /// Whether it first puts a value on the stack of x87 registers.
    pub pushes: bool,
    /// How many values it takes off there in the end.
    pub pops: u8,
    /// The register whose value it exchanges with the top.
    pub exchanges: Option<u8>,
}

/// Those of the registers that are followed; those of x87 are told apart, since they move.
fn followed(all: Registers) -> Registers {
    let flags = all & Register::CARRY.bit() | if all & OTHERS != 0 { 2 << CARRY } else { 0 };
    let whole = (Register::FLAGS.bit() - 1) & !Register::SP.bit() | 0xff << Register::MASKS.index();
    all & whole | flags
}

fn bit(part: Option<RegisterPart>) -> Registers {
    part.map_or(0, |part| followed(part.register.bit()))
}

/// The instructions of a segment; of those whose bytes are not known only their accesses, as reads.
pub(super) fn of_segment(segments: &SegmentTable, id: SegmentId) -> Vec<Ran> {
    let listing = segments.listing(id);
    let each = segments[id].instructions.iter().zip(listing.iter());
    let mut all: Vec<Ran> = each
        .map(|(instruction, decoded)| {
            let mut ran = decoded.map_or_else(|| unknown(instruction.pc), of);
            let unknown =
                Access { size: 8, reads: true, writes: false, in_frame: false, is_stack: true, is_selected: false };
            ran.accesses.resize(usize::from(instruction.memory), unknown);
            ran
        })
        .collect();
    comparisons_before_selections(&listing.iter().collect::<Vec<_>>(), &mut all);
    all
}

/// An instruction of which nothing is known but where it is.
pub(super) fn unknown(pc: Pc) -> Ran {
    let (uses, writes, does) = (0, 0, Does::Other);
    let (pushes, pops, exchanges) = (false, 0, None);
    Ran { pc, accesses: Vec::new(), uses, writes, does, is_atomic: false, pushes, pops, exchanges }
}

/// `cmp a, b; cmovl a, b`: the comparison is a part of the selection, and no use of `a` by itself.
fn comparisons_before_selections(decoded: &[Option<Instruction>], all: &mut [Ran]) {
    for (at, one) in decoded.iter().enumerate() {
        let is_comparison = |one: &Instruction| matches!(one.operation(), Operation::Compare | Operation::Test);
        let Some(one) = one.filter(is_comparison) else { continue };
        for (next, other) in decoded.iter().enumerate().skip(at + 1) {
            let Some(other) = other else { continue };
            if let Does::Update { operator: Operator::Select, acc, by, .. } = all[next].does {
                for operand in [acc, by] {
                    match operand {
                        Operand::Register(register) => all[at].uses &= !(1 << register),
                        Operand::Memory if is_one_place(one, *other) => {
                            all[at].accesses.iter_mut().for_each(|access| access.is_selected = true);
                        }
                        _ => {}
                    }
                }
            } else if other.flags_read() | other.flags_written() != 0 {
                break;
            }
        }
    }
}

/// Whether the memory operands of both are written alike.
fn is_one_place(a: Instruction, b: Instruction) -> bool {
    let place = |one: Instruction| one.address().map(|m| (m.base, m.index, m.scale, m.displacement));
    place(a) == place(b)
}

fn of(instruction: Instruction) -> Ran {
    let mut ran = unknown(instruction.pc());
    let mut in_addresses = 0;
    for memory in instruction.memory() {
        in_addresses |= bit(memory.base) | bit(memory.index);
        if memory.is_gathered() {
            continue;
        }
        let (size, is_stack) = (memory.size.clamp(1, 64) as u8, instruction.is_of_stack());
        let (reads, writes, in_frame) = (memory.access.reads, memory.access.writes, memory.is_in_frame());
        ran.accesses.push(Access { size, reads, writes, in_frame, is_stack, is_selected: false });
    }
    let read = followed(instruction.reads());
    ran.is_atomic = instruction.is_atomic();
    ran.writes = followed(instruction.writes());
    ran.does = does(instruction);
    ran.uses = match ran.does {
        Does::Update { by: Operand::Several, .. } => {
            in_addresses | bit(instruction.register(1)) | bit(instruction.register(2))
        }
        Does::Update { .. } if instruction.operation() == Operation::Address => 0,
        Does::Copy { .. } | Does::Update { .. } => in_addresses,
        Does::Other if instruction.zeroes() || instruction.takes_one_twice() && instruction.takes_carry() => 0,
        Does::Other if instruction.replaces() => (read & !bit(instruction.register(0))) | in_addresses,
        Does::Other => read,
    };
    ran.uses |= followed(instruction.flags_read());
    if let Some(stack) = instruction.x87() {
        ran.uses |= stack.reads | in_addresses;
        ran.writes |= stack.writes;
        (ran.pushes, ran.pops) = (stack.pushes, stack.pops);
        ran.exchanges = stack.exchanges.map(|register| register.0);
    }
    ran
}

fn operand(operand: machine::Operand) -> Option<Operand> {
    match operand {
        machine::Operand::Register(part) => {
            let is_x87 = (Register::X87..Register::MMX).contains(&part.register);
            (is_x87 || bit(Some(part)) != 0).then_some(Operand::Register(part.register.0))
        }
        machine::Operand::Memory => Some(Operand::Memory),
        machine::Operand::Constant(value) => Some(Operand::Constant(value)),
        machine::Operand::Several => Some(Operand::Several),
        machine::Operand::Implied | machine::Operand::Target => None,
    }
}

/// What is done to what is followed.
fn does(instruction: Instruction) -> Does {
    match instruction.step() {
        Step::Copy { from, to, .. } => match (operand(from), operand(to)) {
            (Some(from @ Operand::Register(_)), Some(to @ (Operand::Register(_) | Operand::Memory)))
            | (Some(from @ Operand::Memory), Some(to @ Operand::Register(_))) => Does::Copy { from, to },
            _ => Does::Other,
        },
        Step::Update { operator, acc, by, to, commutes } => {
            let (mut acc, mut by, to, mut commutes) = (operand(acc), operand(by), operand(to), commutes);
            // From the stack pointer, which is not followed, an address is as far as from a constant.
            if let (None, Some(address), true) = (acc, instruction.address(), commutes)
                && instruction.operation() == Operation::Address
            {
                (acc, by, commutes) = (by, Some(Operand::Constant(address.displacement)), false);
            }
            match (acc, by, to) {
                (Some(acc), Some(by), Some(to)) if acc != by && !matches!(to, Operand::Constant(_)) => {
                    Does::Update { operator, acc, by, to, commutes }
                }
                _ => Does::Other,
            }
        }
        Step::Other => Does::Other,
    }
}

#[cfg(test)]
mod tests {
    use machine::Table;

    use super::*;

    fn of_bytes(bytes: &[u8]) -> Ran {
        of(Table::first(Pc(0x1000), bytes).all().get(0).unwrap())
    }

    #[test]
    fn what_instructions_do_with_values() {
        let [eax, ebx] = [Operand::Register(0), Operand::Register(3)];
        // mov eax, ebx; push rbx; mov eax, [rsp+8].
        assert_eq!(of_bytes(&[0x89, 0xD8]).does, Does::Copy { from: ebx, to: eax });
        let push = of_bytes(&[0x53]);
        assert_eq!((push.does, push.uses), (Does::Copy { from: ebx, to: Operand::Memory }, 0));
        let load = of_bytes(&[0x8B, 0x44, 0x24, 8]);
        assert_eq!(load.does, Does::Copy { from: Operand::Memory, to: eax });
        assert!(load.accesses[0].in_frame && load.accesses[0].size == 4);
        let add = |acc, by, commutes| Does::Update { operator: Operator::Add, acc, by, to: acc, commutes };
        // add eax, ebx; inc eax; sub eax, [rdi]; add [rdi], eax; lea eax, [rax+4].
        assert_eq!(of_bytes(&[0x01, 0xD8]).does, add(eax, ebx, true));
        assert_eq!(of_bytes(&[0xFF, 0xC0]).does, add(eax, Operand::Constant(1), false));
        let sub = of_bytes(&[0x2B, 0x07]);
        assert_eq!((sub.does, sub.uses), (add(eax, Operand::Memory, false), 1 << 7));
        assert_eq!(of_bytes(&[0x01, 0x07]).does, add(Operand::Memory, eax, true));
        assert_eq!(of_bytes(&[0x8D, 0x40, 4]).does, add(eax, Operand::Constant(4), false));
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
        assert_eq!(of_bytes(&[0xD9, 0x07]).does, Does::Copy { from: Operand::Memory, to: st(0) });
        let taken = of_bytes(&[0xDE, 0xC1]);
        assert_eq!((taken.does, taken.pops), (add(st(1), st(0), true), 1));
        let reversed = Does::Update { operator: Operator::Add, acc: st(1), by: st(0), to: st(0), commutes: false };
        assert_eq!(of_bytes(&[0xD8, 0xE9]).does, reversed);
        let store = of_bytes(&[0xDD, 0x1F]);
        assert_eq!((store.does, store.pops), (Does::Copy { from: st(0), to: Operand::Memory }, 1));
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
