//! `fetches`: how many instructions each heuristic has to issue.
//!
//! A bar's length is the number of fetches (warp instructions, not thread instructions). Of two lanes that need 10
//! thread instructions, no sharing takes 10 fetches; if they can share 2, the best is 8.

use super::chart::Chart;
use crate::drawing::bars::{Bar, BarChart, Panel, Scale};
use crate::drawing::text;
use crate::settings::{Setting, settings};
use crate::{Counts, Picture, PlotOptions, Row};

pub(super) struct Fetches;

impl Chart for Fetches {
    fn name(&self) -> &'static str {
        "fetches"
    }

    fn about(&self) -> &'static str {
        "Fetches of each heuristic, between the fewest that any schedule needs and those of no sharing."
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let settings = settings(rows);
        BarChart {
            panels: settings.settings.iter().map(panel).collect(),
            title: if settings.title.is_empty() { "Fetches".to_owned() } else { settings.title },
            subtitle: settings.subtitle,
            axis: "fetches (warp instructions)",
            scale: Scale::OfEachPanel,
        }
        .draw(options)
    }
}

fn panel(setting: &Setting) -> Panel {
    let counts = || setting.rows.iter().filter_map(|row| row.counts());
    // The rows of one trace have the same bounds. Should they differ, the widest hold for all.
    let best = counts().map(|c| c.lower_bound).min();
    let unshared = counts().map(|c| c.upper_bound).max();
    Panel {
        heading: setting.heading.clone(),
        bars: setting.rows.iter().map(|row| Bar::of(row, value)).collect(),
        best: best.map(|n| (n as f64, format!("lower bound: {}", text::count(n)))),
        unshared: unshared.map(|n| (n as f64, format!("no sharing: {}", text::count(n)))),
    }
}

fn value(counts: &Counts) -> (f64, String) {
    (counts.fetches as f64, text::count(counts.fetches))
}
