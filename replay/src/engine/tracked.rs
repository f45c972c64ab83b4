//! Lanes that run under a model that keeps track of them: it is told where they go, and groups are left aside until
//! all lanes are together.

use heuristics::{Heuristic, Lane, LaneSet, Mask, Memory, SegmentId, Spec, Tracking};

use super::Replay;
use crate::metrics::Metric;
use crate::{Error, Result};

impl Replay<'_> {
    /// Runs the lanes, of which one is ready at least, until none is ready; false, and nothing is done, where the model
    /// does not keep track of them.
    pub(super) fn run_tracked(
        &mut self,
        spec: &Spec,
        heuristic: &mut dyn Heuristic,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<bool> {
        match heuristic.tracking() {
            None => return Ok(false),
            Some(Tracking::Few(model)) => self.run_by_memory(spec, model, metrics)?,
            Some(Tracking::Many(model)) => self.run_by_memory(spec, model, metrics)?,
        }
        Ok(true)
    }

    fn run_by_memory<M: Mask>(
        &mut self,
        spec: &Spec,
        model: &mut Memory<M>,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<()>
    where
        Memory<M>: Heuristic,
    {
        let by_instruction = model.is_by_instruction();
        let mut ready = self.track_anew(model);
        let mut together = self.all_together();
        while !ready.is_empty() {
            if together {
                self.groups.clear();
                ready.lowest().into_iter().for_each(|l| self.groups.join(self.states[l.index()].pc, ready.lanes()));
                if Heuristic::stays_together(model, &self.view(ready.lanes())) && self.run_together(model, metrics)? {
                    self.tell_events(metrics);
                    ready = self.track_anew(model);
                    together = self.all_together();
                    continue;
                }
            }
            let lanes = model.pick(&self.states);
            let Some(lowest) = lanes.lowest().filter(|_| lanes.without(ready).is_empty()) else {
                return Err(broken(spec, lanes, "not all of them ready"));
            };
            let first = lowest.index();
            let (pc, segment, offset) = (self.states[first].pc, self.states[first].segment, self.offsets[first]);
            let segment = &self.program.segments[segment];
            let end = if by_instruction { offset + 1 } else { segment.len() as u32 };
            let active = lanes.count();
            self.counts.fetched(active, active < self.live_homes, u64::from(end - offset));
            if !metrics.is_empty() {
                let step = self.told_step(lanes.lanes(), &segment.instructions[offset as usize..end as usize]);
                metrics.iter_mut().try_for_each(|metric| metric.step(&step))?;
            }
            let mut apart = false;
            if let Some(next) = segment.instructions.get(end as usize) {
                for lane in lanes.each() {
                    let state = &mut self.states[lane.index()];
                    apart |= state.pc != pc;
                    (state.pc, state.starts_block) = (next.pc, false);
                    self.offsets[lane.index()] = end;
                }
                model.stand(lanes, &self.states[first], end, &self.program.segments);
                together = false;
            } else {
                // Lanes that ran together mostly come to one place.
                let mut here: Option<(SegmentId, M)> = None;
                let mut stopped = M::EMPTY;
                let mut parted = false;
                for lane in lanes.each() {
                    let l = lane.index();
                    let state = &mut self.states[l];
                    apart |= state.pc != pc;
                    let brief = &self.briefs[state.segment.0 as usize];
                    self.cursors[l].pass_segment(brief, state);
                    state.starts_block = brief.transfers;
                    self.offsets[l] = 0;
                    let Some(id) = self.cursors[l].segment_here() else {
                        stopped = stopped.or(M::only(lane));
                        continue;
                    };
                    self.stand(l, id);
                    match &mut here {
                        Some((same, lanes)) if *same == id => *lanes = lanes.or(M::only(lane)),
                        _ => {
                            if let Some((_, lanes)) = here.replace((id, M::only(lane))) {
                                self.tell_standing(model, lanes);
                                parted = true;
                            }
                        }
                    }
                }
                here.into_iter().for_each(|(_, lanes)| self.tell_standing(model, lanes));
                together = !parted && lanes == ready && ready.lanes() == self.live;
                if !stopped.is_empty() {
                    let before = ready.without(stopped);
                    self.groups.clear();
                    self.go_through_controls(stopped.lanes())?;
                    self.tell_events(metrics);
                    ready = M::of(self.live - self.sync.waiting());
                    ready.without(before).each().for_each(|lane| self.tell_standing(model, M::only(lane)));
                    together = ready.lanes() == self.live && self.at_one_place(self.live);
                }
            }
            if apart {
                return Err(broken(spec, lanes, "which are not at one pc"));
            }
        }
        self.groups.clear();
        Ok(())
    }

    /// Tells the model where all ready lanes, which are returned, stand.
    fn track_anew<M: Mask>(&self, model: &mut Memory<M>) -> M {
        model.restart();
        self.groups.iter().for_each(|group| self.tell_standing(model, M::of(group.lanes)));
        M::of(self.live - self.sync.waiting())
    }

    /// Tells the model where these lanes, all at one pc, stand.
    #[inline]
    fn tell_standing<M: Mask>(&self, model: &mut Memory<M>, lanes: M) {
        if let Some(lane) = lanes.lowest().map(Lane::index) {
            model.stand(lanes, &self.states[lane], self.offsets[lane], &self.program.segments);
        }
    }

    /// Whether these lanes stand at the beginning of a segment, all at one pc.
    fn at_one_place(&self, lanes: LaneSet) -> bool {
        let mut stand = lanes.iter().map(|lane| (self.states[lane.index()].pc, self.offsets[lane.index()]));
        let first = stand.next();
        first.is_none_or(|first| first.1 == 0 && stand.all(|other| other == first))
    }
}

/// The model picked lanes that break a rule.
fn broken(spec: &Spec, lanes: impl Mask, rule: &str) -> Error {
    Error::Bug(format!("heuristic {spec} picked lanes {{{}}}, {rule}", lanes.lanes()))
}
