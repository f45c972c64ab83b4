//! The verdict of `replay`: what is replayed beside the machine's model, so that the worst places have a remedy.

use attribution::Source;
use attribution::verdict::{Case, Evidence, Figure, Items, Verdict};
use heuristics::{Program, Spec};
use replay::metrics::{ActiveLanes, Causes, Contention, Measure};
use replay::suggest::{Estimate, Search, Suggestions, passes};
use replay::view::{Locks, LoopRan, View};
use replay::{Grouping, Outcome, Prepared, ReplayOptions};
use trace_format::Trace;

use crate::lanes::{self, LaneKind};
use crate::machine::FEW;
use crate::predict;
use crate::selection::Selection;

/// Of so many branches with a call on both sides it is replayed what one call for both would gain.
const BRANCHES: usize = 4;

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

/// What was replayed beside the machine's model, where few thread instructions are.
#[derive(Default)]
pub(crate) struct Beside {
    loops: Vec<LoopRan>,
    /// The lanes grouped by similarity.
    regrouped: Option<Outcome>,
    /// Pieces of work as lanes.
    items: Option<Items>,
    /// What passes of the compiler would gain, and the replay that they would gain it of.
    gains: Option<(Outcome, Vec<Estimate>)>,
}

impl About<'_> {
    /// What a verdict on an outcome of the machine's model takes beside it. Predictions are taken back.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn beside(&self, prepared: &mut Prepared, outcome: &Outcome) -> replay::Result<Beside> {
        if self.view.summary().kept > FEW {
            return Ok(Beside::default());
        }
        let plain = ReplayOptions { measures: Vec::new(), ..self.options.clone() };
        let regrouped = match outcome.warps > 1 && plain.grouping != Grouping::Similarity {
            true => {
                let options = ReplayOptions { grouping: Grouping::Similarity, ..plain.clone() };
                prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next()
            }
            false => None,
        };
        Ok(Beside {
            loops: self.view.loops_ran(outcome.warp_size)?,
            regrouped,
            items: self.iterations(&plain)?,
            gains: if outcome.lanes > 1 { of_passes(prepared, &plain)? } else { None },
        })
    }

    /// The verdict on an outcome of the machine's model.
    pub(crate) fn verdict(
        &self,
        program: &Program,
        (outcome, figure): (&Outcome, Figure),
        (beside, suggestions): (&Beside, Option<&Suggestions>),
        source: &mut Source,
    ) -> Verdict {
        let Beside { loops, regrouped, items, gains } = beside;
        let (before, estimates) = gains.as_ref().map_or((None, &[][..]), |(before, all)| (Some(before), &all[..]));
        let (regrouped, items) = (regrouped.as_ref(), items.as_ref());
        let evidence = Evidence { estimates, before, suggestions, loops, regrouped, items };
        Verdict::of(&Case { trace: self.trace, view: self.view, program, outcome, figure, evidence }, source)
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
        let beside = self.beside(prepared, outcome)?;
        Ok(self.verdict(prepared.program(), (outcome, figure), (&beside, None), source))
    }

    /// The iterations of OpenMP's loops as lanes, where its threads are lanes now.
    fn iterations(&self, plain: &ReplayOptions) -> replay::Result<Option<Items>> {
        let summary = self.view.summary();
        if summary.cut.is_some() || !summary.region.starts_with("OpenMP parallel regions") {
            return Ok(None);
        }
        let selection = Selection { lanes: Some(LaneKind::Iterations), ..self.selection.clone() };
        let Some(rule) = selection.locks.rules().first() else { return Ok(None) };
        let Ok(view) = selection.view_with(self.trace, *rule) else { return Ok(None) };
        let prepared = Prepared::new(&view, true)?;
        let options = ReplayOptions { warp_size: Some(lanes::WARP), ..plain.clone() };
        let outcome = prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next();
        let of = |outcome: &Outcome| outcome.active_efficiency().or_else(|| outcome.simt_efficiency());
        Ok(outcome.filter(|o| o.is_complete() && o.lanes > 1).and_then(|outcome| {
            Some(Items {
                typed: "--lanes iterations".to_owned(),
                what: "the iterations".to_owned(),
                lanes: outcome.lanes,
                warp_size: outcome.warp_size,
                efficiency: of(&outcome)?,
            })
        }))
    }
}

/// What passes of the compiler would gain, and the replay that they would gain it of; none where that does not end.
fn of_passes(prepared: &mut Prepared, plain: &ReplayOptions) -> replay::Result<Option<(Outcome, Vec<Estimate>)>> {
    let model = Spec::parse(predict::MODEL).expect("a model's name");
    let counting = ReplayOptions { measures: vec![ActiveLanes::measure()], ..plain.clone() };
    let before = prepared.replay(std::slice::from_ref(&model), &counting, None, &|_, _| {})?.into_iter().next();
    let Some(before) = before.filter(Outcome::is_complete) else { return Ok(None) };
    let search = Search { model: &model, most: BRANCHES, thresholds: &[], together: 1 };
    let estimates = passes(prepared, search, plain, &before)?;
    Ok(Some((before, estimates)))
}
