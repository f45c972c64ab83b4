//! The ordered list of what stands in a result: the columns of every replay, and the measures with theirs. CSV, JSON,
//! help, tables and docs/metrics.md are made from it.

use crate::columns::{self, Column};
use crate::metrics::{self, Measure};
use crate::{Outcome, Value};

/// A line of the registry.
pub enum Line {
    /// Columns of every replay.
    Counted(&'static [Column]),
    /// A measure.
    Measured(&'static Entry),
}

/// A measure: what is asked for, how, and what comes of it.
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its source file, from the workspace's folder; the file's head has the formula and a worked number.
    pub file: &'static str,
    /// How it is asked for on the command line; none where another option implies it. Measures may share a switch.
    pub switch: Option<&'static Switch>,
    /// Whether the trace must have memory addresses.
    pub needs_addresses: bool,
    /// Asks for it, with the number that its switch was given (0 where that takes none). None where more than a number
    /// is needed.
    pub measure: Option<fn(u32) -> Measure>,
    /// Its columns.
    pub columns: &'static [Column],
    /// Its part of the table for people.
    pub table: Option<&'static Table>,
}

/// An option of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its name: `divergence` for `--divergence`.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// The numbers that it takes, ends included; none where it takes none.
    pub number: Option<(u32, u32)>,
}

/// A table for people, a row per outcome.
pub struct Table {
    /// What stands above the columns behind the heuristic's name.
    pub header: &'static [&'static str],
    /// What stands in them; none where it was not measured.
    pub row: fn(&Outcome) -> Option<Vec<Cell>>,
    /// What the columns are: lines that stand below.
    pub legend: fn(&Outcome) -> String,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A count.
    Count(u64),
    /// A number with two digits behind the point.
    Number(f64),
    /// A part of 1, shown in percent.
    Share(f64),
    /// A text.
    Text(String),
    /// Nothing.
    Empty,
}

impl Cell {
    /// The number; nothing where there is none.
    #[must_use]
    pub fn number(number: Option<f64>) -> Cell {
        number.map_or(Cell::Empty, Cell::Number)
    }
}

/// All lines, in the order of the columns.
pub static REGISTRY: &[Line] = &[
    Line::Counted(columns::SETTING),
    Line::Counted(columns::COUNTS),
    Line::Measured(&metrics::causes::ENTRY),
    Line::Counted(columns::BOUNDS),
    Line::Measured(&metrics::schedule::ENTRY),
    Line::Measured(&metrics::fetch_units::ENTRY),
    Line::Measured(&metrics::passes::ENTRY),
    Line::Measured(&metrics::divergence::ENTRY),
    Line::Measured(&metrics::memory::ENTRY),
    Line::Measured(&metrics::traffic::ENTRY),
    Line::Measured(&metrics::spaces::ENTRY),
    Line::Measured(&metrics::alu::ENTRY),
    Line::Measured(&metrics::spill_memory::ENTRY),
    Line::Measured(&metrics::stalls::ENTRY),
    Line::Measured(&metrics::contention::ENTRY),
    Line::Measured(&metrics::edges::ENTRY),
    Line::Measured(&metrics::active_lanes::ENTRY),
    Line::Measured(&metrics::lane_map::ENTRY),
    Line::Measured(&metrics::checker::ENTRY),
];

/// All measures, in order.
pub fn measures() -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().filter_map(|line| match line {
        Line::Counted(_) => None,
        Line::Measured(entry) => Some(*entry),
    })
}

/// All columns, in order.
pub fn columns() -> impl Iterator<Item = &'static Column> {
    REGISTRY.iter().flat_map(|line| match line {
        Line::Counted(columns) => *columns,
        Line::Measured(entry) => entry.columns,
    })
}

/// A column's value that follows from a result; none where that was not asked for.
pub(crate) fn of<T: metrics::Measured, V: Into<Value>>(outcome: &Outcome, value: impl FnOnce(&T) -> V) -> Value {
    outcome.found().map_or(Value::None, |result| value(result).into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_files_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let names: BTreeSet<&str> = measures().map(|m| m.name).collect();
        assert_eq!(names.len(), measures().count());
        assert_eq!(columns().map(|c| c.name).collect::<BTreeSet<_>>().len(), columns().count());
        for measure in measures() {
            let head = std::fs::read_to_string(root.join(measure.file)).unwrap();
            assert!(head.starts_with("//! "), "{} has a head", measure.file);
        }
    }

    #[test]
    fn a_switch_takes_a_number_or_none() {
        for measure in measures().filter(|m| m.switch.is_some()) {
            assert!(measure.measure.is_some(), "{} can be asked for by its switch", measure.name);
        }
    }
}
