//! Signals that this process gets while it records, and signals that it sends.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use nix::errno::Errno;
use nix::libc;

use super::Tid;

/// The signals by which a user or a script asks a command to end.
const WATCHED: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

static COUNT: AtomicU32 = AtomicU32::new(0);
static LAST: AtomicI32 = AtomicI32::new(0);
static FROM_KERNEL: AtomicBool = AtomicBool::new(false);
static WATCHING: AtomicBool = AtomicBool::new(false);
static IGNORED: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// The signals that have come since [`watch_signals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many.
    pub count: u32,
    /// The last one's number; 0 when there was none.
    pub signal: i32,
    /// Whether the last one came from the terminal, which sends it to the program too.
    pub from_terminal: bool,
}

/// What has come so far.
pub fn received() -> Received {
    Received {
        count: COUNT.load(Ordering::Acquire),
        signal: LAST.load(Ordering::Relaxed),
        from_terminal: FROM_KERNEL.load(Ordering::Relaxed),
    }
}

extern "C" fn note(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid pointer to handlers installed with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    FROM_KERNEL.store(code > 0, Ordering::Relaxed);
    LAST.store(signal, Ordering::Relaxed);
    COUNT.fetch_add(1, Ordering::Release);
}

/// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT no longer end this process, but are noted. Those ignored before stay
/// ignored (`nohup`), except SIGINT: shells start background jobs with SIGINT ignored, and `kill -INT` must end them
/// nevertheless. SIGXFSZ no longer ends it either: a trace that outgrows a file size limit (`ulimit -f`) is an error of
/// writing.
pub fn watch_signals() {
    let mut ignored = IGNORED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for signal in WATCHED {
        // SAFETY: a zeroed `sigaction` is a valid one (no flags, empty mask); the handler has the signature that
        // SA_SIGINFO asks for, and does nothing but atomic stores.
        let before = unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction == libc::SIG_IGN && signal != libc::SIGINT {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = note as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
            before.sa_sigaction
        };
        if before == libc::SIG_IGN && !ignored.contains(&signal) {
            ignored.push(signal);
        }
    }
    if !WATCHING.swap(true, Ordering::Relaxed) {
        // SAFETY: no handler is installed.
        let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        if before == libc::SIG_IGN {
            ignored.push(libc::SIGXFSZ);
        }
    }
}

/// Whether [`watch_signals`] was called.
pub fn watching() -> bool {
    WATCHING.load(Ordering::Relaxed)
}

/// The signals that were ignored before this process changed them for itself: the program inherits that.
pub fn ignored_before() -> Vec<i32> {
    IGNORED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
}

/// A process to which signals can be sent without ever meeting another one that got its number.
#[derive(Debug)]
pub struct ProcessHandle {
    descriptor: OwnedFd,
    /// Its number.
    pub tid: Tid,
}

impl ProcessHandle {
    /// A handle of a process that has not been waited for yet.
    pub fn open(tid: Tid) -> Result<ProcessHandle, Errno> {
        // SAFETY: pidfd_open takes two numbers and returns a new descriptor (close-on-exec) or an error.
        let descriptor = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, tid.0, 0) })?;
        // SAFETY: the descriptor is new, and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
        Ok(ProcessHandle { descriptor, tid })
    }

    /// Sends it a signal.
    pub fn send(&self, signal: i32) -> Result<(), Errno> {
        use std::os::fd::AsRawFd;
        let info: *const libc::siginfo_t = std::ptr::null();
        // SAFETY: a null `siginfo_t` asks the kernel to fill it in as for kill(2).
        let result =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.descriptor.as_raw_fd(), signal, info, 0) };
        Errno::result(result).map(drop)
    }
}
