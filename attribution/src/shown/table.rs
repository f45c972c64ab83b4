//! Rows as tables for people. Every number says what it is a number of.

use std::fmt::Write;

use replay::metrics::{ACCESS_HEADER, Accesses};
use replay::registry::Cell;

use crate::lost::main_causes;
use crate::{Width, locks, lost, memory};

/// How many rows a table has by default.
const SHOWN: usize = 20;

/// How large a table may be.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Its rows. Default: 20.
    pub top: Option<usize>,
    /// Its columns.
    pub width: Width,
}

/// `1234567` as `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The first rows of lost lane-slots; there are `total` slots.
#[must_use]
pub fn lost(by: lost::By, rows: &[lost::Row], total: u64, warp_size: usize, extent: Extent) -> String {
    let share = |slots: u64| percent(slots as f64 / total.max(1) as f64);
    let mut header = Vec::new();
    if by.has_parted() {
        header.extend(["parted", "share"]);
    }
    if by.has_lost() {
        header.extend(["lost", "share"]);
    }
    if by.has_issued() {
        header.extend(["fetches", "SIMT efficiency"]);
    }
    header.extend([by.name(), if by == lost::By::Cause { "" } else { "lost to" }, ""]);
    let numbers = header.len() - 3;
    let cells = |row: &lost::Row| {
        let mut cells = Vec::new();
        if by.has_parted() {
            cells.extend([grouped(row.parted), share(row.parted)]);
        }
        if by.has_lost() {
            cells.extend([grouped(row.lost), share(row.lost)]);
        }
        if by.has_issued() {
            let efficiency = row.efficiency(warp_size).map_or_else(String::new, percent);
            cells.extend([grouped(row.issued.fetches), efficiency]);
        }
        let lost_to = match by {
            lost::By::Cause => String::new(),
            _ if row.parted > 0 => main_causes(&row.parted_by),
            _ => main_causes(&row.lost_by),
        };
        cells.extend([row.subject.short(), lost_to, row.subject.beside()]);
        cells
    };
    first(&header, rows, extent, cells, |column| if column < numbers { Align::Right } else { Align::Left })
}

/// What the columns of [`lost()`] are.
#[must_use]
pub fn lost_legend(by: lost::By, total: u64) -> String {
    let mut text = format!("of {} lost lane-slots (fetches x warp size - thread instructions)", grouped(total));
    if by.has_parted() {
        text += "; parted: those whose lane left the active lanes here";
    }
    if by.has_issued() {
        text += "; lost: those of its fetches";
    }
    text
}

/// The first rows of memory accesses.
#[must_use]
pub fn memory(by: memory::By, rows: &[memory::Row], extent: Extent) -> String {
    let header: Vec<&str> = [by.name()].into_iter().chain(ACCESS_HEADER).chain([""]).collect();
    let last = header.len() - 1;
    let cells = |row: &memory::Row| {
        let accesses: &Accesses = &row.accesses;
        let numbers = accesses.cells();
        let numbers = numbers.iter().map(cell);
        std::iter::once(row.subject.short()).chain(numbers).chain([row.subject.beside()]).collect()
    };
    let align = |column| if column == 0 || column == last { Align::Left } else { Align::Right };
    first(&header, rows, extent, cells, align)
}

/// The first locks.
#[must_use]
pub fn locks(rows: &[locks::Row], extent: Extent) -> String {
    let header =
        ["acquired", "waits", "lanes waited", "fetches held", "serialised", "waiting slots", "lock", "taken at"];
    let numbers = header.len() - 2;
    let cells = |row: &locks::Row| {
        let used = &row.used;
        let numbers = [
            used.acquisitions,
            used.waits,
            used.lanes_that_waited,
            used.fetches_held,
            used.fetches_serialised,
            used.waiting_slots,
        ];
        let mut cells = numbers.map(grouped).to_vec();
        let others =
            if row.taken_at.len() > 1 { format!(" and {} more", row.taken_at.len() - 1) } else { String::new() };
        let first = row.taken_at.first().map_or("", |(place, _)| place);
        cells.extend([row.name.clone(), format!("{first}{others}")]);
        cells
    };
    first(&header, rows, extent, cells, |column| if column < numbers { Align::Right } else { Align::Left })
}

/// What the columns of [`locks()`] are.
pub const LOCKS_LEGEND: &str = "locks; waits: acquisitions for which a lane had to wait; fetches held: those with an \
     active lane that holds the lock; serialised: those of them while other lanes wait; waiting slots: waiting \
     lanes, summed over fetches";

/// The first of these rows below a header, and how many more there are.
#[must_use]
pub fn first<R>(
    header: &[&str],
    rows: &[R],
    Extent { top, width }: Extent,
    cells: impl Fn(&R) -> Vec<String>,
    align: impl Fn(usize) -> Align,
) -> String {
    let shown = top.unwrap_or(SHOWN).min(rows.len());
    let mut text: Vec<Vec<String>> = vec![header.iter().map(|h| (*h).to_owned()).collect()];
    text.extend(rows[..shown].iter().map(cells));
    let mut table = width.table(&text, align);
    if shown < rows.len() {
        let _ = writeln!(table, "({} more rows; --top N shows N)", rows.len() - shown);
    }
    table
}

/// A cell as it is shown.
#[must_use]
pub fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Count(count) => grouped(*count),
        Cell::Number(number) => format!("{number:.2}"),
        Cell::Share(share) => percent(*share),
        Cell::Text(text) => text.clone(),
        Cell::Empty => String::new(),
    }
}

/// On which side of its column a cell stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At its left end.
    Left,
    /// At its right end.
    Right,
}

/// Rows of cells, each column as wide as its widest cell, with two spaces between columns and none at line ends.
#[must_use]
pub fn aligned<R: AsRef<[String]>>(rows: &[R], align: impl Fn(usize) -> Align) -> String {
    let columns = rows.iter().map(|r| r.as_ref().len()).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.as_ref().get(c)).map(|t| t.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.as_ref().iter().enumerate() {
            let between = if column == 0 { "" } else { "  " };
            let _ = match align(column) {
                Align::Left => write!(text, "{between}{cell:<0$}", widths[column]),
                Align::Right => write!(text, "{between}{cell:>0$}", widths[column]),
            };
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

/// A share of 1 as `12.3%`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
