//! The interface of every kind of chart.

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

    /// What the rows lack for the comparison, in words; nothing if they have it.
    fn lacks(&self, _rows: &[Row]) -> Option<&'static str> {
        None
    }

    /// Draws the rows (one at least) in their order.
    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture;
}
