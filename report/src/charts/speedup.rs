//! `speedup`: fetches before and after a change, side by side, with the relative speed-up above.
//!
//! The rows are of two traces (or more) per number of lanes; the others are compared with the first. A panel per number
//! of lanes, a group of bars per heuristic, a bar per trace. A trace that took 200 fetches before and takes 100 after
//! has a speed-up of 2.00.

use super::chart::Chart;
use crate::drawing::axis;
use crate::drawing::frame::title_block;
use crate::drawing::palette::{FAINT_INK, GRID, INK};
use crate::drawing::text::{self, LINE};
use crate::rows::label_of;
use crate::settings::settings;
use crate::{Anchor, Colour, Outcome, Picture, PlotOptions, Row, Text, colour_of};

pub(super) struct Speedup;

/// The colour of the bars that the others are compared with.
const FIRST: Colour = (0xBB, 0xBB, 0xBB);

/// The height of the highest bar, as a part of the picture's width: four panels fit on a page.
const HEIGHT: f64 = 0.22;
/// How long a name that runs upwards may be, as a part of the picture's width.
const UPWARDS: f64 = 0.24;

impl Chart for Speedup {
    fn name(&self) -> &'static str {
        "speedup"
    }

    fn about(&self) -> &'static str {
        "Fetches of two or more traces under each heuristic, side by side, with the speed-up against the first above."
    }

    fn lacks(&self, rows: &[Row]) -> Option<&'static str> {
        let several = panels(rows).iter().any(|panel| panel.traces.len() > 1);
        (!several).then_some("two traces with the same number of lanes, as `lockstep diff --csv` writes them")
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let panels = panels(rows);
        let mut picture = Picture::new(options.columns.width());
        let size = options.columns.text_size();
        picture.height = size * 0.7;
        let common = settings(rows).title;
        let title = match &commands(rows)[..] {
            // What tells them apart stands in the title.
            [first, second] if common.is_empty() => format!("{first} and {second}"),
            [first, second] => format!("{first} and {second} · {common}"),
            _ if common.is_empty() => "Fetches before and after".to_owned(),
            _ => common,
        };
        title_block(&mut picture, &title, &legend(&panels), options);
        for panel in &panels {
            panel.draw(&mut picture, size, panels.len() > 1);
        }
        picture.height += size * 0.7;
        picture
    }
}

/// The commands that were traced, without the programs' folders, in order of appearance.
fn commands(rows: &[Row]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| !row.command.is_empty()) {
        let program = row.command.split(' ').next().unwrap_or_default();
        let command = row.command[program.rfind('/').map_or(0, |slash| slash + 1)..].to_owned();
        if !all.contains(&command) {
            all.push(command);
        }
    }
    all
}

/// The rows of one number of lanes.
struct Panel<'a> {
    lanes: Option<u64>,
    /// The traces in order of appearance.
    traces: Vec<&'a str>,
    groups: Vec<Group<'a>>,
}

/// The rows of one heuristic, one per trace of the panel; none where the trace has no such row.
struct Group<'a> {
    heuristic: &'a str,
    rows: Vec<Option<&'a Row>>,
}

impl Group<'_> {
    fn label(&self) -> String {
        label_of(self.heuristic, self.rows.iter().flatten().copied())
    }
}

fn panels(rows: &[Row]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel> = Vec::new();
    for row in rows {
        let at = panels.iter().position(|p| p.lanes == row.lanes).unwrap_or_else(|| {
            panels.push(Panel { lanes: row.lanes, traces: Vec::new(), groups: Vec::new() });
            panels.len() - 1
        });
        let panel = &mut panels[at];
        let trace = index_of(&mut panel.traces, row.trace.as_str());
        let known = panel.groups.iter().position(|g| g.heuristic == row.heuristic);
        let group = known.unwrap_or_else(|| {
            panel.groups.push(Group { heuristic: &row.heuristic, rows: Vec::new() });
            panel.groups.len() - 1
        });
        let rows = &mut panel.groups[group].rows;
        rows.resize(rows.len().max(trace + 1), None);
        rows[trace] = Some(row);
    }
    panels.iter_mut().for_each(|p| p.groups.iter_mut().for_each(|g| g.rows.resize(p.traces.len(), None)));
    panels
}

fn index_of<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    names.iter().position(|n| *n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// What the bars of a group are, where all panels have the same traces in number.
fn legend(panels: &[Panel]) -> String {
    let Some(first) = panels.first() else { return String::new() };
    let names = first.traces.join(", ");
    format!("In each group, from the left: {names}. Above: fetches of the first / fetches of this.")
}

fn fetches(row: Option<&Row>) -> Option<u64> {
    match &row?.outcome {
        Outcome::Counted(counts) => Some(counts.fetches),
        Outcome::Failed(_) => None,
    }
}

impl Panel<'_> {
    fn draw(&self, picture: &mut Picture, size: f64, headed: bool) {
        let small = size * 0.9;
        if let Some(lanes) = self.lanes.filter(|_| headed) {
            picture.height += size * 0.5;
            let heading = format!("{lanes} lane{}", if lanes == 1 { "" } else { "s" });
            picture.text(Text::new(&heading, size * 0.7, picture.height + size * LINE / 2.0, size, INK).bold());
            picture.height += size * LINE;
        }
        let all = || self.groups.iter().flat_map(|g| g.rows.iter().copied().filter_map(fetches));
        let max = all().max().unwrap_or(1).max(1) as f64;
        let ticks = axis::ticks(max, 4);
        let widest = ticks.iter().map(|t| text::width(&t.label, small, false)).fold(0.0, f64::max);
        // Left of the axis its title, running upwards, and the labels of its ticks.
        let left = size * 0.7 + size * LINE + widest + size * 0.6;
        let right = picture.width - size * 0.7;
        let step = (right - left) / self.groups.len().max(1) as f64;
        // Labels side by side are a letter apart.
        let gap = small * 0.6;
        let wide = |label: &str| text::width(label, small, false) + gap > step;
        // Speed-ups that are wider than their bars run upwards and need more room above the highest.
        let bar = step * 0.8 / self.traces.len().max(1) as f64;
        let pitch = if self.traces.len() > 2 { bar } else { step };
        let speedups_run_up = text::width("0.00", small, false) > (bar * 1.6).min(pitch - gap);
        let headroom = if speedups_run_up { text::width("00.00", small, false) + size * 0.5 } else { small * LINE };
        let top = picture.height + headroom;
        let bottom = top + picture.width * HEIGHT;
        let y_of = |value: f64| bottom - (bottom - top) * value / max;
        for tick in &ticks {
            let y = y_of(tick.value);
            picture.line((left, y), (right, y), 0.5, GRID);
            picture.text(Text::new(&tick.label, left - size * 0.4, y, small, INK).anchored(Anchor::End));
        }
        let middle = (top + bottom) / 2.0;
        picture.text(Text::new("fetches", size * 1.2, middle, small, INK).anchored(Anchor::Middle).upwards());
        for (i, group) in self.groups.iter().enumerate() {
            let start = left + step * (i as f64 + 0.1);
            group.draw(picture, start, bar, y_of, small, speedups_run_up);
        }
        picture.line((left, top), (left, bottom), 0.8, INK);
        picture.line((left, bottom), (right, bottom), 0.8, INK);
        picture.height = bottom + size * 0.4;
        self.label_groups(picture, (left, step), small, self.groups.iter().any(|g| wide(&g.label())));
    }

    /// The heuristics' names below the axis; upwards where one is wider than its group, in lines of at most
    /// [`UPWARDS`], or cut in the middle where there is no room for so many lines side by side.
    fn label_groups(&self, picture: &mut Picture, (left, step): (f64, f64), size: f64, upwards: bool) {
        let top = picture.height;
        let room = picture.width * UPWARDS;
        let mut longest: f64 = 0.0;
        for (i, group) in self.groups.iter().enumerate() {
            let x = left + step * (i as f64 + 0.5);
            if !upwards {
                let y = top + size * LINE / 2.0;
                picture.text(Text::new(&group.label(), x, y, size, INK).anchored(Anchor::Middle));
                continue;
            }
            let mut lines = text::wrap(&group.label(), size, false, room);
            if lines.len() as f64 * size * LINE > step {
                lines = vec![text::shortened(&group.label(), size, room)];
            }
            let first = x - (lines.len() as f64 - 1.0) / 2.0 * size * LINE;
            for (j, line) in lines.iter().enumerate() {
                let x = first + j as f64 * size * LINE;
                picture.text(Text::new(line, x, top, size, INK).anchored(Anchor::End).upwards());
                longest = longest.max(text::width(line, size, false));
            }
        }
        picture.height += if upwards { longest + size * 0.3 } else { size * LINE };
    }
}

impl Group<'_> {
    fn draw(&self, picture: &mut Picture, start: f64, bar: f64, y_of: impl Fn(f64) -> f64, size: f64, upwards: bool) {
        let before = self.rows.first().copied().flatten().and_then(|row| fetches(Some(row)));
        for (i, row) in self.rows.iter().enumerate() {
            let x = start + bar * i as f64;
            let Some(count) = fetches(*row) else {
                let y = y_of(0.0) - size * 0.3;
                picture.text(Text::new("none", x + bar / 2.0, y, size, FAINT_INK).upwards());
                continue;
            };
            let y = y_of(count as f64);
            let colour = if i == 0 { FIRST } else { colour_of(self.heuristic) };
            picture.fill_edged([x, y, x + bar, y_of(0.0)], colour, INK);
            let Some(before) = before.filter(|_| i > 0 && count > 0) else { continue };
            let speedup = format!("{:.2}", before as f64 / count as f64);
            let x = x + bar / 2.0;
            let text = if upwards {
                Text::new(&speedup, x, y - size * 0.4, size, INK).upwards()
            } else {
                Text::new(&speedup, x, y - size * 0.6, size, INK).anchored(Anchor::Middle)
            };
            picture.text(text);
        }
    }
}
