//! `meld` over random programs with arms that are alike, at -O1 and -O3.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use transform::Reason;

use crate::{arms, build};

/// How the pass is typed.
const PASSES: [&str; 3] =
    ["meld:threshold=0", "meld:threshold=-1,align=needleman-wunsch", "meld:threshold=-1,unpredicate=no,once=yes"];

/// Clang by itself makes selects and common blocks of the simplest of what is to be melded.
const APART: [&str; 4] = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];

/// What was melded, by what it shows.
type Counts = BTreeMap<&'static str, usize>;

/// Builds the programs of these numbers, runs each before and after, and counts.
fn same_output_for(seeds: std::ops::Range<u64>, levels: &[&[&str]]) -> Counts {
    let (next, counts) = (AtomicU64::new(seeds.start), Mutex::new(Counts::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    one(seed, levels[seed as usize % levels.len()], &counts);
                }
            });
        }
    });
    counts.into_inner().unwrap()
}

fn one(seed: u64, levels: &[&str], counts: &Mutex<Counts>) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (source, bitcode, program) = (path("a.c"), path("a.bc"), path("a"));
    fs::write(&source, arms::program(seed)).unwrap();
    let mut melds = false;
    for level in levels {
        build::to_bitcode(&source, &bitcode, &[&[level, "-Wno-everything"], &APART[..]].concat());
        build::link(&bitcode, &program, &[]);
        let expected = build::output(&program, [""; 0]);
        for (number, passes) in PASSES.into_iter().enumerate() {
            let (after, program) = (path("b.bc"), path("b"));
            let remarks = build::transform(&bitcode, passes, &after);
            let mut counts = counts.lock().unwrap();
            for remark in &remarks {
                if let Reason::Melded(melding) = &remark.reason {
                    melds |= number == 0;
                    *counts.entry(melding.case.name()).or_default() += 1;
                    *counts.entry("with loops").or_default() += usize::from(melding.loops > 0);
                    *counts.entry("with phis at the exit").or_default() += usize::from(melding.exit_phis > 0);
                    *counts.entry("with values to be carried").or_default() += usize::from(melding.carried > 0);
                }
            }
            drop(counts);
            build::link(&after, &program, &[]);
            let got = build::output(&program, [""; 0]);
            assert_eq!(got, expected, "program {seed} at {level} after {passes}");
        }
    }
    let mut counts = counts.lock().unwrap();
    *counts.entry("programs").or_default() += 1;
    *counts.entry("programs that meld").or_default() += usize::from(melds);
}

#[test]
fn programs_with_arms_alike_print_the_same_melded() {
    let counts = same_output_for(0..16, &[&["-O1"], &["-O3"]]);
    assert!(counts["programs that meld"] * 2 >= counts["programs"], "{counts:?}");
}

/// How many programs, from the environment: `scripts/check-transforms` runs 1,000.
#[test]
#[ignore = "takes minutes: scripts/check-transforms runs it"]
fn many_programs_with_arms_alike_print_the_same_melded() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    let (first, count) = (number("FIRST", 0), number("COUNT", 1_000));
    let counts = same_output_for(first..first + count, &[&["-O1", "-O3"]]);
    for (what, count) in &counts {
        println!("{what}: {count}");
    }
    assert!(counts["programs that meld"] * 2 >= counts["programs"], "{counts:?}");
    if count >= 1_000 {
        let wanted = [
            "regions",
            "block-with-region",
            "blocks",
            "nearly-alike",
            "with loops",
            "with phis at the exit",
            "with values to be carried",
        ];
        for what in wanted {
            assert!(counts.get(what).is_some_and(|&count| count >= 50), "{what}: {counts:?}");
        }
    }
}

/// A division, a load, a store and a call stand on one side only, and would trap or be seen on the other.
const ONE_SIDE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int calls;
__attribute__((noinline)) static void note(int by) { calls += by; }
__attribute__((noinline)) static int work(int side, int *mine, int *null, int by, int x) {
    int y;
    if (side) {
        y = (x * 77 ^ mine[0]) * 3 + mine[1];
        y += x / by;
        mine[2] = y;
        note(y & 3);
    } else {
        y = (x * 77 ^ mine[3]) * 3 + mine[4];
        y ^= null[1];
    }
    return y * 5;
}
int main(void) {
    int mine[8] = {1, 2, 3, 4, 5, 6, 7, 8}, there[2] = {9, 10}, sum = 0;
    for (int i = 0; i < 20; i++) {
        int side = i % 3 == 0;
        sum = sum * 31 + work(side, mine, side ? NULL : there, side ? i + 1 : 0, i);
    }
    printf("%d %d %d\n", sum, calls, mine[2]);
    return 0;
}
"#;

#[test]
fn what_may_trap_or_is_seen_runs_for_its_own_side_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (source, bitcode, program) = (path("a.c"), path("a.bc"), path("a"));
    fs::write(&source, ONE_SIDE).unwrap();
    build::to_bitcode(&source, &bitcode, &[&["-O1", "-fwrapv"], &APART[..]].concat());
    build::link(&bitcode, &program, &[]);
    let expected = build::output(&program, [""; 0]);
    for passes in ["meld:threshold=-1", "meld:threshold=-1,unpredicate=no"] {
        let remarks = build::transform(&bitcode, passes, &path("b.bc"));
        assert!(remarks.iter().any(|remark| remark.is_taken() && remark.function == "work"), "{remarks:?}");
        build::link(&path("b.bc"), &path("b"), &[]);
        assert_eq!(build::output(path("b"), [""; 0]), expected, "{passes}");
    }
}
