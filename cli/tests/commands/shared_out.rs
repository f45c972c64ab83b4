//! Small programs of which iterations were once not the lanes: that they are, or that it is said that they may not be.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{SLEEP_SOON, has_openmp_of_clang, root, succeed};

/// A program, how many iterations its loop has over all of its forks, and the efficiency that they have.
const PROGRAMS: [(&str, u64, [f64; 2]); 20] = [
    // A breadth-first search: the inner loop's branch has the outer one's line.
    ("bfsl", 8192, [0.15, 0.21]),
    ("row3", 4096, [0.40, 0.44]),
    ("inner_on_one_line", 2048, [0.99, 1.0]),
    // Ends with a jump to the runtime.
    ("red2", 2048, [0.99, 1.0]),
    // In a target region.
    ("tg", 4096, [0.3, 0.55]),
    // clang compares four keys at a time and then stores one by one.
    ("un", 4096, [0.8, 1.0]),
    ("vectorised", 2048, [0.99, 1.0]),
    // gcc runs each thread's first iteration in front of the loop.
    ("col", 4096, [0.95, 1.0]),
    // clang's reduction tries again until no other thread was there.
    // Lanes that leave the inner loop one after another are each issued an instruction to wait.
    ("rc", 1024, [0.47, 0.54]),
    // Calls a mathematical function, which parts no lanes of a GPU.
    ("mth", 4096, [0.99, 1.0]),
    // No iteration finds anything to do, or writes anything.
    ("idle", 4096, [0.99, 1.0]),
    ("sums", 90_000, [0.99, 1.0]),
    // The region inside of each iteration is of one thread.
    ("inner_alone", 512, [0.64, 0.70]),
    // Reads nothing where there is nothing to do.
    ("outside", 4096, [0.99, 1.0]),
    // Turns begin by counting, and jump to where the first iteration begins.
    ("few", 128, [0.99, 1.0]),
    // One thread adds up what the others have found.
    ("summed", 4096, [0.86, 0.91]),
    // A loop that begins at the thread's number and ends where the others' do is not shared.
    ("strided", 128, [0.99, 1.0]),
    // That one thread does more is no test of whether there are iterations.
    ("master", 1024, [0.99, 1.0]),
    // No thread goes round the loop whose turns are the iterations, but round one in it that ends a block further on.
    // Two lanes are a sixteenth of a warp.
    ("blocks", 2, [0.05, 0.07]),
    // Each thread goes through what those before it and behind it have counted: as many turns as there are threads.
    ("counted", 8192, [0.99, 1.0]),
];

/// Those whose code without optimisation once had other lanes.
const UNLIKE_PLAIN: [&str; 3] = ["outside", "strided", "counted"];

fn source(program: &str) -> PathBuf {
    root().join(format!("cli/tests/lanes/shared_out/{program}.c"))
}

/// A trace of a program that is built so.
fn traced(folder: &Path, program: &str, compiler: &[&str]) -> String {
    traced_with(folder, program, compiler, &[])
}

/// The same, recorded with these options.
fn traced_with(folder: &Path, program: &str, compiler: &[&str], options: &[&str]) -> String {
    let [binary, trace] = ["p", "p.bin"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let source = source(program);
    let mut command = Command::new(compiler[0]);
    let built = command.args(&compiler[1..]).args(["-g", "-w", "-o", &binary]).arg(source).arg("-lm").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let words = [&[env!("CARGO_BIN_EXE_trace")], options, &["-o", &trace, &binary]].concat();
    let traced = Command::new("env").arg("OMP_NUM_THREADS=4").args(SLEEP_SOON).args(words).output().unwrap();
    assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
    trace
}

/// What `replay` says of these lanes.
fn replayed(trace: &str, lanes: &[&str]) -> Value {
    serde_json::from_str(&succeed("replay", &[lanes, &["--json", trace]].concat())).unwrap()
}

const ITERATIONS: [&str; 2] = ["--lanes", "iterations"];

fn assert_right(said: &Value, (program, lanes, [least, most]): (&str, u64, [f64; 2])) {
    assert_eq!(said["results"][0]["lanes"].as_u64(), Some(lanes), "{program}");
    assert_eq!(said["verdict"]["holds"], true, "{program}: {}", said["verdict"]);
    let efficiency = said["machine"]["efficiency"].as_f64().unwrap();
    assert!((least..=most).contains(&efficiency), "{program}: {efficiency}");
}

fn assert_withheld(said: &Value, program: &str) {
    assert_eq!(said["verdict"]["holds"], false, "{program}");
    let headline = said["verdict"]["headline"].as_str().unwrap();
    assert!(headline.starts_with("withheld: ") && headline.contains("--mark-iterations"), "{program}: {headline}");
}

fn assert_left_out(said: &Value) {
    let warning = said["verdict"]["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("left out: ") && warning.contains("--mark-iterations"), "{warning}");
}

/// The place of the program's first pragma of a loop.
fn pragma(program: &str) -> Option<String> {
    let text = std::fs::read_to_string(source(program)).unwrap();
    let line = text.lines().position(|line| line.contains("#pragma omp") && line.contains("for"))?;
    Some(format!("{program}.c:{}", line + 1))
}

#[test]
fn each_iteration_by_gcc_is_a_lane_and_the_line_of_the_pragma_names_its_loop() {
    let folder = tempfile::tempdir().unwrap();
    for of in PROGRAMS {
        let trace = traced(folder.path(), of.0, &["gcc", "-fopenmp", "-O2"]);
        assert_right(&replayed(&trace, &ITERATIONS), of);
        if let Some(place) = pragma(of.0) {
            // Which lanes there are is the same under every model.
            let said = replayed(&trace, &["-H", "minpc", "--loop", &place]);
            assert_eq!(said["results"][0]["lanes"].as_u64(), Some(of.1), "{place}");
        }
    }
    for (program, lanes, _) in PROGRAMS.iter().filter(|of| UNLIKE_PLAIN.contains(&of.0)) {
        let plain = replayed(&traced(folder.path(), program, &["gcc", "-fopenmp", "-O0"]), &ITERATIONS);
        assert_eq!(plain["results"][0]["lanes"].as_u64(), Some(*lanes), "{program} without optimisation");
    }
    let vectorised = traced(folder.path(), "vectorised", &["gcc", "-fopenmp", "-O3"]);
    assert_withheld(&replayed(&vectorised, &ITERATIONS), "vectorised");
}

#[test]
fn each_iteration_by_clang_is_a_lane() {
    if !has_openmp_of_clang() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for of in PROGRAMS {
        let trace = traced(folder.path(), of.0, &["clang-19", "-fopenmp=libomp", "-O2"]);
        let said = replayed(&trace, &ITERATIONS);
        assert_right(&said, of);
    }
}

/// How a loop is built that gets unrolled, beside the same without.
const UNROLLED: [(&[&str], &[&str]); 6] = [
    (&["gcc", "-fopenmp", "-O2"], &["-funroll-loops"]),
    (&["gcc", "-fopenmp", "-O3"], &["-funroll-loops"]),
    (&["gcc", "-fopenmp", "-O2", "-DSCHEDULE=schedule(dynamic, 61)"], &["-funroll-loops"]),
    (&["gcc", "-fopenmp", "-O2", "-DSCHEDULE=schedule(static, 64)"], &["-funroll-loops"]),
    (&["clang-19", "-fopenmp=libomp", "-O2"], &["-DUNROLL=_Pragma(\"clang loop unroll_count(4)\")"]),
    (
        &["clang-19", "-fopenmp=libomp", "-O2", "-DSCHEDULE=schedule(guided, 61)"],
        &["-DUNROLL=_Pragma(\"clang loop unroll_count(3)\")"],
    ),
];

#[test]
fn copies_of_an_unrolled_body_are_lanes_that_run_as_one() {
    let folder = tempfile::tempdir().unwrap();
    for (plain, more) in UNROLLED.into_iter().filter(|(plain, _)| plain[0] == "gcc" || has_openmp_of_clang()) {
        let said = [plain.to_vec(), [plain, more].concat()].map(|words| {
            let said = replayed(&traced(folder.path(), "copies", &words), &ITERATIONS);
            assert_eq!(said["results"][0]["lanes"], 4099, "{words:?}: {}", said["verdict"]["headline"]);
            assert_eq!(said["verdict"]["holds"], true, "{words:?}: {}", said["verdict"]["headline"]);
            said
        });
        let [plain, unrolled] = said.each_ref().map(|said| said["verdict"]["efficiency"].as_f64().unwrap());
        assert!((plain - unrolled).abs() < 0.03, "{more:?}: {plain} and {unrolled}");
    }
}

#[test]
fn of_iterations_that_run_straight_through_each_is_a_lane_however_many_a_turn_has() {
    let folder = tempfile::tempdir().unwrap();
    let (clang, gcc) = (["clang-19", "-fopenmp=libomp", "-O2"], ["gcc", "-fopenmp", "-O2", "-funroll-loops"]);
    let schedules = ["-DSCHEDULE=", "-DSCHEDULE=schedule(dynamic, 61)", "-DSCHEDULE=schedule(guided)"];
    for kernel in 0..7 {
        let define = format!("-DK={kernel}");
        let schedule = schedules[kernel % 3];
        // The runtime does not say how many iterations gcc's static loops have, and vectors hide it.
        let has_vectors = kernel == 6;
        let builds = [(&clang[..], true), (&gcc[..], !has_vectors)];
        for (build, is_known) in builds.into_iter().filter(|(build, _)| build[0] == "gcc" || has_openmp_of_clang()) {
            for (size, iterations) in [("-DN=4096", 4096), ("-DN=4003", 4003)] {
                let words = [build, &[&define, size, schedule]].concat();
                let said = replayed(&traced(folder.path(), "straight", &words), &ITERATIONS);
                if is_known {
                    assert_right(&said, ("straight", iterations, [0.95, 1.0]));
                } else {
                    assert_withheld(&said, "straight");
                }
            }
        }
    }
}

#[test]
fn a_small_loop_that_is_not_sure_is_left_out_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let half = [0.48, 0.56];
    let gcc = traced(folder.path(), "beside", &["gcc", "-fopenmp", "-O2"]);
    assert_right(&replayed(&gcc, &ITERATIONS), ("beside", 5120, half));
    if has_openmp_of_clang() {
        let clang = traced(folder.path(), "beside", &["clang-19", "-fopenmp=libomp", "-O2"]);
        let said = replayed(&clang, &ITERATIONS);
        assert_right(&said, ("beside", 1024, half));
        assert_left_out(&said);
    }
    // What is left over of vectors' loop in front of a barrier says nothing of the loop behind it.
    let said = replayed(&traced(folder.path(), "refilled", &["gcc", "-fopenmp", "-O3"]), &ITERATIONS);
    assert_right(&said, ("refilled", 4012, half));
    assert_left_out(&said);
}

#[test]
fn chunks_that_became_one_call_each_are_no_iterations() {
    let folder = tempfile::tempdir().unwrap();
    let said = replayed(&traced(folder.path(), "cleared", &["gcc", "-fopenmp", "-O2"]), &ITERATIONS);
    assert_right(&said, ("cleared", 124, [0.95, 1.0]));
    assert_left_out(&said);
}

#[test]
fn copies_of_a_threads_first_iterations_are_lanes() {
    let folder = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O2", "-O3"] {
        let said = replayed(&traced(folder.path(), "firsts", &["gcc", "-fopenmp", level]), &ITERATIONS);
        assert_eq!((&said["results"][0]["lanes"], &said["verdict"]["holds"]), (&130.into(), &true.into()), "{said}");
    }
}

#[test]
fn inner_loops_by_the_iterations_number_are_no_chunks() {
    let folder = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        let said = replayed(&traced(folder.path(), "triangles", &["gcc", "-fopenmp", level]), &ITERATIONS);
        assert_eq!((&said["results"][0]["lanes"], &said["verdict"]["holds"]), (&200.into(), &true.into()), "{said}");
    }
    let said = replayed(&traced(folder.path(), "triangles", &["gcc", "-fopenmp", "-O2", "-DFEW"]), &ITERATIONS);
    assert_withheld(&said, "triangles");
    let headline = said["verdict"]["headline"].as_str().unwrap();
    assert!(headline.contains("its turns may be parts of one; trace the program with fewer threads"), "{headline}");
}

#[test]
fn iterations_of_which_the_compiler_made_no_loop_are_missed_beside_those_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let said = replayed(&traced(folder.path(), "rungs", &["gcc", "-fopenmp", "-O2"]), &ITERATIONS);
    assert_eq!((&said["results"][0]["lanes"], &said["verdict"]["holds"]), (&20.into(), &true.into()), "{said}");
    let said = replayed(&traced(folder.path(), "rungs", &["gcc", "-fopenmp", "-O3"]), &ITERATIONS);
    assert_withheld(&said, "rungs");
    let headline = said["verdict"]["headline"].as_str().unwrap();
    assert!(headline.contains("one behind the other in no loop"), "{headline}");
}

#[test]
fn a_recording_that_ends_in_the_loop_has_its_iterations() {
    let folder = tempfile::tempdir().unwrap();
    let (clang, gcc) = (["clang-19", "-fopenmp=libomp", "-O2"], ["gcc", "-fopenmp", "-O2"]);
    let compilers = [(&gcc, true), (&clang, has_openmp_of_clang())];
    for compiler in compilers.into_iter().filter(|(_, is_there)| *is_there).map(|(compiler, _)| compiler) {
        for schedule in ["-DSCHEDULE=", "-DSCHEDULE=schedule(dynamic, 61)"] {
            let words = [&compiler[..], &[schedule]].concat();
            let trace = traced_with(folder.path(), "rows_on", &words, &["--limit", "10M"]);
            let said = replayed(&trace, &[&ITERATIONS[..], &["-H", "minpc"]].concat());
            // A row is some 6,000 instructions.
            let lanes = said["results"][0]["lanes"].as_u64().unwrap();
            assert!((1000..2000).contains(&lanes), "{words:?}: {lanes}");
            let said = replayed(&trace, &ITERATIONS);
            assert_eq!(said["verdict"]["holds"], true, "{words:?}: {}", said["verdict"]);
            let warnings = said["verdict"]["warnings"].as_array().unwrap();
            let ended = "the recording ended before the program did (the limit of 10000000 instructions was reached)";
            assert!(warnings.iter().any(|one| one.as_str().unwrap().starts_with(ended)), "{words:?}: {warnings:?}");
        }
    }
}

#[test]
fn turns_in_which_threads_wait_for_each_other_are_no_lanes_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let said = replayed(&traced(folder.path(), "waits", &["gcc", "-fopenmp", "-O2"]), &ITERATIONS);
    let verdict = said["verdict"]["headline"].to_string();
    assert!(verdict.contains("withheld: threads wait for each other in the turns of the loop"), "{verdict}");
    assert!(!verdict.contains("vectorised"), "{verdict}");
    assert_eq!(said["results"][0]["lanes"], 64, "{verdict}");
}

#[test]
fn sines_beside_the_lanes_are_no_part_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let said = replayed(&traced(folder.path(), "little", &["gcc", "-fopenmp", "-O2"]), &ITERATIONS);
    assert_right(&said, ("little", 256, [0.9, 1.0]));
    let headline = said["verdict"]["headline"].as_str().unwrap();
    assert!(headline.contains("they are only 0.0"), "{headline}");
}
