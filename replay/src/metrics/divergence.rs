//! Divergence: how long lanes stay apart, how far the warp is scattered meanwhile, and how unevenly its parts work.
//!
//! Lanes that share a fetch, but do not all share the next fetch that any of them runs, have *diverged*. Their
//! divergence ends with the next fetch that all of them share that are still live; its *length* is the number of the
//! warp's fetches between those two. Divergences nest: lanes that part once more begin another. A divergence is *never
//! joined*, and has no length, if fewer than two of its lanes are left before it ends, or if it lasts to the end of the
//! replay.
//!
//! - *depth*: distinct pcs at which live lanes stand before a fetch (a waiting lane stands where it will go on),
//!   averaged over fetches;
//! - *imbalance* of the divergences that were joined: k lanes run n_i instructions each meanwhile; the sum of k x max
//!   n_i / the sum of all n_i: 1 where all lanes run equally many;
//! - *lone fetches*: fetches of one lane while others are live.
//!
//! Worked number: four lanes run a branch; lanes 0 and 1 take an arm of 3 instructions, lanes 2 and 3 one of 1, and all
//! run 1 more. There is one divergence, of length 4; two pcs in the 4 fetches of the arms and one in the other 2 make a
//! depth of 10 / 6; the imbalance is 4 x 3 / (2 x 3 + 2 x 1) = 1.5.
//!
//! The simulator of Milanez et al. does not compute such figures correctly, so there is nothing to compare with: its
//! depth is always 1, its lengths are one too short and leave out those of 1, and its last cycle is lost.

use heuristics::{LaneSet, MAX_LANES};
use trace_format::Pc;

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::{Cell, Entry, Switch, Table, of};
use crate::{Column, Kind, Result, Value};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "divergence",
    file: "replay/src/metrics/divergence.rs",
    switch: Some(&Switch {
        name: "divergence",
        help: "Measure divergence: how long lanes stay apart, at how many pcs they stand, and how uneven their work \
             is",
        number: None,
    }),
    needs_addresses: false,
    measure: Some(|_| Divergence::measure()),
    columns: &[
        Column::counted(
            "divergences",
            "With --divergence: how often lanes that ran together ran apart, and together again later.",
            |o| of(o, |d: &Divergence| d.joined),
        ),
        Column::counted("divergences_never_joined", "How often such lanes never ran together again.", |o| {
            of(o, |d: &Divergence| d.never_joined)
        }),
        Column::counted(
            "divergence_mean_length",
            "The mean number of warp instructions between the last fetch that such lanes shared and the next.",
            |o| of(o, |d: &Divergence| d.mean_length()),
        )
        .of(Kind::Quotient),
        Column::counted("divergence_max_length", "The greatest such number.", |o| of(o, |d: &Divergence| d.longest)),
        Column::counted("divergence_lengths", "Divergences of length 1, 2 to 3, 4 to 7 … by powers of two.", |o| {
            of(o, |d: &Divergence| Value::from(&d.by_length[..]))
        })
        .of(Kind::Counts),
        Column::counted("divergence_depth", "Distinct pcs of live lanes, averaged over warp instructions.", |o| {
            of(o, |d: &Divergence| d.depth())
        })
        .of(Kind::Quotient),
        Column::counted("divergence_max_depth", "The most distinct pcs of live lanes.", |o| {
            of(o, |d: &Divergence| d.most_pcs)
        }),
        Column::counted(
            "divergence_imbalance",
            "Summed over divergences: number of lanes x the most instructions that one of them ran meanwhile. \
             Divided by the instructions that all of them ran; 1 means balanced.",
            |o| of(o, |d: &Divergence| d.imbalance()),
        )
        .of(Kind::Quotient),
        Column::counted("lone_fetches", "Warp instructions issued for one lane while others were live.", |o| {
            of(o, |d: &Divergence| d.lone_fetches)
        }),
    ],
    table: Some(&Table {
        header: &["divergences", "mean length", "longest", "never joined", "depth", "imbalance", "lone lanes"],
        row: |outcome| {
            let d: &Divergence = outcome.found()?;
            Some(vec![
                Cell::Count(d.joined),
                Cell::number(d.mean_length()),
                Cell::Count(d.longest),
                Cell::Count(d.never_joined),
                Cell::number(d.depth()),
                Cell::number(d.imbalance()),
                Cell::Share(d.lone_fetches as f64 / d.fetches.max(1) as f64),
            ])
        },
        legend: |_| {
            "length: fetches between two that lanes shared; depth: distinct pcs of live lanes; imbalance: 1 where diverged lanes run equally many instructions; \
             lone lanes: share of fetches for one lane of several"
                .to_owned()
        },
    }),
};

/// Divergences that are open at once, at most; the oldest is then taken for never joined.
const MOST_OPEN: usize = 4096;

/// The divergence of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Divergence {
    /// Divergences that were joined.
    pub joined: u64,
    /// Those that never were.
    pub never_joined: u64,
    /// The lengths of those that were joined, in fetches, summed.
    pub length: u64,
    /// The greatest length.
    pub longest: u64,
    /// Divergences that were joined, by length: 1, 2 to 3, 4 to 7, and so on by powers of two.
    pub by_length: Vec<u64>,
    /// Fetches.
    pub fetches: u64,
    /// Distinct pcs of live lanes, summed over fetches.
    pub pcs: u64,
    /// The most distinct pcs.
    pub most_pcs: u64,
    /// Of the divergences joined: lanes x the most instructions that one of them ran, summed.
    pub slots: u64,
    /// Of the same: the instructions that their lanes ran, summed.
    pub instructions: u64,
    /// Fetches of one lane while others were live.
    pub lone_fetches: u64,
}

impl Divergence {
    /// Asks for it.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |_| Some(Box::new(DivergenceMeter::default())))
    }

    /// Mean length of the divergences joined, in fetches.
    #[must_use]
    pub fn mean_length(&self) -> Option<f64> {
        (self.joined > 0).then(|| self.length as f64 / self.joined as f64)
    }

    /// Mean depth.
    #[must_use]
    pub fn depth(&self) -> Option<f64> {
        (self.fetches > 0).then(|| self.pcs as f64 / self.fetches as f64)
    }

    /// Imbalance: 1 or more.
    #[must_use]
    pub fn imbalance(&self) -> Option<f64> {
        (self.instructions > 0).then(|| self.slots as f64 / self.instructions as f64)
    }

    fn join(&mut self, length: u64, ran: impl ExactSizeIterator<Item = u64> + Clone) {
        self.joined += 1;
        self.length += length;
        self.longest = self.longest.max(length);
        let bucket = length.max(1).ilog2() as usize;
        if self.by_length.len() <= bucket {
            self.by_length.resize(bucket + 1, 0);
        }
        self.by_length[bucket] += 1;
        self.slots += ran.len() as u64 * ran.clone().max().unwrap_or(0);
        self.instructions += ran.sum::<u64>();
    }
}

impl Measured for Divergence {
    fn merge(&mut self, other: &Divergence) {
        self.joined += other.joined;
        self.never_joined += other.never_joined;
        self.length += other.length;
        self.longest = self.longest.max(other.longest);
        if self.by_length.len() < other.by_length.len() {
            self.by_length.resize(other.by_length.len(), 0);
        }
        self.by_length.iter_mut().zip(&other.by_length).for_each(|(sum, more)| *sum += more);
        self.fetches += other.fetches;
        self.pcs += other.pcs;
        self.most_pcs = self.most_pcs.max(other.most_pcs);
        self.slots += other.slots;
        self.instructions += other.instructions;
        self.lone_fetches += other.lone_fetches;
    }
}

/// The lanes with which a lane ran last.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Formation {
    lanes: LaneSet,
    /// Different for each time that the formation came together.
    id: u64,
    /// How many lanes had finished when the formation ran last.
    ends: u64,
}

/// A divergence that is not over.
struct Open {
    id: u64,
    lanes: LaneSet,
    /// The fetches before it.
    since: u64,
    /// By lane: the instructions that it had run before.
    before: Vec<u64>,
}

/// Measures the divergence of one warp's replay.
pub struct DivergenceMeter {
    found: Divergence,
    formation: Vec<Option<Formation>>,
    /// By lane: the fetches up to its last one.
    left: Vec<u64>,
    /// By lane: the instructions that it has run.
    ran: Vec<u64>,
    open: Vec<Open>,
    live: LaneSet,
    /// How often the live lanes have changed.
    ends: u64,
    formations: u64,
    pcs: Vec<Pc>,
}

impl Default for DivergenceMeter {
    fn default() -> DivergenceMeter {
        DivergenceMeter {
            found: Divergence::default(),
            formation: vec![None; MAX_LANES],
            left: vec![0; MAX_LANES],
            ran: vec![0; MAX_LANES],
            open: Vec::new(),
            live: LaneSet::EMPTY,
            ends: 0,
            formations: 0,
            pcs: Vec::new(),
        }
    }
}

impl DivergenceMeter {
    /// Ends the divergences whose live lanes all run now, and gives up those with fewer than two left.
    fn close(&mut self, lanes: LaneSet) {
        let DivergenceMeter { found, open, live, ran, .. } = self;
        open.retain(|divergence| {
            let left = divergence.lanes & *live;
            if left.len() < 2 {
                found.never_joined += 1;
                return false;
            }
            if !left.is_subset(&lanes) {
                return true;
            }
            let ran: Vec<u64> = left.iter().map(|l| ran[l.index()] - divergence.before[l.index()]).collect();
            found.join(found.fetches - divergence.since, ran.iter().copied());
            false
        });
    }

    /// Begins the divergences of formations some of whose lanes run now without the others.
    fn part(&mut self, lanes: LaneSet) {
        for lane in lanes {
            let Some(formation) = self.formation[lane.index()] else { continue };
            let left = formation.lanes & self.live;
            if left.is_subset(&lanes) || self.open.iter().any(|o| o.id == formation.id) {
                continue;
            }
            if self.open.len() == MOST_OPEN {
                self.open.remove(0);
                self.found.never_joined += 1;
            }
            // None of its lanes has run since they did together: it would have begun then.
            let since = self.left[lane.index()];
            self.open.push(Open { id: formation.id, lanes: left, since, before: self.ran.clone() });
        }
    }

    /// Counts the pcs at which lanes stand while these run segments that begin there.
    fn count_pcs(&mut self, step: &Step, segments: impl Iterator<Item = (Pc, u64)>) {
        self.pcs.clear();
        self.pcs.extend((step.live - step.lanes).iter().map(|l| step.state(l).pc));
        self.pcs.sort_unstable();
        self.pcs.dedup();
        let bit = |pc: Pc| 1_u64 << (pc.0 % 64);
        let bits = self.pcs.iter().fold(0, |bits, pc| bits | bit(*pc));
        let others = self.pcs.len() as u64;
        for (pc, fetches) in segments {
            // Where others stand at this pc, the active lanes are at one more after their first instruction.
            let others_here = bits & bit(pc) != 0 && self.pcs.binary_search(&pc).is_ok();
            self.found.pcs += fetches * (others + 1) - u64::from(others_here);
            let most = if fetches > 1 || !others_here { others + 1 } else { others };
            self.found.most_pcs = self.found.most_pcs.max(most);
        }
    }

    /// The lanes of the step run so many instructions, with nobody else in between.
    fn fetched(&mut self, step: &Step, fetches: u64) {
        if step.lanes.len() == 1 && step.live.len() > 1 {
            self.found.lone_fetches += fetches;
        }
        if step.live != self.live {
            self.live = step.live;
            self.ends += 1;
        }
        // A formation that stays as it was, while no lane has ended since it ran last, begins and ends nothing.
        // Whether one has is asked of each formation: the first to run after a lane's end need not be the one that the
        // end leaves complete.
        let ends = self.ends;
        let keeps = |formation: &Option<Formation>| formation.is_some_and(|c| c.lanes == step.lanes && c.ends == ends);
        if !step.lanes.iter().all(|l| keeps(&self.formation[l.index()])) {
            self.close(step.lanes);
            self.part(step.lanes);
            self.formations += 1;
            for lane in step.lanes {
                self.formation[lane.index()] = Some(Formation { lanes: step.lanes, id: self.formations, ends });
            }
        }
        self.found.fetches += fetches;
        for lane in step.lanes {
            self.left[lane.index()] = self.found.fetches;
            self.ran[lane.index()] += fetches;
        }
    }
}

impl Metric for DivergenceMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let fetches = step.instructions.len() as u64;
        let lowest = step.lanes.lowest().expect("a step has an active lane");
        self.count_pcs(step, std::iter::once((step.state(lowest).pc, fetches)));
        self.fetched(step, fetches);
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        self.count_pcs(&run.first, run.briefs().map(|(_, brief)| (brief.start, u64::from(brief.instructions))));
        self.fetched(&run.first, run.fetches);
        Ok(())
    }

    fn finish(mut self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        self.found.never_joined += self.open.len() as u64;
        Ok(Finding::new(self.found))
    }
}
