//! Which numbers of a record go to the trace, and which addresses of an execution follow from them.

use rustc_hash::FxHashMap;
use trace_format::{Address, Instruction, Source, SpEffect};

use crate::translate::code::superblock::Superblock;
use crate::translate::code::values::{Operand, OtherOperand};

/// How the stack pointers and the values of an execution in the trace follow from its record.
#[derive(Clone)]
pub(super) struct Recipe {
    /// The places of the stack pointers in the record.
    pub(super) sps: Vec<u16>,
    pub(super) values: Vec<Taken>,
}

/// Where a value of the trace comes from.
#[derive(Clone)]
pub(super) enum Taken {
    /// From this place of the record.
    Value(u16),
    /// It is the address of an operand that takes more than a sum.
    Address(OtherOperand),
}

/// How the record of a superblock's first instructions, which are these, becomes stack pointers and values of the
/// trace, and how its addresses follow from them.
pub(super) fn recipe(superblock: &Superblock, instructions: &[Instruction]) -> (Recipe, Vec<Address>) {
    let mut recipe = Recipe { sps: Vec::new(), values: Vec::new() };
    let mut addresses = Vec::new();
    let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
    let mut operands = superblock.operands.iter();
    for (i, instruction) in instructions.iter().enumerate() {
        for operand in operands.by_ref().take(instruction.memory.into()) {
            addresses.push(match operand {
                Operand::Sum(sum) => {
                    let mut sum = sum.clone();
                    for term in &mut sum.terms {
                        if let Source::Value(place) = &mut term.source {
                            *place = *numbers.entry(*place).or_insert_with(|| {
                                recipe.values.push(Taken::Value(*place as u16));
                                recipe.values.len() as u32 - 1
                            });
                        }
                    }
                    sum
                }
                Operand::Other(operand) => {
                    recipe.values.push(Taken::Address((**operand).clone()));
                    Address::of_value(recipe.values.len() as u32 - 1)
                }
            });
        }
        if instruction.sp == SpEffect::Recorded {
            // It is the last value of its instruction.
            recipe.sps.push(superblock.values_after(i + 1) - 1);
        }
    }
    (recipe, addresses)
}
