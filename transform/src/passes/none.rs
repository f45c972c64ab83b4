//! `none`: the baseline.
//!
//! A program built with it went through the same steps as a transformed one (bitcode written and read, code generated
//! from it), so that a difference between the two is the transformation's alone.

use crate::context::Context;
use crate::llvm::Function;
use crate::pass::{Pass, Run};

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "none",
    summary: "changes nothing: the baseline that every transformation is compared with",
    source: "lockstep",
    parameters: &[],
    structures: false,
    run: Run::each(run),
};

/// Changes nothing.
fn run<'m>(_: &mut Function<'m>, _: &mut Context<'m>) {}
