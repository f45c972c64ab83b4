//! What branch fusion says that it saves, against what a replay of the traced program counts: the sign agrees for every
//! diamond of `diamonds.c`, whether it is one that the pass would take or one that it is made to take here.

use std::collections::BTreeMap;

use crate::folder::{Folder, lockstep, root};

/// Turns of each diamond's loop.
const TURNS: f64 = 16.0;

/// Functions, with the addresses of their code.
fn kernels(folder: &Folder, program: &str) -> Vec<(String, std::ops::Range<u64>)> {
    let listing = folder.succeed("nm", &["-S", "--defined-only", program]);
    let of_line = |line: &str| {
        let [start, size, _, name] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let (start, size) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(size, 16).ok()?);
        name.strip_prefix("k_").map(|name| (name.to_owned(), start..start + size))
    };
    listing.lines().filter_map(of_line).collect()
}

/// Fetches of each kernel under a model; what it calls counts as its own.
pub(crate) fn fetches(folder: &Folder, program: &str, model: &str) -> BTreeMap<String, f64> {
    let kernels = kernels(folder, program);
    let to = format!("{program}.{model}");
    folder
        .succeed(lockstep(), &["replay", "--code", "whole", "-H", model, "--schedule", &to, &format!("{program}.bin")]);
    let mut counts = BTreeMap::new();
    let mut current = None;
    for line in folder.read(&to).lines().skip(1) {
        let pc = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        if let Some((name, _)) = kernels.iter().find(|(_, code)| code.contains(&pc)) {
            current = Some(name.clone());
        }
        // What the thread does between kernels is a few instructions, the same before and after.
        *counts.entry(current.clone().unwrap_or_default()).or_default() += 1.0;
    }
    counts
}

/// Of each diamond that was looked at: its function, and how many fetches a turn saves by the remark.
fn predictions(report: &str) -> BTreeMap<String, i64> {
    let number = |text: &str| text.trim().parse::<i64>().unwrap();
    let of_line = |line: &str| {
        let name = line.split(": ").nth(1)?.strip_prefix("k_")?.to_owned();
        let (_, numbers) = line.split_once(" need about ")?;
        let (before, after) = numbers.split_once(" instructions, fused ")?;
        Some((name, number(before) - number(after)))
    };
    report.lines().filter_map(of_line).collect()
}

#[test]
fn what_branch_fusion_predicts_has_the_sign_of_what_is_measured() {
    let folder = Folder::with(&[]);
    let source = root().join("cli/tests/transforms/diamonds.c").display().to_string();
    for pass in ["none", "branch-fusion"] {
        let ours = ["cc", "--transform", pass, "--threshold", "-1000", "--report", "report", "--"];
        let loops = ["-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize"];
        let flags = ["-O3", "-w", "-fwrapv", "-fno-math-errno", "-no-pie", "-pthread", &source, "-lm", "-o", pass];
        folder.succeed(lockstep(), &[&ours[..], &loops, &flags].concat());
        folder.succeed(lockstep(), &["trace", "-o", &format!("{pass}.bin"), &format!("./{pass}")]);
    }
    let predictions = predictions(&folder.read("report"));
    assert!(predictions.len() >= 50, "{predictions:?}");
    let pays = predictions.values().filter(|&&saved| saved > 0).count();
    assert!(pays >= 20 && predictions.len() - pays >= 20, "{pays} of {} pay", predictions.len());
    let mut wrong = String::new();
    for model in ["minsp-pc", "ipdom"] {
        let [before, after] = ["none", "branch-fusion"].map(|program| fetches(&folder, program, model));
        for (kernel, &predicted) in &predictions {
            let measured = (before[kernel] - after[kernel]) / TURNS;
            // A fetch or two outside of the loop are no saving.
            if (predicted > 0) != (measured > 0.5) {
                wrong += &format!(
                    "{kernel} under {model}: {predicted} fetches saved per turn by the remark, {measured} measured\n"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_diamond_that_fusion_would_make_slower_is_left() {
    let folder = Folder::with(&[]);
    let source = root().join("cli/tests/transforms/diamonds.c").display().to_string();
    let words =
        ["cc", "--transform", "branch-fusion", "--report", "report", "--", "-O3", "-w", "-c", &source, "-o", "a.o"];
    folder.succeed(lockstep(), &words);
    let report = folder.read("report");
    let line = |name: &str| report.lines().find(|line| line.contains(&format!(" {name}: "))).unwrap_or_default();
    assert!(line("k_short_f64").contains("left") && line("k_short_f64").contains("no profit"), "{report}");
    assert!(line("k_alike_f64").contains("taken"), "{report}");
}
