//! The pieces of code that are put between the program's own instructions. None of them changes the flags. The file has
//! more than 500 lines since the test that none does names them all.

use nix::libc;

use crate::images::loop_calls::LoopCall;
use crate::images::task_calls::Words;
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::assembler::{Assembler, JMP_SHORT, JRCXZ, register};
use crate::translate::code::loop_code;
use crate::translate::layout::{
    self, CALLS, FIRST, LOOKS, MASK, RETURNS, ROUTINES, SECOND, SECOND_ENTRIES, SECOND_MASK,
};
use crate::translate::layout::{call, look, record, slot};

/// The instruction, and its length.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];
pub const SYSCALL_LEN: u64 = SYSCALL.len() as u64;

/// A function whose entries are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its number.
    pub number: u32,
    /// The register with the routine that it will run, if it runs one.
    pub routine: Option<u8>,
    /// Whether its first word of memory is a body that has to be known to be a taskloop's: see [`of_taskloop`].
    pub makes_pieces: bool,
    /// Whether the times at which it is entered and left matter.
    pub timed: [bool; 2],
    /// Which of rdi, rsi, rdx, rcx, r8 and r9 its record has.
    pub registers: [bool; 6],
    /// The words of memory that its record has behind these.
    pub words: Option<Words>,
    /// It gives a thread iterations of a loop, which is recorded when it returns.
    pub chunk: Option<LoopCall>,
}

impl Hook {
    /// The one register that its record has, where it has nothing else.
    fn one_register(&self) -> Option<u8> {
        let mut registers = register::ARGUMENTS.into_iter().zip(self.registers).filter(|(_, recorded)| *recorded);
        let (register, _) = registers.next()?;
        (registers.next().is_none() && self.words.is_none()).then_some(register)
    }
}

/// What lookups need to know: where the tables lie, and whether the processor has BMI2.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// Where the tables lie in the program.
    pub tables: u64,
    /// Whether `pext` may be used.
    pub bmi2: bool,
}

impl Lookup {
    fn address(&self, offset: u64) -> u32 {
        u32::try_from(self.tables + offset).expect("the tables lie in the low 2 GiB")
    }

    /// The entry of the first table that an address belongs to.
    #[must_use]
    pub fn index(&self, pc: ProgramPc) -> u64 {
        if self.bmi2 { (pc.0 & layout::FIRST_MASK) >> 2 } else { pc.0 & ((1 << layout::FIRST_BITS_PLAIN) - 1) }
    }

    /// Where a thread's slot says whether a function is left with this stack pointer: see [`slot::DUE`].
    #[must_use]
    pub fn due(&self, sp: u64) -> u32 {
        let bits = if self.bmi2 { sp >> 4 } else { sp };
        slot::DUE + 8 * (bits as u32 % slot::DUE_ENTRIES)
    }

    /// rax = index of rcx
    fn hash(&self, code: &mut Assembler) {
        if self.bmi2 {
            code.raw(&[0xc4, 0xe2, 0xf2, 0xf5, 0x04, 0x25]); // pext rax, rcx, [MASK]
            code.raw(&self.address(MASK).to_le_bytes());
        } else {
            code.raw(&[0x0f, 0xb7, 0xc1]); // movzx eax, cx
        }
    }

    /// Goes to the code of the address in rcx; the program's rax and rcx are in the slot.
    pub fn jump(&self, code: &mut Assembler) {
        self.hash(code);
        code.raw(&[0xff, 0x24, 0xc5]); // jmp [FIRST + rax*8]
        code.raw(&self.address(FIRST).to_le_bytes());
    }

    /// rcx = the byte for the address in rcx, in one of the tables of bytes
    fn byte(&self, code: &mut Assembler, table: u64) {
        self.hash(code);
        code.raw(&[0x0f, 0xb6, 0x88]); // movzx ecx, byte [rax + table]
        code.raw(&self.address(table).to_le_bytes());
    }
}

/// r11 gets the program's value; the record pointer goes to the slot.
pub fn give_r11_back(code: &mut Assembler) {
    code.store_slot(slot::POINTER, register::R11);
    code.load_slot(register::R11, slot::R11);
}

/// r11 gets the record pointer; the program's value goes to the slot.
pub fn take_r11(code: &mut Assembler) {
    code.store_slot(slot::R11, register::R11);
    code.load_slot(register::R11, slot::POINTER);
}

/// `push value`, of an address of the program. Returns where the distance to the constant is, when the constant has to
/// be put somewhere and the push to be told where.
pub fn push_constant(code: &mut Assembler, value: ProgramPc) -> Option<usize> {
    if i32::try_from(value.0.cast_signed()).is_ok() {
        code.raw(&[0x68]);
        code.raw(&(value.0 as u32).to_le_bytes());
        return None;
    }
    code.raw(&[0xff, 0x35, 0, 0, 0, 0]); // push [rip + distance]
    Some(code.bytes.len() - 4)
}

/// The entry of a superblock that lookups jump to. rcx holds what was looked for; when it is not `head`, the search
/// goes on at `miss`. Behind it, all registers are the program's (with the record pointer in r11). Returns where that
/// is.
pub fn checked_entry(code: &mut Assembler, head: ProgramPc, miss: CachePc) -> CachePc {
    code.raw(&[0x48, 0xb8]); // mov rax, -head
    code.raw(&head.0.wrapping_neg().to_le_bytes());
    code.raw(&[0x48, 0x8d, 0x0c, 0x01]); // lea rcx, [rcx + rax]
    let found = code.short_forward(JRCXZ);
    code.raw(&[0x48, 0xf7, 0xd0]); // not rax
    code.raw(&[0x48, 0x8d, 0x4c, 0x01, 0x01]); // lea rcx, [rcx + rax + 1]
    code.jump(miss);
    code.land(found);
    code.load_slot(register::RCX, slot::RCX);
    code.load_slot(register::RAX, slot::RAX);
    code.here()
}

/// A comparison of rcx with an address; see [`check_target`].
pub struct TargetCheck {
    target: ProgramPc,
    /// Whether rax is in the slot.
    rax_in_slot: bool,
    /// The jump that is taken when they are equal.
    found: usize,
}

/// Goes on behind what follows, up to [`TargetCheck::land`], when rcx is `target`. What follows leads to
/// [`TargetCheck::undo`]. The program's rcx is in the slot.
pub fn check_target(code: &mut Assembler, target: ProgramPc) -> TargetCheck {
    let rax_in_slot = match i32::try_from(target.0.wrapping_neg().cast_signed()) {
        Ok(near) => {
            code.raw(&[0x48, 0x8d, 0x89]); // lea rcx, [rcx - target]
            code.raw(&near.to_le_bytes());
            false
        }
        Err(_) => {
            code.store_slot(slot::RAX, register::RAX);
            code.load_constant(register::RAX, target.0.wrapping_neg());
            code.raw(&[0x48, 0x8d, 0x0c, 0x01]); // lea rcx, [rcx + rax]
            true
        }
    };
    TargetCheck { target, rax_in_slot, found: code.short_forward(JRCXZ) }
}

impl TargetCheck {
    /// They are equal, and the registers are the program's here.
    pub fn land(&self, code: &mut Assembler) {
        code.land(self.found);
        code.load_slot(register::RCX, slot::RCX);
        if self.rax_in_slot {
            code.load_slot(register::RAX, slot::RAX);
        }
    }

    /// They are not: rcx gets its address again, and the program's rax is in the slot, as lookups want it.
    pub fn undo(&self, code: &mut Assembler) {
        if self.rax_in_slot {
            code.raw(&[0x48, 0xf7, 0xd0]); // not rax
            code.raw(&[0x48, 0x8d, 0x4c, 0x01, 0x01]); // lea rcx, [rcx + rax + 1]
        } else {
            code.raw(&[0x48, 0x8d, 0x89]); // lea rcx, [rcx + target]
            code.raw(&(self.target.0 as u32).to_le_bytes());
            code.store_slot(slot::RAX, register::RAX);
        }
    }
}

/// Where the thread's slot says whether a function that was entered is left with the stack pointer in rsp, or in rax
/// with `in_rax`: the entry's number goes to rax.
fn due_entry(code: &mut Assembler, lookup: &Lookup, in_rax: bool) {
    match (lookup.bmi2, in_rax) {
        (true, true) => code.raw(&[0xc4, 0xe3, 0x7b, 0xf0, 0xc0, 4]), // rorx eax, eax, 4
        (true, false) => code.raw(&[0xc4, 0xe3, 0x7b, 0xf0, 0xc4, 4]), // rorx eax, esp, 4
        (false, true) => {}
        (false, false) => code.copy(register::RAX, register::RSP),
    }
    code.raw(&[0x0f, 0xb6, 0xc0]); // movzx eax, al
}

/// The record that a function has returned, where the slot says that one is due with this stack pointer; see
/// [`slot::DUE`].
pub fn record_leave(code: &mut Assembler, lookup: &Lookup) {
    code.store_slot(slot::RAX, register::RAX);
    code.store_slot(slot::RCX, register::RCX);
    due_entry(code, lookup, false);
    code.load_due(register::RCX);
    code.raw(&[0x48, 0x8d, 0x0c, 0x0c]); // lea rcx, [rsp + rcx]
    let due = code.short_forward(JRCXZ);
    code.raw(&[0x48, 0x8d, 0x49, slot::UNTIMED]); // lea rcx, [rcx + UNTIMED]
    let untimed = code.short_forward(JRCXZ);
    code.load_due(register::RCX);
    code.raw(&[0x48, 0x8d, 0x49, (slot::ANY_DUE as u8).wrapping_neg()]); // lea rcx, [rcx - ANY_DUE]
    let any = code.short_forward(JRCXZ);
    let nothing = code.far_forward();
    code.land(untimed);
    code.load_slot(register::RCX, slot::RAX);
    code.store_record(4, register::RCX);
    code.store_record_word(0, record::UNTIMED_LEAVE);
    code.advance(record::UNTIMED_LEAVE_LEN);
    code.clear_due();
    let recorded = code.far_forward();
    code.land(due);
    code.land(any);
    code.store_slot(slot::RDX, register::RDX);
    code.load_slot(register::RCX, slot::RAX);
    code.store_record(12, register::RCX);
    code.record_time(4);
    code.store_record_word(0, record::LEAVE);
    code.advance(record::LEAVE_LEN);
    code.load_slot(register::RDX, slot::RDX);
    // After the record, and carried out by the processor only: what comes before can be carried out twice.
    due_entry(code, lookup, false);
    code.load_due(register::RCX);
    code.raw(&[0x48, 0x8d, 0x49, (slot::ANY_DUE as u8).wrapping_neg()]); // lea rcx, [rcx - ANY_DUE]
    let stays = code.short_forward(JRCXZ);
    code.clear_due();
    code.land(stays);
    code.land_far(recorded);
    code.land_far(nothing);
    code.load_slot(register::RCX, slot::RCX);
    code.load_slot(register::RAX, slot::RAX);
}

/// Notes in the slot that the function whose return address is at rsp will be left with the stack pointer behind that,
/// and whether it matters when. rax and rcx are free.
fn note_due(code: &mut Assembler, lookup: &Lookup, timed: bool) {
    let less = if timed { 0 } else { slot::UNTIMED };
    code.raw(&[0x48, 0x8d, 0x44, 0x24, 8]); // lea rax, [rsp + 8]
    due_entry(code, lookup, true);
    code.load_due(register::RCX);
    let free = code.short_forward(JRCXZ);
    code.raw(&[0x48, 0x8d, 0x4c, 0x0c, 8 + less]); // lea rcx, [rsp + rcx + 8 + less]
    let same = code.short_forward(JRCXZ);
    code.load_constant(register::RCX, slot::ANY_DUE);
    let taken = code.short_forward(JMP_SHORT);
    code.land(free);
    code.land(same);
    code.copy(register::RCX, register::RSP);
    code.raw(&[0x48, 0xf7, 0xd1]); // not rcx
    code.raw(&[0x48, 0x8d, 0x49, (7 + less).wrapping_neg()]); // lea rcx, [rcx - 7 - less]
    code.land(taken);
    code.store_due(register::RCX);
}

/// What stands in the table of routines for a body that is known to be a taskloop's: it may stand there as a task's,
/// too.
#[must_use]
pub fn of_taskloop(body: u64) -> ProgramPc {
    ProgramPc(!body)
}

/// The record that hook number `hook` is entered. Traps when the return address, the routine in register `routine`, or
/// the body of a taskloop is not known. Returns where it traps.
pub fn record_enter(code: &mut Assembler, lookup: &Lookup, hook: Hook) -> CachePc {
    code.store_slot(slot::RCX, register::RCX);
    code.store_slot(slot::RAX, register::RAX);
    code.raw(&[0x48, 0x8b, 0x0c, 0x24]); // mov rcx, [rsp]
    lookup.byte(code, RETURNS);
    let unknown = code.short_forward(JRCXZ);
    let mut unknown_routine = None;
    if let Some(routine) = hook.routine {
        match routine {
            register::RCX => code.load_slot(register::RCX, slot::RCX),
            routine => code.copy(register::RCX, routine),
        }
        lookup.byte(code, ROUTINES);
        unknown_routine = Some(code.short_forward(JRCXZ));
    }
    if let Some(words) = hook.words.filter(|_| hook.makes_pieces) {
        loop_code::read_word(code, words, 0);
        code.raw(&[0x48, 0xf7, 0xd1]); // not rcx
        lookup.byte(code, ROUTINES);
        unknown_routine = Some(code.short_forward(JRCXZ));
    }
    let known = code.short_forward(JMP_SHORT);
    code.land(unknown);
    if let Some(place) = unknown_routine {
        code.land(place);
    }
    code.load_slot(register::RCX, slot::RCX);
    code.load_slot(register::RAX, slot::RAX);
    let trap = code.trap_apart();
    code.land(known);
    if let Some(call) = hook.chunk {
        loop_code::note_chunk(code, call);
        code.load_slot(register::RCX, slot::RCX);
        code.load_slot(register::RAX, slot::RAX);
        return trap;
    }
    note_due(code, lookup, hook.timed[1]);
    code.load_slot(register::RCX, slot::RCX);
    if let ([false, _], Some(register)) = (hook.timed, hook.one_register()) {
        code.store_record(8, register);
        code.store_record_word(4, hook.number);
        code.store_record_word(0, record::UNTIMED_ENTER);
        code.advance(record::UNTIMED_ENTER_LEN);
        code.load_slot(register::RAX, slot::RAX);
        return trap;
    }
    code.store_slot(slot::RDX, register::RDX);
    let mut registers = 0;
    for (register, _) in register::ARGUMENTS.into_iter().zip(hook.registers).filter(|(_, recorded)| *recorded) {
        code.store_record(record::enter_len(registers) as u8, register);
        registers += 1;
    }
    if let Some(words) = hook.words {
        loop_code::record_words(code, words, record::enter_len(registers) as u8);
        registers += u32::from(words.count);
        code.load_slot(register::RCX, slot::RCX);
    }
    code.record_time(8);
    code.store_record_word(4, hook.number);
    code.store_record_word(0, record::ENTER + registers);
    code.advance(record::enter_len(registers));
    code.load_slot(register::RDX, slot::RDX);
    code.load_slot(register::RAX, slot::RAX);
    trap
}

/// The record of a futex call, after it: its registers are as they were, but rax, the result, and rcx and r11, which
/// are free.
fn record_futex(code: &mut Assembler) {
    code.store_record(24, register::RAX);
    code.store_slot(slot::RAX, register::RAX);
    code.store_slot(slot::RDX, register::RDX);
    code.store_record(16, register::RDI);
    code.record_time(8);
    code.store_record_half(4, register::RSI);
    code.store_record_word(0, record::FUTEX);
    code.advance(record::FUTEX_LEN);
    code.load_slot(register::RDX, slot::RDX);
    code.load_slot(register::RAX, slot::RAX);
}

/// Addresses of a place where system calls are made.
#[derive(Clone, Copy, Debug)]
pub struct LandingCode {
    /// Where to jump to.
    pub entry: CachePc,
    /// The `syscall` instruction.
    pub call: CachePc,
    /// A trap before calls that are to be looked at.
    pub looked_at: CachePc,
    /// A trap for calls that end with `EFAULT`, behind which the thread goes on.
    pub fault: CachePc,
}

/// System calls are made here, for all code of a cache: code may be thrown away while a thread waits in the kernel,
/// this may not. r11 is the program's in between. `returns` is the way out of signal handlers; none for futex calls.
pub fn landing(code: &mut Assembler, lookup: &Lookup, returns: Option<CachePc>) -> LandingCode {
    let (entry, futex) = (code.here(), returns.is_none());
    code.raw(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
    code.raw(&[0x0f, 0xb6, 0x89]); // movzx ecx, byte [rcx + LOOKS]
    code.raw(&lookup.address(LOOKS).to_le_bytes());
    let unseen = code.short_forward(JRCXZ);
    if let Some(returns) = returns {
        code.raw(&[0x48, 0x8d, 0x49, look::STOP.wrapping_neg()]); // lea rcx, [rcx - STOP]
        let stop = code.short_forward(JRCXZ);
        code.jump(returns);
        code.land(stop);
    }
    let looked_at = code.trap_apart();
    code.land(unseen);
    // rcx is free: the call changes it.
    code.load_constant(register::RCX, 1);
    code.store_slot(slot::CALLING, register::RCX);
    let call = code.here();
    code.raw(&SYSCALL);
    code.load_constant(register::RCX, 0);
    code.exchange_slot(slot::CALLING, register::RCX);
    take_r11(code);
    if futex {
        record_futex(code);
    }
    code.raw(&[0x48, 0x8d, 0x48, libc::EFAULT as u8]); // lea rcx, [rax + EFAULT]
    let fault = code.short_forward(JRCXZ);
    let done = code.short_forward(JMP_SHORT);
    code.land(fault);
    let trap = code.trap_apart();
    code.land(done);
    code.load_slot(register::RCX, slot::NEXT);
    code.raw(&[0x65, 0xff, 0x24, 0x25]); // jmp gs:[AFTER]
    code.raw(&slot::AFTER.to_le_bytes());
    LandingCode { entry, call, looked_at, fault: trap }
}

/// How the call with the number in rax is made, as in the table: two jumps, for calls that the program makes by itself,
/// and for calls that are taken. What comes next is for futex calls. rcx is free.
pub fn tell_calls_apart(code: &mut Assembler, lookup: &Lookup) -> (usize, usize) {
    code.raw(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
    code.raw(&[0x0f, 0xb6, 0x89]); // movzx ecx, byte [rcx + CALLS]
    code.raw(&lookup.address(CALLS).to_le_bytes());
    let native = code.short_forward(JRCXZ);
    code.raw(&[0x48, 0x8d, 0x49, call::TAKEN.wrapping_neg()]); // lea rcx, [rcx - TAKEN]
    let taken = code.short_forward(JRCXZ);
    (native, taken)
}

/// Makes a system call at a landing, after which the program goes on at `next`, in code that follows.
pub fn call_at(code: &mut Assembler, landing: CachePc, next: ProgramPc) {
    code.store_slot(slot::NUMBER, register::RAX);
    code.load_constant(register::RCX, next.0);
    code.store_slot(slot::NEXT, register::RCX);
    code.raw(&[0x48, 0x8d, 0x0d, 14, 0, 0, 0]); // lea rcx, [rip + what follows]
    code.store_slot(slot::AFTER, register::RCX);
    code.jump(landing);
}

/// Where lookups go on that found another address in the first table, or none: the search in the second, in a loop over
/// neighbouring entries. Returns the code and the address of its trap, for what is not there.
#[must_use]
pub fn miss_stub(at: CachePc, lookup: &Lookup, hash: u64) -> (Assembler, CachePc) {
    let mut code = Assembler::at(at);
    let second = lookup.address(SECOND);
    code.store_slot(slot::TARGET, register::RCX);
    code.store_slot(slot::RDX, register::RDX);
    code.raw(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    code.store_slot(slot::FLAGS, register::RAX);
    code.load_constant(register::RAX, hash);
    code.raw(&[0x48, 0x0f, 0xaf, 0xc1]); // imul rax, rcx
    code.raw(&[0x48, 0xc1, 0xe8, (64 - SECOND_ENTRIES.trailing_zeros()) as u8]); // shr rax, 48
    code.raw(&[0x48, 0x23, 0x04, 0x25]); // and rax, [SECOND_MASK]
    code.raw(&lookup.address(SECOND_MASK).to_le_bytes());
    let next = code.here();
    code.raw(&[0x48, 0x01, 0xc0]); // add rax, rax
    code.raw(&[0x48, 0x8b, 0x14, 0xc5]); // mov rdx, [rax*8 + second]
    code.raw(&second.to_le_bytes());
    code.raw(&[0x48, 0x85, 0xd2]); // test rdx, rdx
    let absent = code.short_forward(0x74); // je
    code.raw(&[0x48, 0x39, 0xca]); // cmp rdx, rcx
    let found = code.short_forward(0x74); // je
    code.raw(&[0x48, 0xd1, 0xe8, 0xff, 0xc0, 0x0f, 0xb7, 0xc0]); // shr rax, 1; inc eax; movzx eax, ax
    code.jump(next);
    code.land(found);
    code.raw(&[0x48, 0x8b, 0x14, 0xc5]); // mov rdx, [rax*8 + second + 8]
    code.raw(&(second + 8).to_le_bytes());
    code.store_slot(slot::FOUND, register::RDX);
    restore_after_search(&mut code);
    code.raw(&[0x65, 0xff, 0x24, 0x25]); // jmp gs:[FOUND]
    code.raw(&slot::FOUND.to_le_bytes());
    code.land(absent);
    restore_after_search(&mut code);
    let trap = code.trap();
    (code, trap)
}

fn restore_after_search(code: &mut Assembler) {
    code.load_slot(register::RAX, slot::FLAGS);
    code.raw(&[0x04, 0x7f, 0x9e]); // add al, 127 (sets overflow where al was 1); sahf
    code.load_slot(register::RDX, slot::RDX);
    code.load_slot(register::RCX, slot::RCX);
    code.load_slot(register::RAX, slot::RAX);
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    use super::*;
    use crate::translate::code::handler_code;

    const LOOKUP: Lookup = Lookup { tables: 0x6000_0000, bmi2: true };

    fn writes_flags(code: &Assembler) -> bool {
        // The kernel gives the flags back after a system call; the processor does not.
        let mut all = Decoder::with_ip(64, &code.bytes, code.base.0, DecoderOptions::NONE);
        all.iter().any(|i| i.rflags_modified() != 0 && i.mnemonic() != Mnemonic::Syscall)
    }

    fn mnemonics(code: &Assembler) -> Vec<Mnemonic> {
        Decoder::with_ip(64, &code.bytes, code.base.0, DecoderOptions::NONE).iter().map(|i| i.mnemonic()).collect()
    }

    #[test]
    fn no_expansion_but_the_search_changes_the_flags() {
        let mut code = Assembler::at(CachePc(0x1000));
        give_r11_back(&mut code);
        take_r11(&mut code);
        push_constant(&mut code, ProgramPc(0x7fff_0000_0000));
        push_constant(&mut code, ProgramPc(0x40_1000));
        checked_entry(&mut code, ProgramPc(0x40_1000), CachePc(0x2000));
        record_leave(&mut code, &LOOKUP);
        record_leave(&mut code, &Lookup { bmi2: false, ..LOOKUP });
        record_enter(
            &mut code,
            &LOOKUP,
            Hook {
                number: 3,
                routine: Some(register::RCX),
                makes_pieces: false,
                registers: [true; 6],
                timed: [true; 2],
                words: None,
                chunk: None,
            },
        );
        let registers = [true, false, false, false, false, false];
        let lock = Hook {
            number: 6,
            routine: None,
            makes_pieces: false,
            registers,
            timed: [false; 2],
            words: None,
            chunk: None,
        };
        record_enter(&mut code, &LOOKUP, lock);
        for name in ["GOMP_task", "__kmpc_taskloop"] {
            let words =
                crate::images::sync_functions::by_name(name).and_then(crate::images::sync_functions::Role::words);
            assert!(words.is_some());
            let makes_pieces = name == "__kmpc_taskloop";
            let hook = Hook {
                number: 5,
                routine: None,
                makes_pieces,
                registers: [false; 6],
                timed: [true; 2],
                words,
                chunk: None,
            };
            record_enter(&mut code, &LOOKUP, hook);
        }
        for name in ["GOMP_loop_runtime_start", "__kmpc_for_static_init_8"] {
            let chunk = crate::images::loop_calls::by_name(name);
            record_enter(
                &mut code,
                &LOOKUP,
                Hook {
                    number: 4,
                    routine: None,
                    makes_pieces: false,
                    registers: [false; 6],
                    timed: [true; 2],
                    words: None,
                    chunk,
                },
            );
        }
        loop_code::record_chunk(&mut code, ProgramPc(0x7fff_0000_0000));
        landing(&mut code, &LOOKUP, None);
        landing(&mut code, &LOOKUP, Some(CachePc(0x1000)));
        handler_code::signal_entry(&mut code, &LOOKUP);
        handler_code::signal_left(&mut code, &LOOKUP);
        call_at(&mut code, CachePc(0x2000), ProgramPc(0x40_1000));
        let (native, taken) = tell_calls_apart(&mut code, &LOOKUP);
        code.land(native);
        code.land(taken);
        LOOKUP.jump(&mut code);
        Lookup { bmi2: false, ..LOOKUP }.jump(&mut code);
        assert!(!mnemonics(&code).contains(&Mnemonic::INVALID));
        assert!(!writes_flags(&code));
    }

    #[test]
    fn the_search_gives_the_flags_back() {
        let (code, trap) = miss_stub(CachePc(0x1000), &LOOKUP, 0x9e37_79b9_7f4a_7c15);
        let all = mnemonics(&code);
        assert!(!all.contains(&Mnemonic::INVALID));
        assert_eq!(all.iter().filter(|m| **m == Mnemonic::Sahf).count(), 2);
        assert_eq!(trap, code.here().minus(1));
    }

    #[test]
    fn both_ways_of_hashing_agree_with_the_index() {
        let pc = ProgramPc(0x7fff_1234_5678);
        assert_eq!(LOOKUP.index(pc), (pc.0 >> 2) & 0x7ffff);
        assert_eq!(Lookup { bmi2: false, ..LOOKUP }.index(pc), 0x5678);
    }

    #[test]
    fn an_entry_is_taken_back_when_it_is_another() {
        let mut code = Assembler::at(CachePc(0x1000));
        let landing = checked_entry(&mut code, ProgramPc(0x40_1000), CachePc(0x2000));
        use Mnemonic::*;
        assert_eq!(mnemonics(&code), [Mov, Lea, Jrcxz, Not, Lea, Jmp, Mov, Mov]);
        assert_eq!(landing, code.here());
    }

    #[test]
    fn a_call_goes_on_behind_its_jump() {
        let mut code = Assembler::at(CachePc(0x1000));
        call_at(&mut code, CachePc(0x2000), ProgramPc(0x40_1000));
        use Mnemonic::*;
        assert_eq!(mnemonics(&code), [Mov, Mov, Mov, Lea, Mov, Jmp]);
        let lea = Decoder::with_ip(64, &code.bytes, code.base.0, DecoderOptions::NONE).into_iter().nth(3).unwrap();
        assert_eq!(lea.ip_rel_memory_address(), code.here().0);
    }

    #[test]
    fn short_addresses_are_pushed_as_they_are() {
        let mut code = Assembler::at(CachePc(0));
        assert_eq!(push_constant(&mut code, ProgramPc(0x40_1000)), None);
        assert_eq!(code.bytes, [0x68, 0x00, 0x10, 0x40, 0x00]);
        let mut code = Assembler::at(CachePc(0));
        assert_eq!(push_constant(&mut code, ProgramPc(0x8000_0000)), Some(2), "it would be sign-extended");
    }
}
