//! `dump --verify` and `dump --code`: every block that ran is decoded twice, and can be read in two syntaxes.

use std::collections::{BTreeMap, HashMap};
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

/// Instructions of the x87, of vectors, for bits and strings, and with prefixes that mean little.
fn build_all_sorts(program: &Path) {
    let flags = ["-msse4.2", "-maes", "-mpclmul", "-mmovbe", "-static", "-no-pie"];
    build(&root().join("decoding/tests/all_sorts.c"), program, &flags);
}

#[test]
fn both_decoders_say_the_same_of_vectors_x87_and_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    build_all_sorts(&program);
    for memory in [&[][..], &["--memory"]] {
        let said = verified(folder.path(), &[memory, &[program.to_str().unwrap()]].concat());
        let names = said.lines().find(|line| line.ends_with("names of instructions are among them")).unwrap();
        assert!(names.trim().split(' ').next().unwrap().parse::<u32>().unwrap() > 180, "{said}");
        for explained in ["bsr: validity", "cmpxchg16b: access", "fnsave: size", "mov: segment", "push: stack pointer"]
        {
            assert!(said.contains(explained), "{explained}: {said}");
        }
    }
}

/// Instructions as text by address, with runs of white space as one blank, without what objdump adds: names of targets,
/// comments, `0x` and leading zeros.
fn plain(text: &str) -> String {
    let without_comment = text.split(" # ").next().unwrap();
    let without_name = without_comment.split(" <").next().unwrap();
    without_name.split_whitespace().collect::<Vec<_>>().join(" ").replace("0x", "")
}

#[test]
fn disassembly_agrees_with_objdump() {
    let folder = tempfile::tempdir().unwrap();
    let (program, trace) = (folder.path().join("program"), folder.path().join("trace.bin"));
    let all_sorts = |program: &Path| build_all_sorts(program);
    let workload = |program: &Path| build(&root().join("workloads/micro/diamond.c"), program, &["-static", "-no-pie"]);
    for (make, least) in [(&workload as &dyn Fn(&Path), 2000), (&all_sorts, 4000)] {
        make(&program);
        let (program, trace) = (program.to_str().unwrap(), trace.to_str().unwrap());
        succeed("trace", &["-o", trace, program]);
        for (syntax, flags) in [("intel", &["-M", "intel"][..]), ("att", &[])] {
            let ours = succeed("lockstep", &["dump", "--code", "--syntax", syntax, trace]);
            let output =
                std::process::Command::new("objdump").args(["-d", "-w"]).args(flags).arg(program).output().unwrap();
            let theirs = String::from_utf8(output.stdout).unwrap();
            let theirs: HashMap<u64, [&str; 2]> = theirs
                .lines()
                .filter_map(|line| {
                    let mut parts = line.split('\t');
                    let pc = u64::from_str_radix(parts.next()?.trim().strip_suffix(':')?, 16).ok()?;
                    Some((pc, [parts.next()?.trim(), parts.next()?]))
                })
                .collect();
            let ours: BTreeMap<u64, [&str; 2]> = ours
                .lines()
                .filter_map(|line| {
                    let (pc, rest) = line.strip_prefix("  0x")?.split_once("  ")?;
                    let (bytes, text) = rest.split_at_checked(32.max(rest.find("  ").unwrap_or(0)))?;
                    Some((u64::from_str_radix(pc, 16).ok()?, [bytes.trim(), text]))
                })
                .collect();
            let pairs = ours.iter().filter_map(|(pc, ours)| Some((ours, theirs.get(pc)?)));
            let pairs: Vec<_> = pairs.filter(|(ours, theirs)| ours[0] == theirs[0]).collect();
            let differ: Vec<[String; 2]> = pairs
                .iter()
                .map(|(ours, theirs)| [plain(ours[1]), plain(theirs[1])])
                .filter(|[ours, theirs]| ours != theirs)
                .collect();
            assert!(pairs.len() > least, "{program} {syntax}: {} instructions", pairs.len());
            assert!(differ.len() * 33 < pairs.len(), "{} of {}: {differ:#?}", differ.len(), pairs.len());
        }
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
