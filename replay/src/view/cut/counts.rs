//! What becomes of a thread's instructions where it is cut into lanes.

/// Instructions and times, by what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub kept: u64,
    pub outside: u64,
    /// Calls of mathematical functions in lanes, and outside.
    pub mathematics: [u64; 2],
    /// Of the last turns of loops that end with the test at the beginning.
    pub last_tests: u64,
    /// Times that a thread reached a loop.
    pub entries: u64,
    /// Times that a lane reached a barrier, which is left out.
    pub barriers: u64,
    /// Whether threads reached a loop several times in one launch.
    pub dealt: bool,
    /// By loop.
    pub told: Vec<Told>,
    /// Iterations that threads were given and never reached.
    pub missed: u64,
    /// Turns that started threads, which ran parts of them.
    pub split: u64,
}

/// Chunks of a loop of which the trace says how many iterations they have, beside the lanes that they became.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub iterations: u64,
    pub lanes: u64,
    /// Chunks that became more or fewer lanes than they have iterations.
    pub unlike: u64,
    /// Lanes of other chunks.
    pub untold: u64,
    /// Chunks that the thread is taken to have gone on to by itself.
    pub assumed: u64,
    /// Whether each of several lanes began more than one number behind the one before.
    pub are_apart: bool,
    /// Whether there was only one.
    pub is_alone: bool,
}

impl Told {
    pub fn chunk(&mut self, iterations: u64, lanes: u64) {
        self.iterations += iterations;
        self.lanes += lanes;
        self.unlike += u64::from(iterations != lanes);
    }

    fn add(&mut self, other: &Told) {
        self.iterations += other.iterations;
        self.lanes += other.lanes;
        self.unlike += other.unlike;
        self.untold += other.untold;
        self.assumed += other.assumed;
        self.are_apart |= other.are_apart;
        self.is_alone |= other.is_alone;
    }

    /// Whether each lane is one of the iterations that the runtime gave out, and each of those is a lane.
    pub fn are_all(&self) -> bool {
        self.lanes > 0 && self.unlike == 0 && self.untold == 0
    }
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.kept += other.kept;
        self.outside += other.outside;
        self.mathematics = [0, 1].map(|index| self.mathematics[index] + other.mathematics[index]);
        self.last_tests += other.last_tests;
        self.entries += other.entries;
        self.barriers += other.barriers;
        self.dealt |= other.dealt;
        self.told.resize(self.told.len().max(other.told.len()), Told::default());
        self.told.iter_mut().zip(&other.told).for_each(|(own, other)| own.add(other));
        self.missed += other.missed;
        self.split += other.split;
    }
}
