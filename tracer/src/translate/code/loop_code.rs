//! The code around calls by which threads get iterations of a loop. The numbers lie in memory when such a call returns,
//! and the next call overwrites them, so the program's own code reads them. In the same way it reads, where tasks are
//! made and where they run, what tells them apart.

use crate::images::loop_calls::{LoopCall, Place};
use crate::images::task_calls::Words;
use crate::translate::addresses::ProgramPc;
use crate::translate::code::assembler::{Assembler, JRCXZ, register};
use crate::translate::layout::{record, slot};

/// `mov rcx, [rcx]`, which alone reads what the program has named, and may fault: a number of 4 bytes at the end of
/// what is mapped, or an address that is none.
pub const READ: [u8; 3] = [0x48, 0x8b, 0x09];

/// At the first instruction of such a function: notes where the numbers will be. rax and rcx are free, and the
/// program's rcx is in the slot.
pub fn note_chunk(code: &mut Assembler, call: LoopCall) {
    let places = [call.lower, call.upper, call.third.unwrap_or(call.lower)];
    let at = (slot::CHUNK_AT..).step_by(8);
    for (place, to) in places.into_iter().zip(at).chain(call.step.map(|step| (step, slot::CHUNK_STEP))) {
        match place {
            Place::Register(3) => code.load_slot(register::RCX, slot::RCX),
            Place::Register(number) => {
                code.copy(register::RCX, register::ARGUMENTS[usize::from(number)]);
            }
            Place::Stack(offset) => code.raw(&[0x48, 0x8b, 0x4c, 0x24, offset]), // mov rcx, [rsp + offset]
        }
        code.store_slot(to, register::RCX);
    }
    if call.is_static() {
        code.load_slot(register::RCX, slot::CHUNK_AT + 8);
        code.raw(&READ);
        code.store_slot(slot::CHUNK_LAST, register::RCX);
    }
    // No number of the hook: translations may be thrown away before the call returns. What clang shares out stands
    // above the form.
    if call.is_static() {
        code.copy(register::RCX, register::ARGUMENTS[0]);
        code.raw(&[0x48, 0x8d, 0x49, LoopCall::KIND_AT]); // lea rcx, [rcx + KIND_AT]
        code.raw(&READ);
        code.raw(&[0x0f, 0xb6, 0xc9]); // movzx ecx, cl
        code.raw(&[0x88, 0xcd]); // mov ch, cl
        code.raw(&[0xb1, call.form()]); // mov cl, form
    } else {
        code.load_constant(register::RCX, u64::from(call.form()));
    }
    code.store_slot(slot::CHUNK_FORM, register::RCX);
    code.copy(register::RCX, register::RSP);
    code.raw(&[0x48, 0xf7, 0xd1]); // not rcx
    code.raw(&[0x48, 0x8d, 0x49, 7u8.wrapping_neg()]); // lea rcx, [rcx - 7]
    code.store_slot(slot::CHUNK_DUE, register::RCX);
}

/// Puts words of memory into the record, from this offset on. rcx is free; the register with the address is another.
pub fn record_words(code: &mut Assembler, words: Words, offset: u8) {
    for number in 0..words.count {
        read_word(code, words, number);
        code.store_record(offset + 8 * number, register::RCX);
    }
}

/// rcx = one of these words of memory; 0 where their address is.
pub fn read_word(code: &mut Assembler, words: Words, number: u8) {
    let address = match words.register {
        Words::STACK => register::RSP,
        argument => register::ARGUMENTS[usize::from(argument)],
    };
    code.copy(register::RCX, address);
    let none = code.short_forward(JRCXZ);
    code.raw(&[0x48, 0x8d, 0x49, words.offset + 8 * number]); // lea rcx, [rcx + offset]
    code.raw(&READ);
    code.land(none);
}

/// Where such a call may return to, `site`: the record of what it gave, where the slot says that it is left with this
/// stack pointer.
pub fn record_chunk(code: &mut Assembler, site: ProgramPc) {
    code.store_slot(slot::RCX, register::RCX);
    code.load_slot(register::RCX, slot::CHUNK_DUE);
    code.raw(&[0x48, 0x8d, 0x0c, 0x0c]); // lea rcx, [rsp + rcx]
    let due = code.short_forward(JRCXZ);
    let nothing = code.far_forward();
    code.land(due);
    for number in 0..3u8 {
        code.load_slot(register::RCX, slot::CHUNK_AT + 8 * u32::from(number));
        code.raw(&READ);
        code.store_record(8 + 8 * number, register::RCX);
    }
    code.load_slot(register::RCX, slot::CHUNK_STEP);
    code.store_record(32, register::RCX);
    code.store_record(40, register::RAX);
    code.load_constant(register::RCX, site.0);
    code.store_record(48, register::RCX);
    code.load_slot(register::RCX, slot::CHUNK_LAST);
    code.store_record(56, register::RCX);
    code.load_slot(register::RCX, slot::CHUNK_FORM);
    code.store_record_half(4, register::RCX);
    code.store_record_word(0, record::CHUNK);
    code.advance(record::CHUNK_LEN);
    // Behind the record, and carried out by the processor only: what comes before can be carried out twice.
    code.clear_slot(slot::CHUNK_DUE);
    code.land_far(nothing);
    code.load_slot(register::RCX, slot::RCX);
}
