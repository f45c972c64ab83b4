//! Horizontal bars in panels, with two reference lines each: the layout of every bar chart.

use crate::drawing::frame::Frame;
use crate::drawing::palette::{FAINT_INK, GRID, INK, PAPER, is_dark};
use crate::drawing::text::{self, LINE};
use crate::{Anchor, Colour, Counts, Outcome, Picture, PlotOptions, Row, Text, colour_of};

/// A chart of bars.
pub(crate) struct BarChart {
    pub(crate) title: String,
    /// A second, fainter line; may be empty.
    pub(crate) subtitle: String,
    /// What the bars' lengths are, with the unit.
    pub(crate) axis: &'static str,
    pub(crate) scale: Scale,
    pub(crate) panels: Vec<Panel>,
}

/// What the right end of the axis stands for.
pub(crate) enum Scale {
    /// This value in all panels; ticks are labelled once, at the bottom.
    Shared(f64),
    /// The largest count of each panel (5 at least), whose ticks are labelled at each.
    OfEachPanel,
}

/// The bars of one setting.
pub(crate) struct Panel {
    pub(crate) heading: Option<String>,
    pub(crate) bars: Vec<Bar>,
    /// The best possible value, and its label.
    pub(crate) best: Option<(f64, String)>,
    /// The value when nothing is shared, and its label.
    pub(crate) unshared: Option<(f64, String)>,
}

/// One bar, or the sentence in its place.
pub(crate) struct Bar {
    label: String,
    colour: Colour,
    content: Content,
}

enum Content {
    Value(f64, String),
    Sentence(String),
}

impl Bar {
    /// The bar of a row; `value` gives its length and what is printed at its end.
    pub(crate) fn of(row: &Row, value: fn(&Counts) -> (f64, String)) -> Bar {
        let content = match &row.outcome {
            Outcome::Counted(counts) => {
                let (length, printed) = value(counts);
                Content::Value(length, printed)
            }
            Outcome::Failed(sentence) => Content::Sentence(sentence.clone()),
        };
        Bar { label: row.label(), colour: colour_of(&row.heuristic), content }
    }
}

/// The width that labels may take, as a part of the picture's.
const LABEL_SHARE: f64 = 0.36;

impl BarChart {
    pub(crate) fn draw(&self, options: &PlotOptions) -> Picture {
        let labels = self.panels.iter().flat_map(|panel| &panel.bars).map(|bar| &*bar.label);
        let frame = Frame::new(options, LABEL_SHARE, labels);
        let mut picture = frame.begin(&self.title, &self.subtitle, options);
        for (i, panel) in self.panels.iter().enumerate() {
            let last = i + 1 == self.panels.len();
            if i > 0 {
                picture.height += frame.size;
            }
            self.panel(&mut picture, &frame, panel, last);
        }
        frame.end(&mut picture, self.axis);
        picture
    }

    /// The value at the right end of a panel's axis.
    fn max(&self, panel: &Panel) -> f64 {
        match self.scale {
            Scale::Shared(max) => max,
            Scale::OfEachPanel => {
                let lines = panel.best.iter().chain(&panel.unshared).map(|(v, _)| *v);
                let bars = panel.bars.iter().filter_map(|b| match b.content {
                    Content::Value(v, _) => Some(v),
                    Content::Sentence(_) => None,
                });
                // Counts are whole, so that the ticks of a shorter axis would not be.
                lines.chain(bars).fold(5.0, f64::max)
            }
        }
    }

    fn panel(&self, picture: &mut Picture, frame: &Frame, panel: &Panel, last: bool) {
        let max = self.max(panel);
        let x_of = frame.x_of(max);
        if let Some(heading) = &panel.heading {
            frame.heading(picture, heading);
            picture.height += frame.size * 0.3;
        }
        let references = References::place(picture, frame, panel, x_of);
        let rows: Vec<RowLayout> = panel.bars.iter().map(|bar| RowLayout::new(bar, frame)).collect();
        let top = picture.height;
        let pad = frame.size * 0.4;
        let bottom = top + 2.0 * pad + rows.iter().map(|r| r.height).sum::<f64>();
        let ticks = frame.ticks(max, "");
        for tick in &ticks {
            picture.line((x_of(tick.value), top), (x_of(tick.value), bottom), 0.5, GRID);
        }
        let mut y = top + pad;
        for (bar, row) in panel.bars.iter().zip(&rows) {
            if let Content::Value(value, _) = bar.content {
                let half = frame.size * 0.55;
                let middle = y + row.height / 2.0;
                picture.fill_edged([frame.left, middle - half, x_of(value), middle + half], bar.colour, INK);
            }
            y += row.height;
        }
        references.draw(picture, frame, bottom);
        y = top + pad;
        for (bar, row) in panel.bars.iter().zip(&rows) {
            row.draw_text(picture, frame, bar, y + row.height / 2.0, &references, x_of);
            y += row.height;
        }
        picture.line((frame.left, top), (frame.left, bottom), 0.8, INK);
        picture.line((frame.left, bottom), (frame.right, bottom), 0.8, INK);
        picture.height = bottom;
        if last || matches!(self.scale, Scale::OfEachPanel) {
            frame.draw_ticks(picture, &ticks, x_of);
        }
    }
}

/// The lines of a bar's label and sentence, and the height they need.
struct RowLayout {
    label: Vec<String>,
    sentence: Vec<String>,
    height: f64,
}

impl RowLayout {
    fn new(bar: &Bar, frame: &Frame) -> RowLayout {
        let label = text::wrap(&bar.label, frame.size, false, frame.label_room);
        let sentence = match &bar.content {
            Content::Value(..) => Vec::new(),
            Content::Sentence(sentence) => {
                let room = frame.width - frame.margin - frame.left - frame.gap;
                text::wrap(&text::printable(sentence), frame.small, false, room)
            }
        };
        let lines = (label.len() as f64 * frame.size).max(sentence.len() as f64 * frame.small);
        RowLayout { label, sentence, height: lines * LINE + frame.size * 0.5 }
    }

    fn draw_text(
        &self,
        picture: &mut Picture,
        frame: &Frame,
        bar: &Bar,
        middle: f64,
        references: &References,
        x_of: impl Fn(f64) -> f64,
    ) {
        let first = |lines: usize, size: f64| middle - (lines as f64 - 1.0) / 2.0 * size * LINE;
        for (i, line) in self.label.iter().enumerate() {
            let y = first(self.label.len(), frame.size) + i as f64 * frame.size * LINE;
            picture.text(Text::new(line, frame.left - frame.gap, y, frame.size, INK).anchored(Anchor::End));
        }
        match &bar.content {
            Content::Value(value, printed) => {
                let text = place_value(frame, bar.colour, printed, x_of(*value), middle, references);
                if text.anchor == Anchor::End { picture.text(text) } else { picture.texts_on_paper(vec![text]) }
            }
            Content::Sentence(_) => {
                let texts: Vec<Text> = (0..)
                    .map(|i| first(self.sentence.len(), frame.small) + f64::from(i) * frame.small * LINE)
                    .zip(&self.sentence)
                    .map(|(y, line)| Text::new(line, frame.left + frame.gap, y, frame.small, FAINT_INK))
                    .collect();
                picture.texts_on_paper(texts);
            }
        }
    }
}

/// The text that says a bar's value: the first of these places that is free of reference lines and within the picture:
/// behind the bar's end, within it, behind the lines that follow it, within it before the lines that cross it.
fn place_value(frame: &Frame, colour: Colour, printed: &str, end: f64, middle: f64, references: &References) -> Text {
    let width = text::width(printed, frame.size, false);
    let within_colour = if is_dark(colour) { PAPER } else { INK };
    let behind = |x: f64| Text::new(printed, x + frame.gap, middle, frame.size, INK);
    let within = |x: f64| Text::new(printed, x - frame.gap, middle, frame.size, within_colour).anchored(Anchor::End);
    let is_free = |text: &Text| {
        let [left, _, right, _] = text.extent();
        let in_bar = text.anchor == Anchor::Start || left >= frame.left + 1.0;
        in_bar && right <= frame.width - frame.margin && !references.cross(left - 2.0, right + 2.0)
    };
    let after_lines = references.lines.iter().map(|l| l.x).filter(|x| *x >= end).map(behind);
    let before_lines = references.lines.iter().map(|l| l.x).filter(|x| *x <= end).map(within);
    let places = [behind(end), within(end)].into_iter().chain(after_lines).chain(before_lines);
    places
        .into_iter()
        .find(is_free)
        .unwrap_or_else(|| if end - frame.left < width + 2.0 * frame.gap { behind(end) } else { within(end) })
}

/// The two reference lines of a panel, with their labels above it.
struct References {
    lines: Vec<Reference>,
}

/// A reference line.
struct Reference {
    x: f64,
    /// Where it begins; it ends at the panel's bottom.
    top: f64,
    /// Whether it is the line of the best possible.
    best: bool,
}

impl References {
    /// Writes the labels so that none covers the other or is crossed by the other's line, and leaves the picture's
    /// height at the panel's top.
    fn place(picture: &mut Picture, frame: &Frame, panel: &Panel, x_of: impl Fn(f64) -> f64) -> References {
        let line = frame.small * LINE;
        let mut found: Vec<(f64, &str, bool)> = Vec::new();
        found.extend(panel.best.as_ref().map(|(v, label)| (x_of(*v), label.as_str(), true)));
        found.extend(panel.unshared.as_ref().map(|(v, label)| (x_of(*v), label.as_str(), false)));
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let width = |i: usize| text::width(found[i].1, frame.small, false);
        // Between two labels in one row.
        let apart = 1.5 * frame.size;
        let fits_right = |i: usize| found[i].0 + width(i) <= frame.width - frame.margin;
        let fits_left = |i: usize| found[i].0 - width(i) >= frame.margin;
        // Per label: the row above the panel (0 is the lower) and its anchor.
        let places: Vec<(usize, Anchor)> = match found.len() {
            0 => Vec::new(),
            1 => vec![(0, if fits_right(0) { Anchor::Start } else { Anchor::End })],
            _ if fits_left(0) && fits_right(1) => vec![(0, Anchor::End), (0, Anchor::Start)],
            _ if fits_right(0) && fits_left(1) && found[0].0 + width(0) + apart < found[1].0 - width(1) => {
                vec![(0, Anchor::Start), (0, Anchor::End)]
            }
            _ if fits_right(0) && fits_right(1) => {
                let beside = found[0].0 + width(0) + apart < found[1].0;
                vec![(usize::from(!beside), Anchor::Start), (0, Anchor::Start)]
            }
            _ if fits_left(0) && fits_left(1) => {
                let beside = found[1].0 - width(1) - apart > found[0].0;
                vec![(0, Anchor::End), (usize::from(!beside), Anchor::End)]
            }
            _ => vec![(1, Anchor::Start), (0, Anchor::End)],
        };
        let rows = places.iter().map(|(row, _)| row + 1).max().unwrap_or(0);
        let top = picture.height;
        let mut lines = Vec::new();
        for (&(x, label, best), &(row, anchor)) in found.iter().zip(&places) {
            let label_top = top + (rows - 1 - row) as f64 * line;
            let shift = if anchor == Anchor::Start { 2.0 } else { -2.0 };
            let colour = if best { INK } else { FAINT_INK };
            picture.text(Text::new(label, x + shift, label_top + line / 2.0, frame.small, colour).anchored(anchor));
            lines.push(Reference { x, top: label_top + line * 0.1, best });
        }
        picture.height += rows as f64 * line;
        References { lines }
    }

    /// Whether one of them stands between two x.
    fn cross(&self, left: f64, right: f64) -> bool {
        self.lines.iter().any(|line| left <= line.x && line.x <= right)
    }

    fn draw(&self, picture: &mut Picture, frame: &Frame, bottom: f64) {
        for &Reference { x, top, best } in &self.lines {
            let width = frame.size * 0.12;
            // Paper at both sides keeps the line apart from a bar of its own colour.
            let beside = width / 2.0 + 0.4;
            picture.fill([x - beside, top, x + beside, bottom], PAPER);
            if best {
                picture.line((x, top), (x, bottom), width, INK);
            } else {
                picture.dashes(x, top, bottom, width, FAINT_INK);
            }
        }
    }
}
