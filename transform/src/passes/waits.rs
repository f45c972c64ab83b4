//! Whether lanes may wait for each other in code: by what a pass makes of it, they must not where one of them waits for
//! another by itself.
//!
//! A lane that is held at a predicted place, or where paths meet, may be the one for which another waits: to give a
//! lock back, to write a flag, to come to a barrier. [`obstacle`] finds whatever could tell a lane that another has
//! done something. Whoever does so by plain loads has a data race, and compilers need not keep that. [`Waits`] finds
//! only what may not return until another has done something.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::alike;
use crate::llvm::{Block, Function, Instruction, Opcode, Value};

/// Why lanes must not wait for each other in these blocks, if so.
pub(super) fn obstacle<'a, 'm: 'a>(blocks: impl IntoIterator<Item = &'a Block<'m>>) -> Option<&'static str> {
    let mut seen = FxHashSet::default();
    let mut open: Vec<Function<'m>> = Vec::new();
    for block in blocks {
        if !block.ends_with_branch() {
            return Some("a block of the region ends with what is no branch");
        }
        if let Some(why) = block.instructions().into_iter().find_map(|i| may_wait(i, &mut open)) {
            return Some(why);
        }
    }
    while let Some(function) = open.pop() {
        if seen.insert(function) {
            let mut all = function.blocks().into_iter().flat_map(Block::instructions);
            if let Some(why) = all.find_map(|i| may_wait(i, &mut open)) {
                return Some(why);
            }
        }
    }
    None
}

/// Why an instruction could be part of a wait for another lane; functions that it calls are added to `called`.
fn may_wait<'m>(i: Instruction<'m>, called: &mut Vec<Function<'m>>) -> Option<&'static str> {
    match i.opcode() {
        Opcode::LLVMLoad | Opcode::LLVMStore if !i.is_plain_access() => {
            Some("lanes could wait for each other there: an access is volatile or atomic")
        }
        Opcode::LLVMAtomicCmpXchg => Some("lanes could wait for each other there: memory is compared and exchanged"),
        Opcode::LLVMAtomicRMW if !i.as_value().uses().is_empty() => {
            Some("lanes could wait for each other there: what an atomic operation found is used")
        }
        Opcode::LLVMCall => {
            let callee = i.callee()?;
            if is_note(callee) {
                return None;
            }
            if let Some(function) = callee.as_defined_function().filter(|function| !function.may_be_replaced()) {
                called.push(function);
                return None;
            }
            if alike::is_convergent(i) {
                return Some("lanes act together there: by a barrier, a vote or an exchange");
            }
            if i.call_has("noreturn") && !callee.name().ends_with("trap") {
                return Some("a lane could end there");
            }
            // What touches no memory learns nothing.
            let is_known = callee.is_function() && callee.is_intrinsic() || i.memory_effects() == Some(0);
            (!is_known).then_some("a call there is of what is not known")
        }
        Opcode::LLVMInvoke | Opcode::LLVMCallBr => Some("a call there can go on at two places"),
        _ => None,
    }
}

/// Which calls of a module may wait for another lane.
#[derive(Default)]
pub(super) struct Waits<'m> {
    known: FxHashMap<Function<'m>, bool>,
}

impl<'m> Waits<'m> {
    /// Whether a call may wait for another lane, as for a lock or at a barrier: one that need not return, of a function
    /// that is not known or acts on memory that others see.
    pub(super) fn may_wait(&mut self, i: Instruction<'m>) -> bool {
        let mut open = Vec::new();
        if i.opcode() != Opcode::LLVMCall || i.call_has("willreturn") {
            return false;
        }
        if may_wait(i, &mut open).is_some() {
            return true;
        }
        open.into_iter().any(|function| self.is_wait(function))
    }

    fn is_wait(&mut self, function: Function<'m>) -> bool {
        if let Some(known) = self.known.get(&function) {
            return *known;
        }
        let (mut seen, mut open) = (FxHashSet::default(), vec![function]);
        let mut waits = false;
        while let Some(one) = open.pop().filter(|_| !waits) {
            if self.known.get(&one) != Some(&false) && seen.insert(one) {
                let all = one.blocks().into_iter().flat_map(Block::instructions);
                let mut all = all.filter(|i| i.opcode() != Opcode::LLVMCall || !i.call_has("willreturn"));
                waits = self.known.get(&one) == Some(&true) || all.any(|i| may_wait(i, &mut open).is_some());
            }
        }
        if waits {
            self.known.insert(function, true);
        } else {
            self.known.extend(seen.into_iter().map(|one| (one, false)));
        }
        waits
    }
}

/// Whether it is inline assembly without an instruction: a mark, or a note to the compiler.
fn is_note(callee: Value<'_>) -> bool {
    let is_comment = |line: &str| line.trim().is_empty() || line.trim().starts_with("//");
    callee.is_inline_assembly() && callee.assembly().is_some_and(|text| text.lines().all(is_comment))
}
