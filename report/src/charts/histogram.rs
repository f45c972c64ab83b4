//! `histogram`: how many lanes take part in the fetches, one small chart per heuristic.
//!
//! A column's height is the share of all fetches that had so many active lanes: of 8 fetches, 6 with one lane and 2
//! with both, the columns are 75 % and 25 %.

use super::chart::Chart;
use crate::drawing::axis;
use crate::drawing::frame::title_block;
use crate::drawing::palette::{FAINT_INK, GRID, INK};
use crate::drawing::text::{self, LINE};
use crate::settings::{Setting, settings};
use crate::{Anchor, Columns, Outcome, Picture, PlotOptions, Row, Text, colour_of};

pub(super) struct Histogram;

impl Chart for Histogram {
    fn name(&self) -> &'static str {
        "histogram"
    }

    fn about(&self) -> &'static str {
        "Active lanes per fetch: which share of each heuristic's fetches had one lane, two, up to a full warp."
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let settings = settings(rows);
        let frame = Frame::new(options);
        let mut picture = Picture::new(options.columns.width());
        picture.height = frame.margin;
        let title = if settings.title.is_empty() { "Active lanes per fetch" } else { &settings.title };
        title_block(&mut picture, title, &settings.subtitle, options);
        for (i, setting) in settings.settings.iter().enumerate() {
            if i > 0 {
                picture.height += frame.size;
            }
            frame.setting(&mut picture, setting);
        }
        let middle = (frame.left + picture.width - frame.margin) / 2.0;
        let y = picture.height + frame.size * LINE / 2.0;
        picture.text(Text::new("active lanes per fetch", middle, y, frame.size, INK).anchored(Anchor::Middle));
        picture.height += frame.size * LINE + frame.margin;
        picture
    }
}

/// Where things stand.
struct Frame {
    size: f64,
    small: f64,
    margin: f64,
    /// How many small charts stand side by side.
    across: usize,
    /// Where the first small chart's axis begins.
    left: f64,
    /// The width of a small chart, and of the space between two.
    panel: f64,
    between: f64,
    /// The height of a small chart.
    tall: f64,
}

impl Frame {
    fn new(options: &PlotOptions) -> Frame {
        let size = options.columns.text_size();
        let (small, margin, between) = (size * 0.9, size * 0.7, size * 2.0);
        let across = match options.columns {
            Columns::One => 3,
            Columns::Two => 2,
        };
        // The axis title, upwards, and the tick labels.
        let left = margin + size * LINE + text::width("100", small, false) + size * 0.8;
        let panel = (options.columns.width() - left - margin - between * (across - 1) as f64) / across as f64;
        Frame { size, small, margin, across, left, panel, between, tall: size * 6.0 }
    }

    fn setting(&self, picture: &mut Picture, setting: &Setting) {
        let room = picture.width - 2.0 * self.margin;
        if let Some(heading) = &setting.heading {
            for line in text::wrap(heading, self.size, true, room) {
                let y = picture.height + self.size * LINE / 2.0;
                picture.text(Text::new(&line, self.margin, y, self.size, INK).bold());
                picture.height += self.size * LINE;
            }
            picture.height += self.size * 0.5;
        }
        // One scale for all, so that columns can be compared.
        let most = setting.rows.iter().flat_map(|row| shares(row)).fold(0.0, f64::max);
        let max = [10.0, 20.0, 50.0].into_iter().find(|&m| most <= m).unwrap_or(100.0);
        for rows in setting.rows.chunks(self.across) {
            self.strip(picture, rows, max);
        }
    }

    /// A row of small charts side by side.
    fn strip(&self, picture: &mut Picture, rows: &[&Row], max: f64) {
        let headings: Vec<Vec<String>> =
            rows.iter().map(|row| text::wrap(&row.label(), self.size, true, self.panel)).collect();
        let lines = headings.iter().map(Vec::len).max().unwrap_or(0);
        let top = picture.height + lines as f64 * self.size * LINE + self.small * LINE + self.size * 0.3;
        let mut bottom = top + self.tall;
        for (i, (row, heading)) in rows.iter().zip(&headings).enumerate() {
            let left = self.left + i as f64 * (self.panel + self.between);
            // Headings of fewer lines stand low, next to their charts.
            let mut y = picture.height + (lines - heading.len()) as f64 * self.size * LINE + self.size * LINE / 2.0;
            for line in heading {
                picture.text(Text::new(line, left, y, self.size, INK).bold());
                y += self.size * LINE;
            }
            match &row.outcome {
                Outcome::Counted(counts) => {
                    let y = top - self.size * 0.3 - self.small * LINE / 2.0;
                    let fetches = format!("{} fetches", text::count(counts.fetches));
                    picture.text(Text::new(&fetches, left, y, self.small, FAINT_INK));
                    self.small_chart(picture, row, left, top, max);
                }
                Outcome::Failed(sentence) => {
                    let mut y = top + self.small * LINE / 2.0;
                    for line in text::wrap(&text::printable(sentence), self.small, false, self.panel) {
                        picture.text(Text::new(&line, left, y, self.small, FAINT_INK));
                        y += self.small * LINE;
                    }
                    bottom = bottom.max(y);
                }
            }
        }
        if rows.iter().any(|row| row.counts().is_some()) {
            self.share_axis(picture, top, max);
        }
        picture.height = bottom + self.size * 0.4 + self.small * LINE + self.size * 0.6;
    }

    /// What stands left of a strip: the axis that its charts share, even where the first of them failed.
    fn share_axis(&self, picture: &mut Picture, top: f64, max: f64) {
        let x = self.left - self.size * 0.4;
        for tick in axis::ticks(max, 2) {
            let y = top + self.tall * (1.0 - tick.value / max);
            picture.text(Text::new(&tick.label, x, y, self.small, INK).anchored(Anchor::End));
        }
        let title = Text::new("fetches (%)", self.margin + self.size / 2.0, top + self.tall / 2.0, self.size, INK);
        picture.text(title.anchored(Anchor::Middle).upwards());
    }

    fn small_chart(&self, picture: &mut Picture, row: &Row, left: f64, top: f64, max: f64) {
        let (right, bottom) = (left + self.panel, top + self.tall);
        let y_of = |share: f64| bottom - self.tall * share / max;
        for tick in axis::ticks(max, 2) {
            let y = y_of(tick.value);
            picture.line((left, y), (right, y), 0.5, GRID);
        }
        let shares = shares(row);
        let step = self.panel / shares.len().max(1) as f64;
        let gap = if step > 4.0 { step * 0.1 } else { 0.0 };
        for (i, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let x = left + i as f64 * step;
            // The rarest fetches are still seen.
            let y = y_of(share).min(bottom - 0.5);
            picture.fill_edged([x + gap, y, x + step - gap, bottom], colour_of(&row.heuristic), INK);
        }
        picture.line((left, top), (left, bottom), 0.8, INK);
        picture.line((left, bottom), (right, bottom), 0.8, INK);
        for lanes in lane_ticks(shares.len()) {
            let x = left + (lanes as f64 - 0.5) * step;
            picture.line((x, bottom), (x, bottom + self.size * 0.25), 0.8, INK);
            let y = bottom + self.size * 0.4 + self.small * LINE / 2.0;
            picture.text(Text::new(&lanes.to_string(), x, y, self.small, INK).anchored(Anchor::Middle));
        }
    }
}

/// The percentages of fetches with 1 lane, 2, up to a full warp; none of a replay that failed.
fn shares(row: &Row) -> Vec<f64> {
    let Some(counts) = row.counts() else { return Vec::new() };
    let all = counts.fetches.max(1) as f64;
    counts.active_histogram.iter().map(|&n| n as f64 / all * 100.0).collect()
}

/// The lane counts that are written at the axis: the first, the last, and the quarters between.
fn lane_ticks(lanes: usize) -> Vec<usize> {
    let mut ticks: Vec<usize> =
        if lanes <= 4 { (1..=lanes).collect() } else { (1..=4).map(|i| lanes * i / 4).collect() };
    if lanes > 4 && ticks[0] > 1 + lanes / 16 {
        ticks.insert(0, 1);
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_number_of_lanes_are_written() {
        assert_eq!(lane_ticks(2), [1, 2]);
        assert_eq!(lane_ticks(16), [1, 4, 8, 12, 16]);
        assert_eq!(lane_ticks(6), [1, 3, 4, 6]);
        assert_eq!(lane_ticks(0), [0_usize; 0]);
    }
}
