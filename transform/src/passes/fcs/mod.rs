//! `fcs`: fusion of calling sites.
//!
//! ```text
//! before                              after
//!   branch c, then, else                branch c, then, else
//! then:                               then:
//!   m = id * 1000                       m = id * 1000
//!   q1 = call divide(m, 1)              goto fused
//!   goto join                         else:
//! else:                                 n = id * 2000
//!   n = id * 2000                       goto fused
//!   q2 = call divide(n, 2)            fused:
//!   call note(n)                        a = phi [m, then], [n, else]
//!   goto join                           b = phi [1, then], [2, else]
//! join:                                 q = call divide(a, b)
//!   q = phi [q1, then], [q2, else]      branch c, join, else.rest
//!                                     else.rest:
//!                                       call note(n)
//!                                       goto join
//! ```
//!
//! Lanes that part at a branch and call the same function on both sides run it twice, one side after the other. With
//! one call for both sides they run it once, together.
//!
//! # Steps
//! 1. [`sites`]: the calls of a function that can be moved at all.
//! 2. [`pairs`]: two calls of the same function or function pointer that stand on different paths from a branch,
//!    neither reached from the other without passing the branch again; the innermost branch first, there the most
//!    expensive callee, of its calls the nearest.
//! 3. [`crate::cost`]: what the callee costs against what the fusion adds.
//! 4. [`fuse`]: the surgery. Then from 1 again, until no pair is left: a fused call may be fused again, and calls after
//!    a fused one find the fused block's branch as theirs. In functions with thousands of calls, one pair at a time
//!    would take time that grows with the square of their size. So after [`MOST_LOOKS`] looks at pairs and blocks, all
//!    pairs that lie side by side are fused at once, [`MOST_ROUNDS`] times.
//! 5. The pipeline gives each use a definition that dominates it.
//!
//! # Why the meaning is kept
//! After the fused call, control goes back to its own side: by the branch's own condition, if each side is reached by
//! one edge of the branch only; else by a phi that is true on one side. So each run takes the same instructions in the
//! same order as before, plus jumps, phis and the guard. The fused call keeps the attributes and metadata that both
//! calls had; calls that pass values in different ways are left unchanged.
//!
//! The fused call is marked `noduplicate`, or jump threading in a later optimiser run would undo the fusion.
//!
//! # Limitation
//! Calls that must not depend on more branches than before (`convergent`: barriers of GPUs, and what holds them) stay
//! apart, as do calls on whose paths such a call stands: the guard would be one more branch around it, and a fused one
//! would be made by other lanes together.
//!
//! Left unchanged are also calls at which lanes would be held that have what others in front of it wait for, or in
//! which lanes of both sides would wait for each other (`crate::waits`): calls in critical sections, and of what holds
//! one.
//!
//! Lanes that stay together pay for the jumps and the guard, unless the divergence analysis proves it
//! (`only-divergent`); it sees one file, and needs thread numbers in it. Unchanged are: calls in a loop that does not
//! contain the branch, calls that may unwind into a handler (`invoke`), tail calls that must be jumps, inline assembly,
//! and intrinsics that do not become library calls. Unchanged is also a call in one arm whose partner stands after the
//! join, on every path. A partner is looked for among the next [`pairs::WINDOW`] calls of the same function only.
//!
//! Source: Teixeira, Collange, Pereira, *Fusion of calling sites*, SBAC-PAD 2015, figures 2 and 3. That paper asks for
//! two disjoint paths from the branch to its post-dominator; here neither call may be reached from the other, which
//! also covers arms that return.

mod fuse;
mod pairs;
mod reach;
mod sites;

use rustc_hash::FxHashMap;

use self::pairs::{Fusion, Pair, Round, Wanted};
use crate::context::{Context, ONLY_DIVERGENT, THRESHOLD};
use crate::llvm::{Function, Instruction, Module};
use crate::pass::{Pass, Run};
use crate::remark::Reason;

/// How much is looked at while pairs are fused one at a time, in pairs (see [`pairs::Round::looks`]), and
/// [`LOOKS_OF_A_BLOCK`] more for each block of the function: about as long as clang takes for it. Beyond that, pairs
/// are fused side by side.
const LOOKS: usize = 1 << 16;
const LOOKS_OF_A_BLOCK: usize = 1 << 6;

/// Beyond so many times that, the rest stays unchanged, with a remark: time grows linearly with the function.
const MOST_LOOKS: usize = 8;

/// So often are pairs fused that lie side by side: enough for a switch of 2^16 cases that all call, whose calls become
/// half as many each time.
const MOST_ROUNDS: usize = 16;

/// One phi may come for so many instructions of a function: values that are used behind a fused call need one each,
/// and one more at each fused call on the way, so that an interpreter whose cases call the same functions would become
/// several times its size. Code generation makes up to two moves of a phi.
const SIZE_OF_A_PHI: usize = 4;

/// Smaller functions may get as many as one of so many instructions.
const LEAST_SIZE: usize = 64;

/// How many phis may still come, and what was found out about pairs.
struct Room<'m> {
    left: usize,
    /// Pairs that were left, by their calls: for want of room, of which there is never more later, or of profit, which
    /// is looked for again when nothing else is left.
    refused: FxHashMap<[Instruction<'m>; 2], Reason>,
}

impl<'m> Room<'m> {
    fn of(function: Function<'m>) -> Room<'m> {
        let size: usize = function.blocks().into_iter().map(|block| block.len()).sum();
        Room { left: size.max(LEAST_SIZE) / SIZE_OF_A_PHI, refused: FxHashMap::default() }
    }

    /// The verdict over a pair, where there is room for it; then that is taken.
    fn judge(
        &mut self,
        round: &Round<'m>,
        pair: &Pair,
        wanted: Wanted,
        context: &Context<'m>,
    ) -> Result<Fusion, Reason> {
        let calls = round.sites(pair).map(|site| site.call);
        if let Some(reason) = self.refused.get(&calls) {
            return Err(reason.clone());
        }
        let most = if wanted == Wanted::All { usize::MAX } else { self.left };
        let verdict = match round.judge(pair, most, context) {
            Ok(fusion) if fusion.phis > self.left => {
                Err(Reason::GrowsTooMuch { added: 2 * fusion.phis, most: 2 * self.left })
            }
            verdict => verdict,
        };
        match &verdict {
            Ok(fusion) => self.left -= fusion.phis,
            Err(reason @ (Reason::GrowsTooMuch { .. } | Reason::CallsWithoutProfit { .. })) => {
                self.refused.insert(calls, reason.clone());
            }
            Err(_) => {}
        }
        verdict
    }

    /// Has profit be looked for again.
    fn look_again(&mut self) {
        self.refused.retain(|_, reason| matches!(reason, Reason::GrowsTooMuch { .. }));
    }
}

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "fcs",
    summary: "fuses calls of one function that stand on the two sides of a branch into one call",
    source: "Teixeira, Collange, Pereira, SBAC-PAD 2015",
    parameters: &[THRESHOLD, ONLY_DIVERGENT],
    structures: false,
    run: Run::Functions { before: None, each: run, after: Some(remark_on_endless_calls) },
};

/// Fuses what is worth it in a function.
fn run<'m>(function: &mut Function<'m>, context: &mut Context<'m>) {
    let (mut looks, mut rounds) = (0, 0);
    let most_looks = LOOKS + LOOKS_OF_A_BLOCK * function.blocks().len();
    let mut room = Room::of(*function);
    let mut wanted = Wanted::Possible;
    let mut sites = sites::of(*function);
    while sites::has_two_of_one_callee(&sites) {
        let round = pairs::of(context, sites.clone(), wanted);
        looks += round.looks();
        let one_at_a_time = looks <= most_looks;
        let mut left = Vec::new();
        let taken = if one_at_a_time {
            let judged = round.pairs().iter().map(|pair| (pair, room.judge(&round, pair, wanted, context)));
            let mut taken = Vec::new();
            for (pair, verdict) in judged {
                match verdict {
                    Ok(fusion) => {
                        taken.push((*pair, fusion));
                        break;
                    }
                    Err(reason) => left.push((*pair, reason)),
                }
            }
            taken
        } else {
            rounds += 1;
            if rounds > MOST_ROUNDS || looks > MOST_LOOKS * most_looks {
                let left = round.pairs().len();
                context.remark("calls of one function".to_owned(), Vec::new(), Reason::GoneOver { left }, None);
                break;
            }
            round.side_by_side(|pair| match room.judge(&round, pair, wanted, context) {
                Ok(fusion) => Some(fusion),
                Err(reason) => {
                    left.push((*pair, reason));
                    None
                }
            })
        };
        if taken.is_empty() {
            if std::mem::replace(&mut wanted, Wanted::All) == Wanted::Possible {
                room.look_again();
                continue;
            }
            for (pair, reason) in left {
                round.remark(&pair, reason, context);
            }
            break;
        }
        for (pair, fusion) in &taken {
            round.remark_on_taken(pair, *fusion, context);
        }
        // How control returns is decided before anything changes.
        let guards: Vec<_> = taken.iter().map(|(pair, _)| round.guard(pair)).collect();
        for ((pair, _), guard) in taken.iter().zip(guards) {
            let branch = round.branch_block(pair);
            let fused = fuse::fuse(round.sites(pair), branch, guard);
            context.joined(branch, fused);
        }
        (sites, wanted) = (sites::of(*function), Wanted::Possible);
    }
}

/// A remark on the calls in all functions that do not return.
fn remark_on_endless_calls<'m>(module: &'m Module, context: &mut Context<'m>) {
    let endless: usize = module.functions_to_optimise().into_iter().map(sites::endless).sum();
    if endless > 0 {
        let subject = format!("{endless} calls of functions that are called more than once");
        context.remark_on_module(module.source_name(), subject, Reason::Endless);
    }
}
