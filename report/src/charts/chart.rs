//! What every kind of chart is.

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
