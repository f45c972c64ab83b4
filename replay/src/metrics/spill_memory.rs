//! Spill memory: what values that don't fit into registers cost, where the pass `spill` places them.
//!
//! A *shared* access is a memory operand of one fetch to the range in which each thread has its own copy of what its
//! warp shares: the copies count as one place, so it is one access whatever the number of lanes. A *local* access is
//! one to the lanes' own stacks, interleaved word by word as [`super::Traffic`] has them; it touches each line of 128
//! bytes once. Local memory lies behind a cache of N bytes, fully associative, the line that was used longest ago
//! replaced, empty when the warp begins.
//!
//! Formula: cost = shared accesses + local hits + 100 × local misses: a hit is as fast as shared memory, a miss takes
//! 100 times as long. An access costs that much whether it is an instruction or an operand of one.
//!
//! Worked number: W = 4, a cache of 128 bytes. Four lanes store 8 bytes at one place of their stacks and load them
//! again: 4 words of 8 bytes in a row are one line, so one miss and one hit; a load from shared memory follows: 100 + 1
//! + 1 = 102.
//!
//! *Disagreements* are fetches in which lanes that stored together stored different values. `spill:check=yes` puts a
//! read after each shared store, at an address made from the stored value; the addresses of such a read then differ.
//!
//! Source: Sampaio et al., *Divergence analysis with affine constraints*, 2012, section 5, for the cache of 16 KB that
//! is as fast as shared memory; the 100 is ours.

use std::ops::Range;

use super::traffic::interleaved;
use super::{Ended, Finding, Measure, Measured, Metric, Step};
use crate::entry::{Entry, Switch, of};
use crate::{Column, Result};

/// Where threads have their copies of what their warps share.
const SHARED: Range<u64> = 0x3c00_0000_0000..0x4000_0000_0000;

/// Where the addresses lie that tell what was stored there.
const CHECKED: Range<u64> = 0x3bff_fff0_0000..0x3c00_0000_0000;

/// The bytes of a line of the cache.
const LINE: i64 = 128;

/// How much longer a miss takes than a hit.
const MISS: u64 = 100;

/// An address as the warp sees it: all copies of what it shares are one place.
pub(super) fn folded(address: u64) -> u64 {
    if SHARED.contains(&address) { SHARED.start } else { address }
}

/// Whether it is memory that the warp shares, or a read for a check of it.
pub(super) fn is_shared(address: u64) -> bool {
    (CHECKED.start..SHARED.end).contains(&address)
}

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "spill-memory",
    file: "replay/src/metrics/spill_memory.rs",
    switch: Some(&Switch {
        name: "spill-cache",
        help: "Count what the code of the pass spill costs, with a cache of N bytes per warp before local memory; the trace must have addresses",
        number: Some((128, 1 << 16)),
    }),
    needs_addresses: true,
    measure: Some(SpillMemory::measure),
    columns: &[
        Column::counted("shared_accesses", "Memory operands to memory that a warp shares; with --spill-cache.", |o| {
            of(o, |found: &SpillMemory| found.shared)
        }),
        Column::counted(
            "shared_disagreements",
            "Stores to memory that a warp shares, checked by spill:check=yes, whose lanes stored different values.",
            |o| of(o, |found: &SpillMemory| found.disagreements),
        ),
        Column::counted(
            "local_hits",
            "Accesses to interleaved stacks that hit the cache, in lines of 128 bytes.",
            |o| of(o, |found: &SpillMemory| found.hits),
        ),
        Column::counted("local_misses", "Those that missed the cache.", |o| of(o, |found: &SpillMemory| found.misses)),
        Column::counted("spill_memory_cost", "Shared accesses + local hits + 100 times local misses.", |o| {
            of(o, |found: &SpillMemory| found.cost())
        }),
    ],
    table: None,
};

/// Accesses of the memory that spilled values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SpillMemory {
    /// Memory operands to memory that a warp shares.
    pub shared: u64,
    /// Checked stores whose lanes stored different values.
    pub disagreements: u64,
    /// Lines of local memory found in the cache.
    pub hits: u64,
    /// Lines of local memory not found in the cache.
    pub misses: u64,
}

impl SpillMemory {
    /// Asks for it, with a cache of so many bytes; the trace must have addresses.
    #[must_use]
    pub fn measure(bytes: u32) -> Measure {
        Measure::new(ENTRY.name, move |_| {
            let lines = (i64::from(bytes) / LINE).max(1) as usize;
            Some(Box::new(SpillMeter { found: SpillMemory::default(), cache: Cache { lines, held: Vec::new() } }))
        })
    }

    /// In accesses of shared memory.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.shared + self.hits + MISS * self.misses
    }
}

impl Measured for SpillMemory {
    fn merge(&mut self, other: &SpillMemory) {
        self.shared += other.shared;
        self.disagreements += other.disagreements;
        self.hits += other.hits;
        self.misses += other.misses;
    }
}

/// The lines that were used last, the latest at the end.
struct Cache {
    lines: usize,
    held: Vec<i64>,
}

impl Cache {
    /// Whether the line is held; it is from now on.
    fn takes(&mut self, line: i64) -> bool {
        let found = self.held.iter().rposition(|held| *held == line);
        match found {
            Some(at) => _ = self.held.remove(at),
            None if self.held.len() == self.lines => _ = self.held.remove(0),
            None => {}
        }
        self.held.push(line);
        found.is_some()
    }
}

struct SpillMeter {
    found: SpillMemory,
    cache: Cache,
}

impl Metric for SpillMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let operands: usize = step.instructions.iter().map(|i| usize::from(i.memory)).sum();
        if operands == 0 {
            return Ok(());
        }
        let seats = step.seats();
        let lanes: Vec<_> = step.lanes.iter().map(|l| (seats.home(l), step.addresses(l), step.stack(l))).collect();
        let mut lines = Vec::new();
        for operand in 0..operands {
            let first = lanes.first().map_or(0, |(_, addresses, _)| addresses[operand]);
            if SHARED.contains(&first) {
                self.found.shared += 1;
                continue;
            }
            if CHECKED.contains(&first) {
                self.found.disagreements += u64::from(lanes.iter().any(|(_, all, _)| all[operand] != first));
                continue;
            }
            lines.clear();
            for (home, addresses, own) in &lanes {
                let address = addresses[operand];
                if let Some(own) = own.as_ref().filter(|own| own.addresses.contains(&address)) {
                    let at = interleaved(address.wrapping_sub(own.zero).cast_signed(), *home, seats.width());
                    lines.push(at.div_euclid(LINE));
                }
            }
            lines.sort_unstable();
            lines.dedup();
            for &line in &lines {
                let held = self.cache.takes(line);
                self.found.hits += u64::from(held);
                self.found.misses += u64::from(!held);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(self.found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_used_longest_ago_is_replaced() {
        let mut cache = Cache { lines: 2, held: Vec::new() };
        let taken: Vec<bool> = [1, 2, 1, 3, 1, 2].into_iter().map(|line| cache.takes(line)).collect();
        assert_eq!(taken, [false, false, true, false, true, false]);
    }

    #[test]
    fn copies_of_what_a_warp_shares_are_one_place() {
        assert_eq!(folded(0x3fff_0000_1000), folded(0x3ffe_1234_0008));
        assert_ne!(folded(0x7fff_0000_1000), folded(0x7ffe_1234_0008));
        assert!(is_shared(0x3c00_0000_0000) && !is_shared(0x4000_0000_0000));
        assert_eq!(SpillMemory { shared: 1, disagreements: 0, hits: 1, misses: 1 }.cost(), 102);
    }
}
