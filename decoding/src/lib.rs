//! A second opinion on what the code of a trace says.
//!
//! The tracer, the view and the classes of instructions believe one decoder, iced-x86. Here each instruction of a trace
//! is decoded by another one, capstone, too, and what matters to a trace is compared: length, kind of control transfer
//! and its target, memory operands (registers, size, reads and writes) and the change of the stack pointer. Where the
//! two are known to differ stands, with who is right, in [`known`] and in `docs/decoding.md`.

mod any;
mod by_capstone;
mod by_iced;
mod check;
pub mod known;
mod opinion;
mod syntax;

pub use any::unexplained;
pub use check::{Difference, Report, check};
pub use opinion::{Access, Aspect, Operand, Opinion, differences};
pub use syntax::{Disassembler, Syntax};
pub use {by_capstone::ByCapstone, by_iced::ByIced};
