//! Lanes that run on alone: while the model would choose the same lanes again, their segments are run without asking
//! it.

use heuristics::{Heuristic, LaneSet, Next, Ran, Together};
use trace_format::Pc;

use super::{Replay, cursor};
use crate::Result;
use crate::lanes::brief::Brief;
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
        let Some(first) = lanes.lowest().map(heuristics::Lane::index) else { return Ok(false) };
        let alone = lanes == LaneSet::only(heuristics::Lane(first as u8));
        let (mut level, mut sp) = (self.states[first].level, self.states[first].sp);
        if !alone {
            let states = || lanes.iter().map(|lane| &self.states[lane.index()]);
            sp = states().map(|s| s.sp).min().unwrap_or_default();
            if self.lead.looks_at_levels() && states().any(|state| state.level != level) {
                return Ok(false);
            }
        }
        let (below, looks_at_others) = (self.lead.goes_on_below(), self.lead.looks_at_others());
        let goes_on = |brief: &Brief, transfer: Option<Pc>, sp: i64, level: u32| match below {
            Some(below) => brief.start < below,
            None => {
                let back = transfer.is_some_and(|from| brief.start < from);
                let (pc, place, in_stub) = (brief.start, brief.place, brief.in_stub);
                let has_others =
                    looks_at_others && self.groups.find(pc).is_some_and(|group| self.groups[group].lanes != lanes);
                let starts_block = transfer.is_some();
                let next = Next { pc, place, in_stub, starts_block, has_others, back, sp, level };
                self.lead.goes_on(&next, &self.program.control_flow)
            }
        };
        let (mut known, mut look) = (0, FIRST_LOOK);
        let mut total = cursor::RunTotal::default();
        let mut last = None;
        // The last instruction of the segment before, where it transferred control.
        let mut transfer = None;
        'run: loop {
            known = match total.segments {
                // Most runs end behind the first segment: lanes are compared only where the lead goes on behind it.
                0 => 1,
                1 => cursor::common_further(&self.cursors, lanes, 0, look).max(1),
                _ => cursor::common_further(&self.cursors, lanes, known, look),
            };
            if total.segments == known {
                break;
            }
            for id in self.cursors[first].codes_ahead(known)[total.segments..].iter().filter_map(|c| c.as_segment()) {
                let brief = &self.briefs[id.0 as usize];
                if total.segments > 0 && !goes_on(brief, transfer, sp, level) {
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
            if total.segments > 1 {
                look = (look * 2).min(MOST_LOOK);
            } else {
                let second = self.cursors[first].segment_after().map(|id| &self.briefs[id.0 as usize]);
                if second.is_none_or(|second| !goes_on(second, transfer, sp, level)) {
                    return Ok(false);
                }
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
        self.groups.leave(group, lanes);
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
