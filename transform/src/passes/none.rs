//! `none`: the baseline.
//!
//! A program built with it went through the same steps as a transformed one (bitcode written and read, code generated from it), so that a
//! difference between the two is the transformation's alone.

use crate::llvm::Module;
use crate::registry::Options;
use crate::{Candidate, Result};

/// Changes nothing.
pub(crate) fn run(_: &mut Module, _: &Options) -> Result<Vec<Candidate>> {
    Ok(Vec::new())
}
