//! What a register allocator did to a function, in numbers.

use std::fmt;

/// Registers that are too few, and the code for what they do not hold: counts in a function's code, not in its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Spills {
    /// Registers that the scan had.
    pub registers: usize,
    /// Values that are kept elsewhere.
    pub values: usize,
    /// Stores to local memory.
    pub stores: usize,
    /// Stores to memory that a warp shares.
    pub shared_stores: usize,
    /// Loads from local memory.
    pub local: usize,
    /// Uses of a value that is a constant.
    pub constant: usize,
    /// Loads of a uniform value from memory that a warp shares.
    pub uniform: usize,
    /// Uses of an affine value that is computed again.
    pub affine: usize,
    /// Uses of an affine value whose unknown part the warp shares.
    pub mixed: usize,
    /// Values in registers that cannot be kept elsewhere.
    pub fixed: usize,
    /// Bytes that a warp shares for one call of the function.
    pub bytes: u64,
}

impl Spills {
    pub(super) fn numbers(&self) -> Vec<(&'static str, i64)> {
        let counts = [
            ("registers", self.registers),
            ("values", self.values),
            ("stores", self.stores),
            ("shared_stores", self.shared_stores),
            ("local", self.local),
            ("constant", self.constant),
            ("uniform", self.uniform),
            ("affine", self.affine),
            ("mixed", self.mixed),
            ("fixed", self.fixed),
            ("bytes", self.bytes as usize),
        ];
        counts.map(|(name, count)| (name, count as i64)).to_vec()
    }
}

impl fmt::Display for Spills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spills { registers, stores, shared_stores, local, constant, uniform, affine, mixed, fixed, bytes, .. } =
            self;
        write!(
            f,
            "{registers} registers; {stores} stores to local memory, {shared_stores} to shared; uses: {local} loads from local \
             memory, {constant} of constants, {uniform} uniform from shared, {affine} computed again, {mixed} both; \
             {fixed} values cannot be spilled; {bytes} bytes shared"
        )
    }
}
