//! Files with mapped code: when such a file is written, the mapped memory changes without a change of the memory map.
//!
//! Writes are seen if the process has the file open for writing when code of it is first translated, as JIT compilers
//! do that map memory files: then its calls that write to files are looked at before they are made. Other writes (by
//! another process, through a descriptor that is opened later, by asynchronous calls) are not seen. They leave a
//! warning, if the file shows that it was modified.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

use nix::libc;
use nix::sys::stat::{major, minor};
use rustc_hash::FxHashMap;

use crate::images::modules::Region;
use crate::kernel::ptrace::Tid;

/// Device and inode of a file, as in [`Region::file`].
pub type FileKey = (String, u64);

/// The files of a process from which code was translated.
#[derive(Clone, Debug, Default)]
pub struct CodeFiles {
    /// Their paths, and when they were modified before that.
    files: FxHashMap<FileKey, (String, Option<SystemTime>)>,
    /// Whether the process had one of them open for writing.
    pub writable: bool,
}

impl CodeFiles {
    /// Code of this region is about to be translated.
    pub fn add(&mut self, process: Tid, region: &Region) {
        if region.file.1 != 0 && !self.files.contains_key(&region.file) {
            self.writable |= is_open_for_writing(process, &region.file);
            self.files.insert(region.file.clone(), (region.path.clone(), modified(&region.path, &region.file)));
        }
    }

    /// The paths of those that were modified unseen.
    pub fn modified(&self) -> impl Iterator<Item = &str> {
        let is_modified = |(key, (path, before)): &(&FileKey, &(String, Option<SystemTime>))| {
            before.is_some() && modified(path, key).is_some_and(|now| Some(now) != *before)
        };
        self.files.iter().filter(is_modified).map(|(_, (path, _))| path.as_str())
    }

    /// A file was modified, and that was seen.
    pub fn saw_write(&mut self, key: &FileKey) {
        if let Some((path, before)) = self.files.get_mut(key) {
            *before = modified(path, key);
        }
    }
}

/// Which file this is.
pub fn key_of(metadata: &fs::Metadata) -> FileKey {
    let device = metadata.dev();
    (format!("{:02x}:{:02x}", major(device), minor(device)), metadata.ino())
}

/// When the file at this path was modified, if it is that one.
fn modified(path: &str, key: &FileKey) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok().filter(|metadata| key_of(metadata) == *key)?;
    metadata.modified().ok()
}

fn is_open_for_writing(process: Tid, key: &FileKey) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut numbers = descriptors.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    numbers.any(|number| {
        let file = fs::metadata(format!("/proc/{process}/fd/{number}"));
        file.is_ok_and(|file| key_of(&file) == *key) && {
            let about = fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).unwrap_or_default();
            let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
            flags & libc::O_ACCMODE != libc::O_RDONLY
        }
    })
}
