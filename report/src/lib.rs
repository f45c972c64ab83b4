//! Charts made from the rows that replay writes.
//!
//! Stages meet at a file: `replay --csv rows.csv` writes one row per trace and heuristic, [`read_rows`] reads them, and
//! [`plot`] draws them. A chart is made in steps: rows, then [`Chart::draw`] (one file per kind, one ordered registry,
//! [`CHARTS`]), which lays everything out in points and returns a [`Picture`], then a file [`Format`]. The same rows
//! always give the same bytes.

mod charts;
mod condition;
mod drawing;
mod error;
pub mod page;
mod rows;
mod save;
mod settings;

use std::path::Path;

pub use charts::{CHARTS, Chart};
pub use condition::Condition;
pub use drawing::format::{FORMATS, Format};
pub use drawing::palette::{Colour, OTHER, cause_colour, colour_of, family_colour};
pub use drawing::picture::{Anchor, Mark, Picture, Text};
pub use drawing::text::grouped;
pub use error::{Action, Error, Result};
pub use rows::{Counts, Outcome, Row, parse_rows, read_rows, read_rows_where};

/// What a chart is drawn for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PlotOptions {
    /// The kind of paper the chart must fit into. Default: [`Columns::One`].
    pub columns: Columns,
    /// Show shares of the whole instead of counts, in charts that can ([`Chart::has_shares`]). Default: false.
    pub shares: bool,
}

/// How many columns of text the paper has, which gives the width of a chart and the size of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Columns {
    /// A page with one column: a chart is 468 pt (6.5 in) wide, its text 9 pt.
    #[default]
    One,
    /// A page with two columns: a chart fits one of them, 252 pt (3.5 in), and its text is 7.5 pt.
    Two,
}

impl Columns {
    /// The kind of page with this many columns, if there is one.
    #[must_use]
    pub fn from_count(count: u8) -> Option<Columns> {
        match count {
            1 => Some(Columns::One),
            2 => Some(Columns::Two),
            _ => None,
        }
    }

    /// The width of a chart, in points.
    #[must_use]
    pub fn width(self) -> f64 {
        match self {
            Columns::One => 468.0,
            Columns::Two => 252.0,
        }
    }

    /// The size of the text that labels bars and axes, in points; the smallest text is nine tenths of it.
    #[must_use]
    pub fn text_size(self) -> f64 {
        match self {
            Columns::One => 9.0,
            Columns::Two => 7.5,
        }
    }
}

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
