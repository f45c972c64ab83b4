//! Instructions that transfer control: where a superblock goes on, and how it is left.

use iced_x86::{ConstantOffsets, FlowControl};
use nix::libc;

use super::{Builder, Source};
use crate::translate::addresses::ProgramPc;
use crate::translate::calls::TAKEN_SYSCALLS;
use crate::translate::code::assembler::{JMP_SHORT, register};
use crate::translate::code::expansions;
use crate::translate::code::rewrite;
use crate::translate::code::superblock::{Borrowed, Trap};
use crate::translate::layout::slot;

impl<S: Source> Builder<'_, S> {
    /// Where the program was seen to go from here, if there is a route.
    pub(super) fn expected_next(&self) -> Option<ProgramPc> {
        self.plan.route?.pc(self.executed())
    }

    /// A conditional branch: the superblock goes on along its route, else along a jump back, and past a jump forward.
    pub(super) fn branch(&mut self, instruction: &iced_x86::Instruction, code: &mut [u8]) -> ProgramPc {
        let [pc, next, target] =
            [instruction.ip(), instruction.next_ip(), instruction.near_branch_target()].map(ProgramPc);
        self.mark(Borrowed::Nothing);
        if !instruction.is_jcc_short_or_near() {
            // `loop` and `jrcxz` exist in the short form only.
            let last = code.len() - 1;
            code[last] = 2;
            self.hot.raw(code);
            let over = self.hot.short_forward(JMP_SHORT);
            let exit = self.side_exit(target);
            self.hot.jump(exit);
            self.hot.land(over);
            return next;
        }
        let condition = instruction.condition_code() as u8 - 1;
        let taken = self.expected_next().map_or(target <= pc, |expected| expected == target && target != next);
        let (condition, exit, on) = if taken { (condition ^ 1, next, target) } else { (condition, target, next) };
        let exit = self.side_exit(exit);
        self.hot.jump_if(condition, exit);
        on
    }

    /// An indirect jump or call: the address that it goes to is loaded into rcx. Where the superblock goes on, if it
    /// does.
    pub(super) fn indirect(
        &mut self,
        instruction: &iced_x86::Instruction,
        offsets: &ConstantOffsets,
        code: &[u8],
    ) -> Option<ProgramPc> {
        if rewrite::names_r11(instruction) {
            self.give_r11_back();
        }
        self.mark(Borrowed::Nothing);
        self.hot.store_slot(slot::RCX, register::RCX);
        self.mark(Borrowed::Rcx);
        let mut load = rewrite::load_of_target(code).expect("far jumps run outside");
        if instruction.is_ip_rel_memory_operand() {
            let operand = instruction.ip_rel_memory_address();
            let distance = operand.wrapping_sub(self.hot.here().plus(load.len() as u64).0).cast_signed();
            if let Ok(distance) = i32::try_from(distance) {
                let field = load.len() - 4;
                load[field..].copy_from_slice(&distance.to_le_bytes());
                debug_assert_eq!(offsets.displacement_offset() + 4, code.len());
            } else {
                self.hot.load_constant(register::RCX, operand);
                self.mark(Borrowed::Rcx);
                load = vec![0x48, 0x8b, 0x09]; // mov rcx, [rcx]
            }
        }
        self.hot.raw(&load);
        if instruction.flow_control() == FlowControl::IndirectCall {
            self.mark(Borrowed::Rcx);
            let next = ProgramPc(instruction.next_ip());
            self.push_return(next);
            self.out.next.push((next, true));
        }
        self.go_on_at_target()
    }

    /// Goes on at the address in rcx: in this superblock, where the route says which it will be. The program's rcx is
    /// in the slot.
    pub(super) fn go_on_at_target(&mut self) -> Option<ProgramPc> {
        match self.expected_next() {
            // Where functions may have returned to is for lookups to find, and hooks are at heads.
            Some(target) if !self.source.returns_here(target) && self.source.hook(target).is_none() => {
                self.check_target(target);
                Some(target)
            }
            _ => {
                self.look_up();
                None
            }
        }
    }

    /// Leaves the superblock, by a lookup, when rcx is not `target`.
    fn check_target(&mut self, target: ProgramPc) {
        let check = expansions::check_target(&mut self.hot, target);
        let exit = self.cold.here();
        self.hot.jump(exit);
        check.land(&mut self.hot);
        check.undo(&mut self.cold);
        if !self.pointer_in_r11 {
            expansions::take_r11(&mut self.cold);
        }
        let path = self.path();
        self.cold.record_path(path, self.values.count());
        self.plan.lookup.jump(&mut self.cold);
        self.out.expected.push(target);
    }

    /// The end: goes on at the address in rcx. The program's rcx is in the slot.
    fn look_up(&mut self) {
        self.take_r11();
        self.hot.store_slot(slot::RAX, register::RAX);
        self.record();
        self.plan.lookup.jump(&mut self.hot);
    }

    /// The end: a system call, made by the program itself wherever possible.
    pub(super) fn syscall(&mut self, next: ProgramPc) {
        self.mark(Borrowed::Nothing);
        self.record();
        let taken = |n: u64| TAKEN_SYSCALLS.contains(&n.cast_signed());
        match self.rax {
            Some(number) if taken(number) => self.trap(Trap::Syscall { next }),
            Some(number) => self.native_syscall(next, number.cast_signed() == libc::SYS_futex),
            None => {
                // rcx is free: the call would change it. The number in rax decides.
                let (native, taken) = expansions::tell_calls_apart(&mut self.hot, &self.plan.lookup);
                self.native_syscall(next, true);
                self.hot.land(taken);
                self.trap(Trap::Syscall { next });
                self.hot.land(native);
                self.native_syscall(next, false);
            }
        }
        self.out.next.push((next, false));
    }

    fn native_syscall(&mut self, next: ProgramPc, futex: bool) {
        self.hot.store_slot(slot::POINTER, register::R11);
        self.mark(Borrowed::BeforeSyscall);
        let landings = self.plan.landings;
        expansions::call_at(&mut self.hot, if futex { landings.futex } else { landings.other }, next);
        self.mark_for(self.executed(), Borrowed::AfterSyscall);
        let site = self.hot.jump_site();
        self.link(site, next);
    }
}
