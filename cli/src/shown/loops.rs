//! `replay --loops`: the loops whose iterations (turns) could be lanes.

use attribution::table::{self, Align, Extent, grouped, percent};
use replay::view::{Merging, Paid, Spread};
use serde_json::{Value, json};
use verdict::loops::{LEAST_SHARE, Loop, Loops, MOST_LANES, REPLAYED, Site};

use crate::width;

/// How many rows are shown where so many are asked for: all where none is replayed, since no rows would be of no use.
fn rows_of(top: Option<usize>) -> Option<usize> {
    if top == Some(0) { Some(usize::MAX) } else { top }
}

/// The rows as a table.
pub(crate) fn table(loops: &Loops, top: Option<usize>) -> String {
    let Loops { all: rows, kept, model, warp_size: warp, .. } = loops;
    if rows.is_empty() {
        return "loops: none ran in the region\n".to_owned();
    }
    let header =
        ["share", "entries", "iterations", "instructions/iteration", "efficiency", "depth", "loop", "function"];
    // A `for` in a `for` on one line, and each copy of an inlined function: `--loop` tells them apart by address.
    let place = |row: &Loop| match rows.iter().filter(|other| other.place == row.place).count() {
        1 => row.place.clone(),
        _ => format!("{} {}", row.place, row.ran.header),
    };
    let cells = |row: &Loop| {
        vec![
            percent(row.ran.instructions as f64 / (*kept).max(1) as f64),
            grouped(row.ran.entries),
            grouped(row.iterations()),
            format!("{:.1}", row.ran.instructions as f64 / row.iterations().max(1) as f64),
            row.as_lanes.and_then(|as_lanes| as_lanes.efficiency).map_or_else(String::new, percent),
            row.ran.depth.to_string(),
            place(row),
            row.function.clone(),
        ]
    };
    let align = |column| if column < 6 { Align::Right } else { Align::Left };
    let merge = merging_lines(rows, *warp);
    let without = if top == Some(0) {
        "no loop was replayed: --loop PLACE replays one, --loops --top N the first of them\n".to_owned()
    } else if rows.iter().take(top.unwrap_or(usize::MAX)).any(|row| row.as_lanes.is_none()) {
        format!(
            "loops without an efficiency are not the first {REPLAYED} and hold less than {} of the instructions, or \
             have more than {} iterations: --loop PLACE replays one\n",
            percent(LEAST_SHARE),
            grouped(MOST_LANES)
        )
    } else {
        String::new()
    };
    let addresses = if loops.has_addresses { "" } else { ", of a trace with addresses (trace --memory)" };
    let order = format!(
        "whether iterations may run side by side is not in it: --loop PLACE --dependences says so{addresses}\n"
    );
    let rows = table::first(&header, rows, Extent { top: rows_of(top), width: width::of_results() }, cells, align);
    format!(
        "loops that ran, by their share of the instructions; efficiency: with their iterations (turns) as lanes, \
         {warp} per warp, as the verdict of --loop PLACE counts it, under {model}\n{rows}{order}{without}{merge}"
    )
}

/// Where an inner loop and the one around it would pay as one.
fn merging_lines(rows: &[Loop], warp: usize) -> String {
    let pays = rows.iter().filter_map(|row| Some((row, row.ran.merging.filter(|of| of.gain > 0)?)));
    let line = |(row, of): (&Loop, Merging)| {
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
pub(crate) fn to_json(loops: &Loops, top: Option<usize>) -> Value {
    let kept = loops.kept.max(1);
    let row = |row: &Loop| {
        json!({
            "loop": row.place,
            "header": row.ran.header.to_string(),
            "function": row.function,
            "lines": lines(&row.site),
            "symbol": row.site.symbol,
            "depth": row.ran.depth,
            "entries": row.ran.entries,
            "iterations": row.ran.turns,
            "thread_instructions": row.ran.instructions,
            "gpu_instructions": row.ran.gpu_tenths as f64 / 10.0,
            "share": row.ran.instructions as f64 / kept as f64,
            "lanes": row.as_lanes.map(|as_lanes| as_lanes.lanes),
            "simt_efficiency": row.as_lanes.and_then(|as_lanes| as_lanes.simt_efficiency),
            "efficiency": row.as_lanes.and_then(|as_lanes| as_lanes.efficiency),
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
            "spread": row.ran.spread.as_ref().map(spread),
            "arms": row.arms.iter().map(|arm| json!({
                "arm": arm.place,
                "at": arm.ran.at.to_string(),
                "function": arm.function,
                "lines": lines(&arm.site),
                "symbol": arm.site.symbol,
                "body": arm.ran.body,
                "spread": spread(&arm.ran.spread),
            })).collect::<Vec<_>>(),
        })
    };
    loops.all.iter().take(rows_of(top).unwrap_or(usize::MAX)).map(row).collect()
}

/// The line of a place, by the whole path of its file, then those of the calls through which it was inlined there.
fn lines(of: &Site) -> Vec<String> {
    of.lines.iter().map(|line| format!("{}:{}", line.file, line.line)).collect()
}

/// What warps issue at a place without a wait, and with one.
fn spread(of: &Spread) -> Value {
    let paid = |of: &Paid| json!({ "bodies": of.bodies, "rests": of.rests, "rest": of.rest as f64 / 10.0 });
    let waits = of.waits.iter().map(|of| {
        let mut row = paid(&of.issued);
        row["enough"] = json!(of.enough);
        row
    });
    json!({ "apart": paid(&of.apart), "waits": waits.collect::<Vec<_>>() })
}
