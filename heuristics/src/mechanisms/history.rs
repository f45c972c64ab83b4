//! The memory of the Long family: the last block entries, or instructions, of each lane, and the priority that follows
//! from them.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::warp::mask::Mask;
use crate::{Lane, LaneSet, LaneState, SegmentId, SegmentTable, Together, WarpView};

/// The most block entries that a lane can be told to remember.
pub(crate) const MOST: u32 = 64;

/// What a lane remembers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remembers {
    /// Where it entered blocks.
    Blocks,
    /// Each instruction that it ran.
    Instructions,
}

/// Each lane's last N pcs; zeros at first. Beside them, where the lanes stand, so that a choice looks at those lanes
/// only that others are ahead of.
pub(crate) struct History<M> {
    entries: usize,
    /// By lane, one after another, its last entries, each the number of a pc; the oldest stands where `oldest` says.
    rings: Vec<u32>,
    oldest: Vec<u8>,
    numbers: Numbers,
    /// By number of a pc.
    known: Vec<Known<M>>,
    /// By lane: the number of the pc at which it stands.
    at: Vec<u32>,
    /// The lanes that stand anywhere.
    standing: M,
    /// Those that stand where other lanes have been.
    behind: M,
}

/// What is known of a pc.
#[derive(Clone, Copy)]
struct Known<M> {
    pc: Pc,
    /// The lanes that remember it, finished ones too.
    by: M,
    /// How many they are.
    count: u32,
    /// The lanes that stand there.
    standing: M,
}

impl<M: Mask> Known<M> {
    fn new(pc: Pc) -> Known<M> {
        Known { pc, by: M::EMPTY, count: 0, standing: M::EMPTY }
    }

    #[inline]
    fn set(&mut self, by: M) {
        (self.by, self.count) = (by, by.count() as u32);
    }

    /// Those of the lanes that are behind another if they stand here.
    #[inline]
    fn behind(&self, lanes: M) -> M {
        match self.count {
            0 => M::EMPTY,
            1 => lanes.without(self.by),
            _ => lanes,
        }
    }
}

/// Numbers for pcs, of which the first is 0.
struct Numbers {
    remembers: Remembers,
    by_pc: FxHashMap<Pc, u32>,
    /// By segment, where it has been met: where in `of_instructions` its instructions begin, and 1 more; 0 elsewhere.
    begins: Vec<u32>,
    /// Of blocks the first one only.
    of_instructions: Vec<u32>,
}

impl Numbers {
    /// The number of a pc; a new one is added to those known.
    fn of_pc<M: Mask>(&mut self, pc: Pc, known: &mut Vec<Known<M>>) -> u32 {
        let next = known.len() as u32;
        let number = *self.by_pc.entry(pc).or_insert(next);
        if number == next {
            known.push(Known::new(pc));
        }
        number
    }

    /// The number of an instruction's pc.
    #[inline]
    fn of<M: Mask>(
        &mut self,
        (segment, instruction): (SegmentId, u32),
        segments: &SegmentTable,
        known: &mut Vec<Known<M>>,
    ) -> u32 {
        let begins = match self.begins.get(segment.0 as usize) {
            Some(begins) if *begins > 0 => *begins,
            _ => self.meet(segment, segments, known),
        };
        self.of_instructions[(begins - 1 + instruction) as usize]
    }

    /// The segment has not been met before.
    #[cold]
    fn meet<M: Mask>(&mut self, segment: SegmentId, segments: &SegmentTable, known: &mut Vec<Known<M>>) -> u32 {
        self.begins.resize(segments.len(), 0);
        let begins = self.of_instructions.len() as u32 + 1;
        self.begins[segment.0 as usize] = begins;
        let most = if self.remembers == Remembers::Blocks { 1 } else { usize::MAX };
        for instruction in segments[segment].instructions.iter().take(most) {
            let number = self.of_pc(instruction.pc, known);
            self.of_instructions.push(number);
        }
        begins
    }
}

impl<M: Mask> History<M> {
    pub(crate) fn new(entries: u32, lanes: usize, remembers: Remembers) -> History<M> {
        let entries = entries as usize;
        let mut zero = Known::new(Pc(0));
        zero.set(M::of(LaneSet::first(lanes)));
        let numbers = Numbers {
            remembers,
            by_pc: std::iter::once((Pc(0), 0)).collect(),
            begins: Vec::new(),
            of_instructions: Vec::new(),
        };
        History {
            entries,
            rings: vec![0; entries * lanes],
            oldest: vec![0; lanes],
            numbers,
            known: vec![zero],
            at: vec![0; lanes],
            standing: M::EMPTY,
            behind: M::EMPTY,
        }
    }

    /// The lanes that stand anywhere.
    #[inline]
    pub(crate) fn standing(&self) -> M {
        self.standing
    }

    /// Those that stand where this one does, itself included.
    #[inline]
    pub(crate) fn mates(&self, lane: Lane) -> M {
        self.known[self.at[lane.index()] as usize].standing
    }

    /// No lane stands anywhere.
    pub(crate) fn restart(&mut self) {
        while let Some(lane) = self.standing.lowest() {
            self.leave(self.mates(lane), lane);
        }
    }

    /// The ready lanes of a warp stand as they do; others may have moved them.
    pub(crate) fn look(&mut self, warp: &WarpView) {
        let (ready, segments) = (M::of(warp.ready()), &warp.program().segments);
        for lane in self.standing.without(ready).each() {
            self.leave(M::of(LaneSet::only(lane)), lane);
        }
        for lane in ready.each() {
            let state = warp.lane(lane);
            if self.standing.has(lane) {
                if self.known[self.at[lane.index()] as usize].pc == state.pc {
                    continue;
                }
                self.leave(M::of(LaneSet::only(lane)), lane);
            }
            let instructions = &segments[state.segment].instructions;
            let at = instructions.partition_point(|instruction| instruction.pc < state.pc);
            self.stand(M::of(LaneSet::only(lane)), state, at as u32, segments);
        }
    }

    /// These lanes, which stand nowhere, come to this instruction.
    #[inline]
    pub(crate) fn stand(&mut self, lanes: M, state: &LaneState, instruction: u32, segments: &SegmentTable) {
        let number = self.numbers.of((state.segment, instruction), segments, &mut self.known);
        let known = &mut self.known[number as usize];
        known.standing = known.standing.or(lanes);
        self.standing = self.standing.or(lanes);
        self.behind = self.behind.or(known.behind(lanes));
        lanes.each().for_each(|lane| self.at[lane.index()] = number);
    }

    /// These lanes, mates of this one, go on from where they stand.
    #[inline]
    pub(crate) fn leave(&mut self, lanes: M, mate: Lane) {
        let known = &mut self.known[self.at[mate.index()] as usize];
        known.standing = known.standing.without(lanes);
        self.standing = self.standing.without(lanes);
        self.behind = self.behind.without(lanes);
    }

    /// These lanes, mates of this one, go on from where they stand, and remember it.
    #[inline]
    pub(crate) fn enter(&mut self, lanes: M, mate: Lane) {
        self.leave(lanes, mate);
        self.record(lanes, self.at[mate.index()]);
    }

    /// Where lanes remember blocks: those that go on with this one, which led the last ones that ran; none where it is
    /// not ready inside a block.
    #[inline]
    pub(crate) fn goes_on(&mut self, reference: Option<Lane>, states: &[LaneState]) -> Option<M> {
        let lane = reference.filter(|l| self.standing.has(*l) && !states[l.index()].starts_block)?;
        let lanes = self.mates(lane);
        self.leave(lanes, lane);
        Some(lanes)
    }

    /// The lanes remember a pc.
    fn record(&mut self, lanes: M, number: u32) {
        // Lanes that run together mostly forget the same.
        let (mut forgotten, mut by) = (number, M::EMPTY);
        for lane in lanes.each() {
            let ring = &mut self.rings[lane.index() * self.entries..][..self.entries];
            let at = &mut self.oldest[lane.index()];
            let oldest = std::mem::replace(&mut ring[usize::from(*at)], number);
            *at = if usize::from(*at) + 1 == self.entries { 0 } else { *at + 1 };
            if oldest == number || ring.contains(&oldest) {
                continue;
            }
            if oldest != forgotten {
                if forgotten != number {
                    self.is_remembered(forgotten, |known| known.without(by));
                }
                (forgotten, by) = (oldest, M::EMPTY);
            }
            by = by.or(M::of(LaneSet::only(lane)));
        }
        if forgotten != number {
            self.is_remembered(forgotten, |known| known.without(by));
        }
        self.is_remembered(number, |known| known.or(lanes));
    }

    /// Other lanes remember a pc: so others may be behind of those that stand there.
    #[inline]
    fn is_remembered(&mut self, number: u32, by: impl Fn(M) -> M) {
        let known = &mut self.known[number as usize];
        known.set(by(known.by));
        if !known.standing.is_empty() {
            self.behind = self.behind.without(known.standing).or(known.behind(known.standing));
        }
    }

    /// The lanes ran a run of segments together, led at its beginning by `reference`. Where blocks are remembered, the
    /// first segment counts unless that lane goes on inside a block.
    pub(crate) fn record_run(&mut self, run: &Together, reference: Option<Lane>) {
        let goes_on = reference.is_some_and(|l| run.lanes.contains(l) && !run.first_starts_block.contains(l));
        let mut last: Vec<Pc> = match self.numbers.remembers {
            Remembers::Blocks => run.block_entries_backwards(!goes_on).take(self.entries).collect(),
            Remembers::Instructions => run.pcs_backwards().take(self.entries).collect(),
        };
        last.reverse();
        for pc in last {
            let number = self.numbers.of_pc(pc, &mut self.known);
            self.record(M::of(run.lanes), number);
        }
    }

    /// Whether all these lanes remember the same.
    pub(crate) fn alike(&self, lanes: LaneSet) -> bool {
        let mut rings = lanes.iter().map(|l| self.in_order(l));
        let Some(first) = rings.next() else { return true };
        rings.all(|ring| ring.eq(first.clone()))
    }

    /// What a lane remembers, the oldest first.
    fn in_order(&self, lane: Lane) -> impl Iterator<Item = &u32> + Clone {
        let ring = &self.rings[lane.index() * self.entries..][..self.entries];
        let (later, earlier) = ring.split_at(usize::from(self.oldest[lane.index()]));
        earlier.iter().chain(later)
    }

    /// The lanes of the highest priority of those that stand anywhere. A lane's priority is how many other lanes
    /// (finished ones too) remember the pc at which it stands: those have been where it is, so it is behind them.
    #[inline]
    pub(crate) fn furthest_behind(&self) -> M {
        if self.behind.is_empty() {
            return self.standing;
        }
        let (mut furthest, mut most) = (M::EMPTY, 0);
        let mut left = self.behind;
        while let Some(lane) = left.lowest() {
            let known = &self.known[self.at[lane.index()] as usize];
            let here = left.and(known.standing);
            left = left.without(here);
            // A lane that itself remembers its pc has one lane fewer to count.
            let others = here.without(known.by);
            let (lanes, priority) = if others.is_empty() { (here, known.count - 1) } else { (others, known.count) };
            if priority > most {
                (furthest, most) = (lanes, priority);
            } else if priority == most {
                furthest = furthest.or(lanes);
            }
        }
        furthest
    }
}
