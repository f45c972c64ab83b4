//! The operations on barriers that a compiler for GPUs would insert for predictions: those of Damani et al. (CGO 2020,
//! table 1 and section 4.2), by address.
//!
//! The model `barrier` does what they say without being told by them: it looks at the regions. So the table can be held
//! against what lanes did, and [`barrier_faults`] checks it by the paper's own equations, without looking at where
//! regions reach. Both are [`flowgraph::CollectingRegion`]'s, on the graph of the machine code.

use flowgraph::{BarrierAction, BarrierFault, Collecting, NodeId};
use trace_format::Pc;

use crate::warp::prediction::{Deconflict, Predictions, meets};
use crate::{ControlFlow, PlaceId, Placement};

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
        let waits: Vec<NodeId> =
            control_flow.place_at(region.prediction.at).into_iter().map(|place| NodeId(place.0)).collect();
        let how = Collecting {
            waits: &waits,
            threshold: region.prediction.threshold,
            is_static: region.prediction.deconflict == Deconflict::Static,
        };
        let operations = region.nodes().operations(graph, how, |node| meets(placement, control_flow, node));
        all.extend(operations.into_iter().map(|(node, action)| BarrierOperation {
            barrier,
            at: control_flow.start(PlaceId(node.0)),
            action,
        }));
    }
    all.sort_unstable();
    all
}

/// What is wrong with operations, by barrier and place: see [`flowgraph::barrier_faults`]. Of barriers of calls, which
/// lanes wait at in another function, the calls count as where they wait.
#[must_use]
pub fn barrier_faults(
    operations: &[BarrierOperation],
    predictions: &Predictions,
    control_flow: &ControlFlow,
) -> Vec<(usize, Pc, BarrierFault)> {
    let Some(graph) = control_flow.graph() else { return Vec::new() };
    let mut faults = Vec::new();
    for (barrier, region) in predictions.regions.iter().enumerate() {
        let of_barrier = operations.iter().filter(|operation| operation.barrier == barrier);
        let node = |pc: Pc| control_flow.place_at(pc).map(|place| NodeId(place.0));
        let own: Vec<(NodeId, BarrierAction)> =
            of_barrier.filter_map(|operation| Some((node(operation.at)?, operation.action))).collect();
        let is_wait = |action: &BarrierAction| matches!(action, BarrierAction::Wait | BarrierAction::WaitFor(_));
        let mut waits: Vec<NodeId> = own.iter().filter(|(_, action)| is_wait(action)).map(|(node, _)| *node).collect();
        if region.prediction.calls && !waits.is_empty() {
            waits = region.nodes().points().to_vec();
        }
        let found = flowgraph::barrier_faults(graph, &own, &waits, !region.prediction.from.is_empty());
        faults.extend(found.into_iter().map(|(node, fault)| (barrier, control_flow.start(PlaceId(node.0)), fault)));
    }
    faults
}
