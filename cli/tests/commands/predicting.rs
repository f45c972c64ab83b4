//! `replay --predict`: what waiting for other lanes at a place would buy.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{root, run, succeed};

/// A trace of `lookups` with 16 threads.
fn traced(folder: &Path) -> String {
    let (program, trace) = (folder.join("lookups"), folder.join("trace.bin"));
    let source = root().join("workloads/lookups/lookups.c");
    let built = Command::new("gcc").args(["-O2", "-g", "-pthread", "-o"]).args([&program, &source]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let trace = trace.to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap(), "-p", "16"]);
    trace
}

fn line_of(text: &str) -> usize {
    let source = std::fs::read_to_string(root().join("workloads/lookups/lookups.c")).unwrap();
    1 + source.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn lanes_that_are_collected_in_the_inner_loop_share_twice_the_fetches() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, body) = (traced(folder.path()), line_of("sum += contribution"));
    let fetches = |place: &str| -> Vec<u64> {
        let arguments = ["--predict", place, "--check", "--json", &trace];
        let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
        let results = json["results"].as_array().unwrap();
        let names: Vec<bool> = results.iter().map(|r| r["heuristic"].as_str().unwrap().contains(" at ")).collect();
        assert_eq!(names, [false, true]);
        results.iter().map(|result| result["fetches"].as_u64().unwrap()).collect()
    };
    let in_loop = fetches(&format!("lookups.c:{body}"));
    assert!(in_loop[0] > 2 * in_loop[1], "{in_loop:?}");
    // Waiting for a few of 16 lanes buys less here: getting a new lookup is cheap.
    let few = fetches(&format!("lookups.c:{body},threshold=4"));
    assert!(in_loop[1] < few[1], "{few:?}");
    // Behind the loop lanes meet as they are.
    let behind = fetches(&format!("lookups.c:{}", line_of("sums[lookup] = sum")));
    assert!(behind[1] > in_loop[1], "{behind:?}");
}

#[test]
fn the_inner_loop_is_suggested_with_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    let json: Value = serde_json::from_str(&succeed("lockstep", &["suggest", "--json", &trace])).unwrap();
    let best = &json["places"][0];
    // The function of the body was inlined, and its first instruction is the loop's.
    let place = best["place"].as_str().unwrap();
    let body =
        ["return 1.0 /", "double distance", "sum += contribution"].map(|text| format!("lookups.c:{}", line_of(text)));
    assert!(body.iter().any(|line| line == place), "{json}");
    assert_eq!(best["pattern"], "loop merge");
    let before = json["before"]["fetches"].as_u64().unwrap();
    assert!(2 * best["trials"][0]["fetches"].as_u64().unwrap() < before, "{json}");
    // Each trial is what --predict shows, and the best comes first.
    let plain: Value = serde_json::from_str(&succeed("replay", &["--json", &trace])).unwrap();
    let address = best["address"].as_str().unwrap();
    let trials = best["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4, "all lanes, 8, 4 and 2: {json}");
    // In the GPU's instructions, as those of the verdict.
    assert!(trials.is_sorted_by_key(|trial| trial["issued"].as_u64()));
    for trial in trials {
        let threshold = trial["threshold"].as_u64().map_or_else(String::new, |lanes| format!(",threshold={lanes}"));
        let arguments = ["--predict", &format!("{address}{threshold}"), "--check", "--json", &trace];
        let shown: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
        assert_eq!(shown["results"][0]["fetches"], before);
        assert_eq!(shown["results"][1]["fetches"], trial["fetches"]);
        assert_eq!(shown["results"][1]["gpu_issued"], trial["issued"]);
        assert_eq!(shown["verdict"]["heuristic"], json["heuristic"], "the model of the verdict");
        assert_eq!(shown["verdict"], plain["verdict"], "which is about the lanes without it");
    }
    // So does the page, with the same numbers.
    let page = folder.path().join("report.html");
    succeed("lockstep", &["report", "-o", page.to_str().unwrap(), "--models", "minpc", &trace]);
    let program = &crate::page::data(&page)["programs"][0];
    let (collecting, shown) = (&program["collecting"], &program["collecting"]["places"][0]);
    assert_eq!(collecting["before"], json["before"]["issued"]);
    assert_eq!(shown["predict"], address);
    let of_page = |name: &str| shown[name].as_u64().unwrap();
    assert_eq!(of_page("fetches") + of_page("barrier_operations"), trials[0]["issued"]);
    assert_eq!((&collecting["model"], &collecting["unit"]), (&"hanoi:predicate=4".into(), &json["instructions"]));
    assert_eq!(shown["expected"].as_f64(), best["could_save_at_most"].as_f64().map(f64::round));
    assert_eq!(program["lines"][shown["line"].as_u64().unwrap() as usize]["label"], place);
    // The table names the same place, and the way to look at it.
    let table = succeed("lockstep", &["suggest", "--threshold", "3,5", &trace]);
    assert!(table.lines().nth(1).unwrap().starts_with(place), "{table}");
    assert!(table.contains(&format!("replay --predict {address}")), "{table}");
    let none = run("lockstep", &["suggest", "--threshold", "0", &trace]);
    assert!(!none.status.success() && String::from_utf8_lossy(&none.stderr).contains("--threshold"));
}

/// `lookups` with marks, as its own source has none.
fn marked(folder: &Path) -> String {
    let source = std::fs::read_to_string(root().join("workloads/lookups/lookups.c")).unwrap();
    let (outer, body) = ("    for (long lookup = first;", "            sum += contribution");
    let marked = source
        .replace(outer, &format!("    LOCKSTEP_PREDICT(inner);\n{outer}"))
        .replace(body, &format!("            LOCKSTEP_RECONVERGE(inner);\n{body}"));
    assert!(marked.matches("(inner);").count() == 2, "{marked}");
    let file = folder.join("marked.c");
    std::fs::write(&file, format!("#include <lockstep.h>\n{marked}")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Builds with the header and that of the workloads.
fn built(compiler: &str, options: &[&str], source: &str, to: &Path) {
    let includes = [root().join("include"), root().join("workloads/lookups")];
    let mut command = Command::new(compiler);
    includes.iter().for_each(|folder| _ = command.arg("-I").arg(folder));
    let output = command.args(["-g", "-pthread"]).args(options).arg(source).arg("-o").arg(to).output().unwrap();
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_marks_of_a_program_collect_lanes_where_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let source = marked(folder.path());
    let (program, trace) = (folder.path().join("marked"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    for (compiler, options) in [
        ("gcc", &["-O2"][..]),
        ("clang-19", &["-O2"]),
        ("gcc", &["-O0"]),
        ("clang-19", &["-O0", "-no-pie", "-fuse-ld=lld-19"]),
    ] {
        built(compiler, options, &source, &program);
        succeed("trace", &["-o", trace, program.to_str().unwrap(), "-p", "16"]);
        let json: Value =
            serde_json::from_str(&succeed("replay", &["--predict", "marks", "--check", "--json", trace])).unwrap();
        let results = json["results"].as_array().unwrap();
        let fetches: Vec<u64> = results.iter().map(|result| result["fetches"].as_u64().unwrap()).collect();
        assert!(results[1]["heuristic"].as_str().unwrap().ends_with(" at marks"), "{results:?}");
        assert!(fetches[0] > 2 * fetches[1], "{compiler} {options:?}: {fetches:?}");
    }
    // One meeting for each turn of a loop that stands for several.
    built("gcc", &["-O2", "-funroll-all-loops", "--param=max-unroll-times=4"], &source, &program);
    succeed("trace", &["-o", trace, program.to_str().unwrap(), "-p", "16"]);
    let output = run("replay", &["--predict", "marks", "--json", trace]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("the compiler copied the place to")
            && said.contains(
                "once for the iterations that were merged \
             into one"
            ),
        "{said}"
    );
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let fetches = |i: usize| json["results"][i]["fetches"].as_u64().unwrap();
    assert!(fetches(0) > fetches(1), "{} {}", fetches(0), fetches(1));
}

#[test]
fn marks_make_no_code_where_nothing_is_optimised() {
    let folder = tempfile::tempdir().unwrap();
    let source = marked(folder.path());
    for compiler in ["gcc", "clang-19"] {
        let code = |name: &str, options: &[&str]| {
            let (object, code) = (folder.path().join(name), folder.path().join("code"));
            built(compiler, &[options, &["-c", "-O0", "-g0"]].concat(), &source, &object);
            let copied = Command::new("objcopy").args(["-O", "binary", "-j", ".text"]).args([&object, &code]).status();
            assert!(copied.unwrap().success());
            std::fs::read(&code).unwrap()
        };
        let (with, without) = (code("with.o", &[]), code("without.o", &["-DLOCKSTEP_NO_MARKS"]));
        assert!(!with.is_empty() && with == without, "{compiler}: {} {}", with.len(), without.len());
    }
}

#[test]
fn what_cannot_be_predicted_is_named_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    for (arguments, expected) in [
        (["-H", "barrier", "--predict", "lookups.c:1"], "no lane ran code there"),
        (["-H", "barrier", "--predict", "0x1"], "no lane ran code there"),
        (["-H", "ipdom", "--predict", "lookups.c:43"], "only hanoi, and barrier with meet=barriers, collect"),
        (
            ["-H", "barrier:meet=anywhere", "--predict", "lookups.c:43"],
            "only hanoi, and barrier with meet=barriers, collect",
        ),
        (
            ["-H", "barrier", "--predict", "lookups"],
            "a line (barrier.c:12) or an address (0x401136), call:FUNCTION, or marks",
        ),
        (["-H", "barrier", "--predict", "call:nobody"], "entered a function of that name"),
        (["-H", "barrier", "--predict", "call:worker"], "is not called anywhere"),
        (["-H", "barrier", "--predict", "marks"], "no binary of the program has a pair LOCKSTEP_PREDICT"),
    ] {
        let output = run("replay", &[&arguments[..], &[&trace]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn lanes_that_join_in_the_outer_turn_are_collected_within_it_only() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(marked(folder.path())).unwrap();
    let begins = "    LOCKSTEP_PREDICT(inner);\n";
    let inner = "        for (int nuclide = 0;";
    let of_turn = whole.replace(begins, "").replace(inner, &format!("    {begins}{inner}"));
    let source = folder.path().join("turn.c");
    std::fs::write(&source, &of_turn).unwrap();
    let (program, trace) = (folder.path().join("marked"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    built("gcc", &["-O2"], source.to_str().unwrap(), &program);
    succeed("trace", &["-o", trace, program.to_str().unwrap(), "-p", "16"]);
    let fetches = fetches(trace, "marks");
    // They wait for each other behind the inner loop, as without a word.
    assert!(fetches[1] as f64 > 0.95 * fetches[0] as f64, "{fetches:?}");
}

/// Fetches without a prediction and with it, which the checker has looked at.
fn fetches(trace: &str, prediction: &str) -> [u64; 2] {
    let arguments = ["--predict", prediction, "--check", "--json", trace];
    let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
    [0, 1].map(|i| json["results"][i]["fetches"].as_u64().unwrap())
}

/// Two sides of a branch that each call `shade`, with arguments of their own.
const CALLS: &str = r#"
#include <lockstep.h>
#include <pthread.h>
#include <stdio.h>

#if defined(__clang__) || defined(__cplusplus)
LOCKSTEP_APART
#endif
static double shade(double at, int steps) {
    double sum = at;
    for (int i = 0; i < steps; i++)
        sum += 1.0 / (sum + i);
    return sum;
}

static void *work(void *argument) {
    unsigned seed = (unsigned)(long)argument * 2654435761u;
    double sum = 0;
    BEFORE;
    for (int i = 0; i < 50; i++) {
        seed = seed * 1664525u + 1013904223u;
        IN_TURN;
        if (seed >> 31)
            sum += 2 * shade(sum, 20);
        else
            sum -= shade(sum + 1, 20) / 3;
    }
    *(volatile double *)&sum;
    return (void *)(long)(sum * 1000);
}

int main(void) {
    pthread_t threads[16];
    long all = 0;
    for (long i = 0; i < 16; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 16; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        all += (long)sum;
    }
    return printf("%ld\n", all) < 0;
}
"#;

#[test]
fn calls_on_both_sides_of_a_branch_are_run_together() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("calls.c");
    std::fs::write(&source, CALLS).unwrap();
    let (program, trace) = (folder.path().join("calls"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    for (compiler, language) in [("gcc", "c"), ("clang-19", "c"), ("g++", "c++"), ("clang++-19", "c++")] {
        let trace_with = |before: &str, in_turn: &str| {
            let marks = [format!("-DBEFORE={before}"), format!("-DIN_TURN={in_turn}")];
            let options = ["-O2", "-x", language, &marks[0], &marks[1]];
            built(compiler, &options, source.to_str().unwrap(), &program);
            succeed("trace", &["-o", trace, program.to_str().unwrap()]);
        };
        // In the turn both sides' calls are run together, where lanes meet at the end of each turn.
        trace_with("", "LOCKSTEP_PREDICT_FUNCTION(shade)");
        let arguments = ["-H", "barrier:placement=structured", "--predict", "marks", "--json", trace];
        let json: Value = serde_json::from_str(&succeed("replay", &arguments)).unwrap();
        let in_turn = [0, 1].map(|i| json["results"][i]["fetches"].as_u64().unwrap());
        assert!(in_turn[0] * 10 > in_turn[1] * 14, "{compiler}: {in_turn:?}");
        // Before the loop, those of all turns.
        trace_with("LOCKSTEP_PREDICT_FUNCTION(shade)", "");
        let marks = fetches(trace, "marks");
        assert_eq!(marks, fetches(trace, "call:shade"), "{compiler}");
        assert!(marks[0] * 10 > marks[1] * 14, "{compiler}: {marks:?}");
        // The operations, and that they are well.
        let table = succeed("lockstep", &["dump", "--barriers", "marks", trace]);
        assert!(["join", "wait, rejoin", "cancel"].iter().all(|name| table.contains(name)), "{table}");
        assert!(table.contains("shade") && table.contains("joins a barrier before"), "{table}");
    }
    let json: Value = serde_json::from_str(&succeed("lockstep", &["suggest", "--json", trace])).unwrap();
    let best = &json["places"][0];
    assert_eq!(best["pattern"], "common call", "{json}");
    let typed = best["predict"].as_str().unwrap();
    assert!(typed.starts_with("call:shade"), "{typed}");
    let all = best["trials"].as_array().unwrap().iter().find(|trial| trial["threshold"].is_null()).unwrap();
    assert_eq!(fetches(trace, typed)[1], all["fetches"].as_u64().unwrap());
    // Without the mark both calls are inlined, and there is nothing to wait at.
    built("gcc", &["-O2", "-DBEFORE=", "-DIN_TURN="], source.to_str().unwrap(), &program);
    succeed("trace", &["-o", trace, program.to_str().unwrap()]);
    let output = run("replay", &["--predict", "call:shade", trace]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("did not inline"));
}
