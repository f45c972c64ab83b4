//! What `lockstep report` puts on its page: one program's replays, read as functions, lines, branches and graphs.

mod branches;
mod code;
mod flame;
mod graphs;
mod lane_maps;
mod listing;

use std::path::Path;

use heuristics::Spec;
use replay::metrics::{ActiveLanes, Cause, Causes, Contention, Edges, LaneMapPlan, LaneMaps, MemoryClasses, Traffic};
use replay::view::View;
use replay::{Outcome, Prepared, ReplayOptions, Setting};
use report::page::{CauseText, Page, Program};
use serde_json::Value;
use trace_format::Trace;

use self::code::Code;
use crate::disassembly::{self, SyntaxName};
use crate::json;
use crate::locks;
use crate::selection::{self, Selection};
use crate::source::Source;

/// The warp sizes of the sweep.
const WIDTHS: [usize; 6] = [2, 4, 8, 16, 32, 64];

/// What a page is asked to be about.
pub(crate) struct Request<'a> {
    /// The heuristic that the page is about.
    pub model: &'a Spec,
    /// Those that it is compared with.
    pub models: &'a [Spec],
    /// The part of the trace, and its warps.
    pub selection: &'a Selection,
    /// How instructions are written, where they are to be shown.
    pub syntax: Option<SyntaxName>,
}

/// A page about these programs.
pub(crate) fn page(programs: Vec<Program>) -> Page {
    let colour = |(r, g, b): report::Colour| format!("#{r:02x}{g:02x}{b:02x}");
    let causes = Cause::ALL.iter().zip(report::CAUSE_COLOURS);
    Page {
        tool: format!("lockstep {}", env!("CARGO_PKG_VERSION")),
        causes: causes
            .map(|(cause, (name, shade))| {
                debug_assert_eq!(cause.name(), name, "colours are in the order of the causes");
                CauseText { name: name.to_owned(), colour: colour(shade), about: about(*cause).to_owned() }
            })
            .collect(),
        colours: report::COLOURS.iter().map(|(name, c)| ((*name).to_owned(), colour(*c))).collect(),
        columns: replay::registry::columns().map(|c| (c.name.to_owned(), c.definition.to_owned())).collect(),
        programs,
    }
}

fn about(cause: Cause) -> &'static str {
    match cause {
        Cause::Branch => "the lane went another way at a branch",
        Cause::LoopTripCount => "the lane runs a loop more often, or less often, than the active lanes",
        Cause::CallTarget => "the lane called another function, or returned to another caller",
        Cause::Lock => "the lane waits for a lock, or came apart from the active lanes at one",
        Cause::Barrier => "the lane waits at a barrier, or came apart from the active lanes at one",
        Cause::Schedule => "the lane stood where the active lanes did, and the model ran them apart",
        Cause::Finished => "the lane has come to its end",
        Cause::EmptySeat => "the warp has fewer lanes than seats",
    }
}

/// One program's part of the page.
///
/// # Errors
/// When the trace cannot be read or holds nothing to replay, or the model that the page is about deadlocks on it.
pub(crate) fn program(path: &Path, request: &Request) -> anyhow::Result<Program> {
    let trace = selection::open(path)?;
    let view = request.selection.view(&trace)?;
    let prepared = Prepared::new(&view, true)?;
    let setting = setting(path, request.selection, &trace, &view);
    let taken = view.summary().to_string();

    let specs = specs(request);
    let mut outcomes = counted(&prepared, &specs, request.selection.options())?;
    locks::locate(&mut outcomes, &view, &mut Source::new(&trace));
    let widths = widths(&prepared, request)?;
    let mut code = Code::new(&trace, prepared.program());
    let (plan, mut notes) = plan(&outcomes[0], &code);
    // Its rank is among all, which it was not replayed with this time.
    let (rank, deadlock) = (outcomes[0].rank, outcomes[0].deadlock.clone());
    outcomes[0] = Outcome { rank, deadlock, ..measured(&prepared, request, &trace, plan)? };
    let Some(causes) = outcomes[0].found::<Causes>().cloned() else { return Ok(Program::default()) };

    code.count(&outcomes[0], &causes);
    if let Some(syntax) = request.syntax {
        code.disassemble(&disassembly::fetched(&trace, &causes, syntax));
    }
    let branches = branches::of(&outcomes[0], &causes, &mut code);
    let more_branches = branches.len().saturating_sub(branches::MOST);
    let deadlock = outcomes[0].deadlock.as_ref();
    notes.extend(
        deadlock.map(|d| format!("{d}: what is shown of it is that of lanes that take turns at locks (--locks simt)")),
    );
    let maps = lane_maps::of(&outcomes[0], &trace, &view, &mut code);
    let locks = outcomes[0].found::<Contention>().filter(|c| !c.locks.is_empty());
    let locks = locks.map(|c| locks::to_json(&locks::rows(c, &view, code.source()), None)["rows"].take());
    let graphs = graphs::of(&outcomes[0], &mut code);
    let flame = flame::of(&causes, &mut code);
    notes.extend(code.notes());
    let files = listing::files(code.files(), code.lines(), &mut notes);
    Ok(Program {
        chosen: 0,
        widths: widths.iter().map(|o| json::of(&setting, std::slice::from_ref(o), &taken)).map(result).collect(),
        replayed: json::of(&setting, &outcomes, &taken),
        notes,
        files,
        maps,
        flame,
        graphs,
        locks: locks.unwrap_or_default(),
        more_branches,
        branches: branches.into_iter().take(branches::MOST).collect(),
        functions: code.functions().to_vec(),
        lines: code.lines().to_vec(),
        pcs: code.take_pcs(),
    })
}

/// The chosen model first, then the others, each once.
fn specs(request: &Request) -> Vec<Spec> {
    let others = request.models.iter().filter(|s| s.to_string() != request.model.to_string());
    std::iter::once(request.model).chain(others).cloned().collect()
}

/// The plain counts under every model: the engine is fastest where nothing else is asked of it.
fn counted(prepared: &Prepared, specs: &[Spec], options: ReplayOptions) -> anyhow::Result<Vec<Outcome>> {
    let outcomes = prepared.replay(specs, &options, None, &|_, _| {})?;
    if !outcomes[0].is_complete() {
        let text = format!("{}: choose another model with --heuristic", outcomes[0].status());
        return Err(replay::Error::Request(text).into());
    }
    Ok(outcomes)
}

fn widths(prepared: &Prepared, request: &Request) -> anyhow::Result<Vec<Outcome>> {
    let mut all = Vec::new();
    for size in WIDTHS {
        let options = ReplayOptions { warp_size: Some(size), ..request.selection.options() };
        all.extend(prepared.replay(std::slice::from_ref(request.model), &options, None, &|_, _| {})?);
    }
    Ok(all)
}

/// Which warps get a lane map: those with the most fetches.
fn plan(outcome: &Outcome, code: &Code) -> (LaneMapPlan, Vec<String>) {
    /// More would make the page large.
    const MOST: usize = 8;
    let mut order: Vec<usize> = (0..outcome.warp_fetches.len()).collect();
    order.sort_by_key(|w| std::cmp::Reverse(outcome.warp_fetches[*w]));
    order.truncate(MOST);
    let fetches = outcome.warp_fetches.iter().enumerate();
    let fetches = fetches.map(|(w, n)| order.contains(&w).then_some(*n)).collect();
    let left = outcome.warp_fetches.len().saturating_sub(MOST);
    let note = (left > 0)
        .then(|| format!("the lane map shows the {MOST} warps with the most fetches; {left} others have none"));
    (LaneMapPlan { classes: code.classes(), fetches }, note.into_iter().collect())
}

/// The chosen model once more, with all that the page shows of it.
fn measured(prepared: &Prepared, request: &Request, trace: &Trace, plan: LaneMapPlan) -> anyhow::Result<Outcome> {
    let mut measures = vec![Causes::measure(), Edges::measure(), ActiveLanes::measure(), LaneMaps::measure(plan)];
    measures.extend(trace.meta().memory.then(Traffic::measure));
    measures.extend(trace.meta().memory.then(MemoryClasses::measure));
    measures.extend(request.selection.locks.are_taken().then(Contention::measure));
    let options = ReplayOptions { measures, ..request.selection.options() };
    let outcomes = prepared.replay(std::slice::from_ref(request.model), &options, None, &|_, _| {})?;
    outcomes.into_iter().next().ok_or_else(|| replay::Error::Bug("a replay has no outcome".into()).into())
}

/// The only result of a replay's JSON.
fn result(mut replayed: Value) -> Value {
    replayed["results"][0].take()
}

/// What the results are results of.
pub(crate) fn setting(path: &Path, selection: &Selection, trace: &Trace, view: &View) -> Setting {
    let name = path.file_name().unwrap_or(path.as_os_str());
    Setting {
        trace: name.to_string_lossy().into_owned(),
        command: trace.meta().command.join(" "),
        region: view.summary().region.clone(),
        code: selection.code.to_string(),
        locks: selection.locks.to_string(),
        group: selection.group.to_string(),
        threads: trace.threads().len(),
    }
}
