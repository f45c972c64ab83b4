//! Two builds of a program, as `lockstep diff` compares them: traces both, replays both, and shows what the second one
//! gained.

mod outputs;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use attribution::table::{Align, grouped, percent};
use attribution::{Source, locks};
use replay::{Outcome, Setting, Unit};
use report::PlotOptions;
use serde_json::json;
use verdict::{Balance, Machine, Subject};

use self::outputs::Printed;
use crate::exit;
use crate::output::{self, Output, WithColours, is_stdout, print, say};
use crate::typed::machine;
use crate::typed::models::{self, Models};
use crate::typed::selection::{self, OneView};
use crate::width::{self, Wide};

/// Trace two builds of a program, replay both, and show them side by side
///
/// An old word for `lockstep diff`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The first: a program, a trace, or rows that `replay --csv` wrote
    pub(super) before: PathBuf,

    /// The second, of the same kind
    pub(super) after: PathBuf,

    /// Reconvergence models
    ///
    /// A name, or name:parameter=value; for programs also several with commas, or all (see `lockstep heuristics`); they
    /// count fetches. Default: that of --machine
    #[arg(long, short = 'H', visible_alias = "model", value_name = "LIST", value_parser = Models::parse)]
    pub(super) heuristic: Vec<Models>,

    /// The machine whose model, warps and instructions count
    ///
    /// Default: nvidia
    #[arg(long, value_name = "MACHINE", value_parser = machine::parser(), conflicts_with = "heuristic")]
    pub(super) machine: Option<Machine>,

    #[command(flatten)]
    pub(super) selection: OneView,

    /// Print JSON instead of the table
    #[arg(long)]
    pub(super) json: bool,

    /// Of programs: write the rows of both to FILE, as `replay --csv` does
    ///
    /// - for standard output, instead of the table
    #[arg(long, value_name = "FILE", help_heading = OF_PROGRAMS)]
    csv: Option<PathBuf>,

    /// Draw a chart of both into FILE (svg, pdf, png)
    #[arg(long, value_name = "FILE", help_heading = OF_PROGRAMS)]
    chart: Option<PathBuf>,

    /// The chart's kind
    ///
    /// Fetches with the speed-up above them (speedup), divergent thread instructions (divergent), or another
    #[arg(long, value_name = "KIND", requires = "chart", default_value = "speedup", hide_short_help = true, help_heading = OF_PROGRAMS, value_parser = clap::builder::PossibleValuesParser::new(report::CHARTS.iter().map(|c| c.name())))]
    kind: String,

    /// Keep the traces in this folder
    ///
    /// As BEFORE.bin and AFTER.bin with the programs' file names
    #[arg(long, value_name = "FOLDER", help_heading = OF_PROGRAMS)]
    keep: Option<PathBuf>,

    #[command(flatten)]
    pub(super) wide: Wide,

    /// The arguments of both programs
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

const OF_PROGRAMS: &str = "For programs";

impl Args {
    /// An option that was given and is for programs alone.
    pub(super) fn for_programs(&self) -> Option<&'static str> {
        let given = [
            ("--csv", self.csv.is_some()),
            ("--chart", self.chart.is_some()),
            ("--keep", self.keep.is_some()),
            ("arguments behind --", !self.arguments.is_empty()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

/// A build, traced and replayed.
struct Side {
    setting: Setting,
    outcomes: Vec<Outcome>,
    printed: Vec<u8>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.wide.apply();
    output::only_one(&[("--json", args.json), ("--csv -", is_stdout(&args.csv))])?;
    let subject = &Subject::of(args.machine, models::all_of(&args.heuristic));
    let scratch = Scratch::new(args)?;
    let [before, after] = [&args.before, &args.after].map(|program| side(args, program, &scratch, subject));
    let (before, after) = (before?, after?);
    let [first, second] = [&args.before, &args.after].map(|program| outputs::file(program));
    let builds = [(&*first, &*before.printed), (&*second, &*after.printed)];
    let printed = outputs::compare(builds, &args.arguments);
    match printed {
        Printed::Same { but: 0 } => {}
        Printed::Same { but } => {
            say!("lockstep: the two builds print the same, but for {but} lines that change from run to run")
        }
        Printed::Unknown => say!(
            "lockstep: what the two builds print changes from run to run: whether they compute the same is not known"
        ),
        Printed::Different => {
            say!("lockstep: the two builds print different output, so they do not compute the same");
        }
    }
    write_rows(args, &before, &after)?;
    draw(args, &before, &after, &scratch)?;
    show(args, subject, &before, &after)?;
    if printed == Printed::Different {
        return Ok(ExitCode::from(exit::OUTPUTS));
    }
    let complete = |side: &Side| side.outcomes.iter().any(|o| o.deadlock().is_none());
    Ok(if complete(&before) && complete(&after) { ExitCode::SUCCESS } else { ExitCode::from(exit::DEADLOCK) })
}

/// Where the traces are put.
struct Scratch {
    folder: PathBuf,
    keep: bool,
}

impl Scratch {
    fn new(args: &Args) -> replay::Result<Scratch> {
        let own = || std::env::temp_dir().join(format!("lockstep-compare-{}", std::process::id()));
        let folder = args.keep.clone().unwrap_or_else(own);
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|source| replay::Error::Write { path: folder.clone(), source })?;
        Ok(Scratch { folder, keep: args.keep.is_some() })
    }

    /// Where the trace of a build goes. Builds of one name in two folders must not overwrite each other.
    fn trace_of(&self, program: &Path, args: &Args) -> PathBuf {
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let alike = name(&args.before) == name(&args.after);
        let suffix = match (alike, program == args.before) {
            (false, _) => "",
            (true, true) => ".before",
            (true, false) => ".after",
        };
        self.folder.join(format!("{}{suffix}.bin", name(program)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep {
            // Files left in the temporary folder are the worst result of a failure.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Traces and replays a build.
fn side(args: &Args, program: &Path, scratch: &Scratch, subject: &Subject) -> anyhow::Result<Side> {
    let path = scratch.trace_of(program, args);
    let printed = trace(args, program, &path)?;
    let trace = selection::open(&path)?;
    let view = args.selection.view(&trace)?;
    say!("{}: {}", program.display(), view.summary());
    let options = subject.options(args.selection.options(), &view);
    let mut outcomes = replay::replay(&view, &subject.models, &options, None, &|_, _| {})?;
    locks::locate(&mut outcomes, &view, &mut Source::new(&trace));
    let balance = outcomes.first().and_then(|outcome| Balance::of(&trace, &view, outcome));
    if let Some(doubt) = balance.as_ref().and_then(Balance::doubt) {
        say!("lockstep: {}: {doubt}", program.display());
    }
    let setting = args.selection.setting(&path, &trace, &view);
    Ok(Side { setting, outcomes, printed })
}

/// Records a run; returns what the program printed. The recording is a process of its own, so that its output can be
/// captured.
fn trace(args: &Args, program: &Path, to: &Path) -> anyhow::Result<Vec<u8>> {
    let program = outputs::file(program);
    let own = std::env::current_exe().map_err(|source| tracer::Error::Start { path: "lockstep".into(), source })?;
    let mut command = Command::new(&own);
    command
        .arg("trace")
        .args(args.wide.is_given().then_some("--wide"))
        .arg("-o")
        .arg(to)
        .arg("--")
        .arg(&program)
        .args(&args.arguments);
    let ran = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).output();
    let output = ran.map_err(|source| tracer::Error::Start { path: own, source })?;
    if !output.status.success() {
        let text = format!("{}: the traced run failed: {}", program.display(), output.status);
        return Err(replay::Error::Request(text).into());
    }
    Ok(output.stdout)
}

/// The rows of both: those of the first, then those of the second.
fn write_rows(args: &Args, before: &Side, after: &Side) -> anyhow::Result<()> {
    let Some(path) = &args.csv else { return Ok(()) };
    let mut out = Output::create(path)?;
    let name = out.path();
    out.write_all(&rows(before, after, &name)?).map_err(|source| replay::Error::Write { path: name, source })?;
    Ok(out.finish()?)
}

fn rows(before: &Side, after: &Side, name: &Path) -> replay::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    replay::write_csv(&before.setting, &before.outcomes, &mut bytes, name)?;
    let mut second = Vec::new();
    replay::write_csv(&after.setting, &after.outcomes, &mut second, name)?;
    let header = second.iter().position(|&b| b == b'\n').map_or(0, |end| end + 1);
    bytes.extend_from_slice(&second[header..]);
    Ok(bytes)
}

fn draw(args: &Args, before: &Side, after: &Side, scratch: &Scratch) -> anyhow::Result<()> {
    let Some(path) = &args.chart else { return Ok(()) };
    // Charts are drawn from rows in a file, so that each can be drawn again.
    let file = scratch.folder.join(format!("rows-{}.csv", std::process::id()));
    let write_error = |source| replay::Error::Write { path: file.clone(), source };
    std::fs::write(&file, rows(before, after, &file)?).map_err(write_error)?;
    let rows = report::read_rows(&file)?;
    std::fs::remove_file(&file).map_err(write_error)?;
    Ok(report::plot(&rows, Some(&args.kind), &PlotOptions::default(), path)?)
}

fn show(args: &Args, subject: &Subject, before: &Side, after: &Side) -> anyhow::Result<()> {
    if args.json {
        let text = format!("{}\n", serde_json::to_string_pretty(&to_json(subject, before, after))?);
        print(&text, WithColours::No)?;
    } else if !is_stdout(&args.csv) {
        output::show(&table(subject, before, after), WithColours::No)?;
    }
    Ok(())
}

/// The heuristics that finished on both sides.
fn pairs<'a>(before: &'a Side, after: &'a Side) -> impl Iterator<Item = (&'a Outcome, &'a Outcome)> {
    let both = before.outcomes.iter().zip(&after.outcomes);
    both.filter(|(old, new)| old.is_complete() && new.is_complete())
}

fn table(subject: &Subject, before: &Side, after: &Side) -> String {
    let unit = subject.unit();
    let header = ["heuristic", unit.name(), "after", "speed-up", "divergent", "after", "efficiency", "after"];
    let mut rows = vec![header.map(str::to_owned)];
    let ratio = |old: u64, new: u64| if new == 0 { String::new() } else { format!("{:.3}", old as f64 / new as f64) };
    for (old, new) in pairs(before, after) {
        let (a, b) = (old.fetched(unit), new.fetched(unit));
        let efficiency = |o: &Outcome| subject.efficiency(o).map_or_else(String::new, percent);
        let divergent = |o: &Outcome| grouped(o.counts.divergent_instructions);
        let cells = [grouped(a), grouped(b), ratio(a, b), divergent(old), divergent(new)];
        let [a, b, speedup, d, e] = cells;
        let name = if old.deadlock.is_some() { old.label() } else { new.label() };
        rows.push([name, a, b, speedup, d, e, efficiency(old), efficiency(new)]);
    }
    let bound = |name: &str, of: fn(&Outcome) -> u64| {
        let (a, b) = (before.outcomes.first().map_or(0, of), after.outcomes.first().map_or(0, of));
        let none = String::new;
        [name.to_owned(), grouped(a), grouped(b), ratio(a, b), none(), none(), none(), none()]
    };
    if unit == Unit::Processor {
        rows.push(bound("(least possible)", |o| o.lower_bound));
        rows.push(bound("(nothing shared)", |o| o.upper_bound));
    }
    let mut text = width::of_results().table(&rows, |column| if column == 0 { Align::Left } else { Align::Right });
    for side in [before, after] {
        for outcome in side.outcomes.iter().filter(|o| !o.is_complete()) {
            text += &format!("{}: {}\n", side.setting.trace, outcome.status());
        }
        for deadlock in side.outcomes.iter().filter_map(|o| o.deadlock.as_ref()) {
            text += &format!("* {}: {deadlock}; the numbers are those with --locks simt\n", side.setting.trace);
        }
    }
    text + &legend(unit, before, after)
}

fn legend(unit: Unit, before: &Side, after: &Side) -> String {
    let instructions = |side: &Side| side.outcomes.first().map_or(0, |o| o.upper_bound);
    let (a, b) = (instructions(before), instructions(after));
    let change = if a == 0 { 0.0 } else { 100.0 * (b as f64 - a as f64) / a as f64 };
    let warps = |side: &Side| side.outcomes.first().map_or((0, 0), |o| (o.warps, o.warp_size));
    let (count, size) = warps(before);
    let unit = unit.name();
    format!(
        "thread instructions: {} before, {} after ({change:+.2}%)\n\
         {unit}: warp instructions of {count} warp{} of {size} lanes; divergent: thread instructions in fetches with fewer active lanes than live ones\n\
         speed-up: {unit} before / after; efficiency: thread instructions / ({unit} x {size})\n",
        grouped(a),
        grouped(b),
        if count == 1 { "" } else { "s" },
    )
}

fn to_json(subject: &Subject, before: &Side, after: &Side) -> serde_json::Value {
    let unit = subject.unit();
    let numbers = |o: &Outcome| {
        json!({
            "fetches": o.counts.fetches(),
            "issued": o.fetched(unit),
            "thread_instructions": o.counts.thread_instructions(),
            "divergent_instructions": o.counts.divergent_instructions,
            "simt_efficiency": subject.efficiency(o),
            "lower_bound": o.lower_bound,
        })
    };
    let results = pairs(before, after).map(|(old, new)| {
        let speedup = old.fetched(unit) as f64 / new.fetched(unit).max(1) as f64;
        json!({ "heuristic": old.heuristic, "before": numbers(old), "after": numbers(new), "speedup": speedup })
    });
    json!({
        "before": before.setting.command,
        "after": after.setting.command,
        "instructions": unit.name(),
        "same_output": before.printed == after.printed,
        "results": results.collect::<Vec<_>>(),
    })
}
