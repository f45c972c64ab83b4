//! Whether control can come from one block to another without passing the branch that dominates both.
//!
//! A search goes through the blocks in [`flowgraph::loop_order`] and stops where no later block can lead back to the
//! one it looks for: an edge leads forward in that order, or from a member of a loop to its header, so that is behind
//! the outermost loop that holds the block and not the branch. (A larger loop that led back would have its header above
//! the branch, and that would not dominate.) So a search costs what lies between the two, not the whole function.

use std::rc::Rc;

use flowgraph::{Dominators, Graph, Loops, NodeId};
use rustc_hash::FxHashMap;

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

/// Sets of places in the order, as bits from the word of `first` on: a search stays near where it began.
#[derive(Default)]
struct Search {
    /// The place of the first bit, a multiple of 64.
    first: u32,
    /// Places of blocks that were found.
    found: Vec<u64>,
    /// Of these, such whose successors were not looked at.
    open: Vec<u64>,
    /// No open place comes before it.
    lowest: u32,
    /// How many were found.
    count: usize,
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
        search.has_found(number[to.index()]) || search.count > MOST_VISITED
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
        let first = number[from.index()] & !63;
        let mut search = Search { first, lowest: u32::MAX, ..Search::default() };
        search.look_at(graph, number, from, branch);
        search
    }

    fn look_at(&mut self, graph: &Graph, number: &[u32], node: NodeId, branch: NodeId) {
        for &successor in graph.successors(node) {
            if successor != branch {
                self.find(number[successor.index()]);
            }
        }
    }

    fn find(&mut self, place: u32) {
        if place < self.first {
            let words = ((self.first - place) as usize).div_ceil(64);
            self.first -= words as u32 * 64;
            self.found.splice(..0, std::iter::repeat_n(0, words));
            self.open.splice(..0, std::iter::repeat_n(0, words));
        }
        let (word, bit) = self.bit(place);
        if word >= self.found.len() {
            self.found.resize(word + 1, 0);
            self.open.resize(word + 1, 0);
        }
        if self.found[word] & bit == 0 {
            self.found[word] |= bit;
            self.open[word] |= bit;
            self.lowest = self.lowest.min(place);
            self.count += 1;
        }
    }

    /// The word and the bit of a place that is not before the first.
    fn bit(&self, place: u32) -> (usize, u64) {
        let bit = place - self.first;
        ((bit / 64) as usize, 1 << (bit % 64))
    }

    fn has_found(&self, place: u32) -> bool {
        place >= self.first && {
            let (word, bit) = self.bit(place);
            self.found.get(word).is_some_and(|bits| bits & bit != 0)
        }
    }

    /// The first open place, no longer open, if it is not behind `last`.
    fn next_open(&mut self, last: u32) -> Option<u32> {
        if self.lowest > last {
            return None;
        }
        let (mut word, bit) = self.bit(self.lowest);
        let mut bits = self.open[word] & !(bit - 1);
        while bits == 0 {
            word += 1;
            let Some(&next) = self.open.get(word) else {
                self.lowest = u32::MAX;
                return None;
            };
            bits = next;
        }
        let place = self.first + word as u32 * 64 + bits.trailing_zeros();
        self.lowest = place;
        if place > last {
            return None;
        }
        self.open[word] &= !(bits & bits.wrapping_neg());
        Some(place)
    }

    /// Finds all blocks up to a place in the order, and the successors of those.
    fn go_on(&mut self, graph: &Graph, number: &[u32], order: &[NodeId], branch: NodeId, last: u32) {
        while self.count <= MOST_VISITED {
            let Some(place) = self.next_open(last) else { return };
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
