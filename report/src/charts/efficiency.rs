//! `efficiency`: how full the lanes are under each heuristic.
//!
//! A bar's length is the SIMT efficiency: thread instructions / (fetches x lanes of a warp). Of two lanes that need 10
//! thread instructions in 8 fetches, 10 / (8 x 2) = 0.625 of the lane-slots do work.

use super::chart::Chart;
use crate::drawing::bars::{Bar, BarChart, Panel, Scale};
use crate::settings::{Setting, settings};
use crate::{Counts, Picture, PlotOptions, Row};

pub(super) struct Efficiency;

impl Chart for Efficiency {
    fn name(&self) -> &'static str {
        "efficiency"
    }

    fn about(&self) -> &'static str {
        "SIMT efficiency of each heuristic, between that of no sharing and a bound that no schedule exceeds."
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let settings = settings(rows);
        BarChart {
            panels: settings.settings.iter().map(panel).collect(),
            title: if settings.title.is_empty() { "SIMT efficiency".to_owned() } else { settings.title },
            subtitle: settings.subtitle,
            axis: "SIMT efficiency (thread instructions / lane-slots)",
            scale: Scale::Shared(1.0),
        }
        .draw(options)
    }
}

fn panel(setting: &Setting) -> Panel {
    let counts = || setting.rows.iter().filter_map(|row| row.counts()).filter(|c| c.fetches > 0);
    // The rows of one trace have the same bounds. Should they differ, the widest hold for all.
    let best = counts().map(|c| c.efficiency_in(c.lower_bound)).reduce(f64::max);
    let unshared = counts().map(|c| c.efficiency_in(c.upper_bound)).reduce(f64::min);
    Panel {
        heading: setting.heading.clone(),
        bars: setting.rows.iter().map(|row| Bar::of(row, value)).collect(),
        best: best.map(|v| (v, format!("upper bound: {v:.3}"))),
        unshared: unshared.map(|v| (v, format!("no sharing: {v:.3}"))),
    }
}

fn value(counts: &Counts) -> (f64, String) {
    (counts.simt_efficiency, format!("{:.3}", counts.simt_efficiency))
}
