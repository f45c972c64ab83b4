//! Whether a graph is structured: whether it reduces to one node.

use std::collections::BTreeSet;

use crate::{DepthFirst, Graph, NodeId};

/// What is left of a graph when everything structured in it has been folded away, step by step:
///
/// - *sequence*: a node absorbs its only successor, if it is that one's only predecessor;
/// - *if, if-else, switch*: a branch absorbs its arms: nodes with no other predecessor, and with one and the same only
///   successor. The branch may lead there directly too, but nowhere else;
/// - *while*: the same with one arm, back to the branch, which has one other successor. It leaves an edge of the branch
///   to itself;
/// - *do-while*: a node's edge to itself goes, where the node has at most one other successor.
///
/// The exits lead to one end, and so do nodes without successors. A graph is *structured* when one node is left before
/// the end. Then lanes that part at a branch, and wait for each other at its immediate post-dominator, run no block
/// twice that they could have run together. A switch at the head of a loop is an exception, if its arms continue the
/// loop: these reach the head one by one.
///
/// Rules of this kind are those of structural analysis (Sharir, *Structural analysis: a new approach to flow analysis
/// in optimizing compilers*, Computer Languages 5, 1980). Only nodes that the entry reaches count. For n nodes, m edges
/// and branches of at most d ways O((n + m) d log n).
#[derive(Clone, Debug)]
pub struct Reduction {
    /// By node: the one that absorbed it.
    into: Vec<NodeId>,
    left: Vec<NodeId>,
    structured: bool,
}

impl Reduction {
    /// Reduces `graph`, when control may leave at `exits`.
    ///
    /// # Panics
    /// When an exit is not a node of the graph.
    #[must_use]
    pub fn of(graph: &Graph, exits: &[NodeId]) -> Reduction {
        let walk = DepthFirst::of(graph);
        let mut state = State::new(graph, exits, &walk);
        let mut work: BTreeSet<u32> = walk.preorder().iter().map(|node| node.0).collect();
        while let Some(node) = work.pop_first() {
            if state.alive[node as usize] && state.fold(node) {
                // What has changed is the node's successors and, for those before it, whether it is an arm.
                work.insert(node);
                work.extend(&state.before[node as usize]);
                work.extend(state.after[node as usize].iter().filter(|&&to| to != state.end));
            }
        }
        let mut into: Vec<NodeId> = graph.nodes().collect();
        for start in graph.nodes() {
            let mut last = start;
            while state.into[last.index()] != last.0 {
                last = NodeId(state.into[last.index()]);
            }
            // Each path is walked once: what is on it leads straight to its end from now on.
            let mut node = start;
            while state.into[node.index()] != node.0 {
                node = NodeId(std::mem::replace(&mut state.into[node.index()], last.0));
            }
            into[start.index()] = last;
        }
        let left: Vec<NodeId> = walk.reverse_postorder().filter(|node| state.alive[node.index()]).collect();
        let structured = left.len() == 1 && state.after[graph.entry().index()].iter().all(|&to| to == state.end);
        Reduction { into, left, structured }
    }

    /// Whether one node is left.
    #[must_use]
    pub fn is_structured(&self) -> bool {
        self.structured
    }

    /// The nodes that are left, the entry first, in reverse postorder of the graph.
    #[must_use]
    pub fn left(&self) -> &[NodeId] {
        &self.left
    }

    /// The node that is left of a structured part of the graph: the one that absorbed `node`, or itself. For a node
    /// that the entry does not reach, itself.
    #[must_use]
    pub fn of_node(&self, node: NodeId) -> NodeId {
        self.into[node.index()]
    }
}

/// The graph while it shrinks.
struct State {
    after: Vec<BTreeSet<u32>>,
    before: Vec<BTreeSet<u32>>,
    alive: Vec<bool>,
    into: Vec<u32>,
    /// Never absorbed: control enters it from outside.
    entry: u32,
    /// The number of the end, behind those of all nodes.
    end: u32,
}

impl State {
    fn new(graph: &Graph, exits: &[NodeId], walk: &DepthFirst) -> State {
        let end = graph.node_count() as u32;
        let none = vec![BTreeSet::new(); graph.node_count() + 1];
        let mut state = State {
            after: none.clone(),
            before: none,
            alive: graph.nodes().map(|node| walk.reaches(node)).collect(),
            into: (0..end).collect(),
            entry: graph.entry().0,
            end,
        };
        for &node in walk.preorder() {
            for &to in graph.successors(node) {
                state.edge(node.0, to.0);
            }
            if graph.successors(node).is_empty() {
                state.edge(node.0, end);
            }
        }
        for &exit in exits.iter().filter(|&&exit| walk.reaches(exit)) {
            state.edge(exit.0, end);
        }
        state
    }

    fn edge(&mut self, from: u32, to: u32) {
        self.after[from as usize].insert(to);
        self.before[to as usize].insert(from);
    }

    fn cut(&mut self, from: u32, to: u32) {
        self.after[from as usize].remove(&to);
        self.before[to as usize].remove(&from);
    }

    /// Applies one rule at a node; whether one applied.
    fn fold(&mut self, node: u32) -> bool {
        let ways = self.after[node as usize].clone();
        if ways.contains(&node) && ways.len() <= 2 {
            self.cut(node, node);
            if ways.len() == 1 {
                self.edge(node, self.end);
            }
            return true;
        }
        let only = |to: u32| {
            (to != self.end && to != node && to != self.entry && self.before[to as usize].len() == 1).then_some(to)
        };
        if let (1, Some(next)) = (ways.len(), ways.first().copied().and_then(only)) {
            let beyond = std::mem::take(&mut self.after[next as usize]);
            self.cut(node, next);
            for to in beyond {
                self.before[to as usize].remove(&next);
                self.edge(node, to);
            }
            self.take(node, next);
            return true;
        }
        // Where the arms lead to: at most one way is that place itself, so one of the first two is an arm.
        let arm_to = |to: u32| only(to).filter(|&to| self.after[to as usize].len() == 1);
        let goes = |to: u32| arm_to(to).and_then(|arm| self.after[arm as usize].first().copied());
        let fits = |&meet: &u32| {
            let mut others = ways.iter().filter(|&&to| to != meet && goes(to) != Some(meet));
            // Of a loop with one arm, the other way is the way out.
            others.next().is_none_or(|&out| meet == node && out != node && ways.len() == 2)
        };
        let Some(meet) = ways.iter().take(2).filter_map(|&to| goes(to)).find(fits) else { return false };
        for arm in ways.iter().copied().filter(|&to| to != meet && goes(to) == Some(meet)).collect::<Vec<_>>() {
            self.cut(node, arm);
            self.cut(arm, meet);
            self.take(node, arm);
        }
        self.edge(node, meet);
        true
    }

    fn take(&mut self, node: u32, taken: u32) {
        self.alive[taken as usize] = false;
        self.into[taken as usize] = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    fn left(count: usize, edges: &[(u32, u32)], exit: u32) -> Vec<NodeId> {
        let found = Reduction::of(&graph(count, edges), &[NodeId(exit)]);
        assert_eq!(found.is_structured(), found.left().len() == 1);
        found.left().to_vec()
    }

    #[test]
    fn each_rule_reduces_what_it_is_for() {
        assert_eq!(left(3, &[(0, 1), (1, 2)], 2), nodes(&[0]));
        assert_eq!(left(3, &[(0, 1), (0, 2), (1, 2)], 2), nodes(&[0]));
        assert_eq!(left(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], 3), nodes(&[0]));
        assert_eq!(left(5, &[(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (0, 4)], 4), nodes(&[0]));
        assert_eq!(left(4, &[(0, 1), (1, 2), (2, 1), (1, 3)], 3), nodes(&[0]));
        assert_eq!(left(4, &[(0, 1), (1, 2), (2, 1), (2, 3)], 3), nodes(&[0]));
        assert_eq!(left(3, &[(0, 1), (1, 2), (2, 1)], 0), nodes(&[0]), "an endless loop in the way on");
        // while (1) { if (2) 3 else continue; 4 }
        assert_eq!(left(6, &[(0, 1), (1, 2), (2, 3), (2, 4), (3, 4), (4, 1), (1, 5)], 5), nodes(&[0]));
    }

    #[test]
    fn short_circuits_breaks_and_a_statement_before_a_goto_stay() {
        // if (0 || 1) 2; 3
        assert_eq!(left(4, &[(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 3).len(), 4);
        // while (1) { if (2) break; 3 }
        assert_eq!(left(5, &[(0, 1), (1, 2), (2, 3), (3, 1), (1, 4), (2, 4)], 4).len(), 5);
        // A → X, A → B; B → E, B → Z; E → X; X → Z
        assert_eq!(left(5, &[(0, 3), (0, 1), (1, 2), (1, 4), (2, 3), (3, 4)], 4).len(), 5);
        // An irreducible loop.
        assert!(left(4, &[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)], 3).len() > 1);
    }
}
