//! What melding saves of a GPU's time. A GPU works at instructions, at its cache and at stores at once, so that fewer
//! instructions gain nothing where the function is bound by its memory ([`Busy`]).
//!
//! Two accesses become one instruction. Where its address is chosen, in global memory the lanes of the two sides go to
//! two places: as many transactions as before. Where no part of the address is chosen, as in an array that both sides
//! use, and in shared memory, which answers a lane wherever it reads, it is one access.

use std::slice;

use rustc_hash::FxHashMap;

use super::matching::joined_operands;
use super::plan::{Planner, Step, turns};
use crate::cost::{Busy, accesses_global, address};
use crate::llvm::{Instruction, Opcode, Value};
use crate::spmd::Machine;

/// How far it is looked for choices in the computation of an address.
const DEPTH: u32 = 8;

impl<'m> Planner<'_, 'm> {
    /// What accesses of memory keep a GPU busy with, apart and melded, and how many have a chosen address.
    pub(super) fn traffic(
        &self,
        steps: &[Vec<Step<'m>>],
        partner: &FxHashMap<Value<'m>, Value<'m>>,
    ) -> ([Busy; 2], usize) {
        let machine = Machine::of(self.region.head.function().module());
        let ([mut apart, mut melded], mut chosen) = ([Busy::default(); 2], 0);
        for (cell, steps) in self.candidate.cells.iter().zip(steps) {
            let weight = cell.blocks.iter().flatten().map(|&block| self.weights.of(block)).max().unwrap_or(1);
            let of = |i: &Instruction<'m>| Busy::of(*i, machine) * weight;
            for step in steps {
                let (one, other) = match step {
                    Step::Pair(a, b) => (slice::from_ref(a), slice::from_ref(b)),
                    Step::Guarded(one, other) => (&one[..], &other[..]),
                    Step::Plain(list) => (&list[..], &[][..]),
                };
                one.iter().chain(other).for_each(|i| apart += of(i));
                one.iter().for_each(|i| melded += of(i));
                if let Step::Pair(a, b) = step {
                    if !accesses_global(*a) || !self.is_chosen(address(*a), address(*b), partner, DEPTH) {
                        continue;
                    }
                    chosen += 1;
                }
                other.iter().for_each(|i| melded += of(i));
            }
        }
        ([apart, melded], chosen)
    }

    /// Whether an address, or a part of it, must be chosen. It need not be where both sides compute it by instructions
    /// that become one, from the same values or from what they loaded, which differs from lane to lane as it is.
    fn is_chosen(&self, x: Value<'m>, y: Value<'m>, partner: &FxHashMap<Value<'m>, Value<'m>>, depth: u32) -> bool {
        let is_pair = partner.get(&x) == Some(&y);
        let (Some(a), Some(b), true) = (x.as_instruction(), y.as_instruction(), is_pair) else { return x != y };
        if depth == 0 {
            return false;
        }
        let parts = match a.opcode() {
            Opcode::LLVMLoad | Opcode::LLVMCall => Vec::new(),
            Opcode::LLVMPHI => {
                let begins = |phi: Instruction<'m>| {
                    let incoming = phi.incoming().into_iter();
                    incoming.filter(|(_, from)| !self.cells.contains_key(from)).map(|(value, _)| value)
                };
                begins(a).zip(begins(b)).collect()
            }
            _ => joined_operands(a, b, &|x, y| x == y || partner.get(&x) == Some(&y)),
        };
        parts.into_iter().any(|(x, y)| self.is_chosen(x, y, partner, depth - 1))
    }

    /// What melding saves of the time of the whole function, in tenths of an instruction, each time that control comes
    /// to the branch: no more than what it saves of the instructions, since only the lanes' addresses say which
    /// transactions they share. Of code for a processor, what it saves of the instructions.
    pub(super) fn saved(&self, issued: [i64; 2], traffic: [Busy; 2]) -> i64 {
        let [apart, melded] = [0, 1].map(|at| traffic[at].issuing(issued[at]));
        let in_time = self.weights.whole.map(|whole| {
            let often = turns(self.weights.depth);
            let mut after = whole - apart * often;
            after += melded * often;
            (whole.time() - after.time()) / often
        });
        in_time.unwrap_or(i64::MAX).min(issued[0] - issued[1])
    }
}
