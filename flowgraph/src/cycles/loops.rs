//! Loops: their headers, members and nesting, in reducible and irreducible graphs.

use crate::dominance::tree::Tree;
use crate::graph::Rows;
use crate::{DepthFirst, Graph, NONE, NodeId};

/// A loop. Loops are numbered from 0, each before those inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoopId(pub u32);

impl LoopId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The loops of the part of a graph that the entry reaches.
///
/// By definition: each strongly connected component with a cycle is a loop. Its *header* is the member that the walk
/// enters first. Take the header away, and the components with a cycle among the other members are the loops inside it;
/// and so on. The walk is [`DepthFirst::last_successor_first`].
///
/// A loop that can be entered only at its header is a natural loop: the header dominates the members, and does not
/// depend on the walk. One that has other entries too is *irreducible*: its header, and so the loops it contains,
/// depend on the walk. Loops with the same header count as one.
///
/// Source: Havlak, *Nesting of reducible and irreducible loops*, ACM TOPLAS 19(4), 1997, as Ramalingam made it almost
/// linear in *Identifying loops in almost linear time*, ACM TOPLAS 21(2), 1999: an edge takes part only from the
/// nearest common ancestor of its ends on. O((n + m) log n).
#[derive(Clone, Debug)]
pub struct Loops {
    headers: Vec<NodeId>,
    nesting: Tree,
    /// By loop: the sources of the edges from members to the header.
    latches: Rows,
    irreducible: Vec<bool>,
    /// By node: the number of the innermost loop; `NONE` outside all.
    innermost: Vec<u32>,
    /// All nodes that the entry reaches, in [`crate::loop_order`].
    order: Vec<NodeId>,
    /// By loop: where its members are in `order`.
    start: Vec<u32>,
    size: Vec<u32>,
}

impl Loops {
    /// The loops of `graph`.
    #[must_use]
    pub fn of(graph: &Graph) -> Loops {
        let walk = DepthFirst::last_successor_first(graph);
        let forest = Forest::of(graph, &walk);
        let (headers, parent, innermost) = forest.number_loops(graph, &walk);
        let nesting = Tree::new(parent, || 0..headers.len() as u32);
        let latches = latches(graph, &walk, &headers);
        let irreducible = irreducible(graph, &walk, &headers, &innermost, &nesting);
        let (order, start, size) = lay_out(&walk, &headers, &innermost, &nesting);
        Loops { headers, nesting, latches, irreducible, innermost, order, start, size }
    }

    /// How many loops there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.headers.len()
    }

    /// All loops, each before those inside it.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = LoopId> + ExactSizeIterator + use<> {
        (0..self.count() as u32).map(LoopId)
    }

    /// The node through which the loop is entered (one of them, when it is irreducible).
    #[must_use]
    pub fn header(&self, id: LoopId) -> NodeId {
        self.headers[id.index()]
    }

    /// The loop whose header `node` is, if there is one.
    #[must_use]
    pub fn headed_by(&self, node: NodeId) -> Option<LoopId> {
        self.innermost(node).filter(|&id| self.header(id) == node)
    }

    /// The members, those of inner loops included, in [`crate::loop_order`]: the header first, inner loops in a row.
    #[must_use]
    pub fn members(&self, id: LoopId) -> &[NodeId] {
        let start = self.start[id.index()] as usize;
        &self.order[start..start + self.size[id.index()] as usize]
    }

    /// The members from which an edge leads to the header, in ascending order: the sources of the back edges.
    #[must_use]
    pub fn latches(&self, id: LoopId) -> &[NodeId] {
        self.latches.row(id.index())
    }

    /// Whether control can enter the loop elsewhere than at its header.
    #[must_use]
    pub fn is_irreducible(&self, id: LoopId) -> bool {
        self.irreducible[id.index()]
    }

    /// The loop just around this one.
    #[must_use]
    pub fn parent(&self, id: LoopId) -> Option<LoopId> {
        self.nesting.parent(id.0).map(LoopId)
    }

    /// The innermost loop that `node` is a member of; its own loop for a header.
    #[must_use]
    pub fn innermost(&self, node: NodeId) -> Option<LoopId> {
        Some(self.innermost[node.index()]).filter(|&id| id != NONE).map(LoopId)
    }

    /// How many loops `node` is a member of: 0 outside all loops.
    #[must_use]
    pub fn depth(&self, node: NodeId) -> u32 {
        self.innermost(node).map_or(0, |id| self.nesting.depth(id.0) + 1)
    }

    /// Whether `node` is a member of the loop. O(1).
    #[must_use]
    pub fn contains(&self, id: LoopId, node: NodeId) -> bool {
        self.innermost(node).is_some_and(|inner| self.nesting.is_ancestor(id.0, inner.0))
    }

    /// All nodes that the entry reaches, in [`crate::loop_order`].
    #[must_use]
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }
}

/// Which nodes are headers, and the next header around each node. Nodes go by their place in the preorder of the walk.
struct Forest {
    is_header: Vec<bool>,
    /// The header of the innermost loop that has the node as a member but not as its header; `NONE` outside all.
    around: Vec<u32>,
}

impl Forest {
    /// Visits the headers from the last entered to the first, so inner loops come first. The loop of a header is what
    /// reaches it backwards without leaving its subtree; once found it collapses into the header, so that each edge is
    /// followed once.
    fn of(graph: &Graph, walk: &DepthFirst) -> Forest {
        let count = walk.preorder().len();
        let mut forest = Forest { is_header: vec![false; count], around: vec![NONE; count] };
        let meetings = Meetings::of(graph, walk);
        let mut collapsed = Collapsed::new(count);
        // By header or plain node: the sources of the edges that lead into what has collapsed into it.
        let mut sources = Lists::new(count);
        let mut work = Vec::new();
        for header in (0..count as u32).rev() {
            for (from, to) in meetings.at(header) {
                sources.push(collapsed.find(to), from);
            }
            for &predecessor in graph.predecessors(walk.preorder()[header as usize]) {
                let Some(latch) = walk.number(predecessor).filter(|&latch| walk.spans(header, latch)) else { continue };
                forest.is_header[header as usize] = true;
                forest.absorb(latch, header, &mut collapsed, &mut work);
            }
            while let Some(member) = work.pop() {
                // All that leads to a member now lies in the loop or is its header: the list is used up.
                let mut source = sources.take(member);
                while let Some((from, next)) = sources.entry(source) {
                    forest.absorb(from, header, &mut collapsed, &mut work);
                    source = next;
                }
            }
        }
        forest
    }

    /// Makes the outermost loop found so far around `node` (or the node itself) a part of the loop of `header`.
    fn absorb(&mut self, node: u32, header: u32, collapsed: &mut Collapsed, work: &mut Vec<u32>) {
        let part = collapsed.find(node);
        if part != header {
            collapsed.join(part, header);
            self.around[part as usize] = header;
            work.push(part);
        }
    }

    /// The headers in preorder, which gives each loop its number; the number of each loop's parent; the number of each
    /// node's innermost loop.
    fn number_loops(&self, graph: &Graph, walk: &DepthFirst) -> (Vec<NodeId>, Vec<u32>, Vec<u32>) {
        let mut headers = Vec::new();
        let mut parent = Vec::new();
        let mut innermost = vec![NONE; graph.node_count()];
        for (number, &node) in walk.preorder().iter().enumerate() {
            // A header is entered before the members of its loop, so its innermost loop is itself and has its number.
            let around = self.around[number];
            let outer = if around == NONE { NONE } else { innermost[walk.preorder()[around as usize].index()] };
            innermost[node.index()] = outer;
            if self.is_header[number] {
                innermost[node.index()] = headers.len() as u32;
                headers.push(node);
                parent.push(outer);
            }
        }
        (headers, parent, innermost)
    }
}

/// The edges that do not return to an ancestor, each at the nearest common ancestor of its ends: only loops whose
/// header is that node or above it can contain both ends.
struct Meetings {
    edges: Vec<(u32, u32)>,
    /// By node: its edges are `edges[starts[node]..starts[node + 1]]`.
    starts: Vec<u32>,
}

impl Meetings {
    fn of(graph: &Graph, walk: &DepthFirst) -> Meetings {
        let count = walk.preorder().len();
        let tree = Tree::new(walk.parents().to_vec(), || 0..count as u32);
        let mut met = Vec::with_capacity(graph.edge_count());
        for (from, &node) in (0u32..).zip(walk.preorder()) {
            for &successor in graph.successors(node) {
                let to = walk.number(successor).expect("a successor of a node that is reached is reached");
                if !walk.spans(to, from) {
                    met.push((tree.nearest_common(from, to).expect("the walk has one root"), from, to));
                }
            }
        }
        let mut starts = vec![0u32; count + 1];
        for &(at, ..) in &met {
            starts[at as usize + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut edges = vec![(NONE, NONE); met.len()];
        for &(at, from, to) in &met {
            edges[next[at as usize] as usize] = (from, to);
            next[at as usize] += 1;
        }
        Meetings { edges, starts }
    }

    fn at(&self, node: u32) -> impl Iterator<Item = (u32, u32)> {
        let range = self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize;
        self.edges[range].iter().copied()
    }
}

/// Which node each node has collapsed into: a union-find whose paths are halved as they are walked.
pub(crate) struct Collapsed {
    into: Vec<u32>,
}

impl Collapsed {
    /// Every node by itself.
    pub(crate) fn new(count: usize) -> Collapsed {
        Collapsed { into: (0..count as u32).collect() }
    }

    /// Lets `node`, which has not collapsed into another one yet, collapse into `into`.
    pub(crate) fn join(&mut self, node: u32, into: u32) {
        self.into[node as usize] = into;
    }

    pub(crate) fn find(&mut self, node: u32) -> u32 {
        let mut node = node as usize;
        while self.into[node] as usize != node {
            let above = self.into[node] as usize;
            self.into[node] = self.into[above];
            node = above;
        }
        node as u32
    }
}

/// Linked lists of numbers, one per node, in one vector.
struct Lists {
    head: Vec<u32>,
    /// A value and the place of the next entry.
    entries: Vec<(u32, u32)>,
}

impl Lists {
    fn new(count: usize) -> Lists {
        Lists { head: vec![NONE; count], entries: Vec::new() }
    }

    fn push(&mut self, node: u32, value: u32) {
        let head = &mut self.head[node as usize];
        self.entries.push((value, *head));
        *head = self.entries.len() as u32 - 1;
    }

    /// Empties the list of `node`; returns the place of its first entry.
    fn take(&mut self, node: u32) -> u32 {
        std::mem::replace(&mut self.head[node as usize], NONE)
    }

    fn entry(&self, place: u32) -> Option<(u32, u32)> {
        self.entries.get(place as usize).copied()
    }
}

/// By loop: the sources of the edges that return to its header.
fn latches(graph: &Graph, walk: &DepthFirst, headers: &[NodeId]) -> Rows {
    Rows::group(headers.len(), || {
        (0u32..).zip(headers).flat_map(|(id, &header)| {
            let sources = graph.predecessors(header).iter().copied();
            sources.filter(move |&source| walk.is_ancestor(header, source)).map(move |source| (id, source))
        })
    })
}

/// Marks the loops that an edge enters elsewhere than at the header.
fn irreducible(graph: &Graph, walk: &DepthFirst, headers: &[NodeId], innermost: &[u32], nesting: &Tree) -> Vec<bool> {
    let mut marked = vec![false; headers.len()];
    // From a marked loop on to the nearest one around it that is not, with `headers.len()` for the outside: each loop
    // is marked once, however many edges enter it.
    let outside = headers.len() as u32;
    let mut unmarked = Collapsed::new(headers.len() + 1);
    for &from in walk.preorder() {
        for &to in graph.successors(from) {
            let inner = innermost[to.index()];
            if inner == NONE {
                continue;
            }
            // An edge to a header enters that loop as it should.
            let entered = if headers[inner as usize] == to { nesting.parent(inner).unwrap_or(outside) } else { inner };
            let inside = |id: u32| {
                let source = innermost[from.index()];
                id == outside || (source != NONE && nesting.is_ancestor(id, source))
            };
            let mut id = unmarked.find(entered);
            while !inside(id) {
                marked[id as usize] = true;
                unmarked.join(id, nesting.parent(id).unwrap_or(outside));
                id = unmarked.find(id);
            }
        }
    }
    marked
}

/// The layout of [`crate::loop_order`], and by loop where it starts in it and how many members it has.
///
/// The reverse postorder is topological among the parts of a loop, each standing where its header stands: the target of
/// an edge is finished before its source, except for edges back to an ancestor; such an ancestor is the header of a
/// loop around both ends. So each loop gets a stretch of the layout when its header is reached, and each node the next
/// place in the stretch of its loop.
fn lay_out(
    walk: &DepthFirst,
    headers: &[NodeId],
    innermost: &[u32],
    nesting: &Tree,
) -> (Vec<NodeId>, Vec<u32>, Vec<u32>) {
    let mut size = vec![0u32; headers.len()];
    for &node in walk.preorder() {
        let inner = innermost[node.index()];
        if inner != NONE {
            size[inner as usize] += 1;
        }
    }
    for id in (0..headers.len() as u32).rev() {
        if let Some(parent) = nesting.parent(id) {
            size[parent as usize] += size[id as usize];
        }
    }
    let mut start = vec![0u32; headers.len()];
    // The next free place of each loop's stretch, and of what is outside all loops.
    let mut next = vec![0u32; headers.len()];
    let mut next_outside = 0u32;
    let mut order = vec![NodeId(0); walk.preorder().len()];
    for node in walk.reverse_postorder() {
        let inner = Some(innermost[node.index()]).filter(|&id| id != NONE);
        let headed = inner.filter(|&id| headers[id as usize] == node);
        let around = if let Some(id) = headed { nesting.parent(id) } else { inner };
        let slot = match around {
            Some(id) => &mut next[id as usize],
            None => &mut next_outside,
        };
        let place = *slot;
        *slot += headed.map_or(1, |id| size[id as usize]);
        order[place as usize] = node;
        if let Some(id) = headed {
            start[id as usize] = place;
            next[id as usize] = place + 1;
        }
    }
    (order, start, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    fn members(loops: &Loops, header: u32) -> Vec<u32> {
        let id = loops.headed_by(NodeId(header)).expect("a loop with this header");
        let mut members: Vec<u32> = loops.members(id).iter().map(|node| node.0).collect();
        members.sort_unstable();
        members
    }

    #[test]
    fn a_graph_without_cycles_has_no_loops() {
        let loops = Loops::of(&graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]));
        assert_eq!(loops.count(), 0);
        assert_eq!((loops.depth(NodeId(3)), loops.innermost(NodeId(3))), (0, None));
    }

    #[test]
    fn an_inner_loop_with_a_break_out_of_both() {
        // for (1) { for (2) { 3: if … break both; } 4 } 5
        let loops = Loops::of(&graph(6, &[(0, 1), (1, 2), (1, 5), (2, 3), (2, 4), (3, 2), (3, 5), (4, 1)]));
        assert_eq!(members(&loops, 1), [1, 2, 3, 4]);
        assert_eq!(members(&loops, 2), [2, 3]);
        let [outer, inner] = [1, 2].map(|header| loops.headed_by(NodeId(header)).unwrap());
        assert_eq!((loops.parent(inner), loops.parent(outer)), (Some(outer), None));
        assert_eq!(loops.latches(outer), nodes(&[4]));
        assert_eq!(loops.latches(inner), nodes(&[3]));
        assert_eq!([0, 1, 3, 4, 5].map(|node| loops.depth(NodeId(node))), [0, 1, 2, 1, 0]);
        assert!(
            loops.contains(outer, NodeId(3)) && !loops.contains(inner, NodeId(4)) && !loops.contains(outer, NodeId(5))
        );
        assert!(!loops.is_irreducible(outer) && !loops.is_irreducible(inner));
    }

    #[test]
    fn two_ways_back_to_one_header_are_one_loop() {
        let loops = Loops::of(&graph(4, &[(0, 1), (1, 2), (1, 3), (2, 1), (3, 1)]));
        assert_eq!(loops.count(), 1);
        assert_eq!(loops.latches(LoopId(0)), nodes(&[2, 3]));
    }

    #[test]
    fn a_node_that_leads_to_itself_is_a_loop() {
        let loops = Loops::of(&graph(2, &[(0, 0), (0, 1)]));
        assert_eq!(members(&loops, 0), [0]);
        assert_eq!(loops.latches(LoopId(0)), nodes(&[0]));
    }

    #[test]
    fn a_loop_with_two_entries_is_irreducible() {
        // 1 and 2 form a cycle, and 0 leads to both; 3 leads to itself inside nothing.
        let loops = Loops::of(&graph(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3), (3, 3)]));
        let id = loops.innermost(NodeId(1)).unwrap();
        assert_eq!(loops.innermost(NodeId(2)), Some(id));
        assert!(loops.is_irreducible(id));
        assert!(!loops.is_irreducible(loops.headed_by(NodeId(3)).unwrap()));
    }

    #[test]
    fn a_jump_into_an_inner_loop_makes_the_loops_it_skips_irreducible() {
        // 1 { 2 { 3 { 4 } } }, and 5, in loop 1 only, jumps to 4.
        let edges = [(0, 1), (1, 5), (1, 2), (2, 3), (2, 1), (3, 4), (4, 3), (3, 2), (5, 4)];
        let loops = Loops::of(&graph(6, &edges));
        let marks = [1, 2, 3].map(|header| loops.is_irreducible(loops.headed_by(NodeId(header)).unwrap()));
        assert_eq!(marks, [false, true, true]);
    }

    #[test]
    fn cycles_that_are_not_reached_are_no_loops() {
        let loops = Loops::of(&graph(4, &[(0, 1), (1, 0), (2, 3), (3, 2), (3, 1)]));
        assert_eq!(loops.count(), 1);
        assert_eq!(members(&loops, 0), [0, 1]);
        assert!(!loops.is_irreducible(LoopId(0)));
    }
}
