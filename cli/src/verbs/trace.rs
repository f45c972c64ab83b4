//! `lockstep trace`: runs a program and records every thread's instruction stream.

use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use attribution::table::grouped;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use tracer::{ENGINES, Exit, Interrupt, Limit, Outcome, Progress, Remember, TraceOptions, Window};

use crate::exit;
use crate::output::{Output, say};
use crate::width::Wide;

/// Run a program and record every thread's instruction stream
///
/// The program's output and exit status stay as they are. Ctrl-C ends the program and leaves a valid trace.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace to write
    #[arg(long, short = 'o', value_name = "FILE", default_value = "trace.bin", value_parser = file)]
    output: PathBuf,

    /// How to record. Default: translate
    #[arg(long, value_name = "ENGINE", value_parser = PossibleValuesParser::new(ENGINES.iter().map(|e| e.name())))]
    engine: Option<String>,

    /// Record N runs, one after another
    ///
    /// With `-o trace.bin`, to trace.1.bin, trace.2.bin and so on. `replay` of all of them shows how much its figures
    /// depend on the recording. After a run that fails, no more are recorded
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "stats")]
    repeat: Option<u16>,

    /// Also record the addresses of memory operands
    #[arg(long)]
    memory: bool,

    /// Also record the processes that the program forks
    ///
    /// Else they run without being recorded
    #[arg(long)]
    follow_forks: bool,

    /// Record from each entry of this function on
    ///
    /// Up to the next entry of the function of `--stop`, or to the end. Give a symbol of the program or of any of its
    /// libraries, mangled or as in the source (`tree::insert`). When one thread enters it, all threads are recorded;
    /// what runs outside is translated, but not recorded. With the same function for both options, each of its calls
    /// is recorded, from entry to return
    #[arg(long, value_name = "SYMBOL")]
    start: Option<String>,

    /// Pause the recording at each entry of this function
    ///
    /// Without `--start`, recording is on from the beginning
    #[arg(long, value_name = "SYMBOL")]
    stop: Option<String>,

    /// Record between `LOCKSTEP_BEGIN` and `LOCKSTEP_END`
    ///
    /// Markers of lockstep.h in the program. Pairs may be nested; while one is open, all threads are recorded
    #[arg(long, conflicts_with_all = ["start", "stop"])]
    markers: bool,

    /// Stop recording after so many instructions (100M) or bytes (1GiB)
    ///
    /// After so many recorded instructions over all threads (5000, 100M, 2G), or when the trace reaches about so many
    /// bytes (500MB, 1GiB); the program runs on
    #[arg(long, value_name = "INSTRUCTIONS|BYTES")]
    limit: Option<Limit>,

    /// Let the kernel place the program at random addresses
    ///
    /// Without this, each run has the same addresses
    #[arg(long)]
    aslr: bool,

    /// Do not use or change the cache of earlier recordings
    ///
    /// It says which code of a program was translated, so that the program stops less often (in `lockstep` in
    /// `$XDG_CACHE_HOME` or `~/.cache`)
    #[arg(long)]
    no_cache: bool,

    /// Write to FILE, as JSON, what the recording cost
    ///
    /// Stops of threads by cause, what was translated, records by kind, time by activity. `-` is standard output
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,

    /// Say on standard error what was recorded
    ///
    /// This is the default if standard error is a terminal
    #[arg(long, short = 'v')]
    verbose: bool,

    #[command(flatten)]
    wide: Wide,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

#[derive(clap::Parser)]
#[command(name = "trace")]
struct Words {
    #[command(flatten)]
    args: Args,
}

/// How `trace` records with these options and the command behind them, for a program that records itself.
///
/// # Errors
/// When the options are wrong (as [`clap::Error`]).
pub fn trace_options(words: &[OsString]) -> anyhow::Result<TraceOptions> {
    let Words { args } = crate::parse(std::iter::once("trace".into()).chain(words.iter().cloned()))?;
    Ok(args.options(&args.output)?)
}

impl Args {
    fn options(&self, output: &Path) -> tracer::Result<TraceOptions> {
        let mut options = TraceOptions::new(self.command.clone(), output);
        if let Some(name) = &self.engine {
            options.engine = tracer::engine_named(name)?;
        }
        options.memory = self.memory;
        options.follow_forks = self.follow_forks;
        options.limit = self.limit;
        options.window = if self.markers { Window::Markers } else { Window::of(self.start.clone(), self.stop.clone()) };
        options.aslr = self.aslr;
        options.remember = if self.no_cache { Remember::Nowhere } else { Remember::of_user() };
        Ok(options)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.wide.apply();
    tracer::use_large_pages();
    let interrupt = Interrupt::on_signals();
    let Some(repeat) = args.repeat else { return record(args, &args.output, &interrupt) };
    let mut status = ExitCode::SUCCESS;
    for run in 1..=repeat {
        status = record(args, &numbered(&args.output, run), &interrupt)?;
        if status != ExitCode::SUCCESS || interrupt.is_asked() {
            break;
        }
    }
    Ok(status)
}

/// A path that is no `-`.
fn file(typed: &str) -> Result<PathBuf, String> {
    match typed {
        "-" => Err("the program's own output goes to standard output: name a file for the trace".to_owned()),
        path => Ok(PathBuf::from(path)),
    }
}

/// `trace.bin` and 3 are `trace.3.bin`.
fn numbered(path: &Path, run: u16) -> PathBuf {
    let number = run.to_string();
    let extension: OsString = match path.extension() {
        Some(extension) => [OsStr::new(&number), OsStr::new("."), extension].into_iter().collect(),
        None => number.into(),
    };
    path.with_extension(extension)
}

/// Records one run.
fn record(args: &Args, output: &Path, interrupt: &Interrupt) -> anyhow::Result<ExitCode> {
    let mut options = args.options(output)?;
    options.interrupt = interrupt.clone();
    let stats = args.stats.as_deref().map(Output::create).transpose()?;
    let bar = progress_bar();
    let shown = bar.clone();
    options.progress = Some(Arc::new(move |progress: Progress| show_progress(&shown, progress)));
    let outcome = tracer::trace(&options);
    bar.finish_and_clear();
    let outcome = outcome?;
    for warning in &outcome.warnings {
        say!("lockstep: {warning}");
    }
    if args.verbose || stderr().is_terminal() {
        tell(output, &outcome);
    }
    // A shell says so of a program that it started itself.
    if let (Exit::Signalled(signal), false) = (outcome.exit, interrupt.is_asked()) {
        say!(
            "lockstep: signal {signal}{} killed the program: the trace has what its threads ran until then",
            tracer::signal_name(signal).map_or_else(String::new, |name| format!(" ({name})"))
        );
    }
    if let Some(mut stats) = stats {
        // An error that appears only now is reported when the file is finished.
        let _ = stats.write_all(crate::shown::stats::json(options.engine.name(), &outcome).as_bytes());
        stats.finish()?;
    }
    if let Some(failure) = outcome.failure {
        let left = if matches!(failure, tracer::Error::NeverBegan { .. }) { "empty" } else { "incomplete" };
        say!("lockstep: {failure}: the program ran to its end, but its trace is {left}");
        return Ok(ExitCode::from(exit::TRACING));
    }
    Ok(ExitCode::from(match outcome.exit {
        Exit::Exited(status) => status as u8,
        Exit::Signalled(signal) => 128_u8.wrapping_add(signal as u8),
    }))
}

fn progress_bar() -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
    ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn show_progress(bar: &ProgressBar, progress: Progress) {
    let [instructions, bytes] = [progress.instructions, progress.bytes].map(grouped);
    bar.set_message(format!("{instructions} instructions of {} threads, {bytes} bytes", progress.threads));
    bar.tick();
}

fn tell(output: &Path, outcome: &Outcome) {
    let (instructions, threads) = (grouped(outcome.instructions), outcome.threads);
    let early = outcome.stopped_early.as_ref().map_or_else(String::new, |why| format!("; it stops early: {why}"));
    let [program, tracer] = [outcome.times.program, outcome.times.tracer].map(|time| time.as_secs_f64());
    say!(
        "lockstep: {}: {instructions} instructions of {threads} threads in {} bytes; {:.2} s, with {program:.2} s of \
         processor time in the program and {tracer:.2} s in lockstep{early}",
        output.display(),
        grouped(outcome.bytes),
        outcome.times.wall.as_secs_f64()
    );
}
