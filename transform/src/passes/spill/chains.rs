//! How much memory the calls that a warp can be in at once share.

use flowgraph::{Builder, Components, Graph, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Plan, rewrite};
use crate::llvm::{Function, Module, Opcode};

/// Which functions of a module call which; what is called through a pointer may be any function whose address is used.
fn calls<'m>(module: &'m Module) -> (Vec<Function<'m>>, Graph) {
    let functions = module.functions();
    let numbers: FxHashMap<Function<'m>, NodeId> =
        functions.iter().enumerate().map(|(i, f)| (*f, NodeId(i as u32))).collect();
    // One node stands for all that is called through pointers, and leads to those whose address is used.
    let pointers = NodeId(functions.len() as u32);
    let mut graph = Builder::new(functions.len() + 1);
    for (function, &number) in &numbers {
        let value = function.as_value();
        let (users, complete) = value.users_in_code();
        let is_passed = |i: &crate::llvm::Instruction<'m>| i.callee() != Some(value) || i.arguments().contains(&value);
        if !complete || users.iter().any(is_passed) {
            graph.edge(pointers, number);
        }
        for i in function.blocks().into_iter().flat_map(|block| block.instructions()) {
            if !matches!(i.opcode(), Opcode::LLVMCall | Opcode::LLVMInvoke) {
                continue;
            }
            match i.callee() {
                Some(callee) if callee.is_function() => {
                    if let Some(to) = callee.as_defined_function().and_then(|f| numbers.get(&f)) {
                        graph.edge(number, *to);
                    }
                }
                Some(callee) if callee.is_inline_assembly() => {}
                _ => {
                    graph.edge(number, pointers);
                }
            }
        }
    }
    let graph = graph.build(NodeId(0));
    (functions, graph)
}

/// The functions that can be called again before they return.
pub(super) fn recursive(module: &Module) -> FxHashSet<Function<'_>> {
    let (functions, graph) = calls(module);
    let components = Components::of(&graph);
    let again = |i: usize| components.is_cyclic(components.component(NodeId(i as u32)));
    functions.iter().enumerate().filter(|(i, _)| again(*i)).map(|(_, f)| *f).collect()
}

/// The most bytes that a chain of calls shares.
pub(super) fn deepest(module: &Module, plans: &[Plan<'_>]) -> u64 {
    let (functions, graph) = calls(module);
    let bytes: FxHashMap<Function<'_>, u64> = plans.iter().map(|p| (p.function, rewrite::room(p).1)).collect();
    let components = Components::of(&graph);
    let mut below = vec![0u64; components.count()];
    let mut most = 0;
    // Callees first. In a cycle nothing is shared.
    for id in components.ids().rev() {
        let mut own = 0;
        let mut deepest = 0;
        for node in components.members(id) {
            own += functions.get(node.index()).and_then(|f| bytes.get(f)).copied().unwrap_or(0);
            for &next in graph.successors(*node) {
                let next = components.component(next);
                if next != id {
                    deepest = deepest.max(below[next.index()]);
                }
            }
        }
        below[id.index()] = own + deepest;
        most = most.max(own + deepest);
    }
    most
}
