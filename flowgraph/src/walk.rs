//! Depth-first walks from the entry.

use crate::{Graph, NONE, NodeId};

/// A depth-first walk from the entry of a graph: the nodes it reaches in preorder and in postorder, and its tree.
///
/// Source: Tarjan, *Depth-first search and linear graph algorithms*, SIAM J. Comput. 1(2), 1972. O(n + m), without
/// recursion.
#[derive(Clone, Debug)]
pub struct DepthFirst {
    preorder: Vec<NodeId>,
    postorder: Vec<NodeId>,
    /// By node: its place in the preorder; `NONE` when it is not reached.
    number: Vec<u32>,
    /// By place in the preorder: the place of the node from which it was reached; `NONE` for the entry.
    parent: Vec<u32>,
    /// By place in the preorder: the last place that belongs to its subtree.
    last: Vec<u32>,
}

impl DepthFirst {
    /// The walk that takes the successors of each node in their order.
    #[must_use]
    pub fn of(graph: &Graph) -> DepthFirst {
        DepthFirst::walk(graph, |_, step| step)
    }

    /// The walk that takes the successors of each node from the last to the first.
    ///
    /// A node is finished before the nodes that led to it, so of two arms of a branch the one walked last comes first
    /// in the *reverse* postorder. This walk's reverse postorder has them in the order of the successors.
    #[must_use]
    pub fn last_successor_first(graph: &Graph) -> DepthFirst {
        DepthFirst::walk(graph, |count, step| count - 1 - step)
    }

    /// `pick(count, step)` is the index of the successor, of `count`, that is taken as number `step`.
    fn walk(graph: &Graph, pick: impl Fn(usize, usize) -> usize) -> DepthFirst {
        let mut walk = DepthFirst {
            preorder: Vec::new(),
            postorder: Vec::new(),
            number: vec![NONE; graph.node_count()],
            parent: Vec::new(),
            last: Vec::new(),
        };
        // The path from the entry to the current node: each node's preorder number and how many successors were taken.
        let mut path = Vec::new();
        walk.enter(graph.entry(), NONE);
        path.push((0u32, 0usize));
        while let Some((number, step)) = path.last_mut() {
            let node = walk.preorder[*number as usize];
            let successors = graph.successors(node);
            if *step < successors.len() {
                let successor = successors[pick(successors.len(), *step)];
                *step += 1;
                if walk.number[successor.index()] == NONE {
                    let parent = *number;
                    path.push((walk.enter(successor, parent), 0));
                }
            } else {
                walk.last[*number as usize] = walk.preorder.len() as u32 - 1;
                walk.postorder.push(node);
                path.pop();
            }
        }
        walk
    }

    fn enter(&mut self, node: NodeId, parent: u32) -> u32 {
        let number = self.preorder.len() as u32;
        self.number[node.index()] = number;
        self.preorder.push(node);
        self.parent.push(parent);
        self.last.push(number);
        number
    }

    /// The nodes reached, in the order in which they were entered; the entry is the first.
    #[must_use]
    pub fn preorder(&self) -> &[NodeId] {
        &self.preorder
    }

    /// The nodes reached, in the order in which they were left; the entry is the last.
    #[must_use]
    pub fn postorder(&self) -> &[NodeId] {
        &self.postorder
    }

    /// The postorder backwards: every edge leads forward in it, except for those that return to an ancestor in the
    /// walk's tree.
    pub fn reverse_postorder(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator {
        self.postorder.iter().rev().copied()
    }

    /// Whether the entry reaches `node`.
    #[must_use]
    pub fn reaches(&self, node: NodeId) -> bool {
        self.number[node.index()] != NONE
    }

    /// The place of `node` in the preorder, from 0; `None` when it is not reached.
    #[must_use]
    pub fn number(&self, node: NodeId) -> Option<u32> {
        Some(self.number[node.index()]).filter(|&number| number != NONE)
    }

    /// The node from which `node` was reached; `None` for the entry and for nodes that are not reached.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let parent = self.parent[self.number(node)? as usize];
        (parent != NONE).then(|| self.preorder[parent as usize])
    }

    /// Whether `ancestor` is `node` or one of the nodes through which the walk's tree leads to it. False when either is
    /// not reached.
    #[must_use]
    pub fn is_ancestor(&self, ancestor: NodeId, node: NodeId) -> bool {
        match (self.number(ancestor), self.number(node)) {
            (Some(a), Some(n)) => self.spans(a, n),
            _ => false,
        }
    }

    /// [`DepthFirst::is_ancestor`] for places in the preorder.
    pub(crate) fn spans(&self, ancestor: u32, number: u32) -> bool {
        ancestor <= number && number <= self.last[ancestor as usize]
    }

    /// By place in the preorder: the place of the parent, `NONE` for the entry.
    pub(crate) fn parents(&self) -> &[u32] {
        &self.parent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    #[test]
    fn both_walks_of_a_diamond() {
        let g = graph(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (4, 0)]);
        let walk = DepthFirst::of(&g);
        assert_eq!(walk.preorder(), nodes(&[0, 1, 3, 2]));
        assert_eq!(walk.postorder(), nodes(&[3, 1, 2, 0]));
        assert_eq!(walk.parent(NodeId(3)), Some(NodeId(1)));
        assert_eq!(walk.parent(NodeId(0)), None);
        let walk = DepthFirst::last_successor_first(&g);
        assert_eq!(walk.preorder(), nodes(&[0, 2, 3, 1]));
        assert_eq!(walk.reverse_postorder().collect::<Vec<_>>(), nodes(&[0, 1, 2, 3]));
    }

    #[test]
    fn a_node_that_is_not_reached_has_no_place() {
        let walk = DepthFirst::of(&graph(2, &[(1, 0), (1, 1)]));
        assert!(!walk.reaches(NodeId(1)));
        assert_eq!((walk.number(NodeId(1)), walk.parent(NodeId(1))), (None, None));
        assert!(!walk.is_ancestor(NodeId(1), NodeId(1)));
    }

    #[test]
    fn ancestors_are_those_on_the_path_of_the_tree() {
        let walk = DepthFirst::of(&graph(5, &[(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)]));
        assert!(walk.is_ancestor(NodeId(0), NodeId(2)));
        assert!(walk.is_ancestor(NodeId(3), NodeId(4)));
        assert!(walk.is_ancestor(NodeId(4), NodeId(4)));
        assert!(!walk.is_ancestor(NodeId(4), NodeId(2)));
        assert!(!walk.is_ancestor(NodeId(2), NodeId(1)));
    }
}
