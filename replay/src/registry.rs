//! The ordered list of what a result contains: the columns of every replay, and the measures with theirs. CSV, JSON,
//! help, tables and docs/metrics.md are made from it.

use crate::columns::{self, Column};
pub use crate::entry::{Cell, Entry, Switch, Table};
use crate::metrics;

/// A line of the registry.
pub enum Line {
    /// Columns of every replay.
    Counted(&'static [Column]),
    /// A measure.
    Measured(&'static Entry),
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
