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
fn what_cannot_be_predicted_is_named_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = traced(folder.path());
    for (arguments, expected) in [
        (["-H", "barrier", "--predict", "lookups.c:1"], "no lane ran code there"),
        (["-H", "barrier", "--predict", "0x1"], "no lane ran code there"),
        (["-H", "ipdom", "--predict", "lookups.c:43"], "only barrier with meet=barriers collects lanes"),
        (["-H", "barrier:meet=anywhere", "--predict", "lookups.c:43"], "only barrier with meet=barriers"),
        (["-H", "barrier", "--predict", "lookups"], "a line (barrier.c:12) or an address"),
    ] {
        let output = run("replay", &[&arguments[..], &[&trace]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
    }
}
