//! Whether a thread is in OpenMP's runtime, or in what the runtime calls for itself: a small machine beside the frames.
//!
//! The runtime allocates memory the first time that a thread comes to some construct, or clears some. That is done in
//! the C library, whose code counts when the program calls it. Here it is no lane's. What the runtime calls of the
//! program (bodies, tasks, reductions) is the program's.

/// On whose side code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Side {
    /// OpenMP's runtime.
    OpenMp,
    /// A library that every program has, or an allocator: who calls it decides.
    Helper,
    /// The program, certainly.
    Program,
    /// Else: of a helper, if one called it.
    Unknown,
}

/// Where a thread stands in it.
#[derive(Debug, Default)]
pub(super) struct OpenMp {
    /// The highest stack pointer with which the thread ran code of the runtime that has not returned.
    runtime: Option<u64>,
    /// The stack pointer with which the runtime called a helper that has not returned.
    helper: Option<u64>,
}

impl OpenMp {
    /// Code runs on this side, with this stack pointer.
    pub fn run(&mut self, side: Side, sp: u64) {
        let Some(runtime) = self.runtime else {
            self.runtime = (side == Side::OpenMp).then_some(sp);
            return;
        };
        self.helper = self.helper.filter(|helper| sp <= *helper);
        match side {
            Side::OpenMp => (self.runtime, self.helper) = (Some(runtime.max(sp)), None),
            Side::Helper if sp <= runtime => {
                self.helper.get_or_insert(sp);
            }
            Side::Unknown if self.helper.is_some() => {}
            Side::Helper | Side::Unknown | Side::Program => *self = OpenMp::default(),
        }
    }

    /// Whether the thread is in the runtime, or in what that calls for itself.
    #[inline]
    pub fn is_in(&self) -> bool {
        self.runtime.is_some()
    }

    /// Whether a function returns into the runtime, with this stack pointer.
    pub fn is_below(&self, sp: u64) -> bool {
        self.runtime.is_some_and(|runtime| sp <= runtime)
    }

    /// Whether what ran last is what the runtime calls for itself.
    #[inline]
    pub fn is_helped(&self) -> bool {
        self.helper.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runtime_calls_for_itself_lasts_until_it_returns() {
        let mut state = OpenMp::default();
        let mut run = |side, sp| {
            state.run(side, sp);
            (state.is_in(), state.is_helped())
        };
        assert_eq!(run(Side::Helper, 92), (false, false), "the program's own call");
        assert_eq!(run(Side::OpenMp, 92), (true, false));
        assert_eq!(run(Side::Helper, 80), (true, true));
        assert_eq!(run(Side::Unknown, 72), (true, true), "what the helper calls");
        assert_eq!(run(Side::Helper, 80), (true, true));
        assert_eq!(run(Side::OpenMp, 88), (true, false), "it has returned");
        assert_eq!(run(Side::Helper, 80), (true, true));
        assert_eq!(run(Side::Program, 64), (false, false), "a body");
        assert_eq!(run(Side::Helper, 56), (false, false), "which calls the same");
        assert_eq!(run(Side::OpenMp, 80), (true, false));
        assert_eq!(run(Side::OpenMp, 92), (true, false), "where it came from");
        assert_eq!(run(Side::Unknown, 100), (false, false));
    }
}
