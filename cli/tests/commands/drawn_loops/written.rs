//! Programs that are written in the manner of real ones: lane i is iteration i, or it is said that they are not known.
//!
//! Each says itself, if it is called with a word, how many marks each iteration of each of its loops runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use replay::view::{Lanes, WhichLoops};

use super::{Found, judged, marks};
use crate::support::{SLEEP_SOON, has_openmp_of_clang, root};

/// What a program is built with: a compiler for C, the same for C++, options.
type Build = (&'static str, &'static str, [&'static str; 2]);

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
        let built = command.args(flags).args(["-w", "-o", &binary]).arg(&self.path).arg("-lm").output().unwrap();
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

const GCC: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

/// Those of FOLDER, built in all ways.
#[test]
#[ignore = "a tool for looking"]
fn lanes_of_written_programs() {
    let folder = std::env::var("FOLDER").unwrap();
    for program in all(Path::new(&folder)) {
        for level in GCC {
            let gcc: Build = ("gcc", "g++", ["-fopenmp", level]);
            let clang: Build = ("clang-19", "clang++-19", ["-fopenmp=libomp", level]);
            for build in [gcc, clang] {
                let temporary = tempfile::tempdir().unwrap();
                if let Some(found) = program.found(build, temporary.path()) {
                    println!("{} {} {level}: {found:?}", program.path.file_name().unwrap().display(), build.0);
                }
            }
        }
    }
}
