//! The control-flow graph of the traced program, as its lanes went through it, and where its branches reconverge.
//!
//! Nodes are places. An edge leads from a place to the one that the same frame ran next: a call's edge leads to where the call
//! returned to, not into the callee. All functions lie side by side in one graph; a place from which a frame was
//! left is an exit of its function.

use flowgraph::{Builder, Graph, NodeId, PostDominators};
use rustc_hash::FxHashSet;
use trace_format::{Kind, Pc};

use crate::{PlaceId, SegmentId, SegmentTable};

/// Where branches reconverge: immediate post-dominators of places.
#[derive(Debug, Default)]
pub struct ControlFlow {
    /// By place: the first pc of its immediate post-dominator.
    post_dominators: Vec<Option<Pc>>,
    graph: Option<Graph>,
}

impl ControlFlow {
    /// The first pc of the place's immediate post-dominator within its function; none when that is the function's end.
    #[must_use]
    pub fn immediate_post_dominator(&self, place: PlaceId) -> Option<Pc> {
        self.post_dominators.get(place.0 as usize).copied().flatten()
    }

    /// The graph itself: node i is place i, and the node after the last place leads to the entries of all functions. None where nothing was
    /// observed.
    #[must_use]
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }
}

/// Collects edges from lanes' streams.
#[derive(Clone, Default)]
pub struct Observer {
    edges: FxHashSet<(PlaceId, PlaceId)>,
    entries: FxHashSet<PlaceId>,
    exits: FxHashSet<PlaceId>,
    /// The lane's frames: the place that each ran last.
    frames: Vec<PlaceId>,
    returned: bool,
}

impl Observer {
    /// The lane runs this segment at this call level (1 and up).
    pub fn segment(&mut self, segments: &SegmentTable, segment: SegmentId, level: u32) {
        let segment = &segments[segment];
        let (place, level) = (segment.place, (level as usize).max(1));
        // A return without a frame to return to ends the region's function: what follows is a new run of it.
        let restarts = self.returned && self.frames.len() <= level;
        while self.frames.len() > level || (restarts && self.frames.len() == level) {
            self.exits.extend(self.frames.pop());
        }
        if self.frames.len() == level {
            let from = std::mem::replace(&mut self.frames[level - 1], place);
            self.edges.insert((from, place));
        } else {
            self.entries.insert(place);
            self.frames.resize(level, place);
        }
        self.returned = segment.last().kind == Kind::Return;
    }

    /// The lane's stream ends here.
    pub fn end(&mut self) {
        self.exits.extend(self.frames.drain(..));
        self.returned = false;
    }

    /// Adds what another observer saw.
    pub fn merge(&mut self, other: Observer) {
        self.edges.extend(other.edges);
        self.entries.extend(other.entries);
        self.exits.extend(other.exits);
    }

    /// The graph of all that was seen.
    #[must_use]
    pub fn control_flow(&self, segments: &SegmentTable) -> ControlFlow {
        let places = segments.places();
        let mut starts = vec![Pc(0); places];
        for (_, segment) in segments.iter() {
            starts[segment.place.0 as usize] = segment.start();
        }
        let root = NodeId(places as u32);
        let mut graph = Builder::new(places + 1);
        for entry in sorted(&self.entries) {
            graph.edge(root, NodeId(entry.0));
        }
        for (from, to) in sorted(&self.edges) {
            graph.edge(NodeId(from.0), NodeId(to.0));
        }
        let exits: Vec<NodeId> = sorted(&self.exits).into_iter().map(|p| NodeId(p.0)).collect();
        let graph = graph.build(root);
        let tree = PostDominators::of(&graph, &exits);
        let post_dominators = (0..places).map(|p| Some(starts[tree.ipdom(NodeId(p as u32))?.index()])).collect();
        ControlFlow { post_dominators, graph: Some(graph) }
    }
}

fn sorted<T: Copy + Ord>(set: &FxHashSet<T>) -> Vec<T> {
    let mut all: Vec<T> = set.iter().copied().collect();
    all.sort_unstable();
    all
}
