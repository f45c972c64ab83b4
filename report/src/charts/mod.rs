//! One file per kind of chart, and the registry from which help, docs and tests are made.
//!
//! To add a kind: a file here, a line in [`CHARTS`], and a folder of goldens; the golden test fails until it has one.

mod divergent;
mod efficiency;
mod fetches;
mod histogram;
mod speedup;
mod sweep;
mod threads;
mod width;

use crate::{Picture, PlotOptions, Row};

/// A kind of chart.
pub trait Chart: Sync {
    /// Its name, as in `lockstep plot --kind NAME`.
    fn name(&self) -> &'static str;

    /// What it shows, in one sentence.
    fn about(&self) -> &'static str;

    /// Whether it can show shares instead of counts ([`PlotOptions::shares`]).
    fn has_shares(&self) -> bool {
        false
    }

    /// What rows lack of what it compares, in words; nothing where they have it.
    fn lacks(&self, _rows: &[Row]) -> Option<&'static str> {
        None
    }

    /// Draws the rows (one at least) in their order.
    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture;
}

/// Every kind of chart; the first is the one drawn when none is named.
pub static CHARTS: [&dyn Chart; 7] = [
    &efficiency::Efficiency,
    &fetches::Fetches,
    &divergent::Divergent,
    &histogram::Histogram,
    &speedup::Speedup,
    &threads::Threads,
    &width::Width,
];
