//! `replay --loops`: the loops whose iterations (turns) could be lanes.

use attribution::table::{self, Align, Extent, grouped, percent};
use replay::view::Merging;
use serde_json::{Value, json};
use verdict::loops::{Loop, Loops, MOST_LANES, REPLAYED};

use crate::width;

/// The rows as a table.
pub(crate) fn table(loops: &Loops, top: Option<usize>) -> String {
    let Loops { all: rows, kept, model, warp_size: warp, .. } = loops;
    if rows.is_empty() {
        return "loops: none ran in the region\n".to_owned();
    }
    let header =
        ["share", "entries", "iterations", "instructions/iteration", "efficiency", "depth", "loop", "function"];
    let cells = |row: &Loop| {
        vec![
            percent(row.ran.instructions as f64 / (*kept).max(1) as f64),
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
    let merge = merging_lines(rows, *warp);
    let large = rows.iter().take(REPLAYED).any(|row| row.ran.turns > MOST_LANES);
    let large = if large {
        format!(
            "loops with more than {} iterations have no efficiency here: --loop PLACE replays one\n",
            grouped(MOST_LANES)
        )
    } else {
        String::new()
    };
    let order = "whether iterations may run side by side is not in it: --loop PLACE --dependences says so, of a trace with \
                 addresses\n";
    let rows = table::first(&header, rows, Extent { top, width: width::of_results() }, cells, align);
    format!(
        "loops that ran, by their share of the instructions; efficiency: with their iterations (turns) as lanes, \
         {warp} per warp, under {model} (--loop PLACE shows the rest)\n{rows}{order}{large}{merge}"
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
            "depth": row.ran.depth,
            "entries": row.ran.entries,
            "iterations": row.ran.turns,
            "thread_instructions": row.ran.instructions,
            "share": row.ran.instructions as f64 / kept as f64,
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
    loops.all.iter().take(top.unwrap_or(usize::MAX)).map(row).collect()
}
