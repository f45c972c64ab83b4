//! Debug information that lies in a file of its own, where `strip` and distributions put it.
//!
//! It is looked for as debuggers do: by the build id below `/usr/lib/debug/.build-id`; by the name in the binary's
//! `.gnu_debuglink`, beside the binary, in `.debug` there, and below `/usr/lib/debug`; and by `debuginfod-find`, where
//! the user has set `DEBUGINFOD_URLS`. The two files of `-gsplit-dwarf` (`.dwo`, `.dwp`) are found by `addr2line`.
//!
//! Source: GDB's manual, *Debugging Information in Separate Files*; debuginfod-find(1).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::Object;

/// Where distributions place such files.
const GLOBAL: &str = "/usr/lib/debug";

/// The file with the debug information of this binary, which has none itself.
pub(crate) fn debug_file(path: &Path, binary: &object::File) -> Option<PathBuf> {
    let build_id = binary.build_id().ok().flatten();
    build_id.and_then(by_build_id).or_else(|| by_link(path, binary)).or_else(|| fetched(build_id?))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn by_build_id(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let name = format!("{first:02x}/{}.debug", hexadecimal(rest));
    Some(Path::new(GLOBAL).join(".build-id").join(name)).filter(|path| has_build_id(path, build_id))
}

fn has_build_id(path: &Path, build_id: &[u8]) -> bool {
    let Ok(bytes) = std::fs::read(path) else { return false };
    object::File::parse(&*bytes).is_ok_and(|file| file.build_id().is_ok_and(|id| id == Some(build_id)))
}

fn by_link(path: &Path, binary: &object::File) -> Option<PathBuf> {
    let (name, checksum) = binary.gnu_debuglink().ok()??;
    let name = Path::new(OsStr::from_bytes(name)).file_name()?;
    let path = path.canonicalize().ok()?;
    let folder = path.parent()?;
    let global = Path::new(GLOBAL).join(folder.strip_prefix("/").ok()?);
    let candidates = [folder.join(name), folder.join(".debug").join(name), global.join(name)];
    let is_it = |candidate: &PathBuf| {
        *candidate != path && std::fs::read(candidate).is_ok_and(|bytes| crc32fast::hash(&bytes) == checksum)
    };
    candidates.into_iter().find(is_it)
}

/// From the servers that the user has named, if any: `debuginfod-find` keeps what it fetched.
fn fetched(build_id: &[u8]) -> Option<PathBuf> {
    std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
    let mut find = Command::new("debuginfod-find");
    find.args(["debuginfo", &hexadecimal(build_id)]).stdin(Stdio::null()).stderr(Stdio::null());
    let found = find.output().ok().filter(|output| output.status.success())?;
    let path = PathBuf::from(OsStr::from_bytes(found.stdout.trim_ascii()));
    Some(path).filter(|path| has_build_id(path, build_id))
}
