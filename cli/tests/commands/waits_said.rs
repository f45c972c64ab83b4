//! What the verdict says of locks and waits that are known by their form, or that order nothing.

use serde_json::Value;

use crate::support::{has_openmp_of_clang, is_whole, succeed};
use crate::waits::{built, traced};

/// The verdict on a program: what is said first, and its efficiency.
fn verdict(source: &str, compiler: &[&str], flags: &[&str]) -> (f64, String) {
    verdict_of((source, &[]), compiler, flags)
}

/// That on a program with these arguments.
fn verdict_of((source, arguments): (&str, &[&str]), compiler: &[&str], flags: &[&str]) -> (f64, String) {
    let folder = tempfile::tempdir().unwrap();
    let program = built(source, compiler, flags, folder.path());
    let trace = traced(&program, arguments, folder.path());
    let json: Value = serde_json::from_str(&succeed("replay", &["--json", &trace])).unwrap();
    let said = json["verdict"].to_string();
    (json["verdict"]["efficiency"].as_f64().unwrap(), said)
}

#[test]
fn a_runtime_that_waits_and_an_operation_that_is_tried_again_are_no_waits_of_lanes() {
    let compilers: &[(&str, &str)] = &[("gcc", "-fopenmp"), ("clang-19", "-fopenmp=libomp")];
    for (compiler, openmp) in compilers.iter().filter(|(one, _)| *one == "gcc" || has_openmp_of_clang()) {
        let (_, said) = verdict("omp_reduction.c", &[compiler], &["-O2", "-w", openmp]);
        assert!(!said.contains("does not order"), "{compiler}: {said}");
        assert!(!said.contains("do not wait for each other"), "{compiler}: {said}");
    }
}

#[test]
fn the_verdict_says_where_lanes_wait_in_loops_that_order_nothing() {
    // Each thread waits for the one before it, or for a flag or number of another.
    for (optimisation, kind) in [("-O0", 14), ("-O2", 14), ("-O2", 16), ("-O2", 17)] {
        let kind = format!("-DKIND={kind}");
        let (_, said) = verdict("atomics.cpp", &["g++"], &[optimisation, "-w", "-pthread", &kind, "-DFORM=1"]);
        assert!(said.contains("waits until another thread writes something"), "{said}");
        assert!(said.contains("at most ") && !said.contains("very well"), "{said}");
    }
    let (_, said) = verdict("atomics.cpp", &["g++"], &["-O0", "-w", "-pthread", "-DKIND=0", "-DFORM=1"]);
    assert!(!said.contains("waits until another thread"), "{said}");
}

#[test]
fn rusts_mutex_is_taken_by_one_lane_at_a_time_and_the_verdict_says_that_it_only_looks_like_a_lock() {
    let (efficiency, said) = verdict("rust_locks.rs", &["rustc", "--edition", "2021"], &["-O"]);
    assert!((efficiency - 0.125).abs() < 0.01 && said.contains("looks like a lock"), "{said}");
}

#[test]
fn a_mutex_of_rust_that_guards_only_a_barrier_is_a_part_of_it() {
    let (efficiency, said) = verdict_of(("kinds.rs", &["meeting", "0"]), &["rustc", "--edition", "2021"], &["-O"]);
    assert!(efficiency > 0.95 && said.contains("\"is_at_most\":false"), "{said}");
}

#[test]
fn a_lock_at_which_nobody_had_to_wait_is_one_where_threads_queue_and_else_may_be_one() {
    let [gcc, clang] = [["g++", "-O2"], ["clang++-19", "-O2"]];
    let all = (0..10).map(|kind| (kind, [gcc, clang][kind % 2]));
    let more = [(0, clang), (1, gcc), (7, ["g++", "-O0"]), (8, ["g++", "-O0"])];
    for (kind, how) in all.chain(more.into_iter().take(if is_whole() { more.len() } else { 0 })) {
        let (_, said) = verdict("seldom.cpp", &how, &["-w", "-pthread", &format!("-DKIND={kind}")]);
        let what = ["looks like a lock", "may be locks", "wait for each other"][usize::from(kind > 1) + kind / 8];
        let is_sure = said.contains("\"is_at_most\":false");
        assert!(said.contains(what) && is_sure == (kind < 2), "{kind} {how:?}: {said}");
    }
}

#[test]
fn a_lock_found_by_a_pointer_and_given_by_a_plain_store_may_be_one() {
    for (number, (kind, form)) in (0..11).flat_map(|kind| [(kind, ""), (kind, "-DOUT")]).enumerate() {
        // Each in one form, in turn; for `scripts/check --whole` in both.
        if !is_whole() && kind % 2 != number % 2 {
            continue;
        }
        let (compiler, rounds) = (["g++", "clang++-19"][number / 2 % 2], ["-DROUNDS=1", "-DROUNDS=4"][number % 2]);
        let kind_is = format!("-DKIND={kind}");
        let options = ["-w", "-pthread", &kind_is, rounds, form];
        let options: Vec<&str> = options.into_iter().filter(|option| !option.is_empty()).collect();
        let (efficiency, said) = verdict("by_pointer.cpp", &[compiler, "-O2"], &options);
        let is_lock = kind == 10 && efficiency < 0.4 && said.contains("looks like a lock");
        let may_be = said.contains("\"is_at_most\":true");
        assert!(is_lock != may_be, "{kind} {compiler} {rounds} {form}: {said}");
    }
}

#[test]
fn a_lock_is_given_in_the_function_that_takes_it_whatever_others_store_by_the_same_register() {
    let (efficiency, said) = verdict("two_ways.c", &["gcc", "-O2"], &["-pthread"]);
    assert!(efficiency < 0.2 && said.contains("looks like a lock"), "{efficiency} {said}");
}

#[test]
fn who_tries_again_to_get_a_share_of_a_word_runs_what_one_runs_that_had_it_at_once() {
    for compiler in ["gcc", "clang-19"] {
        let folder = tempfile::tempdir().unwrap();
        let trace = traced(&built("shares.c", &[compiler], &["-O2", "-pthread"], folder.path()), &[], folder.path());
        let json: Value = serde_json::from_str(&succeed("replay", &["--json", "-H", "minsp-pc", &trace])).unwrap();
        let lanes: Vec<u64> = serde_json::from_value(json["results"][0]["lane_instructions"].clone()).unwrap();
        assert!(lanes.len() == 8 && lanes.iter().all(|lane| *lane == lanes[0]), "{compiler}: {lanes:?}");
    }
}

#[test]
fn lanes_that_ask_the_kernel_for_input_may_wait_for_each_other() {
    let (_, said) = verdict("seldom.cpp", &["g++", "-O2"], &["-w", "-pthread", "-DKIND=10"]);
    assert!(said.contains("lanes asked the kernel for input 16 times"), "{said}");
}

#[test]
fn atomics_that_look_like_locks_are_none() {
    let hows = [("g++", "-O0"), ("g++", "-O2"), ("clang++-19", "-O2")];
    let all = hows.into_iter().flat_map(|how| [(how, "no_locks.cpp"), (how, "claims.cpp")]);
    for (number, ((compiler, optimisation), program)) in all.enumerate() {
        // Each build is of one program, in turn; for `scripts/check --whole` of both.
        if !is_whole() && number / 2 % 2 != number % 2 {
            continue;
        }
        let (_, said) = verdict(program, &[compiler], &[optimisation, "-w", "-std=c++17", "-pthread"]);
        let is_none = !said.contains("looks like a lock") && said.contains("\"is_at_most\":false");
        assert!(is_none && !said.contains("\"locks\":{"), "{program} {compiler} {optimisation}: {said}");
    }
}

#[test]
fn locks_that_functions_of_the_c_library_take_for_themselves_are_no_lanes() {
    for linked in ["-pthread", "-static"] {
        let (efficiency, said) = verdict("of_library.cpp", &["g++"], &["-O2", "-w", linked]);
        let is_free = !said.contains("\"locks\":{") && said.contains("\"is_at_most\":false");
        assert!(efficiency > 0.95 && is_free, "{linked}: {said}");
    }
}

#[test]
fn an_endless_loop_that_does_nothing_is_waiting_and_quickly_passed_over() {
    for optimisation in ["-O0", "-O2"] {
        let folder = tempfile::tempdir().unwrap();
        let program = built("empty_spin.c", &["gcc"], &["-pthread", optimisation], folder.path());
        let trace = traced(&program, &[], folder.path());
        let json: Value = serde_json::from_str(&succeed("replay", &["--json", "-H", "minpc", &trace])).unwrap();
        let kept = json["results"][0]["thread_instructions"].as_u64().unwrap();
        assert!(kept < 200_000, "{}", json["view"]);
        assert!(json["view"].as_str().unwrap().contains("spin-waiting"), "{}", json["view"]);
    }
}
