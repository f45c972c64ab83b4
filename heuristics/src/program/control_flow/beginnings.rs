//! Where lanes begin that are turns of loops.
//!
//! A GPU's thread begins at one place. The turns of a loop do not where the compiler doubled the end of a turn and what
//! follows it, up to the next one's beginning: then lanes of one loop begin in copies of the same code. They have
//! parted at no branch, and no model would have them meet again. So they come together as if they had parted at a
//! branch in front of all of these places.

use std::sync::OnceLock;

use flowgraph::{Builder, Graph, NodeId, PostDominators, StructuredJoins};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::Pc;

use crate::program::joins::{Flow, Joins};
use crate::{PlaceId, Placement};

/// Groups of places: the lanes of one loop begin at those of one.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    groups: Vec<Vec<PlaceId>>,
    of_place: FxHashMap<PlaceId, usize>,
    /// By placement: where the lanes of each group come together.
    joins: [OnceLock<Joins>; 3],
}

impl Beginnings {
    /// Of lanes that begin at these places and went these ways. Those that have a place in common are of one loop.
    pub(super) fn of(places: &[PlaceId], edges: &FxHashSet<(PlaceId, PlaceId)>) -> Beginnings {
        if places.len() < 2 {
            return Beginnings::default();
        }
        let mut roots: FxHashMap<PlaceId, PlaceId> = FxHashMap::default();
        for (from, to) in edges {
            let (from, to) = (root(&mut roots, *from), root(&mut roots, *to));
            roots.insert(from, to);
        }
        let mut by_root: FxHashMap<PlaceId, Vec<PlaceId>> = FxHashMap::default();
        for place in places {
            by_root.entry(root(&mut roots, *place)).or_default().push(*place);
        }
        let mut groups: Vec<Vec<PlaceId>> = by_root.into_values().filter(|group| group.len() > 1).collect();
        groups.sort_unstable();
        let of_group =
            |(group, places): (usize, &Vec<PlaceId>)| places.iter().map(move |place| (*place, group)).collect();
        let of_place = groups.iter().enumerate().flat_map(|of| -> Vec<_> { of_group(of) }).collect();
        Beginnings { groups, of_place, joins: Default::default() }
    }

    /// The group that has all of these places.
    pub(super) fn group_of(&self, places: &[PlaceId]) -> Option<usize> {
        let group = *self.of_place.get(places.first()?)?;
        places.iter().all(|place| self.of_place.get(place) == Some(&group)).then_some(group)
    }

    /// Where the lanes of a group come together: pcs, the innermost first.
    pub(super) fn joins(
        &self,
        group: usize,
        placement: Placement,
        graph: &Graph,
        exits: &[NodeId],
        (lengths, starts): (&[u32], &[Pc]),
    ) -> &[Option<Pc>] {
        let all = self.joins[placement as usize].get_or_init(|| {
            let with_branches = self.before(graph);
            let nodes = graph.node_count()..with_branches.node_count();
            if placement == Placement::Binary {
                let tree = PostDominators::of(&with_branches, exits);
                let pc =
                    |node: usize| tree.ipdom(NodeId(node as u32)).and_then(|join| starts.get(join.index()).copied());
                return nodes.map(|node| vec![pc(node)].into_boxed_slice()).collect();
            }
            let structured = StructuredJoins::of(&with_branches, exits);
            let flow = Flow { graph: &with_branches, structured: &structured, lengths, starts };
            if placement == Placement::Structured { flow.structured(nodes) } else { flow.nested(nodes) }
        });
        &all[group]
    }

    /// The graph with a branch in front of each group, behind its own nodes.
    fn before(&self, graph: &Graph) -> Graph {
        let own = graph.node_count();
        let mut builder = Builder::new(own + self.groups.len());
        for from in graph.nodes() {
            graph.successors(from).iter().for_each(|to| {
                builder.edge(from, *to);
            });
        }
        for (group, number) in self.groups.iter().zip(own..) {
            let branch = NodeId(number as u32);
            builder.edge(graph.entry(), branch);
            group.iter().for_each(|place| {
                builder.edge(branch, NodeId(place.0));
            });
        }
        builder.build(graph.entry())
    }
}

/// The place that stands for all that are connected with this one.
fn root(roots: &mut FxHashMap<PlaceId, PlaceId>, place: PlaceId) -> PlaceId {
    let mut at = place;
    while let Some(next) = roots.get(&at).copied().filter(|next| *next != at) {
        at = next;
    }
    roots.insert(place, at);
    at
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, schedule_turns};

    #[test]
    fn turns_that_begin_in_copies_of_the_same_code_meet_behind_them() {
        // 1 and 4 are copies.
        let lanes = ["1b 2 7 8", "4 5 7 8", "1b 3 7 8"];
        for model in ["hanoi", "hanoi:placement=binary", "hanoi:placement=nak", "ipdom", "multi-path", "barrier"] {
            let together = |schedule: &str| schedule.contains("7:0-2 8:0-2");
            assert!(together(&schedule_turns(model, &lanes)), "{model}: {}", schedule_turns(model, &lanes));
            assert!(!together(&schedule(model, &lanes)), "{model}");
        }
    }

    #[test]
    fn turns_of_different_loops_do_not_wait_for_each_other() {
        let lanes = ["1 2", "4 5", "1 2"];
        assert_eq!(schedule_turns("hanoi", &lanes), schedule("hanoi", &lanes));
    }
}
