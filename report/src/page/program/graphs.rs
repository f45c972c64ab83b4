//! Control-flow graphs of the functions that lose most, with their blocks laid out.

use std::collections::{BTreeMap, HashMap};

use crate::page::{Graph, Node, Way, lay_out};
use heuristics::{PlaceId, SegmentId};
use replay::Outcome;
use replay::metrics::{Causes, Crossed, Edges};
use trace_format::Pc;

use super::code::Code;

/// How many functions get a graph.
const FUNCTIONS: usize = 12;
/// A graph of more blocks than this is not drawn: nobody could read it.
const BLOCKS: usize = 160;

/// What an instruction cost.
#[derive(Clone, Copy, Default)]
struct Cost {
    fetches: u64,
    thread_instructions: u64,
    lost: u64,
}

/// Those of the functions in which most lane-slots are lost.
pub(crate) fn of(outcome: &Outcome, code: &mut Code) -> Vec<Graph> {
    let costs = costs(outcome);
    let mut order: Vec<usize> = (0..code.functions().len()).filter(|f| code.functions()[*f].lost > 0).collect();
    order.sort_by_key(|f| (std::cmp::Reverse(code.functions()[*f].lost), *f));
    order.truncate(FUNCTIONS);
    order.into_iter().map(|function| graph(function, outcome, &costs, code)).collect()
}

fn costs(outcome: &Outcome) -> HashMap<Pc, Cost> {
    let mut costs: HashMap<Pc, Cost> = HashMap::new();
    if let Some(causes) = outcome.found::<Causes>() {
        for ((pc, _), issued) in &causes.issued {
            let cost = costs.entry(*pc).or_default();
            cost.fetches += issued.fetches;
            cost.thread_instructions += issued.thread_instructions;
        }
        for (charge, slots) in &causes.charges {
            costs.entry(charge.issued).or_default().lost += slots;
        }
    }
    costs
}

/// A function's places in order of address, and the edges between them.
struct Places {
    segments: Vec<SegmentId>,
    ways: BTreeMap<(usize, usize), Crossed>,
}

fn graph(function: usize, outcome: &Outcome, costs: &HashMap<Pc, Cost>, code: &mut Code) -> Graph {
    let places = places(function, outcome, code);
    let block_of = blocks(&places);
    let blocks = block_of.iter().copied().max().map_or(0, |b| b + 1);
    if blocks > BLOCKS || blocks == 0 {
        return Graph { function, blocks, ..Graph::default() };
    }
    let mut nodes = vec![Node::default(); blocks];
    for (place, segment) in places.segments.iter().enumerate() {
        let node = &mut nodes[block_of[place]];
        for instruction in &code.program().segments[*segment].instructions {
            let cost = costs.get(&instruction.pc).copied().unwrap_or_default();
            if node.place.is_empty() {
                node.place = format!("+{:#x}", code.offset(instruction.pc));
            }
            node.lines.push(code.line(instruction.pc));
            node.fetches += cost.fetches;
            node.thread_instructions += cost.thread_instructions;
            node.lost += cost.lost;
        }
    }
    for node in &mut nodes {
        node.lines.sort_by_key(|l| (code.lines()[*l].file, code.lines()[*l].number, *l));
        node.lines.dedup();
    }
    let between = places.ways.iter().map(|((from, to), crossed)| (block_of[*from], block_of[*to], from, to, crossed));
    // An edge inside a block is not an edge between blocks, except the one back to its beginning.
    let mut edges: Vec<Way> = between
        .filter(|(a, b, from, to, _)| a != b || to <= from)
        .map(|(from, to, _, _, c)| Way {
            from,
            to,
            times: c.times,
            crossings: c.crossings,
            lost: c.lost,
            points: Vec::new(),
        })
        .collect();
    let drawing = lay_out(blocks, &edges.iter().map(|e| (e.from, e.to)).collect::<Vec<_>>());
    nodes.iter_mut().zip(drawing.nodes).for_each(|(node, at)| node.at = at);
    edges.iter_mut().zip(drawing.edges).for_each(|(edge, points)| edge.points = points);
    Graph { function, size: drawing.size, nodes, edges, blocks }
}

fn places(function: usize, outcome: &Outcome, code: &mut Code) -> Places {
    let of_place = code.segment_of_places();
    let all = outcome.found::<Edges>().into_iter().flat_map(|edges| &edges.all);
    let mut found: BTreeMap<Pc, (PlaceId, SegmentId)> = BTreeMap::new();
    for ((from, to), _) in all.clone() {
        for place in from.iter().chain([to]) {
            let Some(segment) = of_place[place.0 as usize] else { continue };
            let start = code.program().segments[segment].start();
            if code.function(start) == function {
                found.insert(start, (*place, segment));
            }
        }
    }
    let number: HashMap<PlaceId, usize> = found.values().enumerate().map(|(n, (place, _))| (*place, n)).collect();
    let mut ways = BTreeMap::new();
    for ((from, to), crossed) in all {
        let from = from.and_then(|from| number.get(&from));
        if let (Some(from), Some(to)) = (from, number.get(to)) {
            ways.insert((*from, *to), *crossed);
        }
    }
    Places { segments: found.into_values().map(|(_, segment)| segment).collect(), ways }
}

/// By place: its block. A place joins the block of the one before it where the only way on from that leads to it and no
/// other does.
fn blocks(places: &Places) -> Vec<usize> {
    let count = places.segments.len();
    let (mut out, mut into) = (vec![0; count], vec![0; count]);
    for (from, to) in places.ways.keys() {
        out[*from] += 1;
        into[*to] += 1;
    }
    let joins = |place: usize| {
        place > 0 && out[place - 1] == 1 && into[place] == 1 && places.ways.contains_key(&(place - 1, place))
    };
    let mut block = 0;
    (0..count)
        .map(|place| {
            block += usize::from(place > 0 && !joins(place));
            block
        })
        .collect()
}
