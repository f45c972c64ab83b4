//! `lockstep replay`: re-runs the streams of a trace in lockstep.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heuristics::Spec;
use indicatif::{ProgressBar, ProgressStyle};
use replay::metrics::{Causes, Contention, Traffic};
use replay::view::{Locks, Share, View};
use replay::{Outcome, ReplayOptions, ScheduleFile, Setting};
use trace_format::Trace;

use crate::breakdown::{By, Row};
use crate::disassembly::{self, SyntaxName};
use crate::measures::Measures;
use crate::memory::MemoryBy;
use crate::output::{Output, WithColours, print, say};
use crate::selection::Selection;
use crate::source::Source;
use crate::verbs::dump;
use crate::{annotate, breakdown, exit, json, locks, memory, regions, selection, spin, table};

/// Re-run the threads of a trace in lockstep under one or more reconvergence heuristics
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("rows").multiple(true)))]
pub(crate) struct Args {
    /// The trace: what `trace` wrote, or a text trace, gzipped or not
    trace: PathBuf,

    /// Reconvergence heuristics: a name, or name:parameter=value, several with commas, or all (see `lockstep heuristics`)
    #[arg(long, short = 'H', value_name = "LIST", default_value = "minsp-pc", value_parser = heuristics_list)]
    heuristic: Vec<SpecList>,

    #[command(flatten)]
    selection: Selection,

    /// Show what the lost lane-slots are lost to and where, or what each lock costs: the first rows by this, per heuristic
    #[arg(long, value_name = "WHAT", group = "rows")]
    by: Option<By>,

    /// Show memory accesses and their transactions (as --memory): the first rows by this, per heuristic
    #[arg(long, value_name = "WHAT", group = "rows")]
    memory_by: Option<MemoryBy>,

    /// Show this source file with what each of its lines costs, per heuristic
    #[arg(long, value_name = "FILE", conflicts_with_all = ["by", "json"])]
    annotate: Option<PathBuf>,

    /// With --annotate, show below each line its instructions, written as objdump does in this syntax
    #[arg(long, value_name = "SYNTAX", value_enum, requires = "annotate")]
    syntax: Option<SyntaxName>,

    /// Rows that --by and --memory-by show. Default: 20 in a table, all in JSON
    #[arg(long, value_name = "N", requires = "rows")]
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

    #[command(flatten)]
    measures: Measures,

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
            let pool = rayon::ThreadPoolBuilder::new().num_threads(usize::from(workers)).build();
            let refused = |e| replay::Error::Request(format!("cannot start {workers} workers: {e}: ask for fewer"));
            pool.map_err(refused)?.install(|| run_here(args))
        }
        None => run_here(args),
    }
}

/// What came of one way in which locks count.
struct Replayed {
    /// What the view took of the trace.
    taken: String,
    /// What there was to take.
    shares: Vec<Share>,
    setting: Setting,
    outcomes: Vec<Outcome>,
    /// By outcome.
    rows: Vec<Rows>,
}

/// The rows that were asked for of one outcome; none of one that deadlocks.
#[derive(Default)]
struct Rows {
    lost: Option<Vec<Row>>,
    locks: Option<Vec<locks::Row>>,
    memory: Option<Vec<memory::Row>>,
    /// By file and line, where they are wanted.
    instructions: annotate::Instructions,
}

fn run_here(args: &Args) -> anyhow::Result<ExitCode> {
    let specs = specs(args);
    let trace = selection::open(&args.trace)?;
    refuse_what_is_not_there(args, &trace)?;
    if args.measures.has("check") && !dump::decoders_agree(&trace)? {
        return Ok(ExitCode::from(exit::DIFFERS));
    }
    let mut source = Source::new(&trace);
    let mut all = Vec::new();
    for rule in args.selection.locks.rules() {
        let view = args.selection.view_with(&trace, *rule)?;
        let taken = view.summary().to_string();
        if !args.json {
            say!("{taken}");
            spin::advice(&trace, view.summary()).into_iter().for_each(|advice| say!("{advice}"));
        }
        let mut outcomes = replay_view(args, &view, *rule, &specs)?;
        locks::locate(&mut outcomes, &view, &mut source);
        outcomes.iter_mut().for_each(|o| o.locks = Some(rule.to_string()));
        let rows = outcomes.iter().map(|o| rows(args, o, &trace, &view, &mut source)).collect();
        let shares = view.summary().shares.clone();
        all.push(Replayed { taken, shares, setting: setting(args, &trace, &view), outcomes, rows });
    }
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    show(args, &all)?;
    let none_ran = all.iter().flat_map(|r| &r.outcomes).all(|o| o.deadlock().is_some());
    Ok(if none_ran { ExitCode::from(exit::DEADLOCK) } else { ExitCode::SUCCESS })
}

fn refuse_what_is_not_there(args: &Args, trace: &Trace) -> replay::Result<()> {
    if measures(args).need_addresses() && !trace.meta().memory {
        return Err(replay::Error::Request(format!(
            "{}: the trace has no memory addresses: record it with trace --memory, or leave --memory and --memory-by out",
            args.trace.display()
        )));
    }
    if args.by == Some(By::Lock) && !args.selection.locks.are_taken() {
        let text =
            "where locks don't count there is nothing to show by lock: use --locks serialize or simt with --by lock";
        return Err(replay::Error::Request(text.to_owned()));
    }
    if args.schedule.is_some() && args.selection.locks.rules().len() > 1 {
        let text = "a schedule is of one way in which locks count: name one with --locks, or leave --schedule out";
        return Err(replay::Error::Request(text.to_owned()));
    }
    Ok(())
}

/// The measures asked for by options of their own, and by `--memory-by`.
fn measures(args: &Args) -> Measures {
    let mut measures = args.measures.clone();
    if args.memory_by.is_some() {
        measures.imply("memory");
    }
    measures
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

fn replay_view(args: &Args, view: &View, rule: Locks, specs: &[Spec]) -> anyhow::Result<Vec<Outcome>> {
    let mut measures = measures(args).measures();
    measures.extend(by(args).is_some_and(By::is_of_lost).then(Causes::measure));
    measures.extend((args.by == Some(By::Lock)).then(Contention::measure));
    let options = ReplayOptions { measures, ..args.selection.options_with(rule) };
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

/// What lost lane-slots are summed by.
fn by(args: &Args) -> Option<By> {
    args.by.or(args.annotate.is_some().then_some(By::Line))
}

/// The rows that `--by`, `--annotate` and `--memory-by` ask for.
fn rows(args: &Args, outcome: &Outcome, trace: &Trace, view: &View, source: &mut Source) -> Rows {
    if !outcome.is_complete() {
        return Rows::default();
    }
    let lost = by(args).zip(outcome.found::<Causes>());
    let memory = args.memory_by.zip(outcome.found::<Traffic>());
    let locks = outcome.found::<Contention>().filter(|c| !c.locks.is_empty());
    let mut instructions = annotate::Instructions::new();
    if let Some((syntax, causes)) = args.syntax.zip(outcome.found::<Causes>()) {
        for fetched in disassembly::fetched(trace, causes, syntax) {
            if let Some(line) = source.line(fetched.pc) {
                instructions.entry((line.file, line.line)).or_default().push(fetched);
            }
        }
    }
    Rows {
        instructions,
        lost: lost.map(|(by, causes)| breakdown::rows(by, causes, source)),
        locks: locks.map(|contention| locks::rows(contention, view, source)),
        memory: memory.map(|(by, traffic)| memory::rows(by, traffic, source)),
    }
}

fn show(args: &Args, all: &[Replayed]) -> anyhow::Result<()> {
    let is_stdout = |path: &Option<PathBuf>| path.as_ref().is_some_and(|p| p.as_os_str() == "-");
    if let Some(path) = &args.csv {
        write_csv(path, all)?;
    }
    let text = if args.json {
        format!("{}\n", serde_json::to_string_pretty(&to_json(args, all))?)
    } else if is_stdout(&args.csv) || is_stdout(&args.schedule) {
        return Ok(());
    } else {
        tables(args, all)?
    };
    Ok(print(&text, WithColours::Yes)?)
}

fn write_csv(path: &Path, all: &[Replayed]) -> replay::Result<()> {
    let outcomes: Vec<Outcome> = all.iter().flat_map(|r| r.outcomes.iter().cloned()).collect();
    let mut out = Output::create(path)?;
    let path = out.path();
    replay::write_csv(&all[0].setting, &outcomes, &mut out, &path)?;
    out.finish()
}

fn to_json(args: &Args, all: &[Replayed]) -> serde_json::Value {
    let mut results = Vec::new();
    for replayed in all {
        let mut of_rule = json::of(&replayed.setting, &replayed.outcomes, &replayed.taken);
        for (i, (outcome, rows)) in replayed.outcomes.iter().zip(&replayed.rows).enumerate() {
            let result = &mut of_rule["results"][i];
            if let (Some(by), Some(rows)) = (args.by, &rows.lost) {
                result["by"] = breakdown::to_json(by, rows, outcome.lost_slots(), outcome.warp_size, args.top);
            }
            if let Some(rows) = &rows.locks {
                result["by"] = locks::to_json(rows, args.top);
            }
            if let (Some(by), Some(rows)) = (args.memory_by, &rows.memory) {
                result["memory_by"] = memory::to_json(by, rows, args.top);
            }
            if all.len() > 1 {
                result["view"] = replayed.taken.as_str().into();
            }
            results.push(result.take());
        }
    }
    let mut whole = json::of(&all[0].setting, &[], &all[0].taken);
    if args.by == Some(By::Region) {
        whole["regions"] = regions::to_json(&all[0].shares, args.top);
    }
    whole["results"] = results.into();
    whole
}

fn tables(args: &Args, all: &[Replayed]) -> replay::Result<String> {
    let mut text = String::new();
    for (replayed, rule) in all.iter().zip(args.selection.locks.rules()) {
        let outcomes = &replayed.outcomes;
        if all.len() > 1 {
            let between = if text.is_empty() { "" } else { "\n" };
            text += &format!("{between}locks: {rule}\n");
        }
        text += &format!("{}{}\n", table::of(outcomes), table::legend(outcomes));
        text += &table::measured(outcomes);
        if args.by == Some(By::Region) {
            text += &format!("\n{}", regions::table(&replayed.shares, args.top));
        }
        for (outcome, rows) in outcomes.iter().zip(&replayed.rows) {
            if let (Some(by), Some(rows)) = (args.by, &rows.lost) {
                let (lost, size) = (outcome.lost_slots(), outcome.warp_size);
                text += &format!("\n{}: {}\n", outcome.heuristic, breakdown::legend(by, lost));
                text += &breakdown::table(by, rows, lost, size, args.top);
            }
            if let (Some(file), Some(rows_of)) = (&args.annotate, &rows.lost) {
                let listing = annotate::listing(file, rows_of, &rows.instructions, outcome.warp_size)?;
                text += &format!("\n{}:\n{listing}", outcome.heuristic);
            }
            if let Some(rows) = &rows.locks {
                text += &format!("\n{}: {}\n{}", outcome.heuristic, locks::LEGEND, locks::table(rows, args.top));
            }
            if let (Some(by), Some(rows)) = (args.memory_by, &rows.memory) {
                text += &format!("\n{}: memory accesses\n{}", outcome.heuristic, memory::table(by, rows, args.top));
            }
        }
    }
    Ok(text)
}
