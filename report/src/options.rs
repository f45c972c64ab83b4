//! What a chart is drawn for: the paper it must fit into, and whether it shows shares.

/// What a chart is drawn for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PlotOptions {
    /// The kind of paper the chart must fit into. Default: [`Columns::One`].
    pub columns: Columns,
    /// Show shares of the whole instead of counts, in charts that can ([`Chart::has_shares`](crate::Chart::has_shares)). Default: false.
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
