//! What someone meets who has read little: the right loop under the name that was shown, which figure is which, what
//! helped and what did not, and words for what went wrong.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{build, root, run, succeed};

/// Builds a program of this folder, or a text, and traces it.
fn traced(folder: &Path, source: &Path, name: &str, flags: &[&str]) -> String {
    let (program, trace) = (folder.join(name), folder.join(format!("{name}.bin")).to_str().unwrap().to_owned());
    build(source, &program, flags);
    succeed("trace", &["--memory", "-o", &trace, program.to_str().unwrap()]);
    trace
}

fn program(name: &str) -> std::path::PathBuf {
    root().join("cli/tests/programs").join(name)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(program: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(program, arguments)).unwrap()
}

/// The place of `column` in a parallel loop over `row` is that of the inner loop, optimised or not.
#[test]
fn a_loop_in_one_that_openmp_shares_out_is_found_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    // Each ten rows have 1 + 2 + ... + 10 trips.
    let (rows, trips) = (60, 6 * 55);
    for level in ["-O0", "-O1", "-O2"] {
        let trace = traced(folder.path(), &program("nested_loops.c"), "nested", &["-fopenmp", level]);
        let lanes = |place: &str| json("replay", &["--json", "--loop", place, &trace])["results"][0]["lanes"].as_u64();
        assert_eq!([lanes("nested_loops.c:13"), lanes("nested_loops.c:15")], [Some(rows), Some(trips)], "{level}");
        let table = succeed("replay", &["--loops", &trace]);
        let row = table.lines().find(|line| line.contains("nested_loops.c:15")).unwrap();
        assert!(row.contains(&format!(" {trips} ")), "{level}: {table}");
        // One thread may have run all of it, but OpenMP says that iterations may run side by side.
        let lines = succeed("replay", &["--lanes", "iterations", &trace]);
        assert!(!lines.contains("side by side"), "{level}: {lines}");
    }
}

#[test]
fn loops_of_one_line_are_told_apart_by_what_loop_takes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), &program("nested_loops.c"), "nested", &["-O1"]);
    let loops = json("replay", &["--loops", "--json", &trace]);
    let of_line: Vec<&Value> =
        loops.as_array().unwrap().iter().filter(|row| row["loop"] == "nested_loops.c:22").collect();
    assert_eq!(of_line.len(), 2, "{loops}");
    let table = succeed("replay", &["--loops", &trace]);
    for row in of_line {
        let header = row["header"].as_str().unwrap();
        assert!(table.contains(&format!("nested_loops.c:22 {header}")), "{table}");
        let replayed = json("replay", &["--json", "--loop", header, &trace]);
        assert_eq!(replayed["results"][0]["lanes"], row["lanes"], "{header}");
        // What the table says of a loop is what its verdict says.
        assert_eq!(replayed["verdict"]["efficiency"], row["efficiency"], "{header}");
    }
}

/// Each loop with a hundredth of the instructions has an efficiency.
#[test]
fn loops_behind_the_tenth_have_an_efficiency_too() {
    let folder = tempfile::tempdir().unwrap();
    let one = "    for (int i = 0; i < 400; i++)\n        a[i % 97] = a[i % 97] * 3 + i;\n";
    let text = format!("static int a[97];\nint main(void) {{\n{}    return a[5] == 1;\n}}\n", one.repeat(14));
    let source = folder.path().join("many.c");
    std::fs::write(&source, text).unwrap();
    let trace = traced(folder.path(), &source, "many", &["-O1"]);
    let loops = json("replay", &["--loops", "--json", &trace]);
    let own = loops.as_array().unwrap().iter().filter(|row| row["function"] == "main");
    assert_eq!(own.clone().count(), 14, "{loops}");
    // Its last warp is half full.
    assert!(own.clone().all(|row| row["efficiency"].as_f64() == Some(400.0 / 416.0)), "{loops}");
}

#[test]
fn variables_that_begin_as_zeros_are_named_wherever_in_them_a_lane_writes() {
    let folder = tempfile::tempdir().unwrap();
    for linkage in ["-pie", "-no-pie", "-static"] {
        let trace = traced(folder.path(), &program("nested_loops.c"), "nested", &["-O1", linkage]);
        let table = succeed("replay", &["--loop", "nested_loops.c:20", "--dependences", &trace]);
        assert!(table.contains("making counts (nested_loops.c:21) atomic"), "{linkage}: {table}");
    }
}

#[test]
fn where_lanes_finish_apart_behind_a_lock_the_advice_is_about_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), &program("number_then_work.c"), "number", &["-O1"]);
    let replayed = json("replay", &["--json", &trace]);
    let place = &replayed["verdict"]["places"][0];
    assert!(place["causes"].as_str().unwrap().starts_with("finished, lock"), "{place}");
    assert!(place["remedy"]["text"].as_str().unwrap().contains("make the lanes of a warp meet"), "{place}");
}

#[test]
fn two_figures_of_one_replay_are_explained_where_they_are_apart() {
    let folder = tempfile::tempdir().unwrap();
    let of_lock = traced(folder.path(), &program("number_then_work.c"), "number", &["-O1"]);
    let of_loop = traced(folder.path(), &program("nested_loops.c"), "nested", &["-fopenmp", "-O0"]);
    let asked: [&[&str]; 3] = [&[&of_lock], &["--locks", "simt", &of_lock], &["--lanes", "iterations", &of_loop]];
    let are_apart = asked.map(|words| {
        let table = succeed("replay", words);
        let replayed = json("replay", &[&["--json"], words].concat());
        let [of_verdict, of_table] = [&replayed["verdict"]["efficiency"], &replayed["results"][0]["simt_efficiency"]];
        let apart = (of_verdict.as_f64().unwrap() - of_table.as_f64().unwrap()).abs() >= 0.01;
        assert_eq!(table.contains("one replay, counted in two ways: "), apart, "{table}");
        apart
    });
    assert!(are_apart.contains(&true) && are_apart.contains(&false), "{are_apart:?}");
}

/// Iterations of a loop that takes pieces from a common list are in the order of threads, not of the list.
#[test]
fn pieces_that_threads_took_are_no_neighbours_by_thread() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), &program("one_takes_all.c"), "one", &["-O1"]);
    let lines = succeed("replay", &["--loop", "one_takes_all.c:27", &trace]);
    assert!(lines.contains("lanes are numbered thread by thread, and there are threads that take locks"), "{lines}");
    let lines = succeed("replay", &["--lanes", "calls", "--region", "item", &trace]);
    assert!(!lines.contains("numbered thread by thread"), "{lines}");
    // Trips of a loop that takes nothing are no pieces, although each thread has another number of them.
    let trace = traced(folder.path(), &program("number_then_work.c"), "number", &["-O1"]);
    let lines = succeed("replay", &["--loop", "number_then_work.c:14", &trace]);
    assert!(!lines.contains("numbered thread by thread"), "{lines}");
}

/// Two versions of a program in files of other names, with lines moved and edited.
#[test]
fn a_diff_says_first_whether_a_change_helped_and_finds_lines_that_moved() {
    const BEFORE: &str = include_str!("../programs/uneven_trips.c");
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let source = folder.path().join(format!("{name}.c"));
        std::fs::write(&source, text).unwrap();
        traced(folder.path(), &source, name, &["-O1"])
    };
    let before = written("before", BEFORE);
    let moved = written("moved", &format!("// A line more.\n\n{BEFORE}"));
    let diff = |after: &str| succeed("lockstep", &["diff", &before, after]);
    let same = diff(&moved);
    assert!(same.starts_with("no difference: as many GPU instructions; SIMT efficiency "), "{same}");
    assert!(!same.contains("better") && !same.contains("worse"), "{same}");
    let json = json("lockstep", &["diff", "--json", &before, &moved]);
    assert_eq!(json["rows"], Value::Array(Vec::new()), "no line lost more or less: {json}");
    let same = succeed("lockstep", &["diff", &before, &before]);
    assert!(same.starts_with("no difference: "), "{same}");
}

#[test]
fn a_program_that_a_signal_kills_is_named_as_a_shell_does() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.bin");
    let output = run("trace", &["-o", trace.to_str().unwrap(), "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(output.status.code(), Some(139), "{output:?}");
    assert!(said(&output).contains("signal 11 (SIGSEGV) killed the program"), "{output:?}");
    let replayed = run("replay", &["--region", "all", trace.to_str().unwrap()]);
    assert!(said(&replayed).contains("signal 11 (SIGSEGV) killed the program while it was traced"), "{replayed:?}");
    let output = run("trace", &["-o", trace.to_str().unwrap(), "sh", "-c", "exit 3"]);
    assert!(output.status.code() == Some(3) && said(&output).is_empty(), "{output:?}");
}

#[test]
fn a_folder_that_does_not_exist_is_said_before_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let trace = root().join("replay/benches/fft-p16-m12.trace.bin");
    let trace = trace.to_str().unwrap();
    let target = folder.path().join("none/out");
    let target = target.to_str().unwrap();
    for (name, words) in [
        ("trace", vec!["-o", target, "true"]),
        ("replay", vec!["--csv", target, "-H", "minpc", trace]),
        ("lockstep", vec!["report", "-o", target, trace]),
    ] {
        let output = run(name, &words);
        let said = said(&output);
        assert!(said.trim_end().ends_with(": its folder does not exist"), "{name}: {said}");
        assert!(!said.contains("SIMT efficiency"), "{name} says it before the work: {said}");
    }
}

/// The compiler's words stand behind `--`; a pass that changes nothing says so, in a program alone.
#[cfg(feature = "transform")]
#[test]
fn cc_says_where_the_compilers_words_go_and_which_pass_changed_nothing() {
    use std::process::Command;

    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("plain.c");
    std::fs::write(&source, "int main(int argc, char **argv) {\n    return argc - 1;\n}\n").unwrap();
    let (source, to) = (source.to_str().unwrap(), folder.path().join("out"));
    let output = run("lockstep", &["cc", "--transform", "meld", source]);
    assert!(output.status.code() == Some(2) && said(&output).contains("behind --: lockstep cc"), "{output:?}");
    let compiled = |words: &[&str]| {
        let all = [&["cc", "--transform", "meld", "--"], words, &[source, "-o", to.to_str().unwrap()]].concat();
        let output = run("lockstep", &all);
        assert!(output.status.success() && said(&output).is_empty(), "checks of a compiler would fail: {output:?}");
        // `script` gives the command a terminal.
        let typed = format!("{} {}", env!("CARGO_BIN_EXE_lockstep"), all.join(" "));
        let output = Command::new("script").args(["-qec", &typed, "/dev/null"]).output().expect("script runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(compiled(&["-O1"]).starts_with("lockstep: the pass meld changed nothing: "));
    assert_eq!(compiled(&["-O1", "-c"]), "", "a build of many files would say it of most");
    let ran = Command::new(&to).output();
    assert!(ran.is_err() || !ran.unwrap().status.success(), "the last was an object");
}
