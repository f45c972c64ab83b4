//! The dependence graph backwards: which nodes to evaluate again when something changes.

use crate::{Decision, GateId, Gated, ValueId};

/// Lists by a dense key, in one array.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    starts: Vec<u32>,
    all: Vec<u32>,
}

impl Lists {
    /// `pairs` has keys below `keys`.
    fn new(keys: usize, pairs: &[(u32, u32)]) -> Lists {
        let mut starts = vec![0u32; keys + 1];
        for (key, _) in pairs {
            starts[*key as usize + 1] += 1;
        }
        for i in 0..keys {
            starts[i + 1] += starts[i];
        }
        let (mut next, mut all) = (starts.clone(), vec![0; pairs.len()]);
        for (key, value) in pairs {
            all[next[*key as usize] as usize] = *value;
            next[*key as usize] += 1;
        }
        Lists { starts, all }
    }

    pub(crate) fn of(&self, key: usize) -> &[u32] {
        &self.all[self.starts[key] as usize..self.starts[key + 1] as usize]
    }
}

/// The dependence graph backwards.
#[derive(Debug, Default)]
pub(crate) struct Dependents {
    /// By node: the nodes that it is an operand of.
    pub(crate) users: Lists,
    /// By node: the blocks whose branch it decides.
    pub(crate) branches: Lists,
    /// By block: its gates.
    pub(crate) gates: Lists,
    /// By gate: its nodes.
    pub(crate) gated: Lists,
    /// All nodes in the best order of evaluation: in the order of control flow, each loop contiguous, an η right after
    /// its operand.
    pub(crate) order: Vec<ValueId>,
    /// By node: its place there.
    pub(crate) places: Vec<u32>,
}

impl Dependents {
    pub(crate) fn of(gated: &Gated) -> Dependents {
        let (mut users, mut branches, mut gates, mut members) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for i in 0..gated.count() {
            let node = ValueId(i as u32);
            gated.op(node).each_operand(|v| users.push((v.0, node.0)));
            if let Some(gate) = gated.gate(node) {
                members.push((gate.0, node.0));
            }
            let around = gated.block(node).and_then(|block| gated.gates().irreducible(block));
            if let Some(gate) = around {
                members.push((gate.0, node.0));
            }
        }
        for block in gated.function().graph().nodes() {
            if let Decision::By(node) = gated.decision(block) {
                branches.push((node.0, block.0));
            }
        }
        for gate in (0..gated.gates().count() as u32).map(GateId) {
            gates.extend(gated.gates().deciders(gate).iter().map(|block| (block.0, gate.0)));
        }
        let order = order(gated);
        let mut places = vec![0; order.len()];
        for (place, node) in order.iter().enumerate() {
            places[node.index()] = place as u32;
        }
        Dependents {
            order,
            places,
            users: Lists::new(gated.count(), &users),
            branches: Lists::new(gated.count(), &branches),
            gates: Lists::new(gated.function().graph().node_count(), &gates),
            gated: Lists::new(gated.gates().count(), &members),
        }
    }
}

/// The order of [`Dependents::order`]: values without a block; then those of the blocks in the order of control flow;
/// then those of blocks that control does not reach. The η of a value comes right after it.
fn order(gated: &Gated) -> Vec<ValueId> {
    let function = gated.function();
    let of = |node: u32| gated.eta(ValueId(node)).map(|eta| (eta.of.0, node));
    let etas = Lists::new(gated.count(), &(0..gated.count() as u32).filter_map(of).collect::<Vec<_>>());
    let values = || function.values().iter().enumerate().map(|(i, value)| (ValueId(i as u32), value.block));
    let free = values().filter(|(_, block)| block.is_none()).map(|(id, _)| id);
    let reached = gated.gates().loops().order().iter().flat_map(|&block| function.contents(block).iter().copied());
    let is_reached = |block| gated.gates().dominators().depth(block).is_some();
    let others = values().filter(|(_, block)| block.is_some_and(|block| !is_reached(block))).map(|(id, _)| id);
    let mut order = Vec::with_capacity(gated.count());
    for value in free.chain(reached).chain(others) {
        let mut todo = vec![value];
        while let Some(node) = todo.pop() {
            order.push(node);
            todo.extend(etas.of(node.index()).iter().rev().map(|&eta| ValueId(eta)));
        }
    }
    order
}
