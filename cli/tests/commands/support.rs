//! What several tests of the command line need: our programs, and C programs built for a test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether `scripts/check --whole` runs the tests: those that do one thing to many programs leave nothing out.
#[allow(dead_code, reason = "not each of the binaries that have this module asks")]
pub(crate) fn is_whole() -> bool {
    std::env::var_os("LOCKSTEP_WHOLE").is_some()
}

/// Builds a C program of the workloads' folder with gcc as the workloads' Makefiles do.
pub(crate) fn build(source: &Path, to: &Path, flags: &[&str]) {
    let built = Command::new("gcc")
        .args(["-std=gnu11", "-O2", "-g", "-pthread"])
        .arg("-I")
        .arg(root().join("workloads/include"))
        .arg("-I")
        .arg(root().join("include"))
        .arg("-o")
        .args([to, source])
        .args(flags)
        .arg("-lm")
        .output()
        .expect("gcc runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// Builds the program with long names of functions in C++ (`cpp`) or Rust (`rs`).
#[allow(dead_code, reason = "not each of the binaries that have this module builds it")]
pub(crate) fn build_long_names(language: &str, to: &str) {
    let source = root().join(format!("cli/tests/programs/long_names.{language}"));
    let words: &[&str] = match language {
        "cpp" => &["g++", "-std=c++17", "-O1", "-g", "-pthread"],
        _ => &["rustc", "--edition", "2021", "-g", "-C", "opt-level=1"],
    };
    let built = Command::new(words[0]).args(&words[1..]).args(["-o", to]).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// A folder for caches that cannot be made: tests neither use nor change what the user's recordings remember.
pub(crate) const NO_CACHE: &str = "/proc/no-cache";

/// One of our programs, to be run; it remembers nothing.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let path = match program {
        "trace" => env!("CARGO_BIN_EXE_trace"),
        "replay" => env!("CARGO_BIN_EXE_replay"),
        _ => env!("CARGO_BIN_EXE_lockstep"),
    };
    let mut command = Command::new(path);
    command.args(arguments).env("XDG_CACHE_HOME", NO_CACHE);
    command
}

/// Runs one of our programs.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    command(program, arguments).output().expect("our program runs")
}

/// Runs one of our programs, which must succeed; returns its standard output.
pub(crate) fn succeed(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// For `env`: OpenMP's threads sleep soon, and those of clang's library not while the program ends: docs/tracing.md.
#[allow(dead_code, reason = "not each of the binaries that have this module traces such programs")]
pub(crate) const SLEEP_SOON: [&str; 2] = ["OMP_WAIT_POLICY=passive", "KMP_BLOCKTIME=1"];

/// Whether programs can be built with clang's OpenMP.
#[allow(dead_code, reason = "not each of the binaries that have this module asks")]
pub(crate) fn has_openmp_of_clang() -> bool {
    let arguments = ["-fopenmp=libomp", "-xc", "/dev/null", "-shared", "-o", "/dev/null"];
    Command::new("clang-19").args(arguments).output().is_ok_and(|output| output.status.success())
}
