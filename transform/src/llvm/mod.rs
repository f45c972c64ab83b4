//! LLVM IR behind safe types: all the unsafe code of this crate.
//!
//! [`Module`] owns a context and a module; everything else is a handle that borrows it. Three rules make the handles safe:
//!
//! 1. **Nothing dies while a handle lives.** [`Instruction::erase`] refuses what is still used, and only unlinks: the
//!    instruction stops using anything, and is deleted by [`Module::sweep`], which takes the module by `&mut`, so that
//!    no handle is left. Optimiser passes, which delete what they like, take it by `&mut` too.
//! 2. **A handle's type says what it points at.** Handles are made here only, of what LLVM returned for that kind; conversions
//!    ([`Value::as_instruction`]) ask LLVM first.
//! 3. **Calls that LLVM defines for some kinds only are guarded** by a look at the kind, also in release builds: LLVM's own
//!    assertions are compiled out of the shared library.
//!
//! LLVM's lists change under a handle's feet; so every list is returned as a vector.
#![allow(unsafe_code)]

mod attributes;
mod block;
mod build;
mod debug;
mod function;
mod instruction;
mod module;
mod value;

pub use block::Block;
pub use build::Slot;
pub use function::Function;
pub use instruction::{Instruction, Use};
pub use llvm_sys::LLVMOpcode as Opcode;
pub use module::Module;
pub use value::{Shape, Type, Value};

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
