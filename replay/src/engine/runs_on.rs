//! Lanes that run on alone: while the model would choose the same lanes again, their segments are run without asking
//! it.

use heuristics::{Heuristic, LaneSet, Next, Ran, SegmentId, Together};
use trace_format::Pc;

use super::cursor::{Cursor, RunTotal};
use super::{Replay, cursor};
use crate::Result;
use crate::lanes::brief::Brief;
use crate::metrics::Metric;

/// How many segments are compared at once, at first and at most: most runs are short.
const FIRST_LOOK: usize = 16;
const MOST_LOOK: usize = 1024;

impl Replay<'_> {
    /// Runs the lanes, all of this group, as far as their lead goes, and all of them run the same in their batches; on,
    /// where they have run since they were chosen. False, and nothing is done, where they do not go on, or were just
    /// chosen and run no more than one segment.
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
        let (level, mut sp) = (self.states[first].level, self.states[first].sp);
        if !alone {
            let states = || lanes.iter().map(|lane| &self.states[lane.index()]);
            sp = states().map(|s| s.sp).min().unwrap_or_default();
            if self.lead.looks_at_levels() && states().any(|state| state.level != level) {
                return Ok(false);
            }
        }
        let lead = &self.lead;
        let is_chosen = ran.since_chosen == 0;
        let transfer = ran.last_kind.transfers_control().then_some(ran.last_pc);
        let walk = Walk { cursors: &self.cursors, briefs: self.briefs, lanes, first, sp, level, is_chosen, transfer };
        let Walked { total, last: id, level } = if let Some(below) = lead.goes_on_below() {
            walk.while_goes_on(|way| way.brief.start < below)
        } else if lead.looks_at_places_alone() {
            walk.while_goes_on(|way| lead.goes_on_at(way.brief.start, way.level))
        } else {
            let others_at = |pc: Pc| self.groups.find(pc).is_some_and(|group| self.groups[group].lanes != lanes);
            walk.while_goes_on(|Way { brief, transfer, sp, level }| {
                let (pc, place, in_stub) = (brief.start, brief.place, brief.in_stub);
                let has_others = lead.looks_at_others() && others_at(pc);
                let back = transfer.is_some_and(|from| pc < from);
                let starts_block = transfer.is_some();
                let next = Next { pc, place, in_stub, has_others, starts_block, back, sp: *sp, level: *level };
                lead.goes_on(&next, &self.program.control_flow)
            })
        };
        if total.segments < 1 + usize::from(is_chosen) {
            return Ok(false);
        }
        let active = lanes.len();
        self.counts.fetched(active, active < self.live_homes, (total.instructions, total.gpu_tenths));
        let starts_block = self.briefs[id.0 as usize].transfers;
        if self.lead.tells_run() || !metrics.is_empty() {
            self.run.clear();
            self.run.extend(self.cursors[first].codes_ahead(total.segments).iter().filter_map(|c| c.as_segment()));
        }
        if !metrics.is_empty() {
            self.tell_run(lanes, &self.run, total.instructions, metrics)?;
        }
        if self.lead.tells_run() {
            model.ran(&Together {
                lanes,
                chosen: true,
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
        ran.since_chosen += total.instructions;
        ran.ends_with(last);
        Ok(true)
    }
}

/// The lanes that run on, which stand before one segment: the first of them, the lowest of their stack pointers, the
/// call level of the first, whether they were chosen there, and how they came there.
struct Walk<'a> {
    cursors: &'a [Cursor<'a>],
    briefs: &'a [Brief],
    lanes: LaneSet,
    first: usize,
    sp: i64,
    level: u32,
    is_chosen: bool,
    transfer: Option<Pc>,
}

/// How the lanes come to a segment.
struct Way<'a> {
    brief: &'a Brief,
    /// The last instruction of the segment before, where it transferred control.
    transfer: Option<Pc>,
    sp: i64,
    level: u32,
}

/// How far the lanes go.
struct Walked {
    total: RunTotal,
    /// The last segment, and the call level at which it runs.
    last: SegmentId,
    level: u32,
}

impl Walk<'_> {
    /// As far as all lanes run the same in their batches and `goes_on` says so; that is not asked of a segment that was
    /// chosen.
    // One copy for each way to ask: half of a divergent replay is spent here.
    #[inline(always)]
    fn while_goes_on(self, goes_on: impl Fn(&Way) -> bool) -> Walked {
        let Walk { cursors, briefs, lanes, first, mut sp, mut level, mut is_chosen, mut transfer } = self;
        let codes = cursors[first].codes_left();
        let mut walked = Walked { total: RunTotal::default(), last: SegmentId(0), level };
        // So many of the codes are run by all lanes, and so many of them were compared: the segment before which they
        // stand need not be the same, but begins at one pc.
        let (mut known, mut compared) = (if lanes.len() == 1 { codes.len() } else { codes.len().min(1) }, 0);
        let mut look = FIRST_LOOK;
        'run: loop {
            for code in &codes[walked.total.segments..known] {
                let Some(id) = code.as_segment() else { break 'run };
                let brief = &briefs[id.0 as usize];
                if !std::mem::take(&mut is_chosen) && !goes_on(&Way { brief, transfer, sp, level }) {
                    break 'run;
                }
                walked.total.add(brief);
                (walked.last, walked.level) = (id, level);
                if brief.recorded {
                    // Where each lane's stack pointer is from here on is told by its stream.
                    break 'run;
                }
                transfer = brief.transfers.then_some(brief.last);
                sp += i64::from(brief.sp);
                if brief.level != 0 {
                    level = level.saturating_add_signed(i32::from(brief.level)).max(1);
                }
            }
            // Lanes are compared only where the lead goes on.
            let next = codes.get(known).and_then(|code| code.as_segment()).map(|id| &briefs[id.0 as usize]);
            if !next.is_some_and(|brief| goes_on(&Way { brief, transfer, sp, level })) {
                break;
            }
            let common = cursor::common_further(cursors, lanes, compared, look);
            if common <= known {
                break;
            }
            (known, compared, look) = (common, common, (look * 2).min(MOST_LOOK));
        }
        walked
    }
}
