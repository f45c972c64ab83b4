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
//!    a fused one find the fused block's branch as theirs.
//! 5. [`crate::ssa`] gives each use a definition that dominates it.
//!
//! # Why the meaning is kept
//! After the fused call control goes where it came from: by the branch's own condition where each side is reached by
//! one edge of the branch only, else by a phi that is true on one side. So each run takes the same instructions in the
//! same order as before, plus jumps, phis and the guard. Attributes and metadata of the fused call are those that both
//! calls had; calls that pass values in different ways are left.
//!
//! The fused call is marked `noduplicate`, or jump threading in a later optimiser run would undo the fusion.
//!
//! # Limitation
//! Which branches diverge is not analysed: lanes that stay together pay for the jumps and the guard. Calls in a loop
//! that does not contain the branch, calls that may unwind into a handler (`invoke`), tail calls that must be jumps,
//! inline assembly, and intrinsics that are no calls of the library in the end, are left; so is a call in one arm whose
//! partner stands behind the join, where every path comes by. A pair is looked for among the next [`pairs::WINDOW`]
//! calls of the same function only.
//!
//! Source: Teixeira, Collange, Pereira, *Fusion of calling sites*, SBAC-PAD 2015, figures 2 and 3. That paper asks for
//! two disjoint paths from the branch to its post-dominator; here neither call may be reached from the other, which
//! also covers arms that return.

mod fuse;
mod pairs;
mod sites;

use crate::cost::Callees;
use crate::llvm::{Function, Module};
use crate::registry::Options;
use crate::{Candidate, Result, Verdict, ssa};

/// The name in the registry.
const NAME: &str = "fcs";

/// Fuses in every function.
pub(crate) fn run(module: &mut Module, options: &Options) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    let mut changed = false;
    {
        let mut costs = Callees::default();
        let mut endless = 0;
        for function in module.functions_to_optimise() {
            endless += sites::endless(function);
            changed |= in_function(function, &mut costs, options, &mut candidates);
        }
        if endless > 0 {
            candidates.push(Candidate {
                pass: NAME,
                function: module.source_name(),
                subject: format!("{endless} calls of functions that are called more than once"),
                places: Vec::new(),
                verdict: Verdict::Left("the callee does not return, so nothing is gained".to_owned()),
            });
        }
    }
    if changed {
        module.run_passes(ssa::MEMORY_TO_REGISTERS)?;
    }
    Ok(candidates)
}

/// Fuses what is worth it in a function; says whether it changed.
fn in_function<'m>(
    function: Function<'m>,
    costs: &mut Callees<'m>,
    options: &Options,
    candidates: &mut Vec<Candidate>,
) -> bool {
    let mut branches = Vec::new();
    loop {
        let sites = sites::of(function);
        if !sites::has_two_of_one_callee(&sites) {
            break;
        }
        let round = pairs::of(function, &sites, costs);
        let mut left = Vec::new();
        let taken = round.pairs().iter().find(|pair| match round.judge(pair, costs, options) {
            Ok(_) => true,
            Err(why) => {
                left.push(pair.candidate(function, why));
                false
            }
        });
        let Some(pair) = taken else {
            candidates.append(&mut left);
            break;
        };
        candidates.push(pair.taken(function, &round, costs));
        branches.push(pair.branch_block());
        fuse::fuse(pair, &round);
    }
    if !branches.is_empty() {
        ssa::repair(function, &branches);
    }
    !branches.is_empty()
}
