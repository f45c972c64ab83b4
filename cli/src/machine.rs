//! Machines by name: the models that stand for one, the lanes of its warps, and its transactions.

use attribution::table::percent;
use clap::ValueEnum;
use heuristics::Spec;
use replay::view::View;
use replay::{Outcome, Prepared, ReplayOptions};
use serde_json::{Value, json};

/// How far apart what models say may be before something is to be done about it.
const FAR_APART: f64 = 0.05;

/// The most thread instructions of which a machine that was not asked for has its range: a second or two.
const FEW: u64 = 20_000_000;

/// A machine whose efficiency is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Machine {
    Nvidia,
    Amd,
    IntelGpu,
    Avx512,
}

/// What is known of a machine.
struct Facts {
    name: &'static str,
    /// The model with the least error against the reference of `scripts/compare-gpu`, where that has the machine; else
    /// the one that follows its documentation.
    model: &'static str,
    /// Others that follow its hardware or its compilers, which show how far the figure can be trusted.
    others: &'static str,
    /// Lanes of a warp.
    lanes: usize,
    /// Bytes of a memory transaction: one of [`replay::metrics::TRANSACTION_SIZES`].
    transaction: u64,
}

/// What is replayed: the models that were named, or those of a machine.
pub(crate) struct Subject {
    machine: Option<Machine>,
    /// Those whose results are shown.
    pub(crate) models: Vec<Spec>,
    /// Whether the machine was typed, so that its range is worked out however long that takes.
    is_typed: bool,
}

/// The efficiency that is given for a machine, with what its other models say.
pub(crate) struct Range {
    machine: Machine,
    heuristic: String,
    efficiency: f64,
    /// By each of the others that was replayed.
    others: Vec<(String, f64)>,
}

impl Machine {
    fn facts(self) -> Facts {
        match self {
            Machine::Nvidia => Facts {
                name: "nvidia",
                model: "wave:predicate=4",
                others: "hanoi:placement=nak,barrier:meet=anywhere,placement=nak,predicate=4",
                lanes: 32,
                transaction: 32,
            },
            Machine::Amd => Facts {
                name: "amd",
                model: "wave",
                others: "tf-stack,ipdom:placement=structured",
                lanes: 64,
                transaction: 64,
            },
            Machine::IntelGpu => Facts {
                name: "intel-gpu",
                model: "ipdom:placement=nak",
                others: "wave,ipdom:placement=structured",
                lanes: 16,
                transaction: 64,
            },
            Machine::Avx512 => Facts {
                name: "avx512",
                model: "ipdom:placement=nak",
                others: "ipdom:placement=structured",
                lanes: 16,
                transaction: 64,
            },
        }
    }

    /// The model that stands for it.
    fn model(self) -> Spec {
        Spec::parse(self.facts().model).expect("the registry has it")
    }

    /// The same options, with its warps where their size is not given; of so many lanes in all.
    fn options(self, options: ReplayOptions, lanes: usize) -> ReplayOptions {
        let warp_size = options.warp_size.or(Some(self.facts().lanes.min(lanes.max(1))));
        ReplayOptions { warp_size, ..options }
    }

    /// What its models say, when its own said this; none where that has no figure. The others are replayed with
    /// nothing measured.
    fn range(
        self,
        prepared: &Prepared,
        first: &Outcome,
        options: &ReplayOptions,
        with_others: bool,
    ) -> replay::Result<Option<Range>> {
        let Some(of_first) = efficiency(first) else { return Ok(None) };
        let others = match with_others {
            true => Spec::parse_list(self.facts().others).expect("the registry has them"),
            false => Vec::new(),
        };
        let options = ReplayOptions { measures: Vec::new(), ..options.clone() };
        let outcomes = prepared.replay(&others, &options, None, &|_, _| {})?;
        let others = outcomes.iter().filter_map(|o| Some((o.heuristic.clone(), efficiency(o)?))).collect();
        Ok(Some(Range { machine: self, heuristic: first.heuristic.clone(), efficiency: of_first, others }))
    }
}

/// The efficiency of an outcome as a GPU's counters have it; none where it has no figure.
fn efficiency(outcome: &Outcome) -> Option<f64> {
    outcome.is_complete().then(|| outcome.active_efficiency().or_else(|| outcome.simt_efficiency()))?
}

impl Subject {
    /// The machine that was typed, else these models, else the machine that stands for all: the one whose models were
    /// compared with a reference most.
    pub(crate) fn of(machine: Option<Machine>, models: Vec<Spec>) -> Subject {
        match (machine, models.is_empty()) {
            (None, false) => Subject { machine: None, models, is_typed: false },
            _ => {
                let of = machine.unwrap_or(Machine::Nvidia);
                Subject { machine: Some(of), models: vec![of.model()], is_typed: machine.is_some() }
            }
        }
    }

    /// The same options, with the machine's warps where their size is not given.
    pub(crate) fn options(&self, options: ReplayOptions, view: &View) -> ReplayOptions {
        match self.machine {
            Some(machine) => machine.options(options, view.lanes().len()),
            None => options,
        }
    }

    /// What the machine's models say, when its own said this; none for models that were named, and where its own has
    /// no figure.
    pub(crate) fn range(
        &self,
        (prepared, view): (&Prepared, &View),
        first: Option<&Outcome>,
        options: &ReplayOptions,
    ) -> replay::Result<Option<Range>> {
        let (Some(machine), Some(first)) = (self.machine, first) else { return Ok(None) };
        let with_others = self.is_typed || view.summary().kept <= FEW;
        machine.range(prepared, first, options, with_others)
    }
}

impl Range {
    /// The efficiency of the machine's model.
    pub(crate) fn efficiency(&self) -> f64 {
        self.efficiency
    }

    /// The least and the most that its models say.
    fn bounds(&self) -> (f64, f64) {
        let all = self.others.iter().map(|(_, e)| *e);
        all.fold((self.efficiency, self.efficiency), |(least, most), e| (least.min(e), most.max(e)))
    }

    /// A line for people.
    pub(crate) fn line(&self) -> String {
        let Facts { name, transaction, .. } = self.machine.facts();
        let (least, most) = self.bounds();
        let hint = if most - least > FAR_APART {
            " They differ since the compiler made control flow that a GPU's would not: for a figure to trust, build with \
             `lockstep cc --shape gpu`, or -O1."
        } else {
            ""
        };
        let agree = if self.others.is_empty() {
            format!("--machine {name} shows how far its models agree")
        } else {
            format!("its models say {} to {}", percent(least), percent(most))
        };
        let (efficiency, model) = (percent(self.efficiency), &self.heuristic);
        format!(
            "{name}: {efficiency} SIMT efficiency (by {model}; {agree}; memory in transactions of {transaction} \
             bytes).{hint}\n"
        )
    }

    pub(crate) fn json(&self) -> Value {
        let (least, most) = self.bounds();
        let others: Vec<Value> =
            self.others.iter().map(|(name, e)| json!({ "heuristic": name, "efficiency": e })).collect();
        json!({
            "name": self.machine.facts().name,
            "transaction_bytes": self.machine.facts().transaction,
            "heuristic": self.heuristic,
            "efficiency": self.efficiency,
            "least": least,
            "most": most,
            "others": others,
        })
    }
}

#[cfg(test)]
mod tests {
    use replay::metrics::TRANSACTION_SIZES;

    use super::*;

    #[test]
    fn every_machine_has_models_that_the_registry_knows_and_transactions_that_are_counted() {
        for machine in Machine::value_variants() {
            let facts = machine.facts();
            assert_eq!(Some(facts.name), machine.to_possible_value().as_ref().map(|value| value.get_name()));
            assert!(Spec::parse(facts.model).is_ok() && Spec::parse_list(facts.others).is_ok(), "{}", facts.name);
            assert!(TRANSACTION_SIZES.contains(&facts.transaction), "{}", facts.name);
        }
    }
}
