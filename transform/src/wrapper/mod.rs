//! The compiler wrapper: a compiler that applies passes between its optimiser and its code generation.
//!
//! It reads no options itself. The compiler's driver is asked for its jobs (`clang-19 -###`), with a few options of
//! ours before the user's; each job that compiles is then done in three steps (bitcode out of the optimiser, passes,
//! code out of the bitcode), every other job as it is:
//!
//! ```text
//! clang -cc1 -emit-obj … -o fft.o -x c fft.c
//!   clang -cc1 -emit-llvm-bc … -o 1.bc -x c fft.c
//!   passes, 1.bc to 2.bc
//!   clang -cc1 -emit-obj … -o fft.o -disable-llvm-passes -x ir 2.bc
//! ```
//!
//! The third step is done in this process where it is sure to make the same code (`code.rs`), and a plain compilation
//! needs no question (`direct.rs`): the driver does the first step and writes down what it did. So most compilations
//! start clang once.
//!
//! Whatever the driver understands (several sources, assembly, standard input, response files, dependency files)
//! works as ever. What the driver or the halves of a job would write in pieces or not at all is seen to: entries of
//! compilation databases, remarks, time traces, places in messages. With [`Shape::Gpu`] the first step stops before the
//! optimiser, which then runs here, before the passes. A command line that has no jobs, such as `--version`, or that
//! the driver refuses, is passed on to the compiler.

mod by_products;
mod code;
mod database;
mod diagnostics;
mod direct;
mod jobs;
mod module;
mod run;
mod scratch;
mod words;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

pub use self::module::to_module;
use self::scratch::Scratch;
use crate::{Pipeline, Remark, Result};

/// How code is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Layout {
    /// The pass `layout` comes last, and code generation does not move, merge or duplicate blocks.
    #[default]
    Ordered,
    /// As the compiler likes.
    Default,
}

/// For what the code gets its shape: which calls are inlined, which loops are unrolled, where there are branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shape {
    /// As the compiler likes for the processor that runs it.
    #[default]
    Cpu,
    /// The optimiser decides with the costs of a GPU, and code generation keeps the control flow that it leaves.
    Gpu,
}

/// A call of the compiler.
pub struct Build {
    /// The compiler: `clang-19` or `clang++-19`, or its path.
    pub compiler: OsString,
    /// The passes.
    pub passes: Pipeline,
    /// How code is laid out. Default: [`Layout::Ordered`].
    pub layout: Layout,
    /// Its shape. Default: [`Shape::Cpu`].
    pub shape: Shape,
    /// A folder for the IR of which code is generated, a file per compile job. Lines of the code are then numbers of
    /// instructions of that file ([`crate::llvm::Module::number_places`]). Default: none.
    pub keep_ir: Option<PathBuf>,
    /// The compiler's command line, without its name.
    pub arguments: Vec<OsString>,
}

/// How a [`Build`] ended.
#[derive(Debug, Default)]
pub struct Built {
    /// The exit status that the compiler's driver would have.
    pub status: u8,
    /// What the passes looked at.
    pub remarks: Vec<Remark>,
}

/// Stops the optimiser from making two loops of one with a branch on a loop invariant inside, such as a thread's
/// parity: each would have one of the calls that passes join.
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

/// Code generation for a GPU's shape: no branch becomes two, no choice a branch, and no branch a choice.
const KEEP_SHAPE: &[&str] = &[
    "-mllvm",
    "-jump-is-expensive=1",
    "-mllvm",
    "-disable-cgp-select2branch",
    "-mllvm",
    "-x86-cmov-converter=0",
    "-mllvm",
    "-disable-cgp-branch-opts",
];

/// The pass that counts loops anew, off: before it, loops with one header are taken apart, in an order that can leave
/// an outer loop by a jump out of an inner one.
const KEEP_LOOPS: &[&str] = &["-mllvm", "-disable-lsr"];

/// Whether an option of LLVM's is one of those above.
fn is_our_llvm_option(word: &str) -> bool {
    [NO_UNSWITCHING, KEEP_ORDER, KEEP_SHAPE, KEEP_LOOPS].concat().contains(&word)
}

/// Values keep their names; what has no place does not get the place of what comes before it; and code generation does
/// not move extensions towards loads: what comes of those loads has no place.
const KEEP_PLACES: &[&str] =
    &["-fno-discard-value-names", "-mllvm", "-use-unknown-locations=Enable", "-mllvm", "-disable-cgp-ext-ld-promotion"];

/// Runs the compiler with the passes. While it does, SIGHUP, SIGINT, SIGQUIT and SIGTERM are handled: the program that
/// runs gets them too, what was written for a while is removed, and the process ends by them.
///
/// # Errors
/// [`crate::Error::NoCompiler`] when it is not installed, [`crate::Error::Start`] when it cannot be started,
/// [`crate::Error::Jobs`] when its list of jobs makes no sense; what a pass or a file can fail with. A program that
/// does not compile is no error of this function: see [`Built::status`].
pub fn build(build: &Build) -> Result<Built> {
    let scratch = Scratch::new()?;
    let typed = words::expanded(&build.arguments);
    let options = &typed[..end_of_options(&typed)];
    let has = |option: &str| options.iter().any(|word| word == option);
    if has(database::ONLY) {
        return run::unchanged(build, &scratch);
    }
    let line = command_line(build);
    if build.keep_ir.is_none()
        && let Some(command) = direct::command(build, &line)
        && let Some(built) = run::direct(build, &command, &scratch)?
    {
        return Ok(built);
    }
    let answer = jobs::ask(&build.compiler, &line, &scratch)?;
    if answer.jobs.is_empty() {
        warn_of_link_time_code(build, &answer, &scratch)?;
        return run::unchanged(build, &scratch);
    }
    if has(jobs::ONLY_SHOW) {
        answer.pass_on_all();
        return Ok(Built::default());
    }
    database::write(build, options, &scratch)?;
    if has("-v") {
        answer.pass_on_all();
    } else {
        answer.pass_on_messages();
    }
    run::all(build, &answer, &scratch)
}

/// Some options, such as `-fsanitize=cfi`, work on the whole program, when it is linked. The driver refuses them
/// without link-time optimisation, and with it code generation happens where no pass of ours can come before it. Where
/// that is why there are no jobs, says so.
fn warn_of_link_time_code(build: &Build, answer: &jobs::Answer, scratch: &Scratch) -> Result<()> {
    if jobs::ask(&build.compiler, &build.arguments, scratch)?.jobs.is_empty() {
        return Ok(());
    }
    warn(&format!(
        "compiling with {}: not transformed, as passes need -fno-lto, and with that the compiler refuses other options \
         ({}); leave those out to have this code transformed",
        build.compiler.display(),
        answer.refusal()
    ));
    Ok(())
}

/// Says what is not as the user may think, on standard error. That may be closed; then nobody wants to read it.
fn warn(what: &str) {
    let _ = writeln!(std::io::stderr(), "lockstep: warning: {what}");
}

/// Where a command line's options end and only files follow.
fn end_of_options(words: &[OsString]) -> usize {
    words.iter().position(|word| word == "--").unwrap_or(words.len())
}

/// The user's command line with our options before it, so that the user's win, and link-time optimisation off after it:
/// it would put code generation where no pass of ours can come before it.
fn command_line(build: &Build) -> Vec<OsString> {
    let mut ours = vec!["--start-no-unused-arguments", "-gline-tables-only"];
    ours.extend(NO_UNSWITCHING);
    // What the pass made of branches would be undone.
    let structures = ["linearize", "split-nodes", "structurizecfg"];
    let linear = build.passes.names().iter().any(|name| structures.contains(name));
    if build.layout == Layout::Ordered || build.shape == Shape::Gpu || linear {
        ours.extend(KEEP_ORDER);
    }
    if build.shape == Shape::Gpu || linear {
        ours.extend(KEEP_SHAPE);
    }
    if linear {
        ours.extend(KEEP_LOOPS);
    }
    if build.keep_ir.is_some() {
        ours.extend(KEEP_PLACES);
    }
    ours.push("--end-no-unused-arguments");
    let no_lto = ["--start-no-unused-arguments", "-fno-lto", "--end-no-unused-arguments"];
    let (options, files) = build.arguments.split_at(end_of_options(&build.arguments));
    let words = ours.into_iter().map(OsString::from).chain(options.iter().cloned());
    words.chain(no_lto.map(OsString::from)).chain(files.iter().cloned()).collect()
}
