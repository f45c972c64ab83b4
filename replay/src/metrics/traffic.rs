//! Memory traffic: how many transactions a coalescer makes of the accesses of each instruction.
//!
//! An *access* is one memory operand of one fetch; its *lane accesses* are one per active lane. A lane's address
//! belongs to the *stack* when it lies in the lane's own stack: from 128 bytes below the stack pointer (the red zone)
//! up to the thread's first stack pointer; all others are *heap*, globals and other lanes' stacks among them. Memory
//! that the pass `spill` makes a warp share is neither: the lanes' copies of it count as one address, and not as
//! traffic of the heap.
//!
//! Formula: with transactions of T bytes, an access of addresses a_i takes |{ floor(a_i / T) }| of them: one for each
//! aligned piece of T bytes that a lane's first byte lies in. Stack and heap addresses of one access are transferred
//! apart. *Interleaved* is what the stack would take if the lanes' stacks were laid out as GPUs lay out local memory,
//! word by word in turns: the byte at distance d from where the lane's stack pointer counts as 0 then lies at floor(d /
//! 8) x 8W + 8 x (home of the lane) + (d mod 8), W being the seats of the warp.
//!
//! Worked number: W = 4; four lanes read 8 bytes each from 0x1000, 0x1008, 0x1010 and 0x1018 (heap), and push to stacks
//! that are 64 KiB apart. The read takes 1 transaction of 32 bytes, the push 4; with interleaved stacks the push takes
//! 1 too: 4 words of 8 bytes in a row.
//!
//! *Limitation*: traces do not hold how many bytes an access has, so one that crosses a transaction's border counts as
//! if it didn't.

use std::collections::BTreeMap;

use heuristics::{Lane, Program, SegmentId};
use trace_format::{Instruction, Pc};

use super::memory::{self, Class, Classes};
use super::operands::{Accessed, Room};
use super::spill_memory::{folded, is_shared};
use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::{Cell, Entry, Table, of};
use crate::{Column, Kind, Outcome, Result, Value};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "traffic",
    file: "replay/src/metrics/traffic.rs",
    switch: Some(&memory::SWITCH),
    needs_addresses: true,
    measure: Some(|_| Traffic::measure()),
    columns: &[
        Column::counted(
            "memory_strides",
            "memory_affine by stride in bytes: the ten commonest strides, and all others together.",
            |o| total(o, |a| a.strides.named()),
        )
        .of(Kind::Named),
        Column::counted(
            "heap_accesses",
            "Memory operands with an active lane's address outside that lane's own stack.",
            |o| total(o, |a| a.heap.accesses.into()),
        ),
        Column::counted(
            "heap_transactions_32",
            "Aligned pieces of 32 bytes that hold active lanes' addresses outside their own stacks, summed over \
             memory operands.",
            |o| total(o, |a| a.heap.transactions[0].into()),
        ),
        Column::counted(
            "heap_transactions_64",
            "Aligned pieces of 64 bytes that hold active lanes' addresses outside their own stacks, summed over \
             memory operands.",
            |o| total(o, |a| a.heap.transactions[1].into()),
        ),
        Column::counted(
            "heap_transactions_128",
            "Aligned pieces of 128 bytes that hold active lanes' addresses outside their own stacks, summed over \
             memory operands.",
            |o| total(o, |a| a.heap.transactions[2].into()),
        ),
        Column::counted(
            "stack_accesses",
            "Memory operands with an active lane's address in that lane's own stack.",
            |o| total(o, |a| a.stack.accesses.into()),
        ),
        Column::counted(
            "stack_transactions_32",
            "Aligned pieces of 32 bytes that hold active lanes' addresses in their own stacks, summed over memory \
             operands.",
            |o| total(o, |a| a.stack.transactions[0].into()),
        ),
        Column::counted(
            "stack_transactions_64",
            "Aligned pieces of 64 bytes that hold active lanes' addresses in their own stacks, summed over memory \
             operands.",
            |o| total(o, |a| a.stack.transactions[1].into()),
        ),
        Column::counted(
            "stack_transactions_128",
            "Aligned pieces of 128 bytes that hold active lanes' addresses in their own stacks, summed over memory \
             operands.",
            |o| total(o, |a| a.stack.transactions[2].into()),
        ),
        Column::counted(
            "interleaved_transactions_32",
            "What stack_transactions_32 would be if the lanes' stacks were interleaved word by word.",
            |o| total(o, |a| a.interleaved[0].into()),
        ),
        Column::counted(
            "interleaved_transactions_64",
            "What stack_transactions_64 would be if the lanes' stacks were interleaved word by word.",
            |o| total(o, |a| a.interleaved[1].into()),
        ),
        Column::counted(
            "interleaved_transactions_128",
            "What stack_transactions_128 would be if the lanes' stacks were interleaved word by word.",
            |o| total(o, |a| a.interleaved[2].into()),
        ),
    ],
    table: Some(&TABLE),
};

/// Of all memory operands together.
fn total(outcome: &Outcome, value: fn(&Accesses) -> Value) -> Value {
    of(outcome, |found: &Traffic| value(&found.total))
}

/// The table, which rows of single instructions, lines and functions have too: see [`Accesses::cells`].
static TABLE: Table = Table {
    header: &ACCESS_HEADER,
    row: |outcome| outcome.found().map(|found: &Traffic| found.total.cells()),
    legend: |_| {
        "accesses: memory operands of fetches; stride: the commonest among the affine ones, in bytes; 32B to 128B: \
         transactions per access, for the heap (with globals), the\nlanes' own stacks, and those stacks interleaved \
         word by word"
            .to_owned()
    },
};

/// What stands above [`Accesses::cells`].
pub const ACCESS_HEADER: [&str; 14] = [
    "accesses",
    "uniform",
    "affine",
    "scattered",
    "stride",
    "heap 32B",
    "64B",
    "128B",
    "stack 32B",
    "64B",
    "128B",
    "interleaved 32B",
    "64B",
    "128B",
];

/// The sizes of transactions, in bytes.
pub const TRANSACTION_SIZES: [u64; 3] = [32, 64, 128];

/// The bytes of a word of an interleaved stack: what a push writes.
const WORD: i64 = 8;

/// The most strides that are kept of one instruction; further ones are counted together.
const MOST_STRIDES: usize = 64;

/// Accesses by stride, of those that are affine. Two lanes that don't access one address always have a stride.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Strides {
    /// By stride in bytes.
    pub counts: BTreeMap<i128, u64>,
    /// Those of further strides, where an instruction had many.
    pub others: u64,
}

impl Strides {
    /// The ten commonest strides and their accesses, and how many others there are, by name.
    #[must_use]
    pub fn named(&self) -> Value {
        const SHOWN: usize = 10;
        let all = self.most_first();
        let others = self.others + all.iter().skip(SHOWN).map(|(_, n)| n).sum::<u64>();
        let mut shown: Vec<(String, u64)> =
            all.iter().take(SHOWN).map(|(stride, n)| (stride.to_string(), *n)).collect();
        if others > 0 {
            shown.push(("others".to_owned(), others));
        }
        shown.sort_unstable();
        Value::Named(shown)
    }

    fn count(&mut self, stride: i128) {
        if self.counts.len() < MOST_STRIDES || self.counts.contains_key(&stride) {
            *self.counts.entry(stride).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    fn add(&mut self, other: &Strides) {
        for (stride, accesses) in &other.counts {
            *self.counts.entry(*stride).or_default() += accesses;
        }
        self.others += other.others;
    }

    /// Strides and accesses, those of most accesses first, the smallest first among equals.
    #[must_use]
    pub fn most_first(&self) -> Vec<(i128, u64)> {
        let mut all: Vec<(i128, u64)> = self.counts.iter().map(|(s, n)| (*s, *n)).collect();
        all.sort_by_key(|(stride, accesses)| (std::cmp::Reverse(*accesses), stride.unsigned_abs(), *stride));
        all
    }
}

/// What went to the stack, or to the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Space {
    /// Accesses with at least one lane's access there.
    pub accesses: u64,
    /// Those lanes' accesses.
    pub lane_accesses: u64,
    /// Transactions, by [`TRANSACTION_SIZES`].
    pub transactions: [u64; 3],
}

impl Space {
    fn count(&mut self, addresses: &mut [u64]) {
        if !addresses.is_empty() {
            self.accesses += 1;
            self.lane_accesses += addresses.len() as u64;
            add(&mut self.transactions, transactions(addresses));
        }
    }

    /// One access of one lane.
    fn count_lone(&mut self) {
        self.accesses += 1;
        self.lane_accesses += 1;
        add(&mut self.transactions, [1; 3]);
    }

    fn add(&mut self, other: &Space) {
        self.accesses += other.accesses;
        self.lane_accesses += other.lane_accesses;
        add(&mut self.transactions, other.transactions);
    }
}

/// The accesses of an instruction, or of all.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Accesses {
    /// By class.
    pub classes: Classes,
    /// The affine ones by stride.
    pub strides: Strides,
    /// What went to the heap, globals and other lanes' stacks.
    pub heap: Space,
    /// What went to the lanes' own stacks.
    pub stack: Space,
    /// The transactions that the stack would take if stacks were interleaved, by [`TRANSACTION_SIZES`].
    pub interleaved: [u64; 3],
}

impl Accesses {
    /// What stands in a table of accesses, below [`ACCESS_HEADER`].
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let share = |n: u64| Cell::Share(n as f64 / self.accesses().max(1) as f64);
        let per_access = |transactions: &[u64; 3], accesses: u64| {
            transactions.map(|n| Cell::number((accesses > 0).then(|| n as f64 / accesses as f64)))
        };
        let stride = self.strides.most_first().first().map(|(stride, _)| stride.to_string());
        let mut cells = vec![Cell::Count(self.accesses())];
        cells.extend([self.classes.uniform, self.classes.affine, self.classes.scattered].map(share));
        cells.push(stride.map_or(Cell::Empty, Cell::Text));
        cells.extend(per_access(&self.heap.transactions, self.heap.accesses));
        cells.extend(per_access(&self.stack.transactions, self.stack.accesses));
        cells.extend(per_access(&self.interleaved, self.stack.accesses));
        cells
    }

    /// Memory operands of fetches.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.classes.total()
    }

    /// Those, one per active lane.
    #[must_use]
    pub fn lane_accesses(&self) -> u64 {
        self.heap.lane_accesses + self.stack.lane_accesses
    }

    /// Adds other accesses.
    pub fn add(&mut self, other: &Accesses) {
        self.classes.add(&other.classes);
        self.strides.add(&other.strides);
        self.heap.add(&other.heap);
        self.stack.add(&other.stack);
        add(&mut self.interleaved, other.interleaved);
    }
}

/// The memory traffic of a replay.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Of all instructions together.
    pub total: Accesses,
    /// By instruction, in the order of their addresses; only those that access memory.
    pub by_instruction: BTreeMap<Pc, Accesses>,
}

impl Traffic {
    /// Asks for it; the trace must have addresses.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |_| Some(Box::new(TrafficMeter::default())))
    }
}

impl Measured for Traffic {
    fn merge(&mut self, other: &Traffic) {
        self.total.add(&other.total);
        for (pc, accesses) in &other.by_instruction {
            self.by_instruction.entry(*pc).or_default().add(accesses);
        }
    }
}

fn add(sum: &mut [u64; 3], more: [u64; 3]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// How many transactions of each size these addresses take; they are sorted on the way.
pub(super) fn transactions(addresses: &mut [u64]) -> [u64; 3] {
    const { assert!(TRANSACTION_SIZES[0].is_power_of_two() && TRANSACTION_SIZES[1].is_power_of_two()) };
    const { assert!(TRANSACTION_SIZES[2].is_power_of_two()) };
    if !addresses.is_sorted() {
        addresses.sort_unstable();
    }
    let mut pieces = [1; 3];
    for two in addresses.windows(2) {
        // Of two addresses in one piece only bits below its size differ.
        let differ = two[0] ^ two[1];
        pieces.iter_mut().zip(TRANSACTION_SIZES).for_each(|(n, size)| *n += u64::from(differ >= size));
    }
    pieces
}

/// Where the byte at distance `d` from a stack's zero lies when the stacks of `width` lanes are interleaved. Stacks are
/// far smaller than the 2^55 bytes of which more would not fit.
#[inline]
pub(super) fn interleaved(d: i64, home: usize, width: usize) -> i64 {
    (d.div_euclid(WORD) * WORD).wrapping_mul(width as i64) + WORD * home as i64 + d.rem_euclid(WORD)
}

/// Measures the memory traffic of one warp's replay.
#[derive(Default)]
pub struct TrafficMeter {
    /// By segment, where it has accessed memory: where in `by_instruction` its instructions begin, and 1 more.
    begins: Vec<u32>,
    by_instruction: Vec<(SegmentId, u32, Accesses)>,
    room: Room,
    addresses: Addresses,
}

/// Room for those of one operand.
#[derive(Default)]
struct Addresses {
    all: Vec<(Lane, u64)>,
    heap: Vec<u64>,
    stack: Vec<u64>,
    interleaved: Vec<u64>,
}

impl Addresses {
    /// Counts one operand of these lanes.
    fn count(&mut self, accesses: &mut Accesses, lanes: &[Accessed], operand: usize, width: usize) {
        if let [lane] = lanes {
            let address = lane.addresses[operand];
            accesses.classes.count(Class::Uniform);
            if lane.in_stack(address).is_some() {
                accesses.stack.count_lone();
                add(&mut accesses.interleaved, [1; 3]);
            } else if !is_shared(address) {
                accesses.heap.count_lone();
            }
            return;
        }
        let Addresses { all, heap, stack, interleaved: laid_out } = self;
        all.clear();
        heap.clear();
        stack.clear();
        laid_out.clear();
        for lane in lanes {
            let address = lane.addresses[operand];
            all.push((lane.home, folded(address)));
            match lane.in_stack(address) {
                Some(distance) => {
                    stack.push(address);
                    // Below zero they are far from those above, as large numbers without a sign.
                    laid_out.push(interleaved(distance, lane.home.index(), width).cast_unsigned());
                }
                None if is_shared(address) => {}
                None => heap.push(address),
            }
        }
        let class = Class::of(all);
        accesses.classes.count(class);
        if let Class::Affine(stride) = class {
            accesses.strides.count(stride);
        }
        accesses.heap.count(heap);
        accesses.stack.count(stack);
        if !laid_out.is_empty() {
            add(&mut accesses.interleaved, transactions(laid_out));
        }
    }
}

impl TrafficMeter {
    /// Counts what these lanes access, behind so many addresses, in these instructions of a segment, of which the first
    /// has this number.
    fn count(
        &mut self,
        (segment, first): (SegmentId, u32),
        instructions: &[Instruction],
        lanes: &[Accessed],
        before: usize,
        (program, width): (&Program, usize),
    ) {
        if self.begins.is_empty() {
            self.begins.resize(program.segments.len(), 0);
        }
        let begins = &mut self.begins[segment.0 as usize];
        if *begins == 0 {
            *begins = self.by_instruction.len() as u32 + 1;
            let all = 0..program.segments[segment].len() as u32;
            self.by_instruction.extend(all.map(|at| (segment, at, Accesses::default())));
        }
        let begins = (*begins - 1 + first) as usize;
        let mut operand = before;
        for ((.., accesses), instruction) in self.by_instruction[begins..].iter_mut().zip(instructions) {
            for _ in 0..instruction.memory {
                self.addresses.count(accesses, lanes, operand, width);
                operand += 1;
            }
        }
    }
}

impl Metric for TrafficMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        if step.instructions.iter().all(|i| i.memory == 0) {
            return Ok(());
        }
        let mut room = std::mem::take(&mut self.room);
        let of = (step.standing.program, step.seats().width());
        room.step(step, |lanes| self.count(step.place(), step.instructions, lanes, 0, of));
        self.room = room;
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let mut room = std::mem::take(&mut self.room);
        let of = (run.first.standing.program, run.first.seats().width());
        room.run(run, |id, instructions, lanes, before| self.count((id, 0), instructions, lanes, before, of));
        self.room = room;
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended) -> Result<Finding> {
        let mut traffic = Traffic::default();
        for (segment, at, accesses) in self.by_instruction.into_iter().filter(|(.., all)| all.accesses() > 0) {
            let pc = ended.warp.program().segments[segment].instructions[at as usize].pc;
            traffic.total.add(&accesses);
            traffic.by_instruction.entry(pc).or_default().add(&accesses);
        }
        Ok(Finding::new(traffic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_in_one_piece_take_one_transaction() {
        assert_eq!(transactions(&mut [0x1000, 0x1008, 0x1010, 0x1018]), [1, 1, 1]);
        assert_eq!(transactions(&mut [0x1060, 0x1000, 0x1020, 0x1040]), [4, 2, 1]);
        assert_eq!(transactions(&mut [0x101f, 0x1020]), [2, 1, 1]);
    }

    #[test]
    fn interleaved_stacks_put_the_same_word_of_all_lanes_in_a_row() {
        let words: Vec<i64> = (0..4).map(|home| interleaved(-16, home, 4)).collect();
        assert_eq!(words, [-64, -56, -48, -40]);
        assert_eq!(interleaved(-13, 0, 4), -61);
    }

    #[test]
    fn strides_beyond_the_most_are_counted_together() {
        let mut strides = Strides::default();
        (1..=MOST_STRIDES as i128 + 2).for_each(|stride| strides.count(stride));
        strides.count(3);
        assert_eq!((strides.counts.len(), strides.others), (MOST_STRIDES, 2));
        assert_eq!(strides.most_first()[0], (3, 2));
    }
}
