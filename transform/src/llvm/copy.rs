//! Copies of blocks.

use llvm_sys::core::*;
use rustc_hash::FxHashMap;

use super::{Block, Function, Instruction, Value};

/// What stands for what in a copy.
#[derive(Default)]
pub struct Copies<'m> {
    values: FxHashMap<Value<'m>, Value<'m>>,
    blocks: FxHashMap<Block<'m>, Block<'m>>,
}

impl<'m> Copies<'m> {
    /// The copy of a value; the value itself, where it was not copied.
    #[must_use]
    pub fn of(&self, value: Value<'m>) -> Value<'m> {
        self.values.get(&value).copied().unwrap_or(value)
    }

    /// The copy of a block; the block itself, where it was not copied.
    #[must_use]
    pub fn of_block(&self, block: Block<'m>) -> Block<'m> {
        self.blocks.get(&block).copied().unwrap_or(block)
    }
}

impl<'m> Function<'m> {
    /// Copies blocks, at the end of the function; nothing leads to the copies yet, except from each other. Edges that
    /// leave lead where they led, and phis there get the copies' values too. A phi in a copy keeps what comes from
    /// copied blocks, and what came from a block that is the first of a pair in `entered` comes from the second now.
    ///
    /// # Panics
    /// When a block is not of this function, or something in it cannot be copied ([`Instruction::can_be_copied`]), or a
    /// phi would join nothing.
    #[must_use]
    #[track_caller]
    pub(crate) fn copy_blocks(self, blocks: &[Block<'m>], entered: &[(Block<'m>, Block<'m>)]) -> Copies<'m> {
        let mut copies = Copies::default();
        for &block in blocks {
            self.module().assert_is(block.module());
            assert!(block.function() == self, "a block of another function is copied");
            let odd = block.instructions().into_iter().find(|i| !i.can_be_copied());
            assert!(odd.is_none(), "{} is copied", odd.map(|i| i.to_string()).unwrap_or_default());
            copies.blocks.insert(block, self.add_block(&format!("{}.copy", block.name())));
        }
        for &block in blocks {
            let to = copies.of_block(block);
            for instruction in block.instructions() {
                let copy = instruction.copy_to_end_of(to);
                copies.values.insert(instruction.as_value(), copy.as_value());
            }
        }
        for &block in blocks {
            for (original, copy) in block.instructions().into_iter().zip(copies.of_block(block).instructions()) {
                if original.is_phi() {
                    copies.redo_phi(original, copy, entered);
                } else {
                    copies.redirect(copy);
                }
            }
            copies.feed_phis_behind(block);
        }
        copies
    }
}

impl<'m> Copies<'m> {
    /// Makes a copy use copies, and lead to copies.
    fn redirect(&self, copy: Instruction<'m>) {
        for (i, operand) in copy.operands().into_iter().enumerate() {
            let new = self.of(operand);
            if new != operand {
                copy.set_operand(i as u32, new);
            }
        }
        for (i, successor) in copy.successors().into_iter().enumerate() {
            let new = self.of_block(successor);
            if new != successor {
                copy.set_successor(i, new);
            }
        }
    }

    /// Puts a phi with the right blocks in the place of the copy of one.
    fn redo_phi(&mut self, original: Instruction<'m>, copy: Instruction<'m>, entered: &[(Block<'m>, Block<'m>)]) {
        let from = |block: Block<'m>| {
            let inside = self.blocks.get(&block).copied();
            inside.or_else(|| entered.iter().find(|(old, _)| *old == block).map(|(_, new)| *new))
        };
        let kept = original.incoming().into_iter().filter_map(|(value, block)| Some((self.of(value), from(block)?)));
        let kept: Vec<_> = kept.collect();
        assert!(!kept.is_empty(), "the copy of {original} joins nothing");
        // All phis stay in front, in their order.
        let new = super::build::phi_before(copy, &kept);
        new.take_location(original);
        copy.as_value().replace_all_uses_with(new.as_value());
        copy.erase();
        self.values.insert(original.as_value(), new.as_value());
    }

    /// Gives the phis of blocks that were not copied what comes from the copy of `block`.
    fn feed_phis_behind(&self, block: Block<'m>) {
        for successor in block.terminator().successors() {
            if self.blocks.contains_key(&successor) {
                continue;
            }
            for phi in successor.phis() {
                let Some(value) = phi.incoming_from(block) else { continue };
                let (value, from) = (self.of(value), self.of_block(block));
                value.assert_usable_in(phi.module());
                // SAFETY: the value has the phi's type, since what it is a copy of has; both arrays have one element.
                unsafe { LLVMAddIncoming(phi.raw(), &mut value.raw(), &mut from.raw(), 1) };
            }
        }
    }
}
