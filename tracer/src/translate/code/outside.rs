//! Instructions that cannot run in the cache.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

/// Whether the instruction with these bytes cannot run in the cache.
#[must_use]
pub fn must_run_outside(pc: u64, bytes: &[u8]) -> bool {
    runs_outside(&Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode())
}

/// Whether the instruction cannot run in the cache: it raises a signal itself, shows or changes what is ours, or is not
/// known.
#[must_use]
pub fn runs_outside(instruction: &Instruction) -> bool {
    let uses_gs = instruction.segment_prefix() == Register::GS
        // The base of fs is known to us, for memory operands that are relative to it.
        || matches!(instruction.mnemonic(), Mnemonic::Rdgsbase | Mnemonic::Wrgsbase | Mnemonic::Wrfsbase | Mnemonic::Swapgs)
        || instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && matches!(
                instruction.op0_register(),
                Register::GS | Register::SS | Register::DS | Register::ES | Register::CS
            );
    let odd_operand = instruction.memory_base() == Register::EIP;
    let far = matches!(
        instruction.code(),
        Code::Iretd | Code::Iretq | Code::Iretw | Code::Retfq | Code::Retfd | Code::Retfw | Code::Retfw_imm16 | Code::Retfd_imm16
            | Code::Retfq_imm16 | Code::Jmp_m1616 | Code::Jmp_m1632 | Code::Jmp_m1664 | Code::Call_m1616 | Code::Call_m1632
            | Code::Call_m1664
            // operand-size prefixes on transfers: two processor makers disagree on what they do
            | Code::Retnw | Code::Retnw_imm16 | Code::Jmp_rm16 | Code::Call_rm16 | Code::Jmp_rel16 | Code::Call_rel16
            | Code::Jmp_rel8_16 | Code::Sysenter
    );
    let raises = matches!(instruction.mnemonic(), Mnemonic::Int3 | Mnemonic::Int1 | Mnemonic::Int);
    instruction.is_invalid() || uses_gs || odd_operand || far || raises
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_raises_a_signal_or_shows_gs_runs_outside() {
        for (bytes, text) in [
            (&[0xcc][..], "int3"),
            (&[0x65, 0x8b, 0x04, 0x25, 0, 0, 0, 0], "mov eax, gs:[0]"),
            (&[0xf3, 0x0f, 0xae, 0xc8], "rdgsbase eax"),
            (&[0x48, 0xcf], "iretq"),
            (&[0x06], "no instruction"),
        ] {
            assert!(must_run_outside(0x1000, bytes), "{text}");
        }
        for (bytes, text) in
            [(&[0x90][..], "nop"), (&[0x64, 0x8b, 0x04, 0x25, 0, 0, 0, 0], "mov eax, fs:[0]"), (&[0xc3], "ret")]
        {
            assert!(!must_run_outside(0x1000, bytes), "{text}");
        }
    }
}
