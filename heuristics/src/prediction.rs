//! Predicted reconvergence points: places at which lanes are collected before they go on, though some may never come.
//!
//! Damani et al., *Speculative reconvergence for improved SIMT efficiency* (CGO 2020), section 4. A lane *joins* the
//! barrier of a prediction where its region begins, *waits* at the predicted point until all that joined have come or
//! have *cancelled*, goes on together with them, and *rejoins* at once. It cancels where it comes to a place from which
//! the point can no longer be reached. With a threshold so many waiting lanes are enough (the paper's soft barrier).
//!
//! The region of a prediction is the places of its function from which the point can be reached, from where the
//! prediction is made. Where the region is left for good, at the immediate post-dominator of all of it, its lanes meet
//! again (the paper's orthogonal barrier).
//!
//! The barriers of ordinary branches give way where they *conflict* with the prediction's, which is where their lanes
//! would meet inside of the region: else two lanes might wait for each other at two places. [`Deconflict::Dynamic`]:
//! a lane that waits at the predicted point is taken off them, as it is, while it waits, off the barriers of other
//! predictions; [`Deconflict::Static`]: branches from which the point can be
//! reached before the lanes meet have no barrier at all.
//!
//! *Limitation*: a point in a function is known at the call level at which its region was entered: in recursion the
//! outermost one counts. The point of a prediction is the beginning of a place.

use flowgraph::{Graph, NodeId};
use trace_format::Pc;

use crate::ControlFlow;
use crate::reconvergence::Reconvergence;
use crate::{Lane, LaneSet, LaneState, PlaceId};

/// A prediction, as it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Where lanes are collected: the first pc of a place.
    pub at: Pc,
    /// Where lanes join: the first pc of a place. None: wherever they come to the region.
    pub from: Option<Pc>,
    /// How many waiting lanes are enough. None: all that joined.
    pub threshold: Option<usize>,
    /// How conflicts with the barriers of branches are resolved.
    pub deconflict: Deconflict,
}

impl Prediction {
    /// Of this place, for all lanes that come to its region.
    #[must_use]
    pub fn at(pc: Pc) -> Prediction {
        Prediction { at: pc, from: None, threshold: None, deconflict: Deconflict::Dynamic }
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
    all: Vec<Region>,
}

#[derive(Clone, Debug)]
struct Region {
    prediction: Prediction,
    /// By place: whether the point can be reached from it.
    leads: Vec<bool>,
    /// By place: whether a lane joins there.
    joins: Vec<bool>,
    /// Where its lanes meet again behind it; none: where their function ends.
    behind: Option<Pc>,
}

impl Predictions {
    /// With the regions of each; predictions at pcs where no place begins are left out.
    #[must_use]
    pub fn new(predictions: &[Prediction], control_flow: &ControlFlow) -> Predictions {
        let Some(graph) = control_flow.graph() else { return Predictions::default() };
        let region = |prediction: &Prediction| Region::of(*prediction, control_flow, graph);
        Predictions { all: predictions.iter().filter_map(region).collect() }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Region {
    fn of(prediction: Prediction, control_flow: &ControlFlow, graph: &Graph) -> Option<Region> {
        let node_at = |pc: Pc| control_flow.place_at(pc).map(|place| NodeId(place.0));
        let point = node_at(prediction.at)?;
        // The node that leads to the entries of all functions is none of their places.
        let count = graph.node_count() - 1;
        let mut leads = reached(point, count, |node| graph.predecessors(node));
        leads[point.index()] = true;
        let joins = match prediction.from {
            None => leads.clone(),
            Some(from) => {
                let from = node_at(from)?;
                (0..count).map(|place| place == from.index()).collect()
            }
        };
        let mut behind = Some(PlaceId(point.0));
        while let Some(place) = behind.filter(|place| leads[place.0 as usize]) {
            behind = control_flow.immediate_post_dominator(place).and_then(|pc| control_flow.place_at(pc));
        }
        Some(Region { prediction, leads, joins, behind: behind.map(|place| control_flow.start(place)) })
    }

    fn holds_point(&self, at: &Reconvergence, control_flow: &ControlFlow) -> bool {
        at.pc.and_then(|pc| control_flow.place_at(pc)).is_some_and(|place| self.holds(place))
    }

    fn holds(&self, place: PlaceId) -> bool {
        self.leads.get(place.0 as usize).copied().unwrap_or(false)
    }
}

/// By node: whether it can be reached from this one along these edges.
fn reached<'g>(from: NodeId, count: usize, next: impl Fn(NodeId) -> &'g [NodeId]) -> Vec<bool> {
    let mut reached = vec![false; count];
    let mut left = vec![from];
    while let Some(node) = left.pop() {
        for to in next(node).iter().filter(|to| to.index() < count) {
            if !std::mem::replace(&mut reached[to.index()], true) {
                left.push(*to);
            }
        }
    }
    reached
}

/// Where the lanes of a warp stand with the predictions.
pub(crate) struct Speculation {
    predictions: Predictions,
    barriers: Vec<Barrier>,
    /// Lanes that have waited at the point at which they stand.
    passing: LaneSet,
}

/// Where lanes meet behind the region of a prediction.
pub(crate) struct Behind {
    region: usize,
    pub(crate) at: Reconvergence,
    pub(crate) lanes: LaneSet,
}

/// The barrier of a prediction.
#[derive(Clone, Default)]
struct Barrier {
    /// Lanes that joined and have not cancelled.
    joined: LaneSet,
    waiting: LaneSet,
    /// Lanes that left it while they wait at the point of another prediction.
    elsewhere: LaneSet,
    /// By lane: the call level at which it joined.
    levels: Vec<u32>,
}

impl Speculation {
    pub(crate) fn new(predictions: &Predictions, lanes: usize) -> Speculation {
        let barrier = Barrier { levels: vec![0; lanes], ..Barrier::default() };
        Speculation {
            barriers: vec![barrier; predictions.all.len()],
            predictions: predictions.clone(),
            passing: LaneSet::EMPTY,
        }
    }

    /// Whether no lane waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.barriers.iter().all(|barrier| barrier.waiting.is_empty())
    }

    /// These lanes have run.
    pub(crate) fn ran(&mut self, lanes: LaneSet) {
        self.passing = self.passing - lanes;
    }

    /// The other lanes have finished.
    pub(crate) fn keep(&mut self, live: LaneSet) {
        for barrier in &mut self.barriers {
            barrier.joined = barrier.joined & live;
            barrier.waiting = barrier.waiting & live;
        }
    }

    /// A lane has come to a place: it joins and cancels; whether it did that.
    pub(crate) fn come(&mut self, lane: Lane, state: &LaneState, place: PlaceId) -> bool {
        let mut has_cancelled = false;
        for (barrier, region) in self.barriers.iter_mut().zip(&self.predictions.all) {
            let level = &mut barrier.levels[lane.index()];
            if barrier.joined.contains(lane) {
                if state.level < *level || state.level == *level && !region.holds(place) {
                    barrier.joined.remove(lane);
                    has_cancelled = true;
                }
            } else if region.joins.get(place.0 as usize).copied().unwrap_or(false) {
                barrier.joined.insert(lane);
                *level = state.level;
            }
        }
        has_cancelled
    }

    /// Whether a lane in this place has left a region in which others wait here: it can't come there any more.
    pub(crate) fn has_left(&self, state: &LaneState, place: PlaceId, at: &Reconvergence, flow: &ControlFlow) -> bool {
        let is_left = |region: &Region| !region.holds(place) && region.holds_point(at, flow);
        at.level == state.level && self.predictions.all.iter().any(is_left)
    }

    /// Whether a lane now waits at a predicted point.
    pub(crate) fn waits(&mut self, lane: Lane, state: &LaneState) -> bool {
        if self.passing.contains(lane) {
            return false;
        }
        let is_there = |(barrier, region): (&Barrier, &Region)| {
            region.prediction.at == state.pc
                && barrier.joined.contains(lane)
                && barrier.levels[lane.index()] == state.level
        };
        let Some(at) = self.barriers.iter().zip(&self.predictions.all).position(is_there) else { return false };
        for (i, barrier) in self.barriers.iter_mut().enumerate() {
            if i == at {
                barrier.waiting.insert(lane);
            } else if barrier.joined.contains(lane) {
                barrier.joined.remove(lane);
                barrier.elsewhere.insert(lane);
            }
        }
        true
    }

    /// Whether a lane that waits at a predicted point is taken off a barrier at which lanes wait here.
    pub(crate) fn gives_way(&self, lane: Lane, at: &Reconvergence, control_flow: &ControlFlow) -> bool {
        self.barriers.iter().zip(&self.predictions.all).any(|(barrier, region)| {
            barrier.waiting.contains(lane)
                && at.level == barrier.levels[lane.index()]
                && region.holds_point(at, control_flow)
        })
    }

    /// Whether lanes that part in a place have no barrier there, since they may come to a predicted point before.
    pub(crate) fn forbids(
        &self,
        lanes: LaneSet,
        place: PlaceId,
        at: &Reconvergence,
        control_flow: &ControlFlow,
    ) -> bool {
        let Some(graph) = control_flow.graph() else { return false };
        self.barriers.iter().zip(&self.predictions.all).any(|(barrier, region)| {
            let is_inside = |lane: Lane| barrier.joined.contains(lane) && barrier.levels[lane.index()] == at.level;
            if region.prediction.deconflict == Deconflict::Dynamic || !lanes.iter().any(is_inside) {
                return false;
            }
            let place_of = |pc: Option<Pc>| pc.and_then(|pc| control_flow.place_at(pc));
            let meets = place_of(at.pc).filter(|place| region.holds(*place)).map(|place| NodeId(place.0));
            let (Some(meets), Some(point)) = (meets, place_of(Some(region.prediction.at))) else { return false };
            let next = |node: NodeId| if node == meets { &[][..] } else { graph.successors(node) };
            reached(NodeId(place.0), graph.node_count() - 1, next)[point.0 as usize]
        })
    }

    /// Where these lanes meet behind each region in which some of them are.
    pub(crate) fn behind(&self, lanes: LaneSet) -> Vec<Behind> {
        let mut all = Vec::new();
        for (index, (barrier, region)) in self.barriers.iter().zip(&self.predictions.all).enumerate() {
            let joined = barrier.joined & lanes;
            let Some(lane) = joined.lowest() else { continue };
            let level = barrier.levels[lane.index()];
            let lanes = joined.iter().filter(|l| barrier.levels[l.index()] == level).collect();
            all.push(Behind { region: index, at: Reconvergence { pc: region.behind, level }, lanes });
        }
        all
    }

    /// Whether a place at which lanes wait lies inside of the region that they leave for this one.
    pub(crate) fn is_before(&self, at: &Reconvergence, behind: &Behind, control_flow: &ControlFlow) -> bool {
        at.level == behind.at.level && self.predictions.all[behind.region].holds_point(at, control_flow)
    }

    /// The lanes of a barrier that go on: all that joined it wait, or enough.
    pub(crate) fn release(&mut self) -> Option<LaneSet> {
        self.release_one(|barrier, region| {
            let is_enough = |threshold| barrier.waiting.len() >= threshold;
            barrier.waiting == barrier.joined || region.prediction.threshold.is_some_and(is_enough)
        })
    }

    /// The lanes of a barrier that go on without those they wait for, where one of them could run.
    pub(crate) fn give_up(&mut self, ready: LaneSet) -> Option<LaneSet> {
        self.release_one(|barrier, _| !barrier.waiting.is_disjoint(&ready))
    }

    fn release_one(&mut self, is_next: impl Fn(&Barrier, &Region) -> bool) -> Option<LaneSet> {
        let mut all = self.barriers.iter_mut().zip(&self.predictions.all);
        let (barrier, _) = all.find(|(barrier, region)| !barrier.waiting.is_empty() && is_next(barrier, region))?;
        let lanes = std::mem::take(&mut barrier.waiting);
        self.passing = self.passing | lanes;
        for barrier in &mut self.barriers {
            barrier.joined = barrier.joined | barrier.elsewhere & lanes;
            barrier.elsewhere = barrier.elsewhere - lanes;
        }
        Some(lanes)
    }
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
        assert_eq!(schedule_predicted("barrier", &DELAYED, &[at(3)]), predicted);
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
        let all = schedule_predicted("barrier", &lanes, &[at(3)]);
        let two = schedule_predicted("barrier", &lanes, &[Prediction { threshold: Some(2), ..at(3) }]);
        assert!(all.contains("3:0-2") && !two.contains("3:0-2"), "{all}\n{two}");
        assert!(two.contains("3:0,2"), "{two}");
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
        let of = |from| schedule_predicted("barrier", &lanes, &[Prediction { from, ..at(3) }]);
        // In the first turn nobody waits who has not come to 7.
        assert!(of(Some(Pc(7))).starts_with("1:0-1 2:0-1 3:0 "));
        assert!(of(None).starts_with("1:0-1 2:0-1 7:1 1:1 2:1 3:0 "));
    }
}
