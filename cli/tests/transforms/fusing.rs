//! What the transformations do to programs, seen in their machine code.

use std::fs;

use crate::folder::{Folder, TWO_CALLS, lockstep, root};

fn build_divide(folder: &Folder, pass: &str) {
    let (workloads, to) = (root().join("workloads"), format!("divide.{pass}"));
    let include = format!("-I{}", workloads.join("include").display());
    let source = workloads.join("divide/divide.c").display().to_string();
    let words = ["cc", "--transform", pass, "--", "-O3", "-std=gnu11", &include, &source, "-o", &to, "-pthread"];
    folder.succeed(lockstep(), &words);
}

/// Fetches of a program under a heuristic.
fn fetches(folder: &Folder, program: &str, heuristic: &str, threads: &str) -> f64 {
    folder.succeed(lockstep(), &["trace", "-o", "trace.bin", program, "-p", threads]);
    let rows = folder.succeed(lockstep(), &["replay", "-H", heuristic, "--json", "trace.bin"]);
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    rows["results"][0]["fetches"].as_f64().unwrap()
}

#[test]
fn divide_is_called_once_after_fusion_and_needs_little_more_than_half_the_fetches() {
    let folder = Folder::with(&[]);
    build_divide(&folder, "none");
    build_divide(&folder, "fcs");
    assert_eq!((folder.calls("divide.none", "divide"), folder.calls("divide.fcs", "divide")), (2, 1));
    for threads in ["4", "8"] {
        for heuristic in ["minsp-pc", "minpc"] {
            let before = fetches(&folder, "./divide.none", heuristic, threads);
            let after = fetches(&folder, "./divide.fcs", heuristic, threads);
            assert!(after < 0.55 * before, "{heuristic} with {threads} threads: {before} before, {after} after");
        }
    }
}

#[test]
fn where_there_is_nothing_to_fuse_the_object_code_is_that_of_none() {
    let nothing = "int one(int), two(int);\n\
        int f(int a) { int s = 0; for (int i = 0; i < a; i++) { if (i & 3) s += one(i); else s -= two(s); } return s; }\n\
        int g(int a, int *p) { switch (a) { case 1: return *p; case 2: return one(*p); case 5: return two(7); } return a; }\n";
    let folder = Folder::with(&[("a.c", nothing)]);
    // linearize makes branches of a switch, and has code generation keep the branches of all functions.
    for pass in
        transform::REGISTRY.iter().filter(|pass| !["linearize", "split-nodes", "structurizecfg"].contains(&pass.name))
    {
        let object = format!("{}.o", pass.name);
        folder.succeed(lockstep(), &["cc", "--transform", pass.name, "--", "-O3", "-c", "a.c", "-o", &object]);
        let same = fs::read(folder.path(&object)).unwrap() == fs::read(folder.path("none.o")).unwrap();
        assert!(same, "{}: if it changes such branches, it belongs into the list of those that do", pass.name);
    }
}

#[test]
fn code_that_is_not_optimised_is_left_alone() {
    let folder = Folder::with(&[("pick.c", TWO_CALLS)]);
    for pass in transform::REGISTRY {
        let object = format!("{}.o", pass.name);
        let words = ["cc", "--transform", pass.name, "--report", "report", "--", "-O0", "-c", "pick.c", "-o", &object];
        folder.succeed(lockstep(), &words);
        assert!(fs::read(folder.path(&object)).unwrap() == fs::read(folder.path("none.o")).unwrap(), "{}", pass.name);
    }
    assert_eq!(folder.read("report"), "");
}

#[test]
fn ir_goes_in_and_comes_out_as_text_or_bitcode() {
    let folder = Folder::with(&[("pick.c", TWO_CALLS)]);
    folder.succeed("clang-19", &["-O3", "-c", "-emit-llvm", "-gline-tables-only", "pick.c", "-o", "in.bc"]);
    let report = folder.succeed(lockstep(), &["transform", "--pass", "fcs", "in.bc", "-o", "out.bc", "--report"]);
    assert!(report.starts_with("fcs taken: pick: work at pick.c:4 and pick.c:4"), "{report}");
    let text = folder.succeed(lockstep(), &["transform", "--pass", "none", "out.bc", "-o", "-"]);
    assert_eq!(text.matches("call i32 @work").count(), 1, "{text}");
    for limit in [&["--pass", "fcs", "--threshold", "1000000"][..], &["--pass", "fcs:threshold=1000000"]] {
        let unchanged = folder.succeed(lockstep(), &[&["transform", "in.bc", "--report"], limit].concat());
        assert!(unchanged.contains("fcs left: pick") && unchanged.contains("no profit"), "{unchanged}");
    }
    let other = folder.run(lockstep(), &["transform", "--pass", "layout:threshold=2", "in.bc"]);
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert_eq!(other.status.code(), Some(2));
    assert!(said.contains("pass layout has no parameter \"threshold\"; it has none"), "{said}");
}

#[test]
fn remarks_are_told_as_text_json_and_as_llvm_does() {
    let folder = Folder::with(&[("pick.c", TWO_CALLS)]);
    for form in ["text", "json", "yaml"] {
        // Twice: each form can be appended to.
        for _ in 0..2 {
            let words = ["cc", "--transform", "fcs", "--report", form, "--report-format", form, "--"];
            folder.succeed(lockstep(), &[&words[..], &["-O2", "-gline-tables-only", "-c", "pick.c"]].concat());
        }
    }
    let lines: Vec<serde_json::Value> =
        folder.read("json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = folder.read("text");
    assert_eq!(lines.len(), text.lines().count());
    for (line, object) in text.lines().zip(&lines) {
        let reason = object["text"].as_str().unwrap();
        assert!(line.ends_with(reason) && line.starts_with(object["pass"].as_str().unwrap()), "{line} {object}");
    }
    assert_eq!(lines[0]["places"][0]["line"], 4);
    let taken = lines.iter().filter(|object| object["kind"] == "taken").count();
    // LLVM's own tool reads what we wrote, and counts the same.
    let counts = folder.succeed(
        "llvm-remarkutil-19",
        &["count", "--parser=yaml", "--count-by=remark-name", "--group-by=function", "yaml"],
    );
    let fused = folder.read("yaml").matches("--- !Passed\nPass:            fcs\nName:            CallsFused\n").count();
    assert!(taken == 2 && fused == taken, "{taken} {fused}");
    assert!(counts.contains(&format!("pick,{}", lines.len())), "{counts}");
}

#[test]
fn what_is_no_ir_is_refused_with_the_files_name() {
    let folder = Folder::with(&[("a.bc", "int main(void);\n")]);
    let output = folder.run(lockstep(), &["transform", "--pass", "fcs", "a.bc"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3));
    assert!(said.starts_with("lockstep: a.bc: LLVM 19 cannot read this as IR"), "{said}");
    let missing = folder.run(lockstep(), &["transform", "--pass", "fcs", "missing.bc"]);
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn the_list_names_every_pass() {
    let list = Folder::with(&[]).succeed(lockstep(), &["transform", "--list"]);
    for pass in transform::REGISTRY {
        assert!(list.lines().any(|line| line.starts_with(pass.name)), "{} is not in {list}", pass.name);
    }
    assert!(list.contains("threshold=1: the least profit") && list.contains("(-1000000000 to 1000000000)"), "{list}");
    let words = ["transform", "--list", "--pass", "fcs,layout,tail-merge:threshold=8", "--threshold", "3"];
    let spelt_out = Folder::with(&[]).succeed(lockstep(), &words);
    assert_eq!(spelt_out, "fcs:threshold=3,only-divergent=yes,layout,tail-merge:threshold=8,only-divergent=yes\n");
}
