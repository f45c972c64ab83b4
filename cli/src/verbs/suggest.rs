//! `lockstep suggest`: where collecting lanes would pay, by trying it, and what passes of the compiler would gain.

use std::path::PathBuf;
use std::process::ExitCode;

use attribution::table::{Align, grouped, percent};
use attribution::{Source, typed_prediction};
use heuristics::{Prediction, Spec, brief, collects};
use replay::metrics::{Bound, GpuMemory, GpuTime, Stalls, Traffic};
use replay::suggest::{Candidate, Estimate, Search, Suggestions, Together, Tried, cost, passes, suggest, transactions};
use replay::{Outcome, Prepared, Unit};
use serde_json::{Value, json};
use trace_format::Pc;
use verdict::{Machine, Subject, collecting, thresholds};

use crate::exit;
use crate::output::{WithColours, print, progress, say, show};
use crate::typed::selection::{self, OneView};
use crate::typed::spin;
use crate::typed::{machine, predict};
use crate::width::{self, Wide};

/// The most passes in the table.
const PASSES: usize = 12;

/// Find the places where collecting lanes would pay: tries the candidates, and ranks them by a GPU's time
///
/// Lanes that part in a loop reach an expensive place in different iterations. Each place where that loses fetches is
/// replayed as with `replay --predict`, by the same model and in the machine's instructions: once waiting for all
/// lanes, and once for each threshold (see docs/speculation.md). Of a trace with addresses they are ranked by the time
/// of an NVIDIA GPU that is full of such lanes, else by what is issued. A second table shows what the passes fcs, meld
/// and linearize would gain, as far as the trace can tell.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    #[command(flatten)]
    selection: OneView,

    /// The model to try them under, in fetches: hanoi or barrier
    ///
    /// With parameters (barrier:placement=structured). Default: that of --machine
    #[arg(long, short = 'H', visible_alias = "model", value_name = "MODEL", value_parser = parse)]
    heuristic: Option<Spec>,

    /// The machine whose model, warps and instructions count
    ///
    /// That of nvidia stands for those of a machine that collects no lanes. Default: nvidia
    #[arg(long, value_name = "MACHINE", value_parser = machine::parser(), conflicts_with = "heuristic")]
    machine: Option<Machine>,

    /// The most places to try, those that could save most first
    #[arg(long, value_name = "N", default_value_t = 16)]
    candidates: usize,

    /// The most places at which lanes are collected at once
    ///
    /// The best, and each that still gains beside those before it
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=16))]
    together: u16,

    /// Rank by cycles, with those of memory transactions
    ///
    /// One for each fetch, and one for each transaction of 32 bytes. The trace must have addresses
    #[arg(long)]
    memory: bool,

    /// Rank by cycles, with those of waiting for loads
    ///
    /// One for each fetch, and those in which a core that stalls on use waits for loads of N cycles
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    load_latency: Option<u32>,

    /// How many waiting lanes are enough, several with commas
    ///
    /// Waiting for all lanes of a warp is always tried. Default: a half, a quarter and an eighth of a warp
    #[arg(long, value_name = "LANES", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=heuristics::MAX_LANES as i64))]
    threshold: Option<Vec<u16>>,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    wide: Wide,
}

/// A model that collects lanes.
fn parse(text: &str) -> Result<Spec, String> {
    let spec = Spec::parse(text).map_err(|why| why.to_string())?;
    predict::obedient(std::slice::from_ref(&spec))?;
    Ok(spec)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.wide.apply();
    let trace = selection::open(&args.trace)?;
    let view = args.selection.view(&trace)?;
    if !args.json {
        say!("{}", view.summary());
        spin::advice(&trace, view.summary()).into_iter().for_each(|advice| say!("{advice}"));
    }
    if args.memory && !trace.meta().memory {
        let why = "the trace has no memory addresses: record it with trace --memory, or leave --memory out";
        return Err(replay::Error::Request(format!("{}: {why}", args.trace.display())).into());
    }
    let subject = Subject::of(args.machine, args.heuristic.iter().cloned().collect());
    let model = &collecting(&subject.models[0]);
    let mut options = subject.options(args.selection.options(), &view);
    options.measures.extend(args.memory.then(Traffic::measure));
    options.measures.extend(args.load_latency.map(Stalls::measure));
    let has_time = subject.unit() == Unit::Gpu && trace.meta().memory;
    options.measures.extend((has_time && !args.memory && args.load_latency.is_none()).then(GpuMemory::measure));
    let prepared = Prepared::new(&view, true)?;
    let bar = progress();
    let done = |n: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(n as u64);
    };
    let thresholds =
        args.thresholds(options.warp_size.unwrap_or(heuristics::MAX_LANES).min(replay::LaneSource::lanes(&view)));
    let (most, together) = (args.candidates, usize::from(args.together));
    let search = Search { model, most, thresholds: &thresholds, together, least: 0.0, unit: subject.unit() };
    let found = suggest(&prepared, search, &options, &done)?;
    if !found.before.is_complete() {
        bar.finish_and_clear();
        say!("lockstep: {}; nothing can be suggested for it", found.before.status());
        return Ok(ExitCode::from(exit::DEADLOCK));
    }
    let estimates = passes(&prepared, search, &options, &found.before)?;
    bar.finish_and_clear();
    let mut source = Source::new(&trace);
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&as_json(&found, &estimates, &subject, &mut source))?),
        false => as_table(&found, &subject, &mut source) + &of_passes(&estimates, &found, &mut source),
    };
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if args.json { print(&text, WithColours::No) } else { show(&text, WithColours::No) }?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// The thresholds to try: those that were typed, or shares of a warp of so many lanes.
    fn thresholds(&self, lanes: usize) -> Vec<usize> {
        let mut all: Vec<usize> = match &self.threshold {
            Some(typed) => typed.iter().map(|lanes| usize::from(*lanes)).collect(),
            None => thresholds(lanes),
        };
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A place: its line or what stands for it, and its function.
fn place(at: Pc, source: &mut Source) -> (String, String) {
    match source.line(at) {
        Some(line) => (line.short(), line.functions.first().cloned().unwrap_or_default()),
        None => (source.without_line(at), source.function(at)),
    }
}

/// What is typed behind `--predict` for a place with so many lanes to wait for.
fn typed((candidate, prediction): &(Candidate, Prediction), source: &Source) -> String {
    let lanes = prediction.threshold.map_or_else(String::new, |lanes| format!(",threshold={lanes}"));
    format!("{}{lanes}", typed_prediction(candidate, source))
}

fn as_table(found: &Suggestions, subject: &Subject, source: &mut Source) -> String {
    let unit = found.unit;
    let before = cost(&found.before, unit);
    let ranking = Ranking::of(found);
    let header = [
        "collect lanes at",
        "in",
        "address",
        "pattern",
        "wait for",
        unit.name(),
        "SIMT efficiency",
        "to wait",
        ranking.column(),
        "gain",
    ];
    let mut rows = vec![header.map(str::to_owned)];
    let row = |names: [String; 5], outcome: &Outcome| {
        let gain = format!("{:.2}x", before as f64 / cost(outcome, unit).max(1) as f64);
        let waits = outcome.waits(unit).map_or_else(String::new, grouped);
        let [at, function, address, pattern, lanes] = names;
        let issued = grouped(outcome.fetched(unit));
        let efficiency = subject.efficiency(outcome).map_or_else(String::new, percent);
        [at, function, address, pattern, lanes, issued, efficiency, waits, grouped(cost(outcome, unit)), gain]
    };
    let mut named = |candidate: &Candidate, prediction: &Prediction, before: &str| {
        let (at, function) = place(candidate.at, source);
        let lanes = prediction.threshold.map_or_else(|| "all".to_owned(), |lanes| lanes.to_string());
        let pattern = candidate.pattern.name().to_owned();
        [format!("{before}{at}"), function, candidate.at.to_string(), pattern, lanes]
    };
    let pays = |tried: &&Tried| tried.trials.first().is_some_and(|trial| found.pays(&trial.outcome));
    let gained = found.tried.iter().filter(pays).count();
    for tried in found.tried.iter().filter(pays) {
        let trial = &tried.trials[0];
        rows.push(row(named(&tried.candidate, &trial.prediction, ""), &trial.outcome));
    }
    if let Some(Together { places, outcome }) = &found.together {
        // The result of all of them together is in the row of the last.
        for (number, (candidate, prediction)) in places.iter().enumerate() {
            let names = named(candidate, prediction, if number == 0 { "" } else { "and " });
            let whole = row(names.clone(), outcome);
            let is_last = number + 1 == places.len();
            let [at, function, address, pattern, lanes] = names;
            let empty = String::new;
            let part = [at, function, address, pattern, lanes, empty(), empty(), empty(), empty(), empty()];
            rows.push(if is_last { whole } else { part });
        }
    }
    rows.push(row(["(nowhere)", "", "", "", ""].map(str::to_owned), &found.before));
    let align = |column| if column < 5 { Align::Left } else { Align::Right };
    let width = width::of_results();
    let mut text = match ranking {
        Ranking::Issued => width.table(&rows.into_iter().map(without_cost).collect::<Vec<_>>(), align),
        _ => width.table(&rows, align),
    };
    text += &gains_no_time(found, |candidate| place(candidate.at, source).0);
    let model = brief(&found.before.heuristic);
    text += &format!(
        "{} of {} candidates were tried; {gained} would pay. to wait: instructions by which lanes wait there; {}, \
         under {model}\n",
        found.tried.len(),
        found.candidates,
        ranking.said(unit),
    );
    match &found.best()[..] {
        [] => text += "collecting lanes at one place of a loop does not pay here\n",
        places => {
            let typed: String = places.iter().map(|place| format!(" --predict {}", typed(place, source))).collect();
            let model = match subject.is_machine() && collects(&subject.models[0]) {
                true => String::new(),
                false => format!(" -H {model}"),
            };
            text += &format!("to see it: replay{model}{typed} --by line TRACE\n");
        }
    }
    text
}

/// By what places are ranked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ranking {
    Time,
    Cycles,
    Issued,
}

impl Ranking {
    fn of(found: &Suggestions) -> Ranking {
        match &found.before {
            before if GpuTime::of(before).is_some() => Ranking::Time,
            before if cost(before, found.unit) != before.issued(found.unit) => Ranking::Cycles,
            _ => Ranking::Issued,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Ranking::Time => "time",
            Ranking::Cycles => "cycles",
            Ranking::Issued => "instructions",
        }
    }

    /// What the column of costs is called.
    fn column(self) -> &'static str {
        if self == Ranking::Time { "picoseconds" } else { "cycles" }
    }

    /// What a gain is.
    fn said(self, unit: Unit) -> String {
        let unit_name = unit.name();
        match self {
            Ranking::Time => {
                "gain: the time of an NVIDIA H200 full of such lanes without collecting / with it".to_owned()
            }
            Ranking::Cycles => format!(
                "cycles: {unit_name} and those to wait, one each, and what --memory and --load-latency add; gain: \
                 cycles without collecting / with it"
            ),
            Ranking::Issued => {
                let why = match unit {
                    Unit::Gpu => {
                        ": what time that gains is unknown without addresses (trace --memory) in warps of 32 lanes"
                    }
                    Unit::Processor => "",
                };
                format!("gain: {unit_name} without collecting / {unit_name} and those to wait with it{why}")
            }
        }
    }
}

/// Fewer instructions than this share of those before are worth a word where they gain no time.
const FEWER: f64 = 0.95;

/// The places at which fewer instructions gain no time, and why, a line each.
fn gains_no_time(found: &Suggestions, mut name: impl FnMut(&Candidate) -> String) -> String {
    let unit = found.unit;
    let (Some(before), issued) = (GpuTime::of(&found.before), found.before.issued(unit) as f64) else {
        return String::new();
    };
    let mut text = String::new();
    for tried in &found.tried {
        let least = tried.trials.iter().min_by_key(|trial| trial.outcome.issued(unit));
        let Some((trial, after)) = least.and_then(|trial| Some((trial, GpuTime::of(&trial.outcome)?))) else {
            continue;
        };
        let fewer = trial.outcome.issued(unit) as f64;
        if fewer < FEWER * issued && after.filled >= before.filled {
            let bound = match before.filled_bound {
                bound if bound.is_of_memory() || after.filled_bound.is_of_memory() => Bound::Memory.name(),
                bound => bound.name(),
            };
            let (at, times) = (name(&tried.candidate), issued / fewer);
            text += &format!("{at}: bound by {bound}: {times:.2} times fewer instructions gain no time\n");
        }
    }
    text
}

/// A row without a cost beside what is issued.
fn without_cost(row: [String; 10]) -> [String; 9] {
    let [at, function, address, pattern, lanes, issued, efficiency, waits, _, gain] = row;
    [at, function, address, pattern, lanes, issued, efficiency, waits, gain]
}

/// What passes of the compiler would gain.
fn of_passes(estimates: &[Estimate], found: &Suggestions, source: &mut Source) -> String {
    let (before, unit) = (found.before.issued(found.unit), found.unit.name());
    let mut rows = vec![["pass", "branch", "in", "of", "known by", unit, "gain"].map(str::to_owned)];
    // A gain below a hundredth means nothing, given what the pass adds.
    let shown = estimates.iter().filter(|estimate| 100 * estimate.issued <= 99 * before).take(PASSES);
    for Estimate { pass, at, callee, issued, basis, .. } in shown {
        let (at, function) = at.map_or_else(|| ("(all)".to_owned(), String::new()), |at| place(at, source));
        let callee = callee.map_or_else(String::new, |callee| source.function(callee));
        let gain = format!("{:.2}x", before as f64 / (*issued).max(1) as f64);
        rows.push([pass.name().to_owned(), at, function, callee, basis.name().to_owned(), grouped(*issued), gain]);
    }
    if rows.len() == 1 {
        return "as far as this trace shows, passes of lockstep cc would gain less than a hundredth\n".to_owned();
    }
    let text = width::of_results().table(&rows, |column| if column < 5 { Align::Left } else { Align::Right });
    format!(
        "\nWhat passes of lockstep cc would gain, of {} {unit}:\n{text}{} of {} are shown. replayed: the lanes ran \
         together as the pass would make them, without the code it adds; of meld: the instructions that both sides \
         of the branch have in common; of linearize: the same lanes under tf-stack, without guards\n",
        grouped(before),
        rows.len() - 1,
        estimates.len()
    )
}

fn as_json(found: &Suggestions, estimates: &[Estimate], subject: &Subject, source: &mut Source) -> Value {
    let unit = found.unit;
    let counts = |outcome: &Outcome| {
        json!({
            "fetches": outcome.counts.fetches(),
            "issued": outcome.issued(unit),
            "simt_efficiency": subject.efficiency(outcome),
            "barrier_operations": outcome.tally.barrier_operations,
            "wait_instructions": outcome.tally.wait_instructions,
            "yields": outcome.tally.yields,
            "load_stalls": outcome.found::<Stalls>().map(|found| found.stalls),
            "transactions_32": transactions(outcome),
            "bound": GpuTime::of(outcome).map(|time| time.filled_bound.name()),
            "cost": cost(outcome, unit),
        })
    };
    let mut places = Vec::new();
    for tried in &found.tried {
        let (at, function) = place(tried.candidate.at, source);
        let trials: Vec<Value> = tried
            .trials
            .iter()
            .map(|trial| {
                let mut counts = counts(&trial.outcome);
                counts["threshold"] = json!(trial.prediction.threshold);
                counts
            })
            .collect();
        places.push(json!({
            "place": at,
            "function": function,
            "address": tried.candidate.at.to_string(),
            "predict": typed_prediction(&tried.candidate, source),
            "pattern": tried.candidate.pattern.name(),
            "could_save_at_most": tried.candidate.at_most,
            "trials": trials,
        }));
    }
    let together = found.together.as_ref().map(|Together { places, outcome }| {
        let mut counts = counts(outcome);
        counts["predict"] = places.iter().map(|place| typed(place, source)).collect();
        counts
    });
    let mut of_passes = Vec::new();
    for Estimate { pass, at, callee, issued, basis, .. } in estimates {
        of_passes.push(json!({
            "pass": pass.name(),
            "place": at.map(|at| place(at, source).0),
            "function": at.map(|at| place(at, source).1),
            "of": callee.map(|callee| source.function(callee)),
            "known_by": basis.name(),
            "issued": issued,
        }));
    }
    json!({
        "heuristic": found.before.heuristic,
        "instructions": unit.name(),
        "ranked_by": Ranking::of(found).name(),
        "before": counts(&found.before),
        "candidates": found.candidates,
        "places": places,
        "together": together,
        "passes": of_passes,
    })
}
