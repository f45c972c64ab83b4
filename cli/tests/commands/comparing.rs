//! `lockstep diff` and `lockstep check`: what changed, and what fell below.

use std::path::Path;

use crate::support::{build, root, run, succeed};
use serde_json::Value;

/// FFT with 16 threads, traced once for the benches: 86.6% under minsp-pc.
fn fft() -> String {
    root().join("replay/benches/fft-p16-m12.trace.bin").to_str().unwrap().to_owned()
}

fn rows(folder: &Path, name: &str, arguments: &[&str]) -> String {
    let path = folder.join(name).to_str().unwrap().to_owned();
    succeed("replay", &[&["--csv", &path], arguments, &[&fft()]].concat());
    path
}

/// A trace of the micro program `join_before_arm` with so many lanes.
pub(crate) fn join_before_arm(folder: &Path, lanes: &str) -> String {
    let (program, trace) = (folder.join("program"), folder.join("trace.bin").to_str().unwrap().to_owned());
    build(&root().join("workloads/micro/join_before_arm.c"), &program, &[]);
    succeed("trace", &["-o", &trace, program.to_str().unwrap(), "-p", lanes]);
    trace
}

#[test]
fn of_rows_each_heuristic_is_compared_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let before = rows(folder.path(), "before.csv", &["--heuristic", "minpc,lee,long"]);
    let after = rows(folder.path(), "after.csv", &["--heuristic", "long,minpc", "--warp-size", "8"]);
    let json: Value = serde_json::from_str(&succeed("lockstep", &["diff", "--json", &before, &after])).unwrap();
    let of = |name: &str| {
        let row = json["rows"].as_array().unwrap().iter().find(|r| r["heuristic"] == name).unwrap();
        row["changes"]["fetches"].clone()
    };
    for name in ["minpc", "long:n=4"] {
        let fetches = of(name);
        let [was, is] = ["before", "after"].map(|f| fetches[f].as_f64().unwrap());
        assert!(is > was && (fetches["percent"].as_f64().unwrap() - 100.0 * (is - was) / was).abs() < 1e-9);
    }
    let notes = json["notes"].to_string();
    assert!(notes.contains("lee: only in the first file"), "{notes}");
    assert!(notes.contains("warp_size was") && notes.contains("not replayed alike"), "{notes}");
    let table = succeed("lockstep", &["diff", &before, &before]);
    assert!(table.contains("minpc") && table.contains("simt_efficiency") && table.contains("+0.0%"), "{table}");
    assert!(!table.contains("new"), "{table}");
}

#[test]
fn of_traces_the_lines_that_changed_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    build(&root().join("workloads/fft/fft.c"), &program, &[]);
    let traced = |name: &str, threads: &str| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        succeed("trace", &["-o", &path, program.to_str().unwrap(), "-m", "6", "-p", threads]);
        path
    };
    let (two, four) = (traced("two.bin", "2"), traced("four.bin", "4"));
    let diff = succeed("lockstep", &["diff", &two, &four]);
    let unlike = run("lockstep", &["diff", &two, &four]);
    let said = String::from_utf8_lossy(&unlike.stderr).into_owned();
    assert!(said.contains("different inputs: -m 6 -p 2 before, -m 6 -p 4 after"), "{said}");
    assert!(said.contains("different numbers of lanes: 2 before, 4 after"), "{said}");
    assert!(diff.contains(" worse") && diff.contains(" better"), "{diff}");
    assert!(diff.contains("fft.c:") && diff.contains("lost_slots") && diff.contains("parted_slots"), "{diff}");
    let json = |before: &str, after: &str| -> Value {
        serde_json::from_str(&succeed("lockstep", &["diff", "--json", before, after])).unwrap()
    };
    // All lines together are what a replay of each says.
    let all = &json(&two, &four)["all"];
    for (trace, side) in [(&two, "before"), (&four, "after")] {
        let replayed: Value = serde_json::from_str(&succeed("replay", &["--json", trace])).unwrap();
        for name in ["fetches", "thread_instructions", "simt_efficiency", "lost_slots"] {
            assert_eq!(all[name][side].as_f64(), replayed["results"][0][name].as_f64(), "{name} of {trace}");
        }
        assert_eq!(all["gpu_efficiency"][side], replayed["verdict"]["efficiency"], "{trace}");
    }
    assert!(diff.contains("(all)"), "{diff}");
    let same = json(&two, &two);
    assert_eq!([&same["rows"], &same["notes"]], [&Value::Array(Vec::new()); 2]);
}

#[test]
fn of_traces_the_model_of_the_machine_is_taken_where_none_is_named() {
    let folders = [32, 40].map(|lanes| (tempfile::tempdir().unwrap(), lanes.to_string()));
    let [before, after] = folders.each_ref().map(|(folder, lanes)| join_before_arm(folder.path(), lanes));
    let diff = |options: &[&str]| succeed("lockstep", &[&["diff", "--json"], options, &[&before, &after]].concat());
    let json = succeed("replay", &["--json", &after]);
    let model = serde_json::from_str::<Value>(&json).unwrap()["results"][0]["heuristic"].take();
    let model = model.as_str().unwrap();
    // The machine's own figures are not those of a model that is named.
    let totals = |json: String| {
        let mut all: Value = serde_json::from_str(&json).unwrap();
        all["all"].as_object_mut().unwrap().retain(|name, _| !name.starts_with("gpu_"));
        all
    };
    assert_eq!(totals(diff(&[])), totals(diff(&["--model", model, "--warp-size", "32"])));
    assert_ne!(diff(&[]), diff(&["--model", model]), "a model that is named has all lanes in one warp");
    assert_ne!(diff(&[]), diff(&["--model", "minsp-pc", "--warp-size", "32"]));
}

/// A chart that compares is not drawn of one thing alone.
#[test]
fn charts_of_several_programs_are_refused_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let csv = rows(folder.path(), "rows.csv", &["--heuristic", "minpc,lee"]);
    let chart = folder.path().join("chart.svg");
    for (kind, needs) in [("speedup", "two traces"), ("threads", "numbers of threads"), ("width", "warp sizes")] {
        let output = run("lockstep", &["plot", &csv, "--kind", kind, "-o", chart.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(needs) && said.contains(kind) && !chart.exists(), "{said}");
    }
}

#[test]
fn builds_that_print_different_things_fail_with_a_status_of_their_own() {
    let compare = |before: &str, after: &str| {
        let words = ["diff", "--region", "all", "-H", "minpc", before, after, "--", "a"];
        run("lockstep", &words)
    };
    let output = compare("/bin/echo", "/bin/basename");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let output = compare("/bin/echo", "/bin/true");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(9), "{said}");
    assert!(said.contains("print different output"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("minpc"), "the table is there all the same");
}

#[test]
fn times_that_builds_print_do_not_make_them_different() {
    let dates = |format: &str| {
        let words = ["diff", "--region", "all", "-H", "minpc", "/bin/date", "/bin/date", "--", format];
        let output = run("lockstep", &words);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = dates("+sum 5%n%N");
    assert!(status == Some(0) && said.contains("print the same, but for 1 lines"), "{said}");
    let (status, said) = dates("+%N");
    assert!(status == Some(0) && said.contains("is not known"), "{said}");
}

#[test]
fn rows_are_not_compared_with_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let csv = rows(folder.path(), "rows.csv", &[]);
    let output = run("lockstep", &["diff", &csv, &fft()]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("two traces"));
    assert_eq!(run("lockstep", &["diff", &csv, "no-such.csv"]).status.code(), Some(3));
}

#[test]
fn a_trace_that_is_efficient_enough_passes_and_another_does_not() {
    let check = |least: &str| run("lockstep", &["check", "--model", "minsp-pc", "--min-efficiency", least, &fft()]);
    let passes = check("0.8");
    assert_eq!(passes.status.code(), Some(0), "{}", String::from_utf8_lossy(&passes.stderr));
    let fails = check("0.9");
    let said = String::from_utf8_lossy(&fails.stdout);
    assert_eq!(fails.status.code(), Some(7), "{said}");
    assert!(said.contains("below the least of 90.000%") && said.contains("loop trip count"), "{said}");
    assert!(said.contains("transpose_patch"), "{said}");
    assert_eq!(check("1.5").status.code(), Some(2));
}

#[test]
fn a_check_under_a_model_that_deadlocks_is_no_pass() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    build(&root().join("workloads/micro/lock_contention.c"), &program, &[]);
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, program.to_str().unwrap(), "-p", "4"]);
    let arguments = ["check", "--region", "kernel", "--model", "ipdom", "--min-efficiency", "0", trace];
    let output = run("lockstep", &arguments);
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stdout).contains("ipdom:placement=binary,predicate=0 deadlocks"));
}

/// Threads that take pieces of different work from a common counter, one far more than the others.
const DEALT_BY_CHANCE: &str = "#include <pthread.h>\nstatic pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\nstatic \
    int next;\nstatic long total[8];\nstatic void *work(void *a) {\n    for (;;) {\n        pthread_mutex_lock(&lock);\n\
    int mine = next++;\n        pthread_mutex_unlock(&lock);\n        if (mine >= 64) return 0;\n        for (long i = \
    0; i < (mine % 16 ? 200 : 40000); i++) { total[(long)a] += i ^ mine; __asm__ volatile(\"\" ::: \"memory\"); }\n    \
    }\n}\nint main(void) {\n    pthread_t t[8];\n    for (long i = 0; i < 8; i++) pthread_create(t + i, 0, work, (void \
    *)i);\n    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);\n}\n";

#[test]
fn what_compares_and_checks_says_where_a_figure_may_be_chance() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program, trace) = (folder.path().join("q.c"), folder.path().join("q"), folder.path().join("t.bin"));
    std::fs::write(&source, DEALT_BY_CHANCE).unwrap();
    build(&source, &program, &[]);
    let (program, trace) = (program.to_str().unwrap(), trace.to_str().unwrap());
    succeed("trace", &["-o", trace, program]);
    for words in [&["diff", program, program][..], &["diff", trace, trace], &["check", "--min-efficiency", "0", trace]]
    {
        let told = run("lockstep", words);
        assert!(String::from_utf8_lossy(&told.stderr).contains("may be chance"), "{words:?}: {told:?}");
    }
}
