//! The passes, in one ordered registry, and how several run one after another.

use std::fmt;

use parameters::{Named, Parameter, Settings, Spec};

use crate::context::{Context, THRESHOLD};
use crate::cost::{CostModel, OnGpu, X86_64};
use crate::llvm::{Module, WellFormed};
use crate::pass::{Pass, Run};
use crate::trips::{PredictedPlace, Trips};
use crate::{Error, Reason, Remark, Result};
use crate::{passes, refusal};

impl Named for Pass {
    const KIND: &'static str = "pass";

    fn registry() -> &'static [Pass] {
        REGISTRY
    }

    fn hidden() -> &'static [Pass] {
        HIDDEN
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

impl Pass {
    /// Runs the pass, and after each function the repairs that its changes need: values that no longer dominate their
    /// uses get phis.
    fn run(&self, module: &mut Module, settings: &Settings, by: &Deciding) -> Vec<Remark> {
        let (before, each, after) = match self.run {
            Run::Functions { before, each, after } => (before, each, after),
            Run::Module(run) => return run(module, settings),
        };
        if let Some(before) = before {
            before(module, settings, &by.places);
        }
        let mut context = Context::new(self.name, settings, by.costs);
        context.know(by.trips.clone());
        context.predict(&by.places);
        context.expect_sinking(by.whole_arms);
        let decides = self.parameters.iter().any(|parameter| parameter.name == THRESHOLD.name);
        let has_own_costs = self.name == passes::meld::ENTRY.name && OnGpu::of(module).is_gpu();
        if decides && !has_own_costs && !by.costs.is_for(&module.target()) {
            context.remark_on_module(module.source_name(), "costs".to_owned(), Reason::PricedAsOther(module.target()));
        }
        for mut function in module.functions_to_optimise() {
            context.begin(function);
            each(&mut function, &mut context);
            context.settle();
        }
        if let Some(after) = after {
            after(module, &mut context);
        }
        context.finish()
    }
}

/// All passes, in the order in which they are listed. They are run in the order in which they are asked for.
pub static REGISTRY: &[Pass] = &[
    passes::none::ENTRY,
    passes::layout::ENTRY,
    passes::fcs::ENTRY,
    passes::tail_merge::ENTRY,
    passes::branch_fusion::ENTRY,
    passes::meld::ENTRY,
    passes::spill::ENTRY,
    passes::speculative::ENTRY,
    passes::linearize::ENTRY,
    passes::split_nodes::ENTRY,
    passes::structurizecfg::ENTRY,
];

/// Passes that are not listed, such as those that always fail, for tests of what follows then.
static HIDDEN: &[Pass] = &[passes::refused::ENTRY, passes::refused::SPOILT];

/// Passes to run, in order, and how they decide.
#[derive(Clone)]
pub struct Pipeline {
    passes: Vec<Spec<Pass>>,
    by: Deciding,
}

/// What passes decide by.
#[derive(Clone)]
struct Deciding {
    costs: &'static dyn CostModel,
    /// Of a trace, if there is one.
    trips: Option<Trips>,
    /// Where lanes are to wait.
    places: Vec<PredictedPlace>,
    /// Whether the optimiser left what both sides of a branch end with in them.
    whole_arms: bool,
}

/// What the optimiser did not do to arms that it left whole: as at the end of its pipeline.
const SINK: &str = "function(simplifycfg<no-keep-loops;hoist-common-insts;sink-common-insts>)";

impl Pipeline {
    /// The passes that a list with commas stands for: `fcs:threshold=8,layout`.
    ///
    /// # Errors
    /// [`Error::Parameters`] with what there is, for a name or a value that is not possible.
    pub fn parse(text: &str) -> Result<Pipeline> {
        Ok(Pipeline {
            passes: Spec::parse_list(text)?,
            by: Deciding { costs: &X86_64, trips: None, places: Vec::new(), whole_arms: false },
        })
    }

    /// The same passes, with this value of a parameter, as typed, in each that has it and was not given another.
    ///
    /// # Errors
    /// [`Error::Parameters`] for a value that is not possible.
    pub fn with_default(mut self, parameter: &str, value: &str) -> Result<Pipeline> {
        for pass in &mut self.passes {
            pass.set_default(parameter, value)?;
        }
        Ok(self)
    }

    /// The same passes, deciding by another cost model than [`X86_64`]; `meld` only says by it what lanes lose that
    /// agree.
    #[must_use]
    pub fn with_costs(mut self, costs: &'static dyn CostModel) -> Pipeline {
        self.by.costs = costs;
        self
    }

    /// The same passes, deciding by the trip counts of a trace: `linearize:merge-loops=yes` then merges only loops that
    /// are known to pay as one.
    #[must_use]
    pub fn with_trips(mut self, trips: Trips) -> Pipeline {
        self.by.trips = Some(trips);
        self
    }

    /// The same passes; `speculative` has lanes wait for each other at these places, too.
    #[must_use]
    pub fn with_places(mut self, places: Vec<PredictedPlace>) -> Pipeline {
        self.by.places = places;
        self
    }

    /// The same passes, then this one, unless it is the last already.
    ///
    /// # Errors
    /// As [`Pipeline::parse`].
    pub fn then(mut self, name: &str) -> Result<Pipeline> {
        let pass = Spec::<Pass>::parse(name)?;
        if self.passes.last().is_none_or(|last| last.entry().name != pass.entry().name) {
            self.passes.push(pass);
        }
        Ok(self)
    }

    /// The same passes, behind an optimiser that left what both sides of a branch end with in them or did not: what
    /// `meld` leaves of that is sunk right behind it.
    #[must_use]
    pub fn with_whole_arms(mut self, whole: bool) -> Pipeline {
        self.by.whole_arms = whole;
        self
    }

    /// Whether that is worth it: for `meld`, unless a pass before it made control flow structured, which sinking would
    /// not keep.
    pub(crate) fn wants_whole_arms(&self) -> bool {
        self.last_meld().is_some()
    }

    /// The place of the last `meld` before control flow is made structured.
    fn last_meld(&self) -> Option<usize> {
        let unstructured = self.passes.iter().position(|pass| pass.entry().structures).unwrap_or(self.passes.len());
        self.passes[..unstructured].iter().rposition(|pass| pass.entry().name == passes::meld::ENTRY.name)
    }

    /// Whether one of them makes control flow structured, which must be kept.
    pub(crate) fn structures(&self) -> bool {
        self.passes.iter().any(|pass| pass.entry().structures)
    }

    /// Whether one of them did, by what they say: passes without a threshold are taken to, and so is all that is asked
    /// of those with the lowest.
    pub(crate) fn has_structured(&self, remarks: &[Remark]) -> bool {
        let all = |pass: &Spec<Pass>| {
            let threshold = pass.settings.iter().find(|(parameter, _)| parameter.name == THRESHOLD.name);
            threshold.is_none_or(|(_, threshold)| threshold <= passes::linearize::ALL)
        };
        let took = |pass: &Spec<Pass>| remarks.iter().any(|r| r.pass == pass.entry().name && r.is_taken());
        self.passes.iter().any(|pass| pass.entry().structures && (all(pass) || took(pass)))
    }

    /// The names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.passes.iter().map(|pass| pass.entry().name).collect()
    }

    /// Runs the passes, and LLVM's verifier before the first and after each. Returns all that they looked at.
    ///
    /// # Errors
    /// [`Error::BadIr`] when the module is not well formed to begin with, [`Error::Refused`] when a pass finds its own
    /// work wrong or LLVM's verifier does. The module must not be used then: see [`Pipeline::apply`].
    pub fn run(&self, module: &mut Module) -> Result<Vec<Remark>> {
        module.verify().map_err(|text| Error::BadIr { name: "the module".to_owned(), text })?;
        self.run_checked(module, true)
    }

    /// Runs the passes, with or without LLVM's verifier after each.
    fn run_checked(&self, module: &mut Module, each: bool) -> Result<Vec<Remark>> {
        let mut remarks = Vec::new();
        let last_meld = self.last_meld().filter(|_| self.by.whole_arms);
        for (number, pass) in self.passes.iter().enumerate() {
            let looked_at = refusal::caught(pass.entry().name, || {
                let looked_at = pass.entry().run(module, &pass.settings, &self.by);
                module.sweep();
                if each {
                    let broken = |text| Error::Bug(format!("it made IR that is not well formed: {text}"));
                    module.verify().map_err(broken)?;
                }
                if Some(number) == last_meld {
                    module.run_passes(SINK)?;
                }
                Ok(looked_at)
            });
            remarks.extend(looked_at?);
        }
        Ok(remarks)
    }

    /// Runs the passes over the module that `read` reads, which it must read again each time. When a pass refuses its
    /// own work, the module is returned as it was, with that refusal as the only remark.
    ///
    /// The verifier takes a tenth of the time of passes and reading together. In a release build it runs once, after
    /// the last pass. Only if it objects, or a pass does, everything is done again as [`Pipeline::run`] does it, to
    /// find out which pass it was. `read` guarantees that what it read is well formed: a compiler's own bitcode needs
    /// no check.
    ///
    /// # Errors
    /// What `read` fails with, and [`Error::BadIr`] when the module is not well formed to begin with.
    pub fn apply(&self, read: impl Fn() -> Result<Module>) -> Result<(WellFormed, Vec<Remark>)> {
        self.apply_checked(read, cfg!(debug_assertions))
    }

    fn apply_checked(&self, read: impl Fn() -> Result<Module>, each: bool) -> Result<(WellFormed, Vec<Remark>)> {
        let bad = |text| Error::BadIr { name: "the module".to_owned(), text };
        let mut module = read()?;
        match self.run_checked(&mut module, each) {
            Ok(remarks) => {
                if let Ok(module) = module.well_formed() {
                    return Ok((module, remarks));
                }
            }
            Err(Error::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut module = read()?;
        match self.run(&mut module) {
            Ok(remarks) => Ok((module.well_formed().map_err(bad)?, remarks)),
            Err(Error::Refused { pass, why }) => {
                let module = read()?;
                let function = module.source_name();
                let module = module.well_formed().map_err(bad)?;
                let remark = Remark {
                    pass,
                    function,
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

/// As it would be typed, every parameter spelt out: `fcs:threshold=1,only-divergent=yes,layout`.
impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pass) in self.passes.iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            write!(f, "{separator}{pass}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_pass_is_refused_with_the_names_that_there_are() {
        let error = Pipeline::parse("fcs,fusion").map(|p| p.names()).unwrap_err().to_string();
        let names = REGISTRY.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", ");
        assert!(error.contains("\"fusion\"") && error.contains(&names), "{error}");
    }

    #[test]
    fn the_readme_names_every_pass_that_changes_code() {
        let readme = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/passes.md");
        let text = std::fs::read_to_string(readme).unwrap();
        for pass in REGISTRY.iter().filter(|pass| pass.name != "none") {
            assert!(text.contains(&format!("`{}`", pass.name)), "docs/passes.md does not name the pass {}", pass.name);
        }
    }

    #[test]
    fn parameters_are_spelt_out_and_read_back() {
        let pipeline =
            Pipeline::parse("fcs:threshold=8,layout,tail-merge").unwrap().with_default("threshold", "3").unwrap();
        let spelt = "fcs:threshold=8,only-divergent=yes,layout,tail-merge:threshold=3,only-divergent=yes";
        assert_eq!(pipeline.to_string(), spelt);
        assert_eq!(Pipeline::parse(&pipeline.to_string()).unwrap().to_string(), pipeline.to_string());
        let message = |text| Pipeline::parse(text).map(|p| p.names()).unwrap_err().to_string();
        assert_eq!(message("layout:threshold=8"), "pass layout has no parameter \"threshold\"; it has none");
        assert!(message("fcs:threshold=low").contains("threshold is -1000000000 to 1000000000"));
        let beyond = Pipeline::parse("layout,fcs").unwrap().with_default("threshold", "9999999999");
        assert!(beyond.map(|p| p.names()).unwrap_err().to_string().starts_with("pass fcs: threshold=9999999999"));
    }

    #[test]
    fn who_spoilt_a_module_is_known_whether_each_pass_is_verified_or_the_last_only() {
        let text = "define i32 @f(i32 %a) {\n  %x = add i32 %a, 1\n  %y = add i32 %x, 2\n  ret i32 %y\n}\n";
        let read = || Module::parse(text.as_bytes(), "f.ll");
        for each in [true, false] {
            for (passes, culprit) in
                [("layout,spoilt,fcs", "spoilt"), ("spoilt,refused", "spoilt"), ("refused", "refused")]
            {
                let (module, remarks) = Pipeline::parse(passes).unwrap().apply_checked(read, each).unwrap();
                assert_eq!(module.to_text(), read().unwrap().to_text());
                assert!(remarks.len() == 1 && remarks[0].pass == culprit, "{passes}, {each}: {remarks:?}");
            }
            let (_, remarks) = Pipeline::parse("layout,fcs").unwrap().apply_checked(read, each).unwrap();
            assert!(remarks.iter().all(|remark| !matches!(remark.reason, Reason::Refused(_))), "{remarks:?}");
        }
    }

    #[test]
    fn a_pass_that_stands_last_already_is_not_added_again() {
        let pipeline = Pipeline::parse("fcs, layout").unwrap().then("layout").unwrap();
        assert_eq!(pipeline.names(), ["fcs", "layout"]);
    }
}
