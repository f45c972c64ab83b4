//! Programs whose lanes contend for locks, traced for real: every model leaves a number, and where it deadlocks with
//! the program as it is written, that is said with the lock and the line.

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
