//! `layout`: blocks in an order in which a join comes after its arms.
//!
//! ```text
//! before: head, join, else, then        after: head, then, else, join
//! ```
//!
//! A model that runs the lanes with the least pc first reconverges lanes at a join only when the join lies after both
//! arms. Compilers lay code out for the processor's front end, which likes the more frequent path in a row, whatever
//! becomes of the other.
//!
//! # Steps
//! Number the blocks of each function in [`flowgraph::loop_order`]: topological except for back edges, the blocks of a
//! loop contiguous, with its header first. Put them in that order; blocks that control does not reach go last.
//!
//! # Why the meaning is kept
//! The order of blocks in IR has no meaning, except that the entry stays the first.
//!
//! # Limitation
//! Code generation comes later. The wrapper switches off its passes that move or duplicate blocks; those that split
//! blocks (of long jumps, of calls that may throw) stay.

use crate::context::Context;
use crate::llvm::Function;
use crate::pass::{Pass, Run};

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "layout",
    summary: "puts blocks in topological order with loops in a row, so that min-pc models reconverge at joins",
    source: "Bourdoncle, FMPA 1993",
    parameters: &[],
    structures: false,
    run: Run::each(run),
};

/// Lays out a function.
fn run<'m>(_: &mut Function<'m>, context: &mut Context<'m>) {
    let (flow, loops) = (context.flow(), context.loops());
    let mut last = flow.block(flow.graph().entry());
    for &node in loops.order().iter().skip(1) {
        let block = flow.block(node);
        block.move_after(last);
        last = block;
    }
}
