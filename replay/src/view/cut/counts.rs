//! What becomes of a thread's instructions where it is cut into lanes.

/// Instructions and times, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub kept: u64,
    pub outside: u64,
    /// Of the last turns of loops that end with the test at the beginning.
    pub last_tests: u64,
    /// Times that a thread reached a loop.
    pub entries: u64,
    /// Times that a lane reached a barrier, which is left out.
    pub barriers: u64,
    /// Whether threads reached a loop several times in one launch.
    pub dealt: bool,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.kept += other.kept;
        self.outside += other.outside;
        self.last_tests += other.last_tests;
        self.entries += other.entries;
        self.barriers += other.barriers;
        self.dealt |= other.dealt;
    }
}
