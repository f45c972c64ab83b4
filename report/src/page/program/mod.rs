//! What `lockstep report` puts on its page: one program's replays, read as functions, lines, branches and graphs.

mod branches;
mod code;
mod flame;
mod graphs;
mod lane_maps;
mod listing;
mod suggestions;
mod switched;

use std::collections::BTreeMap;

use attribution::unlike::{Facts, unlike};
use attribution::{Versions, Was, disassembly, locks};
use heuristics::{Family, Spec};
use machine::Syntax;
use replay::Outcome;
use replay::metrics::{
    ActiveLanes, Cause, Causes, Contention, Edges, GpuMemory, LaneMapPlan, LaneMaps, Measure, MemoryClasses, Traffic,
};
use replay::suggest::Suggestions;
use replay::view::View;
use trace_format::Trace;

use crate::page::{CauseText, FamilyText, Line, ModelText, Page, Program, Replayed, Results};

pub(super) use self::code::Code;

/// A page about these programs, which this tool made.
#[must_use]
pub fn page(tool: String, programs: Vec<Program>) -> Page {
    let of = |program: &Program| {
        let Results { setting, outcomes } = &program.replayed.results;
        outcomes.get(program.chosen).map_or_else(Facts::default, |chosen| Facts::of(setting, chosen))
    };
    let facts: Vec<Facts> = programs.iter().map(of).collect();
    Page {
        tool,
        command: String::new(),
        was: if let [before, after] = &programs[..] { was(before, after) } else { BTreeMap::new() },
        unlike: if let [before, after] = &facts[..] { unlike(before, after) } else { Vec::new() },
        causes: causes(),
        families: Family::ALL.iter().map(|family| family_text(*family)).collect(),
        models: models(&programs),
        columns: replay::registry::columns().map(|c| (c.name.to_owned(), c.definition.to_owned())).collect(),
        programs,
    }
}

/// What lines after were called before, where that is another name; nothing of those that are new.
fn was(before: &Program, after: &Program) -> BTreeMap<String, String> {
    let paths = |program: &Program| program.files.iter().map(|file| file.path.clone()).collect();
    let versions = Versions::of(&paths(before), &paths(after));
    let was = |line: &Line| {
        let file = after.files.get(line.file?)?.path.clone();
        let of = attribution::Line { file, line: line.number, functions: Vec::new() };
        let was = match versions.was(&of) {
            Was::At(label) => label,
            Was::New => String::new(),
        };
        (was != line.label).then(|| (line.label.clone(), was))
    };
    after.lines.iter().filter_map(was).collect()
}

/// The causes of lost lane-slots, in the order of all lists by cause.
#[must_use]
pub fn causes() -> Vec<CauseText> {
    let text = |cause: &Cause| CauseText {
        name: cause.name().to_owned(),
        colour: colour(crate::cause_colour(cause.name())),
        about: about(*cause).to_owned(),
    };
    Cause::ALL.iter().map(text).collect()
}

fn colour((r, g, b): crate::Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn family_text(family: Family) -> FamilyText {
    FamilyText {
        name: family.name().to_owned(),
        colour: colour(crate::family_colour(family)),
        about: family.about().to_owned(),
    }
}

/// Every heuristic that has a result, once.
fn models(programs: &[Program]) -> Vec<ModelText> {
    let mut all: Vec<ModelText> = Vec::new();
    for outcome in programs.iter().flat_map(|program| &program.replayed.results.outcomes) {
        let name = &outcome.heuristic;
        let (Ok(spec), false) = (Spec::parse(name), all.iter().any(|known| known.heuristic == *name)) else { continue };
        let family = spec.entry().family;
        all.push(ModelText {
            heuristic: name.clone(),
            brief: spec.brief(),
            family: Family::ALL.iter().position(|other| *other == family).unwrap_or_default(),
            colour: colour(crate::colour_of(name)),
            rule: spec.entry().rule.to_owned(),
        });
    }
    all
}

fn about(cause: Cause) -> &'static str {
    match cause {
        Cause::Branch => "the lane took the other side of a branch",
        Cause::LoopTripCount => "the lane runs a loop more often, or less often, than the active lanes",
        Cause::CallTarget => "the lane called another function, or returned to another caller",
        Cause::Lock => "the lane waits for a lock, or came apart from the active lanes at one",
        Cause::Barrier => "the lane waits at a barrier, or came apart from the active lanes at one",
        Cause::Schedule => "the lane stood where the active lanes did, and the model ran them apart",
        Cause::Finished => "the lane has finished",
        Cause::EmptySeat => "the warp has fewer lanes than seats",
    }
}

/// Which warps get a lane map, those with the most fetches, and what to say about the others.
pub(super) fn plan(outcome: &Outcome, code: &Code) -> (LaneMapPlan, Vec<String>) {
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

/// What the page shows of the model that it is about; locks where they count.
pub(super) fn measures(trace: &Trace, with_locks: bool, plan: LaneMapPlan) -> Vec<Measure> {
    let mut measures = vec![Causes::measure(), Edges::measure(), ActiveLanes::measure(), LaneMaps::measure(plan)];
    if trace.meta().memory {
        measures.extend([Traffic::measure(), MemoryClasses::measure(), GpuMemory::measure()]);
    }
    if with_locks {
        measures.push(Contention::measure());
    }
    measures
}

/// What the page shows of a model that it can be switched to.
pub(super) fn of_switched() -> Vec<Measure> {
    vec![Causes::measure(), ActiveLanes::measure()]
}

/// What a program's page is made of besides its results.
pub(super) struct Parts<'a> {
    pub(super) trace: &'a Trace,
    pub(super) view: &'a View,
    /// The outcomes of models that the page can be switched to, each measured by [`of_switched`].
    pub(super) switched: &'a [Outcome],
    /// Those of the first model at other warp sizes.
    pub(super) widths: Vec<Outcome>,
    /// How instructions are written, where they are to be shown.
    pub(super) syntax: Option<Syntax>,
    /// What came of collecting lanes at places, where that was tried.
    pub(super) suggestions: Option<&'a Suggestions>,
}

/// One program's part of the page. The first result is that of the model that the page is about, measured by
/// [`measures`]; `notes` are what else the reader should know.
pub(super) fn program(mut replayed: Replayed, parts: Parts, mut code: Code, mut notes: Vec<String>) -> Program {
    let Parts { trace, view, switched, widths, syntax, suggestions } = parts;
    let outcomes = &replayed.results.outcomes;
    let chosen = &outcomes[0];
    let Some(causes) = chosen.found::<Causes>() else { return Program::default() };
    code.count(chosen, causes);
    if let Some(syntax) = syntax {
        let active = chosen.found::<ActiveLanes>();
        code.disassemble(&disassembly::fetched(trace, causes, syntax), causes, active);
    }
    let branches = branches::of(chosen, causes, &mut code);
    let more_branches = branches.len().saturating_sub(branches::MOST);
    let turns = "what is shown of it is with lanes taking turns at locks (--locks simt)";
    notes.extend(chosen.deadlock.iter().map(|deadlock| format!("{deadlock}: {turns}")));
    let maps = lane_maps::of(chosen, trace, view, &mut code);
    let contention = chosen.found::<Contention>().filter(|c| !c.locks.is_empty());
    let locks = contention.map(|c| locks::rows(c, view, code.source()));
    let graphs = graphs::of(chosen, &mut code);
    let collecting = suggestions.map(|found| suggestions::of(found, &mut code));
    let flame = flame::of(causes, &mut code);
    let switched = switched::of(switched, outcomes, &mut code, &mut notes);
    notes.extend(code.notes());
    let files = listing::files(code.files(), code.lines(), &mut notes);
    if let Some(machine) = &replayed.machine {
        notes.insert(0, machine.line().trim_end().to_owned());
    }
    let widths = Results { setting: replayed.results.setting.clone(), outcomes: widths };
    // They are the largest of its findings, and all of them is in the maps.
    replayed.results.outcomes[0].findings.forget::<LaneMaps>();
    Program {
        chosen: 0,
        widths,
        replayed,
        notes,
        files,
        maps,
        flame,
        graphs,
        locks,
        collecting,
        switched,
        more_branches,
        branches: branches.into_iter().take(branches::MOST).collect(),
        functions: code.functions().to_vec(),
        lines: code.lines().to_vec(),
        pcs: code.take_pcs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_a_colour_of_its_own() {
        let all = causes();
        for (i, one) in all.iter().enumerate() {
            assert_ne!(one.colour, colour(crate::OTHER), "{} has no colour in report/src/palette.rs", one.name);
            assert!(all[..i].iter().all(|other| other.colour != one.colour), "{} looks like another", one.name);
        }
    }
}
