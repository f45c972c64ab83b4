//! Horizontal bars of two parts, the first at the axis and the second stacked on it, with a figure behind each: the
//! layout of charts that show a part of a whole. Bars of one label stand one below another, so that what was before
//! stands over what came after.

use crate::axis::{self, Tick};
use crate::bars::title_block;
use crate::palette::{FAINT_INK, GRID, INK};
use crate::text::{self, LINE};
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

/// The width that labels may take, as a part of the picture's: more would leave too little for the bars.
const LABEL_SHARE: f64 = 0.34;

/// Where things stand from left to right, the same in all panels.
struct Frame {
    size: f64,
    small: f64,
    margin: f64,
    gap: f64,
    width: f64,
    label_room: f64,
    /// Where the axis begins and ends.
    left: f64,
    right: f64,
}

impl StackChart {
    pub(crate) fn draw(&self, options: &PlotOptions) -> Picture {
        let frame = self.frame(options);
        let mut picture = Picture::new(frame.width);
        picture.height = frame.margin;
        title_block(&mut picture, &self.title, &self.subtitle, options);
        self.draw_key(&mut picture, &frame);
        for (i, panel) in self.panels.iter().enumerate() {
            if i > 0 {
                picture.height += frame.size;
            }
            frame.panel(&mut picture, panel, self.unit);
        }
        frame.axis_title(&mut picture, self.axis);
        picture.height += frame.margin;
        picture
    }

    fn frame(&self, options: &PlotOptions) -> Frame {
        let size = options.columns.text_size();
        let width = options.columns.width();
        let (small, margin, gap) = (size * 0.9, size * 0.7, size * 0.5);
        let lines = || self.panels.iter().flat_map(|p| &p.groups).flat_map(|g| &g.lines);
        let label_room = width * LABEL_SHARE;
        let labels = lines().flat_map(|line| text::wrap(&line.label, size, false, label_room));
        let left = margin + labels.map(|line| text::width(&line, size, false)).fold(0.0, f64::max) + gap;
        let figures = lines().flat_map(|line| &line.bars).filter_map(|bar| match bar {
            Bar::Parts { figure, .. } => Some(text::width(figure, small, false)),
            Bar::Sentence(_) => None,
        });
        // The last tick's label is centred on the axis' end.
        let right = width - margin - figures.fold(size, f64::max) - gap;
        Frame { size, small, margin, gap, width, label_room, left, right }
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

impl Frame {
    fn panel(&self, picture: &mut Picture, panel: &Panel, unit: &str) {
        if let Some(heading) = &panel.heading {
            self.bold_lines(picture, heading);
            picture.height += self.size * 0.3;
        }
        let max = panel.groups.iter().flat_map(|g| &g.lines).flat_map(|l| &l.bars).fold(0.0, |most, bar| match bar {
            Bar::Parts { end, .. } => f64::max(most, *end),
            Bar::Sentence(_) => most,
        });
        // Counts are whole, so that the ticks of a shorter axis would not be.
        let max = f64::max(max, 5.0);
        let x_of = |value: f64| self.left + (self.right - self.left) * (value / max).clamp(0.0, 1.0);
        let top = picture.height + self.size * 0.3;
        let ticks = self.ticks(max, unit);
        let mut bottom = top;
        for group in &panel.groups {
            if let Some(heading) = &group.heading {
                picture.height += self.size * 0.3;
                self.bold_lines(picture, heading);
            }
            // The height is known when the lines are laid out; the grid lies below them.
            let above = picture.height;
            let mut lines = Picture::new(self.width);
            lines.height = above + self.size * 0.2;
            group.lines.iter().for_each(|line| self.line(&mut lines, line, x_of));
            bottom = lines.height;
            for tick in &ticks {
                picture.line((x_of(tick.value), above), (x_of(tick.value), bottom), 0.5, GRID);
            }
            picture.marks.append(&mut lines.marks);
            picture.line((self.left, above), (self.left, bottom), 0.8, INK);
            picture.height = bottom;
        }
        picture.line((self.left, bottom), (self.right, bottom), 0.8, INK);
        for tick in &ticks {
            let x = x_of(tick.value);
            picture.line((x, bottom), (x, bottom + self.size * 0.3), 0.8, INK);
            let y = bottom + self.size * 0.45 + self.small * LINE / 2.0;
            picture.text(Text::new(&tick.label, x, y, self.small, INK).anchored(Anchor::Middle));
        }
        picture.height = bottom + self.size * 0.45 + self.small * LINE;
    }

    fn bold_lines(&self, picture: &mut Picture, words: &str) {
        for line in text::wrap(&text::printable(words), self.size, true, self.width - 2.0 * self.margin) {
            let y = picture.height + self.size * LINE / 2.0;
            picture.text(Text::new(&line, self.margin, y, self.size, INK).bold());
            picture.height += self.size * LINE;
        }
    }

    /// A label with its bars.
    fn line(&self, picture: &mut Picture, line: &Line, x_of: impl Fn(f64) -> f64 + Copy) {
        let label = text::wrap(&line.label, self.size, false, self.label_room);
        let room = self.width - self.margin - self.left - self.gap;
        let sentence = |words: &str| text::wrap(&text::printable(words), self.small, false, room);
        let heights: Vec<f64> = line
            .bars
            .iter()
            .map(|bar| match bar {
                Bar::Parts { .. } => self.small * LINE,
                Bar::Sentence(words) => sentence(words).len() as f64 * self.small * LINE,
            })
            .collect();
        let bars = heights.iter().sum::<f64>();
        let height = f64::max(bars, label.len() as f64 * self.size * LINE);
        let start = picture.height + (height - label.len() as f64 * self.size * LINE) / 2.0;
        for (i, words) in label.iter().enumerate() {
            let y = start + (i as f64 + 0.5) * self.size * LINE;
            picture.text(Text::new(words, self.left - self.gap, y, self.size, INK).anchored(Anchor::End));
        }
        let mut y = picture.height + (height - bars) / 2.0;
        for (bar, height) in line.bars.iter().zip(heights) {
            match bar {
                Bar::Parts { first, end, colours, figure } => {
                    let (above, below) = (y + height * 0.08, y + height * 0.92);
                    picture.fill_edged([x_of(*first), above, x_of(*end), below], colours[1], INK);
                    picture.fill_edged([self.left, above, x_of(*first), below], colours[0], INK);
                    let at = Text::new(figure, self.width - self.margin, y + height / 2.0, self.small, INK);
                    picture.text(at.anchored(Anchor::End));
                }
                Bar::Sentence(words) => {
                    let texts = sentence(words).into_iter().enumerate().map(|(i, words)| {
                        let y = y + (i as f64 + 0.5) * self.small * LINE;
                        Text::new(&words, self.left + self.gap, y, self.small, FAINT_INK)
                    });
                    picture.texts_on_paper(texts.collect());
                }
            }
            y += height;
        }
        picture.height += height + self.size * 0.35;
    }

    /// As many round ticks as have room for their labels.
    fn ticks(&self, max: f64, unit: &str) -> Vec<Tick> {
        let label = |tick: Tick| Tick { label: format!("{}{unit}", tick.label), value: tick.value };
        let fits = |ticks: &[Tick]| {
            let widest = ticks.iter().map(|t| text::width(&t.label, self.small, false)).fold(0.0, f64::max);
            let step = ticks.get(1).map_or(max, |t| t.value) / max * (self.right - self.left);
            widest + self.size <= step
        };
        let tried = (1..=5).rev().map(|most| axis::ticks(max, most).into_iter().map(label).collect::<Vec<_>>());
        tried.into_iter().find(|ticks| fits(ticks)).unwrap_or_else(|| vec![label(axis::ticks(max, 1).remove(0))])
    }

    fn axis_title(&self, picture: &mut Picture, title: &str) {
        let room = self.width - 2.0 * self.margin;
        picture.height += self.size * 0.2;
        for line in text::wrap(title, self.size, false, room) {
            let half = text::width(&line, self.size, false) / 2.0;
            let middle = ((self.left + self.right) / 2.0).min(self.width - self.margin - half).max(self.margin + half);
            let y = picture.height + self.size * LINE / 2.0;
            picture.text(Text::new(&line, middle, y, self.size, INK).anchored(Anchor::Middle));
            picture.height += self.size * LINE;
        }
    }
}
