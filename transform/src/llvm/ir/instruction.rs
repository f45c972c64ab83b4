//! Instructions: what they are, what they use, where they stand.

use std::ffi::CString;
use std::fmt;
use std::hash::{Hash, Hasher};

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMAtomicOrdering, LLVMOpcode};

use crate::llvm::{Block, Module, Opcode, Type, Value};

/// One use of a value: this operand of this instruction.
#[derive(Clone, Copy)]
pub struct Use<'m> {
    /// Who uses it.
    pub user: Instruction<'m>,
    /// As which operand.
    pub operand: u32,
}

impl<'m> Use<'m> {
    /// The block at whose end (for a phi) or in which (for all others) the value must be there.
    #[must_use]
    pub(crate) fn needed_in(self) -> Option<Block<'m>> {
        if self.user.is_phi() { Some(self.user.incoming_block(self.operand)) } else { self.user.block() }
    }
}

/// An instruction.
#[derive(Clone, Copy)]
pub struct Instruction<'m> {
    raw: LLVMValueRef,
    module: &'m Module,
}

impl<'m> Instruction<'m> {
    pub(in crate::llvm) fn of_raw(raw: LLVMValueRef, module: &'m Module) -> Instruction<'m> {
        assert!(!raw.is_null(), "LLVM returned no instruction where it always has one");
        Instruction { raw, module }
    }

    pub(in crate::llvm) fn raw(self) -> LLVMValueRef {
        self.raw
    }

    pub(in crate::llvm) fn module(self) -> &'m Module {
        self.module
    }

    /// What it makes, as a value.
    #[must_use]
    pub fn as_value(self) -> Value<'m> {
        Value::of_raw(self.raw, self.module)
    }

    /// The type of what it makes; `void` where it makes nothing.
    #[must_use]
    pub fn type_of(self) -> Type<'m> {
        self.as_value().type_of()
    }

    /// What kind of instruction it is.
    #[must_use]
    pub fn opcode(self) -> LLVMOpcode {
        // SAFETY: it is an instruction, and alive.
        unsafe { LLVMGetInstructionOpcode(self.raw) }
    }

    /// Whether it joins values by where control came from.
    #[must_use]
    pub fn is_phi(self) -> bool {
        self.opcode() == Opcode::LLVMPHI
    }

    /// Whether it ends its block.
    #[must_use]
    pub fn is_terminator(self) -> bool {
        // SAFETY: it is an instruction, and alive.
        unsafe { !LLVMIsATerminatorInst(self.raw).is_null() }
    }

    /// Whether it is the instruction at which exceptions land.
    #[must_use]
    pub(crate) fn begins_handler(self) -> bool {
        use LLVMOpcode::*;
        matches!(self.opcode(), LLVMLandingPad | LLVMCatchPad | LLVMCleanupPad | LLVMCatchSwitch)
    }

    /// Its block; `None` once erased.
    #[must_use]
    pub fn block(self) -> Option<Block<'m>> {
        // SAFETY: it is an instruction, and alive.
        let raw = unsafe { LLVMGetInstructionParent(self.raw) };
        (!raw.is_null()).then(|| Block::of_raw(raw, self.module))
    }

    /// What it uses, in order. For branches that includes blocks, for calls what is called (last).
    #[must_use]
    pub fn operands(self) -> Vec<Value<'m>> {
        // SAFETY: it is an instruction, and alive; the index is below the count.
        unsafe {
            let count = LLVMGetNumOperands(self.raw) as u32;
            (0..count).map(|i| Value::of_raw(LLVMGetOperand(self.raw, i), self.module)).collect()
        }
    }

    /// Refuses an instruction that was erased.
    #[track_caller]
    pub(in crate::llvm) fn assert_in_block(self) -> Block<'m> {
        self.block().unwrap_or_else(|| panic!("{self} was erased, and is used again"))
    }

    /// Its operand number `index`.
    ///
    /// # Panics
    /// When there is no such operand.
    #[must_use]
    #[track_caller]
    pub fn operand(self, index: u32) -> Value<'m> {
        // SAFETY: it is an instruction, and alive; the index is below the count.
        unsafe {
            let count = LLVMGetNumOperands(self.raw);
            assert!(i64::from(index) < i64::from(count), "{self} has no operand number {index}");
            Value::of_raw(LLVMGetOperand(self.raw, index), self.module)
        }
    }

    /// Makes it use `value` as its operand number `index`.
    ///
    /// # Panics
    /// When there is no such operand, one of another type, or one that LLVM wants to be a constant and would be none: a
    /// case of a switch, a clause of a landing pad, a field of a structure. When an instruction was erased, or the
    /// value is of another module.
    #[track_caller]
    pub fn set_operand(self, index: u32, value: Value<'m>) {
        self.assert_in_block();
        value.assert_usable_in(self.module);
        let old = self.operand(index);
        assert!(old.type_of() == value.type_of(), "an operand is replaced by one of another type");
        assert!(old.type_of().is_first_class(), "an operand is replaced that is no value of the program");
        let constant_only = match self.opcode() {
            Opcode::LLVMSwitch => index > 0,
            // The address comes first, then the blocks.
            Opcode::LLVMIndirectBr => index > 0,
            Opcode::LLVMLandingPad | Opcode::LLVMCatchPad | Opcode::LLVMCleanupPad => true,
            Opcode::LLVMGetElementPtr => index > 1 && old.is_constant() && !value.is_constant(),
            _ => false,
        };
        assert!(!constant_only, "operand {index} of {self} must stay a constant");
        // SAFETY: there is such an operand, the type is the same, and what LLVM takes for a constant stays one.
        unsafe { LLVMSetOperand(self.raw, index, value.raw()) };
    }

    /// Where a terminator leads.
    #[must_use]
    pub fn successors(self) -> Vec<Block<'m>> {
        if !self.is_terminator() {
            return Vec::new();
        }
        // SAFETY: it is a terminator; the index is below the count.
        unsafe {
            let count = LLVMGetNumSuccessors(self.raw);
            (0..count).map(|i| Block::of_raw(LLVMGetSuccessor(self.raw, i), self.module)).collect()
        }
    }

    /// Makes the edge number `index` of a terminator lead to `block`.
    ///
    /// # Panics
    /// When there is no such edge, the terminator is an indirect branch or one of inline assembly, or terminator or
    /// block were erased or are not of one function.
    #[track_caller]
    pub(crate) fn set_successor(self, index: usize, block: Block<'m>) {
        self.assert_in_block().assert_can_lead_to(block);
        // SAFETY: only terminators are asked how many successors they have.
        let successors = unsafe {
            match LLVMIsATerminatorInst(self.raw).is_null() {
                true => 0,
                false => LLVMGetNumSuccessors(self.raw) as usize,
            }
        };
        assert!(index < successors, "a terminator without such a successor");
        self.assert_edges_can_move();
        self.module.note_flow_change();
        // SAFETY: it is a terminator with more than `index` successors.
        unsafe { LLVMSetSuccessor(self.raw, index as u32, block.raw()) };
    }

    #[track_caller]
    fn assert_edges_can_move(self) {
        let movable = !matches!(self.opcode(), Opcode::LLVMIndirectBr | Opcode::LLVMCallBr);
        assert!(movable, "an edge that depends on the address of a block is moved");
    }

    /// Makes the edge of a terminator that is this use of a block lead to `block`. Its number is not looked for: a
    /// switch may have thousands.
    ///
    /// # Panics
    /// As [`Instruction::set_successor`].
    #[track_caller]
    pub(in crate::llvm) fn lead_elsewhere(self, link: LLVMUseRef, block: Block<'m>) {
        self.assert_in_block().assert_can_lead_to(block);
        self.assert_edges_can_move();
        // SAFETY: the terminator is alive; a number is used only of an operand that it has.
        unsafe {
            let operands = LLVMGetNumOperands(self.raw).max(0) as u32;
            let at = |number: u32| LLVMGetOperandUse(self.raw, number) as usize;
            // Uses of one instruction lie in a row.
            let apart = if operands > 1 { at(1).wrapping_sub(at(0)) } else { 0 };
            let guessed = (link as usize).wrapping_sub(at(0)).checked_div(apart).and_then(|n| u32::try_from(n).ok());
            let is_it = |number: &u32| *number < operands && at(*number) == link as usize;
            let number = guessed.filter(is_it).or_else(|| (0..operands).find(is_it));
            let number = number.expect("a use is an operand of its user");
            self.module.note_flow_change();
            LLVMSetOperand(self.raw, number, LLVMBasicBlockAsValue(block.raw()));
        }
    }

    /// What a branch with two ways decides by.
    #[must_use]
    pub fn condition(self) -> Option<Value<'m>> {
        // SAFETY: the second question is put to branches, the third to conditional ones.
        unsafe {
            let conditional = self.opcode() == Opcode::LLVMBr && LLVMIsConditional(self.raw) != 0;
            conditional.then(|| Value::of_raw(LLVMGetCondition(self.raw), self.module))
        }
    }

    /// The block that a phi's operand number `index` comes from.
    ///
    /// # Panics
    /// When it is no phi, or has fewer operands.
    #[must_use]
    pub(crate) fn incoming_block(self, index: u32) -> Block<'m> {
        assert!(self.is_phi(), "{self} joins nothing");
        // SAFETY: it is a phi, and the index is below the count.
        unsafe {
            assert!(index < LLVMCountIncoming(self.raw), "{self} joins fewer values");
            Block::of_raw(LLVMGetIncomingBlock(self.raw, index), self.module)
        }
    }

    /// What a phi takes when control comes from this block.
    #[must_use]
    pub fn incoming_from(self, block: Block<'m>) -> Option<Value<'m>> {
        // SAFETY: it is a phi where the count is asked for; the index is below the count.
        unsafe {
            let count = if self.is_phi() { LLVMCountIncoming(self.raw) } else { 0 };
            let index = (0..count).find(|&i| LLVMGetIncomingBlock(self.raw, i) == block.raw())?;
            Some(Value::of_raw(LLVMGetIncomingValue(self.raw, index), self.module))
        }
    }

    /// The instruction after it in its block.
    #[must_use]
    pub fn next(self) -> Option<Instruction<'m>> {
        // SAFETY: one that was erased has none, and is not asked.
        let raw = self.block().map(|_| unsafe { LLVMGetNextInstruction(self.raw) })?;
        (!raw.is_null()).then(|| Instruction::of_raw(raw, self.module))
    }

    /// A phi's values and the blocks that they come from; nothing for other instructions.
    #[must_use]
    pub fn incoming(self) -> Vec<(Value<'m>, Block<'m>)> {
        if !self.is_phi() {
            return Vec::new();
        }
        // SAFETY: it is a phi; the index is below the count.
        unsafe {
            let count = LLVMCountIncoming(self.raw);
            (0..count)
                .map(|i| {
                    let value = Value::of_raw(LLVMGetIncomingValue(self.raw, i), self.module);
                    (value, Block::of_raw(LLVMGetIncomingBlock(self.raw, i), self.module))
                })
                .collect()
        }
    }

    /// Takes it out of its block and puts it before another instruction.
    ///
    /// # Panics
    /// When it or the other was erased, both are the same, or they are of two modules.
    #[track_caller]
    pub fn move_before(self, other: Instruction<'m>) {
        self.module.assert_is(other.module);
        let block = other.assert_in_block();
        assert!(self != other, "an instruction is moved before itself");
        let name = self.unlink();
        let builder = self.builder_before(block, other);
        // SAFETY: it is in no block, and the builder stands in a live one; the name is copied.
        unsafe { LLVMInsertIntoBuilderWithName(builder, self.raw, name.as_ptr()) };
    }

    /// The builder, placed before another instruction, for this one.
    fn builder_before(self, block: Block<'m>, other: Instruction<'m>) -> LLVMBuilderRef {
        if self.is_phi() {
            self.module.phi_builder_at(block.raw(), other.raw)
        } else {
            self.module.builder_at(block.raw(), other.raw)
        }
    }

    /// Takes it out of its block and puts it at the end of another.
    ///
    /// # Panics
    /// When it or the block was erased, or they are of two modules.
    #[track_caller]
    pub fn move_to_end_of(self, block: Block<'m>) {
        self.module.assert_is(block.module());
        block.assert_in_function();
        let name = self.unlink();
        let builder = self.module.builder_at(block.raw(), std::ptr::null_mut());
        // SAFETY: it is in no block, and the builder stands in a live one; the name is copied.
        unsafe { LLVMInsertIntoBuilderWithName(builder, self.raw, name.as_ptr()) };
    }

    /// A copy of it, put before another instruction.
    ///
    /// # Panics
    /// When it or the other was erased, or they are of two modules.
    #[must_use]
    #[track_caller]
    pub fn copy_before(self, other: Instruction<'m>) -> Instruction<'m> {
        self.module.assert_is(other.module);
        let block = other.assert_in_block();
        let builder = self.builder_before(block, other);
        self.insert_copy(builder)
    }

    /// A copy of it, put at the end of a block.
    ///
    /// # Panics
    /// When it or the block was erased, or they are of two modules.
    #[must_use]
    #[track_caller]
    pub(crate) fn copy_to_end_of(self, block: Block<'m>) -> Instruction<'m> {
        self.module.assert_is(block.module());
        block.assert_in_function();
        let builder = self.module.builder_at(block.raw(), std::ptr::null_mut());
        self.insert_copy(builder)
    }

    #[track_caller]
    fn insert_copy(self, builder: LLVMBuilderRef) -> Instruction<'m> {
        self.assert_in_block();
        if self.is_terminator() {
            self.module.note_flow_change();
        }
        // SAFETY: the copy is in no block, and the builder stands in a live one.
        unsafe {
            let copy = LLVMInstructionClone(self.raw);
            LLVMInsertIntoBuilder(builder, copy);
            Instruction::of_raw(copy, self.module)
        }
    }

    /// Takes it out of its block; its name, which putting it into another would take away.
    #[track_caller]
    fn unlink(self) -> CString {
        self.assert_in_block();
        if self.is_terminator() {
            self.module.note_flow_change();
        }
        let name = CString::new(self.as_value().name()).unwrap_or_default();
        // SAFETY: it is in a block.
        unsafe { LLVMInstructionRemoveFromParent(self.raw) };
        name
    }

    /// Takes it out of the program; it uses nothing any more.
    ///
    /// # Panics
    /// When an instruction still uses what it makes, or it was erased before.
    #[track_caller]
    pub fn erase(self) {
        self.assert_in_block();
        let users = self.as_value().uses();
        let user = users.first().map(|u| u.user.to_string());
        assert!(user.is_none(), "{self} is erased, though {} uses it", user.unwrap_or_default());
        self.discard();
    }

    /// As [`Instruction::erase`]; the caller must erase all that uses it too.
    #[track_caller]
    pub(in crate::llvm) fn discard(self) {
        self.unlink();
        for (i, _) in self.successors().iter().enumerate() {
            // SAFETY: it is a terminator with that many successors, in no block, and never runs again.
            unsafe { LLVMSetSuccessor(self.raw, i as u32, self.module.nowhere().raw()) };
        }
        for (i, operand) in self.operands().into_iter().enumerate() {
            let of_type = operand.type_of();
            // SAFETY: there is such an operand; poison, and the token that is none, have its type.
            unsafe {
                if of_type.has_poison() {
                    LLVMSetOperand(self.raw, i as u32, LLVMGetPoison(of_type.raw()));
                } else if of_type.is_token() {
                    LLVMSetOperand(self.raw, i as u32, LLVMConstNull(of_type.raw()));
                }
            }
        }
        if self.type_of().has_poison() {
            // What is left are notes for a debugger, and instructions that are discarded too.
            // SAFETY: poison has its type and is not it.
            unsafe { LLVMReplaceAllUsesWith(self.raw, LLVMGetPoison(self.type_of().raw())) };
        }
        self.module.bury(self.raw);
    }

    /// Whether both do the same to operands of the same types, promises aside; always false for kinds that passes never
    /// merge: atomics, volatile accesses, calls, allocas, terminators, phis.
    #[must_use]
    pub(crate) fn does_the_same_as(self, other: Instruction<'m>) -> bool {
        use LLVMOpcode::*;
        if self.opcode() != other.opcode() || self.type_of() != other.type_of() {
            return false;
        }
        let (mine, others) = (self.operands(), other.operands());
        if mine.len() != others.len() || mine.iter().zip(&others).any(|(a, b)| a.type_of() != b.type_of()) {
            return false;
        }
        // SAFETY: each question is put to the kinds that it is defined for, since both are of that kind.
        unsafe {
            match self.opcode() {
                LLVMFNeg | LLVMAdd | LLVMFAdd | LLVMSub | LLVMFSub | LLVMMul | LLVMFMul | LLVMUDiv | LLVMSDiv
                | LLVMFDiv | LLVMURem | LLVMSRem | LLVMFRem | LLVMShl | LLVMLShr | LLVMAShr | LLVMAnd | LLVMOr
                | LLVMXor | LLVMTrunc | LLVMZExt | LLVMSExt | LLVMFPToUI | LLVMFPToSI | LLVMUIToFP | LLVMSIToFP
                | LLVMFPTrunc | LLVMFPExt | LLVMPtrToInt | LLVMIntToPtr | LLVMBitCast | LLVMSelect | LLVMFreeze => true,
                LLVMICmp => LLVMGetICmpPredicate(self.raw) == LLVMGetICmpPredicate(other.raw),
                LLVMFCmp => LLVMGetFCmpPredicate(self.raw) == LLVMGetFCmpPredicate(other.raw),
                LLVMGetElementPtr => LLVMGetGEPSourceElementType(self.raw) == LLVMGetGEPSourceElementType(other.raw),
                LLVMLoad | LLVMStore => self.is_plain_access() && other.is_plain_access(),
                _ => false,
            }
        }
    }

    /// Lets a load or store promise no more about its address than another of its kind does.
    ///
    /// # Panics
    /// When they are not both loads or both stores.
    #[track_caller]
    pub(crate) fn lower_alignment_to(self, other: Instruction<'m>) {
        let accesses = matches!(self.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore);
        assert!(accesses && self.opcode() == other.opcode(), "alignment of what are no accesses of one kind");
        // SAFETY: both are loads, or both are stores; what one of them has is a power of two.
        unsafe {
            let least = LLVMGetAlignment(self.raw).min(LLVMGetAlignment(other.raw));
            LLVMSetAlignment(self.raw, least);
        }
    }

    /// Whether it is a load or store that is neither volatile nor atomic.
    #[must_use]
    pub(crate) fn is_plain_access(self) -> bool {
        let accesses = matches!(self.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore);
        // SAFETY: the questions are put to loads and stores only.
        accesses
            && unsafe {
                LLVMGetVolatile(self.raw) == 0
                    && LLVMGetOrdering(self.raw) == LLVMAtomicOrdering::LLVMAtomicOrderingNotAtomic
            }
    }
}

/// As IR text.
impl fmt::Display for Instruction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: it is a value, and alive; LLVM returns a text of its own making, which `taken_message` frees.
        let text = unsafe { crate::llvm::ir::module::taken_message(LLVMPrintValueToString(self.raw)) };
        f.write_str(text.trim())
    }
}

impl PartialEq for Instruction<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Instruction<'_> {}

impl Hash for Instruction<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}
