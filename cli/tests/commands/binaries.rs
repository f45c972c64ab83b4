//! The programs that there are, and what `lockstep setup` places beside them.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::read::elf::{ElfFile64, FileHeader};

#[cfg(feature = "transform")]
use crate::support::command;
use crate::support::{root, run, succeed};

/// The libraries that a program needs, as its dynamic section names them.
fn libraries(program: &str) -> Vec<String> {
    let bytes = fs::read(program).unwrap();
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
    let (header, endian) = (file.elf_header(), file.endian());
    let sections = header.sections(endian, &*bytes).unwrap();
    let (dynamic, strings) = sections.dynamic(endian, &*bytes).unwrap().unwrap();
    let strings = sections.strings(endian, &*bytes, strings).unwrap();
    let needed = dynamic.iter().filter(|d| d.d_tag.get(endian) == object::elf::DT_NEEDED);
    needed.map(|d| String::from_utf8_lossy(strings.get(d.d_val.get(endian) as u32).unwrap()).into_owned()).collect()
}

#[test]
fn lockstep_starts_without_llvm_and_its_other_binary_has_it() {
    let lockstep = libraries(env!("CARGO_BIN_EXE_lockstep"));
    assert!(lockstep.iter().any(|name| name.starts_with("libc.so")), "{lockstep:?}");
    assert!(!lockstep.iter().any(|name| name.contains("LLVM")), "{lockstep:?}");
    #[cfg(feature = "transform")]
    {
        let with = libraries(env!("CARGO_BIN_EXE_lockstep-llvm"));
        assert!(with.iter().any(|name| name.contains("LLVM")), "{with:?}");
    }
}

/// The line of a help page about a verb.
#[cfg(feature = "transform")]
fn line_of<'a>(help: &'a str, verb: &str) -> &'a str {
    help.lines().find(|line| line.split_whitespace().next() == Some(verb)).unwrap_or_else(|| panic!("{verb}: {help}"))
}

#[test]
#[cfg(feature = "transform")]
fn verbs_of_the_other_binary_are_told_of_as_it_tells_of_them() {
    let there = Command::new(env!("CARGO_BIN_EXE_lockstep-llvm")).arg("--help").env("COLUMNS", "400").output().unwrap();
    let there = String::from_utf8(there.stdout).unwrap();
    let here = String::from_utf8(command("lockstep", &["help", "all"]).env("COLUMNS", "400").output().unwrap().stdout)
        .unwrap();
    for verb in ["cc", "c++", "transform", "analyze", "verify"] {
        let words = |help| line_of(help, verb).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&here), words(&there));
        let page = succeed("lockstep", &[verb, "--help"]);
        assert!(page.contains(&format!("Usage: lockstep {verb}")), "{page}");
        assert_eq!(page, succeed("lockstep", &["help", verb]));
    }
    // Without it, one line says what is missing.
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("lockstep");
    fs::copy(env!("CARGO_BIN_EXE_lockstep"), &alone).unwrap();
    let output = Command::new(&alone).args(["transform", "--list"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(127), 1), "{said}");
    assert!(said.contains("lockstep-llvm") && said.contains("cargo install"), "{said}");
}

/// Everything that `setup` wrote, by its place under the prefix.
fn files(folder: &Path, under: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(files(&entry.path(), under)),
            false => all.push(entry.path().strip_prefix(under).unwrap().display().to_string()),
        }
    }
    all.sort();
    all
}

#[test]
fn setup_places_links_completions_and_manual_pages_that_work() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().to_str().unwrap();
    // The second time replaces what the first has written.
    for _ in 0..2 {
        succeed("lockstep", &["setup", "--prefix", prefix]);
    }
    let vector = root().join("heuristics/conformance/case-12.trace.gz");
    let replayed = Command::new(folder.path().join("bin/replay")).arg(&vector).output().unwrap();
    assert_eq!(String::from_utf8(replayed.stdout).unwrap(), succeed("replay", &[vector.to_str().unwrap()]));
    let traced = Command::new(folder.path().join("bin/trace")).arg("--version").output().unwrap();
    assert!(String::from_utf8(traced.stdout).unwrap().starts_with("trace "));

    // What bash would offer.
    let offered = |name: &str, words: &str, word: &str| {
        let script = folder.path().join("share/bash-completion/completions").join(name);
        let text = format!(
            "source {}; COMP_WORDS=({words} {word}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _{name} {name} '{word}' ''; echo ${{COMPREPLY[@]}}",
            script.display()
        );
        let output = Command::new("bash").args(["-c", &text]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(offered("lockstep", "lockstep", "heur"), "heuristics");
    assert_eq!(offered("replay", "replay", "--heur"), "--heuristic");
    assert_eq!(offered("trace", "trace", "--mark"), "--markers");
    if cfg!(feature = "transform") {
        assert_eq!(offered("lockstep", "lockstep cc", "--transf"), "--transform");
    }

    let all = files(folder.path(), folder.path());
    for file in ["share/zsh/site-functions/_replay", "share/fish/vendor_completions.d/trace.fish"] {
        assert!(all.iter().any(|name| name == file), "{all:?}");
    }
    let help = succeed("lockstep", &["help", "all"]);
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = verbs.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).collect();
    assert!(verbs.len() > 10, "{help}");
    for verb in verbs.iter().filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help") {
        let page = fs::read_to_string(folder.path().join(format!("share/man/man1/lockstep-{verb}.1"))).unwrap();
        assert!(page.contains(".TH") && page.replace("\\-", "-").contains(&format!("lockstep {verb}")), "{page}");
    }
}

#[test]
fn setup_leaves_other_programs_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("bin")).unwrap();
    fs::write(folder.path().join("bin/trace"), "another").unwrap();
    let output = run("lockstep", &["setup", "--prefix", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bin/trace"));
    assert_eq!(fs::read_to_string(folder.path().join("bin/trace")).unwrap(), "another");
}

#[test]
fn the_version_says_which_build_it_is() {
    let said = succeed("lockstep", &["--version"]);
    let llvm = if cfg!(feature = "transform") { "with LLVM" } else { "without LLVM" };
    let words = ["lockstep ", env!("CARGO_PKG_VERSION"), llvm];
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    let commit = option_env!("LOCKSTEP_COMMIT").unwrap_or("no release");
    assert!(said.contains(commit), "{said}");
}
