//! How long lanes that a model chose would be chosen again while they run on alone. This saves the engine a choice for
//! each segment.

use trace_format::Pc;

use crate::{ControlFlow, LaneState, PlaceId};

/// By what a model compares lanes that run with those that wait. The smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Order {
    /// By nothing: it runs these lanes until they reach a place where something happens.
    #[default]
    None,
    /// By pc.
    Pc,
    /// By stack pointer, among equals by pc.
    SpAndPc,
    /// By call level, the highest first, among equals by the priority of the block ([`ControlFlow::priority`]).
    LevelAndPriority,
    /// By call level, the highest first, among equals by pc.
    LevelAndPc,
}

/// As long as lanes that were chosen stay at one pc, reach none of the `stops`, are at `least_level` at least, and
/// go before `below` in the order, the model chooses them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    order: Order,
    below: (i64, u64),
    least_level: u32,
    most_level: u32,
    stops: Vec<Pc>,
    /// A bit for each stop, by [`bit`].
    bits: u64,
    at_stubs: bool,
    at_others: bool,
    at_blocks: bool,
    going_back: bool,
    tells_run: bool,
}

impl Default for Lead {
    fn default() -> Lead {
        Lead {
            order: Order::None,
            below: (i64::MAX, u64::MAX),
            least_level: 0,
            most_level: u32::MAX,
            stops: Vec::new(),
            bits: 0,
            at_stubs: false,
            at_others: false,
            at_blocks: false,
            going_back: false,
            tells_run: false,
        }
    }
}

/// A segment that lanes reach while they run on, and how they come there.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// The address of its first instruction.
    pub pc: Pc,
    /// Its place.
    pub place: PlaceId,
    /// Whether it is in a stub of the linkage table.
    pub in_stub: bool,
    /// Whether ready lanes other than these stand there, as far as the lead asks for it ([`Lead::looks_at_others`]).
    pub has_others: bool,
    /// Whether they came by a transfer of control.
    pub starts_block: bool,
    /// Whether they came by a transfer of control to a lower address.
    pub back: bool,
    /// Their stack pointer, of lanes that differ the lowest.
    pub sp: i64,
    /// Their call level.
    pub level: u32,
}

/// A bit that stands for a pc, and for others.
#[inline]
fn bit(pc: Pc) -> u64 {
    1 << ((pc.0 ^ pc.0 >> 6) % 64)
}

impl Lead {
    /// Nothing ends it, and lanes are compared by this.
    pub fn restart(&mut self, order: Order) {
        let mut stops = std::mem::take(&mut self.stops);
        stops.clear();
        *self = Lead { order, stops, ..Lead::default() };
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

    /// It ends at call levels other than this one.
    pub fn stay_at_level(&mut self, level: u32) {
        (self.least_level, self.most_level) = (level, level);
    }

    /// It ends at stubs of the linkage table.
    pub fn stop_at_stubs(&mut self) {
        self.at_stubs = true;
    }

    /// It ends where ready lanes other than these stand.
    pub fn stop_at_others(&mut self) {
        self.at_others = true;
    }

    /// Whether it ends where other lanes stand.
    #[inline]
    #[must_use]
    pub fn looks_at_others(&self) -> bool {
        self.at_others
    }

    /// It ends where control was transferred.
    pub fn stop_at_blocks(&mut self) {
        self.at_blocks = true;
    }

    /// It ends where control was transferred to a lower address.
    pub fn stop_going_back(&mut self) {
        self.going_back = true;
    }

    /// The model is to be told all that ran ([`crate::Heuristic::ran`]).
    pub fn tell_run(&mut self) {
        self.tells_run = true;
    }

    /// Whether the model is to be told all that ran.
    #[must_use]
    pub fn tells_run(&self) -> bool {
        self.tells_run
    }

    /// It ends where the lanes do not go before another that stands so.
    pub fn stop_behind(&mut self, other: &LaneState, control_flow: &ControlFlow) {
        let key = self.key((other.pc, other.place), other.sp, other.level, control_flow);
        self.below = self.below.min(key);
    }

    /// It ends where the lanes do not go before another that stands at this pc; they are compared by pc.
    #[inline]
    pub fn stop_behind_pc(&mut self, pc: Pc) {
        debug_assert_eq!(self.order, Order::Pc);
        self.below = self.below.min((0, pc.0));
    }

    /// Whether call levels matter to it.
    #[must_use]
    pub fn looks_at_levels(&self) -> bool {
        self.least_level > 0 || matches!(self.order, Order::LevelAndPriority | Order::LevelAndPc)
    }

    /// The pc below which the lanes go on, where nothing else ends it.
    #[inline]
    #[must_use]
    pub fn goes_on_below(&self) -> Option<Pc> {
        let by_pc_alone = self.order == Order::Pc
            && self.stops.is_empty()
            && (self.least_level, self.most_level) == (0, u32::MAX)
            && !self.asks_how();
        // The first of a pair of keys of this order is 0, or more where there is no other lane.
        let below = if self.below.0 > 0 { u64::MAX } else { self.below.1 };
        by_pc_alone.then_some(Pc(below))
    }

    /// Whether it matters how lanes come to a segment, and who stands there.
    #[inline]
    fn asks_how(&self) -> bool {
        self.at_stubs | self.at_others | self.at_blocks | self.going_back
    }

    /// Whether nothing counts but where the lanes are, and at which call level.
    #[inline]
    #[must_use]
    pub fn looks_at_places_alone(&self) -> bool {
        self.order == Order::None && !self.asks_how()
    }

    /// Whether lanes that come to this pc at this call level would be chosen again, where nothing else counts.
    #[inline]
    #[must_use]
    pub fn goes_on_at(&self, pc: Pc, level: u32) -> bool {
        let is_stop = self.bits & bit(pc) != 0 && self.stops.contains(&pc);
        !is_stop && level >= self.least_level && level <= self.most_level
    }

    /// Whether lanes that come so to this segment would be chosen again.
    #[inline]
    #[must_use]
    pub fn goes_on(&self, next: &Next, control_flow: &ControlFlow) -> bool {
        self.goes_on_at(next.pc, next.level)
            && !(self.asks_how()
                && (self.at_stubs && next.in_stub
                    || self.at_others && next.has_others
                    || self.at_blocks && next.starts_block
                    || self.going_back && next.back))
            && (self.order == Order::None
                || self.key((next.pc, next.place), next.sp, next.level, control_flow) < self.below)
    }

    #[inline]
    fn key(&self, (pc, place): (Pc, PlaceId), sp: i64, level: u32, control_flow: &ControlFlow) -> (i64, u64) {
        match self.order {
            Order::None => (0, 0),
            Order::Pc => (0, pc.0),
            Order::SpAndPc => (sp, pc.0),
            Order::LevelAndPriority => (-i64::from(level), u64::from(control_flow.priority(place))),
            Order::LevelAndPc => (-i64::from(level), pc.0),
        }
    }
}
