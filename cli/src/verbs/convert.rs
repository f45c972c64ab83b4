//! `lockstep convert`: a trace in another version of the format, or another tool's recording as a trace.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attribution::table::grouped;
use trace_format::layout::Version;

use crate::output::{Output, WithColours, print, say};
use crate::typed::selection;

/// Write a trace in another version of the format, or make one of what another tool recorded
///
/// What the trace says stays the same: the instructions of each thread, events, memory addresses. Version 3 has no
/// events for chunks of OpenMP loops, for tasks and for teams: what a version has none of is left out. A text trace is
/// written as a binary one.
///
/// With --from drmemtrace it is the folder of an offline trace of DynamoRIO's drmemtrace, post-processed, or one file
/// of it. The program's files should still be where they were: names of functions and source lines are theirs.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input), or the other tool's recording
    #[arg(required_unless_present = "functions")]
    trace: Option<PathBuf>,

    /// The tool whose recording it is
    #[arg(long, value_name = "TOOL", conflicts_with = "to")]
    from: Option<Tool>,

    /// Print which functions that tool should record, as the value of its option -record_function
    #[arg(long, requires = "from", conflicts_with_all = ["trace", "output"])]
    functions: bool,

    /// The version, 3 or newer. Default: the newest
    #[arg(long, value_name = "VERSION", value_parser = version)]
    to: Option<Version>,

    /// The file (- for standard output)
    #[arg(long, short = 'o', value_name = "FILE", required_unless_present = "functions")]
    output: Option<PathBuf>,
}

/// A tool whose recordings become traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Tool {
    /// DynamoRIO's drmemtrace: offline traces
    Drmemtrace,
}

fn version(text: &str) -> Result<Version, String> {
    let number = text.parse().ok().and_then(Version::from_number);
    let newest = Version::NEWEST as u32;
    number.filter(|&version| version >= Version::V3).ok_or_else(|| format!("give a number from 3 to {newest}"))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (Some(from), Some(output)) = (&args.trace, &args.output) else {
        print(&format!("{}\n", tracer::drmemtrace_functions()), WithColours::No)?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(Tool::Drmemtrace) = args.from {
        return convert_drmemtrace(from, output);
    }
    let trace = selection::open(from)?;
    let mut out = Output::create(output)?;
    let path = out.path();
    let version = args.to.unwrap_or(Version::NEWEST);
    let (_, left_out) = trace.write_as(version, &mut out, path)?;
    out.finish()?;
    if left_out > 0 {
        say!(
            "lockstep: {left_out} events were left out: they say {}, and version {} has no such events",
            version.lacks(),
            version as u32
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn convert_drmemtrace(from: &Path, output: &Path) -> anyhow::Result<ExitCode> {
    let output = if output == Path::new("-") { Path::new("/dev/stdout") } else { output };
    let converted = tracer::convert_drmemtrace(from, output).map_err(|error| match error {
        // A file that cannot be written is that of other verbs: nothing is recorded here.
        tracer::Error::Trace(error) => anyhow::Error::from(error),
        other => other.into(),
    })?;
    for warning in &converted.warnings {
        say!("lockstep: {warning}");
    }
    say!(
        "lockstep: {} instructions of {} threads in {} bytes",
        grouped(converted.instructions),
        converted.threads,
        grouped(converted.bytes)
    );
    Ok(ExitCode::SUCCESS)
}
