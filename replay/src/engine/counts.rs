//! What the engine counts of every replay.

/// Counts of the replay of one warp, or of one block of warps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Fetches by number of active lanes: index 0 is one lane.
    pub active: Vec<u64>,
    /// Fetches with fewer active lanes than live ones; in a block of warps, than there are homes with a live lane.
    pub divergent_fetches: u64,
    /// Thread instructions in those fetches.
    pub divergent_instructions: u64,
    /// The same fetches as instructions of a GPU, in tenths, and those times their active lanes.
    pub gpu_fetches: u64,
    /// See there.
    pub gpu_instructions: u64,
    /// Waits for a lock or barrier that were cut short because no lane could run: the lanes left out of the replay
    /// would have gone first.
    pub forced: u64,
    /// What the code of locks adds to the instructions issued: not among the fetches.
    pub lock_fetches: u64,
    /// What it adds to the thread instructions: not among those counted above.
    pub lock_instructions: u64,
}

impl Counts {
    pub(crate) fn new(lanes: usize) -> Counts {
        Counts { active: vec![0; lanes], ..Counts::default() }
    }

    /// So many instructions were fetched for `active` lanes: all that could be active or, `divergent`, not all.
    #[inline]
    pub(crate) fn fetched(&mut self, active: usize, divergent: bool, (instructions, gpu_tenths): (u64, u64)) {
        self.active[active - 1] += instructions;
        self.gpu_fetches += gpu_tenths;
        self.gpu_instructions += gpu_tenths * active as u64;
        if divergent {
            self.divergent_fetches += instructions;
            self.divergent_instructions += instructions * active as u64;
        }
    }

    /// Instructions issued for the warp.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.active.iter().sum()
    }

    /// Instructions executed by its lanes.
    #[must_use]
    pub fn thread_instructions(&self) -> u64 {
        self.active.iter().zip(1..).map(|(fetches, lanes)| fetches * lanes).sum()
    }

    /// Adds the counts of another warp.
    pub fn add(&mut self, other: &Counts) {
        if self.active.len() < other.active.len() {
            self.active.resize(other.active.len(), 0);
        }
        self.active.iter_mut().zip(&other.active).for_each(|(a, b)| *a += b);
        self.divergent_fetches += other.divergent_fetches;
        self.divergent_instructions += other.divergent_instructions;
        self.gpu_fetches += other.gpu_fetches;
        self.gpu_instructions += other.gpu_instructions;
        self.forced += other.forced;
        self.lock_fetches += other.lock_fetches;
        self.lock_instructions += other.lock_instructions;
    }
}
