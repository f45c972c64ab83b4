//! A source as the optimiser leaves it, for analyses.

use std::ffi::OsString;
use std::path::Path;

use super::scratch::{Scratch, Streams};
use super::{NO_UNSWITCHING, run};
use crate::llvm::Module;
use crate::{Error, Result};

/// Compiles a source file with clang 19 up to the optimiser's end, as [`super::build`] does before passes, with names
/// of values kept: `-O2 -g`, then the options given.
///
/// # Errors
/// [`Error::NoCompiler`] and [`Error::Start`] as [`super::build`]; [`Error::NotCompiled`] when the compiler refuses the
/// source, whose messages went to standard error.
pub fn to_module(source: &Path, arguments: &[OsString]) -> Result<Module> {
    let scratch = Scratch::new()?;
    let is_c = source.extension().is_some_and(|e| e == "c" || e == "cl");
    let compiler: OsString = if is_c { "clang-19" } else { "clang++-19" }.into();
    let output = scratch.path().join("1.bc");
    let mut words: Vec<OsString> = ["-O2", "-g", "-fno-discard-value-names"].map(OsString::from).to_vec();
    words.extend(NO_UNSWITCHING.iter().map(OsString::from));
    words.extend(arguments.iter().cloned());
    words.extend(["-fno-lto", "-emit-llvm", "-c", "-o"].map(OsString::from));
    words.push(output.clone().into());
    words.push(source.into());
    let status = scratch.run(&compiler, &words, Streams::Ours)?.status;
    if run::number(status) != 0 {
        return Err(Error::NotCompiled { path: source.to_owned() });
    }
    Module::read(&output)
}
