//! Programs whose lanes contend for locks, traced for real: every model leaves a number, and where it deadlocks with
//! the program as it is written, that is said with the lock and the line.

use std::process::Command;

use heuristics::REGISTRY;
use serde_json::Value;

use crate::support::{build, root, run, succeed};

struct Traced {
    folder: tempfile::TempDir,
}

impl Traced {
    fn new(name: &str, lanes: &str) -> Traced {
        let traced = Traced { folder: tempfile::tempdir().unwrap() };
        let program = traced.folder.path().join("program");
        build(&root().join(format!("workloads/micro/{name}.c")), &program, &[]);
        succeed("trace", &["-o", &traced.path(), program.to_str().unwrap(), "-p", lanes]);
        traced
    }

    fn path(&self) -> String {
        self.folder.path().join("trace.bin").to_str().unwrap().to_owned()
    }

    fn results(&self, arguments: &[&str]) -> Vec<Value> {
        let path = self.path();
        let json = succeed("replay", &[&["--region", "kernel", "--json", &path], arguments].concat());
        let json: Value = serde_json::from_str(&json).unwrap();
        json["results"].as_array().unwrap().clone()
    }
}

fn number(result: &Value, column: &str) -> u64 {
    result[column].as_u64().unwrap_or_else(|| panic!("{column} of {result}"))
}

/// Lines of the source that hold this text, as places of the function `kernel`.
fn places(name: &str, text: &str) -> Vec<String> {
    let source = std::fs::read_to_string(root().join(format!("workloads/micro/{name}.c"))).unwrap();
    let lines = source.lines().zip(1..).filter(|(line, _)| line.contains(text));
    lines.map(|(_, number)| format!("kernel ({name}.c:{number})")).collect()
}

#[test]
fn every_model_leaves_a_number_and_a_deadlock_has_its_lock_and_line() {
    for (name, lanes) in
        [("lock_contention", "4"), ("lock_contention", "16"), ("nested_locks", "4"), ("nested_locks", "16")]
    {
        let traced = Traced::new(name, lanes);
        let as_written = traced.results(&["--heuristic", "all", "--check"]);
        let turns = traced.results(&["--heuristic", "all", "--locks", "simt", "--check"]);
        assert_eq!((as_written.len(), turns.len()), (REGISTRY.len(), REGISTRY.len()));
        let lines = places(name, "pthread_mutex_lock(");
        for (result, turn) in as_written.iter().zip(&turns) {
            assert_eq!((&result["status"], &turn["status"]), (&"ok".into(), &"ok".into()), "{result}");
            assert_eq!((number(turn, "forced"), turn.get("deadlock")), (0, None), "{turn}");
            assert_eq!(turn["locks"], "simt");
            for result in [result, turn] {
                assert!(number(result, "fetches") >= number(result, "lower_bound"), "{result}");
                assert_eq!(number(result, "thread_instructions"), number(result, "upper_bound"), "{result}");
            }
            let Some(deadlock) = result.get("deadlock").and_then(Value::as_str) else { continue };
            assert!(lines.iter().any(|line| deadlock.contains(line.as_str())), "{deadlock}: {lines:?}");
            let named = ["(lock)", "(row_lock", "(total_lock)"].iter().any(|lock| deadlock.contains(lock));
            assert!(named && deadlock.contains("held by"), "{deadlock}");
            assert_eq!(result["fetches"], turn["fetches"], "{deadlock}");
        }
        let of = |name: &str| as_written.iter().find(|r| r["heuristic"].as_str().unwrap().starts_with(name)).unwrap();
        assert!(of("ipdom").get("deadlock").is_some(), "{}", of("ipdom"));
        assert!(of("barrier").get("deadlock").is_none(), "{}", of("barrier"));
    }
}

#[test]
fn a_table_marks_what_is_not_as_written_and_its_status_says_so() {
    let traced = Traced::new("lock_contention", "4");
    let path = traced.path();
    let table = succeed("replay", &["--region", "kernel", "--heuristic", "minpc,ipdom", &path]);
    assert!(table.contains("\nipdom:placement=binary,predicate=0 *  "), "{table}");
    assert!(
        table.contains("* deadlocks as the program is written")
            && table.contains("  ipdom:placement=binary,predicate=0 deadlocks: "),
        "{table}"
    );
    let only = run("replay", &["--region", "kernel", "--heuristic", "ipdom", &path]);
    assert_eq!(only.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&only.stdout).contains("ipdom:placement=binary,predicate=0 *"));
    let turns = run("replay", &["--region", "kernel", "--heuristic", "ipdom", "--locks", "simt", &path]);
    assert_eq!(turns.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&turns.stdout).contains('*'));
    // Both ways asked for: the second is shown by itself.
    let both = traced.results(&["--heuristic", "ipdom", "--locks", "serialize,simt"]);
    assert!(
        both[0]["status"].as_str().unwrap().contains("ipdom:placement=binary,predicate=0 deadlocks")
            && both[0].get("fetches").is_none()
    );
    assert_eq!(both[1]["status"], "ok");
    let schedule = succeed("replay", &["--region", "kernel", "--heuristic", "ipdom,minpc", "--schedule", "-", &path]);
    let heads: Vec<&str> = schedule.lines().filter(|line| line.starts_with("heuristic")).collect();
    assert_eq!(
        heads,
        [
            "heuristic ipdom:placement=binary,predicate=0 warp 0",
            "heuristic minpc warp 0",
            "heuristic ipdom:placement=binary,predicate=0 warp 0 simt"
        ]
    );
    let checked = run("lockstep", &["check", "--model", "ipdom", "--min-efficiency", "0", "--region", "kernel", &path]);
    assert_eq!(checked.status.code(), Some(6), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// A GPU's counters of these programs, in percent: the loop as people write it (`plain`), and with a barrier of the
/// warp behind it (`sync`).
fn counted(name: &str, variant: &str) -> f64 {
    let counters = std::fs::read_to_string(root().join("cli/tests/locks/counters.csv")).unwrap();
    let rows = counters.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let row = rows.into_iter().find(|row| row[..2] == [name, variant]).unwrap_or_else(|| panic!("{name} {variant}"));
    let [warp, thread] = [2, 3].map(|column| row[column].parse::<f64>().unwrap());
    100.0 * thread / (32.0 * warp)
}

/// A program of `cli/tests/locks`, built and traced.
fn traced(source: &str, name: &str, compiler: &str, folder: &tempfile::TempDir) -> String {
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let source = root().join("cli/tests/locks").join(source);
    let which = format!("-DPROGRAM={}", name.to_uppercase());
    let mut command = Command::new(compiler);
    command.args(["-O2", "-g", "-pthread", &which]).arg(source).arg("-o").arg(&program);
    assert!(command.status().unwrap().success(), "{compiler} {name}");
    let trace = trace.to_str().unwrap().to_owned();
    succeed("trace", &["-o", &trace, program.to_str().unwrap()]);
    trace
}

const NVIDIA: &str = "hanoi:placement=structured,predicate=4";

/// What the machine's model says of a trace, in percent, by rule for locks.
fn said(trace: &str, locks: &str) -> f64 {
    let json = succeed("replay", &["-H", NVIDIA, "--locks", locks, "--check", "--json", trace]);
    let json: Value = serde_json::from_str(&json).unwrap();
    100.0 * json["results"][0]["gpu_efficiency"].as_f64().unwrap()
}

const NEAR: f64 = 3.0;

#[test]
fn both_figures_of_a_program_with_locks_are_near_a_gpus_counters() {
    let names = ["number_then_work", "half_in_lock", "nested", "some_lanes", "one_lock", "four_locks", "own_locks"];
    for name in names.into_iter().chain(["atomic_number"]) {
        for compiler in ["gcc", "clang-19"] {
            let folder = tempfile::tempdir().unwrap();
            let trace = traced("programs.c", name, compiler, &folder);
            for (locks, variant) in [("serialize", "plain"), ("simt", "sync")] {
                let (said, counted) = (said(&trace, locks), counted(name, variant));
                assert!((said - counted).abs() < NEAR, "{name} {compiler} {locks}: {said:.1}, counted {counted:.1}");
            }
        }
    }
}

#[test]
fn lanes_that_go_round_a_loop_with_an_atomic_are_waited_for_as_a_gpus_counters_say() {
    for name in ["cas_max", "atomic_in_loop"] {
        for compiler in ["gcc", "clang-19"] {
            let folder = tempfile::tempdir().unwrap();
            let said = said(&traced("yields.c", name, compiler, &folder), "serialize");
            let counted = counted(name, "plain");
            assert!((said - counted).abs() < NEAR, "{name} {compiler}: {said:.1}, counted {counted:.1}");
        }
    }
}

#[test]
fn the_verdict_of_a_program_with_a_lock_is_two_figures_and_the_first_remedy_is_to_meet_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced("programs.c", "number_then_work", "gcc", &folder);
    let lines = succeed("replay", &[&trace]);
    let headline = "verdict: 3.1% SIMT efficiency on nvidia as a port of the lock would run, 98.2% with lanes made to \
                    meet behind the lock: these lanes run very badly in lockstep, about 1 of a warp's 32 at a time.";
    assert_eq!(lines.lines().next(), Some(headline), "{lines}");
    let json: Value = serde_json::from_str(&succeed("replay", &["--json", &trace])).unwrap();
    let verdict = &json["verdict"];
    let (locks, place) = (&verdict["locks"], &verdict["places"][0]);
    assert!(locks["lost_behind_locks"].as_f64().unwrap() > 0.99, "{verdict}");
    let line = std::fs::read_to_string(root().join("cli/tests/locks/programs.c")).unwrap();
    let line = 1 + line.lines().position(|line| line.contains("pthread_mutex_lock")).unwrap();
    assert_eq!(place["at"], format!("programs.c:{line}"), "{verdict}");
    let remedies = std::iter::once(&place["remedy"]).chain(place["more_remedies"].as_array().unwrap());
    let remedies: Vec<(&str, &str)> =
        remedies.map(|r| (r["kind"].as_str().unwrap(), r["gain"].as_str().unwrap())).collect();
    let meet = ("meet behind the lock", "that raised 3.1% to 98.2% when it was replayed");
    assert_eq!(remedies, [meet, ("atomic in place of the lock", "that raised 3.1% to 100.0% when it was replayed")]);
    // Work in the lock: it can be shortened, or each lane can have its own.
    let folder = tempfile::tempdir().unwrap();
    let trace = traced("programs.c", "half_in_lock", "gcc", &folder);
    let json: Value = serde_json::from_str(&succeed("replay", &["--json", &trace])).unwrap();
    let place = &json["verdict"]["places"][0];
    let remedies = std::iter::once(&place["remedy"]).chain(place["more_remedies"].as_array().unwrap());
    let kinds: Vec<&str> = remedies.map(|r| r["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["meet behind the lock", "shorten the lock", "lock granularity"]);
    let locks = &json["verdict"]["locks"];
    let parts = ["lost_in_locks", "lost_behind_locks"].map(|part| locks[part].as_f64().unwrap());
    assert!(parts[0] > 0.05 && parts[1] > 0.8 && parts[0] + parts[1] < 1.0 + 1e-9, "{locks}");
}
