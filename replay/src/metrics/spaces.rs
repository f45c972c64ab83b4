//! Memory spaces: accesses by the kinds of memory for which a GPU's instruction set has separate instructions.
//!
//! An *access* is one memory operand of one fetch, as for [`super::Traffic`]; accesses to the lanes' own stacks are
//! left out. An instruction's operand is *buffer* if all that it accesses in the whole replay lies in the ranges that
//! are named (shared memory, where a GPU's block of threads has one), *vector* if none of it does, and *flat* if some
//! of it does: a GPU's compiler would need an instruction that works on both.
//!
//! Formula: a class's accesses are those of its operands, and its transactions the aligned pieces of 32 bytes in which
//! the active lanes' addresses lie, summed over them.
//!
//! Worked number: W = 4, a buffer at 0x1000 to 0x1080. Four lanes load 8 bytes each from 0x1000 on: one buffer access,
//! one transaction. They store them 64 bytes apart elsewhere: one vector access, four transactions. At one load the
//! first two lanes find their pointers in the buffer, side by side, the others theirs elsewhere, side by side: one flat
//! access, two transactions.
//!
//! Source: the memory instructions of AMD's Vega that Saumya et al., *CFM*, 2021, count in their figure 10. There the
//! compiler tells by types what an instruction can access; here the replay sees what it did.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::traffic::transactions;
use super::{Ended, Finding, Measure, Measured, Metric, Step};
use crate::entry::{Cell, Entry, Parameter, Switch, Table, of};
use crate::{Column, Result};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "memory-spaces",
    file: "replay/src/metrics/spaces.rs",
    switch: Some(&Switch {
        name: "spaces",
        help: "Count memory accesses to a buffer (--buffer), elsewhere, and to both; the trace must have addresses",
        number: None,
    }),
    needs_addresses: true,
    measure: Some(|_| Spaces::measure(Vec::new())),
    columns: &[
        Column::counted(
            "vector_accesses",
            "Memory operands of instructions that access memory other than buffers and own stacks; with --spaces.",
            |o| of(o, |found: &Spaces| found.totals()[0].accesses),
        ),
        Column::counted("vector_transactions_32", "Aligned pieces of 32 bytes that they access.", |o| {
            of(o, |found: &Spaces| found.totals()[0].transactions)
        }),
        Column::counted(
            "buffer_accesses",
            "Memory operands of instructions that access only the buffers named by --buffer.",
            |o| of(o, |found: &Spaces| found.totals()[1].accesses),
        ),
        Column::counted("buffer_transactions_32", "Aligned pieces of 32 bytes that they access.", |o| {
            of(o, |found: &Spaces| found.totals()[1].transactions)
        }),
        Column::counted("flat_accesses", "Memory operands of instructions that access both.", |o| {
            of(o, |found: &Spaces| found.totals()[2].accesses)
        }),
        Column::counted("flat_transactions_32", "Aligned pieces of 32 bytes that they access.", |o| {
            of(o, |found: &Spaces| found.totals()[2].transactions)
        }),
    ],
    table: Some(&Table {
        header: &["vector", "transactions", "buffer", "transactions", "flat", "transactions"],
        row: |outcome| {
            let found: &Spaces = outcome.found()?;
            Some(found.totals().iter().flat_map(|c| [c.accesses, c.transactions].map(Cell::Count)).collect())
        },
        legend: |_| {
            "vector, buffer, flat: memory operands of instructions that access no buffer, only buffers, or both; \
             lanes' own stacks are left out.\ntransactions: aligned pieces of 32 bytes in them"
                .to_owned()
        },
    }),
};

/// The option that names the buffers.
pub(crate) static BUFFER: Parameter = Parameter {
    name: "buffer",
    help: "A variable of the program that stands for a buffer which a block of threads shares, as a GPU's shared \
           memory: --spaces, which this implies, counts accesses to it apart. May be given several times",
    of: &ENTRY,
    measure: Spaces::measure,
};

/// Accesses, and what they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counted {
    /// Memory operands of fetches.
    pub accesses: u64,
    /// Aligned pieces of 32 bytes in which the active lanes' addresses lie, summed over them.
    pub transactions: u64,
}

/// What an operand of an instruction was seen to access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Seen {
    counted: Counted,
    buffer: bool,
    elsewhere: bool,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.counted.accesses += other.counted.accesses;
        self.counted.transactions += other.counted.transactions;
        self.buffer |= other.buffer;
        self.elsewhere |= other.elsewhere;
    }
}

/// Memory accesses by instruction and operand.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Spaces {
    by_operand: BTreeMap<(Pc, u8), Seen>,
}

impl Spaces {
    /// Asks for them, with the addresses of the buffers; the trace must have addresses.
    #[must_use]
    pub fn measure(buffers: Vec<Range<u64>>) -> Measure {
        let buffers: Arc<[Range<u64>]> = buffers.into();
        Measure::new(ENTRY.name, move |_| {
            let seen = FxHashMap::default();
            Some(Box::new(SpaceMeter { buffers: buffers.clone(), seen, addresses: Vec::new() }))
        })
    }

    /// Of the classes vector, buffer and flat, in this order.
    #[must_use]
    pub fn totals(&self) -> [Counted; 3] {
        let mut totals = [Counted::default(); 3];
        for seen in self.by_operand.values() {
            let class = match (seen.elsewhere, seen.buffer) {
                (true, true) => 2,
                (_, buffer) => usize::from(buffer),
            };
            totals[class].accesses += seen.counted.accesses;
            totals[class].transactions += seen.counted.transactions;
        }
        totals
    }
}

impl Measured for Spaces {
    fn merge(&mut self, other: &Spaces) {
        for (operand, seen) in &other.by_operand {
            self.by_operand.entry(*operand).or_default().add(seen);
        }
    }
}

struct SpaceMeter {
    buffers: Arc<[Range<u64>]>,
    /// By segment, instruction and operand.
    seen: FxHashMap<(SegmentId, u32, u8), Seen>,
    addresses: Vec<u64>,
}

impl SpaceMeter {
    /// Counts the access that `addresses` are, if there are any.
    fn count(&mut self, operand: (SegmentId, u32, u8)) {
        if self.addresses.is_empty() {
            return;
        }
        let is_buffer = |address: &u64| self.buffers.iter().any(|b| b.contains(address));
        let inside = self.addresses.iter().filter(|address| is_buffer(address)).count();
        let [transactions, ..] = transactions(&mut self.addresses);
        let counted = Counted { accesses: 1, transactions };
        let seen = Seen { counted, buffer: inside > 0, elsewhere: inside < self.addresses.len() };
        self.seen.entry(operand).or_default().add(&seen);
    }
}

impl Metric for SpaceMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        if step.instructions.iter().all(|i| i.memory == 0) {
            return Ok(());
        }
        let (segment, first) = step.place();
        let lanes: Vec<_> = step.lanes.iter().map(|l| (step.addresses(l), step.stack(l))).collect();
        let mut place = 0;
        for (at, instruction) in (first..).zip(step.instructions) {
            for operand in 0..instruction.memory {
                self.addresses.clear();
                for (addresses, own) in &lanes {
                    let address = addresses[place];
                    if !own.as_ref().is_some_and(|own| own.addresses.contains(&address)) {
                        self.addresses.push(address);
                    }
                }
                self.count((segment, at, operand));
                place += 1;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended) -> Result<Finding> {
        let mut spaces = Spaces::default();
        for ((segment, at, operand), seen) in self.seen {
            let pc = ended.warp.program().segments[segment].instructions[at as usize].pc;
            spaces.by_operand.entry((pc, operand)).or_default().add(&seen);
        }
        Ok(Finding::new(spaces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What these accesses of instruction 0, 1 … are counted as, with a buffer at 0x1000 to 0x1080.
    fn totals(accesses: &[(u32, &[u64])]) -> [Counted; 3] {
        let buffers: Arc<[Range<u64>]> = std::iter::once(0x1000..0x1080).collect();
        let mut meter = SpaceMeter { buffers, seen: FxHashMap::default(), addresses: Vec::new() };
        for (instruction, addresses) in accesses {
            meter.addresses = addresses.to_vec();
            meter.count((SegmentId(0), *instruction, 0));
        }
        let mut spaces = Spaces::default();
        let by_operand = meter.seen.into_iter().map(|((_, at, operand), seen)| ((Pc(at.into()), operand), seen));
        spaces.merge(&Spaces { by_operand: by_operand.collect() });
        spaces.totals()
    }

    fn counted(accesses: u64, transactions: u64) -> Counted {
        Counted { accesses, transactions }
    }

    #[test]
    fn the_worked_number() {
        let loads: &[u64] = &[0x1000, 0x1008, 0x1010, 0x1018];
        let stores: &[u64] = &[0x2000, 0x2040, 0x2080, 0x20c0];
        let both: &[u64] = &[0x1000, 0x1008, 0x3000, 0x3008];
        assert_eq!(totals(&[(0, loads), (1, stores), (2, both)]), [counted(1, 4), counted(1, 1), counted(1, 2)]);
    }

    #[test]
    fn an_instruction_that_once_goes_elsewhere_is_flat() {
        assert_eq!(
            totals(&[(0, &[0x1000]), (0, &[0x1080]), (0, &[0x107f])]),
            [counted(0, 0), counted(0, 0), counted(3, 3)]
        );
        assert_eq!(totals(&[(0, &[0x1000]), (1, &[0x1080]), (1, &[])]), [counted(1, 1), counted(1, 1), counted(0, 0)]);
    }
}
