//! `speculative` in code for GPUs: random functions do the same for each lane after it, whichever lanes run first, and
//! no lane waits for ever.

#![allow(
    clippy::mutable_key_type,
    reason = "handles are hashed and compared by the address that they hold, which does not change"
)]

mod generate;
mod machine;
#[path = "../support/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::process::Command;

use machine::{Machine, Votes};
use transform::llvm::Module;
use transform::{Pipeline, Reason};

const TARGETS: [(&str, Votes); 2] = [("nvptx64-nvidia-cuda", Votes::OfMask), ("amdgcn-amd-amdhsa", Votes::OfGroup)];

const LANES: usize = 8;

/// SSA form of the random functions with these numbers, for a target.
fn functions(seeds: std::ops::Range<u64>) -> String {
    let mut text = "@log = global i32 0\ndeclare i32 @tid() memory(none)\n\
                    define i32 @mix(i32 %a) noinline optnone {\n  ret i32 %a\n}\n"
        .to_owned();
    text.extend(seeds.map(generate::function));
    String::from_utf8(random::in_ssa(text, "mem2reg,simplifycfg")).unwrap()
}

/// Runs each function before and after; how often lanes take turns, and how often they don't for which reason.
fn check(seeds: std::ops::Range<u64>) -> BTreeMap<String, usize> {
    let mut said = BTreeMap::new();
    let text = functions(seeds);
    for (target, votes) in TARGETS {
        let text = format!("target triple = \"{target}\"\n{text}");
        let before = Module::parse(text.as_bytes(), "random.ll").unwrap();
        let mut after = Module::parse(text.as_bytes(), "random.ll").unwrap();
        let remarks = Pipeline::parse("speculative").unwrap().run(&mut after).unwrap();
        for remark in &remarks {
            let what = match &remark.reason {
                Reason::TakesTurns(turns) => {
                    format!("taken, {}", if turns.enough.is_some() { "enough" } else { "all" })
                }
                other => other.to_string(),
            };
            if remark.is_taken() && remark.subject.contains(" and ") {
                *said.entry("taken, several places".to_owned()).or_default() += 1;
            }
            *said.entry(what).or_default() += 1;
        }
        for function in before.functions() {
            let name = function.name();
            let taken = remarks.iter().filter(|r| r.is_taken() && r.function == name).count();
            if taken == 0 {
                continue;
            }
            *said.entry(format!("functions with {taken} taken")).or_default() += 1;
            let made = after.functions().into_iter().find(|f| f.name() == name).unwrap();
            for seed in [3, 1000, 77_777] {
                let expected = Machine::new(function, LANES, votes, seed).run().unwrap();
                let found = Machine::new(made, LANES, votes, seed).run();
                assert!(found.as_ref() == Ok(&expected), "{target} {name}, order {seed}: {found:?}, not {expected:?}");
            }
        }
    }
    said
}

#[test]
fn random_functions_do_the_same_whoever_runs_first() {
    let whole = std::env::var_os("LOCKSTEP_WHOLE").is_some();
    let said = (0..if whole { 40 } else { 1 }).map(|part| check(part * 500..part * 500 + 500));
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    said.flatten().for_each(|(what, count)| *all.entry(what).or_default() += count);
    println!("{all:#?}");
    for (what, least) in
        [("taken, all", 100), ("taken, enough", 100), ("taken, several places", 10), ("functions with 2 taken", 10)]
    {
        assert!(all.get(what).is_some_and(|count| *count >= least), "{what}: {all:#?}");
    }
}

/// What a tool makes of a file that is written for it; none where it is not there.
fn made_by(tool: &str, words: &[&str], name: &str, text: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join(name), folder.path().join("made"));
    std::fs::write(&from, text).unwrap();
    let output = Command::new(tool).args(words).arg(&from).arg("-o").arg(&to).output().ok()?;
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&std::fs::read(to).unwrap()).into_owned())
}

/// llc has all questions in the code for both GPUs, each in its block, and ptxas takes it where it is installed (PTXAS
/// names it).
#[test]
fn code_generation_keeps_the_questions() {
    let text = functions(0..60);
    for (target, processor, question) in
        [(TARGETS[0].0, &["-mcpu=sm_80", "-mattr=+ptx75"][..], "vote.sync"), (TARGETS[1].0, &["-mcpu=gfx90a"], "v_cmp")]
    {
        let text = format!("target triple = \"{target}\"\n{text}");
        let mut module = Module::parse(text.as_bytes(), "random.ll").unwrap();
        Pipeline::parse("speculative").unwrap().run(&mut module).unwrap();
        let ir = module.to_text().replace("i32 @tid()", "i32 @llvm.nvvm.read.ptx.sreg.tid.x()");
        let asked =
            |line: &&str| line.contains("call") && line.contains("vote") || line.contains("call i64 @llvm.amdgcn");
        let in_ir = ir.lines().filter(asked).count();
        assert!(in_ir > 40, "{in_ir}");
        if target.starts_with("amdgcn") {
            let code = made_by("llc-19", processor, "a.ll", &module.to_text()).expect("llc-19 runs");
            // A question is a comparison of all lanes that run.
            let found = code.lines().filter(|line| line.contains(question)).count();
            assert!(found >= in_ir, "{found} of {in_ir}");
            continue;
        }
        let code = made_by("llc-19", processor, "a.ll", &ir).expect("llc-19 runs");
        let mut block = "";
        let mut found = 0;
        for line in code.lines() {
            if line.starts_with("$L__BB") || line.starts_with("// %bb") {
                block = line.rsplit("// %").next().unwrap_or_default();
            }
            if line.contains(question) {
                found += 1;
                assert!(["turn", "ask", "few"].iter().any(|name| block.starts_with(name)), "a question in {block}");
            }
        }
        assert_eq!(found, in_ir);
        let ptxas = std::env::var("PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
        if made_by(&ptxas, &["-arch=sm_80", "-c"], "a.ptx", &code).is_none() {
            println!("without ptxas");
        }
    }
}
