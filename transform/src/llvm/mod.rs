//! LLVM IR behind safe types: all the unsafe code of this crate.
//!
//! [`Module`] owns a context and a module; everything else is a handle that borrows it. Four rules make the handles
//! safe:
//!
//! 1. **Nothing dies while a handle lives.** [`Instruction::erase`] refuses what is still used, and only unlinks: the
//!    instruction stops using anything, and is deleted by [`Module::sweep`], which takes the module by `&mut`, so that
//!    no handle is left. Optimiser passes, which delete what they like, take it by `&mut` too.
//! 2. **What was erased stays out.** Handles of it can be compared and printed; nothing can use it, lead to it, move it
//!    back, put something into it or erase it again. Assertions that are always on see to that.
//! 3. **A handle's type says what it points at.** Handles are made here only, of what LLVM returned for that kind;
//!    conversions ([`Value::as_instruction`]) ask LLVM first.
//! 4. **Calls that LLVM defines for some kinds only are guarded** by a check of the kind, also in release builds:
//!    LLVM's own assertions are compiled out of the shared library. Optimiser passes and the writer of bitcode assume a
//!    well-formed module, so the verifier runs first.
//!
//! The first rule is the borrow checker's: no handle outlives what may delete.
//!
//! ```compile_fail,E0502
//! let mut module = transform::llvm::Module::parse(b"define void @f() { ret void }", "f.ll").unwrap();
//! let function = module.functions()[0];
//! module.sweep();
//! function.name();
//! ```
//!
//! `scripts/check-memory` runs this folder's unit tests under valgrind. LLVM's lists change under a handle's feet; so
//! every list is returned as a vector.
#![allow(unsafe_code)]

mod assemble;
mod build;
mod code;
mod copy;
mod inspect;
mod ir;
mod lent;
mod optimise;
#[cfg(test)]
mod tests;
mod well_formed;

pub use assemble::{Binary, Builder, Comparison};
pub use build::Slot;
pub use code::{CodeOptions, TARGET};
pub use copy::Copies;
pub use inspect::AddressParts;
pub use ir::block::Block;
pub use ir::debug::Location;
pub use ir::function::Function;
pub use ir::instruction::{Instruction, Use};
pub use ir::module::Module;
pub use ir::value::{Shape, Type, Value};
pub use lent::Lent;
pub use llvm_sys::LLVMOpcode as Opcode;
pub use optimise::Tuning;
pub use well_formed::WellFormed;

/// The text that LLVM returned as pointer and length.
///
/// # Safety
/// `text` points at `length` bytes that live during the call, or `length` is 0.
unsafe fn owned_text(text: *const std::ffi::c_char, length: usize) -> String {
    if text.is_null() || length == 0 {
        return String::new();
    }
    // SAFETY: the caller says so; the bytes are only read here and copied.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}
