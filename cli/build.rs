//! Tells the program of which commit it is, for `lockstep --version`: what `LOCKSTEP_COMMIT` says, or the file `commit`
//! of a packaged crate, or git. Builds for tests are of no commit: they would be built again after each.

#![allow(clippy::disallowed_macros, reason = "cargo reads what it prints")]

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=LOCKSTEP_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    // Where it is set, rustc sees it by itself.
    if std::env::var_os("LOCKSTEP_COMMIT").is_some() {
        return;
    }
    let packaged = std::fs::read_to_string("commit").ok().map(|commit| commit.trim().to_owned());
    let is_release = std::env::var("PROFILE").as_deref() == Ok("release");
    if let Some(commit) = packaged.or_else(|| if is_release { of_git() } else { None }) {
        println!("cargo::rustc-env=LOCKSTEP_COMMIT={commit}");
    }
}

/// The commit that is checked out here, with `+` behind it where files differ.
fn of_git() -> Option<String> {
    // A copy that lies in somebody else's repository is of none of its commits.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for part in ["HEAD", "index"] {
        let path = git(&["rev-parse", "--git-path", part])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["describe", "--always", "--exclude=*", "--dirty=+", "--abbrev=12"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
