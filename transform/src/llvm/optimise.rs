//! LLVM's own optimiser, run on a module.

use std::ffi::{CStr, CString};
use std::ptr;

use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMGetErrorMessage};
use llvm_sys::target::{LLVMInitializeNVPTXTarget, LLVMInitializeNVPTXTargetInfo, LLVMInitializeNVPTXTargetMC};
use llvm_sys::target_machine::{
    LLVMCodeGenOptLevel, LLVMCodeModel, LLVMCreateTargetMachine, LLVMDisposeTargetMachine, LLVMGetTargetFromTriple,
    LLVMRelocMode, LLVMTargetMachineRef,
};
use llvm_sys::transforms::pass_builder::{
    LLVMCreatePassBuilderOptions, LLVMDisposePassBuilderOptions, LLVMPassBuilderOptionsSetLoopInterleaving,
    LLVMPassBuilderOptionsSetLoopUnrolling, LLVMPassBuilderOptionsSetLoopVectorization,
    LLVMPassBuilderOptionsSetMergeFunctions, LLVMRunPasses,
};

use super::Module;
use super::ir::module::taken_message;
use crate::{Error, Result};

/// The target whose costs stand for those of a GPU.
const GPU: (&CStr, &CStr) = (c"nvptx64-nvidia-cuda", c"sm_80");

/// What a user can ask of the optimiser besides its level. The names are those of clang's options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Not `-fno-unroll-loops`: loops are unrolled and their iterations interleaved.
    pub unrolls: bool,
    /// Not `-fno-vectorize`.
    pub vectorises: bool,
    /// `-fmerge-functions`.
    pub merges_functions: bool,
    /// What stands behind `-mllvm`.
    pub llvm: Vec<String>,
}

/// As LLVM has it where nobody asks.
impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { unrolls: true, vectorises: true, merges_functions: false, llvm: Vec::new() }
    }
}

impl Module {
    /// Runs optimiser passes, in the language of `opt -passes=`.
    ///
    /// # Errors
    /// [`Error::Bug`] when LLVM does not know them, or the module is not well formed, which passes assume.
    pub(crate) fn run_passes(&mut self, pipeline: &str) -> Result<()> {
        self.run_passes_for(pipeline, ptr::null_mut(), &Tuning::default())
    }

    /// Runs optimiser passes with the costs of a GPU. They decide what to inline, what to unroll, where to make a
    /// choice instead of a branch; and there are no vectors. The meaning of the code does not change: its target stays
    /// the same, with its calls, its data layout and its library.
    ///
    /// # Errors
    /// As [`Module::run_passes`]; [`Error::Bug`] also when this LLVM was built without that target, when it does not
    /// know an option of [`Tuning::llvm`], or when other ones hold in this process already.
    pub(crate) fn run_passes_for_gpu(&mut self, pipeline: &str, tuning: &Tuning) -> Result<()> {
        if !tuning.llvm.is_empty() && !super::code::set(&tuning.llvm) {
            return Err(Error::Bug(format!("LLVM does not take the options {}", tuning.llvm.join(" "))));
        }
        let (triple, processor) = GPU;
        let (mut target, mut message) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all strings end with a zero; `target` is set where the function succeeds, and `message` where it
        // does not; the machine is disposed of once the passes have run.
        unsafe {
            LLVMInitializeNVPTXTargetInfo();
            LLVMInitializeNVPTXTarget();
            LLVMInitializeNVPTXTargetMC();
            if LLVMGetTargetFromTriple(triple.as_ptr(), &raw mut target, &raw mut message) != 0 {
                return Err(Error::Bug(format!(
                    "LLVM has no {}: {}",
                    triple.to_string_lossy(),
                    taken_message(message)
                )));
            }
            let machine = LLVMCreateTargetMachine(
                target,
                triple.as_ptr(),
                processor.as_ptr(),
                c"".as_ptr(),
                LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
                LLVMRelocMode::LLVMRelocDefault,
                LLVMCodeModel::LLVMCodeModelDefault,
            );
            if machine.is_null() {
                return Err(Error::Bug(format!("LLVM makes no machine for {}", triple.to_string_lossy())));
            }
            let ran = self.run_passes_for(pipeline, machine, tuning);
            LLVMDisposeTargetMachine(machine);
            ran
        }
    }

    fn run_passes_for(&mut self, pipeline: &str, machine: LLVMTargetMachineRef, tuning: &Tuning) -> Result<()> {
        self.sweep();
        self.verify().map_err(|text| Error::Bug(format!("the IR before {pipeline} is not well formed: {text}")))?;
        let text =
            CString::new(pipeline).map_err(|_| Error::Bug(format!("a pass list with a zero byte: {pipeline:?}")))?;
        // SAFETY: the module is alive, well formed, and borrowed mutably, so that no handle into it is; a target
        // machine may be left out.
        unsafe {
            let options = LLVMCreatePassBuilderOptions();
            LLVMPassBuilderOptionsSetLoopUnrolling(options, tuning.unrolls.into());
            LLVMPassBuilderOptionsSetLoopInterleaving(options, tuning.unrolls.into());
            LLVMPassBuilderOptionsSetLoopVectorization(options, tuning.vectorises.into());
            LLVMPassBuilderOptionsSetMergeFunctions(options, tuning.merges_functions.into());
            let error = LLVMRunPasses(self.raw(), text.as_ptr(), machine, options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let message = LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(message);
            Err(Error::Bug(format!("LLVM does not run {pipeline}: {text}")))
        }
    }
}
