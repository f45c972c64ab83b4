//! What `meld` is for: the benchmarks of its paper (Saumya et al., 2021) print the same after it, and need fewer
//! fetches where lanes wait for each other at post-dominators.

use serde_json::Value;

use crate::folder::{Folder, lockstep, root};

/// Threads of a group; a warp holds all of them, as a wavefront of AMD's Vega does.
const GROUP: &str = "64";

/// Has clang leave what both arms do in them, which by itself it moves out: the paper's benchmarks as they are written.
const APART: [&str; 4] = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];

/// Builds a benchmark with a pass, runs, traces and replays it: what it printed, and its fetches under `ipdom`.
fn measured(folder: &Folder, name: &str, pass: &str, more: &[&str]) -> (String, u64) {
    let source = root().join(format!("workloads/melding/{name}.c")).display().to_string();
    let include = format!("-I{}", root().join("workloads/include").display());
    let group = format!("-DBLOCK={GROUP}");
    let words =
        ["cc", "--transform", pass, "--", "-std=gnu11", "-O3", "-pthread", &group, &include, &source, "-o", name];
    folder.succeed(lockstep(), &[&words[..], more].concat());
    let program = format!("./{name}");
    folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "--", &program, "-p", GROUP]);
    let replay = ["replay", "--json", "-H", "ipdom", "-W", GROUP, "--region", "kernel", "--check", "trace.bin"];
    let said: Value = serde_json::from_str(&folder.succeed(lockstep(), &replay)).unwrap();
    (folder.succeed(&program, &["-p", GROUP]), said["results"][0]["fetches"].as_u64().unwrap())
}

#[test]
fn the_synthetic_programs_of_its_paper_need_fewer_fetches() {
    let folder = Folder::with(&[]);
    for name in ["sb1", "sb1_r", "sb2", "sb2_r", "sb3", "sb3_r"] {
        let (expected, before) = measured(&folder, name, "none", &APART);
        let (printed, after) = measured(&folder, name, "meld", &APART);
        assert_eq!(printed, expected, "{name}");
        assert!(after < before, "{name}: {before} fetches, melded {after}");
    }
}

/// As a user builds them, clang does a part of it: what is left to gain, of 100 fetches, in the order of the list.
#[test]
fn built_as_a_user_builds_them_they_need_no_more_and_half_of_them_fewer() {
    let folder = Folder::with(&[]);
    let mut gains = Vec::new();
    for name in ["sb1", "sb1_r", "sb2", "sb2_r", "sb3", "sb3_r"] {
        let (expected, before) = measured(&folder, name, "none", &[]);
        let (printed, after) = measured(&folder, name, "meld", &[]);
        assert_eq!(printed, expected, "{name}");
        assert!(after <= before, "{name}: {before} fetches, melded {after}");
        gains.push(100 * (before - after) / before);
    }
    assert!(gains.iter().filter(|gain| **gain >= 3).count() >= 3, "{gains:?}");
    assert!(gains.iter().any(|gain| *gain >= 15), "{gains:?}");
}
