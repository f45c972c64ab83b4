//! What the registry says about a measure.

use std::ops::Range;

use crate::columns::Column;
use crate::metrics::{Measure, Measured};
use crate::{Outcome, Value};

/// A measure: its name, its switch, and its results.
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

/// An option of the command line that names variables of the program, for a measure of their addresses. It may be given
/// several times, and asks for the measure.
pub struct Parameter {
    /// Its name: `buffer` for `--buffer`.
    pub name: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// The measure.
    pub of: &'static Entry,
    /// Asks for the measure, with the addresses of the variables.
    pub measure: fn(Vec<Range<u64>>) -> Measure,
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

/// A column's value that follows from a result; none where that was not asked for.
pub fn of<T: Measured, V: Into<Value>>(outcome: &Outcome, value: impl FnOnce(&T) -> V) -> Value {
    outcome.found().map_or(Value::None, |result| value(result).into())
}
