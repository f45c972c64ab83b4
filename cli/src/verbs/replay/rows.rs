//! `replay` as it is without further options: a row for each model, with what is said about them.

use std::process::ExitCode;

use attribution::table::grouped;
use attribution::{Source, json, locks, lost};
use heuristics::{Prediction, Spec};
use replay::metrics::{Causes, Contention};
use replay::view::{Share, View};
use replay::{Error, Outcome, Prepared, ReplayOptions, ScheduleFile, Setting};
use replay::{LaneOrigin, Locks};
use verdict::grouping::{Beside, beside_usual};
use verdict::reorder::Compared;
use verdict::{Judge, Range, Verdict, forget, measures};

use super::options::Asked;
use crate::exit;
use crate::output::{self, LanesOut, Output, WithColours, is_stdout, print, progress, say, show};
use crate::shown::rows::{Rows, Wanted};
use crate::shown::{self, regions, table};
use crate::typed::by::By;
use crate::typed::{predict, spin};

pub(super) fn run(asked: &Asked, source: &mut Source) -> anyhow::Result<ExitCode> {
    Request::of(asked).run(source, judged)
}

/// What is replayed, and what is shown of it.
pub(super) struct Request<'a> {
    pub(super) asked: &'a Asked<'a>,
    /// What goes to standard output: JSON or tables; none if something else goes there.
    printed: Option<Form>,
    pub(super) wanted: Wanted<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Tables,
}

/// The results under one rule for locks.
pub(super) struct Found {
    pub(super) outcomes: Vec<Outcome>,
    /// What the models of the machine say, if there is one.
    pub(super) range: Option<Range>,
    /// What is to be said about it.
    pub(super) verdict: Option<Verdict>,
    /// What another grouping than the usual one gains and costs.
    pub(super) grouping: Option<Beside>,
    /// What it is to regroup lanes, where they are.
    pub(super) reorder: Option<Compared>,
}

impl Found {
    /// Outcomes about which nothing else is known.
    pub(super) fn of(outcomes: Vec<Outcome>) -> Found {
        Found { outcomes, range: None, verdict: None, grouping: None, reorder: None }
    }
}

/// With more thread instructions than this a replay takes minutes.
const LONG: u64 = 5_000_000_000;

/// Results, as they are shown.
pub(super) struct Replayed {
    pub(super) rule: Locks,
    /// What the view kept of the trace.
    taken: String,
    /// What the view could choose from.
    shares: Vec<Share>,
    pub(super) setting: Setting,
    pub(super) found: Found,
    /// By outcome.
    pub(super) rows: Vec<Rows>,
    /// Where the lanes come from; none of lanes that were regrouped.
    pub(super) origins: Vec<LaneOrigin>,
}

/// Models that obey predictions, and the predictions.
type Predicted = Option<(Vec<Spec>, Vec<Prediction>)>;

pub(super) fn judged(request: &Request, view: &View, source: &mut Source) -> anyhow::Result<Found> {
    let Asked { typed, trace, ref subject, .. } = *request.asked;
    let judges = subject.is_machine() && request.printed.is_some();
    let asked = request.options(view);
    let mut options = asked.clone();
    if judges {
        options.measures = measures(&asked.measures, view);
    }
    let predicted = request.predicted(view, source)?;
    let mut prepared = Prepared::new(view, request.asked.needs_control_flow(&options))?;
    let mut found = Found::of(request.outcomes(&mut prepared, predicted, &options, source)?);
    found.range = subject.range(&prepared, view, source, found.outcomes.first(), &options)?;
    if let (Some(range), Some(first), true) = (&found.range, found.outcomes.first(), judges) {
        let question = &typed.selection.question_with(trace, view.locks(), subject.clone())?;
        let judge = Judge { trace, view, question, model: &subject.models[0], options: &options };
        found.verdict = Some(judge.judge(&prepared, first, range.figure(), source)?);
    }
    forget(&mut found.outcomes, &asked.measures);
    if request.printed == Some(Form::Tables) {
        found.grouping = beside_usual(&prepared, trace, view, &subject.models, &options)?;
    }
    Ok(found)
}

impl<'a> Request<'a> {
    pub(super) fn of(asked: &'a Asked<'a>) -> Request<'a> {
        let typed = asked.typed;
        let lost = match typed.by {
            Some(By::Lost(by)) => Some(by),
            Some(By::Lock | By::Region) => None,
            None => typed.annotate.is_some().then_some(lost::By::Line),
        };
        let tables = ![&typed.csv, &typed.schedule, &typed.lanes_out].into_iter().any(is_stdout);
        let printed = if typed.json { Some(Form::Json) } else { tables.then_some(Form::Tables) };
        let wanted = Wanted {
            lost,
            locks: typed.by == Some(By::Lock),
            memory: typed.memory_by.map(|by| by.0),
            regions: typed.by == Some(By::Region),
            annotate: typed.annotate.as_deref(),
            syntax: typed.syntax.map(Into::into),
            top: typed.top,
        };
        Request { asked, printed, wanted }
    }

    /// How lanes are replayed, with the measures that were asked for.
    pub(super) fn options(&self, view: &View) -> ReplayOptions {
        let mut options = self.asked.typed.selection.options();
        options.measures.clone_from(&self.asked.measures);
        options.measures.extend(self.wanted.lost.map(|_| Causes::measure()));
        options.measures.extend(self.wanted.locks.then(Contention::measure));
        self.asked.subject.options(options, view)
    }

    /// The predictions that were typed.
    pub(super) fn predicted(&self, view: &View, source: &mut Source) -> replay::Result<Predicted> {
        let Asked { typed, trace, subject, .. } = self.asked;
        if typed.predict.is_empty() {
            return Ok(None);
        }
        let obedient = predict::obedient(&subject.models).map_err(Error::Request)?;
        Ok(Some((obedient, predict::predictions(&typed.predict, trace, view.segments(), source)?)))
    }

    /// The results of the models, then those of models that obey predictions. Every fetch is written where that is
    /// asked for.
    pub(super) fn outcomes(
        &self,
        prepared: &mut Prepared,
        predicted: Predicted,
        options: &ReplayOptions,
        source: &Source,
    ) -> replay::Result<Vec<Outcome>> {
        let Asked { typed, subject, .. } = self.asked;
        let bar = progress();
        let draw = |n: usize, all: usize| {
            bar.set_length(all as u64);
            bar.set_position(n as u64);
        };
        let done = self.asked.told.unwrap_or(&draw);
        let mut out = typed.schedule.as_deref().map(Output::create).transpose()?;
        let mut replay = |prepared: &Prepared, models: &[Spec]| match &mut out {
            Some(out) => {
                let path = out.path();
                prepared.replay(models, options, Some(ScheduleFile { out, path: &path }), done)
            }
            None => prepared.replay(models, options, None, done),
        };
        let mut outcomes = replay(prepared, &subject.models)?;
        if let Some((obedient, predictions)) = predicted {
            prepared.predict(&predictions);
            predict::check(&prepared.program().predictions, source)?;
            let mut predicted = replay(prepared, &obedient)?;
            predicted.iter_mut().for_each(|outcome| outcome.heuristic.push_str(&predict::label(&typed.predict)));
            outcomes.extend(predicted);
            // The machine's other models, and what a verdict takes, are without them.
            prepared.predict(&[]);
        }
        if let Some(out) = out {
            out.finish()?;
        }
        bar.finish_and_clear();
        Ok(outcomes)
    }

    /// Replays under each rule for locks, and shows the results.
    pub(super) fn run(
        &self,
        source: &mut Source,
        replay: fn(&Request, &View, &mut Source) -> anyhow::Result<Found>,
    ) -> anyhow::Result<ExitCode> {
        let all = self.replayed(source, replay)?;
        source.notes().iter().for_each(|note| say!("lockstep: {note}"));
        self.show(&all)?;
        // A machine has a figure even so: no heuristic was asked for.
        let deadlocks = |found: &Found| found.outcomes.iter().all(|o| o.deadlock().is_some());
        let none_ran = all.iter().all(|r| r.found.range.is_none() && deadlocks(&r.found));
        Ok(if none_ran { ExitCode::from(exit::DEADLOCK) } else { ExitCode::SUCCESS })
    }

    /// The results under each rule for locks.
    pub(super) fn replayed(
        &self,
        source: &mut Source,
        replay: fn(&Request, &View, &mut Source) -> anyhow::Result<Found>,
    ) -> anyhow::Result<Vec<Replayed>> {
        let Asked { typed, trace, .. } = *self.asked;
        let mut lanes_out = typed.lanes_out.as_deref().map(LanesOut::create).transpose()?;
        let mut all = Vec::new();
        for rule in typed.selection.locks.rules() {
            let view = typed.selection.view_with(trace, *rule)?;
            let taken = view.summary().to_string();
            if self.printed != Some(Form::Json) {
                say!("{taken}");
                if view.summary().kept > LONG {
                    say!(
                        "lockstep: {} thread instructions take long to replay: `trace --limit 100M`, or --start and \
                         --stop, record a part of the run",
                        grouped(view.summary().kept)
                    );
                }
                spin::advice(trace, view.summary()).into_iter().for_each(|advice| say!("{advice}"));
            }
            let mut found = replay(self, &view, source)?;
            let mut setting = typed.selection.setting(&typed.trace, trace, &view);
            if let Some(compared) = &found.reorder {
                setting.group = compared.reorder.group();
            }
            if let (Some(out), Some(outcome)) = (&mut lanes_out, found.outcomes.first()) {
                out.add(&rule.to_string(), found.reorder.is_none().then(|| view.lanes()), outcome)?;
            }
            locks::locate(&mut found.outcomes, &view, source);
            found.outcomes.iter_mut().for_each(|o| o.locks = Some(rule.to_string()));
            let rows = found.outcomes.iter().map(|o| self.wanted.of(o, (trace, &view), source)).collect();
            let shares = view.summary().shares.clone();
            let origins = if found.reorder.is_none() { view.lanes().to_vec() } else { Vec::new() };
            all.push(Replayed { rule: *rule, taken, shares, setting, found, rows, origins });
        }
        lanes_out.map(LanesOut::finish).transpose()?;
        Ok(all)
    }

    fn show(&self, all: &[Replayed]) -> anyhow::Result<()> {
        if let Some(path) = &self.asked.typed.csv {
            let outcomes: Vec<Outcome> = all.iter().flat_map(|r| r.found.outcomes.iter().cloned()).collect();
            output::write_rows(path, &all[0].setting, &outcomes)?;
        }
        match self.printed {
            Some(Form::Json) => print(&format!("{:#}\n", self.json(all)), WithColours::No)?,
            Some(Form::Tables) => show(&self.tables(all)?, WithColours::Yes)?,
            None => {}
        }
        Ok(())
    }

    pub(super) fn json(&self, all: &[Replayed]) -> serde_json::Value {
        let wanted = &self.wanted;
        let mut results = Vec::new();
        for Replayed { setting, taken, found, rows, .. } in all {
            for (outcome, rows) in found.outcomes.iter().zip(rows) {
                let mut result = json::result(setting, outcome);
                if let (Some(by), Some(rows), None) = (wanted.lost, &rows.lost, wanted.annotate) {
                    result["by"] = json::lost(by, rows, outcome.lost_slots(), outcome.warp_size, wanted.top);
                }
                if let Some(rows) = &rows.locks {
                    result["by"] = json::locks(rows, wanted.top);
                }
                if let (Some(by), Some(rows)) = (wanted.memory, &rows.memory) {
                    result["memory_by"] = json::memory(by, rows, wanted.top);
                }
                if all.len() > 1 {
                    result["view"] = taken.as_str().into();
                }
                results.push(result);
            }
        }
        let Replayed { setting, taken, shares, found, .. } = &all[0];
        let mut whole = json::of(setting, &[], taken);
        let parts = [
            ("regions", wanted.regions.then(|| regions::to_json(shares, wanted.top))),
            ("machine", found.range.as_ref().map(Range::json)),
            ("reorder", found.reorder.as_ref().map(shown::reorder::to_json)),
            ("verdict", found.verdict.as_ref().map(Verdict::json)),
            ("results", Some(results.into())),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, part?))).for_each(|(name, part)| whole[name] = part);
        whole
    }

    fn tables(&self, all: &[Replayed]) -> replay::Result<String> {
        let wanted = &self.wanted;
        let mut text = String::new();
        for Replayed { rule, found, rows, shares, .. } in all {
            let outcomes = &found.outcomes;
            if all.len() > 1 {
                let between = if text.is_empty() { "" } else { "\n" };
                text += &format!("{between}locks: {rule}\n");
            }
            if let Some(verdict) = &found.verdict {
                text += &format!("{}\n\n", verdict.lines().join("\n"));
            }
            text += &format!("{}{}\n", table::of(outcomes), table::legend(outcomes));
            if let Some(range) = &found.range {
                text += &format!("\n{}", range.line());
                let counts = outcomes.first().and_then(|outcome| range.counts(outcome));
                text += &counts.map_or_else(String::new, |counts| format!("{counts}\n"));
            }
            text += &table::measured(outcomes);
            text += &found.grouping.as_ref().map_or_else(String::new, shown::grouping::beside);
            text += &found.reorder.as_ref().map_or_else(String::new, shown::reorder::text);
            if wanted.regions {
                text += &format!("\n{}", regions::table(shares, wanted.top));
            }
            for (outcome, rows) in outcomes.iter().zip(rows) {
                text += &wanted.tables(outcome, rows)?;
            }
        }
        Ok(text)
    }
}
