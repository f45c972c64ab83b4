//! `dump --verify` and `dump --code`: every block that ran is decoded twice, and can be read in two syntaxes.

use std::path::{Path, PathBuf};

use crate::support::{build, root, run, succeed};

fn sources() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(root().join("workloads/micro")).unwrap();
    folder.map(|f| f.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "c")).collect()
}

fn verified(folder: &Path, command: &[&str]) -> String {
    let trace = folder.join("trace.bin");
    let trace = trace.to_str().unwrap();
    let output = run("trace", &[&["-o", trace], command].concat());
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let output = run("lockstep", &["dump", "--verify", trace]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{command:?}: {said}");
    said
}

#[test]
fn both_decoders_say_the_same_of_the_workloads() {
    let folder = tempfile::tempdir().unwrap();
    for source in sources() {
        let program = folder.path().join("program");
        build(&source, &program, &[]);
        let said = verified(folder.path(), &[program.to_str().unwrap(), "-p", "4"]);
        assert!(said.contains("instructions decoded twice: 0 differences"), "{said}");
    }
}

#[test]
fn both_decoders_say_the_same_of_programs_of_the_system() {
    let folder = tempfile::tempdir().unwrap();
    for command in [&["python3", "-c", "import math; print(math.sin(2))"][..], &["perl", "-e", "print 1.5 ** 3"]] {
        verified(folder.path(), command);
    }
}

#[test]
fn code_is_listed_in_both_syntaxes() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    build(&root().join("workloads/micro/diamond.c"), &program, &["-static"]);
    let trace = trace.to_str().unwrap();
    succeed("trace", &["-o", trace, program.to_str().unwrap(), "-p", "2"]);
    let intel = succeed("lockstep", &["dump", "--code", trace]);
    let att = succeed("lockstep", &["dump", "--code", "--syntax", "att", trace]);
    assert!(intel.contains(": kernel+0x") && intel.contains("push rbp") && !intel.contains('%'));
    assert!(att.contains("push %rbp") && att.lines().count() == intel.lines().count());
    let output = run("lockstep", &["dump", "--syntax", "att", trace]);
    assert_eq!(output.status.code(), Some(2), "a syntax without code to write in it");
}
