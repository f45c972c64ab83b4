//! Where some of the paths from a branch meet before all do.

use crate::{Dominators, Graph, Join, LoopId, Loops, NodeId, StructuredJoins};

/// For each branch, and for the exits of each loop, the nodes at which some of the paths meet on their way to where all
/// do.
///
/// In `if (a || b) { x } y` three edges lead to x or past it, and the branches at a and b have their join at y. Yet
/// lanes that reach x from either branch can run it together. NVIDIA's ptxas gives x a region of its own, from the last
/// block that all paths to x pass, and takes lanes that go past x off it (BREAK). So here. Let L be a loop, or the
/// graph outside of all loops, and let a loop inside of L count as one node. A node x of L (it may head a loop there)
/// is a partial join of a branch b of L, or of a loop b inside of L, when
///
/// - two forward edges or more lead to x, those back to a loop's head not counted;
/// - b lies on a path to x from the node that immediately dominates x, which may be b or in it;
/// - x comes before the [join](StructuredJoins::join) of b, or the place [behind](StructuredJoins::behind) it, in
///   [`crate::loop_order`].
///
/// The nearest comes first. In that order every edge leads forward or back to the head of a loop. So a lane that
/// reaches a later one, or the join, has left all earlier ones, until the next turn. It reaches the join or leaves the
/// loop. So a lane that waits at a partial join waits for lanes that reach it or leave it for one further out. O(n s),
/// where s is how many nodes lie between a node and the one that immediately dominates it.
#[derive(Clone, Debug)]
pub struct PartialJoins {
    /// By node.
    of_branches: Vec<Vec<NodeId>>,
    /// By loop.
    of_loops: Vec<Vec<NodeId>>,
}

/// What lies on the path to a meeting, in the loop around that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Node(NodeId),
    Loop(LoopId),
}

impl PartialJoins {
    /// Those of every branch and loop.
    #[must_use]
    pub fn of(graph: &Graph, structured: &StructuredJoins) -> PartialJoins {
        let loops = structured.loops();
        let dominators = Dominators::of(graph);
        let mut ranks = vec![usize::MAX; graph.node_count()];
        for (rank, node) in loops.order().iter().enumerate() {
            ranks[node.index()] = rank;
        }
        let is_before = |meeting: NodeId, join: Option<Join>| match join {
            Some(Join::Node(join)) => ranks[meeting.index()] < ranks[join.index()],
            _ => true,
        };
        let (of_branches, of_loops) = (vec![Vec::new(); graph.node_count()], vec![Vec::new(); loops.count()]);
        let mut found = PartialJoins { of_branches, of_loops };
        for &meeting in loops.order() {
            for part in on_the_way(graph, loops, &dominators, meeting) {
                let (join, joins) = match part {
                    Part::Node(node) => (structured.join(node), &mut found.of_branches[node.index()]),
                    Part::Loop(id) => (structured.behind(id), &mut found.of_loops[id.index()]),
                };
                if is_before(meeting, join) {
                    joins.push(meeting);
                }
            }
        }
        found
    }

    /// The partial joins of a branch, the nearest first; see the type.
    #[must_use]
    pub fn of_branch(&self, branch: NodeId) -> &[NodeId] {
        &self.of_branches[branch.index()]
    }

    /// The partial joins of the exits of a loop, the nearest first; see the type.
    #[must_use]
    pub fn of_loop(&self, id: LoopId) -> &[NodeId] {
        &self.of_loops[id.index()]
    }
}

/// The branches and loops that have paths which meet at a node, if two forward edges or more lead there.
fn on_the_way(graph: &Graph, loops: &Loops, dominators: &Dominators, meeting: NodeId) -> Vec<Part> {
    let Some(above) = dominators.idom(meeting) else { return Vec::new() };
    let own = loops.headed_by(meeting);
    let around = own.map_or(loops.innermost(meeting), |id| loops.parent(id));
    // The part of the loop around that a node is, or is in.
    let part = |node: NodeId| {
        let outwards = std::iter::successors(loops.innermost(node), |&id| loops.parent(id));
        outwards.take_while(|&id| Some(id) != around).last().map_or(Part::Node(node), Part::Loop)
    };
    let is_inside = |node: NodeId| around.is_none_or(|id| loops.contains(id, node));
    let goes_back = |from: NodeId| own.is_some_and(|id| loops.contains(id, from));
    let mut work: Vec<NodeId> = graph.predecessors(meeting).to_vec();
    work.retain(|&from| dominators.depth(from).is_some() && !goes_back(from));
    work.sort_unstable();
    work.dedup();
    if !is_inside(above) || work.len() < 2 {
        return Vec::new();
    }
    let head = around.map(|id| Part::Node(loops.header(id)));
    let mut seen = std::collections::BTreeSet::from([part(meeting)]);
    let mut found = Vec::new();
    while let Some(node) = work.pop() {
        if dominators.depth(node).is_none() || !is_inside(node) || !seen.insert(part(node)) {
            continue;
        }
        let here = part(node);
        let members = match &here {
            Part::Node(node) => std::slice::from_ref(node),
            Part::Loop(id) => loops.members(*id),
        };
        let is_here = |node: NodeId| match here {
            Part::Node(other) => node == other,
            Part::Loop(id) => loops.contains(id, node),
        };
        let leaves = |from: &NodeId| graph.successors(*from).iter().filter(|&&to| !is_here(to)).count();
        if members.iter().map(leaves).sum::<usize>() > 1 {
            found.push(here);
        }
        if here != part(above) && Some(here) != head {
            work.extend(members.iter().flat_map(|to| graph.predecessors(*to)).filter(|&&from| !is_here(from)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{graph, nodes};

    fn partial(count: usize, edges: &[(u32, u32)], exit: u32) -> PartialJoins {
        let g = graph(count, edges);
        PartialJoins::of(&g, &StructuredJoins::of(&g, &[NodeId(exit)]))
    }

    #[test]
    fn the_arm_of_an_or_is_where_its_conditions_meet() {
        // if (0 || 1) { 2 } 3
        let found = partial(4, &[(0, 2), (0, 1), (1, 2), (1, 3), (2, 3)], 3);
        assert_eq!(found.of_branch(NodeId(0)), nodes(&[2]));
        assert_eq!(found.of_branch(NodeId(1)), nodes(&[2]));
    }

    #[test]
    fn cases_that_fall_through_meet_one_after_another() {
        // switch (0, 1) { case 2: case 3: case 4: } 5
        let edges = [(0, 2), (0, 1), (1, 3), (1, 4), (2, 3), (3, 4), (4, 5), (0, 5)];
        let found = partial(6, &edges, 5);
        assert_eq!(found.of_branch(NodeId(0)), nodes(&[3, 4]));
        // The branch at 1 joins at 4. Before that, at 3, its lanes meet no lanes of the same branch, only those that
        // come from 2.
        assert_eq!(found.of_branch(NodeId(1)), nodes(&[3]));
    }

    #[test]
    fn ways_out_of_a_loop_meet_before_the_way_that_returns() {
        // while (1) { if (2) break; if (3) return by 5 } 4; 5. On one path, 6 stands before 4.
        let found = partial(7, &[(0, 1), (1, 2), (1, 4), (2, 3), (2, 6), (6, 4), (3, 1), (3, 5), (4, 5)], 5);
        assert_eq!(found.of_loop(LoopId(0)), nodes(&[4]));
        assert!(found.of_branch(NodeId(2)).is_empty());
    }

    #[test]
    fn the_ends_of_a_turn_and_joins_are_no_partial_ones() {
        // do { if (1) 2 else 3 } while (4)
        let found = partial(6, &[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 1), (4, 5)], 5);
        assert!((0..6).all(|node| found.of_branch(NodeId(node)).is_empty()));
    }
}
