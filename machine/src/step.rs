//! What instructions do with values.

use crate::RegisterPart;

/// What an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(RegisterPart),
    /// Its memory: the first of [`Instruction::memory`](crate::Instruction::memory), where it is accessed.
    Memory,
    /// A constant that stands in the code.
    Constant(i64),
    /// Something else: several values, a place to go to, memory that the instruction implies.
    Several,
}

/// By which an accumulator takes one more value; all of them are associative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// A sum, or a difference of one accumulator and many values.
    Add,
    /// A product.
    Multiply,
    /// Bits that all have.
    And,
    /// Bits that one has.
    Or,
    /// Bits that an odd number has.
    Xor,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// One of both, chosen by a comparison.
    Select,
}

/// What an instruction does with values: by this they can be followed through registers and slots of the stack.
///
/// Example: `lea rax, [rsp+8]` is an update of `rsp` by 8 to `rax`, `push rbx` a copy from `rbx` to memory, whose place
/// [`Memory`](crate::Memory) tells: 8 below the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A value is moved as it is, or made wider.
    Copy {
        /// What is moved.
        from: Operand,
        /// To there.
        to: Operand,
        /// Whether it is made wider by its sign; else what is above it becomes 0, or is left where a register keeps it.
        is_signed: bool,
    },
    /// `to` becomes `acc` and one more value, `by`.
    Update {
        /// How both become one.
        operator: Operator,
        /// The accumulator.
        acc: Operand,
        /// The other value. A constant that is subtracted is negative.
        by: Operand,
        /// Where the result goes.
        to: Operand,
        /// Whether `acc` and `by` can change places.
        commutes: bool,
    },
    /// Something else: what it writes is not known any more.
    Other,
}

/// What an instruction is called, as far as somebody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It moves a value as it is.
    Move,
    /// It makes a value wider.
    Extend,
    /// It works out an address and does not access it (`lea`).
    Address,
    /// It pushes what it names.
    Push,
    /// It pops to what it names.
    Pop,
    /// It ends a frame: the stack pointer gets the frame pointer's value, which is popped.
    Leave,
    /// `add`
    Add,
    /// `sub`
    Subtract,
    /// `and`
    And,
    /// `or`
    Or,
    /// `xor`
    Xor,
    /// `not`
    Not,
    /// `neg`
    Negate,
    /// `shl`
    ShiftLeft,
    /// `div`, `idiv`
    Divide,
    /// It compares two values, for the flags alone.
    Compare,
    /// It looks at the bits that two values have in common, for the flags alone.
    Test,
    /// A condition becomes 0 or 1 (`setcc`).
    SetIf,
    /// Both operands change places.
    Exchange,
    /// `cmpxchg` and its wider kin.
    CompareExchange,
    /// `xadd`
    ExchangeAdd,
    /// A bit is set, and what it was is known.
    TestAndSet,
    /// A bit is cleared, and what it was is known.
    TestAndClear,
    /// It gets something from outside of the program: the time, a random number, the processor's number.
    Outside,
    /// It asks the kernel.
    Syscall,
    /// It does nothing, or stops a program that should not have come there: `nop`, `int3`.
    Nothing,
    /// Anything else.
    Other,
}

/// When something is done, as far as somebody asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Where the zero flag is set.
    Equal,
    /// Where it is not.
    NotEqual,
    /// Where the carry flag is set.
    Below,
    /// Where it is not.
    NotBelow,
    /// Always, or when something else holds.
    Other,
}
