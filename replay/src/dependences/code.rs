//! What instructions do with values that lanes can hand on: copy one, add to one, or use several.

use heuristics::{SegmentId, SegmentTable};
use machine::{Instruction, Operand, Operation, Operator, Register, RegisterPart, Step};
use trace_format::Pc;

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

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ran {
    pub pc: Pc,
    pub accesses: Vec<Access>,
    /// Registers whose values are used, besides those that the step names.
    pub uses: Registers,
    pub writes: Registers,
    /// What it does with what is followed.
    pub step: Step,
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
    let (uses, writes, step) = (0, 0, Step::Other);
    let (pushes, pops, exchanges) = (false, 0, None);
    Ran { pc, accesses: Vec::new(), uses, writes, step, is_atomic: false, pushes, pops, exchanges }
}

/// `cmp a, b; cmovl a, b`: the comparison is a part of the selection, and no use of `a` by itself.
fn comparisons_before_selections(decoded: &[Option<Instruction>], all: &mut [Ran]) {
    for (at, one) in decoded.iter().enumerate() {
        let is_comparison = |one: &Instruction| matches!(one.operation(), Operation::Compare | Operation::Test);
        let Some(one) = one.filter(is_comparison) else { continue };
        for (next, other) in decoded.iter().enumerate().skip(at + 1) {
            let Some(other) = other else { continue };
            if let Step::Update { operator: Operator::Select, acc, by, .. } = all[next].step {
                for operand in [acc, by] {
                    match operand {
                        Operand::Register(part) => all[at].uses &= !part.register.bit(),
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
    ran.step = step(instruction);
    ran.uses = match ran.step {
        Step::Update { by: Operand::Several, .. } => {
            in_addresses | bit(instruction.register(1)) | bit(instruction.register(2))
        }
        Step::Update { .. } if instruction.operation() == Operation::Address => 0,
        Step::Copy { .. } | Step::Update { .. } => in_addresses,
        Step::Other if instruction.zeroes() || instruction.takes_one_twice() && instruction.takes_carry() => 0,
        Step::Other if instruction.replaces() => (read & !bit(instruction.register(0))) | in_addresses,
        Step::Other => read,
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

fn is_followed(operand: Operand) -> bool {
    let Operand::Register(part) = operand else { return true };
    bit(Some(part)) != 0 || (Register::X87..Register::MMX).contains(&part.register)
}

/// What is done to what is followed.
fn step(instruction: Instruction) -> Step {
    let mut step = instruction.step();
    // From the stack pointer, which is not followed, an address is as far as from a constant.
    if let (Step::Update { acc, by, commutes, .. }, Some(address)) = (&mut step, instruction.address())
        && instruction.operation() == Operation::Address
        && *commutes
        && !is_followed(*acc)
    {
        (*acc, *by, *commutes) = (*by, Operand::Constant(address.displacement), false);
    }
    let is_kept = match step {
        Step::Copy { from, to, .. } => {
            let moves = matches!((from, to), (Operand::Register(_), _) | (Operand::Memory, Operand::Register(_)));
            moves && is_followed(from) && is_followed(to)
        }
        Step::Update { acc, by, to, .. } => {
            let register = |operand| if let Operand::Register(part) = operand { Some(part.register) } else { None };
            let is_one = register(acc).is_some() && register(acc) == register(by);
            !is_one && [acc, by, to].into_iter().all(is_followed)
        }
        Step::Other => false,
    };
    if is_kept { step } else { Step::Other }
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
        let part = |number, size| Operand::Register(RegisterPart { register: Register(number), size, is_high: false });
        let [eax, ebx] = [part(0, 4), part(3, 4)];
        let copy = |from, to| Step::Copy { from, to, is_signed: false };
        // mov eax, ebx; push rbx; mov eax, [rsp+8].
        assert_eq!(of_bytes(&[0x89, 0xD8]).step, copy(ebx, eax));
        let push = of_bytes(&[0x53]);
        assert_eq!((push.step, push.uses), (copy(part(3, 8), Operand::Memory), 0));
        let load = of_bytes(&[0x8B, 0x44, 0x24, 8]);
        assert_eq!(load.step, copy(Operand::Memory, eax));
        assert!(load.accesses[0].in_frame && load.accesses[0].size == 4);
        let add = |acc, by, commutes| Step::Update { operator: Operator::Add, acc, by, to: acc, commutes };
        // add eax, ebx; inc eax; sub eax, [rdi]; add [rdi], eax; lea rax, [rax+4].
        assert_eq!(of_bytes(&[0x01, 0xD8]).step, add(eax, ebx, true));
        assert_eq!(of_bytes(&[0xFF, 0xC0]).step, add(eax, Operand::Constant(1), false));
        let sub = of_bytes(&[0x2B, 0x07]);
        assert_eq!((sub.step, sub.uses), (add(eax, Operand::Memory, false), 1 << 7));
        assert_eq!(of_bytes(&[0x01, 0x07]).step, add(Operand::Memory, eax, true));
        assert_eq!(of_bytes(&[0x48, 0x8D, 0x40, 4]).step, add(part(0, 8), Operand::Constant(4), false));
        // xor eax, eax; lock add [rdi], eax; pxor xmm0, xmm0; cvtsi2sd xmm0, eax.
        assert_eq!((of_bytes(&[0x31, 0xC0]).step, of_bytes(&[0x31, 0xC0]).uses), (Step::Other, 0));
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
        let st = |number: u8| part(X87 + number, 10);
        let load = of_bytes(&[0xD9, 0xC0]);
        assert_eq!((load.step, load.pushes), (copy(st(1), st(0)), true));
        assert_eq!(of_bytes(&[0xD9, 0x07]).step, copy(Operand::Memory, st(0)));
        let taken = of_bytes(&[0xDE, 0xC1]);
        assert_eq!((taken.step, taken.pops), (add(st(1), st(0), true), 1));
        let reversed = Step::Update { operator: Operator::Add, acc: st(1), by: st(0), to: st(0), commutes: false };
        assert_eq!(of_bytes(&[0xD8, 0xE9]).step, reversed);
        let store = of_bytes(&[0xDD, 0x1F]);
        assert_eq!((store.step, store.pops), (copy(st(0), Operand::Memory), 1));
        assert_eq!(of_bytes(&[0xD9, 0xCB]).exchanges, Some(X87 + 3));
        // addsd xmm0, xmm1; maxsd xmm0, [rdi]; cmovl eax, ebx.
        let vectors = [part(16, 16), part(17, 16)];
        assert_eq!(of_bytes(&[0xF2, 0x0F, 0x58, 0xC1]).step, add(vectors[0], vectors[1], true));
        let kinds = [&[0xF2, 0x0F, 0x5F, 0x07][..], &[0x0F, 0x4C, 0xC3]].map(|bytes| match of_bytes(bytes).step {
            Step::Update { operator, .. } => operator,
            _ => Operator::Add,
        });
        assert_eq!(kinds, [Operator::Max, Operator::Select]);
    }
}
