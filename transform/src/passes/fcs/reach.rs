//! Whether control can go from one block to another without passing the branch that dominates both.
//!
//! A search goes through the blocks in [`flowgraph::loop_order`] and stops where no later block can lead back to the
//! target. In that order an edge leads forward, or from a member of a loop to its header. So the search can stop after
//! the outermost loop that holds the target and not the branch. (A larger loop that led back would have its header
//! above the branch, and then the branch would not dominate.) So a search costs what lies between the two blocks, not
//! the whole function.
//!
//! When many searches were made, [`Closure`] answers for all blocks at once. A path that passes the branch is a cycle
//! around it, and each cycle around it enters the header of a loop that holds it. Without the edges to these headers,
//! the reachable blocks are the same for all branches of one loop.

use std::rc::Rc;

use flowgraph::{Dominators, Graph, LoopId, Loops, NodeId};
use rustc_hash::FxHashMap;

use crate::flow::Flow;

/// The most blocks that one search may visit. A search that would visit more answers that it finds the block, and so
/// the code stays unchanged.
const MOST_VISITED: usize = 1 << 14;

/// The searches from one block, each as far as it went.
pub(super) struct Reach<'m> {
    flow: Rc<Flow<'m>>,
    dominators: Rc<Dominators>,
    loops: Rc<Loops>,
    /// By node: its place in the order; `u32::MAX` for nodes that are not reached.
    number: Vec<u32>,
    searches: FxHashMap<(NodeId, NodeId), Search>,
    visits: usize,
    /// By the innermost loop around the branch.
    levels: FxHashMap<Option<LoopId>, Level>,
    closures: usize,
    /// After more visits for branches of one loop, the next question builds a closure.
    visits_of_a_closure: usize,
}

/// What is known for branches of one loop.
enum Level {
    /// How many blocks were visited by searches.
    Searched(usize),
    Closed(Closure),
}

/// By place in the order, the places of the blocks that control can reach without another iteration of a loop.
struct Closure {
    /// Words of 64 places for each block.
    words: usize,
    reached: Vec<u64>,
}

/// Functions with more blocks have no closures: one of 16,384 takes 32 MiB.
const MOST_CLOSED: usize = 1 << 14;

/// So many closures are kept for a function.
const MOST_CLOSURES: usize = 8;

/// A closure takes about as long as visits of so many times the function's blocks.
const VISITS_OF_A_CLOSURE: usize = 4;

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
        let (searches, levels) = (FxHashMap::default(), FxHashMap::default());
        let visits_of_a_closure = loops.order().len() * VISITS_OF_A_CLOSURE;
        Reach { flow, dominators, loops, number, searches, visits: 0, levels, closures: 0, visits_of_a_closure }
    }

    /// Forgets the searches so far, to save memory.
    pub(super) fn forget(&mut self) {
        self.searches.clear();
    }

    /// How many blocks all searches visited so far.
    pub(super) fn visits(&self) -> usize {
        self.visits
    }

    /// Whether control can go from `from` to `to` without passing `branch`, which dominates both and is neither.
    pub(super) fn leads(&mut self, from: NodeId, to: NodeId, branch: NodeId) -> bool {
        // A path that reaches a block which dominates the other, and is itself below the branch, reaches the other too;
        // and there is no other way in.
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
        let around = self.loops.innermost(branch);
        let level = self.levels.entry(around).or_insert(Level::Searched(0));
        if let Level::Searched(visits) = level
            && *visits > self.visits_of_a_closure
            && order.len() <= MOST_CLOSED
            && self.closures < MOST_CLOSURES
        {
            match headers(&self.loops, around) {
                Some(headers) => {
                    *level = Level::Closed(Closure::of(graph, number, order, &headers));
                    self.closures += 1;
                }
                None => *visits = 0,
            }
        }
        match level {
            Level::Closed(closure) => closure.leads(number[from.index()], number[to.index()]),
            Level::Searched(visits) => {
                let search =
                    self.searches.entry((from, branch)).or_insert_with(|| Search::begin(graph, number, from, branch));
                let before = search.count;
                search.go_on(graph, number, order, branch, number[to.index()], last);
                *visits += search.count - before;
                self.visits += search.count - before;
                search.has_found(number[to.index()]) || search.count > MOST_VISITED
            }
        }
    }

    /// The last place in the order from which control can reach `to` without passing `branch`.
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

/// The headers of a loop and those around it; none where one of these loops is irreducible, whose header need not
/// dominate what is in it.
fn headers(loops: &Loops, innermost: Option<LoopId>) -> Option<Vec<NodeId>> {
    std::iter::successors(innermost, |&id| loops.parent(id))
        .map(|id| (!loops.is_irreducible(id)).then(|| loops.header(id)))
        .collect()
}

impl Closure {
    /// What is reached by all edges except those to these headers. A set is the union of what the successors reach. The
    /// last blocks come first, and again until nothing changes: once for each loop around the innermost ones.
    fn of(graph: &Graph, number: &[u32], order: &[NodeId], headers: &[NodeId]) -> Closure {
        let words = order.len().div_ceil(64);
        let mut closure = Closure { words, reached: vec![0; words * order.len()] };
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (place, &node) in order.iter().enumerate().rev() {
                for successor in graph.successors(node).iter().filter(|to| !headers.contains(to)) {
                    changed |= closure.take_in(place, number[successor.index()] as usize);
                }
            }
        }
        closure
    }

    /// What `next` reaches, and itself, is reached from `place`; whether that is new.
    fn take_in(&mut self, place: usize, next: usize) -> bool {
        let (to, from) = (place * self.words, next * self.words);
        let mut new = 0;
        for word in 0..self.words {
            let bits = self.reached[from + word];
            new |= bits & !self.reached[to + word];
            self.reached[to + word] |= bits;
        }
        let (word, bit) = (to + next / 64, 1 << (next % 64));
        new |= bit & !self.reached[word];
        self.reached[word] |= bit;
        new != 0
    }

    fn leads(&self, from: u32, to: u32) -> bool {
        self.reached[from as usize * self.words + to as usize / 64] & 1 << (to % 64) != 0
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

    /// Goes on until it finds the block at the place `to`, or has found all blocks up to the place `last` and the
    /// successors of those.
    fn go_on(&mut self, graph: &Graph, number: &[u32], order: &[NodeId], branch: NodeId, to: u32, last: u32) {
        while self.count <= MOST_VISITED && !self.has_found(to) {
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
    fn a_search_that_stops_early_and_a_closure_find_what_a_whole_search_finds() {
        let (mut found, mut closed) = ([0, 0], 0);
        for seed in 0..800 {
            let text = random_function(seed / 2, 6 + seed / 2 % 18);
            let module = Module::parse(text.as_bytes(), "random.ll").unwrap();
            let flow = Rc::new(Flow::of(module.functions()[0]));
            let dominators = Rc::new(Dominators::of(flow.graph()));
            let mut reach = Reach::new(flow.clone(), dominators.clone(), Rc::new(Loops::of(flow.graph())));
            reach.visits_of_a_closure = if seed % 2 == 0 { 0 } else { usize::MAX };
            for a in flow.graph().nodes() {
                for b in flow.graph().nodes() {
                    let Some(branch) = dominators.nearest_common(a, b).filter(|&n| n != a && n != b) else { continue };
                    let expected = reached(flow.graph(), a, branch)[b.index()];
                    let found_it = reach.leads(a, b, branch);
                    assert_eq!(found_it, expected, "seed {seed}: {a:?} to {b:?} without {branch:?}\n{text}");
                    found[usize::from(expected)] += 1;
                }
            }
            closed += reach.closures;
        }
        assert!(closed > 100, "{closed}");
        assert!(found.iter().all(|&count| count > 2000), "{found:?}");
    }
}
