//! `replay --annotate FILE`: a source file with what each of its lines costs, for the terminal.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::lost::{Row, main_causes};
use crate::program::disassembly::Fetched;
use crate::shown::table::{grouped, percent};
use crate::{Subject, Width};

/// The numbers of lines that ran, and the lines that are shown around them.
const AROUND: u32 = 3;
const FAINT: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// The instructions of lines, by file and line.
pub type Instructions = HashMap<(String, u32), Vec<Fetched>>;

/// The rows of one outcome, by line of this file, as a listing with escapes for colours; `rows` are those by line.
/// Below each line stand its instructions, where there are any. Where the width is limited, lines are cut and what
/// their slots are lost to is left out.
///
/// # Errors
/// The file is none of those that ran: the error names those.
pub fn listing(
    file: &Path,
    rows: &[Row],
    instructions: &Instructions,
    warp_size: usize,
    width: Width,
) -> replay::Result<String> {
    let known = rows.iter().filter_map(|row| line_of(row).map(|(path, number)| (path, number, row)));
    let own: HashMap<u32, &Row> =
        known.clone().filter(|(path, ..)| is_same_file(file, path)).map(|(_, number, row)| (number, row)).collect();
    let Some((path, ..)) = known.clone().find(|(path, ..)| is_same_file(file, path)) else {
        let mut names: Vec<&str> = known.map(|(path, ..)| path).collect();
        names.sort_unstable();
        names.dedup();
        let there = if names.is_empty() {
            "no source lines are known".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        };
        return Err(replay::Error::Request(format!("no line of {} ran; {there}", file.display())));
    };
    let text = fs::read_to_string(file).or_else(|_| fs::read_to_string(path)).map_err(|e| {
        replay::Error::Request(format!("{path}: its text cannot be read ({e}); `--by line` shows its lines by number"))
    })?;
    let most = own.values().map(|row| row.lost).max().unwrap_or(0);
    let columns = Columns::of(&own, warp_size, width);
    let before = columns.before();
    let shorter = |text: &str, from: usize| cut(text, width.without(from));
    let mut shown = format!("{FAINT}{}  {}{FAINT:#}\n", columns.header(), width.without(before + 2).shortened(path));
    let mut skipped = false;
    for (line, number) in text.lines().zip(1..) {
        let near = own.keys().any(|n| n.abs_diff(number) <= AROUND);
        if !near {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            let _ = writeln!(shown, "{FAINT}{:>before$}{FAINT:#}", "…");
        }
        let line = shorter(&line.replace('\t', "    "), before + NUMBER + 2);
        let line = line.trim_end();
        let _ = match own.get(&number) {
            Some(row) => writeln!(shown, "{}{number:>NUMBER$}  {}", columns.numbers(row), heat(row.lost, most, line)),
            None => writeln!(shown, "{:before$}{FAINT}{number:>NUMBER$}  {line}{FAINT:#}", ""),
        };
        for fetched in instructions.get(&(path.to_owned(), number)).into_iter().flatten() {
            let fetches = columns.fetches(fetched.fetches);
            let indent = if width == Width::ALL { before + NUMBER + 2 - columns.widths[0] } else { 2 };
            let text = shorter(&fetched.to_string(), columns.widths[0] + indent);
            let _ = writeln!(shown, "{FAINT}{fetches}{:indent$}{text}{FAINT:#}", "");
        }
    }
    Ok(shown)
}

/// The digits of a line's number.
const NUMBER: usize = 6;

/// The columns before the source.
struct Columns {
    warp_size: usize,
    /// As wide as what stands in them.
    widths: Vec<usize>,
    has_causes: bool,
}

impl Columns {
    const HEADER: [&str; 5] = ["fetches", "eff.", "lost slots", "parted", "lost to"];

    fn of(rows: &HashMap<u32, &Row>, warp_size: usize, width: Width) -> Columns {
        let has_causes = width == Width::ALL;
        let count = Columns::HEADER.len() - usize::from(!has_causes);
        let mut columns = Columns { warp_size, widths: vec![0; count], has_causes };
        let cells = rows.values().map(|row| columns.cells(row)).chain([Columns::HEADER.map(str::to_owned)]);
        let widest = |i: usize, cells: &[[String; 5]]| cells.iter().map(|c| c[i].chars().count()).max().unwrap_or(0);
        let cells: Vec<[String; 5]> = cells.collect();
        columns.widths = (0..count).map(|i| widest(i, &cells)).collect();
        columns
    }

    fn cells(&self, row: &Row) -> [String; 5] {
        let some = |slots: u64| if slots > 0 { grouped(slots) } else { String::new() };
        let efficiency = row.efficiency(self.warp_size).map_or_else(String::new, percent);
        [grouped(row.issued.fetches), efficiency, some(row.lost), some(row.parted), main_causes(&row.lost_by)]
    }

    /// How much they take, with the spaces behind them.
    fn before(&self) -> usize {
        self.widths.iter().map(|width| width + 2).sum::<usize>() - 2
    }

    fn line(&self, cells: &[String; 5]) -> String {
        let mut text = String::new();
        for (i, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            let between = if i == 0 { 0 } else { 2 };
            let _ = match self.has_causes && i + 1 == cells.len() {
                true => write!(text, "{:between$}{cell:<width$}", ""),
                false => write!(text, "{:between$}{cell:>width$}", ""),
            };
        }
        text
    }

    fn header(&self) -> String {
        self.line(&Columns::HEADER.map(str::to_owned))
    }

    fn numbers(&self, row: &Row) -> String {
        self.line(&self.cells(row))
    }

    fn fetches(&self, fetches: u64) -> String {
        format!("{:>1$}", grouped(fetches), self.widths[0])
    }
}

/// A line of code, cut at its end where it is wider.
fn cut(text: &str, width: Width) -> String {
    if width.holds(text) {
        return text.to_owned();
    }
    text.chars().take(width.most() - 1).chain(['…']).collect()
}

/// The file and number of a row about a line.
fn line_of(row: &Row) -> Option<(&str, u32)> {
    if let Subject::Line(line) = &row.subject { Some((&line.file, line.line)) } else { None }
}

/// The line in the colour of how much of the most that a line loses is lost in it.
fn heat(lost: u64, most: u64, line: &str) -> String {
    let style = match lost {
        0 => return line.to_owned(),
        lost if lost >= most / 2 => BOLD.fg_color(Some(AnsiColor::Red.into())),
        lost if lost >= most / 10 => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
        _ => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
    };
    format!("{style}{line}{style:#}")
}

/// Whether the file asked for is this one: `fft.c` is `/a/b/fft.c`, and so is `b/fft.c`.
fn is_same_file(asked: &Path, path: &str) -> bool {
    let asked = asked.strip_prefix(".").unwrap_or(asked);
    let path = Path::new(path);
    path.ends_with(asked)
        || (asked.is_absolute() && asked.canonicalize().ok().is_some_and(|a| path.canonicalize().ok() == Some(a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_the_end_of_its_path() {
        for asked in ["fft.c", "./fft.c", "b/fft.c", "/a/b/fft.c"] {
            assert!(is_same_file(Path::new(asked), "/a/b/fft.c"), "{asked}");
        }
        for other in ["t.c", "c/fft.c", "/b/fft.c"] {
            assert!(!is_same_file(Path::new(other), "/a/b/fft.c"), "{other}");
        }
    }
}
