//! Where the paths of a branch meet, if the turns (iterations) of each loop end in one place.

use crate::{Builder, Graph, LoopId, Loops, NodeId, PostDominators};

/// A place at which paths meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Join {
    /// A node.
    Node(NodeId),
    /// The end of a turn of a loop: where control goes back to its header, by whatever edge.
    TurnEnd(LoopId),
}

/// For each branch, the places at which its paths meet, as compilers for GPUs see them.
///
/// A post-dominator of a branch inside of a loop must lie on the paths that leave the loop, too. Compilers for
/// processors like turns that end at several edges, each after an exit of its own; all branches inside then have their
/// post-dominators after the loop. Compilers for GPUs let the turns of a loop end in one place, and lanes that leave
/// the loop are no longer waited for. So here:
///
/// - all edges to the header of a loop meet in the [`Join::TurnEnd`] of the loop;
/// - the *join* of a node whose innermost loop is L is the first place that every path from it to the end of the turn
///   of L passes, edges out of L left out;
/// - the place *behind* a loop M inside of L is the first that all paths from the ends of the edges from M to the rest
///   of L pass, in the same sense;
/// - outside of all loops, L is the whole graph, without the nodes from which no path leads to an exit, and its end are
///   the exits.
///
/// Every node of L is on a cycle through its header, so some path from it to the end of the turn stays in L, and the
/// join exists. A finite walk from a node of L returns to the header, leaves L, or ends. In the first case it has
/// reached the join, by definition. In the second it reaches the place behind L, or leaves the loop around L, and so
/// on. So each lane reaches the [`places`](StructuredJoins::places) of a branch one after another, or is known to have
/// left one for another further out.
///
/// In a graph without loops, with a path from each node to an exit, joins are immediate post-dominators. O(d (n + m)
/// log n), where d is how deep loops are nested.
#[derive(Clone, Debug)]
pub struct StructuredJoins {
    loops: Loops,
    /// By node.
    joins: Vec<Option<Join>>,
    /// By loop.
    behind: Vec<Option<Join>>,
}

impl StructuredJoins {
    /// The joins of every node, when control may leave at `exits`.
    ///
    /// # Panics
    /// When an exit is not a node of the graph.
    #[must_use]
    pub fn of(graph: &Graph, exits: &[NodeId]) -> StructuredJoins {
        let loops = Loops::of(graph);
        let (joins, behind) = (vec![None; graph.node_count()], vec![None; loops.count()]);
        let mut found = StructuredJoins { loops, joins, behind };
        let mut inner = vec![Vec::new(); found.loops.count()];
        let mut outermost = Vec::new();
        for id in found.loops.ids() {
            found.loops.parent(id).map_or(&mut outermost, |parent| &mut inner[parent.index()]).push(id);
        }
        let mut numbers = vec![None; graph.node_count()];
        for id in found.loops.ids() {
            let part = Part::turn(graph, &found.loops, id, &mut numbers);
            found.take(graph, &part, Some(id), &inner[id.index()], &numbers);
            part.forget(&mut numbers);
        }
        let part = Part::outside(graph, &found.loops, exits, &mut numbers);
        found.take(graph, &part, None, &outermost, &numbers);
        // From these no path leads to an exit: they have only the places at which endless loops are taken to end.
        if part.members.len() < found.loops.order().len() {
            let post = PostDominators::of(graph, exits);
            for &node in found.loops.order() {
                if numbers[node.index()].is_none() && found.loops.innermost(node).is_none() {
                    found.joins[node.index()] = post.ipdom(node).map(Join::Node);
                }
            }
        }
        found
    }

    /// The loops.
    #[must_use]
    pub fn loops(&self) -> &Loops {
        &self.loops
    }

    /// The first place that every path from a node passes, as long as it stays in the innermost loop around the node.
    /// None if that is the end of the graph; nodes that the entry does not reach have none either.
    #[must_use]
    pub fn join(&self, node: NodeId) -> Option<Join> {
        self.joins[node.index()]
    }

    /// The first place that every path out of a loop passes, as long as it stays in the loop around it. None if that is
    /// the end of the graph, or if no edge leads from the loop to the rest of the loop around it.
    #[must_use]
    pub fn behind(&self, id: LoopId) -> Option<Join> {
        self.behind[id.index()]
    }

    /// The places at which the paths from a node meet: its join, then the places behind the loops around it, from the
    /// innermost out.
    pub fn places(&self, node: NodeId) -> impl Iterator<Item = Join> {
        let around = std::iter::successors(self.loops.innermost(node), |&id| self.loops.parent(id));
        self.join(node).into_iter().chain(around.filter_map(|id| self.behind(id)))
    }

    /// Reads the joins off a part of the graph, which is a turn of a loop, or what is outside of all.
    fn take(&mut self, graph: &Graph, part: &Part, of: Option<LoopId>, inner: &[LoopId], numbers: &[Option<NodeId>]) {
        let post = PostDominators::of(&part.graph, &part.exits);
        let join = |number: Option<NodeId>| {
            number.and_then(|n| match (part.members.get(n.index()), of) {
                (Some(&node), _) => Some(Join::Node(node)),
                (None, of) => of.map(Join::TurnEnd),
            })
        };
        for (i, &node) in part.members.iter().enumerate() {
            if self.loops.innermost(node) == of {
                self.joins[node.index()] = join(post.ipdom(NodeId(i as u32)));
            }
        }
        for &id in inner {
            let mut meets: Option<Option<NodeId>> = None;
            for &node in self.loops.members(id) {
                for &to in graph.successors(node) {
                    if self.loops.contains(id, to) {
                        continue;
                    }
                    let back = of.is_some_and(|of| self.loops.header(of) == to);
                    let target = if back { Some(part.turn_end()) } else { numbers[to.index()] };
                    let Some(target) = target else { continue };
                    meets = Some(match meets {
                        None => Some(target),
                        Some(met) => met.and_then(|met| nearest_common(&post, met, target)),
                    });
                }
            }
            self.behind[id.index()] = join(meets.flatten());
        }
    }
}

/// The first node that every path from both passes, themselves included.
fn nearest_common(post: &PostDominators, a: NodeId, b: NodeId) -> Option<NodeId> {
    match (post.post_dominates(a, b), post.post_dominates(b, a)) {
        (true, _) => Some(a),
        (_, true) => Some(b),
        _ => post.nearest_common(a, b),
    }
}

/// A part of a graph, with nodes numbered from 0.
struct Part {
    members: Vec<NodeId>,
    /// In the part of a loop, the end of the turn stands after the members.
    graph: Graph,
    exits: Vec<NodeId>,
}

impl Part {
    /// A turn of a loop. `numbers` has none but what is given here.
    fn turn(graph: &Graph, loops: &Loops, id: LoopId, numbers: &mut [Option<NodeId>]) -> Part {
        let members = loops.members(id).to_vec();
        let end = NodeId(members.len() as u32);
        let builder = Part::edges(graph, &members, numbers, Some((loops.header(id), end)));
        Part { graph: builder.build(NodeId(0)), members, exits: vec![end] }
    }

    /// What lies outside of all loops, the loops included, without the nodes from which no path leads to an exit.
    fn outside(graph: &Graph, loops: &Loops, exits: &[NodeId], numbers: &mut [Option<NodeId>]) -> Part {
        let mut leads_out = vec![false; graph.node_count()];
        let mut work = exits.to_vec();
        while let Some(node) = work.pop() {
            if !std::mem::replace(&mut leads_out[node.index()], true) {
                work.extend(graph.predecessors(node));
            }
        }
        let members: Vec<NodeId> = loops.order().iter().copied().filter(|node| leads_out[node.index()]).collect();
        let builder = Part::edges(graph, &members, numbers, None);
        let exits = exits.iter().filter_map(|exit| numbers[exit.index()]).collect();
        // A graph has an entry: where nothing leads out, one node without edges stands for it.
        Part { graph: builder.build(NodeId(0)), members, exits }
    }

    fn edges(
        graph: &Graph,
        members: &[NodeId],
        numbers: &mut [Option<NodeId>],
        turn: Option<(NodeId, NodeId)>,
    ) -> Builder {
        for (i, &node) in members.iter().enumerate() {
            numbers[node.index()] = Some(NodeId(i as u32));
        }
        let mut builder = Builder::new(members.len() + 1);
        for (i, &node) in members.iter().enumerate() {
            for &to in graph.successors(node) {
                let number = match turn {
                    Some((header, end)) if to == header => Some(end),
                    _ => numbers[to.index()],
                };
                if let Some(number) = number {
                    builder.edge(NodeId(i as u32), number);
                }
            }
        }
        builder
    }

    fn turn_end(&self) -> NodeId {
        NodeId(self.members.len() as u32)
    }

    fn forget(&self, numbers: &mut [Option<NodeId>]) {
        for node in &self.members {
            numbers[node.index()] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joins(count: usize, edges: &[(u32, u32)], exit: u32) -> StructuredJoins {
        let mut builder = Builder::new(count);
        for &(from, to) in edges {
            builder.edge(NodeId(from), NodeId(to));
        }
        StructuredJoins::of(&builder.build(NodeId(0)), &[NodeId(exit)])
    }

    #[test]
    fn the_turns_of_a_loop_whose_end_is_doubled_meet() {
        // do { if (1) 2 else 3 } while (…), the condition tested behind each arm.
        let edges = [(0, 1), (1, 2), (1, 3), (2, 1), (2, 4), (3, 1), (3, 4)];
        let found = joins(5, &edges, 4);
        assert_eq!(found.places(NodeId(1)).collect::<Vec<_>>(), [Join::TurnEnd(LoopId(0)), Join::Node(NodeId(4))]);
        assert_eq!(found.places(NodeId(0)).collect::<Vec<_>>(), [Join::Node(NodeId(1))]);
    }

    #[test]
    fn exits_of_a_loop_meet_behind_it() {
        // while (1) { if (2) break to 5; if (3) return by 6 }; 4; 6.
        let edges = [(0, 1), (1, 2), (1, 4), (2, 3), (2, 5), (3, 1), (3, 6), (5, 4), (4, 6)];
        let found = joins(7, &edges, 6);
        assert_eq!(found.behind(LoopId(0)), Some(Join::Node(NodeId(6))));
        assert_eq!(found.join(NodeId(2)), Some(Join::Node(NodeId(3))));
    }

    #[test]
    fn what_never_returns_is_left_out() {
        // if (0) { if (1) abort by 3; 2 } 4
        let found = joins(5, &[(0, 1), (0, 4), (1, 3), (1, 2), (2, 4)], 4);
        assert_eq!(found.join(NodeId(1)), Some(Join::Node(NodeId(2))));
        assert_eq!(found.join(NodeId(0)), Some(Join::Node(NodeId(4))));
    }
}
