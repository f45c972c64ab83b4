//! The result of a replay under one heuristic, summed over its warps.

use heuristics::Tally;

use crate::Optimum;
use crate::engine::{Counts, Deadlock, End, gpu_tenths};
use crate::metrics::{Findings, Measured};

/// Whose instructions are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// The traced processor's.
    #[default]
    Processor,
    /// A GPU's: see [`Counts::gpu_fetches`].
    Gpu,
}

impl Unit {
    /// What they are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unit::Processor => "fetches",
            Unit::Gpu => "GPU instructions",
        }
    }
}

/// The result for one heuristic.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The heuristic as it would be typed, every parameter spelt out.
    pub heuristic: String,
    /// How locks counted, where outcomes of several ways stand together; none: as the setting says.
    pub locks: Option<String>,
    /// Lanes replayed.
    pub lanes: usize,
    /// Seats in a warp.
    pub warp_size: usize,
    /// How many warps there were.
    pub warps: usize,
    /// How many of them were replayed together in one block: the most of any block; 1 where each warp was on its own.
    pub warps_per_block: usize,
    /// What was counted; means nothing after a deadlock.
    pub counts: Counts,
    /// What the heuristic counted itself; means nothing after a deadlock.
    pub tally: Tally,
    /// How the replay ended; the first deadlock of any warp or block.
    pub end: End,
    /// Where the model deadlocks with the program as it is written; the numbers are then those of lanes that take turns
    /// at locks. See [`crate::Locks::Serialize`].
    pub deadlock: Option<Deadlock>,
    /// No schedule needs fewer fetches: over each warp's phases (between barriers at which all its lanes meet) and
    /// instructions, the largest number of times that any of its lanes runs it; over blocks, that all lanes of any home
    /// together run it.
    pub lower_bound: u64,
    /// The fetches of the best schedule possible, locks aside.
    pub optimum: Optimum,
    /// No schedule needs more: every lane alone.
    pub upper_bound: u64,
    /// 1 for the fewest fetches among the heuristics of the same replay that finished; equals share a rank. None after
    /// a deadlock.
    pub rank: Option<usize>,
    /// Thread instructions of each lane.
    pub lane_instructions: Vec<u64>,
    /// Fetches of each warp, or of each block of warps, in order.
    pub warp_fetches: Vec<u64>,
    /// What was measured besides that, where it was asked for: see [`Outcome::found`].
    pub findings: Findings,
}

/// Tells each outcome its rank among all.
pub(crate) fn rank(outcomes: &mut [Outcome]) {
    let mut fetches: Vec<u64> = outcomes.iter().filter(|o| o.is_complete()).map(|o| o.counts.fetches()).collect();
    fetches.sort_unstable();
    for outcome in outcomes.iter_mut().filter(|o| o.is_complete()) {
        outcome.rank = Some(1 + fetches.partition_point(|f| *f < outcome.counts.fetches()));
    }
}

/// The most lanes of which a result lists each one's length ([`Outcome::lane_histogram`] is there for more).
pub const MOST_LANES_LISTED: usize = 4096;

impl Outcome {
    /// Lanes by length: with 0 thread instructions, with 1, with 2 or 3, with 4 to 7 and so on, each as wide as all
    /// before it together; as far as the longest lane. Lanes of 0, 1, 5 and 6 are 1, 1, 0, 2.
    #[must_use]
    pub fn lane_histogram(&self) -> Vec<u64> {
        let mut lanes = Vec::new();
        for instructions in &self.lane_instructions {
            let at = (u64::BITS - instructions.leading_zeros()) as usize;
            if lanes.len() <= at {
                lanes.resize(at + 1, 0);
            }
            lanes[at] += 1;
        }
        lanes
    }

    /// The model, with a mark where its numbers are not those of the program as it is written (after a deadlock).
    #[must_use]
    pub fn label(&self) -> String {
        if self.deadlock.is_some() { format!("{} *", self.heuristic) } else { self.heuristic.clone() }
    }

    /// Thread instructions / (fetches x warp size): 0 to 1. None when nothing was fetched.
    #[must_use]
    pub fn simt_efficiency(&self) -> Option<f64> {
        let slots = self.counts.fetches() as f64 * self.warp_size as f64;
        (slots > 0.0).then(|| self.counts.thread_instructions() as f64 / slots)
    }

    /// The same with instructions as a GPU has them ([`Counts::gpu_fetches`]), and lanes that are predicated off
    /// counted as active; with what the code of locks adds.
    #[must_use]
    pub fn gpu_efficiency(&self) -> Option<f64> {
        let Counts { gpu_fetches, gpu_instructions, lock_fetches, lock_instructions, .. } = self.counts;
        let (fetches, instructions) = (gpu_tenths(lock_fetches), gpu_tenths(lock_instructions));
        let (sync, lanes) = (gpu_tenths(self.tally.sync_fetches), gpu_tenths(self.tally.sync_instructions));
        let slots = (gpu_fetches + fetches + sync) as f64 * self.warp_size as f64;
        let active = gpu_instructions + instructions + lanes;
        (slots > 0.0).then(|| (active as f64 / slots).min(1.0))
    }

    /// The instructions issued; on a GPU with what the code of locks adds, and those by which lanes wait for each
    /// other. Those that predictions take ([`Outcome::waits`]) are not among them.
    #[must_use]
    pub fn fetched(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Processor => self.counts.fetches(),
            Unit::Gpu => {
                (self.counts.gpu_fetches + gpu_tenths(self.counts.lock_fetches + self.tally.sync_fetches)) / 10
            }
        }
    }

    /// The instructions that predictions take: operations on their barriers, of a GPU the code that has lanes wait.
    /// None where nothing is predicted.
    #[must_use]
    pub fn waits(&self, unit: Unit) -> Option<u64> {
        match unit {
            Unit::Processor => self.tally.barrier_operations,
            Unit::Gpu => self.tally.wait_instructions,
        }
    }

    /// All that is issued: [`Outcome::fetched`] and [`Outcome::waits`].
    #[must_use]
    pub fn issued(&self, unit: Unit) -> u64 {
        self.fetched(unit) + self.waits(unit).unwrap_or_default()
    }

    /// (Thread instructions + those of lanes that were predicated off) / (fetches x warp size): 0 to 1; both with what
    /// the code of locks adds ([`Counts::lock_fetches`]). None for models that predicate nothing.
    #[must_use]
    pub fn active_efficiency(&self) -> Option<f64> {
        let Counts { lock_fetches, lock_instructions, .. } = self.counts;
        let slots = (self.counts.fetches() + lock_fetches) as f64 * self.warp_size as f64;
        let active = self.counts.thread_instructions() + self.tally.predicated_off? + lock_instructions;
        (slots > 0.0).then(|| active as f64 / slots)
    }

    /// The result of a measure, by its type; none where it was not asked for.
    #[must_use]
    pub fn found<T: Measured>(&self) -> Option<&T> {
        self.findings.get()
    }

    /// Lane-slots in which no lane ran an instruction: fetches x warp size - thread instructions.
    #[must_use]
    pub fn lost_slots(&self) -> u64 {
        self.counts.fetches() * self.warp_size as u64 - self.counts.thread_instructions()
    }

    /// Where its fetches lie between nothing shared (0) and the least possible (1): (upper bound - fetches) / (upper
    /// bound - lower bound). None where the bounds are equal.
    #[must_use]
    pub fn place(&self) -> Option<f64> {
        let room = self.upper_bound.checked_sub(self.lower_bound).filter(|r| *r > 0)?;
        Some(self.upper_bound.saturating_sub(self.counts.fetches()) as f64 / room as f64)
    }

    /// Paths that could have been scheduled, per fetch: 1 where there was never a choice. None for models that have one
    /// path at a time.
    #[must_use]
    pub fn path_parallelism(&self) -> Option<f64> {
        let fetches = self.counts.fetches();
        self.tally.paths.filter(|_| fetches > 0).map(|paths| paths as f64 / fetches as f64)
    }

    /// Whether every lane ran to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end == End::Complete
    }

    /// `ok`, or the sentence that says why there are no numbers.
    #[must_use]
    pub fn status(&self) -> String {
        match &self.end {
            End::Complete => "ok".to_owned(),
            End::Deadlock(deadlock) => deadlock.to_string(),
        }
    }

    /// The deadlock of the model with the program as it is written, whether or not there are numbers all the same.
    #[must_use]
    pub fn deadlock(&self) -> Option<&Deadlock> {
        if let End::Deadlock(deadlock) = &self.end { Some(deadlock) } else { self.deadlock.as_ref() }
    }

    /// As [`Outcome::deadlock`], to be told more of.
    pub fn deadlock_mut(&mut self) -> Option<&mut Deadlock> {
        if let End::Deadlock(deadlock) = &mut self.end { Some(deadlock) } else { self.deadlock.as_mut() }
    }
}
