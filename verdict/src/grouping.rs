//! Several widths of a warp, several ways to put lanes into warps: what each gains, and what it costs in transactions.

use heuristics::{MAX_LANES, Spec};
use replay::metrics::{Measure, Traffic};
use replay::suggest::transactions;
use replay::view::View;
use replay::{Grouping, Outcome, Prepared, ReplayOptions, Result};
use trace_format::Trace;

use crate::lanes::FEW;

/// A width and a way to put lanes into warps, with the results under each model.
#[derive(Clone, Debug)]
pub struct Tried {
    /// As it would be typed.
    pub group: String,
    /// The results, by model.
    pub outcomes: Vec<Outcome>,
    /// The fewest fetches that any grouping needs, if the oracle was asked for.
    pub least_of_any: Option<u64>,
}

/// Replays each width with each grouping and otherwise these options; if no width is named, the options' own.
///
/// # Errors
/// As [`Prepared::replay`].
pub fn replay(
    prepared: &Prepared,
    models: &[Spec],
    widths: &[usize],
    groups: &[Grouping],
    options: &ReplayOptions,
) -> Result<Vec<Tried>> {
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

/// These measures, and transactions if the trace has addresses.
#[must_use]
pub fn with_traffic(measures: &[Measure], trace: &Trace) -> Vec<Measure> {
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

/// What is known about a grouping beside its own results.
#[derive(Clone, Debug)]
pub enum Beside {
    /// The grouping after the usual one.
    Usual(Vec<Tried>),
    /// What no grouping beats.
    Bound {
        /// The fewest fetches of any grouping.
        least: u64,
        /// Seats in a warp.
        warp_size: usize,
        /// The thread instructions of all lanes.
        instructions: u64,
    },
}

/// What a grouping other than the usual one gains, with its cost in transactions: only for traces with addresses that
/// are short enough to take a second or two. Else, with the oracle, what no grouping beats.
///
/// # Errors
/// When the trace cannot be read.
pub fn beside_usual(
    prepared: &Prepared,
    trace: &Trace,
    view: &View,
    models: &[Spec],
    options: &ReplayOptions,
) -> Result<Option<Beside>> {
    if options.grouping == Grouping::Consecutive {
        return Ok(None);
    }
    if trace.meta().memory && view.summary().kept <= FEW {
        let options = ReplayOptions { measures: vec![Traffic::measure()], ..options.clone() };
        let groups = [Grouping::Consecutive, options.grouping];
        return Ok(Some(Beside::Usual(replay(prepared, models, &[], &groups, &options)?)));
    }
    if !has_bound(options.grouping, models) {
        return Ok(None);
    }
    let least = prepared.least_of_any_grouping(options.warp_size)?;
    let warp_size = options.warp_size.unwrap_or_else(|| view.lanes().len().clamp(1, MAX_LANES));
    Ok(Some(Beside::Bound { least, warp_size, instructions: view.summary().kept }))
}

/// Of an outcome: its accesses and their transactions of 32 bytes, where they were measured.
#[must_use]
pub fn traffic(outcome: &Outcome) -> Option<(u64, u64)> {
    Some((outcome.found::<Traffic>()?.total.accesses(), transactions(outcome)?))
}

/// The outcome of the first grouping of the same width and model.
#[must_use]
pub fn first_of<'a>(tried: &'a [Tried], outcome: &Outcome) -> Option<&'a Outcome> {
    let mut all = tried.iter().flat_map(|one| &one.outcomes);
    all.find(|o| o.warp_size == outcome.warp_size && o.heuristic == outcome.heuristic)
}

/// Points of efficiency that an outcome has above the first one of its width and model.
#[must_use]
pub fn gain(tried: &[Tried], outcome: &Outcome) -> Option<f64> {
    let first = first_of(tried, outcome).filter(|first| first.is_complete())?;
    Some(100.0 * (outcome.simt_efficiency()? - first.simt_efficiency()?))
}
