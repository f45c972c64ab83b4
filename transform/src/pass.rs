//! What the registry says about a pass.

use parameters::{Parameter, Settings};

use crate::context::Context;
use crate::llvm::{Function, Module};
use crate::{PredictedPlace, Remark};

/// A pass.
pub struct Pass {
    /// Its name on the command line, in reports, and its file's.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it makes control flow structured: what comes after it must keep the shape and the order of the code.
    pub(crate) structures: bool,
    pub(crate) run: Run,
}

/// How a pass is run.
pub(crate) enum Run {
    /// Over each function that may be optimised.
    Functions {
        /// Once before all, with the places at which lanes are to wait.
        before: Option<fn(&mut Module, &Settings, &[PredictedPlace])>,
        /// Over one function.
        each: for<'m> fn(&mut Function<'m>, &mut Context<'m>),
        /// Once after all, with remarks on the module.
        after: Option<for<'m> fn(&'m Module, &mut Context<'m>)>,
    },
    /// Over the module as a whole, which the pass leaves well formed by itself.
    Module(fn(&mut Module, &Settings) -> Vec<Remark>),
}

impl Run {
    pub(crate) const fn each(each: for<'m> fn(&mut Function<'m>, &mut Context<'m>)) -> Run {
        Run::Functions { before: None, each, after: None }
    }
}
