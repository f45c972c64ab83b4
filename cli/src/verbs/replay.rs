//! `lockstep replay`: re-runs the streams of a trace in lockstep.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use heuristics::Spec;
use indicatif::{ProgressBar, ProgressStyle};
use replay::view::{CodeFilter, Locks, Region, View, ViewOptions};
use replay::{Grouping, Outcome, ReplayOptions, ScheduleFile, Setting};
use trace_format::Trace;

use crate::output::Output;
use crate::{exit, table};

/// Re-run the threads of a trace in lockstep under one or more reconvergence heuristics
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace: what `trace` wrote, or a text trace, gzipped or not
    trace: PathBuf,

    /// Reconvergence heuristics: a name, or name:parameter=value, several with commas, or all (see `lockstep heuristics`)
    #[arg(long, short = 'H', value_name = "LIST", default_value = "minsp-pc", value_parser = heuristics_list)]
    heuristic: Vec<SpecList>,

    /// The part of the run to replay: auto (what the threads or parallel regions run), all, or a function's name
    #[arg(long, value_name = "REGION", default_value = "auto")]
    region: Region,

    /// The code to replay: all (but the inside of the thread runtime), or main (the main executable only)
    #[arg(long, value_name = "CODE", default_value = "all")]
    code: CodeFilter,

    /// How locks count: serialize (one lane of a warp at a time), drop (critical sections leave the streams), ignore
    #[arg(long, value_name = "LOCKS", default_value = "serialize")]
    locks: Locks,

    /// Lanes in a warp. Default: all in one warp, of at most 256
    #[arg(long, short = 'W', value_name = "LANES")]
    warp_size: Option<usize>,

    /// Which lanes share a warp: consecutive, round-robin, similarity
    #[arg(long, value_name = "HOW", default_value = "consecutive")]
    group: Grouping,

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
struct SpecList(Vec<Spec>);

fn heuristics_list(text: &str) -> Result<SpecList, heuristics::ParseError> {
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
    let trace = Trace::open(&args.trace).map_err(replay::Error::from)?;
    if let Some(lost) = trace.recovered() {
        eprintln!("lockstep: {}: {lost}", args.trace.display());
    }
    if args.memory && !trace.meta().memory {
        let text = format!(
            "{}: the trace has no memory addresses: record it with trace --memory, or leave --memory out",
            args.trace.display()
        );
        return Err(replay::Error::Request(text).into());
    }
    let options = ViewOptions { region: args.region.clone(), code: args.code, locks: args.locks };
    let view = View::new(&trace, &options)?;
    let taken = view.summary().to_string();
    if !args.json {
        eprintln!("{taken}");
    }
    let outcomes = replay_view(args, &view, &specs)?;
    let setting = setting(args, &trace, &view);
    show(args, &setting, &outcomes, &taken)?;
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
        warp_size: args.warp_size,
        grouping: args.group,
        check: args.check,
        schedule_hash: args.schedule_hash,
        memory: args.memory,
        causes: false,
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
        code: args.code.to_string(),
        locks: args.locks.to_string(),
        group: args.group.to_string(),
        threads: trace.threads().len(),
    }
}

fn show(args: &Args, setting: &Setting, outcomes: &[Outcome], taken: &str) -> anyhow::Result<()> {
    let is_stdout = |path: &Option<PathBuf>| path.as_ref().is_some_and(|p| p.as_os_str() == "-");
    if let Some(path) = &args.csv {
        let mut out = Output::create(path)?;
        let path = out.path();
        replay::write_csv(setting, outcomes, &mut out, &path)?;
        out.finish()?;
    }
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&replay::to_json(setting, outcomes, taken))?)
    } else if is_stdout(&args.csv) || is_stdout(&args.schedule) {
        return Ok(());
    } else {
        format!("{}{}\n", table::of(outcomes), table::legend(outcomes))
    };
    stdout().write_all(text.as_bytes())?;
    Ok(stdout().flush()?)
}
