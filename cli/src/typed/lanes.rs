//! `--lanes` and `--loop`: what is a lane, as it was typed; and `replay --loops`, the loops whose iterations (turns)
//! could be lanes.

use std::process::ExitCode;

use attribution::Source;
use attribution::table::{self, Align, Extent, grouped, percent};
use heuristics::Spec;
use replay::view::{Lanes, LoopRan, LoopTaken, Merging, Region, Summary, View, ViewOptions, WhichLoops};
use replay::{Prepared, ReplayOptions};
use serde_json::{Value, json};
use trace_format::{Pc, Trace};

use crate::output::{WithColours, print, say, show};
use crate::typed::place::Place;
use crate::typed::selection::Selection;
use crate::width;

/// What was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LaneKind {
    /// Each thread is a lane
    Threads,
    /// Each call of the region is a lane: each outermost call of --region FUNCTION, each task of a pool
    Calls,
    /// Each OpenMP task is a lane
    Tasks,
    /// Each iteration of the loop at --loop is a lane; without --loop, of the outermost loops of OpenMP parallel
    /// regions
    Iterations,
}

/// For so many loops `replay --loops` also shows how their iterations would run as lanes.
const REPLAYED: usize = 10;

/// A loop with more iterations than this is not replayed by `--loops`: 100 bytes for each lane would take gigabytes.
const MOST_LANES: u64 = 1 << 22;

/// The lanes of a warp, where none is named and lanes are not threads.
pub(crate) const WARP: usize = 32;

/// The rule of the view that these stand for.
///
/// # Errors
/// When no code of the trace lies at the loop's place, or a loop is named for lanes that are not iterations.
pub(crate) fn rule(kind: Option<LaneKind>, at: Option<&Place>, trace: &Trace) -> replay::Result<Lanes> {
    match (kind, at) {
        (None | Some(LaneKind::Threads), None) => Ok(Lanes::Threads),
        (Some(LaneKind::Calls), None) => Ok(Lanes::Calls),
        (Some(LaneKind::Tasks), None) => Ok(Lanes::Tasks),
        (Some(LaneKind::Iterations), None) => Ok(Lanes::Iterations(WhichLoops::Worksharing { of_chunks: Vec::new() })),
        (None | Some(LaneKind::Iterations), Some(place)) => {
            let at: Vec<Pc> = place.code(trace, &mut Source::new(trace)).into_iter().collect();
            if at.is_empty() {
                let text = format!(
                    "--loop {place}: the trace has no code at that line; `replay --loops` lists the loops that ran"
                );
                return Err(replay::Error::Request(text));
            }
            Ok(Lanes::Iterations(WhichLoops::At(at)))
        }
        (Some(LaneKind::Threads | LaneKind::Calls | LaneKind::Tasks), Some(_)) => {
            Err(replay::Error::Request("--loop goes with --lanes iterations only: leave out one of the two".to_owned()))
        }
    }
}

/// The loops of the view that only step from chunk to chunk: those with one loop inside, of the same line. Compilers
/// make such a loop for `schedule(static, n)`.
pub(crate) fn of_chunks(trace: &Trace, view: &View) -> Vec<Pc> {
    let Some(cut) = &view.summary().cut else { return Vec::new() };
    let mut source = Source::new(trace);
    let mut is_of_chunks = |taken: &LoopTaken| match taken.inner[..] {
        [inner] => source.line(inner).is_some_and(|line| source.line(taken.back) == Some(line)),
        _ => false,
    };
    cut.loops.iter().filter(|taken| is_of_chunks(taken)).map(|taken| taken.header).collect()
}

/// `replay --loops`: prints the loops, with the efficiency of their turns as lanes under a model; as JSON where that is
/// asked for, and so many of them.
///
/// # Errors
/// When the trace cannot be read, or standard output not be written.
pub(crate) fn list(
    selection: &Selection,
    trace: &Trace,
    model: &Spec,
    (as_json, top): (bool, Option<usize>),
    source: &mut Source,
) -> anyhow::Result<ExitCode> {
    let rule = selection.locks.rules()[0];
    let mut options = selection.view_options(trace, rule)?;
    let view = match View::new(trace, &options) {
        // A program without threads is all region.
        Err(_) if options.region == Region::Auto => {
            options.region = Region::All;
            View::new(trace, &options)?
        }
        view => view?,
    };
    let warp_size = selection.warp_size().unwrap_or(WARP);
    let replay = ReplayOptions { warp_size: Some(warp_size), ..selection.options_with(rule) };
    let rows = loop_rows(trace, &view, &options, (model, &replay), source)?;
    let kept = view.summary().kept;
    source.notes().iter().for_each(|note| say!("lockstep: {note}"));
    if as_json {
        let text = format!("{}\n", serde_json::to_string_pretty(&loop_json(&rows, kept, top))?);
        print(&text, WithColours::No)?;
    } else {
        say!("{}", view.summary());
        show(&loop_table(&rows, kept, top, (&model.to_string(), warp_size)), WithColours::No)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A row of `replay --loops`.
struct LoopRow {
    ran: LoopRan,
    place: String,
    function: String,
    /// Of its turns as lanes, by the model that was asked for: lanes, and their SIMT efficiency where it has one.
    as_lanes: Option<(usize, Option<f64>)>,
}

/// The loops that the lanes of a view turned, the first of them replayed with their turns as lanes.
///
/// # Errors
/// When the trace cannot be read.
fn loop_rows(
    trace: &Trace,
    view: &View,
    options: &ViewOptions,
    (model, replay): (&Spec, &ReplayOptions),
    source: &mut Source,
) -> replay::Result<Vec<LoopRow>> {
    let mut rows = Vec::new();
    for (rank, ran) in view.loops_ran(replay.warp_size.unwrap_or(WARP))?.into_iter().enumerate() {
        let line = source.line(ran.back).or_else(|| source.line(ran.header));
        let place = line.map_or_else(|| ran.header.to_string(), |line| line.short());
        let function = source.function(ran.header);
        let is_replayed = rank < REPLAYED && ran.turns <= MOST_LANES;
        let as_lanes = is_replayed.then(|| replayed(trace, options, &ran, model, replay)).transpose()?;
        rows.push(LoopRow { ran, place, function, as_lanes });
    }
    Ok(rows)
}

fn replayed(
    trace: &Trace,
    options: &ViewOptions,
    ran: &LoopRan,
    model: &Spec,
    replay: &ReplayOptions,
) -> replay::Result<(usize, Option<f64>)> {
    let lanes = Lanes::Iterations(WhichLoops::At(vec![ran.header]));
    let view = View::new(trace, &ViewOptions { lanes, ..options.clone() })?;
    let prepared = Prepared::new(&view, model.entry().needs_control_flow)?;
    let outcomes = prepared.replay(std::slice::from_ref(model), replay, None, &|_, _| {})?;
    let efficiency = outcomes.first().filter(|o| o.is_complete()).and_then(|o| o.simt_efficiency());
    Ok((view.lanes().len(), efficiency))
}

/// The rows as a table.
fn loop_table(rows: &[LoopRow], kept: u64, top: Option<usize>, (model, warp): (&str, usize)) -> String {
    if rows.is_empty() {
        return "loops: none ran in the region\n".to_owned();
    }
    let header =
        ["share", "entries", "iterations", "instructions/iteration", "efficiency", "depth", "loop", "function"];
    let cells = |row: &LoopRow| {
        vec![
            percent(row.ran.instructions as f64 / kept.max(1) as f64),
            grouped(row.ran.entries),
            grouped(row.ran.turns),
            format!("{:.1}", row.ran.instructions as f64 / row.ran.turns.max(1) as f64),
            row.as_lanes.and_then(|(_, efficiency)| efficiency).map_or_else(String::new, percent),
            row.ran.depth.to_string(),
            row.place.clone(),
            row.function.clone(),
        ]
    };
    let align = |column| if column < 6 { Align::Right } else { Align::Left };
    let merge = merging_lines(rows, warp);
    let large = rows.iter().take(REPLAYED).any(|row| row.ran.turns > MOST_LANES);
    let large = if large {
        format!(
            "loops with more than {} iterations have no efficiency here: --loop PLACE replays one\n",
            grouped(MOST_LANES)
        )
    } else {
        String::new()
    };
    let rows = table::first(&header, rows, Extent { top, width: width::of_results() }, cells, align);
    format!(
        "loops that ran, by their share of the instructions; efficiency: with their iterations (turns) as lanes, \
         {warp} per warp, under {model} (--loop PLACE shows the rest)\n{rows}{large}{merge}"
    )
}

/// Where an inner loop and the one around it would pay as one.
fn merging_lines(rows: &[LoopRow], warp: usize) -> String {
    let pays = rows.iter().filter_map(|row| Some((row, row.ran.merging.filter(|of| of.gain > 0)?)));
    let line = |(row, of): (&LoopRow, Merging)| {
        format!(
            "{} would pay as one loop with the one around it (linearize:merge-loops=yes): its body is issued {} times in warps of \
             {warp}, {} then, and that of the outer one {} and {} times; {} fetches fewer with the guards\n",
            row.place,
            grouped(of.trips_apart),
            grouped(of.trips_merged),
            grouped(of.turns_apart),
            grouped(of.turns_merged),
            grouped(of.gain.unsigned_abs()),
        )
    };
    pays.map(line).collect()
}

/// The rows as JSON.
fn loop_json(rows: &[LoopRow], kept: u64, top: Option<usize>) -> Value {
    let row = |row: &LoopRow| {
        json!({
            "loop": row.place,
            "header": row.ran.header.to_string(),
            "function": row.function,
            "depth": row.ran.depth,
            "entries": row.ran.entries,
            "iterations": row.ran.turns,
            "thread_instructions": row.ran.instructions,
            "share": row.ran.instructions as f64 / kept.max(1) as f64,
            "lanes": row.as_lanes.map(|(lanes, _)| lanes),
            "simt_efficiency": row.as_lanes.and_then(|(_, efficiency)| efficiency),
            "merging": row.ran.merging.map(|of| json!({
                "outer": of.outer.to_string(),
                "trips_apart": of.trips_apart,
                "trips_merged": of.trips_merged,
                "trips_sorted": of.trips_sorted,
                "sorting_gain": of.sorting_gain,
                "turns_apart": of.turns_apart,
                "turns_merged": of.turns_merged,
                "gain": of.gain,
            })),
        })
    };
    rows.iter().take(top.unwrap_or(usize::MAX)).map(row).collect()
}

/// What the region of a result is called: the lanes, where they are not threads, and where they come from.
pub(crate) fn region(summary: &Summary) -> String {
    summary.cut.as_ref().map_or_else(|| summary.region.clone(), |cut| format!("{} of {}", cut.what, summary.region))
}
