//! Basic blocks.

use std::hash::{Hash, Hasher};

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use rustc_hash::FxHashSet;

use crate::llvm::{Function, Instruction, Module, Opcode, Value};

unsafe extern "C" {
    /// Drops the debug records of an empty block.
    fn lockstep_drop_debug_records(block: LLVMBasicBlockRef);
}

/// A basic block of a function.
#[derive(Clone, Copy)]
pub struct Block<'m> {
    raw: LLVMBasicBlockRef,
    module: &'m Module,
}

impl<'m> Block<'m> {
    pub(in crate::llvm) fn of_raw(raw: LLVMBasicBlockRef, module: &'m Module) -> Block<'m> {
        assert!(!raw.is_null(), "LLVM returned no block where it always has one");
        Block { raw, module }
    }

    pub(in crate::llvm) fn raw(self) -> LLVMBasicBlockRef {
        self.raw
    }

    pub(in crate::llvm) fn module(self) -> &'m Module {
        self.module
    }

    /// The block as an operand of branches.
    pub(in crate::llvm) fn as_value(self) -> Value<'m> {
        // SAFETY: the block is alive.
        Value::of_raw(unsafe { LLVMBasicBlockAsValue(self.raw) }, self.module)
    }

    /// The function that it is a block of.
    ///
    /// # Panics
    /// When it is in none.
    #[must_use]
    #[track_caller]
    pub fn function(self) -> Function<'m> {
        self.assert_in_function();
        // SAFETY: the block is alive.
        Function::of_raw(unsafe { LLVMGetBasicBlockParent(self.raw) }, self.module)
    }

    /// Refuses a block that was erased: nothing is put there any more, and nothing leads there.
    #[track_caller]
    pub(in crate::llvm) fn assert_in_function(self) {
        // SAFETY: the block is alive, if perhaps in no function.
        let inside = unsafe { !LLVMGetBasicBlockParent(self.raw).is_null() };
        assert!(inside, "a block that was erased is used");
    }

    /// Refuses a block to which a terminator of this block cannot lead: one of another function or module, one that was
    /// erased.
    #[track_caller]
    pub(in crate::llvm) fn assert_can_lead_to(self, other: Block<'m>) {
        self.module.assert_is(other.module);
        assert!(self.function() == other.function(), "a block leads to one of another function");
    }

    /// Its label; empty where it has none.
    #[must_use]
    pub fn name(self) -> String {
        self.as_value().name()
    }

    /// Its instructions in order, phis first, the terminator last.
    #[must_use]
    pub fn instructions(self) -> Vec<Instruction<'m>> {
        let mut instructions = Vec::new();
        // SAFETY: the block is alive; each instruction is one of its list while the next is asked for.
        unsafe {
            let mut instruction = LLVMGetFirstInstruction(self.raw);
            while !instruction.is_null() {
                instructions.push(Instruction::of_raw(instruction, self.module));
                instruction = LLVMGetNextInstruction(instruction);
            }
        }
        instructions
    }

    /// How many instructions it has.
    #[must_use]
    pub fn len(self) -> usize {
        self.instructions().len()
    }

    /// Whether it has no instructions, as a block just made.
    #[must_use]
    pub fn is_empty(self) -> bool {
        // SAFETY: the block is alive.
        unsafe { LLVMGetFirstInstruction(self.raw).is_null() }
    }

    /// Its first instruction.
    #[must_use]
    pub fn first(self) -> Option<Instruction<'m>> {
        self.leading().next()
    }

    /// Its instructions in order, each found when it is asked for: for looks at the first few, while nothing changes.
    fn leading(self) -> impl Iterator<Item = Instruction<'m>> {
        // SAFETY: the block is alive.
        let first = unsafe { LLVMGetFirstInstruction(self.raw) };
        let first = (!first.is_null()).then(|| Instruction::of_raw(first, self.module));
        std::iter::successors(first, |i| i.next())
    }

    /// Its phis.
    #[must_use]
    pub fn phis(self) -> Vec<Instruction<'m>> {
        self.leading().take_while(|i| i.is_phi()).collect()
    }

    /// The instruction that ends it.
    ///
    /// # Panics
    /// When the block is not finished.
    #[must_use]
    pub fn terminator(self) -> Instruction<'m> {
        // SAFETY: the block is alive.
        let raw = unsafe { LLVMGetBasicBlockTerminator(self.raw) };
        assert!(!raw.is_null(), "a block without a terminator");
        Instruction::of_raw(raw, self.module)
    }

    /// The first instruction before which others can be put: after phis and landing pads.
    #[must_use]
    pub(crate) fn first_insertion_point(self) -> Instruction<'m> {
        let found = self.leading().find(|i| !i.is_phi() && !i.begins_handler());
        found.expect("a block ends with a terminator")
    }

    /// Whether exceptions land here.
    #[must_use]
    pub fn is_handler(self) -> bool {
        self.leading().find(|i| !i.is_phi()).is_some_and(Instruction::begins_handler)
    }

    /// Whether its address is taken: then it cannot get another beginning.
    #[must_use]
    pub fn has_address(self) -> bool {
        // SAFETY: the block is alive, its uses are walked while they do not change.
        unsafe {
            let mut link = LLVMGetFirstUse(LLVMBasicBlockAsValue(self.raw));
            while !link.is_null() {
                if LLVMIsAInstruction(LLVMGetUser(link)).is_null() {
                    return true;
                }
                link = LLVMGetNextUse(link);
            }
        }
        false
    }

    /// The terminators that lead here, each once, in no particular order.
    #[must_use]
    pub fn entering(self) -> Vec<Instruction<'m>> {
        let mut terminators: Vec<Instruction<'m>> = Vec::new();
        let mut seen = FxHashSet::default();
        // SAFETY: as in `has_address`.
        unsafe {
            let mut link = LLVMGetFirstUse(LLVMBasicBlockAsValue(self.raw));
            while !link.is_null() {
                let user = LLVMGetUser(link);
                if !LLVMIsATerminatorInst(user).is_null() {
                    let user = Instruction::of_raw(user, self.module);
                    if seen.insert(user) {
                        terminators.push(user);
                    }
                }
                link = LLVMGetNextUse(link);
            }
        }
        terminators
    }

    /// Makes every edge that leads here lead to `other`. Phis stay as they are.
    ///
    /// # Panics
    /// When an edge cannot be moved: one of an indirect branch.
    #[track_caller]
    pub(crate) fn move_entries_to(self, other: Block<'m>) {
        let mut edges = Vec::new();
        // SAFETY: as in `has_address`.
        unsafe {
            let mut link = LLVMGetFirstUse(LLVMBasicBlockAsValue(self.raw));
            while !link.is_null() {
                let user = LLVMGetUser(link);
                if !LLVMIsATerminatorInst(user).is_null() {
                    edges.push((Instruction::of_raw(user, self.module), link));
                }
                link = LLVMGetNextUse(link);
            }
        }
        for (terminator, link) in edges {
            terminator.lead_elsewhere(link, other);
        }
    }

    /// Puts the block after another of its function.
    ///
    /// # Panics
    /// When they are of two functions, or one.
    #[track_caller]
    pub(crate) fn move_after(self, other: Block<'m>) {
        self.module.assert_is(other.module);
        assert!(self.function() == other.function(), "a block is moved to another function");
        assert!(self != other, "a block is moved after itself");
        self.module.note_flow_change();
        // SAFETY: both are alive and of one function.
        unsafe { LLVMMoveBasicBlockAfter(self.raw, other.raw) };
    }

    /// Adds an empty block just before this one.
    ///
    /// # Panics
    /// When this one was erased.
    #[must_use]
    #[track_caller]
    pub(crate) fn insert_before(self, name: &str) -> Block<'m> {
        self.assert_in_function();
        self.module.note_flow_change();
        let name = std::ffi::CString::new(name).unwrap_or_default();
        // SAFETY: the block is in a function; the name is copied.
        let raw = unsafe { LLVMInsertBasicBlockInContext(self.module.context(), self.raw, name.as_ptr()) };
        Block::of_raw(raw, self.module)
    }

    /// Moves what stands before `first`, phis included, into a new block that goes on here: all edges that led here
    /// lead to the new block, which is returned. Edges that leave are not touched, so that phis further down stay
    /// right.
    ///
    /// # Panics
    /// When `first` is not in this block or is one of its phis, or when this is the entry or cannot be entered
    /// otherwise.
    #[must_use]
    pub(crate) fn split_before(self, first: Instruction<'m>, name: &str) -> Block<'m> {
        assert!(first.block() == Some(self) && !first.is_phi(), "a block is split at an instruction of its own");
        assert!(self.function().entry() != self, "the entry block cannot get another beginning");
        let head = self.insert_before(name);
        self.move_entries_to(head);
        for instruction in self.instructions().into_iter().take_while(|&i| i != first) {
            instruction.move_to_end_of(head);
        }
        head.branch_to(self);
        head
    }

    /// Takes the block, with what is left in it, out of the function.
    ///
    /// # Panics
    /// When it can still be entered, or what is left in it is used elsewhere, or it was erased before.
    #[track_caller]
    pub fn erase(self) {
        self.assert_in_function();
        assert!(self.entering().is_empty() && !self.has_address(), "a block that can be entered is erased");
        let instructions = self.instructions();
        for instruction in &instructions {
            let elsewhere = instruction.as_value().uses().into_iter().find(|u| u.user.block() != Some(self));
            let user = elsewhere.map(|u| u.user.to_string());
            assert!(
                user.is_none(),
                "{instruction} is erased with its block, though {} uses it",
                user.unwrap_or_default()
            );
        }
        instructions.into_iter().for_each(Instruction::discard);
        self.module.note_flow_change();
        // SAFETY: the block is in a function, and empty.
        unsafe { lockstep_drop_debug_records(self.raw) };
        // SAFETY: the block is in a function, and nothing leads to it.
        unsafe { LLVMRemoveBasicBlockFromParent(self.raw) };
        self.module.bury_block(self.raw);
    }

    /// Whether it ends with a plain branch or a switch.
    #[must_use]
    pub(crate) fn ends_with_branch(self) -> bool {
        matches!(self.terminator().opcode(), Opcode::LLVMBr | Opcode::LLVMSwitch)
    }
}

impl PartialEq for Block<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Block<'_> {}

impl Hash for Block<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}
