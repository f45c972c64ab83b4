//! `trace --repeat` and `replay` of several traces: how far figures depend on the recording.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{build, root, run, succeed};

/// Three recordings of this program of `tests/first-hour`.
fn recorded(folder: &Path, source: &str, flags: &[&str]) -> Vec<String> {
    let program = folder.join("program");
    build(&root().join("tests/first-hour").join(source), &program, flags);
    let trace = folder.join("run.bin");
    succeed("trace", &["--repeat", "3", "-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
    assert!(!trace.exists());
    let numbered = |number: u8| folder.join(format!("run.{number}.bin")).to_str().unwrap().to_owned();
    (1..=3).map(numbered).collect()
}

#[test]
fn the_spread_is_that_of_the_traces_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let traces = recorded(folder.path(), "locks.c", &["-pthread"]);
    let traces: Vec<&str> = traces.iter().map(String::as_str).collect();
    let options = ["-H", "minsp-pc,barrier", "--locks", "simt", "--json"];
    let told: Value = serde_json::from_str(&succeed("replay", &[&options[..], &traces].concat())).unwrap();
    let of_trace =
        |trace: &&str| serde_json::from_str(&succeed("replay", &[&options[..], &[*trace]].concat())).unwrap();
    let one_by_one: Vec<Value> = traces.iter().map(of_trace).collect();
    for model in [0, 1] {
        let mut alone: Vec<f64> = Vec::new();
        for (number, one) in one_by_one.iter().enumerate() {
            let (one, of_all) = (&one["results"][model], &told["traces"][number]["results"][model]);
            assert_eq!((&one["fetches"], &one["heuristic"]), (&of_all["fetches"], &of_all["heuristic"]));
            alone.push(one["simt_efficiency"].as_f64().unwrap());
        }
        alone.sort_by(f64::total_cmp);
        let spread = &told["spread"][model];
        let spread: Vec<f64> = ["least", "median", "most"].map(|name| spread[name].as_f64().unwrap()).to_vec();
        spread.iter().zip(&alone).for_each(|(of_all, one)| assert!((of_all - one).abs() < 1e-12, "{told}"));
    }
    // Each lane has a fixed share.
    let table = succeed("replay", &[&options[..4], &traces].concat());
    assert!(table.contains("The recordings agree within 5 points"), "{table}");
}

#[test]
fn traces_of_different_commands_have_no_spread() {
    let folder = tempfile::tempdir().unwrap();
    let traces = recorded(folder.path(), "locks.c", &["-pthread"]);
    let other = folder.path().join("other.bin");
    succeed("trace", &["-o", other.to_str().unwrap(), "true"]);
    let told = run("replay", &[&traces[0], other.to_str().unwrap()]);
    assert_eq!(told.status.code(), Some(4), "{told:?}");
    assert!(String::from_utf8_lossy(&told.stderr).contains("`lockstep diff` compare two"), "{told:?}");
}

#[test]
fn a_run_that_fails_is_the_last_one() {
    let folder = tempfile::tempdir().unwrap();
    let trace: PathBuf = folder.path().join("run");
    let told = run("trace", &["--repeat", "3", "-o", trace.to_str().unwrap(), "sh", "-c", "exit 7"]);
    assert_eq!(told.status.code(), Some(7));
    assert!(folder.path().join("run.1").exists() && !folder.path().join("run.2").exists());
}
