//! Lanes that run under a model that keeps track of them: it is told where they go, and groups are left aside until
//! all lanes are together.

use heuristics::{Heuristic, Lane, LaneSet, SegmentId, Spec};

use super::Replay;
use crate::metrics::Metric;
use crate::{Error, Result};

impl Replay<'_> {
    /// Runs lanes, of which one is ready at least, as the model picks them, until none is ready or it does not keep
    /// track of them.
    pub(super) fn run_tracked(
        &mut self,
        spec: &Spec,
        heuristic: &mut dyn Heuristic,
        by_instruction: bool,
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<()> {
        let mut ready = self.track_anew(heuristic);
        let mut together = self.all_together();
        while !ready.is_empty() {
            if together {
                self.groups.clear();
                ready.lowest().into_iter().for_each(|lane| self.groups.join(self.states[lane.index()].pc, ready));
                if heuristic.stays_together(&self.view(ready)) && self.run_together(heuristic, metrics)? {
                    self.tell_events(metrics);
                    ready = self.track_anew(heuristic);
                    together = self.all_together();
                    continue;
                }
            }
            let Some(model) = heuristic.tracking() else { break };
            let lanes = model.pick(&self.states);
            let Some(first) = lanes.lowest().filter(|_| lanes.is_subset(&ready)) else {
                return Err(Error::Bug(format!("heuristic {spec} picked lanes {{{lanes}}} of {{{ready}}}")));
            };
            let (state, offset) = (self.states[first.index()], self.offsets[first.index()]);
            let segment = &self.program.segments[state.segment];
            let end = if by_instruction { offset + 1 } else { segment.len() as u32 };
            let instructions = &segment.instructions[offset as usize..end as usize];
            let active = lanes.len();
            self.counts.fetched(active, active < self.live_homes, instructions.len() as u64);
            if !metrics.is_empty() {
                let step = self.told_step(lanes, instructions);
                metrics.iter_mut().try_for_each(|metric| metric.step(&step))?;
            }
            let mut apart = false;
            if let Some(next) = segment.instructions.get(end as usize) {
                for lane in lanes {
                    let l = lane.index();
                    apart |= self.states[l].pc != state.pc;
                    self.offsets[l] = end;
                    (self.states[l].pc, self.states[l].starts_block) = (next.pc, false);
                }
                model.stand(lanes, &self.states[first.index()], end, &self.program.segments);
                together = false;
            } else {
                // Lanes that ran together mostly come to one place.
                let mut here: Option<(SegmentId, LaneSet)> = None;
                let mut stopped = LaneSet::EMPTY;
                let mut parted = false;
                for lane in lanes {
                    let l = lane.index();
                    apart |= self.states[l].pc != state.pc;
                    let brief = &self.briefs[self.states[l].segment.0 as usize];
                    self.cursors[l].pass_segment(brief, &mut self.states[l]);
                    self.states[l].starts_block = brief.transfers;
                    self.offsets[l] = 0;
                    let Some(id) = self.cursors[l].segment_here() else {
                        stopped.insert(lane);
                        continue;
                    };
                    self.stand(l, id);
                    match &mut here {
                        Some((same, lanes)) if *same == id => lanes.insert(lane),
                        _ => {
                            if let Some((_, lanes)) = here.replace((id, LaneSet::only(lane))) {
                                self.told(model, lanes);
                                parted = true;
                            }
                        }
                    }
                }
                here.into_iter().for_each(|(_, lanes)| self.told(model, lanes));
                together = !parted && lanes == self.live && stopped.is_empty();
                if !stopped.is_empty() {
                    let before = ready - stopped;
                    self.groups.clear();
                    self.go_through_controls(stopped)?;
                    self.tell_events(metrics);
                    ready = self.live - self.sync.waiting();
                    (ready - before).iter().for_each(|lane| self.told(model, LaneSet::only(lane)));
                    together = ready == self.live && self.at_one_place(ready);
                }
            }
            if apart {
                return Err(Error::Bug(format!("heuristic {spec} picked lanes {{{lanes}}}, which are not at one pc")));
            }
        }
        self.groups.clear();
        for lane in ready {
            self.groups.join(self.states[lane.index()].pc, LaneSet::only(lane));
        }
        Ok(())
    }

    /// Tells the model where all ready lanes stand.
    fn track_anew(&self, heuristic: &mut dyn Heuristic) -> LaneSet {
        if let Some(model) = heuristic.tracking() {
            model.restart();
            self.groups.iter().for_each(|group| self.told(model, group.lanes));
        }
        self.live - self.sync.waiting()
    }

    /// Tells the model where these lanes, all at one pc, stand.
    #[inline]
    fn told(&self, model: &mut dyn heuristics::Tracking, lanes: LaneSet) {
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
