//! `linearize`, over Csmith's random programs: at each level, and with one of what else it does where asked, they print
//! the same and are structured, in IR and in machine code.

use std::process::Command;

use crate::gotos;
use crate::structuring::Case;

/// Csmith's program of this number, optimised; none if it does not end by itself. Every third has floating-point
/// values; in another third functions are not inlined, nor is put together what two arms share.
fn case_of(seed: u64) -> Option<Case> {
    let number = seed.to_string();
    let float: &[&str] = if seed % 3 == 1 { &["--float"] } else { &[] };
    // It leaves a file where it runs.
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("csmith").args(["--seed", &number]).args(float).current_dir(&folder).output();
    let made = made.expect("csmith is installed");
    assert!(made.status.success(), "csmith --seed {seed}: {}", made.status);
    let source = String::from_utf8(made.stdout).unwrap();
    let mut flags = vec![["-O1", "-O2", "-O3", "-Os"][seed as usize % 4], "-isystem", "/usr/include/csmith"];
    if seed % 3 == 2 {
        flags.extend(["-fno-inline", "-mllvm", "-sink-common-insts=0", "-mllvm", "-hoist-common-insts=0"]);
    }
    Case::of(format!("Csmith's program {seed}"), &source, &flags)
}

#[test]
#[ignore = "takes minutes: scripts/check-linearize --csmith runs it"]
fn csmiths_programs_print_the_same_and_are_structured() {
    let (first, count) = gotos::asked();
    let (mut ended, mut taken) = (0, 0);
    for seed in first..first + count {
        if let Some(case) = case_of(seed) {
            ended += 1;
            let applied = gotos::APPLIED[seed as usize / 4 % gotos::APPLIED.len()];
            let lists = gotos::PASSES.iter().chain([&applied]);
            taken += lists.map(|passes| case.judge_linearized(passes)).sum::<usize>();
        }
        if seed % 10 == 9 {
            println!("Csmith's programs up to {seed}: {ended} end, {taken} functions changed");
        }
    }
    println!("{count} programs of Csmith, {ended} end, {taken} functions changed");
    assert!(ended * 2 > count && taken > 0, "{ended} end, {taken} functions changed");
}
