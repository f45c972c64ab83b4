//! The compiler wrapper: a compiler that applies passes between its optimiser and its code generation.
//!
//! It reads no options itself. The compiler's driver is asked for its jobs (`clang-19 -###`), with a few options of
//! ours before the user's. Each job that compiles is then done in three steps (bitcode out of the optimiser, passes,
//! code out of the bitcode); every other job is done unchanged:
//!
//! ```text
//! clang -cc1 -emit-obj … -o fft.o -x c fft.c
//!   clang -cc1 -emit-llvm-bc … -o 1.bc -x c fft.c
//!   passes, 1.bc to 2.bc
//!   clang -cc1 -emit-obj … -o fft.o -disable-llvm-passes -x ir 2.bc
//! ```
//!
//! The third step is done in this process if that certainly makes the same code (`code.rs`). A plain compilation needs
//! no question (`direct.rs`): the driver does the first step and writes down what it did. So most compilations start
//! clang once.
//!
//! Whatever the driver understands (several sources, assembly, standard input, response files, dependency files) works
//! as before. Output that the driver or the halves of a job would write in pieces or not at all is repaired: entries of
//! compilation databases, remarks, time traces, places in messages. With [`Shape::Gpu`] the first step stops before the
//! optimiser, which then runs here, before the passes. With [`Build::marks_iterations`] it stops there too, iterations
//! are marked (`iterations.rs`), and a second job of the compiler optimises that. A command line that has no jobs, such
//! as `--version`, or that the driver refuses, is passed on to the compiler.

mod build;
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

pub use self::build::{Build, Built, Layout, Shape};
use self::build::{KEEP_PLACES, NO_UNSWITCHING, WHOLE_ARMS, end_of_options, warn};
pub use self::module::to_module;
use self::scratch::Scratch;
use crate::Result;

/// Runs the compiler with the passes. Meanwhile SIGHUP, SIGINT, SIGQUIT and SIGTERM are handled: the program that runs
/// gets them too, temporary files are removed, and the process ends by them.
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
/// without link-time optimisation; with it, code generation happens where no pass of ours can come before it. If that
/// is why there are no jobs, warns of it.
fn warn_of_link_time_code(build: &Build, answer: &jobs::Answer, scratch: &Scratch) -> Result<()> {
    if jobs::ask(&build.compiler, &build.arguments, scratch)?.jobs.is_empty() {
        return Ok(());
    }
    warn(&format!(
        "compiling with {}: not transformed, since passes need -fno-lto, and with it the compiler refuses other \
         options ({}); leave those out to transform this code",
        build.compiler.display(),
        answer.refusal()
    ));
    Ok(())
}

/// The user's command line with our options before it, so that the user's win, and link-time optimisation off after it:
/// it would put code generation where no pass of ours can come before it.
fn command_line(build: &Build) -> Vec<OsString> {
    let (options, files) = build.arguments.split_at(end_of_options(&build.arguments));
    let mut ours = vec!["--start-no-unused-arguments"];
    if !is_for_bpf(options) {
        ours.push("-gline-tables-only");
    }
    ours.extend(NO_UNSWITCHING);
    if build.leaves_arms_whole() {
        ours.extend(WHOLE_ARMS);
    }
    ours.extend(build.keeps(build.passes.structures()));
    if build.keep_ir.is_some() {
        ours.extend(KEEP_PLACES);
    }
    ours.push("--end-no-unused-arguments");
    let no_lto = ["--start-no-unused-arguments", "-fno-lto", "--end-no-unused-arguments"];
    let words = ours.into_iter().map(OsString::from).chain(options.iter().cloned());
    words.chain(no_lto.map(OsString::from)).chain(files.iter().cloned()).collect()
}

/// Whether code is for the kernel's own machine: for that, clang 19 crashes where it is to make line tables and no
/// other debug information. Remarks have no places then, unless the user asks for more.
fn is_for_bpf(options: &[OsString]) -> bool {
    let options = words::expanded(options);
    options.iter().enumerate().any(|(i, word)| {
        let word = word.to_string_lossy();
        let behind = i > 0 && options[i - 1] == "-target";
        let target = word.strip_prefix("--target=").or(behind.then_some(&*word));
        target.is_some_and(|target| target.starts_with("bpf"))
    })
}
