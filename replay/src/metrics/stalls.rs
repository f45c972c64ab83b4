//! Stalls: how long a warp waits for what it loads, on a core that issues in order and stalls on use.
//!
//! Formula: the model's fetches are issued in their order, one per cycle. What an instruction loads at cycle c arrives
//! at cycle c + N, for each lane that loaded. A fetch that reads it waits until it has arrived for all of its active
//! lanes, and so do all later fetches. *Stalls* are the cycles without a fetch. A value that is loaded and never read
//! costs nothing, and neither does one that is overwritten first. Lanes have registers of their own: code of some lanes
//! between the load of others and its use fills the wait, and never waits itself because it uses a register of the same
//! name. Values that `push`, `pop`, `call` and `return` move do not count as loaded, since on a GPU they would not be
//! in memory.
//!
//! Worked number: N = 10. All lanes load, add 1 to another register, and read what they loaded: the load is issued in
//! cycle 0, the addition in cycle 1, the read in cycle 10: 3 fetches and 8 stalls. With six fetches of other lanes
//! between the load and the read there are 2.
//!
//! *Limitation*: one warp alone, no other to hide the wait; every load takes as long; no bound on how many are under
//! way; values that go through memory are as fast as the load.
//!
//! Source: the stall-on-use model of Anantpur and Govindarajan, *Taming control divergence in GPUs through control flow
//! linearization*, CC 2014, section 5.1; the paper gives no latency.

use std::rc::Rc;

use heuristics::{LaneSet, SegmentId};
use machine::{Instruction, Register};
use rustc_hash::FxHashMap;

use super::{Ended, Finding, Measure, Measured, Metric, Step};
use crate::entry::{Cell, Entry, Switch, Table, of};
use crate::{Column, Result};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "stalls",
    file: "replay/src/metrics/stalls.rs",
    switch: Some(&Switch {
        name: "load-latency",
        help: "Count the cycles that a core waits for loads of N cycles each, when it stalls at the first use",
        number: Some((1, 1 << 20)),
    }),
    needs_addresses: false,
    measure: Some(Stalls::measure),
    columns: &[
        Column::counted("load_latency", "Cycles that a load takes; with --load-latency.", |o| {
            of(o, |found: &Stalls| found.latency)
        }),
        Column::counted(
            "load_stalls",
            "Cycles in which a warp issues nothing since it waits for values that its lanes load, summed over warps.",
            |o| of(o, |found: &Stalls| found.stalls),
        ),
    ],
    table: Some(&Table {
        header: &["stalls", "cycles with stalls"],
        row: |outcome| {
            let found: &Stalls = outcome.found()?;
            Some(vec![Cell::Count(found.stalls), Cell::Count(found.stalls + outcome.counts.fetches())])
        },
        legend: |outcome| {
            let latency = outcome.found().map_or(0, |found: &Stalls| found.latency);
            format!(
                "stalls: cycles that warps wait for loads, at {latency} cycles a load and one fetch per cycle \
                 otherwise"
            )
        },
    }),
};

/// The stalls of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// Cycles that a load takes.
    pub latency: u64,
    /// Cycles without a fetch, summed over warps.
    pub stalls: u64,
}

impl Stalls {
    /// Asks for them, with loads of so many cycles. Code whose bytes the trace does not have uses no register.
    #[must_use]
    pub fn measure(latency: u32) -> Measure {
        let latency = u64::from(latency);
        Measure::new(ENTRY.name, move |warp| Some(Box::new(StallMeter::new(latency, warp.lanes().len()))))
    }
}

impl Measured for Stalls {
    fn merge(&mut self, other: &Stalls) {
        self.stalls += other.stalls;
    }
}

/// A set of registers: a bit each.
type Registers = u64;

/// What is told apart: 16 general registers, 32 vectors, the flags as one, the rest as one, and 8 masks.
const NAMES: usize = 64;
const FLAGS: Registers = 1 << 48;
const REST: Registers = 1 << 49;

/// What an instruction does with registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Uses {
    reads: Registers,
    writes: Registers,
    loads: bool,
}

/// Those of the registers that are told apart.
fn named(all: machine::Registers) -> Registers {
    let own = (Register::FLAGS.bit() - 1) | 0xff << Register::MASKS.index();
    // Pointers change with each instruction, or with none.
    let rest = all >> Register::X87.index() & !(0x7f << (Register::POINTERS.0 - Register::X87.0));
    let one = |is_in: bool, bit: Registers| if is_in { bit } else { 0 };
    (all & own) as Registers | one(all & Register::ALL_FLAGS != 0, FLAGS) | one(rest != 0, REST)
}

impl Uses {
    fn of(instruction: Instruction) -> Uses {
        let loads = !instruction.is_of_stack() && instruction.memory().iter().any(|memory| memory.access.reads);
        Uses { reads: named(instruction.reads()), writes: named(instruction.writes()), loads }
    }
}

/// One lane's registers.
#[derive(Clone)]
struct File {
    /// Those that are still to come, as far as known.
    pending: Registers,
    /// By register of these: the cycle in which it is there.
    ready: [u64; NAMES],
}

/// Issues the fetches of one warp's replay, and waits.
pub struct StallMeter {
    latency: u64,
    /// The cycle of the next fetch, if it waits for nothing.
    now: u64,
    stalls: u64,
    lanes: Vec<File>,
    known: FxHashMap<SegmentId, Rc<[Uses]>>,
}

impl StallMeter {
    /// For a warp of so many lanes, with loads of so many cycles.
    #[must_use]
    pub fn new(latency: u64, lanes: usize) -> StallMeter {
        let lanes = vec![File { pending: 0, ready: [0; NAMES] }; lanes];
        StallMeter { latency, now: 0, stalls: 0, lanes, known: FxHashMap::default() }
    }

    fn issue(&mut self, uses: Uses, lanes: LaneSet) {
        let mut at = self.now;
        for lane in lanes {
            let file = &self.lanes[lane.index()];
            let mut awaited = uses.reads & file.pending;
            while awaited != 0 {
                at = at.max(file.ready[awaited.trailing_zeros() as usize]);
                awaited &= awaited - 1;
            }
        }
        self.stalls += at - self.now;
        self.now = at + 1;
        for lane in lanes {
            let file = &mut self.lanes[lane.index()];
            file.pending &= !(uses.reads | uses.writes);
            if uses.loads {
                file.pending |= uses.writes;
                let mut written = uses.writes;
                while written != 0 {
                    file.ready[written.trailing_zeros() as usize] = at + self.latency;
                    written &= written - 1;
                }
            }
        }
    }
}

impl Metric for StallMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (segment, offset) = step.place();
        let uses = self.known.entry(segment).or_insert_with(|| {
            let listing = step.standing.program.segments.listing(segment);
            listing.iter().map(|instruction| instruction.map(Uses::of).unwrap_or_default()).collect()
        });
        let uses = Rc::clone(uses);
        for &of_one in &uses[offset as usize..][..step.instructions.len()] {
            self.issue(of_one, step.lanes);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(Stalls { latency: self.latency, stalls: self.stalls }))
    }
}

#[cfg(test)]
mod tests {
    use heuristics::Lane;
    use machine::Table;
    use trace_format::Pc;

    use super::*;

    /// `mov eax, [rdi]`
    const LOAD: &[u8] = &[0x8B, 7];
    /// `add ecx, 1`
    const OTHER: &[u8] = &[0x83, 0xC1, 1];
    /// `add edx, eax`
    const USE: &[u8] = &[1, 0xC2];

    fn uses(bytes: &[u8]) -> Uses {
        let table = Table::first(Pc(0x1000), bytes);
        table.all().get(0).map(Uses::of).unwrap_or_default()
    }

    fn stalls(latency: u64, fetches: &[(&[u8], &[u8])]) -> u64 {
        let mut meter = StallMeter::new(latency, 8);
        for (bytes, lanes) in fetches {
            meter.issue(uses(bytes), lanes.iter().map(|&lane| Lane(lane)).collect());
        }
        meter.stalls
    }

    #[test]
    fn the_worked_number() {
        let all: &[u8] = &[0, 1, 2, 3];
        assert_eq!(stalls(10, &[(LOAD, all), (OTHER, all), (USE, all)]), 8);
        let mut filled = vec![(LOAD, all), (OTHER, all)];
        filled.extend([(OTHER, &[7][..]); 6]);
        filled.push((USE, all));
        assert_eq!(stalls(10, &filled), 2);
        assert_eq!(stalls(1, &[(LOAD, all), (USE, all)]), 0, "there in the next cycle");
    }

    #[test]
    fn lanes_wait_for_their_own_loads_alone() {
        // Lane 1 uses a register of that name, and waits for nothing; lane 0 does as soon as it is active.
        assert_eq!(stalls(10, &[(LOAD, &[0]), (USE, &[1])]), 0);
        assert_eq!(stalls(10, &[(LOAD, &[0]), (USE, &[1]), (USE, &[0, 1])]), 8);
    }

    #[test]
    fn what_was_waited_for_or_overwritten_is_there() {
        assert_eq!(stalls(10, &[(LOAD, &[0]), (USE, &[0]), (USE, &[0])]), 9);
        // mov eax, 5
        assert_eq!(stalls(10, &[(LOAD, &[0]), (&[0xB8, 5, 0, 0, 0], &[0]), (USE, &[0])]), 0);
    }

    #[test]
    fn what_an_instruction_uses() {
        assert_eq!(uses(LOAD), Uses { reads: 1 << 7, writes: 1, loads: true });
        assert_eq!(uses(USE), Uses { reads: 1 | 1 << 2, writes: 1 << 2 | FLAGS, loads: false });
        // cmp [rdi], eax: the flags are what it loads; jne reads them. mov [rdi], eax loads nothing.
        assert_eq!(uses(&[0x39, 7]), Uses { reads: 1 | 1 << 7, writes: FLAGS, loads: true });
        assert_eq!(uses(&[0x75, 2]), Uses { reads: FLAGS, writes: 0, loads: false });
        assert!(!uses(&[0x89, 7]).loads);
        // pop rbx and ret; movss xmm1, [rdi]; lea eax, [rdi+1].
        assert!(!uses(&[0x5B]).loads && !uses(&[0xC3]).loads && !uses(&[0x8D, 0x47, 1]).loads);
        assert_eq!(uses(&[0xF3, 0x0F, 0x10, 0x0F]), Uses { reads: 1 << 7, writes: 1 << 17, loads: true });
        assert_eq!(uses(&[]), Uses::default());
    }
}
