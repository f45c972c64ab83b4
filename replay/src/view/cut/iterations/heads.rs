//! Loops of which a compiler copied the head.
//!
//! Behind a seldom way, as that of a lock which another thread holds, a compiler may put a copy of what a turn begins
//! with, and jump to what comes behind it. To the graph that is a loop in a loop: the inner one is turned by the seldom
//! way, the outer one by all others. Both are turns of one loop, which begin where the head and its copies meet. The
//! same holds of a loop's test, at its end and for who comes back by a `continue`: each copy leaves the loop, or leads
//! to where they meet.
//!
//! A loop that waits may have its head in common with the one around it: see [`super::retries`].

use flowgraph::{Builder, Graph, LoopId, Loops, NodeId};
use machine::{Instruction, Operand, Step};
use trace_format::Kind;

use super::retries::{Nodes, Ran};

/// The loops of a graph of what lanes ran, each of which begins behind all copies of its head, and behind its wait; and
/// those of them in which threads only wait for the next turn of the loop around.
pub(super) fn loops_of(graph: &Graph, nodes: &Nodes) -> (Loops, Vec<LoopId>) {
    let loops = Loops::of(graph);
    let (heads, waits) = heads(&Ran { graph, loops: &loops, nodes });
    if heads.is_empty() {
        return (loops, Vec::new());
    }
    // Who comes from outside goes to where they meet: then the head and its copies are ways back to there.
    let mut builder = Builder::new(graph.node_count());
    for from in graph.nodes() {
        for to in graph.successors(from) {
            let head = heads.iter().find(|head| head.begins.contains(to) && !loops.contains(head.of, from));
            builder.edge(from, head.map_or(*to, |head| head.meet));
        }
    }
    let loops = Loops::of(&builder.build(graph.entry()));
    let waits = |id: &LoopId| loops.members(*id).iter().all(|node| waits.contains(node));
    let waiting = loops.ids().filter(waits).collect();
    (loops, waiting)
}

/// What a loop's turns begin with, of which there are copies.
struct Head {
    of: LoopId,
    /// Where it begins, and where the code does that ends with a copy of it.
    begins: Vec<NodeId>,
    /// Where all of them lead.
    meet: NodeId,
}

/// All of them, and the nodes in which threads wait for a turn.
fn heads(ran: &Ran) -> (Vec<Head>, Vec<NodeId>) {
    let (graph, loops) = (ran.graph, ran.loops);
    let (mut heads, mut waits) = (Vec::new(), Vec::new());
    for of in loops.ids() {
        let Some((meet, trying)) = ran.behind_wait(of) else { continue };
        heads.push(Head { of, begins: vec![loops.header(of)], meet });
        waits.extend(trying);
    }
    for meet in loops.ids().map(|id| loops.header(id)) {
        let Some(of) = loops.innermost(meet).and_then(|inner| loops.parent(inner)) else { continue };
        let rows: Vec<Vec<NodeId>> = graph.predecessors(meet).iter().map(|last| row_to(ran, of, *last)).collect();
        let codes: Vec<Vec<Instruction>> = rows.iter().map(|row| code(row, ran)).collect();
        // Registers are copied at the end of many a way.
        let does = |code: &&Vec<Instruction>| !code.iter().all(|one| is_of_registers(*one));
        let Some(shortest) = codes.iter().min_by_key(|code| code.len()).filter(does) else { continue };
        let ends_so = |code: &Vec<Instruction>| {
            code.len() >= shortest.len()
                && code.iter().rev().zip(shortest.iter().rev()).all(|(one, other)| one.is_copy_of(*other))
        };
        let leads_on = |row: &Vec<NodeId>| {
            graph.successors(row[row.len() - 1]).iter().all(|to| *to == meet || !loops.contains(of, *to))
        };
        if codes.iter().all(ends_so) && rows.iter().all(|row| leads_on(row) && loops.contains(of, row[0])) {
            heads.push(Head { of, begins: rows.iter().map(|row| row[0]).collect(), meet });
        }
    }
    (heads, waits)
}

/// Whether an instruction only copies a register to another.
fn is_of_registers(instruction: Instruction) -> bool {
    matches!(instruction.step(), Step::Copy { from: Operand::Register(_), to: Operand::Register(_), .. })
}

/// The nodes that run one behind the other up to this one, and never without it unless the loop is left.
fn row_to(ran: &Ran, of: LoopId, last: NodeId) -> Vec<NodeId> {
    let graph = ran.graph;
    let mut row = vec![last];
    while let [before] = graph.predecessors(row[row.len() - 1])
        && graph.successors(*before).iter().all(|to| *to == row[row.len() - 1] || !ran.loops.contains(of, *to))
        && !row.contains(before)
    {
        row.push(*before);
    }
    row.reverse();
    row
}

/// What nodes run, but for jumps and branches. None of it where the code of an instruction is not known.
fn code<'a>(row: &[NodeId], ran: &Ran<'a>) -> Vec<Instruction<'a>> {
    let all = row.iter().flat_map(|node| ran.nodes.code(*node));
    let own = all.filter(|one| one.is_none_or(|one| !matches!(one.kind(), Kind::Branch | Kind::Jump)));
    own.collect::<Option<Vec<_>>>().unwrap_or_default()
}
