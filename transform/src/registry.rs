//! The passes, in one ordered registry, and how several are run one after another.

use crate::context::Context;
use crate::llvm::{Function, Module};
use crate::{Error, Reason, Remark, Result};
use crate::{passes, refusal, ssa};

/// A pass.
pub struct Pass {
    /// Its name on the command line, in reports, and its file's.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    run: Run,
}

/// How a pass is run.
enum Run {
    /// Over each function that may be optimised.
    Functions {
        /// Over one function.
        each: for<'m> fn(&mut Function<'m>, &mut Context<'m>),
        /// Once after all, with remarks on the module.
        after: Option<for<'m> fn(&'m Module, &mut Context<'m>)>,
    },
    /// Over the module as a whole, which the pass leaves well formed by itself.
    Module(fn(&mut Module) -> Vec<Remark>),
}

impl Run {
    const fn each(each: for<'m> fn(&mut Function<'m>, &mut Context<'m>)) -> Run {
        Run::Functions { each, after: None }
    }
}

impl Pass {
    /// Runs the pass, then what its changes make necessary: values that no longer dominate their uses become variables,
    /// and variables become phis.
    fn run(&self, module: &mut Module, options: &Options) -> Result<Vec<Remark>> {
        let (each, after) = match self.run {
            Run::Functions { each, after } => (each, after),
            Run::Module(run) => return Ok(run(module)),
        };
        let mut context = Context::new(self.name, options);
        for mut function in module.functions_to_optimise() {
            context.begin(function);
            each(&mut function, &mut context);
            context.end();
        }
        if let Some(after) = after {
            after(module, &mut context);
        }
        let (remarks, has_variables) = context.finish();
        if has_variables {
            module.run_passes(ssa::MEMORY_TO_REGISTERS)?;
        }
        Ok(remarks)
    }
}

/// All passes, in the order in which they are listed. They are run in the order in which they are asked for.
pub const REGISTRY: &[Pass] = &[
    Pass {
        name: "none",
        summary: "changes nothing: the baseline that every transformation is compared with",
        source: "lockstep",
        run: Run::each(passes::none::run),
    },
    Pass {
        name: "layout",
        summary: "puts blocks in topological order with loops in a row, so that min-pc models reconverge at joins",
        source: "Bourdoncle, FMPA 1993",
        run: Run::each(passes::layout::run),
    },
    Pass {
        name: "fcs",
        summary: "fuses calls of one function that stand on the two sides of a branch into one call",
        source: "Teixeira, Collange, Pereira, SBAC-PAD 2015",
        run: Run::Functions { each: passes::fcs::run, after: Some(passes::fcs::remark_on_endless_calls) },
    },
    Pass {
        name: "tail-merge",
        summary: "lets arms that end with the same instructions share them",
        source: "a baseline of the paper of fcs",
        run: Run::each(passes::tail_merge::run),
    },
    Pass {
        name: "branch-fusion",
        summary: "merges arms without calls instruction by instruction, with selects for operands that differ",
        source: "Coutinho, Sampaio, Pereira, Meira, PACT 2011",
        run: Run::each(passes::branch_fusion::run),
    },
];

/// Passes that are not listed: one that always fails, for tests of what follows then.
const HIDDEN: &[Pass] = &[Pass {
    name: "refused",
    summary: "spoils the code and then finds out: for tests",
    source: "lockstep",
    run: Run::Module(passes::refused::run),
}];

/// How passes decide.
#[derive(Clone, Debug)]
pub struct Options {
    /// The least profit, in instructions saved for a warp whose lanes part less instructions added, for which the program is changed. Default: 1.
    pub threshold: i64,
}

impl Default for Options {
    fn default() -> Options {
        Options { threshold: 1 }
    }
}

/// Passes to run, in order.
#[derive(Clone)]
pub struct Pipeline(Vec<&'static Pass>);

impl Pipeline {
    /// The passes that a list of names with commas stands for.
    ///
    /// # Errors
    /// [`Error::Request`] with the names that there are, for a name that there is not.
    pub fn parse(text: &str) -> Result<Pipeline> {
        let names = text.split(',').map(str::trim);
        names.map(named).collect::<Result<_>>().map(Pipeline)
    }

    /// The same passes, then this one, unless it is the last already.
    ///
    /// # Errors
    /// As [`Pipeline::parse`].
    pub fn then(mut self, name: &str) -> Result<Pipeline> {
        let pass = named(name)?;
        if self.0.last().is_none_or(|last| last.name != pass.name) {
            self.0.push(pass);
        }
        Ok(self)
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|pass| pass.name).collect()
    }

    /// Runs the passes, and LLVM's verifier after each. Returns all that they looked at.
    ///
    /// # Errors
    /// [`Error::BadIr`] when the module is not well formed to begin with, [`Error::Refused`] when a pass finds its own
    /// work wrong or LLVM's verifier does. The module must not be used then: see [`Pipeline::apply`].
    pub fn run(&self, module: &mut Module, options: &Options) -> Result<Vec<Remark>> {
        module.verify().map_err(|text| Error::BadIr { name: "the module".to_owned(), text })?;
        let mut remarks = Vec::new();
        for pass in &self.0 {
            let looked_at = refusal::caught(pass.name, || {
                let looked_at = pass.run(module, options)?;
                module.sweep();
                let broken = |text| Error::Bug(format!("it makes IR that is not well formed: {text}"));
                module.verify().map_err(broken)?;
                Ok(looked_at)
            });
            remarks.extend(looked_at?);
        }
        Ok(remarks)
    }

    /// Runs the passes as [`Pipeline::run`] over the module that `read` reads. When a pass refuses its own work, the
    /// module is read again and returned as it is, with that refusal as the only remark.
    ///
    /// # Errors
    /// What `read` fails with, and [`Error::BadIr`] when the module is not well formed to begin with.
    pub fn apply(&self, read: impl Fn() -> Result<Module>, options: &Options) -> Result<(Module, Vec<Remark>)> {
        let mut module = read()?;
        match self.run(&mut module, options) {
            Ok(remarks) => Ok((module, remarks)),
            Err(Error::Refused { pass, why }) => {
                let module = read()?;
                let remark = Remark {
                    pass,
                    function: module.source_name(),
                    subject: "the whole file".to_owned(),
                    places: Vec::new(),
                    reason: Reason::Refused(why),
                    gain: None,
                };
                Ok((module, vec![remark]))
            }
            Err(error) => Err(error),
        }
    }
}

fn named(name: &str) -> Result<&'static Pass> {
    REGISTRY.iter().chain(HIDDEN).find(|pass| pass.name == name).ok_or_else(|| {
        let names: Vec<_> = REGISTRY.iter().map(|pass| pass.name).collect();
        Error::Request(format!("there is no pass named \"{name}\"; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_pass_is_refused_with_the_names_that_there_are() {
        let error = Pipeline::parse("fcs,fusion").map(|p| p.names()).unwrap_err().to_string();
        assert!(error.contains("\"fusion\"") && error.contains("none, layout, fcs"), "{error}");
    }

    #[test]
    fn a_pass_that_stands_last_already_is_not_added_again() {
        let pipeline = Pipeline::parse("fcs, layout").unwrap().then("layout").unwrap();
        assert_eq!(pipeline.names(), ["fcs", "layout"]);
    }
}
