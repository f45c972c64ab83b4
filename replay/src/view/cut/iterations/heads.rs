//! Loops of which a compiler copied the head.
//!
//! Behind a seldom way, as that of a lock which another thread holds, a compiler may put a copy of what a turn begins
//! with, and jump to what comes behind it. To the graph that is a loop in a loop: the inner one is turned by the seldom
//! way, the outer one by all others. Both are turns of one loop, which begin where the head and its copies meet.

use flowgraph::{Builder, Graph, LoopId, Loops, NodeId};
use heuristics::{SegmentId, SegmentTable};
use machine::Instruction;
use trace_format::Kind;

/// The loops of a graph of what lanes ran, each of which begins behind all copies of its head. `of_place` has by node a
/// segment that begins there.
pub(super) fn loops_of(graph: &Graph, segments: &SegmentTable, of_place: &[SegmentId]) -> Loops {
    let loops = Loops::of(graph);
    let heads = heads(graph, &loops, segments, of_place);
    if heads.is_empty() {
        return loops;
    }
    // Who comes from outside goes to where they meet: then the head and its copies are ways back to there.
    let mut builder = Builder::new(graph.node_count());
    for from in graph.nodes() {
        for to in graph.successors(from) {
            let head = heads.iter().find(|head| head.begins.contains(to) && !loops.contains(head.of, from));
            builder.edge(from, head.map_or(*to, |head| head.meet));
        }
    }
    Loops::of(&builder.build(graph.entry()))
}

/// What a loop's turns begin with, of which there are copies.
struct Head {
    of: LoopId,
    /// Where it begins, and where the code does that ends with a copy of it.
    begins: Vec<NodeId>,
    /// Where all of them lead.
    meet: NodeId,
}

fn heads(graph: &Graph, loops: &Loops, segments: &SegmentTable, of_place: &[SegmentId]) -> Vec<Head> {
    let mut heads = Vec::new();
    for meet in loops.ids().map(|id| loops.header(id)) {
        let Some(of) = loops.innermost(meet).and_then(|inner| loops.parent(inner)) else { continue };
        let rows: Vec<Vec<NodeId>> = graph.predecessors(meet).iter().map(|last| row_to(graph, *last)).collect();
        let codes: Vec<Vec<Instruction>> = rows.iter().map(|row| code(row, of_place, segments)).collect();
        let Some(shortest) = codes.iter().min_by_key(|code| code.len()).filter(|code| !code.is_empty()) else {
            continue;
        };
        let ends_so = |code: &Vec<Instruction>| {
            code.len() >= shortest.len()
                && code.iter().rev().zip(shortest.iter().rev()).all(|(one, other)| one.is_copy_of(*other))
        };
        let leads_on = |row: &Vec<NodeId>| graph.successors(row[row.len() - 1]) == [meet];
        if codes.iter().all(ends_so) && rows.iter().all(|row| leads_on(row) && loops.contains(of, row[0])) {
            heads.push(Head { of, begins: rows.iter().map(|row| row[0]).collect(), meet });
        }
    }
    heads
}

/// The nodes that run one behind the other up to this one, and never without it.
fn row_to(graph: &Graph, last: NodeId) -> Vec<NodeId> {
    let mut row = vec![last];
    while let [before] = graph.predecessors(row[row.len() - 1])
        && graph.successors(*before).len() == 1
        && !row.contains(before)
    {
        row.push(*before);
    }
    row.reverse();
    row
}

/// What nodes run, but for jumps and branches. None of it where the code of an instruction is not known.
fn code<'a>(row: &[NodeId], of_place: &[SegmentId], segments: &'a SegmentTable) -> Vec<Instruction<'a>> {
    let all = row.iter().flat_map(|node| segments.listing(of_place[node.index()]).iter());
    let own = all.filter(|one| one.is_none_or(|one| !matches!(one.kind(), Kind::Branch | Kind::Jump)));
    own.collect::<Option<Vec<_>>>().unwrap_or_default()
}
