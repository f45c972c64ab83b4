//! Lines in panels, one per heuristic, over a row of settings: the layout of every chart of a sweep. Each line has its
//! name at its end, so that no reader has to tell colours apart.

use crate::drawing::axis;
use crate::drawing::frame::title_block;
use crate::drawing::palette::{FAINT_INK, GRID, INK};
use crate::drawing::text::{self, LINE};
use crate::{Anchor, Colour, Picture, PlotOptions, Text};

/// A chart of lines.
pub(crate) struct LineChart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    /// What stands along the bottom, with its unit.
    pub(crate) across: &'static str,
    /// What stands along the left, with its unit.
    pub(crate) upwards: &'static str,
    pub(crate) panels: Vec<Panel>,
}

/// The lines of one program.
pub(crate) struct Panel {
    pub(crate) heading: Option<String>,
    /// The settings, from left to right.
    pub(crate) places: Vec<u64>,
    pub(crate) lines: Vec<Series>,
}

/// A line: its height (0 to 1) at each place where it has one.
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) colour: Colour,
    /// Whether it is a bound, which is drawn thin and without points.
    pub(crate) is_bound: bool,
    pub(crate) points: Vec<Option<f64>>,
}

/// The width that names may take, as a part of the picture's.
const NAME_SHARE: f64 = 0.34;

/// Where things stand, the same in all panels.
struct Frame {
    size: f64,
    small: f64,
    margin: f64,
    left: f64,
    right: f64,
    /// Where names begin.
    names: f64,
}

impl LineChart {
    pub(crate) fn draw(&self, options: &PlotOptions) -> Picture {
        let frame = self.frame(options);
        let mut picture = Picture::new(options.columns.width());
        picture.height = frame.margin;
        title_block(&mut picture, &self.title, &self.subtitle, options);
        for (i, panel) in self.panels.iter().enumerate() {
            if i > 0 {
                picture.height += frame.size;
            }
            self.panel(&mut picture, &frame, panel);
        }
        let y = picture.height + frame.size * LINE / 2.0;
        let middle = (frame.left + frame.right) / 2.0;
        picture.text(Text::new(self.across, middle, y, frame.size, INK).anchored(Anchor::Middle));
        picture.height += frame.size * LINE + frame.margin;
        picture
    }

    fn frame(&self, options: &PlotOptions) -> Frame {
        let size = options.columns.text_size();
        let (small, margin) = (size * 0.9, size * 0.7);
        let width = options.columns.width();
        let left = margin + size * LINE + text::width("100%", small, false) + size * 0.8;
        let names = self.panels.iter().flat_map(|p| &p.lines);
        let widest = names.map(|l| text::width(&l.label, small, false)).fold(0.0, f64::max);
        let room = widest.min(width * NAME_SHARE);
        let names = width - margin - room;
        Frame { size, small, margin, left, right: names - size * 1.4, names }
    }

    fn panel(&self, picture: &mut Picture, frame: &Frame, panel: &Panel) {
        if let Some(heading) = &panel.heading {
            for line in text::wrap(heading, frame.size, true, picture.width - 2.0 * frame.margin) {
                let y = picture.height + frame.size * LINE / 2.0;
                picture.text(Text::new(&line, frame.margin, y, frame.size, INK).bold());
                picture.height += frame.size * LINE;
            }
        }
        let top = picture.height + frame.small * LINE / 2.0;
        let names = names(frame, panel);
        let needed: f64 = names.iter().map(|(_, lines)| lines.len() as f64 * frame.small * LINE).sum();
        let bottom = top + (frame.size * 16.0).max(needed);
        self.axes(picture, frame, panel, (top, bottom));
        let y_of = |share: f64| bottom - (bottom - top) * share;
        for line in panel.lines.iter().filter(|l| l.is_bound).chain(panel.lines.iter().filter(|l| !l.is_bound)) {
            draw_line(picture, frame, panel, line, y_of);
        }
        label(picture, frame, &names, top, bottom, y_of);
        picture.height = bottom + frame.size * 0.5 + frame.small * LINE + frame.size * 0.3;
    }

    fn axes(&self, picture: &mut Picture, frame: &Frame, panel: &Panel, (top, bottom): (f64, f64)) {
        for tick in axis::ticks(100.0, 5) {
            let y = bottom - (bottom - top) * tick.value / 100.0;
            picture.line((frame.left, y), (frame.right, y), 0.5, GRID);
            let text = Text::new(&format!("{}%", tick.label), frame.left - frame.size * 0.4, y, frame.small, INK);
            picture.text(text.anchored(Anchor::End));
        }
        let title = Text::new(self.upwards, frame.margin + frame.size / 2.0, (top + bottom) / 2.0, frame.size, INK);
        picture.text(title.anchored(Anchor::Middle).upwards());
        picture.line((frame.left, top), (frame.left, bottom), 0.8, INK);
        picture.line((frame.left, bottom), (frame.right, bottom), 0.8, INK);
        for (i, place) in panel.places.iter().enumerate() {
            let x = x_of(frame, panel, i);
            picture.line((x, bottom), (x, bottom + frame.size * 0.25), 0.8, INK);
            let y = bottom + frame.size * 0.4 + frame.small * LINE / 2.0;
            picture.text(Text::new(&place.to_string(), x, y, frame.small, INK).anchored(Anchor::Middle));
        }
    }
}

fn x_of(frame: &Frame, panel: &Panel, place: usize) -> f64 {
    let inset = frame.size * 1.2;
    let step = (frame.right - frame.left - 2.0 * inset) / (panel.places.len().max(2) - 1) as f64;
    frame.left + inset + step * place as f64
}

fn draw_line(picture: &mut Picture, frame: &Frame, panel: &Panel, line: &Series, y_of: impl Fn(f64) -> f64) {
    let points = line.points.iter().enumerate().filter_map(|(i, share)| Some((x_of(frame, panel, i), y_of((*share)?))));
    let points: Vec<(f64, f64)> = points.collect();
    let width = if line.is_bound { 0.6 } else { 1.3 };
    for pair in points.windows(2) {
        picture.line(pair[0], pair[1], width, line.colour);
    }
    if line.is_bound && points.len() > 1 {
        return;
    }
    let half = frame.size * 0.24;
    for (x, y) in points {
        picture.fill_edged([x - half, y - half, x + half, y + half], line.colour, INK);
    }
}

/// Each line that has a point, with its name cut to the room that it has, those whose last points are highest first.
fn names<'a>(frame: &Frame, panel: &'a Panel) -> Vec<(&'a Series, Vec<String>)> {
    // At least one character fits into any room.
    let room = (NAME_SHARE * (frame.names / (1.0 - NAME_SHARE))).max(frame.size);
    let mut found: Vec<(&Series, Vec<String>)> = panel
        .lines
        .iter()
        .filter(|line| line.points.iter().any(Option::is_some))
        .map(|line| (line, text::wrap(&line.label, frame.small, false, room)))
        .collect();
    // The sort is stable: equal ends keep the order of the rows.
    found.sort_by(|(a, _), (b, _)| end(b).total_cmp(&end(a)));
    found
}

fn end(line: &Series) -> f64 {
    line.points.iter().flatten().last().copied().unwrap_or(0.0)
}

/// Writes the names at the ends of their lines, one below another where they would cover each other.
fn label(
    picture: &mut Picture,
    frame: &Frame,
    names: &[(&Series, Vec<String>)],
    top: f64,
    bottom: f64,
    y_of: impl Fn(f64) -> f64,
) {
    let height = |lines: &[String]| lines.len() as f64 * frame.small * LINE;
    let mut below: f64 = names.iter().map(|(_, lines)| height(lines)).sum();
    let mut free = top - frame.small * LINE / 2.0;
    for (line, lines) in names {
        let wanted = y_of(end(line)) - height(lines) / 2.0;
        // Those below need their room too.
        let start = wanted.min(bottom + frame.small * LINE / 2.0 - below).max(free);
        below -= height(lines);
        free = start + height(lines);
        let first = start + frame.small * LINE / 2.0;
        let swatch = frame.size * 0.28;
        let x = frame.names - frame.size * 0.55;
        picture.line((frame.right + frame.size * 0.1, y_of(end(line))), (x - swatch * 1.4, first), 0.4, FAINT_INK);
        picture.fill_edged([x - swatch, first - swatch, x + swatch, first + swatch], line.colour, INK);
        for (i, text) in lines.iter().enumerate() {
            let y = first + i as f64 * frame.small * LINE;
            picture.text(Text::new(text, frame.names, y, frame.small, INK));
        }
    }
}
