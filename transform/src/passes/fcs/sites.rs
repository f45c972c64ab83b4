//! The calls of a function that could be fused with others.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cost;
use crate::llvm::{Block, Function, Instruction, Opcode, Value};

/// A call of a function or function pointer.
#[derive(Clone, Copy)]
pub(super) struct Site<'m> {
    pub(super) call: Instruction<'m>,
    pub(super) callee: Value<'m>,
    pub(super) block: Block<'m>,
    /// Why it cannot be fused with any other.
    pub(super) obstacle: Option<&'static str>,
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
                sites.push(Site { call, callee, block, obstacle: obstacle(call) });
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

fn obstacle(call: Instruction<'_>) -> Option<&'static str> {
    if call.opcode() == Opcode::LLVMInvoke {
        return Some("a call may unwind into a handler of exceptions");
    }
    if call.must_be_tail() {
        return Some("a call must be a jump at the end of its function");
    }
    if call.has_bundles() {
        return Some("a call has operand bundles");
    }
    if call.call_has("returns_twice") {
        return Some("the callee returns twice");
    }
    if call.call_has("nomerge") {
        return Some("the calls are marked nomerge");
    }
    if call.arguments().iter().any(|a| !a.type_of().is_first_class()) {
        return Some("an argument is no value that a phi can join");
    }
    None
}

impl Site<'_> {
    /// Why its block cannot be split before the call, if so.
    pub(super) fn split_obstacle(&self) -> Option<&'static str> {
        if self.block.has_address() {
            return Some("the address of a block is taken");
        }
        if self.block.is_handler() {
            return Some("a call stands where an exception lands");
        }
        let fixed = |t: Instruction<'_>| matches!(t.opcode(), Opcode::LLVMIndirectBr | Opcode::LLVMCallBr);
        self.block.entering().into_iter().any(fixed).then_some("a block is entered by inline assembly")
    }
}
