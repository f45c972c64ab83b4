//! The verdict of `replay`: which further replays it takes, so that the worst places have a remedy.

use std::collections::BTreeMap;

use attribution::Source;
use attribution::verdict::balance::{Balance, Schedule};
use attribution::verdict::{Case, Evidence, Figure, Items, Verdict};
use heuristics::{Program, Spec};
use replay::metrics::{Causes, Contention, Measure};
use replay::suggest::{Estimate, Search, Suggestions, at_branches};
use replay::view::{Locks, LoopRan, Region, View};
use replay::{Grouping, Outcome, Prepared, ReplayOptions};
use trace_format::{ThreadId, Trace};

use crate::shown::items::{self, Candidate};
use crate::typed::lanes;
use crate::typed::machine::FEW;
use crate::typed::predict;
use crate::typed::selection::Selection;

/// The most branches with a call on both sides for which the gain of a single call is replayed.
const BRANCHES: usize = 4;

/// The least share of the lost lane-slots that such a branch must lose.
const WORTH_TRYING: f64 = 0.02;

/// What a verdict is about.
pub(crate) struct About<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) view: &'a View,
    pub(crate) selection: &'a Selection,
    pub(crate) model: &'a Spec,
    pub(crate) options: &'a ReplayOptions,
}

/// What is measured for a verdict: what was asked for, what lane-slots are lost to, and what locks cost.
pub(crate) fn measures(asked: &[Measure], view: &View, rule: Locks) -> Vec<Measure> {
    let mut all = asked.to_vec();
    if view.lanes().len() > 1 {
        let of_locks = rule.are_taken().then(Contention::measure);
        for measure in std::iter::once(Causes::measure()).chain(of_locks) {
            if !all.iter().any(|known| known.name() == measure.name()) {
                all.push(measure);
            }
        }
    }
    all
}

/// Takes out of outcomes what was measured for the verdict alone.
pub(crate) fn forget(outcomes: &mut [Outcome], asked: &[Measure]) {
    let is_asked = |measure: &Measure| asked.iter().any(|known| known.name() == measure.name());
    for outcome in outcomes {
        if !is_asked(&Causes::measure()) {
            outcome.findings.forget::<Causes>();
        }
        if !is_asked(&Contention::measure()) {
            outcome.findings.forget::<Contention>();
        }
    }
}

/// What was replayed besides the machine's model, if there are few thread instructions.
#[derive(Default)]
pub(crate) struct Beside {
    loops: Vec<LoopRan>,
    /// The lanes grouped by similarity.
    regrouped: Option<Outcome>,
    /// What passes of the compiler would gain.
    estimates: Vec<Estimate>,
    /// Pieces of work as lanes, and the verdict on those.
    items: Option<(Items, Option<Verdict>)>,
}

impl About<'_> {
    /// What a verdict on an outcome of the machine's model takes besides the outcome.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn beside(
        &self,
        prepared: &Prepared,
        (outcome, figure): (&Outcome, &Figure),
        source: &mut Source,
    ) -> replay::Result<Beside> {
        if self.view.summary().kept > FEW {
            return Ok(Beside::default());
        }
        let mut beside = self.of_lanes(prepared, outcome)?;
        beside.items = self.items(&beside.loops, (outcome, figure), source)?;
        Ok(beside)
    }

    /// The further results for the same lanes.
    fn of_lanes(&self, prepared: &Prepared, outcome: &Outcome) -> replay::Result<Beside> {
        let plain = self.plain();
        let regrouped = || -> replay::Result<Option<Outcome>> {
            if outcome.warps < 2 || plain.grouping == Grouping::Similarity {
                return Ok(None);
            }
            let options = ReplayOptions { grouping: Grouping::Similarity, ..plain.clone() };
            Ok(prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next())
        };
        let model = Spec::parse(predict::MODEL).expect("a model's name");
        let search = Search { model: &model, most: BRANCHES, thresholds: &[], together: 1, least: 0.0 };
        let estimates = || at_branches(prepared, search, &plain, (outcome, WORTH_TRYING));
        let loops = || self.view.loops_ran(outcome.warp_size);
        let (regrouped, (estimates, loops)) = rayon::join(regrouped, || rayon::join(estimates, loops));
        Ok(Beside { loops: loops?, regrouped: regrouped?, estimates: estimates?, items: None })
    }

    fn plain(&self) -> ReplayOptions {
        ReplayOptions { measures: Vec::new(), ..self.options.clone() }
    }

    /// The verdict on an outcome of the machine's model.
    pub(crate) fn verdict(
        &self,
        program: &Program,
        (outcome, figure): (&Outcome, Figure),
        (beside, suggestions): (&Beside, Option<&Suggestions>),
        source: &mut Source,
    ) -> Verdict {
        let Beside { loops, regrouped, items, estimates } = beside;
        let (regrouped, of_items) = (regrouped.as_ref(), items.as_ref().map(|(items, _)| items));
        let evidence = Evidence { estimates, suggestions, loops, regrouped, items: of_items };
        let case = Case { trace: self.trace, view: self.view, program, outcome, figure, evidence };
        let verdict = Verdict::of(&case, source);
        match items {
            Some((_, Some(of_items))) if !verdict.holds => verdict.with_places_of(of_items),
            _ => verdict,
        }
    }

    /// The verdict with what it takes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn judge(
        &self,
        prepared: &mut Prepared,
        (outcome, figure): (&Outcome, Figure),
        source: &mut Source,
    ) -> replay::Result<Verdict> {
        let beside = self.beside(prepared, (outcome, &figure), source)?;
        Ok(self.verdict(prepared.program(), (outcome, figure), (&beside, None), source))
    }

    /// Pieces of work as lanes: OpenMP's iterations. Else, where lanes are threads: pieces of work of a thread that is
    /// alone, or of threads that are uneven and took pieces whenever they were free.
    fn items(
        &self,
        loops: &[LoopRan],
        (outcome, figure): (&Outcome, &Figure),
        source: &mut Source,
    ) -> replay::Result<Option<(Items, Option<Verdict>)>> {
        let summary = self.view.summary();
        let balance = Balance::of(self.trace, self.view, outcome);
        let takes_work =
            balance.is_some_and(|b| b.schedule == Some(Schedule::Go) || b.is_uneven() && b.schedule.is_some());
        let is_needed = outcome.lanes < 2 || takes_work;
        if let Some(candidate) = items::iterations(self.view, self.selection) {
            return self.of_candidate(candidate, (0, figure), is_needed.then_some(source));
        }
        let is_threads = summary.cut.is_none();
        if !is_threads || self.trace.threads().len() < 2 || !is_needed {
            return Ok(None);
        }
        // A single lane is a task that holds others: what other threads took of it is not in it.
        let whole = match outcome.lanes < 2 && self.selection.region == Region::Auto {
            true => {
                let selection = Selection { region: Region::All, ..self.selection.clone() };
                Some(selection.view_with(self.trace, self.selection.locks.rules()[0])?)
            }
            false => None,
        };
        let least = items::TIMES * outcome.lanes.max(2);
        for candidate in items::calls(self.trace, whole.as_ref().unwrap_or(self.view), self.selection)? {
            if let Some(found) = self.of_candidate(candidate, (least, figure), Some(source))? {
                return Ok(Some(found));
            }
        }
        match items::turns(self.view, loops, self.selection, source) {
            Some(candidate) => self.of_candidate(candidate, (least, figure), Some(source)),
            None => Ok(None),
        }
    }

    /// Pieces of work as lanes, if there are at least so many; with a verdict on them where a source is given.
    fn of_candidate(
        &self,
        Candidate { selection, typed, what }: Candidate,
        (least, figure): (usize, &Figure),
        source: Option<&mut Source>,
    ) -> replay::Result<Option<(Items, Option<Verdict>)>> {
        let rule = self.selection.locks.rules()[0];
        let Ok(view) = selection.view_with(self.trace, rule) else { return Ok(None) };
        if view.lanes().len() < least.max(2) {
            return Ok(None);
        }
        let warp_size = self.selection.warp_size().unwrap_or(lanes::WARP.min(view.lanes().len()));
        let options =
            ReplayOptions { warp_size: Some(warp_size), measures: measures(&[], &view, rule), ..self.plain() };
        let prepared = Prepared::new(&view, true)?;
        let outcome = prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next();
        let Some(outcome) = outcome.filter(Outcome::is_complete) else { return Ok(None) };
        let Some(efficiency) = outcome.active_efficiency().or_else(|| outcome.simt_efficiency()) else {
            return Ok(None);
        };
        let dealt = spread_over_threads(&view);
        let items = Items { typed, what, lanes: outcome.lanes, warp_size, efficiency, dealt };
        let Some(source) = source else { return Ok(Some((items, None))) };
        let about = About { view: &view, selection: &selection, options: &options, ..*self };
        let beside = about.of_lanes(&prepared, &outcome)?;
        let figure = Figure { efficiency, least: efficiency, most: efficiency, ..figure.clone() };
        let verdict = about.verdict(prepared.program(), (&outcome, figure), (&beside, None), source);
        Ok(Some((items, Some(verdict))))
    }
}

/// The share of the lanes that the busiest thread ran, times the number of threads: 1 where all ran as many.
fn spread_over_threads(view: &View) -> f64 {
    let mut of_thread: BTreeMap<ThreadId, usize> = BTreeMap::new();
    view.lanes().iter().for_each(|lane| *of_thread.entry(lane.thread).or_default() += 1);
    let most = of_thread.values().max().copied().unwrap_or(0);
    most as f64 * of_thread.len() as f64 / view.lanes().len().max(1) as f64
}
