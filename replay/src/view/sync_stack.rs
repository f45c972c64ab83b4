//! Which synchronisation and thread-runtime functions a thread is in.

use trace_format::SyncFunction;

/// A function that was entered and not yet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub function: SyncFunction,
    pub object: u64,
    pub argument: u64,
    /// Whether the program itself called it: not another synchronisation function from its inside.
    pub counts: bool,
    /// How many leaves there were before.
    leaves: usize,
}

/// Whether none of the program's own code runs in it, except for tasks.
fn is_leaf(function: SyncFunction) -> bool {
    !function.calls_back() || function == SyncFunction::TaskCreate
}

/// The functions a thread is in, outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncStack {
    open: Vec<Open>,
    leaves: usize,
}

impl SyncStack {
    /// The thread enters a function. A task's body is the program's own code, wherever a thread that waits runs it.
    pub fn enter(&mut self, function: SyncFunction, object: u64, argument: u64) -> Open {
        let leaves = self.leaves;
        if function == SyncFunction::TaskBody {
            self.leaves = 0;
        }
        let open = Open { function, object, argument, counts: self.leaves == 0, leaves };
        self.leaves += usize::from(is_leaf(function));
        self.open.push(open);
        open
    }

    /// The thread leaves a function. What was entered inside it and never left is gone too. Nothing happens
    /// when the function is not open: the recording began inside it.
    pub fn leave(&mut self, function: SyncFunction) -> Option<Open> {
        let at = self.open.iter().rposition(|o| o.function == function)?;
        let left = self.open[at];
        self.leaves = left.leaves;
        self.open.truncate(at);
        Some(left)
    }

    /// Whether the thread is inside a function that runs none of the program's own code.
    pub fn in_leaf(&self) -> bool {
        self.leaves > 0
    }

    /// How many functions are open.
    pub fn height(&self) -> usize {
        self.open.len()
    }

    /// Whether this function is open.
    pub fn is_in(&self, function: SyncFunction) -> bool {
        self.open.iter().any(|o| o.function == function)
    }

    /// Forgets everything: the program was replaced by another.
    pub fn clear(&mut self) {
        self.open.clear();
        self.leaves = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SyncFunction::*;

    #[test]
    fn a_call_from_inside_a_leaf_does_not_count() {
        let mut stack = SyncStack::default();
        assert!(stack.enter(ThreadBody, 1, 0).counts);
        assert!(stack.enter(CriticalEnter, 2, 0).counts);
        assert!(!stack.enter(MutexLock, 3, 0).counts);
        assert!(!stack.leave(MutexLock).unwrap().counts);
        assert!(stack.in_leaf());
        assert!(stack.leave(CriticalEnter).unwrap().counts);
        assert!(!stack.in_leaf());
    }

    #[test]
    fn a_task_counts_in_whatever_function_it_is_run() {
        let mut stack = SyncStack::default();
        stack.enter(TeamBarrier, 0, 0);
        assert!(stack.enter(TaskBody, 1, 0).counts && !stack.in_leaf());
        assert!(stack.enter(TaskCreate, 2, 0).counts && stack.in_leaf());
        assert!(!stack.enter(MutexLock, 3, 0).counts);
        assert!(stack.leave(TaskBody).unwrap().counts && stack.in_leaf());
        stack.leave(TeamBarrier);
        assert!(!stack.in_leaf());
    }

    #[test]
    fn leaving_an_outer_function_leaves_the_inner_ones() {
        let mut stack = SyncStack::default();
        stack.enter(ThreadBody, 1, 0);
        stack.enter(MutexLock, 2, 0);
        assert_eq!(stack.leave(ThreadBody).unwrap().object, 1);
        assert_eq!((stack.height(), stack.in_leaf()), (0, false));
    }

    #[test]
    fn leaving_what_was_never_entered_changes_nothing() {
        let mut stack = SyncStack::default();
        stack.enter(MutexLock, 2, 0);
        assert_eq!(stack.leave(BarrierWait), None);
        assert_eq!((stack.height(), stack.in_leaf()), (1, true));
    }
}
