//! Who is asked which lanes run next: the model of the warp, or that of a turn at a lock; and what it sees.

use heuristics::{Choice, Heuristic, LaneSet, LaneState, Ran, Spec, WarpView};

use super::turns::{Turn, Turns};
use super::{Replay, cursor};
use crate::Result;
use crate::metrics::Metric;

/// The model of the warp, or that of a turn, and the lanes that it knows.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) turn: Option<Turn>,
    live: LaneSet,
    ready: LaneSet,
}

impl Replay<'_> {
    /// Who chooses next, where a lane can run: the section made last that has one, else the model of the warp.
    #[inline]
    pub(super) fn asked<const TURNS: bool>(&self) -> Asked {
        let ready = self.live - self.sync.waiting();
        let Some(turns) = self.turns::<TURNS>().filter(|turns| !turns.sections.is_empty()) else {
            return Asked { turn: None, live: self.live, ready };
        };
        for (index, section) in turns.sections.iter().enumerate().rev() {
            let own = turns.own(index) & ready;
            if !own.is_empty() {
                return Asked { turn: Some(turns.turn(index)), live: section.in_turn(), ready: own };
            }
        }
        Asked { turn: None, live: self.live, ready: turns.outside(self.live) & ready }
    }

    /// The turns at locks. Where the caller knows that lanes take none, nothing is looked at: most replays are such.
    #[inline]
    fn turns<const TURNS: bool>(&self) -> Option<&Turns> {
        if TURNS { self.sync.turns() } else { None }
    }

    /// As [`Replay::advance`], under the model of the turn.
    pub(super) fn advance_turn(
        &mut self,
        asked: Asked,
        turn: Turn,
        spec: &Spec,
        how: (bool, bool),
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<Option<LaneSet>> {
        let known = self.sync.turns_mut().and_then(|turns| turns.take_model(turn));
        let mut model = known.unwrap_or_else(|| heuristics::build(spec, self.states.len(), self.program));
        let deadlock = self.advance::<true>(asked, spec, &mut *model, how, metrics)?;
        if let Some(turns) = self.sync.turns_mut() {
            turns.put_back(turn, model);
        }
        Ok(deadlock)
    }

    /// Lets the model that is asked choose, and runs what it chose; or a run of segments, where all live lanes stay
    /// together. The lanes for which it waits for ever, where it says so.
    #[inline]
    pub(super) fn advance<const TURNS: bool>(
        &mut self,
        asked: Asked,
        spec: &Spec,
        model: &mut dyn Heuristic,
        (by_instruction, each_step): (bool, bool),
        metrics: &mut [Box<dyn Metric + '_>],
    ) -> Result<Option<LaneSet>> {
        let takes_runs = !each_step && self.seats.warps().len() == 1;
        if takes_runs
            && asked.ready == self.live
            && self.all_together()
            && model.stays_together(&self.view(asked.ready))
            && self.run_together(model, metrics)?
        {
            return Ok(None);
        }
        let states = self.see::<TURNS>(asked);
        let mut lead = std::mem::take(&mut self.lead);
        let view = self.view_of::<TURNS>(asked, states.as_deref());
        let lanes = match model.choose(&view.with_future(&cursor::Known(&self.cursors))) {
            Choice::Run(lanes) => lanes,
            Choice::Deadlock(lanes) => return Ok(Some(lanes)),
        };
        let group = self.check(spec, lanes, asked.ready)?;
        let runs_on = !TURNS && !by_instruction && takes_runs && model.runs_on(&view, lanes, &mut lead);
        self.lead = lead;
        // Filled in place: moved out of results, it would be read before it is all written.
        let mut ran = Ran::of(lanes);
        if !(runs_on && self.run_on(model, group, &mut ran, metrics)?) {
            self.step(group, &mut ran, model.predicated_off(), by_instruction, metrics)?;
        }
        // A lock that nobody else has or wants is as if it were not there.
        while runs_on && self.met_controls && metrics.is_empty() && !self.lead.tells_run() {
            self.tell_events(metrics);
            let is_still = (self.live, self.live - self.sync.waiting()) == (asked.live, asked.ready);
            let stand = lanes.lowest().and_then(|lane| self.groups.find(self.states[lane.index()].pc));
            let group = stand.filter(|group| is_still && lanes.is_subset(&self.groups[*group].lanes));
            let Some(group) = group.filter(|_| !self.sync.has_opened()) else { break };
            if !self.run_on(model, group, &mut ran, metrics)? {
                break;
            }
        }
        // A turn that has ended asks nothing more.
        if let Some(asked) = self.still::<TURNS>(asked) {
            let states = self.see::<TURNS>(asked);
            model.executed(&self.view_of::<TURNS>(asked, states.as_deref()), &ran);
        }
        Ok(None)
    }

    /// The same model, after its lanes have moved; none where its turn has ended.
    #[inline]
    fn still<const TURNS: bool>(&self, asked: Asked) -> Option<Asked> {
        let ready = self.live - self.sync.waiting();
        let Some(turns) = self.turns::<TURNS>() else { return Some(Asked { live: self.live, ready, ..asked }) };
        let Some(turn) = asked.turn else {
            return Some(Asked { live: self.live, ready: turns.outside(self.live) & ready, ..asked });
        };
        let index = turns.section_of(turn)?;
        Some(Asked { live: turns.sections[index].in_turn(), ready: turns.own(index) & ready, ..asked })
    }

    /// Prepares what a model sees that does not know all lanes, or not as they stand: its groups, and the lanes' states
    /// where they differ.
    #[inline]
    fn see<const TURNS: bool>(&mut self, asked: Asked) -> Option<Vec<LaneState>> {
        if !TURNS {
            return None;
        }
        let turns = self.sync.turns().filter(|turns| !turns.sections.is_empty())?;
        self.seen_groups.clear();
        for (pc, lanes) in self.groups.iter().map(|g| (g.pc, g.lanes & asked.ready)).filter(|(_, l)| !l.is_empty()) {
            self.seen_groups.join(pc, lanes);
        }
        turns.seen_from(asked.turn, asked.live, &self.states)
    }

    #[inline]
    fn view_of<'v, const TURNS: bool>(&'v self, asked: Asked, states: Option<&'v [LaneState]>) -> WarpView<'v> {
        if self.turns::<TURNS>().is_none_or(|turns| turns.sections.is_empty()) {
            return self.view(asked.ready);
        }
        let states = states.unwrap_or(&self.states);
        let nobody = LaneSet::EMPTY;
        WarpView::new(states, &self.seen_groups, asked.ready, asked.live, nobody, self.seats, self.program)
    }
}
