//! The spill code: a store behind each definition of a spilled value, a load (or what stands for it) before each use.

use rustc_hash::FxHashMap;

use super::rows::{Row, Thread};
use super::{CHECKED, Plan, intervals, runtime};
use crate::Spills;
use crate::flow::Flow;
use crate::llvm::{Binary, Builder, Comparison, Function, Instruction, Type, Value};

/// Room for what a warp shares: in a frame that no other call has at the same time.
pub(super) fn room(plan: &Plan<'_>) -> (Vec<u64>, u64, u32) {
    let (mut offsets, mut next, mut most) = (Vec::new(), 0u64, 16);
    for (value, row) in &plan.spilled {
        let (size, _, alignment) = value.type_of().layout().unwrap_or((8, 8, 8));
        let room = if row.is_shared() { size } else { 0 };
        next = next.next_multiple_of(u64::from(alignment.max(1)));
        offsets.push(next);
        next += room;
        most = most.max(alignment);
    }
    (offsets, next, most)
}

/// What rewriting a function needs.
struct Rewriter<'m> {
    function: Function<'m>,
    wide: Type<'m>,
    thread: Option<Thread<'m>>,
    /// Where what the warp shares begins.
    base: Option<Value<'m>>,
    /// Where values are to be told by addresses: whether the memory for that is mapped, and an address to read
    /// otherwise.
    checks: Option<(Value<'m>, Value<'m>)>,
    counts: Spills,
}

/// Where a spilled value is.
#[derive(Clone, Copy)]
struct Home<'m> {
    row: Row,
    /// Its address, where it has one.
    address: Option<Value<'m>>,
}

/// Puts the spill code of a plan into its function; returns what it put there.
pub(super) fn apply(plan: &Plan<'_>, flow: &Flow<'_>, checks: bool) -> Spills {
    let function = plan.function;
    let begin = function.entry().first_insertion_point();
    let setup = Builder::before(begin);
    let wide = function.integer_type(64);
    let (offsets, bytes, alignment) = room(plan);
    let counts =
        Spills { registers: plan.registers, values: plan.spilled.len(), fixed: plan.fixed, bytes, ..Spills::default() };
    let mut rewriter = Rewriter { function, wide, thread: plan.thread, base: None, checks: None, counts };
    if plan.spilled.iter().any(|(_, row)| row.is_shared()) {
        // The room is used where this frame is its own copy.
        let frame = setup.room(bytes, alignment);
        let table = function.outside_variable(runtime::DISTANCES, 8 * runtime::PARTS);
        let at = setup.as_type(frame, wide);
        let part = setup.binary(Binary::LShr, setup.opaque(at), wide.number(runtime::PART_BITS - 3));
        let part = setup.and(part, wide.number(8 * (runtime::PARTS - 1)));
        let distance = setup.load(wide, setup.behind_by(table, part));
        let shared = setup.opaque(setup.binary(Binary::Sub, at, distance));
        rewriter.base = Some(setup.as_type(shared, frame.type_of()));
        if checks {
            // Where nothing is mapped, values are told by no address.
            let mapped = setup.compare(Comparison::NotEqual, distance, wide.number(0));
            rewriter.checks = Some((mapped, shared));
        }
    }
    let homes: Vec<Home<'_>> = plan
        .spilled
        .iter()
        .zip(offsets)
        .map(|((value, row), offset)| {
            let address = match row {
                Row::Local => Some(setup.alloca(value.type_of())),
                Row::Uniform | Row::Mixed { .. } => rewriter.base.map(|_| wide.number(offset)),
                Row::Constant(_) | Row::Affine { .. } => None,
            };
            Home { row: *row, address }
        })
        .collect();
    for ((value, _), home) in plan.spilled.iter().zip(homes) {
        rewriter.spill(*value, home, begin, flow);
    }
    rewriter.counts
}

impl<'m> Rewriter<'m> {
    fn spill(&mut self, value: Value<'m>, home: Home<'m>, begin: Instruction<'m>, flow: &Flow<'m>) {
        let uses = value.uses();
        let made = value.as_instruction();
        let behind = match made {
            None => Some(begin),
            Some(i) if i.is_phi() => i.block().map(|block| block.first_insertion_point()),
            Some(i) if i.is_terminator() => intervals::stored_behind(i, flow),
            Some(i) => i.next(),
        };
        let Some(behind) = behind else { return };
        // Before the store is put there: it is a use too.
        self.store(value, home, behind, made);
        let mut loaded: FxHashMap<Instruction<'m>, Value<'m>> = FxHashMap::default();
        for used in uses {
            let place = match used.needed_in() {
                // What a call that may throw gives is not there before it.
                Some(block) if used.user.is_phi() && Some(block.terminator()) == made => continue,
                Some(block) if used.user.is_phi() => block.terminator(),
                _ => used.user,
            };
            if is_only_told(used.user) {
                continue;
            }
            let again = match loaded.get(&place) {
                Some(&again) => again,
                None => {
                    let again = self.load(value.type_of(), home, place);
                    loaded.insert(place, again);
                    again
                }
            };
            used.user.set_operand(used.operand, again);
        }
    }

    /// The thread's number times a factor, computed here and nowhere else.
    fn multiple(&self, factor: i64, at: Builder<'m>) -> Value<'m> {
        let thread = self.thread.expect("a row with a thread's number is chosen where there is one");
        let number = match thread.signed {
            true => at.as_type(thread.value, self.wide),
            false => at.as_unsigned(thread.value, self.wide),
        };
        let number = at.opaque(number);
        if factor == 1 { number } else { at.binary(Binary::Mul, number, self.wide.number(factor as u64)) }
    }

    fn shared_address(&self, home: Home<'m>, at: Builder<'m>) -> Value<'m> {
        let base = self.base.expect("there is room where a row needs it");
        let offset = home.address.and_then(Value::as_number).unwrap_or(0);
        at.behind(base, offset as u64)
    }

    fn store(&mut self, value: Value<'m>, home: Home<'m>, behind: Instruction<'m>, made: Option<Instruction<'m>>) {
        let at = Builder::before(behind);
        let stored = match home.row {
            Row::Constant(_) | Row::Affine { .. } => return,
            Row::Local => {
                let address = home.address.expect("a local value has a slot");
                self.counts.stores += 1;
                at.volatile_store(value, address)
            }
            Row::Uniform | Row::Mixed { .. } => {
                self.counts.shared_stores += 1;
                let address = self.shared_address(home, at);
                let part = match home.row {
                    Row::Mixed { factor } => {
                        let all = at.as_unsigned(value, self.wide);
                        let rest = at.binary(Binary::Sub, all, self.multiple(factor, at));
                        at.as_type(rest, value.type_of())
                    }
                    _ => value,
                };
                let stored = at.volatile_store(part, address);
                if let Some((mapped, otherwise)) = self.checks {
                    self.check(value.type_of(), address, mapped, otherwise, at);
                }
                stored
            }
        };
        if let Some(made) = made {
            stored.take_location(made);
        }
    }

    fn load(&mut self, of_type: Type<'m>, home: Home<'m>, before: Instruction<'m>) -> Value<'m> {
        let at = Builder::before(before);
        let again = match home.row {
            Row::Local => {
                self.counts.local += 1;
                at.volatile_load(of_type, home.address.expect("a local value has a slot"))
            }
            Row::Constant(number) => {
                self.counts.constant += 1;
                return of_type.number(number as u64);
            }
            Row::Uniform => {
                self.counts.uniform += 1;
                at.volatile_load(of_type, self.shared_address(home, at))
            }
            Row::Affine { factor, base } => {
                self.counts.affine += 1;
                let all = at.binary(Binary::Add, self.multiple(factor, at), self.wide.number(base as u64));
                at.as_type(all, of_type)
            }
            Row::Mixed { factor } => {
                self.counts.mixed += 1;
                let part = at.volatile_load(of_type, self.shared_address(home, at));
                let all = at.binary(Binary::Add, at.as_unsigned(part, self.wide), self.multiple(factor, at));
                at.as_type(all, of_type)
            }
        };
        if let Some(made) = again.as_instruction() {
            made.take_location(before);
        }
        again
    }

    /// Reads from a place that tells what was stored: a trace has addresses, and lanes whose addresses differ here
    /// stored different values. Of 8 bytes each, 20 bits of a product are kept, so that one difference in 2^20 is
    /// missed.
    fn check(&self, of_type: Type<'m>, address: Value<'m>, mapped: Value<'m>, otherwise: Value<'m>, at: Builder<'m>) {
        let (_, bytes, _) = of_type.layout().unwrap_or((0, 0, 1));
        let mut place = 0;
        while place < bytes {
            let size = [8, 4, 2, 1].into_iter().find(|size| place + size <= bytes).unwrap_or(1);
            let stored = at.volatile_load(self.function.integer_type(8 * size as u32), at.behind(address, place));
            let spread = at.binary(Binary::Mul, at.as_unsigned(stored, self.wide), self.wide.number(SPREAD));
            let short = at.binary(Binary::LShr, spread, self.wide.number(64 - 20));
            let told = at.binary(Binary::Add, short, self.wide.number(CHECKED));
            let told = at.select(mapped, told, otherwise);
            let _ = at.volatile_load(self.function.integer_type(8), at.as_type(told, address.type_of()));
            place += size;
        }
    }
}

/// An odd number whose bits are spread: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Whether an instruction only says something about a value.
fn is_only_told(user: Instruction<'_>) -> bool {
    let name = user.callee().filter(|callee| callee.is_function()).map(|callee| callee.name()).unwrap_or_default();
    ["llvm.assume", "llvm.dbg.", "llvm.lifetime.", "llvm.experimental.noalias"].iter().any(|s| name.starts_with(s))
}
