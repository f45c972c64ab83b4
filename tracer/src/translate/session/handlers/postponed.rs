//! What waits for a thread: signals that are held back, and handlers that have not returned.

use std::time::{Duration, Instant};

use crate::kernel::ptrace::SignalInfo;
use crate::translate::session::thread::{Postponed, Quiet, Signals};

/// The least time that a thread runs between two signals, if it does not wait in a system call: about as long as it
/// takes to handle one.
pub(super) const MOMENT: Duration = Duration::from_micros(25);

/// So many open handlers leave that as it is; each one more doubles it, so many times at most: 1.6 s.
pub(super) const FEW_OPEN: usize = 4;
const MOST_DOUBLINGS: usize = 16;

/// Signals from here on are queued.
pub(super) const FIRST_QUEUED: i32 = 32;

/// What a signal is that a thread gets.
pub enum Claim {
    /// One that was held back, with what the kernel has said about it.
    Kept(SignalInfo),
    /// One that was sent again, though the thread has got it before.
    Stray,
    /// Another, as the kernel says.
    New(SignalInfo),
}

impl Signals {
    /// A handler interrupts the thread where its stack pointer is this.
    pub fn interrupt(&mut self, sp: u64) {
        self.open.retain(|before| *before > sp);
        self.open.push(sp);
    }

    /// A handler returns to where the stack pointer is this. Whether a moment without signals ends with it.
    pub(super) fn is_over_at(&mut self, sp: u64) -> bool {
        self.open.retain(|before| *before > sp);
        let is_over = |quiet: &Quiet| self.open.len() <= FEW_OPEN || quiet.until <= Instant::now();
        self.quiet.as_ref().is_some_and(is_over)
    }

    /// The least time until the next signal.
    pub(super) fn moment(&self) -> Duration {
        MOMENT * (1 << self.open.len().saturating_sub(FEW_OPEN).min(MOST_DOUBLINGS))
    }

    /// The thread gets this signal when the program can handle it. Of the standard ones, one of each kind waits: more
    /// than the kernel would let wait would come one in the handler of the other, until the stack is full.
    pub fn defer(&mut self, signal: i32, info: SignalInfo) {
        if signal >= FIRST_QUEUED || self.deferred.iter().all(|(other, _)| *other != signal) {
            self.deferred.push((signal, info));
        }
    }

    /// What the signal is that the thread has stopped for.
    pub fn claim(&mut self, signal: i32, info: SignalInfo) -> Claim {
        let is_kept = |kept: &Postponed| kept.signal == signal && kept.sent;
        if let Some(at) = self.postponed.iter().position(is_kept) {
            let kept = self.postponed.remove(at);
            if !info.is_of_ours() && signal >= FIRST_QUEUED {
                // It has come before the one that was sent again, which stands for it from here on.
                self.postponed.push(Postponed { signal, info, sent: true });
            } else if !info.is_of_ours() {
                // The two are one, as two of a kind are that wait.
                self.strays += 1;
            }
            return Claim::Kept(kept.info);
        }
        if info.is_of_ours() && self.strays > 0 {
            self.strays -= 1;
            return Claim::Stray;
        }
        Claim::New(info)
    }
}
