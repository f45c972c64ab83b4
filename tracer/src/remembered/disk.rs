//! The folder in which translations are remembered, and its files.
//!
//! Other users who can write into the folder could not make us record anything wrong. But they could make us slow, and
//! a link could make us overwrite a file. So the folder and its parent must belong to the effective user, others must
//! have no rights in the folder, and neither it nor a file in it may be a link. Under sudo, the caller's folder belongs
//! to another user, and is left alone. A file is replaced as a whole, by renaming: several tracers may run at once, and
//! the last one's file stays. No failure here is an error: what does not work is not remembered.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use super::codec::{decode, encode};
use super::{Key, Remember, Remembered};

/// Larger files are not read.
const MOST_BYTES: u64 = 24 << 20;
/// When all files together are larger, those that were written longest ago are removed.
const MOST_BYTES_OF_ALL: u64 = 128 << 20;

const FOLDER: OFlag = OFlag::O_DIRECTORY.union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);

/// The folder, opened and found to be the user's own.
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder; makes it where there is none. None where it cannot be used.
    #[must_use]
    pub fn open(memory: &Remember) -> Option<Folder> {
        let Remember::In(path) = memory else { return None };
        let parent = own_folder(path.parent()?)?;
        let name = path.file_name()?;
        match mkdirat(&parent, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(_) => return None,
        }
        let folder = openat(&parent, name, FOLDER | OFlag::O_NOFOLLOW, Mode::empty()).ok()?;
        let about = fstat(&folder).ok()?;
        let is_private = about.st_mode & 0o077 == 0;
        (is_own(&about, SFlag::S_IFDIR) && is_private).then_some(Folder(folder))
    }

    /// What is remembered of a program; nothing if that is unknown.
    #[must_use]
    pub fn read(&self, key: &Key) -> Remembered {
        self.read_file(&key.file_name()).and_then(|file| decode(&file, key)).unwrap_or_default()
    }

    fn read_file(&self, name: &str) -> Option<Vec<u8>> {
        // A pipe would keep us waiting.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = openat(&self.0, name, flags, Mode::empty()).ok()?;
        let about = fstat(&file).ok()?;
        if !is_own(&about, SFlag::S_IFREG) || about.st_size.cast_unsigned() > MOST_BYTES {
            return None;
        }
        let mut bytes = Vec::with_capacity(about.st_size as usize);
        File::from(file).take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The run is over: what is remembered of the program is replaced, if there is something new.
    pub fn write(&self, key: &Key, remembered: &mut Remembered) {
        remembered.end_run();
        if std::mem::take(&mut remembered.changed) {
            let bytes = encode(key, remembered);
            if bytes.len() as u64 <= MOST_BYTES && self.replace(&key.file_name(), &bytes).is_some() {
                self.keep_small();
            }
        }
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> Option<()> {
        // Only one of us has this number at a time; what one of that number has left behind is in the way.
        let other = format!("new-{}-{name}", std::process::id());
        let _ = unlinkat(&self.0, other.as_str(), UnlinkatFlags::NoRemoveDir);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(&self.0, other.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR).ok()?;
        let written = File::from(file).write_all(bytes);
        let renamed = written.is_ok() && renameat(&self.0, other.as_str(), &self.0, name).is_ok();
        if !renamed {
            let _ = unlinkat(&self.0, other.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        renamed.then_some(())
    }

    /// Removes the oldest files while all together are too large.
    fn keep_small(&self) {
        let mut files = self.files();
        files.sort_by_key(|(_, _, written)| std::cmp::Reverse(*written));
        let mut sum = 0;
        for (name, size, _) in &files {
            sum += size;
            if sum > MOST_BYTES_OF_ALL {
                let _ = unlinkat(&self.0, name.as_path(), UnlinkatFlags::NoRemoveDir);
            }
        }
    }

    /// The names of all files, their sizes, and when they were written.
    fn files(&self) -> Vec<(PathBuf, u64, i64)> {
        let Ok(entries) = fs::read_dir(format!("/proc/self/fd/{}", self.0.as_raw_fd())) else { return Vec::new() };
        let about = |entry: fs::DirEntry| {
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((PathBuf::from(entry.file_name()), about.len(), about.mtime()))
        };
        entries.flatten().filter_map(about).collect()
    }
}

/// Opens a folder of the user's own. Where there is none, it is made in another that is.
fn own_folder(path: &Path) -> Option<OwnedFd> {
    let open = |path: &Path| {
        let folder = openat(AT_FDCWD, path, FOLDER, Mode::empty())?;
        if is_own(&fstat(&folder)?, SFlag::S_IFDIR) { Ok(folder) } else { Err(Errno::EPERM) }
    };
    match open(path) {
        Err(Errno::ENOENT) => {
            let above = open(path.parent()?).ok()?;
            mkdirat(&above, path.file_name()?, Mode::S_IRWXU).ok()?;
            open(path).ok()
        }
        opened => opened.ok(),
    }
}

/// Whether it is of this kind, and belongs to the effective user.
fn is_own(about: &FileStat, kind: SFlag) -> bool {
    about.st_uid == geteuid().as_raw() && about.st_mode & SFlag::S_IFMT.bits() == kind.bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembered::{Head, Place};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn key() -> Key {
        Key { program: b"program".to_vec(), options: "some".to_owned() }
    }

    fn remembered(heads: u64) -> Remembered {
        let mut remembered = Remembered::default();
        let module = remembered.find_or_add(b"library");
        for offset in 0..heads {
            remembered.ran(Place { module, offset }, Head::new(false, b"code"), &[]);
        }
        remembered
    }

    fn heads(remembered: &Remembered) -> usize {
        remembered.modules().first().map_or(0, |module| module.heads.len())
    }

    /// The folder in `parent`.
    fn in_folder(parent: &Path) -> Remember {
        Remember::In(parent.join("lockstep"))
    }

    #[test]
    fn what_is_written_is_read_by_the_user_alone() {
        let parent = tempfile::tempdir().unwrap();
        let memory = in_folder(parent.path());
        let folder = Folder::open(&memory).unwrap();
        assert_eq!(heads(&folder.read(&key())), 0, "there is no file yet");
        folder.write(&key(), &mut remembered(5));
        assert_eq!(heads(&Folder::open(&memory).unwrap().read(&key())), 5);
        let file = parent.path().join("lockstep").join(key().file_name());
        for (path, mode) in [(parent.path().join("lockstep"), 0o700), (file, 0o600)] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
        assert_eq!(folder.files().len(), 1, "nothing else is left behind");
    }

    #[test]
    fn a_cache_that_is_not_there_yet_is_made_in_a_folder_of_the_user() {
        let home = tempfile::tempdir().unwrap();
        let cache = home.path().join(".cache");
        let folder = Folder::open(&in_folder(&cache)).unwrap();
        folder.write(&key(), &mut remembered(5));
        assert_eq!(heads(&Folder::open(&in_folder(&cache)).unwrap().read(&key())), 5);
        assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(Folder::open(&in_folder(&home.path().join("no/cache"))).is_none(), "only one folder is made");
        if geteuid().is_root() {
            std::os::unix::fs::chown(home.path(), Some(12345), None).unwrap();
            fs::remove_dir_all(&cache).unwrap();
            assert!(Folder::open(&in_folder(&cache)).is_none() && !cache.exists(), "the home of another");
        }
    }

    #[test]
    fn a_folder_that_others_could_change_is_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let memory = in_folder(parent.path());
        assert!(Folder::open(&memory).is_some());
        fs::set_permissions(parent.path().join("lockstep"), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(Folder::open(&memory).is_none());
    }

    #[test]
    fn what_belongs_to_another_user_is_left_alone() {
        if !geteuid().is_root() {
            eprintln!("only root can make files of another user: not tested");
            return;
        }
        let other = Some(12345);
        let parent = tempfile::tempdir().unwrap();
        let memory = in_folder(parent.path());
        std::os::unix::fs::chown(parent.path(), other, None).unwrap();
        assert!(Folder::open(&memory).is_none());
        assert!(!parent.path().join("lockstep").exists(), "nothing is made in another user's folder");
        std::os::unix::fs::chown(parent.path(), Some(0), None).unwrap();
        let folder = Folder::open(&memory).unwrap();
        folder.write(&key(), &mut remembered(5));
        let file = parent.path().join("lockstep").join(key().file_name());
        std::os::unix::fs::chown(&file, other, None).unwrap();
        assert_eq!(heads(&folder.read(&key())), 0, "another user's file");
        std::os::unix::fs::chown(parent.path().join("lockstep"), other, None).unwrap();
        assert!(Folder::open(&memory).is_none(), "another user's folder");
    }

    #[test]
    fn links_are_not_followed() {
        let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let memory = in_folder(parent.path());
        symlink(elsewhere.path(), parent.path().join("lockstep")).unwrap();
        assert!(Folder::open(&memory).is_none());
        fs::remove_file(parent.path().join("lockstep")).unwrap();
        let folder = Folder::open(&memory).unwrap();
        folder.write(&key(), &mut remembered(5));
        let file = parent.path().join("lockstep").join(key().file_name());
        let target = elsewhere.path().join("target");
        fs::rename(&file, &target).unwrap();
        let before = fs::read(&target).unwrap();
        symlink(&target, &file).unwrap();
        assert_eq!(heads(&folder.read(&key())), 0);
        folder.write(&key(), &mut remembered(7));
        assert_eq!(fs::read(&target).unwrap(), before, "the link was replaced, not what it leads to");
        assert_eq!(heads(&folder.read(&key())), 7);
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&in_folder(parent.path())).unwrap();
        let path = parent.path().join("lockstep").join(key().file_name());
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        assert_eq!(heads(&folder.read(&key())), 0, "a pipe, which nobody writes to");
        fs::remove_file(&path).unwrap();
        File::create(&path).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert_eq!(folder.read_file(&key().file_name()), None);
    }

    #[test]
    fn where_nothing_can_be_made_nothing_is_remembered() {
        assert!(Folder::open(&Remember::Nowhere).is_none());
        assert!(Folder::open(&in_folder(Path::new("/proc/none"))).is_none());
        assert!(Folder::open(&Remember::In("/".into())).is_none());
    }

    #[test]
    fn the_oldest_files_go_when_all_are_too_large() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&in_folder(parent.path())).unwrap();
        for number in 0..3 {
            let file = File::create(parent.path().join("lockstep").join(format!("file-{number}"))).unwrap();
            file.set_len(MOST_BYTES_OF_ALL / 2 - 4096).unwrap();
            let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 * (number + 1));
            file.set_times(fs::FileTimes::new().set_modified(written)).unwrap();
        }
        folder.write(&key(), &mut remembered(5));
        let mut names: Vec<String> =
            folder.files().into_iter().map(|(name, ..)| name.to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, [key().file_name(), "file-1".to_owned(), "file-2".to_owned()]);
    }
}
