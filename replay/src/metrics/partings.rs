//! Where lanes parted: for any two lanes, the last fetch that they shared.
//!
//! Lanes that run together again and again are a *formation*. While it holds, only its last place moves on. When some
//! of its lanes run without the others, it dissolves, and the last fetch that its lanes shared is noted for each pair.
//! So a step that keeps to its formation costs nothing here, and one that makes a new formation costs the square of its
//! lanes.

use heuristics::{Lane, LaneSet, SegmentId};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::{Run, Step};

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

/// A parting of [`Partings::get`], by its number.
pub(super) type PartingId = u32;

/// Lanes that never shared a fetch.
const NEVER: PartingId = 0;

/// All partings, each once.
struct Known {
    by_number: Vec<Parting>,
    numbers: FxHashMap<Parting, PartingId>,
}

impl Known {
    fn number(&mut self, parting: Parting) -> PartingId {
        let next = self.by_number.len() as PartingId;
        *self.numbers.entry(parting).or_insert_with(|| {
            self.by_number.push(parting);
            next
        })
    }
}

/// Lanes that have run together since the formation began.
#[derive(Clone)]
struct Formation {
    /// The time at which it began: no other has it.
    number: u64,
    lanes: LaneSet,
    last: Option<Site>,
    time: u64,
    /// By lane outside it: how it parted from those inside.
    parted: Vec<PartingId>,
}

/// The partings of one warp's lanes.
pub(super) struct Partings {
    /// By lowest lane: formations share no lanes.
    formations: Vec<Option<Formation>>,
    /// By lane: the lowest lane of its formation.
    formation_of: Vec<Option<Lane>>,
    /// When two lanes had a fetch in common last (in steps; 0: never), by lane and lane, row by row.
    times: Vec<u64>,
    /// How they parted then.
    partings: Vec<PartingId>,
    known: Known,
    /// The memory of formations that have dissolved.
    room: Vec<Vec<PartingId>>,
    time: u64,
    /// Room for the times at which a step's lanes had a fetch in common with each lane last.
    latest: Vec<u64>,
    /// Room for lanes of a formation.
    stands: Vec<Stand>,
}

/// Where a lane stands when its formation dissolves.
struct Stand {
    lane: usize,
    /// None: it has finished.
    pc: Option<Pc>,
    at_lock: bool,
    at_barrier: bool,
    /// Whether it is in the step that begins another formation.
    goes_on: bool,
}

impl Partings {
    pub fn new(lanes: usize) -> Partings {
        let mut known = Known { by_number: Vec::new(), numbers: FxHashMap::default() };
        known.number(Parting { site: None, why: Why::Schedule });
        Partings {
            known,
            room: Vec::new(),
            formations: vec![None; lanes],
            formation_of: vec![None; lanes],
            times: vec![0; lanes * lanes],
            partings: vec![NEVER; lanes * lanes],
            time: 0,
            latest: Vec::with_capacity(lanes),
            stands: Vec::with_capacity(lanes),
        }
    }

    /// The step's lanes run it. Returns the number of their formation, and by lane how those that don't run parted from
    /// them, which stays the same while the formation holds; the one that counts is the latest fetch in common with any
    /// of them. What is returned for the step's own lanes means nothing.
    pub fn step(&mut self, step: &Step) -> (u64, &[PartingId]) {
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
        (formation.number, &formation.parted)
    }

    /// The parting of this number.
    pub fn get(&self, number: PartingId) -> Parting {
        self.known.by_number[number as usize]
    }

    /// As [`Partings::step`], for each step of a run.
    pub fn ran(&mut self, run: &Run) -> (u64, &[PartingId]) {
        self.step(&run.first);
        let lowest = run.lanes().lowest().expect("a run has an active lane");
        let formation = self.formations[lowest.index()].as_mut().expect("it holds, or has begun");
        if let Some((segment, brief)) = run.briefs().rfind(|(_, brief)| !brief.in_stub) {
            formation.last = Some((segment, brief.instructions - 1));
        }
        (formation.number, &formation.parted)
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
        let mut parted = self.room.pop().unwrap_or_default();
        parted.clear();
        let row = |lane: Lane| lane.index() * count..(lane.index() + 1) * count;
        // What two lanes had in common last is noted for each of them: its row is read in order.
        parted.extend_from_slice(&self.partings[row(lowest)]);
        let mut others = step.lanes;
        others.remove(lowest);
        if !others.is_empty() {
            self.latest.clear();
            self.latest.extend_from_slice(&self.times[row(lowest)]);
        }
        for lane in others {
            let noted = self.times[row(lane)].iter().zip(&self.partings[row(lane)]);
            for ((latest, parting), (time, noted)) in self.latest.iter_mut().zip(&mut parted).zip(noted) {
                let later = *time >= *latest;
                *parting = if later { *noted } else { *parting };
                *latest = if later { *time } else { *latest };
            }
        }
        self.formations[lowest.index()] =
            Some(Formation { number: self.time, lanes: step.lanes, last: None, time: 0, parted });
    }

    /// None of the formation's lanes has run since its last step, so that each stands where it went on to. Of two that
    /// are in this step nothing is noted: they have it in common, and are asked for only when that has dissolved too.
    fn dissolve(&mut self, lowest: Lane, step: &Step) {
        let Some(formation) = self.formations[lowest.index()].take() else { return };
        let count = self.formation_of.len();
        self.stands.clear();
        if formation.lanes.is_subset(&step.lanes) {
            self.room.push(formation.parted);
            return;
        }
        for lane in formation.lanes {
            self.formation_of[lane.index()] = None;
            self.stands.push(Stand {
                lane: lane.index(),
                pc: step.live.contains(lane).then(|| step.state(lane).pc),
                at_lock: step.at_lock.contains(lane),
                at_barrier: step.at_barrier.contains(lane),
                goes_on: step.lanes.contains(lane),
            });
        }
        let site = formation.last;
        let mut numbers = [None; Why::Schedule as usize + 1];
        for one in &self.stands {
            let row = one.lane * count;
            for other in self.stands.iter().filter(|other| !(one.goes_on && other.goes_on)) {
                let why = why(one, other);
                let number = numbers[why as usize].get_or_insert_with(|| self.known.number(Parting { site, why }));
                self.times[row + other.lane] = formation.time;
                self.partings[row + other.lane] = *number;
            }
        }
        self.room.push(formation.parted);
    }
}

/// A lane that has finished stands nowhere: it parted from the others by going elsewhere.
fn why(one: &Stand, other: &Stand) -> Why {
    if one.pc.is_none() || one.pc != other.pc {
        Why::Split
    } else if one.at_lock || other.at_lock {
        Why::Lock
    } else if one.at_barrier || other.at_barrier {
        Why::Barrier
    } else {
        Why::Schedule
    }
}
