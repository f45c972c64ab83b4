//! Places by how far they are from the end of the iteration of the loop around them.

use std::cmp::Reverse;

use flowgraph::{Graph, NodeId, Stop, TurnDistances};
use trace_format::Pc;

/// By place, whose instructions and first pcs these are: its rank by how far it is from the end of the iteration, the
/// furthest first. Places are compared in the iteration of the innermost loop around both.
pub(crate) fn turn_ranks(graph: &Graph, exits: &[NodeId], lengths: &[u32], starts: &[Pc]) -> Vec<u32> {
    // The node that leads to all entries has no instructions.
    let lengths: Vec<u32> = lengths.iter().copied().chain([0]).collect();
    let distances = TurnDistances::of(graph, exits, &lengths);
    let start = |node: NodeId| starts.get(node.index()).copied();
    let pc = |stop: Stop| match stop {
        Stop::Node(node) => start(node),
        Stop::Loop(id) => start(distances.loops().header(id)),
    };
    let key = |place: &usize| {
        let stops = distances.stops(NodeId(*place as u32)).into_iter();
        stops.map(|(distance, stop)| (Reverse(distance), pc(stop))).collect::<Vec<_>>()
    };
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by_cached_key(key);
    let mut ranks = vec![0; order.len()];
    for (rank, place) in order.into_iter().enumerate() {
        ranks[place] = rank as u32;
    }
    ranks
}
