//! `deep-branches`: says which branches other branches decide about; changes nothing.
//!
//! ```text
//! before: if (a) { if (b) f(); }        after: the same, and a remark on the branch by b
//! ```
//!
//! # Steps
//! Ask the context for control dependence; count how many branches decide about the block of each branch.
//!
//! # Why the meaning is kept
//! Nothing is changed.
//!
//! # Limitation
//! Branches of switches are not looked at.

use crate::context::Context;
use crate::llvm::Function;
use crate::remark::Reason;

/// Looks at a function.
pub(crate) fn run<'m>(_: &mut Function<'m>, context: &mut Context<'m>) {
    let depth = context.settings().number("depth");
    let (flow, dependence) = (context.flow(), context.control_dependence());
    for &block in flow.blocks().iter().filter(|block| block.terminator().condition().is_some()) {
        let above = dependence.branches(flow.node(block)).len() as i64;
        if above >= depth {
            context.remark("a branch".to_owned(), vec![block.terminator().place()], Reason::Deep { above }, None);
        }
    }
}
