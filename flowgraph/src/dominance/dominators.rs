//! Dominators: which nodes every path from the entry to a node goes through.

use crate::dominance::tree::Tree;
use crate::{DepthFirst, Graph, NONE, NodeId};

/// The dominator tree of a graph. `a` dominates `b` when every path from the entry to `b` goes through `a`; each node
/// dominates itself.
///
/// Source: Lengauer and Tarjan, *A fast algorithm for finding dominators in a flowgraph*, ACM TOPLAS 1(1), 1979,
/// section 3: the simple version, whose EVAL compresses paths and whose LINK does not balance. O((n + m) log n) on
/// every graph; iterating over data-flow equations, or searching common dominators without buckets, is as fast on most
/// graphs but quadratic on some.
#[derive(Clone, Debug)]
pub struct Dominators {
    tree: Tree,
}

impl Dominators {
    /// The dominators of every node that the entry reaches.
    #[must_use]
    pub fn of(graph: &Graph) -> Dominators {
        let walk = DepthFirst::of(graph);
        let by_number = Search::new(graph, &walk).run();
        let mut idom = vec![NONE; graph.node_count()];
        for (&node, &dominator) in walk.preorder().iter().zip(&by_number) {
            if dominator != NONE {
                idom[node.index()] = walk.preorder()[dominator as usize].0;
            }
        }
        // A dominator is entered before the nodes it dominates, so the preorder has every parent first.
        Dominators { tree: Tree::new(idom, || walk.preorder().iter().map(|node| node.0)) }
    }

    /// The immediate dominator: the last node, other than itself, that every path to `node` goes through. `None` for
    /// the entry and for nodes that are not reached.
    #[must_use]
    pub fn idom(&self, node: NodeId) -> Option<NodeId> {
        self.tree.parent(node.0).map(NodeId)
    }

    /// Whether every path from the entry to `b` goes through `a`. A node that is not reached dominates itself only, and
    /// only itself dominates it. O(1).
    #[must_use]
    pub fn dominates(&self, a: NodeId, b: NodeId) -> bool {
        a == b || self.tree.is_ancestor(a.0, b.0)
    }

    /// The interval of numbers that the nodes dominated by `node` fill in a preorder of the tree, that of `node` itself
    /// first; empty for nodes that are not reached.
    pub(crate) fn interval(&self, node: NodeId) -> std::ops::Range<u32> {
        self.tree.interval(node.0)
    }

    /// How many nodes other than itself dominate `node`: 0 for the entry. `None` for nodes that are not reached.
    #[must_use]
    pub fn depth(&self, node: NodeId) -> Option<u32> {
        self.tree.contains(node.0).then(|| self.tree.depth(node.0))
    }

    /// The node that `ancestor` is the immediate dominator of and that dominates `node`, or is it: the first step down
    /// the tree from `ancestor` to `node`. `None` where `ancestor` does not strictly dominate `node`. O(log n).
    #[must_use]
    pub fn child_towards(&self, ancestor: NodeId, node: NodeId) -> Option<NodeId> {
        self.tree.child_towards(ancestor.0, node.0).map(NodeId)
    }

    /// The last node that every path to `a` and every path to `b` goes through; `None` when either is not reached.
    /// O(log n).
    #[must_use]
    pub fn nearest_common(&self, a: NodeId, b: NodeId) -> Option<NodeId> {
        self.tree.nearest_common(a.0, b.0).map(NodeId)
    }
}

/// The state of the algorithm. Nodes go by their place in the preorder of the walk.
struct Search<'a> {
    graph: &'a Graph,
    walk: &'a DepthFirst,
    /// The semidominator found so far.
    semi: Vec<u32>,
    /// The node above in the forest of processed nodes, paths compressed; `NONE` for roots.
    ancestor: Vec<u32>,
    /// The node with the least semidominator on the compressed part of the path.
    label: Vec<u32>,
    /// Nodes on the path that [`Search::eval`] compresses; kept to save allocations.
    path: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, walk: &'a DepthFirst) -> Search<'a> {
        let count = walk.preorder().len() as u32;
        Search {
            graph,
            walk,
            semi: (0..count).collect(),
            ancestor: vec![NONE; count as usize],
            label: (0..count).collect(),
            path: Vec::new(),
        }
    }

    /// The immediate dominator of each node, `NONE` for the entry.
    fn run(mut self) -> Vec<u32> {
        let (graph, walk) = (self.graph, self.walk);
        let count = self.semi.len();
        let mut idom = vec![NONE; count];
        // The nodes that wait for a semidominator's subtree: a linked list per semidominator.
        let mut bucket = vec![NONE; count];
        let mut next_in_bucket = vec![NONE; count];
        for w in (1..count as u32).rev() {
            let i = w as usize;
            for &predecessor in graph.predecessors(walk.preorder()[i]) {
                if let Some(v) = walk.number(predecessor) {
                    let u = self.eval(v);
                    self.semi[i] = self.semi[i].min(self.semi[u as usize]);
                }
            }
            let semi = self.semi[i] as usize;
            next_in_bucket[i] = bucket[semi];
            bucket[semi] = w;
            let parent = walk.parents()[i];
            self.ancestor[i] = parent;
            let mut v = std::mem::replace(&mut bucket[parent as usize], NONE);
            while v != NONE {
                let u = self.eval(v);
                // Either the parent itself, or the same dominator as u has, which is not known yet.
                idom[v as usize] = if self.semi[u as usize] < self.semi[v as usize] { u } else { parent };
                v = next_in_bucket[v as usize];
            }
        }
        for w in 1..count {
            if idom[w] != self.semi[w] {
                idom[w] = idom[idom[w] as usize];
            }
        }
        idom
    }

    /// The node with the least semidominator on the path from `v` up to, not including, the root of its processed tree;
    /// `v` itself when it is a root.
    fn eval(&mut self, v: u32) -> u32 {
        if self.ancestor[v as usize] == NONE {
            return v;
        }
        let mut x = v;
        while self.ancestor[self.ancestor[x as usize] as usize] != NONE {
            self.path.push(x);
            x = self.ancestor[x as usize];
        }
        while let Some(x) = self.path.pop() {
            let i = x as usize;
            let above = self.ancestor[i] as usize;
            if self.semi[self.label[above] as usize] < self.semi[self.label[i] as usize] {
                self.label[i] = self.label[above];
            }
            self.ancestor[i] = self.ancestor[above];
        }
        self.label[v as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::graph;

    fn idoms(dominators: &Dominators, count: u32) -> Vec<Option<u32>> {
        (0..count).map(|node| dominators.idom(NodeId(node)).map(|d| d.0)).collect()
    }

    #[test]
    fn the_join_of_a_diamond_is_dominated_by_its_branch() {
        let dominators = Dominators::of(&graph(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]));
        assert_eq!(idoms(&dominators, 4), [None, Some(0), Some(0), Some(0)]);
        assert_eq!(dominators.nearest_common(NodeId(1), NodeId(2)), Some(NodeId(0)));
        assert!(dominators.dominates(NodeId(0), NodeId(3)) && !dominators.dominates(NodeId(1), NodeId(3)));
    }

    /// The example of Lengauer and Tarjan 1979, figures 1 and 2, with R A B C D E F G H I J K L as 0 to 12.
    #[test]
    fn the_example_of_lengauer_and_tarjan() {
        let [r, a, b, c, d, e, f, g, h, i, j, k, l] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let edges = [
            (r, a),
            (r, b),
            (r, c),
            (a, d),
            (b, a),
            (b, d),
            (b, e),
            (c, f),
            (c, g),
            (d, l),
            (e, h),
            (f, i),
            (g, i),
            (g, j),
            (h, e),
            (h, k),
            (i, k),
            (j, i),
            (k, i),
            (k, r),
            (l, h),
        ];
        let dominators = Dominators::of(&graph(13, &edges));
        let expected = [
            None,
            Some(r),
            Some(r),
            Some(r),
            Some(r),
            Some(r),
            Some(c),
            Some(c),
            Some(r),
            Some(r),
            Some(g),
            Some(r),
            Some(d),
        ];
        assert_eq!(idoms(&dominators, 13), expected);
        assert_eq!(dominators.depth(NodeId(j)), Some(3));
        assert_eq!(dominators.nearest_common(NodeId(j), NodeId(f)), Some(NodeId(c)));
    }

    #[test]
    fn neither_entry_of_an_irreducible_loop_dominates_the_other() {
        let dominators = Dominators::of(&graph(3, &[(0, 1), (0, 2), (1, 2), (2, 1)]));
        assert_eq!(idoms(&dominators, 3), [None, Some(0), Some(0)]);
    }

    #[test]
    fn nodes_that_are_not_reached_take_no_part() {
        // 2 leads into the reached part but must not count as a path there.
        let dominators = Dominators::of(&graph(4, &[(0, 1), (2, 1), (2, 3)]));
        assert_eq!(idoms(&dominators, 4), [None, Some(0), None, None]);
        assert_eq!(dominators.depth(NodeId(2)), None);
        assert_eq!(dominators.nearest_common(NodeId(1), NodeId(2)), None);
        assert!(dominators.dominates(NodeId(2), NodeId(2)));
        assert!(!dominators.dominates(NodeId(2), NodeId(3)) && !dominators.dominates(NodeId(0), NodeId(2)));
    }
}
