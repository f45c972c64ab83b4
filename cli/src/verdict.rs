//! The verdict of `replay`: what is replayed beside the machine's model, so that the worst places have a remedy.

use attribution::Source;
use attribution::verdict::{Case, Evidence, Figure, Items, Verdict};
use heuristics::Spec;
use replay::metrics::{Causes, Contention, Measure};
use replay::view::{Locks, View};
use replay::{Grouping, Outcome, Prepared, ReplayOptions};
use trace_format::Trace;

use crate::lanes::{self, LaneKind};
use crate::machine::FEW;
use crate::selection::Selection;

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

impl About<'_> {
    /// The verdict on an outcome of the machine's model. Beside it are replayed, where few thread instructions are:
    /// the lanes grouped by similarity, and the iterations of OpenMP's loops as lanes.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn verdict(
        &self,
        prepared: &Prepared,
        outcome: &Outcome,
        figure: Figure,
        source: &mut Source,
    ) -> replay::Result<Verdict> {
        let are_few = self.view.summary().kept <= FEW;
        let plain = ReplayOptions { measures: Vec::new(), ..self.options.clone() };
        let loops = if are_few { self.view.loops_ran(outcome.warp_size)? } else { Vec::new() };
        let regrouped = match are_few && outcome.warps > 1 && plain.grouping != Grouping::Similarity {
            true => {
                let options = ReplayOptions { grouping: Grouping::Similarity, ..plain.clone() };
                prepared.replay(std::slice::from_ref(self.model), &options, None, &|_, _| {})?.into_iter().next()
            }
            false => None,
        };
        let items = if are_few { self.iterations(&plain)? } else { None };
        let evidence =
            Evidence { loops: &loops, regrouped: regrouped.as_ref(), items: items.as_ref(), ..Evidence::default() };
        let (trace, view, program) = (self.trace, self.view, prepared.program());
        Ok(Verdict::of(&Case { trace, view, program, outcome, figure, evidence }, source))
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
