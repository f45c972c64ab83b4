//! Machines by name: the models that stand for one, the lanes of its warps, and its transactions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use attribution::table::percent;
use attribution::{Source, lost};
use heuristics::{PlaceId, Spec};
use replay::metrics::Causes;
use replay::view::View;
use replay::{Outcome, Prepared, ReplayOptions, Unit};
use serde::Serialize;
use serde_json::{Value, json};
use trace_format::{Kind, Pc};

use crate::Figure;
use crate::lanes::FEW;
use crate::verdict::filling::together;
use crate::verdict::spread::FAR_APART;

/// With these options gcc makes no copies of code that a compiler for GPUs would not make.
const UNCOPIED: &str = "-fno-thread-jumps -fno-split-paths -fno-unswitch-loops -fno-split-loops";

/// A machine whose efficiency is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// An NVIDIA GPU.
    Nvidia,
    /// An AMD GPU.
    Amd,
    /// A GPU of Intel's.
    IntelGpu,
    /// A processor with vectors of 512 bits.
    Avx512,
}

/// What is known about a machine.
struct Facts {
    name: &'static str,
    /// The model with the least error against the reference of `scripts/compare-gpu`, if that has the machine; else the
    /// one that follows the machine's documentation.
    model: &'static str,
    /// Others that follow its hardware or its compilers, which show how far the figure can be trusted.
    others: &'static str,
    /// Lanes of a warp.
    lanes: usize,
    /// Bytes of a memory transaction: one of [`replay::metrics::TRANSACTION_SIZES`].
    transaction: u64,
    /// Whether [`Outcome::gpu_efficiency`] counts its instructions.
    has_costs: bool,
}

/// What is replayed: the models that were named, or those of a machine. Default: an NVIDIA GPU.
#[derive(Clone, Debug)]
pub struct Subject {
    machine: Option<Machine>,
    /// Those whose results are shown; at least one.
    pub models: Vec<Spec>,
    /// Whether the machine was named. Its range is then worked out however long that takes.
    is_typed: bool,
}

/// The efficiency on a machine, with what its other models say.
#[derive(Clone, Debug)]
pub struct Range {
    machine: Machine,
    heuristic: String,
    efficiency: f64,
    /// The efficiency by each other model that was replayed.
    others: Vec<(String, f64)>,
    /// The branch about which they differ most, if they are far apart.
    worst: Option<Worst>,
}

/// The branch at which what two models lose differs most.
#[derive(Clone, Debug, Serialize)]
struct Worst {
    /// Its line, or its place in the code.
    at: String,
    /// In how many places the iterations of the loop around it end.
    turn_ends: usize,
    /// How many branches of that loop have its line.
    copies: usize,
}

impl Machine {
    /// All of them.
    pub const ALL: [Machine; 4] = [Machine::Nvidia, Machine::Amd, Machine::IntelGpu, Machine::Avx512];

    /// Its name, as users type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The machine of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Machine> {
        Machine::ALL.into_iter().find(|machine| machine.name() == name)
    }

    fn facts(self) -> Facts {
        match self {
            Machine::Nvidia => Facts {
                name: "nvidia",
                model: "hanoi:placement=structured,predicate=4",
                others: "hanoi:placement=nak,wave:predicate=4",
                lanes: 32,
                transaction: 32,
                has_costs: true,
            },
            Machine::Amd => Facts {
                name: "amd",
                model: "wave",
                others: "tf-stack,ipdom:placement=structured",
                lanes: 64,
                transaction: 64,
                has_costs: false,
            },
            Machine::IntelGpu => Facts {
                name: "intel-gpu",
                model: "ipdom:placement=nak",
                others: "wave,ipdom:placement=structured",
                lanes: 16,
                transaction: 64,
                has_costs: false,
            },
            Machine::Avx512 => Facts {
                name: "avx512",
                model: "ipdom:placement=nak",
                others: "ipdom:placement=structured",
                lanes: 16,
                transaction: 64,
                has_costs: false,
            },
        }
    }

    /// The model that represents it.
    fn model(self) -> Spec {
        Spec::parse(self.facts().model).expect("the registry has it")
    }

    /// The same options, with the machine's warps if the size is not given; of so many lanes that can run together.
    fn options(self, options: ReplayOptions, together: usize) -> ReplayOptions {
        let warp_size = options.warp_size.or(Some(self.facts().lanes.min(together.max(1))));
        ReplayOptions { warp_size, ..options }
    }

    /// What its other models say, given what its own model said; none if its own has no figure. The others are replayed
    /// without measures.
    fn range(
        self,
        prepared: &Prepared,
        source: &mut Source,
        first: &Outcome,
        options: &ReplayOptions,
        with_others: bool,
    ) -> replay::Result<Option<Range>> {
        let Some(of_first) = efficiency(first, Some(self)) else { return Ok(None) };
        let others = match with_others {
            true => Spec::parse_list(self.facts().others).expect("the registry has them"),
            false => Vec::new(),
        };
        let options = ReplayOptions { measures: Vec::new(), ..options.clone() };
        let outcomes = prepared.replay(&others, &options, None, &|_, _| {})?;
        // What deadlocks, or lets no lane yield, says nothing of a port whose lanes take locks or yield.
        let is_alike = |o: &&Outcome| {
            o.deadlock.is_some() == first.deadlock.is_some() && o.tally.yields.is_some() == first.tally.yields.is_some()
        };
        let alike = outcomes.iter().filter(is_alike);
        let others = alike.filter_map(|o| Some((o.heuristic.clone(), efficiency(o, Some(self))?))).collect();
        let heuristic = first.heuristic.clone();
        let mut range = Range { machine: self, heuristic, efficiency: of_first, others, worst: None };
        if range.is_wide() {
            range.worst = Worst::of(prepared, &range.extremes(), &options, source)?;
        }
        Ok(Some(range))
    }
}

/// The efficiency of an outcome as a GPU's counters show it, with predicated lanes where the model has such; none if it
/// has no figure. On a machine of which the costs of instructions are known, it is that of its own instructions.
#[must_use]
pub fn efficiency(outcome: &Outcome, machine: Option<Machine>) -> Option<f64> {
    let of_costs = || outcome.gpu_efficiency().filter(|_| unit(machine) == Unit::Gpu);
    let plain = || outcome.active_efficiency().or_else(|| outcome.simt_efficiency());
    outcome.is_complete().then(|| of_costs().or_else(plain))?
}

/// Whose instructions a machine's figures count.
pub(crate) fn unit(machine: Option<Machine>) -> Unit {
    machine.filter(|machine| machine.facts().has_costs).map_or(Unit::Processor, |_| Unit::Gpu)
}

impl Default for Subject {
    fn default() -> Subject {
        Subject::of(None, Vec::new())
    }
}

impl Subject {
    /// The machine that was named; else the models that were named; else the default machine: the one whose models were
    /// compared with a reference most.
    #[must_use]
    pub fn of(machine: Option<Machine>, models: Vec<Spec>) -> Subject {
        match (machine, models.is_empty()) {
            (None, false) => Subject { machine: None, models, is_typed: false },
            _ => {
                let of = machine.unwrap_or(Machine::Nvidia);
                Subject { machine: Some(of), models: vec![of.model()], is_typed: machine.is_some() }
            }
        }
    }

    /// The efficiency of an outcome, as the machine counts it: see [`efficiency`].
    #[must_use]
    pub fn efficiency(&self, outcome: &Outcome) -> Option<f64> {
        efficiency(outcome, self.machine)
    }

    /// Whose instructions its figures count.
    #[must_use]
    pub fn unit(&self) -> Unit {
        unit(self.machine)
    }

    /// Whether this is a machine, for which a verdict is given.
    #[must_use]
    pub fn is_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// The same options, with the machine's warps where their size is not given.
    #[must_use]
    pub fn options(&self, options: ReplayOptions, view: &View) -> ReplayOptions {
        match self.machine {
            Some(machine) => machine.options(options, together(view)),
            None => options,
        }
    }

    /// What the machine's models say, given what its own model said; none for models that were named, and none if its
    /// own model has no figure.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn range(
        &self,
        prepared: &Prepared,
        view: &View,
        source: &mut Source,
        first: Option<&Outcome>,
        options: &ReplayOptions,
    ) -> replay::Result<Option<Range>> {
        let (Some(machine), Some(first)) = (self.machine, first) else { return Ok(None) };
        let with_others = self.is_typed || view.summary().kept <= FEW;
        machine.range(prepared, source, first, options, with_others)
    }
}

impl Range {
    /// The efficiency of the machine's model.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.efficiency
    }

    /// The least and the most that its models say.
    fn bounds(&self) -> (f64, f64) {
        let all = self.others.iter().map(|(_, e)| *e);
        all.fold((self.efficiency, self.efficiency), |(least, most), e| (least.min(e), most.max(e)))
    }

    /// Whether its models are so far apart that the user should be told what to do.
    fn is_wide(&self) -> bool {
        let (least, most) = self.bounds();
        most - least > FAR_APART
    }

    /// The models that say the least and the most.
    fn extremes(&self) -> [&str; 2] {
        let all = || self.others.iter().map(|(name, e)| (name.as_str(), *e));
        let all = || std::iter::once((self.heuristic.as_str(), self.efficiency)).chain(all());
        let least = all().min_by(|a, b| a.1.total_cmp(&b.1));
        let most = all().max_by(|a, b| a.1.total_cmp(&b.1));
        [least, most].map(|model| model.map_or("", |(name, _)| name))
    }

    /// The machine, in the words of a verdict.
    #[must_use]
    pub fn figure(&self) -> Figure {
        let (least, most) = self.bounds();
        Figure {
            machine: Some(self.machine.facts().name),
            model: self.heuristic.clone(),
            efficiency: self.efficiency,
            least,
            most,
            has_others: !self.others.is_empty(),
            is_compared: self.machine == Machine::Nvidia,
            lanes: self.machine.facts().lanes,
        }
    }

    /// A line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let Facts { name, transaction, has_costs, .. } = self.machine.facts();
        let (least, most) = self.bounds();
        let hint = if self.is_wide() {
            let at = self.worst.as_ref().map_or_else(String::new, Worst::phrase);
            format!(
                " They differ{at}: the compiler made control flow that a GPU's compiler would not. For a figure to \
                 trust, build with `lockstep cc --shape gpu`, with -O1, or by gcc with {UNCOPIED}."
            )
        } else {
            String::new()
        };
        let agree = if self.others.is_empty() {
            format!("--machine {name} shows how far its models agree")
        } else {
            format!("its models say {} to {}", percent(least), percent(most))
        };
        let (efficiency, model) = (percent(self.efficiency), &self.heuristic);
        let costs = if has_costs { "of the GPU's instructions, " } else { "" };
        format!(
            "{name}: {efficiency} SIMT efficiency ({costs}by {model}; {agree}; memory in transactions of {transaction} \
             bytes).{hint}\n"
        )
    }

    /// Why the machine's figure is another than the model's of this outcome, where they differ by a point or more.
    #[must_use]
    pub fn counts(&self, outcome: &Outcome) -> Option<String> {
        /// A hundredth of all lane-slots.
        const POINT: f64 = 0.01;
        let of_processor = outcome.simt_efficiency().filter(|of| (of - self.efficiency).abs() >= POINT)?;
        let (without, with) = if outcome.counts.lock_fetches > 0 {
            let with_locks = outcome.active_efficiency().map(percent);
            let with_locks = with_locks.map_or_else(String::new, |with| format!(" (with it {with})"));
            let without = format!(", without the code that takes and gives back locks{with_locks}");
            (without, " and with that code, which lanes run one after another")
        } else {
            (String::new(), "")
        };
        Some(format!(
            "one replay, counted in two ways: {} is of the processor's instructions{without}; {} is of those that a GPU \
             would have in their place{with}",
            percent(of_processor),
            percent(self.efficiency)
        ))
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
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
            "worst": self.worst,
        })
    }
}

impl Worst {
    /// The branch where two models differ most in the lane-slots that they lose for lanes that parted there: where the
    /// first loses most beyond the second, or where it loses most.
    fn of(
        prepared: &Prepared,
        models: &[&str; 2],
        options: &ReplayOptions,
        source: &mut Source,
    ) -> replay::Result<Option<Worst>> {
        let specs = models.map(|model| Spec::parse(model).expect("it was replayed"));
        let options = ReplayOptions { measures: vec![Causes::measure()], ..options.clone() };
        let outcomes = prepared.replay(&specs, &options, None, &|_, _| {})?;
        let mut parted: BTreeMap<Pc, [u64; 2]> = BTreeMap::new();
        for (i, outcome) in outcomes.iter().enumerate() {
            let Some(causes) = outcome.found::<Causes>() else { return Ok(None) };
            for row in lost::rows(lost::By::Branch, causes, source) {
                if let attribution::Subject::Instruction { pc, .. } = row.subject {
                    parted.entry(pc).or_default()[i] += row.parted;
                }
            }
        }
        let more = |slots: &[u64; 2]| slots[0].saturating_sub(slots[1]);
        let worst = parted.into_iter().max_by_key(|(pc, slots)| (more(slots), slots[0], Reverse(*pc)));
        Ok(worst.map(|(pc, _)| Worst::at(pc, prepared, source)))
    }

    /// What the compiler did around a branch.
    fn at(pc: Pc, prepared: &Prepared, source: &mut Source) -> Worst {
        let program = prepared.program();
        let flow = &program.control_flow;
        let branches = || program.segments.iter().map(|(_, s)| s).filter(|s| s.last().kind == Kind::Branch);
        let place = branches().find(|s| s.last().pc == pc).map(|s| s.place);
        let line = source.line(pc);
        let in_loop = |other: PlaceId| place.is_some_and(|place| flow.is_in_loop_of(place, other));
        let places: BTreeMap<Pc, PlaceId> = branches().map(|s| (s.last().pc, s.place)).collect();
        let like = places.into_iter().filter(|(_, other)| in_loop(*other));
        let copies = like.filter(|(other, _)| line.is_some() && source.line(*other) == line).count();
        let at = line.map_or_else(|| source.place(pc), |line| line.short());
        Worst { at, turn_ends: place.map_or(0, |place| flow.turn_ends(place)), copies }
    }

    fn phrase(&self) -> String {
        let turns = match self.turn_ends {
            0 | 1 => String::new(),
            ends => format!(" in a loop whose iterations end in {ends} places"),
        };
        let copies = match self.copies {
            0 | 1 => String::new(),
            copies => format!(", with {copies} copies of the branch"),
        };
        format!(" most at {}{turns}{copies}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use replay::metrics::TRANSACTION_SIZES;

    use super::*;

    #[test]
    fn every_machine_has_models_that_the_registry_knows_and_transactions_that_are_counted() {
        for machine in Machine::ALL {
            let facts = machine.facts();
            assert!(Spec::parse(facts.model).is_ok() && Spec::parse_list(facts.others).is_ok(), "{}", facts.name);
            assert!(TRANSACTION_SIZES.contains(&facts.transaction), "{}", facts.name);
        }
    }
}
