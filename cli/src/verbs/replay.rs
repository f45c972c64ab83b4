//! `lockstep replay`: re-runs the streams of a trace in lockstep.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use heuristics::Spec;
use indicatif::{ProgressBar, ProgressStyle};
use replay::view::View;
use replay::{Outcome, ReplayOptions, ScheduleFile, Setting};
use trace_format::Trace;

use crate::breakdown::{By, Row};
use crate::output::Output;
use crate::selection::Selection;
use crate::source::Source;
use crate::{breakdown, exit, selection, table};

/// Re-run the threads of a trace in lockstep under one or more reconvergence heuristics
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace: what `trace` wrote, or a text trace, gzipped or not
    trace: PathBuf,

    /// Reconvergence heuristics: a name, or name:parameter=value, several with commas, or all (see `lockstep heuristics`)
    #[arg(long, short = 'H', value_name = "LIST", default_value = "minsp-pc", value_parser = heuristics_list)]
    heuristic: Vec<SpecList>,

    #[command(flatten)]
    selection: Selection,

    /// Show what the lost lane-slots are lost to and where: the first rows by this, per heuristic
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,

    /// Rows that --by shows. Default: 20 in a table, all in JSON
    #[arg(long, value_name = "N", requires = "by")]
    top: Option<usize>,

    /// Print JSON instead of the table
    #[arg(long)]
    json: bool,

    /// Write rows to FILE (- for standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write every fetch (pc, active mask) to FILE (- for standard output, instead of the table)
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,

    /// Put the schedule's FNV-1a hash into JSON and CSV
    #[arg(long)]
    schedule_hash: bool,

    /// Classify memory accesses (uniform, affine, scattered); the trace must have addresses
    #[arg(long)]
    memory: bool,

    /// Judge every step by a checker that is independent of the engine
    #[arg(long)]
    check: bool,

    /// Worker threads. Default: one per core; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
}

/// What one `--heuristic` says.
#[derive(Clone)]
pub(crate) struct SpecList(Vec<Spec>);

impl SpecList {
    pub(crate) fn specs(&self) -> &[Spec] {
        &self.0
    }
}

pub(crate) fn heuristics_list(text: &str) -> Result<SpecList, heuristics::ParseError> {
    Spec::parse_list(text).map(SpecList)
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.workers {
        Some(workers) => {
            rayon::ThreadPoolBuilder::new().num_threads(usize::from(workers)).build()?.install(|| run_here(args))
        }
        None => run_here(args),
    }
}

fn run_here(args: &Args) -> anyhow::Result<ExitCode> {
    let specs = specs(args);
    let trace = selection::open(&args.trace)?;
    if args.memory && !trace.meta().memory {
        let text = format!(
            "{}: the trace has no memory addresses: record it with trace --memory, or leave --memory out",
            args.trace.display()
        );
        return Err(replay::Error::Request(text).into());
    }
    let view = args.selection.view(&trace)?;
    let taken = view.summary().to_string();
    if !args.json {
        eprintln!("{taken}");
    }
    let outcomes = replay_view(args, &view, &specs)?;
    let setting = setting(args, &trace, &view);
    let breakdowns = breakdowns(args, &trace, &outcomes);
    show(args, &setting, &outcomes, &breakdowns, &taken)?;
    let none_ran = outcomes.iter().all(|o| !o.is_complete());
    Ok(if none_ran { ExitCode::from(exit::DEADLOCK) } else { ExitCode::SUCCESS })
}

/// The heuristics asked for, each once, in order.
fn specs(args: &Args) -> Vec<Spec> {
    let mut specs: Vec<Spec> = Vec::new();
    for spec in args.heuristic.iter().flat_map(|list| &list.0) {
        if !specs.iter().any(|s| s.to_string() == spec.to_string()) {
            specs.push(spec.clone());
        }
    }
    specs
}

fn replay_view(args: &Args, view: &View, specs: &[Spec]) -> anyhow::Result<Vec<Outcome>> {
    let options = ReplayOptions {
        check: args.check,
        schedule_hash: args.schedule_hash,
        memory: args.memory,
        causes: args.by.is_some(),
        ..args.selection.options()
    };
    let bar = progress();
    let done = |n: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(n as u64);
    };
    let outcomes = match &args.schedule {
        Some(path) => {
            let mut out = Output::create(path)?;
            let path = out.path();
            let file = ScheduleFile { out: &mut out, path: &path };
            let outcomes = replay::replay(view, specs, &options, Some(file), &done)?;
            out.finish()?;
            outcomes
        }
        None => replay::replay(view, specs, &options, None, &done)?,
    };
    bar.finish_and_clear();
    Ok(outcomes)
}

fn progress() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} replays, {elapsed}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn setting(args: &Args, trace: &Trace, view: &View) -> Setting {
    let name = args.trace.file_name().unwrap_or(args.trace.as_os_str());
    Setting {
        trace: name.to_string_lossy().into_owned(),
        command: trace.meta().command.join(" "),
        region: view.summary().region.clone(),
        code: args.selection.code.to_string(),
        locks: args.selection.locks.to_string(),
        group: args.selection.group.to_string(),
        threads: trace.threads().len(),
    }
}

/// The rows that `--by` asks for, per heuristic; none for one that deadlocks. Says why source lines are missing.
fn breakdowns(args: &Args, trace: &Trace, outcomes: &[Outcome]) -> Vec<Option<Vec<Row>>> {
    let mut source = Source::new(trace);
    let causes = outcomes.iter().map(|o| o.causes.as_ref().filter(|_| o.is_complete()));
    let rows = causes.map(|causes| Some(breakdown::rows(args.by?, causes?, &mut source))).collect();
    source.notes().iter().for_each(|note| eprintln!("lockstep: {note}"));
    rows
}

fn show(
    args: &Args,
    setting: &Setting,
    outcomes: &[Outcome],
    breakdowns: &[Option<Vec<Row>>],
    taken: &str,
) -> anyhow::Result<()> {
    let is_stdout = |path: &Option<PathBuf>| path.as_ref().is_some_and(|p| p.as_os_str() == "-");
    if let Some(path) = &args.csv {
        let mut out = Output::create(path)?;
        let path = out.path();
        replay::write_csv(setting, outcomes, &mut out, &path)?;
        out.finish()?;
    }
    let text = if args.json {
        let mut all = replay::to_json(setting, outcomes, taken);
        for (i, (outcome, rows)) in outcomes.iter().zip(breakdowns).enumerate() {
            if let (Some(by), Some(rows)) = (args.by, rows) {
                all["results"][i]["by"] =
                    breakdown::to_json(by, rows, outcome.lost_slots(), outcome.warp_size, args.top);
            }
        }
        format!("{}\n", serde_json::to_string_pretty(&all)?)
    } else if is_stdout(&args.csv) || is_stdout(&args.schedule) {
        return Ok(());
    } else {
        let mut text = format!("{}{}\n", table::of(outcomes), table::legend(outcomes));
        for (outcome, rows) in outcomes.iter().zip(breakdowns) {
            if let (Some(by), Some(rows)) = (args.by, rows) {
                let (lost, size) = (outcome.lost_slots(), outcome.warp_size);
                text += &format!("\n{}: {}\n", outcome.heuristic, breakdown::legend(by, lost));
                text += &breakdown::table(by, rows, lost, size, args.top);
            }
        }
        text
    };
    stdout().write_all(text.as_bytes())?;
    Ok(stdout().flush()?)
}
