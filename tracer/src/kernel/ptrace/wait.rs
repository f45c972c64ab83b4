//! Waiting for threads to stop or end.

use std::cell::RefCell;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;

use super::Tid;

/// How often [`wait_for`] looks whether a first thread is dead.
const LOOK: Duration = Duration::from_millis(50);

/// Why a thread was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is gone, with this exit status.
    Exited(i32),
    /// It is gone, killed by this signal.
    Killed(i32),
    /// It is stopped, about to get this signal (SIGTRAP also after each step).
    Signal(i32),
    /// It is stopped at a `PTRACE_EVENT_…`.
    Event {
        /// Which event.
        event: i32,
        /// The signal: SIGTRAP, or the stopping signal of a group stop.
        signal: i32,
    },
}

/// The event of a group stop, and of the first stop of a new thread.
pub const EVENT_STOP: i32 = libc::PTRACE_EVENT_STOP;

/// The next report of any thread that this thread of ours traces; none when `block` is false and nothing has been
/// reported. `ECHILD`: there is nobody left to wait for.
///
/// Other children of this process are left alone, unless the calling thread itself started them.
pub fn wait_any(block: bool) -> Result<Option<(Tid, Stop)>, Errno> {
    let flags = libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one int to the pointer, which comes from a reference.
        let tid = match Errno::result(unsafe { libc::waitpid(-1, &mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(tid) => Tid(tid),
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error),
        };
        return Ok(Some((tid, decode(status))));
    }
}

/// The next report of this thread; `ESRCH` when there will be none before other threads have been waited for.
///
/// That happens to the first thread of a process that was killed while it stood here, and was then told to go on. The
/// kernel reports its end only after those of all the others, whose ends wait for us. So a wait for it is interrupted
/// from time to time.
pub fn wait_for(tid: Tid) -> Result<Stop, Errno> {
    if !is_first(tid) {
        return wait_blocking(tid, || false);
    }
    INTERRUPTER.with(|interrupter| {
        if let Some(interrupter) = interrupter {
            interrupter.every(LOOK);
        }
        let stop = wait_blocking(tid, || is_dead(tid));
        if let Some(interrupter) = interrupter {
            interrupter.every(Duration::ZERO);
        }
        stop
    })
}

/// Blocks until the thread is reported, or until `give_up` says so; it is asked after each signal that comes meanwhile.
fn wait_blocking(tid: Tid, gives_up: impl Fn() -> bool) -> Result<Stop, Errno> {
    loop {
        let mut status = 0;
        // SAFETY: the kernel writes one int to the pointer, which comes from a reference.
        match Errno::result(unsafe { libc::waitpid(tid.0, &mut status, libc::__WALL) }) {
            Ok(_) => return Ok(decode(status)),
            Err(Errno::EINTR) if gives_up() => return Err(Errno::ESRCH),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
}

thread_local! {
    /// None where the kernel gives no timer.
    static INTERRUPTER: Option<Interrupter> = Interrupter::new().ok();
}

/// A timer that sends this thread a signal, by which a system call ends that blocks.
struct Interrupter(RefCell<Timer>);

impl Interrupter {
    fn new() -> nix::Result<Interrupter> {
        // The kernel never sends this signal and nobody else uses it. It only has to be handled, so that the system
        // call is not restarted after it.
        let signal = Signal::SIGSTKFLT;
        let nothing = SigAction::new(SigHandler::Handler(do_nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(signal, &nothing) }?;
        let thread_id = nix::unistd::gettid().as_raw();
        let event = SigEvent::new(SigevNotify::SigevThreadId { signal, thread_id, si_value: 0 });
        Ok(Interrupter(RefCell::new(Timer::new(ClockId::CLOCK_MONOTONIC, event)?)))
    }

    /// From now on a signal comes each time that this much has passed; none for zero.
    fn every(&self, period: Duration) {
        // It is a timer that is there, and a time that can be: this does not fail.
        let _ = self.0.borrow_mut().set(Expiration::Interval(period.into()), TimerSetTimeFlags::empty());
    }
}

extern "C" fn do_nothing(_signal: i32) {}

/// Whether it is the first thread of its process, by whose number the process is known.
fn is_first(tid: Tid) -> bool {
    // SAFETY: signal 0 asks whether there is such a thread in that process, and sends nothing.
    unsafe { libc::syscall(libc::SYS_tgkill, tid.0, tid.0, 0) == 0 }
}

/// Whether a thread runs no more, though its end may not be reported yet.
fn is_dead(tid: Tid) -> bool {
    // The name, in parentheses, may hold any character.
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

fn decode(status: i32) -> Stop {
    if libc::WIFEXITED(status) {
        Stop::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Stop::Killed(libc::WTERMSIG(status))
    } else {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            0 => Stop::Signal(signal),
            event => Stop::Event { event, signal },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::process::Command;

    use super::super::{ProcessHandle, interrupt, launch, resume, step};
    use super::*;

    #[test]
    fn statuses_are_told_apart() {
        assert_eq!(decode(7 << 8), Stop::Exited(7));
        assert_eq!(decode(libc::SIGKILL), Stop::Killed(9));
        assert_eq!(decode(libc::SIGSEGV | 0x80), Stop::Killed(11), "with a core dump");
        assert_eq!(decode((libc::SIGTRAP << 8) | 0x7f), Stop::Signal(5));
        assert_eq!(decode((34 << 8) | 0x7f), Stop::Signal(34), "a real-time signal");
        let event = (libc::PTRACE_EVENT_CLONE << 16) | (libc::SIGTRAP << 8) | 0x7f;
        assert_eq!(decode(event), Stop::Event { event: 3, signal: 5 });
        let group_stop = (128 << 16) | (libc::SIGSTOP << 8) | 0x7f;
        assert_eq!(decode(group_stop), Stop::Event { event: 128, signal: 19 });
    }

    const TWO_THREADS: &str = "
        #include <pthread.h>
        #include <unistd.h>
        static void *wait_too(void *nothing) { pause(); return nothing; }
        int main(void) { pthread_t thread; pthread_create(&thread, 0, wait_too, 0); pause(); return 0; }
    ";

    #[test]
    fn the_end_of_a_first_thread_is_not_waited_for_before_the_ends_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("two.c"), folder.path().join("two"));
        std::fs::write(&source, TWO_THREADS).unwrap();
        let compiled = Command::new("cc").args(["-pthread", "-o"]).args([&program, &source]).status().unwrap();
        assert!(compiled.success());

        let path = CString::new(program.as_os_str().as_encoded_bytes()).unwrap();
        let options =
            [libc::PTRACE_O_TRACEEXEC, libc::PTRACE_O_TRACECLONE, libc::PTRACE_O_TRACEEXIT, libc::PTRACE_O_EXITKILL];
        let options = options.into_iter().fold(0, |all, option| all | option);
        let first = launch(&path, std::slice::from_ref(&path), &[], true, &[], options).unwrap();
        resume(first, 0).unwrap();
        // The event of the first thread, and the first stop of the second.
        for _ in 0..2 {
            let (tid, _) = wait_any(true).unwrap().unwrap();
            resume(tid, 0).unwrap();
        }
        interrupt(first).unwrap();
        assert!(matches!(wait_for(first), Ok(Stop::Event { .. })));
        ProcessHandle::open(first).unwrap().send(libc::SIGKILL).unwrap();
        // It now stands at its end, and the tracer does not know that yet.
        while step(first, 0).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(wait_for(first), Err(Errno::ESRCH));

        let mut last = None;
        while let Ok(Some((tid, stop))) = wait_any(true) {
            match stop {
                Stop::Event { .. } => resume(tid, 0).unwrap(),
                stop => last = Some((tid, stop)),
            }
        }
        assert_eq!(last, Some((first, Stop::Killed(libc::SIGKILL))));
    }
}
