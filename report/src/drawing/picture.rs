//! A picture: marks on white paper, in points (1/72 inch), from the upper left corner.
//!
//! Charts lay out marks and know nothing about files; any plotters backend can paint them, at any scale.

use plotters::backend::DrawingBackend;
use plotters::drawing::DrawingAreaErrorKind::{self, BackendError};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle};

use crate::Colour;
use crate::drawing::palette::PAPER;
use crate::drawing::text::{self, FONTS};

/// Which end of a text stands at its x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
}

/// One line of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// What it says.
    pub text: String,
    /// Where its [`Anchor`] is, in points from the left.
    pub x: f64,
    /// Where the middle of its small letters is, in points from the top.
    pub y: f64,
    /// Its size, in points.
    pub size: f64,
    /// Which end stands at `x`.
    pub anchor: Anchor,
    /// Whether it is bold.
    pub bold: bool,
    /// Whether it runs upwards; `anchor` then is about `y`.
    pub upwards: bool,
    /// Its colour.
    pub colour: Colour,
}

impl Text {
    /// Plain text that begins at `x`.
    pub(crate) fn new(text: &str, x: f64, y: f64, size: f64, colour: Colour) -> Text {
        let text = text::printable(text);
        Text { text, x, y, size, anchor: Anchor::Start, bold: false, upwards: false, colour }
    }

    pub(crate) fn anchored(self, anchor: Anchor) -> Text {
        Text { anchor, ..self }
    }

    pub(crate) fn bold(self) -> Text {
        Text { bold: true, ..self }
    }

    pub(crate) fn upwards(self) -> Text {
        Text { upwards: true, ..self }
    }

    /// The room it takes in the widest of the usual fonts: left, top, right, bottom, in points.
    #[must_use]
    pub fn extent(&self) -> [f64; 4] {
        let width = text::width(&self.text, self.size, self.bold);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let half = self.size * 0.5;
        if self.upwards {
            [self.x - half, self.y + before - width, self.x + half, self.y + before]
        } else {
            [self.x - before, self.y - half, self.x - before + width, self.y + half]
        }
    }
}

/// One thing on the paper. Later marks lie over earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A filled rectangle: left, top, right, bottom.
    Box([f64; 4], Colour),
    /// A straight line.
    Line {
        /// Where it begins: x, y.
        from: (f64, f64),
        /// Where it ends: x, y.
        to: (f64, f64),
        /// How wide it is.
        width: f64,
        /// Its colour.
        colour: Colour,
    },
    /// A line of text.
    Text(Text),
}

/// How a backend is told to write letters.
#[derive(Clone, Copy)]
pub(crate) struct Lettering {
    /// What it calls the size, in sizes as a page calls them.
    pub(crate) size: f64,
    /// How far below its place it is to be told to write a text, in sizes, so that small letters have their middle
    /// there.
    pub(crate) lower: f64,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Its width, in points.
    pub width: f64,
    /// Its height, in points.
    pub height: f64,
    /// What is on it.
    pub marks: Vec<Mark>,
}

impl Picture {
    /// Empty paper, which grows downwards as marks are added.
    pub(crate) fn new(width: f64) -> Picture {
        Picture { width, height: 0.0, marks: Vec::new() }
    }

    pub(crate) fn text(&mut self, text: Text) {
        self.marks.push(Mark::Text(text));
    }

    /// Lines of text over paper of their own, so that lines behind them don't run through.
    pub(crate) fn texts_on_paper(&mut self, texts: Vec<Text>) {
        let around = texts
            .iter()
            .map(Text::extent)
            .reduce(|a, b| [a[0].min(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].max(b[3])]);
        if let Some([left, top, right, bottom]) = around {
            self.fill([left - 1.0, top - 1.0, right + 1.0, bottom + 1.0], PAPER);
        }
        self.marks.extend(texts.into_iter().map(Mark::Text));
    }

    pub(crate) fn fill(&mut self, extent: [f64; 4], colour: Colour) {
        self.marks.push(Mark::Box(extent, colour));
    }

    /// A rectangle with a thin dark edge, which pale colours need on white.
    pub(crate) fn fill_edged(&mut self, extent: [f64; 4], colour: Colour, edge: Colour) {
        const EDGE: f64 = 0.4;
        let [left, top, right, bottom] = extent;
        self.fill(extent, edge);
        if right - left > 2.0 * EDGE && bottom - top > 2.0 * EDGE {
            self.fill([left + EDGE, top + EDGE, right - EDGE, bottom - EDGE], colour);
        }
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), width: f64, colour: Colour) {
        self.marks.push(Mark::Line { from, to, width, colour });
    }

    /// A vertical line of dashes.
    pub(crate) fn dashes(&mut self, x: f64, top: f64, bottom: f64, width: f64, colour: Colour) {
        const DASH: f64 = 3.0;
        const GAP: f64 = 2.0;
        let mut y = top;
        while y < bottom {
            self.line((x, y), (x, (y + DASH).min(bottom)), width, colour);
            y += DASH + GAP;
        }
    }

    /// Every text on it.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.marks.iter().filter_map(|mark| if let Mark::Text(text) = mark { Some(text) } else { None })
    }

    /// Paints it, with so many of the backend's units to a point.
    ///
    /// # Errors
    /// Those of the backend.
    pub(crate) fn paint<B: DrawingBackend>(
        &self,
        backend: &mut B,
        scale: f64,
        lettering: Lettering,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let unit = |v: f64| (v * scale).round() as i32;
        let at = |x: f64, y: f64| (unit(x), unit(y));
        let rgb = |(r, g, b): Colour| RGBColor(r, g, b);
        backend.ensure_prepared().map_err(BackendError)?;
        backend.draw_rect((0, 0), at(self.width, self.height), &rgb(PAPER), true).map_err(BackendError)?;
        for mark in &self.marks {
            match mark {
                Mark::Box([left, top, right, bottom], colour) => {
                    backend
                        .draw_rect(at(*left, *top), at(*right, *bottom), &rgb(*colour), true)
                        .map_err(BackendError)?;
                }
                Mark::Line { from, to, width, colour } => {
                    let style = ShapeStyle::from(rgb(*colour)).stroke_width(unit(*width).max(1) as u32);
                    backend.draw_line(at(from.0, from.1), at(to.0, to.1), &style).map_err(BackendError)?;
                }
                Mark::Text(text) => {
                    let h_pos = match text.anchor {
                        Anchor::Start => HPos::Left,
                        Anchor::Middle => HPos::Center,
                        Anchor::End => HPos::Right,
                    };
                    let style = if text.bold { FontStyle::Bold } else { FontStyle::Normal };
                    let font = (FontFamily::Name(FONTS), text.size * scale * lettering.size, style).into_font();
                    let font = if text.upwards { font.transform(FontTransform::Rotate270) } else { font };
                    let colour = rgb(text.colour);
                    let style = TextStyle::from(font).color(&colour).pos(Pos::new(h_pos, VPos::Center));
                    let by = text.size * lettering.lower;
                    let place = if text.upwards { at(text.x + by, text.y) } else { at(text.x, text.y + by) };
                    backend.draw_text(&text.text, &style, place).map_err(BackendError)?;
                }
            }
        }
        backend.present().map_err(BackendError)
    }
}
