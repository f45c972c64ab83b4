//! `divergent`: how many thread instructions are in divergent fetches, stacked under the others.
//!
//! A bar is all thread instructions; its filled part, at the axis, is those in fetches with fewer active than live
//! lanes. Two lanes that run 5 instructions each, 2 of them one lane at a time, have 10 thread instructions, 4 of them
//! divergent (40%). Rows of several numbers of lanes stand under their heuristic, one line per number. Rows of several
//! traces that were run alike stand one below another; the others are compared with the first.

use super::chart::Chart;
use crate::drawing::stacks::{Bar, Group, Line, Panel, StackChart};
use crate::drawing::text::{count, short_function};
use crate::rows::label_of;
use crate::{Colour, Outcome, Picture, PlotOptions, Row, colour_of};

pub(super) struct Divergent;

/// The colour of the divergent part where heuristics of several colours are meant, or where the row is one that others
/// are compared with.
const ANY: Colour = (0x66, 0x66, 0x66);
/// The other thread instructions.
const OTHERS: Colour = (0xEC, 0xEC, 0xEC);

impl Chart for Divergent {
    fn name(&self) -> &'static str {
        "divergent"
    }

    fn about(&self) -> &'static str {
        "Thread instructions in divergent fetches, stacked under the others; with several traces, also the change \
         against the first."
    }

    fn has_shares(&self) -> bool {
        true
    }

    fn draw(&self, rows: &[Row], options: &PlotOptions) -> Picture {
        let settings = settings(rows);
        let words: Vec<Words> = settings.iter().map(words).collect();
        let common = |i: usize| words.iter().all(|w| w[i] == words[0][i]);
        let join = |w: &Words, wanted: &dyn Fn(usize) -> bool, between: &str| {
            let parts = (0..w.len()).filter(|i| wanted(*i)).filter_map(|i| w[i].clone());
            parts.collect::<Vec<_>>().join(between)
        };
        let title = join(&words[0], &|i| i < SUBTITLE && common(i), " · ");
        let panels = settings.iter().zip(&words).map(|(setting, words)| {
            let heading = join(words, &|i| !common(i), " · ");
            setting.panel((!heading.is_empty()).then_some(heading), options.shares)
        });
        StackChart {
            panels: panels.collect(),
            title: if title.is_empty() { "Divergent thread instructions".to_owned() } else { title },
            subtitle: join(&words[0], &|i| i >= SUBTITLE && common(i), ", "),
            key: [(ANY, "in divergent fetches (fewer active lanes than live)"), (OTHERS, "in all other fetches")],
            explanation: explanation(&settings, options.shares),
            axis: if options.shares { "share of thread instructions" } else { "thread instructions" },
            unit: if options.shares { "%" } else { "" },
        }
        .draw(options)
    }
}

/// Rows that were replayed alike, for all numbers of lanes, heuristics and traces.
struct Setting<'a> {
    key: Key,
    /// Those of one number of lanes, in ascending order.
    parts: Vec<Part<'a>>,
    /// In order of appearance.
    heuristics: Vec<&'a str>,
}

/// The rows of one number of lanes.
struct Part<'a> {
    lanes: Option<u64>,
    /// In order of appearance; the others are compared with the first.
    traces: Vec<&'a str>,
    rows: Vec<&'a Row>,
}

/// Region, code, locks, grouping, and warp size (empty where there is one warp). A replay that failed may lack some,
/// which are empty then.
type Key = [String; 5];

fn key(row: &Row) -> Key {
    let several = row.warps.is_some_and(|n| n > 1);
    let warp = match row.warps {
        Some(1) => "all".to_owned(),
        _ => row.warp_size.clone(),
    };
    let group = if several { row.group.clone() } else { String::new() };
    [row.region.clone(), row.code.clone(), row.locks.clone(), group, warp]
}

/// The words behind the program's name.
fn arguments(row: &Row) -> Vec<&str> {
    row.command.split(' ').skip(1).collect()
}

/// Whether arguments are the same, except for words that are the number of lanes: `-p 16 -n 16` of 16 lanes, and `-p 4
/// -n 16` of 4.
fn alike(a: (&[&str], Option<u64>), b: (&[&str], Option<u64>)) -> bool {
    let is = |word: &str, lanes: Option<u64>| lanes.is_some_and(|n| n.to_string() == word);
    a.0.len() == b.0.len() && a.0.iter().zip(b.0).all(|(x, y)| x == y || is(x, a.1) && is(y, b.1))
}

fn settings(rows: &[Row]) -> Vec<Setting<'_>> {
    let mut found: Vec<Setting> = Vec::new();
    for row in rows {
        // A replay that failed may not say everything: it has the lanes of its trace, and joins the first setting that
        // it does not contradict.
        let same = |other: &&Row| other.lanes.is_some() && (&other.trace, &other.command) == (&row.trace, &row.command);
        let lanes = row.lanes.or_else(|| rows.iter().find(same).and_then(|other| other.lanes));
        let (key, words, failed) = (key(row), arguments(row), row.counts().is_none());
        let fits = |known: &Setting| {
            let first = known.parts.first().and_then(|part| Some((arguments(part.rows.first()?), part.lanes)));
            let known_words = first.is_some_and(|(first, of)| alike((&first, of), (&words, lanes)));
            let agree = |(a, b): (&String, &String)| a == b || failed && (a.is_empty() || b.is_empty());
            known_words && known.key.iter().zip(&key).all(agree)
        };
        let at = found.iter().position(fits).unwrap_or_else(|| {
            found.push(Setting { key, parts: Vec::new(), heuristics: Vec::new() });
            found.len() - 1
        });
        let setting = &mut found[at];
        if !setting.heuristics.contains(&row.heuristic.as_str()) {
            setting.heuristics.push(&row.heuristic);
        }
        let known = setting.parts.iter().position(|p| p.lanes == lanes);
        let part = known.unwrap_or_else(|| {
            setting.parts.push(Part { lanes, traces: Vec::new(), rows: Vec::new() });
            setting.parts.len() - 1
        });
        let part = &mut setting.parts[part];
        if !part.traces.contains(&row.trace.as_str()) {
            part.traces.push(&row.trace);
        }
        part.rows.push(row);
    }
    found.iter_mut().for_each(|s| s.parts.sort_by_key(|p| p.lanes));
    found
}

/// The parts of a setting; those from [`SUBTITLE`] on stand below the title.
type Words = [Option<String>; 7];
const SUBTITLE: usize = 3;

fn words(setting: &Setting) -> Words {
    let [region, code, locks, group, warp] = &setting.key;
    let named = |what: &str, value: &str| (!value.is_empty()).then(|| format!("{what} {value}"));
    let lanes = match &setting.parts[..] {
        [Part { lanes: Some(n), .. }] => Some(format!("{n} lane{}", if *n == 1 { "" } else { "s" })),
        _ => None,
    };
    let warp = match warp.as_str() {
        "all" => Some("one warp".to_owned()),
        size => named("warp size", size),
    };
    let locks = named("locks", locks);
    [
        Some(command(setting)),
        lanes,
        warp,
        named("region", &short_function(region)),
        named("code", code),
        locks,
        named("grouping", group),
    ]
}

/// The command of all rows: their programs' names as far as they agree, and the arguments. Without commands the trace's
/// name.
fn command(setting: &Setting) -> String {
    let rows = || setting.parts.iter().flat_map(|p| &p.rows);
    let mut programs: Vec<&str> = Vec::new();
    for row in rows() {
        let program = row.command.split(' ').next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    let program = common_name(&programs);
    // Words in which the rows differ are the number of lanes.
    let all: Vec<Vec<&str>> = rows().map(|row| arguments(row)).collect();
    let word = |i: usize| if all.iter().all(|words| words.get(i) == all[0].get(i)) { all[0][i] } else { "N" };
    let arguments = (0..all.first().map_or(0, Vec::len)).map(word).collect::<Vec<_>>().join(" ");
    let command = format!("{} {arguments}", program).trim().to_owned();
    let traces = || setting.parts.iter().flat_map(|p| &p.traces).copied().collect::<Vec<_>>().join(", ");
    if command.is_empty() { traces() } else { command }
}

/// The common beginning of names, as `fft` of `fft.none` and `fft.fcs`; whole names if there is none.
fn common_name(names: &[&str]) -> String {
    let [first, rest @ ..] = names else { return String::new() };
    let alike =
        |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(x, y)| x == y).map(|(x, _)| x.len_utf8()).sum();
    let length = rest.iter().map(|name| alike(first, name)).min().unwrap_or(first.len());
    let common = if rest.is_empty() { first } else { first[..length].trim_end_matches(['.', '-', '_']) };
    if common.is_empty() { names.join(", ") } else { common.to_owned() }
}

/// What the reader must know besides the key.
fn explanation(settings: &[Setting], shares: bool) -> String {
    let compared = settings.iter().flat_map(|s| &s.parts).find(|p| p.traces.len() > 1);
    let Some(part) = compared else {
        let figures = if shares { "their share" } else { "how many they are, and their share" };
        return format!("Behind each bar: {figures}.");
    };
    let order = match &part.traces[..] {
        [before, after] => format!("Upper bars (grey): {before}. Lower bars: {after}."),
        traces => format!("From above, the first in grey: {}.", traces.join(", ")),
    };
    let change = if shares { "in percentage points" } else { "in percent of it" };
    let what = if shares { "share" } else { "number" };
    format!(
        "{order} Behind each bar: the {what} of those in divergent fetches, and the change against the first {change}."
    )
}

impl Setting<'_> {
    fn panel(&self, heading: Option<String>, shares: bool) -> Panel {
        let line = |part: &Part, heuristic: &str, label: String| {
            let of = |trace: &str| part.rows.iter().find(|r| r.heuristic == heuristic && r.trace == trace).copied();
            let first = part.traces.first().and_then(|trace| of(trace));
            let bars = part.traces.iter().enumerate().map(|(i, trace)| {
                let Some(row) = of(trace) else { return Bar::Sentence(format!("{trace} has no row here")) };
                let compared = part.traces.len() > 1;
                let colour = if compared && i == 0 { ANY } else { colour_of(heuristic) };
                let before = first.filter(|_| i > 0);
                bar(row, before, compared, colour, shares)
            });
            Line { label, bars: bars.collect() }
        };
        let groups = match &self.parts[..] {
            [part] => {
                let lines = self.heuristics.iter().map(|h| line(part, h, label_of(h, part.rows.iter().copied())));
                vec![Group { heading: None, lines: lines.collect() }]
            }
            parts => {
                let group = |heuristic: &&str| {
                    let own = parts.iter().filter(|p| p.rows.iter().any(|r| r.heuristic == *heuristic));
                    let label = |part: &Part| match part.lanes {
                        Some(1) => "1 lane".to_owned(),
                        Some(n) => format!("{n} lanes"),
                        None => "lanes unknown".to_owned(),
                    };
                    let lines = own.map(|part| line(part, heuristic, label(part)));
                    let rows = parts.iter().flat_map(|p| p.rows.iter().copied());
                    Group { heading: Some(label_of(heuristic, rows)), lines: lines.collect() }
                };
                self.heuristics.iter().map(group).collect()
            }
        };
        Panel { heading, groups }
    }
}

/// Percent, 0 to 100.
fn share(divergent: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { divergent as f64 / all as f64 * 100.0 }
}

fn bar(row: &Row, before: Option<&Row>, compared: bool, colour: Colour, shares: bool) -> Bar {
    let counts = match &row.outcome {
        Outcome::Counted(counts) => counts,
        Outcome::Failed(sentence) => return Bar::Sentence(sentence.clone()),
    };
    let (divergent, all) = (counts.divergent_instructions, counts.thread_instructions);
    let percent = share(divergent, all);
    let before = before.and_then(Row::counts);
    let value = if shares { told(percent) } else { count(divergent) };
    let figure = match before {
        Some(before) if shares => {
            let points = percent - share(before.divergent_instructions, before.thread_instructions);
            format!("{value} ({})", signed(points, ""))
        }
        Some(before) => format!("{value} ({})", change(before.divergent_instructions, divergent)),
        None if compared || shares => value,
        None => format!("{value} ({})", told(percent)),
    };
    let (first, end) = if shares { (percent, 100.0) } else { (divergent as f64, all as f64) };
    Bar::Parts { first, end, colours: [colour, OTHERS], figure }
}

/// A share as people read it; a share above 0 never shows as 0.0%, and one below 1 never as 100.0%.
fn told(percent: f64) -> String {
    match percent {
        p if p > 0.0 && p < 0.05 => "<0.1%".to_owned(),
        p if p < 100.0 && p > 99.95 => ">99.9%".to_owned(),
        p => format!("{p:.1}%"),
    }
}

/// A change in percent of what was before.
fn change(before: u64, after: u64) -> String {
    match (before, after) {
        (a, b) if a == b => "same".to_owned(),
        (0, _) => "new".to_owned(),
        // Beyond ten times percents are hard to read.
        (a, b) if b / a >= 10 => format!("×{}", count(b / a)),
        (a, b) => signed((b as f64 - a as f64) / a as f64 * 100.0, "%"),
    }
}

/// A number with its sign; a number other than 0 never shows as 0.0.
fn signed(n: f64, unit: &str) -> String {
    let sign = if n < 0.0 { '−' } else { '+' };
    match n.abs() {
        0.0 => "same".to_owned(),
        n if n < 0.05 => format!("{sign}<0.1{unit}"),
        n => format!("{sign}{n:.1}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_percent_of_what_was_before() {
        assert_eq!(change(159_462, 145_939), "−8.5%");
        assert_eq!(change(100, 250), "+150.0%");
        assert_eq!(change(100_000, 100_001), "+<0.1%");
        assert_eq!([change(5, 5), change(0, 5), change(5, 0)], ["same", "new", "−100.0%"]);
        assert_eq!([change(5, 49), change(5, 80_000)], ["+880.0%", "×16,000"]);
    }

    #[test]
    fn builds_of_one_program_are_told_by_what_their_names_have_in_common() {
        assert_eq!(common_name(&["fft.none", "fft.fcs"]), "fft");
        assert_eq!(common_name(&["fft."]), "fft.");
        assert_eq!(common_name(&["old", "new"]), "old, new");
        assert_eq!(common_name(&["fft", "fft.fcs"]), "fft");
        assert_eq!(common_name(&[]), "");
    }

    #[test]
    fn arguments_that_differ_in_the_number_of_lanes_are_alike() {
        let of = |words: &'static str, lanes| (words.split(' ').collect::<Vec<_>>(), Some(lanes));
        let alike = |a: (Vec<&str>, _), b: (Vec<&str>, _)| alike((&a.0, a.1), (&b.0, b.1));
        assert!(alike(of("-p 16 -n 16", 16), of("-p 4 -n 16", 4)));
        assert!(alike(of("-n 16 -p 4", 4), of("-n 16 -p 16", 16)));
        assert!(!alike(of("-p 16 -n 16", 16), of("-p 4 -n 8", 4)));
        assert!(!alike(of("-p 16", 16), of("-p 16 -n", 16)));
    }

    #[test]
    fn no_thread_instructions_have_no_divergent_share() {
        assert!((share(4, 10) - 40.0).abs() < 1e-12);
        assert!(share(0, 0).abs() < 1e-12);
        assert_eq!([0.0, 0.01, 40.0, 99.99, 100.0].map(told), ["0.0%", "<0.1%", "40.0%", ">99.9%", "100.0%"]);
    }
}
