//! Source lines.

use std::marker::PhantomData;
use std::path::Path;
use std::ptr;

use llvm_sys::debuginfo::*;
use llvm_sys::prelude::*;

use crate::Place;
use crate::llvm::{Instruction, Module};

impl Module {
    /// All instructions of all functions with a body, in order. Numbers of instructions are places in this list.
    #[must_use]
    pub fn instructions(&self) -> Vec<Instruction<'_>> {
        let blocks = self.functions().into_iter().flat_map(crate::llvm::Function::blocks);
        blocks.flat_map(crate::llvm::Block::instructions).collect()
    }

    /// Gives each instruction a place of its own, in place of those of the source: its number, from 1, as the line of
    /// `file` in `folder`. So what code generation makes of it can be found by the line table. Functions without debug
    /// information, and instructions that only describe variables, stay as they are.
    pub(crate) fn number_places(&self, folder: &str, file: &str) {
        // SAFETY: the module is alive; texts are given with their lengths. Scopes are made for subprograms of this
        // module, and locations for those scopes. The builder is disposed of once, after its last use; what it made is
        // the context's.
        unsafe {
            let builder = LLVMCreateDIBuilder(self.raw());
            let file = LLVMDIBuilderCreateFile(
                builder,
                file.as_ptr().cast(),
                file.len(),
                folder.as_ptr().cast(),
                folder.len(),
            );
            let (mut function, mut scope) = (None, ptr::null_mut());
            for (number, instruction) in self.instructions().into_iter().enumerate() {
                let own = instruction.block().map(crate::llvm::Block::function);
                if own != function {
                    function = own;
                    let subprogram = own.map_or(ptr::null_mut(), |f| LLVMGetSubprogram(f.raw()));
                    scope = match subprogram.is_null() {
                        true => subprogram,
                        false => LLVMDIBuilderCreateLexicalBlockFile(builder, subprogram, file, 0),
                    };
                }
                let describes = instruction.callee().is_some_and(|callee| callee.name().starts_with("llvm.dbg."));
                if scope.is_null() || describes {
                    continue;
                }
                let line = u32::try_from(number + 1).unwrap_or(0);
                let location = LLVMDIBuilderCreateDebugLocation(self.context(), line, 0, scope, ptr::null_mut());
                LLVMInstructionSetDebugLoc(instruction.raw(), location);
            }
            LLVMDisposeDIBuilder(builder);
        }
    }
}

/// What LLVM keeps once for all instructions that have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location<'m> {
    location: LLVMMetadataRef,
    module: PhantomData<&'m Module>,
}

impl<'m> Instruction<'m> {
    /// The place in the source that it stands for, where the module has lines.
    #[must_use]
    pub fn place(self) -> Option<Place> {
        // SAFETY: it is an instruction, and alive.
        let location = unsafe { LLVMInstructionGetDebugLoc(self.raw()) };
        // SAFETY: it is a location, or none.
        unsafe { place_of(location) }
    }

    /// Its line, with the whole path of the file, then those of the calls through which it was inlined, as far as they
    /// have one. Empty without lines.
    #[must_use]
    pub fn lines(self) -> Vec<(String, u32)> {
        let mut lines = Vec::new();
        // SAFETY: it is an instruction, and alive; a location has a scope, and is inlined at a location or null.
        unsafe {
            let mut location = LLVMInstructionGetDebugLoc(self.raw());
            while !location.is_null() {
                let (file, line) =
                    (LLVMDIScopeGetFile(LLVMDILocationGetScope(location)), LLVMDILocationGetLine(location));
                if !file.is_null() && line > 0 {
                    lines.push((path_of(file), line));
                }
                location = LLVMDILocationGetInlinedAt(location);
            }
        }
        lines
    }

    /// Its location: the place with the function, and with the calls through which it was inlined there.
    #[must_use]
    pub fn location(self) -> Option<Location<'m>> {
        // SAFETY: it is an instruction, and alive.
        let location = unsafe { LLVMInstructionGetDebugLoc(self.raw()) };
        (!location.is_null()).then_some(Location { location, module: PhantomData })
    }

    /// Gives it the location of another.
    ///
    /// # Panics
    /// When they are of two modules.
    #[track_caller]
    pub(crate) fn take_location(self, other: Instruction<'m>) {
        self.module().assert_is(other.module());
        // SAFETY: both are instructions of one context; no location is one too.
        unsafe { LLVMInstructionSetDebugLoc(self.raw(), LLVMInstructionGetDebugLoc(other.raw())) };
    }

    /// Gives it the location of what stands for both others: theirs when they have the same line, else line 0 of what
    /// encloses both, which tells a debugger that no one line is right.
    ///
    /// # Panics
    /// When they are not of one module.
    #[track_caller]
    pub(crate) fn join_locations(self, one: Instruction<'m>, other: Instruction<'m>) {
        self.module().assert_is(one.module());
        self.module().assert_is(other.module());
        // SAFETY: all are instructions of one context; locations and scopes are asked for what they have. The function
        // of an instruction in a block has a subprogram wherever its instructions have locations, since the verifier
        // wants it so.
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

/// The path of a file: behind its folder, unless it begins at the root.
///
/// # Safety
/// `file` is a file of a living context.
unsafe fn path_of(file: LLVMMetadataRef) -> String {
    let (mut of_name, mut of_folder) = (0, 0);
    // SAFETY: it is a file, whose texts belong to the context.
    let [name, folder] = unsafe {
        let (name, folder) =
            (LLVMDIFileGetFilename(file, &raw mut of_name), LLVMDIFileGetDirectory(file, &raw mut of_folder));
        [crate::llvm::owned_text(name, of_name as usize), crate::llvm::owned_text(folder, of_folder as usize)]
    };
    Path::new(&folder).join(name).display().to_string()
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
            file: crate::llvm::owned_text(name, length as usize),
            line: LLVMDILocationGetLine(location),
            column: LLVMDILocationGetColumn(location),
            inlined_at: place_of(LLVMDILocationGetInlinedAt(location)).map(Box::new),
        })
    }
}
