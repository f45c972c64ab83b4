//! New instructions.

use std::ffi::CString;

use llvm_sys::core::*;
use llvm_sys::prelude::*;

use super::{Block, Builder, Function, Instruction, Type, Value};

const UNNAMED: *const std::ffi::c_char = c"".as_ptr();

impl<'m> Block<'m> {
    /// The builder at the end of the block.
    fn builder(self) -> LLVMBuilderRef {
        self.module().builder_at(self.raw(), std::ptr::null_mut())
    }

    /// Adds a jump to `target` at the end.
    ///
    /// # Panics
    /// When the blocks are not of one function, or one was erased.
    #[track_caller]
    pub(crate) fn branch_to(self, target: Block<'m>) -> Instruction<'m> {
        self.assert_can_lead_to(target);
        self.module().note_flow_change();
        // SAFETY: the builder stands at the end of this block; both blocks are alive.
        let raw = unsafe { LLVMBuildBr(self.builder(), target.raw()) };
        Instruction::of_raw(raw, self.module())
    }

    /// Ends the block with `unreachable`.
    ///
    /// # Panics
    /// When the block was erased.
    #[track_caller]
    pub(crate) fn end_unreachable(self) -> Instruction<'m> {
        self.assert_in_function();
        self.module().note_flow_change();
        // SAFETY: the builder stands at the end of this block.
        Instruction::of_raw(unsafe { LLVMBuildUnreachable(self.builder()) }, self.module())
    }

    /// Adds a branch at the end: to `yes` when `condition` holds, else to `no`.
    ///
    /// # Panics
    /// When the condition is no truth value, the blocks are not of one function, or something was erased.
    #[track_caller]
    pub(crate) fn branch_on(self, condition: Value<'m>, yes: Block<'m>, no: Block<'m>) -> Instruction<'m> {
        self.assert_can_lead_to(yes);
        self.assert_can_lead_to(no);
        condition.assert_usable_in(self.module());
        assert!(condition.type_of() == self.function().truth_type(), "a branch on what is no truth value");
        self.module().note_flow_change();
        // SAFETY: as in `branch_to`, and the condition is an i1.
        let raw = unsafe { LLVMBuildCondBr(self.builder(), condition.raw(), yes.raw(), no.raw()) };
        Instruction::of_raw(raw, self.module())
    }

    /// Adds a phi at the end of the block, which must hold nothing but phis so far.
    ///
    /// # Panics
    /// When it joins nothing, a value has another type, or something was erased.
    #[track_caller]
    pub(crate) fn add_phi(self, incoming: &[(Value<'m>, Block<'m>)], name: &str) -> Instruction<'m> {
        let builder = self.builder();
        self.phi(builder, incoming, name)
    }

    /// Puts a phi before all else in the block.
    ///
    /// # Panics
    /// When the block is empty, or as [`Block::add_phi`].
    #[track_caller]
    pub(crate) fn add_phi_in_front(self, incoming: &[(Value<'m>, Block<'m>)], name: &str) -> Instruction<'m> {
        let first = self.first().expect("a phi is put before something");
        let builder = self.module().phi_builder_at(self.raw(), first.raw());
        self.phi(builder, incoming, name)
    }

    /// Puts a phi that joins nothing so far before all else in the block: see [`Instruction::add_incoming`].
    ///
    /// # Panics
    /// When the block is empty or was erased, or there are no values of this type, or it is one of another module.
    #[must_use]
    #[track_caller]
    pub(crate) fn begin_phi(self, of_type: Type<'m>, name: &str) -> Instruction<'m> {
        self.assert_in_function();
        self.module().assert_is(of_type.module());
        assert!(of_type.is_first_class(), "a phi of a type without values");
        let first = self.first().expect("a phi is put before something");
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the builder stands in this block; the type has values; the name is copied.
        let raw = unsafe {
            LLVMBuildPhi(self.module().phi_builder_at(self.raw(), first.raw()), of_type.raw(), name.as_ptr())
        };
        Instruction::of_raw(raw, self.module())
    }

    #[track_caller]
    fn phi(self, builder: LLVMBuilderRef, incoming: &[(Value<'m>, Block<'m>)], name: &str) -> Instruction<'m> {
        let of_type = incoming.first().expect("a phi joins something").0.type_of();
        assert!(of_type.is_first_class(), "a phi of a type without values");
        self.assert_in_function();
        for (value, block) in incoming {
            value.assert_usable_in(self.module());
            block.assert_can_lead_to(self);
            assert!(value.type_of() == of_type, "a phi of two types");
        }
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the builder stands in this block; values have the phi's type; both arrays are as long as the count
        // says.
        unsafe {
            let phi = LLVMBuildPhi(builder, of_type.raw(), name.as_ptr());
            let mut values: Vec<LLVMValueRef> = incoming.iter().map(|(value, _)| value.raw()).collect();
            let mut blocks: Vec<LLVMBasicBlockRef> = incoming.iter().map(|(_, block)| block.raw()).collect();
            LLVMAddIncoming(phi, values.as_mut_ptr(), blocks.as_mut_ptr(), incoming.len() as u32);
            Instruction::of_raw(phi, self.module())
        }
    }

    /// Adds, at the end, the choice between two values.
    ///
    /// # Panics
    /// When the types do not fit, or something was erased.
    #[must_use]
    #[track_caller]
    pub fn select(self, condition: Value<'m>, yes: Value<'m>, no: Value<'m>) -> Value<'m> {
        Builder::at_end_of(self).select(condition, yes, no)
    }
}

impl<'m> Instruction<'m> {
    /// Adds to a phi the value that it takes when control comes from this block.
    ///
    /// # Panics
    /// When it is no phi, the value has another type, or something was erased or is of another module or function.
    #[track_caller]
    pub(crate) fn add_incoming(self, value: Value<'m>, from: Block<'m>) {
        let block = self.assert_in_block();
        assert!(self.is_phi(), "{self} joins nothing");
        value.assert_usable_in(self.module());
        from.assert_can_lead_to(block);
        assert!(value.type_of() == self.type_of(), "a phi of two types");
        let (mut value, mut from) = (value.raw(), from.raw());
        // SAFETY: it is a phi of the value's type; both pointers are to one element, as the count says.
        unsafe { LLVMAddIncoming(self.raw(), &raw mut value, &raw mut from, 1) };
    }
}

/// A phi just before another instruction of its block.
#[track_caller]
pub(super) fn phi_before<'m>(place: Instruction<'m>, incoming: &[(Value<'m>, Block<'m>)]) -> Instruction<'m> {
    let block = place.assert_in_block();
    block.phi(block.module().phi_builder_at(block.raw(), place.raw()), incoming, "")
}

/// A variable in the stack frame, for values that must outlive a change of the control flow.
#[derive(Clone, Copy)]
pub struct Slot<'m> {
    variable: Instruction<'m>,
    holds: Type<'m>,
}

impl<'m> Function<'m> {
    /// A new variable, made at the beginning of the entry block.
    ///
    /// # Panics
    /// When there are no values of this type, or it is one of another module.
    #[must_use]
    #[track_caller]
    pub(crate) fn add_slot(self, holds: Type<'m>) -> Slot<'m> {
        self.module().assert_is(holds.module());
        assert!(holds.is_first_class(), "a variable of a type without values");
        let entry = self.entry();
        let first = entry.first_insertion_point();
        let builder = self.module().builder_at(entry.raw(), first.raw());
        // SAFETY: the builder stands in the entry block; the type can be stored.
        let variable = unsafe { LLVMBuildAlloca(builder, holds.raw(), UNNAMED) };
        Slot { variable: Instruction::of_raw(variable, self.module()), holds }
    }
}

impl<'m> Slot<'m> {
    /// Stores a value before an instruction.
    ///
    /// # Panics
    /// When it has another type than the variable, or something was erased or is of another module.
    #[track_caller]
    pub(crate) fn store_before(self, value: Value<'m>, instruction: Instruction<'m>) {
        let module = self.variable.module();
        value.assert_usable_in(module);
        assert!(value.type_of() == self.holds, "a variable takes a value of another type");
        let builder = self.builder_before(instruction);
        // SAFETY: the builder stands in a live block; the value has the variable's type.
        unsafe { LLVMBuildStore(builder, value.raw(), self.variable.raw()) };
    }

    /// Loads the value before an instruction.
    ///
    /// # Panics
    /// When the instruction or the variable was erased, or they are of two modules.
    #[must_use]
    #[track_caller]
    pub(crate) fn load_before(self, instruction: Instruction<'m>) -> Value<'m> {
        let builder = self.builder_before(instruction);
        // SAFETY: the builder stands in a live block; the address is that of a variable of this type.
        let raw = unsafe { LLVMBuildLoad2(builder, self.holds.raw(), self.variable.raw(), UNNAMED) };
        Value::of_raw(raw, self.variable.module())
    }

    #[track_caller]
    fn builder_before(self, instruction: Instruction<'m>) -> LLVMBuilderRef {
        self.variable.assert_in_block();
        self.variable.module().assert_is(instruction.module());
        let block = instruction.assert_in_block();
        instruction.module().builder_at(block.raw(), instruction.raw())
    }

    /// What the variable holds.
    #[must_use]
    pub fn holds(self) -> Type<'m> {
        self.holds
    }

    /// The instructions that store to it, then those that load from it.
    #[must_use]
    pub fn accesses(self) -> (Vec<Instruction<'m>>, Vec<Instruction<'m>>) {
        let users = self.variable.as_value().uses().into_iter().map(|u| u.user);
        users.partition(|user| user.opcode() == super::Opcode::LLVMStore)
    }

    /// Takes the variable out of the function.
    ///
    /// # Panics
    /// When something still stores to it or loads from it, or it was erased before.
    #[track_caller]
    pub fn erase(self) {
        self.variable.erase();
    }
}
