//! How long lanes that a model chose would be chosen again while they run on alone: what spares the engine a choice for
//! each segment.

use trace_format::Pc;

use crate::{ControlFlow, LaneState, PlaceId};

/// By what a model compares lanes that run with those that wait. The smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// By nothing: it runs these lanes until they come to a place where something happens.
    #[default]
    None,
    /// By pc.
    Pc,
    /// By stack pointer, among equals by pc.
    SpAndPc,
    /// By call level, the highest first, among equals by the priority of the block ([`ControlFlow::priority`]).
    LevelAndPriority,
}

/// As long as lanes that were chosen stay at one pc, come to none of the `stops`, are at `least_level` at least, and
/// go before `below` in the order, the model chooses them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    order: Order,
    below: (i64, u64),
    least_level: u32,
    stops: Vec<Pc>,
    /// A bit for each stop, by [`bit`].
    bits: u64,
}

impl Default for Lead {
    fn default() -> Lead {
        Lead { order: Order::None, below: (i64::MAX, u64::MAX), least_level: 0, stops: Vec::new(), bits: 0 }
    }
}

/// A bit that stands for a pc, and for others.
fn bit(pc: Pc) -> u64 {
    1 << ((pc.0 ^ pc.0 >> 6) % 64)
}

impl Lead {
    /// Nothing ends it, and lanes are compared by this.
    pub fn restart(&mut self, order: Order) {
        (self.order, self.below, self.least_level, self.bits) = (order, (i64::MAX, u64::MAX), 0, 0);
        self.stops.clear();
    }

    /// It ends at this pc.
    pub fn stop_at(&mut self, pc: Pc) {
        self.stops.push(pc);
        self.bits |= bit(pc);
    }

    /// It ends at call levels below this one.
    pub fn stop_below_level(&mut self, level: u32) {
        self.least_level = self.least_level.max(level);
    }

    /// It ends where the lanes do not go before another that stands so.
    pub fn stop_behind(&mut self, other: &LaneState, place: PlaceId, control_flow: &ControlFlow) {
        let key = self.key((other.pc, place), other.sp, other.level, control_flow);
        self.below = self.below.min(key);
    }

    /// Whether call levels matter to it.
    #[must_use]
    pub fn looks_at_levels(&self) -> bool {
        self.least_level > 0 || self.order == Order::LevelAndPriority
    }

    /// The pc below which the lanes go on, where nothing else ends it.
    #[must_use]
    pub fn goes_on_below(&self) -> Option<Pc> {
        let by_pc_alone = self.order == Order::Pc && self.stops.is_empty() && self.least_level == 0;
        // The first of a pair of keys of this order is 0, or more where there is no other lane.
        let below = if self.below.0 > 0 { u64::MAX } else { self.below.1 };
        by_pc_alone.then_some(Pc(below))
    }

    /// Whether lanes that come to this place would be chosen again.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, at: (Pc, PlaceId), sp: i64, level: u32, control_flow: &ControlFlow) -> bool {
        let is_stop = self.bits & bit(at.0) != 0 && self.stops.contains(&at.0);
        !is_stop
            && level >= self.least_level
            && (self.order == Order::None || self.key(at, sp, level, control_flow) < self.below)
    }

    #[inline]
    fn key(&self, (pc, place): (Pc, PlaceId), sp: i64, level: u32, control_flow: &ControlFlow) -> (i64, u64) {
        match self.order {
            Order::None => (0, 0),
            Order::Pc => (0, pc.0),
            Order::SpAndPc => (sp, pc.0),
            Order::LevelAndPriority => (-i64::from(level), u64::from(control_flow.priority(place))),
        }
    }
}
