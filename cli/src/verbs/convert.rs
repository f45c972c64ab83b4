//! `lockstep convert`: a trace in another version of the format.

use std::path::PathBuf;
use std::process::ExitCode;

use trace_format::layout::Version;

use crate::output::Output;
use crate::selection;

/// Write a trace in another version of the format, for a lockstep that reads no other
///
/// What the trace says stays the same: the instructions of each thread, events, memory addresses. A text trace is
/// written as a binary one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace
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
    trace.write_as(args.to, &mut out, path)?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
