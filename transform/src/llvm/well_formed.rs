//! A module that LLVM's verifier has accepted and that nobody has changed since.

use llvm_sys::debuginfo::LLVMStripModuleDebugInfo;

use super::{CodeOptions, Module};

/// A module that is well formed. Code that assumes this need not run the verifier, which looks at every instruction,
/// again. No handle into the module is left, and none can be had without giving this up.
pub struct WellFormed(Module);

impl Module {
    /// The module as one that is well formed.
    ///
    /// # Errors
    /// What LLVM's verifier says, line by line.
    pub(crate) fn well_formed(mut self) -> Result<WellFormed, String> {
        self.sweep();
        self.verify().map(|()| WellFormed(self))
    }
}

impl WellFormed {
    /// The module, which may be changed again.
    #[must_use]
    pub(crate) fn into_module(self) -> Module {
        self.0
    }

    /// The same without debug information: lines, variables, types.
    #[must_use]
    pub(crate) fn without_debug_information(self) -> WellFormed {
        // SAFETY: the module is alive, and no handle into it is left; what is well formed stays so.
        unsafe { LLVMStripModuleDebugInfo(self.0.raw()) };
        self
    }

    /// [`Module::to_bitcode`].
    #[must_use]
    pub fn to_bitcode(&self) -> Vec<u8> {
        self.0.bitcode_of_well_formed()
    }

    /// [`Module::to_text`].
    #[must_use]
    pub fn to_text(&self) -> String {
        self.0.to_text()
    }

    /// [`Module::into_object`].
    #[must_use]
    pub fn into_object(self, options: &CodeOptions) -> Option<Vec<u8>> {
        self.0.object_of_well_formed(options)
    }
}
