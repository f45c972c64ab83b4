//! Whether a thread is in OpenMP's runtime or a sanitizer's, or in what that calls for itself: a small machine beside
//! the frames.
//!
//! OpenMP's runtime allocates memory the first time that a thread comes to some construct, or clears some; a
//! sanitizer's fills the shadow of memory. That is done in the C library, whose code counts when the program calls it.
//! Here it is no lane's. What a runtime calls of the program (bodies, tasks, reductions) is the program's.

/// On whose side code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Side {
    /// OpenMP's runtime.
    OpenMp,
    /// A sanitizer's runtime, except for what stands in front of a helper.
    Checks,
    /// A library that every program has, or an allocator: who calls it decides.
    Helper,
    /// The program, certainly.
    Program,
    /// Else: of a helper, if one called it.
    Unknown,
}

/// Where a thread stands in one.
#[derive(Debug, Default)]
pub(super) struct Runtimes {
    /// The highest stack pointer with which the thread ran code of the runtime that has not returned.
    runtime: Option<u64>,
    /// Whether that is a sanitizer's.
    checks: bool,
    /// The stack pointer with which the runtime called a helper that has not returned.
    helper: Option<u64>,
}

impl Runtimes {
    /// Code runs on this side, with this stack pointer.
    pub fn run(&mut self, side: Side, sp: u64) {
        let Some(runtime) = self.runtime else {
            self.begin(side, sp);
            return;
        };
        self.helper = self.helper.filter(|helper| sp <= *helper);
        match side {
            Side::OpenMp if self.checks => self.begin(side, sp),
            // What an allocator runs that OpenMP's runtime calls.
            Side::Checks if !self.checks && sp <= runtime => {
                self.helper.get_or_insert(sp);
            }
            Side::Checks if !self.checks => self.begin(side, sp),
            Side::OpenMp | Side::Checks => (self.runtime, self.helper) = (Some(runtime.max(sp)), None),
            Side::Helper if sp <= runtime => {
                self.helper.get_or_insert(sp);
            }
            Side::Unknown if self.helper.is_some() => {}
            Side::Helper | Side::Unknown | Side::Program => *self = Runtimes::default(),
        }
    }

    fn begin(&mut self, side: Side, sp: u64) {
        let is_runtime = matches!(side, Side::OpenMp | Side::Checks);
        *self = Runtimes { runtime: is_runtime.then_some(sp), checks: side == Side::Checks, helper: None };
    }

    /// Whether the thread is in a runtime, or in what that calls for itself.
    #[inline]
    pub fn is_in(&self) -> bool {
        self.runtime.is_some()
    }

    /// Whether that runtime is OpenMP's.
    pub fn is_in_openmp(&self) -> bool {
        self.is_in() && !self.checks
    }

    /// Whether a function returns into OpenMP's runtime, with this stack pointer.
    pub fn is_below_openmp(&self, sp: u64) -> bool {
        !self.checks && self.runtime.is_some_and(|runtime| sp <= runtime)
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
        let mut state = Runtimes::default();
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

    #[test]
    fn what_a_sanitizer_calls_for_itself_is_not_what_its_interceptor_calls() {
        let mut state = Runtimes::default();
        let mut run = |side, sp| {
            state.run(side, sp);
            (state.is_in(), state.is_helped())
        };
        assert_eq!(run(Side::Program, 100), (false, false));
        assert_eq!(run(Side::Helper, 92), (false, false), "an interceptor");
        assert_eq!(run(Side::Helper, 84), (false, false), "the function behind it");
        assert_eq!(run(Side::Checks, 84), (true, false), "what the interceptor does for the sanitizer");
        assert_eq!(run(Side::Helper, 76), (true, true));
        assert_eq!(run(Side::Helper, 92), (false, false), "the interceptor again");
        assert_eq!(run(Side::Program, 100), (false, false));
        assert_eq!(run(Side::Checks, 92), (true, false));
        assert_eq!(run(Side::Helper, 92), (true, true), "a jump in place of a last call");
        assert_eq!(run(Side::Program, 100), (false, false));
    }

    #[test]
    fn a_sanitizer_below_openmp_is_a_helper() {
        let mut state = Runtimes::default();
        for (side, sp) in [(Side::OpenMp, 92), (Side::Helper, 84), (Side::Checks, 76), (Side::Helper, 68)] {
            state.run(side, sp);
            assert!(state.is_in_openmp(), "{side:?}");
        }
        assert!(state.is_helped());
        state.run(Side::OpenMp, 92);
        assert!(state.is_in_openmp() && !state.is_helped() && state.is_below_openmp(92));
        state.run(Side::Program, 84);
        state.run(Side::Checks, 76);
        assert!(state.is_in() && !state.is_in_openmp() && !state.is_below_openmp(70), "a body's");
        state.run(Side::OpenMp, 92);
        assert!(state.is_in_openmp());
    }
}
