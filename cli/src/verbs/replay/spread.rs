//! `lockstep replay` of several traces of one program: how far its figures depend on the recording.
//!
//! Which thread took which work is mostly decided by the machine's scheduler while the program is recorded. Where
//! figures of several recordings agree, that does not matter.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use attribution::table::{Align, grouped, percent};
use replay::{Outcome, Prepared};
use serde_json::{Value, json};

use super::options::Typed;
use crate::output::{WithColours, print, progress, say, show};
use crate::typed::selection;
use crate::width;

/// Traces whose efficiencies are farther apart do not agree.
const WIDE: f64 = 0.05;

/// The results of one trace.
struct Replayed<'a> {
    path: &'a Path,
    outcomes: Vec<Outcome>,
    /// Of each outcome, as the machine counts it, where it is no way out of a deadlock.
    efficiencies: Vec<Option<f64>>,
}

/// Replays each of the traces, and shows for each heuristic the least, the median and the most of their figures.
pub(super) fn run(typed: &Typed) -> anyhow::Result<ExitCode> {
    let (selection, subject) = (&typed.selection, typed.subject());
    let traces: Vec<&PathBuf> = std::iter::once(&typed.trace).chain(&typed.others).collect();
    let bar = progress();
    bar.set_length(traces.len() as u64);
    let mut command: Option<Vec<String>> = None;
    let mut all = Vec::new();
    for path in traces.iter().copied() {
        let trace = selection::open(path)?;
        let own = trace.meta().command.clone();
        let first = command.get_or_insert_with(|| own.clone());
        if *first != own {
            let [first, own] = [&*first, &own].map(|words| words.join(" "));
            let text = format!(
                "{} is a trace of `{own}`, and {} of `{first}`: a spread needs recordings of one command; `lockstep \
                 report` and `lockstep diff` compare two",
                path.display(),
                traces[0].display()
            );
            return Err(replay::Error::Request(text).into());
        }
        let view = selection.view(&trace)?;
        if !typed.json {
            say!("{}: {}", path.display(), view.summary());
        }
        let options = subject.options(selection.options(), &view);
        let needs_control_flow = subject.models.iter().any(|spec| spec.entry().needs_control_flow);
        let prepared = Prepared::new(&view, needs_control_flow)?;
        let outcomes = prepared.replay(&subject.models, &options, None, &|_, _| {})?;
        let efficiency = |o: &Outcome| subject.efficiency(o).filter(|_| o.deadlock.is_none());
        let efficiencies = outcomes.iter().map(efficiency).collect();
        all.push(Replayed { path, outcomes, efficiencies });
        bar.inc(1);
    }
    bar.finish_and_clear();
    match typed.json {
        true => print(&format!("{:#}\n", to_json(&all)), WithColours::No)?,
        false => show(&table(&all, subject.is_machine()), WithColours::No)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The least, the median (of an even number the lower) and the most.
fn spread(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    Some([*values.first()?, values[(values.len() - 1) / 2], *values.last()?])
}

/// By heuristic: its name, the spread of its efficiency, and how many traces have one.
fn spreads(all: &[Replayed]) -> Vec<(String, Option<[f64; 3]>, usize)> {
    let of_model = |model: usize| {
        let values: Vec<f64> = all.iter().filter_map(|replayed| replayed.efficiencies[model]).collect();
        let count = values.len();
        (all[0].outcomes[model].heuristic.clone(), spread(values), count)
    };
    (0..all[0].outcomes.len()).map(of_model).collect()
}

fn table(all: &[Replayed], of_machine: bool) -> String {
    let shown = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), percent);
    let mut of_traces = vec![["trace", "lanes", "thread instructions", "fetches", "efficiency"].map(str::to_owned)];
    of_traces.extend(all.iter().map(|Replayed { path, outcomes, efficiencies }| {
        let first = &outcomes[0];
        let [instructions, fetches] = [first.counts.thread_instructions(), first.counts.fetches()].map(grouped);
        [path.display().to_string(), first.lanes.to_string(), instructions, fetches, shown(efficiencies[0])]
    }));
    let mut rows = vec![["heuristic", "least", "median", "most", "traces"].map(str::to_owned)];
    let spreads = spreads(all);
    rows.extend(spreads.iter().map(|(name, spread, count)| {
        let [least, median, most] = [0, 1, 2].map(|i| shown(spread.map(|values| values[i])));
        [name.clone(), least, median, most, count.to_string()]
    }));
    let first_left = |column| if column == 0 { Align::Left } else { Align::Right };
    let mut text = format!(
        "{}\n{}efficiency: {}, above by {}\n",
        width::of_results().table(&of_traces, first_left),
        width::of_results().table(&rows, first_left),
        if of_machine { "of the machine's instructions" } else { "thread instructions / (fetches x lanes of a warp)" },
        spreads[0].0
    );
    let wide = spreads.iter().filter_map(|(_, spread, _)| *spread).any(|[least, _, most]| most - least > WIDE);
    text += if wide {
        "Much of these figures depends on the recording: give each thread a fixed share of the work, or take the \
         pieces of work as lanes (--lanes).\n"
    } else {
        "The recordings agree within 5 points of efficiency.\n"
    };
    text
}

fn to_json(all: &[Replayed]) -> Value {
    let of_outcome = |(outcome, efficiency): (&Outcome, &Option<f64>)| {
        json!({
            "heuristic": outcome.heuristic,
            "efficiency": efficiency,
            "fetches": outcome.counts.fetches(),
            "thread_instructions": outcome.counts.thread_instructions(),
            "lanes": outcome.lanes,
            "warp_size": outcome.warp_size,
        })
    };
    let of_trace = |replayed: &Replayed| {
        let results: Vec<Value> = replayed.outcomes.iter().zip(&replayed.efficiencies).map(of_outcome).collect();
        json!({ "trace": replayed.path.display().to_string(), "results": results })
    };
    let of_model = |(heuristic, spread, traces): (String, Option<[f64; 3]>, usize)| {
        let [least, median, most] = [0, 1, 2].map(|i| spread.map(|values| values[i]));
        json!({ "heuristic": heuristic, "least": least, "median": median, "most": most, "traces": traces })
    };
    json!({
        "traces": all.iter().map(of_trace).collect::<Vec<_>>(),
        "spread": spreads(all).into_iter().map(of_model).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_one_of_all() {
        assert_eq!(spread(vec![0.5, 0.1, 0.3]), Some([0.1, 0.3, 0.5]));
        assert_eq!(spread(vec![0.4, 0.1]), Some([0.1, 0.1, 0.4]));
        assert_eq!(spread(Vec::new()), None);
    }
}
