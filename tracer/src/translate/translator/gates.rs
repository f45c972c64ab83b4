//! Gates in the code that is translated.

use super::Translator;
use crate::switch::Switch;
use crate::translate::addresses::ProgramPc;
use crate::translate::code::plan::Source;
use crate::translate::code::superblock::Trap;
use crate::usage::Why;

impl Translator {
    /// Whether the superblock starts with the trap of a gate.
    pub fn is_gated(&self, number: u32) -> bool {
        matches!(self.trap(self.superblock(number).body), Some(Trap::Gate(_)))
    }

    /// Whether the code of `pc` starts with the trap of a gate, or will when it is translated.
    pub fn has_gate(&mut self, pc: ProgramPc) -> bool {
        self.code.gate(pc) == Some(true)
    }

    /// From now on gates count as the switch says: code that starts at one is translated again.
    pub fn heed(&mut self, switch: &Switch) {
        self.code.gates.follow(switch);
        self.revivable.clear();
        for pc in self.code.gates.in_functions() {
            self.give_up(pc, Why::Gate);
        }
    }

    /// A call may return to this address, which is a gate from now on: all code that runs into it is translated again.
    pub fn add_gate(&mut self, pc: ProgramPc) {
        if self.code.gates.add_return(pc) {
            self.revivable.clear();
            self.give_up_all_with(pc, Why::Gate);
        }
    }
}
