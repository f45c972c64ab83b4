//! Programs that are written in the manner of real ones: lane i is iteration i, or it is said that they are not known.
//!
//! Each says itself, if it is called with a word, how many marks each iteration of each of its loops runs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use replay::view::{Lanes, WhichLoops};

use super::{Found, judged, kept, marks};
use crate::support::{SLEEP_SOON, has_openmp_of_clang, is_whole, root};

/// What a program is built with: a compiler for C, the same for C++, options.
type Build<'a> = (&'a str, &'a str, [&'a str; 2]);

/// What a program's source says of it.
struct Written {
    path: PathBuf,
    text: String,
}

impl Written {
    fn of(path: &Path) -> Written {
        Written { path: path.to_owned(), text: std::fs::read_to_string(path).unwrap() }
    }

    /// The words behind a word at the beginning of a comment.
    fn says(&self, word: &str) -> Option<&str> {
        let comments = self.text.lines().filter_map(|line| line.strip_prefix("// "));
        comments.filter_map(|line| line.strip_prefix(word)).map(str::trim).next()
    }

    fn found(&self, (c, cxx, flags): Build, folder: &Path) -> Option<Found> {
        let name = self.path.file_name()?.to_str()?;
        let compiler = if name.ends_with("cpp") { cxx } else { c };
        if self.says("only ").is_some_and(|only| !compiler.starts_with(only)) {
            return None;
        }
        let [binary, trace] = ["p", "p.bin"].map(|name| folder.join(name).to_str().unwrap().to_owned());
        let mut command = Command::new(compiler);
        let own = self.says("flags ").into_iter().flat_map(str::split_whitespace);
        let built =
            command.args(flags).args(own).args(["-w", "-o", &binary]).arg(&self.path).arg("-lm").output().unwrap();
        assert!(built.status.success(), "{name}: {}", String::from_utf8_lossy(&built.stderr));
        let said = Command::new(&binary).arg("say").output().unwrap();
        let loops: Vec<Vec<Option<u32>>> = String::from_utf8(said.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("launch"))
            .map(|lanes| lanes.split_whitespace().map(|marks| Some(marks.parse().unwrap())).collect())
            .collect();
        let threads = self.says("threads ").unwrap_or("4");
        let words = [&format!("OMP_NUM_THREADS={threads}"), "XDG_CACHE_HOME=/proc/no-cache"];
        let trace_it = [env!("CARGO_BIN_EXE_trace"), "-o", &trace, &binary];
        let mut command = Command::new("env");
        let command = command.args(words).args(SLEEP_SOON).args(self.says("env "));
        let traced = command.args(trace_it).output().unwrap();
        assert!(traced.status.success(), "{name}: {}", String::from_utf8_lossy(&traced.stderr));
        let lanes = match self.says("lanes ") {
            Some("tasks") => Lanes::Tasks,
            _ => Lanes::Iterations(WhichLoops::Worksharing),
        };
        Some(judged(marks(&trace, lanes), &loops))
    }
}

/// All programs of a folder, in order.
fn all(folder: &Path) -> Vec<Written> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "c" || kind == "cpp"));
    paths.sort();
    paths.iter().map(|path| Written::of(path)).collect()
}

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// Compilers, and what each needs for OpenMP.
const COMPILERS: [(&str, &str, &str); 2] = [("gcc", "g++", "-fopenmp"), ("clang-19", "clang++-19", "-fopenmp=libomp")];

/// Of these, built so at some level, it may be said that the lanes are not sure.
const MAY_BE_UNSURE: [(&str, &str); 8] = [
    // gcc makes two loops of one.
    ("doacross.c", "gcc"),
    // clang's runtime has one pool of threads for all teams.
    ("nested.c", "clang-19"),
    ("hosts.cpp", "clang-19"),
    ("nested_in_turns.c", "clang-19"),
    // Iterations run on two threads.
    ("nested_in_calls.c", "gcc"),
    ("nested_in_calls.c", "clang-19"),
    // Chance.
    ("cancelled.c", "gcc"),
    ("cancelled.c", "clang-19"),
];

#[test]
fn lanes_of_written_programs_are_their_iterations() {
    if !has_openmp_of_clang() {
        return;
    }
    for program in all(&root().join("cli/tests/lanes/written")) {
        let name = program.path.file_name().unwrap().to_str().unwrap();
        let own: Vec<&str> = program.says("levels ").unwrap_or("-O2").split_whitespace().collect();
        for level in if is_whole() { &LEVELS[..] } else { &own } {
            for (c, cxx, openmp) in COMPILERS {
                let folder = tempfile::tempdir().unwrap();
                let Some(found) = program.found((c, cxx, [openmp, level]), folder.path()) else { continue };
                let may_be_unsure = MAY_BE_UNSURE.contains(&(name, c)) && matches!(found, Found::Said(_));
                assert!(found == Found::Right || may_be_unsure, "{name} by {c} {level}: {found:?}");
            }
        }
    }
}

/// Those of FOLDER, built in all ways. A line for each stays in target/drawn-loops.
#[test]
#[ignore = "it is told a folder"]
fn lanes_of_the_programs_of_a_folder() {
    let mut lines = String::new();
    for program in all(Path::new(&std::env::var("FOLDER").unwrap())) {
        for level in LEVELS {
            for (c, cxx, openmp) in COMPILERS {
                let folder = tempfile::tempdir().unwrap();
                if let Some(found) = program.found((c, cxx, [openmp, level]), folder.path()) {
                    writeln!(lines, "{} {c} {level}: {found:?}", program.path.file_name().unwrap().display()).unwrap();
                }
            }
        }
    }
    std::fs::write(kept().join("folder.txt"), &lines).unwrap();
    let wrong: Vec<&str> = lines.lines().filter(|line| line.contains(": Wrong")).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
