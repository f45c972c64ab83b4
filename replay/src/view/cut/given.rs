//! Which loops share out the iterations that a runtime gave their thread: those whose end hangs on what it gave.
//!
//! Followed are values that come from the thread's number in its team (`omp_get_thread_num`), from the number of its
//! threads, and from the bounds that a call of the runtime leaves in the frame (`__kmpc_for_static_init`,
//! `GOMP_loop_…`, `__kmpc_dispatch_next`), through registers and slots of the stack of one function, over all ways
//! through it. What is read from other memory is none of them: a row's length, a linked list's next.
//!
//! Example: gcc's `schedule(static)` compares `i` with `number * share + share`, which no iteration changes.

use flowgraph::{LoopId, NodeId};
use heuristics::SegmentTable;
use machine::{Instruction, Operand, Operation, Operator, Register, Step};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc, SpEffect};

use super::loops::{LoopsOf, segment_of_place};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Value {
    /// Bits: see [`NUMBER`], [`COUNT`] and [`SHARE`].
    from: u8,
    /// How often the thread's number is in it, where it is a sum: as long as that is known.
    times: Option<i64>,
    /// It is the address of a slot: in which frame (a new one begins where the stack is aligned), and where there.
    slot: Option<(u32, i64)>,
}

/// The number of the thread, or a bound that it was given.
const NUMBER: u8 = 1;
/// How many threads the team has, or what a runtime says of the way from one chunk to the next.
const COUNT: u8 = 2;
/// A thread's share: what something else than a sum or a copy made of the number of threads.
const SHARE: u8 = 4;
/// A constant was added to the number or bound.
const STEPPED: u8 = 8;
/// It is some bits of such a value, or mixed with others: no bound, but what an iteration made of its number.
const MIXED: u8 = 16;

impl Value {
    /// How often the thread's number is in it.
    fn times(self) -> Option<i64> {
        if self.from & NUMBER == 0 { Some(0) } else { self.times }
    }

    /// A sum in which it is so often; where it has cancelled out, only what hangs on the number of threads is left.
    fn summed(self, times: Option<i64>) -> Value {
        let kept = if times == Some(0) { self.from & (COUNT | SHARE | MIXED) } else { self.from };
        Value { from: kept, times, ..self }
    }
}

/// What registers and slots hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    registers: [Value; 16],
    slots: FxHashMap<(u32, i64), Value>,
    /// Where the two values come from that were compared last.
    compared: [u8; 2],
}

/// What a call gives a thread.
enum Gives {
    /// Its result is the thread's number.
    Number,
    /// Its result is the number of threads.
    Count,
    /// It leaves bounds where its arguments point.
    Bounds,
}

/// By the name of a function of a runtime.
fn gives(name: &str) -> Option<Gives> {
    match name.split('@').next().unwrap_or(name) {
        "omp_get_thread_num" | "omp_get_team_num" => Some(Gives::Number),
        "omp_get_num_threads" | "omp_get_num_teams" => Some(Gives::Count),
        name if name.starts_with("__kmpc_for_static_init") || name.starts_with("__kmpc_dist_for_static_init") => {
            Some(Gives::Bounds)
        }
        name if name.starts_with("__kmpc_dispatch_next") => Some(Gives::Bounds),
        name if name.starts_with("GOMP_loop_") && (name.ends_with("_next") || name.ends_with("_start")) => {
            Some(Gives::Bounds)
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
/// Slots above the stack pointer that a call's further arguments take.
const FURTHER_ARGUMENTS: i64 = 4;

impl State {
    fn meet(&mut self, other: &State) -> bool {
        let before = self.clone();
        for (own, other) in self.registers.iter_mut().zip(&other.registers) {
            own.times = own.times().filter(|times| other.times() == Some(*times));
            own.from |= other.from;
            own.slot = own.slot.filter(|slot| other.slot == Some(*slot));
        }
        for (slot, value) in &other.slots {
            let own = self.slots.entry(*slot).or_insert(*value);
            own.times = own.times().filter(|times| value.times() == Some(*times));
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

    fn value(&self, operand: Operand, instruction: Instruction) -> Value {
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

    /// The instruction runs; `called` is the name of the function that it calls.
    fn run(&mut self, instruction: Instruction, called: Option<&str>) {
        if instruction.flags_written() != 0 {
            let operands = [0, 1].map(|index| self.value(instruction.operand(index), instruction).from);
            let is_one = instruction.operand(0) == instruction.operand(1);
            self.compared = match instruction.operation() {
                Operation::Compare if matches!(instruction.operand(1), Operand::Constant(_)) => [operands[0]; 2],
                Operation::Test if !is_one => [operands[0] | operands[1] | MIXED; 2],
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
                let mut from = one.from | other.from;
                match by {
                    Operand::Constant(_) if operator == Operator::Add && from & NUMBER != 0 => from |= STEPPED,
                    by if operator == Operator::Xor && by == acc => from = 0,
                    _ if matches!(operator, Operator::And | Operator::Or | Operator::Xor) && from != 0 => from |= MIXED,
                    _ => {}
                }
                let times = match (operator, by) {
                    (Operator::Add, _) if instruction.operation() == Operation::Subtract => {
                        one.times().zip(other.times()).map(|(one, other)| one.wrapping_sub(other))
                    }
                    (Operator::Add, _) => one.times().zip(other.times()).map(|(one, other)| one.wrapping_add(other)),
                    (Operator::Multiply, Operand::Constant(by)) => one.times().map(|one| one.wrapping_mul(by)),
                    _ => None,
                };
                self.set(to, Value { from, times, slot }.summed(times), instruction);
            }
            Step::Other => self.other(instruction),
        }
        let compares = matches!(instruction.operation(), Operation::Compare | Operation::Test);
        if instruction.flags_written() != 0 && !compares {
            // A reduction's last step tries again until no other thread was there meanwhile.
            let result = self.value(instruction.operand(0), instruction).from;
            self.compared = [if instruction.is_atomic() { 0 } else { result }; 2];
        }
        self.registers[Register::SP.index()] = match instruction.sp() {
            SpEffect::Add(by) => {
                Value { from: 0, times: None, slot: sp.slot.map(|(frame, at)| (frame, at + i64::from(by))) }
            }
            // What aligns the stack begins another frame, and so does what ends this one; not what takes it back to a
            // place in it.
            SpEffect::Recorded => match self.registers[Register::SP.index()].slot {
                Some(slot) if matches!(instruction.step(), Step::Copy { .. } | Step::Update { .. }) => {
                    Value { from: 0, times: None, slot: Some(slot) }
                }
                _ => Value { from: 0, times: None, slot: sp.slot.map(|(frame, _)| (frame + 1, 0)) },
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
        let mut from = 0;
        for used in instruction.uses() {
            let register = used.part.register;
            if used.access.reads && (named.contains(&register) || !addresses.contains(&register)) {
                from |= self.register(register).from;
            }
        }
        if instruction.memory().first().is_some_and(|memory| memory.access.reads) {
            from |= self.value(Operand::Memory, instruction).from;
        }
        // What divides makes a share of a count, and a part of a share.
        let is_whole = matches!(
            instruction.operation(),
            Operation::ShiftLeft | Operation::Address | Operation::Extend | Operation::Negate | Operation::Not
        );
        if !is_whole && from & (NUMBER | SHARE) != 0 {
            from |= MIXED;
        }
        if from & COUNT != 0 {
            from |= SHARE;
        }
        let times = self.times_of_other(instruction);
        for used in instruction.uses().iter().filter(|used| used.access.writes) {
            if let Some(own) = self.registers.get_mut(used.part.register.index()) {
                *own = Value { from, times, slot: None }.summed(times);
            }
        }
        if instruction.memory().first().is_some_and(|memory| memory.access.writes) {
            self.set(Operand::Memory, Value { from, times: None, slot: None }, instruction);
        }
    }

    /// How often the thread's number is in what an instruction makes that shifts, or works out an address.
    fn times_of_other(&self, instruction: Instruction) -> Option<i64> {
        let times = |register: Register| self.register(register).times();
        match instruction.operation() {
            Operation::ShiftLeft => {
                let Operand::Constant(by) = instruction.operand(1) else { return None };
                let one = instruction.register(0).map(|part| times(part.register))??;
                Some(one.wrapping_shl(by as u32))
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

    /// The function's arguments give it a part of a taskloop: gcc's data begin with its bounds, and in clang's task they
    /// stand behind what all tasks have.
    fn take_piece(&mut self) {
        // As of frames that none is.
        let bounds = [(u32::MAX, 7, [0, 8]), (u32::MAX - 1, 6, [0x28, 0x30])];
        for (frame, register, places) in bounds {
            self.registers[register].slot = Some((frame, 0));
            self.slots.extend(places.map(|at| ((frame, at), Value { from: NUMBER, ..Value::default() })));
        }
    }

    fn call(&mut self, gives: Option<Gives>) {
        if matches!(gives, Some(Gives::Bounds)) {
            let pointed = ARGUMENTS.iter().filter_map(|register| self.registers[*register].slot);
            let bounds: Vec<(u32, i64)> = pointed.collect();
            let further = self.registers[Register::SP.index()]
                .slot
                .into_iter()
                .flat_map(|(frame, sp)| (0..FURTHER_ARGUMENTS).map(move |index| (frame, sp + 8 * index)));
            let steps: Vec<(u32, i64)> = further.filter_map(|slot| self.slots.get(&slot)?.slot).collect();
            let given = |from| move |slot| (slot, Value { from, times: None, slot: None });
            self.slots.extend(bounds.into_iter().map(given(NUMBER)));
            self.slots.extend(steps.into_iter().map(given(COUNT)));
        }
        // Nobody reads a register that the callee may have changed; which it leaves alone its own code decides.
        self.compared = [0; 2];
        let from = match gives {
            Some(Gives::Number) => NUMBER,
            Some(Gives::Count) => COUNT,
            _ => 0,
        };
        self.registers[Register::AX.index()] = Value { from, times: Some(1), slot: None };
    }
}

/// Loops whose end hangs on what a runtime gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// Their turns are iterations.
    pub loops: Vec<LoopId>,
    /// Their turns are chunks of iterations: `schedule(static, n)`.
    pub of_chunks: Vec<LoopId>,
    /// Those of `loops` whose turns are dealt to threads one by one: `schedule(static, 1)`.
    pub cyclic: Vec<LoopId>,
    /// Those of `loops` whose end is only a part of what a thread was given, as where a compiler vectorises or unrolls: a
    /// turn may be several iterations.
    pub in_parts: Vec<LoopId>,
    /// Functions that ask whether their thread has any iteration, and have no such loop.
    pub lost: Vec<Pc>,
    /// The branches that compare what a runtime gave.
    pub tests: Tests,
}

/// Branches that compare what a runtime gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tests(FxHashMap<NodeId, Test>);

/// One of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Test {
    /// Whether a constant was added to what it compares: an iteration came before it, or it looks further ahead.
    pub is_stepped: bool,
    /// Whether it compares two values that hang on the thread's number, and both as they are.
    pub is_of_bounds: bool,
    /// Whether no lane took its other side.
    is_one_way: bool,
}

impl Tests {
    /// The branch at the end of this node, if it is one.
    pub(super) fn of(&self, node: NodeId) -> Option<Test> {
        self.0.get(&node).copied()
    }
}

/// What is known of a loop's test and its turns.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// Its end hangs on the thread's number, or on its share.
    ends_by_number: bool,
    /// So do both values that its test compares.
    by_both: bool,
    /// A test of it compares no value that is a part of another.
    by_whole: bool,
    /// A turn starts threads: it is a team's share.
    forks: bool,
    /// A turn adds what hangs on the number of threads.
    steps_by_count: bool,
}

impl Given {
    /// The outermost such loops of the functions that begin at these addresses, and of `pieces`, which are given a part
    /// of a taskloop.
    /// `called` gives the name of the function that a call's target is, `function_of` the one that holds an address.
    pub fn of(
        loops: &LoopsOf,
        (functions, pieces): (&[Pc], &[Pc]),
        segments: &SegmentTable,
        called: &dyn Fn(Pc) -> Option<String>,
        function_of: &dyn Fn(Pc) -> Option<Pc>,
    ) -> Given {
        let graph = loops.graph();
        let of_place = segment_of_place(segments);
        let mut facts: FxHashMap<LoopId, Facts> = FxHashMap::default();
        let mut tests: FxHashMap<NodeId, Test> = FxHashMap::default();
        let mut forking = Vec::new();
        let mut states: Vec<Option<State>> = vec![None; graph.node_count()];
        let mut left = Vec::new();
        for function in functions.iter().chain(pieces) {
            let Some(node) = loops.node_at(*function) else { continue };
            let mut state = State::default();
            state.registers[Register::SP.index()].slot = Some((0, 0));
            if pieces.contains(function) {
                state.take_piece();
            }
            states[node.index()] = Some(state);
            left.push(node);
        }
        while let Some(node) = left.pop() {
            let Some(mut state) = states[node.index()].clone() else { continue };
            // A node that is no place has no code.
            let Some(segment) = of_place.get(node.index()) else { continue };
            let code = segments.listing(*segment);
            for instruction in code.iter().flatten() {
                if steps_by_count(&state, instruction) {
                    for id in loops.around(node).take(1) {
                        facts.entry(id).or_default().steps_by_count = true;
                    }
                }
                let name = instruction.kind().is_call().then(|| called(instruction.target()?)).flatten();
                if name.as_deref().is_some_and(|name| name.starts_with("__kmpc_fork_call")) {
                    forking.push(function_of(instruction.pc()));
                    loops.around(node).for_each(|id| facts.entry(id).or_default().forks = true);
                }
                state.run(instruction, name.as_deref());
            }
            for next in graph.successors(node) {
                let known = &mut states[next.index()];
                let changed = match known {
                    Some(known) => known.meet(&state),
                    None => {
                        *known = Some(state.clone());
                        true
                    }
                };
                if changed {
                    left.push(*next);
                }
            }
            let is_branch = code.last().is_some_and(|last| last.kind() == Kind::Branch);
            let compared = state.compared[0] | state.compared[1];
            if is_branch && compared & (NUMBER | SHARE) != 0 {
                let test = tests.entry(node).or_default();
                test.is_stepped |= compared & STEPPED != 0;
                test.is_of_bounds |= state.compared.iter().all(|from| from & (NUMBER | MIXED) == NUMBER);
                test.is_one_way = graph.successors(node).len() < 2;
            }
            for id in loops.around(node).filter(|_| is_branch) {
                if graph.successors(node).iter().any(|next| !loops.contains(id, *next)) {
                    let facts = facts.entry(id).or_default();
                    facts.ends_by_number |= compared & (NUMBER | SHARE) != 0;
                    facts.by_whole |= compared & (NUMBER | SHARE) != 0 && compared & MIXED == 0;
                    facts.by_both |= state.compared.iter().all(|from| from & (NUMBER | MIXED) == NUMBER);
                }
            }
        }
        let of = |id: LoopId| facts.get(&id).copied().unwrap_or_default();
        let mut given = Given { tests: Tests(tests), ..Given::default() };
        for id in loops.ids().filter(|id| of(*id).ends_by_number && !of(*id).forks) {
            let around: Vec<LoopId> = std::iter::successors(loops.parent(id), |outer| loops.parent(*outer)).collect();
            let outer: Vec<LoopId> =
                around.into_iter().filter(|outer| of(*outer).ends_by_number && !of(*outer).forks).collect();
            let deals = |outer: LoopId, inner: LoopId| of(outer).steps_by_count && of(inner).by_both;
            match outer[..] {
                [] => given.loops.push(id),
                [outer] if deals(outer, id) => {
                    given.of_chunks.push(outer);
                    given.loops.push(id);
                }
                _ => {}
            }
        }
        given.in_parts = given.loops.iter().copied().filter(|id| !of(*id).by_whole).collect();
        let places = loops;
        let Given { loops, of_chunks, cyclic, .. } = &mut given;
        loops.retain(|id| !of_chunks.contains(id));
        cyclic.extend(loops.iter().filter(|id| of(**id).steps_by_count));
        let function = |node: NodeId| function_of(segments[of_place[node.index()]].start());
        // A team's share of a loop is dealt to its threads in another function.
        let own = given.loops.iter().map(|id| function(places.header(*id)));
        let with_loops: Vec<Option<Pc>> = own.chain(forking).collect();
        let asking = given.tests.0.iter().filter(|(_, test)| test.is_of_bounds).map(|(node, _)| function(*node));
        let asking = asking.chain(pieces.iter().map(|piece| Some(*piece)));
        given.lost = asking.filter(|function| !with_loops.contains(function)).flatten().collect();
        given.lost.sort_unstable();
        given.lost.dedup();
        given
    }
}

impl Given {
    /// Ways back that no lane took, in functions that have no loop: from the test behind an iteration, of which only the
    /// side is known that ends the loop, to where the thread came to that iteration. At most one in each function.
    pub(super) fn ways_back(&self, loops: &LoopsOf) -> Vec<(NodeId, NodeId)> {
        let graph = loops.graph();
        let mut all = Vec::new();
        for function in &self.lost {
            let Some(entry) = loops.node_at(*function) else { continue };
            let (mut own, mut left) = (vec![entry], vec![entry]);
            while let Some(node) = left.pop() {
                for next in graph.successors(node) {
                    if !own.contains(next) {
                        own.push(*next);
                        left.push(*next);
                    }
                }
            }
            let is_behind = |test: &Test| test.is_one_way && test.is_stepped && test.is_of_bounds;
            let mut tests =
                own.iter().copied().filter(|node| self.tests.of(*node).is_some_and(|test| is_behind(&test)));
            let (Some(test), None) = (tests.next(), tests.next()) else { continue };
            let (mut seen, mut left, mut begins) = (vec![test], vec![test], Vec::new());
            while let Some(node) = left.pop() {
                let before = graph.predecessors(node);
                let asks = |from: &NodeId| self.tests.of(*from).is_some_and(|test| test.is_of_bounds);
                if node == entry || before.iter().any(asks) {
                    begins.push(node);
                    continue;
                }
                for from in before {
                    if !seen.contains(from) {
                        seen.push(*from);
                        left.push(*from);
                    }
                }
            }
            if let [begin] = begins[..] {
                all.push((test, begin));
            }
        }
        all
    }
}

/// Whether an instruction adds what hangs on the number of threads, and not on a thread's own, to a place.
fn steps_by_count(state: &State, instruction: Instruction) -> bool {
    match instruction.step() {
        Step::Update { operator: Operator::Add, acc, by, .. } => {
            let (acc, by) = (state.value(acc, instruction).from, state.value(by, instruction).from);
            acc & NUMBER != 0 && by & (NUMBER | COUNT) == COUNT || by & NUMBER != 0 && acc & (NUMBER | COUNT) == COUNT
        }
        _ => false,
    }
}
