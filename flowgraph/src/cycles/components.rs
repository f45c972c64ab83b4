//! Strongly connected components.

use crate::graph::Rows;
use crate::{Graph, NONE, NodeId};

/// A strongly connected component, numbered from 0 in topological order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

impl ComponentId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The strongly connected components of all nodes, also of those that the entry does not reach: two nodes share one
/// when each reaches the other. An edge between two components leads from the lower number to the higher.
///
/// Source: Tarjan, *Depth-first search and linear graph algorithms*, SIAM J. Comput. 1(2), 1972, section 4, with the
/// recursion turned into a stack. O(n + m).
#[derive(Clone, Debug)]
pub struct Components {
    of: Vec<ComponentId>,
    members: Rows,
    cyclic: Vec<bool>,
}

impl Components {
    /// The components of `graph`. The walk begins at the entry, then at each node not yet seen, in ascending order.
    #[must_use]
    pub fn of(graph: &Graph) -> Components {
        let (emitted, of_emitted) = Search::new(graph).run();
        let last = emitted.last().expect("a graph has at least one node");
        let count = of_emitted[last.index()] + 1;
        // A component is emitted after all that it leads to: number them backwards.
        let of: Vec<ComponentId> = of_emitted.iter().map(|&c| ComponentId(count - 1 - c)).collect();
        let members = Rows::group(count as usize, || emitted.iter().map(|&node| (of[node.index()].0, node)));
        let cyclic = (0..count as usize)
            .map(|c| match *members.row(c) {
                [only] => graph.successors(only).contains(&only),
                _ => true,
            })
            .collect();
        Components { of, members, cyclic }
    }

    /// How many components there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cyclic.len()
    }

    /// All components in topological order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ComponentId> + ExactSizeIterator + use<> {
        (0..self.count() as u32).map(ComponentId)
    }

    /// The component of `node`.
    #[must_use]
    pub fn component(&self, node: NodeId) -> ComponentId {
        self.of[node.index()]
    }

    /// The nodes of a component in the order in which the walk entered them; the first is the one through which it
    /// came.
    #[must_use]
    pub fn members(&self, component: ComponentId) -> &[NodeId] {
        self.members.row(component.index())
    }

    /// Whether a path leads from its nodes back to them: more than one node, or one with an edge to itself.
    #[must_use]
    pub fn is_cyclic(&self, component: ComponentId) -> bool {
        self.cyclic[component.index()]
    }
}

/// The state of the walk.
struct Search<'a> {
    graph: &'a Graph,
    /// By node: its preorder number; `NONE` before it is entered.
    number: Vec<u32>,
    /// By node: the lowest number of a node on the stack that its subtree is known to reach.
    low: Vec<u32>,
    /// By node: the number of its component in the order of completion; `NONE` before.
    component: Vec<u32>,
    /// Nodes entered whose component is not complete.
    stack: Vec<NodeId>,
    /// The path from the root of the walk, with how many successors of each node were taken.
    path: Vec<(NodeId, usize)>,
    /// Nodes of complete components, component by component.
    emitted: Vec<NodeId>,
    entered: u32,
    completed: u32,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Search<'a> {
        let n = graph.node_count();
        Search {
            graph,
            number: vec![NONE; n],
            low: vec![NONE; n],
            component: vec![NONE; n],
            stack: Vec::new(),
            path: Vec::new(),
            emitted: Vec::with_capacity(n),
            entered: 0,
            completed: 0,
        }
    }

    fn run(mut self) -> (Vec<NodeId>, Vec<u32>) {
        for root in std::iter::once(self.graph.entry()).chain(self.graph.nodes()) {
            if self.number[root.index()] == NONE {
                self.enter(root);
                self.walk();
            }
        }
        (self.emitted, self.component)
    }

    fn enter(&mut self, node: NodeId) {
        self.number[node.index()] = self.entered;
        self.low[node.index()] = self.entered;
        self.entered += 1;
        self.stack.push(node);
        self.path.push((node, 0));
    }

    fn walk(&mut self) {
        while let Some((node, step)) = self.path.last_mut() {
            let i = node.index();
            if let Some(&successor) = self.graph.successors(*node).get(*step) {
                *step += 1;
                let s = successor.index();
                if self.number[s] == NONE {
                    self.enter(successor);
                } else if self.component[s] == NONE {
                    self.low[i] = self.low[i].min(self.number[s]);
                }
                continue;
            }
            self.path.pop();
            if let Some((parent, _)) = self.path.last() {
                let p = parent.index();
                self.low[p] = self.low[p].min(self.low[i]);
            }
            if self.low[i] == self.number[i] {
                self.complete(i);
            }
        }
    }

    /// Takes the component whose first entered node is `root` off the stack.
    fn complete(&mut self, root: usize) {
        let start = self.stack.iter().rposition(|node| node.index() == root).expect("an open node is on the stack");
        for node in self.stack.drain(start..) {
            self.component[node.index()] = self.completed;
            self.emitted.push(node);
        }
        self.completed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    #[test]
    fn components_come_in_topological_order() {
        // 0 -> {1 <-> 2} -> 3 (to itself) -> 4; 5 is not reached and leads to 1.
        let g = graph(6, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 3), (3, 4), (5, 1)]);
        let components = Components::of(&g);
        let members: Vec<_> = components.ids().map(|c| components.members(c).to_vec()).collect();
        assert_eq!(members, [nodes(&[5]), nodes(&[0]), nodes(&[1, 2]), nodes(&[3]), nodes(&[4])]);
        let cyclic: Vec<_> = components.ids().map(|c| components.is_cyclic(c)).collect();
        assert_eq!(cyclic, [false, false, true, true, false]);
        assert_eq!(components.component(NodeId(2)), ComponentId(2));
    }

    #[test]
    fn the_first_member_is_where_the_walk_came_in() {
        let components = Components::of(&graph(4, &[(0, 3), (3, 1), (1, 2), (2, 3)]));
        assert_eq!(components.members(ComponentId(1)), nodes(&[3, 1, 2]));
    }
}
