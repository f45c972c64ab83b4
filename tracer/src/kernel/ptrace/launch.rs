//! Starting the program, stopped before its first instruction.

use std::ffi::{CString, c_char};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use nix::errno::Errno;
use nix::libc;

use super::signals::watching;
use super::{Stop, Tid, request, wait_any};

/// Why the program did not start.
#[derive(Debug)]
pub enum LaunchError {
    /// No process could be made.
    Fork(Errno),
    /// The process could not be traced.
    Trace(Errno),
    /// `execve` failed.
    Exec(Errno),
    /// The process ended before it became the program.
    Lost,
}

/// Starts `path` in a new process, which is stopped at its exec event with the ptrace options set.
///
/// `ignored` are the signals that the program is to find ignored, of those that this process changed for itself.
pub fn launch(
    path: &CString,
    arguments: &[CString],
    environment: &[CString],
    aslr: bool,
    ignored: &[i32],
    options: i32,
) -> Result<Tid, LaunchError> {
    let pipe = || nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(LaunchError::Fork);
    let (go_read, go_write) = pipe()?;
    let (error_read, error_write) = pipe()?;
    let argv = pointers(arguments);
    let envp = pointers(environment);

    // SAFETY: the child of a process with several threads may call async-signal-safe functions only; `child` does so:
    // all it needs was allocated above.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // The write end must not keep the child itself waiting when we die.
        // SAFETY: closes a descriptor of the child's own copy of the table.
        unsafe { libc::close(go_write.as_raw_fd()) };
        child(go_read.as_raw_fd(), error_write.as_raw_fd(), path, &argv, &envp, aslr, ignored);
    }
    let tid = Tid(Errno::result(pid).map_err(LaunchError::Fork)?);
    drop(go_read);
    drop(error_write);
    if let Err(error) = request::seize(tid, options) {
        drop(go_write); // the child reads the end of file and leaves
        reap(tid);
        return Err(LaunchError::Trace(error));
    }
    if File::from(go_write).write_all(&[1]).is_err() {
        reap(tid);
        return Err(LaunchError::Lost);
    }
    loop {
        match wait_any(true) {
            Ok(Some((t, Stop::Event { event: libc::PTRACE_EVENT_EXEC, .. }))) if t == tid => return Ok(tid),
            Ok(Some((t, Stop::Exited(_) | Stop::Killed(_)))) if t == tid => {
                let mut code = [0; 4];
                return Err(match File::from(error_read).read_exact(&mut code) {
                    Ok(()) => LaunchError::Exec(Errno::from_raw(i32::from_ne_bytes(code))),
                    Err(_) => LaunchError::Lost,
                });
            }
            Ok(Some((t, Stop::Signal(signal)))) if t == tid => {
                let _ = request::resume(t, signal);
            }
            Ok(Some((t, Stop::Event { .. }))) if t == tid => {
                let _ = request::resume(t, 0);
            }
            Ok(_) => {}
            Err(_) => return Err(LaunchError::Lost),
        }
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Waits for the end of a child that is on its way out.
fn reap(tid: Tid) {
    // SAFETY: a null status pointer is allowed.
    unsafe { libc::waitpid(tid.0, std::ptr::null_mut(), libc::__WALL) };
}

/// What the new process does until it becomes the program. Async-signal-safe: no allocation, no locks.
fn child(
    go: RawFd,
    report: RawFd,
    path: &CString,
    argv: &[*const c_char],
    envp: &[*const c_char],
    aslr: bool,
    ignored: &[i32],
) -> ! {
    // SAFETY: system calls with pointers to local variables, and to strings and null-ended lists that live in the
    // caller; none of them allocates. `_exit` never returns.
    unsafe {
        let mut byte = 0u8;
        while libc::read(go, (&raw mut byte).cast(), 1) < 0 && Errno::last_raw() == libc::EINTR {}
        if byte == 0 {
            libc::_exit(127);
        }
        // Rust programs run with SIGPIPE ignored, and commands of ours with SIGXFSZ, which the program must not
        // inherit.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        if watching() {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        }
        for &signal in ignored {
            libc::signal(signal, libc::SIG_IGN);
        }
        if !aslr {
            let now = libc::personality(0xffff_ffff);
            libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
        }
        libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
        let code = Errno::last_raw().to_ne_bytes();
        libc::write(report, code.as_ptr().cast(), code.len());
        libc::_exit(127)
    }
}
