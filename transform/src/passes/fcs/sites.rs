//! The calls of a function that could be fused with others.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::Reason;
use crate::llvm::{Block, Function, Instruction, Opcode, Value};
use crate::{alike, cost};

/// A call of a function or function pointer.
#[derive(Clone, Copy)]
pub(super) struct Site<'m> {
    pub(super) call: Instruction<'m>,
    pub(super) callee: Value<'m>,
    pub(super) block: Block<'m>,
}

/// The calls of real functions, and of intrinsics that become such, in the order of the blocks; those that do not
/// return are left out.
pub(super) fn of(function: Function<'_>) -> Vec<Site<'_>> {
    all(function).into_iter().filter(|site| !site.call.call_has("noreturn")).collect()
}

/// How many calls do not return, of functions that are called so more than once: nothing is gained by their fusion.
pub(super) fn endless(function: Function<'_>) -> usize {
    let mut calls: FxHashMap<Value, usize> = FxHashMap::default();
    for site in all(function).into_iter().filter(|site| site.call.call_has("noreturn")) {
        *calls.entry(site.callee).or_default() += 1;
    }
    calls.into_values().filter(|&count| count > 1).sum()
}

fn all(function: Function<'_>) -> Vec<Site<'_>> {
    let mut sites = Vec::new();
    for block in function.blocks() {
        for call in block.instructions() {
            let Some(callee) = call.callee().or_else(|| call.invoked()) else { continue };
            if !callee.is_inline_assembly() && (!callee.is_intrinsic() || cost::is_library_call(call)) {
                sites.push(Site { call, callee, block });
            }
        }
    }
    sites
}

/// Whether any callee has two sites: without, there is nothing to look for.
pub(super) fn has_two_of_one_callee(sites: &[Site<'_>]) -> bool {
    let mut seen = FxHashSet::default();
    sites.iter().any(|site| !seen.insert(site.callee))
}

impl Site<'_> {
    /// Why it cannot be fused with any other, if so.
    pub(super) fn obstacle(&self) -> Option<Reason> {
        self.call_obstacle().or_else(|| self.split_obstacle())
    }

    fn call_obstacle(&self) -> Option<Reason> {
        let call = self.call;
        if call.opcode() == Opcode::LLVMInvoke {
            return Some(Reason::MayUnwind);
        }
        if call.must_be_tail() {
            return Some(Reason::MustBeTail);
        }
        if call.has_bundles() {
            return Some(Reason::Bundles);
        }
        if alike::is_convergent(call) {
            return Some(Reason::Convergent);
        }
        if call.call_has("returns_twice") {
            return Some(Reason::ReturnsTwice);
        }
        if call.call_has("nomerge") {
            return Some(Reason::NoMerge);
        }
        if call.arguments().iter().any(|a| !a.type_of().is_first_class()) {
            return Some(Reason::UnjoinableArgument);
        }
        None
    }

    /// Why its block cannot be split before the call, if so.
    fn split_obstacle(&self) -> Option<Reason> {
        if self.block.has_address() {
            return Some(Reason::AddressTaken);
        }
        if self.block.is_handler() {
            return Some(Reason::InHandler);
        }
        let fixed = |t: Instruction<'_>| matches!(t.opcode(), Opcode::LLVMIndirectBr | Opcode::LLVMCallBr);
        self.block.entering().into_iter().any(fixed).then_some(Reason::EnteredByAssembly)
    }
}
