//! Spin-waiting that no `pause` marks, in real programs: left out where it is sure, and loops that only look like it
//! are kept.

use serde_json::Value;

use crate::support::{build, is_whole, root, run, succeed};

/// The line that says what was taken, and the instructions of each lane.
fn replayed(trace: &str, arguments: &[&str]) -> (String, Vec<u64>) {
    let json: Value = serde_json::from_str(&succeed("replay", &[&["--json"], arguments, &[trace]].concat())).unwrap();
    let lanes = json["results"][0]["lane_instructions"].as_array().unwrap();
    (json["view"].as_str().unwrap().to_owned(), lanes.iter().map(|n| n.as_u64().unwrap()).collect())
}

/// Traces the program so many times: the line that says what was taken of each run, and the instructions of each lane.
fn runs(source: &str, flags: &[&str], count: usize) -> Vec<(String, Vec<u64>)> {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let trace = trace.to_str().unwrap();
    build(&root().join("cli/tests/programs").join(source), &program, flags);
    let one = |_| {
        succeed("trace", &["-o", trace, program.to_str().unwrap()]);
        replayed(trace, &["--check"])
    };
    (0..count).map(one).collect()
}

/// A wait of `spin_waits.c`, as a flag: what is left of a run is the work of its phases, for each thread, and what the
/// barrier itself takes, the same in each run.
fn what_is_left_is_the_work(wait: &str) {
    what_is_left_is_the_work_at(wait, &["-O2", "-O0"]);
}

fn what_is_left_is_the_work_at(wait: &str, optimisations: &[&str]) {
    what_is_left_is_work_of(1000, wait, optimisations);
}

/// With so much work, where what the barrier takes hangs on the schedule by a little: that of 24 phases in which each
/// thread makes `least` turns of 3 instructions, or two, three or four times as many. A third of the phases have three
/// times the turns, unless the whole is asked for: on a busy machine most of a phase is waiting.
fn what_is_left_is_work_of(least: u64, wait: &str, optimisations: &[&str]) {
    let work = 4 * 24 * least * 5 / 2 * 3;
    let (phases, least) = if is_whole() { (24, least) } else { (8, 3 * least) };
    let lengths = [format!("-DPHASES={phases}"), format!("-DWORK={least}")];
    for optimisation in optimisations {
        let flags = [wait, &lengths[0], &lengths[1], optimisation];
        let left = runs("spin_waits.c", &flags, if is_whole() { 3 } else { 2 });
        let sums: Vec<u64> = left.iter().map(|(_, lanes)| lanes.iter().sum()).collect();
        let (least, most) = (*sums.iter().min().unwrap(), *sums.iter().max().unwrap());
        let (view, _) = &left[0];
        assert!(work <= least && most <= work + work / 50, "{wait} {optimisation}: {sums:?} of {work}; {view}");
        assert!(most - least <= least / 1000, "{wait} {optimisation}: {sums:?}; {view}");
    }
}

#[test]
fn a_barrier_that_spins_on_memory_leaves_the_work() {
    what_is_left_is_the_work("-DWAIT=0");
    what_is_left_is_the_work("-DWAIT=1");
}

#[test]
fn a_barrier_that_yields_leaves_the_work() {
    what_is_left_is_the_work("-DWAIT=2");
}

#[test]
fn a_barrier_that_looks_at_several_places_leaves_the_work() {
    what_is_left_is_the_work("-DWAIT=3");
    what_is_left_is_the_work("-DWAIT=5");
}

#[test]
fn a_barrier_that_spins_for_a_while_and_then_blocks_leaves_the_work() {
    what_is_left_is_the_work("-DWAIT=4");
    what_is_left_is_work_of(10_000, "-DWAIT=12", &["-O0", "-O2"]);
}

#[test]
fn a_barrier_that_looks_the_more_rarely_the_longer_it_waits_leaves_the_work() {
    what_is_left_is_work_of(10_000, "-DWAIT=13", &["-O0", "-O2"]);
    what_is_left_is_work_of(10_000, "-DWAIT=14", &["-O0", "-O2"]);
}

#[test]
fn a_barrier_that_looks_in_several_ways_in_turn_leaves_the_work() {
    what_is_left_is_work_of(10_000, "-DWAIT=15", if is_whole() { &["-O2", "-O0"] } else { &["-O2"] });
}

#[test]
fn a_barrier_that_is_over_behind_the_first_rest_leaves_the_work() {
    what_is_left_is_the_work("-DWAIT=16");
}

#[test]
fn a_lock_that_is_tried_with_an_exchange_leaves_the_work() {
    what_is_left_is_the_work("-DWAIT=6");
    what_is_left_is_the_work("-DWAIT=7");
    what_is_left_is_the_work("-DWAIT=10");
}

#[test]
fn a_lock_that_is_tried_in_other_ways_leaves_the_work() {
    what_is_left_is_the_work_at("-DWAIT=8", &["-O2"]);
    what_is_left_is_the_work("-DWAIT=9");
    what_is_left_is_the_work_at("-DWAIT=11", &["-O2"]);
}

#[test]
fn loops_that_count_search_walk_write_or_take_are_work() {
    for optimisation in ["-O0", "-O2"] {
        let left = runs("spin_works.c", &[optimisation], 1);
        let (view, _) = &left[0];
        // The loop that breaks off looks like waiting, and is kept.
        let (taken, _) = view.split_once("; left out").unwrap();
        assert!(!taken.contains("spin-waiting"), "{optimisation}: {view}");
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
        [(line, "no loop that could be spin-waiting runs there"), (9999, "the trace has no code at that line")]
    {
        let refused = run("replay", &["--spin", &format!("spin_works.c:{place}"), trace]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(said.contains(why), "{said}");
    }
}
