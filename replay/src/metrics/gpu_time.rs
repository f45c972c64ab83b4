//! How long a GPU would take for the lanes, and what it would wait for.
//!
//! Formula. A warp runs its instructions one behind the other:
//!
//! t(warp) = I x instructions + H x hits + M x misses
//!
//! *Hits* and *misses* are its loads, stores and atomic instructions of global memory ([`super::GpuMemory`]), and its
//! accesses to arrays of a lane's own. A miss goes to a sector that the warp had not touched before, or is atomic. Of a
//! launch, blocks of 256 threads go to the multiprocessors in turn, and the slowest multiprocessor tells the time:
//! L + the largest of
//!
//! - *latency*: the longest warp; or all of its warps, as many at a time as it holds;
//! - *issue*: its instructions, so many in a nanosecond;
//! - *cache*: the lines of 128 bytes of its loads, one a clock, so many in a nanosecond: a load whose lanes go to 32
//!   lines takes as long as 32 whose lanes lie side by side;
//! - *stores*: those of its stores, which go through that cache, so many in a nanosecond;
//! - *memory*: the sectors of its misses, so many in a nanosecond.
//!
//! Launches follow each other. *Filled* is the time that one copy of the lanes takes where so many copies run at once
//! that all multiprocessors are full: the largest of the sums over all warps, a multiprocessor's part of each. Gains of
//! changes are said by it, since a program that is worth a GPU fills it.
//!
//! What predictions add to what is issued ([`Outcome::waits`]) is shared out over the warps by their instructions.
//!
//! I, H, M and L are fitted to the times of the 22 programs of workloads/twins on an NVIDIA H200. The rate of stores is
//! where that GPU stopped, in three kernels of workloads/melding that store most: at 1.02, 1.02 and 1.03 sectors in a
//! nanosecond, whatever else they did. Where the lanes of a store lie in two lines, it stopped at 0.75, which is not in
//! the formula. Schedulers, lanes held, 128 bytes a clock of the cache and the memory's rate are from NVIDIA's data
//! sheet, the clock is a round number near what times show. How near it comes: docs/fidelity.md. Instructions by which
//! lanes wait for each other, and the copies of data to the GPU and back, are not in it.
//!
//! Worked number: one warp of an H200 issues 1,000 instructions, and loads from 10 new sectors and 20 that it had: 3 x
//! 1,000 + 268 x 10 + 14 x 20 = 5,960 ns, and 2,100 for the launch: 8.06 us, bound by latency. A multiprocessor that
//! is full of such warps holds 64: 5,960 / 64 = 93 ns a warp by latency, 1,000 / 6 = 167 by issue, 30 / 1.5 = 20 by
//! the cache, 10 / 1.14 = 9 by memory. On 132 of them that is 1.3 ns, bound by issue.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Outcome, Unit};

use super::GpuMemory;

/// What a warp did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Its number, in the order of lanes.
    pub number: usize,
    /// The launch that it is of.
    pub launch: u32,
    /// Its lanes.
    pub lanes: usize,
    /// Instructions issued, in tenths.
    pub tenths: u64,
    /// Accesses that the first-level cache answers.
    pub hits: u64,
    /// Those that it doesn't.
    pub misses: u64,
    /// The sectors of 32 bytes of all, each time that one is accessed.
    pub sectors: u64,
    /// Those of stores.
    pub stored_sectors: u64,
    /// The lines of 128 bytes of loads, each time that one is accessed.
    pub loaded_lines: u64,
    /// Those of misses.
    pub missed_sectors: u64,
}

/// What a GPU's time is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// How long a warp takes alone.
    Latency,
    /// How many instructions can be issued.
    Issue,
    /// How much the first-level cache can read.
    Cache,
    /// How much can be stored through it.
    Stores,
    /// How much memory can be read and written.
    Memory,
}

impl Bound {
    /// Whether it is memory, or the caches before it: fewer instructions gain no time then.
    #[must_use]
    pub fn is_of_memory(self) -> bool {
        matches!(self, Bound::Cache | Bound::Stores | Bound::Memory)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Bound::Latency => "latency",
            Bound::Issue => "issue",
            Bound::Cache => "cache",
            Bound::Stores => "stores",
            Bound::Memory => "memory",
        }
    }
}

/// How long a GPU would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuTime {
    /// Nanoseconds, of all launches one behind the other.
    pub nanoseconds: f64,
    /// What most of that time is bound by.
    pub bound: Bound,
    /// Nanoseconds of one copy where the GPU is full of them.
    pub filled: f64,
    /// What that is bound by.
    pub filled_bound: Bound,
}

/// A GPU, in nanoseconds.
struct Gpu {
    /// From one instruction of a warp to its next.
    instruction: f64,
    /// What an access adds that the first-level cache answers.
    hit: f64,
    /// What another one adds.
    miss: f64,
    /// What a launch takes.
    launch: f64,
    multiprocessors: usize,
    /// Lanes of a block, and those that a multiprocessor holds.
    block: usize,
    held: usize,
    /// Instructions that a multiprocessor issues in a nanosecond.
    issued: f64,
    /// Lines of 128 bytes that its first-level cache reads in a nanosecond, and sectors that go through it.
    loaded_lines: f64,
    stored_sectors: f64,
    /// Sectors that it gets from memory in a nanosecond.
    missed_sectors: f64,
}

/// An NVIDIA H200: 132 multiprocessors of four schedulers, taken to run at 1.5 GHz, and 4.8 TB/s for all.
const H200: Gpu = Gpu {
    instruction: 3.0,
    hit: 14.0,
    miss: 268.0,
    launch: 2100.0,
    multiprocessors: 132,
    block: 256,
    held: 2048,
    issued: 6.0,
    loaded_lines: 1.5,
    stored_sectors: 1.0,
    missed_sectors: 1.14,
};

/// Lanes of a warp of NVIDIA's.
const WARP: usize = 32;

/// What warps do on a multiprocessor.
#[derive(Clone, Copy, Default)]
struct Busy {
    /// The time of the longest.
    longest: f64,
    /// The time of all, each by the room that it takes: 1 for all lanes that a multiprocessor holds.
    rooms: f64,
    instructions: f64,
    loaded_lines: f64,
    stored_sectors: f64,
    missed_sectors: f64,
}

impl Busy {
    fn add(&mut self, work: &Work, gpu: &Gpu) {
        let instructions = work.tenths as f64 / 10.0;
        let time = gpu.instruction * instructions + gpu.hit * work.hits as f64 + gpu.miss * work.misses as f64;
        self.longest = self.longest.max(time);
        self.rooms += time * work.lanes as f64 / gpu.held as f64;
        self.instructions += instructions;
        self.loaded_lines += work.loaded_lines as f64;
        self.stored_sectors += work.stored_sectors as f64;
        self.missed_sectors += work.missed_sectors as f64;
    }

    /// The time that it takes where no warp is longer than what there is for it to do, and what tells that.
    fn filled(&self, gpu: &Gpu) -> (f64, Bound) {
        let bounds = [
            (self.rooms, Bound::Latency),
            (self.instructions / gpu.issued, Bound::Issue),
            (self.loaded_lines / gpu.loaded_lines, Bound::Cache),
            (self.stored_sectors / gpu.stored_sectors, Bound::Stores),
            (self.missed_sectors / gpu.missed_sectors, Bound::Memory),
        ];
        bounds.into_iter().fold((0.0, Bound::Latency), longer)
    }
}

fn longer(one: (f64, Bound), other: (f64, Bound)) -> (f64, Bound) {
    if other.0 > one.0 { other } else { one }
}

impl Gpu {
    /// The time of these warps of one launch, without what the launch takes.
    fn of_launch(&self, warps: &[&Work]) -> (f64, Bound) {
        let mut busy = vec![Busy::default(); self.multiprocessors];
        let mut lanes = 0;
        for work in warps {
            busy[lanes / self.block % self.multiprocessors].add(work, self);
            lanes += work.lanes;
        }
        let of_one = |busy: &Busy| longer((busy.longest, Bound::Latency), busy.filled(self));
        busy.iter().map(of_one).fold((0.0, Bound::Latency), longer)
    }

    fn time(&self, work: &[Work]) -> Option<GpuTime> {
        let mut launches: BTreeMap<u32, Vec<&Work>> = BTreeMap::new();
        work.iter().for_each(|work| launches.entry(work.launch).or_default().push(work));
        let mut nanoseconds = 0.0;
        let mut by_bound: Vec<(Bound, f64)> = Vec::new();
        for warps in launches.values_mut() {
            warps.sort_by_key(|work| work.number);
            let (time, bound) = self.of_launch(warps);
            nanoseconds += self.launch + time;
            match by_bound.iter_mut().find(|(known, _)| *known == bound) {
                Some((_, sum)) => *sum += time,
                None => by_bound.push((bound, time)),
            }
        }
        let (bound, _) = by_bound.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut all = Busy::default();
        work.iter().for_each(|work| all.add(work, self));
        let (filled, filled_bound) = all.filled(self);
        Some(GpuTime { nanoseconds, bound, filled: filled / self.multiprocessors as f64, filled_bound })
    }
}

impl GpuTime {
    /// The time on an NVIDIA H200. None where memory was not measured, after a deadlock, or where warps are not those
    /// of that GPU: other than 32 lanes in a launch of more, or several warps that share fetches.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Option<GpuTime> {
        let work = &outcome.found::<GpuMemory>()?.work;
        let launches: BTreeSet<u32> = work.iter().map(|work| work.launch).collect();
        let is_whole = outcome.warp_size == WARP || outcome.warp_size < WARP && launches.len() == work.len();
        let fetched = outcome.fetched(Unit::Gpu).max(1) as f64;
        let more = outcome.issued(Unit::Gpu) as f64 / fetched;
        let predicted = |of: &Work| Work { tenths: (of.tenths as f64 * more) as u64, ..*of };
        let work: Vec<Work> = work.iter().map(predicted).collect();
        (is_whole && outcome.warps_per_block == 1).then(|| H200.time(&work)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARP: Work = Work {
        number: 0,
        launch: 0,
        lanes: 32,
        tenths: 10_000,
        hits: 20,
        misses: 10,
        sectors: 30,
        stored_sectors: 0,
        loaded_lines: 30,
        missed_sectors: 10,
    };

    fn time(work: &[Work]) -> GpuTime {
        H200.time(work).unwrap()
    }

    #[test]
    fn a_warp_alone_waits_for_itself() {
        let alone = time(&[WARP]);
        assert!((alone.nanoseconds - 8060.0).abs() < 1e-6, "{alone:?}");
        assert_eq!(alone.bound, Bound::Latency);
        assert!((alone.filled - 1000.0 / 6.0 / 132.0).abs() < 1e-6, "{alone:?}");
        assert_eq!(alone.filled_bound, Bound::Issue);
        // A multiprocessor of its own for each block of 256: no longer.
        let blocks: Vec<Work> = (0..8 * 132).map(|number| Work { number, ..WARP }).collect();
        assert!((time(&blocks).nanoseconds - alone.nanoseconds).abs() < 1e-6);
    }

    #[test]
    fn launches_follow_each_other() {
        let two = time(&[WARP, Work { launch: 1, number: 1, ..WARP }]);
        assert!((two.nanoseconds - 2.0 * time(&[WARP]).nanoseconds).abs() < 1e-6);
    }

    #[test]
    fn a_full_gpu_is_bound_by_what_it_has_least_of() {
        let none = Work { tenths: 10, hits: 0, misses: 0, sectors: 0, loaded_lines: 0, missed_sectors: 0, ..WARP };
        for (work, bound, nanoseconds) in [
            (Work { tenths: 10_000, ..none }, Bound::Issue, 1000.0 / 6.0),
            (Work { hits: 10, sectors: 960, loaded_lines: 240, ..none }, Bound::Cache, 160.0),
            (Work { hits: 10, stored_sectors: 320, loaded_lines: 240, ..none }, Bound::Stores, 320.0),
            (Work { misses: 1, sectors: 32, missed_sectors: 32, ..none }, Bound::Memory, 32.0 / 1.14),
            (Work { misses: 10, sectors: 10, missed_sectors: 10, ..none }, Bound::Latency, 2683.0 / 64.0),
        ] {
            let many: Vec<Work> = (0..64 * 132 * 20).map(|number| Work { number, ..work }).collect();
            let (all, one) = (time(&many), time(&[work]));
            assert_eq!((all.bound, one.filled_bound), (bound, bound));
            assert!((one.filled * 132.0 - nanoseconds).abs() < 1e-6, "{one:?}");
            let expected = 2100.0 + 64.0 * 20.0 * nanoseconds;
            assert!((all.nanoseconds / expected - 1.0).abs() < 1e-6, "{all:?} {expected}");
        }
    }
}
