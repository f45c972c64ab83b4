//! Code generation, in the same way as clang does it.

use std::ffi::{CString, c_char, c_int};
use std::sync::Mutex;

use llvm_sys::core::{LLVMDisposeMemoryBuffer, LLVMGetBufferSize, LLVMGetBufferStart, LLVMGetModuleInlineAsm};
use llvm_sys::prelude::*;
use llvm_sys::target::{
    LLVMInitializeX86AsmParser, LLVMInitializeX86AsmPrinter, LLVMInitializeX86Target, LLVMInitializeX86TargetInfo,
    LLVMInitializeX86TargetMC,
};

use super::Module;

/// The target for which [`Module::into_object`] makes code.
pub const TARGET: &str = "x86_64-pc-linux-gnu";

/// What code generation needs besides the module. The names are those of clang's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeOptions {
    /// `-target-cpu`: the processor, for code that does not name its own.
    pub processor: String,
    /// `-target-feature`, joined by commas.
    pub features: String,
    /// `-I`: folders in which the assembler looks for files.
    pub includes: Vec<String>,
    /// How hard to try: 0 to 3, as after `-O`.
    pub level: u8,
    /// `-mrelocation-model pic` instead of `static`.
    pub position_independent: bool,
    /// `-ffunction-sections`.
    pub function_sections: bool,
    /// `-fdata-sections`.
    pub data_sections: bool,
    /// Not `-fno-unique-section-names`.
    pub unique_section_names: bool,
    /// `-faddrsig`: a table of the symbols whose address matters.
    pub address_significance: bool,
    /// Not `-fno-use-init-array`.
    pub init_array: bool,
    /// Call sites in debug information, which clang writes with `-g` for optimised code.
    pub call_sites: bool,
    /// `-mrelax-all`.
    pub relax_all: bool,
    /// What stands behind `-mllvm`.
    pub llvm: Vec<String>,
}

/// The same as `LockstepCode` in code.cpp.
#[repr(C)]
struct Raw {
    processor: *const c_char,
    features: *const c_char,
    includes: *const *const c_char,
    include_count: usize,
    level: u32,
    position_independent: bool,
    function_sections: bool,
    data_sections: bool,
    unique_section_names: bool,
    address_significance: bool,
    init_array: bool,
    call_sites: bool,
    relax_all: bool,
}

unsafe extern "C" {
    fn lockstep_set_options(count: c_int, words: *const *const c_char) -> bool;
    fn lockstep_bitcode(module: LLVMModuleRef) -> LLVMMemoryBufferRef;
    fn lockstep_object(module: LLVMModuleRef, code: *const Raw) -> LLVMMemoryBufferRef;
}

/// The bytes of a buffer, which is disposed of.
///
/// # Safety
/// `buffer` is one that LLVM handed over.
unsafe fn taken_bytes(buffer: LLVMMemoryBufferRef) -> Vec<u8> {
    // SAFETY: the buffer lives until it is disposed of, after its bytes were copied.
    unsafe {
        let start = LLVMGetBufferStart(buffer).cast::<u8>();
        let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(buffer)).to_vec();
        LLVMDisposeMemoryBuffer(buffer);
        bytes
    }
}

impl Module {
    /// The module as bitcode, with the order in which values are used.
    ///
    /// # Panics
    /// When it is not well formed: LLVM's writer assumes that it is.
    #[must_use]
    #[track_caller]
    pub fn to_bitcode(&self) -> Vec<u8> {
        if let Err(text) = self.verify() {
            panic!("bitcode of a module that is not well formed: {text}");
        }
        self.bitcode_of_well_formed()
    }

    /// [`Module::to_bitcode`] of a module that was verified and not changed since.
    pub(super) fn bitcode_of_well_formed(&self) -> Vec<u8> {
        // SAFETY: the module is alive and well formed; the buffer is handed over.
        unsafe { taken_bytes(lockstep_bitcode(self.raw())) }
    }

    /// An object file with the module's code, byte for byte the one that clang 19 makes of it. None if that is not
    /// certain: the module is of another target than [`TARGET`] or holds assembly besides its functions, it is not well
    /// formed, LLVM reports something about it, or the process has generated code with other options of LLVM's.
    ///
    /// Options of LLVM's command line hold for the process; optimiser passes that run after this see them too.
    #[must_use]
    pub fn into_object(self, options: &CodeOptions) -> Option<Vec<u8>> {
        self.well_formed().ok()?.into_object(options)
    }

    /// [`Module::into_object`] of a module that was verified and not changed since.
    pub(super) fn object_of_well_formed(self, options: &CodeOptions) -> Option<Vec<u8>> {
        if self.target() != TARGET || self.has_assembly() || !set(&options.llvm) {
            return None;
        }
        let text = |text: &str| CString::new(text).ok();
        let (processor, features) = (text(&options.processor)?, text(&options.features)?);
        let includes: Vec<CString> = options.includes.iter().map(|folder| text(folder)).collect::<Option<_>>()?;
        let folders: Vec<*const c_char> = includes.iter().map(|folder| folder.as_ptr()).collect();
        let raw = Raw {
            processor: processor.as_ptr(),
            features: features.as_ptr(),
            includes: folders.as_ptr(),
            include_count: folders.len(),
            level: options.level.into(),
            position_independent: options.position_independent,
            function_sections: options.function_sections,
            data_sections: options.data_sections,
            unique_section_names: options.unique_section_names,
            address_significance: options.address_significance,
            init_array: options.init_array,
            call_sites: options.call_sites,
            relax_all: options.relax_all,
        };
        let before = self.complaints().len();
        // SAFETY: all texts end with a zero and live during the call, as the module does, which is well formed and
        // borrowed by no handle; the buffer lives until it is disposed of, after its bytes were copied.
        let object = unsafe {
            LLVMInitializeX86TargetInfo();
            LLVMInitializeX86Target();
            LLVMInitializeX86TargetMC();
            LLVMInitializeX86AsmPrinter();
            LLVMInitializeX86AsmParser();
            let buffer = lockstep_object(self.raw(), &raw const raw);
            if buffer.is_null() {
                return None;
            }
            taken_bytes(buffer)
        };
        (self.complaints().len() == before).then_some(object)
    }

    /// Whether there is assembly besides the functions.
    fn has_assembly(&self) -> bool {
        let mut length = 0;
        // SAFETY: the module is alive; only the length is looked at.
        unsafe { LLVMGetModuleInlineAsm(self.raw(), &raw mut length) };
        length > 0
    }
}

/// Sets options of LLVM's command line. They can be set once in a process: false for others, and for unknown ones.
pub(super) fn set(words: &[String]) -> bool {
    /// What was set, and whether LLVM took it.
    static SET: Mutex<Option<(Vec<String>, bool)>> = Mutex::new(None);
    let mut set = SET.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (before, taken) = set.get_or_insert_with(|| (words.to_vec(), parse(words)));
    *taken && *before == words
}

/// Has LLVM read options.
fn parse(words: &[String]) -> bool {
    if words.is_empty() {
        return true;
    }
    let words = ["lockstep"].into_iter().chain(words.iter().map(String::as_str));
    let Ok(texts) = words.map(CString::new).collect::<Result<Vec<_>, _>>() else { return false };
    let words: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    let Ok(count) = c_int::try_from(words.len()) else { return false };
    // SAFETY: `words` holds `count` texts that end with a zero and live during the call.
    unsafe { lockstep_set_options(count, words.as_ptr()) }
}
