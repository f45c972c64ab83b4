//! Spin-waiting that no `pause` marks, in real programs: left out where it is sure, and loops that only look like it
//! are kept.

use serde_json::Value;

use crate::support::{build, root, run, succeed};

/// The line that says what was taken, and the instructions of each lane.
fn replayed(trace: &str, arguments: &[&str]) -> (String, Vec<u64>) {
    let json: Value = serde_json::from_str(&succeed("replay", &[&["--json"], arguments, &[trace]].concat())).unwrap();
    let lanes = json["results"][0]["lane_instructions"].as_array().unwrap();
    (json["view"].as_str().unwrap().to_owned(), lanes.iter().map(|n| n.as_u64().unwrap()).collect())
}

/// 24 phases of 1000 to 4000 turns of 3 instructions, and what the barrier itself takes.
fn is_the_work(instructions: u64) -> bool {
    let work = 24 * 2500 * 3;
    (work..work + work / 5).contains(&instructions)
}

#[test]
fn a_barrier_that_spins_on_memory_or_yields_leaves_the_work() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    for wait in ["-DWAIT=0", "-DWAIT=2"] {
        build(&root().join("cli/tests/programs/spin_waits.c"), &program, &[wait, "-O2"]);
        succeed("trace", &["-o", trace, program.to_str().unwrap()]);
        let (view, lanes) = replayed(trace, &["--check"]);
        assert!(lanes.len() == 4 && lanes.iter().all(|n| is_the_work(*n)), "{wait}: {lanes:?}; {view}");
    }
}

#[test]
fn loops_that_count_search_or_walk_are_work() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    for optimisation in ["-O0", "-O2"] {
        build(&root().join("cli/tests/programs/spin_works.c"), &program, &[optimisation]);
        succeed("trace", &["-o", trace, program.to_str().unwrap()]);
        let (view, lanes) = replayed(trace, &[]);
        let (_, all) = replayed(trace, &["--spin", "keep"]);
        assert_eq!(lanes, all, "{optimisation}: {view}");
    }
}

#[test]
fn a_line_where_nothing_could_wait_is_refused_and_so_is_one_without_code() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    let source = root().join("cli/tests/programs/spin_works.c");
    build(&source, &program, &["-O2", "-g"]);
    succeed("trace", &["-o", trace, program.to_str().unwrap()]);
    let text = std::fs::read_to_string(&source).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("pthread_join")).expect("main joins its threads");
    for (place, why) in
        [(line, "no loop that could be spin-waiting runs there"), (9999, "the trace has no code of that line")]
    {
        let refused = run("replay", &["--spin", &format!("spin_works.c:{place}"), trace]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
