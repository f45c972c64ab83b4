//! What charts of a sweep have in common: rows that differ only in what is swept make one panel, each heuristic one
//! line.

use std::collections::BTreeSet;

use crate::drawing::lines::{LineChart, Panel, Series};
use crate::drawing::palette::INK;
use crate::drawing::text;
use crate::rows::label_of;
use crate::settings::settings;
use crate::{Counts, Outcome, Row, colour_of};

/// What is swept.
pub(super) struct Sweep {
    /// The title where the rows have none in common.
    pub(super) title: &'static str,
    /// What stands along the bottom.
    pub(super) across: &'static str,
    /// Where a row stands along the bottom; nowhere where it does not say.
    pub(super) place: fn(&Row) -> Option<u64>,
    /// The row without what is swept and what follows from it.
    pub(super) rest: fn(&Row) -> Row,
}

/// Whether rows with numbers stand at more than one place; where none has numbers, the chart says why.
pub(super) fn are_several(rows: &[Row], place: fn(&Row) -> Option<u64>) -> bool {
    let places: BTreeSet<u64> = rows.iter().filter(|row| row.counts().is_some()).filter_map(place).collect();
    places.len() != 1
}

/// The chart of these rows.
pub(super) fn sweep(rows: &[Row], by: &Sweep) -> LineChart {
    // A line has no place for words: rows without numbers are left out. Where no row has any, the first says why.
    let counted: Vec<&Row> = rows.iter().filter(|row| row.counts().is_some_and(|c| c.fetches > 0)).collect();
    let rest: Vec<Row> = counted.iter().map(|row| (by.rest)(row)).collect();
    if rest.is_empty() {
        let why = rows.iter().find_map(|row| match &row.outcome {
            Outcome::Failed(sentence) => Some(text::printable(sentence)),
            Outcome::Counted(_) => None,
        });
        let subtitle = why.unwrap_or_else(|| "nothing was fetched".to_owned());
        return LineChart {
            title: by.title.to_owned(),
            subtitle,
            across: by.across,
            upwards: "SIMT efficiency",
            panels: Vec::new(),
        };
    }
    let settings = settings(&rest);
    let panel = |setting: &crate::settings::Setting| {
        // Settings hold references into `rest`, which stands in the order of `counted`.
        let own = setting.rows.iter().filter_map(|row| rest.iter().position(|r| std::ptr::eq(r, *row)));
        let own: Vec<&Row> = own.map(|i| counted[i]).collect();
        panel(setting.heading.clone(), &own, by)
    };
    LineChart {
        panels: settings.settings.iter().map(panel).collect(),
        title: if settings.title.is_empty() { by.title.to_owned() } else { settings.title },
        subtitle: settings.subtitle,
        across: by.across,
        upwards: "SIMT efficiency",
    }
}

fn panel(heading: Option<String>, rows: &[&Row], by: &Sweep) -> Panel {
    let mut places: Vec<u64> = rows.iter().filter_map(|row| (by.place)(row)).collect();
    places.sort_unstable();
    places.dedup();
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.heuristic.as_str()) {
            names.push(&row.heuristic);
        }
    }
    let counts = |place: u64| rows.iter().filter(move |r| (by.place)(r) == Some(place));
    let best = |place: u64| {
        let of = |c: &Counts| c.efficiency_in(c.lower_bound);
        counts(place).filter_map(|r| r.counts()).map(of).reduce(f64::max)
    };
    let mut lines = vec![Series {
        label: "bound".to_owned(),
        colour: INK,
        is_bound: true,
        points: places.iter().map(|p| best(*p)).collect(),
    }];
    for name in names {
        let point = |place: u64| {
            let row = counts(place).find(|r| r.heuristic == name)?;
            Some(row.counts()?.simt_efficiency)
        };
        let points = places.iter().map(|p| point(*p)).collect();
        lines.push(Series {
            label: label_of(name, rows.iter().copied()),
            colour: colour_of(name),
            is_bound: false,
            points,
        });
    }
    Panel { heading, places, lines }
}
