//! `lockstep convert`: a trace in another version of the format.

use std::path::PathBuf;
use std::process::ExitCode;

use trace_format::layout::Version;

use crate::output::{Output, say};
use crate::typed::selection;

/// Write a trace in another version of the format, for a lockstep that reads only that version
///
/// What the trace says stays the same: the instructions of each thread, events, memory addresses. Version 3 has no
/// events for chunks of OpenMP loops, for tasks and for teams, so these are left out. A text trace is written as a
/// binary one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    /// The version: 3 or 4
    #[arg(long, value_name = "VERSION", default_value = "4", value_parser = version)]
    to: Version,

    /// The file (- for standard output)
    #[arg(long, short = 'o', value_name = "FILE")]
    output: PathBuf,
}

fn version(text: &str) -> Result<Version, String> {
    let number = text.parse().ok().and_then(Version::from_number);
    number.filter(|&version| version >= Version::V3).ok_or_else(|| "give 3 or 4".to_owned())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = selection::open(&args.trace)?;
    let mut out = Output::create(&args.output)?;
    let path = out.path();
    let (_, left_out) = trace.write_as(args.to, &mut out, path)?;
    out.finish()?;
    if left_out > 0 {
        say!(
            "lockstep: {left_out} events were left out: they say which iterations of a loop, which task or which \
             team a thread was given, and version {} has no such events",
            args.to as u32
        );
    }
    Ok(ExitCode::SUCCESS)
}
