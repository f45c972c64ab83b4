//! `meld` over random programs with arms that are alike, at -O1 and -O3.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use transform::llvm::{Instruction, Module, Value};
use transform::{CostModel, Pipeline, Reason, Unmeldable, X86_64};

use crate::progress::{Counts, Progress, add};
use crate::{arms, build};

/// How the pass is typed.
const PASSES: [&str; 4] = [
    "meld:only-divergent=no,threshold=0",
    "meld:threshold=-1,align=needleman-wunsch",
    "meld:threshold=-1,unpredicate=no,once=yes",
    "tail-merge,branch-fusion:threshold=0,meld:threshold=-1,fcs",
];

/// Clang by itself makes selects and common blocks of the simplest of what is to be melded.
const APART: [&str; 4] = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];

/// So many programs are built at once.
const TOGETHER: u64 = 10;

/// Builds the programs of these numbers, runs each before and after, and counts.
fn same_output_for(seeds: Range<u64>, levels: &[&str], progress: Option<&Progress>) -> Counts {
    let (next, counts) = (AtomicU64::new(seeds.start), Mutex::new(Counts::new()));
    let jobs = std::env::var("JOBS").ok().and_then(|text| text.parse().ok());
    std::thread::scope(|scope| {
        for _ in 0..jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)) {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(TOGETHER, Ordering::Relaxed);
                    let part = first..seeds.end.min(first + TOGETHER);
                    if part.is_empty() {
                        break;
                    }
                    let known = progress.and_then(|progress| progress.known(&part));
                    let is_new = known.is_none();
                    let found = known.unwrap_or_else(|| together(part.clone(), levels));
                    if let Some(progress) = progress.filter(|_| is_new) {
                        progress.note(&part, &found);
                        println!("programs {} to {}: {} meld", part.start, part.end - 1, found["programs that meld"]);
                    }
                    add(&mut counts.lock().unwrap(), found);
                }
            });
        }
    });
    counts.into_inner().unwrap()
}

/// Some programs, built at once.
fn together(seeds: Range<u64>, levels: &[&str]) -> Counts {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (source, bitcode, program) = (path("a.c"), path("a.bc"), path("a"));
    fs::write(&source, arms::source(seeds.clone())).unwrap();
    let mut counts = Counts::new();
    let (mut melding, mut worth_it) = (BTreeSet::new(), BTreeSet::new());
    for level in levels {
        build::to_bitcode(&source, &bitcode, &[&[level, "-Wno-everything"], &APART[..]].concat());
        build::link(&bitcode, &program, &[]);
        let expected = build::output(&program, [""; 0]);
        for (number, passes) in PASSES.into_iter().enumerate() {
            let (after, program) = (path("b.bc"), path("b"));
            for remark in build::transform(&bitcode, passes, &after) {
                let Reason::Melded(of) = &remark.reason else { continue };
                if number == 0 {
                    worth_it.insert(remark.function.clone());
                }
                melding.insert(remark.function.clone());
                let mut count =
                    |what: &str, shows: bool| *counts.entry(what.to_owned()).or_default() += usize::from(shows);
                count(of.case.name(), true);
                count("with loops", of.loops > 0);
                count("with phis at the exit", of.exit_phis > 0);
                count("with values to be carried", of.carried > 0);
            }
            build::link(&after, &program, &[]);
            let got = build::output(&program, [""; 0]);
            for (expected, got) in expected.lines().zip(got.lines()) {
                assert_eq!(
                    got, expected,
                    "the line of a program, of those from {} on, at {level} after {passes}",
                    seeds.start
                );
            }
            assert_eq!(got, expected, "programs {seeds:?} at {level} after {passes}");
        }
    }
    counts.insert("programs".to_owned(), (seeds.end - seeds.start) as usize);
    counts.insert("programs that meld".to_owned(), melding.len());
    counts.insert("programs that meld where it is worth it".to_owned(), worth_it.len());
    counts
}

#[test]
fn programs_with_arms_alike_print_the_same_melded() {
    let counts = same_output_for(0..20, &["-O1", "-O3"], None);
    assert!(counts["programs that meld"] * 2 >= counts["programs"], "{counts:?}");
}

/// How many programs, from the environment: `scripts/check-transforms` runs 1,000.
#[test]
#[ignore = "takes minutes: scripts/check-transforms runs it"]
fn many_programs_with_arms_alike_print_the_same_melded() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    let (first, count) = (number("FIRST", 0), number("COUNT", 1_000));
    let counts = same_output_for(first..first + count, &["-O1", "-O3"], Some(&Progress::of("arms-alike")));
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

/// A branch with two arms of so many instructions each, of which every third has another kind on the other side.
fn arms_of(lengths: [usize; 2]) -> String {
    let mut text = "define void @f(i1 %c, ptr %p, ptr %q) {\n  br i1 %c, label %arm0, label %arm1\n".to_owned();
    for (arm, length) in lengths.into_iter().enumerate() {
        let (from, other) = ([("p", "xor"), ("q", "sub")][arm], ["mul", "add"]);
        text += &format!("arm{arm}:\n  %x{arm}.0 = load i32, ptr %{}\n", from.0);
        for i in 1..length {
            let kind = if i % 3 == 0 { from.1 } else { other[i % 2] };
            text += &format!("  %x{arm}.{i} = {kind} i32 %x{arm}.{}, {}\n", i - 1, i * 77 + 5);
        }
        text += &format!("  store i32 %x{arm}.{}, ptr %{}\n  br label %join\n", length - 1, from.0);
    }
    text + "join:\n  ret void\n}\n"
}

/// The default model, which counts what it is asked.
struct Asked(AtomicU64);

impl CostModel for Asked {
    fn fetches<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        X86_64.fetches(i, beside)
    }

    fn fetches_of_choices<'m>(&self, choices: &[(Value<'m>, Value<'m>)]) -> i64 {
        X86_64.fetches_of_choices(choices)
    }

    fn latency<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        X86_64.latency(i, beside)
    }
}

/// What `meld` says of arms of these lengths, and how often it asked what an instruction costs.
fn work(lengths: [usize; 2]) -> (Vec<transform::Remark>, f64) {
    let asked: &'static Asked = Box::leak(Box::new(Asked(AtomicU64::new(0))));
    let mut module = Module::parse(arms_of(lengths).as_bytes(), "arms.ll").unwrap();
    let remarks = Pipeline::parse("meld:threshold=-1,once=yes").unwrap().with_costs(asked).run(&mut module).unwrap();
    (remarks, asked.0.load(Ordering::Relaxed) as f64)
}

#[test]
fn work_grows_no_faster_than_the_product_of_the_lengths() {
    let (remarks, small) = work([50, 40]);
    assert!(remarks.iter().any(transform::Remark::is_taken), "{remarks:?}");
    for (lengths, times) in [([100, 40], 2.0), ([100, 80], 4.0), ([200, 160], 16.0), ([400, 320], 64.0)] {
        let (remarks, asked) = work(lengths);
        assert!(remarks.iter().any(transform::Remark::is_taken), "{lengths:?}: {remarks:?}");
        assert!(asked <= small * times * 1.1, "{lengths:?}: asked {asked} times, for [50, 40] {small} times");
    }
}

#[test]
fn arms_whose_product_is_huge_are_aligned_with_no_more_work_than_a_bound() {
    let (_, small) = work([50, 40]);
    let most = small * 250_000.0 / (50.0 * 40.0) * 1.1;
    for lengths in [[700, 600], [4_000, 4_000], [300, 9_000]] {
        let (remarks, asked) = work(lengths);
        assert!(remarks.iter().any(transform::Remark::is_taken), "{lengths:?}: {remarks:?}");
        assert!(asked <= most, "{lengths:?}: asked {asked} times, at most {most} are allowed");
    }
}

#[test]
fn parts_of_arms_that_are_no_subgraphs_are_named_with_their_reasons() {
    let said = |name: &str| {
        let case = format!("{}/tests/goldens/meld/{name}.ll", env!("CARGO_MANIFEST_DIR"));
        let mut module = Module::read(std::path::Path::new(&case)).unwrap();
        Pipeline::parse("meld").unwrap().run(&mut module).unwrap()
    };
    let left = |remarks: &[transform::Remark], function: &str| {
        let of = remarks.iter().filter(|remark| remark.function == function && !remark.is_taken());
        of.map(|remark| remark.reason.clone()).collect::<Vec<_>>()
    };
    let early = said("leaves_early");
    assert_eq!(left(&early, "little"), [Reason::NoSubgraph(Unmeldable::LeavesEarly)]);
    assert_eq!(left(&early, "early"), [Reason::NoSubgraph(Unmeldable::LeavesEarly)]);
    assert_eq!(early.iter().filter(|remark| remark.is_taken()).count(), 1);
    let returns = said("returns_each");
    assert_eq!(left(&returns, "returns"), [Reason::NoSubgraph(Unmeldable::Ends)]);
    assert_eq!(returns.iter().filter(|remark| remark.is_taken()).count(), 1);
    assert_eq!(left(&said("never"), "never"), [Reason::NoSubgraph(Unmeldable::Fixed)]);
}
