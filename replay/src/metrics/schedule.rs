//! The schedule itself: every fetch as pc and active mask, hashed or written.
//!
//! Hash: FNV-1a, 64 bit, over each fetch's pc and mask, each as 8 little-endian bytes (a mask of more than 64 lanes as
//! one 8-byte word per 64 lanes, lane 0 in the lowest bit of the first). Worked number: the hash of no fetch is
//! cbf29ce484222325.

use std::io::Write;

use heuristics::LaneSet;
use trace_format::Instruction;

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::{Entry, Switch, of};
use crate::{Column, Error, Kind, Result};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "schedule-hash",
    file: "replay/src/metrics/schedule.rs",
    switch: Some(&Switch {
        name: "schedule-hash",
        help: "Put the schedule's FNV-1a hash into JSON and CSV",
        number: None,
    }),
    needs_addresses: false,
    measure: Some(|_| ScheduleHashes::measure()),
    columns: &[Column::counted(
        "schedule_fnv1a64",
        "FNV-1a hash of every fetch's pc and active mask, 16 hex digits; only with --schedule-hash.",
        |o| of(o, |found: &ScheduleHashes| format!("{:016x}", found.value())),
    )
    .of(Kind::Text)],
    table: None,
};

/// The hashes of the schedules of all warps, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleHashes(Vec<u64>);

impl ScheduleHashes {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| Some(Box::new(ScheduleHash::new(warp.lanes().len()))))
    }

    /// The hash of them all: of one warp, its own; of more, over their hashes in order, 8 little-endian bytes each.
    #[must_use]
    pub fn value(&self) -> u64 {
        if let [only] = self.0[..] {
            return only;
        }
        let mut all = ScheduleHash::new(1);
        self.0.iter().for_each(|hash| all.add(*hash));
        all.hash
    }
}

impl Measured for ScheduleHashes {
    fn merge(&mut self, other: &ScheduleHashes) {
        self.0.extend(&other.0);
    }
}

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The FNV-1a hash of a warp's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleHash {
    lanes: usize,
    hash: u64,
}

impl ScheduleHash {
    /// The hash of a warp of so many lanes before its first fetch.
    #[must_use]
    pub fn new(lanes: usize) -> ScheduleHash {
        ScheduleHash { lanes, hash: OFFSET_BASIS }
    }

    fn fetched(&mut self, instructions: &[Instruction], lanes: LaneSet) {
        for instruction in instructions {
            self.add(instruction.pc.0);
            for word in lanes.words(self.lanes) {
                self.add(*word);
            }
        }
    }

    #[inline]
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
}

impl Metric for ScheduleHash {
    fn step(&mut self, step: &Step) -> Result<()> {
        self.fetched(step.instructions, step.lanes);
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        run.instructions().for_each(|instructions| self.fetched(instructions, run.lanes()));
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(ScheduleHashes(vec![self.hash])))
    }
}

/// Writes a line per fetch: pc in hex, a space, the active mask in binary with lane 0 at the right.
pub struct ScheduleWriter<'a> {
    out: &'a mut dyn Write,
    path: &'a std::path::Path,
    lanes: usize,
}

impl<'a> ScheduleWriter<'a> {
    /// A writer for a warp of so many lanes; `path` is the file's name in errors.
    pub fn new(out: &'a mut dyn Write, path: &'a std::path::Path, lanes: usize) -> ScheduleWriter<'a> {
        ScheduleWriter { out, path, lanes }
    }

    fn mask(&self, lanes: LaneSet) -> String {
        let words = lanes.words(self.lanes);
        let leading = words.iter().rposition(|w| *w != 0).unwrap_or(0);
        let mut mask = format!("{:b}", words[leading]);
        words[..leading].iter().rev().for_each(|w| mask.push_str(&format!("{w:064b}")));
        mask
    }

    fn fetched(&mut self, instructions: &[Instruction], mask: &str) -> Result<()> {
        for instruction in instructions {
            writeln!(self.out, "{:x} {mask}", instruction.pc.0)
                .map_err(|source| Error::Write { path: self.path.to_owned(), source })?;
        }
        Ok(())
    }
}

impl Metric for ScheduleWriter<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        let mask = self.mask(step.lanes);
        self.fetched(step.instructions, &mask)
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let mask = self.mask(run.lanes());
        run.instructions().try_for_each(|instructions| self.fetched(instructions, &mask))
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::nothing())
    }
}
