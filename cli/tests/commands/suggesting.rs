//! `lockstep suggest`: each number that it says is what `replay --predict` counts, under whatever placement and cost.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::support::{build, root, run, succeed};

/// A trace with addresses of the benchmark that is bound by memory.
fn traced(folder: &Path) -> String {
    let (program, trace) = (folder.join("xsbench"), folder.join("trace.bin"));
    build(&root().join("workloads/speculation/xsbench/xsbench.c"), &program, &["-fno-math-errno"]);
    let trace = trace.to_str().unwrap().to_owned();
    succeed("trace", &["--memory", "-o", &trace, program.to_str().unwrap(), "-p", "32", "-n", "128"]);
    trace
}

fn suggested(arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed("lockstep", &[&["suggest", "--json"], arguments].concat())).unwrap()
}

/// The rows that a replay writes, by column.
fn rows(folder: &Path, arguments: &[&str]) -> Vec<BTreeMap<String, u64>> {
    let out = folder.join("rows.csv");
    succeed("replay", &[&["--csv", out.to_str().unwrap()], arguments].concat());
    let text = std::fs::read_to_string(out).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    // A model's name has commas of its own, between quotes; no other cell that is looked at has.
    let cells = |line: &str| {
        let line = line.split('"').enumerate().map(|(i, part)| if i % 2 == 0 { part } else { "quoted" });
        let line: String = line.collect();
        line.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let row = |line: &str| {
        let numbers = names.iter().zip(cells(line));
        numbers.filter_map(|(name, cell)| Some(((*name).to_owned(), cell.parse().ok()?))).collect()
    };
    lines.map(row).collect()
}

/// What is typed behind `--predict` for a trial of a place.
fn typed(place: &Value, trial: &Value) -> String {
    let threshold = trial["threshold"].as_u64().map_or_else(String::new, |lanes| format!(",threshold={lanes}"));
    format!("{}{threshold}", place["predict"].as_str().unwrap())
}

#[test]
fn places_are_ranked_by_the_cycles_that_replay_counts() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    let how = ["--memory", "--load-latency", "100"];
    let found = suggested(&[&how[..], &["--candidates", "4", "--threshold", "8", &trace]].concat());
    let cycles = |row: &BTreeMap<String, u64>| {
        let of = |name: &str| row.get(name).copied().unwrap_or(0);
        let transactions = of("heap_transactions_32") + of("interleaved_transactions_32");
        let (issued, stalls) = (of("gpu_issued"), of("load_stalls"));
        assert!(transactions > 0 && stalls > 0, "{row:?}");
        issued + stalls + transactions
    };
    let mut costs = Vec::new();
    for place in found["places"].as_array().unwrap() {
        let trials = place["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 2);
        for trial in trials {
            let typed = typed(place, trial);
            let arguments = [&["--predict", &typed][..], &how, &[&trace]].concat();
            let rows = rows(folder.path(), &arguments);
            assert_eq!(found["before"]["cost"], cycles(&rows[0]));
            assert_eq!(trial["cost"], cycles(&rows[1]), "{place}");
        }
        assert!(trials.is_sorted_by_key(|trial| trial["cost"].as_u64()));
        costs.push(trials[0]["cost"].as_u64().unwrap());
    }
    assert!(costs.len() == 4 && costs.is_sorted(), "{costs:?}");
    // Under a model that was named, in its fetches.
    let found = suggested(&["-H", "hanoi", "--candidates", "1", "--threshold", "8", &trace]);
    let trial = &found["places"][0]["trials"][0];
    let issued = trial["fetches"].as_u64().unwrap() + trial["barrier_operations"].as_u64().unwrap();
    assert_eq!((&trial["cost"], &found["instructions"]), (&issued.into(), &"fetches".into()));
}

#[test]
fn places_are_ranked_by_a_gpus_time_and_those_that_gain_none_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("rsbench"), folder.path().join("trace.bin"));
    build(&root().join("workloads/speculation/rsbench/rsbench.c"), &program, &["-fno-math-errno"]);
    let (program, trace) = (program.to_str().unwrap(), trace.to_str().unwrap());
    let words = ["-p", "32", "-n", "256"];
    succeed("trace", &[&["--memory", "-o", trace, program][..], &words].concat());
    let how = ["--candidates", "6", "--together", "1", "--region", "kernel", trace];
    let found = suggested(&how);
    assert_eq!((&found["ranked_by"], &found["instructions"]), (&"time".into(), &"GPU instructions".into()));
    let places = found["places"].as_array().unwrap();
    for place in places.iter().take(2) {
        let trial = &place["trials"][0];
        let rows = rows(folder.path(), &["--memory", "--region", "kernel", "--predict", &typed(place, trial), trace]);
        assert_eq!(found["before"]["cost"], rows[0]["gpu_filled_time"]);
        assert_eq!(
            (&trial["cost"], &trial["issued"]),
            (&rows[1]["gpu_filled_time"].into(), &rows[1]["gpu_issued"].into())
        );
    }
    // Those that issue more come last.
    let before = found["before"]["issued"].as_u64().unwrap();
    let rank = |place: &Value| {
        let of = |name: &str| place["trials"][0][name].as_u64().unwrap();
        (of("issued") > before, of("cost"))
    };
    assert!(places.is_sorted_by_key(rank), "{found}");
    // The mark halves what is issued; each nuclide's poles are other lines of memory.
    let said = succeed("lockstep", &[&["suggest"], &how[..]].concat());
    let named = said.lines().find(|line| line.starts_with("rsbench.c:79: bound by memory: "));
    assert!(named.is_some_and(|line| line.ends_with(" times fewer instructions gain no time")), "{said}");
    // Without addresses instructions rank, and it is said that the time is unknown.
    succeed("trace", &[&["-o", trace, program][..], &words].concat());
    let found = suggested(&how);
    let trial = &found["places"][0]["trials"][0];
    assert_eq!((&found["ranked_by"], &trial["cost"]), (&"instructions".into(), &trial["issued"]));
    let said = succeed("lockstep", &[&["suggest"], &how[..]].concat());
    assert!(said.contains("is unknown without addresses (trace --memory)") && !said.contains("bound by"), "{said}");
}

#[test]
fn places_are_tried_where_compilers_for_gpus_let_lanes_meet() {
    let folder = tempfile::tempdir().unwrap();
    // A loop with two exits: under `binary` its lanes run alone from the first turn on in which they part.
    let program = folder.path().join("ray_march");
    build(&root().join("workloads/gpu-kernels/ray_march.c"), &program, &[]);
    let trace = folder.path().join("trace.bin");
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, program.to_str().unwrap()]);
    let mut befores = Vec::new();
    for model in ["barrier", "barrier:placement=structured", "barrier:placement=nak", "hanoi:predicate=4"] {
        let found = suggested(&["-H", model, "-W", "32", "--candidates", "6", trace]);
        for place in found["places"].as_array().unwrap().iter().take(2) {
            let trial = &place["trials"][0];
            let arguments = ["-H", model, "-W", "32", "--check", "--predict", &typed(place, trial), trace];
            let rows = rows(folder.path(), &arguments);
            assert_eq!(found["before"]["fetches"], rows[0]["fetches"], "{model}");
            assert_eq!(trial["fetches"], rows[1]["fetches"], "{model}");
        }
        befores.push(found["before"]["fetches"].as_u64().unwrap());
    }
    assert!(befores[0] > 2 * befores[1], "{befores:?}");
    let said = succeed("lockstep", &["suggest", "-H", "barrier:placement=structured", "-W", "32", trace]);
    assert!(said.contains("replay -H barrier:placement=structured --predict "), "{said}");
    let other = run("lockstep", &["suggest", "-H", "ipdom", trace]);
    let why = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success() && why.contains("only hanoi, and barrier with meet=barriers, collect"), "{why}");
    let bare = run("lockstep", &["suggest", "--memory", trace]);
    let why = String::from_utf8_lossy(&bare.stderr).into_owned();
    assert!(!bare.status.success() && why.contains("record it with trace --memory"), "{why}");
}

#[test]
fn two_places_at_once_are_what_replay_counts_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("continued_fraction");
    build(&root().join("workloads/gpu-kernels/continued_fraction.c"), &program, &[]);
    let trace = folder.path().join("trace.bin");
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, program.to_str().unwrap()]);
    let found = suggested(&["-H", "barrier", "-W", "32", trace]);
    let together = &found["together"];
    let places: Vec<&str> = together["predict"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
    assert_eq!(places.len(), 2, "{together}");
    let arguments = ["-H", "barrier", "-W", "32", "--check", "--predict", places[0], "--predict", places[1], trace];
    let rows = rows(folder.path(), &arguments);
    assert_eq!(together["fetches"], rows[1]["fetches"]);
    assert!(together["cost"].as_u64() < found["places"][0]["trials"][0]["cost"].as_u64(), "{found}");
    let said = succeed("lockstep", &["suggest", "-H", "barrier", "-W", "32", trace]);
    assert!(said.contains(&format!("replay -H barrier --predict {} --predict {}", places[0], places[1])), "{said}");
}

/// `shade` is called on one side, on the other another function that calls it; and both sides call one of a library
/// through a function of the program's own.
const THROUGH: &str = r#"
#include <lockstep.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

LOCKSTEP_APART static double shade(double at, int steps) {
    double sum = at;
    for (int i = 0; i < steps; i++)
        sum += 1.0 / (sum + i);
    return sum;
}
LOCKSTEP_APART static double dim(double at) { return at < 0 ? at : shade(at + 1, 20) / 3; }
char digits[] = "1234567890123456";
LOCKSTEP_APART static double read_of(double at) { return at / 2 + strtol(digits, NULL, 10) % 3; }

static void *work(void *argument) {
    unsigned seed = (unsigned)(long)argument * 2654435761u;
    double sum = 1;
    for (int i = 0; i < 50; i++) {
        seed = seed * 1664525u + 1013904223u;
        LOCKSTEP_PREDICT_FUNCTION(SHARED);
        if (seed >> 31)
            sum += 2 * FIRST;
        else
            sum += SECOND;
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
fn lanes_that_come_to_a_function_through_others_are_collected_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("through.c");
    std::fs::write(&source, THROUGH).unwrap();
    let (program, trace) = (folder.path().join("through"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    let fetches = |prediction: &str| -> [u64; 2] {
        let arguments = ["-H", "barrier:placement=structured", "--check", "--predict", prediction, trace];
        let rows = rows(folder.path(), &arguments);
        assert_eq!(rows[1].get("yields"), Some(&0), "{prediction}");
        [0, 1].map(|row| rows[row]["fetches"])
    };
    let traced = |shared: &str, first: &str, second: &str| {
        let words = [("SHARED", shared), ("FIRST", first), ("SECOND", second)];
        let words = words.map(|(name, word)| format!("-D{name}={word}"));
        build(&source, &program, &words.each_ref().map(String::as_str));
        succeed("trace", &["-o", trace, program.to_str().unwrap()]);
    };
    traced("shade", "shade(sum,20)", "dim(sum)");
    let [before, marked] = fetches("marks");
    assert!(10 * before > 14 * marked, "{before} {marked}");
    // Where it is not said where lanes join, each function that calls it collects its own.
    assert!(fetches("call:shade")[1] > 13 * marked / 10);
    // From where the function begins, over all its turns; so it is suggested too.
    let from = fetches("call:shade,from=work")[1];
    assert!(10 * before > 14 * from, "{before} {from}");
    let found = suggested(&["-H", "barrier:placement=structured", trace]);
    let places = found["places"].as_array().unwrap();
    let through = places.iter().find(|place| place["predict"] == "call:shade,from=work");
    let through = through.unwrap_or_else(|| panic!("{found}"));
    let all = through["trials"].as_array().unwrap().iter().find(|trial| trial["threshold"].is_null());
    assert_eq!(all.unwrap()["fetches"], from);
    // A function of a library, through one of the program.
    traced("read_of", "read_of(sum)", "read_of(sum+seed)");
    let [before, marked] = fetches("marks");
    assert!(10 * before > 12 * marked, "{before} {marked}");
}
