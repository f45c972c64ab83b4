//! Wrong input of every kind: an error that says what to do, a status of its own, and never a panic.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{build, root, run, succeed};

fn vector() -> String {
    root().join("heuristics/conformance/case-12.trace.gz").to_str().unwrap().to_owned()
}

/// Asserts the status, and that the error is one sentence on standard error that holds these words.
fn fails(output: &Output, status: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

#[test]
fn a_missing_trace_and_a_folder() {
    fails(&run("replay", &["no-such-file.bin"]), 3, &["no-such-file.bin"]);
    fails(&run("replay", &["/"]), 3, &["/"]);
}

#[test]
fn without_a_name_the_trace_is_that_which_trace_writes_here() {
    let folder = tempfile::tempdir().unwrap();
    let replay = || Command::new(env!("CARGO_BIN_EXE_replay")).current_dir(&folder).output().unwrap();
    fails(&replay(), 3, &["trace.bin"]);
    fs::copy(vector(), folder.path().join("trace.bin")).unwrap();
    assert!(replay().status.success());
    let named = run("replay", &[folder.path().join("trace.bin").to_str().unwrap()]);
    assert_eq!(replay().stdout, named.stdout);
}

#[test]
fn heuristics_are_listed_for_programs_too() {
    let listed: serde_json::Value = serde_json::from_str(&succeed("lockstep", &["heuristics", "--json"])).unwrap();
    let listed = listed["heuristics"].as_array().unwrap();
    let text = succeed("lockstep", &["heuristics"]);
    assert!(listed.len() > 20);
    for entry in listed {
        let (name, parameters) = (entry["name"].as_str().unwrap(), entry["parameters"].as_array().unwrap());
        assert!(text.contains(&format!("{name} ")) && text.contains(entry["rule"].as_str().unwrap()), "{name}");
        let default =
            |p: &serde_json::Value| format!("{}={}", p["name"].as_str().unwrap(), p["default"].as_str().unwrap());
        for parameter in parameters {
            assert!(text.contains(&format!("{}: ", default(parameter))), "{parameter}");
        }
        fails(&run("replay", &["-H", &format!("{name}:no-such=1"), &vector()]), 2, &["no-such"]);
    }
}

#[test]
fn a_foreign_file() {
    fails(&run("replay", &[env!("CARGO_BIN_EXE_trace")]), 3, &["not a trace"]);
}

#[test]
fn truncated_and_flipped_traces_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    build(&root().join("workloads/micro/diamond.c"), &program, &[]);
    let name = trace.to_str().unwrap();
    succeed("trace", &["-o", name, program.to_str().unwrap(), "-p", "2"]);
    let whole = fs::read(&trace).unwrap();
    for i in 1..12 {
        fs::write(&trace, &whole[..whole.len() * i / 12]).unwrap();
        check_survives(name);
        let mut flipped = whole.clone();
        let at = whole.len() * i / 12;
        flipped[at] ^= 1 << (i % 8);
        fs::write(&trace, &flipped).unwrap();
        check_survives(name);
    }
    fs::write(&trace, b"").unwrap();
    fails(&run("replay", &[name]), 3, &["trace.bin"]);
}

/// What is left of the trace is replayed, or an error names the file.
fn check_survives(trace: &str) {
    let output = run("replay", &["--region", "all", "--check", trace]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked") && said.contains("trace.bin") || output.status.success(), "{said}");
    assert!(matches!(output.status.code(), Some(0 | 3 | 4)), "{:?} {said}", output.status);
}

#[test]
fn a_program_without_threads_and_a_region_that_matches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.bin");
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, "true"]);
    fails(&run("replay", &[trace]), 4, &["--region"]);
    fails(&run("replay", &["--region", "no_such_function", trace]), 4, &["no_such_function"]);
    assert!(run("replay", &["--region", "all", trace]).status.success());
}

#[test]
fn a_wrong_heuristic_names_those_that_there_are() {
    fails(&run("replay", &["--heuristic", "minps", &vector()]), 2, &["minps", "minsp-pc"]);
    fails(&run("replay", &["--heuristic", "long:n=0", &vector()]), 2, &["n is 1 to"]);
}

#[test]
fn a_warp_that_cannot_be() {
    fails(&run("replay", &["--warp-size", "0", &vector()]), 2, &["1 to 256"]);
    fails(&run("replay", &["--warp-size", "1000", &vector()]), 2, &["1 to 256"]);
}

#[test]
fn two_results_on_standard_output() {
    fails(&run("replay", &["--json", "--csv", "-", &vector()]), 2, &["--json", "--csv -"]);
    fails(&run("replay", &["--json", "--schedule", "-", &vector()]), 2, &["--json", "--schedule -"]);
    fails(&run("replay", &["--csv", "-", "--schedule", "-", &vector()]), 2, &["--csv -", "--schedule -"]);
    let compare = &["diff", "--region", "all", "--json", "--csv", "-", "/bin/true", "/bin/true", "--"];
    fails(&run("lockstep", compare), 2, &["--json", "--csv -"]);
}

#[test]
fn memory_of_a_trace_without_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.bin");
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, "true"]);
    fails(&run("replay", &["--region", "all", "--memory", trace]), 4, &["trace --memory"]);
}

#[test]
fn a_full_disk() {
    fails(&run("replay", &["--csv", "/dev/full", &vector()]), 5, &["/dev/full", "space"]);
    fails(&run("replay", &["--schedule", "/dev/full", &vector()]), 5, &["/dev/full", "space"]);
    fails(&run("lockstep", &["dump", "--text", "-o", "/dev/full", &vector()]), 5, &["/dev/full", "space"]);
    fails(&run("trace", &["-o", "/dev/full", "true"]), 125, &["/dev/full", "space"]);
}

#[test]
fn a_missing_program_and_one_that_cannot_run() {
    fails(&run("trace", &["-o", "/dev/null", "no-such-program"]), 127, &["no-such-program"]);
    fails(&run("trace", &["-o", "/dev/null", "/etc/passwd"]), 126, &["/etc/passwd"]);
    fails(&run("trace", &["-o", "/no-such-folder/trace.bin", "true"]), 125, &["/no-such-folder"]);
    fails(&run("trace", &[]), 2, &["PROGRAM"]);
}

#[test]
fn an_unknown_option_is_named_with_the_nearest_and_the_way_to_a_program_of_that_name() {
    for (program, verb) in [("trace", &[][..]), ("lockstep", &["trace"])] {
        let traced = |arguments: &[&str]| run(program, &[verb, arguments].concat());
        fails(&traced(&["--memroy", "true"]), 2, &["'--memroy'", "'--memory'"]);
        fails(&traced(&["--nonsense", "true"]), 2, &["'--nonsense'", "'-- --nonsense'"]);
        fails(&traced(&["-o", "/dev/null", "-x", "true"]), 2, &["'-x'", "'-- -x'"]);
        fails(&traced(&["-o", "/dev/null", "--", "--nonsense"]), 127, &["--nonsense"]);
        // What follows the program is the program's own.
        let output = traced(&["-o", "/dev/null", "echo", "--memory", "-o", "--", "-x"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "--memory -o -- -x\n");
    }
    fails(&run("replay", &["--heuristics", "minpc", &vector()]), 2, &["'--heuristics'", "'--heuristic'"]);
    fails(&run("replay", &["--nonsense", &vector()]), 2, &["'--nonsense'"]);
    let compilers: &[&str] = if cfg!(feature = "transform") { &["cc", "c++"] } else { &[] };
    for verb in compilers {
        fails(&run("lockstep", &[verb, "--transfrom", "fcs", "--", "x.c"]), 2, &["'--transfrom'", "'--transform'"]);
        fails(&run("lockstep", &[verb, "-O2", "x.c"]), 2, &["'-O'", "'-- -O'"]);
    }
    fails(&run("lockstep", &["diff", "--jsno", "a", "b", "--", "-p", "2"]), 2, &["'--jsno'", "'--json'"]);
    fails(&run("lockstep", &["diff", "a", "b", "-p", "2"]), 2, &["'-p'", "'-- -p'"]);
}

#[test]
fn rows_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.csv");
    fs::write(&rows, "a,b\n1,2\n").unwrap();
    let chart = folder.path().join("chart.svg");
    let plot =
        |rows: &Path, chart: &Path| run("lockstep", &["plot", rows.to_str().unwrap(), "-o", chart.to_str().unwrap()]);
    fails(&plot(&rows, &chart), 3, &["rows.csv", "column"]);
    fails(&plot(&folder.path().join("none.csv"), &chart), 3, &["none.csv"]);
    assert!(!chart.exists());
}

#[test]
fn an_unwritten_result_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    fs::write(&csv, "old").unwrap();
    let output = run("replay", &["--csv", csv.to_str().unwrap(), "no-such-file.bin"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(fs::read_to_string(&csv).unwrap(), "old");
}
