//! `lockstep export`: results in the formats of other tools.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use heuristics::Spec;
use report::page::{self, Request};
use verdict::Subject;

use crate::output::{Output, counted, progress, say};
use crate::typed::selection::{self, OneView};

/// Write what a replay shows in the format of another tool: a flame graph, or a time line
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    /// The format
    #[arg(long, short = 'f', value_name = "FORMAT")]
    format: Format,

    /// The file (- for standard output)
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
    /// Lost lane-slots by call path, line and cause, as folded stacks (inferno, speedscope, flamegraph.pl)
    Folded,
    /// The lane map as a trace of events (Perfetto, Firefox Profiler, chrome://tracing); one fetch is one microsecond
    Perfetto,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let subject = Subject::of(None, args.heuristic.iter().cloned().collect());
    let trace = selection::open(&args.trace)?;
    let view = args.selection.view(&trace)?;
    let bar = progress();
    let request = Request {
        models: subject.models.clone(),
        question: &args.selection.question(&trace, subject)?,
        setting: &args.selection.setting(&args.trace, &trace, &view),
        syntax: None,
        is_page: false,
        sample: None,
        done: &counted(&bar),
    };
    let program = page::program((&trace, &view), &request);
    bar.finish_and_clear();
    let program = program?;
    program.notes.iter().for_each(|note| say!("lockstep: {note}"));
    let text = match args.format {
        Format::Folded => page::folded(&program, &page::causes()),
        Format::Perfetto => page::time_line(&program),
    };
    let mut out = Output::create(&args.output)?;
    let path = out.path();
    out.write_all(text.as_bytes()).map_err(|source| replay::Error::Write { path, source })?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
