//! The ordered list of what a result contains: the columns of every replay, and the measures with theirs. CSV, JSON,
//! help, tables and docs/metrics.md are made from it. A program can bring measures of its own.

use std::io::Write;
use std::path::Path;

use heuristics::Registered;

use crate::columns::{self, Column, Setting};
pub use crate::entry::{Cell, Entry, Parameter, Switch, Table, of};
use crate::metrics;
pub use crate::metrics::memory::SWITCH as MEMORY;
use crate::{Error, Outcome, Result};

/// A line of the registry.
#[derive(Clone, Copy)]
pub enum Line {
    /// Columns of every replay.
    Counted(&'static [Column]),
    /// A measure.
    Measured(&'static Entry),
}

/// The lines of this crate, in the order of the columns.
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
    Line::Measured(&metrics::gpu_memory::ENTRY),
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

/// The options that name variables for measures.
pub static PARAMETERS: &[&Parameter] = &[&metrics::spaces::BUFFER];

static ALL: Registered<Line> = Registered::new(REGISTRY);

/// Adds measures of the program's own behind all others, once, before anything asks for [`measures`] or [`columns`].
/// False, and nothing is added, where that is too late.
pub fn add(more: &[&'static Entry]) -> bool {
    ALL.add(&more.iter().copied().map(Line::Measured).collect::<Vec<_>>())
}

/// All measures, in order.
pub fn measures() -> impl Iterator<Item = &'static Entry> {
    ALL.all().iter().filter_map(|line| match line {
        Line::Counted(_) => None,
        Line::Measured(entry) => Some(*entry),
    })
}

/// All columns, in order.
pub fn columns() -> impl Iterator<Item = &'static Column> {
    ALL.all().iter().flat_map(|line| match line {
        Line::Counted(columns) => *columns,
        Line::Measured(entry) => entry.columns,
    })
}

/// The results as CSV: a header with every column, then a row per heuristic. Lists have spaces between their numbers.
///
/// # Errors
/// When `out` cannot be written; `path` is its name in the error.
pub fn write_csv(setting: &Setting, outcomes: &[Outcome], out: impl Write, path: &Path) -> Result<()> {
    write_csv_of(outcomes.iter().map(|outcome| (setting, outcome)), out, path)
}

/// The same of outcomes that have settings of their own.
///
/// # Errors
/// As [`write_csv`].
pub fn write_csv_of<'a>(
    outcomes: impl IntoIterator<Item = (&'a Setting, &'a Outcome)>,
    out: impl Write,
    path: &Path,
) -> Result<()> {
    let failed = |source: std::io::Error| Error::Write { path: path.to_owned(), source };
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns().map(|c| c.name)).map_err(|e| failed(e.into()))?;
    for (setting, outcome) in outcomes {
        let row = columns().map(|c| c.value(setting, outcome).to_string());
        writer.write_record(row).map_err(|e| failed(e.into()))?;
    }
    writer.flush().map_err(failed)
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
