//! The replays that `lockstep report` needs for its page.

use std::path::Path;

use attribution::page::{Code, Replays};
use attribution::{Source, locks, page};
use heuristics::Spec;
use indicatif::ProgressBar;
use rayon::prelude::*;
use replay::metrics::Measure;
use replay::suggest::{Search, Suggestions, suggest};
use replay::{Outcome, Prepared, ReplayOptions};
use report::page::Program;

use crate::shown::verdict::{About, Beside};
use crate::shown::verdict_page;
use crate::typed::machine::Subject;
use crate::typed::models;
use crate::typed::predict;
use crate::typed::selection::{self, Selection};
use crate::typed::syntax::SyntaxName;

/// The warp sizes of the sweep, in ascending order.
const WIDTHS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// The most places that are tried as places to collect lanes; only places that could save [`LEAST`] are tried.
const CANDIDATES: usize = 8;

/// The least share of the fetches that a place must be able to save to be tried; the page shows no smaller gain.
const LEAST: f64 = 0.03;

/// The thread instructions that are replayed for all trials: about half a second of two cores.
const TRIED: u64 = 16_000_000;

/// The thread instructions that are replayed for the models that the page can be switched to.
const SWITCHED: u64 = 10_000_000;

/// What a page is asked to be about.
pub(crate) struct Request<'a> {
    /// The heuristic that the page is about, or a machine's.
    pub subject: &'a Subject,
    /// Those that it is compared with.
    pub models: &'a [Spec],
    /// The part of the trace, and its warps.
    pub selection: &'a Selection,
    /// How instructions are written, where they are to be shown.
    pub syntax: Option<SyntaxName>,
    /// Whether the whole page is wanted, or only the costs under its model.
    pub is_page: bool,
}

/// One program's part of the page; `bar` shows how many replays are done.
///
/// # Errors
/// When the trace cannot be read or holds nothing to replay, or the model that the page is about deadlocks on it.
pub(crate) fn program(path: &Path, request: &Request, bar: &ProgressBar) -> anyhow::Result<Program> {
    let trace = selection::open(path)?;
    let view = request.selection.view(&trace)?;
    let prepared = Prepared::new(&view, true)?;
    let setting = request.selection.setting(path, &trace, &view);
    let mut specs = models::each_once(request.subject.models.iter().chain(request.models));
    let is_alone = view.lanes().len() < 2;
    if is_alone {
        specs.truncate(1);
    }
    let options = request.subject.options(request.selection.options(), &view);
    let work = Work { prepared: &prepared, request, options: &options, instructions: view.summary().kept, bar };
    let (outcomes, (widths, switched)) = rayon::join(
        || work.counted(&specs),
        || rayon::join(|| work.widths(view.lanes().len()), || work.switched(&specs)),
    );
    let (mut outcomes, widths, switched) = (outcomes?, widths?, switched?);
    locks::locate(&mut outcomes, &view, &mut Source::new(&trace));
    let (selection, model) = (request.selection, &request.subject.models[0]);
    let about = About { trace: &trace, view: &view, selection, model, options: &options };
    let mut source = Source::new(&trace);
    let range = match request.is_page {
        true => request.subject.range((&prepared, &view, &mut source), outcomes.first(), &options)?,
        false => None,
    };
    let code = Code::new(&trace, prepared.program());
    let (plan, mut notes) = page::plan(&outcomes[0], &code);
    if is_alone && !request.models.is_empty() {
        notes.push("a single lane runs the same under every model, so the other models were not replayed".to_owned());
    }
    let measures = page::measures(&trace, request.selection.locks.are_taken(), plan);
    let beside = || match &range {
        Some(range) => about.beside(&prepared, (&outcomes[0], &range.figure()), &mut source),
        None => Ok(Beside::default()),
    };
    let (beside, (found, measured)) =
        rayon::join(beside, || rayon::join(|| work.suggestions(&outcomes[0]), || work.measured(measures)));
    let (beside, found, measured) = (beside?, found?, measured?);
    // Its rank is among all models, and the others were not replayed with it this time.
    let (rank, deadlock) = (outcomes[0].rank, outcomes[0].deadlock.clone());
    outcomes[0] = Outcome { rank, deadlock, ..measured };
    let verdict = range.as_ref().map(|range| {
        let of_machine = (&outcomes[0], range.figure());
        about.verdict(prepared.program(), of_machine, (&beside, found.as_ref()), &mut source)
    });
    let replays = Replays {
        trace: &trace,
        view: &view,
        setting: &setting,
        outcomes: &outcomes,
        switched: &switched,
        widths: &widths,
        machine: range.as_ref().map(|range| (range.json(), range.line())),
        verdict: verdict.as_ref(),
        syntax: request.syntax.map(Into::into),
        suggestions: found.as_ref(),
    };
    let mut program = page::program(&replays, code, notes);
    if request.is_page && view.summary().cut.is_some() {
        let as_lanes = verdict_page::of_judged(selection, (&trace, &view), verdict, &mut source)?;
        program.replayed["as_lanes"] = as_lanes.on_page();
    }
    Ok(program)
}

/// What a program's replays have in common.
struct Work<'a> {
    prepared: &'a Prepared<'a>,
    request: &'a Request<'a>,
    options: &'a ReplayOptions,
    /// Thread instructions of all lanes.
    instructions: u64,
    bar: &'a ProgressBar,
}

impl Work<'_> {
    /// Called when replays of one call are done. Replays after the first are counted by the first one's bar.
    fn done(&self) -> impl Fn(usize, usize) + Sync + use<'_> {
        |done, all| {
            if done == 1 {
                self.bar.set_length(self.bar.length().unwrap_or(0) + all as u64);
            }
            self.bar.inc(1);
        }
    }

    /// The plain counts under every model: the engine is fastest where nothing else is asked of it.
    fn counted(&self, specs: &[Spec]) -> anyhow::Result<Vec<Outcome>> {
        let outcomes = self.prepared.replay(specs, self.options, None, &self.done())?;
        if !outcomes[0].is_complete() {
            let text = format!("{}: choose another model with --heuristic", outcomes[0].status());
            return Err(replay::Error::Request(text).into());
        }
        Ok(outcomes)
    }

    /// The model that the page is about, with all that the page shows of it.
    fn measured(&self, measures: Vec<Measure>) -> replay::Result<Outcome> {
        let options = ReplayOptions { measures, ..self.options.clone() };
        let outcomes = self.prepared.replay(&self.request.subject.models, &options, None, &self.done())?;
        outcomes.into_iter().next().ok_or_else(|| replay::Error::Bug("a replay has no outcome".into()))
    }

    /// The models that the page can be switched to: one of each family, then others, while there is time for them.
    fn switched(&self, specs: &[Spec]) -> replay::Result<Vec<Outcome>> {
        if !self.request.is_page {
            return Ok(Vec::new());
        }
        let (mut first, mut others) = (Vec::new(), Vec::new());
        let mut families = vec![specs[0].entry().family];
        for spec in &specs[1..] {
            let family = spec.entry().family;
            if families.contains(&family) {
                others.push(spec.clone());
            } else {
                families.push(family);
                first.push(spec.clone());
            }
        }
        first.append(&mut others);
        first.truncate(usize::try_from(SWITCHED / self.instructions.max(1)).unwrap_or(usize::MAX));
        let options = ReplayOptions { measures: page::of_switched(), ..self.options.clone() };
        self.prepared.replay(&first, &options, None, &self.done())
    }

    /// The model at other warp sizes, up to the first that has a seat for every lane: larger ones run the same.
    fn widths(&self, lanes: usize) -> replay::Result<Vec<Outcome>> {
        let smaller = WIDTHS.iter().filter(|size| **size < lanes).count();
        let sizes = if self.request.is_page { &WIDTHS[..WIDTHS.len().min(smaller + 1)] } else { &[] };
        let replayed = sizes.par_iter().map(|size| {
            let options = ReplayOptions { warp_size: Some(*size), ..self.request.selection.options() };
            self.prepared.replay(&self.request.subject.models, &options, None, &self.done())
        });
        Ok(replayed.collect::<replay::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Where collecting lanes would pay; nothing where trying it would take long.
    fn suggestions(&self, outcome: &Outcome) -> replay::Result<Option<Suggestions>> {
        let trials = usize::try_from(TRIED / outcome.upper_bound.max(1)).unwrap_or(usize::MAX);
        if !self.request.is_page || trials == 0 {
            return Ok(None);
        }
        let model = Spec::parse(predict::MODEL).expect("a model's name");
        let options = ReplayOptions { warp_size: Some(outcome.warp_size), ..self.request.selection.options() };
        let mut thresholds = predict::thresholds(outcome.warp_size);
        // Where there is time for few trials, waiting for all lanes comes first.
        if trials < 2 * (thresholds.len() + 1) {
            thresholds.clear();
        }
        let most = CANDIDATES.min(trials / (thresholds.len() + 1));
        let search = Search { model: &model, most, thresholds: &thresholds, together: 1, least: LEAST };
        let found = suggest(self.prepared, search, &options, &self.done())?;
        Ok(found.before.is_complete().then_some(found))
    }
}
