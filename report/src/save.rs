//! Writing a file whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{Action, Error, Result};

/// Writes the content beside the file, then gives it the file's name, so that a reader never sees half of it and a
/// failure leaves what was there. Devices and pipes are written as they are.
pub(crate) fn save(path: &Path, content: &[u8]) -> Result<()> {
    let fail = |action, source: io::Error| {
        let way_out = way_out(&source);
        Error::Io { path: path.to_owned(), action, source, way_out }
    };
    let existing = fs::metadata(path).ok();
    if let Some(existing) = &existing {
        if existing.is_dir() {
            return Err(fail(Action::Write, io::ErrorKind::IsADirectory.into()));
        }
        if !existing.is_file() {
            let mut device = OpenOptions::new().write(true).open(path).map_err(|e| fail(Action::OpenToWrite, e))?;
            return device.write_all(content).and_then(|()| device.flush()).map_err(|e| fail(Action::Write, e));
        }
    }
    // A link stays a link: what it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (mut file, unfinished) = create_beside(&target).map_err(|e| fail(Action::Create, e))?;
    write_through(&mut file, content).map_err(|e| fail(Action::Write, e))?;
    if let Some(existing) = existing {
        file.set_permissions(existing.permissions()).map_err(|e| fail(Action::KeepPermissions, e))?;
    }
    fs::rename(&unfinished.0, &target).map_err(|e| fail(Action::Place, e))
}

fn write_through(file: &mut File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    // Some file systems find out that they are full only here.
    file.sync_all()
}

/// A new file in the same folder, and so on the same file system.
fn create_beside(target: &Path) -> io::Result<(File, Unfinished)> {
    // The name is cut so that what is added does not make it longer than a file system takes (255 bytes).
    let name: String = target.file_name().unwrap_or_default().to_string_lossy().chars().take(40).collect();
    let mut number = 0_u32;
    loop {
        let path = target.with_file_name(format!(".{name}.{}.{number}.unfinished", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            // Another thread's, or left by a run that was killed: not ours to touch.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 1000 => number += 1,
            result => return result.map(|file| (file, Unfinished(path))),
        }
    }
}

/// A file that is removed when it goes out of scope; after the rename there is nothing left to remove.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // If this fails, the error that led here is the one to report.
        let _ = fs::remove_file(&self.0);
    }
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space, or write to another disk; nothing was changed"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a folder that you may write to"
        }
        io::ErrorKind::NotFound => ": make the folder first, or choose another",
        io::ErrorKind::NotADirectory => ": a part of the path is a file; choose another folder",
        io::ErrorKind::IsADirectory => ": add a file name to it",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_second_write_replaces_the_first_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.svg");
        save(&path, b"a longer first").unwrap();
        save(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(folder.path()), ["a.svg"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.svg"), folder.path().join("link.svg"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        save(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let full = folder.path().join("full.svg");
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        let message = save(&full, b"x").unwrap_err().to_string();
        assert!(message.contains("No space left") && message.contains("free some space"), "{message}");
    }

    #[test]
    fn a_path_that_cannot_be_written_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| save(path, b"x").unwrap_err().to_string();
        assert!(message(&folder.path().join("none/a.svg")).contains("make the folder first"));
        assert!(message(folder.path()).contains("add a file name"));
        fs::write(folder.path().join("file"), "").unwrap();
        let below_a_file = message(&folder.path().join("file/a.svg"));
        assert!(below_a_file.contains("a part of the path is a file"), "{below_a_file}");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn a_name_as_long_as_can_be_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(251) + ".svg");
        save(&path, b"x").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }
}
