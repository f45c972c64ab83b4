//! `lockstep check`: whether a trace and its replay are right; with a minimum, whether the efficiency is good enough,
//! and where it is lost.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::process::ExitCode;

use attribution::lost::{self, Row, main_causes};
use attribution::table::{Align, grouped, percent};
use attribution::{Source, locks};
use heuristics::Spec;
use replay::metrics::{Causes, Checker};
use replay::view::{CutInto, View};
use replay::{Outcome, Prepared, ReplayOptions};
use trace_format::Trace;
use verdict::{Balance, Machine, Range, Subject};

use crate::exit;
use crate::output::{WithColours, say, show};
use crate::shown::table;
use crate::typed::machine;
use crate::typed::selection::{self, OneView};
use crate::verbs::dump;
use crate::width::{self, Wide};

/// Whether a trace and its replay are right, or its SIMT efficiency is good enough
///
/// Without a minimum: decodes the trace's code with a second decoder, and replays it under a checker that is
/// independent of the engine. With --min-efficiency: fails when the efficiency is below it, and lists the lines that
/// are.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    /// The reconvergence model
    ///
    /// A name, or name:parameter=value (see `lockstep heuristics`). Default: that of --machine nvidia
    #[arg(long, short = 'H', visible_alias = "model", value_name = "HEURISTIC", value_parser = Spec::parse)]
    heuristic: Option<Spec>,

    /// The machine whose efficiency is compared
    ///
    /// By the nearest model, with the machine's warp size; lanes that are predicated off count as active. Default:
    /// nvidia
    #[arg(long, value_name = "MACHINE", value_parser = machine::parser(), conflicts_with = "heuristic")]
    machine: Option<Machine>,

    /// The minimum SIMT efficiency, 0 to 1
    ///
    /// Thread instructions / (fetches x warp size)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_efficiency: Option<f64>,

    #[command(flatten)]
    selection: OneView,

    /// The most lines to list
    #[arg(long, value_name = "N", default_value_t = 20, requires = "min_efficiency")]
    top: usize,

    #[command(flatten)]
    wide: Wide,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("it is not between 0 and 1".to_owned()) }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.wide.apply();
    let trace = selection::open(&args.trace)?;
    let view = args.selection.view(&trace)?;
    say!("{}", view.summary());
    let Some(least) = args.min_efficiency else { return is_right(args, &trace, &view) };
    if let Some(doubt) = view.summary().cut.as_ref().and_then(CutInto::withheld) {
        anyhow::bail!("nothing is checked: {doubt}");
    }
    let subject = Subject::of(args.machine, args.heuristic.iter().cloned().collect());
    let options = ReplayOptions { measures: vec![Causes::measure()], ..args.selection.options() };
    let options = subject.options(options, &view);
    let prepared = Prepared::new(&view, true)?;
    let mut outcomes = prepared.replay(&subject.models, &options, None, &|_, _| {})?;
    locks::locate(&mut outcomes, &view, &mut Source::new(&trace));
    let Some(outcome) = outcomes.first() else { return Ok(ExitCode::SUCCESS) };
    let range = subject.range(&prepared, &view, &mut Source::new(&trace), outcomes.first(), &options)?;
    if outcome.deadlock().is_some() && range.is_none() {
        show(&table::of(&outcomes), WithColours::No)?;
        return Ok(ExitCode::from(exit::DEADLOCK));
    }
    if let Some(balance) = Balance::of(&trace, &view, outcome)
        && let Some(doubt) = balance.doubt()
    {
        anyhow::ensure!(!balance.is_chance(false), "nothing is checked: {doubt}");
        say!("lockstep: {doubt}");
    }
    let of_machine = range.as_ref().map(Range::efficiency);
    let efficiency = of_machine.or_else(|| outcome.simt_efficiency()).unwrap_or(1.0);
    let passes = efficiency >= least;
    let verdict = format!(
        "{}: SIMT efficiency {} of {} warp instructions, {} the least of {}\n",
        outcome.label(),
        exact_percent(efficiency),
        grouped(outcome.counts.fetches()),
        if passes { "not below" } else { "below" },
        exact_percent(least),
    );
    let mut source = Source::new(&trace);
    let rows = lines_below(outcome, least, &mut source);
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    let of_machine = range.as_ref().map_or_else(String::new, Range::line);
    show(&(verdict + &of_machine + &list(&rows, outcome, args.top)), WithColours::No)?;
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::from(exit::BELOW) })
}

/// Whether two decoders say the same of the trace's code, and each step of its replay is one that the model may make.
fn is_right(args: &Args, trace: &Trace, view: &View) -> anyhow::Result<ExitCode> {
    let report = decoding::check(trace);
    let mut text = Vec::new();
    dump::verified(&report, &mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if !report.differences.is_empty() {
        show(&text, WithColours::No)?;
        return Ok(ExitCode::from(exit::DIFFERS));
    }
    let subject = Subject::of(args.machine, args.heuristic.iter().cloned().collect());
    let options = ReplayOptions { measures: vec![Checker::measure()], ..args.selection.options() };
    let outcomes = replay::replay(view, &subject.models, &subject.options(options, view), None, &|_, _| {})?;
    for outcome in &outcomes {
        let of = if outcome.is_complete() { "replayed to its end" } else { "replayed up to its deadlock" };
        let fetches = grouped(outcome.counts.fetches());
        text += &format!("{}: {of}, each of {fetches} fetches checked\n", outcome.label());
    }
    show(&text, WithColours::No)?;
    Ok(ExitCode::SUCCESS)
}

/// The lines whose own efficiency is below the minimum, those that lose the most lane-slots first.
fn lines_below(outcome: &Outcome, least: f64, source: &mut Source) -> Vec<Row> {
    let Some(causes) = outcome.found::<Causes>() else { return Vec::new() };
    let mut rows = lost::rows(lost::By::Line, causes, source);
    rows.retain(|row| row.efficiency(outcome.warp_size).is_some_and(|e| e < least));
    rows.sort_by_cached_key(|row| (Reverse(row.lost), row.subject.to_string()));
    rows
}

fn list(rows: &[Row], outcome: &Outcome, top: usize) -> String {
    let Some(size) = (!rows.is_empty()).then_some(outcome.warp_size) else { return String::new() };
    let mut text = vec![["SIMT efficiency", "fetches", "lost", "line below", "lost to", ""].map(str::to_owned)];
    for row in rows.iter().take(top) {
        let efficiency = row.efficiency(size).map_or_else(String::new, percent);
        let (fetches, lost) = (grouped(row.issued.fetches), grouped(row.lost));
        text.push([efficiency, fetches, lost, row.subject.short(), main_causes(&row.lost_by), row.subject.beside()]);
    }
    let more = match rows.len().saturating_sub(top) {
        0 => String::new(),
        more => format!("({more} more lines; --top N shows N)\n"),
    };
    width::of_results().table(&text, |column| if column < 3 { Align::Right } else { Align::Left }) + &more
}

/// A share, with enough digits to tell it from the one that it is compared with.
fn exact_percent(share: f64) -> String {
    format!("{:.3}%", 100.0 * share)
}
