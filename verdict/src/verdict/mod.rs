//! The verdict: what a replay says about a program, in sentences that claim only what is known.
//!
//! It gives the figure of the machine's model and the range of the machine's other models. Coverage comes first
//! ([`coverage`]): an efficiency is that of the lanes, which can be a small part of the program. A single lane has no
//! verdict. Where threads took pieces of work whenever they were free, and are uneven ([`balance`]), what each lane ran
//! is chance, and so is the figure. Then come the worst places, with one remedy each ([`advice`]).

pub(crate) mod advice;
pub(crate) mod balance;
pub(crate) mod coverage;
mod figure;
pub(crate) mod filling;
mod headline;
mod kinds;
pub(crate) mod locking;
pub(crate) mod spread;
mod time;

use attribution::table::grouped;
use attribution::{Source, typed_prediction};
use heuristics::{Program, brief};
use replay::Outcome;
use replay::metrics::Causes;
use replay::suggest::{Estimate, Suggestions};
use replay::view::{CutInto, LoopRan, View};
use serde::Serialize;
use serde_json::{Value, json};
use trace_format::Trace;

use self::advice::{Advisor, Place};
use self::balance::Balance;
use self::coverage::{Coverage, share};
pub use self::figure::Figure;
use self::headline::Waits;
use self::locking::{LockTrials, Locking};
use self::spread::Spread;
use self::time::Time;
use crate::Machine;
use crate::machine::unit;

/// Collecting lanes is worth a sentence where it spares this share of what is issued.
const WORTH_COLLECTING: f64 = 0.03;

/// A thread that runs so many times its share of the pieces of work took them whenever it was free.
const UNEVENLY_DEALT: f64 = 1.5;

/// Pieces of work as lanes, for threads that took pieces whenever they were free.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Items {
    /// What is typed for it: `--lanes iterations`.
    pub typed: String,
    /// What they are: `the iterations`, `the calls of collatz`.
    pub what: String,
    /// How many lanes they are.
    pub lanes: usize,
    /// How many of them were replayed, where they are too long for all to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<usize>,
    /// Seats in their warps.
    pub warp_size: usize,
    /// Their efficiency under the verdict's model.
    pub efficiency: f64,
    /// The same with lanes made to meet behind the lock that they wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meeting: Option<f64>,
    /// Whether a lock is taken in each of them, or a common counter counted up.
    #[serde(skip)]
    pub are_taken: bool,
    /// How many pieces the busiest thread ran, over the number that each would have if all had as many.
    pub dealt: f64,
}

impl Items {
    /// Whether the threads' numbers of pieces differ so much that they took pieces whenever they were free.
    #[must_use]
    pub fn are_dealt_unevenly(&self) -> bool {
        self.dealt > UNEVENLY_DEALT
    }
}

/// What was replayed besides the machine's model, if there are few thread instructions.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The loops that lanes ran.
    pub(crate) loops: Vec<LoopRan>,
    /// The lanes grouped by similarity, in several warps.
    pub(crate) regrouped: Option<Outcome>,
    /// What passes of the compiler would gain.
    pub(crate) estimates: Vec<Estimate>,
    /// Pieces of work as lanes, and the verdict on those.
    pub(crate) items: Option<(Items, Option<Verdict>)>,
    /// The lanes with other rules for locks, where one waits for a lock.
    pub(crate) locks: Option<LockTrials>,
}

impl Evidence {
    /// Pieces of work as lanes.
    pub(crate) fn pieces(&self) -> Option<&Items> {
        self.items.as_ref().map(|(items, _)| items)
    }
}

/// What a verdict is computed from.
pub(crate) struct Case<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) view: &'a View,
    pub(crate) program: &'a Program,
    /// The outcome of the machine's model, with [`Causes`] where places are wanted.
    pub(crate) outcome: &'a Outcome,
    pub(crate) figure: Figure,
    pub(crate) evidence: &'a Evidence,
    /// Where collecting lanes pays, if that was tried.
    pub(crate) suggestions: Option<&'a Suggestions>,
}

/// A verdict.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The first sentence.
    pub headline: String,
    /// The machine's figure.
    pub figure: Figure,
    /// Whether the figure says something about the program: not for a single lane, nor where it is chance.
    pub holds: bool,
    /// Whether lanes wait for what lockstep does not order: then a GPU's efficiency is at most that of the figure.
    pub is_at_most: bool,
    /// Which part of the program the lanes are.
    pub coverage: Coverage,
    /// How evenly work is spread, where lanes are threads.
    pub balance: Option<Balance>,
    /// Pieces of work as lanes, where that was replayed.
    pub items: Option<Items>,
    /// What locks cost, where lanes wait for one.
    pub locking: Option<Locking>,
    /// How long an NVIDIA GPU takes, where memory was measured and the figure is that machine's.
    pub time: Option<Time>,
    /// What may mislead the reader, and what to do about it.
    pub warnings: Vec<String>,
    /// What else is known.
    pub sentences: Vec<String>,
    /// The worst places.
    pub places: Vec<Place>,
    /// Whether those belong to the pieces of work as lanes, since nothing holds for the threads.
    pub places_are_of_items: bool,
}

impl Verdict {
    /// Of a case.
    pub(crate) fn of(case: &Case, source: &mut Source) -> Verdict {
        let Case { trace, view, program, outcome, figure, evidence, suggestions } = case;
        let coverage = Coverage::of(view.summary());
        let mut balance = Balance::of(trace, view, outcome);
        let items = evidence.pieces();
        let took_unevenly = items.is_some_and(Items::are_dealt_unevenly);
        if let Some(balance) = balance.as_mut().filter(|_| took_unevenly && items.is_some_and(|items| items.are_taken))
        {
            // In a region threads may take pieces beside what OpenMP deals out.
            balance.schedule = balance.schedule.or_else(|| balance::Schedule::taken(view));
        }
        let is_chance = balance.as_ref().is_some_and(|balance| balance.is_chance(took_unevenly));
        let locking =
            Locking::of(outcome, (evidence.locks.as_ref(), figure.machine.and_then(Machine::named)), view, source);
        let advisor = Advisor {
            outcome,
            unit: unit(figure.machine.and_then(Machine::named)),
            efficiency: figure.efficiency,
            program,
            view,
            balance: balance.as_ref(),
            evidence,
            locking: locking.as_ref(),
            predicated: advice::predicated(outcome, program),
        };
        let alone = outcome.lanes < 2;
        let withheld = view.summary().cut.as_ref().and_then(CutInto::withheld);
        let mut places = match outcome.found::<Causes>().filter(|_| !alone && withheld.is_none()) {
            Some(causes) => advisor.places(causes, source),
            None => Vec::new(),
        };
        places.iter_mut().for_each(|place| place.drop_remedies_without_gain(figure.efficiency));
        Verdict {
            headline: match withheld {
                Some(doubt) => format!("withheld: {doubt}."),
                None => headline::of(
                    (figure, locking.as_ref(), view),
                    &coverage,
                    (balance.as_ref(), is_chance),
                    items,
                    outcome,
                ),
            },
            warnings: {
                let order = balance::taken_by_thread(trace, view, locking.is_some());
                let all = warnings(figure, balance.as_ref(), items, outcome, view);
                all.into_iter().chain(order).chain(ended_early(trace)).collect()
            },
            sentences: sentences(outcome, locking.as_ref(), *suggestions, source),
            time: time::on(figure.machine, outcome, view).filter(|_| !alone && withheld.is_none()),
            holds: !alone && !is_chance && withheld.is_none(),
            is_at_most: Waits::of(view) == Waits::NotAllOrdered,
            figure: figure.clone(),
            coverage,
            items: items.cloned(),
            locking,
            balance,
            places,
            places_are_of_items: false,
        }
    }

    /// The same with the worst places of the pieces of work as lanes.
    #[must_use]
    pub(crate) fn with_places_of(mut self, items: &Verdict) -> Verdict {
        self.places.clone_from(&items.places);
        self.places_are_of_items = true;
        self
    }

    /// The machine's efficiency; none where it is withheld, or only a bound of it is known. The headline says why.
    #[must_use]
    pub fn efficiency(&self) -> Option<f64> {
        (self.holds && !self.is_at_most).then_some(self.figure.efficiency)
    }

    /// What the efficiency is at most, where no more is known.
    #[must_use]
    pub fn at_most(&self) -> Option<f64> {
        (self.holds && self.is_at_most).then(|| self.figure.bound())
    }

    /// The efficiency that the remedies start from.
    fn before(&self) -> f64 {
        let of_items = self.items.as_ref().filter(|_| self.places_are_of_items);
        of_items.map_or(self.figure.efficiency, |items| items.efficiency)
    }

    /// Where the efficiency of a GPU's own code lies.
    fn spread(&self) -> Option<Spread> {
        self.figure.spread().filter(|_| self.holds && !self.is_at_most)
    }

    /// As lines for people: the headline, coverage, warnings, what is known, the worst places.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("verdict: {}", self.headline)];
        lines.extend(self.spread().map(|spread| format!("range: {}", spread.sentence())));
        lines.push(format!("coverage: {}", self.coverage.sentence()));
        lines.extend(self.time.iter().map(|time| format!("time: {}", time::sentence(time))));
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(self.sentences.iter().map(|sentence| format!("note: {sentence}")));
        if let (true, Some(items), false) = (self.places_are_of_items, &self.items, self.places.is_empty()) {
            lines.push(format!("with {} as lanes:", items.what));
        }
        for (number, place) in self.places.iter().enumerate() {
            lines.push(format!("{}. {}", number + 1, place_line(place)));
            let before = self.places[..number].iter().position(|before| before.remedy == place.remedy);
            if let (Some(_), Some(same), []) = (&place.remedy, before, &place.more[..]) {
                lines.push(format!("   advice: as for {}.", same + 1));
                continue;
            }
            for remedy in place.remedy.iter().chain(&place.more) {
                lines.push(format!("   advice: {}; {}.", remedy.text, gain(self.before(), remedy)));
            }
        }
        lines
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let Figure { machine, model, efficiency, least, most, .. } = &self.figure;
        let place = |place: &Place| {
            let of_remedy = |remedy: &advice::Remedy| {
                json!({
                    "kind": remedy.kind.name(),
                    "text": remedy.text,
                    "efficiency": remedy.efficiency,
                    "known_by": remedy.basis.name(),
                    "gain": gain(self.before(), remedy),
                })
            };
            let mut all = json!({
                "at": place.subject.short(),
                "in": place.subject.beside(),
                "sentence": place_line(place),
                "slots": place.slots,
                "share": place.share,
                "causes": place.causes(),
                "remedy": place.remedy.as_ref().map(of_remedy),
            });
            if !place.more.is_empty() {
                all["more_remedies"] = place.more.iter().map(of_remedy).collect();
            }
            all
        };
        let balance = self.balance.as_ref().map(|balance| {
            json!({
                "balance": balance.balance,
                "longest": balance.longest,
                "is_uneven": balance.is_uneven(),
                "is_chance": !self.holds,
                "schedule": balance.schedule.map(balance::Schedule::phrase),
            })
        });
        let mut all = json!({
            "headline": self.headline,
            "holds": self.holds,
            "is_at_most": self.is_at_most,
            "machine": machine,
            "heuristic": model,
            "efficiency": efficiency,
            "least": least,
            "most": most,
            "coverage": {
                "share": self.coverage.share(),
                "is_low": self.coverage.is_low(),
                "sentence": self.coverage.sentence(),
            },
            "balance": balance,
            "items": self.items,
            "warnings": self.warnings,
            "sentences": self.sentences,
            "places_of": self.items.as_ref().filter(|_| self.places_are_of_items).map(|items| &items.what),
            "places": self.places.iter().map(place).collect::<Vec<Value>>(),
        });
        if let Some(spread) = self.spread() {
            all["range"] = spread.json();
        }
        if let Some(time) = &self.time {
            all["time"] = time::json(time);
        }
        if let Some(locking) = &self.locking {
            all["locks"] = locking.json();
        }
        all
    }
}

/// `iftrip.c:12 in work: 62.1% of the lost lane-slots (loop trip count)`.
fn place_line(place: &Place) -> String {
    let beside = place.subject.beside();
    let function = beside.split(", inlined into").next().unwrap_or_default();
    let within = if function.is_empty() { String::new() } else { format!(" in {function}") };
    format!("{}{within}: {} of the lost lane-slots ({})", place.subject.short(), share(place.share), place.causes())
}

/// `that would raise 46.5% to 80.1% at most`.
fn gain(before: f64, remedy: &advice::Remedy) -> String {
    let (from, to) = (share(before), share(remedy.efficiency));
    match remedy.basis {
        replay::suggest::Basis::AtMost => format!("that would raise {from} to {to} at most"),
        replay::suggest::Basis::About => format!("that would raise {from} to about {to}"),
        replay::suggest::Basis::Replayed => format!("that raised {from} to {to} when it was replayed"),
    }
}

/// That the recording ended before the program did, and why.
fn ended_early(trace: &Trace) -> Option<String> {
    let why = trace.finish()?.stopped_early.as_ref()?;
    Some(format!("the recording ended before the program did ({why}): what ran behind that is in no number here."))
}

fn warnings(
    figure: &Figure,
    balance: Option<&Balance>,
    items: Option<&Items>,
    outcome: &Outcome,
    view: &View,
) -> Vec<String> {
    let mut all: Vec<String> = view.summary().doubts.iter().map(|doubt| format!("{doubt}.")).collect();
    if let Some(cut) = &view.summary().cut {
        // The first one is the headline where the verdict is withheld.
        all.extend(cut.doubts.iter().skip(usize::from(cut.withheld().is_some())).map(|doubt| format!("{doubt}.")));
    }
    if let [first, rest @ ..] = &view.summary().own_locks[..]
        && view.locks().are_taken()
    {
        let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
        all.push(format!(
            "{}{more} looks like a lock: atomic instructions of several threads take it and give it back, so lanes take \
             turns there. That is not certain: replay --locks ignore leaves all locks out.",
            view.lock_name(*first)
        ));
    }
    if !view.summary().unordered.is_empty() {
        all.push(format!(
            "lanes do not wait for each other at {}: these numbers leave out what that costs a GPU.",
            view.summary().unordered.join(" and ")
        ));
    }
    if headline::ran_in_order(view) {
        let addresses = if view.has_memory() { "" } else { ", of a trace with addresses (trace --memory)" };
        all.push(format!(
            "one thread ran these iterations one after another, and whether they may run side by side is not looked at \
             here: the same with --dependences says so{addresses}."
        ));
    }
    let own_waits = view.summary().own_waits;
    if own_waits > 0 {
        all.push(format!(
            "lanes waited {} times in locks or barriers that lockstep does not know (futex system calls outside of \
             pthread's and OpenMP's functions): these numbers leave out what such locks cost a GPU.",
            grouped(own_waits)
        ));
    }
    let asks = view.summary().asks;
    if asks > 0 {
        all.push(format!(
            "lanes asked the kernel for input {} times (read, poll and their kin): where one waits there for another, \
             as at a pipe, these numbers leave that out.",
            grouped(asks)
        ));
    }
    if let Some(balance) = balance {
        let uneven = format!(
            "lanes are uneven: one of {} has {} of all instructions, so no model can exceed {}",
            outcome.lanes,
            share(balance.longest),
            share(balance.balance)
        );
        let as_lanes = items
            .map_or_else(String::new, |items| format!(", or take {} as lanes (replay {})", items.what, items.typed));
        match (balance.schedule, balance.is_uneven()) {
            (Some(schedule), true) if schedule.is_sure() => all.push(format!(
                "{uneven}. Another recording has other lanes: `trace --repeat 5` and `replay` of all five show the \
                 spread. For a stable figure, {}{as_lanes}.",
                schedule.remedy()
            )),
            (Some(schedule), true) => all.push(format!(
                "{uneven}. There are {}: then which lane ran what was decided while recording. `trace --repeat 5` and \
                 `replay` of all five show whether it was; if so, give each thread a fixed share{as_lanes}.",
                schedule.phrase()
            )),
            (Some(schedule), false) if schedule.is_sure() => all.push(format!(
                "{} decided while recording which lane ran what; another recording may differ. For a stable figure, \
                 {}{as_lanes}.",
                schedule.phrase(),
                schedule.remedy()
            )),
            _ => {}
        }
    }
    let together = filling::largest_launch(view);
    if figure.machine.is_some() && view.summary().cut.is_none() && (2..figure.lanes).contains(&together) {
        let lanes = figure.lanes;
        let is_openmp = headline::is_of_openmp(view);
        let how = if is_openmp { format!(" (OMP_NUM_THREADS={lanes})") } else { String::new() };
        let port = match is_openmp && items.is_none() {
            true => {
                " A GPU's version of a loop that it shares out has a lane for each iteration: replay --lanes \
                 iterations."
            }
            false => "",
        };
        all.push(format!(
            "at most {together} lanes run together, and the machine's warps have {lanes}: more lanes share less. Run \
             the program with {lanes} threads if it can{how}.{port}"
        ));
    }
    all
}

fn sentences(
    outcome: &Outcome,
    locking: Option<&Locking>,
    suggestions: Option<&Suggestions>,
    source: &mut Source,
) -> Vec<String> {
    let mut all: Vec<String> = locking.and_then(Locking::sentence).into_iter().collect();
    let slots = |fetches: u64| outcome.upper_bound as f64 / (fetches.max(1) as f64 * outcome.warp_size as f64);
    if outcome.lanes > 1 && outcome.counts.fetches() > outcome.lower_bound {
        all.push(format!(
            "no order of these instructions in these warps takes fewer than {} fetches ({}). It may take more. Other \
             code can take fewer.",
            grouped(outcome.lower_bound),
            share(slots(outcome.lower_bound))
        ));
    }
    if let Some(found) = suggestions
        && let Some(best) = found.tried.first()
        && let Some(trial) = best.trials.first()
    {
        let (before, after) = (found.before.issued(found.unit), trial.outcome.issued(found.unit));
        if (after as f64) < (1.0 - WORTH_COLLECTING) * before as f64 {
            let at = typed_prediction(&best.candidate, source);
            all.push(format!(
                "where lanes wait for each other at {at}, {} issues {} less (replay --predict {at}; see \
                 docs/speculation.md).",
                brief(&found.before.heuristic),
                share(1.0 - after as f64 / before.max(1) as f64)
            ));
        }
    }
    all
}
