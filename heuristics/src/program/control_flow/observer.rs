//! Makes a control-flow graph of what lanes ran: edges, entries, exits and calls, as their streams show them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock};

use flowgraph::{Builder, Graph, NodeId, PostDominators, priorities};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Kind, Pc};

use super::ControlFlow;
use super::beginnings::Beginnings;
use super::nests::Nests;
use crate::program::arms::End;
use crate::program::yields::Yields;
use crate::{PlaceId, Segment, SegmentId, SegmentTable};

/// A row of segments that lanes run over and over, as an observer sees it: what of it hangs on the lane's open frames.
/// All else is the same each time.
#[derive(Clone, Debug)]
pub struct RowOfSegments {
    /// Its first segment.
    pub first: SegmentId,
    /// The places at which the lane goes on each time that it returns to a frame that was open before the row.
    pub back: Vec<PlaceId>,
    /// By frame, from the outermost one in which the row ran last: the place that ran there last.
    pub open: Vec<PlaceId>,
    /// Whether its last segment returns.
    pub returns: bool,
}

impl RowOfSegments {
    /// What these segments are, run one after another; none where there are none.
    #[must_use]
    pub fn of(row: &[SegmentId], segments: &SegmentTable) -> Option<RowOfSegments> {
        let (mut back, mut open, mut returned) = (Vec::new(), Vec::new(), false);
        let mut called = true;
        for id in row {
            let segment = &segments[*id];
            if std::mem::take(&mut returned) {
                open.pop();
                if open.is_empty() {
                    back.push(segment.place);
                    called = true;
                }
            }
            if std::mem::take(&mut called) {
                open.push(segment.place);
            }
            *open.last_mut()? = segment.place;
            called = segment.last().kind.is_call();
            returned = segment.last().kind == Kind::Return;
        }
        Some(RowOfSegments { first: *row.first()?, back, open, returns: returned })
    }
}

/// Of a segment, what an observer looks at: packed, since it is asked for at every step of every lane.
#[derive(Clone, Copy)]
struct Passage {
    place: PlaceId,
    returns: bool,
}

/// Collects edges from lanes' streams.
#[derive(Clone)]
pub struct Observer {
    passages: Arc<[Passage]>,
    edges: FxHashSet<(PlaceId, PlaceId)>,
    entries: FxHashSet<PlaceId>,
    exits: FxHashSet<PlaceId>,
    calls: FxHashSet<(PlaceId, PlaceId)>,
    /// By place: where the function began that was called from it last. Nearly every call is of the same.
    called: Vec<PlaceId>,
    /// By place: the two places that frames went on to from it last, the last one first. Nearly every step takes one of
    /// them, and its edge is known.
    lately: Vec<[PlaceId; 2]>,
    /// By place: whether it is known to be an exit.
    is_exit: Vec<bool>,
    /// The lane's frames: the place that each ran last. That of the last one is out of date: it is `top`.
    frames: Vec<PlaceId>,
    top: PlaceId,
    returned: bool,
    /// Where lanes began, if these are turns of loops.
    beginnings: Option<FxHashSet<PlaceId>>,
}

const NO_PLACE: PlaceId = PlaceId(u32::MAX);

impl Observer {
    /// One that has seen nothing yet, for streams of these segments. Clones of it share what it knows of them.
    #[must_use]
    pub fn new(segments: &SegmentTable) -> Observer {
        let passage = |s: &Segment| Passage { place: s.place, returns: s.last().kind == Kind::Return };
        Observer {
            passages: segments.iter().map(|(_, segment)| passage(segment)).collect(),
            edges: FxHashSet::default(),
            entries: FxHashSet::default(),
            exits: FxHashSet::default(),
            calls: FxHashSet::default(),
            called: vec![NO_PLACE; segments.places()],
            lately: vec![[NO_PLACE; 2]; segments.places()],
            is_exit: vec![false; segments.places()],
            frames: Vec::new(),
            top: NO_PLACE,
            returned: false,
            beginnings: None,
        }
    }

    /// The same for lanes that are turns of loops, and may begin in copies of the same code.
    #[must_use]
    pub fn of_turns(self) -> Observer {
        Observer { beginnings: Some(FxHashSet::default()), ..self }
    }

    /// The lane runs this segment at this call level (1 and up).
    #[inline]
    pub fn segment(&mut self, segment: SegmentId, level: u32) {
        let Passage { place, returns } = self.passages[segment.0 as usize];
        let level = (level as usize).max(1);
        // Nearly every step stays in its frame.
        if level == self.frames.len() && !self.returned {
            let from = std::mem::replace(&mut self.top, place);
            self.edge(from, place);
            self.returned = returns;
            return;
        }
        self.change_frames(place, level);
        self.top = place;
        self.returned = returns;
    }

    /// The lane runs a row of segments at this call level that was run before, at whatever level; false, and nothing is
    /// done, where the row returns from more frames than are open.
    pub fn row(&mut self, row: &RowOfSegments, level: u32) -> bool {
        if level as usize <= row.back.len() {
            return false;
        }
        self.segment(row.first, level);
        for place in &row.back {
            // The slot of the frame that is left is out of date, and goes.
            self.frames.pop();
            if let Some(from) = self.frames.last().copied() {
                self.edge(from, *place);
            }
        }
        // The first frame of the row is there already; that of the last segment is `top`.
        self.frames.pop();
        self.frames.extend_from_slice(&row.open);
        self.top = row.open.last().copied().unwrap_or(self.top);
        self.returned = row.returns;
        true
    }

    /// The lane runs a place in a frame that is not the last one, or in a new one.
    fn change_frames(&mut self, place: PlaceId, level: usize) {
        if let Some(last) = self.frames.last_mut() {
            *last = self.top;
        }
        // A return without a frame to return to ends the region's function: what follows is a new run of it.
        let restarts = self.returned && self.frames.len() <= level;
        while self.frames.len() > level || (restarts && self.frames.len() == level) {
            let last = self.frames.pop().unwrap_or(place);
            if !std::mem::replace(&mut self.is_exit[last.0 as usize], true) {
                self.exits.insert(last);
            }
        }
        if self.frames.len() == level {
            let from = std::mem::replace(&mut self.frames[level - 1], place);
            self.edge(from, place);
        } else {
            self.call(place);
            self.frames.resize(level, place);
        }
    }

    /// A frame begins here.
    #[inline]
    fn call(&mut self, entry: PlaceId) {
        if let Some(caller) = self.frames.last() {
            let called = &mut self.called[caller.0 as usize];
            if *called == entry {
                return;
            }
            *called = entry;
            self.calls.insert((*caller, entry));
        } else if let Some(beginnings) = &mut self.beginnings {
            beginnings.insert(entry);
        }
        self.entries.insert(entry);
    }

    #[inline]
    fn edge(&mut self, from: PlaceId, to: PlaceId) {
        let lately = &mut self.lately[from.0 as usize];
        if lately[0] == to {
            return;
        }
        let is_known = lately[1] == to;
        *lately = [to, lately[0]];
        if !is_known {
            self.edges.insert((from, to));
        }
    }

    /// The lane's stream ends here.
    pub fn end(&mut self) {
        if let Some(last) = self.frames.last_mut() {
            *last = self.top;
        }
        self.exits.extend(self.frames.drain(..));
        self.returned = false;
    }

    /// Adds what another observer saw.
    pub fn merge(&mut self, other: Observer) {
        self.edges.extend(other.edges);
        self.entries.extend(other.entries);
        self.exits.extend(other.exits);
        self.calls.extend(other.calls);
        if let (Some(beginnings), Some(others)) = (&mut self.beginnings, other.beginnings) {
            beginnings.extend(others);
        }
    }

    /// The sides of branches that no lane took, where lanes reached the code there all the same.
    fn edges_not_taken(&self, segments: &SegmentTable) -> Vec<(PlaceId, PlaceId)> {
        let mut seen: FxHashSet<PlaceId> = self.entries.clone();
        seen.extend(self.edges.iter().flat_map(|(from, to)| [*from, *to]));
        let of_seen = || segments.iter().map(|(_, segment)| segment).filter(|s| seen.contains(&s.place));
        let at: FxHashMap<Pc, PlaceId> = of_seen().map(|s| (s.start(), s.place)).collect();
        let ways = of_seen().filter_map(|s| Some((s.place, s.ways?)));
        ways.flat_map(|(from, ways)| ways.map(|to| (from, to)))
            .filter_map(|(from, to)| Some((from, *at.get(&to)?)))
            .collect()
    }

    /// The graph of all that was seen, and of what could have been.
    #[must_use]
    pub fn control_flow(&self, segments: &SegmentTable) -> ControlFlow {
        let places = segments.places();
        let mut starts = vec![Pc(0); places];
        for (_, segment) in segments.iter() {
            starts[segment.place.0 as usize] = segment.start();
        }
        let root = NodeId(places as u32);
        let mut graph = Builder::new(places + 1);
        // By address: the order of successors decides between orders of blocks, and must not hang on the order of
        // recording.
        for entry in sorted_by_key(&self.entries, |entry| starts[entry.0 as usize]) {
            graph.edge(root, NodeId(entry.0));
        }
        let beginnings = self.beginnings.as_ref().map(|all| sorted_by_key(all, |place| starts[place.0 as usize]));
        let beginnings = beginnings.unwrap_or_default();
        let beginnings = Beginnings::of(&beginnings, &self.edges);
        let mut edges = self.edges.clone();
        // The way to the next turn is no lane's.
        let is_own = |(_, to): &(PlaceId, PlaceId)| beginnings.group_of(&[*to]).is_none();
        edges.extend(self.edges_not_taken(segments).into_iter().filter(is_own));
        for (from, to) in sorted_by_key(&edges, |(from, to)| (starts[from.0 as usize], starts[to.0 as usize])) {
            graph.edge(NodeId(from.0), NodeId(to.0));
        }
        let graph = graph.build(root);
        let exits = sorted_by_key(&self.exits, |exit| starts[exit.0 as usize]);
        let exits: Vec<NodeId> = exits.into_iter().map(|p| NodeId(p.0)).collect();
        let tree = PostDominators::of(&graph, &exits);
        let post_dominators = (0..places).map(|p| tree.ipdom(NodeId(p as u32)).map(|n| PlaceId(n.0))).collect();
        let (mut lengths, mut ends) = (vec![0; places], vec![End::Otherwise; places]);
        let mut operations = vec![0; places];
        for (id, segment) in segments.iter() {
            operations[segment.place.0 as usize] = segments.operations(id);
            lengths[segment.place.0 as usize] = segment.len() as u32;
            ends[segment.place.0 as usize] = End::of(segment);
        }
        let calls = sorted_by_key(&self.calls, |(_, entry)| entry);
        let (priorities, block_lengths) = (priorities(&graph), block_lengths(segments, &graph));
        let distances = distances(&lengths, &graph, &exits);
        let yields = Yields::of(&graph, segments);
        let nests = Nests::of(&graph, segments, &lengths, &starts);
        ControlFlow {
            post_dominators,
            starts,
            lengths,
            operations,
            block_lengths,
            distances,
            graph: Some(graph),
            nests,
            priorities,
            exits,
            calls,
            frontiers: OnceLock::new(),
            joins: OnceLock::new(),
            structured: OnceLock::new(),
            nested: OnceLock::new(),
            places: OnceLock::new(),
            turn_ranks: OnceLock::new(),
            ends,
            arms: OnceLock::new(),
            loops: OnceLock::new(),
            yields,
            beginnings,
            meetings: OnceLock::new(),
        }
    }
}

/// By place: the instructions from it up to the next transfer of control, that one included, or up to where a lane came
/// in.
fn block_lengths(segments: &SegmentTable, graph: &Graph) -> Vec<u32> {
    let mut own = vec![(0, true); segments.places()];
    for (_, segment) in segments.iter() {
        own[segment.place.0 as usize] = (segment.len() as u32, segment.last().kind.transfers_control());
    }
    let mut lengths = Vec::with_capacity(own.len());
    for place in 0..own.len() {
        let (mut length, mut at) = (own[place].0, place);
        // Addresses rise along a block, so a walk ends after as many steps as there are places at the latest.
        for _ in 0..own.len() {
            match graph.successors(NodeId(at as u32)) {
                [next] if !own[at].1 && next.index() < own.len() => at = next.index(),
                _ => break,
            }
            length += own[at].0;
        }
        lengths.push(length);
    }
    lengths
}

/// By place: the instructions on the shortest way to an exit (Dijkstra's, from the exits backwards).
fn distances(lengths: &[u32], graph: &Graph, exits: &[NodeId]) -> Vec<u32> {
    // The node that leads to all entries has none.
    let length = |node: NodeId| lengths.get(node.index()).copied().unwrap_or(0);
    let mut distances = vec![u32::MAX; graph.node_count()];
    let mut next: BinaryHeap<Reverse<(u32, u32)>> = exits.iter().map(|e| Reverse((length(*e), e.0))).collect();
    while let Some(Reverse((distance, node))) = next.pop() {
        if distance >= distances[node as usize] {
            continue;
        }
        distances[node as usize] = distance;
        let before = graph.predecessors(NodeId(node)).iter();
        next.extend(before.map(|p| Reverse((distance.saturating_add(length(*p)), p.0))));
    }
    distances
}

fn sorted_by_key<T: Copy + Ord, K: Ord>(set: &FxHashSet<T>, key: impl Fn(T) -> K) -> Vec<T> {
    let mut all: Vec<T> = set.iter().copied().collect();
    all.sort_unstable_by_key(|item| (key(*item), *item));
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trace_format::{Block, BlockTable, Instruction, SpEffect};

    use super::*;

    fn instruction(pc: u64, len: u8, kind: Kind) -> Instruction {
        Instruction { pc: Pc(pc), len, kind, sp: SpEffect::Add(0), memory: 0 }
    }

    /// A program of one-instruction blocks: address, kind, code.
    fn blocks(all: &[(u64, Kind, &[u8])]) -> SegmentTable {
        let mut blocks = BlockTable::default();
        for (pc, kind, code) in all {
            let instructions = vec![instruction(*pc, code.len() as u8, *kind)];
            blocks.push(Block { instructions, code: code.to_vec(), ..Block::default() });
        }
        SegmentTable::new(&blocks, &[])
    }

    /// Where the branch at 0x10 reconverges, when lanes run these addresses.
    fn reconvergence(segments: &SegmentTable, lanes: &[&[u64]]) -> Option<u64> {
        let id_at = |pc: u64| segments.iter().find(|(_, s)| s.start() == Pc(pc)).map(|(id, _)| id).unwrap();
        let mut observer = Observer::new(segments);
        for lane in lanes {
            lane.iter().for_each(|pc| observer.segment(id_at(*pc), 1));
            observer.end();
        }
        let place = segments[id_at(0x10)].place;
        observer.control_flow(segments).immediate_post_dominator(place).map(|pc| pc.0)
    }

    /// Blocks of one instruction: 8 that go on, 4 calls, 4 returns.
    fn any_blocks() -> SegmentTable {
        let kinds = (0..16u64).map(|n| match n {
            0..8 => Kind::Jump,
            8..12 => Kind::Call,
            _ => Kind::Return,
        });
        let all: Vec<(u64, Kind, &[u8])> =
            kinds.zip(0..).map(|(kind, n): (_, u64)| (16 * n, kind, &[0x90][..])).collect();
        blocks(&all)
    }

    proptest! {
        #[test]
        fn rows_are_seen_as_their_segments_are(
            rows in prop::collection::vec(prop::collection::vec(0..16usize, 1..9), 1..6),
            ran in prop::collection::vec((0..6usize, 0..40u32), 1..60),
        ) {
            let segments = any_blocks();
            let numbers: Vec<SegmentId> = segments.iter().map(|(id, _)| id).collect();
            // Segments that a row can have: no elided calls.
            let own: Vec<SegmentId> =
                (0..16).map(|n| *numbers.iter().find(|id| segments[**id].start() == Pc(16 * n as u64)).unwrap()).collect();
            let rows: Vec<Vec<SegmentId>> =
                rows.iter().map(|row| row.iter().map(|n| own[*n]).collect()).collect();
            let known: Vec<RowOfSegments> =
                rows.iter().map(|row| RowOfSegments::of(row, &segments).unwrap()).collect();
            let (mut by_row, mut by_segment) = (Observer::new(&segments), Observer::new(&segments));
            let (mut seen, mut level) = (vec![false; rows.len()], 1u32);
            for (row, other) in ran {
                let row = row % rows.len();
                // Now and then the level is another, and the lane ends.
                match other {
                    0 => level += 1,
                    1 => level = (level - 1).max(1),
                    2 => {
                        by_row.end();
                        by_segment.end();
                        level = 1;
                    }
                    _ => {}
                }
                let taken = seen[row] && by_row.row(&known[row], level);
                let floor = known[row].back.len() as u32;
                prop_assert_eq!(taken, seen[row] && level > floor);
                for id in &rows[row] {
                    by_segment.segment(*id, level);
                    if !taken {
                        by_row.segment(*id, level);
                    }
                    level = match segments[*id].last().kind {
                        Kind::Call => level + 1,
                        Kind::Return => (level - 1).max(1),
                        _ => level,
                    };
                }
                seen[row] = true;
            }
            by_row.end();
            by_segment.end();
            prop_assert_eq!(&by_row.edges, &by_segment.edges);
            prop_assert_eq!(&by_row.entries, &by_segment.entries);
            prop_assert_eq!(&by_row.exits, &by_segment.exits);
            prop_assert_eq!(&by_row.calls, &by_segment.calls);
        }
    }

    // 10: je 20; 12: je TO; 14: nop; 15: jmp 30; 20: jmp 14; 30: ret.
    fn program(to: u8) -> SegmentTable {
        blocks(&[
            (0x10, Kind::Branch, &[0x74, 0x0E]),
            (0x12, Kind::Branch, &[0x74, to.wrapping_sub(0x14)]),
            (0x14, Kind::Plain, &[0x90]),
            (0x15, Kind::Jump, &[0xEB, 0x19]),
            (0x20, Kind::Jump, &[0xEB, 0xF2]),
            (0x30, Kind::Return, &[0xC3]),
        ])
    }

    const NOT_TAKEN: [&[u64]; 2] = [&[0x10, 0x12, 0x14, 0x15, 0x30], &[0x10, 0x20, 0x14, 0x15, 0x30]];

    #[test]
    fn a_side_that_no_lane_took_leads_past_a_meeting_place() {
        assert_eq!(reconvergence(&program(0x30), &NOT_TAKEN), Some(0x30));
        // The same as if a lane had taken it.
        let taken: &[u64] = &[0x10, 0x12, 0x30];
        assert_eq!(reconvergence(&program(0x30), &[NOT_TAKEN[0], NOT_TAKEN[1], taken]), Some(0x30));
    }

    #[test]
    fn a_side_that_was_never_run_moves_nothing() {
        assert_eq!(reconvergence(&program(0x60), &NOT_TAKEN), Some(0x14));
    }

    #[test]
    fn a_side_in_the_middle_of_a_block_begins_a_segment() {
        // 10: je 20; 12: je 16; 14: nop nop nop nop; 18: ret; 20: jmp 14. The block at 14 is run whole, but could be
        // entered at 16.
        let mut table = BlockTable::default();
        let mut push = |pcs: &[(u64, u8, Kind)], code: &[u8]| {
            let instructions = pcs.iter().map(|(pc, len, kind)| instruction(*pc, *len, *kind)).collect();
            table.push(Block { instructions, code: code.to_vec(), ..Block::default() });
        };
        push(&[(0x10, 2, Kind::Branch)], &[0x74, 0x0E]);
        push(&[(0x12, 2, Kind::Branch)], &[0x74, 0x02]);
        let nop = |pc| (pc, 1, Kind::Plain);
        push(&[nop(0x14), nop(0x15), nop(0x16), nop(0x17), (0x18, 1, Kind::Return)], &[0x90, 0x90, 0x90, 0x90, 0xC3]);
        push(&[(0x20, 2, Kind::Jump)], &[0xEB, 0xF2]);
        let segments = SegmentTable::new(&table, &[]);
        let lanes: [&[u64]; 2] = [&[0x10, 0x12, 0x14, 0x16], &[0x10, 0x20, 0x14, 0x16]];
        assert_eq!(reconvergence(&segments, &lanes), Some(0x16));
    }
}
