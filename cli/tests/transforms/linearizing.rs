//! What `linearize` is for: lanes that wait for each other at post-dominators run no block twice that they could have
//! run together. Figure 1 of the paper (Anantpur and Govindarajan, CC 2014) with its counts, short circuits, a loop
//! with breaks, and a graph that escapes the paper's definition of what is unstructured.

use std::collections::BTreeMap;

use crate::folder::{Folder, lockstep, root};

/// How often each block of `jumps.c` is issued under a model, by the name of its function.
fn issued(folder: &Folder, program: &str, model: &str) -> BTreeMap<String, usize> {
    let listing = folder.succeed("nm", &["--defined-only", program]);
    let of_line = |line: &str| {
        let [address, _, name] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
    };
    let blocks =
        |(_, name): &(u64, String)| ["figure_1_", "either_", "escape_", "search_"].iter().any(|k| name.starts_with(k));
    let starts: BTreeMap<u64, String> = listing.lines().filter_map(of_line).filter(blocks).collect();
    assert_eq!(starts.len(), 20, "{starts:?}");
    let to = format!("{program}.{model}");
    let replay = ["replay", "--region", "kernel", "-H", model, "--check", "--schedule", &to, &format!("{program}.bin")];
    folder.succeed(lockstep(), &replay);
    let mut counts = BTreeMap::new();
    for line in folder.read(&to).lines().skip(1) {
        let pc = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        if let Some(name) = starts.get(&pc) {
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    counts
}

/// Builds, runs and traces `jumps.c`; what it printed.
fn traced(folder: &Folder, program: &str, pass: &str) -> String {
    let source = root().join("cli/tests/transforms/jumps.c").display().to_string();
    let words = ["cc", "--transform", pass, "--", "-O2", "-w", "-no-pie", "-pthread", &source, "-o", program];
    folder.succeed(lockstep(), &words);
    let own = format!("./{program}");
    folder.succeed(lockstep(), &["trace", "-o", &format!("{program}.bin"), &own]);
    folder.succeed(&own, &[])
}

#[test]
fn lanes_that_wait_at_post_dominators_run_no_block_twice() {
    let folder = Folder::with(&[]);
    let expected = traced(&folder, "none", "none");
    let [before, frontiers] = ["ipdom", "tf-stack"].map(|model| issued(&folder, "none", model));
    // The paper: B5 is executed thrice, for one thread each, and B3 twice.
    assert_eq!((before["figure_1_b5"], before["figure_1_b3"]), (3, 2));
    assert_eq!((before["either_x"], before["escape_x"]), (2, 2));
    for level in ["0", "1", "2", "3", "4"] {
        let program = format!("level{level}");
        assert_eq!(traced(&folder, &program, &format!("linearize:threshold=-1000,level={level}")), expected);
        let after = issued(&folder, &program, "ipdom");
        for block in ["figure_1_b3", "figure_1_b5", "either_x", "escape_x"] {
            assert_eq!(after[block], 1, "level {level}: {block}");
        }
        // Beside the guards it needs no more fetches than thread frontiers do on the program as it was.
        for (block, times) in &after {
            assert!(times <= &frontiers[block], "level {level}: {block} {times} times, not {}", frontiers[block]);
        }
    }
}
