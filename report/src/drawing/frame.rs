//! The frame of charts with horizontal bars: where labels, bars and figures stand from left to right, the title above,
//! headings, and the axis below.

use crate::drawing::axis::{self, Tick};
use crate::drawing::palette::{FAINT_INK, INK};
use crate::drawing::text::{self, LINE};
use crate::{Anchor, Picture, PlotOptions, Text};

/// Where things stand from left to right, the same in all panels of a chart.
pub(crate) struct Frame {
    /// The size of text, and of the fainter text beside it.
    pub(crate) size: f64,
    pub(crate) small: f64,
    /// The paper that stays empty at each edge.
    pub(crate) margin: f64,
    /// Between a label, a bar and a figure.
    pub(crate) gap: f64,
    pub(crate) width: f64,
    /// The most that a line of a label may take.
    pub(crate) label_room: f64,
    /// Where the axis begins and ends.
    pub(crate) left: f64,
    pub(crate) right: f64,
}

impl Frame {
    /// The frame around bars with these labels, which take at most this part of the width: more would leave too little
    /// for the bars. The axis ends at the margin, with room for half of the last tick's label.
    pub(crate) fn new<'a>(options: &PlotOptions, label_share: f64, labels: impl Iterator<Item = &'a str>) -> Frame {
        let size = options.columns.text_size();
        let width = options.columns.width();
        let (small, margin, gap) = (size * 0.9, size * 0.7, size * 0.5);
        let label_room = width * label_share;
        let lines = labels.flat_map(|label| text::wrap(label, size, false, label_room));
        let left = margin + lines.map(|line| text::width(&line, size, false)).fold(0.0, f64::max) + gap;
        Frame { size, small, margin, gap, width, label_room, left, right: width - margin - size }
    }

    /// Where a value of an axis from 0 to `max` stands.
    pub(crate) fn x_of(&self, max: f64) -> impl Fn(f64) -> f64 + Copy + use<> {
        let (left, right) = (self.left, self.right);
        move |value| left + (right - left) * (value / max).clamp(0.0, 1.0)
    }

    /// A picture that has the title, and the fainter line below it, and nothing else yet.
    pub(crate) fn begin(&self, title: &str, subtitle: &str, options: &PlotOptions) -> Picture {
        let mut picture = Picture::new(self.width);
        picture.height = self.margin;
        title_block(&mut picture, title, subtitle, options);
        picture
    }

    /// Writes lines over the whole width, in bold type.
    pub(crate) fn heading(&self, picture: &mut Picture, words: &str) {
        for line in text::wrap(words, self.size, true, self.width - 2.0 * self.margin) {
            let y = picture.height + self.size * LINE / 2.0;
            picture.text(Text::new(&line, self.margin, y, self.size, INK).bold());
            picture.height += self.size * LINE;
        }
    }

    /// As many round ticks as have room for their labels, which are a number and the unit.
    pub(crate) fn ticks(&self, max: f64, unit: &str) -> Vec<Tick> {
        let ticks = |most| -> Vec<Tick> {
            let numbers = axis::ticks(max, most).into_iter();
            numbers.map(|tick| Tick { label: format!("{}{unit}", tick.label), value: tick.value }).collect()
        };
        let fits = |ticks: &[Tick]| {
            let widest = ticks.iter().map(|t| text::width(&t.label, self.small, false)).fold(0.0, f64::max);
            let step = ticks.get(1).map_or(max, |t| t.value) / max * (self.right - self.left);
            widest + self.size <= step
        };
        (1..=5).rev().map(ticks).find(|ticks| fits(ticks)).unwrap_or_else(|| ticks(1))
    }

    /// Draws ticks with their labels below the axis, which lies at the picture's height.
    pub(crate) fn draw_ticks(&self, picture: &mut Picture, ticks: &[Tick], x_of: impl Fn(f64) -> f64) {
        let bottom = picture.height;
        for tick in ticks {
            let x = x_of(tick.value);
            picture.line((x, bottom), (x, bottom + self.size * 0.3), 0.8, INK);
            let y = bottom + self.size * 0.45 + self.small * LINE / 2.0;
            picture.text(Text::new(&tick.label, x, y, self.small, INK).anchored(Anchor::Middle));
        }
        picture.height = bottom + self.size * 0.45 + self.small * LINE;
    }

    /// Writes what the axis means below it, and ends the picture.
    pub(crate) fn end(&self, picture: &mut Picture, axis: &str) {
        picture.height += self.size * 0.2;
        for line in text::wrap(axis, self.size, false, self.width - 2.0 * self.margin) {
            let half = text::width(&line, self.size, false) / 2.0;
            let middle = ((self.left + self.right) / 2.0).min(self.width - self.margin - half).max(self.margin + half);
            let y = picture.height + self.size * LINE / 2.0;
            picture.text(Text::new(&line, middle, y, self.size, INK).anchored(Anchor::Middle));
            picture.height += self.size * LINE;
        }
        picture.height += self.margin;
    }
}

/// Writes the title and the fainter line below it.
pub(crate) fn title_block(picture: &mut Picture, title: &str, subtitle: &str, options: &PlotOptions) {
    let size = options.columns.text_size();
    let margin = size * 0.7;
    let room = picture.width - 2.0 * margin;
    for (words, size, bold, colour) in [(title, size * 1.1, true, INK), (subtitle, size * 0.9, false, FAINT_INK)] {
        for line in text::wrap(&text::printable(words), size, bold, room) {
            let text = Text::new(&line, margin, picture.height + size * LINE / 2.0, size, colour);
            picture.text(if bold { text.bold() } else { text });
            picture.height += size * LINE;
        }
    }
    picture.height += size * 0.5;
}
