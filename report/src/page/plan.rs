//! The replays that a page needs.

use attribution::table::{grouped, percent};
use attribution::{Source, locks};
use heuristics::Spec;
use machine::Syntax;
use rayon::prelude::*;
use replay::metrics::Measure;
use replay::suggest::{Search, Suggestions, suggest};
use replay::view::View;
use replay::{Outcome, Prepared, ReplayOptions, Setting};
use trace_format::Trace;
use verdict::{Evidence, Judge, Question, Range, Verdict, as_lanes, collecting, measures, thresholds, warps_of_sample};

use super::program::{self, Code, Parts};
use super::{Program, Replayed, Results};

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

/// Lanes that are parts of threads, with more thread instructions, are too many for all models of a page: a sample of
/// about [`DRAWN`] is shown.
const MANY: u64 = 4_000_000;

/// The thread instructions of a sample.
const DRAWN: u64 = 2_000_000;

/// The fewest warps of a sample, so that none of them decides.
const LEAST_DRAWN: usize = 128;

/// What a page is asked to be about.
pub struct Request<'a> {
    /// The lanes, and the heuristic that the page is about, or a machine's.
    pub question: &'a Question,
    /// What results of those lanes are about.
    pub setting: &'a Setting,
    /// All heuristics of the page, each once, that of the question first.
    pub models: Vec<Spec>,
    /// How instructions are written, where they are to be shown.
    pub syntax: Option<Syntax>,
    /// Whether the whole page is wanted, or only the costs under its model.
    pub is_page: bool,
    /// Some of the lanes ([`sample`]): what the page shows, but for the verdict and the dependences of all. Else all
    /// lanes.
    pub sample: Option<&'a View>,
    /// Called when a replay is done, with how many of its call are done and how many there are.
    pub done: &'a (dyn Fn(usize, usize) + Sync),
}

/// The lanes that a page of these views shows, by their numbers, where all would take long: warps that lie evenly in
/// the run, of each view as many. None where all are shown.
#[must_use]
pub fn sample(question: &Question, views: &[&View]) -> Option<Vec<Vec<usize>>> {
    let parts = views.iter().map(|view| {
        let (lanes, kept) = (view.lanes().len(), view.summary().kept);
        let warp_size = question.options(view).warp_size?;
        let (warps, share) = (lanes.div_ceil(warp_size), DRAWN as f64 / kept.max(1) as f64);
        let wanted = ((warps as f64 * share) as usize).max(LEAST_DRAWN);
        // Threads meet at barriers and locks: some of them alone would run otherwise.
        let are_parts = view.summary().cut.is_some();
        (are_parts && kept > MANY && wanted < warps).then_some((wanted, warp_size))
    });
    // Two programs are compared by as many warps of each.
    let parts: Vec<(usize, usize)> = parts.collect::<Option<_>>()?;
    let wanted = parts.iter().map(|(wanted, _)| *wanted).max()?;
    Some(views.iter().zip(parts).map(|(view, (_, warp_size))| warps_of_sample(view, warp_size, wanted)).collect())
}

/// What the machine's models say of all lanes, and the verdict on them; the efficiency by the first model.
struct OfAll {
    machine: Option<Range>,
    verdict: Option<Verdict>,
    efficiency: Option<f64>,
}

fn of_all((trace, view): (&Trace, &View), question: &Question) -> replay::Result<OfAll> {
    let prepared = Prepared::new(view, true)?;
    let mut options = question.options(view);
    options.measures = measures(&options.measures, view);
    let (models, mut source) = (&question.subject.models[..1], Source::new(trace));
    let outcomes = prepared.replay(models, &options, None, &|_, _| {})?;
    let machine = question.subject.range(&prepared, view, &mut source, outcomes.first(), &options)?;
    let judge = Judge { trace, view, question, model: &models[0], options: &options };
    let verdict = match (&machine, outcomes.first()) {
        (Some(machine), Some(first)) => Some(judge.judge(&prepared, first, machine.figure(), &mut source)?),
        _ => None,
    };
    Ok(OfAll { machine, verdict, efficiency: outcomes.first().and_then(Outcome::simt_efficiency) })
}

/// One program's part of the page.
///
/// # Errors
/// When the trace cannot be read or holds nothing to replay, or the model that the page is about deadlocks on it.
pub fn program((trace, view): (&Trace, &View), request: &Request) -> replay::Result<Program> {
    let Request { question, setting, syntax, is_page, .. } = *request;
    let all = request.sample.map(|_| of_all((trace, view), question)).transpose()?;
    let (whole, view) = (view, request.sample.unwrap_or(view));
    let prepared = Prepared::new(view, true)?;
    let specs = if view.lanes().len() < 2 { &request.models[..1] } else { &request.models[..] };
    let options = question.options(view);
    let work = Work { prepared: &prepared, request, options: &options, instructions: view.summary().kept };
    let (outcomes, (widths, switched)) = rayon::join(
        || work.counted(specs),
        || rayon::join(|| work.widths(view.lanes().len()), || work.switched(specs)),
    );
    let (mut outcomes, widths, switched) = (outcomes?, widths?, switched?);
    locks::locate(&mut outcomes, view, &mut Source::new(trace));
    let judge = Judge { trace, view, question, model: &question.subject.models[0], options: &options };
    let mut source = Source::new(trace);
    let machine = match (&all, is_page) {
        (Some(all), _) => all.machine.clone(),
        (None, true) => question.subject.range(&prepared, view, &mut source, outcomes.first(), &options)?,
        (None, false) => None,
    };
    let code = Code::new(trace, prepared.program());
    let (plan, mut notes) = program::plan(&outcomes[0], &code);
    if specs.len() < request.models.len() {
        notes.push("a single lane runs the same under every model, so the other models were not replayed".to_owned());
    }
    if let Some(all) = &all {
        notes.insert(0, of_sample(&outcomes[0], whole.lanes().len(), all.efficiency));
    }
    let measures = program::measures(trace, question.lanes.locks.are_taken(), plan);
    let evidence = || match &machine {
        Some(machine) if all.is_none() => judge.evidence(&prepared, &outcomes[0], &machine.figure(), &mut source),
        _ => Ok(Evidence::default()),
    };
    let (evidence, (found, measured)) =
        rayon::join(evidence, || rayon::join(|| work.suggestions(&outcomes[0]), || work.measured(measures)));
    let (evidence, found, measured) = (evidence?, found?, measured?);
    // Its rank is among all models, and the others were not replayed with it this time.
    let (rank, deadlock) = (outcomes[0].rank, outcomes[0].deadlock.clone());
    outcomes[0] = Outcome { rank, deadlock, ..measured };
    let of_lanes = |machine: &Range| {
        let figure = machine.figure();
        judge.verdict(prepared.program(), &outcomes[0], figure, &evidence, found.as_ref(), &mut source)
    };
    let verdict = match all {
        Some(all) => all.verdict,
        None => machine.as_ref().map(of_lanes),
    };
    let as_lanes = match is_page && view.summary().cut.is_some() {
        true => Some(as_lanes::of(question, trace, (whole, view), verdict.clone(), &mut source)?),
        false => None,
    };
    let results = Results { setting: setting.clone(), outcomes };
    let replayed = Replayed { results, taken: view.summary().to_string(), machine, verdict, as_lanes };
    let parts = Parts { trace, view, switched: &switched, widths, syntax, suggestions: found.as_ref() };
    Ok(program::program(replayed, parts, code, notes))
}

/// How near a sample is to all lanes.
fn of_sample(sample: &Outcome, lanes: usize, efficiency: Option<f64>) -> String {
    let share = |efficiency: Option<f64>| efficiency.map_or("none".to_owned(), percent);
    format!(
        "below the verdict the page shows {} of {} lanes, in warps drawn evenly from the run: their SIMT efficiency is {}, \
         that of all is {}",
        grouped(sample.lanes as u64),
        grouped(lanes as u64),
        share(sample.simt_efficiency()),
        share(efficiency),
    )
}

/// What a program's replays have in common.
struct Work<'a> {
    prepared: &'a Prepared<'a>,
    request: &'a Request<'a>,
    options: &'a ReplayOptions,
    /// Thread instructions of all lanes.
    instructions: u64,
}

impl Work<'_> {
    /// The plain counts under every model: the engine is fastest where nothing else is asked of it.
    fn counted(&self, specs: &[Spec]) -> replay::Result<Vec<Outcome>> {
        let outcomes = self.prepared.replay(specs, self.options, None, self.request.done)?;
        if !outcomes[0].is_complete() {
            let text = format!("{}: choose another model with --heuristic", outcomes[0].status());
            return Err(replay::Error::Request(text));
        }
        Ok(outcomes)
    }

    /// The model that the page is about, with all that the page shows of it.
    fn measured(&self, measures: Vec<Measure>) -> replay::Result<Outcome> {
        let options = ReplayOptions { measures, ..self.options.clone() };
        let outcomes =
            self.prepared.replay(&self.request.question.subject.models, &options, None, self.request.done)?;
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
        let options = ReplayOptions { measures: program::of_switched(), ..self.options.clone() };
        self.prepared.replay(&first, &options, None, self.request.done)
    }

    /// The model at other warp sizes, up to the first that has a seat for every lane: larger ones run the same.
    fn widths(&self, lanes: usize) -> replay::Result<Vec<Outcome>> {
        let smaller = WIDTHS.iter().filter(|size| **size < lanes).count();
        let sizes = if self.request.is_page { &WIDTHS[..WIDTHS.len().min(smaller + 1)] } else { &[] };
        let replayed = sizes.par_iter().map(|size| {
            let options = ReplayOptions { warp_size: Some(*size), ..self.request.question.replay.clone() };
            self.prepared.replay(&self.request.question.subject.models, &options, None, self.request.done)
        });
        Ok(replayed.collect::<replay::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Where collecting lanes would pay; nothing where trying it would take long.
    fn suggestions(&self, outcome: &Outcome) -> replay::Result<Option<Suggestions>> {
        let trials = usize::try_from(TRIED / outcome.upper_bound.max(1)).unwrap_or(usize::MAX);
        if !self.request.is_page || trials == 0 {
            return Ok(None);
        }
        let subject = &self.request.question.subject;
        let model = &collecting(&subject.models[0]);
        let options = ReplayOptions { warp_size: Some(outcome.warp_size), ..self.request.question.replay.clone() };
        let mut thresholds = thresholds(outcome.warp_size);
        // Where there is time for few trials, waiting for all lanes comes first.
        if trials < 2 * (thresholds.len() + 1) {
            thresholds.clear();
        }
        let most = CANDIDATES.min(trials / (thresholds.len() + 1));
        let unit = subject.unit();
        let search = Search { model, most, thresholds: &thresholds, together: 1, least: LEAST, unit };
        let found = suggest(self.prepared, search, &options, self.request.done)?;
        Ok(found.before.is_complete().then_some(found))
    }
}
