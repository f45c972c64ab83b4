//! Instructions that cannot be copied as they are, rewritten byte by byte.

use iced_x86::{ConstantOffsets, Instruction, OpKind, Register};

use crate::translate::addresses::CachePc;
use crate::translate::code::assembler::register;

/// Whether the instruction names r11, which holds the place of the next record while translated code runs.
#[must_use]
pub fn names_r11(instruction: &Instruction) -> bool {
    let is_r11 = |r: Register| r.full_register() == Register::R11;
    (0..instruction.op_count()).any(|i| match instruction.op_kind(i) {
        OpKind::Register => is_r11(instruction.op_register(i)),
        OpKind::Memory => is_r11(instruction.memory_base()) || is_r11(instruction.memory_index()),
        _ => false,
    })
}

/// Where the prefixes end.
fn prefixes(bytes: &[u8]) -> usize {
    let legacy = |b: &u8| matches!(b, 0x66 | 0x67 | 0xf2 | 0xf3 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65);
    bytes.iter().position(|b| !legacy(b)).unwrap_or(bytes.len())
}

/// The distance field of a rip-relative operand, set again for an instruction that will lie at `at`. False when the
/// operand is out of reach from there.
#[must_use]
pub fn move_operand(bytes: &mut [u8], offsets: &ConstantOffsets, operand: u64, at: CachePc) -> bool {
    let distance = operand.wrapping_sub(at.plus(bytes.len() as u64).0).cast_signed();
    let Ok(distance) = i32::try_from(distance) else { return false };
    let field = offsets.displacement_offset();
    bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
    true
}

/// The instruction with its rip-relative operand replaced by `[scratch]`. `scratch` is rax, rcx, rdx, rbx, rsi or rdi.
#[must_use]
pub fn through_register(bytes: &[u8], offsets: &ConstantOffsets, scratch: u8) -> Vec<u8> {
    let field = offsets.displacement_offset();
    let mut new = bytes[..field - 1].to_vec();
    let first = prefixes(bytes);
    match bytes[first] {
        rex @ 0x40..=0x4f => new[first] = rex & !1,
        0xc4 | 0x62 => new[first + 1] |= 0x20,
        _ => {}
    }
    new.push(bytes[field - 1] & 0x38 | scratch);
    new.extend_from_slice(&bytes[field + 4..]);
    new
}

/// From an indirect jump or call (`ff /2`, `ff /4`) the load of its target: `mov rcx, operand`. The place of a distance
/// field, if there is one, counts from the end of both alike.
#[must_use]
pub fn load_of_target(bytes: &[u8]) -> Option<Vec<u8>> {
    let first = prefixes(bytes);
    let mut new: Vec<u8> = bytes[..first].iter().copied().filter(|b| matches!(b, 0x64 | 0x65 | 0x67)).collect();
    let (rex, opcode) = match bytes[first] {
        rex @ 0x40..=0x4f => (rex & 3, first + 1),
        _ => (0, first),
    };
    if *bytes.get(opcode)? != 0xff {
        return None;
    }
    new.extend([0x48 | rex, 0x8b, bytes.get(opcode + 1)? & 0xc7 | register::RCX << 3]);
    new.extend_from_slice(&bytes[opcode + 2..]);
    Some(new)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Formatter, NasmFormatter};

    use super::*;

    fn decode(bytes: &[u8], at: u64) -> (Instruction, ConstantOffsets) {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let instruction = decoder.decode();
        let offsets = decoder.get_constant_offsets(&instruction);
        (instruction, offsets)
    }

    fn text(bytes: &[u8], at: u64) -> String {
        let mut text = String::new();
        NasmFormatter::new().format(&decode(bytes, at).0, &mut text);
        text
    }

    #[test]
    fn a_near_operand_keeps_its_address() {
        let mut bytes = vec![0x8b, 0x05, 0x10, 0, 0, 0]; // mov eax, [rip+0x10]
        let (instruction, offsets) = decode(&bytes, 0x1000);
        assert!(move_operand(&mut bytes, &offsets, instruction.ip_rel_memory_address(), CachePc(0x9000)));
        assert_eq!(decode(&bytes, 0x9000).0.ip_rel_memory_address(), 0x1016);
        assert!(!move_operand(&mut bytes, &offsets, 0x1016, CachePc(0x2_0000_0000)));
    }

    #[test]
    fn a_far_operand_goes_through_a_register() {
        for (bytes, expected) in [
            (&[0x8b, 0x05, 1, 2, 3, 4][..], "mov eax,[rcx]"),
            (&[0x4c, 0x8b, 0x1d, 1, 2, 3, 4], "mov r11,[rcx]"),
            (&[0x83, 0x3d, 1, 2, 3, 4, 0x7f], "cmp dword [rcx],7Fh"),
            (&[0x66, 0x0f, 0x6f, 0x05, 1, 2, 3, 4], "movdqa xmm0,[rcx]"),
            (&[0xc5, 0xfd, 0x6f, 0x0d, 1, 2, 3, 4], "vmovdqa ymm1,[rcx]"),
            (&[0xc4, 0xe2, 0x7d, 0x18, 0x05, 1, 2, 3, 4], "vbroadcastss ymm0,[rcx]"),
            (&[0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x05, 1, 2, 3, 4], "vmovdqa64 zmm0,[rcx]"),
        ] {
            let offsets = decode(bytes, 0x1000).1;
            assert_eq!(text(&through_register(bytes, &offsets, register::RCX), 0x1000), expected);
        }
    }

    #[test]
    fn targets_are_loaded_from_where_the_jump_takes_them() {
        for (bytes, expected) in [
            (&[0xff, 0xe0][..], "mov rcx,rax"),
            (&[0x41, 0xff, 0xd3], "mov rcx,r11"),
            (&[0xff, 0x14, 0xc5, 0, 0, 0, 0], "mov rcx,[rax*8]"),
            (&[0x41, 0xff, 0x54, 0x24, 0x10], "mov rcx,[r12+10h]"),
            (&[0x3e, 0xff, 0xe2], "mov rcx,rdx"),
            (&[0xf2, 0xff, 0x25, 0, 0, 0, 0], "mov rcx,[rel 1007h]"),
            (&[0x64, 0xff, 0x24, 0x25, 0x10, 0, 0, 0], "mov rcx,[fs:10h]"),
        ] {
            assert_eq!(text(&load_of_target(bytes).unwrap(), 0x1000), expected);
        }
        assert_eq!(load_of_target(&[0xc3]), None);
    }

    #[test]
    fn r11_is_seen_wherever_it_is_named() {
        assert!(names_r11(&decode(&[0x45, 0x31, 0xdb], 0).0), "xor r11d, r11d");
        assert!(names_r11(&decode(&[0x41, 0x8b, 0x03], 0).0), "mov eax, [r11]");
        assert!(names_r11(&decode(&[0x42, 0x8b, 0x04, 0x18], 0).0), "mov eax, [rax+r11]");
        assert!(!names_r11(&decode(&[0x41, 0x8b, 0x02], 0).0), "mov eax, [r10]");
    }
}
