//! `branch-fusion`: the two arms of a branch, merged instruction by instruction.
//!
//! ```text
//! before                              after
//!   branch c, then, else                s = select c, a, b
//! then:                                 x = s * 3
//!   x = a * 3                           branch c, only.then, next
//!   x2 = x + i                        only.then:
//!   goto join                           x2 = x + i
//! else:                                 goto next
//!   y = b * 3                         next:
//!   goto join                           p = select c, x2, x
//! join:                                 goto join
//!   p = phi [x2, then], [y, else]
//! ```
//!
//! If both arms do similar things to different values, lanes that part can do them together, each on its own values.
//! The pass is a baseline of the paper that `fcs` implements, and it stops where that begins: at calls. Calls of
//! intrinsics do not count: most are arithmetic.
//!
//! # Steps
//! 1. Find a branch whose arms are one block each, entered from it only, and go on to one join; neither calls a
//!    function.
//! 2. [`align`]: the pairs, in the order of both arms, with the highest sum of savings, less what each gap between them
//!    costs; then how many fetches the fused arms are, by [`crate::cost`], against those of the arms apart.
//! 3. [`fuse`]: put the pairs in a row after the branch's block, with a select for each operand that differs.
//!    Instructions without a partner run in between, under a branch of their own on the same condition.
//! 4. Phis of the join choose by the same condition. The pipeline gives each use a definition that dominates it.
//!
//! # Why the meaning is kept
//! Instructions of one arm keep their order, and run when they ran before. A pair always stands for the instruction
//! whose arm would have been taken, and gets its operands by the condition. Flags and metadata of a pair are those that
//! both had.
//!
//! # Limitation
//! Arms of several blocks, branches without an else, and arms with calls are left unchanged. So lanes never wait for
//! others in an arm.
//!
//! Source: Coutinho, Sampaio, Pereira, Meira, *Divergence analysis and optimizations*, PACT 2011, section 5, whose
//! instruction alignment is that of Smith and Waterman; here global, since what stands before and after the best run
//! can be paired too.

mod align;
mod fuse;

use crate::context::{Context, ONLY_DIVERGENT, THRESHOLD};
use crate::cost::CostModel;
use crate::llvm::{Block, Function, Instruction, Opcode, Value};
use crate::pass::{Pass, Run};
use crate::remark::{Aligned, Reason};
use crate::{alignment, alike};

/// Arms are aligned in time and space of the product of their lengths: this many pairs take some milliseconds.
const MOST_PAIRS: usize = 250_000;

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "branch-fusion",
    summary: "merges arms without calls instruction by instruction, with selects for operands that differ",
    source: "Coutinho, Sampaio, Pereira, Meira, PACT 2011",
    parameters: &[THRESHOLD, ONLY_DIVERGENT],
    structures: false,
    run: Run::each(run),
};

/// Fuses arms in a function.
fn run<'m>(function: &mut Function<'m>, context: &mut Context<'m>) {
    for block in function.blocks() {
        fuse_at(block, context);
    }
}

/// A branch whose arms can be fused.
struct Diamond<'m> {
    costs: &'static dyn CostModel,
    head: Block<'m>,
    condition: Value<'m>,
    arms: [Block<'m>; 2],
    join: Block<'m>,
    bodies: [Vec<Instruction<'m>>; 2],
}

fn fuse_at<'m>(head: Block<'m>, context: &mut Context<'m>) {
    // An arm of a diamond that was fused is out of the function, and empty.
    let Some(diamond) = Some(head).filter(|head| !head.is_empty()).and_then(|head| Diamond::at(head, context.costs()))
    else {
        return;
    };
    let Some((pieces, apart, fused)) = align::best(&diamond) else { return };
    let aligned = Aligned { pairs: alignment::pairs(&pieces).count(), apart, fused };
    let reason = match diamond.obstacle() {
        Some(reason) => reason,
        None if apart - fused < context.threshold() => Reason::ArmsWithoutProfit(aligned),
        None if context.only_divergent() && context.lanes_stay_together_at(head) => Reason::LanesAgree,
        None => Reason::ArmsFused(aligned),
    };
    let taken = matches!(reason, Reason::ArmsFused(_));
    let places = diamond.bodies.iter().map(|body| body.first().and_then(|i| i.place())).collect();
    context.remark("arms".to_owned(), places, reason, Some(apart - fused));
    if taken {
        fuse::fuse(&diamond, pieces, context);
    }
}

impl<'m> Diamond<'m> {
    fn at(head: Block<'m>, costs: &'static dyn CostModel) -> Option<Diamond<'m>> {
        let condition = head.terminator().condition()?;
        let arms: [Block; 2] = head.terminator().successors().try_into().ok()?;
        let is_arm = |arm: Block<'m>| {
            let jumps = arm.terminator().opcode() == Opcode::LLVMBr && arm.terminator().successors().len() == 1;
            arm.entering() == [head.terminator()] && jumps && !arm.has_address() && arm.phis().is_empty()
        };
        let joins = arms.map(|arm| arm.terminator().successors().first().copied());
        let join = joins[0].filter(|_| arms[0] != arms[1] && joins[0] == joins[1])?;
        if !arms.into_iter().all(is_arm) || arms.contains(&join) || join == head {
            return None;
        }
        let bodies = arms.map(|arm| {
            let mut body = arm.instructions();
            body.pop();
            body
        });
        let movable = |i: &Instruction<'m>| {
            let stays = i.must_be_tail() || i.has_bundles() || i.begins_handler();
            !stays && (i.type_of().is_void() || i.type_of().is_first_class())
        };
        let small = bodies[0].len() * bodies[1].len() <= MOST_PAIRS;
        (small && bodies.iter().flatten().all(movable)).then_some(Diamond {
            costs,
            head,
            condition,
            arms,
            join,
            bodies,
        })
    }

    /// Why its arms are left, whatever could be gained.
    fn obstacle(&self) -> Option<Reason> {
        if self.bodies.iter().flatten().any(|i| alike::is_convergent(*i)) {
            return Some(Reason::Convergent);
        }
        let callees = self.bodies.iter().flatten().filter_map(|i| i.callee());
        let callee = callees.into_iter().find(|callee| !callee.is_intrinsic())?;
        let name = if callee.is_function() { callee.name() } else { "what is no named function".to_owned() };
        Some(Reason::ArmCalls(name))
    }
}
