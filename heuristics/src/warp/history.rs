//! The memory of the Long family: the last block entries, or instructions, of each lane, and the choice that follows
//! from them.

use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::warp::mask::Mask;
use crate::{Choice, Lane, LaneSet, LaneState, SegmentId, SegmentTable, Together, WarpView};

/// The most block entries that a lane can be told to remember.
pub(crate) const MOST: u32 = 64;

/// What lanes remember, and which of equal priority runs.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// They remember where they entered blocks, and take turns in lane order, each with the mates of higher numbers.
    BlocksInTurns,
    /// So they do, and remember each instruction that they run.
    InstructionsInTurns,
    /// They remember where they entered blocks; the one with the smallest key runs, among equals the lowest, with all
    /// of its mates.
    Smallest(fn(&LaneState) -> (i64, Pc)),
}

/// A model that keeps track of where its lanes stand: the engine tells it where they go ([`Memory::stand`]), in place
/// of showing it the whole warp before each choice.
pub enum Tracking<'a> {
    /// Of a warp of at most 64 lanes.
    Few(&'a mut Memory<u64>),
    /// Of any warp.
    Many(&'a mut Memory<LaneSet>),
}

/// The sets of lanes of which there are memories.
pub(crate) trait Tracked: Mask {
    fn tracking(memory: &mut Memory<Self>) -> Tracking<'_>;
}

impl Tracked for u64 {
    fn tracking(memory: &mut Memory<u64>) -> Tracking<'_> {
        Tracking::Few(memory)
    }
}

impl Tracked for LaneSet {
    fn tracking(memory: &mut Memory<LaneSet>) -> Tracking<'_> {
        Tracking::Many(memory)
    }
}

/// A model of the Long family.
pub struct Memory<M> {
    history: History<M>,
    rule: Rule,
    /// Where lanes take turns: those of equal priority that have not run yet.
    queue: M,
    /// The lane that led the last choice.
    reference: Option<Lane>,
}

impl<M: Mask> Memory<M> {
    /// Of so many lanes, which remember so many entries.
    pub(crate) fn new(n: u32, lanes: usize, rule: Rule) -> Memory<M> {
        let by_instruction = matches!(rule, Rule::InstructionsInTurns);
        Memory { history: History::new(n, lanes, by_instruction), rule, queue: M::EMPTY, reference: None }
    }

    /// Whether it chooses again at each instruction.
    #[inline]
    #[must_use]
    pub fn is_by_instruction(&self) -> bool {
        self.history.numbers.by_instruction
    }

    /// No lane stands anywhere: the engine tells anew where each does.
    pub fn restart(&mut self) {
        while let Some(lane) = self.history.standing.lowest() {
            self.history.leave(self.history.mates(lane), lane);
        }
    }

    /// These lanes, at least one, which stood nowhere, stand ready before this instruction of their segment. The state
    /// is that of one of them; the others are at its pc.
    #[inline]
    pub fn stand(&mut self, lanes: M, state: &LaneState, instruction: u32, segments: &SegmentTable) {
        self.history.stand(lanes, state, instruction, segments);
    }

    /// Picks those that run next among the lanes that stand, of which there is one at least. The picked ones stand
    /// nowhere until the engine tells where they have come. `states`: by lane.
    #[inline]
    pub fn pick(&mut self, states: &[LaneState]) -> M {
        let inside = if self.is_by_instruction() { None } else { self.go_on(states) };
        inside.unwrap_or_else(|| self.pick_anew(states))
    }

    /// The same of a warp of which lanes may have moved since.
    pub(crate) fn choose(&mut self, warp: &WarpView) -> Choice {
        self.history.look(warp);
        Choice::Run(self.pick(warp.states()).lanes())
    }

    /// Those that go on with the lane that led the last ones that ran; none where it is not ready inside a block.
    #[inline]
    fn go_on(&mut self, states: &[LaneState]) -> Option<M> {
        let lane = self.reference.filter(|l| self.history.standing.has(*l) && !states[l.index()].starts_block)?;
        let lanes = self.history.mates(lane);
        self.history.leave(lanes, lane);
        Some(lanes)
    }

    /// A new choice, whatever ran before.
    #[inline]
    fn pick_anew(&mut self, states: &[LaneState]) -> M {
        let (reference, lanes) = match self.rule {
            Rule::BlocksInTurns | Rule::InstructionsInTurns => {
                self.queue = self.queue.and(self.history.standing);
                if self.queue.is_empty() {
                    self.queue = self.history.furthest_behind();
                }
                let Some(reference) = self.queue.lowest() else { return M::EMPTY };
                let lanes = self.history.mates(reference).not_below(reference);
                self.queue = self.queue.without(lanes);
                (reference, lanes)
            }
            Rule::Smallest(key) => {
                let mut lanes = self.history.furthest_behind().each();
                let Some(mut reference) = lanes.next() else { return M::EMPTY };
                let mut smallest = key(&states[reference.index()]);
                for lane in lanes {
                    let key = key(&states[lane.index()]);
                    if key < smallest {
                        (reference, smallest) = (lane, key);
                    }
                }
                (reference, self.history.mates(reference))
            }
        };
        self.history.enter(lanes, reference);
        self.reference = Some(reference);
        lanes
    }

    /// Whether lanes that are all at one pc stay together.
    pub(crate) fn stays_together(&self, live: LaneSet) -> bool {
        match self.rule {
            // Lanes that remember the same have the same priority, so the lowest leads and all go with it.
            Rule::BlocksInTurns | Rule::InstructionsInTurns => self.queue.is_empty() && self.history.alike(live),
            Rule::Smallest(_) => true,
        }
    }

    /// The lanes ran a run of segments together. Where blocks are remembered, the first segment counts unless the lane
    /// that led goes on inside a block; who led does not matter beyond: a new choice follows.
    pub(crate) fn ran_together(&mut self, run: &Together) {
        let within = |l: Lane| run.lanes.contains(l) && !run.first_starts_block.contains(l);
        let goes_on = self.reference.is_some_and(within);
        let entries = self.history.entries;
        let mut last: Vec<Pc> = match self.is_by_instruction() {
            false => run.block_entries_backwards(!goes_on).take(entries).collect(),
            true => run.pcs_backwards().take(entries).collect(),
        };
        last.reverse();
        for pc in last {
            let number = self.history.numbers.of_pc(pc, &mut self.history.known);
            self.history.record(M::of(run.lanes), number);
        }
    }
}

/// Each lane's last N pcs; zeros at first. Beside them, where the lanes stand, so that a choice looks at those lanes
/// only that others are ahead of.
struct History<M> {
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
    /// The lanes that stand there.
    standing: M,
}

impl<M: Mask> Known<M> {
    fn new(pc: Pc) -> Known<M> {
        Known { pc, by: M::EMPTY, standing: M::EMPTY }
    }

    /// Those of the lanes that are behind another if they stand here.
    #[inline]
    fn behind(&self, lanes: M) -> M {
        // One lane alone is not behind itself.
        if self.by.but_lowest().is_empty() {
            if self.by.is_empty() { M::EMPTY } else { lanes.without(self.by) }
        } else {
            lanes
        }
    }
}

/// Numbers for pcs, of which the first is 0.
struct Numbers {
    by_instruction: bool,
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
        let most = if self.by_instruction { usize::MAX } else { 1 };
        for instruction in segments[segment].instructions.iter().take(most) {
            let number = self.of_pc(instruction.pc, known);
            self.of_instructions.push(number);
        }
        begins
    }
}

impl<M: Mask> History<M> {
    fn new(entries: u32, lanes: usize, by_instruction: bool) -> History<M> {
        let entries = entries as usize;
        let mut zero = Known::new(Pc(0));
        zero.by = M::of(LaneSet::first(lanes));
        let numbers = Numbers {
            by_instruction,
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

    /// Those that stand where this one does, itself included.
    #[inline]
    fn mates(&self, lane: Lane) -> M {
        self.known[self.at[lane.index()] as usize].standing
    }

    /// The ready lanes of a warp stand as they do; others may have moved them.
    fn look(&mut self, warp: &WarpView) {
        let (ready, segments) = (M::of(warp.ready()), &warp.program().segments);
        for lane in self.standing.without(ready).each() {
            self.leave(M::only(lane), lane);
        }
        for lane in ready.each() {
            let state = warp.lane(lane);
            if self.standing.has(lane) {
                if self.known[self.at[lane.index()] as usize].pc == state.pc {
                    continue;
                }
                self.leave(M::only(lane), lane);
            }
            let instructions = &segments[state.segment].instructions;
            let at = instructions.partition_point(|instruction| instruction.pc < state.pc);
            self.stand(M::only(lane), state, at as u32, segments);
        }
    }

    /// These lanes, which stand nowhere, come to this instruction.
    #[inline]
    fn stand(&mut self, lanes: M, state: &LaneState, instruction: u32, segments: &SegmentTable) {
        let number = self.numbers.of((state.segment, instruction), segments, &mut self.known);
        let known = &mut self.known[number as usize];
        known.standing = known.standing.or(lanes);
        self.standing = self.standing.or(lanes);
        self.behind = self.behind.or(known.behind(lanes));
        lanes.each().for_each(|lane| self.at[lane.index()] = number);
    }

    /// These lanes, mates of this one, go on from where they stand.
    #[inline]
    fn leave(&mut self, lanes: M, mate: Lane) {
        let known = &mut self.known[self.at[mate.index()] as usize];
        known.standing = known.standing.without(lanes);
        self.standing = self.standing.without(lanes);
        self.behind = self.behind.without(lanes);
    }

    /// These lanes, mates of this one, go on from where they stand, and remember it.
    #[inline]
    fn enter(&mut self, lanes: M, mate: Lane) {
        self.leave(lanes, mate);
        self.record(lanes, self.at[mate.index()]);
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
            by = by.or(M::only(lane));
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
        known.by = by(known.by);
        if !known.standing.is_empty() {
            self.behind = self.behind.without(known.standing).or(known.behind(known.standing));
        }
    }

    /// Whether all these lanes remember the same.
    fn alike(&self, lanes: LaneSet) -> bool {
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
    fn furthest_behind(&self) -> M {
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
            let count = known.by.count();
            let (lanes, priority) = if others.is_empty() { (here, count - 1) } else { (others, count) };
            if priority > most {
                (furthest, most) = (lanes, priority);
            } else if priority == most {
                furthest = furthest.or(lanes);
            }
        }
        furthest
    }
}
