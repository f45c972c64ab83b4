//! The loops of a trace: natural loops of the graph of what lanes ran, found by an address.

use flowgraph::{Builder, Dominators, Graph, LoopId, Loops, NodeId, reached};
use heuristics::{ControlFlow, PlaceId, Segment, SegmentId, SegmentTable};
use machine::Instruction;
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc, Trace};

use super::copies::{Copies, Part};
use super::heads::loops_of;
use super::ran::{LoopCounter, LoopRan, Recorder, Trips};
use super::retries::Nodes;
use super::turns::Turns;
use crate::Code;
use crate::lanes::brief::Brief;
use crate::view::LoopTaken;

/// The natural loops of what lanes ran.
pub(crate) struct LoopsOf<'a> {
    flow: &'a ControlFlow,
    graph: Graph,
    loops: Loops,
    /// Those in which threads only wait for the next turn of the loop around.
    waiting: Vec<LoopId>,
}

impl<'a> LoopsOf<'a> {
    /// None where nothing ran.
    pub fn of(flow: &'a ControlFlow, nodes: &Nodes) -> Option<LoopsOf<'a>> {
        Some(LoopsOf::new(flow, flow.graph()?.clone(), nodes))
    }

    fn new(flow: &'a ControlFlow, graph: Graph, nodes: &Nodes) -> LoopsOf<'a> {
        let (loops, waiting) = loops_of(&graph, nodes);
        LoopsOf { flow, graph, loops, waiting }
    }

    /// Those of a program's functions, each by itself: also such that no lane turned, where it ran their body and the
    /// branch at its end, and without jumps to functions that are left out. None where nothing ran.
    pub fn of_functions(flow: &'a ControlFlow, nodes: &Nodes) -> Option<LoopsOf<'a>> {
        let (ran, segments, of_place) = (flow.graph()?, nodes.segments, &nodes.of_place);
        let mut builder = Builder::new(ran.node_count());
        let mut starts: Vec<(Pc, NodeId)> =
            (0..of_place.len() as u32).map(|place| (flow.start(PlaceId(place)), NodeId(place))).collect();
        starts.sort_unstable();
        // The node that holds the code at an address, of the same function as the branch that leads there: where no
        // lane went that way, none may begin there.
        let node_of = |pc: Pc, from: Option<Instruction>| {
            let (start, node) = starts[..starts.partition_point(|(start, _)| *start <= pc)].last()?;
            let is_in = |s: &Segment| s.instructions.iter().any(|one| one.pc == pc);
            let is_near = from.is_some_and(|from| from.pc() >= *start);
            (*start == pc || is_near && is_in(&segments[of_place[node.index()]])).then_some(*node)
        };
        for node in ran.nodes() {
            let segment = of_place.get(node.index()).copied();
            let last = segment.and_then(|segment| segments.listing(segment).last());
            let kind = last.map(Instruction::kind);
            // Where a function that is left out was jumped to, the thread went on somewhere else.
            let jumps_to = last.filter(|_| kind == Some(Kind::Jump)).and_then(Instruction::target);
            let leaves = |next: &NodeId| jumps_to.is_some_and(|to| flow.start(PlaceId(next.0)) != to);
            let known = ran.successors(node);
            for next in known.iter().filter(|next| !leaves(next)) {
                builder.edge(node, *next);
            }
            let branch = last.filter(|_| kind == Some(Kind::Branch));
            let sides = branch.into_iter().flat_map(|branch| [branch.target(), Some(branch.next_pc())]).flatten();
            // A call that kept code outside of the function followed goes on behind it all the same.
            let behind = last.filter(|_| kind.is_some_and(Kind::is_call)).map(Instruction::next_pc);
            for next in sides.chain(behind).filter_map(|pc| node_of(pc, last)) {
                if !known.contains(&next) {
                    builder.edge(node, next);
                }
            }
        }
        Some(LoopsOf::new(flow, builder.build(ran.entry()), nodes))
    }

    /// The same with these edges too.
    pub fn with(&self, edges: &[(NodeId, NodeId)], nodes: &Nodes) -> LoopsOf<'a> {
        let mut builder = Builder::new(self.graph.node_count());
        for node in self.graph.nodes() {
            for next in self.graph.successors(node) {
                builder.edge(node, *next);
            }
        }
        edges.iter().for_each(|(from, to)| {
            builder.edge(*from, *to);
        });
        LoopsOf::new(self.flow, builder.build(self.graph.entry()), nodes)
    }

    /// The graph of what ran.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The loops of that graph.
    pub fn plain(&self) -> &Loops {
        &self.loops
    }

    /// Where lanes went from a node.
    pub fn ran(&self, node: NodeId) -> &[NodeId] {
        self.flow.graph().map_or(&[], |graph| graph.successors(node))
    }

    /// The node that begins at this address, if one does.
    pub fn node_at(&self, pc: Pc) -> Option<NodeId> {
        self.flow.place_at(pc).map(|place| NodeId(place.0))
    }

    /// All of them.
    pub fn ids(&self) -> impl Iterator<Item = LoopId> {
        self.loops.ids()
    }

    /// The loops that hold a node, the innermost first.
    pub fn around(&self, node: NodeId) -> impl Iterator<Item = LoopId> {
        std::iter::successors(self.loops.innermost(node), |id| self.loops.parent(*id))
    }

    /// The loops around a loop, the innermost first.
    pub fn outside(&self, id: LoopId) -> impl Iterator<Item = LoopId> {
        std::iter::successors(self.loops.parent(id), |outer| self.loops.parent(*outer))
    }

    /// Whether a loop is another one or lies in it.
    pub fn is_in(&self, id: LoopId, outer: LoopId) -> bool {
        id == outer || self.outside(id).any(|id| id == outer)
    }

    /// Whether a loop holds a node.
    pub fn contains(&self, id: LoopId, node: NodeId) -> bool {
        self.loops.contains(id, node)
    }

    /// Where its turns begin.
    pub fn header(&self, id: LoopId) -> NodeId {
        self.loops.header(id)
    }

    /// Its nodes, those of loops inside of it included.
    pub fn members(&self, id: LoopId) -> &[NodeId] {
        self.loops.members(id)
    }

    /// The first instruction of its header.
    pub fn first(&self, id: LoopId) -> Pc {
        self.flow.start(PlaceId(self.header(id).0))
    }

    /// The last instruction of the latch that lies furthest down.
    fn back(&self, id: LoopId, segments: &SegmentTable, of_place: &[SegmentId]) -> Pc {
        let ends = self.loops.latches(id).iter().map(|latch| segments[of_place[latch.index()]].last().pc);
        ends.max().unwrap_or_else(|| self.first(id))
    }

    /// Those that a user means by code at these addresses: whose turns end there, or else begin there, or else run
    /// there and in no loop further in.
    pub fn at(&self, places: &[Pc], segments: &SegmentTable) -> Vec<LoopId> {
        let of_place = segment_of_place(segments);
        let runs = |place: NodeId| {
            let instructions = &segments[of_place[place.index()]].instructions;
            instructions.iter().any(|instruction| places.contains(&instruction.pc))
        };
        let ends = |id: &LoopId| {
            let mut latches = self.loops.latches(*id).iter();
            latches.any(|latch| places.contains(&segments[of_place[latch.index()]].last().pc))
        };
        let all: Vec<LoopId> = self.loops.ids().collect();
        let those =
            |wanted: &dyn Fn(&LoopId) -> bool| -> Vec<LoopId> { all.iter().copied().filter(|id| wanted(id)).collect() };
        let mut found = those(&ends);
        if found.is_empty() {
            found = those(&|id| runs(self.loops.header(*id)));
        }
        if found.is_empty() {
            found = those(&|id| {
                let own = self.loops.members(*id).iter().filter(|node| self.loops.innermost(**node) == Some(*id));
                own.into_iter().any(|node| runs(*node))
            });
        }
        // Who waits in its line for the next turn does no turn.
        let is_wait = |id: &LoopId| self.waiting.contains(id) && self.outside(*id).any(|outer| found.contains(&outer));
        let waits: Vec<LoopId> = found.iter().copied().filter(is_wait).collect();
        found.retain(|id| !waits.contains(id));
        found
    }

    /// The loop around a loop.
    pub fn parent(&self, id: LoopId) -> Option<LoopId> {
        self.loops.parent(id)
    }

    /// Two of these loops, the first in the second.
    pub fn nested(&self, wanted: &[LoopId]) -> Option<(LoopId, LoopId)> {
        wanted.iter().find_map(|id| Some((*id, self.outside(*id).find(|outer| wanted.contains(outer))?)))
    }

    /// The outermost loops of the functions that begin at these addresses, or the outermost ones inside, where those
    /// are no loops that a team shares, but lie around such.
    pub fn outermost(&self, functions: &[Pc], is_around: &dyn Fn(LoopId) -> bool) -> Vec<LoopId> {
        let graph = &self.graph;
        let starts = functions.iter().filter_map(|pc| self.flow.place_at(*pc)).map(|place| NodeId(place.0));
        let seen = reached(graph, starts, |node| graph.successors(node).iter().copied());
        let of_functions = self.loops.ids().filter(|id| seen[self.loops.header(*id).index()]);
        let is_wanted = |id: &LoopId| !is_around(*id) && self.loops.parent(*id).is_none_or(is_around);
        of_functions.filter(is_wanted).collect()
    }

    /// What each place is to these loops. Chunks of a loop that lie in a loop by which a runtime deals them out are of
    /// one launch.
    pub fn plan(
        &self,
        (wanted, turns): (&[LoopId], &[Turns]),
        segments: &SegmentTable,
        is_dispatch: &dyn Fn(LoopId) -> bool,
        turns_are_chunks: &dyn Fn(LoopId) -> bool,
        writes: &dyn Fn(SegmentId) -> bool,
    ) -> LoopPlan {
        let outermost = wanted.iter().map(|id| self.parent(*id).is_none()).collect();
        let of = vec![Membership::default(); segments.places()];
        let is_in_chunks = |id: &LoopId| turns_are_chunks(*id) || self.loops.parent(*id).is_some_and(is_dispatch);
        let in_chunks = wanted.iter().map(is_in_chunks).collect();
        let each_is_one = |(id, turns): (&LoopId, &Turns)| turns_are_chunks(*id) && turns.ends_chunk.is_empty();
        let turns_are_chunks = wanted.iter().zip(turns).map(each_is_one).collect();
        let shown = FxHashMap::default();
        let mut plan = LoopPlan { of, loops: Vec::new(), outermost, turns_are_chunks, in_chunks, shown };
        let mut add = |node: NodeId, to: fn(&mut Membership) -> &mut Vec<u32>, number: usize| {
            if let Some(place) = plan.of.get_mut(node.index()) {
                to(place).push(number as u32);
            }
        };
        for (number, id) in wanted.iter().enumerate() {
            let members = self.loops.members(*id).iter().chain(&turns[number].before);
            members.for_each(|node| add(*node, |place| &mut place.in_loops, number));
            let test = self.test(*id);
            test.iter().for_each(|node| add(*node, |place| &mut place.in_tests, number));
            let around = self.loops.parent(*id).filter(|parent| is_dispatch(*parent));
            if let Some(around) = around {
                self.loops.members(around).iter().for_each(|node| add(*node, |place| &mut place.in_dispatch, number));
            }
        }
        let of_place = segment_of_place(segments);
        let works = |node: &NodeId| {
            let segment = of_place[node.index()];
            segments[segment].last().kind.is_call() || writes(segment)
        };
        for (number, id) in wanted.iter().enumerate() {
            let Turns { begins, enters, aside, ends_chunk, by_tests, .. } = &turns[number];
            begins.iter().for_each(|node| plan.of[node.index()].heads = Some(number as u32));
            enters.iter().chain(begins).for_each(|node| plan.of[node.index()].enters = Some(number as u32));
            aside.iter().for_each(|node| plan.of[node.index()].aside = Some(number as u32));
            ends_chunk.iter().for_each(|node| plan.of[node.index()].ends_chunk = true);
            let is_latch = |node: &NodeId| self.loops.latches(*id).contains(node);
            plan.loops.push(*by_tests || self.test(*id).iter().any(|node| is_latch(node) || works(node)));
            plan.show(number as u32, &turns[number].copies, segments, &of_place);
        }
        plan
    }

    /// The header and what always runs behind it, up to the first branch.
    pub fn test(&self, id: LoopId) -> Vec<NodeId> {
        let mut test = vec![self.loops.header(id)];
        let graph = &self.graph;
        while let [next] = graph.successors(test[test.len() - 1])
            && self.loops.contains(id, *next)
            && !test.contains(next)
        {
            test.push(*next);
        }
        test
    }

    /// Whether such a segment lies in the loop, and in no loop further in.
    pub fn has(&self, id: LoopId, segments: &SegmentTable, is_such: &dyn Fn(SegmentId) -> bool) -> bool {
        let of_place = segment_of_place(segments);
        let own = self.loops.members(id).iter().filter(|node| self.loops.innermost(**node) == Some(id));
        own.into_iter().any(|node| is_such(of_place[node.index()]))
    }

    /// All loops, with nothing counted.
    fn all(&self, segments: &SegmentTable) -> Vec<LoopRan> {
        let of_place = segment_of_place(segments);
        let ran = |id: LoopId| LoopRan {
            header: self.first(id),
            back: self.back(id, segments, &of_place),
            depth: self.loops.depth(self.loops.header(id)),
            ..LoopRan::default()
        };
        self.loops.ids().map(ran).collect()
    }

    /// What a user is told about a loop that is taken.
    pub fn taken(&self, id: LoopId, segments: &SegmentTable) -> LoopTaken {
        let (header, back) = self.ends(id, segments);
        LoopTaken { header, back, early_exits: self.early_exits(id, segments) }
    }

    /// Where a loop can be left, but for its own test: that stands at the end of its turns, or else before the first
    /// branch of each.
    fn early_exits(&self, id: LoopId, segments: &SegmentTable) -> Vec<Pc> {
        let Some(graph) = self.flow.graph() else { return Vec::new() };
        let of_place = segment_of_place(segments);
        let leaves = |node: &&NodeId| graph.successors(**node).iter().any(|next| !self.loops.contains(id, *next));
        // The side of a branch that no lane ever took is not in the graph.
        let is_branch = |node: &NodeId| segments[of_place[node.index()]].last().kind == Kind::Branch;
        let header = self.loops.header(id);
        let goes_on = |latch: &NodeId| {
            graph.successors(*latch).iter().any(|next| *next != header && self.loops.contains(id, *next))
        };
        let latches = self.loops.latches(id).iter().copied();
        let mut tests: Vec<NodeId> = latches.filter(|latch| is_branch(latch) && !goes_on(latch)).collect();
        if tests.is_empty() {
            let test = self.test(id);
            let first = test.iter().position(is_branch).unwrap_or(test.len() - 1);
            tests.push(test[first]);
        }
        let exits = self.loops.members(id).iter().filter(leaves).filter(|node| !tests.contains(node));
        let mut exits: Vec<Pc> = exits.map(|node| segments[of_place[node.index()]].last().pc).collect();
        exits.sort_unstable();
        exits.dedup();
        exits
    }

    /// Where a loop's turns begin and end.
    pub fn ends(&self, id: LoopId, segments: &SegmentTable) -> (Pc, Pc) {
        (self.first(id), self.back(id, segments, &segment_of_place(segments)))
    }

    /// A count of all loops, with nothing counted yet; if their spread is asked for, of arms, too. `counting` tells by
    /// segment whether it counts up what all share.
    pub fn count(
        &self,
        segments: &SegmentTable,
        (briefs, counting): (Vec<Brief>, Vec<bool>),
        spreads: bool,
    ) -> LoopCounter {
        let ids: Vec<LoopId> = self.loops.ids().collect();
        let turns: Vec<Turns> = ids.iter().map(|id| Turns::at_header(self, *id)).collect();
        let mut counter = LoopCounter {
            plan: self.plan((&ids, &turns), segments, &|_| false, &|_| false, &|_| false),
            found: self.all(segments),
            loops: ids.len() as u32,
            inside: self.inside_alone(&ids),
            trips: vec![Trips::default(); ids.len()],
            briefs,
            counting,
            locks: FxHashMap::default(),
            active: Vec::new(),
            level: 1,
            recorder: None,
        };
        if spreads {
            self.record(&ids, &mut counter);
        }
        counter
    }

    /// Has the spread of loops in others recorded, and of arms.
    fn record(&self, ids: &[LoopId], counter: &mut LoopCounter) {
        let number = |of: LoopId| ids.iter().position(|id| *id == of).map(|number| number as u32);
        let from = |around: Option<LoopId>| -> Vec<u32> {
            std::iter::successors(around, |of| self.parent(*of)).filter_map(number).collect()
        };
        let is_left = |id: &LoopId| self.loops.is_irreducible(*id);
        let mut places: Vec<Vec<u32>> =
            ids.iter().map(|id| if is_left(id) { Vec::new() } else { from(self.parent(*id)) }).collect();
        for (arm, around, body) in self.arms() {
            let (number, back) = (places.len() as u32, self.first(around));
            let header = self.flow.start(PlaceId(arm.0));
            counter.found.push(LoopRan { header, back, depth: self.loops.depth(arm), ..LoopRan::default() });
            counter.inside.push(None);
            counter.trips.push(Trips::default());
            counter.plan.of[arm.index()].heads = Some(number);
            body.iter().for_each(|node| counter.plan.of[node.index()].in_loops.push(number));
            places.push(from(Some(around)));
        }
        counter.recorder = Some(Recorder::new(&places));
    }

    /// The arms of branches that not every turn of the loop around them takes: where they begin, that loop, and what
    /// they hold.
    fn arms(&self) -> Vec<(NodeId, LoopId, Vec<NodeId>)> {
        let (graph, loops) = (&self.graph, &self.loops);
        let dominators = Dominators::of(graph);
        let mut arms = Vec::new();
        for around in loops.ids().filter(|of| !loops.is_irreducible(*of)) {
            let own = loops.members(around).iter().filter(|node| loops.innermost(**node) == Some(around));
            for arm in own.filter(|node| **node != loops.header(around)) {
                let [branch] = graph.predecessors(*arm) else { continue };
                let is_all = || loops.latches(around).iter().all(|latch| dominators.dominates(*arm, *latch));
                if graph.successors(*branch).len() > 1 && !is_all() {
                    let body = loops.members(around).iter().copied().filter(|node| dominators.dominates(*arm, *node));
                    arms.push((*arm, around, body.collect()));
                }
            }
        }
        arms
    }

    /// By loop: the one in it, where that is the only one and holds none.
    fn inside_alone(&self, ids: &[LoopId]) -> Vec<Option<u32>> {
        let inside = |outer: LoopId| (0..ids.len()).filter(move |&inner| self.loops.parent(ids[inner]) == Some(outer));
        let alone = |&outer: &LoopId| {
            let mut inner = inside(outer);
            inner.next().filter(|&only| inner.next().is_none() && inside(ids[only]).next().is_none())
        };
        ids.iter().map(|outer| alone(outer).map(|inner| inner as u32)).collect()
    }
}

/// What the nodes of a graph of what lanes ran do.
pub(in crate::view::cut) fn nodes<'a>(trace: &'a Trace, segments: &'a SegmentTable) -> Nodes<'a> {
    Nodes::new(trace, segments, segment_of_place(segments))
}

/// By place: a segment that begins there and is no elided call.
pub(super) fn segment_of_place(segments: &SegmentTable) -> Vec<SegmentId> {
    let mut of: Vec<Option<SegmentId>> = vec![None; segments.places()];
    for (id, segment) in segments.iter() {
        of[segment.place.0 as usize].get_or_insert(id);
    }
    of.into_iter().map(|id| id.unwrap_or(SegmentId(0))).collect()
}

/// What a place is to the loops that are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership {
    /// The loop whose turns begin here.
    pub heads: Option<u32>,
    /// The loop whose turns begin here if the thread is in none.
    pub enters: Option<u32>,
    /// The loop that it is of, and of no turn.
    pub aside: Option<u32>,
    /// Whether that loop's next chunk comes behind it.
    pub ends_chunk: bool,
    /// The loops that hold it.
    pub in_loops: Vec<u32>,
    /// The loops at the beginning of whose turns it always runs.
    pub in_tests: Vec<u32>,
    /// The loops that a runtime hands out in chunks in a loop that holds it.
    pub in_dispatch: Vec<u32>,
    /// Whether its turns begin as it is shown.
    pub is_shown: bool,
}

/// The loops that are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopPlan {
    /// By place: what it is to them.
    pub of: Vec<Membership>,
    /// By loop: whether a turn does something before its first branch, or can end without one: then none is only a
    /// test.
    pub loops: Vec<bool>,
    /// By loop: whether none of its function lies around it.
    pub outermost: Vec<bool>,
    /// By loop: whether each turn is a chunk of its own.
    pub turns_are_chunks: Vec<bool>,
    /// By loop: whether its thread goes from one chunk to the next by itself.
    pub in_chunks: Vec<bool>,
    /// Segments in whose place lanes have others.
    pub shown: FxHashMap<SegmentId, Shown>,
}

/// What lanes have in place of a segment: see [`super::copies`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub of_loop: u32,
    /// With what they are shown as.
    pub(in crate::view::cut) parts: Vec<(Part, Code)>,
}

impl LoopPlan {
    /// Shows copies of a loop's body as one of them.
    fn show(&mut self, number: u32, copies: &Copies, segments: &SegmentTable, of_place: &[SegmentId]) {
        for node in copies.begins() {
            (self.of[node.index()].enters, self.of[node.index()].is_shown) = (Some(number), true);
        }
        let those = segments.iter().filter(|_| !copies.shown.is_empty());
        for (id, segment) in those {
            let Some(parts) = copies.shown.get(&NodeId(segment.place.0)) else { continue };
            let plain = of_place[segment.place.0 as usize];
            // A call that is left out is shown as one.
            let variant = |stands: SegmentId| match id {
                id if id == plain => stands,
                id if id == segments.elided(plain) => segments.elided(stands),
                _ => segments.in_stub(stands),
            };
            let shown_as = |part: &Part| (part.clone(), Code::segment(variant(of_place[part.stands.index()])));
            self.shown.insert(id, Shown { of_loop: number, parts: parts.iter().map(shown_as).collect() });
        }
    }
}
