//! The command line: what was typed, what was meant, and how results are shown. The parts that do the work are crates
//! of their own.

mod by;
mod exit;
mod items;
mod lanes;
mod machine;
mod measures;
mod models;
mod output;
mod page;
mod place;
mod predict;
mod proved;
mod regions;
mod selection;
mod spin;
mod stats;
mod syntax;
mod table;
mod verbs;
mod verdict;
#[cfg(feature = "transform")]
mod verified;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::STATUSES;

/// Would the threads of this program run well in lockstep, as a GPU warp or a SIMD unit runs them? Where do they
/// diverge?
#[derive(Parser)]
#[command(name = "lockstep", version, max_term_width = 110, after_help = exit::HELP)]
struct Lockstep {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Trace(verbs::trace::Args),
    Replay(verbs::replay::Args),
    Suggest(verbs::suggest::Args),
    Diff(verbs::diff::Args),
    Check(verbs::check::Args),
    Report(verbs::report::Args),
    Compare(verbs::compare::Args),
    Export(verbs::export::Args),
    Plot(verbs::plot::Args),
    Dump(verbs::dump::Args),
    Convert(verbs::convert::Args),
    Heuristics(verbs::heuristics::Args),
    #[cfg(feature = "transform")]
    Cc(verbs::cc::Args),
    /// Compile C++ as cc compiles C: cc with --compiler clang++-19
    #[cfg(feature = "transform")]
    #[command(name = "c++")]
    Cxx(verbs::cc::Args),
    #[cfg(feature = "transform")]
    Transform(verbs::transform::Args),
    #[cfg(feature = "transform")]
    Analyze(verbs::analyze::Args),
    #[cfg(feature = "transform")]
    Verify(verbs::verify::Args),
}

#[derive(Parser)]
#[command(name = "trace", version, max_term_width = 110, after_help = exit::HELP)]
struct Trace {
    #[command(flatten)]
    args: verbs::trace::Args,
}

#[derive(Parser)]
#[command(name = "replay", version, max_term_width = 110, after_help = exit::HELP)]
struct Replay {
    #[command(flatten)]
    args: verbs::replay::Args,
}

/// Runs `lockstep` with these arguments, the program's name first; returns its exit status.
pub fn lockstep(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::of(|| match parse::<Lockstep>(arguments)?.verb {
        Verb::Trace(args) => verbs::trace::run(&args),
        Verb::Replay(args) => verbs::replay::run(&args),
        Verb::Suggest(args) => verbs::suggest::run(&args),
        Verb::Diff(args) => verbs::diff::run(&args),
        Verb::Check(args) => verbs::check::run(&args),
        Verb::Report(args) => verbs::report::run(&args),
        Verb::Compare(args) => verbs::compare::run(&args),
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Plot(args) => verbs::plot::run(&args),
        Verb::Dump(args) => verbs::dump::run(&args),
        Verb::Convert(args) => verbs::convert::run(&args),
        Verb::Heuristics(args) => verbs::heuristics::run(&args),
        #[cfg(feature = "transform")]
        Verb::Cc(args) => verbs::cc::run(&args, "clang-19"),
        #[cfg(feature = "transform")]
        Verb::Cxx(args) => verbs::cc::run(&args, "clang++-19"),
        #[cfg(feature = "transform")]
        Verb::Transform(args) => verbs::transform::run(&args),
        #[cfg(feature = "transform")]
        Verb::Analyze(args) => verbs::analyze::run(&args),
        #[cfg(feature = "transform")]
        Verb::Verify(args) => verbs::verify::run(&args),
    })
}

/// Runs `trace` with these arguments, the program's name first; returns its exit status.
pub fn trace(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::of(|| verbs::trace::run(&parse::<Trace>(arguments)?.args))
}

/// Runs `replay` with these arguments, the program's name first; returns its exit status.
pub fn replay(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::of(|| verbs::replay::run(&parse::<Replay>(arguments)?.args))
}

fn parse<P: Parser>(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<P> {
    Ok(P::try_parse_from(arguments)?)
}
