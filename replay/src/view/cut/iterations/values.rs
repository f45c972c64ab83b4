//! Values that a runtime gave a thread, followed through registers and slots of the stack.

use machine::{Instruction, Operand, Operation, Operator, Register, Step};
use rustc_hash::FxHashMap;
use trace_format::SpEffect;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Value {
    /// Bits: see [`NUMBER`] and those behind it.
    pub from: u16,
    /// How often the thread's number is in it, where it is a sum: as long as that is known.
    pub times: Option<i64>,
    /// How far it is from what the runtime gave, or from what was made of that without constants: as long as that is
    /// known.
    pub added: Option<i64>,
    /// It is the address of a slot: in which frame (a new one begins where the stack is aligned), and where there.
    pub slot: Option<(u32, i64)>,
}

/// The number of the thread, or a bound that it was given.
pub(super) const NUMBER: u16 = 1;
/// How many threads the team has, or what a runtime says of the way from one chunk to the next.
pub(super) const COUNT: u16 = 2;
/// A thread's share: what was divided by the number of threads.
pub(super) const SHARE: u16 = 4;
/// A constant was added to the number or bound.
pub(super) const STEPPED: u16 = 8;
/// It is some bits of such a value, or mixed with others: no bound, but what an iteration made of its number.
pub(super) const MIXED: u16 = 16;
/// It is compared with a constant.
pub(super) const CONSTANT: u16 = 32;
/// It is how far one such value is from another: how many iterations there are.
pub(super) const DISTANCE: u16 = 64;
/// It is the rest of how many iterations there are, by a power of two.
pub(super) const REST: u16 = 128;
/// It says whether the runtime has given a chunk.
pub(super) const ANSWER: u16 = 256;

/// Of a value that comes from there: what power of two an instruction takes it modulo, if it says how many iterations
/// there are.
pub(super) fn power_of_rest(from: u16, instruction: Instruction) -> Option<i64> {
    let (Operation::And | Operation::Test, Operand::Constant(mask)) = (instruction.operation(), instruction.operand(1))
    else {
        return None;
    };
    let power = mask.checked_add(1).filter(|power| *power > 1 && power & mask == 0)?;
    (from & DISTANCE != 0 || from & (NUMBER | SHARE) == SHARE).then_some(power)
}

/// What a number may be multiplied with that counts something of so many bytes.
const MOST_BYTES: i64 = 1 << 16;

impl Value {
    /// What a runtime gave.
    fn given(from: u16) -> Value {
        Value { from, added: Some(0), ..Value::default() }
    }

    /// One of both.
    fn or(self, other: Value) -> Value {
        Value { from: self.from | other.from, added: self.added_of_either(other), ..Value::default() }
    }

    /// How often the thread's number is in it.
    fn times(self) -> Option<i64> {
        if self.from & NUMBER == 0 { Some(0) } else { self.times }
    }

    /// What it is where one of two ways led: how far it is from a number is known if only one of them has one.
    fn added_of_either(self, other: Value) -> Option<i64> {
        match (self.from, other.from) {
            (0, 0) => None,
            (0, _) => other.added,
            (_, 0) => self.added,
            _ => self.added.filter(|added| other.added == Some(*added)),
        }
    }

    /// A sum in which it is so often; where it has cancelled out, only what hangs on the number of threads is left.
    fn summed(self, times: Option<i64>) -> Value {
        let from = if times == Some(0) { self.from & (COUNT | SHARE | MIXED | DISTANCE) } else { self.from };
        Value { from, times, added: self.added.filter(|_| from != 0), ..self }
    }
}

/// What registers and slots hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub registers: [Value; 16],
    pub slots: FxHashMap<(u32, i64), Value>,
    /// Where the two values come from that were compared last, how far they are from numbers, and how often the
    /// thread's number is in them.
    pub compared: [u16; 2],
    pub distances: [Option<i64>; 2],
    pub times: [Option<i64>; 2],
    /// The constant that was compared last, where one was.
    with: Option<i64>,
}

/// What a call gives a thread.
enum Gives {
    /// Its result is the thread's number.
    Number,
    /// Its result is the number of threads.
    Count,
    /// It leaves bounds where its arguments point, and where the first so many on the stack do, what comes from there;
    /// `may_fail`: its result says whether there were any.
    Bounds { on_stack: i64, from: u16, may_fail: bool },
}

/// By the name of a function of a runtime.
fn gives(name: &str) -> Option<Gives> {
    match name.split('@').next().unwrap_or(name) {
        "omp_get_thread_num" | "omp_get_team_num" => Some(Gives::Number),
        "omp_get_num_threads" | "omp_get_num_teams" => Some(Gives::Count),
        // The way to the next chunk; that one has the bound of the whole team in front of it.
        name if name.starts_with("__kmpc_for_static_init") => {
            Some(Gives::Bounds { on_stack: 1, from: COUNT, may_fail: false })
        }
        name if name.starts_with("__kmpc_dist_for_static_init") => {
            Some(Gives::Bounds { on_stack: 2, from: COUNT, may_fail: false })
        }
        name if name.starts_with("__kmpc_dispatch_next")
            || name.starts_with("GOMP_loop_") && name.ends_with("_next") =>
        {
            Some(Gives::Bounds { on_stack: 0, from: NUMBER, may_fail: true })
        }
        // Those with seven and eight arguments: the bound behind the last iteration, and perhaps the first one.
        name if name.starts_with("GOMP_loop_") && name.ends_with("_start") => {
            let on_stack = match (name.contains("_ull_"), name.contains("doacross")) {
                (_, true) => 0,
                _ if name == "GOMP_loop_ull_start" || name == "GOMP_loop_ull_ordered_start" => 2,
                (true, _) if !name.contains("runtime") => 1,
                _ if name == "GOMP_loop_start" || name == "GOMP_loop_ordered_start" => 1,
                _ => 0,
            };
            Some(Gives::Bounds { on_stack, from: NUMBER, may_fail: true })
        }
        _ => None,
    }
}

/// Whether a function of this name gives a thread something.
pub(super) fn is_asked(name: &str) -> bool {
    gives(name).is_some()
}

/// Those of arguments: `rdi`, `rsi`, `rdx`, `rcx`, `r8`, `r9`.
const ARGUMENTS: [usize; 6] = [7, 6, 2, 1, 8, 9];

impl State {
    pub fn meet(&mut self, other: &State) -> bool {
        let before = self.clone();
        for (own, other) in self.registers.iter_mut().zip(&other.registers) {
            own.times = own.times().filter(|times| other.times() == Some(*times));
            own.added = own.added_of_either(*other);
            own.from |= other.from;
            own.slot = own.slot.filter(|slot| other.slot == Some(*slot));
        }
        for (slot, value) in &other.slots {
            let own = self.slots.entry(*slot).or_insert(*value);
            own.times = own.times().filter(|times| value.times() == Some(*times));
            own.added = own.added_of_either(*value);
            own.from |= value.from;
            own.slot = own.slot.filter(|slot| value.slot == Some(*slot));
        }
        self.compared = [0, 1].map(|index| self.compared[index] | other.compared[index]);
        *self != before
    }

    fn register(&self, register: Register) -> Value {
        self.registers.get(register.index()).copied().unwrap_or_default()
    }

    /// The slot that an instruction's first operand in memory is.
    fn slot(&self, instruction: Instruction) -> Option<(u32, i64)> {
        let memory = instruction.memory().first()?;
        let (frame, at) = self.register(memory.base?.register).slot.filter(|_| memory.index.is_none())?;
        Some((frame, at + memory.displacement))
    }

    pub fn value(&self, operand: Operand, instruction: Instruction) -> Value {
        match operand {
            Operand::Register(part) => self.register(part.register),
            Operand::Memory => {
                self.slot(instruction).and_then(|slot| self.slots.get(&slot)).copied().unwrap_or_default()
            }
            Operand::Constant(_) | Operand::Several => Value::default(),
        }
    }

    fn set(&mut self, to: Operand, value: Value, instruction: Instruction) {
        match to {
            Operand::Register(part) => {
                if let Some(own) = self.registers.get_mut(part.register.index()) {
                    *own = value;
                }
            }
            Operand::Memory => {
                if let Some(slot) = self.slot(instruction) {
                    self.slots.insert(slot, value);
                }
            }
            Operand::Constant(_) | Operand::Several => {}
        }
    }

    /// Whether an instruction reads memory outside of the frame at an address that hangs on the thread's number.
    pub fn looks_by_number(&self, instruction: Instruction) -> bool {
        instruction.memory().iter().filter(|memory| memory.access.reads && !memory.is_in_frame()).any(|memory| {
            let parts = [memory.base, memory.index].into_iter().flatten();
            parts.into_iter().any(|part| self.register(part.register).from & (NUMBER | SHARE) != 0)
        })
    }

    /// Whether two values that hang on the thread's number were compared last, one of them of a further iteration.
    pub fn compares_step(&self) -> bool {
        let [one, other] = self.compared;
        [one, other].iter().all(|from| from & (NUMBER | MIXED | CONSTANT) == NUMBER) && (one | other) & STEPPED != 0
    }

    /// Whether a thread's share was compared last with so many iterations, one or more.
    pub fn compares_share(&self) -> bool {
        self.compared[0] & (SHARE | CONSTANT | NUMBER | MIXED) == SHARE | CONSTANT
            && self.with.is_some_and(|with| with > 0)
    }

    /// The instruction runs; `called` is the name of the function that it calls.
    pub fn run(&mut self, instruction: Instruction, called: Option<&str>) {
        if instruction.flags_written() != 0 {
            let values = [0, 1].map(|index| self.value(instruction.operand(index), instruction));
            let operands = values.map(|value| value.from);
            self.distances = values.map(|value| value.added.filter(|_| value.from & NUMBER != 0));
            self.times = values.map(Value::times);
            self.with = match (instruction.operation(), instruction.operand(1)) {
                (Operation::Compare, Operand::Constant(with)) => Some(with),
                _ => None,
            };
            let is_one = instruction.operand(0) == instruction.operand(1);
            self.compared = match instruction.operation() {
                Operation::Compare if matches!(instruction.operand(1), Operand::Constant(_)) => {
                    [operands[0] | CONSTANT; 2]
                }
                Operation::Test if !is_one => {
                    let rest = if power_of_rest(values[0].from, instruction).is_some() { REST } else { 0 };
                    [operands[0] | operands[1] | MIXED | CONSTANT | rest; 2]
                }
                Operation::Test => [operands[0] | CONSTANT; 2],
                _ => operands,
            };
        }
        if instruction.kind().is_call() {
            self.call(called.and_then(gives));
            return;
        }
        let sp = self.registers[Register::SP.index()];
        match instruction.step() {
            Step::Copy { from, to, .. } => {
                let value = self.value(from, instruction);
                self.set(to, value, instruction);
            }
            Step::Update { operator, acc, by, to, .. } => {
                let (one, other) = (self.value(acc, instruction), self.value(by, instruction));
                let slot = match by {
                    Operand::Constant(by) if operator == Operator::Add => one.slot.map(|(f, at)| (f, at + by)),
                    _ => None,
                };
                let rest = if power_of_rest(one.from, instruction).is_some() { REST } else { 0 };
                let mut from = (one.from | other.from) & !REST;
                match by {
                    Operand::Constant(_) if operator == Operator::Add && from & NUMBER != 0 => from |= STEPPED,
                    by if operator == Operator::Xor && by == acc => from = 0,
                    _ if operator == Operator::Add
                        && one.from & other.from & NUMBER != 0
                        && (one.from | other.from) & MIXED == 0 =>
                    {
                        from |= DISTANCE;
                    }
                    // What spreads numbers, as a hash does, is no size of what they count.
                    Operand::Constant(by) if operator == Operator::Multiply && by.abs() > MOST_BYTES && from != 0 => {
                        from |= MIXED;
                    }
                    _ if matches!(operator, Operator::And | Operator::Or | Operator::Xor) && from != 0 => from |= MIXED,
                    _ => {}
                }
                let times = match (operator, by) {
                    _ if instruction.operation() == Operation::Address => self.times_of_other(instruction),
                    // What is left of a number when some of its bits are taken away still hangs on it.
                    (Operator::Add, _)
                        if one.from & other.from & NUMBER != 0 && (one.from | other.from) & MIXED != 0 =>
                    {
                        None
                    }
                    (Operator::Add, _) if instruction.operation() == Operation::Subtract => {
                        one.times().zip(other.times()).map(|(one, other)| one.wrapping_sub(other))
                    }
                    (Operator::Add, _) => one.times().zip(other.times()).map(|(one, other)| one.wrapping_add(other)),
                    (Operator::Multiply, Operand::Constant(by)) => one.times().map(|one| one.wrapping_mul(by)),
                    // An unrolled loop's part of it.
                    (Operator::And, Operand::Constant(_)) => one.times(),
                    _ => None,
                };
                let added = match (operator, by) {
                    (Operator::Add, Operand::Constant(by)) => one.added.and_then(|added| added.checked_add(by)),
                    (Operator::Add, _) => Some(0),
                    (Operator::Select, _) => one.added_of_either(other),
                    _ => one.added.filter(|added| *added == 0),
                };
                // How many there are of an odd size is a product with its inverse; and there may be one at least.
                let is_kept = match operator {
                    Operator::Add | Operator::Select => true,
                    Operator::Multiply => one.from == 0 || other.from == 0,
                    _ => rest != 0,
                };
                if !is_kept {
                    from &= !DISTANCE;
                }
                let value = Value { from, times, added, slot }.summed(times);
                self.set(to, Value { from: value.from | rest, ..value }, instruction);
            }
            Step::Other => self.other(instruction),
        }
        let compares = matches!(instruction.operation(), Operation::Compare | Operation::Test);
        if instruction.flags_written() != 0 && !compares {
            // A reduction's last step tries again until no other thread was there meanwhile.
            let result = self.value(instruction.operand(0), instruction).from;
            self.compared = [if instruction.is_atomic() { 0 } else { result | CONSTANT }; 2];
        }
        self.registers[Register::SP.index()] = match instruction.sp() {
            SpEffect::Add(by) => {
                Value { slot: sp.slot.map(|(frame, at)| (frame, at + i64::from(by))), ..Value::default() }
            }
            // What aligns the stack begins another frame, and so does what ends this one; not what takes it back to a
            // place in it.
            SpEffect::Recorded => match self.registers[Register::SP.index()].slot {
                Some(slot) if matches!(instruction.step(), Step::Copy { .. } | Step::Update { .. }) => {
                    Value { slot: Some(slot), ..Value::default() }
                }
                _ => Value { slot: sp.slot.map(|(frame, _)| (frame + 1, 0)), ..Value::default() },
            },
        };
    }

    /// What it writes comes from all that it reads, but for addresses.
    fn other(&mut self, instruction: Instruction) {
        let addresses = instruction.memory().iter().flat_map(|memory| [memory.base, memory.index]).flatten();
        let addresses: Vec<Register> = addresses.map(|part| part.register).collect();
        let named: Vec<Register> = (0..instruction.operand_count())
            .filter_map(|i| instruction.register(i))
            .map(|part| part.register)
            .collect();
        let mut read = Value::default();
        for used in instruction.uses() {
            let register = used.part.register;
            if used.access.reads && (named.contains(&register) || !addresses.contains(&register)) {
                read = read.or(self.register(register));
            }
        }
        if instruction.memory().first().is_some_and(|memory| memory.access.reads) {
            read = read.or(self.value(Operand::Memory, instruction));
        }
        let Value { mut from, added, .. } = read;
        from &= !REST;
        let added = match instruction.operation() {
            Operation::ShiftLeft => added.filter(|added| *added == 0),
            Operation::Address => instruction.address().map(|memory| memory.displacement),
            _ => added,
        };
        // What divides by a count makes a share, and a part of a share.
        let is_whole = matches!(
            instruction.operation(),
            Operation::ShiftLeft | Operation::Address | Operation::Extend | Operation::Negate | Operation::Not
        );
        if !is_whole && from & (NUMBER | SHARE) != 0 {
            from |= MIXED;
        }
        let divisor = || self.value(instruction.operand(0), instruction).from;
        if instruction.operation() == Operation::Divide && divisor() & COUNT != 0 {
            from |= SHARE;
        }
        let times = self.times_of_other(instruction);
        for used in instruction.uses().iter().filter(|used| used.access.writes) {
            if let Some(own) = self.registers.get_mut(used.part.register.index()) {
                *own = Value { from, times, added, slot: None }.summed(times);
            }
        }
        if instruction.memory().first().is_some_and(|memory| memory.access.writes) {
            self.set(
                Operand::Memory,
                Value { from, added: added.filter(|_| from != 0), ..Value::default() },
                instruction,
            );
        }
    }

    /// How often the thread's number is in what an instruction makes that shifts, widens, or works out an address.
    fn times_of_other(&self, instruction: Instruction) -> Option<i64> {
        let times = |register: Register| self.register(register).times();
        match instruction.operation() {
            Operation::ShiftLeft => {
                let Operand::Constant(by) = instruction.operand(1) else { return None };
                let one = instruction.register(0).map(|part| times(part.register))??;
                Some(one.wrapping_shl(by as u32))
            }
            Operation::Extend => {
                let mut read = instruction.uses().iter().filter(|used| used.access.reads);
                let one = read.next().filter(|_| read.next().is_none() && instruction.memory().is_empty())?;
                times(one.part.register)
            }
            Operation::Address => {
                let memory = instruction.address()?;
                let base = memory.base.map_or(Some(0), |part| times(part.register))?;
                let index = memory.index.map_or(Some(0), |part| times(part.register))?;
                Some(base.wrapping_add(index.wrapping_mul(memory.scale.into())))
            }
            _ => None,
        }
    }

    /// The function's arguments give it a part of a taskloop: gcc's data begin with its bounds, and in clang's task
    /// they stand behind what all tasks have.
    pub fn take_piece(&mut self) {
        // As of frames that none is.
        let bounds = [(u32::MAX, 7, [0, 8]), (u32::MAX - 1, 6, [0x28, 0x30])];
        for (frame, register, places) in bounds {
            self.registers[register].slot = Some((frame, 0));
            self.slots.extend(places.map(|at| ((frame, at), Value::given(NUMBER))));
        }
    }

    fn call(&mut self, gives: Option<Gives>) {
        if let Some(Gives::Bounds { on_stack, from, .. }) = gives {
            let pointed = ARGUMENTS.iter().filter_map(|register| self.registers[*register].slot);
            let bounds: Vec<(u32, i64)> = pointed.collect();
            let further = self.registers[Register::SP.index()]
                .slot
                .into_iter()
                .flat_map(|(frame, sp)| (0..on_stack).map(move |index| (frame, sp + 8 * index)));
            let steps: Vec<(u32, i64)> = further.filter_map(|slot| self.slots.get(&slot)?.slot).collect();
            let given = |from| move |slot| (slot, Value::given(from));
            self.slots.extend(bounds.into_iter().map(given(NUMBER)));
            self.slots.extend(steps.into_iter().map(given(from)));
        }
        // Nobody reads a register that the callee may have changed; which it leaves alone its own code decides.
        self.compared = [0; 2];
        let from = match gives {
            Some(Gives::Number) => NUMBER,
            Some(Gives::Count) => COUNT,
            Some(Gives::Bounds { may_fail: true, .. }) => ANSWER,
            _ => 0,
        };
        self.registers[Register::AX.index()] = Value { times: Some(1), ..Value::given(from) };
    }
}
