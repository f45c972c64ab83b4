//! What iced-x86 says.

use iced_x86::{Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, OpAccess, OpKind, Register};
use trace_format::{Instruction, Kind, SpEffect};

use crate::opinion::{Access, Operand, Opinion};

/// The decoder that the tracer believes.
#[derive(Debug)]
pub struct ByIced {
    factory: InstructionInfoFactory,
}

impl Default for ByIced {
    fn default() -> ByIced {
        ByIced { factory: InstructionInfoFactory::new() }
    }
}

impl ByIced {
    /// Decodes the instruction at `pc` that these bytes begin with; none if they are not an instruction. `recorded` is
    /// what the trace says about it: its kind and change of the stack pointer replace those that follow from the bytes.
    pub fn opinion(&mut self, pc: u64, code: &[u8], recorded: Option<&Instruction>) -> Option<Opinion> {
        let decoded = Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode();
        if decoded.is_invalid() {
            return None;
        }
        let info = self.factory.info(&decoded);
        let mut memory = Vec::new();
        for number in 0..decoded.op_count() {
            let access = match info.op_access(number) {
                OpAccess::Read | OpAccess::CondRead => Access { reads: true, writes: false },
                OpAccess::Write | OpAccess::CondWrite => Access { reads: false, writes: true },
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => Access { reads: true, writes: true },
                OpAccess::None | OpAccess::NoMemAccess => continue,
            };
            memory.extend(operand(&decoded, number, access));
        }
        memory.sort();
        let target = decoded.near_branch_target();
        Some(Opinion {
            mnemonic: format!("{:?}", decoded.mnemonic()).to_lowercase(),
            len: decoded.len(),
            kind: recorded.map_or_else(|| kind(decoded.flow_control()), |recorded| recorded.kind),
            target: (decoded.op_count() > 0 && is_near(decoded.op0_kind())).then_some(target),
            memory,
            sp: recorded.map_or(SpEffect::Recorded, |recorded| recorded.sp),
            extensions: decoded.cpuid_features().iter().map(|extension| format!("{extension:?}")).collect(),
        })
    }
}

fn is_near(kind: OpKind) -> bool {
    matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

fn kind(flow: FlowControl) -> Kind {
    match flow {
        FlowControl::ConditionalBranch => Kind::Branch,
        FlowControl::UnconditionalBranch => Kind::Jump,
        FlowControl::IndirectBranch => Kind::IndirectJump,
        FlowControl::Call => Kind::Call,
        FlowControl::IndirectCall => Kind::IndirectCall,
        FlowControl::Return => Kind::Return,
        _ => Kind::Plain,
    }
}

fn name(register: Register) -> Option<String> {
    (register != Register::None).then(|| format!("{register:?}").to_lowercase())
}

fn operand(decoded: &iced_x86::Instruction, number: u32, access: Access) -> Option<Operand> {
    let size = decoded.memory_size().size() as u32;
    let segment = name(decoded.memory_segment()).filter(|name| name == "fs" || name == "gs");
    let implicit = |base: &str, segment: Option<String>| {
        Some(Operand { segment, base: Some(base.to_owned()), index: None, displacement: 0, size, access })
    };
    match decoded.op_kind(number) {
        OpKind::Memory => {}
        OpKind::MemorySegRSI => return implicit("rsi", segment),
        OpKind::MemorySegESI => return implicit("esi", segment),
        OpKind::MemorySegRDI => return implicit("rdi", segment),
        OpKind::MemorySegEDI => return implicit("edi", segment),
        OpKind::MemoryESRDI => return implicit("rdi", None),
        OpKind::MemoryESEDI => return implicit("edi", None),
        _ => return None,
    }
    let base = name(decoded.memory_base());
    let displacement = decoded.memory_displacement64().cast_signed();
    let displacement = match decoded.memory_base() {
        Register::RIP => displacement.wrapping_sub(decoded.next_ip().cast_signed()),
        Register::EIP => i64::from((displacement as u32).wrapping_sub(decoded.next_ip() as u32).cast_signed()),
        _ => displacement,
    };
    let index = name(decoded.memory_index()).map(|index| (index, decoded.memory_index_scale()));
    Some(Operand { segment, base, index, displacement, size, access })
}
