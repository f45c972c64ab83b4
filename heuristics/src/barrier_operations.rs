//! What a compiler for GPUs would insert for predictions: the operations on barriers of Damani et al. (CGO 2020,
//! table 1 and section 4.2), by place.
//!
//! The model `barrier` does what they say without being told by them: it looks at the regions. So the table can be held
//! against what lanes did, and [`barrier_faults`] checks it by the paper's own equations, without looking at where
//! regions reach.

use flowgraph::{Graph, NodeId};
use trace_format::Pc;

use crate::prediction::{Deconflict, Predictions, Region, reached};
use crate::{ControlFlow, PlaceId, Placement};

/// What an operation does with a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BarrierAction {
    /// Lanes that come here will be waited for (`JoinBarrier`, BSSY).
    Join,
    /// Lanes wait for those that joined, then join again (`WaitBarrier`, BSYNC, and `RejoinBarrier`, BSSY).
    Wait,
    /// The same, but so many waiting lanes are enough (figure 6: a second barrier counts them).
    WaitFor(usize),
    /// Lanes are no longer waited for (`CancelBarrier`, BREAK).
    Cancel,
    /// The lanes of the region meet here, behind it (`WaitBarrier` of the orthogonal barrier).
    Meet,
    /// A branch that lanes part at, whose barrier conflicts: lanes that wait at the point are taken off it (dynamic
    /// deconfliction).
    GivesWay,
    /// A branch that lanes part at, whose barrier conflicts and is not made (static deconfliction).
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

/// An operation on a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BarrierOperation {
    /// Which barrier: regions of predictions are numbered in order.
    pub barrier: usize,
    /// Where: at the beginning of the place with this first pc; of a branch, at the end of it.
    pub at: Pc,
    /// What it does.
    pub action: BarrierAction,
}

/// The operations of all predictions, those of one barrier in a row, by address. Under a placement of the barriers of
/// ordinary branches: those that conflict are named.
#[must_use]
pub fn barrier_operations(
    predictions: &Predictions,
    control_flow: &ControlFlow,
    placement: Placement,
) -> Vec<BarrierOperation> {
    let Some(graph) = control_flow.graph() else { return Vec::new() };
    let mut all = Vec::new();
    for (barrier, region) in predictions.regions.iter().enumerate() {
        let mut push = |place: PlaceId, action| {
            all.push(BarrierOperation { barrier, at: control_flow.start(place), action });
        };
        region.beginnings(graph).into_iter().for_each(|place| push(place, BarrierAction::Join));
        let waits = match region.prediction.threshold {
            None => BarrierAction::Wait,
            Some(lanes) => BarrierAction::WaitFor(lanes),
        };
        control_flow.place_at(region.prediction.at).into_iter().for_each(|place| push(place, waits));
        for place in left_to(region, graph) {
            push(place, BarrierAction::Cancel);
        }
        let behind = region.behind(placement, control_flow).and_then(|pc| control_flow.place_at(pc));
        behind.into_iter().for_each(|place| push(place, BarrierAction::Meet));
        let conflicting = match region.prediction.deconflict {
            Deconflict::Dynamic => BarrierAction::GivesWay,
            Deconflict::Static => BarrierAction::Removed,
        };
        let places = (0..graph.node_count() as u32 - 1).map(PlaceId);
        for place in places.filter(|place| control_flow.ways(*place) > 1) {
            let meets = placement.joins(control_flow, place);
            if meets.iter().any(|meet| region.conflicts(place, *meet, control_flow)) {
                push(place, conflicting);
            }
        }
    }
    all.sort_unstable();
    all
}

/// The places outside of a region to which edges lead from inside, by number.
fn left_to(region: &Region, graph: &Graph) -> Vec<PlaceId> {
    let next = |place: PlaceId| graph.successors(NodeId(place.0)).iter().map(|node| PlaceId(node.0));
    let mut places: Vec<PlaceId> = region.places().flat_map(next).filter(|place| !region.holds(*place)).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What is wrong with operations on barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierFault {
    /// Lanes wait at this place for a barrier that they joined on no way to it.
    WaitsUnjoined(usize, Pc),
    /// Lanes join the barrier at this place, and none of the ways from there leads to a place where they wait.
    NeverWaits(usize, Pc),
    /// Lanes that joined can still be waited for in this place, from which no way leads to where they would wait: they
    /// were not taken off.
    StaysJoined(usize, Pc),
}

/// Checks operations against the control flow by the paper's equations 1 and 2: a barrier that is waited for was joined
/// on some way, and nobody is joined where it cannot wait any more. Of barriers of calls, which lanes wait at in
/// another function, the calls count as where they wait.
#[must_use]
pub fn barrier_faults(
    operations: &[BarrierOperation],
    predictions: &Predictions,
    control_flow: &ControlFlow,
) -> Vec<BarrierFault> {
    let Some(graph) = control_flow.graph() else { return Vec::new() };
    let mut faults = Vec::new();
    for (barrier, region) in predictions.regions.iter().enumerate() {
        let places = |is_meant: fn(BarrierAction) -> bool| -> Vec<PlaceId> {
            let own = operations.iter().filter(|operation| operation.barrier == barrier && is_meant(operation.action));
            own.filter_map(|operation| control_flow.place_at(operation.at)).collect()
        };
        let joins = places(|action| action == BarrierAction::Join);
        let cancels = places(|action| action == BarrierAction::Cancel);
        let mut waits = places(|action| matches!(action, BarrierAction::Wait | BarrierAction::WaitFor(_)));
        if region.prediction.calls && !waits.is_empty() {
            waits.clone_from(&region.points);
        }
        // Without a place to join at, the region is entered at some: they end nothing.
        let renewals: &[PlaceId] = if region.prediction.from.is_empty() { &[] } else { &joins };
        let nodes = |places: &[PlaceId]| -> Vec<NodeId> { places.iter().map(|place| NodeId(place.0)).collect() };
        // The last node leads to the entries of all functions: it is none of their places.
        let count = graph.node_count() - 1;
        // By place: whether lanes can be joined behind its operations.
        let kept = |node: &NodeId| !cancels.contains(&PlaceId(node.0));
        let joined = reached(nodes(&joins), count, |node| graph.successors(node).iter().copied().filter(kept));
        // By place: whether lanes that are joined there can still come to where they wait without joining anew before.
        let before = |node: NodeId| match renewals.contains(&PlaceId(node.0)) {
            true => [].iter().copied(),
            false => graph.predecessors(node).iter().copied(),
        };
        let live = reached(nodes(&waits), count, before);
        let pc = |place: &PlaceId| control_flow.start(*place);
        let unjoined = waits.iter().filter(|place| !joined[place.0 as usize]);
        faults.extend(unjoined.map(|place| BarrierFault::WaitsUnjoined(barrier, pc(place))));
        let useless = joins.iter().filter(|place| !live[place.0 as usize]);
        faults.extend(useless.map(|place| BarrierFault::NeverWaits(barrier, pc(place))));
        let all = (0..joined.len()).map(|place| PlaceId(place as u32));
        let stays = all.filter(|place| joined[place.0 as usize] && !live[place.0 as usize]);
        faults.extend(stays.map(|place| BarrierFault::StaysJoined(barrier, pc(&place))));
    }
    faults
}
