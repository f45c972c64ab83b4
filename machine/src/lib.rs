//! What the instructions of a program do, read from their code bytes once and asked by all who look at code.
//!
//! A [`Table`] holds decoded instructions; a [`Listing`] is a row of them, an [`Instruction`] one. An instruction says
//! which registers, flags and memory it reads and writes, what it is to control and to the stack pointer, and, as a
//! [`Step`], what it does with values. The words are those of any processor. What is x86-64's own lies in
//! [`x86_64`], the one place outside of the tracer's translator that knows a decoder.

mod memory;
mod register;
mod step;
pub mod x86_64;

pub use memory::{Memory, Segment};
pub use register::{Access, Register, RegisterPart, Registers, Use};
pub use step::{Condition, Operand, Operation, Operator, Step};
pub use x86_64::gpu_code::{GpuAccess, GpuInstruction};
pub use x86_64::instruction::Instruction;
pub use x86_64::syntax::{Disassembler, Syntax};
pub use x86_64::table::{Listing, Table};
pub use x86_64::{instruction_of, target};

/// So many low bytes, all ones.
#[must_use]
pub fn low_bytes(size: usize) -> u64 {
    if size < 8 { (1 << (8 * size)) - 1 } else { u64::MAX }
}
