//! Entries for a compilation database (`-MJ`, `-gen-cdb-fragment-path`). The driver writes them itself, but not when it
//! is asked for its jobs.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::build::Build;
use super::scratch::{Scratch, Streams};
use crate::{Error, Result};

/// Has the driver write its entries for this call, as it would without us. `typed` is the command line without response
/// files.
pub(super) fn write(build: &Build, typed: &[OsString], scratch: &Scratch) -> Result<()> {
    if let Some(file) = value_of(typed, "-MJ") {
        let part = scratch.path().join("entries");
        let folder = [OsString::from("-MJ"), part.clone().into()];
        ask(build, &folder, scratch)?;
        move_entries(&part, Path::new(&file))?;
    } else if let Some(folder) = value_of(typed, "-gen-cdb-fragment-path") {
        let parts = scratch.path().join("entries");
        ask(build, &[OsString::from("-gen-cdb-fragment-path"), parts.clone().into()], scratch)?;
        let made = std::fs::read_dir(&parts).map(|made| made.flatten().map(|e| e.path()).collect::<Vec<_>>());
        std::fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone().into(), source })?;
        for part in made.unwrap_or_default() {
            move_entries(&part, &Path::new(&folder).join(part.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// The last value of an option, in the next word or the same.
fn value_of(words: &[OsString], option: &str) -> Option<OsString> {
    words.iter().enumerate().rev().find_map(|(i, word)| {
        let rest = word.as_bytes().strip_prefix(option.as_bytes())?;
        if rest.is_empty() { words.get(i + 1).cloned() } else { Some(OsString::from_vec(rest.to_vec())) }
    })
}

/// The entries, to another place: the last option of a kind holds.
fn ask(build: &Build, place: &[OsString], scratch: &Scratch) -> Result<()> {
    let (options, files) = build.arguments.split_at(super::build::end_of_options(&build.arguments));
    let words: Vec<_> = [OsString::from(ONLY)].iter().chain(options).chain(place).chain(files).cloned().collect();
    // What it says it has said when it was asked for its jobs.
    scratch.run(&build.compiler, &words, Streams::Question).map(drop)
}

/// Has the driver do all but its jobs.
pub(super) const ONLY: &str = "-fdriver-only";

/// Moves entries, without the option that is ours, to where the driver would have written them in place of what is
/// there.
fn move_entries(from: &Path, to: &Path) -> Result<()> {
    let Ok(text) = std::fs::read(from) else { return Ok(()) };
    let text = String::from_utf8_lossy(&text).replace(&format!("\"{ONLY}\", "), "");
    std::fs::write(to, text).map_err(|source| Error::Write { path: PathBuf::from(to), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_an_option_holds_in_either_form() {
        let words = ["-MJ", "a", "-MJb", "-c"].map(OsString::from);
        assert_eq!(value_of(&words, "-MJ"), Some("b".into()));
        assert_eq!(value_of(&words[..2], "-MJ"), Some("a".into()));
        assert_eq!(value_of(&words, "-o"), None);
    }
}
