//! Which synchronisation functions a thread is inside of, and when it leaves them.
//!
//! A function is left when its frame is gone: the stack pointer is above the entry's, by its return, or by a `longjmp`
//! or an exception that went past it. Two things move the stack pointer without that: a signal handler on a stack of
//! its own, and a program that switches between stacks (coroutines).

use std::ops::Range;

use trace_format::SyncFunction;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Frame {
    /// A function that was entered.
    Call { function: SyncFunction, sp: u64 },
    /// A parallel region that the thread runs by itself, from one call to another: its fork, or its body. None where
    /// the runtime runs it, whose own functions tell of it.
    Alone(Option<SyncFunction>),
    /// A task that the thread runs where it was made, from one call to another: its address. None where the runtime
    /// runs it so.
    Task(Option<u64>),
    /// A signal handler: what lies below goes on after it.
    Signal { interrupted: Interrupted, alternate: Option<Range<u64>> },
}

impl Frame {
    /// Whether it lasts from one call to another, whatever the stack pointer is.
    fn is_between_calls(&self) -> bool {
        matches!(self, Frame::Alone(_) | Frame::Task(_))
    }

    /// What the thread leaves with it.
    fn left(&self) -> Option<SyncFunction> {
        match self {
            Frame::Call { function, .. } => Some(*function),
            Frame::Alone(function) => *function,
            Frame::Task(task) => task.map(|_| SyncFunction::TaskBody),
            Frame::Signal { .. } => None,
        }
    }
}

/// Where a signal handler came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The stack pointer of the interrupted code.
    pub sp: u64,
    /// Whether control was just transferred to what the handler came before.
    pub transferred: bool,
}

/// What a region is in that a thread runs by itself.
const ALONE: [SyncFunction; 2] = [SyncFunction::ParallelFork, SyncFunction::ParallelBody];

/// The functions that a thread is inside of, outermost first.
#[derive(Clone, Debug, Default)]
pub struct SyncStack {
    frames: Vec<Frame>,
}

impl SyncStack {
    /// Whether the thread is in none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// With a stack pointer up to this one, no function is left.
    #[must_use]
    pub fn safe_up_to(&self) -> u64 {
        match self.frames.iter().rfind(|frame| !frame.is_between_calls()) {
            None | Some(Frame::Alone(_) | Frame::Task(_)) => u64::MAX,
            Some(Frame::Call { sp, .. }) => *sp,
            Some(Frame::Signal { interrupted, alternate: None }) => interrupted.sp,
            Some(Frame::Signal { .. }) => 0,
        }
    }

    /// The thread is at the function's first instruction; `sp` points at the return address. False when it only jumped
    /// back to the start of the function that it is in already.
    pub fn enter(&mut self, function: SyncFunction, sp: u64) -> bool {
        let again =
            matches!(self.frames.last(), Some(Frame::Call { function: f, sp: s, .. }) if *f == function && *s == sp);
        if !again {
            self.frames.push(Frame::Call { function, sp });
        }
        !again
    }

    /// The thread runs a parallel region by itself from here on, until [`SyncStack::end_alone`]: what it enters.
    pub fn begin_alone(&mut self, by_runtime: bool) -> &'static [SyncFunction] {
        if by_runtime {
            self.frames.push(Frame::Alone(None));
            return &[];
        }
        self.frames.extend(ALONE.map(|function| Frame::Alone(Some(function))));
        &ALONE
    }

    /// That region ends: what the thread leaves, the innermost first.
    pub fn end_alone(&mut self) -> Vec<SyncFunction> {
        let Some(last) = self.frames.iter().rposition(|frame| matches!(frame, Frame::Alone(_))) else {
            return Vec::new();
        };
        let first = if self.frames[last] == Frame::Alone(None) { last } else { last + 1 - ALONE.len() };
        self.frames.drain(first..).rev().filter_map(|frame| frame.left()).collect()
    }

    /// The thread runs the task at this address from here on, until [`SyncStack::end_task`]. False where the runtime
    /// does so in a function that has made the task, and tells of it by itself.
    pub fn begin_task(&mut self, task: u64) -> bool {
        let is_told = matches!(self.frames.last(), Some(Frame::Call { function: SyncFunction::TaskCreate, .. }));
        self.frames.push(Frame::Task((!is_told).then_some(task)));
        !is_told
    }

    /// Whether what the thread runs is this task, which has begun where it was made.
    #[must_use]
    pub fn has_begun(&self, task: u64) -> bool {
        self.frames.last() == Some(&Frame::Task(Some(task)))
    }

    /// That task ends: what the thread leaves, the innermost first.
    pub fn end_task(&mut self) -> Vec<SyncFunction> {
        let Some(last) = self.frames.iter().rposition(|frame| matches!(frame, Frame::Task(_))) else {
            return Vec::new();
        };
        self.frames.drain(last..).rev().filter_map(|frame| frame.left()).collect()
    }

    /// A signal handler starts; `alternate` is the stack of its own that it runs on.
    pub fn signal(&mut self, interrupted: Interrupted, alternate: Option<Range<u64>>) {
        self.frames.push(Frame::Signal { interrupted, alternate });
    }

    /// The handler has returned: where it came, if that is known.
    pub fn signal_return(&mut self) -> Option<Interrupted> {
        let handler = self.frames.iter().rposition(|f| matches!(f, Frame::Signal { .. }))?;
        match self.frames.drain(handler..).next() {
            Some(Frame::Signal { interrupted, .. }) => Some(interrupted),
            _ => None,
        }
    }

    /// Control was transferred with this stack pointer: the innermost function that this leaves is taken off.
    /// To be called until there is none. `same_stack` tells whether two addresses lie on one stack.
    pub fn leave(&mut self, sp: u64, mut same_stack: impl FnMut(u64, u64) -> bool) -> Option<SyncFunction> {
        loop {
            // A region that the thread runs by itself is left with what it lies in, and so is a task.
            let around = self.frames.iter().rfind(|frame| !frame.is_between_calls())?;
            match around {
                Frame::Call { function, sp: entry } => {
                    let (function, entry) = (*function, *entry);
                    let returned = sp == entry.wrapping_add(8);
                    let mut unwound = || sp > entry && (!function.calls_back() || same_stack(entry, sp));
                    if !returned && !unwound() {
                        return None;
                    }
                    if let Some(left) = self.frames.pop()?.left() {
                        return Some(left);
                    }
                }
                Frame::Signal { interrupted, alternate } => {
                    let jumped_out = match alternate {
                        Some(stack) => !stack.contains(&sp),
                        None => sp > interrupted.sp,
                    };
                    if !jumped_out {
                        return None;
                    }
                    if let Some(left) = self.frames.pop()?.left() {
                        return Some(left);
                    }
                }
                Frame::Alone(_) | Frame::Task(_) => return None,
            }
        }
    }

    /// Forgets all: another program runs now.
    pub fn clear(&mut self) {
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use SyncFunction::*;

    use super::*;

    const CALLED: Interrupted = Interrupted { sp: 0x7f00, transferred: true };

    fn one_stack(_: u64, _: u64) -> bool {
        true
    }

    #[test]
    fn a_return_leaves_and_work_inside_does_not() {
        let mut stack = SyncStack::default();
        assert!(stack.enter(MutexLock, 0x8000));
        assert_eq!(stack.leave(0x7f00, one_stack), None);
        assert_eq!(stack.leave(0x7ff8, one_stack), None, "a recursion");
        assert_eq!(stack.leave(0x8008, one_stack), Some(MutexLock));
        assert_eq!(stack.leave(0x8008, one_stack), None);
    }

    #[test]
    fn a_region_that_a_thread_runs_by_itself_lasts_until_a_call_ends_it() {
        let mut stack = SyncStack::default();
        stack.enter(ThreadBody, 0x9000);
        assert_eq!(stack.begin_alone(false), [ParallelFork, ParallelBody]);
        assert_eq!(stack.safe_up_to(), 0x9000);
        stack.enter(MutexLock, 0x7000);
        assert_eq!(stack.leave(0x7008, one_stack), Some(MutexLock));
        assert_eq!(stack.leave(0x8008, one_stack), None);
        assert_eq!(stack.end_alone(), [ParallelBody, ParallelFork]);
        assert_eq!(stack.end_alone(), []);
        assert_eq!(stack.leave(0x9008, one_stack), Some(ThreadBody));
    }

    #[test]
    fn a_region_that_a_thread_runs_by_itself_is_left_with_what_it_lies_in() {
        let mut stack = SyncStack::default();
        stack.enter(ThreadBody, 0x9000);
        stack.begin_alone(false);
        let left: Vec<_> = std::iter::from_fn(|| stack.leave(0x9008, one_stack)).collect();
        assert_eq!(left, [ParallelBody, ParallelFork, ThreadBody]);
    }

    #[test]
    fn a_fork_that_runs_its_region_on_one_thread_tells_of_it_once() {
        let mut stack = SyncStack::default();
        stack.enter(ParallelFork, 0x9000);
        assert_eq!(stack.begin_alone(true), []);
        stack.enter(ParallelBody, 0x8000);
        assert_eq!(stack.leave(0x8008, one_stack), Some(ParallelBody));
        assert_eq!(stack.end_alone(), []);
        assert_eq!(stack.leave(0x9008, one_stack), Some(ParallelFork));
    }

    #[test]
    fn a_task_that_is_run_where_it_is_made_lasts_until_a_call_ends_it() {
        let mut stack = SyncStack::default();
        stack.enter(ThreadBody, 0x9000);
        assert!(stack.begin_task(0x100) && stack.has_begun(0x100) && !stack.has_begun(0x200));
        assert!(stack.begin_task(0x200) && !stack.has_begun(0x100));
        assert_eq!(stack.leave(0x8008, one_stack), None);
        assert_eq!((stack.end_task(), stack.end_task(), stack.end_task()), (vec![TaskBody], vec![TaskBody], vec![]));
        // What runs it where `GOMP_task` was called tells of its body.
        stack.enter(TaskCreate, 0x7000);
        assert!(!stack.begin_task(0x300) && !stack.has_begun(0x300));
        assert_eq!((stack.end_task(), stack.leave(0x7008, one_stack)), (vec![], Some(TaskCreate)));
        stack.begin_task(0x400);
        let left: Vec<_> = std::iter::from_fn(|| stack.leave(0x9008, one_stack)).collect();
        assert_eq!(left, [TaskBody, ThreadBody], "an exception left it");
    }

    #[test]
    fn nothing_is_left_up_to_the_innermost_entry() {
        let mut stack = SyncStack::default();
        assert_eq!(stack.safe_up_to(), u64::MAX);
        stack.enter(MutexLock, 0x8000);
        assert_eq!(stack.safe_up_to(), 0x8000);
        assert_eq!(stack.leave(0x8000, one_stack), None);
        stack.signal(CALLED, Some(0x10_0000..0x11_0000));
        assert_eq!(stack.safe_up_to(), 0, "a handler on a stack of its own");
    }

    #[test]
    fn a_long_jump_leaves_all_it_passes() {
        let mut stack = SyncStack::default();
        stack.enter(ThreadBody, 0x9000);
        stack.enter(Once, 0x8000);
        stack.enter(MutexLock, 0x7000);
        assert_eq!(stack.leave(0x8800, one_stack), Some(MutexLock));
        assert_eq!(stack.leave(0x8800, one_stack), Some(Once));
        assert_eq!(stack.leave(0x8800, one_stack), None);
    }

    #[test]
    fn a_jump_to_the_start_is_no_second_entry() {
        let mut stack = SyncStack::default();
        assert!(stack.enter(MutexLock, 0x8000));
        assert!(!stack.enter(MutexLock, 0x8000));
        assert!(stack.enter(MutexLock, 0x7000), "a call of itself is");
    }

    #[test]
    fn a_handler_on_its_own_stack_leaves_nothing() {
        let mut stack = SyncStack::default();
        stack.enter(SemaphoreWait, 0x8000);
        stack.signal(CALLED, Some(0x10_0000..0x11_0000));
        assert_eq!(stack.leave(0x10_f000, one_stack), None);
        stack.enter(SemaphorePost, 0x10_e000);
        assert_eq!(stack.leave(0x10_e008, one_stack), Some(SemaphorePost));
        assert_eq!(stack.signal_return(), Some(CALLED));
        assert_eq!(stack.signal_return(), None);
        assert_eq!(stack.leave(0x8008, one_stack), Some(SemaphoreWait));
    }

    #[test]
    fn a_jump_out_of_a_handler_leaves_what_it_passes() {
        let mut stack = SyncStack::default();
        stack.enter(SemaphoreWait, 0x8000);
        stack.signal(CALLED, Some(0x10_0000..0x11_0000));
        assert_eq!(stack.leave(0x8800, one_stack), Some(SemaphoreWait));
        assert!(stack.is_empty());
    }

    #[test]
    fn a_switch_to_another_stack_leaves_nothing_that_calls_back() {
        let mut stack = SyncStack::default();
        stack.enter(ThreadBody, 0x8000);
        assert_eq!(stack.leave(0x20_0000, |_, _| false), None);
        assert_eq!(stack.leave(0x8008, |_, _| false), Some(ThreadBody), "its return always does");
    }
}
