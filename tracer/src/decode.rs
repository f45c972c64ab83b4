//! Decodes code bytes into what the trace says about an instruction.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory, UsedRegister,
};
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
    /// A decoder; `memory` tells whether memory operands are wanted.
    #[must_use]
    pub fn new(memory: bool) -> InstructionDecoder {
        InstructionDecoder { factory: InstructionInfoFactory::new(), memory }
    }

    /// Decodes the instruction at `pc`, which starts with these bytes (15, or fewer at the end of readable memory).
    pub fn decode(&mut self, pc: Pc, bytes: &[u8]) -> Decoded {
        let bytes = &bytes[..bytes.len().min(MAX_LENGTH)];
        let decoded = Decoder::with_ip(64, bytes, pc.0, DecoderOptions::NONE).decode();
        if decoded.is_invalid() {
            return Decoded::unknown(pc);
        }
        let info = self.factory.info(&decoded);
        let sp = sp_effect(&decoded, info.used_registers());
        let memory: Box<[UsedMemory]> = if self.memory {
            info.used_memory().iter().filter(|operand| has_address(operand)).copied().collect()
        } else {
            Box::default()
        };
        let mut code = [0; MAX_LENGTH];
        code[..decoded.len()].copy_from_slice(&bytes[..decoded.len()]);
        Decoded {
            instruction: Instruction {
                pc,
                len: decoded.len() as u8,
                kind: kind(&decoded),
                sp,
                memory: memory.len() as u8,
            },
            bytes: code,
            class: class(&decoded),
            memory,
        }
    }
}

impl InstructionDecoder {
    /// What the trace says about an instruction that is decoded already, when no memory operands are wanted. Most
    /// instructions leave the stack pointer alone, which shows without a look at all that they use.
    pub fn describe(&mut self, decoded: &iced_x86::Instruction) -> Instruction {
        let names_rsp =
            |i| decoded.op_kind(i) == OpKind::Register && decoded.op_register(i).full_register() == Register::RSP;
        let leaves_alone = !decoded.is_stack_instruction() && !(0..decoded.op_count()).any(names_rsp);
        let sp = if leaves_alone {
            SpEffect::Add(0)
        } else {
            usual_sp_effect(decoded).unwrap_or_else(|| sp_effect(decoded, self.factory.info(decoded).used_registers()))
        };
        Instruction { pc: Pc(decoded.ip()), len: decoded.len() as u8, kind: kind(decoded), sp, memory: 0 }
    }
}

fn kind(instruction: &iced_x86::Instruction) -> Kind {
    match instruction.code() {
        Code::Syscall | Code::Sysenter => return Kind::Syscall,
        Code::Int_imm8 if instruction.immediate8() == 0x80 => return Kind::Syscall,
        Code::Pause => return Kind::Pause,
        Code::Xbegin_rel16 | Code::Xbegin_rel32 => return Kind::Branch,
        _ => {}
    }
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend => {
            Kind::Plain
        }
        FlowControl::ConditionalBranch => Kind::Branch,
        FlowControl::UnconditionalBranch => Kind::Jump,
        FlowControl::IndirectBranch => Kind::IndirectJump,
        FlowControl::Call => Kind::Call,
        FlowControl::IndirectCall => Kind::IndirectCall,
        FlowControl::Return => Kind::Return,
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

/// The same as [`sp_effect`], for the instructions that mostly change the stack pointer: they do so whatever their
/// operands are.
fn usual_sp_effect(instruction: &iced_x86::Instruction) -> Option<SpEffect> {
    match instruction.mnemonic() {
        Mnemonic::Push | Mnemonic::Call | Mnemonic::Ret => Some(SpEffect::Add(instruction.stack_pointer_increment())),
        Mnemonic::Pop if instruction.op0_register().full_register() != Register::RSP => {
            Some(SpEffect::Add(instruction.stack_pointer_increment()))
        }
        Mnemonic::Add if instruction.op0_register() == Register::RSP => constant(instruction).map(SpEffect::Add),
        Mnemonic::Sub if instruction.op0_register() == Register::RSP => {
            constant(instruction).and_then(i32::checked_neg).map(SpEffect::Add)
        }
        _ => None,
    }
}

fn sp_effect(instruction: &iced_x86::Instruction, registers: &[UsedRegister]) -> SpEffect {
    let writes = |access| {
        matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
    };
    let changes =
        registers.iter().any(|used| used.register().full_register() == Register::RSP && writes(used.access()));
    if !changes {
        return SpEffect::Add(0);
    }
    let first_is_rsp = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RSP;
    match instruction.mnemonic() {
        // `pop rsp` loads it; `push rsp` only reads it.
        Mnemonic::Pop if first_is_rsp => SpEffect::Recorded,
        Mnemonic::Leave | Mnemonic::Enter | Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => SpEffect::Recorded,
        _ if instruction.is_stack_instruction() => SpEffect::Add(instruction.stack_pointer_increment()),
        Mnemonic::Add | Mnemonic::Sub if instruction.op0_register() == Register::RSP => match constant(instruction) {
            Some(n) if instruction.mnemonic() == Mnemonic::Add => SpEffect::Add(n),
            Some(n) if n != i32::MIN => SpEffect::Add(-n),
            _ => SpEffect::Recorded,
        },
        Mnemonic::Lea
            if instruction.op0_register() == Register::RSP
                && instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None =>
        {
            match i32::try_from(instruction.memory_displacement64().cast_signed()) {
                Ok(n) => SpEffect::Add(n),
                Err(_) => SpEffect::Recorded,
            }
        }
        _ => SpEffect::Recorded,
    }
}

/// The second operand, if it is a constant.
fn constant(instruction: &iced_x86::Instruction) -> Option<i32> {
    let value = instruction.try_immediate(1).ok()?;
    i32::try_from(value.cast_signed()).ok()
}

/// Whether the operand is accessed, at an address that follows from the general registers.
pub fn has_address(operand: &UsedMemory) -> bool {
    !matches!(operand.access(), OpAccess::None | OpAccess::NoMemAccess) && operand.vsib_size() == 0
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
        InstructionDecoder::new(true).decode(Pc(0x1000), bytes)
    }

    #[test]
    fn stack_effects_are_constant_where_the_code_says_so() {
        for (bytes, effect, text) in [
            (&[0x55][..], SpEffect::Add(-8), "push rbp"),
            (&[0x54], SpEffect::Add(-8), "push rsp"),
            (&[0x5d], SpEffect::Add(8), "pop rbp"),
            (&[0x5c], SpEffect::Recorded, "pop rsp"),
            (&[0xc9], SpEffect::Recorded, "leave"),
            (&[0xc3], SpEffect::Add(8), "ret"),
            (&[0xc2, 0x10, 0x00], SpEffect::Add(24), "ret 16"),
            (&[0xe8, 0, 0, 0, 0], SpEffect::Add(-8), "call"),
            (&[0x48, 0x83, 0xec, 0x18], SpEffect::Add(-24), "sub rsp, 24"),
            (&[0x48, 0x83, 0xc4, 0x80], SpEffect::Add(-128), "add rsp, -128"),
            (&[0x48, 0x83, 0xe4, 0xf0], SpEffect::Recorded, "and rsp, -16"),
            (&[0x48, 0x29, 0xc4], SpEffect::Recorded, "sub rsp, rax"),
            (&[0x83, 0xec, 0x18], SpEffect::Recorded, "sub esp, 24"),
            (&[0x48, 0x8d, 0x64, 0x24, 0xf8], SpEffect::Add(-8), "lea rsp, [rsp-8]"),
            (&[0x48, 0x8d, 0x65, 0xd8], SpEffect::Recorded, "lea rsp, [rbp-40]"),
            (&[0x48, 0x89, 0xec], SpEffect::Recorded, "mov rsp, rbp"),
            (&[0x48, 0x89, 0xe5], SpEffect::Add(0), "mov rbp, rsp"),
            (&[0x9c], SpEffect::Add(-8), "pushfq"),
            (&[0x0f, 0x05], SpEffect::Add(0), "syscall"),
        ] {
            assert_eq!(decode(bytes).instruction.sp, effect, "{text}");
            let decoded = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
            assert_eq!(InstructionDecoder::new(false).describe(&decoded).sp, effect, "{text}, at a glance");
        }
    }

    #[test]
    fn kinds_follow_the_control_flow() {
        for (bytes, kind, text) in [
            (&[0x90][..], Kind::Plain, "nop"),
            (&[0xf3, 0x90], Kind::Pause, "pause"),
            (&[0x0f, 0x05], Kind::Syscall, "syscall"),
            (&[0xcd, 0x80], Kind::Syscall, "int 0x80"),
            (&[0x74, 0x00], Kind::Branch, "je"),
            (&[0xe2, 0xfe], Kind::Branch, "loop"),
            (&[0xeb, 0xfe], Kind::Jump, "jmp"),
            (&[0xff, 0xe0], Kind::IndirectJump, "jmp rax"),
            (&[0xe8, 0, 0, 0, 0], Kind::Call, "call"),
            (&[0xff, 0xd0], Kind::IndirectCall, "call rax"),
            (&[0xc3], Kind::Return, "ret"),
            (&[0xf3, 0xc3], Kind::Return, "rep ret"),
            (&[0xcc], Kind::Plain, "int3"),
        ] {
            assert_eq!(decode(bytes).instruction.kind, kind, "{text}");
        }
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
