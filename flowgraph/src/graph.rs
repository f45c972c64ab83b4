//! The graph itself: nodes, edges in both directions, and how to build one.

use crate::NONE;

/// A node of a [`Graph`]: a dense index, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The number as an index into vectors that run parallel to the nodes.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A directed graph with an entry. It does not change once built.
///
/// Edges are kept in two flat arrays (one per direction), 8 bytes per edge and 8 bytes per node in all. There is at
/// most one edge from a node to another; an edge from a node to itself is allowed.
#[derive(Clone, Debug)]
pub struct Graph {
    entry: NodeId,
    successors: Rows,
    predecessors: Rows,
}

impl Graph {
    /// Where control enters.
    #[must_use]
    pub fn entry(&self) -> NodeId {
        self.entry
    }

    /// How many nodes there are; at least 1.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.successors.row_count()
    }

    /// How many edges there are, duplicates merged.
    #[must_use]
    pub fn edge_count(&self) -> usize {
        self.successors.targets.len()
    }

    /// All nodes in ascending order, reachable or not.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.node_count() as u32).map(NodeId)
    }

    /// Where the edges of `node` lead, in the order in which they were first added.
    ///
    /// # Panics
    /// When the graph has no such node.
    #[must_use]
    pub fn successors(&self, node: NodeId) -> &[NodeId] {
        self.successors.row(node.index())
    }

    /// Where the edges to `node` come from, in ascending order.
    ///
    /// # Panics
    /// When the graph has no such node.
    #[must_use]
    pub fn predecessors(&self, node: NodeId) -> &[NodeId] {
        self.predecessors.row(node.index())
    }
}

/// Collects the edges of a [`Graph`].
#[derive(Clone, Debug)]
pub struct Builder {
    node_count: u32,
    edges: Vec<(NodeId, NodeId)>,
}

impl Builder {
    /// Starts a graph with the nodes 0 to `node_count` - 1 and no edges.
    ///
    /// # Panics
    /// When `node_count` is 2^32 - 1 or more.
    #[must_use]
    pub fn new(node_count: usize) -> Builder {
        let node_count = u32::try_from(node_count).ok().filter(|&n| n < NONE);
        Builder { node_count: node_count.expect("a graph has fewer than 2^32 - 1 nodes"), edges: Vec::new() }
    }

    /// Adds an edge. One that is there already is merged with it and keeps its place in the order.
    ///
    /// # Panics
    /// When a node is outside the range given to [`Builder::new`].
    pub fn edge(&mut self, from: NodeId, to: NodeId) -> &mut Builder {
        let last = from.max(to);
        assert!(last.0 < self.node_count, "edge {from:?} -> {to:?} in a graph of {} nodes", self.node_count);
        self.edges.push((from, to));
        self
    }

    /// The graph with these edges. O(n + m).
    ///
    /// # Panics
    /// When `entry` is outside the range given to [`Builder::new`], so also when there are no nodes, and when there are
    /// 2^32 edges or more.
    #[must_use]
    pub fn build(&self, entry: NodeId) -> Graph {
        assert!(entry.0 < self.node_count, "entry {entry:?} in a graph of {} nodes", self.node_count);
        let rows = self.node_count as usize;
        let mut successors = Rows::group(rows, || self.edges.iter().map(|&(from, to)| (from.0, to)));
        successors.merge_duplicates();
        let predecessors = Rows::group(rows, || successors.entries().map(|(from, to)| (to.0, from)));
        Graph { entry, successors, predecessors }
    }
}

/// A list of nodes for each of a dense range of keys, all lists in one array.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// Row `i` is `targets[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    targets: Vec<NodeId>,
}

impl Rows {
    /// Groups (key, value) pairs by key, keeping the order of the pairs of each key: a counting sort, O(rows + pairs).
    /// `pairs` is called twice and gives the same pairs each time.
    pub(crate) fn group<I: Iterator<Item = (u32, NodeId)>>(rows: usize, pairs: impl Fn() -> I) -> Rows {
        let mut starts = vec![0u32; rows + 1];
        let mut count = 0u32;
        for (key, _) in pairs() {
            count = count.checked_add(1).expect("a graph has fewer than 2^32 edges");
            starts[key as usize + 1] += 1;
        }
        for i in 0..rows {
            starts[i + 1] += starts[i];
        }
        let mut targets = vec![NodeId(0); count as usize];
        let mut next = starts.clone();
        for (key, value) in pairs() {
            let slot = &mut next[key as usize];
            targets[*slot as usize] = value;
            *slot += 1;
        }
        Rows { starts, targets }
    }

    /// Keeps the first of equal values in each row.
    fn merge_duplicates(&mut self) {
        let mut last_row_with = vec![NONE; self.row_count()];
        let mut kept = 0;
        for row in 0..self.row_count() {
            let range = self.starts[row] as usize..self.starts[row + 1] as usize;
            self.starts[row] = kept as u32;
            for i in range {
                let target = self.targets[i];
                if last_row_with[target.index()] != row as u32 {
                    last_row_with[target.index()] = row as u32;
                    self.targets[kept] = target;
                    kept += 1;
                }
            }
        }
        *self.starts.last_mut().expect("one more start than rows") = kept as u32;
        self.targets.truncate(kept);
    }

    pub(crate) fn row_count(&self) -> usize {
        self.starts.len() - 1
    }

    pub(crate) fn row(&self, row: usize) -> &[NodeId] {
        &self.targets[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    fn entries(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        (0..self.row_count()).flat_map(|row| self.row(row).iter().map(move |&to| (NodeId(row as u32), to)))
    }
}

#[cfg(test)]
pub(crate) fn graph(node_count: usize, edges: &[(u32, u32)]) -> Graph {
    let mut builder = Builder::new(node_count);
    for &(from, to) in edges {
        builder.edge(NodeId(from), NodeId(to));
    }
    builder.build(NodeId(0))
}

#[cfg(test)]
pub(crate) fn nodes(numbers: &[u32]) -> Vec<NodeId> {
    numbers.iter().map(|&n| NodeId(n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_merge_and_successors_keep_their_order() {
        let g = graph(4, &[(0, 3), (0, 1), (0, 3), (2, 1), (0, 2), (2, 1), (2, 2)]);
        assert_eq!(g.successors(NodeId(0)), nodes(&[3, 1, 2]));
        assert_eq!(g.successors(NodeId(1)), nodes(&[]));
        assert_eq!(g.successors(NodeId(2)), nodes(&[1, 2]));
        assert_eq!(g.predecessors(NodeId(1)), nodes(&[0, 2]));
        assert_eq!(g.predecessors(NodeId(2)), nodes(&[0, 2]));
        assert_eq!((g.node_count(), g.edge_count()), (4, 5));
    }

    #[test]
    fn an_edge_to_the_first_node_of_the_first_row_is_kept() {
        let g = graph(1, &[(0, 0)]);
        assert_eq!(g.successors(NodeId(0)), nodes(&[0]));
    }

    #[test]
    #[should_panic(expected = "in a graph of 2 nodes")]
    fn an_edge_to_a_node_outside_the_graph_is_refused() {
        Builder::new(2).edge(NodeId(0), NodeId(2));
    }

    #[test]
    #[should_panic(expected = "in a graph of 0 nodes")]
    fn a_graph_without_nodes_is_refused() {
        let _ = Builder::new(0).build(NodeId(0));
    }
}
