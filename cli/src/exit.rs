//! Exit statuses: decided here and nowhere else.

use std::io::ErrorKind;
use std::process::ExitCode;

use crate::output::say;

/// Each status that is not a traced program's own: number, and what it means.
pub const STATUSES: &[(u8, &str)] = &[
    (USAGE, "the command line is wrong, or its options do not go together"),
    (
        BAD_TRACE,
        "the trace, rows or another tool's recording cannot be read: damaged, of another version, or no such file",
    ),
    (REQUEST, "this trace cannot give what was asked for"),
    (WRITE, "a file cannot be written"),
    (DEADLOCK, "every requested heuristic deadlocks"),
    (BELOW, "check: the SIMT efficiency is below the requested minimum"),
    (DIFFERS, "check, dump --verify, replay --check: the decoders differ about an instruction of the trace"),
    (OUTPUTS, "diff: the two programs print different things"),
    (BUG, "a bug in lockstep"),
    (TRACING, "trace: the program could not be recorded, or never reached the part to record"),
    (NOT_EXECUTABLE, "trace: the program cannot be executed"),
    (NOT_FOUND, "trace: there is no such program"),
];

/// The same as the end of every help page.
pub(crate) const HELP: &str = "Exit status: 0; 2 wrong usage, or options that do not go together; 3 unreadable trace; 4 a \
    request that this trace cannot meet; 5 unwritable file; 6 every heuristic deadlocks; 7 check: efficiency too low; 8 decoders differ; 9 diff: \
    outputs differ; 70 bug. trace: the program's own, 128+n when signal n killed it; 125 it could not be recorded, \
    126 it could not be executed, 127 it was not found.";

pub(crate) const USAGE: u8 = 2;
pub(crate) const BAD_TRACE: u8 = 3;
pub(crate) const REQUEST: u8 = 4;
pub(crate) const WRITE: u8 = 5;
pub(crate) const DEADLOCK: u8 = 6;
pub(crate) const BELOW: u8 = 7;
pub(crate) const DIFFERS: u8 = 8;
pub(crate) const OUTPUTS: u8 = 9;
pub(crate) const BUG: u8 = 70;
/// Standard output is a pipe without a reader, as behind `| head`: what a shell shows for a program that SIGPIPE ends.
const CLOSED_PIPE: u8 = 141;
pub(crate) const TRACING: u8 = 125;
pub(crate) const NOT_EXECUTABLE: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;

/// Runs a verb; shows its error, if any, as one line on standard error.
pub(crate) fn of(verb: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    match verb() {
        Ok(status) => status,
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                return show_usage(usage);
            }
            if is_broken_pipe(&error) {
                // The reader of our output wants no more.
                return ExitCode::from(CLOSED_PIPE);
            }
            // Each of our errors names its cause itself.
            say!("lockstep: {error}{}", hint(&error));
            ExitCode::from(status_of(&error))
        }
    }
}

/// The exit status of an error, and what the command says, in its words; of what was typed wrong without the usage. For
/// programs that show errors in a way of their own.
#[must_use]
pub fn status_and_words(error: &anyhow::Error) -> (u8, String) {
    let Some(usage) = error.downcast_ref::<clap::Error>() else { return (status_of(error), error.to_string()) };
    let text = usage.render().to_string();
    let words = text.split("\n\nUsage:").next().and_then(|text| text.split("\n\nFor more").next()).unwrap_or_default();
    (usage.exit_code() as u8, words.trim_start_matches("error: ").trim().to_owned())
}

/// What clap has to say: help and the version go to standard output, with status 0, what is wrong goes to standard
/// error.
fn show_usage(usage: &clap::Error) -> ExitCode {
    match usage.print() {
        Err(error) if !usage.use_stderr() && error.kind() == ErrorKind::BrokenPipe => ExitCode::from(CLOSED_PIPE),
        Err(error) if !usage.use_stderr() => {
            say!("lockstep: standard output: cannot write: {error}");
            ExitCode::from(WRITE)
        }
        _ => ExitCode::from(usage.exit_code() as u8),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|e| e.downcast_ref::<std::io::Error>());
    io.is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// What to do about an error that the system's words do not tell: the end of its sentence.
fn hint(error: &anyhow::Error) -> &'static str {
    let is_missing = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == ErrorKind::NotFound)
    };
    let is_of_trace = matches!(error.downcast_ref(), Some(tracer::Error::Trace(error)) if of_trace(error) == WRITE);
    let is_of_output = is_of_trace || status_of(error) == WRITE;
    if is_of_output && error.chain().any(is_missing) { ": its folder does not exist" } else { "" }
}

fn status_of(error: &anyhow::Error) -> u8 {
    for cause in error.chain() {
        if let Some(error) = cause.downcast_ref::<replay::Error>() {
            return of_replay(error);
        }
        if let Some(error) = cause.downcast_ref::<trace_format::Error>() {
            return of_trace(error);
        }
        if let Some(error) = cause.downcast_ref::<report::Error>() {
            return of_report(error);
        }
        if let Some(error) = cause.downcast_ref::<tracer::Error>() {
            return of_tracer(error);
        }
        #[cfg(feature = "transform")]
        if let Some(error) = cause.downcast_ref::<transform::Error>() {
            return of_transform(error);
        }
        if cause.is::<heuristics::ParseError>() {
            return USAGE;
        }
    }
    BUG
}

fn of_replay(error: &replay::Error) -> u8 {
    match error {
        replay::Error::Trace(error) => of_trace(error),
        replay::Error::Request(_) => REQUEST,
        replay::Error::Heuristic(_) => USAGE,
        replay::Error::Write { .. } => WRITE,
        _ => BUG,
    }
}

fn of_report(error: &report::Error) -> u8 {
    match error {
        error if error.is_of_output() => WRITE,
        error if error.is_of_request() => USAGE,
        _ => BAD_TRACE,
    }
}

fn of_trace(error: &trace_format::Error) -> u8 {
    match error {
        trace_format::Error::Io { action, .. } if action.is_of_output() => WRITE,
        _ => BAD_TRACE,
    }
}

#[cfg(feature = "transform")]
fn of_transform(error: &transform::Error) -> u8 {
    match error {
        transform::Error::Read { .. } | transform::Error::BadIr { .. } => BAD_TRACE,
        transform::Error::Write { .. } => WRITE,
        transform::Error::Parameters(_) => USAGE,
        transform::Error::NoCompiler { .. } => NOT_FOUND,
        transform::Error::Start { .. } => NOT_EXECUTABLE,
        _ => BUG,
    }
}

fn of_tracer(error: &tracer::Error) -> u8 {
    match error {
        tracer::Error::NotFound { .. } => NOT_FOUND,
        tracer::Error::NotExecutable { .. } => NOT_EXECUTABLE,
        tracer::Error::Foreign { .. } => BAD_TRACE,
        _ => TRACING,
    }
}
