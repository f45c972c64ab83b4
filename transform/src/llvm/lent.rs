//! A module that somebody else owns, as LLVM's own tools do.

use llvm_sys::prelude::*;

use super::Module;

/// A module of somebody else's, which passes can run on. It stays where it is; what was erased is deleted when this
/// goes. LLVM complains to its owner.
pub struct Lent(Module);

impl Lent {
    /// This module, for as long as the value lives.
    ///
    /// # Safety
    /// The module is well formed; while the value lives nobody else uses it, or anything of its context.
    #[must_use]
    pub unsafe fn new(raw: LLVMModuleRef) -> Lent {
        // SAFETY: the caller says so.
        Lent(unsafe { Module::lent(raw) })
    }

    /// The module.
    pub fn module(&mut self) -> &mut Module {
        &mut self.0
    }

    /// A copy of it, in a context of its own.
    ///
    /// # Panics
    /// When LLVM cannot read what it has written.
    #[must_use]
    pub fn copy(&self) -> Module {
        Module::parse(&self.0.bitcode_of_well_formed(), "a copy").expect("LLVM reads what it has written")
    }
}
