//! Variables of the stack frame as values.

use flowgraph::NodeId;
use rustc_hash::FxHashMap;

use super::{Phi, Placing, simplify};
use crate::context::Context;
use crate::llvm::{Instruction, Slot, Type, Value};

/// Makes values of variables, with phis where several stores reach a load: the same as LLVM's `mem2reg` would. A block
/// stores to a variable once, after its loads from it.
pub(crate) fn promote<'m>(context: &mut Context<'m>, variables: &[Slot<'m>]) {
    let (flow, dominators) = (context.flow(), context.dominators());
    let mut placing = Placing::new(&flow, &dominators);
    let mut phis = Vec::new();
    // What became of loads that are gone, which others may have been found to stand for.
    let mut replaced: FxHashMap<Value<'m>, Value<'m>> = FxHashMap::default();
    for variable in variables {
        let (stores, loads) = variable.accesses();
        let node = |i: Instruction<'m>| flow.node(i.block().expect("an access that was not erased"));
        let is_reached = |i: &Instruction<'m>| dominators.depth(node(*i)).is_some();
        let of_type = variable.holds();
        let definitions: Vec<(NodeId, Value<'m>)> =
            stores.iter().filter(|store| is_reached(store)).map(|&store| (node(store), store.operand(0))).collect();
        let (reached, unreached): (Vec<_>, Vec<_>) = loads.into_iter().partition(is_reached);
        let places: Vec<NodeId> = reached.iter().map(|&load| node(load)).collect();
        let values = placing.variable(&definitions, &places, of_type, &mut phis);
        let unknown = unreached.into_iter().map(|load| (load, of_type.undef()));
        for (load, mut value) in reached.into_iter().zip(values).chain(unknown) {
            while let Some(&other) = replaced.get(&value) {
                value = other;
            }
            if value == load.as_value() {
                value = of_type.undef();
            }
            load.as_value().replace_all_uses_with(value);
            load.erase();
            replaced.insert(load.as_value(), value);
        }
        stores.into_iter().for_each(Instruction::erase);
        variable.erase();
    }
    simplify(phis, &flow, &dominators);
}

impl<'m> Placing<'_, 'm> {
    /// Places the phis of a variable that these blocks set, and adds them to `phis`: what it is where each of `places`
    /// begins.
    fn variable(
        &mut self,
        definitions: &[(NodeId, Value<'m>)],
        places: &[NodeId],
        of_type: Type<'m>,
        phis: &mut Vec<Phi<'m>>,
    ) -> Vec<Value<'m>> {
        self.number += 1;
        if definitions.is_empty() {
            return vec![of_type.undef(); places.len()];
        }
        for &(node, value) in definitions {
            self.at(node).defines = Some(value);
        }
        let nodes: Vec<NodeId> = definitions.iter().map(|(node, _)| *node).collect();
        let needed: Vec<(NodeId, bool)> = places.iter().map(|&node| (node, false)).collect();
        let set = nodes.iter().map(|&node| (node, true));
        let top = self.top(&nodes, &needed.iter().copied().chain(set).collect::<Vec<_>>());
        self.join(nodes, &needed, top, of_type, phis)
    }
}
