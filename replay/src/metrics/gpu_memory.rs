//! The global memory that a GPU would access for what the program does: requests, and the sectors that they take.
//!
//! A *request* is one load or store of one fetch, for all active lanes together; its *sectors* are the aligned pieces
//! of 32 bytes that the lanes' bytes lie in. Both are what NVIDIA's counters `l1tex__t_requests` and `l1tex__t_sectors`
//! count for loads and stores of global memory. It is [`super::Traffic`] with what a GPU's code has otherwise:
//!
//! - A lane's own stack is none of it: locals and spills are in registers, or in local memory. Nor is one place of the
//!   highest stack that all active lanes read: that of the thread which called the others, and gave them parameters.
//! - What an instruction reads at an address beside itself, or in a part of a file that nobody writes, is a constant or
//!   a parameter, and a part of the code.
//! - An operand that is read and written is a load and a store. Atomic instructions are neither: they are counted apart
//!   by NVIDIA, too. Of those of one fetch to one address all but one wait: a *conflict*.
//! - An operand of several numbers, as vectors have, is so many loads or stores; so is one that does not always lie at
//!   a multiple of its size.
//! - Arrays begin at multiples of 256 bytes, where `cudaMalloc` puts them: an instruction whose lowest address lies in
//!   the second half of a sector, as every second array of `malloc` does, is moved on by half of one.
//! - CUDA's `sin` and `cos` of `double` read a table of coefficients: 3 loads of 16 bytes, in one of two parts by the
//!   lane's operand, so that several lanes take 2 sectors.
//!
//! Worked number: four lanes add 1 to 8 bytes each at 0x1000, 0x1008, 0x1010 and 0x1018 with one instruction: a load
//! and a store, 2 requests and 2 sectors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use heuristics::{Program, SegmentId};
use rustc_hash::FxHashSet;
use trace_format::{Instruction, Pc};

use super::gpu_time::{GpuTime, Work};
use super::memory;
use super::operands::{Accessed, Room};
use super::spill_memory::is_shared;
use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::engine::gpu_tenths;
use crate::entry::{Entry, of};
use crate::{Column, Kind, Result, Value};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "gpu-memory",
    file: "replay/src/metrics/gpu_memory.rs",
    switch: Some(&memory::SWITCH),
    needs_addresses: true,
    measure: Some(|_| GpuMemory::measure()),
    columns: &[
        Column::counted(
            "gpu_requests",
            "Loads and stores of global memory that a GPU would have, one for all active lanes of a fetch.",
            |o| of(o, |found: &GpuMemory| Value::Count(found.requests())),
        ),
        Column::counted(
            "gpu_sectors",
            "Aligned pieces of 32 bytes that hold the active lanes' bytes, summed over gpu_requests.",
            |o| of(o, |found: &GpuMemory| Value::Count(found.sectors())),
        ),
        Column::counted(
            "gpu_atomics",
            "Atomic operations on global memory, one for each active lane of a fetch; none of a lock's functions.",
            |o| of(o, |found: &GpuMemory| Value::Count(found.atomics)),
        ),
        Column::counted(
            "gpu_atomic_conflicts",
            "Those of them to an address that another lane of the fetch accesses before: they run one after another.",
            |o| of(o, |found: &GpuMemory| Value::Count(found.conflicts)),
        ),
        Column::counted(
            "gpu_time",
            "Nanoseconds that an NVIDIA H200 would take for the lanes' launches, one behind the other.",
            |o| GpuTime::of(o).map_or(Value::None, |time| Value::Count(time.nanoseconds as u64)),
        ),
        Column::counted(
            "gpu_bound",
            "What most of gpu_time is bound by: latency, issue, cache, stores or memory.",
            |o| GpuTime::of(o).map_or(Value::None, |time| Value::Text(time.bound.name().to_owned())),
        )
        .of(Kind::Text),
        Column::counted(
            "gpu_filled_time",
            "Picoseconds that one copy of the lanes takes where an H200 is full of copies. Gains in time are said by it.",
            |o| GpuTime::of(o).map_or(Value::None, |time| Value::Count((time.filled * 1000.0) as u64)),
        ),
        Column::counted("gpu_filled_bound", "What gpu_filled_time is bound by.", |o| {
            GpuTime::of(o).map_or(Value::None, |time| Value::Text(time.filled_bound.name().to_owned()))
        })
        .of(Kind::Text),
    ],
    table: None,
};

/// A sector of NVIDIA's caches, in bytes.
const SECTOR: u64 = 32;
/// The bytes of a line of the first-level cache, of which it reads one a clock.
const LINE: u64 = 128;

/// So many bytes below its end, memory is taken for a stack: Linux's limit.
const MOST_STACK: u64 = 8 << 20;

/// What of an operand was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    requests: u64,
    /// Where the memory lies as it does, and where it lies 16 bytes further on.
    sectors: [u64; 2],
    /// Those of stores.
    stored: [u64; 2],
    /// Lines of 128 bytes of loads.
    lines: [u64; 2],
    /// The lowest address.
    lowest: u64,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { requests: 0, sectors: [0; 2], stored: [0; 2], lines: [0; 2], lowest: u64::MAX }
    }
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.requests += other.requests;
        for at in 0..2 {
            self.sectors[at] += other.sectors[at];
            self.stored[at] += other.stored[at];
            self.lines[at] += other.lines[at];
        }
        self.lowest = self.lowest.min(other.lowest);
    }

    /// All, those of stores, and the lines of loads.
    fn sectors(&self) -> [u64; 3] {
        let further = usize::from(self.lowest % SECTOR >= SECTOR / 2);
        [self.sectors[further], self.stored[further], self.lines[further]]
    }
}

/// Global memory as a GPU would access it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GpuMemory {
    /// By instruction and operand.
    by_operand: BTreeMap<(Pc, u8), Seen>,
    /// What mathematical functions read of their tables.
    tables: Seen,
    /// Atomic operations of lanes, and those that wait for another of their fetch.
    atomics: u64,
    conflicts: u64,
    /// What each warp did, in no order.
    pub(super) work: Vec<Work>,
}

impl GpuMemory {
    /// Asks for it; the trace must have addresses.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| {
            let end = warp.survey().stack_end;
            let of_caller = end.saturating_sub(MOST_STACK)..end;
            let constants = Arc::clone(&warp.survey().constants);
            Some(Box::new(GpuMeter { of_caller, constants, ..GpuMeter::default() }))
        })
    }

    /// Loads and stores.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.all().map(|seen| seen.requests).sum()
    }

    /// Pieces of 32 bytes, summed over requests.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.all().map(|seen| seen.sectors()[0]).sum()
    }

    /// Those of stores.
    fn stored_sectors(&self) -> u64 {
        self.all().map(|seen| seen.sectors()[1]).sum()
    }

    /// Lines of 128 bytes, summed over loads.
    fn loaded_lines(&self) -> u64 {
        self.all().map(|seen| seen.sectors()[2]).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Seen> {
        self.by_operand.values().chain([&self.tables])
    }
}

impl Measured for GpuMemory {
    fn merge(&mut self, other: &GpuMemory) {
        for (place, seen) in &other.by_operand {
            self.by_operand.entry(*place).or_default().add(seen);
        }
        self.tables.add(&other.tables);
        self.atomics += other.atomics;
        self.conflicts += other.conflicts;
        self.work.extend_from_slice(&other.work);
    }
}

/// What a GPU does for a memory operand, and what was seen of it.
#[derive(Clone, Copy, Default)]
struct Asked {
    /// Loads and stores of each number; 0 where it has none.
    times: u8,
    writes: bool,
    is_atomic: bool,
    /// Whether its address has an index, as that of an array has.
    is_indexed: bool,
    /// How many bytes it has.
    bytes: u16,
    /// How many bytes of them are one number.
    element: u16,
    seen: Seen,
}

impl Asked {
    /// For the operands of an instruction; nothing where its code is not known.
    fn of(instruction: Option<machine::Instruction>, count: usize) -> Vec<Asked> {
        let Some(instruction) = instruction else {
            return vec![Asked { times: 1, writes: true, bytes: 1, element: 1, ..Asked::default() }; count];
        };
        let of_operand = |memory: &machine::Memory| {
            let is_constant = instruction.place().is_some() && !memory.access.writes;
            let times = u8::from(memory.access.reads) + u8::from(memory.access.writes);
            let times = if is_constant || instruction.is_atomic() { 0 } else { times };
            let bytes = memory.bytes() as u16;
            let element = (instruction.element() as u16).clamp(1, bytes);
            Asked {
                times,
                writes: memory.access.writes,
                is_atomic: instruction.is_atomic(),
                is_indexed: memory.index.is_some(),
                bytes,
                element,
                seen: Seen::default(),
            }
        };
        let mut all: Vec<Asked> = instruction.memory().iter().map(of_operand).collect();
        all.resize(count, Asked::default());
        all
    }

    /// One fetch, with these addresses of its lanes, in any order.
    fn count(&mut self, addresses: &mut [u64]) {
        addresses.sort_unstable();
        // A GPU accesses what lies at a multiple of its size alone.
        let lie = addresses.iter().fold(0, |all, address| all | address);
        self.element = self.element.min(1 << lie.trailing_zeros().min(15));
        let (times, stores) = (u64::from(self.times), u64::from(self.writes));
        for offset in (0..self.bytes).step_by(self.element.into()) {
            let bytes = u64::from(self.element.min(self.bytes - offset));
            let pieces =
                |size: u64| [0, SECTOR / 2].map(|further| pieces(size, addresses, u64::from(offset) + further, bytes));
            let (sectors, lines) = (pieces(SECTOR), pieces(LINE));
            self.seen.add(&Seen {
                requests: times,
                sectors: sectors.map(|one| times * one),
                stored: sectors.map(|one| stores * one),
                lines: lines.map(|one| (times - stores) * one),
                lowest: addresses.first().map_or(u64::MAX, |lowest| lowest.saturating_add(offset.into())),
            });
        }
    }
}

/// Counts for one warp's replay.
#[derive(Default)]
struct GpuMeter {
    /// The highest stack.
    of_caller: Range<u64>,
    /// Memory that nobody writes, in the order of addresses.
    constants: Arc<[Range<u64>]>,
    /// By segment, once it has accessed memory: by instruction, its operands.
    asked: Vec<Option<Vec<Vec<Asked>>>>,
    room: Room,
    addresses: Vec<u64>,
    tables: Seen,
    /// Sectors that the warp has accessed.
    touched: FxHashSet<u64>,
    /// Its accesses: those to sectors that it had, and to others, with how many new ones.
    hits: u64,
    misses: u64,
    new_sectors: u64,
    /// As [`GpuMemory`] has them.
    atomics: u64,
    conflicts: u64,
}

impl GpuMeter {
    /// So many lanes call a function that reads its table so often.
    fn read_table(&mut self, loads: u8, lanes: usize) {
        let (requests, sectors) = (u64::from(loads), u64::from(loads) * lanes.min(2) as u64);
        self.tables.add(&Seen { requests, sectors: [sectors; 2], lines: [sectors; 2], ..Seen::default() });
    }

    /// Counts what these lanes access, behind so many addresses, in these instructions of a segment, of which the first
    /// has this number.
    fn count(
        &mut self,
        (segment, first): (SegmentId, u32),
        instructions: &[Instruction],
        lanes: &[Accessed],
        before: usize,
        program: &Program,
    ) {
        if self.asked.is_empty() {
            self.asked.resize(program.segments.len(), None);
        }
        let asked = self.asked[segment.0 as usize].get_or_insert_with(|| {
            let counts = program.segments[segment].instructions.iter().map(|i| usize::from(i.memory));
            let listing = program.segments.listing(segment);
            listing.iter().zip(counts).map(|(instruction, count)| Asked::of(instruction, count)).collect()
        });
        let own = &mut asked[first as usize..][..instructions.len()];
        for (asked, operand) in
            own.iter_mut().flatten().zip(before..).filter(|(asked, _)| asked.times > 0 || asked.is_atomic)
        {
            let addresses = &mut self.addresses;
            addresses.clear();
            addresses.extend(lanes.iter().filter_map(|lane| global(lane, operand)));
            let [first, rest @ ..] = &addresses[..] else {
                self.hits += u64::from(asked.is_indexed);
                continue;
            };
            let is_parameter = self.of_caller.contains(first) && rest.iter().all(|address| address == first);
            let below = self.constants.partition_point(|part| part.start <= *first);
            let is_constant = || below.checked_sub(1).is_some_and(|at| self.constants[at].contains(first));
            if asked.writes || !is_parameter && !is_constant() {
                let new = addresses.iter().filter(|address| self.touched.insert(**address / SECTOR)).count() as u64;
                let misses = u64::from(new > 0 || asked.is_atomic);
                self.misses += misses;
                self.hits += u64::from(asked.times).saturating_sub(misses);
                self.new_sectors += new;
                if asked.is_atomic {
                    self.atomics += addresses.len() as u64;
                    self.conflicts += shared(addresses);
                } else {
                    asked.count(addresses);
                }
            }
        }
    }
}

/// The address of a lane's operand, if it is in global memory.
fn global(lane: &Accessed, operand: usize) -> Option<u64> {
    let address = lane.addresses[operand];
    (lane.in_stack(address).is_none() && !is_shared(address)).then_some(address)
}

/// How many of these addresses are there more than once, without the first of each.
fn shared(addresses: &mut [u64]) -> u64 {
    addresses.sort_unstable();
    addresses.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64
}

/// How many pieces of this size so many bytes lie in, so far behind each of these addresses, which are sorted.
fn pieces(size: u64, addresses: &[u64], offset: u64, bytes: u64) -> u64 {
    let (mut all, mut next) = (0, 0);
    for address in addresses {
        let begin = address.wrapping_add(offset);
        let (first, last) = (begin / size, begin.saturating_add(bytes - 1) / size);
        let first = first.max(next);
        if first <= last {
            all += last - first + 1;
            next = last + 1;
        }
    }
    all
}

impl Metric for GpuMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (segment, first) = step.place();
        let program = step.standing.program;
        if first as usize + step.instructions.len() == program.segments[segment].len() {
            self.read_table(step.standing.briefs[segment.0 as usize].gpu.table_loads, step.lanes.len());
        }
        if step.instructions.iter().all(|i| i.memory == 0) {
            return Ok(());
        }
        let mut room = std::mem::take(&mut self.room);
        room.step(step, |lanes| self.count(step.place(), step.instructions, lanes, 0, program));
        self.room = room;
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let loads = run.briefs().map(|(_, brief)| brief.gpu.table_loads).filter(|loads| *loads > 0);
        loads.for_each(|loads| self.read_table(loads, run.lanes().len()));
        let mut room = std::mem::take(&mut self.room);
        let program = run.first.standing.program;
        room.run(run, |id, instructions, lanes, before| self.count((id, 0), instructions, lanes, before, program));
        self.room = room;
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended) -> Result<Finding> {
        let (tables, atomics, conflicts) = (self.tables, self.atomics, self.conflicts);
        let mut found = GpuMemory { tables, atomics, conflicts, ..GpuMemory::default() };
        let segments = &ended.warp.program().segments;
        for (segment, asked) in (0..).map(SegmentId).zip(self.asked) {
            for (instruction, asked) in segments[segment].instructions.iter().zip(asked.iter().flatten()) {
                for (operand, asked) in (0..).zip(asked).filter(|(_, asked)| asked.seen.requests > 0) {
                    found.by_operand.entry((instruction.pc, operand)).or_default().add(&asked.seen);
                }
            }
        }
        found.work.push(Work {
            number: ended.warp.number(),
            launch: ended.warp.launch(),
            lanes: ended.warp.lanes().len(),
            tenths: ended.counts.gpu_fetches + gpu_tenths(ended.counts.lock_fetches),
            hits: self.hits + found.tables.requests,
            misses: self.misses,
            sectors: found.sectors(),
            stored_sectors: found.stored_sectors(),
            loaded_lines: found.loaded_lines(),
            missed_sectors: self.new_sectors,
        });
        Ok(Finding::new(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_one_of_the_lanes_at_an_address_wait() {
        assert_eq!(shared(&mut [64, 8, 64, 64, 8, 0]), 3);
        assert_eq!(shared(&mut [1, 2, 3]), 0);
    }

    #[test]
    fn sectors_are_those_that_bytes_lie_in() {
        assert_eq!(pieces(SECTOR, &[0x1000, 0x1008, 0x1010, 0x1018], 0, 8), 1);
        assert_eq!(pieces(SECTOR, &[0x101f], 0, 1), 1);
        assert_eq!(pieces(SECTOR, &[0x101f], 0, 2), 2);
        assert_eq!(pieces(SECTOR, &[0x1000, 0x1000, 0x1040], 16, 16), 2);
        assert_eq!(pieces(SECTOR, &[0x1010, 0x1018, 0x1020], 0, 16), 2);
        assert_eq!(pieces(LINE, &[0x1010, 0x1018, 0x1070, 0x1100], 0, 16), 2);
    }
}
