//! Source lines.

use std::ptr;

use llvm_sys::debuginfo::*;

use super::Instruction;

impl<'m> Instruction<'m> {
    /// The source file and line that it stands for, where the module has lines.
    #[must_use]
    pub fn line(self) -> Option<(String, u32)> {
        // SAFETY: it is an instruction; a location has a scope; a scope may have no file; the text belongs to the context.
        unsafe {
            let location = LLVMInstructionGetDebugLoc(self.raw());
            if location.is_null() {
                return None;
            }
            let file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
            if file.is_null() {
                return None;
            }
            let mut length = 0;
            let name = LLVMDIFileGetFilename(file, &raw mut length);
            Some((super::owned_text(name, length as usize), LLVMDILocationGetLine(location)))
        }
    }

    /// Gives it the location of another.
    ///
    /// # Panics
    /// When they are of two modules.
    #[track_caller]
    pub fn take_location(self, other: Instruction<'m>) {
        self.module().assert_is(other.module());
        // SAFETY: both are instructions of one context; no location is one too.
        unsafe { LLVMInstructionSetDebugLoc(self.raw(), LLVMInstructionGetDebugLoc(other.raw())) };
    }

    /// Gives it the location of what stands for both others: theirs when they have the same line, else line 0 of what encloses both, which tells
    /// a debugger that no one line is right.
    ///
    /// # Panics
    /// When they are not of one module.
    #[track_caller]
    pub fn join_locations(self, one: Instruction<'m>, other: Instruction<'m>) {
        self.module().assert_is(one.module());
        self.module().assert_is(other.module());
        // SAFETY: all are instructions of one context; locations and scopes are asked for what they have. The function of an instruction in a
        // block has a subprogram wherever its instructions have locations, since the verifier wants it so.
        unsafe {
            let (a, b) = (LLVMInstructionGetDebugLoc(one.raw()), LLVMInstructionGetDebugLoc(other.raw()));
            let context = self.module().context();
            let of_one_scope = !a.is_null()
                && !b.is_null()
                && LLVMDILocationGetScope(a) == LLVMDILocationGetScope(b)
                && LLVMDILocationGetInlinedAt(a) == LLVMDILocationGetInlinedAt(b);
            let subprogram = self.block().map_or(ptr::null_mut(), |block| LLVMGetSubprogram(block.function().raw()));
            let location = if of_one_scope {
                let lines = (LLVMDILocationGetLine(a), LLVMDILocationGetLine(b));
                let line = if lines.0 == lines.1 { lines.0 } else { 0 };
                let (scope, inlined) = (LLVMDILocationGetScope(a), LLVMDILocationGetInlinedAt(a));
                LLVMDIBuilderCreateDebugLocation(context, line, 0, scope, inlined)
            } else if subprogram.is_null() {
                ptr::null_mut()
            } else {
                LLVMDIBuilderCreateDebugLocation(context, 0, 0, subprogram, ptr::null_mut())
            };
            LLVMInstructionSetDebugLoc(self.raw(), location);
        }
    }
}
