//! The pcs at which lanes that part behind a place come together, by placement.

use std::ops::Range;

use flowgraph::{Graph, IfJoins, Join, NodeId, PartialJoins, StructuredJoins};
use trace_format::Pc;

/// By place: pcs, the innermost first; none stands for the end of the place's function.
pub(crate) type Joins = Vec<Box<[Option<Pc>]>>;

/// The control flow that joins follow from.
pub(crate) struct Flow<'a> {
    pub graph: &'a Graph,
    pub structured: &'a StructuredJoins,
    /// By place: its instructions, and its first pc.
    pub lengths: &'a [u32],
    pub starts: &'a [Pc],
}

impl Flow<'_> {
    fn pc_of(&self, join: Join) -> Option<Pc> {
        match join {
            Join::Node(node) => self.starts.get(node.index()).copied(),
            Join::TurnEnd(id) => self.starts.get(self.structured.loops().header(id).index()).copied(),
        }
    }

    /// Where compilers for GPUs let them: at places where some of the branch's ways meet, then where all do, then
    /// behind the loops around.
    pub(crate) fn structured(&self, nodes: Range<usize>) -> Joins {
        let (loops, partial) = (self.structured.loops(), PartialJoins::of(self.graph, self.structured));
        let of_place = |place: usize| {
            let node = NodeId(place as u32);
            let worth = |meetings: &'_ [NodeId], join: Option<Join>| -> Vec<Join> {
                let found = meetings.iter().filter(|&&meeting| self.is_worth_it(meeting, join));
                found.map(|&meeting| Join::Node(meeting)).collect()
            };
            let join = self.structured.join(node);
            let before = worth(partial.of_branch(node), join);
            let around = std::iter::successors(loops.innermost(node), |&id| loops.parent(id));
            let behind = around.flat_map(|id| {
                let behind = self.structured.behind(id);
                worth(partial.of_loop(id), behind).into_iter().chain(behind)
            });
            let joins = before.into_iter().chain(join).chain(behind);
            let mut pcs: Vec<Option<Pc>> = joins.map(|join| self.pc_of(join)).collect();
            let outermost = std::iter::successors(loops.innermost(node), |&id| loops.parent(id)).last();
            if outermost.map_or(self.structured.join(node), |id| self.structured.behind(id)).is_none() {
                pcs.push(None);
            }
            pcs.dedup();
            pcs.into_boxed_slice()
        };
        nodes.map(of_place).collect()
    }

    /// Where Mesa's compiler lets them: behind the arms of an `if`, then of each loop around it the end of the
    /// iteration and the place behind the loop, and at last the end of the function.
    pub(crate) fn nested(&self, nodes: Range<usize>) -> Joins {
        let (loops, arms) = (self.structured.loops(), IfJoins::of(self.graph, self.structured));
        let of_place = |place: usize| {
            let node = NodeId(place as u32);
            let around = std::iter::successors(loops.innermost(node), |&id| loops.parent(id));
            let around = around.flat_map(|id| std::iter::once(Join::TurnEnd(id)).chain(self.structured.behind(id)));
            let joins = arms.join(node).into_iter().chain(around);
            let mut pcs: Vec<Option<Pc>> = joins.map(|join| self.pc_of(join)).chain([None]).collect();
            pcs.dedup();
            pcs.into_boxed_slice()
        };
        nodes.map(of_place).collect()
    }
}

/// The fewest instructions that lanes who meet must have before them, until all do. In `jumps` of
/// workloads/gpu-kernels two, three times, are not enough for ptxas; where it makes a region of its own there are four
/// or more.
const LEAST: u32 = 3;

impl Flow<'_> {
    /// Whether lanes that meet at a node, some of those that all meet at the join, run enough together before that: a
    /// branch on the way is enough.
    fn is_worth_it(&self, meeting: NodeId, join: Option<Join>) -> bool {
        let is_join = |node: NodeId| match join {
            Some(Join::Node(join)) => node == join,
            Some(Join::TurnEnd(id)) => self.structured.loops().header(id) == node,
            None => false,
        };
        let (mut at, mut instructions) = (meeting, 0);
        while !is_join(at) {
            instructions += self.lengths.get(at.index()).copied().unwrap_or(0);
            match self.graph.successors(at) {
                [next] if instructions < LEAST => at = *next,
                next => return !next.is_empty() && (next.len() > 1 || instructions >= LEAST),
            }
        }
        false
    }
}
