//! Rounds in which each ready lane runs one instruction, alone: many at once, up to where the first lane comes to the end
//! of what its batch holds, or to a barrier or lock.

use heuristics::{Lane, LaneSet};

use super::Replay;

/// How many rounds are run at once, at most and at least: fewer are not worth to be looked for.
const MOST: u64 = 4096;
const LEAST: u64 = 4;

/// What is known of the rounds to come.
#[derive(Default)]
pub(super) struct Rounds {
    /// The lane that ended the last ones: it is looked at first.
    ended_by: Option<Lane>,
}

impl Replay<'_> {
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
            self.join_group(self.states[lane.index()].pc, LaneSet::only(lane), usize::MAX);
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
            state.segment = id;
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
