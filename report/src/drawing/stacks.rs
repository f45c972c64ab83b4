//! Horizontal bars of two parts, the first at the axis and the second stacked on it, with a figure behind each: the
//! layout of charts that show a part of a whole. Bars of one label stand one below another, so that what was before
//! stands over what came after.

use crate::drawing::frame::Frame;
use crate::drawing::palette::{FAINT_INK, GRID, INK};
use crate::drawing::text::{self, LINE};
use crate::{Anchor, Colour, Picture, PlotOptions, Text};

/// A chart of stacked bars.
pub(crate) struct StackChart {
    pub(crate) title: String,
    /// A second, fainter line; may be empty.
    pub(crate) subtitle: String,
    /// What the two parts are, each with a colour that stands for it.
    pub(crate) key: [(Colour, &'static str); 2],
    /// What the reader must know of the order of bars and of the figures.
    pub(crate) explanation: String,
    /// What the bars' lengths are, with the unit.
    pub(crate) axis: &'static str,
    /// What ticks say behind their number.
    pub(crate) unit: &'static str,
    pub(crate) panels: Vec<Panel>,
}

/// The bars of one setting, over an axis of their own.
pub(crate) struct Panel {
    pub(crate) heading: Option<String>,
    pub(crate) groups: Vec<Group>,
}

/// Lines that belong together.
pub(crate) struct Group {
    /// What stands above them; none where their labels say all.
    pub(crate) heading: Option<String>,
    pub(crate) lines: Vec<Line>,
}

/// A label and its bars, from above.
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar, or the sentence in its place.
pub(crate) enum Bar {
    Parts {
        /// Where the first part ends.
        first: f64,
        /// Where the second, which begins there, ends.
        end: f64,
        /// The colours of both.
        colours: [Colour; 2],
        /// What is written behind the bars.
        figure: String,
    },
    Sentence(String),
}

/// The width that labels may take, as a part of the picture's.
const LABEL_SHARE: f64 = 0.34;

impl StackChart {
    pub(crate) fn draw(&self, options: &PlotOptions) -> Picture {
        let frame = self.frame(options);
        let mut picture = frame.begin(&self.title, &self.subtitle, options);
        self.draw_key(&mut picture, &frame);
        for (i, panel) in self.panels.iter().enumerate() {
            if i > 0 {
                picture.height += frame.size;
            }
            panel.draw(&mut picture, &frame, self.unit);
        }
        frame.end(&mut picture, self.axis);
        picture
    }

    /// The frame, with a column for the figures behind the bars.
    fn frame(&self, options: &PlotOptions) -> Frame {
        let lines = || self.panels.iter().flat_map(|p| &p.groups).flat_map(|g| &g.lines);
        let frame = Frame::new(options, LABEL_SHARE, lines().map(|line| &*line.label));
        let figures = lines().flat_map(|line| &line.bars).filter_map(|bar| match bar {
            Bar::Parts { figure, .. } => Some(text::width(figure, frame.small, false)),
            Bar::Sentence(_) => None,
        });
        let right = frame.width - frame.margin - figures.fold(frame.size, f64::max) - frame.gap;
        Frame { right, ..frame }
    }

    /// The colours of the two parts with their meaning, side by side where they fit, and the explanation below.
    fn draw_key(&self, picture: &mut Picture, frame: &Frame) {
        let (size, swatch) = (frame.small, frame.small * 0.8);
        let line = size * LINE;
        let mut x = frame.margin;
        for (colour, words) in self.key {
            let needed = swatch + frame.gap + text::width(words, size, false);
            if x > frame.margin && x + needed > frame.width - frame.margin {
                x = frame.margin;
                picture.height += line;
            }
            let y = picture.height + line / 2.0;
            picture.fill_edged([x, y - swatch / 2.0, x + swatch, y + swatch / 2.0], colour, INK);
            picture.text(Text::new(words, x + swatch + frame.gap, y, size, INK));
            x += needed + 2.0 * size;
        }
        picture.height += line;
        for words in text::wrap(&text::printable(&self.explanation), size, false, frame.width - 2.0 * frame.margin) {
            picture.text(Text::new(&words, frame.margin, picture.height + line / 2.0, size, FAINT_INK));
            picture.height += line;
        }
        picture.height += frame.size * 0.6;
    }
}

impl Panel {
    fn draw(&self, picture: &mut Picture, frame: &Frame, unit: &str) {
        if let Some(heading) = &self.heading {
            frame.heading(picture, &text::printable(heading));
            picture.height += frame.size * 0.3;
        }
        let max = self.groups.iter().flat_map(|g| &g.lines).flat_map(|l| &l.bars).fold(0.0, |most, bar| match bar {
            Bar::Parts { end, .. } => f64::max(most, *end),
            Bar::Sentence(_) => most,
        });
        // Counts are whole, so that the ticks of a shorter axis would not be.
        let max = f64::max(max, 5.0);
        let x_of = frame.x_of(max);
        let top = picture.height + frame.size * 0.3;
        let ticks = frame.ticks(max, unit);
        let mut bottom = top;
        for group in &self.groups {
            if let Some(heading) = &group.heading {
                picture.height += frame.size * 0.3;
                frame.heading(picture, &text::printable(heading));
            }
            // The height is known when the lines are laid out; the grid lies below them.
            let above = picture.height;
            let mut lines = Picture::new(frame.width);
            lines.height = above + frame.size * 0.2;
            group.lines.iter().for_each(|line| line.draw(&mut lines, frame, x_of));
            bottom = lines.height;
            for tick in &ticks {
                picture.line((x_of(tick.value), above), (x_of(tick.value), bottom), 0.5, GRID);
            }
            picture.marks.append(&mut lines.marks);
            picture.line((frame.left, above), (frame.left, bottom), 0.8, INK);
            picture.height = bottom;
        }
        picture.line((frame.left, bottom), (frame.right, bottom), 0.8, INK);
        frame.draw_ticks(picture, &ticks, x_of);
    }
}

impl Line {
    /// A label with its bars.
    fn draw(&self, picture: &mut Picture, frame: &Frame, x_of: impl Fn(f64) -> f64 + Copy) {
        let label = text::wrap(&self.label, frame.size, false, frame.label_room);
        let room = frame.width - frame.margin - frame.left - frame.gap;
        let sentence = |words: &str| text::wrap(&text::printable(words), frame.small, false, room);
        let heights: Vec<f64> = self
            .bars
            .iter()
            .map(|bar| match bar {
                Bar::Parts { .. } => frame.small * LINE,
                Bar::Sentence(words) => sentence(words).len() as f64 * frame.small * LINE,
            })
            .collect();
        let bars = heights.iter().sum::<f64>();
        let height = f64::max(bars, label.len() as f64 * frame.size * LINE);
        let start = picture.height + (height - label.len() as f64 * frame.size * LINE) / 2.0;
        for (i, words) in label.iter().enumerate() {
            let y = start + (i as f64 + 0.5) * frame.size * LINE;
            picture.text(Text::new(words, frame.left - frame.gap, y, frame.size, INK).anchored(Anchor::End));
        }
        let mut y = picture.height + (height - bars) / 2.0;
        for (bar, height) in self.bars.iter().zip(heights) {
            match bar {
                Bar::Parts { first, end, colours, figure } => {
                    let (above, below) = (y + height * 0.08, y + height * 0.92);
                    picture.fill_edged([x_of(*first), above, x_of(*end), below], colours[1], INK);
                    picture.fill_edged([frame.left, above, x_of(*first), below], colours[0], INK);
                    let at = Text::new(figure, frame.width - frame.margin, y + height / 2.0, frame.small, INK);
                    picture.text(at.anchored(Anchor::End));
                }
                Bar::Sentence(words) => {
                    let texts = sentence(words).into_iter().enumerate().map(|(i, words)| {
                        let y = y + (i as f64 + 0.5) * frame.small * LINE;
                        Text::new(&words, frame.left + frame.gap, y, frame.small, FAINT_INK)
                    });
                    picture.texts_on_paper(texts.collect());
                }
            }
            y += height;
        }
        picture.height += height + frame.size * 0.35;
    }
}
