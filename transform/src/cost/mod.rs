//! What code costs: the model by which all passes decide.
//!
//! | part | answers |
//! |---|---|
//! | [`CostModel`] | what a pass asks; another model can take its place |
//! | [`X86_64`] | the model that is taken unless told otherwise |
//! | [`Callees`] | what a call of a function takes, loops guessed |
//!
//! A pass decides by *fetches*: x86-64 instructions issued for a warp, however long they take. *Latency* is a second
//! column, in cycles, for passes that weigh instructions by their time, as papers on GPU compilers do.

pub(crate) mod blocks;
mod busy;
mod fetches;
mod gpu;
mod latency;
mod on_gpu;

use flowgraph::Loops;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::Flow;
use crate::llvm::{Function, Instruction, Value};

pub(crate) use self::busy::{Busy, accesses_global, address};
pub(crate) use self::fetches::{Choices, is_comparison, is_library_call};
pub(crate) use self::gpu::calls;
pub(crate) use self::on_gpu::OnGpu;

/// How often a loop is taken to run if nothing says how often: the usual guess of compilers without a profile, between
/// LLVM's 32 : 1 odds of staying in a loop and the 4 to 8 of unrolled ones.
const TRIPS: i64 = 10;

/// The cost of a function whose code is not here. `write` and `malloc` take some hundred instructions, `sqrt` some ten;
/// the cheap end is taken, so that unknown callees alone do not justify large changes.
const UNKNOWN: i64 = 40;

/// No callee counts for more, so that sums do not overflow.
const MOST: i64 = 1_000_000;

/// What code costs.
///
/// `beside` says about an instruction that uses another one whether both stay in one block, where one may become an
/// operand of the other.
pub trait CostModel: Sync {
    /// How many fetches an instruction is.
    fn fetches<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64;

    /// How many fetches one instruction for two is, that bring different second operands.
    fn fetches_of_joined<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        self.fetches(i, beside)
    }

    /// How many fetches choices by one condition are, side by side in the code, where lanes of both sides come by.
    fn fetches_of_choices<'m>(&self, choices: &[(Value<'m>, Value<'m>)]) -> i64;

    /// How many copies of operands an instruction needs first, because its result takes the place of one. `is_free`
    /// says about an operand, by its number, whether it is in a register and nobody needs it afterwards.
    fn copies<'m>(
        &self,
        _i: Instruction<'m>,
        _beside: &dyn Fn(Instruction<'m>) -> bool,
        _is_free: &dyn Fn(usize) -> bool,
    ) -> i64 {
        0
    }

    /// How many fetches more a choice between two values is that both live on: one is destroyed by it.
    fn copies_of_choice(&self, _of: Value<'_>) -> i64 {
        0
    }

    /// How many cycles pass until the result of an instruction can be used.
    fn latency<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64;

    /// How many fetches a look at the condition and a jump over code are.
    fn guard(&self) -> i64 {
        2
    }

    /// What one instruction counts.
    fn unit(&self) -> i64 {
        1
    }

    /// How many fetches the jump past the other side is, where both sides of a branch have code.
    fn jump(&self) -> i64 {
        1
    }

    /// Whether it says what code for a target, named as LLVM names it, costs.
    fn is_for(&self, _target: &str) -> bool {
        true
    }

    /// What a function costs whose code is not here.
    fn unknown_callee(&self) -> Cost {
        Cost { fetches: UNKNOWN, latency: UNKNOWN }
    }
}

/// What something costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cost {
    /// Fetches of a warp.
    pub fetches: i64,
    /// Cycles, where each instruction waits for the one before.
    pub latency: i64,
}

impl Cost {
    /// Both so many times, at most [`MOST`].
    fn times(self, n: i64) -> Cost {
        let times = |one: i64| one.saturating_mul(n).min(MOST);
        Cost { fetches: times(self.fetches), latency: times(self.latency) }
    }

    /// Both together, at most [`MOST`].
    fn and(self, other: Cost) -> Cost {
        let sum = |one: i64, other: i64| one.saturating_add(other).min(MOST);
        Cost { fetches: sum(self.fetches, other.fetches), latency: sum(self.latency, other.latency) }
    }
}

/// x86-64 as clang takes it without `-march`.
pub struct X86_64;

impl CostModel for X86_64 {
    fn fetches<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        fetches::fetches(i, beside)
    }

    fn fetches_of_joined<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        fetches::fetches_of_joined(i, beside)
    }

    fn fetches_of_choices<'m>(&self, choices: &[(Value<'m>, Value<'m>)]) -> i64 {
        Choices::of(choices.iter().copied()).fetches()
    }

    fn copies<'m>(
        &self,
        i: Instruction<'m>,
        beside: &dyn Fn(Instruction<'m>) -> bool,
        is_free: &dyn Fn(usize) -> bool,
    ) -> i64 {
        fetches::copies(i, beside, is_free)
    }

    fn copies_of_choice(&self, of: Value<'_>) -> i64 {
        fetches::registers(of.type_of())
    }

    fn is_for(&self, target: &str) -> bool {
        target.is_empty() || target.starts_with("x86_64")
    }

    fn latency<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        latency::latency(i, beside)
    }
}

/// Costs of functions, remembered.
pub(crate) struct Callees<'m> {
    model: &'static dyn CostModel,
    known: FxHashMap<Value<'m>, Cost>,
    open: FxHashSet<Value<'m>>,
}

impl<'m> Callees<'m> {
    pub(crate) fn by(model: &'static dyn CostModel) -> Callees<'m> {
        Callees { model, known: FxHashMap::default(), open: FxHashSet::default() }
    }

    /// The estimated cost of a call of this function: its instructions, each loop around them counted as [`TRIPS`]
    /// iterations, including what they call; a recursive call counts as many iterations too.
    pub(crate) fn of(&mut self, callee: Value<'m>) -> Cost {
        let Some(function) = callee.as_defined_function() else {
            // Lanes wait there, whoever calls it.
            let waits = callee.is_function() && callee.name() == "pthread_barrier_wait";
            return if waits { Cost::default() } else { self.model.unknown_callee() };
        };
        if let Some(&cost) = self.known.get(&callee) {
            return cost;
        }
        if !self.open.insert(callee) {
            return Cost { fetches: TRIPS, latency: TRIPS };
        }
        let cost = self.of_body(function);
        self.open.remove(&callee);
        self.known.insert(callee, cost);
        cost
    }

    fn of_body(&mut self, function: Function<'m>) -> Cost {
        let flow = Flow::of(function);
        let loops = Loops::of(flow.graph());
        let mut total = Cost::default();
        let mut recursive = false;
        for &block in flow.blocks() {
            let mut inside = Cost::default();
            for i in block.instructions() {
                let beside = |other: Instruction<'m>| other.block() == Some(block);
                let (fetches, latency) = (self.model.fetches(i, &beside), self.model.latency(i, &beside));
                inside = inside.and(Cost { fetches, latency });
                let callee = i.callee().or_else(|| i.invoked());
                if let Some(callee) = callee.filter(|c| !c.is_intrinsic() && !c.is_inline_assembly()) {
                    recursive |= self.open.contains(&callee);
                    inside = inside.and(self.of(callee));
                }
            }
            let turns = TRIPS.saturating_pow(loops.depth(flow.node(block)).min(6));
            total = total.and(inside.times(turns));
        }
        if recursive { total.times(TRIPS) } else { total }
    }
}

#[cfg(test)]
mod tests;
