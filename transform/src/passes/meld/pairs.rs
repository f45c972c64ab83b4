//! Which subgraphs can be merged (definition 6 of the paper), how much that promises, and which pairs are taken
//! (definition 7).

use std::collections::VecDeque;

use flowgraph::{Builder, NodeId, Part, isomorphism};
use rustc_hash::FxHashMap;

use super::region::{Region, Subgraph};
use super::{Alignment, Options};
use crate::alignment::{align, pairs};
use crate::cost::{Cost, CostModel};
use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Opcode, Value};
use crate::remark::MeldCase;

/// So many pairs of subgraphs of two paths are compared.
const MOST_COMPARED: usize = 1_024;

/// One block of the melded subgraph, and what it stands for.
#[derive(Clone)]
pub(super) struct Cell<'m> {
    /// The block of each side, where it has one.
    pub(super) blocks: [Option<Block<'m>>; 2],
    /// Where only one side has a block: through which of its edges the lanes of the other side leave it. `None`: they
    /// do not come here.
    pub(super) steer: Option<usize>,
}

impl Cell<'_> {
    /// Whether lanes of both sides come here.
    pub(super) fn has_both(&self) -> bool {
        self.steer.is_some() || self.blocks.iter().all(Option::is_some)
    }
}

/// Two subgraphs that can be one.
pub(super) struct Candidate<'m> {
    /// By side: the number of the subgraph on its path.
    pub(super) places: [usize; 2],
    pub(super) case: MeldCase,
    /// The side whose branches the melded subgraph has: that of the region, where the other is a block.
    pub(super) shape: usize,
    /// The melded subgraph's blocks in preorder, the entry first.
    pub(super) cells: Vec<Cell<'m>>,
    /// An edge of a side that gets an empty block first, so that both have the same shape: the side, and from where to
    /// where it leads.
    pub(super) widened: Option<(usize, Block<'m>, Block<'m>)>,
    /// FP_S of the paper: the share of the cycles of both that one of them would save at best.
    pub(super) score: f64,
}

/// How often instructions of each kind stand in a block, and their cycles.
#[derive(Default)]
struct Frequencies {
    /// By opcode: how many, and the cycles of all.
    of: FxHashMap<u32, (i64, i64)>,
    cycles: i64,
}

impl Frequencies {
    fn of<'m>(costs: &dyn CostModel, callees: &FxHashMap<Value<'m>, Cost>, block: Block<'m>) -> Frequencies {
        let mut frequencies = Frequencies::default();
        for i in body(block) {
            let beside = |user: Instruction<'_>| user.block() == i.block();
            let callee = i.callee().and_then(|callee| callees.get(&callee)).copied().unwrap_or_default();
            let cycles = costs.latency(i, &beside) + callee.latency;
            let entry = frequencies.of.entry(i.opcode() as u32).or_default();
            *entry = (entry.0 + 1, entry.1 + cycles);
            frequencies.cycles += cycles;
        }
        frequencies
    }

    /// The numerator of FP_B: what instructions of the same kinds save, in whatever order they stand. The cycles of a
    /// kind are the mean of both blocks'.
    fn saved(&self, other: &Frequencies) -> f64 {
        let of_kind = |(kind, &(count, cycles)): (&u32, &(i64, i64))| {
            let (others, their_cycles) = *other.of.get(kind)?;
            Some(count.min(others) as f64 * (cycles + their_cycles) as f64 / (count + others) as f64)
        };
        self.of.iter().filter_map(of_kind).sum()
    }
}

/// The instructions of a block between its phis and its branch.
pub(super) fn body(block: Block<'_>) -> Vec<Instruction<'_>> {
    let mut body = block.instructions();
    body.retain(|i| !i.is_phi() && !i.is_terminator());
    body
}

/// The pairs of a region that are to be melded, in the order of its paths.
pub(super) fn choose<'m>(
    region: &Region<'m>,
    flow: &Flow<'m>,
    costs: &dyn CostModel,
    callees: &FxHashMap<Value<'m>, Cost>,
    options: Options,
) -> Vec<Candidate<'m>> {
    let [ours, theirs] = &region.paths;
    let theirs = &theirs[..theirs.len().min(MOST_COMPARED / ours.len().max(1)).max(1).min(theirs.len())];
    let mut known = FxHashMap::default();
    for subgraph in ours.iter().chain(theirs) {
        for &block in &subgraph.blocks {
            known.entry(block).or_insert_with(|| Frequencies::of(costs, callees, block));
        }
    }
    let mut found = FxHashMap::default();
    for (i, one) in ours.iter().enumerate() {
        for (j, other) in theirs.iter().enumerate() {
            let candidate = candidate([one, other], [i, j], flow, &known);
            if let Some(candidate) = candidate.filter(|c| c.score * 100.0 >= options.threshold as f64) {
                found.insert((i, j), candidate);
            }
        }
    }
    let taken = match options.align {
        Alignment::Greedy => greedy(&found, 0..ours.len(), 0..theirs.len()),
        Alignment::NeedlemanWunsch => {
            let numbers = |count: usize| (0..count).collect::<Vec<_>>();
            let worth = |i, j| found.get(&(i, j)).map(|c: &Candidate| (c.score * 1e6) as i64 + 1);
            pairs(&align(&numbers(ours.len()), &numbers(theirs.len()), [0, 0], MOST_COMPARED, worth)).collect()
        }
    };
    taken.into_iter().filter_map(|place| found.remove(&place)).collect()
}

/// The best pair, then the best ones before and behind it. Of equals the one that dominates most of what is left.
fn greedy(
    found: &FxHashMap<(usize, usize), Candidate<'_>>,
    ours: std::ops::Range<usize>,
    theirs: std::ops::Range<usize>,
) -> Vec<(usize, usize)> {
    let inside = found.iter().filter(|((i, j), _)| ours.contains(i) && theirs.contains(j));
    let before = |(i, j): (usize, usize)| (i + j, i);
    let best = inside.max_by(|(a, x), (b, y)| x.score.total_cmp(&y.score).then(before(**b).cmp(&before(**a))));
    let Some((&(i, j), _)) = best else { return Vec::new() };
    let mut taken = greedy(found, ours.start..i, theirs.start..j);
    taken.push((i, j));
    taken.extend(greedy(found, i + 1..ours.end, j + 1..theirs.end));
    taken
}

/// Two subgraphs as one, if they can be: definition 6, and subgraphs that lack one block to have the same shape.
fn candidate<'m>(
    subgraphs: [&Subgraph<'m>; 2],
    places: [usize; 2],
    flow: &Flow<'m>,
    known: &FxHashMap<Block<'m>, Frequencies>,
) -> Option<Candidate<'m>> {
    let total: i64 = subgraphs.iter().flat_map(|s| &s.blocks).map(|block| known[block].cycles).sum();
    let both = |one, other| Cell { blocks: [Some(one), Some(other)], steer: None };
    let mut widened = None;
    let mut shape = 0;
    let (case, cells) = match subgraphs.map(Subgraph::is_lone) {
        [true, true] => (MeldCase::Blocks, vec![both(subgraphs[0].blocks[0], subgraphs[1].blocks[0])]),
        [false, false] => {
            let parts = subgraphs.map(|s| Part { graph: flow.graph(), entry: s.entry, exit: s.exit });
            if let Some(map) = isomorphism(parts[0], parts[1]) {
                let cells = map.into_iter().map(|(one, other)| both(flow.block(one), flow.block(other)));
                (MeldCase::Regions, cells.collect())
            } else {
                let (cells, edge) = nearly_isomorphic(subgraphs, flow)?;
                widened = Some(edge);
                (MeldCase::NearlyAlike, cells)
            }
        }
        [lone, _] => {
            let of_region = usize::from(lone);
            let region = subgraphs[of_region];
            shape = of_region;
            let block = subgraphs[1 - of_region].blocks[0];
            (MeldCase::BlockWithRegion, steered(region, of_region, block, known)?)
        }
    };
    let saved: f64 = cells
        .iter()
        .filter_map(|cell| {
            if let [Some(a), Some(b)] = cell.blocks { Some(known.get(&a)?.saved(known.get(&b)?)) } else { None }
        })
        .sum();
    let score = if total == 0 { 0.0 } else { saved / total as f64 };
    Some(Candidate { places, case, shape, cells, widened, score })
}

/// A lone block melded with that block of a region with which it saves most, of those that a way from the region's
/// entry to its exit leads through: the lanes of the lone side take that way.
fn steered<'m>(
    region: &Subgraph<'m>,
    of_region: usize,
    lone: Block<'m>,
    known: &FxHashMap<Block<'m>, Frequencies>,
) -> Option<Vec<Cell<'m>>> {
    let partner = |block: &Block<'m>| (known[block].saved(&known[&lone]) * 1e6) as i64;
    let mut ranked: Vec<(i64, Block)> = region.blocks.iter().map(|b| (partner(b), *b)).filter(|r| r.0 > 0).collect();
    ranked.sort_by_key(|(saved, _)| -saved);
    let found = ranked.into_iter().find_map(|(_, block)| Some((block, way_through(region, block)?)));
    let (partner, way) = found?;
    let cell = |&block: &Block<'m>| {
        let mut blocks = [None; 2];
        blocks[of_region] = Some(block);
        if block == partner {
            blocks[1 - of_region] = Some(lone);
        }
        Cell { blocks, steer: way.get(&block).copied() }
    };
    Some(region.blocks.iter().map(cell).collect())
}

/// For each block on a path from the entry through `block` to the exit that visits no block twice: the edge by which it
/// is left.
fn way_through<'m>(region: &Subgraph<'m>, block: Block<'m>) -> Option<FxHashMap<Block<'m>, usize>> {
    let mut way = FxHashMap::default();
    let is_member = |b: &Block<'m>| region.blocks.contains(b);
    let entry = region.blocks[0];
    if entry != block {
        let steps = shortest(entry, |b| b == block, |b, _| is_member(&b))?;
        way.extend(steps);
    }
    let taken: Vec<Block> = way.keys().copied().collect();
    let steps = shortest(block, |b| !is_member(&b), |b, _| !taken.contains(&b))?;
    way.extend(steps);
    Some(way)
}

/// The shortest path from a block to one that `ends` it, through blocks that `may` be visited: each block except the
/// last, with the edge that is taken.
fn shortest<'m>(
    from: Block<'m>,
    ends: impl Fn(Block<'m>) -> bool,
    may: impl Fn(Block<'m>, usize) -> bool,
) -> Option<Vec<(Block<'m>, usize)>> {
    let mut came: FxHashMap<Block, (Block, usize)> = FxHashMap::default();
    let mut open = VecDeque::from([from]);
    while let Some(block) = open.pop_front() {
        for (edge, next) in block.terminator().successors().into_iter().enumerate() {
            if ends(next) {
                let mut steps = vec![(block, edge)];
                while let Some(&step) = came.get(&steps.last().expect("one step").0) {
                    steps.push(step);
                }
                return Some(steps);
            }
            if next != from && may(next, edge) && !came.contains_key(&next) {
                came.insert(next, (block, edge));
                open.push_back(next);
            }
        }
    }
    None
}

/// Two subgraphs, if one has the shape of the other once an edge of it gets an empty block: the cells without that
/// block's, and the edge.
fn nearly_isomorphic<'m>(
    subgraphs: [&Subgraph<'m>; 2],
    flow: &Flow<'m>,
) -> Option<(Vec<Cell<'m>>, (usize, Block<'m>, Block<'m>))> {
    let sizes = subgraphs.map(|s| s.blocks.len());
    if sizes[0].abs_diff(sizes[1]) != 1 || sizes[0].max(sizes[1]) > MOST_WIDENED {
        return None;
    }
    let smaller = usize::from(sizes[1] < sizes[0]);
    let edges = subgraphs[smaller].blocks.iter().flat_map(|&from| {
        let to = from.terminator().successors();
        to.into_iter().map(move |to| (from, to))
    });
    for (from, to) in edges {
        let ends = [from, to].map(|block| flow.node(block));
        let (graph, added) = with_block_on(subgraphs, flow, ends);
        let number = |node: NodeId| graph.1[&node];
        let part = |s: &Subgraph<'m>| Part { graph: &graph.0, entry: number(s.entry), exit: number(s.exit) };
        let Some(map) = isomorphism(part(subgraphs[0]), part(subgraphs[1])) else { continue };
        let blocks: FxHashMap<NodeId, Block> = graph.1.iter().map(|(&node, &n)| (n, flow.block(node))).collect();
        let cell = |(one, other): (NodeId, NodeId)| {
            let side = |node: NodeId| if node == added { None } else { Some(blocks[&node]) };
            let blocks = [side(one), side(other)];
            let steer = blocks.iter().any(Option::is_none).then_some(0);
            Cell { blocks, steer }
        };
        return Some((map.into_iter().map(cell).collect(), (smaller, from, to)));
    }
    None
}

/// Larger subgraphs are not looked at with a block more on one side: each of their edges would be tried.
const MOST_WIDENED: usize = 16;

/// A small graph of both subgraphs with a node on the edge between `ends`: the graph with the numbers of its nodes, and
/// the new node.
#[allow(clippy::type_complexity, reason = "the graph, its numbers, and what is new")]
fn with_block_on<'m>(
    subgraphs: [&Subgraph<'m>; 2],
    flow: &Flow<'m>,
    ends: [NodeId; 2],
) -> ((flowgraph::Graph, FxHashMap<NodeId, NodeId>), NodeId) {
    let mut numbers = FxHashMap::default();
    let members = subgraphs.iter().flat_map(|s| s.blocks.iter().map(|&b| flow.node(b)).chain([s.exit]));
    for node in members {
        let next = NodeId(numbers.len() as u32);
        numbers.entry(node).or_insert(next);
    }
    let added = NodeId(numbers.len() as u32);
    let mut builder = Builder::new(numbers.len() + 1);
    for &block in subgraphs.iter().flat_map(|s| &s.blocks) {
        let from = flow.node(block);
        for to in block.terminator().successors() {
            let to = flow.node(to);
            if [from, to] == ends {
                builder.edge(numbers[&from], added).edge(added, numbers[&to]);
            } else {
                builder.edge(numbers[&from], numbers[&to]);
            }
        }
    }
    ((builder.build(numbers[&subgraphs[0].entry]), numbers), added)
}

/// Whether an instruction of one side may run for lanes of the other side too, whatever its operands are there: it
/// changes nothing, and cannot trap.
pub(super) fn can_be_speculated(i: Instruction<'_>) -> bool {
    use Opcode::*;
    matches!(
        i.opcode(),
        LLVMAdd
            | LLVMSub
            | LLVMMul
            | LLVMShl
            | LLVMLShr
            | LLVMAShr
            | LLVMAnd
            | LLVMOr
            | LLVMXor
            | LLVMFAdd
            | LLVMFSub
            | LLVMFMul
            | LLVMFDiv
            | LLVMFNeg
            | LLVMTrunc
            | LLVMZExt
            | LLVMSExt
            | LLVMFPTrunc
            | LLVMFPExt
            | LLVMFPToSI
            | LLVMFPToUI
            | LLVMSIToFP
            | LLVMUIToFP
            | LLVMBitCast
            | LLVMPtrToInt
            | LLVMIntToPtr
            | LLVMGetElementPtr
            | LLVMICmp
            | LLVMFCmp
            | LLVMSelect
            | LLVMFreeze
            | LLVMExtractElement
            | LLVMInsertElement
            | LLVMShuffleVector
            | LLVMExtractValue
            | LLVMInsertValue
    )
}
