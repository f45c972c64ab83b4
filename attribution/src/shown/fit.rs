//! Tables and sentences that fit a number of columns.
//!
//! A table that is too wide is made narrower in steps, until it fits. Headers are broken between words; texts are
//! shortened in their middle; all texts except the first move below their rows; the columns of numbers are split over
//! several tables. Numbers and addresses are never shortened.

use std::fmt::Write;

use crate::shown::table::{Align, aligned};

/// The narrowest that a text is made.
const LEAST: usize = 24;
/// Between two columns.
const GAP: usize = 2;
/// With this begins an escape for colours; it ends with an `m`.
const ESCAPE: char = '\u{1b}';
/// A line below a row begins at this column.
const BELOW: usize = 4;

/// How many columns a text may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(usize);

impl Width {
    /// As many as it has.
    pub const ALL: Width = Width(usize::MAX);
    /// What fits any terminal.
    pub const USUAL: Width = Width(80);

    /// So many; 40 at least.
    #[must_use]
    pub fn columns(columns: usize) -> Width {
        Width(columns.max(40))
    }

    /// The same less what stands before it.
    #[must_use]
    pub fn without(self, columns: usize) -> Width {
        if self == Width::ALL { self } else { Width(self.0.saturating_sub(columns).max(1)) }
    }

    /// How many they are.
    #[must_use]
    pub fn most(self) -> usize {
        self.0
    }

    /// Whether no line of a text is wider.
    #[must_use]
    pub fn holds(self, text: &str) -> bool {
        text.lines().all(|line| columns_of(line) <= self.0)
    }

    /// A name, shortened in its middle where it is wider.
    #[must_use]
    pub fn shortened(self, name: &str) -> String {
        shortened(name, self.0)
    }

    /// A text whose longer lines are broken between words; what follows the first line of one stands two columns
    /// further in than that.
    #[must_use]
    pub fn wrapped(self, text: &str) -> String {
        let mut whole = String::new();
        for line in text.split_inclusive('\n') {
            let inner = line.trim_end_matches('\n');
            whole += &self.hanging(inner, inner.len() - inner.trim_start_matches(' ').len() + 2);
            whole += &line[inner.len()..];
        }
        whole
    }

    /// A line broken between words where it is wider; what follows its first line begins at this column.
    #[must_use]
    pub fn hanging(self, line: &str, indent: usize) -> String {
        let most = self.0;
        if columns_of(line) <= most || line.contains(ESCAPE) {
            return line.to_owned();
        }
        let mut whole = String::new();
        let mut left: Vec<char> = line.chars().collect();
        let mut most_here = most;
        while left.len() > most_here {
            // A word that is wider than a line is broken behind a comma or colons, else where the line ends.
            let is_blank = |at: &usize| left[*at] == ' ' && left[..*at].iter().any(|c| *c != ' ');
            let is_joint = |at: &usize| left[*at - 1] == ',' || left[..*at].ends_with(&[':', ':']);
            let last = |is: &dyn Fn(&usize) -> bool| (1..=most_here).rev().find(is);
            let at = last(&is_blank).or_else(|| last(&is_joint)).unwrap_or(most_here);
            let rest = left.split_off(at);
            whole += left.iter().collect::<String>().trim_end();
            whole.push('\n');
            whole.extend(std::iter::repeat_n(' ', indent));
            left = rest.into_iter().skip_while(|c| *c == ' ').collect();
            most_here = most.saturating_sub(indent).max(LEAST);
        }
        whole.extend(left);
        whole
    }

    /// Rows of cells, the first of them the header, as [`aligned`] writes them; narrower where that is too wide. What
    /// stands at the left of its column is text, the rest numbers.
    #[must_use]
    pub fn table<R: AsRef<[String]>>(self, rows: &[R], align: impl Fn(usize) -> Align) -> String {
        let whole = aligned(rows, &align);
        if self.holds(&whole) {
            return whole;
        }
        let rows: Vec<&[String]> = rows.iter().map(AsRef::as_ref).collect();
        let all: Vec<usize> = (0..rows.iter().map(|row| row.len()).max().unwrap_or(0)).collect();
        let (texts, numbers): (Vec<usize>, Vec<usize>) = all.iter().partition(|c| align(**c) == Align::Left);
        let table = Table { rows: &rows, align: &align };
        if let Some(text) = table.fit(&all, &[], self.0) {
            return text;
        }
        let below = texts.get(1..).unwrap_or(&[]);
        let beside: Vec<usize> = all.iter().copied().filter(|column| !below.contains(column)).collect();
        if let Some(text) = table.fit(&beside, below, self.0) {
            return text;
        }
        table.split(texts.first().copied(), &numbers, below, self.0)
    }
}

/// Escapes for colours take none.
fn columns_of(text: &str) -> usize {
    let mut parts = text.split(ESCAPE);
    let first = parts.next().map_or(0, |part| part.chars().count());
    first + parts.map(|part| part.chars().skip_while(|c| *c != 'm').skip(1).count()).sum::<usize>()
}

/// With its middle left out where it is longer.
fn shortened(name: &str, most: usize) -> String {
    let length = columns_of(name);
    if length <= most {
        return name.to_owned();
    }
    let head = most.saturating_sub(1) / 2;
    let tail = most.saturating_sub(1) - head;
    let begin: String = name.chars().take(head).collect();
    let end: String = name.chars().skip(length - tail).collect();
    format!("{begin}…{end}")
}

/// Whether a text means nothing when its middle is left out.
fn is_number(text: &str) -> bool {
    text.starts_with("0x") || !text.chars().any(char::is_alphabetic)
}

struct Table<'a, A> {
    rows: &'a [&'a [String]],
    align: &'a A,
}

impl<A: Fn(usize) -> Align> Table<'_, A> {
    /// These columns within a width, others below their rows; none where that is impossible.
    fn fit(&self, columns: &[usize], below: &[usize], width: usize) -> Option<String> {
        let widths = self.widths(columns, width)?;
        let mut text = self.header(columns, &widths);
        for row in &self.rows[1..] {
            let cells = columns.iter().map(|c| row.get(*c).cloned().unwrap_or_default());
            let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| shortened(&cell, *width)).collect();
            text += &line(&cells, &widths, |i| (self.align)(columns[i]));
            text += &self.below(row, below, width);
        }
        Some(text)
    }

    /// The widths of these columns, whose texts are made narrower as far as needed, the widest first.
    fn widths(&self, columns: &[usize], width: usize) -> Option<Vec<usize>> {
        let cells = |c: usize| self.rows[1..].iter().filter_map(move |row| row.get(c));
        let words = |c: usize| self.rows[0].get(c).into_iter().flat_map(|head| head.split(' ')).map(columns_of);
        let natural = |c: &usize| cells(*c).map(|cell| columns_of(cell)).chain(words(*c)).max().unwrap_or(0);
        let least = |c: &usize| {
            let narrowest = |cell: &String| match (self.align)(*c) == Align::Left && !is_number(cell) {
                true => columns_of(cell).min(LEAST),
                false => columns_of(cell),
            };
            cells(*c).map(narrowest).chain(words(*c)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = columns.iter().map(natural).collect();
        let least: Vec<usize> = columns.iter().map(least).collect();
        let whole = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        while whole(&widths) > width {
            let narrower = (0..widths.len()).filter(|i| widths[*i] > least[*i]).max_by_key(|i| widths[*i])?;
            widths[narrower] -= 1;
        }
        Some(widths)
    }

    /// The header over as many lines as its words need; it ends with the last of them.
    fn header(&self, columns: &[usize], widths: &[usize]) -> String {
        let broken: Vec<Vec<String>> = columns
            .iter()
            .zip(widths)
            .map(|(c, width)| broken(self.rows[0].get(*c).map_or("", String::as_str), *width))
            .collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for at in 0..height {
            let part = |lines: &Vec<String>| (at + lines.len()).checked_sub(height).map(|i| lines[i].clone());
            let cells: Vec<String> = broken.iter().map(|lines| part(lines).unwrap_or_default()).collect();
            text += &line(&cells, widths, |i| (self.align)(columns[i]));
        }
        text
    }

    /// What goes below a row: the texts that are there, each behind its header, where that says more than the text.
    fn below(&self, row: &[String], columns: &[usize], width: usize) -> String {
        let mut parts = Vec::new();
        for column in columns {
            let cell = row.get(*column).map_or("", |cell| cell.trim());
            let head = self.rows[0].get(*column).map_or("", |head| head.trim());
            if !cell.is_empty() {
                let most = width.saturating_sub(BELOW + columns_of(head) + 1);
                let between = if head.is_empty() { "" } else { " " };
                parts.push(format!("{head}{between}{}", shortened(cell, most)));
            }
        }
        if parts.is_empty() {
            return String::new();
        }
        let text = format!("{:BELOW$}{}", "", parts.join("; "));
        format!("{}\n", Width(width).hanging(&text, BELOW))
    }

    /// Several tables: the first text with as many columns of numbers as fit, then the next ones.
    fn split(&self, key: Option<usize>, numbers: &[usize], below: &[usize], width: usize) -> String {
        let mut text = String::new();
        let mut left = numbers;
        while !left.is_empty() {
            let with = |count: usize| {
                let mut columns: Vec<usize> = left[..count].iter().copied().chain(key).collect();
                columns.sort_unstable();
                columns
            };
            let fits = |count: &usize| self.widths(&with(*count), width).is_some();
            let count = (1..=left.len()).rev().find(fits).unwrap_or(1);
            let is_last = count == left.len();
            let columns = with(count);
            let part = self.fit(&columns, if is_last { below } else { &[] }, width);
            let whole = || {
                aligned(&self.rows.iter().map(|row| self.cells(row, &columns)).collect::<Vec<_>>(), |i| {
                    (self.align)(columns[i])
                })
            };
            let _ = write!(text, "{}{}", if text.is_empty() { "" } else { "\n" }, part.unwrap_or_else(whole));
            left = &left[count..];
        }
        text
    }

    fn cells(&self, row: &[String], columns: &[usize]) -> Vec<String> {
        columns.iter().map(|c| row.get(*c).cloned().unwrap_or_default()).collect()
    }
}

/// A text in lines of so many columns, broken between words.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if columns_of(last) + 1 + columns_of(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn line(cells: &[String], widths: &[usize], align: impl Fn(usize) -> Align) -> String {
    let mut text = String::new();
    for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let between = if i == 0 { 0 } else { GAP };
        let _ = match align(i) {
            Align::Left => write!(text, "{:between$}{cell:<width$}", ""),
            Align::Right => write!(text, "{:between$}{cell:>width$}", ""),
        };
    }
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    fn text_first(column: usize) -> Align {
        if column == 0 { Align::Left } else { Align::Right }
    }

    #[test]
    fn a_table_that_fits_stays_as_it_is() {
        let rows = rows(&[&["name", "SIMT efficiency"], &["minpc", "48.4%"]]);
        assert_eq!(Width::USUAL.table(&rows, text_first), aligned(&rows, text_first));
    }

    #[test]
    fn headers_are_broken_before_names_are_shortened_and_numbers_stay() {
        let rows = rows(&[&["name", "SIMT efficiency", "fetches"], &["a_function_of_27_characters", "48.4%", "1,234"]]);
        let expected = "                                   SIMT\n\
                        name                         efficiency  fetches\n\
                        a_function_of_27_characters       48.4%    1,234\n";
        assert_eq!(Width(48).table(&rows, text_first), expected);
        let narrow = Width(46).table(&rows, text_first);
        assert!(narrow.contains("a_function_o…7_characters") && narrow.contains("1,234"), "{narrow}");
        assert!(Width(46).holds(&narrow), "{narrow}");
    }

    #[test]
    fn further_texts_go_below_their_row() {
        let head = ["lost", "line", "lost to", ""];
        let row =
            ["1,234,567", "a_very_long_name_of_a_file.cpp:12", "branch, loop trip count", "f<int>(std::vector<int>)"];
        let rows = rows(&[&head, &row]);
        let align = |column| if column == 0 { Align::Right } else { Align::Left };
        let expected = "     lost  line\n\
                        1,234,567  a_very_long_name_of_a_file.cpp:12\n    \
                        lost to branch, loop trip count;\n    \
                        f<int>(std::vector<int>)\n";
        assert_eq!(Width(46).table(&rows, align), expected);
    }

    #[test]
    fn numbers_that_do_not_fit_beside_each_other_go_to_further_tables() {
        let head: Vec<String> =
            std::iter::once("name".to_owned()).chain((0..20).map(|i| format!("column {i}"))).collect();
        let row: Vec<String> =
            std::iter::once("a".repeat(99)).chain((0..20).map(|i| format!("{}", 1_000_000 + i))).collect();
        let text = Width::USUAL.table(&[head, row], text_first);
        assert!(Width::USUAL.holds(&text), "{text}");
        for i in 0..20 {
            assert_eq!(text.matches(&format!("{}", 1_000_000 + i)).count(), 1, "{text}");
        }
    }

    #[test]
    fn addresses_are_not_shortened() {
        let rows = rows(&[&["place", "address"], &["a_function_with_a_long_name", "0x7ffff7dd1234abcd1234"]]);
        let text = Width(49).table(&rows, |_| Align::Left);
        assert!(text.contains("0x7ffff7dd1234abcd1234") && text.contains('…'), "{text}");
    }

    #[test]
    fn sentences_are_broken_between_words_and_go_on_further_in() {
        let text = "note: one two three four five six seven eight nine ten\n";
        assert_eq!(Width(40).wrapped(text), "note: one two three four five six seven\n  eight nine ten\n");
        let word = "x".repeat(100);
        assert!(Width(40).holds(&Width(40).wrapped(&word)));
        let name = "alloc::collections::btree::map::BTreeMap<alloc::string::String,u64>";
        let broken = "alloc::collections::btree::map::\n  BTreeMap<alloc::string::String,u64>";
        assert_eq!(Width(40).wrapped(name), broken);
        assert_eq!(Width(40).wrapped(&word).replace(['\n', ' '], ""), word);
    }
}
