//! Machine code, byte by byte: the few instructions that expansions consist of. None of them changes the flags.

use crate::translate::addresses::CachePc;
use crate::translate::layout::{record, slot};

/// Numbers of the general registers, as the processor counts them.
pub mod register {
    pub const RAX: u8 = 0;
    pub const RCX: u8 = 1;
    pub const RDX: u8 = 2;
    pub const RSP: u8 = 4;
    pub const RSI: u8 = 6;
    pub const RDI: u8 = 7;
    pub const R11: u8 = 11;
    /// Those of the first six arguments.
    pub const ARGUMENTS: [u8; 6] = [RDI, RSI, RDX, RCX, 8, 9];
}

/// Code under construction, which will lie at `base`.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    /// The address of the first byte.
    pub base: CachePc,
    /// What there is so far.
    pub bytes: Vec<u8>,
}

impl Assembler {
    /// Code that will lie at `base`.
    #[must_use]
    pub fn at(base: CachePc) -> Assembler {
        Assembler { base, bytes: Vec::new() }
    }

    /// Where the next byte will lie.
    #[must_use]
    pub fn here(&self) -> CachePc {
        self.base.plus(self.bytes.len() as u64)
    }

    /// Adds bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn imm32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// The distance from behind a 4-byte field, at `here`, to an address.
    fn rel32(&mut self, to: CachePc) {
        let distance = to.behind(self.here().plus(4));
        self.imm32(distance as u32);
    }

    /// `mov gs:[place], register`
    pub fn store_slot(&mut self, place: u32, register: u8) {
        self.raw(&[0x65, 0x48 | (register >> 3) << 2, 0x89, 0x04 | (register & 7) << 3, 0x25]);
        self.imm32(place);
    }

    /// `mov register, gs:[place]`
    pub fn load_slot(&mut self, register: u8, place: u32) {
        self.raw(&[0x65, 0x48 | (register >> 3) << 2, 0x8b, 0x04 | (register & 7) << 3, 0x25]);
        self.imm32(place);
    }

    /// `mov qword gs:[place], 0`
    pub fn clear_slot(&mut self, place: u32) {
        self.raw(&[0x65, 0x48, 0xc7, 0x04, 0x25]);
        self.imm32(place);
        self.imm32(0);
    }

    /// `mov register, gs:[DUE + rax*8]`
    pub fn load_due(&mut self, register: u8) {
        self.raw(&[0x65, 0x48, 0x8b, 0x04 | register << 3, 0xc5]);
        self.imm32(slot::DUE);
    }

    /// `mov gs:[DUE + rax*8], register`
    pub fn store_due(&mut self, register: u8) {
        self.raw(&[0x65, 0x48, 0x89, 0x04 | register << 3, 0xc5]);
        self.imm32(slot::DUE);
    }

    /// `mov qword gs:[DUE + rax*8], 0`
    pub fn clear_due(&mut self) {
        self.raw(&[0x65, 0x48, 0xc7, 0x04, 0xc5]);
        self.imm32(slot::DUE);
        self.imm32(0);
    }

    /// `xchg gs:[place], register`: what was written before is visible to all before what comes next is read.
    pub fn exchange_slot(&mut self, place: u32, register: u8) {
        self.raw(&[0x65, 0x48 | (register >> 3) << 2, 0x87, 0x04 | (register & 7) << 3, 0x25]);
        self.imm32(place);
    }

    /// `mov register, value`, in the shortest form.
    pub fn load_constant(&mut self, register: u8, value: u64) {
        if let Ok(value) = u32::try_from(value) {
            if register >= 8 {
                self.raw(&[0x41]);
            }
            self.raw(&[0xb8 | register & 7]);
            self.imm32(value);
        } else {
            self.raw(&[0x48 | register >> 3, 0xb8 | register & 7]);
            self.raw(&value.to_le_bytes());
        }
    }

    /// `mov to, from`
    pub fn copy(&mut self, to: u8, from: u8) {
        self.raw(&[0x48 | (from >> 3) << 2 | to >> 3, 0x89, 0xc0 | (from & 7) << 3 | to & 7]);
    }

    /// `mov [r11 + offset], register`
    pub fn store_record(&mut self, offset: u8, register: u8) {
        self.raw(&[0x49 | (register >> 3) << 2, 0x89, 0x43 | (register & 7) << 3, offset]);
    }

    /// `mov [r11 + offset], register` of the lower half
    pub fn store_record_half(&mut self, offset: u8, register: u8) {
        self.raw(&[0x41 | (register >> 3) << 2, 0x89, 0x43 | (register & 7) << 3, offset]);
    }

    /// `mov dword [r11 + offset], word`
    pub fn store_record_word(&mut self, offset: u8, word: u32) {
        if offset == 0 {
            self.raw(&[0x41, 0xc7, 0x03]);
        } else {
            self.raw(&[0x41, 0xc7, 0x43, offset]);
        }
        self.imm32(word);
    }

    /// `lea r11, [r11 + bytes]`
    pub fn advance(&mut self, bytes: u32) {
        match u8::try_from(bytes) {
            Ok(byte) if byte < 0x80 => self.raw(&[0x4d, 0x8d, 0x5b, byte]),
            _ => {
                self.raw(&[0x4d, 0x8d, 0x9b]);
                self.imm32(bytes);
            }
        }
    }

    /// The end of the record of a path; so many of its values are written.
    pub fn record_path(&mut self, number: u32, values: u16) {
        self.store_record_word(0, number);
        self.advance(record::path_len(values));
    }

    /// Writes the value with this number of the path that is being recorded: what the register holds.
    pub fn record_value(&mut self, number: u16, register: u8) {
        let offset = record::path_len(number);
        match u8::try_from(offset) {
            Ok(byte) if byte < 0x80 => self.store_record(byte, register),
            _ => {
                self.raw(&[0x49 | (register >> 3) << 2, 0x89, 0x83 | (register & 7) << 3]);
                self.imm32(offset);
            }
        }
    }

    /// `lfence; rdtsc`, stored at this offset of the record. Changes rax and rdx.
    pub fn record_time(&mut self, offset: u8) {
        self.raw(&[0x0f, 0xae, 0xe8, 0x0f, 0x31]);
        self.store_record_half(offset, register::RAX);
        self.store_record_half(offset + 4, register::RDX);
    }

    /// Fills up so that a 4-byte field after `opcode_len` more bytes does not cross a cache line.
    fn align_field(&mut self, opcode_len: u64) {
        while self.here().plus(opcode_len).0 % 64 > 60 {
            self.raw(&[0x90]);
        }
    }

    /// `jmp`, to be linked later; returns the address of its distance.
    pub fn jump_site(&mut self) -> CachePc {
        self.align_field(1);
        self.raw(&[0xe9]);
        let site = self.here();
        self.imm32(0);
        site
    }

    /// `jmp to`
    pub fn jump(&mut self, to: CachePc) {
        self.raw(&[0xe9]);
        self.rel32(to);
    }

    /// `jcc to`; the condition as the processor numbers it.
    pub fn jump_if(&mut self, condition: u8, to: CachePc) {
        self.raw(&[0x0f, 0x80 | condition]);
        self.rel32(to);
    }

    /// `int3`; returns its address.
    pub fn trap(&mut self) -> CachePc {
        let here = self.here();
        self.raw(&[0xcc]);
        here
    }

    /// The same, before code that is reached in other ways too. A thread after the trap has executed the trap, and has
    /// not reached that code.
    pub fn trap_apart(&mut self) -> CachePc {
        let here = self.trap();
        self.raw(&[0x90]);
        here
    }

    /// A forward `jrcxz` or short `jmp` whose distance is filled in by [`Assembler::land`]; returns where the distance
    /// is.
    pub fn short_forward(&mut self, opcode: u8) -> usize {
        self.raw(&[opcode, 0]);
        self.bytes.len() - 1
    }

    /// The short jump at that place lands here.
    ///
    /// # Panics
    /// When it is more than 127 bytes away: the expansions are shorter.
    pub fn land(&mut self, place: usize) {
        let distance = self.bytes.len() - place - 1;
        self.bytes[place] = i8::try_from(distance).expect("a short jump").cast_unsigned();
    }

    /// A forward `jmp` over more, whose distance is filled in by [`Assembler::land_far`]; returns where the distance
    /// is.
    pub fn far_forward(&mut self) -> usize {
        self.raw(&[0xe9, 0, 0, 0, 0]);
        self.bytes.len() - 4
    }

    /// That jump lands here.
    pub fn land_far(&mut self, place: usize) {
        let distance = (self.bytes.len() - place - 4) as u32;
        self.bytes[place..place + 4].copy_from_slice(&distance.to_le_bytes());
    }
}

/// `jrcxz`
pub const JRCXZ: u8 = 0xe3;
/// `jmp`, short
pub const JMP_SHORT: u8 = 0xeb;

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Formatter, NasmFormatter};

    use super::*;

    /// The code as text, one instruction after another.
    pub fn text(assembler: &Assembler) -> Vec<String> {
        let mut formatter = NasmFormatter::new();
        formatter.options_mut().set_space_after_operand_separator(true);
        Decoder::with_ip(64, &assembler.bytes, assembler.base.0, DecoderOptions::NONE)
            .iter()
            .map(|instruction| {
                let mut text = String::new();
                formatter.format(&instruction, &mut text);
                text
            })
            .collect()
    }

    fn assembled(build: impl FnOnce(&mut Assembler)) -> Vec<String> {
        let mut assembler = Assembler::at(CachePc(0x1000));
        build(&mut assembler);
        text(&assembler)
    }

    #[test]
    fn slots_are_reached_through_gs() {
        assert_eq!(assembled(|a| a.store_slot(8, register::R11)), ["mov [gs:8], r11"]);
        assert_eq!(assembled(|a| a.load_slot(register::RCX, 24)), ["mov rcx, [gs:18h]"]);
        assert_eq!(assembled(|a| a.exchange_slot(24, register::RCX)), ["xchg rcx, [gs:18h]"]);
    }

    #[test]
    fn constants_take_the_shortest_form() {
        assert_eq!(assembled(|a| a.load_constant(1, 7)), ["mov ecx, 7"]);
        assert_eq!(assembled(|a| a.load_constant(9, 7)), ["mov r9d, 7"]);
        assert_eq!(assembled(|a| a.load_constant(8, 1 << 40)), ["mov r8, 10000000000h"]);
    }

    #[test]
    fn a_path_takes_two_instructions() {
        assert_eq!(assembled(|a| a.record_path(5, 0)), ["mov dword [r11], 5", "lea r11, [r11+4]"]);
    }

    #[test]
    fn values_lie_behind_the_number_of_their_path() {
        let two = assembled(|a| {
            a.record_value(0, register::RSP);
            a.record_value(16, 9);
            a.record_path(5, 17);
        });
        assert_eq!(two, ["mov [r11+4], rsp", "mov [r11+84h], r9", "mov dword [r11], 5", "lea r11, [r11+8Ch]"]);
        assert_eq!(assembled(|a| a.record_time(8)), ["lfence", "rdtsc", "mov [r11+8], eax", "mov [r11+0Ch], edx"]);
    }

    #[test]
    fn no_link_crosses_a_cache_line() {
        for start in 0..128 {
            let mut assembler = Assembler::at(CachePc(0x1000 + start));
            let site = assembler.jump_site();
            assert!(site.0 % 64 <= 60);
        }
    }

    #[test]
    fn jumps_go_where_they_should() {
        assert_eq!(assembled(|a| a.jump(CachePc(0x2000))), ["jmp 0000000000002000h"]);
        assert_eq!(assembled(|a| a.jump_if(4, CachePc(0x2000))), ["je near 0000000000002000h"]);
        assert_eq!(assembled(|a| a.copy(register::RCX, register::R11)), ["mov rcx, r11"]);
        let short = assembled(|a| {
            let place = a.short_forward(JRCXZ);
            a.trap();
            a.land(place);
        });
        assert_eq!(short, ["jrcxz 0000000000001003h", "int3"]);
    }
}
