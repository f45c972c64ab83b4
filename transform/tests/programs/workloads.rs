//! Over the workloads and the micro programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use transform::Kind;

use crate::build::{self, Printed};

/// The C sources of all workloads.
pub(crate) fn sources() -> Vec<PathBuf> {
    let (mut sources, mut left) = (Vec::new(), vec![build::root().join("workloads")]);
    while let Some(folder) = left.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|e| e == "c") {
                sources.push(path);
            }
        }
    }
    sources.sort();
    sources
}

#[test]
fn workloads_print_the_same_after_every_pass() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let sources = sources();
    assert!(sources.len() >= 16, "the workloads were not found: {sources:?}");
    let (is_whole, pipelines) = (std::env::var_os("LOCKSTEP_WHOLE").is_some(), build::pipelines());
    let mut changed = 0;
    for (number, source) in sources.into_iter().enumerate() {
        let (bitcode, after) = (path("a.bc"), path("b.bc"));
        let openmp: &[&str] = if source.ends_with("mandelbrot.c") { &["-fopenmp"] } else { &[] };
        build::to_bitcode(&source, &bitcode, &[&["-O3"], openmp].concat());
        let mut printed = Printed::default();
        let expected = printed.by(&bitcode, openmp, &["-p", "4"]);
        for (turn, passes) in pipelines.iter().enumerate() {
            // Each program meets a twelfth of the passes, and all in a row; for `scripts/check --whole` every one.
            if !is_whole && (number + turn) % 12 != 0 && turn + 1 != pipelines.len() {
                continue;
            }
            build::transform(&bitcode, passes, &after);
            let got = printed.by(&after, openmp, &["-p", "4"]);
            assert_eq!(got, expected, "{} after {passes}", source.display());
        }
        changed += printed.ran - 1;
    }
    assert!(changed > if is_whole { 100 } else { 20 }, "passes change too little: {changed} programs were run");
}

/// What a program says: its exit status and what it prints.
fn said(program: &Path, arguments: &[&str]) -> String {
    // A program that hangs is ended.
    let done = Command::new("timeout").arg("120").arg(program).args(arguments).output().expect("timeout of coreutils");
    let [printed, complained] = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    format!("{}\n{printed}{}", done.status, complained.replace(&program.display().to_string(), "program"))
}

/// How a workload is run: with several numbers of threads, and with the small inputs that `scripts/check-workloads`
/// has.
fn runs(name: &str) -> Vec<Vec<&'static str>> {
    let more: &[&[&str]] = match name {
        "fft" => &[&["-p", "4", "-m", "8", "-t"]],
        "radix" => &[&["-p", "4", "-n", "1000", "-r", "16"]],
        "mandelbrot" => &[&["-p", "4", "-n", "33", "-s", "dynamic"]],
        "fluidanimate" => &[&["-p", "4", "-n", "1000", "-s", "5"]],
        "swaptions" => &[&["-nt", "4", "-ns", "8", "-sm", "200"]],
        _ => &[],
    };
    let threads = ["1", "3", "16"].map(|threads| ["-p", threads]);
    threads.iter().map(|run| run.to_vec()).chain(more.iter().map(|run| run.to_vec())).collect()
}

/// Builds a workload at a level by clang alone and with each list of passes, and runs all of them; how many changes the
/// passes made, and how often they left a file as it was because they found their own work wrong.
fn same_at(source: &Path, flags: &[&str], lists: &[String]) -> (usize, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let name = source.file_stem().unwrap().to_str().unwrap();
    let openmp: &[&str] =
        if name == "mandelbrot" && source.parent().unwrap().ends_with("mandelbrot") { &["-fopenmp"] } else { &[] };
    let flags = [flags, openmp].concat();
    let (object, program) = (path("a.o"), path("a"));
    let [shared, own] =
        ["workloads/include", "include"].map(|folder| format!("-I{}", build::root().join(folder).display()));
    let words = [&["-std=gnu11", "-w", &shared, &own, "-c", "-o", object.to_str().unwrap()], &flags[..]].concat();
    build::output("clang-19", words.into_iter().chain([source.to_str().unwrap()]));
    build::link(&object, &program, openmp);
    let runs = runs(name);
    let expected: Vec<String> = runs.iter().map(|arguments| said(&program, arguments)).collect();
    assert!(expected.iter().any(|said| said.starts_with("exit status: 0")), "{}: {expected:?}", source.display());
    let (mut taken, mut refused) = (0, 0);
    for passes in lists {
        for remark in build::compile(source, &object, passes, &flags) {
            taken += usize::from(remark.is_taken());
            refused += usize::from(remark.kind() == Kind::Refused);
        }
        build::link(&object, &program, openmp);
        for (arguments, expected) in runs.iter().zip(&expected) {
            let got = said(&program, arguments);
            assert_eq!(got, *expected, "{} {arguments:?}, {flags:?}, after {passes}", source.display());
        }
    }
    (taken, refused)
}

/// Lists of passes from the environment (PASSES, between spaces): `all` is every pass alone and all in a row.
fn lists() -> Vec<String> {
    let typed = std::env::var("PASSES").unwrap_or_default();
    let typed = if typed.trim().is_empty() { "meld:only-divergent=no,threshold=0" } else { &typed };
    let of_word = |word: &str| if word == "all" { build::pipelines() } else { vec![word.to_owned()] };
    typed.split_whitespace().flat_map(of_word).collect()
}

/// As `lockstep cc` builds them, at -O1 and -O3; once more with arms that clang does not make alike by itself, which is
/// how the benchmarks of melding are built.
#[test]
#[ignore = "takes minutes: scripts/check-transforms runs it"]
fn workloads_say_the_same_at_each_level() {
    let apart = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];
    let (sources, lists) = (sources(), lists());
    assert!(sources.len() >= 100, "the workloads were not found: {sources:?}");
    let (next, counts) = (AtomicUsize::new(0), Mutex::new([0; 3]));
    let jobs = std::env::var("JOBS").ok().and_then(|text| text.parse().ok());
    std::thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)) {
            scope.spawn(|| {
                while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (mut taken, mut refused) = (0, 0);
                    for flags in
                        ["-O1", "-O3"].into_iter().flat_map(|level| [vec![level], [&[level], &apart[..]].concat()])
                    {
                        let of_build = same_at(source, &flags, &lists);
                        (taken, refused) = (taken + of_build.0, refused + of_build.1);
                    }
                    println!("{}: {taken} changes", source.display());
                    let mut counts = counts.lock().unwrap();
                    for (count, more) in counts.iter_mut().zip([usize::from(taken > 0), taken, refused]) {
                        *count += more;
                    }
                }
            });
        }
    });
    let [changed, taken, refused] = counts.into_inner().unwrap();
    println!("{} programs, {} lists of passes: {taken} changes in {changed} programs", sources.len(), lists.len());
    assert_eq!(refused, 0, "files that the passes found to be made wrong");
    assert!(changed > 0, "nothing was changed by {lists:?}");
}
