//! A second opinion on the code of a trace.
//!
//! The tracer, the view and the classes of instructions rely on one decoder, iced-x86. This crate decodes each
//! instruction of a trace with another one, capstone. It compares what matters to a trace: length, kind of control
//! transfer and its target, memory operands (registers, size, reads and writes) and the change of the stack pointer.
//! [`known`] and `docs/decoding.md` list where the two are known to differ, and who is right.

mod any;
mod by_capstone;
mod by_iced;
mod check;
pub mod known;
mod opinion;

pub use any::unexplained;
pub use check::{Difference, Report, check};
pub use opinion::{Access, Aspect, Operand, Opinion, differences};
pub use {by_capstone::ByCapstone, by_iced::ByIced};
