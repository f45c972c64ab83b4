//! The boolean analysis: a value is uniform or divergent, nothing else.
//!
//! Source: Coutinho, Sampaio, Pereira and Meira, *Divergence analysis and optimizations*, PACT 2011: what depends on
//! the thread's number, by data or through the predicate of a γ or η, is divergent. It is the baseline of the paper's
//! figures 7 and 8.

use crate::{Class, Decision, Fact, Gated, Memory, Mode, NodeRef, Op, Return, ValueId};

/// Which nodes of a gated form may differ between threads.
#[derive(Clone, Debug)]
pub struct Boolean {
    divergent: Vec<bool>,
}

impl Boolean {
    /// Analyses a function. Time linear in the dependence graph.
    #[must_use]
    pub fn of(gated: &Gated, mode: Mode) -> Boolean {
        let dependents = gated.dependents();
        let mut divergent = vec![false; gated.count()];
        let mut todo: Vec<NodeRef> = Vec::new();
        let mut mark = |node: NodeRef, todo: &mut Vec<NodeRef>| {
            let made = gated.block(node).is_none_or(|b| gated.gates().dominators().depth(b).is_some());
            if made
                && !matches!(gated.op(node), Op::Store(..))
                && !std::mem::replace(&mut divergent[node.index()], true)
            {
                todo.push(node);
            }
        };
        let mut parted = vec![false; gated.function().graph().node_count()];
        let mut blocks: Vec<u32> = Vec::new();
        for block in gated.function().graph().nodes() {
            if gated.decision(block) == Decision::Unknown && gated.gates().dominators().depth(block).is_some() {
                blocks.push(block.0);
            }
        }
        for i in 0..gated.count() {
            if is_source(gated.op(ValueId(i as u32)), mode) {
                mark(ValueId(i as u32), &mut todo);
            }
        }
        loop {
            while let Some(block) = blocks.pop() {
                if std::mem::replace(&mut parted[block as usize], true) {
                    continue;
                }
                for &gate in dependents.gates.of(block as usize) {
                    for &node in dependents.gated.of(gate as usize) {
                        mark(ValueId(node), &mut todo);
                    }
                }
            }
            let Some(node) = todo.pop() else { break };
            for &user in dependents.users.of(node.index()) {
                if passes(gated.op(ValueId(user))) {
                    mark(ValueId(user), &mut todo);
                }
            }
            blocks.extend(dependents.branches.of(node.index()));
        }
        Boolean { divergent }
    }

    /// Uniform or divergent.
    #[must_use]
    pub fn class(&self, node: NodeRef) -> Class {
        if self.divergent[node.index()] { Class::Divergent } else { Class::Uniform }
    }
}

fn is_source(op: &Op, mode: Mode) -> bool {
    match op {
        Op::Thread { .. } | Op::Divergent | Op::Atomic(_) | Op::Load(_, Memory::Private) => true,
        Op::Load(_, Memory::Shared) => mode == Mode::Async,
        Op::Given(fact) | Op::Load(_, Memory::Record(fact)) => !fact.is_uniform(),
        Op::Call(Return::Divergent, _) => true,
        Op::Call(Return::Fact(fact), _) => *fact == Fact::Divergent || !fact.is_uniform(),
        _ => false,
    }
}

/// Whether a divergent operand makes the result divergent.
fn passes(op: &Op) -> bool {
    !matches!(op, Op::Call(Return::Uniform, _) | Op::Load(_, Memory::Record(_)))
}
