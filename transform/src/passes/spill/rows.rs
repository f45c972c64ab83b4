//! Figure 6: what to do with a spilled value, by what is known about it.

use divergence::{Boolean, Class, Fact, Mode};
use flowgraph::{Loops, NodeId};
use rustc_hash::FxHashMap;

use super::Allocator;
use crate::Reason;
use crate::llvm::{Block, Function, Opcode, Shape, Value};
use crate::spmd::FunctionFacts;

/// How a spilled value comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// From memory of the thread's own.
    Local,
    /// Row i: it is this number.
    Constant(i64),
    /// Row ii: from memory that the warp shares.
    Uniform,
    /// Row iii: so many times the thread's number, plus a number.
    Affine { factor: i64, base: i64 },
    /// Row iv: so many times the thread's number, plus what the warp shares.
    Mixed { factor: i64 },
}

impl Row {
    /// Whether it takes room that the warp shares.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, Row::Uniform | Row::Mixed { .. })
    }
}

/// A value that is a multiple of the thread's number, plus something uniform: a parameter, or made in the entry block.
/// It takes no register under any allocator: a GPU has it in a special one.
#[derive(Clone, Copy)]
pub(super) struct Thread<'m> {
    pub(super) value: Value<'m>,
    stride: i64,
    /// What is added, where it is known.
    base: Option<i64>,
    /// Whether the equation holds in the integers, with sign or without.
    pub(super) signed: bool,
    unsigned: bool,
    bits: u32,
}

/// Where the thread's number is in a function that threads run, the plainest first.
pub(super) fn thread<'m>(facts: &FunctionFacts<'m>) -> Option<Thread<'m>> {
    if !facts.is_run_by_threads() {
        return None;
    }
    let function = facts.function();
    let made = function.entry().instructions().into_iter().map(|i| i.as_value());
    let candidates = function.parameters().into_iter().chain(made).filter_map(|value| {
        let bits = value.type_of().bits().filter(|bits| (8..=64).contains(bits))?;
        let fact = facts.fact(value)?;
        let stride = fact.stride().filter(|&stride| stride != 0)?;
        let affine = fact.affine()?;
        let base = affine.base.as_number();
        Some(Thread { value, stride, base, signed: affine.signed, unsigned: affine.unsigned, bits })
    });
    candidates.min_by_key(|t| (t.base.is_none(), t.stride.unsigned_abs(), !(t.signed || t.unsigned), 64 - t.bits))
}

/// What is known about a function, for one allocator.
pub(super) struct Rows<'m, 'a> {
    pub(super) facts: &'a FunctionFacts<'m>,
    pub(super) allocator: &'a Allocator,
    pub(super) thread: Option<Thread<'m>>,
    /// The baseline's analysis, where the allocator decides by that.
    pub(super) boolean: Option<Boolean>,
    loops: Loops,
    /// By loop: whether a branch in it may part threads.
    parting: Vec<bool>,
    /// The order of the entry block's instructions.
    entry: FxHashMap<Value<'m>, usize>,
    /// Whether room that the warp shares may be used.
    pub(super) shares: bool,
}

impl<'m, 'a> Rows<'m, 'a> {
    pub(super) fn of(facts: &'a FunctionFacts<'m>, allocator: &'a Allocator, mode: Mode) -> Rows<'m, 'a> {
        let boolean = allocator.decides_by_boolean.then(|| Boolean::of(facts.analysis().gated(), mode));
        let loops = Loops::of(facts.flow().graph());
        let parts =
            |node: &NodeId| facts.branch(facts.flow().block(*node)).is_some_and(|class| class != Class::Uniform);
        let parting = loops.ids().map(|id| loops.members(id).iter().any(parts)).collect();
        let entry = facts.function().entry().instructions().into_iter().enumerate();
        let entry = entry.map(|(i, instruction)| (instruction.as_value(), i)).collect();
        let shares = facts.is_run_by_threads();
        Rows { facts, allocator, thread: thread(facts), boolean, loops, parting, entry, shares }
    }

    /// How often these values are stored and loaded, as far as the loops around that tell: ten times for each.
    pub(super) fn accesses<'v>(&self, spilled: impl Iterator<Item = &'v (Value<'m>, Row)>) -> u64
    where
        'm: 'v,
    {
        let flow = self.facts.flow();
        let times = |block: Block<'m>| {
            let innermost = flow.find(block).and_then(|node| self.loops.innermost(node));
            let depth = std::iter::successors(innermost, |id| self.loops.parent(*id)).count();
            10u64.pow(depth.min(6) as u32)
        };
        let of_value = |value: Value<'m>| {
            let made = value.as_instruction().and_then(|i| i.block()).map_or(1, times);
            made + value.uses().into_iter().filter_map(|u| u.needed_in()).map(times).sum::<u64>()
        };
        spilled.map(|(value, _)| of_value(*value)).sum()
    }

    /// The row for a value.
    pub(super) fn row(&self, value: Value<'m>) -> Row {
        let (Some(fact), Some(id)) = (self.facts.fact(value), self.facts.id(value)) else { return Row::Local };
        if let Some(boolean) = &self.boolean {
            let uniform = boolean.class(id) == Class::Uniform && fact != Fact::Top;
            return if uniform && self.shares && self.stays(value) { Row::Uniform } else { Row::Local };
        }
        let Some(affine) = fact.affine() else { return Row::Local };
        let number = affine.base.as_number();
        if affine.is_uniform() {
            let is_integer = matches!(value.type_of().shape(), Shape::Integer(2..=64));
            return match number {
                Some(number) if is_integer && self.allocator.rematerialises => Row::Constant(number),
                _ if self.allocator.shares && self.shares && self.stays(value) => Row::Uniform,
                _ => Row::Local,
            };
        }
        let (Some(stride), Some(thread)) = (fact.stride(), self.usable_thread(value)) else { return Row::Local };
        if stride % thread.stride != 0 {
            return Row::Local;
        }
        let factor = stride / thread.stride;
        match (number, thread.base) {
            (Some(number), Some(base)) if self.allocator.rematerialises => {
                Row::Affine { factor, base: number.wrapping_sub(factor.wrapping_mul(base)) }
            }
            _ if self.allocator.shares && self.shares && self.stays(value) => Row::Mixed { factor },
            _ => Row::Local,
        }
    }

    /// The thread's number, where it can be used for this value: wide enough, and made before it.
    fn usable_thread(&self, value: Value<'m>) -> Option<Thread<'m>> {
        let thread = self.thread?;
        let bits = value.type_of().bits().filter(|bits| *bits <= 64)?;
        let wide = thread.bits >= bits || thread.signed || thread.unsigned;
        let before = match thread.value.as_instruction() {
            None => true,
            // In its block it must stand before; parameters are stored at the very beginning.
            Some(made) => {
                let place = |of: Value<'m>| self.entry.get(&of);
                value.as_instruction().is_some() && (place(value).is_none() || place(made.as_value()) < place(value))
            }
        };
        (wide && before).then_some(thread)
    }

    /// Whether the value is still the warp's where it is used: a thread that has left a loop must not find there what
    /// others wrote in later turns. So it is used within its loop, or no branch of that loop parts threads.
    fn stays(&self, value: Value<'m>) -> bool {
        let flow = self.facts.flow();
        let Some(home) = value.as_instruction().and_then(|i| i.block()) else { return true };
        let home = flow.node(home);
        let uses: Vec<NodeId> = value.uses().iter().filter_map(|u| flow.find(u.needed_in()?)).collect();
        let mut around = self.loops.innermost(home);
        while let Some(id) = around {
            let left = uses.iter().any(|&block| !self.loops.contains(id, block));
            if left && self.parting[id.index()] {
                return false;
            }
            around = self.loops.parent(id);
        }
        true
    }
}

/// Whether a sanitizer's runtime, which this function is built for, has its shadow where copies of stacks would be.
pub(super) fn is_shadowed(function: Function<'_>) -> bool {
    ["sanitize_thread", "sanitize_memory"].iter().any(|name| function.has_attribute(name))
}

/// Why a function is left alone, if it is: what stands in it would not stay valid, or not mean the same.
pub(super) fn reason_to_leave(function: Function<'_>) -> Option<Reason> {
    if ["naked", "presplitcoroutine"].iter().any(|name| function.has_attribute(name)) {
        return Some(Reason::NotSpilled("the compiler must not change the layout of its frame"));
    }
    function.blocks().into_iter().flat_map(|block| block.instructions()).find_map(|i| match i.opcode() {
        Opcode::LLVMCall if i.must_be_tail() => Some(Reason::MustBeTail),
        Opcode::LLVMCall | Opcode::LLVMInvoke if i.call_has("returns_twice") => Some(Reason::ReturnsTwice),
        Opcode::LLVMCallBr => Some(Reason::EnteredByAssembly),
        Opcode::LLVMCatchPad | Opcode::LLVMCatchSwitch | Opcode::LLVMCleanupPad => {
            Some(Reason::NotSpilled("its handlers of exceptions have frames of their own"))
        }
        _ => None,
    })
}
