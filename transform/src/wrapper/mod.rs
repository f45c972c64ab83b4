//! The compiler wrapper: a compiler that applies passes between its optimiser and its code generation.
//!
//! It reads no options itself. The compiler's driver is asked for its jobs (`clang-19 -###`), with a few options of ours before the user's; each job that
//! compiles is then done in three steps (bitcode out of the optimiser, passes, code out of the bitcode), every other job as it is:
//!
//! ```text
//! clang -cc1 -emit-obj … -o fft.o -x c fft.c
//!   clang -cc1 -emit-llvm-bc … -o 1.bc -x c fft.c
//!   passes, 1.bc to 2.bc
//!   clang -cc1 -emit-obj … -o fft.o -disable-llvm-passes -x ir 2.bc
//! ```
//!
//! So whatever the driver understands (several sources, assembly, standard input, response files, dependency files) works as ever. A command line that
//! has no jobs, such as `--version`, or that the driver refuses, is passed on to the compiler.

mod jobs;
mod run;

use std::ffi::OsString;

use crate::{Candidate, Options, Pipeline, Result};

/// How code is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Layout {
    /// The pass `layout` comes last, and code generation does not move, merge or duplicate blocks.
    #[default]
    Ordered,
    /// As the compiler likes.
    Default,
}

/// A call of the compiler.
pub struct Build {
    /// The compiler: `clang-19` or `clang++-19`, or its path.
    pub compiler: OsString,
    /// The passes.
    pub passes: Pipeline,
    /// How they decide.
    pub options: Options,
    /// How code is laid out. Default: [`Layout::Ordered`].
    pub layout: Layout,
    /// The compiler's command line, without its name.
    pub arguments: Vec<OsString>,
}

/// How a [`Build`] ended.
#[derive(Debug, Default)]
pub struct Built {
    /// The exit status that the compiler's driver would have.
    pub status: u8,
    /// What the passes looked at.
    pub candidates: Vec<Candidate>,
}

/// Stops the optimiser from making two loops of one with a branch on a loop invariant inside, such as a thread's parity: each would have one of
/// the calls that passes join.
const NO_UNSWITCHING: &[&str] = &["-mllvm", "-unswitch-threshold=0"];

/// Code generation passes that move, merge or duplicate blocks, off.
const KEEP_ORDER: &[&str] = &[
    "-mllvm",
    "-disable-block-placement",
    "-mllvm",
    "-enable-tail-merge=0",
    "-mllvm",
    "-disable-tail-duplicate",
    "-mllvm",
    "-disable-early-taildup",
];

/// Runs the compiler with the passes.
///
/// # Errors
/// [`crate::Error::NoCompiler`] when it is not installed, [`crate::Error::Jobs`] when its list of jobs makes no sense; what a pass or a file can fail with. A
/// program that does not compile is no error of this function: see [`Built::status`].
pub fn build(build: &Build) -> Result<Built> {
    let answer = jobs::ask(&build.compiler, &command_line(build))?;
    if answer.jobs.is_empty() {
        return run::unchanged(build);
    }
    answer.pass_on_messages(&build.arguments);
    run::all(build, &answer)
}

/// The user's command line with our options before it, so that the user's win, and link-time optimisation off after it: it would put
/// code generation where no pass of ours can come before it.
fn command_line(build: &Build) -> Vec<OsString> {
    let mut ours = vec!["--start-no-unused-arguments", "-gline-tables-only"];
    ours.extend(NO_UNSWITCHING);
    if build.layout == Layout::Ordered {
        ours.extend(KEEP_ORDER);
    }
    ours.push("--end-no-unused-arguments");
    let no_lto = ["--start-no-unused-arguments", "-fno-lto", "--end-no-unused-arguments"];
    let theirs = &build.arguments;
    let end_of_options = theirs.iter().position(|a| a == "--").unwrap_or(theirs.len());
    let (options, files) = theirs.split_at(end_of_options);
    let words = ours.into_iter().map(OsString::from).chain(options.iter().cloned());
    words.chain(no_lto.map(OsString::from)).chain(files.iter().cloned()).collect()
}
