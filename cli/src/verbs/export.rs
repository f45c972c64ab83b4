//! `lockstep export`: results in the formats of other tools.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use heuristics::Spec;
use replay::metrics::{Causes, Measure};
use replay::view::View;
use replay::{Outcome, Prepared, ReplayOptions, Setting};
use report::accel_sim;
use report::page::{self, Request};
use report::profile::{self, Profile};
use trace_format::Trace;
use verdict::{Question, Subject};

use crate::output::{Output, counted, progress, say};
use crate::typed::selection::{self, OneView};

/// Write what a replay shows in the format of another tool: a profile, a time line, or kernels for a simulator
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    /// The format
    #[arg(long, short = 'f', value_name = "FORMAT")]
    format: Format,

    /// The file (- for standard output); for accel-sim the folder, which is made
    #[arg(long, short = 'o', value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// The reconvergence heuristic. Default: that of replay --machine nvidia
    #[arg(long, short = 'H', visible_alias = "model", value_name = "HEURISTIC", value_parser = Spec::parse)]
    heuristic: Option<Spec>,

    #[command(flatten)]
    selection: OneView,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Lost lane-slots, fetches and thread instructions by call path and line: `go tool pprof`, pprof.me (gzipped)
    Pprof,
    /// The same: speedscope.app
    Speedscope,
    /// The same: callgrind_annotate, KCachegrind
    Callgrind,
    /// Lost lane-slots by call path, line and cause, as folded stacks (inferno, speedscope, flamegraph.pl)
    Folded,
    /// The lane map as a trace of events (Perfetto, Firefox Profiler, chrome://tracing); one fetch is one microsecond
    Perfetto,
    /// Kernel launches as Accel-Sim's tracer writes them, for its simulator and others; the trace needs addresses
    AccelSim,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let subject = Subject::of(None, args.heuristic.iter().cloned().collect());
    let trace = selection::open(&args.trace)?;
    let view = args.selection.view(&trace)?;
    let setting = args.selection.setting(&args.trace, &trace, &view);
    let question = args.selection.question(&trace, subject)?;
    let profile = |render: fn(&Profile) -> Vec<u8>| -> replay::Result<Vec<u8>> {
        let outcome = outcome(&view, &question, Causes::by_call())?;
        let profile = Profile::of(&trace, &setting, &outcome);
        Ok(render(&profile.ok_or_else(|| replay::Error::Bug("a replay has no causes".into()))?))
    };
    let bytes = match args.format {
        Format::Pprof => profile(profile::pprof)?,
        Format::Speedscope => profile(|profile| profile::speedscope(profile).into_bytes())?,
        Format::Callgrind => profile(|profile| profile::callgrind(profile).into_bytes())?,
        Format::Folded => profile(|profile| profile::folded(profile).into_bytes())?,
        Format::Perfetto => time_line((&trace, &view), &question, &setting)?.into_bytes(),
        Format::AccelSim => return kernels(args, (&trace, &view), &question, &setting),
    };
    let mut out = Output::create(&args.output)?;
    let path = out.path();
    out.write_all(&bytes).map_err(|source| replay::Error::Write { path, source })?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The outcome of the question's model, with one measure.
fn outcome(view: &View, question: &Question, measure: Measure) -> replay::Result<Outcome> {
    let bar = progress();
    let options = ReplayOptions { measures: vec![measure], ..question.options(view) };
    let models = &question.subject.models[..1];
    let outcomes = Prepared::new(view, true)?.replay(models, &options, None, &counted(&bar));
    bar.finish_and_clear();
    let outcome = outcomes?.into_iter().next().ok_or_else(|| replay::Error::Bug("a replay has no outcome".into()))?;
    if !outcome.is_complete() {
        return Err(replay::Error::Request(format!("{}: choose another model with --heuristic", outcome.status())));
    }
    say_deadlock(&outcome);
    Ok(outcome)
}

fn say_deadlock(outcome: &Outcome) {
    if let Some(deadlock) = &outcome.deadlock {
        say!("lockstep: {deadlock}; what is exported is the replay with --locks simt");
    }
}

/// Writes kernels for simulators into a folder.
fn kernels(
    args: &Args,
    (trace, view): (&Trace, &View),
    question: &Question,
    setting: &Setting,
) -> anyhow::Result<ExitCode> {
    if args.output.as_os_str() == "-" {
        let text = "kernels are several files: name a folder for them with --output\n";
        return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, text).into());
    }
    let bar = progress();
    let prepared = Prepared::new(view, true)?;
    let model = &question.subject.models[0];
    let lanes = (trace, &prepared);
    let written =
        accel_sim::write(lanes, model, &question.options(view), &setting.region, &args.output, &counted(&bar));
    bar.finish_and_clear();
    let accel_sim::Written { outcome, kernels, instructions } = written?;
    say_deadlock(&outcome);
    let fetches = outcome.counts.fetches();
    say!("lockstep: {kernels} kernels, {instructions} warp instructions for {fetches} fetches");
    Ok(ExitCode::SUCCESS)
}

/// The lane map, as events.
fn time_line(lanes: (&Trace, &View), question: &Question, setting: &Setting) -> replay::Result<String> {
    let bar = progress();
    let request = Request {
        models: question.subject.models.clone(),
        question,
        setting,
        syntax: None,
        is_page: false,
        sample: None,
        done: &counted(&bar),
    };
    let program = page::program(lanes, &request);
    bar.finish_and_clear();
    let program = program?;
    program.notes.iter().for_each(|note| say!("lockstep: {note}"));
    Ok(page::time_line(&program))
}
