//! What `lockstep report` puts on its page: one program's replays, read as functions, lines, branches and graphs.

mod branches;
mod code;
mod flame;
mod graphs;
mod lane_maps;
mod listing;
mod suggestions;
mod switched;

use heuristics::{Family, Spec};
use machine::Syntax;
use replay::metrics::{
    ActiveLanes, Cause, Causes, Contention, Edges, LaneMapPlan, LaneMaps, Measure, MemoryClasses, Traffic,
};
use replay::suggest::Suggestions;
use replay::view::View;
use replay::{Outcome, Setting};
use report::page::{CauseText, FamilyText, ModelText, Page, Program};
use serde_json::Value;
use trace_format::Trace;

pub use self::code::Code;
use crate::locks;
use crate::program::disassembly;
use crate::shown::json;
use crate::shown::unlike::{Facts, unlike};
use crate::shown::verdict::Verdict;

/// A page about these programs, which this tool made.
#[must_use]
pub fn page(tool: String, programs: Vec<Program>) -> Page {
    let facts: Vec<Facts> = programs.iter().map(|program| Facts::of_json(&program.replayed, program.chosen)).collect();
    Page {
        tool,
        unlike: if let [before, after] = &facts[..] { unlike(before, after) } else { Vec::new() },
        causes: causes(),
        families: Family::ALL.iter().map(|family| family_text(*family)).collect(),
        models: models(&programs),
        columns: replay::registry::columns().map(|c| (c.name.to_owned(), c.definition.to_owned())).collect(),
        programs,
    }
}

/// The causes of lost lane-slots, in the order of all lists by cause.
#[must_use]
pub fn causes() -> Vec<CauseText> {
    let text = |cause: &Cause| CauseText {
        name: cause.name().to_owned(),
        colour: colour(report::cause_colour(cause.name())),
        about: about(*cause).to_owned(),
    };
    Cause::ALL.iter().map(text).collect()
}

fn colour((r, g, b): report::Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn family_text(family: Family) -> FamilyText {
    FamilyText {
        name: family.name().to_owned(),
        colour: colour(report::family_colour(family)),
        about: family.about().to_owned(),
    }
}

/// Every heuristic that has a result, once.
fn models(programs: &[Program]) -> Vec<ModelText> {
    let results = programs.iter().filter_map(|program| program.replayed["results"].as_array()).flatten();
    let mut all: Vec<ModelText> = Vec::new();
    for name in results.filter_map(|result| result["heuristic"].as_str()) {
        let (Ok(spec), false) = (Spec::parse(name), all.iter().any(|known| known.heuristic == name)) else { continue };
        let family = spec.entry().family;
        all.push(ModelText {
            heuristic: name.to_owned(),
            brief: spec.brief(),
            family: Family::ALL.iter().position(|other| *other == family).unwrap_or_default(),
            colour: colour(report::colour_of(name)),
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
#[must_use]
pub fn plan(outcome: &Outcome, code: &Code) -> (LaneMapPlan, Vec<String>) {
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
#[must_use]
pub fn measures(trace: &Trace, with_locks: bool, plan: LaneMapPlan) -> Vec<Measure> {
    let mut measures = vec![Causes::measure(), Edges::measure(), ActiveLanes::measure(), LaneMaps::measure(plan)];
    if trace.meta().memory {
        measures.extend([Traffic::measure(), MemoryClasses::measure()]);
    }
    if with_locks {
        measures.push(Contention::measure());
    }
    measures
}

/// What the page shows of a model that it can be switched to.
#[must_use]
pub fn of_switched() -> Vec<Measure> {
    vec![Causes::measure(), ActiveLanes::measure()]
}

/// The data for a program's page.
pub struct Replays<'a> {
    /// The trace, and what the view took of it.
    pub trace: &'a Trace,
    /// The lanes.
    pub view: &'a View,
    /// The setting of the outcomes.
    pub setting: &'a Setting,
    /// First that of the model that the page is about, measured by [`measures`]; then those that it is compared with.
    pub outcomes: &'a [Outcome],
    /// The outcomes of models that the page can be switched to, each measured by [`of_switched`].
    pub switched: &'a [Outcome],
    /// Those of the first model at other warp sizes.
    pub widths: &'a [Outcome],
    /// The machine that the page is about, where it is about one: as `replay --json` prints it, and as a sentence.
    pub machine: Option<(Value, String)>,
    /// Sentences about the program, if the page is about a machine.
    pub verdict: Option<&'a Verdict>,
    /// How instructions are written, where they are to be shown.
    pub syntax: Option<Syntax>,
    /// What came of collecting lanes at places, where that was tried.
    pub suggestions: Option<&'a Suggestions>,
}

/// One program's part of the page; `notes` are what else the reader should know.
#[must_use]
pub fn program(replays: &Replays, mut code: Code, mut notes: Vec<String>) -> Program {
    let Replays { trace, view, setting, outcomes, switched, widths, syntax, suggestions, verdict, ref machine } =
        *replays;
    let taken = &*view.summary().to_string();
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
    let locks = contention.map(|c| json::locks(&locks::rows(c, view, code.source()), None)["rows"].take());
    let graphs = graphs::of(chosen, &mut code);
    let collecting = suggestions.map(|found| suggestions::of(found, &mut code));
    let flame = flame::of(causes, &mut code);
    let switched = switched::of(switched, outcomes, &mut code, &mut notes);
    notes.extend(code.notes());
    let files = listing::files(code.files(), code.lines(), &mut notes);
    let result = |outcome: &Outcome| json::of(setting, std::slice::from_ref(outcome), taken)["results"][0].take();
    let mut replayed = json::of(setting, outcomes, taken);
    if let Some((facts, sentence)) = machine {
        replayed["machine"] = facts.clone();
        notes.insert(0, sentence.trim_end().to_owned());
    }
    if let Some(verdict) = verdict {
        replayed["verdict"] = verdict.json();
    }
    Program {
        chosen: 0,
        widths: widths.iter().map(result).collect::<Vec<Value>>(),
        replayed,
        notes,
        files,
        maps,
        flame,
        graphs,
        locks: locks.unwrap_or_default(),
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
            assert_ne!(one.colour, colour(report::OTHER), "{} has no colour in report/src/palette.rs", one.name);
            assert!(all[..i].iter().all(|other| other.colour != one.colour), "{} looks like another", one.name);
        }
    }
}
