//! How memory addresses follow from what the stream holds.
//!
//! Most addresses need no number of their own: those relative to the instruction or to the stack pointer follow from
//! what is already known, and those relative to a register that has not changed, or has changed by a constant, follow
//! from one number for all of them. A block may say so: then the stream holds, for each execution, *values* (what some
//! registers held), and each address is a sum.
//!
//! ```text
//! mov rax, [rdi+8]       value 0 is rdi:  value 0 + 8
//! add rdi, 16
//! mov [rdi+rcx*4], rax   value 1 is rcx:  value 0 + 4 x value 1 + 16
//! ```

use crate::{Block, SpEffect};

/// What a term of an address stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The value with this number among those that one execution of the block has in the stream.
    Value(u32),
    /// The stack pointer: 0 is the one before the block, n the one after its n-th instruction with
    /// [`SpEffect::Recorded`].
    StackPointer(u32),
}

/// A source and how often it is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Term {
    /// What is added.
    pub source: Source,
    /// How often.
    pub factor: i64,
}

/// A memory address as a sum, modulo 2^64.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Address {
    /// The constant part.
    pub constant: u64,
    /// The terms that are added: at most [`Address::MAX_TERMS`].
    pub terms: Vec<Term>,
}

impl Address {
    /// The most terms of one address.
    pub const MAX_TERMS: usize = 4;

    /// The address that is a value itself.
    #[must_use]
    pub fn of_value(number: u32) -> Address {
        Address { constant: 0, terms: vec![Term { source: Source::Value(number), factor: 1 }] }
    }

    /// The address for an execution that began with the stack pointer `sp`, and has these recorded stack pointers and
    /// values.
    ///
    /// # Panics
    /// When a source is missing: readers and writers check blocks before they use them.
    #[must_use]
    #[inline]
    pub fn evaluate(&self, sp: u64, sps: &[u64], values: &[u64]) -> u64 {
        self.terms.iter().fold(self.constant, |sum, term| {
            let source = match term.source {
                Source::Value(number) => values[number as usize],
                Source::StackPointer(0) => sp,
                Source::StackPointer(number) => sps[number as usize - 1],
            };
            sum.wrapping_add((term.factor as u64).wrapping_mul(source))
        })
    }
}

impl Block {
    /// The most addresses of a block that are given as sums: reading a file takes time in proportion to its size.
    pub const MAX_SUMS: usize = 4 * Block::MAX_INSTRUCTIONS;

    /// How many values the stream holds for each execution of the first instructions of the block, after each
    /// instruction; or the fault of its sums.
    pub(crate) fn values_after_each(&self) -> Result<Vec<u32>, String> {
        let (mut sps, mut values) = (0u32, 0u32);
        let mut sums = self.addresses.iter();
        let all = self.instructions.iter().map(|i| usize::from(i.memory)).sum::<usize>();
        if !self.addresses.is_empty() && (self.addresses.len() != all || all > Self::MAX_SUMS) {
            return Err(format!("{} sums for {all} addresses; the most is {}", self.addresses.len(), Self::MAX_SUMS));
        }
        let mut after = Vec::with_capacity(self.instructions.len());
        for instruction in &self.instructions {
            if self.addresses.is_empty() {
                values += u32::from(instruction.memory);
            } else {
                for sum in sums.by_ref().take(instruction.memory.into()) {
                    check_terms(sum, sps, &mut values)
                        .map_err(|what| format!("an address of the instruction at {}: {what}", instruction.pc))?;
                }
            }
            sps += u32::from(instruction.sp == SpEffect::Recorded);
            after.push(values);
        }
        Ok(after)
    }
}

/// Values are numbered in the order in which sums first name them, so that the first instructions of a block need the
/// first values.
fn check_terms(sum: &Address, sps: u32, values: &mut u32) -> Result<(), String> {
    if sum.terms.len() > Address::MAX_TERMS {
        return Err(format!("{} terms; the most is {}", sum.terms.len(), Address::MAX_TERMS));
    }
    for term in &sum.terms {
        match term.source {
            Source::Value(number) if number > *values => return Err(format!("value {number} comes before {values}")),
            Source::Value(number) => *values += u32::from(number == *values),
            Source::StackPointer(number) if number > sps => {
                return Err(format!("stack pointer {number} where {sps} are recorded"));
            }
            Source::StackPointer(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Instruction, Kind, Pc};

    fn sum(constant: u64, terms: &[(Source, i64)]) -> Address {
        Address { constant, terms: terms.iter().map(|&(source, factor)| Term { source, factor }).collect() }
    }

    fn block(addresses: Vec<Address>) -> Block {
        let sp = |n| if n == 0 { SpEffect::Recorded } else { SpEffect::Add(0) };
        let instruction = |n: u64| Instruction { pc: Pc(n), len: 1, kind: Kind::Plain, sp: sp(n), memory: 1 };
        Block { instructions: (0..2).map(instruction).collect(), code: vec![0x90; 2], addresses }
    }

    #[test]
    fn an_address_is_the_sum_of_its_terms() {
        let address = sum(16, &[(Source::Value(0), 1), (Source::Value(1), 4)]);
        assert_eq!(address.evaluate(0, &[], &[0x1000, 3]), 0x101c);
        assert_eq!(sum(8, &[(Source::StackPointer(0), 1)]).evaluate(0x7000, &[0x8000], &[]), 0x7008);
        assert_eq!(sum(8, &[(Source::StackPointer(1), -1)]).evaluate(0x7000, &[0x10], &[]), u64::MAX - 7);
    }

    #[test]
    fn sums_name_only_what_is_there_by_then() {
        let after = |a: Address, b: Address| block(vec![a, b]).values_after_each();
        let [zero, one] = [0, 1].map(Address::of_value);
        assert_eq!(block(Vec::new()).values_after_each(), Ok(vec![1, 2]), "without sums each address is a value");
        assert_eq!(after(zero.clone(), zero.clone()), Ok(vec![1, 1]));
        assert_eq!(after(zero.clone(), one.clone()), Ok(vec![1, 2]));
        assert!(after(one, zero.clone()).unwrap_err().contains("value 1 comes before 0"));
        let sp = sum(0, &[(Source::StackPointer(1), 1)]);
        assert_eq!(after(Address::default(), sp.clone()), Ok(vec![0, 0]));
        assert!(after(sp, zero.clone()).unwrap_err().contains("stack pointer 1 where 0 are recorded"));
        assert!(block(vec![zero.clone()]).values_after_each().is_err(), "one sum for two addresses");
        let long = sum(0, &[(Source::StackPointer(0), 1); 5]);
        assert!(after(long, zero).unwrap_err().contains("5 terms"));
    }
}
