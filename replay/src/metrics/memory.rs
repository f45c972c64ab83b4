//! Memory classes: how the addresses of the active lanes lie, per memory operand and fetch.
//!
//! *Uniform*: all equal. *Affine*: not uniform, and every address is first + (lane distance) x (second - first) /
//! (distance of the first two lanes), the division an integer one that rounds towards zero. *Scattered*: the rest. The
//! simulator of Milanez et al. takes affine accesses whose second address lies below the first for scattered; here they
//! are affine, and counted apart as well.
//!
//! Worked number: lanes 0, 1 and 3 access 0x100, 0x108 and 0x118: stride 8, affine with 3 active lanes.

use heuristics::Lane;

use super::operands::{Accessed, Room};
use super::spill_memory::folded;
use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::entry::{Entry, Switch, of};
use crate::{Column, Kind, Outcome, Result, Value};

/// The switch of this measure and of [`super::Traffic`].
pub static SWITCH: Switch = Switch {
    name: "memory",
    help: "Classify memory accesses (uniform, affine, scattered) and count their transactions; the trace must have addresses",
    number: None,
};

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "memory-classes",
    file: "replay/src/metrics/memory.rs",
    switch: Some(&SWITCH),
    needs_addresses: true,
    measure: Some(|_| MemoryClasses::measure()),
    columns: &[
        Column::counted(
            "memory_uniform",
            "Memory operands whose active lanes all access one address, by the number of active lanes (1, 2 … W).",
            |o| by_active(o, |c| c.uniform),
        )
        .of(Kind::Counts),
        Column::counted(
            "memory_affine",
            "Memory operands whose addresses grow or shrink by a constant stride from lane to lane.",
            |o| by_active(o, |c| c.affine),
        )
        .of(Kind::Counts),
        Column::counted("memory_affine_downwards", "Those of memory_affine whose stride is negative.", |o| {
            by_active(o, |c| c.affine_downwards)
        })
        .of(Kind::Counts),
        Column::counted("memory_scattered", "Memory operands that are neither uniform nor affine.", |o| {
            by_active(o, |c| c.scattered)
        })
        .of(Kind::Counts),
    ],
    table: None,
};

/// One class, by number of active lanes.
fn by_active(outcome: &Outcome, class: fn(&Classes) -> u64) -> Value {
    of(outcome, |found: &MemoryClasses| Value::Counts(found.by_active.iter().map(class).collect()))
}

/// Memory operands by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Classes {
    /// All lanes access one address.
    pub uniform: u64,
    /// The addresses follow the lane number by a stride, up or down.
    pub affine: u64,
    /// Those of `affine` whose stride is negative.
    pub affine_downwards: u64,
    /// The rest.
    pub scattered: u64,
}

impl Classes {
    /// One more memory operand.
    pub(crate) fn count(&mut self, class: Class) {
        match class {
            Class::Uniform => self.uniform += 1,
            Class::Affine(stride) => {
                self.affine += 1;
                self.affine_downwards += u64::from(stride < 0);
            }
            Class::Scattered => self.scattered += 1,
        }
    }

    /// Adds other memory operands.
    pub(crate) fn add(&mut self, other: &Classes) {
        self.uniform += other.uniform;
        self.affine += other.affine;
        self.affine_downwards += other.affine_downwards;
        self.scattered += other.scattered;
    }

    /// All memory operands.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.uniform + self.affine + self.scattered
    }
}

/// How the addresses of one memory operand lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Uniform,
    /// By this stride in bytes; never 0.
    Affine(i128),
    Scattered,
}

impl Class {
    /// Of a memory operand of one fetch, with each active lane's address in lane order; there is at least one.
    pub(crate) fn of(addresses: &[(Lane, u64)]) -> Class {
        let first = addresses[0];
        if addresses.iter().all(|a| a.1 == first.1) {
            return Class::Uniform;
        }
        if let Some(class) = Class::of_near(addresses) {
            return class;
        }
        let distance = |lane: Lane| i128::from(lane.0) - i128::from(first.0.0);
        let offset = |address: u64| i128::from(address) - i128::from(first.1);
        let second = addresses[1];
        let stride = offset(second.1) / distance(second.0);
        let follows = addresses.iter().all(|(lane, address)| offset(*address) == distance(*lane) * stride);
        if follows && stride != 0 { Class::Affine(stride) } else { Class::Scattered }
    }
}

impl Class {
    /// The same, of addresses that are not all equal and so small that 64 bits hold what comes of them; none of others.
    fn of_near(addresses: &[(Lane, u64)]) -> Option<Class> {
        const LARGE: u64 = u64::MAX << 54;
        if addresses.iter().fold(0, |bits, (_, address)| bits | address) & LARGE != 0 {
            return None;
        }
        let (first, second) = (addresses[0], addresses[1]);
        let distance = |lane: Lane| i64::from(lane.0) - i64::from(first.0.0);
        let offset = |address: u64| address.cast_signed() - first.1.cast_signed();
        let stride = offset(second.1) / distance(second.0);
        let follows = addresses.iter().all(|(lane, address)| offset(*address) == distance(*lane) * stride);
        Some(if follows && stride != 0 { Class::Affine(stride.into()) } else { Class::Scattered })
    }
}

/// Memory operands by class and number of active lanes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemoryClasses {
    /// Index 0 is one active lane.
    pub by_active: Vec<Classes>,
}

impl MemoryClasses {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| {
            let found = MemoryClasses::new(warp.most_active());
            Some(Box::new(ClassMeter { found, room: Room::default(), addresses: Vec::new() }))
        })
    }

    /// None yet, for a warp of so many lanes.
    #[must_use]
    pub fn new(lanes: usize) -> MemoryClasses {
        MemoryClasses { by_active: vec![Classes::default(); lanes] }
    }

    /// One memory operand of one fetch, with each active lane's address in lane order.
    pub(crate) fn access(&mut self, addresses: &[(Lane, u64)]) {
        self.by_active[addresses.len() - 1].count(Class::of(addresses));
    }
}

impl Measured for MemoryClasses {
    fn merge(&mut self, other: &MemoryClasses) {
        if self.by_active.len() < other.by_active.len() {
            self.by_active.resize(other.by_active.len(), Classes::default());
        }
        for (sum, part) in self.by_active.iter_mut().zip(&other.by_active) {
            sum.add(part);
        }
    }
}

/// Counts the memory operands of one warp's replay by class.
struct ClassMeter {
    found: MemoryClasses,
    room: Room,
    addresses: Vec<(Lane, u64)>,
}

impl ClassMeter {
    /// So many operands of these lanes, behind so many before them.
    fn count(&mut self, operands: usize, lanes: &[Accessed], before: usize) {
        for operand in before..before + operands {
            self.addresses.clear();
            self.addresses.extend(lanes.iter().map(|lane| (lane.home, folded(lane.addresses[operand]))));
            self.found.access(&self.addresses);
        }
    }
}

impl Metric for ClassMeter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let operands: usize = step.instructions.iter().map(|i| usize::from(i.memory)).sum();
        if step.lanes.len() == 1 {
            self.found.by_active[0].uniform += operands as u64;
        } else if operands > 0 {
            let mut room = std::mem::take(&mut self.room);
            room.step(step, |lanes| self.count(operands, lanes, 0));
            self.room = room;
        }
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        if run.lanes().len() == 1 {
            self.found.by_active[0].uniform += run.briefs().map(|(_, brief)| u64::from(brief.addresses)).sum::<u64>();
            return Ok(());
        }
        let mut room = std::mem::take(&mut self.room);
        let segments = &run.first.standing.program.segments;
        room.run(run, |id, _, lanes, before| self.count(segments[id].addresses as usize, lanes, before));
        self.room = room;
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        Ok(Finding::new(self.found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(addresses: &[(u8, u64)]) -> Classes {
        let mut classes = MemoryClasses::new(8);
        classes.access(&addresses.iter().map(|(l, a)| (Lane(*l), *a)).collect::<Vec<_>>());
        classes.by_active[addresses.len() - 1]
    }

    #[test]
    fn a_stride_counts_lanes_that_are_not_active() {
        assert_eq!(class(&[(0, 0x100), (1, 0x108), (3, 0x118)]).affine, 1);
        assert_eq!(class(&[(0, 0x100), (1, 0x108), (3, 0x110)]).scattered, 1);
    }

    #[test]
    fn a_negative_stride_is_affine_and_counted_apart() {
        let classes = class(&[(0, 0x108), (1, 0x100)]);
        assert_eq!((classes.affine, classes.affine_downwards), (1, 1));
    }

    #[test]
    fn large_addresses_are_classed_as_small_ones() {
        let mut seed = 1_u64;
        for case in 0..1000 {
            let mut addresses: Vec<(Lane, u64)> = Vec::new();
            for lane in [0, 1, 4, 9].into_iter().skip(case % 2) {
                seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) ^ 11;
                addresses
                    .push((Lane(lane), 0x8000 + u64::from(lane) * (case as u64 % 5) + seed % (1 + case as u64 % 3)));
            }
            let far: Vec<(Lane, u64)> = addresses.iter().map(|(lane, address)| (*lane, address | 1 << 60)).collect();
            assert_eq!(Class::of(&addresses), Class::of(&far), "{addresses:?}");
        }
    }

    #[test]
    fn one_lane_is_uniform() {
        assert_eq!(class(&[(5, 7)]).uniform, 1);
    }

    #[test]
    fn equal_first_two_with_another_address_are_scattered() {
        assert_eq!(class(&[(0, 8), (1, 8), (2, 16)]).scattered, 1);
    }
}
