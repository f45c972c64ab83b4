//! What `lockstep report` is asked for: which replays its page is made of.

use std::path::Path;

use attribution::page::{Code, Replays};
use attribution::{Source, locks, page};
use heuristics::Spec;
use replay::suggest::{Search, Suggestions, suggest};
use replay::{Outcome, Prepared, ReplayOptions};
use report::page::Program;

use crate::machine::{FEW, Subject};
use crate::selection::{self, Selection};
use crate::syntax::SyntaxName;
use crate::verdict::{About, Beside};
use crate::{models, predict};

/// The warp sizes of the sweep.
const WIDTHS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// How many places are tried at which lanes might be collected.
const CANDIDATES: usize = 8;

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
}

/// One program's part of the page.
///
/// # Errors
/// When the trace cannot be read or holds nothing to replay, or the model that the page is about deadlocks on it.
pub(crate) fn program(path: &Path, request: &Request) -> anyhow::Result<Program> {
    let trace = selection::open(path)?;
    let view = request.selection.view(&trace)?;
    let mut prepared = Prepared::new(&view, true)?;
    let setting = request.selection.setting(path, &trace, &view);
    let specs = models::each_once(request.subject.models.iter().chain(request.models));
    let options = request.subject.options(request.selection.options(), &view);
    let mut outcomes = counted(&prepared, &specs, &options)?;
    locks::locate(&mut outcomes, &view, &mut Source::new(&trace));
    let widths = widths(&prepared, request)?;
    let found = suggestions(&mut prepared, request, &outcomes[0])?;
    let (selection, model) = (request.selection, &request.subject.models[0]);
    let about = About { trace: &trace, view: &view, selection, model, options: &options };
    let mut source = Source::new(&trace);
    let range = request.subject.range((&prepared, &view, &mut source), outcomes.first(), &options)?;
    let beside = match &range {
        Some(range) => about.beside(&mut prepared, (&outcomes[0], &range.figure()), &mut source)?,
        None => Beside::default(),
    };
    let code = Code::new(&trace, prepared.program());
    let (plan, notes) = page::plan(&outcomes[0], &code);
    let measuring = ReplayOptions {
        measures: page::measures(&trace, request.selection.locks.are_taken(), plan),
        ..options.clone()
    };
    let measured = prepared.replay(&request.subject.models, &measuring, None, &|_, _| {})?;
    let measured = measured.into_iter().next().ok_or_else(|| replay::Error::Bug("a replay has no outcome".into()))?;
    // Its rank is among all, which it was not replayed with this time.
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
        widths: &widths,
        machine: range.as_ref().map(|range| (range.json(), range.line())),
        verdict: verdict.as_ref(),
        syntax: request.syntax.map(Into::into),
        suggestions: found.as_ref(),
    };
    Ok(page::program(&replays, code, notes))
}

/// The plain counts under every model: the engine is fastest where nothing else is asked of it.
fn counted(prepared: &Prepared, specs: &[Spec], options: &ReplayOptions) -> anyhow::Result<Vec<Outcome>> {
    let outcomes = prepared.replay(specs, options, None, &|_, _| {})?;
    if !outcomes[0].is_complete() {
        let text = format!("{}: choose another model with --heuristic", outcomes[0].status());
        return Err(replay::Error::Request(text).into());
    }
    Ok(outcomes)
}

/// Where collecting lanes would pay; nothing where searching for it took long.
fn suggestions(prepared: &mut Prepared, request: &Request, outcome: &Outcome) -> anyhow::Result<Option<Suggestions>> {
    if outcome.upper_bound > FEW {
        return Ok(None);
    }
    let model = Spec::parse(predict::MODEL).expect("a model's name");
    let options = ReplayOptions { warp_size: Some(outcome.warp_size), ..request.selection.options() };
    let thresholds = predict::thresholds(outcome.warp_size);
    let search = Search { model: &model, most: CANDIDATES, thresholds: &thresholds, together: 1 };
    let found = suggest(prepared, search, &options, &|_, _| {})?;
    Ok(found.before.is_complete().then_some(found))
}

fn widths(prepared: &Prepared, request: &Request) -> anyhow::Result<Vec<Outcome>> {
    let mut all = Vec::new();
    for size in WIDTHS {
        let options = ReplayOptions { warp_size: Some(size), ..request.selection.options() };
        all.extend(prepared.replay(&request.subject.models, &options, None, &|_, _| {})?);
    }
    Ok(all)
}
