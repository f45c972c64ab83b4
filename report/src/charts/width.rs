//! `width`: how the efficiency falls as warps become wider.
//!
//! A point's height is the SIMT efficiency at a warp size; the black line is the bound that no schedule exceeds. Rows
//! of one trace that were replayed with several `--warp-size` make one panel.

use super::chart::Chart;
use super::sweep::{Sweep, are_several, sweep};
use crate::{Picture, PlotOptions, Row};

pub(super) struct Width;

impl Chart for Width {
    fn name(&self) -> &'static str {
        "width"
    }

    fn about(&self) -> &'static str {
        "SIMT efficiency of each heuristic by warp size, under a bound that no schedule exceeds."
    }

    fn lacks(&self, rows: &[Row]) -> Option<&'static str> {
        let several = are_several(rows, |row| row.warp_size.parse().ok());
        (!several).then_some("replays with several warp sizes (`replay -W 4 --csv FILE`, `-W 8`, …)")
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let by = Sweep {
            title: "SIMT efficiency by warp size",
            across: "warp size (lanes)",
            place: |row| row.warp_size.parse().ok(),
            rest: |row| Row { warp_size: String::new(), warps: None, ..row.clone() },
        };
        sweep(rows, &by).draw(options)
    }
}
