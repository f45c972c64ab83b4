//! The code by which signal handlers are entered and left without a stop of ours: see `storms`.

use nix::libc;

use crate::kernel::frames::{CODE_64, FRAME_CS, FRAME_FLAGS, FRAME_MASK, FRAME_PC, FRAME_STACK, STEP_FLAG};
use crate::translate::addresses::CachePc;
use crate::translate::code::assembler::{Assembler, register};
use crate::translate::code::expansions::{Lookup, SYSCALL, take_r11};
use crate::translate::layout::{record, slot};
use crate::translate::remote::VITAL;

/// Where the kernel lets a thread begin to handle a signal: the handler is recorded, and looked up. After the signal's
/// frame, which the kernel has built, all registers are the program's, and the thread's gs points to its slot. Returns
/// where the lookup starts.
pub fn signal_entry(code: &mut Assembler, lookup: &Lookup) -> CachePc {
    take_r11(code);
    for (place, register) in [(slot::RAX, register::RAX), (slot::RCX, register::RCX), (slot::RDX, register::RDX)] {
        code.store_slot(place, register);
    }
    code.store_record_half(4, register::RDI);
    code.store_record(16, register::RSP);
    code.load_slot(register::RCX, slot::HANDLER);
    code.store_record(24, register::RCX);
    code.load_slot(register::RAX, slot::SIGNAL_SP);
    code.store_record(32, register::RAX);
    for (from, to) in [(FRAME_STACK, 40), (FRAME_STACK + 16, 48)] {
        code.raw(&[0x48, 0x8b, 0x44, 0x24, from as u8]); // mov rax, [rsp + from]
        code.store_record(to, register::RAX);
    }
    code.record_time(8);
    code.store_record_word(0, record::SIGNAL);
    code.advance(record::SIGNAL_LEN);
    code.load_slot(register::RDX, slot::RDX);
    code.clear_slot(slot::HANDLER);
    let at = code.here();
    lookup.jump(code);
    at
}

/// Addresses of the way out of signal handlers.
#[derive(Clone, Copy, Debug)]
pub struct ReturnCode {
    /// Where it starts.
    pub entry: CachePc,
    /// The `syscall` instruction. The frame leads to our code there.
    pub call: CachePc,
    /// A trap for returns that are to be looked at.
    pub looked_at: CachePc,
}

/// `rt_sigreturn`, which ends at `left`: the frame's pc is kept in the slot, and `left` put in its place. All registers
/// but rax and rsp are free, and the flags.
pub fn signal_return(code: &mut Assembler, left: CachePc) -> ReturnCode {
    let looked_at = code.trap();
    // A thread that has run into the trap stands behind it.
    code.trap();
    let entry = code.here();
    // The handler's `ret` has taken the first word off the frame.
    let frame = |code: &mut Assembler, at: u64| code.raw(&(at as u32 - 8).to_le_bytes());
    let not_equal = 5;
    code.raw(&[0x48, 0x83, 0xf8, libc::SYS_rt_sigreturn as u8]); // cmp rax, SYS_rt_sigreturn
    code.jump_if(not_equal, looked_at);
    code.load_slot(register::RCX, slot::LOOK_AT_RETURN);
    code.raw(&[0x48, 0x85, 0xc9]); // test rcx, rcx
    code.jump_if(not_equal, looked_at);
    code.raw(&[0x66, 0x83, 0xbc, 0x24]); // cmp word [rsp + CS], CODE_64
    frame(code, FRAME_CS);
    code.raw(&[CODE_64 as u8]);
    code.jump_if(not_equal, looked_at);
    for (at, bits) in [(FRAME_FLAGS, STEP_FLAG), (FRAME_MASK, VITAL)] {
        code.raw(&[0xf7, 0x84, 0x24]); // test dword [rsp + at], bits
        frame(code, at);
        code.raw(&u32::try_from(bits).expect("bits of the lower half").to_le_bytes());
        code.jump_if(not_equal, looked_at);
    }
    code.raw(&[0x48, 0x8b, 0x8c, 0x24]); // mov rcx, [rsp + PC]
    frame(code, FRAME_PC);
    code.store_slot(slot::RETURN_TO, register::RCX);
    code.load_constant(register::RCX, left.0);
    code.raw(&[0x48, 0x89, 0x8c, 0x24]); // mov [rsp + PC], rcx
    frame(code, FRAME_PC);
    let call = code.here();
    code.raw(&SYSCALL);
    code.trap();
    ReturnCode { entry, call, looked_at }
}

/// Where a thread goes on that has returned from a handler: that is recorded, and what comes next is looked up. All
/// registers are the program's. Returns where the lookup starts.
pub fn signal_left(code: &mut Assembler, lookup: &Lookup) -> CachePc {
    take_r11(code);
    code.store_slot(slot::RAX, register::RAX);
    code.store_slot(slot::RCX, register::RCX);
    code.store_record(8, register::RSP);
    code.store_record_word(0, record::RETURN);
    code.advance(record::RETURN_LEN);
    code.load_slot(register::RCX, slot::RETURN_TO);
    let at = code.here();
    lookup.jump(code);
    at
}
