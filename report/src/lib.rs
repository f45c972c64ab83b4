//! Charts made from the rows that replay writes.
//!
//! Stages meet at a file: `replay --csv rows.csv` writes one row per trace and heuristic, [`read_rows`] reads them, and
//! [`plot`] draws them. A chart is made in steps: rows, then [`Chart::draw`] (one file per kind, one ordered registry,
//! [`CHARTS`]), which lays everything out in points and returns a [`Picture`], then a file [`Format`]. The same rows
//! always give the same bytes.

pub mod accel_sim;
mod charts;
mod condition;
mod drawing;
mod error;
mod options;
pub mod page;
pub mod profile;
mod rows;
mod save;
mod settings;

use std::path::Path;

pub use charts::{CHARTS, Chart};
pub use condition::Condition;
pub use drawing::format::{FORMATS, Format};
pub use drawing::palette::{Colour, OTHER, cause_colour, colour_of, family_colour};
pub use drawing::picture::{Anchor, Mark, Picture, Text};
pub use error::{Action, Error, Result};
pub use options::{Columns, PlotOptions};
pub use rows::{Counts, Outcome, Row, parse_rows, read_rows, read_rows_where};

/// The chart of that name; without a name, the first of [`CHARTS`].
///
/// # Errors
/// No chart has that name: the error lists those there are.
pub fn chart(kind: Option<&str>) -> Result<&'static dyn Chart> {
    match kind {
        None => Ok(CHARTS[0]),
        Some(name) => CHARTS.iter().copied().find(|c| c.name() == name).ok_or_else(|| Error::UnknownKind {
            kind: name.to_owned(),
            possible: CHARTS.iter().map(|c| c.name()).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Draws the rows as a picture, in the order in which they come.
///
/// # Errors
/// There is no chart of that name, it has no shares and they were asked for, there are no rows, or the chart compares
/// several programs and the rows have only one.
pub fn draw(rows: &[Row], kind: Option<&str>, options: &PlotOptions) -> Result<Picture> {
    let chart = chart(kind)?;
    if options.shares && !chart.has_shares() {
        let possible = CHARTS.iter().filter(|c| c.has_shares()).map(|c| c.name()).collect::<Vec<_>>().join(", ");
        return Err(Error::NoShares { kind: chart.name(), possible });
    }
    if rows.is_empty() {
        return Err(Error::NothingToDraw);
    }
    if let Some(lacks) = chart.lacks(rows) {
        return Err(Error::TooFew { kind: chart.name(), lacks });
    }
    Ok(chart.draw(rows, options))
}

/// Draws the rows into a file, whose extension chooses its format. The file is either written whole or not touched.
///
/// # Errors
/// The extension is none of [`FORMATS`]', there is no chart of that name, there are no rows, or the file cannot be
/// written.
pub fn plot(rows: &[Row], kind: Option<&str>, options: &PlotOptions, out: &Path) -> Result<()> {
    let format = drawing::format::of_path(out)?;
    let picture = draw(rows, kind, options)?;
    save::save(out, &(format.render)(&picture))
}
