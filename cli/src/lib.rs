//! The command line: what was typed, what was meant, and how results are shown. The parts that do the work are crates
//! of their own.

#[cfg(feature = "transform")]
mod elsewhere;
mod exit;
mod output;
mod registry;
mod shown;
mod typed;
mod verbs;
#[cfg(feature = "transform")]
mod verified;
mod width;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, Parser, Subcommand};

pub use exit::{STATUSES, status_and_words};
pub use registry::{Brought, Registry};
pub use verbs::heuristics::listed as heuristics_as_json;
pub use verbs::replay::called::{ByRule, Called};
pub use verbs::trace::trace_options;
/// What models and measures are made of.
pub use {heuristics, replay, trace_format};

/// Would the threads of this program run well in lockstep, as a GPU warp or a SIMD unit runs them? Where do they
/// diverge?
#[derive(Parser)]
#[command(name = "lockstep", version = version(), max_term_width = 110, after_help = format!("{}\n\n{}", MORE, exit::HELP))]
struct Lockstep {
    #[command(subcommand)]
    verb: Verb,
}

/// Those below the first seven are shown by `lockstep help all`.
#[derive(Subcommand)]
enum Verb {
    Trace(verbs::trace::Args),
    Replay(verbs::replay::Args),
    Report(verbs::report::Args),
    Diff(verbs::diff::Args),
    Check(verbs::check::Args),
    Suggest(verbs::suggest::Args),
    /// Compile C with clang 19 and apply transformations to the optimised code
    #[cfg(feature = "transform")]
    #[command(disable_help_flag = true)]
    Cc(elsewhere::Args),
    /// Compile C++ as cc compiles C: cc with --compiler clang++-19
    #[cfg(feature = "transform")]
    #[command(name = "c++", disable_help_flag = true, hide = true)]
    Cxx(elsewhere::Args),
    /// Apply transformations to LLVM IR (bitcode or text)
    #[cfg(feature = "transform")]
    #[command(disable_help_flag = true, hide = true)]
    Transform(elsewhere::Args),
    /// Say which values, branches and memory accesses are uniform, affine in the thread's number, or divergent
    #[cfg(feature = "transform")]
    #[command(disable_help_flag = true, hide = true)]
    Analyze(elsewhere::Args),
    /// Test what `lockstep analyze` proves about a program against a trace of it
    #[cfg(feature = "transform")]
    #[command(disable_help_flag = true, hide = true)]
    Verify(elsewhere::Args),
    #[command(hide = true)]
    Heuristics(verbs::heuristics::Args),
    #[command(hide = true)]
    Export(verbs::export::Args),
    #[command(hide = true)]
    Plot(verbs::plot::Args),
    #[command(hide = true)]
    Dump(verbs::dump::Args),
    #[command(hide = true)]
    Convert(verbs::convert::Args),
    #[command(hide = true)]
    NewModel(verbs::new_model::Args),
    #[command(hide = true)]
    Setup(verbs::setup::Args),
    #[command(hide = true)]
    Compare(verbs::compare::Args),
}

/// What the list of verbs ends with.
const MORE: &str = "More verbs, for compilers, files and models: lockstep help all.";

/// The command as `lockstep help all` shows it, and as completions and manual pages know it.
fn with_all_verbs(command: clap::Command) -> clap::Command {
    let names: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    names.into_iter().fold(command.after_help(exit::HELP), |command, name| {
        command.mut_subcommand(name, |verb| {
            let is_old = verb.get_name() == "compare";
            verb.hide(is_old)
        })
    })
}

/// The verbs that need LLVM. They are another binary's, `lockstep-llvm`, so that the rest starts without it.
#[cfg(feature = "transform")]
#[derive(Parser)]
#[command(name = "lockstep", bin_name = "lockstep", version = version(), max_term_width = 110, after_help = exit::HELP)]
struct WithLlvm {
    #[command(subcommand)]
    verb: LlvmVerb,
}

#[cfg(feature = "transform")]
#[derive(Subcommand)]
enum LlvmVerb {
    Setup(verbs::setup::Args),
    Cc(verbs::cc::Args),
    /// Compile C++ as cc compiles C: cc with --compiler clang++-19
    #[command(name = "c++")]
    Cxx(verbs::cc::Args),
    Transform(verbs::transform::Args),
    Analyze(verbs::analyze::Args),
    Verify(verbs::verify::Args),
}

#[derive(Parser)]
#[command(name = "trace", version = version(), max_term_width = 110, after_help = exit::HELP)]
struct Trace {
    #[command(flatten)]
    args: verbs::trace::Args,
}

#[derive(Parser)]
#[command(name = "replay", version = version(), max_term_width = 110, after_help = exit::HELP)]
struct Replay {
    #[command(flatten)]
    args: verbs::replay::Args,
}

/// `0.1.0 (commit 1234, with LLVM)`: build.rs knows the commit of a release.
fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let commit =
            option_env!("LOCKSTEP_COMMIT").map_or("no release".to_owned(), |commit| format!("commit {commit}"));
        let llvm = if cfg!(feature = "transform") { "with" } else { "without" };
        format!("{} ({commit}, {llvm} LLVM)", env!("CARGO_PKG_VERSION"))
    });
    &VERSION
}

/// Runs this program as `lockstep` with what the registry has besides; returns the exit status.
#[must_use]
pub fn run(registry: Registry) -> ExitCode {
    let arguments = std::env::args_os().collect();
    exit::of(|| {
        registry.install()?;
        called(arguments)
    })
}

/// Runs the program under the name that it was called by: `trace`, `replay`, or by any other `lockstep`. The first
/// argument is the name; returns the exit status.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::of(|| called(arguments.into_iter().collect()))
}

fn called(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let name = arguments.first().map(Path::new).and_then(Path::file_name).unwrap_or_default().to_owned();
    if name == "trace" {
        verbs::trace::run(&parse::<Trace>(arguments)?.args)
    } else if name == "replay" {
        verbs::replay::run(&parse::<Replay>(arguments)?.args)
    } else {
        lockstep(arguments)
    }
}

fn lockstep(arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    #[cfg(feature = "transform")]
    if let Some(words) = elsewhere::words(&arguments) {
        return elsewhere::start(&words);
    }
    if arguments[1..] == ["help", "all"] || arguments[1..] == ["help", "--help"] {
        let help = with_all_verbs(Lockstep::command()).render_help().to_string();
        output::show(&help, output::WithColours::No)?;
        return Ok(ExitCode::SUCCESS);
    }
    match parse::<Lockstep>(arguments)?.verb {
        Verb::Trace(args) => verbs::trace::run(&args),
        Verb::Replay(args) => verbs::replay::run(&args),
        Verb::Suggest(args) => verbs::suggest::run(&args),
        Verb::Diff(args) => verbs::diff::run(&args),
        Verb::Check(args) => verbs::check::run(&args),
        Verb::Report(args) => verbs::report::run(&args),
        Verb::Compare(args) => {
            output::say!("lockstep: compare is a part of diff now: lockstep diff BEFORE AFTER [-- ARGUMENTS]");
            verbs::compare::run(&args)
        }
        Verb::Export(args) => verbs::export::run(&args),
        Verb::Plot(args) => verbs::plot::run(&args),
        Verb::Dump(args) => verbs::dump::run(&args),
        Verb::Convert(args) => verbs::convert::run(&args),
        Verb::Heuristics(args) => verbs::heuristics::run(&args),
        Verb::NewModel(args) => verbs::new_model::run(&args),
        Verb::Setup(args) => verbs::setup::run(&args, with_all_verbs(Lockstep::command())),
        #[cfg(feature = "transform")]
        Verb::Cc(args) => args.start("cc"),
        #[cfg(feature = "transform")]
        Verb::Cxx(args) => args.start("c++"),
        #[cfg(feature = "transform")]
        Verb::Transform(args) => args.start("transform"),
        #[cfg(feature = "transform")]
        Verb::Analyze(args) => args.start("analyze"),
        #[cfg(feature = "transform")]
        Verb::Verify(args) => args.start("verify"),
    }
}

/// Runs a verb that needs LLVM, as [`main`] runs the others.
#[cfg(feature = "transform")]
pub fn with_llvm(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    exit::of(|| match parse::<WithLlvm>(arguments).map_err(with_separator)?.verb {
        LlvmVerb::Setup(args) => verbs::setup::run(&args, whole_command()),
        LlvmVerb::Cc(args) => verbs::cc::run(&args, "clang-19"),
        LlvmVerb::Cxx(args) => verbs::cc::run(&args, "clang++-19"),
        LlvmVerb::Transform(args) => verbs::transform::run(&args),
        LlvmVerb::Analyze(args) => verbs::analyze::run(&args),
        LlvmVerb::Verify(args) => verbs::verify::run(&args),
    })
}

/// For a compiler's words that stand where options of the verb do.
#[cfg(feature = "transform")]
fn with_separator(error: anyhow::Error) -> anyhow::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    match error.downcast::<clap::Error>() {
        Ok(mut usage) if usage.kind() == ErrorKind::UnknownArgument => {
            let is_cc = matches!(usage.get(ContextKind::Usage), Some(ContextValue::StyledStr(text))
                if text.to_string().contains("lockstep c"));
            let has_tip = [ContextKind::Suggested, ContextKind::SuggestedArg].iter().any(|of| usage.get(*of).is_some());
            if is_cc && !has_tip {
                let tip = "the compiler's words come behind --: lockstep cc --transform meld -- -O1 -g a.c -o a";
                usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
            }
            usage.into()
        }
        Ok(usage) => usage.into(),
        Err(error) => error,
    }
}

/// The command with all options of all verbs, for completions and manual pages.
#[cfg(feature = "transform")]
fn whole_command() -> clap::Command {
    let mut whole = with_all_verbs(Lockstep::command());
    for verb in WithLlvm::command().get_subcommands() {
        whole = whole.mut_subcommand(verb.get_name(), |_| verb.clone());
    }
    whole
}

pub(crate) fn parse<P: Parser>(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<P> {
    Ok(P::try_parse_from(arguments)?)
}
