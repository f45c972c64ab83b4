//! What a lock itself costs a GPU: instructions that no trace has, since a CPU's lock functions are left out.
//!
//! On a GPU a lock is a loop around a compare-and-swap, with a fence on either side of the section and an exchange that
//! gives the lock back. In each turn all lanes try that want it, and those that failed go round once more.
//!
//! The costs come from counters of an NVIDIA H200 (cli/tests/locks/counters.csv): eight programs, each for gcc and
//! clang as threads with mutexes and for the GPU as lanes around `atomicCAS` with `__syncwarp()` behind it. The GPU's
//! instructions are counted as so many of the CPU's as `atomic_number` has for one (1.67 by gcc, 1.73 by clang), the
//! same work without a lock:
//!
//! - A turn takes 64 instructions more than the replay of what is in it: the mean over seven programs and both
//!   compilers, of 22 to 138. Four programs that call nothing else in the lock have 37 to 58.
//! - A lane that tries takes part in 20 of these, and in no more unless it gets the lock: the mean over the three
//!   programs in which lanes do little else while they wait (16 to 24).
//!
//! They count as issued and active in [`Outcome::active_efficiency`](crate::Outcome::active_efficiency) and
//! [`Outcome::gpu_efficiency`](crate::Outcome::gpu_efficiency) alone, which are what a GPU's counters say. They are not
//! among the fetches. In the unit of the latter a turn takes 67, by the same mean.

use heuristics::LaneSet;

use super::{Replay, SyncEvent};

/// Instructions of a turn: those of the lanes that get the lock.
const TURN: u64 = 64;

/// Those of them that lanes take part in that try and fail.
const TRY: u64 = 20;

/// So many of these in the unit of `Counts::gpu_fetches`, tenths of its instructions.
pub(crate) fn gpu_tenths(instructions: u64) -> u64 {
    instructions * 670 / TURN
}

impl Replay<'_> {
    /// Counts what the locks cost that were taken since the events were cleared.
    #[inline]
    pub(super) fn count_locks(&mut self) {
        if !self.sync.events().is_empty() {
            self.count_locks_taken();
        }
    }

    fn count_locks_taken(&mut self) {
        let takes = |event: &SyncEvent| if let SyncEvent::Takes { lane, .. } = event { Some(*lane) } else { None };
        let mut taking: LaneSet = self.sync.events().iter().filter_map(takes).collect();
        while let Some(first) = taking.lowest() {
            // Lanes that take their locks at one place do so in one turn.
            let at = self.states[first.index()].pc;
            let together: LaneSet = taking.iter().filter(|lane| self.states[lane.index()].pc == at).collect();
            taking = taking - together;
            let section = self.sync.turns().and_then(|t| t.sections.iter().rev().find(|s| s.lanes.contains(first)));
            let failing = section.map_or(0, |section| section.to_come.len());
            self.counts.lock_fetches += TURN;
            self.counts.lock_instructions += TURN * together.len() as u64 + TRY * failing as u64;
        }
    }
}
