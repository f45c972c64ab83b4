//! Lanes that take turns at locks (`--locks simt`): the loop that a GPU programmer writes around a critical section.
//!
//! ```text
//! for (bool done = false; !done;)
//!     if (try_lock(l)) { critical section; unlock(l); done = true; }
//! ```
//!
//! Lanes that reach a lock together make a *section*. In each of its *turns* those run for whose locks nobody else
//! has: one lane per lock, the lowest first, lanes with different locks side by side, readers of one lock together. A
//! lane is *behind* the section when it has none of the locks left that it took since it came there; it waits until all
//! lanes of the section are, and they go on together. A lock taken inside of a section makes a section of its own,
//! above the other.
//!
//! A turn is an entry of a stack. The section that was made last runs first, under a fresh instance of the model for
//! the turn, which knows only the lanes of the turn. Below, in the model of the warp (or of the turn below), the lanes
//! of a section wait as at a barrier, at the place at which they reached the lock, and are then behind it: as if the
//! whole section were one instruction.
//!
//! If no section can run, since the lanes that hold what it waits for are in a section below, that section runs. If
//! none can run at all, two waits that no lock requires are given up, the innermost first: a turn waits for the end of
//! the one before it, and lanes behind a section wait for each other. What is left then is a cycle of locks that the
//! program itself has, or a barrier inside of a section.

use heuristics::{Heuristic, Lane, LaneSet, LaneState, MAX_LANES, Tally};
use trace_format::Pc;

use crate::LockId;

/// What a lane wants to take.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) lock: LockId,
    /// How many lanes may have it then.
    pub(super) most: u32,
}

/// Lanes that reached a lock together.
pub(super) struct Section {
    /// Sections are numbered as they are made.
    number: u64,
    /// Those that are not behind it for good: they wait for their turn, have it, or wait behind it.
    pub(super) lanes: LaneSet,
    /// Those that wait for their turn.
    pub(super) to_come: LaneSet,
    /// Those that wait behind it.
    behind: LaneSet,
    /// Where each stood when it came, by lane.
    came: Vec<(Lane, LaneState)>,
    /// Its turns so far.
    turns: u64,
    /// The model of this turn, from its first choice on, except while it is asked.
    model: Option<Box<dyn Heuristic>>,
}

/// A turn of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    section: u64,
    number: u64,
}

impl Section {
    /// Those whose turn it is, inside of a section above or not.
    pub(super) fn in_turn(&self) -> LaneSet {
        self.lanes - self.to_come - self.behind
    }
}

/// The sections of a warp, or of a block of warps, in progress.
pub(super) struct Turns {
    /// In the order in which they were made: the last is the innermost of its lanes.
    pub(super) sections: Vec<Section>,
    /// Lanes that have reached a lock, with what they want, and are in no section for it yet.
    arrived: Vec<(Lane, Wanted)>,
    /// By lane: what it wants of the section in which it waits for its turn.
    wanted: Vec<Option<Wanted>>,
    /// By lane: the locks that it has, each with the number of the section for which it took it.
    held: Vec<Vec<(LockId, u64)>>,
    made: u64,
    /// What the models of ended turns have counted.
    pub(super) tally: Tally,
}

/// Something that lets lanes go on.
pub(super) enum Moved {
    /// This lane's turn has come: it has the lock now.
    Takes(Lane, Wanted),
    /// These lanes need not wait any longer.
    Free(LaneSet),
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns {
            sections: Vec::new(),
            arrived: Vec::new(),
            wanted: vec![None; MAX_LANES],
            held: vec![Vec::new(); MAX_LANES],
            made: 0,
            tally: Tally::default(),
        }
    }

    /// The lane reaches a lock that it does not have.
    pub(super) fn arrive(&mut self, lane: Lane, wanted: Wanted) {
        self.arrived.push((lane, wanted));
    }

    /// The lane has given a lock back; whether it has to wait behind its section now.
    pub(super) fn gave(&mut self, lane: Lane, lock: LockId) -> bool {
        self.held[lane.index()].retain(|(held, _)| *held != lock);
        self.comes_behind(lane)
    }

    /// The lane has ended.
    pub(super) fn finished(&mut self, lane: Lane) {
        self.held[lane.index()].clear();
        for section in &mut self.sections {
            section.lanes.remove(lane);
            section.to_come.remove(lane);
            section.behind.remove(lane);
        }
    }

    /// The lane goes on without the lock that it waits for.
    pub(super) fn forced(&mut self, lane: Lane) {
        if let Some(section) = self.sections.iter_mut().rev().find(|s| s.to_come.contains(lane)) {
            section.to_come.remove(lane);
            section.lanes.remove(lane);
        }
    }

    /// Makes sections of the lanes that have reached locks since the last call: one of those that stand at one place,
    /// inside of the same section. The lanes, and what they want.
    pub(super) fn make_sections(&mut self, states: &[LaneState]) -> Vec<(Lane, Wanted)> {
        if self.arrived.is_empty() {
            return Vec::new();
        }
        let mut all = std::mem::take(&mut self.arrived);
        all.sort_by_key(|(lane, _)| *lane);
        let mut arrived = all.clone();
        while let Some((first, _)) = arrived.first().copied() {
            let place = |lane: Lane| -> (Pc, u32, Option<u64>) {
                let state = &states[lane.index()];
                (state.pc, state.level, self.innermost(lane).map(|s| s.number))
            };
            let here = place(first);
            let (together, others): (Vec<_>, Vec<_>) = arrived.into_iter().partition(|(lane, _)| place(*lane) == here);
            arrived = others;
            let lanes: LaneSet = together.iter().map(|(lane, _)| *lane).collect();
            let came = lanes.iter().map(|lane| (lane, states[lane.index()])).collect();
            for (lane, wanted) in together {
                self.wanted[lane.index()] = Some(wanted);
            }
            self.push(lanes, came);
        }
        all
    }

    /// What happens before any lane runs: a turn begins, in which these lanes take their locks, or all lanes of a
    /// section are behind it and go on. None: a lane of these `ready` ones runs. `take` takes a lock, and says whether
    /// that could be done.
    pub(super) fn next(&mut self, ready: LaneSet, mut take: impl FnMut(Lane, Wanted) -> bool) -> Option<Vec<Moved>> {
        for index in (0..self.sections.len()).rev() {
            let section = &self.sections[index];
            if !section.in_turn().is_empty() {
                if self.own(index).is_disjoint(&ready) {
                    continue;
                }
                return None;
            }
            if section.to_come.is_empty() {
                return Some(vec![Moved::Free(self.leave(index))]);
            }
            let taken = self.take_what_is_free(index, &mut take);
            if !taken.is_empty() {
                self.end_turn(index);
                self.sections[index].turns += 1;
                return Some(taken);
            }
        }
        None
    }

    /// No lane can run: gives up what no lock orders, the innermost first. None: there was nothing to give up.
    pub(super) fn give_up(&mut self, mut take: impl FnMut(Lane, Wanted) -> bool) -> Option<Vec<Moved>> {
        for index in (0..self.sections.len()).rev() {
            let taken = self.take_what_is_free(index, &mut take);
            if taken.is_empty() {
                continue;
            }
            // A section of their own: the model of the turn in progress does not know them.
            let lanes = taken.iter().filter_map(|m| if let Moved::Takes(lane, _) = m { Some(*lane) } else { None });
            let lanes: LaneSet = lanes.collect();
            let section = &mut self.sections[index];
            section.lanes = section.lanes - lanes;
            let came = section.came.iter().filter(|(lane, _)| lanes.contains(*lane)).copied().collect();
            self.push(lanes, came);
            self.sections.last_mut().expect("it was just made").to_come = LaneSet::EMPTY;
            for lane in lanes {
                if let Some((_, number)) = self.held[lane.index()].last_mut() {
                    *number = self.made;
                }
            }
            return Some(taken);
        }
        let index = self.sections.iter().rposition(|s| !s.behind.is_empty())?;
        let section = &mut self.sections[index];
        let lanes = std::mem::take(&mut section.behind);
        section.lanes = section.lanes - lanes;
        Some(vec![Moved::Free(self.go_on(lanes))])
    }

    /// The turn that the section is in.
    pub(super) fn turn(&self, index: usize) -> Turn {
        Turn { section: self.sections[index].number, number: self.sections[index].turns }
    }

    /// The section of a turn that goes on; none of one that has ended.
    pub(super) fn section_of(&self, turn: Turn) -> Option<usize> {
        let index = self.sections.iter().position(|s| s.number == turn.section)?;
        (self.turn(index) == turn && !self.sections[index].in_turn().is_empty()).then_some(index)
    }

    /// The model of a turn, taken out to be asked: none where it is to be made.
    pub(super) fn take_model(&mut self, turn: Turn) -> Option<Box<dyn Heuristic>> {
        let index = self.section_of(turn)?;
        self.sections[index].model.take()
    }

    /// Gives the model of a turn back, after the turn has gone on or ended.
    pub(super) fn put_back(&mut self, turn: Turn, model: Box<dyn Heuristic>) {
        match self.section_of(turn) {
            Some(index) => self.sections[index].model = Some(model),
            None => self.tally.add(&model.tally()),
        }
    }

    /// The lanes that are in no section.
    pub(super) fn outside(&self, live: LaneSet) -> LaneSet {
        self.sections.iter().fold(live, |outside, s| outside - s.lanes)
    }

    /// Those whose turn it is and that are in no section above it.
    pub(super) fn own(&self, index: usize) -> LaneSet {
        self.sections[index + 1..].iter().fold(self.sections[index].in_turn(), |own, s| own - s.lanes)
    }

    /// How the lanes stand for the model of a turn, or for that of the warp: those in a section above as they came
    /// there. None where none of `lanes` is in one.
    pub(super) fn seen_from(&self, turn: Option<Turn>, lanes: LaneSet, states: &[LaneState]) -> Option<Vec<LaneState>> {
        let above = &self.sections[turn.and_then(|turn| self.section_of(turn)).map_or(0, |index| index + 1)..];
        if above.iter().all(|s| s.lanes.is_disjoint(&lanes)) {
            return None;
        }
        let mut seen = states.to_vec();
        for section in above.iter().rev() {
            for (lane, state) in section.came.iter().filter(|(lane, _)| section.lanes.contains(*lane)) {
                seen[lane.index()] = *state;
            }
        }
        Some(seen)
    }

    fn push(&mut self, lanes: LaneSet, came: Vec<(Lane, LaneState)>) {
        self.made += 1;
        let (number, behind) = (self.made, LaneSet::EMPTY);
        self.sections.push(Section { number, lanes, to_come: lanes, behind, came, turns: 0, model: None });
    }

    fn innermost(&self, lane: Lane) -> Option<&Section> {
        self.sections.iter().rev().find(|s| s.lanes.contains(lane))
    }

    /// Of the lanes that wait for their turn those that get what they want, in their order.
    fn take_what_is_free(&mut self, index: usize, take: &mut impl FnMut(Lane, Wanted) -> bool) -> Vec<Moved> {
        let number = self.sections[index].number;
        let mut taken = Vec::new();
        for lane in self.sections[index].to_come {
            let Some(wanted) = self.wanted[lane.index()] else { continue };
            if take(lane, wanted) {
                self.sections[index].to_come.remove(lane);
                self.held[lane.index()].push((wanted.lock, number));
                taken.push(Moved::Takes(lane, wanted));
            }
        }
        taken
    }

    /// Whether the lane has nothing left that it took since it reached its innermost section; it is behind it then.
    fn comes_behind(&mut self, lane: Lane) -> bool {
        let held = &self.held[lane.index()];
        let Some(section) = self.sections.iter_mut().rev().find(|s| s.lanes.contains(lane)) else { return false };
        let is_behind = held.iter().all(|(_, number)| *number < section.number);
        if is_behind {
            section.behind.insert(lane);
        }
        is_behind
    }

    /// All lanes of the section are behind it; those that are not behind the one below at once, too.
    fn leave(&mut self, index: usize) -> LaneSet {
        self.end_turn(index);
        let lanes = self.sections.remove(index).lanes;
        self.go_on(lanes)
    }

    /// These lanes have left a section: those that are not behind the one below at once, too.
    fn go_on(&mut self, lanes: LaneSet) -> LaneSet {
        lanes.iter().filter(|lane| !self.comes_behind(*lane)).collect()
    }

    fn end_turn(&mut self, index: usize) {
        if let Some(model) = self.sections[index].model.take() {
            self.tally.add(&model.tally());
        }
    }
}
