//! Source lines.

use std::ptr;

use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;

use super::Instruction;
use crate::Place;

impl<'m> Instruction<'m> {
    /// The place in the source that it stands for, where the module has lines.
    #[must_use]
    pub fn place(self) -> Option<Place> {
        // SAFETY: it is an instruction, and alive.
        let location = unsafe { LLVMInstructionGetDebugLoc(self.raw()) };
        // SAFETY: it is a location, or none.
        unsafe { place_of(location) }
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

/// The place that a location says.
///
/// # Safety
/// `location` is null or a location of a living context.
unsafe fn place_of(location: LLVMMetadataRef) -> Option<Place> {
    if location.is_null() {
        return None;
    }
    // SAFETY: a location has a scope; a scope may have no file; the text belongs to the context; what it is inlined at
    // is a location or null.
    unsafe {
        let file = LLVMDIScopeGetFile(LLVMDILocationGetScope(location));
        if file.is_null() {
            return None;
        }
        let mut length = 0;
        let name = LLVMDIFileGetFilename(file, &raw mut length);
        Some(Place {
            file: super::owned_text(name, length as usize),
            line: LLVMDILocationGetLine(location),
            column: LLVMDILocationGetColumn(location),
            inlined_at: place_of(LLVMDILocationGetInlinedAt(location)).map(Box::new),
        })
    }
}
