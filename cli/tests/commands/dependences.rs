//! `replay --dependences`: what the iterations of small loops need of each other, of which it is known beforehand.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{is_whole, root, run, succeed};

fn source() -> String {
    root().join("cli/tests/lanes/dependences.c").to_str().unwrap().to_owned()
}

/// The line of this loop.
fn line_of(define: &str) -> usize {
    let text = std::fs::read_to_string(source()).unwrap();
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| !line.contains(&format!("defined({define})")));
    1 + lines.find(|(_, line)| line.trim_start().starts_with("LOOP") || line.contains("/* LOOP */")).unwrap().0
}

fn traced(folder: &Path, define: &str, options: &[&str], record: &[&str]) -> String {
    let (program, trace) = (folder.join("program"), folder.join("trace.bin").to_str().unwrap().to_owned());
    let built = Command::new("gcc")
        .args(["-g", "-pthread", "-fno-tree-vectorize", &format!("-D{define}"), &source(), "-o"])
        .arg(&program)
        .args(options)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let words = [&["-o", &trace][..], record, &[program.to_str().unwrap()]].concat();
    succeed("trace", &words);
    trace
}

fn found(trace: &str, arguments: &[&str]) -> Value {
    let words = [&["--dependences", "--json"], arguments, &[trace]].concat();
    let json: Value = serde_json::from_str(&succeed("replay", &words)).unwrap();
    json["dependences"].clone()
}

/// The kinds of rows, inductions aside.
fn kinds(found: &Value) -> Vec<String> {
    let rows = found["rows"].as_array().unwrap();
    let mut kinds: Vec<String> = rows.iter().map(|row| row["kind"].as_str().unwrap().to_owned()).collect();
    kinds.retain(|kind| kind != "induction");
    kinds.dedup();
    kinds
}

/// Loops, whether they would run, what the only dependence is, and what the verdict names.
const KNOWN: [(&str, &str, &[&str], &str); 24] = [
    ("INDEPENDENT", "would run", &[], "no lane needs what another makes"),
    ("SUM", "after a change", &["reduction (sum)"], "a reduction of the sum"),
    ("SUM_IN_MEMORY", "after a change", &["reduction (sum)"], "a reduction of the sum"),
    ("MAXIMUM", "after a change", &["reduction (selection)"], "a reduction of the selection"),
    ("COUNT", "after a change", &["reduction (sum)"], "a reduction of the sum"),
    ("TEMPORARY", "after a change", &["private"], "privatising shared"),
    ("PREFIX_SUM", "carries a dependence", &["partial results (sum)"], "a scan"),
    ("COMPACTION", "carries a dependence", &["partial results (sum)"], "a scan"),
    ("STENCIL_IN_PLACE", "carries a dependence", &["carried", "overwritten"], "1 before it"),
    ("SHIFT", "after a change", &["overwritten"], "keeping the old values of a"),
    ("DISTANCE", "carries a dependence", &["carried"], "7 before it"),
    ("HISTOGRAM", "after a change", &["scattered reduction (sum)"], "making histogram"),
    ("ATOMIC_HISTOGRAM", "would run", &["atomic"], "atomic instructions"),
    ("RECURRENCE", "carries a dependence", &["carried"], "1 before it"),
    ("CHAIN", "carries a dependence", &["carried"], "1 before it"),
    ("STRIDE", "would run", &[], "no lane needs"),
    ("DERIVED", "would run", &[], "no lane needs"),
    ("SEVERAL_STEPS", "would run", &[], "no lane needs"),
    ("HORNER", "carries a dependence", &["carried", "partial results (sum)"], "carries a dependence"),
    ("ADDS", "would run", &[], "no lane needs"),
    ("SEARCH", "after a change", &["early exit"], "replacing the early exit at dependences.c:"),
    ("SEARCH_BY_TEST", "after a change", &["early exit"], "replacing the early exit at dependences.c:"),
    ("LAST", "carries a dependence", &["carried"], "1 before it"),
    ("PREVIOUS", "carries a dependence", &["carried"], "1 before it"),
];

#[test]
fn loops_whose_dependences_are_known_have_these_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    for (turn, optimised) in ["-O0", "-O2"].into_iter().enumerate() {
        for (number, (define, runs, expected, word)) in KNOWN.into_iter().enumerate() {
            // Each is built in one way, in turn; for `scripts/check --whole` in both.
            if !is_whole() && number % 2 != turn {
                continue;
            }
            let trace = traced(folder.path(), define, &[optimised], &["--memory"]);
            let at = format!("dependences.c:{}", line_of(define));
            let found = found(&trace, &["--loop", &at]);
            let verdict = found["verdict"].as_str().unwrap();
            assert_eq!(found["runs"], runs, "{define} {optimised}: {verdict}");
            assert!(verdict.contains(word), "{define} {optimised}: {verdict}");
            // In registers, what a stencil carries is not what it overwrites.
            let kinds = kinds(&found);
            let is_known = kinds == expected || runs == "carries a dependence" && expected.contains(&kinds[0].as_str());
            assert!(is_known, "{define} {optimised}: {kinds:?}");
        }
    }
}

#[test]
fn the_line_of_a_dependence_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let line = line_of("DISTANCE");
    let trace = traced(folder.path(), "DISTANCE", &["-O2"], &["--memory"]);
    let at = format!("dependences.c:{line}");
    let shown = succeed("replay", &["--dependences", "--loop", &at, &trace]);
    assert!(shown.starts_with(&format!("carries a dependence at dependences.c:{}", line + 1)), "{shown}");
    assert!(shown.contains("7 before it at least") && shown.contains("(a)"), "{shown}");
    // 300 turns, of which the 7 after the eighth use what was there before the loop.
    let rows = found(&trace, &["--loop", &at])["rows"].clone();
    assert_eq!((&rows[0]["count"], &rows[0]["distance"]), (&286.into(), &7.into()));
}

/// A compiler that vectorises loops does none of those that a lane can end for those behind it.
#[test]
fn early_exits_are_where_a_vectoriser_gives_up() {
    let folder = tempfile::tempdir().unwrap();
    for (define, has_exit) in [("SEARCH", true), ("SEARCH_BY_TEST", true), ("ADDS", false)] {
        let trace = traced(folder.path(), define, &["-O2"], &["--memory"]);
        let line = line_of(define);
        let found = found(&trace, &["--loop", &format!("dependences.c:{line}")]);
        let exits: Vec<&Value> =
            found["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "early exit").collect();
        assert_eq!(exits.len(), usize::from(has_exit), "{define}: {exits:?}");
        // The turn that only finds what was searched for is no lane.
        let counts = exits.iter().all(|row| row["count"] == u64::from(define == "SEARCH"));
        assert!(counts, "{define}: {exits:?}");
        let remarks = Command::new("gcc")
            .args(["-O3", "-c", "-fopt-info-vec-optimized", &format!("-D{define}"), &source(), "-o", "/dev/null"])
            .output()
            .unwrap();
        let vectorised = String::from_utf8_lossy(&remarks.stderr).contains(&format!(":{line}:"));
        assert_eq!(vectorised, !has_exit, "{define}");
    }
}

#[test]
fn loops_of_several_threads_have_their_own_registers() {
    let folder = tempfile::tempdir().unwrap();
    // Two threads with a loop each: what one turn leaves in registers is the next one's.
    for (define, runs) in [("RECURRENCE", "carries a dependence"), ("COUNT", "after a change"), ("STRIDE", "would run")]
    {
        let trace = traced(folder.path(), define, &["-O2", "-DTHREADED"], &["--memory"]);
        let at = format!("dependences.c:{}", line_of(define));
        // The threads write the same places: only what goes on from turn to turn is looked at here.
        let rows = found(&trace, &["--loop", &at])["rows"].clone();
        let kinds: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds.contains(&"carried"), runs == "carries a dependence", "{define}: {kinds:?}");
        assert!(!kinds.iter().any(|kind| kind.starts_with("partial")), "{define}: {kinds:?}");
        assert_eq!(kinds.contains(&"reduction (sum)"), define == "COUNT", "{define}: {kinds:?}");
    }
    // OpenMP's loops, dealt out in chunks or in one part for each thread.
    for how in ["-DDEALT", "-DPARTS"] {
        for optimised in ["-O0", "-O2"] {
            let trace = traced(folder.path(), "INDEPENDENT", &[optimised, how, "-fopenmp"], &["--memory"]);
            let found = found(&trace, &["--lanes", "iterations"]);
            assert_eq!(found["runs"], "would run", "{how} {optimised}: {}", found["rows"]);
            let trace = traced(folder.path(), "SHIFT", &[optimised, how, "-fopenmp"], &["--memory"]);
            let found = self::found(&trace, &["--lanes", "iterations"]);
            assert_eq!(kinds(&found), ["overwritten"], "{how} {optimised}: {}", found["rows"]);
        }
    }
}

#[test]
fn lanes_of_other_kinds_are_looked_at_and_what_cannot_be_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let calls = traced(folder.path(), "SUM", &["-O2"], &["--memory"]);
    assert_eq!(found(&calls, &["--lanes", "calls", "--region", "work"])["runs"], "would run");
    let plain = traced(folder.path(), "SUM", &["-O2"], &[]);
    let at = format!("dependences.c:{}", line_of("SUM"));
    let refused: [(&[&str], &str); 3] = [
        (&["--dependences", "--loop", &at, &plain], "trace --memory"),
        (&["--dependences", "--region", "all", &plain], "threads already run at the same time"),
        (&["--dependences", "--by", "line", &plain], "cannot be used with"),
    ];
    for (arguments, why) in refused {
        let output = run("replay", arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
    }
}

fn page(trace: &str, arguments: &[&str]) -> Value {
    let words = [&["--verdict", "--json"], arguments, &[trace]].concat();
    serde_json::from_str(&succeed("replay", &words)).unwrap()
}

#[test]
fn a_verdict_has_the_figures_that_replays_alone_have() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "HISTOGRAM", &["-O2"], &["--memory"]);
    let at = format!("dependences.c:{}", line_of("HISTOGRAM"));
    let whole = page(&trace, &["--loop", &at]);
    assert_eq!(whole["runs"], "after a change");
    for (row, machine) in whole["gpu"].as_array().unwrap().iter().zip(["nvidia", "amd"]) {
        let alone = ["--loop", &at, "-W", if machine == "nvidia" { "32" } else { "64" }];
        let words = [&["--machine", machine, "--memory", "--json"], &alone[..], &[&trace]].concat();
        let alone: Value = serde_json::from_str(&succeed("replay", &words)).unwrap();
        assert_eq!(row["efficiency"], alone["machine"]["efficiency"], "{machine}");
        assert_eq!([&row["least"], &row["most"]], [&alone["machine"]["least"], &alone["machine"]["most"]]);
        for (name, column) in [("requests", "gpu_requests"), ("sectors", "gpu_sectors")] {
            assert_eq!(row[name], alone["results"][0][column], "{machine}");
        }
    }
    for row in whole["simd"].as_array().unwrap() {
        let lanes = row["lanes"].to_string();
        let words = ["-H", "ipdom", "--loop", &at, "-W", &lanes, "--json", &trace];
        let alone: Value = serde_json::from_str(&succeed("replay", &words)).unwrap();
        assert_eq!(row["masks_set_skipping"], alone["results"][0]["simt_efficiency"]);
        let [skipped, linearized] = ["masks_set_skipping", "masks_set_linearized"].map(|n| row[n].as_f64().unwrap());
        assert!(linearized <= skipped && linearized > 0.0, "{row}");
        // Of a turn's accesses one is a[i], the other one the histogram's; whatever else is the lane's own stack.
        let [contiguous, gathered] = ["contiguous", "gathered"].map(|name| row[name].as_f64().unwrap());
        assert!((contiguous - 0.5).abs() < 0.02 && (gathered - 0.5).abs() < 0.02, "{row}");
        // The histogram's counter is read and written by one operand, or by two of one address.
        let [gathers, scatters] = ["gathers", "scatters"].map(|name| row[name].as_f64().unwrap());
        assert!(gathers > 0.3 && scatters > 0.3 && gathers.max(scatters) <= gathered + 1e-9, "{row}");
    }
    assert!(
        whole["first"].as_str().unwrap().starts_with("change it: it would run in parallel after making histogram"),
        "{whole}"
    );
    let shown = succeed("replay", &["--verdict", "--loop", &at, &trace]);
    for word in ["as a GPU", "nvidia", "amd", "as SIMD", "16 lanes", "what limits it: ", "what to try first: change it"]
    {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

#[test]
fn a_verdict_begins_with_what_hinders_and_says_what_is_not_known() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("dependences.c:{}", line_of("RECURRENCE"));
    let trace = traced(folder.path(), "RECURRENCE", &["-O2"], &["--memory"]);
    let carried = page(&trace, &["--loop", &at]);
    assert!(carried["first"].as_str().unwrap().starts_with("remove the dependence"), "{carried}");
    let plain = traced(folder.path(), "RECURRENCE", &["-O2"], &[]);
    let shown = succeed("replay", &["--verdict", "--loop", &at, &plain]);
    assert!(shown.contains("dependences: unknown, since the trace has no addresses"), "{shown}");
    let threads = page(&plain, &["--region", "all"]);
    assert_eq!(threads["dependences"], "threads ran at once already");
    assert!(threads["first"].as_str().unwrap().starts_with("choose a loop with more iterations"), "{threads}");
}

#[test]
fn the_table_of_loops_has_verdicts_of_every_kind() {
    let folder = root().join("results/2026-11-25-loops");
    let mut rows = csv::Reader::from_path(folder.join("loops.csv")).unwrap();
    let rows: Vec<std::collections::HashMap<String, String>> = rows.deserialize().map(Result::unwrap).collect();
    assert!(rows.len() >= 20, "{}", rows.len());
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    for row in &rows {
        let efficiency: f64 = row["efficiency_32"].parse().unwrap();
        assert!(efficiency > 0.0 && efficiency <= 1.0 && page.contains(&row["verdict"]), "{row:?}");
    }
    for runs in ["would run", "after a change", "carries a dependence"] {
        assert!(rows.iter().any(|row| row["runs"] == runs), "{runs}");
    }
}

#[test]
fn the_page_of_lanes_that_are_parts_of_threads_has_what_the_verdict_says() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path(), "HISTOGRAM", &["-O2"], &["--memory"]);
    let at = format!("dependences.c:{}", line_of("HISTOGRAM"));
    let html = folder.path().join("page.html");
    let words = ["report", "--models", "ipdom", "--loop", &at, "-o", html.to_str().unwrap(), &trace];
    succeed("lockstep", &words);
    let on_page = crate::page::data(&html)["programs"][0]["replayed"]["as_lanes"].take();
    let whole = page(&trace, &["--loop", &at]);
    for name in ["what", "lanes", "runs", "dependences", "rows", "gpu", "simd", "limit"] {
        assert_eq!(on_page[name], whole[name], "{name}");
    }
    assert!(on_page["first"].as_str().unwrap().starts_with("change it: "), "{on_page}");
    // Threads ran at once already, and have no such part.
    succeed("lockstep", &["report", "--models", "ipdom", "--region", "all", "-o", html.to_str().unwrap(), &trace]);
    assert!(crate::page::data(&html)["programs"][0]["replayed"].get("as_lanes").is_none());
}

/// The script runs all kernels; these are a few, among them values that go on in x87 registers and in the carry flag.
#[test]
fn kernels_have_the_dependences_that_judges_confirm() {
    let checked = Command::new(root().join("scripts/check-dependences"))
        .args(["ANTI", "TRUE_NEXT", "HISTOGRAM", "LONG_DOUBLE_SUM", "LONG_DOUBLE_CHAIN", "LONG_DOUBLE_EACH"])
        .args(["CARRY_FLAG", "RACE"])
        .env("LOCKSTEP", env!("CARGO_BIN_EXE_lockstep"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    assert!(said.contains("8 kernels, 9 judgements"), "{said}");
}
