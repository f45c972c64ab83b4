//! How many instructions a GPU needs for one of the processor's.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess, OpKind};

/// The operations of the instruction with these bytes: one, and one more for each access to memory besides another
/// operation. GPUs load and store with instructions of their own, so `add [m], r` is three there. One where its bytes
/// are not known.
pub(crate) fn operations(bytes: &[u8]) -> u32 {
    if bytes.is_empty() {
        return 1;
    }
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let has_memory = (0..instruction.op_count()).any(|i| instruction.op_kind(i) == OpKind::Memory);
    if !has_memory || moves(instruction.mnemonic()) {
        return 1;
    }
    let mut factory = InstructionInfoFactory::new();
    let accesses = factory.info(&instruction).used_memory().iter().map(|memory| match memory.access() {
        OpAccess::Read | OpAccess::CondRead | OpAccess::Write | OpAccess::CondWrite => 1,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => 2,
        _ => 0,
    });
    1 + accesses.sum::<u32>()
}

/// Whether it does nothing with what is in memory, besides making it wider.
fn moves(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Lea, Mov, Movapd, Movaps, Movd, Movdqa, Movdqu, Movq, Movsd, Movss, Movsx, Movsxd, Movupd, Movups, Movzx,
        Vmovapd, Vmovaps, Vmovd, Vmovdqa, Vmovdqu, Vmovq, Vmovsd, Vmovss, Vmovupd, Vmovups,
    };
    matches!(
        mnemonic,
        Lea | Mov
            | Movapd
            | Movaps
            | Movd
            | Movdqa
            | Movdqu
            | Movq
            | Movsd
            | Movss
            | Movsx
            | Movsxd
            | Movupd
            | Movups
            | Movzx
            | Vmovapd
            | Vmovaps
            | Vmovd
            | Vmovdqa
            | Vmovdqu
            | Vmovq
            | Vmovsd
            | Vmovss
            | Vmovupd
            | Vmovups
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_computes_in_memory_is_several() {
        // add eax, ecx; mov eax, [rdi]; lea eax, [rdi+1]; add eax, [rdi]; add [rdi], eax; cmp [rdi], eax; mov [rdi],
        // eax.
        let all: [&[u8]; 7] = [&[1, 0xC8], &[0x8B, 7], &[0x8D, 0x47, 1], &[3, 7], &[1, 7], &[0x39, 7], &[0x89, 7]];
        assert_eq!(all.map(operations), [1, 1, 1, 2, 3, 2, 1]);
        assert_eq!(operations(&[]), 1);
    }
}
