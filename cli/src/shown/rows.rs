//! The rows of lost lane-slots, locks and memory accesses that `replay` shows beside its table.

use std::path::Path;

use attribution::listing::{self, Instructions};
use attribution::table::{self as rows_table, Extent};
use attribution::{Source, disassembly, locks, lost, memory};
use machine::Syntax;
use replay::Outcome;
use replay::metrics::{Causes, Contention, Traffic};
use replay::view::View;
use trace_format::Trace;

use crate::width;

/// The rows that are wanted of each outcome, and how many are shown.
pub(crate) struct Wanted<'a> {
    pub(crate) lost: Option<lost::By>,
    pub(crate) locks: bool,
    pub(crate) memory: Option<memory::By>,
    pub(crate) regions: bool,
    /// The source file that is shown with the rows by line, instead of these.
    pub(crate) annotate: Option<&'a Path>,
    /// How the instructions of its lines are written, where they are to be shown.
    pub(crate) syntax: Option<Syntax>,
    pub(crate) top: Option<usize>,
}

/// The rows that were asked for of one outcome; none of one that deadlocks.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) lost: Option<Vec<lost::Row>>,
    pub(crate) locks: Option<Vec<locks::Row>>,
    pub(crate) memory: Option<Vec<memory::Row>>,
    /// By file and line, where they are wanted.
    pub(crate) instructions: Instructions,
}

impl Wanted<'_> {
    /// The rows of one outcome.
    pub(crate) fn of(&self, outcome: &Outcome, (trace, view): (&Trace, &View), source: &mut Source) -> Rows {
        if !outcome.is_complete() {
            return Rows::default();
        }
        let lost = self.lost.zip(outcome.found::<Causes>());
        let memory = self.memory.zip(outcome.found::<Traffic>());
        let locks = outcome.found::<Contention>().filter(|c| self.locks && !c.locks.is_empty());
        let mut instructions = Instructions::new();
        if let Some((syntax, causes)) = self.syntax.zip(outcome.found::<Causes>()) {
            for fetched in disassembly::fetched(trace, causes, syntax) {
                if let Some(line) = source.line(fetched.pc) {
                    instructions.entry((line.file, line.line)).or_default().push(fetched);
                }
            }
        }
        Rows {
            instructions,
            lost: lost.map(|(by, causes)| lost::rows(by, causes, source)),
            locks: locks.map(|contention| locks::rows(contention, view, source)),
            memory: memory.map(|(by, traffic)| memory::rows(by, traffic, source)),
        }
    }

    /// Their tables.
    pub(crate) fn tables(&self, outcome: &Outcome, rows: &Rows) -> replay::Result<String> {
        let (name, size) = (&outcome.heuristic, outcome.warp_size);
        let extent = Extent { top: self.top, width: width::of_results() };
        let mut text = String::new();
        match (self.lost, &rows.lost, self.annotate) {
            (Some(_), Some(lost), Some(file)) => {
                let listing = listing::listing(file, lost, &rows.instructions, size, extent.width)?;
                text += &format!("\n{name}:\n{listing}");
            }
            (Some(by), Some(rows), None) => {
                let lost = outcome.lost_slots();
                let table = rows_table::lost(by, rows, lost, size, extent);
                text += &format!("\n{name}: {}\n{table}", rows_table::lost_legend(by, lost));
            }
            _ => {}
        }
        if let Some(rows) = &rows.locks {
            text += &format!("\n{name}: {}\n{}", rows_table::LOCKS_LEGEND, rows_table::locks(rows, extent));
        }
        if let (Some(by), Some(rows)) = (self.memory, &rows.memory) {
            text += &format!("\n{name}: memory accesses\n{}", rows_table::memory(by, rows, extent));
        }
        Ok(text)
    }
}
