//! What `lockstep suggest` says that passes would gain, of a trace of the program without them, against what a replay
//! of the program that each made counts.

use serde_json::Value;

use crate::folder::{Folder, lockstep, root};

/// Keeps clang from merging what both sides of a branch begin or end with before `meld` sees it.
const APART: [&str; 4] = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"];

/// A model of a processor's graph.
const BARRIER: &[&str] = &["-H", "barrier"];

/// A program: its folder and source, more words for the compiler, and the words to run it with.
type Program<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

/// The GPU's instructions without the pass, with it, and what was said about it, the first estimate; or the fetches
/// under a model. None: nothing was said.
fn of(
    folder: &Folder,
    pass: &str,
    (program, options, words): Program<'_>,
    model: &[&str],
) -> (u64, u64, Option<Value>) {
    let source = root().join("workloads").join(program).display().to_string();
    let includes = ["workloads/include", "include"].map(|folder| format!("-I{}", root().join(folder).display()));
    let json = |transform: &str, verb: &[&str]| -> Value {
        let cc = ["cc", "--transform", transform, "--", "-std=gnu11", "-O2", "-g", "-w", "-pthread"];
        let to = [&includes[0], &includes[1], &source, "-o", "program", "-lm"];
        folder.succeed(lockstep(), &[&cc[..], options, &to].concat());
        folder.succeed(lockstep(), &[&["trace", "-o", "trace.bin", "--", "./program"][..], words].concat());
        serde_json::from_str(&folder.succeed(lockstep(), &[verb, &["--json", "trace.bin"]].concat())).unwrap()
    };
    let region = if program.starts_with("melding") { "kernel" } else { "auto" };
    let said =
        json("none", &[&["suggest", "--candidates", "2", "--threshold", "2", "--region", region], model].concat());
    // All of it is what `suggest` speaks of.
    let whole = if pass == "linearize" { "linearize:threshold=-1000" } else { pass };
    let measured = json(whole, &[&["replay", "--region", region], model].concat());
    let own = said["passes"].as_array().unwrap().iter().find(|estimate| estimate["pass"] == pass);
    let column = if model.is_empty() { "gpu_issued" } else { "fetches" };
    (said["before"]["issued"].as_u64().unwrap(), measured["results"][0][column].as_u64().unwrap(), own.cloned())
}

#[test]
fn one_call_for_both_sides_takes_what_their_lanes_took_together() {
    let folder = Folder::with(&[]);
    let (before, measured, said) = of(&folder, "fcs", ("divide/divide.c", &[], &["-p", "16"]), &[]);
    let said = said.unwrap();
    let fetches = said["issued"].as_u64().unwrap();
    assert_eq!((&said["known_by"], &said["of"]), (&"replayed".into(), &"divide".into()));
    assert!(10 * fetches < 7 * before, "{before}: {said}");
    assert!(fetches.abs_diff(measured) * 20 < measured, "{before} to {measured}, said {said}");
}

#[test]
fn no_melding_gains_more_than_what_both_sides_have_in_common() {
    let folder = Folder::with(&[]);
    let mut gained = 0;
    for program in ["sb1", "sb1_r", "sb2", "sb2_r", "sb3", "sb3_r"] {
        let source = format!("melding/{program}.c");
        let program = (&*source, &APART[..], &["-p", "32"][..]);
        let (_, on_gpu, about) = of(&folder, "meld", program, &[]);
        let about = about.unwrap();
        // In a GPU's instructions it is about that; barriers that go with the branch are not in it.
        assert_eq!(about["known_by"], "about", "{program:?}");
        assert!(about["issued"].as_u64().unwrap().abs_diff(on_gpu) * 3 < on_gpu, "{program:?}: {on_gpu}, said {about}");
        let (before, measured, said) = of(&folder, "meld", program, BARRIER);
        let (program, said) = (program.0, said.unwrap());
        let fetches = said["issued"].as_u64().unwrap();
        assert_eq!(said["known_by"], "at most", "{program}");
        // There is one branch to be melded in each.
        assert!(fetches <= measured && measured < before, "{program}: {before} to {measured}, said {said}");
        // Of what is common to both sides most is gained, where both are the same code.
        let could = before - fetches;
        gained += usize::from(2 * (before - measured) > could);
    }
    assert!(gained >= 3, "{gained} gained more than half of what was said");
}

#[test]
fn structured_control_flow_takes_its_meetings_and_guards() {
    let folder = Folder::with(&[]);
    let program = ("linearization/mcx/mcx.c", &[][..], &["-p", "16"][..]);
    // On a GPU, whose compiler lets lanes meet as structured control flow does, it gains nothing (on an H200 0.91).
    let (before, measured, said) = of(&folder, "linearize", program, &[]);
    assert!(said.is_none() && measured > before, "{before} to {measured}, said {said:?}");
    let (before, measured, said) = of(&folder, "linearize", program, BARRIER);
    let said = said.unwrap();
    let fetches = said["issued"].as_u64().unwrap();
    assert_eq!(said["known_by"], "at most");
    // The guards are not in it.
    assert!(fetches <= measured && 2 * measured < before, "{before} to {measured}, said {said}");
    assert!(10 * (before - measured) > 8 * (before - fetches), "{before} to {measured}, said {said}");
}
