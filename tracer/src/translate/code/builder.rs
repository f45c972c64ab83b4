//! Translates one superblock: follows the program's code from its head through direct jumps and calls, along the likely
//! side of branches, and copies what it finds, instruction by instruction.

use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, Register,
};
use machine::x86_64;
use trace_format::SpEffect;

use crate::decode::MAX_LENGTH;
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::assembler::{Assembler, register};
use crate::translate::code::expansions;
use crate::translate::code::loop_code;
use crate::translate::code::outside::runs_outside;
use crate::translate::code::plan::{Plan, Source, Translation};
use crate::translate::code::rewrite;
use crate::translate::code::superblock::{Borrowed, Checked, Link, Mark, Trap};
use crate::translate::code::values::{Value, Values};
use crate::translate::layout::slot;

/// Superblocks with more bytes of code for each instruction allowed than this are ended.
const MAX_BYTES_EACH: usize = 100;

/// Superblocks that follow no route end after so many branches: what comes after them runs seldom, and is also
/// translated from the sides of the branches. This leaves 42% of the instructions that are translated until `true`
/// ends, in as many superblocks.
const MOST_BRANCHES: usize = 3;

/// `pause`.
const PAUSE: [u8; 2] = [0xf3, 0x90];

/// So many bytes of code are read at once.
const ROW: usize = 128;

/// So many bytes are copied for each instruction, whatever its length: a constant number takes two instructions of ours
/// in place of a call.
const COPIED: usize = 16;
const _: () = assert!(MAX_LENGTH <= COPIED);

/// Appends the first bytes of an instruction's copy.
fn extend(bytes: &mut Vec<u8>, copy: &[u8; COPIED], length: usize) {
    let end = bytes.len() + length;
    bytes.extend_from_slice(copy);
    bytes.truncate(end);
}

/// A translation under construction.
pub struct Builder<'a, S: Source> {
    plan: Plan<'a>,
    source: &'a mut S,
    factory: &'a mut InstructionInfoFactory,
    hot: Assembler,
    cold: Assembler,
    /// Whether r11 holds the record pointer here.
    pointer_in_r11: bool,
    /// What is recorded besides the path.
    values: Values,
    /// What rax holds here, where that is known: the number of a system call.
    rax: Option<u64>,
    /// Places in `hot` that need the distance to a constant.
    constants: Vec<(usize, ProgramPc)>,
    out: &'a mut Translation,
}

impl<'a, S: Source> Builder<'a, S> {
    /// Translates according to the plan, into `out`, which is empty; it may have room.
    pub fn build(plan: Plan<'a>, source: &'a mut S, factory: &'a mut InstructionInfoFactory, out: &'a mut Translation) {
        let (hot, cold) = (std::mem::take(&mut out.hot), std::mem::take(&mut out.cold));
        let mut values = Values::new(plan.memory);
        values.after = std::mem::take(&mut out.superblock.values);
        let constants = std::mem::take(&mut out.constants);
        let mut builder = Builder {
            plan,
            source,
            factory,
            hot: Assembler { base: plan.hot, bytes: hot },
            cold: Assembler { base: plan.cold, bytes: cold },
            pointer_in_r11: true,
            values,
            rax: None,
            constants,
            out,
        };
        builder.entry();
        builder.follow();
        builder.finish();
    }

    fn entry(&mut self) {
        let head = self.plan.head;
        let superblock = &mut self.out.superblock;
        (superblock.head, superblock.start) = (head, self.plan.hot);
        if self.plan.checked {
            let entry = Some(self.hot.here());
            let landing = expansions::checked_entry(&mut self.hot, head, self.plan.miss);
            superblock.checked = Some(Checked { entry, landing });
            if self.source.returns_here(head) {
                expansions::record_leave(&mut self.hot, &self.plan.lookup);
                if self.source.gives_chunks() {
                    loop_code::record_chunk(&mut self.hot, head);
                }
            }
        }
        self.out.superblock.body = self.hot.here();
        if self.source.gate(head) == Some(true) {
            self.trap(Trap::Gate(head));
            self.mark_for(0, Borrowed::Nothing);
        }
        if let Some(hook) = self.source.hook(head) {
            let trap = expansions::record_enter(&mut self.hot, &self.plan.lookup, hook);
            self.out.traps.push((trap, Trap::Hook(head)));
        }
    }

    fn executed(&self) -> usize {
        self.out.superblock.instructions.len()
    }

    fn mark_for(&mut self, executed: usize, borrowed: Borrowed) {
        let offset = self.hot.here().behind(self.plan.hot) as u32;
        let mark = Mark { offset, executed: executed as u16, borrowed, pointer_in_r11: self.pointer_in_r11 };
        self.out.superblock.marks.push(mark);
    }

    /// The program stands before the instruction that was added last.
    fn mark(&mut self, borrowed: Borrowed) {
        self.mark_for(self.executed() - 1, borrowed);
    }

    fn trap(&mut self, trap: Trap) {
        let at = self.hot.trap();
        self.out.traps.push((at, trap));
    }

    /// The number of the path that ends here.
    fn path(&mut self) -> u32 {
        self.out.paths.push(self.executed() as u16);
        self.plan.first_path + self.out.paths.len() as u32 - 1
    }

    fn give_r11_back(&mut self) {
        if self.pointer_in_r11 {
            expansions::give_r11_back(&mut self.hot);
            self.pointer_in_r11 = false;
        }
    }

    fn take_r11(&mut self) {
        if !self.pointer_in_r11 {
            expansions::take_r11(&mut self.hot);
            self.pointer_in_r11 = true;
        }
    }

    /// Records the path so far, in the main line.
    fn record(&mut self) {
        self.take_r11();
        if self.executed() > 0 {
            let path = self.path();
            self.hot.record_path(path, self.values.count());
        }
    }

    fn link(&mut self, site: CachePc, target: ProgramPc) {
        self.out.links.push(Link { site, target, trap: CachePc(0) });
    }

    /// The end: goes on at `target`.
    fn leave_to(&mut self, target: ProgramPc, ahead: bool) {
        self.record();
        let site = self.hot.jump_site();
        self.link(site, target);
        if ahead {
            self.out.next.push((target, false));
        }
    }

    /// A side exit: code that records the path and goes on at `target`. Returns where.
    fn side_exit(&mut self, target: ProgramPc) -> CachePc {
        let at = self.cold.here();
        if !self.pointer_in_r11 {
            expansions::take_r11(&mut self.cold);
        }
        let path = self.path();
        self.cold.record_path(path, self.values.count());
        let site = self.cold.jump_site();
        self.link(site, target);
        self.out.next.push((target, false));
        at
    }

    fn follow(&mut self) {
        let mut next = Some((self.plan.head, false));
        while let Some((pc, transferred)) = next {
            if self.ends_before(pc, transferred) {
                return self.leave_to(pc, true);
            }
            next = self.follow_row(pc);
        }
    }

    /// Whether the superblock ends before the instruction at `pc`.
    fn ends_before(&mut self, pc: ProgramPc, transferred: bool) -> bool {
        let full = self.executed() >= self.plan.limit
            || self.hot.bytes.len() > MAX_BYTES_EACH * self.plan.limit
            || self.plan.route.is_none() && self.out.paths.len() >= MOST_BRANCHES;
        // What was seen to run here may be gone.
        let strayed = self.expected_next().is_some_and(|expected| expected != pc);
        let gate = self.executed() > 0 && self.source.gate(pc).is_some();
        full || strayed || gate || transferred && self.source.hook(pc).is_some()
    }

    /// Translates instructions that lie in a row, as many as are read at once. Returns where the superblock goes on, if
    /// it does, and whether control is transferred there.
    fn follow_row(&mut self, mut pc: ProgramPc) -> Option<(ProgramPc, bool)> {
        let mut row = [0; ROW + COPIED];
        let available = self.source.fetch(pc, &mut row[..ROW]);
        let mut decoder = Decoder::with_ip(64, &row[..available], pc.0, DecoderOptions::NONE);
        // In one place for all: a copy right after it was written would wait for the writes.
        let mut instruction = Instruction::default();
        loop {
            let start = decoder.position();
            decoder.decode_out(&mut instruction);
            if available == 0 || runs_outside(&instruction) {
                self.end_before_outside(pc);
                return None;
            }
            let relative = instruction.is_ip_rel_memory_operand();
            let offsets =
                if relative { decoder.get_constant_offsets(&instruction) } else { ConstantOffsets::default() };
            let mut code = *row[start..].first_chunk().expect("behind the bytes that are read there is room");
            self.note_page(pc);
            self.note_page(ProgramPc(instruction.next_ip()).minus(1));
            let mut described = x86_64::recorded(&instruction, self.factory);
            if self.plan.memory || x86_64::is_atomic(&instruction) && self.source.wants_atomics(pc) {
                described.memory = self.record_operands(&instruction);
            }
            if self.values.follows {
                self.values.runs(&instruction, self.factory.info(&instruction).used_registers(), described.sp);
            }
            self.out.superblock.instructions.push(described);
            extend(&mut self.out.superblock.code, &code, instruction.len());
            let transferred = described.kind.transfers_control();
            let next = self.translate(&instruction, &offsets, &mut code);
            if described.sp == SpEffect::Recorded {
                self.take_r11();
                let number = self.values.record_stack_pointer();
                self.hot.record_value(number, register::RSP);
            }
            self.values.ran();
            pc = next?;
            if pc.0 != decoder.ip() || decoder.position() + MAX_LENGTH > available {
                return Some((pc, transferred));
            }
            if self.ends_before(pc, transferred) {
                self.leave_to(pc, true);
                return None;
            }
        }
    }

    /// The end: the instruction at `pc` does not run in the cache.
    fn end_before_outside(&mut self, pc: ProgramPc) {
        if self.executed() > 0 {
            return self.leave_to(pc, false);
        }
        self.note_page(pc);
        self.mark_for(0, Borrowed::Nothing);
        self.trap(Trap::Native(pc));
    }

    /// Records what the addresses of the instruction's memory operands follow from. Returns how many addresses it has.
    fn record_operands(&mut self, instruction: &iced_x86::Instruction) -> u8 {
        let first = self.values.count();
        let count = self.values.reads(self.factory.info(instruction).used_memory());
        for number in first..self.values.count() {
            let Value::Register(holds) = self.values.recorded[usize::from(number)] else { continue };
            self.take_r11();
            if holds == register::R11 {
                // The program's r11 is in the slot.
                self.hot.store_slot(slot::BORROWED, register::RCX);
                self.hot.load_slot(register::RCX, slot::R11);
                self.hot.record_value(number, register::RCX);
                self.hot.load_slot(register::RCX, slot::BORROWED);
            } else {
                self.hot.record_value(number, holds);
            }
        }
        count
    }

    fn note_page(&mut self, pc: ProgramPc) {
        let page = pc.page();
        if !self.out.pages.contains(&page) {
            self.out.pages.push(page);
        }
    }

    /// Translates one instruction. Returns where the superblock goes on, if it does.
    fn translate(
        &mut self,
        instruction: &iced_x86::Instruction,
        offsets: &ConstantOffsets,
        code: &mut [u8; COPIED],
    ) -> Option<ProgramPc> {
        let next = ProgramPc(instruction.next_ip());
        if instruction.code() == Code::Syscall {
            self.syscall(next);
            return None;
        }
        self.follow_rax(instruction);
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => {
                self.mark(Borrowed::Nothing);
                if instruction.near_branch_target() == instruction.ip() {
                    // Jumps take no time here, and nothing else limits how often an empty loop goes round: without a
                    // pause it is recorded 10^12 times in a second.
                    self.hot.raw(&PAUSE);
                }
                Some(ProgramPc(instruction.near_branch_target()))
            }
            FlowControl::ConditionalBranch => Some(self.branch(instruction, &mut code[..instruction.len()])),
            FlowControl::Call => {
                self.mark(Borrowed::Nothing);
                self.push_return(next);
                self.out.next.push((next, true));
                Some(ProgramPc(instruction.near_branch_target()))
            }
            FlowControl::IndirectBranch | FlowControl::IndirectCall => {
                self.indirect(instruction, offsets, &code[..instruction.len()])
            }
            FlowControl::Return => {
                self.mark(Borrowed::Nothing);
                self.hot.store_slot(slot::RCX, register::RCX);
                self.mark(Borrowed::Rcx);
                self.hot.raw(&[0x59]); // pop rcx
                if instruction.op_count() > 0 {
                    self.hot.raw(&[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + n]
                    self.hot.raw(&u32::from(instruction.immediate16()).to_le_bytes());
                }
                self.go_on_at_target()
            }
            FlowControl::XbeginXabortXend if instruction.mnemonic() == Mnemonic::Xbegin => {
                // A transaction could not go through our stops: it is aborted as it begins, which programs must be
                // ready for.
                self.mark(Borrowed::Nothing);
                self.hot.load_constant(register::RAX, 0);
                self.rax = None;
                Some(ProgramPc(instruction.near_branch_target()))
            }
            _ => {
                self.plain(instruction, offsets, code);
                Some(next)
            }
        }
    }

    /// Keeps track of constants in rax.
    fn follow_rax(&mut self, instruction: &iced_x86::Instruction) {
        let is_eax = instruction.op_count() > 0 && instruction.op0_register() == Register::EAX;
        match instruction.code() {
            Code::Mov_r32_imm32 if is_eax => self.rax = Some(u64::from(instruction.immediate32())),
            Code::Xor_r32_rm32 | Code::Xor_rm32_r32 if is_eax && instruction.op1_register() == Register::EAX => {
                self.rax = Some(0);
            }
            _ if self.rax.is_some() => {
                let used = self.factory.info(instruction).used_registers();
                let changes = |u: &iced_x86::UsedRegister| {
                    u.register().full_register() == Register::RAX
                        && !matches!(u.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None)
                };
                if used.iter().any(changes) {
                    self.rax = None;
                }
            }
            _ => {}
        }
    }

    fn push_return(&mut self, next: ProgramPc) {
        if let Some(field) = expansions::push_constant(&mut self.hot, next) {
            self.constants.push((field, next));
        }
    }

    fn plain(&mut self, instruction: &iced_x86::Instruction, offsets: &ConstantOffsets, code: &mut [u8; COPIED]) {
        if rewrite::names_r11(instruction) {
            self.give_r11_back();
        }
        if !instruction.is_ip_rel_memory_operand() {
            self.mark(Borrowed::Nothing);
            return extend(&mut self.hot.bytes, code, instruction.len());
        }
        let operand = instruction.ip_rel_memory_address();
        if rewrite::move_operand(&mut code[..instruction.len()], offsets, operand, self.hot.here()) {
            self.mark(Borrowed::Nothing);
            return extend(&mut self.hot.bytes, code, instruction.len());
        }
        if instruction.code() == Code::Lea_r64_m {
            self.mark(Borrowed::Nothing);
            let number = instruction.op0_register() as u8 - Register::RAX as u8;
            return self.hot.load_constant(number, operand);
        }
        let used = self.factory.info(instruction).used_registers();
        let free = [register::RCX, register::RDX, register::RAX, register::RSI, register::RDI, 3]
            .into_iter()
            .find(|&r| used.iter().all(|u| u.register().full_register() as u32 != Register::RAX as u32 + u32::from(r)))
            .expect("an instruction with an operand relative to rip names fewer than six of these");
        self.mark(Borrowed::Nothing);
        self.hot.store_slot(slot::BORROWED, free);
        self.hot.load_constant(free, operand);
        self.mark(Borrowed::Register(free));
        self.hot.raw(&rewrite::through_register(&code[..instruction.len()], offsets, free));
        self.hot.load_slot(free, slot::BORROWED);
    }

    fn finish(mut self) {
        while !self.cold.here().0.is_multiple_of(8) {
            self.cold.raw(&[0xcc]);
        }
        for (field, value) in self.constants.drain(..) {
            let distance = self.cold.here().behind(self.plan.hot.plus(field as u64 + 4)) as u32;
            self.hot.bytes[field..field + 4].copy_from_slice(&distance.to_le_bytes());
            self.cold.raw(&value.0.to_le_bytes());
        }
        // A link without a target yet leads to a trap of its own.
        for (link, number) in self.out.links.iter_mut().zip(self.plan.first_link..) {
            let at = self.cold.trap();
            self.cold.raw(&number.to_le_bytes());
            link.trap = at;
            let (code, place) = if link.site >= self.plan.cold && link.site < self.cold.here() {
                (&mut self.cold.bytes, link.site.behind(self.plan.cold))
            } else {
                (&mut self.hot.bytes, link.site.behind(self.plan.hot))
            };
            let distance = at.behind(link.site.plus(4)) as u32;
            code[place as usize..place as usize + 4].copy_from_slice(&distance.to_le_bytes());
        }
        let superblock = &mut self.out.superblock;
        (superblock.values, superblock.operands) = (self.values.after, self.values.operands);
        self.out.hot = self.hot.bytes;
        self.out.cold = self.cold.bytes;
        self.out.constants = self.constants;
    }
}

mod transfers;

#[cfg(test)]
mod tests;
