//! Several widths of a warp, several ways to put lanes into warps: `replay` shows a row for each, from one reading of
//! the trace.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use attribution::table::{Align, grouped, percent};
use heuristics::{MAX_LANES, Spec};
use replay::metrics::{Accesses, Measure, Traffic};
use replay::view::View;
use replay::{Error, Grouping, Outcome, Prepared, ReplayOptions, Setting};
use serde_json::{Value, json};
use trace_format::Trace;

use crate::output::{Output, WithColours, print, say, show};
use crate::typed::machine::{FEW, Subject};
use crate::typed::selection::Selection;
use crate::width;

/// The lanes that warps have, in the order in which they were typed; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Widths(Vec<usize>);

impl Widths {
    pub(crate) fn all(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for Widths {
    type Err = String;

    fn from_str(text: &str) -> Result<Widths, String> {
        let lanes = |text: &str| {
            let lanes = text.parse().ok().filter(|lanes| (1..=MAX_LANES).contains(lanes));
            lanes.ok_or_else(|| format!("a warp has 1 to {MAX_LANES} lanes"))
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => all.push(lanes(part)?),
                Some((first, last)) => {
                    let (first, last) = (lanes(first)?, lanes(last)?);
                    if first > last {
                        return Err(format!("a range must go up: {last}..{first}"));
                    }
                    all.extend(std::iter::successors(Some(first), |n| Some(2 * n)).take_while(|n| *n <= last));
                }
            }
        }
        let mut seen = Vec::new();
        all.retain(|one| {
            !seen.contains(one) && {
                seen.push(*one);
                true
            }
        });
        Ok(Widths(all))
    }
}

/// The ways in which lanes are put into warps, in the order in which they were typed; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Groups(Vec<Grouping>);

impl Groups {
    pub(crate) fn all(&self) -> &[Grouping] {
        &self.0
    }
}

impl FromStr for Groups {
    type Err = Error;

    fn from_str(text: &str) -> replay::Result<Groups> {
        Grouping::parse_list(text).map(Groups)
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

/// A width and a way to put lanes into warps, with the results under each model.
pub(crate) struct Tried {
    /// As it would be typed.
    pub(crate) group: String,
    pub(crate) outcomes: Vec<Outcome>,
    /// The fewest fetches that any grouping needs, if the oracle was asked for.
    pub(crate) least_of_any: Option<u64>,
}

/// Replays each width with each grouping and otherwise these options; if no grouping is named, the options' own.
///
/// # Errors
/// As [`Prepared::replay`].
pub(crate) fn replay(
    prepared: &Prepared,
    models: &[Spec],
    (widths, groups): (&[usize], &[Grouping]),
    options: &ReplayOptions,
) -> replay::Result<Vec<Tried>> {
    let widths: Vec<Option<usize>> =
        if widths.is_empty() { vec![options.warp_size] } else { widths.iter().copied().map(Some).collect() };
    let mut all = Vec::new();
    for warp_size in widths {
        for grouping in groups.iter().copied() {
            let options = ReplayOptions { warp_size, grouping, ..options.clone() };
            let outcomes = prepared.replay(models, &options, None, &|_, _| {})?;
            let least_of_any =
                has_bound(grouping, models).then(|| prepared.least_of_any_grouping(warp_size)).transpose()?;
            all.push(Tried { group: grouping.to_string(), outcomes, least_of_any });
        }
    }
    Ok(all)
}

/// What is replayed, and where its rows go.
pub(crate) struct Request<'a> {
    pub(crate) path: &'a Path,
    pub(crate) selection: &'a Selection,
    pub(crate) subject: &'a Subject,
    pub(crate) measures: &'a [Measure],
    pub(crate) as_json: bool,
    pub(crate) csv: Option<&'a Path>,
}

impl Request<'_> {
    /// Replays all of it from one reading of the trace, and shows a row for each.
    ///
    /// # Errors
    /// When the trace cannot be read, or rows not be written.
    pub(crate) fn run(&self, trace: &Trace) -> anyhow::Result<()> {
        let [rule] = self.selection.locks.rules() else {
            let text = "several widths or groupings can be replayed with one rule for locks only; name one with \
                 --locks";
            return Err(Error::Request(text.to_owned()).into());
        };
        let view = self.selection.view_with(trace, *rule)?;
        if !self.as_json {
            say!("{}", view.summary());
        }
        let measures = with_traffic(self.measures, trace);
        let options = ReplayOptions { measures, ..self.selection.options_with(*rule) };
        let options = self.subject.options(options, &view);
        let models = &self.subject.models;
        let prepared = Prepared::new(&view, needs_control_flow(models, &options))?;
        let widths = self.selection.warp_size.as_ref().map_or(&[][..], Widths::all);
        let tried = replay(&prepared, models, (widths, self.selection.group.all()), &options)?;
        if let Some(path) = self.csv {
            let setting = self.selection.setting(self.path, trace, &view);
            let mut out = Output::create(path)?;
            let rows = rows(&tried, &setting);
            replay::write_csv_of(rows.iter().map(|(setting, outcome)| (setting, *outcome)), &mut out, path)?;
            out.finish()?;
        }
        match (self.as_json, self.csv) {
            (true, _) => print(&format!("{:#}\n", json(&tried)), WithColours::No)?,
            (false, Some(path)) if path.as_os_str() == "-" => {}
            (false, _) => show(&table(&tried), WithColours::No)?,
        }
        Ok(())
    }
}

/// These measures, and transactions if the trace has addresses.
pub(crate) fn with_traffic(measures: &[Measure], trace: &Trace) -> Vec<Measure> {
    let mut measures = measures.to_vec();
    if trace.meta().memory && !measures.iter().any(|measure| measure.name() == Traffic::measure().name()) {
        measures.push(Traffic::measure());
    }
    measures
}

/// Whether the fewest fetches of any grouping are known: if one of these models at least lets no warps of a block share
/// fetches.
fn has_bound(grouping: Grouping, models: &[Spec]) -> bool {
    grouping == Grouping::Oracle && !models.iter().all(|spec| spec.entry().runs_blocks)
}

fn needs_control_flow(models: &[Spec], options: &ReplayOptions) -> bool {
    models.iter().any(|spec| spec.entry().needs_control_flow)
        || options.measures.iter().any(Measure::needs_control_flow)
}

/// What a grouping other than the usual one gains, with its cost in transactions: only for traces with addresses that
/// are short enough to take a second or two. With the oracle, also what no grouping beats.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn beside_consecutive(
    prepared: &Prepared,
    (trace, view): (&Trace, &View),
    models: &[Spec],
    options: &ReplayOptions,
) -> replay::Result<String> {
    if options.grouping == Grouping::Consecutive {
        return Ok(String::new());
    }
    if !trace.meta().memory || view.summary().kept > FEW {
        let line = || -> replay::Result<String> {
            let least = prepared.least_of_any_grouping(options.warp_size)?;
            let warp_size = options.warp_size.unwrap_or_else(|| view.lanes().len().clamp(1, MAX_LANES));
            Ok(bound_line(least, (warp_size, view.summary().kept)))
        };
        return if has_bound(options.grouping, models) { line() } else { Ok(String::new()) };
    }
    let options = ReplayOptions { measures: vec![Traffic::measure()], ..options.clone() };
    let groups = [Grouping::Consecutive, options.grouping];
    Ok(format!("\n{}", table(&replay(prepared, models, (&[], &groups), &options)?)))
}

/// The bytes of the transactions that are shown: the first of [`replay::metrics::TRANSACTION_SIZES`].
const TRANSACTION: usize = 0;

/// The transactions of 32 bytes, with stacks laid out as a GPU lays them out.
pub(crate) fn transactions(accesses: &Accesses) -> u64 {
    accesses.heap.transactions[TRANSACTION] + accesses.interleaved[TRANSACTION]
}

/// Of an outcome: its accesses and their transactions, where they were measured.
fn traffic(outcome: &Outcome) -> Option<(u64, u64)> {
    let total = &outcome.found::<Traffic>()?.total;
    Some((total.accesses(), transactions(total)))
}

/// The outcome of the first grouping of the same width and model.
fn first_of<'a>(tried: &'a [Tried], outcome: &Outcome) -> Option<&'a Outcome> {
    let mut all = tried.iter().flat_map(|one| &one.outcomes);
    all.find(|o| o.warp_size == outcome.warp_size && o.heuristic == outcome.heuristic)
}

/// Points of efficiency that an outcome has above the first one of its width and model.
fn gain(tried: &[Tried], outcome: &Outcome) -> Option<f64> {
    let first = first_of(tried, outcome).filter(|first| first.is_complete())?;
    Some(100.0 * (outcome.simt_efficiency()? - first.simt_efficiency()?))
}

/// The table.
pub(crate) fn table(tried: &[Tried]) -> String {
    let outcomes = || tried.iter().flat_map(|one| one.outcomes.iter().map(move |outcome| (one, outcome)));
    let has_traffic = outcomes().any(|(_, outcome)| traffic(outcome).is_some());
    let several = tried.iter().any(|one| one.group != tried[0].group);
    let mut header = vec!["lanes a warp", "group", "heuristic", "warps", "fetches", "SIMT efficiency"];
    header.extend(several.then_some("gain"));
    header.extend(has_traffic.then_some(["32B transactions", "per access"]).into_iter().flatten());
    header.extend((has_traffic && several).then_some("cost"));
    let mut rows = vec![header.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (one, outcome) in outcomes().filter(|(_, outcome)| outcome.is_complete()) {
        let mut row = vec![
            outcome.warp_size.to_string(),
            one.group.clone(),
            outcome.label(),
            grouped(outcome.warps as u64),
            grouped(outcome.counts.fetches()),
            outcome.simt_efficiency().map_or_else(String::new, percent),
        ];
        row.extend(several.then(|| gain(tried, outcome).map_or_else(String::new, |gain| format!("{gain:+.1}"))));
        if has_traffic {
            let own = traffic(outcome);
            row.push(own.map_or_else(String::new, |(_, n)| grouped(n)));
            let per_access = own.filter(|(accesses, _)| *accesses > 0);
            row.push(per_access.map_or_else(String::new, |(a, n)| format!("{:.2}", n as f64 / a as f64)));
        }
        if has_traffic && several {
            let first = first_of(tried, outcome).and_then(traffic).filter(|(_, n)| *n > 0);
            let cost = first.zip(traffic(outcome)).map(|((_, first), (_, own))| own as f64 / first as f64);
            row.push(cost.map_or_else(String::new, |cost| format!("x{cost:.2}")));
        }
        rows.push(row);
    }
    let mut text = width::of_results().table(&rows, |c| if (1..3).contains(&c) { Align::Left } else { Align::Right });
    for (_, outcome) in outcomes().filter(|(_, outcome)| !outcome.is_complete()) {
        text += &format!("{}\n", outcome.status());
    }
    for one in tried {
        let first = one.least_of_any.zip(one.outcomes.first());
        let of = |(least, o): (u64, &Outcome)| bound_line(least, (o.warp_size, o.upper_bound));
        text += &first.map_or_else(String::new, of);
    }
    text += "SIMT efficiency: thread instructions / (fetches x lanes of a warp)";
    if several {
        text += "; gain: points above the first grouping of the same width and model";
    }
    if has_traffic {
        text +=
            "; 32B transactions: aligned pieces of 32 bytes that the lanes of each access lie in, stacks interleaved";
    }
    if has_traffic && several {
        text += "; cost: times as many as under the first grouping";
    }
    text + "\n"
}

/// What no grouping beats, for so many lanes a warp and so many thread instructions.
fn bound_line(least: u64, (warp_size, instructions): (usize, u64)) -> String {
    let slots = least as f64 * warp_size as f64;
    format!(
        "no grouping into warps of {warp_size} needs fewer than {} fetches ({})\n",
        grouped(least),
        percent((instructions as f64 / slots.max(1.0)).min(1.0))
    )
}

/// The rows as JSON.
pub(crate) fn json(tried: &[Tried]) -> Value {
    let row = |one: &Tried, outcome: &Outcome| {
        let own = traffic(outcome);
        json!({
            "warp_size": outcome.warp_size,
            "group": one.group,
            "heuristic": outcome.heuristic,
            "status": outcome.status(),
            "warps": outcome.warps,
            "fetches": outcome.is_complete().then(|| outcome.counts.fetches()),
            "simt_efficiency": outcome.simt_efficiency().filter(|_| outcome.is_complete()),
            "gain": gain(tried, outcome).filter(|_| outcome.is_complete()),
            "accesses": own.map(|(accesses, _)| accesses),
            "transactions_32": own.map(|(_, transactions)| transactions),
            "least_of_any_grouping": one.least_of_any,
        })
    };
    tried.iter().flat_map(|one| one.outcomes.iter().map(move |outcome| row(one, outcome))).collect()
}

/// The rows as they stand in CSV, each with its own setting and otherwise these.
pub(crate) fn rows<'a>(tried: &'a [Tried], setting: &Setting) -> Vec<(Setting, &'a Outcome)> {
    let of_one = |one: &'a Tried| {
        let setting = Setting { group: one.group.clone(), ..setting.clone() };
        one.outcomes.iter().map(move |outcome| (setting.clone(), outcome))
    };
    tried.iter().flat_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_doubles_and_a_list_is_as_typed() {
        let widths = |text: &str| text.parse::<Widths>().map(|widths| widths.0);
        assert_eq!(widths("32").unwrap(), [32]);
        assert_eq!(widths("4..64").unwrap(), [4, 8, 16, 32, 64]);
        assert_eq!(widths("5..21").unwrap(), [5, 10, 20]);
        assert_eq!(widths("8,4,8..16").unwrap(), [8, 4, 16]);
        for wrong in ["", "0", "257", "4..", "64..4", "4,,8", "a"] {
            assert!(widths(wrong).is_err(), "{wrong}");
        }
    }
}
