//! The lists of a superblock in few bytes: programs have hundreds of thousands of superblocks, and most are never
//! looked at again once they run.
//!
//! ```text
//! instruction   kind 4 bits, length 4 bits | what it does to the stack pointer 3 bits, whether it is elsewhere than behind the one before 1 bit,
//!               memory addresses 4 bits | what did not fit: addresses u8, stack pointer i32, address u64
//! mark          borrowed 3 bits, pointer in r11 1 bit, how many more have run 2 bits, whether its distance is wide 1 bit |
//!               distance from the one before u8 or u32 | what did not fit: instructions run u16 | borrowed register u8
//! ```

use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::translate::addresses::ProgramPc;
use crate::translate::code::superblock::{Borrowed, Mark};

const RECORDED: u8 = 3;
const OTHER_SP: u8 = 4;
const ELSEWHERE: u8 = 8;
const MANY: u8 = 15;
const IN_R11: u8 = 8;
const JUMP: u8 = 3;
const WIDE: u8 = 64;

/// Packs the instructions of a superblock that starts at `head`, behind what there is.
pub fn pack_instructions(head: ProgramPc, list: &[Instruction], bytes: &mut Vec<u8>) {
    let mut expected = head.0;
    for i in list {
        let sp = match i.sp {
            SpEffect::Add(0) => 0,
            SpEffect::Add(-8) => 1,
            SpEffect::Add(8) => 2,
            SpEffect::Recorded => RECORDED,
            SpEffect::Add(_) => OTHER_SP,
        };
        let elsewhere = if i.pc.0 == expected { 0 } else { ELSEWHERE };
        bytes.extend([(i.kind as u8) << 4 | i.len, sp | elsewhere | i.memory.min(MANY) << 4]);
        if i.memory >= MANY {
            bytes.push(i.memory);
        }
        if let (SpEffect::Add(change), OTHER_SP) = (i.sp, sp) {
            bytes.extend(change.to_le_bytes());
        }
        if elsewhere != 0 {
            bytes.extend(i.pc.0.to_le_bytes());
        }
        expected = i.pc.0.wrapping_add(i.len.into());
    }
}

/// Reads what [`pack_instructions`] has packed.
pub struct Instructions<'a> {
    bytes: &'a [u8],
    expected: u64,
}

impl<'a> Instructions<'a> {
    /// From the first on.
    #[must_use]
    pub fn new(head: ProgramPc, bytes: &'a [u8]) -> Instructions<'a> {
        Instructions { bytes, expected: head.0 }
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

impl Iterator for Instructions<'_> {
    type Item = Instruction;

    fn next(&mut self) -> Option<Instruction> {
        let [first, second] = take(&mut self.bytes)?;
        let memory = match second >> 4 {
            MANY => take::<1>(&mut self.bytes)?[0],
            few => few,
        };
        let sp = match second & 7 {
            0 => SpEffect::Add(0),
            1 => SpEffect::Add(-8),
            2 => SpEffect::Add(8),
            RECORDED => SpEffect::Recorded,
            _ => SpEffect::Add(i32::from_le_bytes(take(&mut self.bytes)?)),
        };
        let pc = if second & ELSEWHERE == 0 { self.expected } else { u64::from_le_bytes(take(&mut self.bytes)?) };
        let len = first & 15;
        self.expected = pc.wrapping_add(len.into());
        Some(Instruction { pc: Pc(pc), len, kind: Kind::from_code(first >> 4)?, sp, memory })
    }
}

/// Packs marks, which are in order of their offsets, behind what there is.
pub fn pack_marks(list: &[Mark], bytes: &mut Vec<u8>) {
    let (mut offset, mut executed) = (0, 0);
    for mark in list {
        let borrowed = match mark.borrowed {
            Borrowed::Nothing => 0,
            Borrowed::Rcx => 1,
            Borrowed::Register(_) => 2,
            Borrowed::BeforeSyscall => 3,
            Borrowed::AfterSyscall => 4,
        };
        let more =
            mark.executed.checked_sub(executed).filter(|&more| more < JUMP.into()).map_or(JUMP, |more| more as u8);
        let distance = mark.offset - offset;
        let wide = if distance < 256 { 0 } else { WIDE };
        bytes.push(borrowed | if mark.pointer_in_r11 { IN_R11 } else { 0 } | more << 4 | wide);
        match u8::try_from(distance) {
            Ok(distance) => bytes.push(distance),
            Err(_) => bytes.extend(distance.to_le_bytes()),
        }
        if more == JUMP {
            bytes.extend(mark.executed.to_le_bytes());
        }
        if let Borrowed::Register(register) = mark.borrowed {
            bytes.push(register);
        }
        (offset, executed) = (mark.offset, mark.executed);
    }
}

/// The last mark at exactly this offset.
#[must_use]
pub fn mark_at(mut bytes: &[u8], wanted: u32) -> Option<Mark> {
    let (mut offset, mut executed, mut found) = (0, 0, None);
    while let Some([first]) = take(&mut bytes) {
        offset += match first & WIDE {
            0 => u32::from(take::<1>(&mut bytes)?[0]),
            _ => u32::from_le_bytes(take(&mut bytes)?),
        };
        executed = match first >> 4 & JUMP {
            JUMP => u16::from_le_bytes(take(&mut bytes)?),
            more => executed + u16::from(more),
        };
        let borrowed = match first & 7 {
            0 => Borrowed::Nothing,
            1 => Borrowed::Rcx,
            2 => Borrowed::Register(take::<1>(&mut bytes)?[0]),
            3 => Borrowed::BeforeSyscall,
            _ => Borrowed::AfterSyscall,
        };
        if offset > wanted {
            break;
        }
        if offset == wanted {
            found = Some(Mark { offset, executed, borrowed, pointer_in_r11: first & IN_R11 != 0 });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_come_out_as_they_went_in() {
        let at = |pc, len, kind, sp, memory| Instruction { pc: Pc(pc), len, kind, sp, memory };
        let list = [
            at(0x1000, 1, Kind::Plain, SpEffect::Add(-8), 1),
            at(0x1001, 15, Kind::Plain, SpEffect::Add(0), 15),
            at(0x1010, 4, Kind::Plain, SpEffect::Add(-4096), 0),
            at(0x1014, 5, Kind::Call, SpEffect::Add(-8), 255),
            at(0x7fff_0000_0000, 1, Kind::Plain, SpEffect::Recorded, 0),
            at(0x7fff_0000_0001, 3, Kind::Return, SpEffect::Add(24), 14),
        ];
        let mut packed = Vec::new();
        pack_instructions(ProgramPc(0x1000), &list, &mut packed);
        assert_eq!(Instructions::new(ProgramPc(0x1000), &packed).collect::<Vec<_>>(), list);
    }

    #[test]
    fn the_last_mark_at_an_offset_is_found() {
        let at = |offset, executed, borrowed, pointer_in_r11| Mark { offset, executed, borrowed, pointer_in_r11 };
        let list = [
            at(0, 0, Borrowed::Nothing, true),
            at(0, 1, Borrowed::Nothing, true),
            at(9, 1, Borrowed::Register(3), false),
            at(300, 7, Borrowed::AfterSyscall, true),
            at(301, 6, Borrowed::BeforeSyscall, true),
            at(700, 300, Borrowed::Rcx, true),
        ];
        let mut packed = Vec::new();
        pack_marks(&list, &mut packed);
        for mark in &list[1..] {
            assert_eq!(mark_at(&packed, mark.offset), Some(*mark));
        }
        assert_eq!(mark_at(&packed, 10), None);
        assert_eq!(mark_at(&packed, 701), None);
    }
}
