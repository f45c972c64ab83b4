//! `replay --annotate FILE`: a source file with what each of its lines costs, for the terminal.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::Subject;
use crate::disassembly::Fetched;
use crate::lost::{Row, main_causes};
use crate::table::{grouped, percent};

/// The numbers of lines that ran, and the lines that are shown around them.
const AROUND: u32 = 3;
const FAINT: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// The instructions of lines, by file and line.
pub type Instructions = HashMap<(String, u32), Vec<Fetched>>;

/// The rows of one outcome, by line of this file, as a listing with escapes for colours; `rows` are those by line.
/// Below each line stand its instructions, where there are any.
///
/// # Errors
/// The file is none of those that ran: the error names those.
pub fn listing(file: &Path, rows: &[Row], instructions: &Instructions, warp_size: usize) -> replay::Result<String> {
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
        replay::Error::Request(format!("{path}: its text is not there ({e}); `--by line` shows its lines by number"))
    })?;
    let most = own.values().map(|row| row.lost).max().unwrap_or(0);
    let mut shown =
        format!("{FAINT}{:>14} {:>7} {:>15}  {:<24} {path}{FAINT:#}\n", "fetches", "eff.", "lost slots", "lost to");
    let mut skipped = false;
    for (line, number) in text.lines().zip(1..) {
        let near = own.keys().any(|n| n.abs_diff(number) <= AROUND);
        if !near {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            let _ = writeln!(shown, "{FAINT}{:>65}{FAINT:#}", "…");
        }
        let _ = match own.get(&number) {
            Some(row) => writeln!(shown, "{}{number:>5}  {}", numbers(row, warp_size), heat(row.lost, most, line)),
            None => writeln!(shown, "{:64}{FAINT}{number:>5}  {line}{FAINT:#}", ""),
        };
        for fetched in instructions.get(&(path.to_owned(), number)).into_iter().flatten() {
            let fetches = grouped(fetched.fetches);
            let _ = writeln!(shown, "{FAINT}{fetches:>14}{:57}{fetched}{FAINT:#}", "");
        }
    }
    Ok(shown)
}

/// The file and number of a row about a line.
fn line_of(row: &Row) -> Option<(&str, u32)> {
    if let Subject::Line(line) = &row.subject { Some((&line.file, line.line)) } else { None }
}

fn numbers(row: &Row, warp_size: usize) -> String {
    let lost = if row.lost > 0 { grouped(row.lost) } else { String::new() };
    let lost_to: String = main_causes(&row.lost_by).chars().take(24).collect();
    let efficiency = row.efficiency(warp_size).map_or_else(String::new, percent);
    format!("{:>14} {efficiency:>7} {lost:>15}  {lost_to:<24}", grouped(row.issued.fetches))
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
