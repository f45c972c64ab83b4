//! Over random programs.

use std::fs;

use crate::build::{self, Printed};
use crate::generator;
use crate::progress::{Counts, Progress};

/// Builds the programs of these numbers, runs each before and after every pass, and counts the changes that passes
/// made.
fn same_output_for(seeds: std::ops::Range<u64>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut taken = 0;
    for seed in seeds {
        let (source, bitcode, after) = (path("a.c"), path("a.bc"), path("b.bc"));
        fs::write(&source, generator::program(seed)).unwrap();
        let level = ["-O1", "-O2", "-O3", "-Os"][seed as usize % 4];
        build::to_bitcode(&source, &bitcode, &[level, "-Wno-everything"]);
        let mut printed = Printed::default();
        let expected = printed.by(&bitcode, &[], &[]);
        for passes in build::pipelines() {
            taken += build::transform(&bitcode, &passes, &after).iter().filter(|c| c.is_taken()).count();
            let got = printed.by(&after, &[], &[]);
            assert_eq!(got, expected, "program {seed} at {level} after {passes}");
        }
    }
    taken
}

#[test]
fn random_programs_print_the_same_after_every_pass() {
    let taken = same_output_for(0..12);
    assert!(taken > 40, "the programs give the passes too little to do: {taken} changes");
}

/// How many programs, from the environment: `scripts/check-transforms` runs 500.
#[test]
#[ignore = "takes minutes: scripts/check-transforms runs it"]
fn many_random_programs_print_the_same_after_every_pass() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    let (first, count) = (number("FIRST", 0), number("COUNT", 500));
    let progress = Progress::of("random");
    let mut taken = 0;
    for start in (first..first + count).step_by(10) {
        let part = start..(first + count).min(start + 10);
        let known = progress.known(&part).and_then(|counts| counts.get("changes").copied());
        taken += known.unwrap_or_else(|| {
            let changes = same_output_for(part.clone());
            progress.note(&part, &Counts::from([("changes".to_owned(), changes)]));
            changes
        });
        println!("programs up to {}: {taken} changes", part.end - 1);
    }
    println!("{count} programs, {taken} changes");
}

/// `scripts/check-verify` needs them as files: COUNT of them, in FOLDER.
#[test]
#[ignore = "writes files: scripts/check-verify runs it"]
fn write_random_programs() {
    let folder = std::path::PathBuf::from(std::env::var("FOLDER").expect("FOLDER names a folder"));
    let count: u64 = std::env::var("COUNT").expect("COUNT is set").parse().expect("a number");
    for seed in 0..count {
        fs::write(folder.join(format!("{seed}.c")), generator::program(seed)).unwrap();
    }
}
