//! Whether control can come from one block to another without passing the branch that dominates both.
//!
//! A search goes through the blocks in [`flowgraph::loop_order`] and stops where no later block can lead back to the
//! one it looks for: an edge leads forward in that order, or from a member of a loop to its header, so that is behind
//! the outermost loop that holds the block and not the branch. (A larger loop that led back would have its header above
//! the branch, and that would not dominate.) So a search costs what lies between the two, not the whole function.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use flowgraph::{Dominators, Graph, Loops, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::Flow;

/// Blocks that one search may visit; one that would visit more answers that it finds the block, by which the code stays
/// as it is.
const MOST_VISITED: usize = 1 << 14;

/// The searches from one block, each as far as it went.
pub(super) struct Reach<'m> {
    flow: Rc<Flow<'m>>,
    dominators: Rc<Dominators>,
    loops: Rc<Loops>,
    /// By node: its place in the order; `u32::MAX` for nodes that are not reached.
    number: Vec<u32>,
    searches: FxHashMap<(NodeId, NodeId), Search>,
}

#[derive(Default)]
struct Search {
    /// Places in the order of blocks that were found and whose successors were not looked at.
    open: BinaryHeap<Reverse<u32>>,
    found: FxHashSet<NodeId>,
}

impl<'m> Reach<'m> {
    pub(super) fn new(flow: Rc<Flow<'m>>, dominators: Rc<Dominators>, loops: Rc<Loops>) -> Reach<'m> {
        let mut number = vec![u32::MAX; flow.graph().node_count()];
        for (place, node) in loops.order().iter().enumerate() {
            number[node.index()] = place as u32;
        }
        Reach { flow, dominators, loops, number, searches: FxHashMap::default() }
    }

    /// Forgets the searches so far, to save memory.
    pub(super) fn forget(&mut self) {
        self.searches.clear();
    }

    /// Whether control can come from `from` to `to` without passing `branch`, which dominates both and is neither.
    pub(super) fn leads(&mut self, from: NodeId, to: NodeId, branch: NodeId) -> bool {
        // Who comes to a block that dominates the other, and is itself below the branch, comes to the other too; and
        // there is no other way in.
        let to =
            self.dominators.child_towards(branch, to).filter(|&to| !self.dominators.dominates(to, from)).unwrap_or(to);
        let last = self.last(to, branch);
        if last < self.number[from.index()] {
            return false;
        }
        let (graph, order, number) = (self.flow.graph(), self.loops.order(), &self.number);
        let near = |&next: &NodeId| next != branch && number[next.index()] <= last;
        if !graph.successors(from).iter().any(near) {
            return false;
        }
        let search = self.searches.entry((from, branch)).or_insert_with(|| Search::begin(graph, number, from, branch));
        search.go_on(graph, number, order, branch, last);
        search.found.contains(&to) || search.found.len() > MOST_VISITED
    }

    /// The last place in the order from which control can come to `to` without passing `branch`.
    fn last(&self, to: NodeId, branch: NodeId) -> u32 {
        let mut around = self.loops.innermost(to).filter(|&id| !self.loops.contains(id, branch));
        let mut last = self.number[to.index()];
        while let Some(id) = around {
            last = self.loops.members(id).last().map_or(last, |member| self.number[member.index()]);
            around = self.loops.parent(id).filter(|&id| !self.loops.contains(id, branch));
        }
        last
    }
}

impl Search {
    fn begin(graph: &Graph, number: &[u32], from: NodeId, branch: NodeId) -> Search {
        let mut search = Search::default();
        search.look_at(graph, number, from, branch);
        search
    }

    fn look_at(&mut self, graph: &Graph, number: &[u32], node: NodeId, branch: NodeId) {
        for &successor in graph.successors(node) {
            if successor != branch && self.found.insert(successor) {
                self.open.push(Reverse(number[successor.index()]));
            }
        }
    }

    /// Finds all blocks up to a place in the order, and the successors of those.
    fn go_on(&mut self, graph: &Graph, number: &[u32], order: &[NodeId], branch: NodeId, last: u32) {
        while self.found.len() <= MOST_VISITED {
            let Some(place) = self.open.peek().map(|next| next.0).filter(|&place| place <= last) else { return };
            self.open.pop();
            self.look_at(graph, number, order[place as usize], branch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::Module;

    /// By definition: all that is reached, however far.
    fn reached(graph: &Graph, from: NodeId, without: NodeId) -> Vec<bool> {
        let mut seen = vec![false; graph.node_count()];
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for &successor in graph.successors(node) {
                if successor != without && !std::mem::replace(&mut seen[successor.index()], true) {
                    open.push(successor);
                }
            }
        }
        seen
    }

    /// A function of `count` blocks with two ways out of most, drawn by a generator with this seed.
    fn random_function(seed: u64, count: u64) -> String {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut text = "define void @f(i1 %c) {\nentry:\n  br label %b1\n".to_owned();
        for i in 1..count {
            let near = |draw: &mut dyn FnMut(u64) -> u64| 1 + (i + draw(7) + count - 4) % (count - 1);
            text += &match draw(8) {
                0 => format!("b{i}:\n  ret void\n"),
                1 | 2 => format!("b{i}:\n  br label %b{}\n", near(&mut draw)),
                _ => format!("b{i}:\n  br i1 %c, label %b{}, label %b{}\n", near(&mut draw), near(&mut draw)),
            };
        }
        text + "}\n"
    }

    #[test]
    fn a_search_that_stops_early_finds_what_a_whole_one_finds() {
        let mut found = [0, 0];
        for seed in 0..400 {
            let text = random_function(seed, 6 + seed % 18);
            let module = Module::parse(text.as_bytes(), "random.ll").unwrap();
            let flow = Rc::new(Flow::of(module.functions()[0]));
            let dominators = Rc::new(Dominators::of(flow.graph()));
            let mut reach = Reach::new(flow.clone(), dominators.clone(), Rc::new(Loops::of(flow.graph())));
            for a in flow.graph().nodes() {
                for b in flow.graph().nodes() {
                    let Some(branch) = dominators.nearest_common(a, b).filter(|&n| n != a && n != b) else { continue };
                    let expected = reached(flow.graph(), a, branch)[b.index()];
                    assert_eq!(
                        reach.leads(a, b, branch),
                        expected,
                        "seed {seed}: {a:?} to {b:?} without {branch:?}\n{text}"
                    );
                    found[usize::from(expected)] += 1;
                }
            }
        }
        assert!(found.iter().all(|&count| count > 2000), "{found:?}");
    }
}
