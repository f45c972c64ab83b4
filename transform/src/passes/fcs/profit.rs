//! What a call costs, and what its fusion adds.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::Flow;
use crate::llvm::{Function, Opcode, Value};

/// How often a loop is taken to run where nothing says how often: the usual guess of compilers without a profile, between LLVM's 32 : 1
/// odds of staying in a loop and the 4 to 8 of unrolled ones.
const TRIPS: u64 = 10;

/// What a function costs whose code is not here: `write` and `malloc` take some hundred instructions, `sqrt` some ten; the cheap end is taken, so
/// that unknown callees alone do not justify large changes.
const UNKNOWN: u64 = 40;

/// No callee counts for more, so that sums do not overflow.
const MOST: u64 = 1_000_000;

/// Costs of functions, in instructions, remembered.
#[derive(Default)]
pub(super) struct Costs<'m> {
    known: FxHashMap<Value<'m>, u64>,
    open: FxHashSet<Value<'m>>,
}

impl<'m> Costs<'m> {
    /// How many instructions a call of this function is guessed to execute: its instructions, each loop around them counted as
    /// [`TRIPS`] turns, what they call included; a recursive call counts as many turns too.
    pub(super) fn of(&mut self, callee: Value<'m>) -> u64 {
        let Some(function) = callee.as_defined_function() else { return UNKNOWN };
        if let Some(&cost) = self.known.get(&callee) {
            return cost;
        }
        if !self.open.insert(callee) {
            return TRIPS;
        }
        let cost = self.of_body(function);
        self.open.remove(&callee);
        self.known.insert(callee, cost);
        cost
    }

    fn of_body(&mut self, function: Function<'m>) -> u64 {
        let flow = Flow::of(function);
        let loops = flow.loops();
        let mut total = 0_u64;
        let mut recursive = false;
        for &block in flow.blocks() {
            let mut inside = 0_u64;
            for instruction in block.instructions() {
                if instruction.is_phi() {
                    continue;
                }
                inside += 1;
                let callee = match instruction.opcode() {
                    Opcode::LLVMCall => instruction.callee(),
                    Opcode::LLVMInvoke => instruction.operands().last().copied(),
                    _ => None,
                };
                if let Some(callee) = callee.filter(|c| !c.is_intrinsic() && !c.is_inline_assembly()) {
                    recursive |= self.open.contains(&callee);
                    inside += self.of(callee);
                }
            }
            let turns = TRIPS.saturating_pow(loops.depth(flow.node(block)).min(6));
            total = total.saturating_add(inside.saturating_mul(turns)).min(MOST);
        }
        if recursive { total.saturating_mul(TRIPS).min(MOST) } else { total }
    }
}
