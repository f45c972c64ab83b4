//! Dominance frontiers, control dependence, regions, structured joins and isomorphism against their definitions.

use flowgraph::{
    ControlDependence, DominanceFrontiers, Dominators, Graph, IfJoins, Join, LoopId, NodeId, Part, PartialJoins,
    PostDominators, Regions, Stop, StructuredJoins, TurnDistances, isomorphism,
};

use crate::{Set, all, edges, reach, without};

pub(crate) fn check(graph: &Graph, exits: &[NodeId]) {
    let dominators = Dominators::of(graph);
    let post = PostDominators::of(graph, exits);
    check_frontiers(graph, &dominators);
    check_dependence(graph, &post);
    check_regions(graph, &dominators, &post);
    check_isomorphism(graph);
    check_structured_joins(graph, exits, &post);
}

/// What is left of the graph for the joins in a loop, or outside of all: its nodes, and whether a node leads to the
/// end.
struct Scope<'a> {
    graph: &'a Graph,
    within: Set,
    turn_of: Option<(LoopId, NodeId)>,
    exits: &'a [NodeId],
}

impl Scope<'_> {
    /// What a node stands for as the target of an edge: none for what is left out.
    fn target(&self, to: NodeId) -> Option<Join> {
        match self.turn_of {
            Some((id, header)) if header == to => Some(Join::TurnEnd(id)),
            _ => self.within.contains(&to).then_some(Join::Node(to)),
        }
    }

    /// Whether a path leads from a place to the end of the scope without another place.
    fn ends_without(&self, from: Join, without: Join) -> bool {
        let (mut seen, mut work) = (std::collections::BTreeSet::new(), vec![from]);
        while let Some(at) = work.pop() {
            if at == without || !seen.insert(at) {
                continue;
            }
            let Join::Node(node) = at else { return true };
            if self.turn_of.is_none() && self.exits.contains(&node) {
                return true;
            }
            work.extend(self.graph.successors(node).iter().filter_map(|&to| self.target(to)));
        }
        false
    }

    /// The first place that all paths from these places go through.
    fn meets(&self, from: &[Join]) -> Option<Join> {
        let end = self.turn_of.map(|(id, _)| Join::TurnEnd(id));
        let places = self.within.iter().map(|&node| Join::Node(node)).chain(end);
        let common: Vec<Join> = places.filter(|&at| from.iter().all(|&f| !self.ends_without(f, at))).collect();
        common.iter().copied().find(|&at| common.iter().all(|&other| other == at || !self.ends_without(at, other)))
    }
}

fn check_structured_joins(graph: &Graph, exits: &[NodeId], post: &PostDominators) {
    let found = StructuredJoins::of(graph, exits);
    let loops = found.loops();
    let leads_out = |node: &NodeId| reach(graph, *node, &all(graph)).iter().any(|n| exits.contains(n));
    let reached = reach(graph, graph.entry(), &all(graph));
    let outside = Scope { graph, within: reached.iter().copied().filter(leads_out).collect(), turn_of: None, exits };
    let turn = |id: LoopId| Scope {
        graph,
        within: loops.members(id).iter().copied().collect(),
        turn_of: Some((id, loops.header(id))),
        exits,
    };
    for &node in &reached {
        let join = match loops.innermost(node) {
            Some(id) => after(&turn(id), node),
            None if outside.within.contains(&node) => after(&outside, node),
            None => post.ipdom(node).map(Join::Node),
        };
        assert_eq!(found.join(node), join, "join of {node:?}");
    }
    for id in loops.ids() {
        let scope = loops.parent(id).map_or_else(|| Scope { within: outside.within.clone(), ..outside }, turn);
        let out = edges(graph).filter(|(from, to)| loops.contains(id, *from) && !loops.contains(id, *to));
        let targets: Vec<Join> = out.filter_map(|(_, to)| scope.target(to)).collect();
        let behind = if targets.is_empty() { None } else { scope.meets(&targets) };
        assert_eq!(found.behind(id), behind, "behind {id:?}");
    }
    check_walks(graph, exits, &found);
    check_turn_distances(graph, exits, &found);
    check_if_joins(graph, &found);
    check_partial_joins(graph, &found);
}

/// The first place behind a node that all paths from it go through.
fn after(scope: &Scope, node: NodeId) -> Option<Join> {
    // An exit is where control may leave before it goes on.
    if scope.turn_of.is_none() && scope.exits.contains(&node) {
        return None;
    }
    let targets: Vec<Join> = scope.graph.successors(node).iter().filter_map(|&to| scope.target(to)).collect();
    if targets.is_empty() { None } else { scope.meets(&targets) }
}

/// Where some of the paths from a branch, or out of a loop, meet: by their definition, and nobody comes back to one
/// that he has passed by.
fn check_partial_joins(graph: &Graph, structured: &StructuredJoins) {
    let (found, loops, dominators) = (PartialJoins::of(graph, structured), structured.loops(), Dominators::of(graph));
    let reached = reach(graph, graph.entry(), &all(graph));
    let is_reducible = loops.ids().all(|id| !loops.is_irreducible(id));
    let rank = |node: NodeId| loops.order().iter().position(|&at| at == node).expect("it is reached");
    let around = |node: NodeId| loops.headed_by(node).map_or(loops.innermost(node), |id| loops.parent(id));
    let is_inside = |of: Option<LoopId>, node: NodeId| of.is_none_or(|id| loops.contains(id, node));
    // The nodes of the same part of a loop's turn: of the loop inside of it, or the node alone.
    let part = |of: Option<LoopId>, node: NodeId| -> Set {
        let inside = loops.ids().filter(|&id| loops.parent(id) == of && loops.contains(id, node));
        inside.flat_map(|id| loops.members(id).to_vec()).chain([node]).collect()
    };
    let meets = |of: Option<LoopId>, members: &Set, join: Option<Join>, meeting: NodeId| {
        let Some(above) = dominators.idom(meeting) else { return false };
        let own = loops.headed_by(meeting);
        let forward = reached.iter().filter(|&&from| graph.successors(from).contains(&meeting));
        let forward = forward.filter(|&&from| own.is_none_or(|id| !loops.contains(id, from))).count();
        let out = members.iter().flat_map(|&from| graph.successors(from)).filter(|to| !members.contains(to));
        let (head, above_part) = (of.map(|id| loops.header(id)), part(of, above));
        // On the way there nobody passes the part of the node above again, nor the head of the loop.
        let is_above = above_part.is_subset(members) || members.is_subset(&above_part);
        let on_the_way = |node: &NodeId| {
            is_inside(of, *node) && Some(*node) != head && !members.contains(node) && !above_part.contains(node)
        };
        let within: Set = reached.iter().copied().filter(on_the_way).collect();
        let comes = out.clone().any(|&to| within.contains(&to) && reach(graph, to, &within).contains(&meeting));
        let from_above = is_above || {
            let from = above_part.iter().flat_map(|&from| graph.successors(from)).filter(|to| !above_part.contains(to));
            let on_the_way = |node: &NodeId| is_inside(of, *node) && Some(*node) != head && *node != meeting;
            let within: Set = reached.iter().copied().filter(on_the_way).collect();
            from.clone().any(|&to| within.contains(&to) && !reach(graph, to, &within).is_disjoint(members))
        };
        around(meeting) == of
            && is_inside(of, above)
            && forward > 1
            && out.count() > 1
            && comes
            && from_above
            && !matches!(join, Some(Join::Node(join)) if rank(join) <= rank(meeting))
    };
    let check = |of: Option<LoopId>, members: &Set, join: Option<Join>, known: &[NodeId], what: &str| {
        let mut expected: Vec<NodeId> = reached
            .iter()
            .copied()
            .filter(|&meeting| !members.contains(&meeting) && meets(of, members, join, meeting))
            .collect();
        expected.sort_by_key(|&meeting| rank(meeting));
        // A loop of several heads has ways in by which some paths lead past the head.
        let known_ones: Set = known.iter().copied().collect();
        assert!(known_ones.is_subset(&expected.iter().copied().collect()), "{what}: {known:?} of {expected:?}");
        assert!(!is_reducible || known == expected, "{what}: {known:?} of {expected:?}");
        for pair in known.windows(2) {
            let on_the_way = |node: &NodeId| is_inside(of, *node) && of.is_none_or(|id| loops.header(id) != *node);
            let within: Set = reached.iter().copied().filter(on_the_way).collect();
            assert!(!reach(graph, pair[1], &within).contains(&pair[0]), "{what}: {pair:?}");
        }
    };
    for &node in &reached {
        let known = found.of_branch(node);
        check(loops.innermost(node), &Set::from([node]), structured.join(node), known, &format!("branch {node:?}"));
    }
    for id in loops.ids() {
        let members: Set = loops.members(id).iter().copied().collect();
        check(loops.parent(id), &members, structured.behind(id), found.of_loop(id), &format!("loop {id:?}"));
    }
}

/// A join that is nearer than the structured one: a walk that does not come there goes through nodes that the branch
/// dominates until its turn is over, or it leaves the loop, or it ends.
fn check_if_joins(graph: &Graph, structured: &StructuredJoins) {
    let (found, loops, dominators) = (IfJoins::of(graph, structured), structured.loops(), Dominators::of(graph));
    for node in reach(graph, graph.entry(), &all(graph)) {
        let join = found.join(node);
        if join == structured.join(node) {
            continue;
        }
        assert!(!matches!(structured.join(node), Some(Join::Node(_))), "{node:?} had a join");
        let Some(Join::Node(meeting)) = join else { panic!("{node:?} joins at {join:?}") };
        assert!(meeting != node && dominators.dominates(node, meeting));
        let around = loops.innermost(node);
        let in_turn = |at: NodeId| around.is_none_or(|id| loops.contains(id, at) && loops.header(id) != at);
        let within: Set = all(graph).into_iter().filter(|&at| in_turn(at) && at != meeting).collect();
        for &next in graph.successors(node) {
            let on_the_way = reach(graph, next, &within);
            assert!(on_the_way.iter().all(|&at| dominators.dominates(node, at)), "{node:?} joins at {join:?}");
        }
    }
}

/// Each stop is as far from the end as its shortest edge leads, and every join is nearer than what it joins.
fn check_turn_distances(graph: &Graph, exits: &[NodeId], joins: &StructuredJoins) {
    let lengths: Vec<u32> = graph.nodes().map(|node| 1 + node.0 * 7 % 5).collect();
    let found = TurnDistances::of(graph, exits, &lengths);
    let loops = found.loops();
    let reached = reach(graph, graph.entry(), &all(graph));
    // The stop of a node in the turn of a loop around it, or outside of all.
    let stop = |node: NodeId, depth: usize| found.stops(node)[depth];
    for &node in &reached {
        assert_eq!(found.stops(node).len() as u32, loops.depth(node) + 1);
        for (depth, &(distance, at)) in found.stops(node).iter().enumerate() {
            let (members, length) = match at {
                Stop::Node(node) => (vec![node], lengths[node.index()]),
                Stop::Loop(id) => (loops.members(id).to_vec(), lengths[loops.header(id).index()]),
            };
            let around = (depth > 0).then(|| match stop(node, depth - 1).1 {
                Stop::Loop(id) => id,
                Stop::Node(_) => unreachable!("only the last stop is a node"),
            });
            if around.is_some_and(|id| at == Stop::Node(loops.header(id))) {
                assert_eq!(distance, 0);
                continue;
            }
            let ends = |to: NodeId| around.is_some_and(|id| loops.header(id) == to).then_some(0);
            let leads = |to: NodeId| {
                let inside = around.is_none_or(|id| loops.contains(id, to));
                let there = inside.then(|| stop(to, depth)).filter(|&(_, stop)| stop != at)?;
                (there.0 < u32::MAX).then_some(there.0)
            };
            let ways = members.iter().flat_map(|&from| {
                let out = graph.successors(from).iter();
                let exit = (around.is_none() && exits.contains(&from)).then_some(0);
                out.filter_map(move |&to| ends(to).or_else(|| leads(to))).chain(exit)
            });
            let shortest = ways.min().map_or(u32::MAX, |rest| rest + length);
            assert_eq!(distance, shortest, "{node:?} at {at:?}");
        }
        let depth = loops.depth(node) as usize;
        if let (Some(Join::Node(join)), true) = (joins.join(node), loops.headed_by(node).is_none()) {
            let (here, there) = (stop(node, depth).0, stop(join, depth).0);
            assert!(there < here || here == u32::MAX, "{node:?} joins at {join:?}");
        }
    }
}

/// Whatever way a lane goes: while it stays in the loop around one of the places of a branch, it comes there before the
/// turn is over, or before control leaves the graph.
fn check_walks(graph: &Graph, exits: &[NodeId], found: &StructuredJoins) {
    let loops = found.loops();
    let reached = reach(graph, graph.entry(), &all(graph));
    for (seed, &branch) in reached.iter().enumerate().filter(|(_, n)| graph.successors(**n).len() > 1) {
        let mut around: Vec<Option<LoopId>> =
            std::iter::successors(loops.innermost(branch), |&id| loops.parent(id)).map(Some).collect();
        around.push(None);
        // What the lane has yet to reach, by the loop around it; the place behind a loop counts once the loop is
        // left.
        let mut wanted: Vec<(Option<LoopId>, Option<Join>)> = vec![(around[0], found.join(branch))];
        wanted.extend(around.windows(2).map(|pair| (pair[1], pair[0].and_then(|id| found.behind(id)))));
        let (mut at, mut random) = (branch, seed as u64 + 1);
        for _ in 0..64 {
            let next = graph.successors(at);
            if next.is_empty() || (exits.contains(&at) && random % 5 == 0) {
                break;
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let to = next[(random >> 33) as usize % next.len()];
            let turn = loops.headed_by(to).filter(|&id| loops.contains(id, at));
            let (scope, join) = wanted[0];
            let came = join == Some(Join::Node(to)) || join == turn.map(Join::TurnEnd);
            let left = scope.is_some_and(|id| !loops.contains(id, to));
            if left {
                // It may reach the place behind the loop by this very step.
                wanted.remove(0);
                while wanted.len() > 1 && wanted[0].0.is_some_and(|id| !loops.contains(id, to)) {
                    wanted.remove(0);
                }
                let (scope, join) = wanted[0];
                let back = scope.is_some_and(|id| turn == Some(id));
                if join == Some(Join::Node(to)) || (back && join == turn.map(Join::TurnEnd)) {
                    break;
                }
                assert!(!back, "{at:?} to {to:?}: a turn ended before {join:?}, from {branch:?}");
            } else if came {
                break;
            } else {
                let over = scope.is_some() && turn == scope;
                assert!(!over, "{at:?} to {to:?}: a turn ended before {join:?}, from {branch:?}");
            }
            at = to;
        }
    }
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
