//! Where lanes parted: for any two lanes the last fetch that they had in common.
//!
//! Lanes that run together again and again are a *formation*. While it holds, only its last place moves on; when some
//! of its lanes run without the others, it dissolves, and what its lanes had in common last is noted for each two of
//! them. So a step that keeps to its formation costs nothing here, and one that makes a new formation as much as the
//! square of its lanes.

use heuristics::{Lane, LaneSet, SegmentId};

use super::Step;

/// An instruction: a segment and the index of the instruction there.
pub(super) type Site = (SegmentId, u32);

/// Why two lanes that ran an instruction in one fetch did not run their next ones in one fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Why {
    /// They went on at different pcs.
    Split,
    /// One of them had to wait for a lock.
    Lock,
    /// One of them had to wait at a barrier.
    Barrier,
    /// They stood at one pc, and the model ran them apart; or they never had a fetch in common.
    Schedule,
}

/// How two lanes parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Parting {
    /// The last instruction that they ran in one fetch; none when they never shared one.
    pub site: Option<Site>,
    pub why: Why,
}

/// What two lanes had in common last, and when (in steps; 0: never).
#[derive(Clone, Copy)]
struct Common {
    time: u64,
    parting: Parting,
}

const NEVER: Common = Common { time: 0, parting: Parting { site: None, why: Why::Schedule } };

/// Lanes that have run together since the formation began.
#[derive(Clone)]
struct Formation {
    lanes: LaneSet,
    last: Option<Site>,
    time: u64,
    /// By lane outside it: how it parted from those inside.
    parted: Vec<Parting>,
}

/// The partings of one warp's lanes.
pub(super) struct Partings {
    /// By lowest lane: formations share no lanes.
    formations: Vec<Option<Formation>>,
    /// By lane: the lowest lane of its formation.
    formation_of: Vec<Option<Lane>>,
    /// By lane and lane, row by row.
    common: Vec<Common>,
    time: u64,
}

impl Partings {
    pub fn new(lanes: usize) -> Partings {
        Partings {
            formations: vec![None; lanes],
            formation_of: vec![None; lanes],
            common: vec![NEVER; lanes * lanes],
            time: 0,
        }
    }

    /// The step's lanes run it. Returns by lane how those that don't run parted from them; the one that counts is the
    /// latest fetch in common with any of them. What is returned for the step's own lanes means nothing.
    pub fn step(&mut self, step: &Step) -> &[Parting] {
        let lowest = step.lanes.lowest().expect("a step has an active lane");
        let keeps = self.formations[lowest.index()].as_ref().is_some_and(|f| f.lanes == step.lanes);
        if !keeps {
            self.begin(step, lowest);
        }
        self.time += 1;
        let (segment, offset) = step.place();
        let formation = self.formations[lowest.index()].as_mut().expect("it holds, or has begun");
        // A stub of the linkage table is a part of the call that led there, which has a line.
        if formation.last.is_none() || !step.is_in_stub() {
            formation.last = Some((segment, offset + step.instructions.len() as u32 - 1));
        }
        formation.time = self.time;
        &formation.parted
    }

    fn begin(&mut self, step: &Step, lowest: Lane) {
        for lane in step.lanes {
            if let Some(old) = self.formation_of[lane.index()] {
                self.dissolve(old, step);
            }
        }
        for lane in step.lanes {
            self.formation_of[lane.index()] = Some(lowest);
        }
        let count = self.formation_of.len();
        let parted = (0..count)
            .map(|outside| {
                let row = &self.common[outside * count..(outside + 1) * count];
                step.lanes.iter().map(|l| row[l.index()]).max_by_key(|c| c.time).unwrap_or(NEVER).parting
            })
            .collect();
        self.formations[lowest.index()] = Some(Formation { lanes: step.lanes, last: None, time: 0, parted });
    }

    /// None of the formation's lanes has run since its last step, so that each stands where it went on to.
    fn dissolve(&mut self, lowest: Lane, step: &Step) {
        let Some(formation) = self.formations[lowest.index()].take() else { return };
        let count = self.formation_of.len();
        for one in formation.lanes {
            self.formation_of[one.index()] = None;
            for other in formation.lanes {
                let why = why(step, one, other);
                let parting = Parting { site: formation.last, why };
                self.common[one.index() * count + other.index()] = Common { time: formation.time, parting };
            }
        }
    }
}

/// A lane that has finished stands nowhere: it parted from the others by going elsewhere.
fn why(step: &Step, one: Lane, other: Lane) -> Why {
    let either = |lanes: LaneSet| lanes.contains(one) || lanes.contains(other);
    let both_live = step.live.contains(one) && step.live.contains(other);
    if !both_live || step.state(one).pc != step.state(other).pc {
        Why::Split
    } else if either(step.at_lock) {
        Why::Lock
    } else if either(step.at_barrier) {
        Why::Barrier
    } else {
        Why::Schedule
    }
}
