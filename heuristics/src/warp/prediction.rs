//! Predicted reconvergence points: places at which lanes are collected before they go on, though some may never reach
//! them.
//!
//! Damani et al., *Speculative reconvergence for improved SIMT efficiency* (CGO 2020), section 4. A lane *joins* the
//! barrier of a prediction where its region begins, *waits* at the predicted point until all that joined have come or
//! have *cancelled*, goes on together with them, and *rejoins* at once. It cancels where it reaches a place from which
//! the point can no longer be reached. With a threshold so many waiting lanes are enough (the paper's soft barrier).
//!
//! The region of a prediction is the places of its function from which the point can be reached, as the paper's
//! equations say: the barrier is *joined* there (there is a way from where lanes join) and *live* (there is a way to
//! the point on which they do not join again). So a prediction that is made in the turn of an outer loop ends with that
//! turn, and one that is made before the loop holds for all turns. Where the region is left for good, at the immediate
//! post-dominator of all of it, its lanes meet again (the paper's orthogonal barrier).
//!
//! The point of a prediction may be a function's entry ([`Prediction::calls`], section 4.4): then the region is that of
//! the calls in the function that makes them, and lanes wait in the callee for those that call it from elsewhere in the
//! same function. Each calling function has a region of its own, as if each called a wrapper of its own. Where it is
//! said where lanes join, calls count too that lead to the function through others: what the callee waits for goes up
//! through the call graph to the calls in the function in which they join ([`calls_towards`]). Calls that lanes come
//! to from different such places have a region each.
//!
//! The barriers of ordinary branches give way where they *conflict* with the prediction's, which is where their lanes
//! would meet inside of the region, or at a place that not all of the region leads to (neither live range holds the
//! other): else two lanes might wait for each other at two places. [`Deconflict::Dynamic`]:
//! a lane that waits at the predicted point is taken off them, as it is, while it waits, off the barriers of other
//! predictions; [`Deconflict::Static`]: branches from which the point can be reached before the lanes meet have no
//! barrier at all. Barriers of functions between the one in which lanes joined and the one at whose entry they wait are
//! left in any case.
//!
//! *Limitation*: a point in a function is known at the call level at which its region was entered: in recursion the
//! outermost one counts. The point of a prediction is the beginning of a place.

use flowgraph::{CollectingRegion, Copies, Dominators, Graph, NodeId, copies_of_a_point, points_apart, reached};
use trace_format::Pc;

use crate::warp::reconvergence::Reconvergence;
use crate::{ControlFlow, PlaceId, Placement};

/// A prediction, as it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Where lanes are collected: the first pc of a place.
    pub at: Pc,
    /// Copies of the same place that a compiler made. Those from whose regions the others can be reached count as one
    /// place; see [`flowgraph::copies_of_a_point`].
    pub copies: Vec<Pc>,
    /// Whether a function begins there, all calls of which are meant: the region is that of the calls.
    pub calls: bool,
    /// Where lanes join: the first pcs of places. Empty: wherever they reach the region. Of calls, those that lead to
    /// the function through others count only where it is said.
    pub from: Vec<Pc>,
    /// How many waiting lanes are enough. None: all that joined.
    pub threshold: Option<usize>,
    /// How conflicts with the barriers of branches are resolved.
    pub deconflict: Deconflict,
}

impl Prediction {
    /// Of this place, for all lanes that reach its region.
    #[must_use]
    pub fn at(pc: Pc) -> Prediction {
        Prediction {
            at: pc,
            copies: Vec::new(),
            calls: false,
            from: Vec::new(),
            threshold: None,
            deconflict: Deconflict::Dynamic,
        }
    }

    /// Of the function that begins there, for all lanes that reach the place where they may call it.
    #[must_use]
    pub fn of_calls(entry: Pc) -> Prediction {
        Prediction { calls: true, ..Prediction::at(entry) }
    }
}

/// How conflicts of a prediction with the barriers of branches are resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deconflict {
    /// A lane that waits at the predicted point is taken off those that conflict.
    #[default]
    Dynamic,
    /// Branches that could conflict have none.
    Static,
}

/// Predictions with their regions in a program's control flow.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    pub(crate) regions: Vec<Region>,
    without_region: Vec<Prediction>,
    copied: Vec<Copied>,
}

/// A prediction whose point a compiler copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Where its lanes meet.
    pub at: Pc,
    /// The copies to which they come behind that: turns of a loop that became one.
    pub behind: Vec<Pc>,
    /// The copies to which lanes come past it, at which nobody is collected.
    pub past: Vec<Pc>,
}

/// The region of a prediction in one function.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) prediction: Prediction,
    /// Its points are the place at which lanes wait, or those that call the function at whose entry they do.
    nodes: CollectingRegion,
}

impl Predictions {
    /// With the regions of each.
    #[must_use]
    pub fn new(predictions: &[Prediction], control_flow: &ControlFlow) -> Predictions {
        let mut all = Predictions::default();
        for prediction in predictions {
            let before = all.regions.len();
            if let Some(graph) = control_flow.graph() {
                all.add(prediction, control_flow, graph);
            }
            if all.regions.len() == before {
                all.without_region.push(prediction.clone());
            }
        }
        all
    }

    fn add(&mut self, prediction: &Prediction, control_flow: &ControlFlow, graph: &Graph) {
        let from = nodes_at(&prediction.from, control_flow);
        if from.is_empty() && !prediction.from.is_empty() {
            return;
        }
        let of = |prediction: &Prediction, points: &[NodeId]| {
            let nodes = CollectingRegion::of(graph, points, &from)?;
            Some(Region { prediction: prediction.clone(), nodes })
        };
        if prediction.calls {
            let Some(entry) = control_flow.place_at(prediction.at) else { return };
            // Barriers are numbered in the order of the code.
            let nodes = |mut calls: Vec<PlaceId>| {
                calls.sort_by_key(|place| control_flow.start(*place));
                calls.into_iter().map(|place| NodeId(place.0)).collect::<Vec<_>>()
            };
            let calls =
                if from.is_empty() { calls_of(entry, control_flow) } else { calls_towards(entry, control_flow) };
            let of_functions = calls.into_iter().map(nodes);
            let apart = of_functions.flat_map(|calls| points_apart(graph, &calls, &from));
            self.regions.extend(apart.filter_map(|calls| of(prediction, &calls)));
            return;
        }
        let pcs: Vec<Pc> = std::iter::once(prediction.at).chain(prediction.copies.iter().copied()).collect();
        let points = nodes_at(&pcs, control_flow);
        let groups = match &points[..] {
            [] => Vec::new(),
            [at] => vec![Copies { at: *at, behind: Vec::new(), past: Vec::new() }],
            points => copies_of_a_point(graph, &Dominators::of(graph), points, &from),
        };
        for Copies { at, behind, past } in groups {
            let pcs = |nodes: &[NodeId]| nodes.iter().map(|node| control_flow.start(PlaceId(node.0))).collect();
            let one = Prediction { at: control_flow.start(PlaceId(at.0)), copies: Vec::new(), ..prediction.clone() };
            if !behind.is_empty() || !past.is_empty() {
                self.copied.push(Copied { at: one.at, behind: pcs(&behind), past: pcs(&past) });
            }
            self.regions.extend(of(&one, &[at]));
        }
    }

    /// The same, and besides where a machine has lanes meet that have yielded.
    pub(crate) fn with_meetings(&self, control_flow: &ControlFlow) -> Predictions {
        let is_new = |(at, _): &&(Pc, CollectingRegion)| self.regions.iter().all(|region| region.prediction.at != *at);
        let of =
            |(at, nodes): &(Pc, CollectingRegion)| Region { prediction: Prediction::at(*at), nodes: nodes.clone() };
        let mut all = self.clone();
        all.regions.extend(control_flow.meetings().iter().filter(is_new).map(of));
        all
    }

    /// Whether no lane is ever collected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Those that change nothing: no place begins at their pcs, no lane reaches them from where it joins, or the
    /// function is never called.
    #[must_use]
    pub fn without_region(&self) -> &[Prediction] {
        &self.without_region
    }

    /// Those whose points were copied.
    #[must_use]
    pub fn copied(&self) -> &[Copied] {
        &self.copied
    }
}

/// The nodes of the places that begin at these pcs.
fn nodes_at(pcs: &[Pc], control_flow: &ControlFlow) -> Vec<NodeId> {
    pcs.iter().filter_map(|pc| control_flow.place_at(*pc)).map(|place| NodeId(place.0)).collect()
}

impl Region {
    /// The same as nodes of the control-flow graph.
    pub(crate) fn nodes(&self) -> &CollectingRegion {
        &self.nodes
    }

    /// Whether lanes may reach the point through other functions than the one in which they joined.
    pub(crate) fn is_through(&self) -> bool {
        self.prediction.calls && !self.prediction.from.is_empty()
    }

    /// Whether lanes that wait for each other at this point do so inside of the region.
    pub(crate) fn holds_point(&self, at: &Reconvergence, control_flow: &ControlFlow) -> bool {
        at.pc.and_then(|pc| control_flow.place_at(pc)).is_some_and(|place| self.holds(place))
    }

    /// Whether the barrier at this place conflicts with the region's, which is where neither lives wherever the other
    /// does: it is inside, or cannot be reached from all of the region.
    pub(crate) fn conflicts_with(&self, at: PlaceId, leading: &[bool]) -> bool {
        self.holds(at) || self.nodes.nodes().any(|node| !leading[node.index()])
    }

    /// Where its lanes meet again behind it, under a placement.
    pub(crate) fn behind(&self, placement: Placement, control_flow: &ControlFlow) -> Option<Pc> {
        let behind = self.nodes.behind(|node| meets(placement, control_flow, node));
        behind.map(|node| control_flow.start(PlaceId(node.0)))
    }

    /// Whether a prediction is made in this place: who comes there has left the region, and is in it again behind it.
    pub(crate) fn begins_at(&self, place: PlaceId) -> bool {
        self.nodes.begins_at(NodeId(place.0))
    }

    pub(crate) fn holds(&self, place: PlaceId) -> bool {
        self.nodes.holds(NodeId(place.0))
    }

    pub(crate) fn is_joined_at(&self, place: PlaceId) -> bool {
        self.nodes.is_joined_at(NodeId(place.0))
    }

    /// Whether lanes that part in a place could reach the point before they meet: then what they meet at conflicts.
    pub(crate) fn conflicts(&self, place: PlaceId, meet: Option<Pc>, control_flow: &ControlFlow) -> bool {
        let Some(graph) = control_flow.graph() else { return false };
        let meet = meet.and_then(|pc| control_flow.place_at(pc)).map(|place| NodeId(place.0));
        self.nodes.conflicts(graph, NodeId(place.0), meet)
    }
}

/// By place: whether it leads to this one.
pub(crate) fn leading(to: PlaceId, control_flow: &ControlFlow) -> Vec<bool> {
    let Some(graph) = control_flow.graph() else { return Vec::new() };
    reached(graph, [NodeId(to.0)], |node| graph.predecessors(node).iter().copied())
}

/// Where lanes meet that part behind a node, under a placement, the innermost first; none: at the end of its function.
pub(crate) fn meets(placement: Placement, control_flow: &ControlFlow, node: NodeId) -> Vec<Option<NodeId>> {
    let at = |pc: Option<Pc>| pc.and_then(|pc| control_flow.place_at(pc)).map(|place| NodeId(place.0));
    placement.joins(control_flow, PlaceId(node.0)).into_iter().map(at).collect()
}

/// The places with calls of the function that begins here, those through stubs of a linkage table included, by the
/// function that they are in.
#[must_use]
pub fn calls_of(entry: PlaceId, control_flow: &ControlFlow) -> Vec<Vec<PlaceId>> {
    let Some(graph) = control_flow.graph() else { return Vec::new() };
    let calls = direct_calls(entry, control_flow, graph);
    by_function(calls, graph).into_iter().map(|(_, calls)| calls).collect()
}

/// The same, and the places with calls that lead to one of those through other functions.
#[must_use]
pub fn calls_towards(entry: PlaceId, control_flow: &ControlFlow) -> Vec<Vec<PlaceId>> {
    let Some(graph) = control_flow.graph() else { return Vec::new() };
    let mut all = direct_calls(entry, control_flow, graph);
    let mut looked_at: Vec<PlaceId> = vec![entry];
    loop {
        let functions = by_function(all.clone(), graph);
        let is_in = |entry: &&NodeId| functions.iter().any(|(function, _)| function[entry.index()]);
        let entries = graph.successors(graph.entry()).iter().filter(is_in).map(|entry| PlaceId(entry.0));
        let new: Vec<PlaceId> = entries.filter(|entry| !looked_at.contains(entry)).collect();
        if new.is_empty() {
            return functions.into_iter().map(|(_, calls)| calls).collect();
        }
        all.extend(new.iter().flat_map(|entry| direct_calls(*entry, control_flow, graph)));
        all.sort_unstable();
        all.dedup();
        looked_at.extend(new);
    }
}

/// The places with calls of the function that begins here, in order.
fn direct_calls(entry: PlaceId, control_flow: &ControlFlow, graph: &Graph) -> Vec<PlaceId> {
    let leads = reached(graph, [NodeId(entry.0)], |node| graph.predecessors(node).iter().copied());
    let entries = leads.iter().zip(0..).filter(|(leads, _)| **leads).map(|(_, place)| PlaceId(place));
    let mut calls: Vec<PlaceId> = entries.flat_map(|entry| control_flow.callers(entry)).collect();
    calls.sort_unstable();
    calls.dedup();
    calls
}

/// Places by the function that they are in, which is what edges connect: by node, whether it is of the function.
fn by_function(places: Vec<PlaceId>, graph: &Graph) -> Vec<(Vec<bool>, Vec<PlaceId>)> {
    let around = |node: NodeId| graph.successors(node).iter().chain(graph.predecessors(node)).copied();
    let mut functions: Vec<(Vec<bool>, Vec<PlaceId>)> = Vec::new();
    for place in places {
        match functions.iter_mut().find(|(function, _)| function[place.0 as usize]) {
            Some((_, inside)) => inside.push(place),
            None => functions.push((reached(graph, [NodeId(place.0)], around), vec![place])),
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::{Deconflict, Prediction};
    use crate::example::schedule_predicted;
    use trace_format::Pc;

    fn at(pc: u64) -> Prediction {
        Prediction::at(Pc(pc))
    }

    /// Figure 2(a): 1 prolog, 2 the condition, 3 the expensive code, 4 epilog.
    const DELAYED: [&str; 2] = ["1 2b 3 4b 1 2b 4b 5", "1 2b 4b 1 2b 3 4b 5"];

    #[test]
    fn lanes_wait_for_the_expensive_code_across_turns() {
        let pdom = "1:0-1 2:0-1 3:0 4:0-1 1:0-1 2:0-1 3:1 4:0-1 5:0-1";
        assert_eq!(schedule_predicted("barrier", &DELAYED, &[]), pdom);
        let predicted = "1:0-1 2:0-1 4:1 1:1 2:1 3:0-1 4:0-1 1:0 2:0 4:0 5:0-1";
        // An arm with a point is not predicated, however short it is.
        let models = ["barrier", "barrier:predicate=4", "hanoi:placement=binary", "hanoi:predicate=4"];
        assert!(models.iter().all(|model| schedule_predicted(model, &DELAYED, &[at(3)]) == predicted));
    }

    /// Figure 2(b): 1 prolog, 2 the inner loop's body, 3 epilog.
    const MERGED: [&str; 2] = ["1 2b 2b 2b 3b 1 2b 3b 9", "1 2b 3b 1 2b 2b 2b 3b 9"];

    #[test]
    fn trips_of_an_inner_loop_are_shared_across_turns_of_the_outer_one() {
        let pdom = "1:0-1 2:0-1 2:0 2:0 3:0-1 1:0-1 2:0-1 2:1 2:1 3:0-1 9:0-1";
        assert_eq!(schedule_predicted("barrier", &MERGED, &[]), pdom);
        let predicted = "1:0-1 2:0-1 3:1 1:1 2:0-1 2:0-1 3:0 1:0 2:0-1 3:0-1 9:0-1";
        assert_eq!(schedule_predicted("barrier", &MERGED, &[at(2)]), predicted);
    }

    #[test]
    fn so_many_lanes_are_enough() {
        let lanes = ["1 2b 3 4b 1 2b 4b 5", "1 2b 4b 1 2b 3 4b 5", "1 2b 3 4b 1 2b 3 4b 5"];
        let of = |threshold| schedule_predicted("barrier", &lanes, &[Prediction { threshold, ..at(3) }]);
        let (all, two) = (of(None), of(Some(2)));
        assert!(all.contains("3:0-2") && !two.contains("3:0-2"), "{all}\n{two}");
        assert!(two.contains("3:0,2"), "{two}");
    }

    #[test]
    fn who_need_not_wait_at_a_soft_point_is_waited_for_behind_the_loop() {
        // Figure 6: as long as two lanes are in the inner loop, who leaves it waits behind it. When one is left, that
        // one waits for others, and these go on together.
        let twice = "1 2b 2b 2b 3b 1 2b 3b 9";
        let lanes = [twice, twice, "1 2b 3b 1 2b 2b 2b 3b 9"];
        let two = schedule_predicted("barrier", &lanes, &[Prediction { threshold: Some(2), ..at(2) }]);
        assert_eq!(two, "1:0-2 2:0-2 2:0-1 2:0-1 3:0-2 1:0-2 2:0-2 3:0-1 2:2 2:2 3:2 9:0-2");
        // Lanes that wait go on with those that come when these make them enough.
        let lanes = [twice, "1 2b 2b 2b 2b 2b 3b 9", "1 2b 2b 3b 1 2b 2b 2b 3b 9"];
        let two = schedule_predicted("barrier", &lanes, &[Prediction { threshold: Some(2), ..at(2) }]);
        assert_eq!(two, "1:0-2 2:0-2 2:0-2 2:0-1 3:0,2 1:0,2 2:0-2 2:1-2 3:0-1 2:2 3:2 9:0-2");
    }

    #[test]
    fn a_point_that_nobody_comes_to_changes_nothing_where_conflicts_are_resolved_as_lanes_come() {
        let lanes = ["1 2b 6 4b 1 2b 4b 5", "1 2b 4b 1 2b 4b 5", "1 2b 4b 1 2b 3 4b 5"];
        let never = schedule_predicted("barrier", &lanes[..2], &[at(3)]);
        assert_eq!(never, schedule_predicted("barrier", &lanes[..2], &[]));
        let both = [Deconflict::Static, Deconflict::Dynamic]
            .map(|deconflict| schedule_predicted("barrier", &lanes, &[Prediction { deconflict, ..at(3) }]));
        assert_eq!(both[1], "1:0-2 2:0-2 6:0 4:0-2 1:0-2 2:0-2 4:0-1 3:2 4:2 5:0-2");
        assert!(both[0].split(' ').count() > both[1].split(' ').count(), "{}", both[0]);
    }

    #[test]
    fn lanes_join_where_the_prediction_is_made() {
        let lanes = ["1 2b 3 7b 1 2b 3 4 5", "1 2b 7b 1 2b 4 5"];
        let of = |from: Vec<Pc>| schedule_predicted("barrier", &lanes, &[Prediction { from, ..at(3) }]);
        // In the first turn nobody waits who has not reached 7.
        assert!(of(vec![Pc(7)]).starts_with("1:0-1 2:0-1 3:0 "));
        assert!(of(Vec::new()).starts_with("1:0-1 2:0-1 7:1 1:1 2:1 3:0 "));
    }

    #[test]
    fn a_prediction_in_the_turn_of_an_outer_loop_ends_with_that_turn() {
        let lanes = ["8 1 2b 2b 2b 3b 1 2b 3b 9", "8 1 2b 3b 1 2b 2b 2b 3b 9"];
        let of = |from| schedule_predicted("barrier", &lanes, &[Prediction { from: vec![Pc(from)], ..at(2) }]);
        let pdom = schedule_predicted("barrier", &lanes, &[]);
        assert_eq!(of(1), pdom);
        assert_eq!(of(8), "8:0-1 1:0-1 2:0-1 3:1 1:1 2:0-1 2:0-1 3:0 1:0 2:0-1 3:0-1 9:0-1");
        // As without a word where it begins.
        assert_eq!(of(8), schedule_predicted("barrier", &lanes, &[at(2)]));
    }

    /// Figure 2(c): 20 is called on both sides of a branch.
    const CALLS: [&str; 2] = ["1b 2c 20 21r 3b 7", "1b 5c 20 21r 6 7"];

    #[test]
    fn calls_of_one_function_on_both_sides_are_run_together() {
        let pdom = "1:0-1 2:0 5:1 20:0 20:1 21:0 3:0 21:1 6:1 7:0-1";
        assert_eq!(schedule_predicted("barrier", &CALLS, &[]), pdom);
        let predicted = "1:0-1 2:0 5:1 20:0-1 21:0-1 3:0 6:1 7:0-1";
        assert_eq!(schedule_predicted("barrier", &CALLS, &[Prediction::of_calls(Pc(20))]), predicted);
        // From where the prediction is made, which is before the branch.
        let from = |pc| Prediction { from: vec![Pc(pc)], ..Prediction::of_calls(Pc(20)) };
        assert_eq!(schedule_predicted("barrier", &CALLS, &[from(1)]), predicted);
        assert_eq!(schedule_predicted("barrier", &CALLS, &[from(7)]), pdom);
    }

    #[test]
    fn calls_through_stubs_are_calls() {
        let lanes = ["1b 2c 40s 20 21r 3b 7", "1b 5c 40s 20 21r 6 7"];
        assert!(schedule_predicted("barrier", &lanes, &[Prediction::of_calls(Pc(20))]).contains("20:0-1 21:0-1"));
    }

    #[test]
    fn each_calling_function_collects_its_own_lanes() {
        // 30 and 50 both call 20, and are called on the two sides of a branch: lanes of one don't wait for the other's.
        let lanes = ["1b 2c 30b 31c 20 21r 32r 7", "1b 2c 30b 33c 20 21r 32r 7", "1b 5c 50c 20 21r 51r 6b 7"];
        let predicted = schedule_predicted("barrier", &lanes, &[Prediction::of_calls(Pc(20))]);
        assert_eq!(predicted, "1:0-2 2:0-1 5:2 30:0-1 31:0 33:1 20:0-1 21:0-1 32:0-1 50:2 20:2 21:2 51:2 6:2 7:0-2");
    }

    #[test]
    fn calls_through_other_functions_count_where_it_is_said_where_lanes_join() {
        // 1 parts to calls of 30 and of 50, which call 20, 30 only where it does not return early.
        let through = ["1b 2c 30b 31c 20 21r 32r 7", "1b 5c 50c 20 21r 51r 6b 7", "1b 2c 30b 33r 7"];
        let of = |from: Vec<Pc>| {
            schedule_predicted("barrier", &through, &[Prediction { from, ..Prediction::of_calls(Pc(20)) }])
        };
        assert!(of(vec![Pc(1)]).contains("20:0-1 21:0-1"), "{}", of(vec![Pc(1)]));
        assert!(of(vec![Pc(1)]).ends_with(" 7:0-2"));
        // Without it each calling function has a region of its own.
        assert!(of(Vec::new()).contains("20:0 ") && of(Vec::new()).contains("20:1 "), "{}", of(Vec::new()));
        // One that is called directly on the other side.
        let direct = ["1b 2c 30c 20 21r 31r 7", "1b 5c 20 21r 6b 7"];
        let prediction = Prediction { from: vec![Pc(1)], ..Prediction::of_calls(Pc(20)) };
        let predicted = schedule_predicted("barrier", &direct, std::slice::from_ref(&prediction));
        assert_eq!(predicted, "1:0-1 2:0 5:1 30:0 20:0-1 21:0-1 6:1 31:0 7:0-1");
        // Lanes at different call levels part inside of it and meet again there.
        let parting = ["1b 2c 30c 20b 22 24 21r 31r 7", "1b 5c 20b 24 21r 6b 7"];
        let predicted = schedule_predicted("barrier", &parting, std::slice::from_ref(&prediction));
        assert_eq!(predicted, "1:0-1 2:0 5:1 30:0 20:0-1 22:0 24:0-1 21:0-1 6:1 31:0 7:0-1");
        // In recursion the outermost one counts: lane 0 reaches 20 again, inside of it, and is waited for by nobody.
        let inside = ["1b 2c 30c 20b 22c 20b 21r 23r 31r 7", "1b 5c 20b 21r 6b 7"];
        let predicted = schedule_predicted("barrier", &inside, &[prediction]);
        assert!(predicted.contains(" 20:0-1 ") && predicted.ends_with(" 7:0-1"), "{predicted}");
        assert_eq!(predicted.matches(" 20:").count(), 2, "{predicted}");
    }

    #[test]
    fn a_function_that_is_called_in_two_regions_is_waited_at_in_each_by_itself() {
        // 1 and 8 begin one each: lanes that are in the second are not waited for in the first.
        let lanes = ["1b 2c 20 21r 3b 8b 10c 20 21r 11b 14", "1b 5c 20 21r 6 8b 12c 20 21r 13b 14"];
        let prediction = Prediction { from: vec![Pc(1), Pc(8)], ..Prediction::of_calls(Pc(20)) };
        let predicted = schedule_predicted("barrier", &lanes, &[prediction]);
        assert_eq!(predicted, "1:0-1 2:0 5:1 20:0-1 21:0-1 3:0 6:1 8:0-1 10:0 12:1 20:0-1 21:0-1 11:0 13:1 14:0-1");
    }

    #[test]
    fn in_recursion_the_outermost_call_counts() {
        let lanes = ["1b 2c 20b 22c 20b 21r 23r 3b 7", "1b 5c 20b 21r 6 7"];
        let predicted = schedule_predicted("barrier", &lanes, &[Prediction::of_calls(Pc(20))]);
        assert!(predicted.starts_with("1:0-1 2:0 5:1 20:0-1 ") && predicted.ends_with(" 7:0-1"), "{predicted}");
    }

    #[test]
    fn lanes_meet_once_in_the_turns_that_became_one() {
        // 2 and 3 are two turns of the inner loop; 6 what is left over. Lanes are collected at the first copy.
        let lanes = ["8 1 2 3b 2 3b 4b 1 6b 4b 9", "8 1 6b 4b 1 2 3b 2 3b 4b 9"];
        let from = vec![Pc(8)];
        let all = schedule_predicted("barrier", &lanes, &[Prediction { from: from.clone(), ..at(2) }]);
        let copies = vec![Pc(3), Pc(6)];
        for (first, copies) in [(2, copies), (6, vec![Pc(3), Pc(2)])] {
            let prediction = Prediction { copies, from: from.clone(), ..at(first) };
            assert_eq!(schedule_predicted("barrier", &lanes, &[prediction]), all);
        }
        assert!(all.contains("2:0-1 3:0-1 2:0-1 3:0-1"), "{all}");
    }
}
