//! Trees over dense indices: who is above whom, and where two branches meet.

use crate::NONE;

/// A forest given by parents, with O(1) ancestor tests and O(log n) nearest common ancestors.
///
/// The ancestor test compares intervals of preorder numbers. The climb uses one extra pointer per node that skips a
/// part of the way up: Myers, *An applicative random-access stack*, Inf. Process. Lett. 17(5), 1983. 20 bytes per node.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    parent: Vec<u32>,
    jump: Vec<u32>,
    depth: Vec<u32>,
    /// The interval of preorder numbers of the subtree, `first..end`; empty for nodes outside the forest.
    first: Vec<u32>,
    end: Vec<u32>,
}

impl Tree {
    /// `parent[i]` is `NONE` for roots and for nodes outside the forest; `order` lists the nodes of the forest, each
    /// after its parent. O(n).
    pub(crate) fn new<I: DoubleEndedIterator<Item = u32>>(parent: Vec<u32>, order: impl Fn() -> I) -> Tree {
        let n = parent.len();
        let mut tree = Tree { jump: vec![NONE; n], depth: vec![0; n], first: vec![0; n], end: vec![0; n], parent };
        let mut size = vec![1u32; n];
        for node in order().rev() {
            if let Some(parent) = tree.parent(node) {
                size[parent as usize] += size[node as usize];
            }
        }
        // Where the next child of each node, and the next root, begins.
        let mut next_child = vec![0u32; n];
        let mut next_root = 0;
        for node in order() {
            let i = node as usize;
            let slot = match tree.parent(node) {
                Some(parent) => &mut next_child[parent as usize],
                None => &mut next_root,
            };
            tree.first[i] = *slot;
            *slot += size[i];
            tree.end[i] = *slot;
            next_child[i] = tree.first[i] + 1;
            tree.jump[i] = node;
            if let Some(parent) = tree.parent(node) {
                let p = parent as usize;
                tree.depth[i] = tree.depth[p] + 1;
                let once = tree.jump[p] as usize;
                let twice = tree.jump[once] as usize;
                let equal_spans = tree.depth[p] - tree.depth[once] == tree.depth[once] - tree.depth[twice];
                tree.jump[i] = if equal_spans { twice as u32 } else { parent };
            }
        }
        tree
    }

    pub(crate) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parent[node as usize]).filter(|&parent| parent != NONE)
    }

    pub(crate) fn contains(&self, node: u32) -> bool {
        self.first[node as usize] < self.end[node as usize]
    }

    /// How many steps up the root is; 0 outside the forest.
    pub(crate) fn depth(&self, node: u32) -> u32 {
        self.depth[node as usize]
    }

    /// The interval of preorder numbers that the subtree of `node` fills; empty outside the forest.
    pub(crate) fn interval(&self, node: u32) -> std::ops::Range<u32> {
        self.first[node as usize]..self.end[node as usize]
    }

    /// Whether `ancestor` is `node` or above it; false outside the forest.
    pub(crate) fn is_ancestor(&self, ancestor: u32, node: u32) -> bool {
        let (a, n) = (ancestor as usize, node as usize);
        self.first[a] <= self.first[n] && self.first[n] < self.end[a] && self.contains(node)
    }

    /// The child of `ancestor` whose subtree holds `node`; `None` where `node` is not below `ancestor`.
    pub(crate) fn child_towards(&self, ancestor: u32, node: u32) -> Option<u32> {
        if node == ancestor || !self.is_ancestor(ancestor, node) {
            return None;
        }
        let mut below = node;
        while self.parent(below)? != ancestor {
            let jump = self.jump[below as usize];
            below = if self.depth(jump) > self.depth(ancestor) { jump } else { self.parent(below)? };
        }
        Some(below)
    }

    /// The lowest node that is an ancestor of both, where there is one.
    pub(crate) fn nearest_common(&self, a: u32, b: u32) -> Option<u32> {
        if !self.contains(a) || !self.contains(b) {
            return None;
        }
        let mut node = a;
        while !self.is_ancestor(node, b) {
            let jump = self.jump[node as usize];
            // A jump over the node that is looked for is refused; a root has nowhere to go.
            node = if jump == node || self.is_ancestor(jump, b) { self.parent(node)? } else { jump };
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ancestors_in_two_trees() {
        //   0        5
        //  1 2       6
        // 3   4
        let tree = Tree::new(vec![NONE, 0, 0, 1, 2, NONE, 5, NONE], || 0..7);
        assert_eq!(tree.nearest_common(3, 4), Some(0));
        assert_eq!(tree.nearest_common(3, 1), Some(1));
        assert_eq!(tree.nearest_common(4, 4), Some(4));
        assert_eq!(tree.nearest_common(4, 6), None);
        assert_eq!(tree.nearest_common(7, 7), None);
        assert!(!tree.contains(7) && !tree.is_ancestor(7, 7) && !tree.is_ancestor(0, 7) && !tree.is_ancestor(7, 0));
        assert!(tree.is_ancestor(0, 4) && !tree.is_ancestor(1, 4) && !tree.is_ancestor(0, 6));
    }

    #[test]
    fn a_long_branch_is_climbed_by_jumps() {
        // A spine of 1000 nodes with one leaf at each: the leaf of node i is 1000 + i.
        let parent: Vec<u32> = (0..2000)
            .map(|i| {
                if i == 0 {
                    NONE
                } else if i < 1000 {
                    i - 1
                } else {
                    i - 1000
                }
            })
            .collect();
        let tree = Tree::new(parent, || 0..2000);
        for (a, b) in [(1999, 1000), (1999, 1500), (1250, 1251), (999, 1998), (1998, 999)] {
            assert_eq!(tree.nearest_common(a, b), Some((a % 1000).min(b % 1000)));
        }
        for ancestor in [0, 1, 2, 500, 997] {
            assert_eq!(tree.child_towards(ancestor, 999), Some(ancestor + 1));
            assert_eq!(tree.child_towards(ancestor, 1000 + ancestor), Some(1000 + ancestor));
        }
        assert_eq!((tree.child_towards(999, 3), tree.child_towards(3, 3)), (None, None));
        assert_eq!(tree.depth(1999), 1000);
    }
}
