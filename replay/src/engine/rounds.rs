//! Turns in which ready lanes run one instruction each. Many of them run without asking the model, until the first lane
//! reaches a barrier, a lock or the end of its batch.

use heuristics::{Lane, LaneSet, LaneState, Rotation, Round};
use trace_format::{Instruction, Pc};

use super::{Brief, Cursor, Replay, stand_before};

/// How many rounds are run at once, at most and at least: fewer are not worth to be looked for.
const MOST: u64 = 4096;
const LEAST: u64 = 4;

/// Fewer turns with mates are not worth to be run without the model; after such as many are left to it.
const REST: u32 = 32;

/// What is known about the rounds to come.
#[derive(Default)]
pub(super) struct Rounds {
    /// The lane that ended the last ones: it is looked at first.
    ended_by: Option<Lane>,
    /// Kept for its memory.
    standing: Standing,
    /// So many turns are left to the model: the last that were run without it were few.
    rest: u32,
}

/// A lane that takes its turns.
struct Turning<'a> {
    /// Of its segment.
    instructions: &'a [Instruction],
    offset: u32,
    /// Up to here it may run.
    end: u32,
}

impl Turning<'_> {
    #[inline]
    fn is_over(&self) -> bool {
        self.offset >= self.end
    }
}

/// Where lanes stand.
#[derive(Default)]
struct Standing {
    /// By lane.
    pcs: Vec<Pc>,
    ready: LaneSet,
    /// How many lanes stand at pcs with this remainder: where it is one, nothing needs to be compared.
    counts: Vec<u16>,
}

impl Standing {
    const COUNTS: usize = 1 << 12;

    /// These lanes stand here; nobody else does.
    fn stand(&mut self, lanes: impl Iterator<Item = (Lane, Pc)>) {
        self.counts.resize(Self::COUNTS, 0);
        for (lane, pc) in lanes {
            self.pcs.resize(self.pcs.len().max(lane.index() + 1), Pc(0));
            self.pcs[lane.index()] = pc;
            self.ready.insert(lane);
            *self.count(pc) += 1;
        }
    }

    /// Nobody stands anywhere.
    fn leave(&mut self) {
        for lane in std::mem::take(&mut self.ready) {
            *self.count(self.pcs[lane.index()]) = 0;
        }
    }

    #[inline]
    fn count(&mut self, pc: Pc) -> &mut u16 {
        &mut self.counts[pc.0 as usize % Self::COUNTS]
    }

    #[inline]
    fn go(&mut self, lane: Lane, pc: Pc) {
        let from = std::mem::replace(&mut self.pcs[lane.index()], pc);
        *self.count(from) -= 1;
        *self.count(pc) += 1;
    }

    /// The ready lanes at the pc of this one.
    #[inline]
    fn mates(&mut self, lane: Lane) -> LaneSet {
        let pc = self.pcs[lane.index()];
        match *self.count(pc) {
            1 => LaneSet::only(lane),
            _ => self.ready.iter().filter(|other| self.pcs[other.index()] == pc).collect(),
        }
    }
}

impl<'a> Replay<'a> {
    /// Runs turns of the ready lanes; false, and nothing is done, where few can be run.
    pub(super) fn rotate(&mut self, rotation: Rotation, known: &mut Rounds) -> bool {
        match rotation {
            Rotation::Alone => self.run_rounds(known),
            Rotation::WithMates(round) => self.run_with_mates(round, known),
        }
    }

    /// Each turn is that of one lane, with all that stand at its pc.
    fn run_with_mates(&mut self, round: &mut Round, known: &mut Rounds) -> bool {
        if known.rest > 0 {
            known.rest -= 1;
            return false;
        }
        let ready = self.live - self.sync.waiting();
        let (program, briefs) = (self.program, self.briefs);
        let turning = |cursor: &Cursor, state: &LaneState, offset| {
            let instructions = &program.segments[state.segment].instructions;
            // The last instruction before a stop is left to an ordinary step.
            let end = instructions.len() as u32 - u32::from(cursor.segment_after().is_none());
            Turning { instructions, offset, end }
        };
        let all = self.cursors.iter().zip(&self.states).zip(&self.offsets);
        let mut lanes: Vec<Turning<'a>> =
            all.map(|((cursor, state), offset)| turning(cursor, state, *offset)).collect();
        if ready.iter().any(|lane| lanes[lane.index()].is_over()) {
            return false;
        }
        let standing = &mut known.standing;
        standing.stand(ready.iter().map(|lane| (lane, self.states[lane.index()].pc)));
        let (mut turns, mut goes_on) = (0, true);
        while goes_on {
            let running = round.next(ready, |lane| standing.mates(lane));
            let active = running.len();
            self.counts.fetched(active, active < self.live_homes, 1);
            turns += 1;
            for lane in running {
                let l = lane.index();
                lanes[l].offset += 1;
                if lanes[l].offset as usize == lanes[l].instructions.len() {
                    let (cursor, state) = (&mut self.cursors[l], &mut self.states[l]);
                    pass_segment(cursor, state, briefs);
                    lanes[l] = turning(cursor, state, 0);
                }
                goes_on &= !lanes[l].is_over();
                standing.go(lane, lanes[l].instructions[lanes[l].offset as usize].pc);
            }
        }
        if turns < REST {
            known.rest = REST;
        }
        standing.leave();
        self.groups.clear();
        for lane in ready {
            let (l, pc) = (lane.index(), standing.pcs[lane.index()]);
            self.states[l].starts_block &= lanes[l].offset == 0;
            let state = &mut self.states[l];
            stand_before(state.segment, &briefs[state.segment.0 as usize], state);
            (self.offsets[l], state.pc) = (lanes[l].offset, pc);
            self.groups.join(pc, LaneSet::only(lane));
        }
        true
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
