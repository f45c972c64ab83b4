//! Ending a recorded program from outside: Ctrl-C, or a request of the caller.
//!
//! The first request is passed on to the program as the signal that came, unless the terminal has sent it already; a
//! program that handles the signal ends when it wants to. A program that ignores the signal, or gets a second request,
//! is killed, with all processes that are recorded with it. Either way the trace stays whole, since this process does
//! not die.
//!
//! A thread watches for requests, since the thread that traces may be waiting in the kernel for a program that waits
//! itself.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;

use crate::kernel::ptrace::{self, ProcessHandle, Received, Tid};
use crate::kernel::together::Together;

/// How often the watching thread looks: often enough for a person, and next to no work.
const INTERVAL: Duration = Duration::from_millis(20);

/// A handle by which a recording is asked to end its program. Clones ask the same.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    requests: Arc<AtomicU32>,
    /// How many signals had come when it began to listen to them; none: it does not.
    signals_before: Option<u32>,
}

impl Interrupt {
    /// A handle that also listens to this process's own SIGINT, SIGTERM, SIGHUP and SIGQUIT, which do not end this
    /// process from now on. For commands.
    #[must_use]
    pub fn on_signals() -> Interrupt {
        ptrace::watch_signals();
        Interrupt { requests: Arc::default(), signals_before: Some(ptrace::received().count) }
    }

    /// Whether the program was asked to end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        let signals = self.signals_before.is_some_and(|before| ptrace::received().count != before);
        signals || self.requests.load(Ordering::Acquire) > 0
    }

    /// Asks the program to end, as one Ctrl-C does.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Release);
    }
}

/// The processes that are recorded besides the first one. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Others(Arc<Mutex<BTreeSet<Tid>>>);

impl Others {
    /// A process was made, or is gone.
    pub fn set(&self, process: Tid, is_there: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_there {
            all.insert(process);
        } else {
            all.remove(&process);
        }
    }

    fn send(&self, signal: i32) {
        for &process in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // It fails when the process is gone.
            let _ = ProcessHandle::open(process).and_then(|process| process.send(signal));
        }
    }
}

/// The thread that watches for requests while a program runs.
pub struct Watch {
    done: Arc<AtomicBool>,
    killed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches over this process, and how often it stops. A handle of none (the process is gone already) watches
    /// nothing.
    pub fn start(interrupt: &Interrupt, process: Option<ProcessHandle>, others: &Others, together: &Together) -> Watch {
        let done = Arc::new(AtomicBool::new(false));
        let killed = Arc::new(AtomicBool::new(false));
        let interrupt = interrupt.clone();
        let (d, k, others, together) = (done.clone(), killed.clone(), others.clone(), together.clone());
        let thread = process.and_then(|process| {
            let watch = move || watch(&interrupt, &process, &others, &together, &d, &k);
            std::thread::Builder::new().name("interrupt".to_owned()).spawn(watch).ok()
        });
        Watch { done, killed, thread }
    }

    /// Whether the program was killed for a request.
    pub fn killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It neither panics nor waits for anything but the time above.
            drop(thread.join());
        }
    }
}

fn watch(
    interrupt: &Interrupt,
    process: &ProcessHandle,
    others: &Others,
    together: &Together,
    done: &AtomicBool,
    killed: &AtomicBool,
) {
    let mut seen = interrupt.signals_before.unwrap_or(0);
    let mut seen_requests = 0;
    let mut passed_on = 0;
    while !done.load(Ordering::Acquire) {
        let requests = interrupt.requests.load(Ordering::Acquire);
        let received = ptrace::received();
        let signals = interrupt.signals_before.map_or(0, |_| received.count.wrapping_sub(seen));
        let new = signals + (requests - seen_requests);
        if new > 0 {
            let last =
                if signals > 0 { received } else { Received { count: 0, signal: libc::SIGINT, from_terminal: false } };
            (seen, seen_requests) = (received.count, requests);
            // Ctrl-C is not meant for programs that a shell has put in the background, with SIGINT ignored.
            if last.from_terminal && ptrace::ignored_before().contains(&last.signal) {
                continue;
            }
            passed_on += new;
            if passed_on > 1 || is_ignored(process, last.signal) {
                killed.store(true, Ordering::Release);
                let _ = process.send(libc::SIGKILL);
                others.send(libc::SIGKILL);
            } else if !last.from_terminal && process.send(last.signal).is_err() {
                // The program itself has ended.
                others.send(last.signal);
            }
        }
        std::thread::park_timeout(INTERVAL);
        together.look();
    }
}

/// Whether the program ignores the signal.
fn is_ignored(process: &ProcessHandle, signal: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.tid)).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
