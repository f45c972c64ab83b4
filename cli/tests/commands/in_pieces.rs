//! Lanes of several pieces of what threads ran: OpenMP tasks that wait for others, which their threads run meanwhile,
//! and calls of green threads, which go on with another stack.
//!
//! The judge is the program, which prints how many turns of a marked loop each of them has made.

use std::path::{Path, PathBuf};
use std::process::Command;

use replay::view::{CutInto, Lanes, Region, View, ViewOptions};
use trace_format::Trace;

use crate::drawn_loops;
use crate::support::{SLEEP_SOON, has_openmp_of_clang, root};

/// A program of cli/tests/lanes that is traced.
struct Traced {
    _folder: tempfile::TempDir,
    trace: PathBuf,
    /// The turns that it has printed, sorted.
    printed: Vec<u32>,
}

impl Traced {
    fn new(build: &[&str], source: &str, threads: u32) -> Traced {
        let folder = tempfile::tempdir().unwrap();
        let [program, trace] = ["program", "trace.bin"].map(|name| folder.path().join(name));
        let source = root().join("cli/tests/lanes").join(source);
        let built = Command::new(build[0]).args(&build[1..]).args(["-g", "-o"]).args([&program, &source]).status();
        assert!(built.unwrap().success());
        let threads = format!("OMP_NUM_THREADS={threads}");
        let trace_it = Command::new("env")
            .args(SLEEP_SOON)
            .args([&threads, env!("CARGO_BIN_EXE_trace"), "-o"])
            .args([&trace, &program])
            .output()
            .unwrap();
        assert!(trace_it.status.success(), "{}", String::from_utf8_lossy(&trace_it.stderr));
        let printed = String::from_utf8(trace_it.stdout).unwrap();
        let printed = sorted(printed.lines().map(|line| line.parse().unwrap()));
        Traced { _folder: folder, trace, printed }
    }

    /// The turns of its lanes, sorted, and why the verdict is withheld, if it is.
    fn turns(&self, lanes: Lanes, region: Region) -> (Vec<u32>, Option<String>) {
        let options = ViewOptions { lanes, region, ..ViewOptions::default() };
        let view = View::new(&Trace::open(Path::new(&self.trace)).unwrap(), &options).unwrap();
        let withheld = view.summary().cut.as_ref().and_then(CutInto::withheld).map(str::to_owned);
        (sorted(drawn_loops::turns(&view).into_iter()), withheld)
    }

    fn calls(&self) -> (Vec<u32>, Option<String>) {
        self.turns(Lanes::Calls, "body".parse().unwrap())
    }
}

fn sorted(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut all: Vec<u32> = numbers.collect();
    all.sort_unstable();
    all
}

/// A program with tasks, by each compiler whose OpenMP is there.
fn with_tasks(level: &str, way: &str, threads: u32, see: impl Fn(&str, &Traced)) {
    let way = format!("-D{way}");
    for (compiler, openmp) in [("gcc", "-fopenmp"), ("clang-19", "-fopenmp=libomp")] {
        if compiler == "gcc" || has_openmp_of_clang() {
            see(compiler, &Traced::new(&[compiler, openmp, level, &way], "tasks.c", threads));
        }
    }
}

#[test]
fn each_task_has_its_own_turns_whatever_its_thread_ran_while_it_waited() {
    // clang puts those of UNDEFERRED where they are made, once it optimises.
    let ways = ["UNTIED", "TASKLOOP", "GROUP", "UNDEFERRED", "WAIT", "FINAL", "DEPEND", "LOCKED"];
    for (level, threads, ways) in [("-O2", 4, &ways[..]), ("-O0", 1, &ways[..4])] {
        for way in ways {
            with_tasks(level, way, threads, |compiler, traced| {
                let lanes = traced.turns(Lanes::Tasks, Region::Auto);
                assert_eq!(lanes, (traced.printed.clone(), None), "{way} {compiler} {level} {threads}");
            });
        }
    }
}

#[test]
fn a_green_threads_call_is_one_lane_however_often_it_waits() {
    let ways: [&[&str]; 6] = [
        &["-DPLAIN"],
        &["-DUCONTEXT"],
        &["-DOWN_SWITCH"],
        &["-DUCONTEXT", "-DIN_FRAME"],
        &["-DOWN_SWITCH", "-DIN_FRAME"],
        &["-DUCONTEXT", "-DTHREADS=3"],
    ];
    for way in ways {
        for level in ["-O0", "-O2"] {
            let traced = Traced::new(&[&["gcc", "-pthread", level], way].concat(), "fibers.c", 1);
            assert_eq!(traced.calls(), (traced.printed.clone(), None), "{way:?} {level}");
        }
    }
}

#[test]
fn calls_of_green_threads_that_are_not_known_are_withheld() {
    let build = |way: &'static str| Traced::new(&["gcc", "-pthread", "-O2", way, "-DTHREADS=2"], "fibers.c", 1);
    let (_, moved) = build("-DMOVES").calls();
    assert!(moved.as_ref().is_some_and(|why| why.contains("one thread may go on with what another")), "{moved:?}");
    // What a scheduler's call runs on other stacks is a part of it, or is not.
    let (_, scheduler) = build("-DUCONTEXT").turns(Lanes::Calls, "run".parse().unwrap());
    assert!(scheduler.as_ref().is_some_and(|why| why.contains("is in no call")), "{scheduler:?}");
}
