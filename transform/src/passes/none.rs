//! `none`: the baseline.
//!
//! A program built with it went through the same steps as a transformed one (bitcode written and read, code generated
//! from it), so that a difference between the two is the transformation's alone.

use crate::context::Context;
use crate::llvm::Function;

/// Changes nothing.
pub(crate) fn run<'m>(_: &mut Function<'m>, _: &mut Context<'m>) {}
