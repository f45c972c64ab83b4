//! `layout`: blocks in an order in which a join comes after its arms.
//!
//! ```text
//! before: head, join, else, then        after: head, then, else, join
//! ```
//!
//! A model that runs the lanes with the least pc first reconverges lanes at a join only when the join lies after both arms. Compilers lay
//! code out for the processor's front end, which likes the more frequent path in a row, whatever becomes of the other.
//!
//! # Steps
//! Number the blocks of each function in [`flowgraph::loop_order`]: topological but for back edges, the blocks of a loop in a row with its header first. Put
//! them in that order; blocks that control does not reach go last.
//!
//! # Why the meaning is kept
//! The order of blocks in IR means nothing, but for the entry, which stays the first.
//!
//! # Limitation
//! Code generation comes later. The wrapper switches off its passes that move or duplicate blocks; those that split blocks (of long
//! jumps, of calls that may throw) stay.

use crate::flow::Flow;
use crate::llvm::{Function, Module};
use crate::registry::Options;
use crate::{Candidate, Result};

/// Lays out every function.
pub(crate) fn run(module: &mut Module, _: &Options) -> Result<Vec<Candidate>> {
    module.functions_to_optimise().into_iter().for_each(lay_out);
    Ok(Vec::new())
}

fn lay_out(function: Function<'_>) {
    let flow = Flow::of(function);
    let mut last = flow.block(flow.graph().entry());
    for node in flowgraph::loop_order(flow.graph()).into_iter().skip(1) {
        let block = flow.block(node);
        block.move_after(last);
        last = block;
    }
}
