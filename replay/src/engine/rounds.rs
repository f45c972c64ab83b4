//! Turns in which ready lanes run one instruction each. Many of them run without asking the model, until the first lane
//! reaches a barrier, a lock or the end of its batch.

use heuristics::{Lane, LaneSet, LaneState, Mask, Rotation, Round};

use super::{Brief, Cursor, Replay, stand_before};

/// How many rounds are run at once, at most and at least: fewer are not worth to be looked for.
const MOST: u64 = 4096;
const LEAST: u64 = 4;

/// Fewer turns with mates are not worth to be run without the model; after such as many are left to it.
const REST: u64 = 32;

/// What is known about the rounds to come.
#[derive(Default)]
pub(super) struct Rounds {
    /// The lane that ended the last ones: it is looked at first.
    ended_by: Option<Lane>,
    /// Kept for their memory: of warps with at most 64 lanes, and of larger ones.
    few: Standing<u64>,
    many: Standing<LaneSet>,
    /// So many turns are left to the model: the last that were run without it were few.
    rest: u64,
    /// So many have been.
    rested: u64,
}

/// A lane that takes its turns.
#[derive(Clone, Copy, Default)]
struct Turning {
    /// The number of its next instruction.
    at: u32,
    /// How many more instructions it can run before its segment ends, or its turns do.
    left: u32,
    /// Whether its turns end then: the last instruction before a stop is left to an ordinary step.
    stops: bool,
}

impl Turning {
    /// The lane stands in the segment before which its cursor is, and has run so many instructions of it.
    #[inline]
    fn of(cursor: &Cursor, brief: &Brief, offset: u32) -> Turning {
        let stops = cursor.segment_after().is_none();
        let left = brief.instructions - offset - u32::from(stops);
        Turning { at: brief.number + offset, left, stops }
    }
}

/// Where lanes stand.
struct Standing<M> {
    /// By number of an instruction: the lanes that stand before it.
    at: Vec<M>,
    lanes: Vec<Turning>,
    /// Turns by how many lanes had them: index 0 is one lane.
    active: Vec<u64>,
}

impl<M> Default for Standing<M> {
    fn default() -> Standing<M> {
        Standing { at: Vec::new(), lanes: Vec::new(), active: Vec::new() }
    }
}

impl<M: Mask> Standing<M> {
    /// Has room for these lanes, at so many instructions.
    fn make_room(&mut self, instructions: usize, lanes: usize) {
        self.at.resize(instructions, M::EMPTY);
        self.lanes.resize(lanes, Turning::default());
        self.active.resize(lanes, 0);
    }

    #[inline]
    fn stand(&mut self, lane: Lane) {
        let here = &mut self.at[self.lanes[lane.index()].at as usize];
        *here = here.or(M::only(lane));
    }

    /// The lanes at the place of this one.
    #[inline]
    fn mates(&self, lane: Lane) -> M {
        self.at[self.lanes[lane.index()].at as usize]
    }
}

impl<'a> Replay<'a> {
    /// Runs turns of the ready lanes; false, and nothing is done, where few can be run.
    pub(super) fn rotate(&mut self, rotation: Rotation, known: &mut Rounds) -> bool {
        let round = match rotation {
            Rotation::Alone => return self.run_rounds(known),
            Rotation::WithMates(round) => round,
        };
        // Where lanes stand is first written down after so many turns that the room for it is made up for.
        let first_rest = (self.program.segments.numbers() / 64) as u64;
        if known.rest > 0 || known.rested < first_rest {
            (known.rest, known.rested) = (known.rest.saturating_sub(1), known.rested + 1);
            return false;
        }
        let turns = match self.cursors.len() {
            ..=64 => self.run_with_mates(round, &mut known.few),
            _ => self.run_with_mates(round, &mut known.many),
        };
        if (1..REST).contains(&turns) {
            known.rest = REST;
        }
        turns > 0
    }

    /// Each turn is that of one lane, with all that stand at its pc. How many turns were run.
    fn run_with_mates<M: Mask>(&mut self, round: &mut Round, standing: &mut Standing<M>) -> u64 {
        let ready = self.live - self.sync.waiting();
        let briefs = self.briefs;
        standing.make_room(self.program.segments.numbers(), self.cursors.len());
        for lane in ready {
            let l = lane.index();
            let brief = &briefs[self.states[l].segment.0 as usize];
            standing.lanes[l] = Turning::of(&self.cursors[l], brief, self.offsets[l]);
        }
        if ready.iter().any(|lane| standing.lanes[lane.index()].left == 0) {
            return 0;
        }
        ready.iter().for_each(|lane| standing.stand(lane));
        let mut whose = Round::<M>::of(round);
        let (few_ready, mut turns, mut goes_on) = (M::of(ready), 0, true);
        while goes_on {
            let running = whose.next(few_ready, |lane| standing.mates(lane));
            let Some(first) = running.lowest() else { break };
            standing.active[running.count() - 1] += 1;
            turns += 1;
            let turning = &mut standing.lanes[first.index()];
            let from = turning.at as usize;
            standing.at[from] = M::EMPTY;
            if turning.left > 1 && running == M::only(first) {
                (turning.at, turning.left) = (turning.at + 1, turning.left - 1);
                standing.at[from + 1] = standing.at[from + 1].or(running);
                continue;
            }
            let mut further = M::EMPTY;
            for lane in running.each() {
                let l = lane.index();
                let turning = &mut standing.lanes[l];
                turning.at += 1;
                turning.left -= 1;
                if turning.left > 0 {
                    further = further.or(M::only(lane));
                    continue;
                }
                if turning.stops {
                    further = further.or(M::only(lane));
                    goes_on = false;
                    continue;
                }
                let (cursor, state) = (&mut self.cursors[l], &mut self.states[l]);
                pass_segment(cursor, state, briefs);
                let turning = Turning::of(cursor, &briefs[state.segment.0 as usize], 0);
                goes_on &= turning.left > 0;
                standing.lanes[l] = turning;
                standing.stand(lane);
            }
            if !further.is_empty() {
                standing.at[from + 1] = standing.at[from + 1].or(further);
            }
        }
        *round = Round::of(&whose);
        for (active, count) in (1..).zip(&mut standing.active) {
            let count = std::mem::take(count);
            if count > 0 {
                self.counts.fetched(active, active < self.live_homes, count);
            }
        }
        self.groups.clear();
        for lane in ready {
            let (l, Turning { at, .. }) = (lane.index(), standing.lanes[lane.index()]);
            standing.at[at as usize] = M::EMPTY;
            let state = &mut self.states[l];
            let brief = &briefs[state.segment.0 as usize];
            stand_before(state.segment, brief, state);
            let offset = at - brief.number;
            state.pc = self.program.segments[state.segment].instructions[offset as usize].pc;
            state.starts_block &= offset == 0;
            self.offsets[l] = offset;
            self.groups.join(state.pc, LaneSet::only(lane));
        }
        turns
    }

    /// Runs whole rounds of the ready lanes; false, and nothing is done, where few can be run.
    pub(super) fn run_rounds(&mut self, rounds: &mut Rounds) -> bool {
        let ready = self.live - self.sync.waiting();
        let mut count = MOST;
        let first = rounds.ended_by.filter(|lane| ready.contains(*lane));
        for lane in first.into_iter().chain(ready) {
            let l = lane.index();
            // Its last instruction before a stop is left to an ordinary step.
            let ahead = self.cursors[l].instructions_ahead(u64::from(self.offsets[l]), count, self.briefs);
            if ahead.saturating_sub(1) < count {
                (count, rounds.ended_by) = (ahead.saturating_sub(1), Some(lane));
                if count < LEAST {
                    return false;
                }
            }
        }
        self.counts.fetched(1, 1 < self.live_homes, count * ready.len() as u64);
        self.groups.clear();
        for lane in ready {
            self.run_alone(lane, count);
            self.groups.join(self.states[lane.index()].pc, LaneSet::only(lane));
        }
        true
    }

    /// The lane runs so many instructions, which its batch holds, and one more at least.
    fn run_alone(&mut self, lane: Lane, count: u64) {
        let l = lane.index();
        let (cursor, state) = (&mut self.cursors[l], &mut self.states[l]);
        let mut left = count + u64::from(self.offsets[l]);
        while let Some(id) = cursor.segment_here() {
            let brief = &self.briefs[id.0 as usize];
            stand_before(id, brief, state);
            let Some(beyond) = left.checked_sub(u64::from(brief.instructions)) else { break };
            left = beyond;
            cursor.pass_segment(brief, state);
            state.starts_block = brief.transfers;
        }
        self.offsets[l] = left as u32;
        state.pc = self.program.segments[state.segment].instructions[left as usize].pc;
        state.starts_block &= left == 0;
    }
}

/// The lane has run its segment, and goes on to the next, which its batch holds.
#[inline]
fn pass_segment(cursor: &mut Cursor, state: &mut LaneState, briefs: &[Brief]) {
    let brief = &briefs[state.segment.0 as usize];
    cursor.pass_segment(brief, state);
    state.starts_block = brief.transfers;
    state.segment = cursor.segment_here().unwrap_or(state.segment);
}
