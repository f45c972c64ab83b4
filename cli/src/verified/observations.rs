//! What lanes did while they were together: at each branch whether they parted, at each memory operand how their
//! addresses lay. It is independent of the analysis.

use std::collections::BTreeMap;
use std::sync::Arc;

use heuristics::LaneSet;
use replay::metrics::{Ended, Finding, Measure, Measured, Metric, Step, Warp};
use rustc_hash::FxHashMap;
use trace_format::Pc;

/// What to look at in an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// Where control goes from it.
    pub(crate) branch: bool,
    /// The address of its memory operand, if it has one.
    pub(crate) address: bool,
    /// That address may lie in the thread's own frame, which code generation made: then it is counted separately.
    pub(crate) maybe_frame: bool,
}

/// How the addresses of one fetch lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lie {
    /// All are equal.
    Uniform,
    /// From lane to lane they grow by so many bytes, modulo 2^64.
    Stride(i64),
    Scattered,
}

impl Lie {
    /// The class of addresses, given with the numbers of their lanes; at least two.
    pub(crate) fn of(addresses: &[(u64, u64)]) -> Lie {
        let (first_lane, first) = addresses[0];
        if addresses.iter().all(|(_, address)| *address == first) {
            return Lie::Uniform;
        }
        let (lane, address) = addresses[1];
        let (offset, distance) =
            (address.wrapping_sub(first).cast_signed(), (lane.wrapping_sub(first_lane)).cast_signed());
        if distance == 0 || offset % distance != 0 {
            return Lie::Scattered;
        }
        let stride = offset / distance;
        let follows = |(lane, address): &(u64, u64)| {
            let expected = first.wrapping_add(lane.wrapping_sub(first_lane).wrapping_mul(stride.cast_unsigned()));
            expected == *address
        };
        if stride != 0 && addresses.iter().all(follows) { Lie::Stride(stride) } else { Lie::Scattered }
    }
}

/// One fetch: lanes by their numbers in the replay, with their addresses or the pcs where they went.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) warp: usize,
    pub(crate) lanes: Vec<(u64, u64)>,
}

/// How many lanes of an example are kept, and how many strides have counts and examples.
const KEPT: usize = 8;

/// What was seen of an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// How often lanes ran it.
    pub(crate) executions: u64,
    /// Fetches with two lanes or more; all that follows is about these.
    pub(crate) together: u64,
    /// Those after which lanes went different ways.
    pub(crate) diverged: u64,
    pub(crate) diverging: Option<Example>,
    /// How addresses lay; strides beyond [`KEPT`] are in `more_strides`.
    pub(crate) lies: BTreeMap<Lie, (u64, Example)>,
    pub(crate) more_strides: u64,
    /// Those in which all addresses were of the lanes' own stacks, where that is counted apart.
    pub(crate) in_frame: u64,
}

impl Seen {
    fn address(&mut self, lie: Lie, warp: usize, addresses: &[(u64, u64)]) {
        if let Some((count, _)) = self.lies.get_mut(&lie) {
            *count += 1;
        } else if matches!(lie, Lie::Stride(_)) && self.lies.len() >= KEPT {
            self.more_strides += 1;
        } else {
            let lanes = addresses.iter().take(KEPT).copied().collect();
            self.lies.insert(lie, (1, Example { warp, lanes }));
        }
    }

    fn add(&mut self, other: &Seen) {
        self.executions += other.executions;
        self.together += other.together;
        self.diverged += other.diverged;
        self.diverging = self.diverging.take().or_else(|| other.diverging.clone());
        for (lie, (count, example)) in &other.lies {
            let full = matches!(lie, Lie::Stride(_)) && self.lies.len() >= KEPT;
            match self.lies.get_mut(lie) {
                Some((sum, _)) => *sum += count,
                None if full => self.more_strides += count,
                None => _ = self.lies.insert(*lie, (*count, example.clone())),
            }
        }
        self.more_strides += other.more_strides;
        self.in_frame += other.in_frame;
    }
}

/// What was seen, by instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) by_pc: FxHashMap<Pc, Seen>,
}

impl Measured for Observed {
    fn merge(&mut self, other: &Observed) {
        for (pc, seen) in &other.by_pc {
            self.by_pc.entry(*pc).or_default().add(seen);
        }
    }
}

/// Asks for it.
pub(crate) fn measure(watched: Arc<FxHashMap<Pc, Watch>>) -> Measure {
    Measure::new("verify", move |warp| Some(Box::new(Observer::new(*warp, watched.clone()))))
}

struct Observer<'a> {
    warp: Warp<'a>,
    watched: Arc<FxHashMap<Pc, Watch>>,
    observed: Observed,
    /// A branch that was fetched last: where its lanes go is seen before the next fetch.
    branched: Option<(Pc, LaneSet)>,
}

impl<'a> Observer<'a> {
    fn new(warp: Warp<'a>, watched: Arc<FxHashMap<Pc, Watch>>) -> Observer<'a> {
        Observer { warp, watched, observed: Observed::default(), branched: None }
    }

    /// Sees where the lanes of the last branch stand now.
    fn arrive(&mut self, step: &Step) {
        let Some((pc, lanes)) = self.branched.take() else { return };
        let left = lanes & step.live;
        let Some(first) = left.lowest() else { return };
        let seen = self.observed.by_pc.entry(pc).or_default();
        if left.iter().any(|lane| step.state(lane).pc != step.state(first).pc) {
            seen.diverged += 1;
            seen.diverging.get_or_insert_with(|| {
                let number = |lane: heuristics::Lane| self.warp.lanes()[lane.index()] as u64;
                // One lane of each side comes first.
                let mut went: Vec<(u64, u64)> = left.iter().map(|l| (number(l), step.state(l).pc.0)).collect();
                let other = went.iter().position(|(_, to)| *to != went[0].1).unwrap_or(0);
                went.swap(1, other);
                went.truncate(KEPT);
                Example { warp: self.warp.number(), lanes: went }
            });
        }
    }
}

impl Metric for Observer<'_> {
    fn step(&mut self, step: &Step) -> replay::Result<()> {
        self.arrive(step);
        let count = step.lanes.len();
        let mut address = 0;
        let mut addresses: Vec<(u64, u64)> = Vec::new();
        for instruction in step.instructions {
            let at = address;
            address += usize::from(instruction.memory);
            let Some(watch) = self.watched.get(&instruction.pc).copied() else { continue };
            let seen = self.observed.by_pc.entry(instruction.pc).or_default();
            seen.executions += count as u64;
            if count < 2 {
                continue;
            }
            seen.together += 1;
            if watch.branch {
                self.branched = Some((instruction.pc, step.lanes));
            }
            if watch.address && instruction.memory == 1 {
                addresses.clear();
                let number = |lane: heuristics::Lane| self.warp.lanes()[lane.index()] as u64;
                addresses.extend(step.lanes.iter().map(|lane| (number(lane), step.addresses(lane)[at])));
                let own = |lane: heuristics::Lane| {
                    step.stack(lane).is_some_and(|stack| stack.addresses.contains(&step.addresses(lane)[at]))
                };
                if watch.maybe_frame && step.lanes.iter().all(own) {
                    seen.in_frame += 1;
                } else {
                    seen.address(Lie::of(&addresses), self.warp.number(), &addresses);
                }
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> replay::Result<Finding> {
        Ok(Finding::new(self.observed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_counted_by_numbers_of_lanes_and_modulo_the_width() {
        assert_eq!(Lie::of(&[(0, 0x100), (1, 0x108), (3, 0x118)]), Lie::Stride(8));
        assert_eq!(Lie::of(&[(0, 0x100), (2, 0x108), (3, 0x110)]), Lie::Scattered);
        assert_eq!(Lie::of(&[(1, 8), (2, 0), (3, u64::MAX - 7)]), Lie::Stride(-8));
        assert_eq!(Lie::of(&[(0, 8), (1, 8), (2, 16)]), Lie::Scattered);
        assert_eq!(Lie::of(&[(0, 8), (4, 8)]), Lie::Uniform);
    }
}
