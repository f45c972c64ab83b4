//! What rows would add to a function, before any code changes.
//!
//! Each part gets a guard, and sets whose turn is next: [`OF_A_PART`] instructions. A value that one part makes and
//! another uses, or what follows the region, needs a phi at each guard in between, since by each guard come lanes whose
//! part did not run: so a row of n parts takes up to n phis for each such value. Most are not needed, or get the
//! register of what they join: one in [`PHIS_OF_A_MOVE`] becomes an instruction. Without a bound, an interpreter whose
//! switch has hundreds of cases with values in common would become tens of times its size. Both numbers are those of
//! 310 functions of gawk 5.2 and of machines with 5 to 120 cases: the estimate is less than what came in 4 of them.
//!
//! The rows are planned as `linearize` would plan them, on the graph alone: switches are chains of branches in it, and
//! the places where control leaves are one.

use flowgraph::{Builder, Graph, Loops, NodeId};
use rustc_hash::FxHashMap;

use super::{Parts, quotient};
use crate::flow::Flow;
use crate::llvm::{Block, Opcode};
use crate::remark::Reason;

/// A value, or what a phi joins: from where to where it has to be carried.
struct Carried {
    made: Vec<NodeId>,
    used: Vec<NodeId>,
}

/// Instructions that a part takes.
const OF_A_PART: usize = 4;

/// Of so many phis one becomes an instruction.
const PHIS_OF_A_MOVE: usize = 8;

/// Functions with fewer instructions may get as many as one with so many.
pub(crate) const LEAST_SIZE: usize = 256;

/// Why a function is left that would have more than `growth` times its instructions with its parts in rows.
pub(crate) fn obstacle(flow: &Flow<'_>, growth: i64) -> Option<Reason> {
    let size: usize = flow.blocks().iter().map(|block| block.len()).sum();
    let most = (growth - 1).max(0) as usize * size.max(LEAST_SIZE);
    let added = added(flow, most);
    (added > most).then_some(Reason::GrowsTooMuch { added, most })
}

/// How many instructions the rows of a function would take; where that is more than `most`, it is not counted on.
fn added(flow: &Flow<'_>, most: usize) -> usize {
    let graph = lowered(flow);
    let values = carried(flow);
    let mut whole: Vec<Vec<NodeId>> = Vec::new();
    let (mut guards, mut phis) = (0, 0);
    let sum = |guards: usize, phis: usize| OF_A_PART * guards + phis / PHIS_OF_A_MOVE;
    loop {
        let parts = Parts::of_graph(&graph, &whole);
        if parts.left.len() < 2 {
            return sum(guards, phis);
        }
        let of_parts = quotient(&graph, &parts.of, true);
        let mut members: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        for (node, part) in parts.of.iter().enumerate() {
            members.entry(*part).or_default().push(NodeId(node as u32));
        }
        let mut rows = Rows { rows: Vec::new(), places: vec![None; graph.node_count()] };
        for (region, _) in parts.regions_of_graph(&graph) {
            if region.len() < 2 {
                return sum(guards, phis);
            }
            guards += region.len();
            rows.add(&of_parts, &region, &members);
            let mut nodes: Vec<NodeId> = region.iter().flat_map(|part| members[part].iter().copied()).collect();
            nodes.retain(|&node| node != region[0]);
            nodes.insert(0, region[0]);
            whole.push(nodes);
        }
        for value in &values {
            phis += rows.phis(value);
            if sum(guards, phis) > most {
                return sum(guards, phis);
            }
        }
    }
}

/// Regions whose parts come in a row each.
struct Rows {
    /// By row: how many parts it has, and whether something leads back to the first, so that it has a guard too.
    rows: Vec<(usize, bool)>,
    /// By node: its row, and its part's place there.
    places: Vec<Option<(usize, usize)>>,
}

impl Rows {
    fn add(&mut self, graph: &Graph, region: &[NodeId], members: &FxHashMap<NodeId, Vec<NodeId>>) {
        let number: FxHashMap<NodeId, u32> = region.iter().enumerate().map(|(i, &part)| (part, i as u32)).collect();
        let mut builder = Builder::new(region.len());
        for (i, &part) in region.iter().enumerate() {
            for to in graph.successors(part).iter().filter_map(|to| number.get(to)) {
                builder.edge(NodeId(i as u32), NodeId(*to));
            }
        }
        let loops = Loops::of(&builder.build(NodeId(0)));
        for (place, part) in loops.order().iter().enumerate() {
            for node in &members[&region[part.index()]] {
                self.places[node.index()] = Some((self.rows.len(), place));
            }
        }
        self.rows.push((region.len(), loops.headed_by(NodeId(0)).is_some()));
    }

    /// How many phis a value takes in these rows.
    fn phis(&self, value: &Carried) -> usize {
        let place = |node: &NodeId| self.places[node.index()];
        let mut seen: Vec<usize> = Vec::new();
        let mut phis = 0;
        for (row, _) in value.made.iter().filter_map(place) {
            if seen.contains(&row) {
                continue;
            }
            seen.push(row);
            let (parts, comes_back) = self.rows[row];
            let inside = |node: &NodeId| place(node).filter(|(other, _)| *other == row).map(|(_, place)| place);
            let made = || value.made.iter().filter_map(inside);
            let (Some(first), Some(last)) = (made().min(), made().max()) else { continue };
            // What follows comes behind all.
            let uses = || value.used.iter().map(|node| inside(node).unwrap_or(parts));
            let back = uses().any(|at| at <= last && at != first);
            phis += match uses().max() {
                // Round the loop.
                _ if back => parts,
                // It is made before the first guard.
                _ if last == 0 && !comes_back => 0,
                furthest => furthest.unwrap_or(first) - first,
            };
        }
        phis
    }
}

/// The control flow with chains of branches in the place of switches, and one place where control leaves.
pub(super) fn lowered(flow: &Flow<'_>) -> Graph {
    let mut edges: Vec<(NodeId, NodeId)> = Vec::new();
    let mut count = flow.blocks().len() as u32;
    let mut add = || {
        count += 1;
        NodeId(count - 1)
    };
    for (i, block) in flow.blocks().iter().enumerate() {
        let mut at = NodeId(i as u32);
        let ways = flow.graph().successors(at);
        if block.terminator().opcode() != Opcode::LLVMSwitch || ways.len() < 3 {
            edges.extend(ways.iter().map(|&to| (at, to)));
            continue;
        }
        // The default comes first among the successors, and last in the chain.
        for &to in &ways[1..ways.len() - 1] {
            let next = add();
            edges.extend([(at, to), (at, next)]);
            at = next;
        }
        edges.extend([(at, ways[ways.len() - 1]), (at, ways[0])]);
    }
    let ends: Vec<NodeId> = flow.graph().nodes().filter(|&node| flow.graph().successors(node).is_empty()).collect();
    if ends.len() > 1 {
        let end = add();
        edges.extend(ends.into_iter().map(|from| (from, end)));
    }
    let mut builder = Builder::new(count as usize);
    for (from, to) in edges {
        builder.edge(from, to);
    }
    builder.build(NodeId(0))
}

/// What is made in one block and used in another.
fn carried(flow: &Flow<'_>) -> Vec<Carried> {
    let mut values = Vec::new();
    for (i, block) in flow.blocks().iter().enumerate() {
        let home = NodeId(i as u32);
        for instruction in block.instructions() {
            if instruction.is_phi() {
                let made = instruction.incoming().into_iter().filter_map(|(_, from)| flow.find(from)).collect();
                values.push(Carried { made, used: vec![home] });
            }
            let users = instruction.as_value().uses().into_iter().filter_map(|u| u.needed_in());
            let used: Vec<NodeId> =
                users.filter(|user: &Block<'_>| *user != *block).filter_map(|user| flow.find(user)).collect();
            if !used.is_empty() {
                values.push(Carried { made: vec![home], used });
            }
        }
    }
    values
}
