//! The code of x86-64, by iced-x86.

pub(crate) mod gpu_code;
mod gpu_costs;
pub(crate) mod instruction;
mod operation;
mod step;
pub mod stub;
pub(crate) mod syntax;
pub(crate) mod table;
mod x87;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, RflagsBits,
    UsedMemory,
};
use trace_format::{Instruction, Kind, Pc, SpEffect};

use crate::{Access, Register, RegisterPart, Registers};

pub use x87::Stack;

/// The instruction at `pc` that these bytes begin with; none if they are not one.
fn decode(pc: Pc, bytes: &[u8]) -> Option<iced_x86::Instruction> {
    let decoded = Decoder::with_ip(64, bytes, pc.0, DecoderOptions::NONE).decode();
    (!decoded.is_invalid()).then_some(decoded)
}

/// What a trace with addresses says about the instruction at `pc` that these bytes begin with; none if they are not
/// one.
#[must_use]
pub fn instruction_of(pc: Pc, bytes: &[u8]) -> Option<Instruction> {
    let mut factory = InstructionInfoFactory::new();
    let decoded = decode(pc, bytes)?;
    let recorded = recorded(&decoded, &mut factory);
    let memory = factory.info(&decoded).used_memory().iter().filter(|operand| has_address(operand)).count();
    Some(Instruction { memory: memory as u8, ..recorded })
}

/// Where the instruction at `pc` of exactly these bytes leads, if it is a jump, a branch or a call to a constant place.
#[must_use]
pub fn target(pc: Pc, bytes: &[u8]) -> Option<Pc> {
    decode(pc, bytes).filter(|decoded| decoded.len() == bytes.len()).and_then(|decoded| target_of(&decoded))
}

fn target_of(decoded: &iced_x86::Instruction) -> Option<Pc> {
    let is_near = |kind| matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    (decoded.op_count() > 0 && is_near(decoded.op0_kind())).then(|| Pc(decoded.near_branch_target()))
}

/// What a trace says about an instruction when no memory operands are wanted.
pub fn recorded(decoded: &iced_x86::Instruction, factory: &mut InstructionInfoFactory) -> Instruction {
    let writes_sp = || {
        let mut used = factory.info(decoded).used_registers().iter();
        used.any(|used| is_sp(used.register()) && access(used.access()).writes)
    };
    let sp = sp_effect(decoded, writes_sp);
    Instruction { pc: Pc(decoded.ip()), len: decoded.len() as u8, kind: kind(decoded), sp, memory: 0 }
}

/// What an instruction is to control flow.
#[must_use]
pub fn kind(decoded: &iced_x86::Instruction) -> Kind {
    match decoded.code() {
        Code::Syscall | Code::Sysenter => return Kind::Syscall,
        Code::Int_imm8 if decoded.immediate8() == 0x80 => return Kind::Syscall,
        Code::Pause => return Kind::Pause,
        Code::Xbegin_rel16 | Code::Xbegin_rel32 => return Kind::Branch,
        _ => {}
    }
    match decoded.flow_control() {
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

/// What an instruction does to the stack pointer; `writes_sp` tells whether it writes it, where that does not show in
/// the instruction's name.
fn sp_effect(decoded: &iced_x86::Instruction, writes_sp: impl FnOnce() -> bool) -> SpEffect {
    let rsp = iced_x86::Register::RSP;
    let first = decoded.op0_register();
    let constant = || i32::try_from(decoded.try_immediate(1).ok()?.cast_signed()).ok();
    let named = match decoded.mnemonic() {
        // `pop rsp` loads it; `push rsp` only reads it.
        Mnemonic::Pop if is_sp(first) => return SpEffect::Recorded,
        Mnemonic::Leave | Mnemonic::Enter | Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq => {
            return SpEffect::Recorded;
        }
        _ if decoded.is_stack_instruction() => Some(decoded.stack_pointer_increment()),
        Mnemonic::Add if first == rsp => constant(),
        Mnemonic::Sub if first == rsp => constant().and_then(i32::checked_neg),
        Mnemonic::Lea
            if first == rsp && decoded.memory_base() == rsp && decoded.memory_index() == iced_x86::Register::None =>
        {
            i32::try_from(decoded.memory_displacement64().cast_signed()).ok()
        }
        _ => None,
    };
    let names = |i| decoded.op_kind(i) == OpKind::Register && is_sp(decoded.op_register(i));
    match named {
        Some(by) => SpEffect::Add(by),
        None if (0..decoded.op_count()).any(names) && writes_sp() => SpEffect::Recorded,
        None => SpEffect::Add(0),
    }
}

fn is_sp(register: iced_x86::Register) -> bool {
    register.full_register() == iced_x86::Register::RSP
}

/// Whether the operand is accessed, at an address that follows from the general registers.
#[must_use]
pub fn has_address(operand: &UsedMemory) -> bool {
    !matches!(operand.access(), OpAccess::None | OpAccess::NoMemAccess) && operand.vsib_size() == 0
}

/// Whether no other thread sees memory between what the instruction reads and what it writes. Traces have the
/// addresses of the program's such, asked for or not: they tell the locks of its own.
#[must_use]
pub fn is_atomic(instruction: &iced_x86::Instruction) -> bool {
    let is_memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
    instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg && (0..2).any(is_memory)
}

fn access(access: OpAccess) -> Access {
    let (reads, writes, may_keep) = match access {
        OpAccess::Read | OpAccess::CondRead => (true, false, false),
        OpAccess::Write => (false, true, false),
        OpAccess::CondWrite => (false, true, true),
        OpAccess::ReadWrite => (true, true, false),
        OpAccess::ReadCondWrite => (true, true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false, false),
    };
    Access { reads, writes, may_keep }
}

fn part(register: iced_x86::Register) -> Option<RegisterPart> {
    use iced_x86::Register as R;
    let full = register.full_register();
    let from = |first: Register| Register(first.0 + full.number() as u8);
    let whole = match () {
        () if register == R::None => return None,
        () if full.is_gpr64() => from(Register::AX),
        () if full.is_vector_register() => from(Register::VECTORS),
        () if full.is_k() => from(Register::MASKS),
        () if full.is_st() => from(Register::X87),
        () if full.is_mm() => from(Register::MMX),
        () if full.is_ip() => Register::POINTERS,
        () if full.is_segment_register() => from(Register(Register::POINTERS.0 + 1)),
        () => Register::OTHER,
    };
    let is_high = matches!(register, R::AH | R::BH | R::CH | R::DH);
    Some(RegisterPart { register: whole, size: register.size() as u8, is_high })
}

/// The name of a part of a register, as the processor's manuals have it.
#[must_use]
pub fn name(part: RegisterPart) -> String {
    let number = part.register.0;
    let old = ["ax", "cx", "dx", "bx", "sp", "bp", "si", "di"].get(usize::from(number));
    match (old, part.size) {
        (Some(old), 8) => format!("r{old}"),
        (Some(old), 4) => format!("e{old}"),
        (Some(old), 2) => (*old).to_owned(),
        (Some(old), _) if number < 4 => format!("{}{}", &old[..1], if part.is_high { 'h' } else { 'l' }),
        (Some(old), _) => format!("{old}l"),
        (None, size) if part.register.is_general() => {
            format!(
                "r{number}{}",
                match size {
                    8 => "",
                    4 => "d",
                    2 => "w",
                    _ => "l",
                }
            )
        }
        (None, size) if part.register < Register::FLAGS => {
            format!(
                "{}mm{}",
                match size {
                    16 => 'x',
                    32 => 'y',
                    _ => 'z',
                },
                number - Register::VECTORS.0
            )
        }
        (None, size) if part.register == Register::POINTERS => if size == 4 { "eip" } else { "rip" }.to_owned(),
        _ => format!("register {number}"),
    }
}

/// The flags with these bits in the decoder's terms.
fn flags(bits: u32) -> Registers {
    const ALL: [u32; 7] = [
        RflagsBits::CF,
        RflagsBits::PF,
        RflagsBits::AF,
        RflagsBits::ZF,
        RflagsBits::SF,
        RflagsBits::OF,
        RflagsBits::DF,
    ];
    let one = |number: usize| 1 << (Register::FLAGS.index() + number);
    let known = ALL.iter().enumerate().filter(|(_, flag)| bits & **flag != 0);
    let others = if bits & !ALL.iter().fold(0, |all, flag| all | flag) != 0 { one(ALL.len()) } else { 0 };
    known.fold(others, |all, (number, _)| all | one(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn branches_are_opposite_where_exactly_one_of_them_is_taken() {
        let table = |bytes: &[u8]| Table::first(Pc(0x1000), bytes);
        let is_opposite = |one: &[u8], other: &[u8]| {
            let (one, other) = (table(one), table(other));
            let [one, other] = [&one, &other].map(|table| table.listing(0..1).iter().next().unwrap().unwrap());
            one.is_opposite(other)
        };
        // je, jne, jbe, ja, jmp, ja near
        assert!(is_opposite(&[0x74, 0], &[0x75, 0]) && is_opposite(&[0x76, 0], &[0x77, 0]));
        assert!(is_opposite(&[0x76, 0], &[0x0f, 0x87, 0, 0, 0, 0]));
        assert!(!is_opposite(&[0x74, 0], &[0x76, 0]) && !is_opposite(&[0x74, 0], &[0x74, 0]));
        assert!(!is_opposite(&[0xeb, 0], &[0xeb, 0]));
    }

    #[test]
    fn what_works_on_one_number_in_a_vector_register_is_not_of_vectors() {
        for (bytes, is_it, text) in [
            (&[0x66, 0x0f, 0xc5, 0xc3, 0x02][..], true, "pextrw eax, xmm3, 2"),
            (&[0x66, 0x0f, 0x76, 0xc1], true, "pcmpeqd xmm0, xmm1"),
            (&[0x0f, 0x58, 0xc1], true, "addps xmm0, xmm1"),
            (&[0xf3, 0x0f, 0x58, 0xc1], false, "addss xmm0, xmm1"),
            (&[0x55], false, "push rbp"),
            (&[0x8b, 0x07], false, "mov eax, [rdi]"),
        ] {
            let table = Table::first(Pc(0x1000), bytes);
            let instruction = table.listing(0..1).iter().next().unwrap().unwrap();
            assert_eq!(instruction.is_of_vectors(), is_it, "{text}");
        }
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
            assert_eq!(instruction_of(Pc(0x1000), bytes).map(|i| i.sp), Some(effect), "{text}");
            let table = Table::first(Pc(0x1000), bytes);
            assert_eq!(table.all().get(0).map(|i| i.sp()), Some(effect), "{text}, in a table");
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
            assert_eq!(instruction_of(Pc(0x1000), bytes).map(|i| i.kind), Some(kind), "{text}");
        }
    }

    #[test]
    fn parts_of_registers_have_the_names_of_the_manuals() {
        use iced_x86::Register as R;
        let all = [R::AL, R::AH, R::BPL, R::SI, R::EDI, R::RSP, R::R8L, R::R9W, R::R10D, R::R15, R::XMM3, R::YMM20];
        for register in all.into_iter().chain([R::ZMM31, R::RIP, R::EIP]) {
            assert_eq!(part(register).map(name), Some(format!("{register:?}").to_lowercase()));
        }
    }
}
