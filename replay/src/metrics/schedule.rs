//! The schedule itself: every fetch as pc and active mask, hashed or written.
//!
//! Hash: FNV-1a, 64 bit, over each fetch's pc and mask, each as 8 little-endian bytes (a mask of more than 64 lanes as one
//! 8-byte word per 64 lanes, lane 0 in the lowest bit of the first). Worked number: the hash of no fetch is cbf29ce484222325.

use std::io::Write;

use super::{Metric, Step};
use crate::{Error, Result};

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

    /// The hash of the fetches so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.hash
    }

    /// The hash of several warps: of one, its own; of more, over their hashes in order, 8 little-endian bytes each.
    #[must_use]
    pub fn of_warps(hashes: &[u64]) -> u64 {
        if let [only] = hashes {
            return *only;
        }
        let mut all = ScheduleHash::new(1);
        hashes.iter().for_each(|h| all.add(*h));
        all.hash
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
        for instruction in step.instructions {
            self.add(instruction.pc.0);
            for word in step.lanes.words(self.lanes) {
                self.add(*word);
            }
        }
        Ok(())
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
}

impl Metric for ScheduleWriter<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        let words = step.lanes.words(self.lanes);
        let leading = words.iter().rposition(|w| *w != 0).unwrap_or(0);
        let mut mask = format!("{:b}", words[leading]);
        words[..leading].iter().rev().for_each(|w| mask.push_str(&format!("{w:064b}")));
        for instruction in step.instructions {
            writeln!(self.out, "{:x} {mask}", instruction.pc.0)
                .map_err(|source| Error::Write { path: self.path.to_owned(), source })?;
        }
        Ok(())
    }
}
