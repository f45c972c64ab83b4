//! `replay --lanes tasks` where tasks wait for others, which their threads run meanwhile: each is a lane of its own.
//!
//! The judge is the program, which prints how many turns of a marked loop each of its tasks has made.

use std::path::Path;
use std::process::Command;

use replay::Batch;
use replay::view::{CutInto, Lanes, Region, View, ViewOptions};
use trace_format::Trace;

use crate::support::{SLEEP_SOON, has_openmp_of_clang, root};

/// The displacement of the long nop that a turn runs.
const MARK: i64 = 0x1234_5678;

/// By lane: its turns.
pub(crate) fn turns(trace: &str, lanes: Lanes, region: Region) -> (Vec<u32>, Option<String>) {
    let trace = Trace::open(Path::new(trace)).unwrap();
    let view = View::new(&trace, &ViewOptions { lanes, region, ..ViewOptions::default() }).unwrap();
    let is_mark =
        |instruction: &machine::Instruction| instruction.address().is_some_and(|address| address.displacement == MARK);
    let segments = view.segments();
    let marks: Vec<usize> =
        segments.iter().map(|(id, _)| segments.listing(id).iter().flatten().filter(is_mark).count()).collect();
    let of_lane = |lane: usize| {
        let (mut stream, mut batch, mut count) = (view.stream(lane), Batch::default(), 0);
        while stream.next_batch(&mut batch).unwrap() {
            let ran = batch.codes.iter().filter_map(|code| code.as_segment());
            count += ran.map(|id| marks[id.0 as usize]).sum::<usize>();
        }
        count as u32
    };
    let withheld = view.summary().cut.as_ref().and_then(CutInto::withheld).map(str::to_owned);
    ((0..view.lanes().len()).map(of_lane).collect(), withheld)
}

/// Traces a program: what it prints, as numbers.
fn traced(program: &str, trace: &str, threads: u32) -> Vec<u32> {
    let threads = format!("OMP_NUM_THREADS={threads}");
    let words = [env!("CARGO_BIN_EXE_trace"), "-o", trace, program];
    let ran = Command::new("env").args(SLEEP_SOON).arg(threads).args(words).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Each way to make tasks that wait, by each compiler whose OpenMP is there, on one thread and on several.
fn nested(ways: &[&str], see: impl Fn(&str, &str, Vec<u32>, Vec<u32>)) {
    let folder = tempfile::tempdir().unwrap();
    let [program, trace] = ["tasks", "trace.bin"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let source = root().join("cli/tests/lanes/tasks.c");
    for compiler in ["gcc", "clang-19"].into_iter().filter(|one| *one == "gcc" || has_openmp_of_clang()) {
        let openmp = if compiler == "gcc" { "-fopenmp" } else { "-fopenmp=libomp" };
        for (way, level) in ways.iter().flat_map(|way| [(way, "-O0"), (way, "-O2")]) {
            let define = format!("-D{way}");
            let built = Command::new(compiler).args([openmp, level, "-g", &define, "-o", &program]).arg(&source);
            assert!(built.status().unwrap().success());
            for threads in [1, 4] {
                let printed = traced(&program, &trace, threads);
                let (lanes, withheld) = turns(&trace, Lanes::Tasks, Region::Auto);
                let about = format!("{way} {compiler} {level} {threads}");
                assert_eq!(withheld, None, "{about}");
                see(&format!("{compiler} {level}"), &about, lanes, printed);
            }
        }
    }
}
