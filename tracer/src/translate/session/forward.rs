//! The rest of an expansion, carried out here: a thread that was killed in the middle of one can no longer be moved,
//! but what it has run must be recorded.
//!
//! Only what stands between the program's instructions is carried out, and only the part that makes records.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use crate::kernel::ptrace::{self, Address, Registers};
use crate::translate::addresses::{CachePc, RecordPlace};
use crate::translate::layout::slot;
use crate::translate::memory::space::Space;

/// Carries out the instruction of ours that the thread of this slot stands at. False when it is none of those that make
/// records.
pub fn step(registers: &mut Registers, slot: u32, space: &Space) -> bool {
    let bytes = space.code_at(CachePc(registers.rip));
    let instruction = Decoder::with_ip(64, &bytes, registers.rip, DecoderOptions::NONE).decode();
    let next = instruction.next_ip();
    let done = match instruction.mnemonic() {
        Mnemonic::Nop | Mnemonic::Lfence => true,
        Mnemonic::Rdtsc => {
            let now = ptrace::timestamp();
            (registers.rax, registers.rdx) = (now & u64::from(u32::MAX), now >> 32);
            true
        }
        Mnemonic::Jmp if instruction.op0_kind() == OpKind::NearBranch64 => {
            registers.rip = instruction.near_branch_target();
            return true;
        }
        Mnemonic::Rorx => rotate(&instruction, registers),
        Mnemonic::Movzx => lowest_byte(&instruction, registers),
        Mnemonic::Mov => copy(&instruction, registers, slot, space),
        Mnemonic::Lea => add(&instruction, registers),
        Mnemonic::Xchg => exchange(&instruction, registers, slot, space),
        Mnemonic::Not => register(registers, instruction.op0_register()).map(|value| *value = !*value).is_some(),
        Mnemonic::Jrcxz if registers.rcx == 0 => {
            registers.rip = instruction.near_branch_target();
            return true;
        }
        Mnemonic::Jrcxz => true,
        _ => false,
    };
    registers.rip = next;
    done
}

/// `lea` without a scale.
fn add(instruction: &Instruction, registers: &mut Registers) -> bool {
    let mut sum = instruction.memory_displacement64();
    for name in [instruction.memory_base(), instruction.memory_index()] {
        if name != Register::None {
            let Some(value) = register(registers, name) else { return false };
            sum = sum.wrapping_add(*value);
        }
    }
    register(registers, instruction.op0_register()).map(|value| *value = sum).is_some()
}

fn copy(instruction: &Instruction, registers: &mut Registers, slot: u32, space: &Space) -> bool {
    let length = match instruction.op0_kind() {
        OpKind::Memory => instruction.memory_size().size(),
        _ => instruction.op0_register().size(),
    };
    let value = match instruction.op1_kind() {
        OpKind::Register => register(registers, instruction.op1_register()).map(|value| *value),
        OpKind::Memory if instruction.memory_base() == Register::RSP => {
            let at = Address(registers.rsp).plus(instruction.memory_displacement64());
            ptrace::read_u64(space.process, at)
        }
        // What the program has named: nothing may be there.
        OpKind::Memory if instruction.memory_base() == Register::RCX => {
            let mut bytes = [0; 8];
            ptrace::read(space.process, Address(registers.rcx), &mut bytes);
            Some(u64::from_le_bytes(bytes))
        }
        OpKind::Memory => in_slot(instruction, registers).map(|place| space.value(slot, place)),
        _ => Some(instruction.immediate(1)),
    };
    let Some(value) = value.filter(|_| length == 4 || length == 8) else { return false };
    let value = if length == 4 { value & u64::from(u32::MAX) } else { value };
    match instruction.op0_kind() {
        OpKind::Register => match register(registers, instruction.op0_register()) {
            Some(place) => *place = value,
            None => return false,
        },
        _ if instruction.memory_base() == Register::R11 => {
            let at = RecordPlace(registers.r11).plus(instruction.memory_displacement64());
            return space.try_write_record(slot, at, &value.to_le_bytes()[..length]);
        }
        // What is cleared has been looked at, and must not be twice: the processor does it.
        _ if instruction.memory_index() != Register::None && value == 0 => return false,
        _ if in_slot(instruction, registers) == Some(slot::CHUNK_DUE) && value == 0 => return false,
        _ => match in_slot(instruction, registers) {
            Some(place) => space.set_value(slot, place, value),
            None => return false,
        },
    }
    true
}

/// `rorx` of the lower halves of registers
fn rotate(instruction: &Instruction, registers: &mut Registers) -> bool {
    let Some(value) = register(registers, instruction.op1_register()).map(|value| *value as u32) else { return false };
    let rotated = value.rotate_right(instruction.immediate(2) as u32);
    register(registers, instruction.op0_register()).map(|place| *place = rotated.into()).is_some()
}

/// `movzx` of a register's lowest byte
fn lowest_byte(instruction: &Instruction, registers: &mut Registers) -> bool {
    if instruction.op1_register() != Register::AL {
        return false;
    }
    let byte = registers.rax & 0xff;
    register(registers, instruction.op0_register()).map(|place| *place = byte).is_some()
}

/// `xchg` of a register with a place in the slot.
fn exchange(instruction: &Instruction, registers: &mut Registers, slot: u32, space: &Space) -> bool {
    let names = [instruction.op0_register(), instruction.op1_register()];
    let name = names.into_iter().find(|name| *name != Register::None);
    let (Some(place), Some(value)) = (in_slot(instruction, registers), name.and_then(|name| register(registers, name)))
    else {
        return false;
    };
    let before = space.value(slot, place);
    space.set_value(slot, place, *value);
    *value = before;
    true
}

/// The place in the slot that the memory operand names, if it is in the slot: with a number in rax, or without.
fn in_slot(instruction: &Instruction, registers: &Registers) -> Option<u32> {
    let index = match (instruction.memory_base(), instruction.memory_index()) {
        (Register::None, Register::None) => 0,
        (Register::None, Register::RAX) if registers.rax < u64::from(slot::DUE_ENTRIES) => registers.rax as u32,
        _ => return None,
    };
    let scaled = index * instruction.memory_index_scale();
    (instruction.segment_prefix() == Register::GS).then(|| instruction.memory_displacement64() as u32 + scaled)
}

/// Registers that expansions name.
fn register(registers: &mut Registers, name: Register) -> Option<&mut u64> {
    Some(match name.full_register() {
        Register::RAX => &mut registers.rax,
        Register::RBX => &mut registers.rbx,
        Register::RCX => &mut registers.rcx,
        Register::RDX => &mut registers.rdx,
        Register::RSI => &mut registers.rsi,
        Register::RDI => &mut registers.rdi,
        Register::RBP => &mut registers.rbp,
        Register::RSP => &mut registers.rsp,
        Register::R8 => &mut registers.r8,
        Register::R9 => &mut registers.r9,
        Register::R10 => &mut registers.r10,
        Register::R11 => &mut registers.r11,
        Register::R12 => &mut registers.r12,
        Register::R13 => &mut registers.r13,
        Register::R14 => &mut registers.r14,
        Register::R15 => &mut registers.r15,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_general_register_has_its_place() {
        let mut registers = ptrace::no_registers();
        for number in 0..16u32 {
            *register(&mut registers, Register::RAX + number).unwrap() = number as u64 + 1;
        }
        assert_eq!((registers.rax, registers.rsp, registers.r15), (1, 5, 16));
        assert_eq!(register(&mut registers, Register::EDX).copied(), Some(3));
        assert!(register(&mut registers, Register::XMM0).is_none());
    }
}
