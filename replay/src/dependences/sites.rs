//! What a walk remembers of instructions, and of what goes from one to another between lanes.

use std::collections::BTreeMap;

use trace_format::Pc;

use machine::Operator;

/// What is known about an instruction.
#[derive(Default)]
pub(super) struct Site {
    pub pc: Pc,
    pub is_atomic: bool,
    /// The operator, where it takes values into an accumulator that was there before the lanes.
    pub operator: Option<Operator>,
    /// Whether it took a value that is not the same for all lanes.
    pub has_taken: bool,
    /// Of its steps: see [`Walker::are_regular`].
    pub steps: Steps,
    /// Who uses what it made as a step or as a partial result, other than by an update, and how often.
    pub uses: BTreeMap<u32, u64>,
    /// As a store: where it put what, as long as that is one address.
    pub stored_at: Stored,
    /// Of an accumulator in memory: where it lies, as long as that is one address.
    pub home: Stored,
    /// How often it wrote what another lane had written, and one such address; the lanes' own stacks aside.
    pub overwrote: (u64, u64),
}

/// What an instruction adds to a value that goes from lane to lane.
#[derive(Clone, Copy, Default)]
pub(super) struct Steps {
    /// In this lane, in the lane before, and in the first lane of this launch.
    pub this_lane: u64,
    pub lane_before: u64,
    pub first_lane: u64,
    /// Over all lanes but the last of a thread's, which may leave the loop before its steps are done: what they add,
    /// each multiplied by the lane's weight.
    pub seen: u64,
    /// The same if all lanes of a launch added what the first one does.
    pub expected: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Stored {
    #[default]
    Nowhere,
    At(u64),
    /// This is one of them.
    InSeveral(u64),
}

impl Stored {
    pub fn also(self, address: u64) -> Stored {
        match self {
            Stored::Nowhere => Stored::At(address),
            Stored::At(known) if known != address => Stored::InSeveral(known),
            Stored::At(_) | Stored::InSeveral(_) => self,
        }
    }
}

impl Site {
    /// Whether it stores to one address only, or does not store.
    pub fn stores_to_one(&self) -> bool {
        matches!(self.stored_at, Stored::At(_))
    }

    /// An address of its accumulator, where that lies in memory.
    pub fn a_home(&self) -> Option<u64> {
        if let Stored::At(address) | Stored::InSeveral(address) = self.home { Some(address) } else { None }
    }

    /// Whether it takes what is not the same for all lanes.
    pub fn is_taking(&self) -> bool {
        self.has_taken
    }

    /// Whether its accumulator lies at several addresses.
    pub fn has_homes(&self) -> bool {
        matches!(self.home, Stored::InSeveral(_))
    }
}

/// What one lane made and another used, or overwrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub count: u64,
    /// The smallest distance of the two lanes' numbers.
    pub distance: u32,
    /// The lanes of the first one.
    pub lanes: (u32, u32),
    /// The address, of what went through memory.
    pub address: Option<u64>,
}

/// Two instructions, by site.
pub(super) type Pair = (u32, u32);

/// Between lanes, by who made a value and who used it.
#[derive(Default)]
pub(super) struct Flows {
    pub carried: BTreeMap<Pair, Flow>,
    /// Of what updates made, used by something else.
    pub of_updates: BTreeMap<Pair, Flow>,
    /// The same with a lock held, or between atomic instructions.
    pub of_updates_guarded: BTreeMap<Pair, Flow>,
    /// From update to update.
    pub updates: BTreeMap<Pair, Flow>,
    /// With a lock held, or between atomic instructions.
    pub guarded: BTreeMap<Pair, Flow>,
    /// By who read a value and who overwrote it.
    pub overwritten: BTreeMap<Pair, Flow>,
}

/// Where a lane's own stack lies.
#[derive(Clone, Copy, Default)]
pub(super) struct OwnStack {
    pub zero: u64,
    pub above: u32,
}

/// So far below where its stack pointer counts as 0 an address is taken for one of the lane's own stack.
const STACK: u64 = 1 << 20;

impl OwnStack {
    pub fn holds(self, address: u64) -> bool {
        self.zero != 0
            && address < self.zero.saturating_add(u64::from(self.above))
            && address >= self.zero.saturating_sub(STACK)
    }
}

impl OwnStack {
    /// The address, or, of one in the stack, how far it lies from where the lane begins: equal for equal variables of
    /// all threads.
    pub fn place(self, address: u64) -> u64 {
        if self.holds(address) { address.wrapping_sub(self.zero) } else { address }
    }
}

/// A number that looks random, not 0.
pub(super) fn weight(number: u32) -> u64 {
    let mixed = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 31)) | 1
}

/// One more flow between these lanes, which are numbered from 1.
pub(super) fn note(flows: &mut BTreeMap<Pair, Flow>, pair: Pair, lanes: (u32, u32), address: Option<u64>) {
    let distance = lanes.0.abs_diff(lanes.1);
    let lanes = (lanes.0 - 1, lanes.1 - 1);
    let flow = flows.entry(pair).or_insert(Flow { count: 0, distance, lanes, address });
    flow.count += 1;
    flow.distance = flow.distance.min(distance);
}
