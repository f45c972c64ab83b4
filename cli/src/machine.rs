//! Machines by name: the models that stand for one, and the lanes of its warps.

use attribution::table::percent;
use clap::ValueEnum;
use replay::Outcome;
use serde_json::{Value, json};

use crate::models::Models;

/// How far apart what models say may be before something is to be done about it.
const FAR_APART: f64 = 0.05;

/// A machine whose efficiency is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Machine {
    Nvidia,
    Amd,
}

/// The efficiency that is given for a machine, with what its other models say.
pub(crate) struct Range<'a> {
    machine: Machine,
    first: &'a Outcome,
    efficiency: f64,
    least: f64,
    most: f64,
}

impl Machine {
    /// The models that stand for it: first the one with the least error against the reference of `scripts/compare-gpu`,
    /// then others that follow its hardware, which show how far the figure can be trusted.
    pub(crate) fn models(self) -> Models {
        let names = match self {
            Machine::Nvidia => "wave:predicate=4,hanoi:placement=nak,barrier:meet=anywhere,placement=nak,predicate=4",
            Machine::Amd => "wave,tf-stack,ipdom:placement=structured",
        };
        Models::parse(names).expect("the registry has them")
    }

    /// Lanes of a warp, of so many lanes in all.
    pub(crate) fn warp_size(self, lanes: usize) -> usize {
        let most = match self {
            Machine::Nvidia => 32,
            Machine::Amd => 64,
        };
        most.min(lanes.max(1))
    }

    fn name(self) -> &'static str {
        match self {
            Machine::Nvidia => "nvidia",
            Machine::Amd => "amd",
        }
    }

    /// What its models say; none where the first of them has no figure.
    pub(crate) fn range(self, outcomes: &[Outcome]) -> Option<Range<'_>> {
        let efficiency = |o: &Outcome| o.active_efficiency().or_else(|| o.simt_efficiency());
        let first = outcomes.first().filter(|first| first.is_complete())?;
        let all = outcomes.iter().filter(|o| o.is_complete()).filter_map(efficiency);
        let (least, most) = all.fold((1.0_f64, 0.0_f64), |(least, most), e| (least.min(e), most.max(e)));
        Some(Range { machine: self, first, efficiency: efficiency(first)?, least, most })
    }
}

impl Range<'_> {
    /// A line for people.
    pub(crate) fn line(&self) -> String {
        let [efficiency, least, most] = [self.efficiency, self.least, self.most].map(percent);
        let hint = if self.most - self.least > FAR_APART {
            " They differ since the compiler made control flow that a GPU's would not: for a figure to trust, build with \
             `lockstep cc --shape gpu`, or -O1."
        } else {
            ""
        };
        let (name, model) = (self.machine.name(), &self.first.heuristic);
        format!("{name}: {efficiency} SIMT efficiency (by {model}; its models say {least} to {most}).{hint}\n")
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.machine.name(),
            "heuristic": self.first.heuristic,
            "efficiency": self.efficiency,
            "least": self.least,
            "most": self.most,
        })
    }
}
