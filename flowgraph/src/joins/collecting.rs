//! Regions in which lanes are waited for at a predicted point, and the operations on barriers that a compiler inserts
//! for them.
//!
//! Damani et al., *Speculative reconvergence for improved SIMT efficiency* (CGO 2020), section 4.2. The region of a
//! prediction is where its barrier is *joined* (equation 1: a path leads there from where lanes join) and *live*
//! (equation 2: a path leads to the point on which they do not join again). [`CollectingRegion::operations`] says which
//! operation goes where; [`barrier_faults`] checks that by the two equations alone, without the regions.
//!
//! The entry of the graph stands for no code: it leads to where functions begin. Lanes join and wait at the beginnings
//! of nodes, and no region has the entry.
//!
//! Optimisers copy the point: [`copies_of_a_point`] says which copies are one, and at which of them lanes meet.

use crate::{Dominators, Graph, NodeId};

/// What an operation does with a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierAction {
    /// Lanes that reach this place will be waited for (`JoinBarrier`, BSSY).
    Join,
    /// Lanes wait for those that joined, then join again (`WaitBarrier`, BSYNC, and `RejoinBarrier`, BSSY).
    Wait,
    /// The same, but so many waiting lanes are enough (figure 6: a second barrier counts them).
    WaitFor(usize),
    /// Lanes are no longer waited for (`CancelBarrier`, BREAK).
    Cancel,
    /// The lanes of the region meet here, after it (`WaitBarrier` of the orthogonal barrier).
    Meet,
    /// A branch that parts lanes, and whose barrier conflicts: lanes that wait at the point leave that barrier (dynamic
    /// deconfliction).
    GivesWay,
    /// A branch that parts lanes, and whose barrier conflicts: it gets none (static deconfliction).
    Removed,
}

impl BarrierAction {
    /// Its name for people, and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BarrierAction::Join => "join",
            BarrierAction::Wait | BarrierAction::WaitFor(_) => "wait, rejoin",
            BarrierAction::Cancel => "cancel",
            BarrierAction::Meet => "meet behind",
            BarrierAction::GivesWay => "gives way",
            BarrierAction::Removed => "removed",
        }
    }
}

/// What is wrong with the operations on a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BarrierFault {
    /// Lanes wait at this node for a barrier that they join on no path to it.
    WaitsUnjoined,
    /// Lanes join the barrier at this node, and no path from there leads to a node where they wait.
    NeverWaits,
    /// Lanes that joined can still be waited for in this node, though no path leads from it to a wait: they were not
    /// cancelled.
    StaysJoined,
}

/// How lanes are collected in a region: what [`CollectingRegion::operations`] needs besides the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collecting<'a> {
    /// The nodes at which lanes wait; for a function whose entry is the point, the node of that entry.
    pub waits: &'a [NodeId],
    /// How many waiting lanes are enough. None: all that joined.
    pub threshold: Option<usize>,
    /// Whether branches that conflict get no barrier; else waiting lanes leave that barrier.
    pub is_static: bool,
}

/// The region of a prediction in one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectingRegion {
    points: Vec<NodeId>,
    /// By node: whether it belongs to the region.
    holds: Vec<bool>,
    /// By node: whether a lane joins there.
    joins: Vec<bool>,
    /// Whether the prediction named where lanes join.
    is_begun: bool,
}

impl CollectingRegion {
    /// The region of points. Lanes join at the nodes `from`; if there are none, wherever they enter the region. None if
    /// no lane that joins reaches a point. O(n + m).
    #[must_use]
    pub fn of(graph: &Graph, points: &[NodeId], from: &[NodeId]) -> Option<CollectingRegion> {
        // Equation 2, backwards: a join ends what is live.
        let before =
            |node: NodeId| if from.contains(&node) { &[][..] } else { graph.predecessors(node) }.iter().copied();
        let mut holds = reached(graph, points.iter().copied(), before);
        let mut joins = holds.clone();
        if !from.is_empty() {
            // Equation 1, forwards.
            let joined = reached(graph, from.iter().copied(), |node| graph.successors(node).iter().copied());
            holds.iter_mut().zip(joined).for_each(|(holds, joined)| *holds &= joined);
            joins = graph.nodes().map(|node| holds[node.index()] && from.contains(&node)).collect();
        }
        let points: Vec<NodeId> = points.iter().copied().filter(|node| holds[node.index()]).collect();
        let is_empty = points.is_empty() || !joins.contains(&true);
        (!is_empty).then_some(CollectingRegion { points, holds, joins, is_begun: !from.is_empty() })
    }

    /// The points that lanes reach from where they join.
    #[must_use]
    pub fn points(&self) -> &[NodeId] {
        &self.points
    }

    /// Whether a node belongs to it; false for a node that the graph does not have.
    #[must_use]
    pub fn holds(&self, node: NodeId) -> bool {
        self.holds.get(node.index()).copied().unwrap_or(false)
    }

    /// Whether a lane that reaches a node joins there.
    #[must_use]
    pub fn is_joined_at(&self, node: NodeId) -> bool {
        self.joins.get(node.index()).copied().unwrap_or(false)
    }

    /// Whether a prediction is made in this node: a lane that reaches it has left the region, and is in it again after
    /// it.
    #[must_use]
    pub fn begins_at(&self, node: NodeId) -> bool {
        self.is_begun && self.is_joined_at(node)
    }

    /// Its nodes, in ascending order.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.holds.iter().zip(0..).filter(|(holds, _)| **holds).map(|(_, node)| NodeId(node))
    }

    /// Where a compiler would make lanes join: where the prediction says, or where the region is entered.
    #[must_use]
    pub fn beginnings(&self, graph: &Graph) -> Vec<NodeId> {
        let is_entered =
            |node: &NodeId| self.is_begun || graph.predecessors(*node).iter().any(|from| !self.holds(*from));
        self.nodes().filter(|node| self.is_joined_at(*node)).filter(is_entered).collect()
    }

    /// The nodes outside to which edges lead from inside, in ascending order.
    #[must_use]
    pub fn left_to(&self, graph: &Graph) -> Vec<NodeId> {
        let next = self.nodes().flat_map(|node| graph.successors(node)).copied();
        let mut nodes: Vec<NodeId> = next.filter(|node| !self.holds(*node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Where its lanes meet again after it: at the first node outside at which lanes meet that part at any of its
    /// points; none if their function ends first. `meets` gives, for a node, where lanes that part after it meet, the
    /// innermost first; none stands for the end of its function.
    #[must_use]
    pub fn behind(&self, meets: impl Fn(NodeId) -> Vec<Option<NodeId>>) -> Option<NodeId> {
        // The places that lanes reach one after another, from the innermost outwards.
        let meetings = |point: &NodeId| -> Vec<NodeId> {
            let (mut all, mut left) = (Vec::new(), vec![*point]);
            while let Some(node) = left.pop() {
                if !all.contains(&node) {
                    all.push(node);
                    left.extend(meets(node).into_iter().flatten().rev());
                }
            }
            all
        };
        let is_outside = |node: &NodeId| !self.holds(*node) || self.begins_at(*node);
        let of_others: Vec<Vec<NodeId>> = self.points[1..].iter().map(meetings).collect();
        let of_all = |node: &NodeId| of_others.iter().all(|nodes| nodes.contains(node));
        meetings(&self.points[0]).into_iter().find(|node| is_outside(node) && of_all(node))
    }

    /// Whether lanes that part in a node could reach a point before they meet: then their barrier conflicts.
    #[must_use]
    pub fn conflicts(&self, graph: &Graph, node: NodeId, meet: Option<NodeId>) -> bool {
        let Some(meet) = meet.filter(|meet| self.holds(*meet)) else { return false };
        let next = |node: NodeId| if node == meet { &[][..] } else { graph.successors(node) }.iter().copied();
        let behind = reached(graph, graph.successors(node).iter().copied(), next);
        self.points.iter().any(|point| behind[point.index()])
    }

    /// The operations that a compiler inserts for it, by node. `meets` is as in [`CollectingRegion::behind`].
    #[must_use]
    pub fn operations(
        &self,
        graph: &Graph,
        how: Collecting<'_>,
        meets: impl Fn(NodeId) -> Vec<Option<NodeId>>,
    ) -> Vec<(NodeId, BarrierAction)> {
        let of = |nodes: Vec<NodeId>, action: BarrierAction| nodes.into_iter().map(move |node| (node, action));
        let mut all: Vec<(NodeId, BarrierAction)> = of(self.beginnings(graph), BarrierAction::Join).collect();
        all.extend(of(how.waits.to_vec(), how.threshold.map_or(BarrierAction::Wait, BarrierAction::WaitFor)));
        all.extend(of(self.left_to(graph), BarrierAction::Cancel));
        all.extend(self.behind(&meets).map(|node| (node, BarrierAction::Meet)));
        let conflicting = if how.is_static { BarrierAction::Removed } else { BarrierAction::GivesWay };
        let branches = graph.nodes().filter(|node| *node != graph.entry() && graph.successors(*node).len() > 1);
        for node in branches {
            if meets(node).into_iter().any(|meet| self.conflicts(graph, node, meet)) {
                all.push((node, conflicting));
            }
        }
        all.sort_unstable();
        all
    }
}

/// Checks the operations on one barrier by the paper's equations 1 and 2: lanes that wait have joined on some path, and
/// no lane stays joined where it can no longer wait. `waits` are the nodes that count as places where lanes wait: for a
/// barrier of calls, those with the calls. `is_begun`: the prediction named where lanes join, so that joining again
/// ends the earlier join.
#[must_use]
pub fn barrier_faults(
    graph: &Graph,
    operations: &[(NodeId, BarrierAction)],
    waits: &[NodeId],
    is_begun: bool,
) -> Vec<(NodeId, BarrierFault)> {
    let nodes = |action: BarrierAction| -> Vec<NodeId> {
        operations.iter().filter(|operation| operation.1 == action).map(|operation| operation.0).collect()
    };
    let (joins, cancels) = (nodes(BarrierAction::Join), nodes(BarrierAction::Cancel));
    // Without a node to join at, lanes join where the region is entered; such joins end nothing.
    let renewals: &[NodeId] = if is_begun { &joins } else { &[] };
    // By node: whether lanes can be joined after its operations.
    let kept = |node: &NodeId| !cancels.contains(node);
    let joined = reached(graph, joins.iter().copied(), |node| graph.successors(node).iter().copied().filter(kept));
    // By node: whether lanes that are joined there can still reach a wait without joining again before.
    let before =
        |node: NodeId| if renewals.contains(&node) { &[][..] } else { graph.predecessors(node) }.iter().copied();
    let live = reached(graph, waits.iter().copied(), before);
    let mut faults = Vec::new();
    let unjoined = waits.iter().filter(|node| !joined[node.index()]);
    faults.extend(unjoined.map(|node| (*node, BarrierFault::WaitsUnjoined)));
    let useless = joins.iter().filter(|node| !live[node.index()]);
    faults.extend(useless.map(|node| (*node, BarrierFault::NeverWaits)));
    let stays = graph.nodes().filter(|node| joined[node.index()] && !live[node.index()]);
    faults.extend(stays.map(|node| (node, BarrierFault::StaysJoined)));
    faults
}

/// The copies of a predicted point that stand for one place, and where they were one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The one at which lanes meet.
    pub at: NodeId,
    /// The others that lanes reach after they have met there: further iterations of a loop that were merged into one.
    pub behind: Vec<NodeId>,
    /// The others that lanes reach past it: no lane is collected at them.
    pub past: Vec<NodeId>,
}

/// Points grouped by the region that they have in common. Two points are apart if no lane can reach one that joined for
/// the other. Points that no joined lane reaches are left out.
#[must_use]
pub fn points_apart(graph: &Graph, points: &[NodeId], from: &[NodeId]) -> Vec<Vec<NodeId>> {
    let mut groups: Vec<(Vec<NodeId>, Vec<bool>)> = Vec::new();
    for point in points {
        let Some(region) = CollectingRegion::of(graph, &[*point], from) else { continue };
        let holds = region.holds;
        let has_common = |(_, other): &(_, Vec<bool>)| other.iter().zip(&holds).any(|(a, b)| *a && *b);
        let (same, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(has_common);
        groups = others;
        let mut group = (vec![*point], holds);
        for (nodes, other) in same {
            group.0.extend(nodes);
            group.1.iter_mut().zip(other).for_each(|(holds, other)| *holds |= other);
        }
        groups.push(group);
    }
    let in_order = |group: Vec<NodeId>| points.iter().copied().filter(|point| group.contains(point)).collect();
    groups.into_iter().map(|(nodes, _)| in_order(nodes)).collect()
}

/// Which of these nodes, all of them copies of one point, are one place: those whose regions have a node in common.
/// Lanes meet at the one that dominates most others; among equals, at the first. So they meet once in loop iterations
/// that were merged into one, and a function that was inlined twice has two places. Nodes that no joined lane reaches
/// are in none.
#[must_use]
pub fn copies_of_a_point(graph: &Graph, dominators: &Dominators, points: &[NodeId], from: &[NodeId]) -> Vec<Copies> {
    let one = |nodes: Vec<NodeId>| {
        let dominated = |at: &NodeId| nodes.iter().filter(|node| dominators.dominates(*at, **node)).count();
        let first = nodes.iter().rev().max_by_key(|node| dominated(node));
        let at = *first.expect("a group has a node");
        let others = nodes.into_iter().filter(|node| *node != at);
        let (behind, past) = others.partition(|node| dominators.dominates(at, *node));
        Copies { at, behind, past }
    };
    points_apart(graph, points, from).into_iter().map(one).collect()
}

/// By node: whether it is one of these or can be reached from one along edges, without the entry.
#[must_use]
pub fn reached<I: IntoIterator<Item = NodeId>>(
    graph: &Graph,
    from: impl IntoIterator<Item = NodeId>,
    next: impl Fn(NodeId) -> I,
) -> Vec<bool> {
    let mut reached = vec![false; graph.node_count()];
    let mut left: Vec<NodeId> = from.into_iter().collect();
    while let Some(node) = left.pop() {
        if node != graph.entry() && !std::mem::replace(&mut reached[node.index()], true) {
            left.extend(next(node));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, PostDominators};

    /// With an entry that leads to node 0.
    fn graph(nodes: u32, edges: &[(u32, u32)]) -> Graph {
        let mut builder = Builder::new(nodes as usize + 1);
        builder.edge(NodeId(nodes), NodeId(0));
        edges.iter().for_each(|(from, to)| _ = builder.edge(NodeId(*from), NodeId(*to)));
        builder.build(NodeId(nodes))
    }

    fn operations(graph: &Graph, point: u32, from: &[NodeId], exit: u32) -> String {
        let post = PostDominators::of(graph, &[NodeId(exit)]);
        let region = CollectingRegion::of(graph, &[NodeId(point)], from).unwrap();
        let how = Collecting { waits: &[NodeId(point)], threshold: None, is_static: false };
        let all = region.operations(graph, how, |node| vec![post.ipdom(node)]);
        assert_eq!(barrier_faults(graph, &all, &[NodeId(point)], !from.is_empty()), []);
        let all: Vec<String> = all.iter().map(|(node, action)| format!("{}: {}", node.0, action.name())).collect();
        all.join("; ")
    }

    #[test]
    fn figure_4_b_joins_before_the_loop_and_cancels_behind_it() {
        // Listing 1: 0 predict, 1 prolog, 2 expensive, 3 epilog, 4 behind the loop.
        let graph = graph(5, &[(0, 1), (1, 2), (1, 3), (2, 3), (3, 1), (3, 4)]);
        let expected = "0: join; 1: gives way; 2: wait, rejoin; 4: cancel; 4: meet behind";
        assert_eq!(operations(&graph, 2, &[NodeId(0)], 4), expected);
        assert_eq!(operations(&graph, 2, &[], 4), expected);
    }

    #[test]
    fn figure_5_names_the_barrier_that_conflicts_and_takes_it_away_or_has_lanes_leave_it() {
        // The same. The branch in 1 has its barrier b1 from there to 3; b0 lives from 0, and again from after the wait
        // in 2, to 4: neither contains the other. The branch in 3 has its barrier at 4, where b0 is dead.
        let graph = graph(5, &[(0, 1), (1, 2), (1, 3), (2, 3), (3, 1), (3, 4)]);
        let post = PostDominators::of(&graph, &[NodeId(4)]);
        let region = CollectingRegion::of(&graph, &[NodeId(2)], &[NodeId(0)]).unwrap();
        assert!(region.conflicts(&graph, NodeId(1), post.ipdom(NodeId(1))));
        assert!(!region.conflicts(&graph, NodeId(3), post.ipdom(NodeId(3))));
        let of = |is_static: bool, threshold: Option<usize>| {
            let how = Collecting { waits: &[NodeId(2)], threshold, is_static };
            region.operations(&graph, how, |node| vec![post.ipdom(node)])
        };
        let all = |conflict: BarrierAction, wait: BarrierAction| {
            let (join, cancel, meet) = (BarrierAction::Join, BarrierAction::Cancel, BarrierAction::Meet);
            vec![(0, join), (1, conflict), (2, wait), (4, cancel), (4, meet)]
        };
        let of = |is_static, threshold| {
            of(is_static, threshold).into_iter().map(|(node, a)| (node.0, a)).collect::<Vec<_>>()
        };
        // (c), where lanes that reach 2 leave b1 before they wait.
        assert_eq!(of(false, None), all(BarrierAction::GivesWay, BarrierAction::Wait));
        // (b)
        assert_eq!(of(true, None), all(BarrierAction::Removed, BarrierAction::Wait));
        assert_eq!(of(false, Some(4)), all(BarrierAction::GivesWay, BarrierAction::WaitFor(4)));
    }

    #[test]
    fn points_in_two_regions_are_apart() {
        // 0 and 4 begin a region each; 1 and 2 are on the sides of a branch of the first.
        let graph = graph(7, &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (5, 6)]);
        let points = [5, 1, 2].map(NodeId);
        let apart = points_apart(&graph, &points, &[0, 4].map(NodeId));
        assert_eq!(apart, [vec![NodeId(5)], [1, 2].map(NodeId).to_vec()]);
        assert_eq!(points_apart(&graph, &points, &[NodeId(0)]).len(), 1);
    }

    #[test]
    fn a_wrong_table_is_found_out() {
        let graph = graph(5, &[(0, 1), (1, 2), (1, 3), (2, 3), (3, 1), (3, 4)]);
        let (join, cancel) = ((NodeId(0), BarrierAction::Join), (NodeId(4), BarrierAction::Cancel));
        let faults = |operations: &[(NodeId, BarrierAction)]| barrier_faults(&graph, operations, &[NodeId(2)], true);
        assert_eq!(faults(&[join]), [(NodeId(4), BarrierFault::StaysJoined)]);
        assert_eq!(faults(&[cancel]), [(NodeId(2), BarrierFault::WaitsUnjoined)]);
        let late = (NodeId(4), BarrierAction::Join);
        assert!(faults(&[join, late]).contains(&(NodeId(4), BarrierFault::NeverWaits)));
    }

    #[test]
    fn lanes_meet_once_in_the_turns_that_became_one() {
        // 0 predict; 1, 2, 3 three turns in one; 4 what is left over, turn by turn; 5 the end.
        let graph = graph(6, &[(0, 1), (0, 4), (1, 2), (2, 3), (3, 1), (3, 4), (4, 4), (4, 5)]);
        let dominators = Dominators::of(&graph);
        let points = [4, 3, 2, 1].map(NodeId);
        let copies = copies_of_a_point(&graph, &dominators, &points, &[NodeId(0)]);
        let expected = Copies { at: NodeId(1), behind: [3, 2].map(NodeId).to_vec(), past: vec![NodeId(4)] };
        assert_eq!(copies, [expected]);
    }

    #[test]
    fn a_function_that_was_inlined_twice_has_two_places() {
        // 0 predict, 1 its loop, 2 predict again, 3 its loop, 4 the end; all of it in a loop.
        let graph = graph(5, &[(0, 1), (1, 1), (1, 2), (2, 3), (3, 3), (3, 0), (3, 4)]);
        let dominators = Dominators::of(&graph);
        let copies = copies_of_a_point(&graph, &dominators, &[1, 3].map(NodeId), &[0, 2].map(NodeId));
        assert_eq!(copies.iter().map(|copies| copies.at).collect::<Vec<_>>(), [1, 3].map(NodeId));
        assert!(copies.iter().all(|copies| copies.behind.is_empty() && copies.past.is_empty()));
    }
}
