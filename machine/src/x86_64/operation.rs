//! What instructions are called.

use iced_x86::{Instruction, Mnemonic as M};

use crate::Operation;

pub(super) fn of(decoded: &Instruction) -> Operation {
    match decoded.mnemonic() {
        mnemonic if moves(mnemonic) => Operation::Move,
        M::Movzx | M::Movsx | M::Movsxd | M::Cbw | M::Cwde | M::Cdqe => Operation::Extend,
        M::Lea => Operation::Address,
        M::Push => Operation::Push,
        M::Pop => Operation::Pop,
        M::Leave => Operation::Leave,
        M::Add => Operation::Add,
        M::Sub => Operation::Subtract,
        M::And => Operation::And,
        M::Or => Operation::Or,
        M::Xor => Operation::Xor,
        M::Not => Operation::Not,
        M::Neg => Operation::Negate,
        M::Shl => Operation::ShiftLeft,
        M::Div | M::Idiv => Operation::Divide,
        M::Cmp | M::Comisd | M::Comiss => Operation::Compare,
        M::Test => Operation::Test,
        M::Xchg => Operation::Exchange,
        M::Cmpxchg | M::Cmpxchg8b | M::Cmpxchg16b => Operation::CompareExchange,
        M::Xadd => Operation::ExchangeAdd,
        M::Bts => Operation::TestAndSet,
        M::Btr => Operation::TestAndClear,
        M::Rdtsc | M::Rdtscp | M::Rdrand | M::Rdseed | M::Cpuid | M::Rdpid | M::In | M::Xbegin => Operation::Outside,
        M::Syscall => Operation::Syscall,
        M::Nop | M::Int3 => Operation::Nothing,
        M::Sete | M::Setne | M::Setb | M::Setae => Operation::SetIf,
        _ => Operation::Other,
    }
}

/// Whether it moves a value as it is, besides pushes and pops.
pub(super) fn moves(mnemonic: M) -> bool {
    let of_vectors = [
        M::Movapd,
        M::Movaps,
        M::Movd,
        M::Movdqa,
        M::Movdqu,
        M::Movq,
        M::Movsd,
        M::Movss,
        M::Movupd,
        M::Movups,
        M::Vmovapd,
        M::Vmovaps,
        M::Vmovd,
        M::Vmovdqa,
        M::Vmovdqu,
        M::Vmovq,
        M::Vmovsd,
        M::Vmovss,
        M::Vmovupd,
        M::Vmovups,
    ];
    mnemonic == M::Mov || of_vectors.contains(&mnemonic)
}
