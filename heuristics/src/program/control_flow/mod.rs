//! The control-flow graph of the traced program, as its lanes ran it; where its branches reconverge; and the order of
//! its blocks.
//!
//! Nodes are places. An edge leads from a place to the one that the same frame ran next: a call's edge leads to where
//! the call returned to, not into the callee. All functions lie side by side in one graph; a place from which a frame
//! was left is an exit of its function.
//!
//! Code that no lane ran can matter too, since a compiler sees both sides of every conditional branch. So if a branch's
//! code bytes are known, there is an edge to the side that no lane took, provided that lanes ran the code there (on
//! another path). A side that no lane ever ran is left out: most such code is error handling that never returns, and
//! with it hardly a branch would reconverge before its function's end. Indirect jumps lead where lanes went.

mod beginnings;
mod nests;
mod observer;

use std::sync::OnceLock;

use flowgraph::{CollectingRegion, Graph, Loops, NodeId, StructuredJoins, frontiers};
use rustc_hash::FxHashMap;
use trace_format::Pc;

use self::beginnings::Beginnings;
use self::nests::Nests;
use crate::program::arms::{self, Arm, End};
use crate::program::joins::{Flow, Joins};
use crate::program::turn_ranks::turn_ranks;
use crate::program::yields::Yields;
use crate::{PlaceId, Placement};

pub use observer::{Observer, RowOfSegments};

/// Where branches reconverge, and in which order blocks come: immediate post-dominators and priorities of places.
#[derive(Debug, Default)]
pub struct ControlFlow {
    /// By place: its immediate post-dominator.
    post_dominators: Vec<Option<PlaceId>>,
    /// By place: its first pc.
    starts: Vec<Pc>,
    /// By place: its instructions.
    lengths: Vec<u32>,
    /// By place: see [`SegmentTable::operations`](crate::SegmentTable::operations).
    operations: Vec<u32>,
    /// By place: the instructions from it up to the next transfer of control, that one included.
    block_lengths: Vec<u32>,
    /// By place: see [`ControlFlow::distance_to_end`].
    distances: Vec<u32>,
    graph: Option<Graph>,
    /// The graph with loops told apart that begin at one place, where there are any: of this one are structured joins.
    nests: Option<Nests>,
    /// By place: see [`ControlFlow::priority`].
    priorities: Vec<u32>,
    /// Where frames were left.
    exits: Vec<NodeId>,
    /// Calls: the place that a frame had run last when another began, and where that began; sorted by the latter.
    calls: Vec<(PlaceId, PlaceId)>,
    /// By place: see [`ControlFlow::frontier`]; made when it is asked for first.
    frontiers: OnceLock<Vec<Vec<NodeId>>>,
    /// What the next two and the arms follow from; made when one of them is asked for first.
    joins: OnceLock<Option<StructuredJoins>>,
    /// By place: see [`ControlFlow::structured_joins`]; made when they are asked for first.
    structured: OnceLock<Joins>,
    /// By place: see [`ControlFlow::nested_joins`]; made when they are asked for first.
    nested: OnceLock<Joins>,
    /// By first pc; made when it is asked for first.
    places: OnceLock<FxHashMap<Pc, PlaceId>>,
    /// By place: see [`ControlFlow::turn_rank`]; made when it is asked for first.
    turn_ranks: OnceLock<Vec<u32>>,
    /// By place: how it ends.
    ends: Vec<End>,
    /// By place: see [`ControlFlow::arms`]; made when they are asked for first.
    arms: OnceLock<Vec<Box<[Arm]>>>,
    /// Made when they are asked for first.
    loops: OnceLock<Option<Loops>>,
    /// See [`ControlFlow::yields`].
    yields: Option<Yields>,
    /// Made when they are asked for first.
    meetings: OnceLock<Vec<(Pc, CollectingRegion)>>,
    /// Where lanes that are turns of loops begin, if those of one loop begin at several places.
    beginnings: Beginnings,
}

impl ControlFlow {
    /// The first pc of the place's immediate post-dominator within its function; none when that is the function's end.
    #[must_use]
    pub fn immediate_post_dominator(&self, place: PlaceId) -> Option<Pc> {
        self.post_dominators.get(place.0 as usize).copied().flatten().map(|p| self.starts[p.0 as usize])
    }

    /// The pcs at which lanes that part behind a place come together under the placement `structured`, the innermost
    /// first; none stands for the end of the place's function. A lane reaches each, or leaves it for one further out.
    /// At least one.
    #[must_use]
    pub fn structured_joins(&self, place: PlaceId) -> &[Option<Pc>] {
        let all = self
            .structured
            .get_or_init(|| self.flow().map_or_else(Vec::new, |flow| flow.structured(0..self.starts.len())));
        all.get(place.0 as usize).map_or(&[None], |pcs| pcs)
    }

    fn joins(&self) -> Option<&StructuredJoins> {
        let made = || self.shape().map(|(graph, _, _)| StructuredJoins::of(graph, &self.exits));
        self.joins.get_or_init(made).as_ref()
    }

    /// The graph that structured joins are of, with its nodes' instructions and first pcs.
    fn shape(&self) -> Option<(&Graph, &[u32], &[Pc])> {
        match &self.nests {
            Some(nests) => Some((&nests.graph, &nests.lengths, &nests.starts)),
            None => Some((self.graph.as_ref()?, &self.lengths, &self.starts)),
        }
    }

    fn flow(&self) -> Option<Flow<'_>> {
        let ((graph, lengths, starts), structured) = self.shape().zip(self.joins())?;
        Some(Flow { graph, structured, lengths, starts })
    }

    /// The pcs at which lanes come together that begin at places of one loop, whose turns they are: as
    /// [`ControlFlow::structured_joins`] for a branch that leads to all of these places. None where lanes of the loop
    /// begin in one place.
    #[must_use]
    pub fn joins_of_beginnings(&self, places: &[PlaceId], placement: Placement) -> Option<&[Option<Pc>]> {
        let group = self.beginnings.group_of(places)?;
        let (graph, lengths, starts) = self.shape()?;
        Some(self.beginnings.joins(group, placement, graph, &self.exits, (lengths, starts)))
    }

    /// The first pc of a place.
    #[must_use]
    pub fn start(&self, place: PlaceId) -> Pc {
        self.starts[place.0 as usize]
    }

    /// The arms of the conditional branch with which a place ends.
    #[must_use]
    pub fn arms(&self, place: PlaceId) -> &[Arm] {
        let all = self.arms.get_or_init(|| match self.shape().zip(self.joins()) {
            Some(((graph, _, _), joins)) => arms::all(graph, joins, &self.exits, &self.ends, &self.operations),
            None => Vec::new(),
        });
        all.get(place.0 as usize).map_or(&[], |arms| arms)
    }

    /// The same under the placement `nak`: behind the arms of an `if`, then of each loop around it the end of the
    /// iteration and the place behind the loop, and at last the end of the function.
    #[must_use]
    pub fn nested_joins(&self, place: PlaceId) -> &[Option<Pc>] {
        let all =
            self.nested.get_or_init(|| self.flow().map_or_else(Vec::new, |flow| flow.nested(0..self.starts.len())));
        all.get(place.0 as usize).map_or(&[None], |pcs| pcs)
    }

    /// The place that begins at this pc.
    #[must_use]
    pub fn place_at(&self, pc: Pc) -> Option<PlaceId> {
        let places = self.places.get_or_init(|| {
            // A copy that no thread ran may begin where another segment does: see `SegmentTable::add_copy`.
            self.starts.iter().enumerate().rev().map(|(place, start)| (*start, PlaceId(place as u32))).collect()
        });
        places.get(&pc).copied()
    }

    /// How many instructions run in a row from a place's first pc up to the next transfer of control, that one
    /// included; none where no place begins at the pc.
    #[must_use]
    pub fn block_length_at(&self, pc: Pc) -> Option<u32> {
        self.block_lengths.get(self.place_at(pc)?.0 as usize).copied()
    }

    /// The place's rank by how far it is from the end of the iteration of the loop around it
    /// ([`flowgraph::TurnDistances`]): the lowest rank is the furthest away. Two places are compared where the loops
    /// around them part: by the iteration of the innermost loop around both. Ranks of places of different functions
    /// differ too, but their order means nothing.
    #[inline]
    #[must_use]
    pub fn turn_rank(&self, place: PlaceId) -> u32 {
        let ranks = self.turn_ranks.get_or_init(|| match &self.graph {
            Some(graph) => turn_ranks(graph, &self.exits, &self.lengths, &self.starts),
            None => Vec::new(),
        });
        ranks.get(place.0 as usize).copied().unwrap_or(u32::MAX)
    }

    /// How many loops are around both places.
    #[must_use]
    pub fn loops_around_both(&self, one: PlaceId, other: PlaceId) -> u32 {
        let Some(loops) = self.loops.get_or_init(|| self.graph.as_ref().map(Loops::of)) else { return 0 };
        let around = std::iter::successors(loops.innermost(NodeId(one.0)), |&id| loops.parent(id));
        let mut around_both = around.filter(|&id| loops.contains(id, NodeId(other.0)));
        around_both.next().map_or(0, |id| loops.depth(loops.header(id)))
    }

    /// To how many places control goes, or could have gone, from a place.
    #[must_use]
    pub fn ways(&self, place: PlaceId) -> usize {
        self.graph.as_ref().map_or(0, |graph| graph.successors(NodeId(place.0)).len())
    }

    /// In how many places the iterations of the innermost loop around a place end: 1 where the compiler left one latch,
    /// 0 outside of all loops.
    #[must_use]
    pub fn turn_ends(&self, place: PlaceId) -> usize {
        let loops = self.joins().map(StructuredJoins::loops);
        let around = loops.and_then(|loops| Some((loops, loops.innermost(NodeId(place.0))?)));
        around.map_or(0, |(loops, id)| loops.latches(id).len())
    }

    /// Whether the innermost loop around a place holds another.
    #[must_use]
    pub fn is_in_loop_of(&self, place: PlaceId, other: PlaceId) -> bool {
        let loops = self.joins().map(StructuredJoins::loops);
        let around = loops.and_then(|loops| Some((loops, loops.innermost(NodeId(place.0))?)));
        around.is_some_and(|(loops, id)| loops.contains(id, NodeId(other.0)))
    }

    /// The loops in which lanes yield, where there are any.
    pub(crate) fn yields(&self) -> Option<&Yields> {
        self.yields.as_ref()
    }

    /// Where lanes meet that have yielded, and from where they come: the headers of loops.
    pub(crate) fn meetings(&self) -> &[(Pc, CollectingRegion)] {
        let of = |graph: &Graph, place: PlaceId| {
            Some((self.start(place), CollectingRegion::of(graph, &[NodeId(place.0)], &[])?))
        };
        let all = || -> Option<Vec<_>> {
            let (graph, yields) = (self.graph.as_ref()?, self.yields.as_ref()?);
            Some(yields.meets().iter().filter_map(|place| of(graph, *place)).collect())
        };
        self.meetings.get_or_init(|| all().unwrap_or_default())
    }

    /// How many instructions the place has.
    #[must_use]
    pub fn length(&self, place: PlaceId) -> u32 {
        self.lengths.get(place.0 as usize).copied().unwrap_or(0)
    }

    /// The places of its function in which lanes may stand while this one runs, where the one of the highest priority
    /// always does: the thread frontier ([`flowgraph::frontiers()`]), the highest priority first.
    pub fn frontier(&self, place: PlaceId) -> impl Iterator<Item = PlaceId> {
        let all = self.frontiers.get_or_init(|| match &self.graph {
            Some(graph) => frontiers(graph, &self.priorities),
            None => Vec::new(),
        });
        all.get(place.0 as usize).into_iter().flatten().map(|node| PlaceId(node.0))
    }

    /// How many instructions lie on the shortest way from the place to where its function is left, its own and the last
    /// ones included; the most that can be told where there is no way.
    #[must_use]
    pub fn distance_to_end(&self, place: PlaceId) -> u32 {
        self.distances.get(place.0 as usize).copied().unwrap_or(u32::MAX)
    }

    /// The places from which functions were called that began in this place.
    pub fn callers(&self, entry: PlaceId) -> impl Iterator<Item = PlaceId> {
        let first = self.calls.partition_point(|(_, to)| *to < entry);
        self.calls[first..].iter().take_while(move |(_, to)| *to == entry).map(|(from, _)| *from)
    }

    /// The graph itself: node i is place i, and the node after the last place leads to the entries of all functions.
    /// None where nothing was observed.
    #[must_use]
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// The place's rank in the order of its function's blocks, in which every edge but a loop's way back leads to a
    /// higher rank and the members of a loop stand in a row ([`flowgraph::priorities`]): the lowest rank is the highest
    /// priority. Ranks of places of different functions differ too, but their order means nothing.
    #[inline]
    #[must_use]
    pub fn priority(&self, place: PlaceId) -> u32 {
        self.priorities.get(place.0 as usize).copied().unwrap_or(u32::MAX)
    }
}
