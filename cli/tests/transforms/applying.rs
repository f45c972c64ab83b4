//! What `linearize` does to structured code where it is asked, at each level: figures 2(a) and 2(b) of its paper
//! (Anantpur and Govindarajan, CC 2014) as programs with loads and loops of their own, in numbers.

use serde_json::Value;

use crate::folder::{Folder, lockstep, root};

/// A program after a pass, traced.
struct Traced {
    folder: Folder,
    printed: String,
}

fn traced(pass: &str) -> Traced {
    let folder = Folder::with(&[]);
    let source = root().join("cli/tests/transforms/nested.c").display().to_string();
    let words = ["cc", "--transform", pass, "--", "-O2", "-w", "-no-pie", "-pthread", &source, "-o", "nested"];
    folder.succeed(lockstep(), &words);
    folder.succeed(lockstep(), &["trace", "-o", "nested.bin", "./nested"]);
    let printed = folder.succeed("./nested", &[]);
    Traced { folder, printed }
}

impl Traced {
    /// What ipdom counts, with loads of so many cycles.
    fn counts(&self, latency: &str) -> Value {
        let words = ["replay", "--region", "kernel", "-H", "ipdom", "--check", "--load-latency", latency, "--json"];
        let json = self.folder.succeed(lockstep(), &[&words[..], &["nested.bin"]].concat());
        serde_json::from_str::<Value>(&json).unwrap()["results"][0].take()
    }

    /// How often ipdom issues a function.
    fn issued(&self, function: &str) -> usize {
        let listing = self.folder.succeed("nm", &["--defined-only", "nested"]);
        let address = listing.lines().find_map(|line| line.strip_suffix(&format!(" t {function}"))).unwrap();
        let start = u64::from_str_radix(address, 16).unwrap();
        let words = ["replay", "--region", "kernel", "-H", "ipdom", "--check", "--schedule", "schedule", "nested.bin"];
        self.folder.succeed(lockstep(), &words);
        let schedule = self.folder.read("schedule");
        let pcs =
            schedule.lines().skip(1).map(|line| u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap());
        pcs.filter(|&pc| pc == start).count()
    }
}

#[test]
fn lanes_that_are_done_with_an_inner_loop_join_the_others_at_each_level() {
    let before = traced("none");
    // 15 turns in each of the outer loop's two.
    assert_eq!(before.issued("merge_s2"), 30);
    for level in 0..=4 {
        let after = traced(&format!("linearize:threshold=-1000,merge-loops=yes,level={level}"));
        assert_eq!(after.printed, before.printed);
        // 10 and then 15, or 15 and then 10: 25 for each lane, and no more for all.
        assert_eq!(after.issued("merge_s2"), 25, "level {level}");
    }
}

#[test]
fn code_of_the_other_arm_fills_the_wait_for_a_load() {
    let (before, after) = (traced("none"), traced("linearize:threshold=-1000,interleave=yes"));
    assert_eq!(after.printed, before.printed);
    let stalls = |traced: &Traced, latency: &str| traced.counts(latency)["load_stalls"].as_u64().unwrap();
    // All loads but those of the arms are there at once: latency 1 tells that nothing else waits.
    let others = |traced: &Traced| stalls(traced, "1");
    let [old, new] = [&before, &after].map(|traced| stalls(traced, "100") - others(traced));
    // Each arm waited for a load of its own; now both loads are under way together.
    assert!(old >= 180 && new + 80 <= old, "{old} cycles of stalls, then {new}");
}

/// The paper's figure 2(c) with a body of so many instructions more, built with these words before the compiler's.
fn trip_counts(folder: &Folder, work: &str, words: &[&str]) -> String {
    let source = root().join("workloads/micro/trip_counts.c").display().to_string();
    let include = format!("-I{}", root().join("workloads/include").display());
    let flags = ["-O2", "-g", "-w", "-no-pie", "-pthread", &include, work, &source, "-o", "program"];
    folder.succeed(lockstep(), &[&["cc"], words, &["--report", "-", "--"], &flags].concat());
    folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "./program", "-p", "4"]);
    folder.succeed("./program", &["-p", "4"])
}

#[test]
fn trip_counts_of_a_trace_decide_where_loops_are_merged() {
    let folder = Folder::with(&[]);
    let replayed = |words: &[&str]| -> Value {
        let all = [&["replay", "--region", "kernel", "--json"], words, &["trace.bin"]].concat();
        serde_json::from_str(&folder.succeed(lockstep(), &all)).unwrap()
    };
    let fetches = || replayed(&["-H", "ipdom", "--check"])["results"][0]["fetches"].as_i64().unwrap();
    for (work, pays) in [("-DWORK=0", false), ("-DWORK=16", false), ("-DWORK=48", true)] {
        let printed = trip_counts(&folder, work, &["--transform", "none"]);
        let before = fetches();
        let loops = replayed(&["--loops", "-W", "4"]);
        std::fs::write(folder.path("loops.json"), loops.to_string()).unwrap();
        let merging: Vec<&Value> =
            loops.as_array().unwrap().iter().map(|row| &row["merging"]).filter(|merging| !merging.is_null()).collect();
        let [merging] = merging[..] else { panic!("one loop in another: {loops}") };
        // The paper: 15 trips in both turns; 25 for each lane in all.
        assert_eq!((&merging["trips_apart"], &merging["trips_merged"]), (&Value::from(30), &Value::from(25)));
        let gain = merging["gain"].as_i64().unwrap();
        assert_eq!(gain > 0, pays, "{work}: {merging}");

        assert_eq!(trip_counts(&folder, work, &["--transform", "linearize:threshold=-1000,merge-loops=yes"]), printed);
        let merged = fetches();
        assert_eq!(merged < before, pays, "{work}: {before} fetches, then {merged}");
        // The registers that are saved for it are not counted.
        assert!((before - merged - gain).abs() <= 40, "{work}: {before} fetches, then {merged}, but {gain} were said");

        let decided = ["--transform", "linearize:merge-loops=yes", "--trips", "loops.json"];
        assert_eq!(trip_counts(&folder, work, &decided), printed);
        let after = fetches();
        assert_eq!(after == merged, pays, "{work}: {after} fetches where trip counts decide, {merged} merged");
    }
}

#[test]
fn a_loop_of_a_function_that_was_inlined_is_merged_at_the_calls_where_a_trace_says_that_it_pays() {
    let folder = Folder::with(&[]);
    let source = root().join("cli/tests/transforms/copies.c").display().to_string();
    // What is printed, what was said of the kernel's loops, and the fetches.
    let built = |words: &[&str], define: &str| {
        let flags = ["--report", "said", "--", "-O2", "-g", "-no-pie", "-pthread", define, &source, "-o", "program"];
        std::fs::write(folder.path("said"), "").unwrap();
        folder.succeed(lockstep(), &[&["cc", "--transform"], words, &flags].concat());
        let said = folder.read("said");
        folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "./program"]);
        let json = folder.succeed(lockstep(), &["replay", "--region", "kernel", "--json", "trace.bin"]);
        let rows: Value = serde_json::from_str(&json).unwrap();
        let kernel = said
            .lines()
            .filter(|line| line.contains(": kernel: ") || line.contains(": walk: "))
            .map(str::to_owned)
            .collect::<Vec<_>>();
        (folder.succeed("./program", &[]), kernel, rows["results"][0]["fetches"].as_u64().unwrap())
    };
    let decided = ["linearize:merge-loops=yes", "--trips", "loops.json"];
    let keep_loops = || {
        let loops = folder.succeed(lockstep(), &["replay", "--region", "kernel", "--loops", "--json", "trace.bin"]);
        std::fs::write(folder.path("loops.json"), loops).unwrap();
    };
    // Both calls on lines of their own: one copy of two is merged.
    let (printed, _, before) = built(&["none"], "-DTWO_LINES");
    keep_loops();
    let (again, said, after) = built(&decided, "-DTWO_LINES");
    assert_eq!(again, printed);
    let [left, taken] = &said[..] else { panic!("a copy each: {said:?}") };
    assert!(left.contains("left: kernel: loops at") && left.contains("no profit: as one loop"), "{left}");
    assert!(taken.contains("taken: kernel: ") && taken.contains(" 1 regions "), "{taken}");
    assert!(after < before, "{before} fetches, then {after}");
    // Where the pass finds it apart, one loop stands for both copies.
    let (again, said, _) = built(&decided, "-DAPART");
    assert_eq!(again, printed);
    let [left] = &said[..] else { panic!("one loop: {said:?}") };
    assert!(left.contains("the trace has 2 loops that this one may be, and not all pay"), "{left}");
    // Both on one line: which copy pays is unknown.
    built(&["none"], "-DONE_LINE");
    keep_loops();
    let (again, said, _) = built(&decided, "-DONE_LINE");
    assert_eq!(again, printed);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said.iter().all(|line| line.contains("the trace has 2 loops that this one may be, and not all pay")));
}
