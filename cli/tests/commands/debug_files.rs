//! Debug information that was taken out of the binary: found where `strip`, distributions and `debuginfod` put it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{build, command, root, succeed};

/// A trace of the stripped program `taker`, beside which lies `taker.debug`, and the worst place that `replay` names.
struct Stripped {
    folder: tempfile::TempDir,
}

impl Stripped {
    fn new() -> Stripped {
        let stripped = Stripped { folder: tempfile::tempdir().unwrap() };
        let (program, debug) = (stripped.at("taker"), stripped.at("taker.debug"));
        build(&root().join("tests/first-hour/locks.c"), &program, &["-pthread"]);
        objcopy(&[Path::new("--only-keep-debug"), &program, &debug]);
        objcopy(&[Path::new("--strip-all"), &program]);
        let link = PathBuf::from(format!("--add-gnu-debuglink={}", debug.display()));
        objcopy(&[&link, &program]);
        let trace = stripped.at("trace.bin");
        succeed("trace", &["--no-cache", "-o", trace.to_str().unwrap(), program.to_str().unwrap()]);
        stripped
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the lines of the program are known, with these variables set.
    fn has_lines(&self, variables: &[(&str, &str)]) -> bool {
        let trace = self.at("trace.bin");
        let mut replay = command("replay", &["-H", "minsp-pc", "--by", "line", trace.to_str().unwrap()]);
        let output = replay.env_remove("DEBUGINFOD_URLS").envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let has_hint = String::from_utf8_lossy(&output.stderr).contains("has no line information");
        let has_lines = String::from_utf8_lossy(&output.stdout).contains("locks.c:");
        assert_eq!(has_lines, !has_hint, "{output:?}");
        has_lines
    }
}

fn objcopy(arguments: &[&Path]) {
    assert!(Command::new("objcopy").args(arguments).status().unwrap().success(), "{arguments:?}");
}

#[test]
fn the_file_that_the_debug_link_names_is_found_where_debuggers_look_for_it() {
    let stripped = Stripped::new();
    let (beside, folder) = (stripped.at("taker.debug"), stripped.at(".debug"));
    assert!(stripped.has_lines(&[]), "beside the binary");
    fs::create_dir(&folder).unwrap();
    fs::rename(&beside, folder.join("taker.debug")).unwrap();
    assert!(stripped.has_lines(&[]), "in .debug");
    fs::rename(folder.join("taker.debug"), stripped.at("other")).unwrap();
    assert!(!stripped.has_lines(&[]), "nowhere");
    let mut bytes = fs::read(stripped.at("other")).unwrap();
    bytes.push(0);
    fs::write(&beside, bytes).unwrap();
    assert!(!stripped.has_lines(&[]), "a file of that name with another checksum");
}

#[test]
fn servers_are_asked_where_the_user_has_named_them() {
    let stripped = Stripped::new();
    let elsewhere = stripped.at("fetched");
    fs::rename(stripped.at("taker.debug"), &elsewhere).unwrap();
    let (bin, asked) = (stripped.at("bin"), stripped.at("asked"));
    fs::create_dir(&bin).unwrap();
    let client = bin.join("debuginfod-find");
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\necho {}\n", asked.display(), elsewhere.display());
    fs::write(&client, script).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    assert!(!stripped.has_lines(&[("PATH", &path)]));
    assert!(!asked.exists(), "nobody is asked where no server is named");
    assert!(stripped.has_lines(&[("PATH", &path), ("DEBUGINFOD_URLS", "file:///nowhere")]));
    let asked = fs::read_to_string(&asked).unwrap();
    assert!(asked.starts_with("debuginfo ") && asked.trim().len() == "debuginfo ".len() + 40, "{asked}");
    fs::write(&elsewhere, "not a binary").unwrap();
    assert!(!stripped.has_lines(&[("PATH", &path), ("DEBUGINFOD_URLS", "file:///nowhere")]));
}
