//! Iterations in front of their loop: the first of each thread, or of each chunk, of which a compiler makes a copy.

use std::collections::BTreeSet;

use flowgraph::{LoopId, NodeId, reached};

use super::turns::{Finder, Turns};

impl Finder<'_> {
    /// The turns of a loop each of which the runtime gives a thread by a call of its own. Where a thread enters it
    /// elsewhere than at its header, the first of them began before: then turns begin where the runtime has answered.
    pub(super) fn dealt(&self, id: LoopId) -> Turns {
        let (loops, graph) = (self.loops, self.loops.graph());
        let turns = Turns::at_header(loops, id);
        let enters = |node: &NodeId| graph.predecessors(*node).iter().any(|from| !loops.contains(id, *from));
        if !loops.members(id).iter().any(|node| *node != loops.header(id) && enters(node)) {
            return turns;
        }
        let leads = reached(graph, loops.members(id).iter().copied(), |node| {
            graph.predecessors(node).iter().copied().filter(|from| !self.answers.contains(from))
        });
        let leads_on = |node: &NodeId| graph.successors(*node).iter().any(|next| leads[next.index()]);
        let (inside, in_front): (Vec<NodeId>, Vec<NodeId>) =
            self.answers.iter().copied().filter(leads_on).partition(|node| loops.contains(id, *node));
        if inside.len() != 1 || in_front.is_empty() {
            return Turns { is_incomplete: true, ..turns };
        }
        let sides = inside.iter().chain(&in_front).flat_map(|node| graph.successors(*node)).copied();
        let begins: BTreeSet<NodeId> = sides.filter(|next| leads[next.index()]).collect();
        let before = reached(graph, begins.iter().copied().filter(|node| !loops.contains(id, *node)), |node| {
            graph.successors(node).iter().copied().filter(|next| !loops.contains(id, *next) && leads[next.index()])
        });
        let before = graph.nodes().filter(|node| before[node.index()]).collect();
        Turns { begins, before, by_tests: true, ..Turns::default() }
    }

    /// The loop of which this one has the first iterations, in copies: that loop's code goes on where this one is left
    /// without a test, and where this one is left by its test none of both comes.
    ///
    /// Example: the iterations of a thread up to the first that finds a flag set, which stays set.
    pub(super) fn is_first_of(&self, id: LoopId) -> Option<LoopId> {
        let (loops, graph) = (self.loops, self.loops.graph());
        let around: Vec<NodeId> = loops.outside(id).map(|outer| loops.header(outer)).collect();
        let ends = self.ends(id);
        let is_test = |node: NodeId| {
            if loops.contains(id, node) { ends.contains(&node) } else { self.tests.of(node).is_some() }
        };
        let behind = |side: NodeId, goes_on: &dyn Fn(NodeId) -> bool| {
            reached(graph, [side], |node| {
                let next = if goes_on(node) { graph.successors(node) } else { &[] };
                next.iter().copied().filter(|next| !around.contains(next))
            })
        };
        // Each way out is followed once, however many loops there are.
        let (mut of_tests, mut straight) = (Vec::new(), Vec::new());
        for from in loops.members(id) {
            for side in graph.successors(*from).iter().filter(|side| !loops.contains(id, **side)) {
                straight.push(behind(*side, &|node| !is_test(node)));
                of_tests.extend(is_test(*from).then(|| behind(*side, &|_| true)));
            }
        }
        let given = self.given.iter().copied().filter(|other| *other != id);
        let mut others = given.filter(|other| loops.parent(*other) == loops.parent(id));
        others.find(|other| {
            let head = loops.header(*other).index();
            // No lane may have left it by its test.
            (of_tests.is_empty() || of_tests.iter().any(|reached| !reached[head]))
                && straight.iter().any(|reached| reached[head])
        })
    }

    /// Looks for iterations in front of the loop: what stands between a test whose other side ends the loop and the
    /// next such test.
    pub(super) fn look_before(&self, id: LoopId, entries: &BTreeSet<NodeId>, turns: &mut Turns) {
        let (loops, graph) = (self.loops, self.loops.graph());
        let around: Vec<LoopId> = loops.outside(id).collect();
        // A way back to the beginning of a loop around this one leads to its next turn.
        let goes_on = |from: NodeId, to: NodeId| {
            !around.iter().any(|outer| loops.header(*outer) == to && loops.contains(*outer, from))
        };
        let leads_there = reached(graph, entries.iter().copied(), |node| {
            let from = graph.predecessors(node).iter().copied();
            from.filter(move |from| !loops.contains(id, *from) && goes_on(*from, node))
        });
        let exits: BTreeSet<NodeId> = loops
            .members(id)
            .iter()
            .flat_map(|node| graph.successors(*node))
            .copied()
            .filter(|next| !loops.contains(id, *next))
            .collect();
        let behind_it = |from: NodeId, is_passed: &dyn Fn(NodeId) -> bool| -> BTreeSet<NodeId> {
            let there = reached(graph, [from], |node| {
                let next = graph.successors(node).iter().copied();
                next.filter(move |next| goes_on(node, *next) && is_passed(*next))
            });
            graph.nodes().filter(|node| there[node.index()]).collect()
        };
        let leads = |node: NodeId| leads_there[node.index()];
        let in_front = |node: NodeId| leads(node) && !loops.contains(id, node);
        let headers: Vec<NodeId> = self.given.iter().map(|id| loops.header(*id)).collect();
        let is_exit = |side: NodeId| {
            let comes_to_another = || behind_it(side, &|_| true).iter().any(|node| headers.contains(node));
            !leads(side) && (exits.contains(&side) || !comes_to_another())
        };
        // The first of a thread's chunks begins at its number, multiplied.
        let is_of_chunk = around.iter().any(|outer| self.of_chunks.contains(outer));
        // The tests with their sides that lead to the loop.
        let mut tests: Vec<(NodeId, NodeId)> = Vec::new();
        for node in graph.nodes().filter(|node| in_front(*node) && self.tests.of(*node).is_some()) {
            let (goes, leaves): (Vec<NodeId>, Vec<NodeId>) =
                graph.successors(node).iter().partition(|next| leads(**next));
            // That there was nothing for a thread to do may never have happened.
            let may_end = || {
                let test = self.tests.of(node).unwrap_or_default();
                let may_ask = is_of_chunk && !test.is_stepped && !test.is_of_equality;
                test.is_of_bounds || test.is_of_two || may_ask
            };
            let ends = leaves.first().map_or_else(may_end, |side| is_exit(*side));
            if let ([goes], true) = (&goes[..], ends) {
                tests.push((node, *goes));
            }
        }
        // Of a chunk that the runtime has given no test asks first whether it has any iteration.
        let is_stepped = |(test, _): &(NodeId, NodeId)| self.tests.of(*test).is_some_and(|test| test.is_stepped);
        if tests.iter().all(is_stepped) {
            for node in graph.nodes().filter(|node| in_front(*node) && self.answers.contains(node)) {
                let mut goes = graph.successors(node).iter().filter(|next| leads(**next));
                if let (Some(goes), None) = (goes.next(), goes.next()) {
                    tests.push((node, *goes));
                }
            }
        }
        let is_in_loop = |node: NodeId| loops.around(node).any(|of| self.is_first_of(of) == Some(id));
        for (test, goes) in &tests {
            if !in_front(*goes) {
                continue;
            }
            let behind = behind_it(*goes, &in_front);
            let reaches = |nodes: &BTreeSet<NodeId>| {
                nodes.iter().any(|node| graph.successors(*node).iter().any(|next| entries.contains(next)))
            };
            let is_next = |(next, _): &&(NodeId, NodeId)| {
                let is_dealt = self.cyclic.contains(&id);
                let is_stepped = self.tests.of(*next).is_some_and(|of| of.is_stepped || is_dealt && of.is_counted);
                // An iteration stands between them only where more is done than to compare.
                let between = || behind_it(*goes, &|node| in_front(node) && node != *next);
                let does = |node: NodeId| self.does_more(node);
                behind.contains(next)
                    && (next != test || is_in_loop(*next))
                    && is_stepped
                    && (does(*next) || between().into_iter().any(does))
            };
            let next: BTreeSet<NodeId> = tests.iter().filter(is_next).map(|(next, _)| *next).collect();
            if !next.is_empty() {
                // Without one of them the loop is reached, too: then these may be iterations or not.
                let mut left = vec![*goes];
                let mut seen = BTreeSet::new();
                while let Some(from) = left.pop() {
                    if !in_front(from) || !seen.insert(from) {
                        continue;
                    }
                    let first = behind_it(from, &|node| in_front(node) && !next.contains(&node));
                    if next.contains(&from) || !reaches(&first) {
                        turns.begins.insert(from);
                        // Each turn of a loop around may begin with such an iteration, as the first does.
                        let heads = around.iter().map(|outer| loops.header(*outer)).filter(|head| first.contains(head));
                        for head in heads.take(1).filter(|head| *head != from) {
                            let ahead = behind_it(from, &|node| in_front(node) && node != head);
                            if next.is_disjoint(&ahead) {
                                turns.begins.remove(&from);
                                turns.begins.insert(head);
                                turns.aside.extend(ahead);
                            }
                        }
                    } else if !first.iter().any(|node| graph.successors(*node).iter().any(|to| next.contains(to))) {
                        turns.aside.extend(first);
                    } else if self.does_more(from) {
                        // Without one of them the loop is reached, too: then these may be iterations or not.
                        turns.is_incomplete = true;
                    } else {
                        turns.aside.insert(from);
                        left.extend(graph.successors(from));
                    }
                }
                turns.before.extend(behind);
            } else {
                turns.aside.extend(behind);
            }
        }
        // What comes behind the only test is none of the loop.
        turns.aside.retain(|node| loops.contains(id, *node) || turns.before.contains(node));
        turns.begins.retain(|node| !turns.aside.contains(node));
    }
}
