//! `threads`: how the efficiency changes with the number of threads.
//!
//! A point's height is the SIMT efficiency of a run with so many lanes, all in one warp or in warps of one size; the
//! black line is the bound that no schedule exceeds. Rows of one program traced with several numbers of threads make
//! one panel.

use super::chart::Chart;
use super::sweep::{Sweep, are_several, sweep};
use crate::{Picture, PlotOptions, Row};

pub(super) struct Threads;

impl Chart for Threads {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn about(&self) -> &'static str {
        "SIMT efficiency of each heuristic by number of lanes, under a bound that no schedule exceeds."
    }

    fn lacks(&self, rows: &[Row]) -> Option<&'static str> {
        let several = are_several(rows, |row| row.lanes);
        (!several).then_some("traces of one program with several numbers of threads")
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let by = Sweep {
            title: "SIMT efficiency by number of lanes",
            across: "lanes (threads replayed)",
            place: |row| row.lanes,
            rest: |row| Row {
                command: without_number(&row.command, row.lanes),
                trace: String::new(),
                lanes: None,
                threads: None,
                warps: None,
                warp_size: if row.warps == Some(1) { String::new() } else { row.warp_size.clone() },
                ..row.clone()
            },
        };
        sweep(rows, &by).draw(options)
    }
}

/// The command without the argument that is the number of lanes: `fft -p N -m 12` of `fft -p 16 -m 12`.
fn without_number(command: &str, lanes: Option<u64>) -> String {
    let lanes = lanes.map(|n| n.to_string()).unwrap_or_default();
    let words = command.split(' ').map(|word| if word == lanes { "N" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_differ_in_the_number_of_lanes_are_one_program() {
        assert_eq!(without_number("fft -p 16 -m 12", Some(16)), without_number("fft -p 4 -m 12", Some(4)));
        assert_ne!(without_number("fft -p 16 -m 12", Some(16)), without_number("fft -p 16 -m 10", Some(16)));
    }
}
