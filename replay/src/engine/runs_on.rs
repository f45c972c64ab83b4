//! Lanes that run on alone: while the model would choose the same lanes again, their segments are run without asking
//! it.

use heuristics::{Heuristic, Next, Ran, Together};

use super::{Replay, cursor};
use crate::Result;
use crate::metrics::Metric;

/// How many segments are compared at once, at first and at most: most runs are short.
const FIRST_LOOK: usize = 16;
const MOST_LOOK: usize = 1024;

impl Replay<'_> {
    /// Runs the lanes, all of this group, as far as their lead goes, and all of them run the same in their batches.
    /// None, and nothing is done, where that is no more than one segment.
    pub(super) fn run_on(
        &mut self,
        model: &mut dyn Heuristic,
        group: usize,
        ran: &mut Ran,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<bool> {
        let lanes = ran.lanes;
        let states = || lanes.iter().map(|lane| &self.states[lane.index()]);
        let Some(first) = lanes.lowest().map(heuristics::Lane::index) else { return Ok(false) };
        let (mut level, mut sp) = (self.states[first].level, states().map(|s| s.sp).min().unwrap_or_default());
        if self.lead.looks_at_levels() && states().any(|state| state.level != level) {
            return Ok(false);
        }
        let below = self.lead.goes_on_below();
        let (mut known, mut look) = (0, FIRST_LOOK);
        let mut total = cursor::RunTotal::default();
        let mut last = None;
        // The last instruction of the segment before, where it transferred control.
        let mut transfer = None;
        'run: loop {
            known = cursor::common_further(&self.cursors, lanes, known, look);
            look = (look * 2).min(MOST_LOOK);
            if total.segments == known {
                break;
            }
            for id in self.cursors[first].codes_ahead(known)[total.segments..].iter().filter_map(|c| c.as_segment()) {
                let brief = &self.briefs[id.0 as usize];
                let goes_on = match below {
                    _ if total.segments == 0 => true,
                    Some(below) => brief.start < below,
                    None => {
                        let back = transfer.is_some_and(|from| brief.start < from);
                        let (pc, place, in_stub) = (brief.start, brief.place, brief.in_stub);
                        let next = Next { pc, place, in_stub, back, sp, level };
                        self.lead.goes_on(&next, &self.program.control_flow)
                    }
                };
                if !goes_on {
                    break 'run;
                }
                total.add(brief);
                last = Some((id, level));
                transfer = brief.transfers.then_some(brief.last);
                if brief.recorded {
                    // Where each lane's stack pointer is by now is told by its stream.
                    break 'run;
                }
                sp += i64::from(brief.sp);
                level = level.saturating_add_signed(i32::from(brief.level)).max(1);
            }
        }
        let Some((id, level)) = last.filter(|_| total.segments > 1) else { return Ok(false) };
        let active = lanes.len();
        self.counts.fetched(active, active < self.live_homes, total.instructions);
        let starts_block = self.briefs[id.0 as usize].transfers;
        if self.lead.tells_run() || !metrics.is_empty() {
            self.run.clear();
            self.run.extend(self.cursors[first].codes_ahead(total.segments).iter().filter_map(|c| c.as_segment()));
        }
        if !metrics.is_empty() {
            self.tell_run(lanes, &self.run, total.instructions, metrics)?;
        }
        if self.lead.tells_run() {
            model.ran_on(&Together {
                lanes,
                run: &self.run,
                last_level: level,
                first_starts_block: lanes.iter().filter(|l| self.states[l.index()].starts_block).collect(),
                segments: &self.program.segments,
                control_flow: &self.program.control_flow,
            });
        }
        self.leave_group(group, lanes);
        for lane in lanes {
            let l = lane.index();
            self.cursors[l].pass_run(&total, &mut self.states[l]);
            self.states[l].starts_block = starts_block;
        }
        self.arrive(lanes)?;
        let segment = &self.program.segments[id];
        let (instructions, last) = (segment.len() as u32, segment.last());
        (ran.instructions, ran.segment, ran.level) = (instructions, id, level);
        ran.since_chosen = total.instructions;
        ran.ends_with(last);
        Ok(true)
    }
}
