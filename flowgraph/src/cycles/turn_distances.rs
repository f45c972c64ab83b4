//! How far nodes are from the end of a loop's iteration (*turn*), or of the graph.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Graph, LoopId, Loops, NodeId};

/// A part of a loop's turn, or of the graph outside of all loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stop {
    /// A node that lies in no loop inside of the part.
    Node(NodeId),
    /// A loop inside of the part, with all that it holds.
    Loop(LoopId),
}

/// For each node, the length of the shortest path to the end of the turn of the innermost loop around it. For each
/// loop, that of the shortest path to the end of the turn of the loop around it.
///
/// A turn of a loop ends at its header, by whatever edge; edges out of the loop are left out. An inner loop counts as
/// one [`Stop`], as long as its header. Outside of all loops, the whole graph takes the place of a loop, and its end
/// are the exits. The header of a loop is at the end of the turn: its own distance is 0.
///
/// If one of the lanes furthest from the end always runs, lanes meet at the [`crate::StructuredJoins`] at the latest.
/// Every path from a branch to the end of the turn passes its join, so the shortest does too. A lane that stands at the
/// join is therefore nearer to the end than a lane that has not reached it yet. O(d m log n), where d is how deep loops
/// are nested.
#[derive(Clone, Debug)]
pub struct TurnDistances {
    loops: Loops,
    /// By node: in the turn of its innermost loop.
    of_node: Vec<u32>,
    /// By loop: in the turn of the loop around it.
    of_loop: Vec<u32>,
}

/// The distance of nodes from which no path leads to the end.
const NO_WAY: u32 = u32::MAX;

impl TurnDistances {
    /// The distances when control may leave at `exits` and nodes have these lengths.
    ///
    /// # Panics
    /// When an exit is not a node of the graph, or a node has no length.
    #[must_use]
    pub fn of(graph: &Graph, exits: &[NodeId], lengths: &[u32]) -> TurnDistances {
        let loops = Loops::of(graph);
        let (of_node, of_loop) = (vec![NO_WAY; graph.node_count()], vec![NO_WAY; loops.count()]);
        let mut found = TurnDistances { loops, of_node, of_loop };
        for id in found.loops.ids() {
            let (header, latches) = (found.loops.header(id), found.loops.latches(id).to_vec());
            found.measure(graph, Some(id), &latches, lengths);
            found.of_node[header.index()] = 0;
        }
        found.measure(graph, None, exits, lengths);
        found
    }

    /// The loops.
    #[must_use]
    pub fn loops(&self) -> &Loops {
        &self.loops
    }

    /// The position of a node, from the outside in: for each loop around it the distance of that loop from the end of
    /// the turn around it, and last that of the node itself. [`u32::MAX`] if no path leads to the end.
    #[must_use]
    pub fn stops(&self, node: NodeId) -> Vec<(u32, Stop)> {
        let around = std::iter::successors(self.loops.innermost(node), |&id| self.loops.parent(id));
        let mut stops: Vec<(u32, Stop)> = around.map(|id| (self.of_loop[id.index()], Stop::Loop(id))).collect();
        stops.reverse();
        stops.push((self.of_node[node.index()], Stop::Node(node)));
        stops
    }

    /// What a node is a part of, in the turn of a loop around it.
    fn stop(&self, node: NodeId, of: Option<LoopId>) -> Stop {
        let mut inner = self.loops.innermost(node);
        let mut stop = Stop::Node(node);
        while inner != of {
            let id = inner.expect("the loop is around the node");
            stop = Stop::Loop(id);
            inner = self.loops.parent(id);
        }
        stop
    }

    fn distance(&mut self, stop: Stop) -> &mut u32 {
        match stop {
            Stop::Node(node) => &mut self.of_node[node.index()],
            Stop::Loop(id) => &mut self.of_loop[id.index()],
        }
    }

    /// Dijkstra's algorithm, from these nodes of a loop (or of what is outside of all) backwards.
    fn measure(&mut self, graph: &Graph, of: Option<LoopId>, last: &[NodeId], lengths: &[u32]) {
        let head = |loops: &Loops, stop: Stop| match stop {
            Stop::Node(node) => node,
            Stop::Loop(id) => loops.header(id),
        };
        let header = of.map(|id| self.loops.header(id));
        let mut next: BinaryHeap<Reverse<(u32, Stop)>> = BinaryHeap::new();
        for &node in last {
            let stop = self.stop(node, of);
            next.push(Reverse((lengths[head(&self.loops, stop).index()], stop)));
        }
        while let Some(Reverse((distance, stop))) = next.pop() {
            if distance >= *self.distance(stop) {
                continue;
            }
            *self.distance(stop) = distance;
            let members = match stop {
                Stop::Node(ref node) => std::slice::from_ref(node),
                Stop::Loop(id) => self.loops.members(id),
            };
            // The way ends at the header, and does not go on from there.
            for &to in members.iter().filter(|&&member| Some(member) != header) {
                for &from in graph.predecessors(to) {
                    if of.is_some_and(|id| !self.loops.contains(id, from)) {
                        continue;
                    }
                    let before = self.stop(from, of);
                    if before != stop {
                        let length = lengths[head(&self.loops, before).index()];
                        next.push(Reverse((distance.saturating_add(length), before)));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::graph;

    #[test]
    fn a_turn_ends_at_the_header_and_an_inner_loop_is_one_stop() {
        // 0; while (1) { 2; while (3) 4; 5 } 6, with nodes of 10 instructions.
        let g = graph(7, &[(0, 1), (1, 2), (1, 6), (2, 3), (3, 4), (4, 3), (3, 5), (5, 1)]);
        let found = TurnDistances::of(&g, &[NodeId(6)], &[10; 7]);
        let outer = (20, Stop::Loop(LoopId(0)));
        assert_eq!(found.stops(NodeId(0)), [(30, Stop::Node(NodeId(0)))]);
        assert_eq!(found.stops(NodeId(1)), [outer, (0, Stop::Node(NodeId(1)))]);
        assert_eq!(found.stops(NodeId(2)), [outer, (30, Stop::Node(NodeId(2)))]);
        let inner = (20, Stop::Loop(LoopId(1)));
        assert_eq!(found.stops(NodeId(4)), [outer, inner, (10, Stop::Node(NodeId(4)))]);
        assert_eq!(found.stops(NodeId(5)), [outer, (10, Stop::Node(NodeId(5)))]);
    }

    #[test]
    fn what_never_ends_is_infinitely_far_away() {
        let found = TurnDistances::of(&graph(3, &[(0, 1), (0, 2), (2, 2)]), &[NodeId(1)], &[1; 3]);
        assert_eq!(found.stops(NodeId(2)), [(u32::MAX, Stop::Loop(LoopId(0))), (0, Stop::Node(NodeId(2)))]);
    }
}
