//! Decodes code bytes into what the trace says about an instruction.

use iced_x86::{Code, Decoder, DecoderOptions, InstructionInfoFactory, Register, UsedMemory};
use machine::x86_64;
use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::kernel::ptrace::Registers;

/// The most bytes an instruction has.
pub const MAX_LENGTH: usize = 15;

/// What an engine has to know about an instruction, besides what the trace says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Nothing.
    Ordinary,
    /// A string instruction with a `rep` prefix: it stops once per iteration, at its own address until it is done.
    RepString,
    /// `syscall`.
    Syscall,
    /// `pushf`: it shows the processor's single-step flag to the program.
    PushFlags,
    /// `int3` or `int1`: it raises SIGTRAP itself.
    Breakpoint,
    /// Code that could not be read or is unknown: its effect is learned by running it.
    Unknown,
}

/// A decoded instruction.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// What the trace says about it.
    pub instruction: Instruction,
    /// Its bytes; those behind its length are zero.
    pub bytes: [u8; MAX_LENGTH],
    /// What the engine has to know of it.
    pub class: Class,
    /// Its memory operands, where they are recorded.
    pub memory: Box<[UsedMemory]>,
}

impl Decoded {
    /// The bytes of it alone.
    #[must_use]
    pub fn code(&self) -> &[u8] {
        &self.bytes[..usize::from(self.instruction.len)]
    }

    /// Whether a block ends after it.
    #[must_use]
    pub fn ends_block(&self) -> bool {
        self.instruction.kind.transfers_control() || self.instruction.kind == Kind::Syscall
    }

    /// An instruction about which only its address is known.
    #[must_use]
    pub fn unknown(pc: Pc) -> Decoded {
        let instruction = Instruction { pc, len: 0, kind: Kind::IndirectJump, sp: SpEffect::Recorded, memory: 0 };
        Decoded { instruction, bytes: [0; MAX_LENGTH], class: Class::Unknown, memory: Box::default() }
    }

    /// The addresses of its memory operands, from the registers before it runs.
    pub fn addresses(&self, registers: &Registers) -> impl Iterator<Item = u64> {
        self.memory.iter().map(|operand| address(operand, registers))
    }
}

/// Decodes instructions.
pub struct InstructionDecoder {
    factory: InstructionInfoFactory,
    memory: bool,
}

impl InstructionDecoder {
    /// A decoder; `memory` tells whether memory operands are wanted of all instructions.
    #[must_use]
    pub fn new(memory: bool) -> InstructionDecoder {
        InstructionDecoder { factory: InstructionInfoFactory::new(), memory }
    }

    /// Decodes the instruction at `pc`, which starts with these bytes (15, or fewer at the end of readable memory);
    /// `atomics` tells whether its memory operands are wanted if it is atomic.
    pub fn decode(&mut self, pc: Pc, bytes: &[u8], atomics: bool) -> Decoded {
        let bytes = &bytes[..bytes.len().min(MAX_LENGTH)];
        let decoded = Decoder::with_ip(64, bytes, pc.0, DecoderOptions::NONE).decode();
        if decoded.is_invalid() {
            return Decoded::unknown(pc);
        }
        let memory: Box<[UsedMemory]> = if self.memory || atomics && x86_64::is_atomic(&decoded) {
            let used = self.factory.info(&decoded).used_memory();
            used.iter().filter(|operand| x86_64::has_address(operand)).copied().collect()
        } else {
            Box::default()
        };
        let mut code = [0; MAX_LENGTH];
        code[..decoded.len()].copy_from_slice(&bytes[..decoded.len()]);
        Decoded {
            instruction: Instruction { memory: memory.len() as u8, ..x86_64::recorded(&decoded, &mut self.factory) },
            bytes: code,
            class: class(&decoded),
            memory,
        }
    }
}

fn class(instruction: &iced_x86::Instruction) -> Class {
    match instruction.code() {
        Code::Syscall => Class::Syscall,
        Code::Int3 | Code::Int1 => Class::Breakpoint,
        Code::Pushfq | Code::Pushfw => Class::PushFlags,
        _ if instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix()) =>
        {
            Class::RepString
        }
        _ => Class::Ordinary,
    }
}

/// The address of an operand, from the registers before its instruction runs.
pub fn address(operand: &UsedMemory, registers: &Registers) -> u64 {
    operand.try_virtual_address(0, |register, _, _| Some(value(register, registers))).unwrap_or(0)
}

fn value(register: Register, registers: &Registers) -> u64 {
    let full = match register.full_register() {
        Register::RAX => registers.rax,
        Register::RCX => registers.rcx,
        Register::RDX => registers.rdx,
        Register::RBX => registers.rbx,
        Register::RSP => registers.rsp,
        Register::RBP => registers.rbp,
        Register::RSI => registers.rsi,
        Register::RDI => registers.rdi,
        Register::R8 => registers.r8,
        Register::R9 => registers.r9,
        Register::R10 => registers.r10,
        Register::R11 => registers.r11,
        Register::R12 => registers.r12,
        Register::R13 => registers.r13,
        Register::R14 => registers.r14,
        Register::R15 => registers.r15,
        Register::RIP => registers.rip,
        Register::FS => registers.fs_base,
        Register::GS => registers.gs_base,
        _ => 0, // the other segments start at 0
    };
    match register {
        Register::AL => full & 0xff, // the index of `xlat`
        _ if register.is_gpr32() => full & 0xffff_ffff,
        _ => full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Decoded {
        InstructionDecoder::new(true).decode(Pc(0x1000), bytes, true)
    }

    #[test]
    fn only_string_instructions_repeat() {
        assert_eq!(decode(&[0xf3, 0xa4]).class, Class::RepString, "rep movsb");
        assert_eq!(decode(&[0xf2, 0xae]).class, Class::RepString, "repne scasb");
        assert_eq!(decode(&[0xa4]).class, Class::Ordinary, "movsb");
        assert_eq!(decode(&[0xf3, 0xc3]).class, Class::Ordinary, "rep ret");
        assert_eq!(decode(&[0xf3, 0x0f, 0xb8, 0xc0]).class, Class::Ordinary, "popcnt");
        assert_eq!(decode(&[0xf2, 0xff, 0x25, 0, 0, 0, 0]).class, Class::Ordinary, "bnd jmp");
        // movsd xmm0, [rax] shares its name, not its meaning, with the string instruction
        assert_eq!(decode(&[0xf2, 0x0f, 0x10, 0x00]).class, Class::Ordinary, "movsd");
    }

    #[test]
    fn memory_addresses_come_from_the_registers_before() {
        let mut registers = crate::kernel::ptrace::no_registers();
        (registers.rsp, registers.rax, registers.rcx, registers.fs_base) = (0x8000, 0x100, 3, 0x7000);
        let addresses = |bytes: &[u8]| decode(bytes).addresses(&registers).collect::<Vec<_>>();
        assert_eq!(addresses(&[0x50]), [0x7ff8], "push rax");
        assert_eq!(addresses(&[0xc3]), [0x8000], "ret");
        assert_eq!(addresses(&[0x8b, 0x44, 0x88, 0x04]), [0x110], "mov eax, [rax+rcx*4+4]");
        assert_eq!(addresses(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]), [0x7028], "mov rax, fs:[0x28]");
        assert_eq!(addresses(&[0x8b, 0x05, 0x10, 0, 0, 0]), [0x1016], "mov eax, [rip+0x10]");
        assert!(addresses(&[0x48, 0x8d, 0x04, 0x24]).is_empty(), "lea rax, [rsp]");
    }

    #[test]
    fn bytes_that_are_no_instruction_are_unknown() {
        assert_eq!(decode(&[0x06]).class, Class::Unknown);
        assert_eq!(decode(&[]).class, Class::Unknown);
        assert_eq!(decode(&[0x48]).class, Class::Unknown, "cut off");
    }
}
