//! The fetches of code whose branches are linearized, as compilers for vector units do it: both sides of a branch run
//! one after the other under masks, even if a mask is empty. Loops run as many iterations as the lane with the most;
//! loops and calls are skipped if no lane reaches them.
//!
//! Formula: the instruction i of a place whose innermost loop has the header h is fetched max(f(i), f(h)) times, where
//! f counts the fetches of a replay that skips what no lane runs (`ipdom`). Outside of loops h is where its function
//! begins. Code that no lane of the replay ran is not counted.
//!
//! Worked number: two warps reach `if (c) a(); else b();`, with 3 instructions on each side, after 2 others. In the
//! first warp all lanes take one side, in the second the other. Skipped, that is 2 x (2 + 3) = 10 fetches; linearized,
//! 2 x (2 + 3 + 3) = 16.

use flowgraph::{Loops, NodeId};
use heuristics::Program;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::metrics::Causes;

/// The fetches if branches were linearized, from those of a replay under `ipdom` of this program; none where its
/// control-flow graph was not asked for.
#[must_use]
pub fn linearized_fetches(program: &Program, causes: &Causes) -> Option<u64> {
    let flow = &program.control_flow;
    let graph = flow.graph()?;
    let loops = Loops::of(graph);
    let mut fetches: FxHashMap<Pc, u64> = FxHashMap::default();
    for ((pc, _), issued) in &causes.issued {
        *fetches.entry(*pc).or_default() += issued.fetches;
    }
    // Where the function of each place begins.
    let mut begins: Vec<Option<NodeId>> = vec![None; graph.node_count()];
    for entry in graph.successors(graph.entry()) {
        let mut left = vec![*entry];
        while let Some(node) = left.pop() {
            if begins[node.index()].is_none() && node != graph.entry() {
                begins[node.index()] = Some(*entry);
                left.extend(graph.successors(node));
            }
        }
    }
    let mut anchors: FxHashMap<Pc, Pc> = FxHashMap::default();
    for (_, segment) in program.segments.iter() {
        let node = NodeId(segment.place.0);
        let header = loops.innermost(node).map(|id| loops.header(id));
        let anchor = header.or(begins.get(node.index()).copied().flatten());
        let anchor = anchor.filter(|anchor| anchor.index() < program.segments.places());
        let anchor = anchor.map_or(segment.start(), |anchor| flow.start(heuristics::PlaceId(anchor.0)));
        anchors.extend(segment.instructions.iter().map(|instruction| (instruction.pc, anchor)));
    }
    let of = |(pc, own): (&Pc, &u64)| {
        let anchor = anchors.get(pc).and_then(|anchor| fetches.get(anchor));
        (*own).max(anchor.copied().unwrap_or(0))
    };
    Some(fetches.iter().map(of).sum())
}
