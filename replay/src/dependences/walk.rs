//! Walks through lanes in the order of their numbers, and notes what one makes and another uses.

use machine::{Operand, Operator, Step};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use super::code::{Access, CARRY, REGISTERS, Ran, X87};
use super::shadow::{Reader, Shadow};
use super::sites::{Flows, OwnStack, Pair, Site, Steps, note, weight};
use super::value::{Held, Made, Value};

/// A lane that is walked through.
pub(super) struct Walker {
    pub sites: Vec<Site>,
    by_pc: FxHashMap<Pc, u32>,
    pub flows: Flows,
    /// Updates of what updates made, by this lane or another.
    pub chains: FxHashMap<Pair, u64>,
    pub shadow: Shadow,
    /// By thread.
    registers: FxHashMap<u32, [Held; REGISTERS]>,
    held: [Held; REGISTERS],
    thread: u32,
    /// Of this launch, and this lane: their numbers and 1.
    first: u32,
    lane: u32,
    /// Whether lanes of a thread follow each other, so that a lane finds in registers and on the stack what the one
    /// before has left there.
    follow: bool,
    pub stack: OwnStack,
    pub locks: u32,
    /// The instructions with steps in this launch, and the weights of the lanes whose steps are counted.
    steps: Vec<u32>,
    weights: u64,
}

/// Where a value was found.
type At = Option<u64>;

impl Walker {
    pub fn new() -> Walker {
        Walker {
            sites: Vec::new(),
            by_pc: FxHashMap::default(),
            flows: Flows::default(),
            chains: FxHashMap::default(),
            shadow: Shadow::default(),
            registers: FxHashMap::default(),
            held: [Held::default(); REGISTERS],
            thread: 0,
            first: 1,
            lane: 0,
            follow: true,
            stack: OwnStack::default(),
            locks: 0,
            steps: Vec::new(),
            weights: 0,
        }
    }

    /// The number of an instruction.
    pub fn site(&mut self, pc: Pc) -> u32 {
        let next = self.sites.len() as u32;
        let site = *self.by_pc.entry(pc).or_insert(next);
        if site == next {
            self.sites.push(Site { pc, ..Site::default() });
        }
        site
    }

    /// A launch begins with the lane of this number. `follow`: its lanes are of one thread, one right behind the other.
    pub fn begin_launch(&mut self, lane: usize, follow: bool) {
        self.end_launch();
        self.first = lane as u32 + 1;
        self.follow = follow;
    }

    /// All lanes of the launch have been walked through.
    pub fn end_launch(&mut self) {
        for site in std::mem::take(&mut self.steps) {
            let steps = &mut self.sites[site as usize].steps;
            steps.expected = steps.expected.wrapping_add(steps.first_lane.wrapping_mul(self.weights));
            *steps = Steps { seen: steps.seen, expected: steps.expected, ..Steps::default() };
        }
        self.weights = 0;
    }

    /// Whether all lanes of a launch add as much by these instructions together: lanes may run different ones. Lanes
    /// have random weights, so that sums which differ for any lane differ as a whole.
    pub fn are_regular(&self, sites: &[u32]) -> bool {
        let all = sites.iter().map(|site| self.sites[*site as usize].steps);
        let (seen, expected) = all.fold((0_u64, 0_u64), |(seen, expected), steps| {
            (seen.wrapping_add(steps.seen), expected.wrapping_add(steps.expected))
        });
        seen == expected
    }

    pub fn begin_lane(&mut self, lane: usize, thread: u32) {
        self.registers.insert(self.thread, self.held);
        let goes_on = self.thread == thread;
        self.thread = thread;
        self.lane = lane as u32 + 1;
        self.held = match self.registers.get(&thread) {
            Some(held) if self.follow => *held,
            _ => [Held::default(); REGISTERS],
        };
        // What was loaded before is no longer known: other lanes may have written there since.
        self.held.iter_mut().for_each(|held| *held = Held::of(held.value));
        (self.locks, self.stack) = (0, OwnStack::default());
        let is_second = self.lane == self.first + 1;
        let weight = if goes_on && self.lane > self.first { weight(self.lane) } else { 0 };
        self.weights = self.weights.wrapping_add(weight);
        for site in &self.steps {
            let steps = &mut self.sites[*site as usize].steps;
            steps.seen = steps.seen.wrapping_add(steps.lane_before.wrapping_mul(weight));
            if is_second {
                steps.first_lane = steps.lane_before;
            }
        }
    }

    pub fn end_lane(&mut self) {
        for site in &self.steps {
            let steps = &mut self.sites[*site as usize].steps;
            steps.lane_before = std::mem::take(&mut steps.this_lane);
        }
    }

    fn is_foreign(&self, value: Value) -> bool {
        value.lane >= self.first && value.lane != self.lane
    }

    fn is_before(&self, value: Value) -> bool {
        value.lane < self.first
    }

    fn made(&self, site: u32, made: Made) -> Value {
        Value { lane: self.lane, site, made, saved: 0 }
    }

    /// An instruction uses a value for something that is no update.
    fn used(&mut self, value: Value, site: u32, at: At) {
        if self.is_before(value) {
            return;
        }
        let is_foreign = self.is_foreign(value);
        match value.made {
            Made::Somehow if is_foreign => self.flow(value, site, at),
            Made::Somehow => {}
            Made::Steps | Made::Taken(_) => {
                *self.sites[value.site as usize].uses.entry(site).or_default() += 1;
                if is_foreign {
                    let is_guarded = self.is_guarded(value, site);
                    let Flows { of_updates, of_updates_guarded, .. } = &mut self.flows;
                    let flows = if is_guarded { of_updates_guarded } else { of_updates };
                    note(flows, (value.site, site), (value.lane, self.lane), at);
                }
            }
        }
    }

    /// The same of a value in a register: what another lane made counts where it was copied first.
    fn used_register(&mut self, held: Held, site: u32, at: At) {
        self.used(held.value, held.copied_by.unwrap_or(site), at);
    }

    /// Whether a lock is held where the value is used, or both who made it and who uses it are atomic.
    fn is_guarded(&self, value: Value, site: u32) -> bool {
        self.locks > 0 || self.sites[value.site as usize].is_atomic && self.sites[site as usize].is_atomic
    }

    fn flow(&mut self, value: Value, site: u32, at: At) {
        let is_guarded = self.is_guarded(value, site);
        let flows = if is_guarded { &mut self.flows.guarded } else { &mut self.flows.carried };
        note(flows, (value.site, site), (value.lane, self.lane), at);
    }

    /// What memory holds here; whoever reads what is not its own is remembered.
    fn load(&mut self, address: u64, access: Access, site: u32) -> Value {
        let (first, lane) = (self.first, self.lane);
        let ignores_stack = !self.follow && self.stack.holds(address);
        let mut found: Option<Value> = None;
        // What is read from a function's frame was put there by the same function.
        let is_remembered = !access.in_frame && !access.is_stack;
        let locked = if self.locks > 0 { Reader::LOCKED } else { 0 };
        self.shadow.each(address, access.size, |byte| {
            let value = byte.value;
            // The first one: it comes before whichever lane writes next.
            if is_remembered && value.lane != lane && byte.reader.lane < first {
                byte.reader = Reader { lane, site: site | locked };
            }
            let is_foreign = value.lane >= first && value.lane != lane;
            // What another lane made counts more than what is the lane's own.
            if found.is_none_or(|known| is_foreign && !(known.lane >= first && known.lane != lane)) {
                found = Some(value);
            }
        });
        let value = found.unwrap_or_default();
        if ignores_stack && self.is_foreign(value) { Value::default() } else { value }
    }

    fn store(&mut self, address: u64, access: Access, value: Value, site: u32) {
        let (first, lane) = (self.first, self.lane);
        let is_stack = self.stack.holds(address);
        let ignores = is_stack && !self.follow;
        let (mut before, mut reader) = (None, None);
        self.shadow.each(address, access.size, |byte| {
            if byte.value.lane >= first && byte.value.lane != lane {
                before = Some(byte.value);
            }
            let read = byte.reader;
            if read.lane >= first && read.lane != lane {
                reader = Some(read);
            }
            byte.reader = Reader::default();
            byte.value = value;
        });
        let known = &mut self.sites[site as usize];
        known.stored_at = known.stored_at.also(self.stack.place(address));
        // What is written back to an accumulator is none of the lane's own.
        if let Some(before) = before.filter(|_| !is_stack && value.made == Made::Somehow) {
            if self.locks > 0 {
                note(&mut self.flows.guarded, (before.site, site), (before.lane, lane), Some(address));
            } else {
                known.overwrote = (known.overwrote.0 + 1, address);
            }
        }
        if let Some(reader) = reader
            && !ignores
        {
            let is_guarded = self.locks > 0 && reader.site & Reader::LOCKED != 0;
            let flows = if is_guarded { &mut self.flows.guarded } else { &mut self.flows.overwritten };
            note(flows, (reader.site & !Reader::LOCKED, site), (reader.lane, lane), Some(address));
        }
    }

    /// The instruction runs, with the addresses of its accesses.
    pub fn ran(&mut self, ran: &Ran, site: u32, addresses: &[u64]) {
        self.sites[site as usize].is_atomic = ran.is_atomic;
        let top = usize::from(X87);
        if ran.pushes {
            self.held[top..].rotate_right(1);
            self.held[top] = Held::default();
        }
        let mut left = ran.uses;
        while left != 0 {
            let register = left.trailing_zeros() as usize;
            left &= left - 1;
            self.used_register(self.held[register], site, None);
        }
        match ran.step {
            Step::Copy { from, to, .. } => self.copy(ran, site, (from, to), addresses),
            Step::Update { .. } => self.update(ran, site, addresses),
            Step::Other => {
                for (access, address) in ran.accesses.iter().zip(addresses).filter(|(access, _)| access.reads) {
                    let value = self.load(*address, *access, site);
                    if !access.is_selected {
                        self.used(value, site, Some(*address));
                    }
                }
                let made = self.made(site, Made::Somehow);
                for (access, address) in ran.accesses.iter().zip(addresses).filter(|(access, _)| access.writes) {
                    self.store(*address, *access, made, site);
                }
                self.write_registers(ran, Held::of(made));
            }
        }
        if let Some(other) = ran.exchanges {
            self.held.swap(top, usize::from(other));
        }
        for _ in 0..ran.pops {
            self.held[top] = Held::default();
            self.held[top..].rotate_left(1);
        }
    }

    fn write_registers(&mut self, ran: &Ran, held: Held) {
        let mut left = ran.writes;
        while left != 0 {
            self.held[left.trailing_zeros() as usize] = held;
            left &= left - 1;
        }
    }

    fn copy(&mut self, ran: &Ran, site: u32, (from, to): (Operand, Operand), addresses: &[u64]) {
        let own = self.made(site, Made::Somehow);
        match (from, to) {
            (Operand::Memory, Operand::Register(to)) => {
                let (access, address) = (ran.accesses[0], addresses[0]);
                let value = self.load(address, access, site);
                let in_frame = access.in_frame;
                let is_foreign = self.is_foreign(value);
                let loaded = Held { value: own, home: address, in_frame, ..Held::default() };
                self.held[to.register.index()] = match () {
                    () if value.saved == to.register.0 + 1 => Held::of(Value { saved: 0, ..value }),
                    () if self.is_before(value) => Held { under: Some(value), ..loaded },
                    () if is_foreign && value.made == Made::Somehow && !in_frame && !access.is_stack => {
                        self.used(value, site, Some(address));
                        loaded
                    }
                    () => {
                        let copied_by = is_foreign.then_some(site);
                        Held { value: Value { saved: 0, ..value }, copied_by, ..loaded }
                    }
                };
            }
            (Operand::Register(from), Operand::Register(to)) => {
                let mut held = self.held[from.register.index()];
                if self.is_foreign(held.value) {
                    held.copied_by.get_or_insert(site);
                }
                let is_before = self.is_before(held.value);
                self.held[to.register.index()] = if is_before && from != to { Held::of(own) } else { held };
            }
            (Operand::Register(from), Operand::Memory) => {
                let (access, address) = (ran.accesses[0], addresses[0]);
                let held = self.held[from.register.index()];
                let value = held.value;
                let is_own = !self.is_before(value) && !self.is_foreign(value);
                let stored = match () {
                    () if (access.in_frame || access.is_stack) && !is_own => {
                        Value { saved: from.register.0 + 1, ..value }
                    }
                    // Written back, or put away.
                    () if held.home == address || access.in_frame || access.is_stack => value,
                    () => {
                        self.used_register(held, site, None);
                        match value.made {
                            Made::Taken(_) => Value { lane: self.lane, ..value },
                            _ => own,
                        }
                    }
                };
                self.store(address, access, stored, site);
            }
            _ => self.write_registers(ran, Held::of(own)),
        }
    }

    /// The value of an operand, and where it lies.
    fn operand(&mut self, ran: &Ran, operand: Operand, site: u32, addresses: &[u64]) -> (Held, At) {
        match operand {
            Operand::Register(register) => (self.held[register.register.index()], None),
            Operand::Memory => {
                let (access, address) = (ran.accesses[0], addresses[0]);
                let value = self.load(address, access, site);
                (Held { value, home: address, in_frame: access.in_frame, ..Held::default() }, Some(address))
            }
            Operand::Constant(_) | Operand::Several => (Held::default(), None),
        }
    }

    /// Whether a value could be the accumulator of an update by this operator.
    fn is_taken(&self, value: Value, operator: Operator) -> bool {
        match value.made {
            Made::Taken(by) => by == operator && !self.is_before(value),
            Made::Steps => operator == Operator::Add && !self.is_before(value),
            Made::Somehow => self.is_foreign(value),
        }
    }

    fn update(&mut self, ran: &Ran, site: u32, addresses: &[u64]) {
        let Step::Update { operator, acc, by, to, commutes } = ran.step else { return };
        let (mut acc_held, mut acc_at) = self.operand(ran, acc, site, addresses);
        let (mut by_held, mut by_at) = self.operand(ran, by, site, addresses);
        let mut by = by;
        // An accumulator that was put away in the frame, and that no lane has taken on yet.
        let is_first = |held: &Held| held.in_frame && self.is_before(held.accumulator());
        if commutes
            && !self.is_taken(acc_held.accumulator(), operator)
            && (self.is_taken(by_held.accumulator(), operator) || is_first(&by_held) && !is_first(&acc_held))
        {
            (acc_held, acc_at, by_held, by_at) = (by_held, by_at, acc_held, acc_at);
            by = acc;
        }
        let value = acc_held.accumulator();
        let is_same_for_all = match by {
            Operand::Constant(_) => true,
            Operand::Register(_) => self.is_before(by_held.value) || is_first(&by_held),
            Operand::Memory => is_first(&by_held),
            Operand::Several => false,
        };
        if !is_same_for_all {
            self.used_register(by_held, site, by_at);
        }
        let (is_before, is_foreign) = (self.is_before(value), self.is_foreign(value));
        let is_step = is_same_for_all && operator == Operator::Add;
        let made = match value.made {
            _ if is_before && is_step => Made::Steps,
            _ if is_before => Made::Taken(operator),
            Made::Steps if is_step => Made::Steps,
            Made::Steps if operator == Operator::Add => Made::Taken(operator),
            Made::Taken(known) if known == operator => Made::Taken(operator),
            _ => Made::Somehow,
        };
        if made == Made::Somehow {
            self.used(value, acc_held.copied_by.unwrap_or(site), acc_at);
        } else {
            if !is_before {
                let pair = (value.site, site);
                *self.chains.entry(pair).or_default() += 1;
                if is_foreign {
                    note(&mut self.flows.updates, pair, (value.lane, self.lane), acc_at);
                }
            }
            let known = &mut self.sites[site as usize];
            known.operator = Some(if let Made::Taken(operator) = made { operator } else { Operator::Add });
            known.has_taken |= made != Made::Steps;
            if acc_held.home != 0 {
                known.home = known.home.also(self.stack.place(acc_held.home));
            }
            if made == Made::Steps {
                // What is in a register is not known, only which one it is.
                let amount = match by {
                    Operand::Constant(amount) => amount.cast_unsigned(),
                    Operand::Register(part) => weight(u32::MAX - u32::from(part.register.0)),
                    Operand::Memory | Operand::Several => weight(u32::MAX / 2),
                };
                known.steps.this_lane = known.steps.this_lane.wrapping_add(amount);
                if !self.steps.contains(&site) {
                    self.steps.push(site);
                }
            }
        }
        let result = self.made(site, made);
        match to {
            Operand::Memory => {
                let (access, address) = (ran.accesses[0], addresses[0]);
                self.store(address, access, result, site);
                self.write_registers(ran, Held::of(result));
            }
            _ => {
                let of_home = Held { value: result, under: None, copied_by: None, ..acc_held };
                self.write_registers(ran, if made == Made::Somehow { Held::of(result) } else { of_home });
            }
        }
        // What is carried out of a sum is none of its partial results.
        if ran.writes & 1 << CARRY != 0 {
            self.held[usize::from(CARRY)] = Held::of(self.made(site, Made::Somehow));
        }
    }
}
