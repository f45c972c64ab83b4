//! `lockstep cc` and `lockstep c++`: a compiler that applies passes.

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use transform::wrapper::{self, Build};
use transform::{Error, Pipeline, Reason, Remark};

use super::transform::Deciding;
use crate::output::say;

/// Compile C with clang 19 and apply transformations to the optimised code
///
/// What follows -- is the compiler's command line, as in: make CC="lockstep cc --transform fcs --". Build both sides of
/// a comparison with it: the baseline with --transform none.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Transformations, in this order, with commas; a colon stands before parameters: fcs:threshold=8,layout (see
    /// `lockstep transform --list`)
    #[arg(long, value_name = "LIST", default_value = "none")]
    transform: String,

    /// How blocks are laid out: ordered, so that joins come after their arms; default, as the compiler chooses
    #[arg(long, value_enum, default_value_t = Layout::Ordered)]
    layout: Layout,

    /// What control flow is shaped for: cpu, the processor; gpu, as a GPU's compiler would make it (which calls are
    /// inlined, which loops unrolled, where there are branches), so that the trace shows a GPU's control flow
    #[arg(long, value_enum, default_value_t = Shape::Cpu)]
    shape: Shape,

    /// Mark the iterations of OpenMP's loops for `replay --lanes marks`: a lane is then an iteration, whatever the
    /// optimiser makes of the loop. Marked loops stay scalar and are not unrolled. Default: yes with --shape gpu, else
    /// no
    #[arg(long, value_name = "yes|no", num_args = 0..=1, default_missing_value = "yes", require_equals = true)]
    mark_iterations: Option<Answer>,

    #[command(flatten)]
    deciding: Deciding,

    /// Append to FILE what was considered and what was decided (- for standard error)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Keep the IR from which code is generated in FOLDER, for `lockstep verify`. Line numbers in the code then count
    /// its instructions, not lines of the source
    #[arg(long, value_name = "FOLDER")]
    keep_ir: Option<PathBuf>,

    /// The compiler. Default: clang-19 for cc, clang++-19 for c++
    #[arg(long, value_name = "PROGRAM")]
    compiler: Option<OsString>,

    /// The compiler's command line
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Answer {
    Yes,
    No,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shape {
    Cpu,
    Gpu,
}

#[derive(Clone, Copy, ValueEnum)]
enum Layout {
    Ordered,
    Default,
}

pub(crate) fn run(args: &Args, compiler: &str) -> anyhow::Result<ExitCode> {
    let build = Build {
        compiler: args.compiler.clone().unwrap_or_else(|| compiler.into()),
        passes: args.deciding.pipeline(&args.transform)?,
        layout: match args.layout {
            Layout::Ordered => wrapper::Layout::Ordered,
            Layout::Default => wrapper::Layout::Default,
        },
        shape: match args.shape {
            Shape::Cpu => wrapper::Shape::Cpu,
            Shape::Gpu => wrapper::Shape::Gpu,
        },
        marks_iterations: match (args.mark_iterations, args.shape) {
            (Some(answer), _) => answer == Answer::Yes,
            (None, shape) => matches!(shape, Shape::Gpu),
        },
        keep_ir: args.keep_ir.clone(),
        arguments: args.arguments.clone(),
    };
    let built = wrapper::build(&build)?;
    super::transform::warn_of_refusals(&built.remarks);
    built.remarks.iter().filter(|remark| matches!(remark.reason, Reason::IterationsNotMarked(_))).for_each(|remark| {
        say!("lockstep: warning: {remark}; `replay` has no lanes for it");
    });
    if built.status == 0 && built.is_program && std::io::stderr().is_terminal() {
        tell_idle(&build.passes, &built.remarks);
    }
    if let Some(path) = &args.report {
        append(path, &args.deciding.written(&built.remarks))?;
    }
    Ok(ExitCode::from(built.status))
}

/// Says which passes changed nothing in a program, and why. In a build of many files that is no news, and checks of a
/// compiler (Autoconf's, CMake's) take whatever it writes for a fault.
fn tell_idle(passes: &Pipeline, remarks: &[Remark]) {
    let says_what_it_does = |pass: &&str| !["none", "layout"].contains(pass);
    for pass in passes.names().into_iter().filter(says_what_it_does) {
        let of_pass: Vec<&Remark> = remarks.iter().filter(|remark| remark.pass == pass).collect();
        if of_pass.iter().any(|remark| remark.is_taken() || matches!(remark.reason, Reason::Refused(_))) {
            continue;
        }
        match of_pass.first() {
            None => say!(
                "lockstep: the pass {pass} changed nothing: no place of the code is of the form that it looks for (it \
                 sees what the compiler's own optimiser leaves, and nothing at -O0)"
            ),
            Some(first) => say!(
                "lockstep: the pass {pass} changed nothing: it looked at {} place{} and left {}: {}; --report - says \
                 why of each",
                of_pass.len(),
                if of_pass.len() == 1 { "" } else { "s" },
                if of_pass.len() == 1 { "it" } else { "all, the first" },
                first.reason
            ),
        }
    }
}

/// One write per build, so that builds that run side by side do not mix their lines.
fn append(path: &PathBuf, text: &str) -> transform::Result<()> {
    let written = if path.as_os_str() == "-" {
        std::io::stderr().write_all(text.as_bytes())
    } else {
        let file = File::options().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    };
    written.map_err(|source| Error::Write { path: path.clone(), source })
}
