//! From a command as typed to a program that can be started, or a clear refusal.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc;
use nix::unistd::{AccessFlags, access};

use crate::error::{Error, Result};
use crate::images::elf::{Class, Image, Source, classify};
use crate::kernel::ptrace::{self, LaunchError, Tid};

/// How many interpreters may stand behind one another, as for the kernel.
const MAX_INTERPRETERS: u32 = 4;

/// A program that can be started.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<CString>,
}

impl Program {
    /// Finds the program (in `PATH`, when its name has no slash) and checks that it can be recorded.
    pub fn find(command: &[OsString]) -> Result<Program> {
        let name = command.first().filter(|name| !name.is_empty()).ok_or(Error::NoCommand)?;
        let path = search(name)?;
        check(&path, 0)?;
        let arguments = command
            .iter()
            .map(|argument| {
                CString::new(argument.as_bytes()).map_err(|_| Error::Unsupported {
                    path: path.clone(),
                    reason: "an argument contains a zero byte".to_owned(),
                })
            })
            .collect::<Result<_>>()?;
        Ok(Program { path, arguments })
    }

    /// Starts it, stopped before its first instruction.
    pub fn launch(&self, aslr: bool, options: i32) -> Result<Tid> {
        let environment: Vec<CString> = std::env::vars_os()
            .filter_map(|(name, value)| {
                let mut entry = name.into_vec();
                entry.push(b'=');
                entry.extend(value.as_bytes());
                CString::new(entry).ok()
            })
            .collect();
        let path = CString::new(self.path.as_os_str().as_bytes())
            .map_err(|_| Error::NotFound { name: self.path.display().to_string(), hint: "" })?;
        ptrace::launch(&path, &self.arguments, &environment, aslr, &ptrace::ignored_before(), options)
            .map_err(|error| self.explain(error))
    }

    fn explain(&self, error: LaunchError) -> Error {
        let start = |errno: Errno| Error::Start { path: self.path.clone(), source: errno.into() };
        match error {
            LaunchError::Fork(errno) => start(errno),
            LaunchError::Exec(Errno::ENOENT) => Error::Unsupported {
                path: self.path.clone(),
                reason: match interpreter(&self.path) {
                    Some(loader) => format!("its loader {loader} does not exist on this machine"),
                    None => "it vanished before it could be started".to_owned(),
                },
            },
            LaunchError::Exec(errno) => start(errno),
            LaunchError::Lost => Error::Unsupported {
                path: self.path.clone(),
                reason: "the new process was killed before it became the program".to_owned(),
            },
            LaunchError::Trace(errno) => denied(errno),
        }
    }
}

fn denied(errno: Errno) -> Error {
    let reason =
        if traced() {
            "this process is itself being traced (by a debugger or strace -f), and a program can have one tracer only: \
         run it without the other"
                .to_owned()
        } else {
            let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
            match scope.trim() {
                "3" => "ptrace is switched off on this machine (kernel.yama.ptrace_scope is 3, until the next boot)"
                    .to_owned(),
                "2" => "ptrace is for root only here: run as root, or set the sysctl kernel.yama.ptrace_scope to 1"
                    .to_owned(),
                _ => format!(
                    "the kernel refuses ptrace ({errno}): start the container with --cap-add=SYS_PTRACE, or with a \
                 seccomp profile that allows ptrace"
                ),
            }
        };
    Error::Denied { reason }
}

/// Whether somebody traces this process.
fn traced() -> bool {
    fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.lines().any(|l| l.strip_prefix("TracerPid:").is_some_and(|n| n.trim() != "0")))
}

fn interpreter(path: &Path) -> Option<String> {
    Image::read(&Source::File(&File::open(path).ok()?))?.interpreter
}

/// Where the program is.
fn search(name: &OsStr) -> Result<PathBuf> {
    let not_found = |hint| Error::NotFound { name: name.display().to_string(), hint };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return if path.exists() { Ok(path) } else { Err(not_found("")) };
    }
    let paths = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let candidates = || std::env::split_paths(&paths).map(|folder| folder.join(name)).filter(|path| path.is_file());
    // As execvp does: a file that may not be executed does not hide a later one that may.
    if let Some(path) = candidates().find(|path| access(path.as_path(), AccessFlags::X_OK).is_ok()) {
        return Ok(path);
    }
    candidates().next().ok_or_else(|| {
        if Path::new(name).is_file() {
            not_found(" in PATH (there is one in this folder: put ./ in front of its name)")
        } else {
            not_found(" in PATH")
        }
    })
}

/// Whether it can be recorded; scripts are judged by their interpreter.
fn check(path: &Path, depth: u32) -> Result<()> {
    let not_executable = |reason| Error::NotExecutable { path: path.to_owned(), reason };
    let unsupported = |reason: &str| Error::Unsupported { path: path.to_owned(), reason: reason.to_owned() };
    let metadata = fs::metadata(path).map_err(|source| Error::Start { path: path.to_owned(), source })?;
    if metadata.is_dir() {
        return Err(not_executable("it is a folder"));
    }
    if !metadata.is_file() {
        return Err(not_executable("it is not a regular file"));
    }
    if access(path, AccessFlags::X_OK).is_err() {
        return Err(not_executable("its permissions do not allow it (chmod +x)"));
    }
    let Ok(mut file) = File::open(path) else {
        return Err(unsupported(
            "it may be executed but not read, so its code is unknown: make it readable (chmod +r)",
        ));
    };
    let mut start = Vec::new();
    file.by_ref().take(256).read_to_end(&mut start).map_err(|source| Error::Start { path: path.to_owned(), source })?;
    if start.starts_with(b"#!") {
        let interpreter = script_interpreter(&start).ok_or_else(|| unsupported("its #! line names no interpreter"))?;
        if depth == MAX_INTERPRETERS {
            return Err(unsupported("its #! line leads through too many interpreters"));
        }
        if !interpreter.exists() {
            let reason = format!("the interpreter of its #! line does not exist: {}", interpreter.display());
            return Err(unsupported(&reason));
        }
        return check(&interpreter, depth + 1);
    }
    match classify(&start) {
        Class::X86_64 => {}
        Class::Bits32 => return Err(unsupported("it is a 32-bit program: build it for x86-64 (without -m32)")),
        Class::OtherMachine => return Err(unsupported("it is a program for another processor: build it for x86-64")),
        Class::NotElf => return Err(unsupported("it is neither an ELF program nor a script with a #! line")),
    }
    if !nix::unistd::geteuid().is_root() && changes_user(&metadata) {
        return Err(unsupported(
            "it is a set-user-id program, and the kernel takes its privileges away when it is traced: run as root, \
             or use a copy without that permission bit",
        ));
    }
    Ok(())
}

/// Whether who runs this file gets another user or group.
pub fn changes_user(metadata: &fs::Metadata) -> bool {
    let gains = metadata.permissions().mode();
    let user = gains & libc::S_ISUID != 0 && metadata.uid() != nix::unistd::geteuid().as_raw();
    let group = gains & libc::S_ISGID != 0 && metadata.gid() != nix::unistd::getegid().as_raw();
    user || group
}

fn script_interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start[2..].split(|&b| b == b'\n').next()?;
    let word = line.split(|b| b" \t".contains(b)).find(|word| !word.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &Path) -> String {
        Program::find(&[name.as_os_str().to_owned()]).unwrap_err().to_string()
    }

    fn write(folder: &Path, name: &str, contents: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn each_refusal_names_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let elf = |class: u8, machine: u8| {
            let mut bytes = [0u8; 64];
            bytes[..4].copy_from_slice(b"\x7fELF");
            (bytes[4], bytes[5], bytes[18]) = (class, 1, machine);
            bytes
        };
        assert!(find(&folder.join("missing")).contains("not found"));
        assert!(find(Path::new("no-such-program-anywhere")).contains("not found in PATH"));
        assert!(find(folder).contains("folder"));
        assert!(find(&write(folder, "plain", b"hello", 0o644)).contains("chmod +x"));
        assert!(find(&write(folder, "text", b"hello", 0o755)).contains("neither an ELF"));
        assert!(find(&write(folder, "old", &elf(1, 3), 0o755)).contains("32-bit"));
        assert!(find(&write(folder, "arm", &elf(2, 183), 0o755)).contains("another processor"));
        assert!(find(&write(folder, "script", b"#!/no/such/thing -x\n", 0o755)).contains("/no/such/thing"));
        assert!(find(&write(folder, "empty", b"#!  \n", 0o755)).contains("no interpreter"));
        assert!(Program::find(&[]).unwrap_err().to_string().contains("no program"));
    }

    #[test]
    fn an_interpreter_of_itself_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop");
        let line = format!("#!{}\n", path.display());
        write(folder.path(), "loop", line.as_bytes(), 0o755);
        assert!(find(&path).contains("too many interpreters"));
    }

    #[test]
    fn a_script_is_run_by_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "script", b"#! /bin/sh -e\nexit 3\n", 0o755);
        assert!(Program::find(&[path.into()]).is_ok());
    }

    #[test]
    fn names_without_a_slash_are_looked_for_in_path() {
        assert!(Program::find(&["sh".into()]).unwrap().path.is_absolute());
    }
}
