//! Dominance frontiers, control dependence, regions and isomorphism against their definitions.

use flowgraph::{
    ControlDependence, DominanceFrontiers, Dominators, Graph, NodeId, Part, PostDominators, Regions, isomorphism,
};

use crate::{Set, all, edges, reach, without};

pub(crate) fn check(graph: &Graph, exits: &[NodeId]) {
    let dominators = Dominators::of(graph);
    let post = PostDominators::of(graph, exits);
    check_frontiers(graph, &dominators);
    check_dependence(graph, &post);
    check_regions(graph, &dominators, &post);
    check_isomorphism(graph);
}

fn check_frontiers(graph: &Graph, dominators: &Dominators) {
    let frontiers = DominanceFrontiers::of(graph, dominators);
    let reached = reach(graph, graph.entry(), &all(graph));
    let slow = |a: NodeId| -> Set {
        let ends = edges(graph).filter(|(from, to)| {
            let strictly = *to != a && dominators.dominates(a, *to);
            reached.contains(&a) && reached.contains(from) && dominators.dominates(a, *from) && !strictly
        });
        ends.map(|(_, to)| to).collect()
    };
    for a in graph.nodes() {
        assert_eq!(frontiers.frontier(a), slow(a).into_iter().collect::<Vec<_>>(), "frontier of {a:?}");
        let mut closed = slow(a);
        loop {
            let more: Set = closed.iter().flat_map(|&node| slow(node)).chain(closed.iter().copied()).collect();
            if more == closed {
                break;
            }
            closed = more;
        }
        assert_eq!(frontiers.iterated(&[a]), closed.into_iter().collect::<Vec<_>>());
    }
}

fn check_dependence(graph: &Graph, post: &PostDominators) {
    let dependence = ControlDependence::of(graph, post);
    for node in graph.nodes() {
        let depends = |branch: &NodeId| {
            let strictly = node != *branch && post.post_dominates(node, *branch);
            graph.successors(*branch).iter().any(|&on| post.post_dominates(node, on)) && !strictly
        };
        let branches: Vec<_> = graph.nodes().filter(depends).collect();
        assert_eq!(dependence.branches(node), branches, "branches that {node:?} depends on");
        for branch in graph.nodes() {
            let listed = dependence.dependents(branch).iter().filter(|&&other| other == node).count();
            assert_eq!(listed, usize::from(branches.contains(&branch)));
        }
    }
}

/// The members of the region from `entry` to `exit`, if it is one.
fn region(graph: &Graph, post: &PostDominators, reached: &Set, entry: NodeId, exit: NodeId) -> Option<Set> {
    if entry == exit || !reached.contains(&entry) || !post.post_dominates(exit, entry) {
        return None;
    }
    let members = reach(graph, entry, &without(&all(graph), exit));
    let enters = |(from, to): (NodeId, NodeId)| {
        reached.contains(&from) && !members.contains(&from) && members.contains(&to) && to != entry
    };
    let begins_inside = members.contains(&graph.entry()) && graph.entry() != entry;
    (!begins_inside && !edges(graph).any(enters)).then_some(members)
}

fn check_regions(graph: &Graph, dominators: &Dominators, post: &PostDominators) {
    let reached = reach(graph, graph.entry(), &all(graph));
    let regions = Regions::of(graph, dominators, post);
    let slow: Vec<Vec<Option<Set>>> = graph
        .nodes()
        .map(|entry| graph.nodes().map(|exit| region(graph, post, &reached, entry, exit)).collect())
        .collect();
    let is_region = |entry: NodeId, exit: NodeId| slow[entry.index()][exit.index()].is_some();
    let mut expected = vec![];
    for entry in graph.nodes() {
        for exit in graph.nodes() {
            let in_a_row = graph.nodes().any(|middle| is_region(entry, middle) && is_region(middle, exit));
            if is_region(entry, exit) && !in_a_row && graph.successors(entry) != [exit] {
                expected.push((entry, exit));
            }
        }
    }
    let mut found: Vec<_> = regions.ids().map(|id| (regions.entry(id), regions.exit(id))).collect();
    found.sort_unstable();
    assert_eq!(found, expected, "regions");

    let members_of = |id| {
        let (entry, exit) = (regions.entry(id), regions.exit(id));
        slow[entry.index()][exit.index()].as_ref().expect("a region")
    };
    for id in regions.ids() {
        let members = members_of(id);
        let listed = regions.members(id);
        assert_eq!(listed[0], regions.entry(id));
        assert_eq!(&listed.iter().copied().collect::<Set>(), members);
        assert_eq!(listed.len(), members.len());
        // The smallest that holds more; all that hold some of it hold it whole, or are held.
        let mut around: Vec<_> = regions.ids().filter(|&other| members_of(other).len() > members.len()).collect();
        for &other in &around {
            assert!(members.is_subset(members_of(other)) || members.is_disjoint(members_of(other)));
        }
        around.retain(|&other| members.is_subset(members_of(other)));
        around.sort_by_key(|&other| members_of(other).len());
        assert_eq!(regions.parent(id), around.first().copied());
        assert!(regions.parent(id).is_none_or(|parent| parent < id));
        for node in graph.nodes() {
            assert_eq!(regions.contains(id, node), members.contains(&node));
        }
        let crosses = |(from, to): &(NodeId, NodeId), inward: bool| {
            reached.contains(from) && members.contains(from) != inward && members.contains(to) == inward
        };
        let comes_in = edges(graph).filter(|edge| crosses(edge, true)).count();
        let comes_in = comes_in + usize::from(regions.entry(id) == graph.entry());
        let leaves = edges(graph).filter(|edge| crosses(edge, false)).count();
        assert_eq!(regions.is_simple(graph, id), comes_in <= 1 && leaves == 1);
    }
    for node in graph.nodes() {
        let holding = regions.ids().filter(|&id| members_of(id).contains(&node));
        assert_eq!(regions.innermost(node), holding.min_by_key(|&id| members_of(id).len()));
    }
}

/// Every way to pair up the members of small parts of this graph, entry with entry.
fn check_isomorphism(graph: &Graph) {
    let mut parts = vec![];
    for entry in graph.nodes().take(6) {
        for exit in graph.nodes().take(6).filter(|&exit| exit != entry) {
            let part = Part { graph, entry, exit };
            if part.members().len() <= 5 {
                parts.push(part);
            }
        }
    }
    for &a in &parts {
        for &b in &parts {
            let found = isomorphism(a, b);
            assert_eq!(found.is_some(), exists(a, b), "{a:?} and {b:?}");
            if let Some(found) = found {
                let (from, to): (Vec<_>, Vec<_>) = found.into_iter().unzip();
                assert_eq!(from, a.members());
                assert!(preserves(a, b, &to));
            }
        }
    }
}

/// Whether there is an edge between members of `a`, or to its exit, exactly where there is one between the images.
fn preserves(a: Part, b: Part, images: &[NodeId]) -> bool {
    let members = a.members();
    let distinct: Set = images.iter().copied().collect();
    let sound = distinct == b.members().into_iter().collect() && images.len() == distinct.len();
    let pairs = || members.iter().copied().zip(images.iter().copied());
    let ends = || pairs().chain([(a.exit, b.exit)]);
    let leads = |graph: &Graph, from: NodeId, to: NodeId| graph.successors(from).contains(&to);
    let edge_alike =
        |(from, of_from)| ends().all(|(to, of_to)| leads(a.graph, from, to) == leads(b.graph, of_from, of_to));
    sound && images.first() == Some(&b.entry) && pairs().all(edge_alike)
}

fn exists(a: Part, b: Part) -> bool {
    fn try_all(a: Part, b: Part, left: &[NodeId], images: &mut Vec<NodeId>) -> bool {
        if left.is_empty() {
            return preserves(a, b, images);
        }
        left.iter().any(|&image| {
            images.push(image);
            let rest: Vec<_> = left.iter().copied().filter(|&other| other != image).collect();
            let found = try_all(a, b, &rest, images);
            images.pop();
            found
        })
    }
    let of_b = b.members();
    of_b.len() == a.members().len() && try_all(a, b, &of_b[1..], &mut vec![b.entry])
}
