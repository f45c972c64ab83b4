//! The passes as a plug-in of LLVM's own tools: `liblockstep_passes.so`.
//!
//! `opt-19 -load-pass-plugin=liblockstep_passes.so -passes='meld'` runs them by name, with parameters as LLVM writes
//! them: `fcs<threshold=8>`. `clang-19 -fpass-plugin=liblockstep_passes.so` runs those that the environment variable
//! `LOCKSTEP_PASSES` names, at the end of the optimiser.
//!
//! A pass runs on a copy of the module first. Where it finds its own work wrong, or LLVM's verifier does, the module is
//! left as it is, with a warning.

use std::ffi::{c_char, c_void};
use std::slice;

use llvm_sys::prelude::LLVMModuleRef;
use transform::Pipeline;
use transform::llvm::Lent;

/// `LLVM_PLUGIN_API_VERSION` of LLVM 19.
const API_VERSION: u32 = 1;

/// `llvm::PassPluginLibraryInfo`.
#[repr(C)]
pub struct Info {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: unsafe extern "C" fn(*mut c_void),
}

unsafe extern "C" {
    /// In plugin.cpp.
    fn lockstep_register(builder: *mut c_void);
}

/// What LLVM asks a plug-in first.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> Info {
    let (name, version) = (c"lockstep".as_ptr(), concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast());
    Info { api_version: API_VERSION, name, version, register: lockstep_register }
}

/// Whether this is one of our passes, with or without parameters.
///
/// # Safety
/// `passes` points at so many bytes that live during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_knows(passes: *const c_char, length: usize) -> bool {
    // SAFETY: the caller says so.
    let text = unsafe { text(passes, length) };
    let name = text.split(['<', ':']).next().unwrap_or_default();
    transform::REGISTRY.iter().any(|pass| pass.name == name)
}

/// Ends the process where these are no passes of ours, or their parameters are wrong.
///
/// # Safety
/// As [`lockstep_knows`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_check(passes: *const c_char, length: usize) {
    // SAFETY: the caller says so.
    if let Err(error) = Pipeline::parse(&own(&unsafe { text(passes, length) })) {
        eprintln!("lockstep: {error}");
        std::process::exit(1);
    }
}

/// Runs these passes over the module; returns whether it may have changed. `whole_arms`: the optimiser left what both
/// sides of a branch end with in them.
///
/// # Safety
/// The module is well formed and nobody else's during the call; `passes` is as for [`lockstep_knows`], and was checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lockstep_run(
    module: LLVMModuleRef,
    passes: *const c_char,
    length: usize,
    whole_arms: bool,
) -> bool {
    // SAFETY: the caller says so.
    let (text, mut lent) = unsafe { (text(passes, length), Lent::new(module)) };
    let mut run = || {
        let pipeline = Pipeline::parse(&own(&text))?.with_whole_arms(whole_arms);
        pipeline.run(&mut lent.copy())?;
        pipeline.run(lent.module())
    };
    match run() {
        Ok(_) => true,
        Err(error) => {
            eprintln!("lockstep: warning: the code is left as it is: {error}");
            false
        }
    }
}

/// # Safety
/// As [`lockstep_knows`].
unsafe fn text(passes: *const c_char, length: usize) -> String {
    // SAFETY: the caller says so.
    let bytes = unsafe { slice::from_raw_parts(passes.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// A pass as LLVM has it, `fcs<threshold=8;growth=2>`, as we do: `fcs:threshold=8,growth=2`.
fn own(text: &str) -> String {
    text.replace('<', ":").replace(';', ",").replace('>', "")
}
