//! What has to be remembered of a thread while its records are expanded.

use std::ops::Range;

use trace_format::{Event, ThreadId};

use crate::kernel::ptrace::Tid;
use crate::record::sync_stack::{Interrupted, SyncStack};

/// What has to be remembered of a thread from record to record.
pub struct Stream {
    /// Its number in the trace.
    pub id: ThreadId,
    /// Its process.
    pub process: Tid,
    /// The stack pointer here.
    pub sp: u64,
    /// The bases of fs and gs.
    pub segments: [u64; 2],
    /// The synchronisation functions it is in.
    pub sync: SyncStack,
    /// The number of threads set for its next parallel region.
    pub(super) team_size: u64,
    /// Whether control was transferred to what comes next.
    pub transferred: bool,
    /// The futex of a wait from which we have taken the thread, and which it begins again: it has waited, also where
    /// the kernel finds then that there is nothing to wait for.
    pub left_wait: Option<u64>,
    /// Memory that holds a stack other than that of the functions it is in.
    pub other_stack: Option<Range<u64>>,
}

impl Stream {
    /// A thread that begins with this stack pointer.
    #[must_use]
    pub fn new(id: ThreadId, process: Tid, sp: u64) -> Stream {
        Stream {
            id,
            process,
            sp,
            segments: [0; 2],
            sync: SyncStack::default(),
            team_size: 0,
            transferred: true,
            left_wait: None,
            other_stack: None,
        }
    }

    /// A handler begins, where the stack pointer is `sp`; `alternate` is the stack of its own that it runs on.
    pub fn handler_begins(&mut self, sp: u64, alternate: Option<Range<u64>>) {
        let transferred = std::mem::replace(&mut self.transferred, false);
        self.sync.signal(Interrupted { sp, transferred }, alternate);
    }

    /// The thread has returned from a handler, and has this stack pointer: the events that say so are `told`.
    pub fn left_handler(&mut self, sp: u64, mut told: impl FnMut(ThreadId, Event)) {
        let came = self.sync.signal_return();
        let before = std::mem::replace(&mut self.sp, sp);
        // What it came before may be a function whose record is still to come.
        self.transferred = came == Some(Interrupted { sp, transferred: true });
        told(self.id, Event::SignalReturn);
        if before != sp {
            told(self.id, Event::SetSp(sp));
        }
    }
}
