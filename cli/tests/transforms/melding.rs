//! What `meld` is for: the benchmarks of its paper (Saumya et al., 2021) print the same after it, need fewer fetches
//! where lanes wait for each other at post-dominators, and less on a GPU as a user builds them.

use std::fs;

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

/// What a GPU issues for the eleven programs of its paper, of 100 instructions without the pass, as a user builds them:
/// the optimiser's own sinking is put off for `meld` alone, so that none of them loses by it.
#[test]
fn built_as_a_user_builds_them_all_programs_keep_what_they_had_and_most_gain() {
    let folder = Folder::with(&[]);
    let mut gains = Vec::new();
    for name in PROGRAMS {
        let [(expected, before), (printed, after)] = ["none", "meld"].map(|pass| issued(&folder, name, pass));
        assert_eq!(printed, expected, "{name}");
        assert!(100 * after <= 102 * before, "{name}: {before} issued, melded {after}");
        gains.push(100 * before / after);
    }
    assert!(gains.iter().filter(|gain| **gain >= 115).count() >= 6, "{gains:?}");
}

/// Where both sides of the one branch come by in each turn of a loop, the remarks say what a turn saves.
#[test]
fn remarks_promise_what_a_gpu_then_issues_less() {
    let folder = Folder::with(&[]);
    for (name, turns) in [("sb1_r", 48), ("sb2", 48), ("sb2_r", 48), ("sb3", 48), ("sb3_r", 48), ("dct_quantise", 24)] {
        // Without sinking, as the pass sees it.
        let (_, before) = built(&folder, name, "none", &APART[..2]);
        let (_, after) = issued(&folder, name, "meld");
        let report = folder.read("report");
        let number = |text: &str| text.trim().parse::<i64>().unwrap();
        let of_line = |line: &str| {
            let (before, after) = line.split_once(" need about ")?.1.split_once(" instructions, melded ")?;
            Some(number(before) - number(after.split(';').next()?.split(',').next()?))
        };
        let taken = report.lines().filter(|line| line.starts_with("meld taken"));
        let promised: i64 = taken.filter_map(of_line).sum();
        let warps = 2;
        let saved = (before as i64 - after as i64) / (turns * warps);
        assert!(promised.abs_diff(saved) * 100 <= saved as u64 * 15, "{name}: {promised} promised, {saved} saved");
    }
}

const PROGRAMS: [&str; 11] =
    ["sb1", "sb1_r", "sb2", "sb2_r", "sb3", "sb3_r", "bitonic", "dct_quantise", "lud", "merge_sort", "pcm"];

/// What a program prints that is built without other flags, and what a GPU issues for it in warps of 32.
fn issued(folder: &Folder, name: &str, pass: &str) -> (String, u64) {
    built(folder, name, pass, &[])
}

fn built(folder: &Folder, name: &str, pass: &str, more: &[&str]) -> (String, u64) {
    let source = root().join(format!("workloads/melding/{name}.c")).display().to_string();
    let include = format!("-I{}", root().join("workloads/include").display());
    let group = format!("-DBLOCK={GROUP}");
    fs::write(folder.path("report"), "").unwrap();
    let ours = ["cc", "--transform", pass, "--report", "report", "--", "-std=gnu11", "-O3", "-pthread"];
    folder.succeed(lockstep(), &[&ours[..], &[&group, &include, &source, "-o", name], more].concat());
    let program = format!("./{name}");
    folder.succeed(lockstep(), &["trace", "-o", "trace.bin", "--", &program, "-p", GROUP]);
    let replay = ["replay", "--json", "-W", "32", "--region", "kernel", "trace.bin"];
    let said: Value = serde_json::from_str(&folder.succeed(lockstep(), &replay)).unwrap();
    (folder.succeed(&program, &["-p", GROUP]), said["results"][0]["gpu_issued"].as_u64().unwrap())
}

/// In code for a GPU it is decided by time: what an H200 ran faster melded is, and what it did not is left. The judge
/// is that GPU's time of each program, without and with the pass, which then looked at instructions alone.
#[test]
fn code_for_a_gpu_is_melded_where_one_was_faster_by_it() {
    let folder = Folder::with(&[]);
    let silicon = fs::read_to_string(root().join("results/2026-11-27-silicon/transforms.tsv")).unwrap();
    let mut header = silicon.lines().next().unwrap().split('\t');
    let speedup = header.position(|name| name == "speedup").unwrap();
    let include = format!("-I{}", root().join("workloads/include").display());
    let target = ["--target=nvptx64-nvidia-cuda", "-march=sm_90", "-nogpulib", "-ffreestanding", "-std=gnu11", "-O3"];
    let more = ["-w", "-DMAX_THREADS=524288", "-ffp-contract=off", "-emit-llvm", "-c", &include];
    let mut faster = Vec::new();
    for row in silicon.lines().map(|line| line.split('\t').collect::<Vec<_>>()) {
        let [name, "apart", block, "meld", ..] = row[..] else { continue };
        if !PROGRAMS.contains(&name) || block != GROUP {
            continue;
        }
        let source = root().join(format!("workloads/melding/{name}.c")).display().to_string();
        let group = format!("-DBLOCK={block}");
        folder.succeed("clang-19", &[&target[..], &APART, &more, &[&group, &source, "-o", "before.bc"]].concat());
        let words = ["transform", "--pass", "meld", "--report", "-o", "after.bc", "before.bc"];
        let report = folder.succeed(lockstep(), &words);
        let is_taken = report.lines().any(|line| line.starts_with("meld taken"));
        assert_eq!(is_taken, row[speedup].parse::<f64>().unwrap() > 1.01, "{name}: {report}");
        faster.extend(is_taken.then(|| name.to_owned()));
    }
    assert_eq!(faster, ["bitonic", "dct_quantise"]);
}

/// The order of passes holds: what is structured behind `meld` stays so, and nothing is sunk behind that.
#[test]
fn with_other_passes_the_programs_print_the_same() {
    let folder = Folder::with(&[]);
    for name in ["sb3_r", "pcm"] {
        let (expected, _) = issued(&folder, name, "none");
        for passes in ["meld,linearize:threshold=-1000", "linearize:threshold=-1000,meld", "fcs,meld", "meld,fcs,meld"]
        {
            assert_eq!(issued(&folder, name, passes).0, expected, "{name} after {passes}");
        }
    }
}
