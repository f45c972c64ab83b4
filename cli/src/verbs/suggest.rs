//! `lockstep suggest`: where collecting lanes would pay, by trying it.

use std::path::PathBuf;
use std::process::ExitCode;

use attribution::table::{Align, aligned, grouped, percent};
use attribution::{Source, typed_prediction};
use heuristics::Spec;
use replay::suggest::{Suggestions, Tried, issued, suggest};
use replay::view::View;
use replay::{Outcome, Prepared};
use serde_json::{Value, json};
use trace_format::Pc;

use crate::output::{WithColours, print, progress, say};
use crate::selection::{self, Selection};
use crate::{exit, predict, spin};

/// Find the places at which collecting lanes would pay: tries those that could, and ranks them by what each took
///
/// Lanes that part in a loop come to an expensive place in different turns. Each place where that loses fetches is
/// replayed as `replay --predict` does it, with all lanes waited for and with thresholds (see docs/speculation.md).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace
    trace: PathBuf,

    #[command(flatten)]
    selection: Selection,

    /// The most places that are tried, those that could save most first
    #[arg(long, value_name = "N", default_value_t = 16)]
    candidates: usize,

    /// How many waiting lanes are to be enough, several with commas; all lanes of a warp are always tried. Default: a
    /// half, a quarter and an eighth of a warp
    #[arg(long, value_name = "LANES", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=heuristics::MAX_LANES as i64))]
    threshold: Option<Vec<u16>>,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = selection::open(&args.trace)?;
    let view = args.selection.view(&trace)?;
    if !args.json {
        say!("{}", view.summary());
        spin::advice(&trace, view.summary()).into_iter().for_each(|advice| say!("{advice}"));
    }
    let model = Spec::parse(predict::MODEL).expect("a model's name");
    let options = args.selection.options();
    let mut prepared = Prepared::new(&view, true)?;
    let bar = progress();
    let done = |n: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(n as u64);
    };
    let thresholds = args.thresholds(&view);
    let found = suggest(&mut prepared, &model, &options, args.candidates, &thresholds, &done)?;
    bar.finish_and_clear();
    if !found.before.is_complete() {
        say!("lockstep: {}; nothing can be suggested for it", found.before.status());
        return Ok(ExitCode::from(exit::DEADLOCK));
    }
    let mut source = Source::new(&trace);
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&as_json(&found, &mut source))?),
        false => as_table(&found, &mut source),
    };
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    print(&text, WithColours::Yes)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// The thresholds to try: those that were typed, or shares of a warp.
    fn thresholds(&self, view: &View) -> Vec<usize> {
        let lanes = self.selection.warp_size.unwrap_or(heuristics::MAX_LANES).min(replay::LaneSource::lanes(view));
        let mut all: Vec<usize> = match &self.threshold {
            Some(typed) => typed.iter().map(|lanes| usize::from(*lanes)).collect(),
            None => predict::thresholds(lanes),
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

fn threshold(tried: &Tried) -> Option<usize> {
    tried.trials.first().and_then(|trial| trial.prediction.threshold)
}

fn efficiency(outcome: &Outcome) -> String {
    outcome.simt_efficiency().map_or_else(String::new, percent)
}

fn as_table(found: &Suggestions, source: &mut Source) -> String {
    let before = found.before.counts.fetches();
    let header =
        ["collect lanes at", "in", "address", "pattern", "wait for", "fetches", "SIMT efficiency", "barriers", "gain"];
    let mut rows = vec![header.map(str::to_owned)];
    let row = |names: [String; 5], outcome: &Outcome| {
        let fetches = outcome.counts.fetches();
        let gain = format!("{:.2}x", before as f64 / issued(outcome).max(1) as f64);
        let barriers = outcome.tally.barrier_operations.map_or_else(String::new, grouped);
        let [at, function, address, pattern, lanes] = names;
        [at, function, address, pattern, lanes, grouped(fetches), efficiency(outcome), barriers, gain]
    };
    let pays = |tried: &&Tried| tried.issued().is_some_and(|issued| issued < before);
    for tried in found.tried.iter().filter(pays) {
        let (at, function) = place(tried.candidate.at, source);
        let lanes = threshold(tried).map_or_else(|| "all".to_owned(), |lanes| lanes.to_string());
        let names = [at, function, tried.candidate.at.to_string(), tried.candidate.pattern.name().to_owned(), lanes];
        rows.push(row(names, &tried.trials[0].outcome));
    }
    let best = found.tried.iter().find(pays);
    rows.push(row(["(nowhere)", "", "", "", ""].map(str::to_owned), &found.before));
    let mut text = aligned(&rows, |column| if column < 5 { Align::Left } else { Align::Right });
    let gained = rows.len() - 2;
    text += &format!(
        "{} of {} candidates were tried; {gained} would pay. barriers: instructions that their barriers take; gain: fetches \
         without collecting / fetches and barriers with it, under {}\n",
        found.tried.len(),
        found.candidates,
        predict::MODEL,
    );
    match best {
        Some(best) => {
            let lanes = threshold(best).map_or_else(String::new, |lanes| format!(",threshold={lanes}"));
            text += &format!(
                "to see it: replay --predict {}{lanes} --by line TRACE\n",
                typed_prediction(&best.candidate, source)
            );
        }
        None => text += "collecting lanes at one place of a loop does not pay here\n",
    }
    text
}

fn as_json(found: &Suggestions, source: &mut Source) -> Value {
    let counts = |outcome: &Outcome| {
        json!({
            "fetches": outcome.counts.fetches(),
            "simt_efficiency": outcome.simt_efficiency(),
            "barrier_operations": outcome.tally.barrier_operations,
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
    json!({
        "heuristic": found.before.heuristic,
        "before": counts(&found.before),
        "candidates": found.candidates,
        "places": places,
    })
}
