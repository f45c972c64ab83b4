//! Regions: parts of a graph that are entered at one node and left to one node, and how they nest.

use crate::cycles::loops::Collapsed;
use crate::dominance::tree::Tree;
use crate::graph::Rows;
use crate::{DepthFirst, Dominators, Graph, NONE, NodeId, PostDominators};

/// A region. Regions are numbered from 0, each before those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

impl RegionId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The single-entry single-exit regions of the part of a graph that its entry reaches, as a *program structure tree*.
///
/// A region (e, x) is what `e` reaches without passing `x`, where `x` post-dominates `e`, every edge that comes in from
/// elsewhere leads to `e`, and the graph's entry is either `e` or outside. Every edge that leaves leads to `x`, which
/// is not a member. `e` may be entered, and `x` left to, by several edges. A region of one node with one successor is
/// *trivial*. A region is *canonical* when it is not two regions (trivial ones too) in a row. Only regions that are
/// canonical and not trivial are listed; any two of them are disjoint or one is inside the other. The whole graph is
/// not listed.
///
/// These are the regions of LLVM's `RegionInfo`, except that post-dominators in endless loops differ
/// ([`PostDominators`]).
///
/// Source: Johnson, Pearson and Pingali, *The program structure tree: computing control regions in linear time*, PLDI
/// 1994, for the tree; the algorithm is our own. O((n + m) log n) where control flow is structured; a chain of
/// post-dominators with many entries from the side is walked once for each entry.
///
/// ```
/// use flowgraph::{Builder, Dominators, NodeId, PostDominators, Regions};
///
/// // if (0) { 1 } else { 2 } 3
/// let mut builder = Builder::new(4);
/// for (from, to) in [(0, 1), (0, 2), (1, 3), (2, 3)] {
///     builder.edge(NodeId(from), NodeId(to));
/// }
/// let graph = builder.build(NodeId(0));
/// let regions = Regions::of(&graph, &Dominators::of(&graph), &PostDominators::of(&graph, &[NodeId(3)]));
/// let diamond = regions.ids().next().unwrap();
/// assert_eq!((regions.entry(diamond), regions.exit(diamond)), (NodeId(0), NodeId(3)));
/// assert_eq!(regions.members(diamond), [NodeId(0), NodeId(1), NodeId(2)]);
/// ```
#[derive(Clone, Debug)]
pub struct Regions {
    bounds: Vec<Bounds>,
    nesting: Tree,
    /// By node: the number of the innermost region; `NONE` outside all.
    innermost: Vec<u32>,
    /// By node: whether the entry reaches it.
    reached: Vec<bool>,
    /// All nodes that the entry reaches, the members of each region in a row.
    order: Vec<NodeId>,
    /// By region: where its members are in `order`.
    start: Vec<u32>,
    size: Vec<u32>,
}

/// The entry and the exit of a region.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    entry: NodeId,
    exit: NodeId,
}

impl Regions {
    /// The regions of `graph`, whose dominators and post-dominators are given.
    #[must_use]
    pub fn of(graph: &Graph, dominators: &Dominators, post: &PostDominators) -> Regions {
        let walk = DepthFirst::of(graph);
        let found = Search::new(graph, dominators, post, &walk).run(&walk);
        nest(graph, dominators, &walk, &found)
    }

    /// How many regions there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bounds.len()
    }

    /// All regions, each before those inside it.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = RegionId> + ExactSizeIterator + use<> {
        (0..self.count() as u32).map(RegionId)
    }

    /// The member at which control comes in.
    #[must_use]
    pub fn entry(&self, id: RegionId) -> NodeId {
        self.bounds[id.index()].entry
    }

    /// The node to which control leaves; not a member.
    #[must_use]
    pub fn exit(&self, id: RegionId) -> NodeId {
        self.bounds[id.index()].exit
    }

    /// The smallest region around this one.
    #[must_use]
    pub fn parent(&self, id: RegionId) -> Option<RegionId> {
        self.nesting.parent(id.0).map(RegionId)
    }

    /// The smallest region that `node` is a member of.
    #[must_use]
    pub fn innermost(&self, node: NodeId) -> Option<RegionId> {
        Some(self.innermost[node.index()]).filter(|&id| id != NONE).map(RegionId)
    }

    /// Whether `node` is a member of the region. O(1).
    #[must_use]
    pub fn contains(&self, id: RegionId, node: NodeId) -> bool {
        self.innermost(node).is_some_and(|inner| self.nesting.is_ancestor(id.0, inner.0))
    }

    /// The members, the entry first, those of each region inside in a row.
    #[must_use]
    pub fn members(&self, id: RegionId) -> &[NodeId] {
        let start = self.start[id.index()] as usize;
        &self.order[start..start + self.size[id.index()] as usize]
    }

    /// Whether only one edge enters and only one edge leaves (definition 1 of Saumya et al., *CFM: SIMT thread
    /// divergence reduction by melding similar control-flow regions*, 2021). `graph` is the one given to
    /// [`Regions::of`]; edges from nodes that its entry does not reach do not count.
    #[must_use]
    pub fn is_simple(&self, graph: &Graph, id: RegionId) -> bool {
        let Bounds { entry, exit } = self.bounds[id.index()];
        let predecessors = |node: NodeId, inside: bool| {
            let sources = graph.predecessors(node).iter().filter(|source| self.reached[source.index()]);
            sources.filter(|source| self.contains(id, **source) == inside).count()
        };
        let comes_in = predecessors(entry, false) + usize::from(entry == graph.entry());
        comes_in <= 1 && predecessors(exit, true) == 1
    }
}

/// What the search for regions looks up. An edge p → t *leaves* a node `n` when `n` dominates `p` but not `t`.
struct Search<'a> {
    graph: &'a Graph,
    dominators: &'a Dominators,
    post: &'a PostDominators,
    /// By node: how many edges leave it.
    leaving: Vec<u32>,
    /// By node: 1 + the greatest depth (in the dominator tree) of a node that an edge leaves it to; 0 where none does.
    deepest: Vec<u32>,
    /// By node: that deepest node.
    target: Vec<u32>,
    /// By node: the numbers of its predecessors in a preorder of the dominator tree, ascending.
    sources: Rows,
    /// By node: the end of the regions in a row that begin there; `NONE` where there is none.
    farthest: Vec<u32>,
}

/// Why a pair of nodes is not a region, or that it is one.
#[derive(PartialEq, Eq)]
enum Fit {
    Region,
    /// An edge leads elsewhere than to the exit, so it does for every later exit that the entry dominates.
    Leaks,
    /// An edge comes in behind the entry.
    Entered,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, dominators: &'a Dominators, post: &'a PostDominators, walk: &DepthFirst) -> Search<'a> {
        let count = graph.node_count();
        let reached = walk.preorder();
        let number = |node: NodeId| dominators.interval(node).start;
        let depth = |node: NodeId| dominators.depth(node).expect("a node that is reached");
        let mut by_number = vec![NodeId(0); reached.len()];
        for &node in reached {
            by_number[number(node) as usize] = node;
        }
        // An edge leaves the dominators of its source up to, not including, this one.
        let top = |from: NodeId, to: NodeId| {
            if dominators.dominates(to, from) { to } else { dominators.idom(to).expect("only the entry has none") }
        };
        let edges = || by_number.iter().flat_map(|&from| graph.successors(from).iter().map(move |&to| (from, to)));
        // Sums over preorder numbers: what an edge adds at its source it takes away at the top.
        let mut sums = vec![0i64; reached.len() + 1];
        for (from, to) in edges() {
            sums[number(from) as usize + 1] += 1;
            sums[number(top(from, to)) as usize + 1] -= 1;
        }
        for i in 0..reached.len() {
            sums[i + 1] += sums[i];
        }
        let mut leaving = vec![0; count];
        for &node in reached {
            let interval = dominators.interval(node);
            let sum = sums[interval.end as usize] - sums[interval.start as usize];
            leaving[node.index()] = u32::try_from(sum).expect("a count of edges");
        }
        // Edges to deep nodes first; each writes to the nodes that none before it left.
        let by_depth = Rows::group(reached.len(), || (0u32..).zip(edges()).map(|(i, (_, to))| (depth(to), NodeId(i))));
        let all: Vec<_> = edges().collect();
        let (mut deepest, mut target) = (vec![0; count], vec![NONE; count]);
        let mut unwritten = Collapsed::new(count);
        for level in (0..reached.len()).rev() {
            for &edge in by_depth.row(level) {
                let (from, to) = all[edge.index()];
                let top = depth(top(from, to));
                let mut node = NodeId(unwritten.find(from.0));
                while depth(node) > top {
                    deepest[node.index()] = level as u32 + 1;
                    target[node.index()] = to.0;
                    let above = dominators.idom(node).expect("a node below another");
                    unwritten.join(node.0, above.0);
                    node = NodeId(unwritten.find(above.0));
                }
            }
        }
        let sources = Rows::group(count, || edges().map(|(from, to)| (to.0, NodeId(number(from)))));
        Search { graph, dominators, post, leaving, deepest, target, sources, farthest: vec![NONE; count] }
    }

    /// All canonical regions, trivial ones left out: those of one entry in a row, the smallest first.
    fn run(mut self, walk: &DepthFirst) -> Vec<Bounds> {
        let mut found = Vec::new();
        // A node comes after those that it dominates: regions behind it are known before it is looked at.
        for &entry in walk.preorder().iter().rev() {
            let mut last = entry;
            let mut next = self.post.ipdom(entry);
            let mut take = |exit| found.push(Bounds { entry, exit });
            while let Some(exit) = next {
                if !self.dominators.dominates(entry, exit) {
                    if self.all_leave_to(entry, exit) {
                        (last, _) = (exit, take(exit));
                    }
                    break;
                }
                match self.fit(entry, exit) {
                    Fit::Region => (last, _) = (exit, take(exit)),
                    Fit::Entered => {}
                    Fit::Leaks => {
                        let only = NodeId(self.target[entry.index()]);
                        let in_a_row = last != entry && self.all_leave_to(last, only);
                        let outside = !self.dominators.dominates(entry, only);
                        if outside && self.all_leave_to(entry, only) && !in_a_row {
                            (last, _) = (only, take(only));
                        }
                        break;
                    }
                }
                // Regions in a row that begin at the exit are passed over: what ended inside of them, or with them,
                // would be two regions in a row.
                let farthest = self.farthest[exit.index()];
                next = self.post.ipdom(if farthest == NONE { exit } else { NodeId(farthest) });
            }
            if last != entry {
                let on = self.farthest[last.index()];
                self.farthest[entry.index()] = if on == NONE { last.0 } else { on };
            }
        }
        found.retain(|region| !self.is_trivial(region));
        found
    }

    /// Whether a pair whose entry strictly dominates the exit is a region.
    fn fit(&self, entry: NodeId, exit: NodeId) -> Fit {
        let depth = self.dominators.depth(entry).expect("a node that is reached");
        // An edge that leaves the exit to a node deeper than the entry leads back between the two.
        if self.deepest[exit.index()] > depth + 1 {
            return Fit::Entered;
        }
        // All others leave the entry too, or lead to it: no edge may leave from between the two.
        let leaving_behind = self.leaving[exit.index()] - self.edges(exit, entry);
        if self.leaving[entry.index()] == leaving_behind { Fit::Region } else { Fit::Leaks }
    }

    /// Whether every edge that leaves `entry` leads to `exit`, which it does not dominate but which post-dominates it.
    fn all_leave_to(&self, entry: NodeId, exit: NodeId) -> bool {
        self.post.post_dominates(exit, entry) && self.leaving[entry.index()] == self.edges(entry, exit)
    }

    /// How many edges lead to `to` from nodes that `from` dominates.
    fn edges(&self, from: NodeId, to: NodeId) -> u32 {
        let interval = self.dominators.interval(from);
        let sources = self.sources.row(to.index());
        let before = |end: u32| sources.partition_point(|source| source.0 < end) as u32;
        before(interval.end) - before(interval.start)
    }

    fn is_trivial(&self, region: &Bounds) -> bool {
        self.graph.successors(region.entry) == [region.exit]
    }
}

/// Makes the tree. `found` has the regions of one entry in a row, the smallest first.
fn nest(graph: &Graph, dominators: &Dominators, walk: &DepthFirst, found: &[Bounds]) -> Regions {
    let mut by_number = vec![NodeId(0); walk.preorder().len()];
    for &node in walk.preorder() {
        by_number[dominators.interval(node).start as usize] = node;
    }
    let of_entry = Rows::group(graph.node_count(), || {
        (0u32..).zip(found).map(|(number, region)| (region.entry.0, NodeId(number)))
    });
    let inside = |region: &Bounds, node: NodeId| {
        let Bounds { entry, exit } = *region;
        let behind = dominators.dominates(entry, exit) && dominators.dominates(exit, node);
        dominators.dominates(entry, node) && !behind
    };
    let (mut bounds, mut parent) = (Vec::<Bounds>::with_capacity(found.len()), Vec::<u32>::with_capacity(found.len()));
    let mut innermost = vec![NONE; graph.node_count()];
    let mut reached = vec![false; graph.node_count()];
    for &node in &by_number {
        reached[node.index()] = true;
        // Each region around the dominator that does not hold the node ends here: the node is its exit.
        let mut around = dominators.idom(node).map_or(NONE, |above| innermost[above.index()]);
        while around != NONE && !inside(&bounds[around as usize], node) {
            around = parent[around as usize];
        }
        for number in of_entry.row(node.index()).iter().rev() {
            parent.push(around);
            around = bounds.len() as u32;
            bounds.push(found[number.index()]);
        }
        innermost[node.index()] = around;
    }
    let nesting = Tree::new(parent, || 0..bounds.len() as u32);
    let (order, start, size) = lay_out(&by_number, &bounds, &innermost, &nesting);
    Regions { bounds, nesting, innermost, reached, order, start, size }
}

/// All nodes, the members of each region in a row, and by region where they start and how many they are. `by_number`
/// has each node behind its dominator, so each entry before the other members.
fn lay_out(
    by_number: &[NodeId],
    bounds: &[Bounds],
    innermost: &[u32],
    nesting: &Tree,
) -> (Vec<NodeId>, Vec<u32>, Vec<u32>) {
    let mut size = vec![0u32; bounds.len()];
    for node in by_number {
        if let Some(size) = size.get_mut(innermost[node.index()] as usize) {
            *size += 1;
        }
    }
    for id in (0..bounds.len() as u32).rev() {
        if let Some(parent) = nesting.parent(id) {
            size[parent as usize] += size[id as usize];
        }
    }
    let mut start = vec![0u32; bounds.len()];
    // The next free place in the stretch of each region, and outside all.
    let mut next = vec![0u32; bounds.len()];
    let mut next_outside = 0u32;
    let mut regions = (0u32..).zip(bounds).peekable();
    let mut order = vec![NodeId(0); by_number.len()];
    for &node in by_number {
        // Regions are numbered in the order in which their entries come up here.
        while let Some((id, _)) = regions.next_if(|(_, region)| region.entry == node) {
            let slot = nesting.parent(id).map_or(&mut next_outside, |parent| &mut next[parent as usize]);
            start[id as usize] = *slot;
            *slot += size[id as usize];
            next[id as usize] = start[id as usize];
        }
        let slot = next.get_mut(innermost[node.index()] as usize).unwrap_or(&mut next_outside);
        order[*slot as usize] = node;
        *slot += 1;
    }
    (order, start, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    fn regions(count: usize, edges: &[(u32, u32)], exit: u32) -> Vec<(u32, u32, Option<u32>)> {
        let graph = graph(count, edges);
        let regions = Regions::of(&graph, &Dominators::of(&graph), &PostDominators::of(&graph, &nodes(&[exit])));
        let all = regions.ids();
        all.map(|id| (regions.entry(id).0, regions.exit(id).0, regions.parent(id).map(|p| p.0))).collect()
    }

    #[test]
    fn two_diamonds_in_a_row_are_two_regions_and_no_third() {
        let edges = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (3, 5), (4, 6), (5, 6)];
        assert_eq!(regions(7, &edges, 6), [(0, 3, None), (3, 6, None)]);
    }

    #[test]
    fn a_diamond_in_a_loop_nests() {
        // 0; while (1) { if (2) 3 else 4; 5 } 6
        let edges = [(0, 1), (1, 2), (1, 6), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1)];
        assert_eq!(regions(7, &edges, 6), [(1, 6, None), (2, 5, Some(0))]);
    }

    #[test]
    fn a_jump_into_an_arm_leaves_the_region_around_both_only() {
        // if (0 || 1) 2; 3
        assert_eq!(regions(4, &[(0, 2), (0, 1), (1, 2), (1, 3), (2, 3)], 3), [(0, 3, None)]);
    }

    #[test]
    fn a_loop_with_two_entries_is_a_region_from_where_the_entries_part() {
        assert_eq!(regions(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)], 3), [(0, 3, None)]);
    }

    #[test]
    fn a_diamond_is_simple_where_one_edge_comes_in() {
        // 0; if (1) 2 else 3; 4, and 4 leads on to 5.
        let graph = graph(6, &[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]);
        let regions = Regions::of(&graph, &Dominators::of(&graph), &PostDominators::of(&graph, &nodes(&[5])));
        let diamond = RegionId(0);
        assert_eq!((regions.count(), regions.members(diamond)), (1, &nodes(&[1, 2, 3])[..]));
        assert!(!regions.is_simple(&graph, diamond), "two edges lead to its exit");
    }
}
