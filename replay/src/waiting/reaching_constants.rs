//! What a register holds where a loop begins: the constant that all code which leads there puts into it.
//!
//! Compilers take constants out of loops: `xchg` of a lock then puts a register that was filled before. The code is
//! searched backwards along branches, jumps and calls that ran or stand in it; an indirect jump counts where the
//! recording shows where it led.

use machine::{Operand, Operation, Register, Step, low_bytes};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Kind, Pc};

use super::code::Code;
use super::registers::is_preserved;
use heuristics::SegmentId;

/// Addresses that are searched at most.
const MOST_SEARCHED: usize = 256;

/// Which segments lead to an address.
pub(super) struct Leading {
    /// Whether it is over a call, which is back there.
    to: FxHashMap<Pc, Vec<(SegmentId, bool)>>,
    /// Where functions begin.
    called: FxHashSet<Pc>,
}

/// What a segment leaves in a register.
enum Left {
    Untouched,
    Constant(u64),
    Unknown,
}

impl Leading {
    pub(super) fn of(code: &Code) -> Leading {
        let mut all = Leading { to: FxHashMap::default(), called: FxHashSet::default() };
        for (id, segment) in code.table.iter() {
            let last = segment.last();
            let mut lead = |to: Pc, over_call: bool| all.to.entry(to).or_default().push((id, over_call));
            segment.ways.into_iter().flatten().for_each(|to| lead(to, false));
            let is_call = last.kind.is_call();
            if segment.ways.is_none() && !matches!(last.kind, Kind::Jump | Kind::IndirectJump | Kind::Return) {
                last.next_pc().into_iter().for_each(|to| lead(to, is_call));
            }
            if let Some(target) = code.targets.get(&id) {
                if is_call {
                    all.called.insert(*target);
                } else {
                    lead(*target, false);
                }
            }
        }
        for (block, _) in code.trace.blocks().iter() {
            for pair in code.table.of_block(block).windows(2) {
                let kind = code.table[pair[0]].last().kind;
                if matches!(kind, Kind::Jump | Kind::IndirectJump) {
                    all.to.entry(code.table[pair[1]].start()).or_default().push((pair[0], false));
                }
            }
        }
        all
    }
}

/// The constant in a general register at an address; none where it is another on some way there, or not known.
pub(super) fn constant_at(at: Pc, register: usize, code: &Code, leading: &Leading) -> Option<u64> {
    let (mut seen, mut open) = (FxHashSet::from_iter([at]), vec![at]);
    let mut constant = None;
    while let Some(at) = open.pop() {
        if leading.called.contains(&at) || seen.len() > MOST_SEARCHED {
            return None;
        }
        for (segment, over_call) in leading.to.get(&at)? {
            if *over_call && !is_preserved(register) {
                return None;
            }
            match left_by(*segment, register, code) {
                Left::Constant(value) if constant.is_none_or(|constant| constant == value) => constant = Some(value),
                Left::Constant(_) | Left::Unknown => return None,
                Left::Untouched => {
                    let start = code.table[*segment].start();
                    if seen.insert(start) {
                        open.push(start);
                    }
                }
            }
        }
    }
    constant
}

fn left_by(segment: SegmentId, register: usize, code: &Code) -> Left {
    let Some(all) = code.decode(segment) else { return Left::Unknown };
    let register = Register(register as u8);
    for instruction in all.iter().rev() {
        if instruction.operation() == Operation::Syscall && register == Register::AX {
            return Left::Unknown;
        }
        if instruction.writes() & register.bit() == 0 {
            continue;
        }
        return match instruction.step() {
            Step::Copy { from: Operand::Constant(value), to: Operand::Register(to), .. }
                if to.register == register && instruction.operation() != Operation::Address =>
            {
                Left::Constant(value.cast_unsigned() & low_bytes(to.size.into()))
            }
            _ => Left::Unknown,
        };
    }
    Left::Untouched
}

#[cfg(test)]
mod tests {
    use heuristics::SegmentTable;
    use trace_format::{Block, Finish, Instruction, Meta, SpEffect, Trace, TraceWriter};

    use super::*;

    fn block(at: u64, parts: &[(&[u8], Kind)]) -> Block {
        let mut block = Block::default();
        let mut pc = at;
        for (code, kind) in parts {
            let len = code.len() as u8;
            block.instructions.push(Instruction { pc: Pc(pc), len, kind: *kind, sp: SpEffect::Add(0), memory: 0 });
            block.code.extend_from_slice(code);
            pc += u64::from(len);
        }
        block
    }

    /// `mov edx, PUT`, and a jump to the loop at 0x200.
    fn fills(at: u64, put: u8) -> Block {
        let to = (0x200 - (at as i64 + 10)) as i32;
        let jump = [&[0xe9][..], &to.to_le_bytes()].concat();
        block(at, &[(&[0xba, put, 0, 0, 0], Kind::Plain), (&jump, Kind::Jump)])
    }

    /// Whether a loop that tries a lock waits, where these values lead to it: `mov eax, edx; xchg [lock], eax; test
    /// eax, eax; jne`.
    fn waits(puts: &[u8]) -> bool {
        let tries = block(
            0x200,
            &[
                (&[0x89, 0xd0], Kind::Plain),
                (&[0x87, 0x05, 0, 1, 0, 0], Kind::Plain),
                (&[0x85, 0xc0], Kind::Plain),
                (&[0x75, 0xf4], Kind::Branch),
            ],
        );
        let mut writer = TraceWriter::new(Vec::new(), "made by hand", &Meta::default()).unwrap();
        for (i, put) in puts.iter().enumerate() {
            writer.add_block(fills(0x100 + 0x10 * i as u64, *put)).unwrap();
        }
        let tries = writer.add_block(tries).unwrap();
        let trace = Trace::from_bytes(writer.finish(&Finish::default()).unwrap(), "made by hand").unwrap();
        let table = SegmentTable::new(trace.blocks(), &[]);
        let code = Code::new(&trace, &table, &[]);
        let turn = table.of_block(tries).into();
        code.candidate(&turn).is_some()
    }

    #[test]
    fn an_exchange_waits_where_every_way_loads_what_a_taken_lock_holds() {
        assert!(waits(&[1]));
        assert!(waits(&[1, 1]));
        // It takes what is there.
        assert!(!waits(&[0]));
        assert!(!waits(&[1, 0]));
        // Nobody knows what it puts.
        assert!(!waits(&[]));
    }
}
