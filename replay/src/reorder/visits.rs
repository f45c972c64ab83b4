//! Where a visit of a line begins. A compiler moves and copies the code of a line, so that not each arrival there is
//! one: code that was hoisted out of a loop runs before the loop, a call that was inlined parts the line's code in two.
//!
//! - A line that has code in a loop is visited in the loop: its code before that one, on all ways to it, was hoisted.
//! - Of the line's code in one loop, what is always run behind other code of the line belongs to the same visit.
//! - A loop that is all of the line's code, as `while (p) p = p->next;`, is one visit.

use std::collections::BTreeSet;

use flowgraph::{Dominators, LoopId, Loops, NodeId};
use heuristics::{ControlFlow, SegmentTable};
use trace_format::Pc;

/// By place: whether a visit begins there. `pcs` are the addresses of the line's instructions, or the one address that
/// was named.
pub(super) fn heads(flow: &ControlFlow, segments: &SegmentTable, pcs: &BTreeSet<Pc>) -> Vec<bool> {
    let mut holds = vec![false; segments.places()];
    let mut has_others = vec![false; segments.places()];
    for (_, segment) in segments.iter() {
        let place = segment.place.0 as usize;
        for instruction in &segment.instructions {
            match pcs.contains(&instruction.pc) {
                true => holds[place] = true,
                false => has_others[place] = true,
            }
        }
    }
    let Some(graph) = flow.graph() else { return holds };
    let (dominators, loops) = (Dominators::of(graph), Loops::of(graph));
    let places: Vec<NodeId> = (0..holds.len() as u32).map(NodeId).filter(|node| holds[node.index()]).collect();
    let is_the_line = |id: LoopId| {
        let of_line = |node: &NodeId| holds.get(node.index()) == Some(&true) && !has_others[node.index()];
        loops.members(id).iter().all(of_line)
    };
    let around: Vec<Option<LoopId>> = places
        .iter()
        .map(|node| {
            let mut all = std::iter::successors(loops.innermost(*node), |id| loops.parent(*id));
            all.find(|id| !is_the_line(*id))
        })
        .collect();
    let is_inside = |inner: usize, outer: usize| match (around[inner], around[outer]) {
        (Some(inner), outer) if Some(inner) != outer => {
            std::iter::successors(loops.parent(inner), |id| loops.parent(*id))
                .map(Some)
                .chain([None])
                .any(|id| id == outer)
        }
        _ => false,
    };
    let comes_before = |a: usize, b: usize| a != b && dominators.dominates(places[a], places[b]);
    let all = 0..places.len();
    for one in all.clone() {
        let is_hoisted = all.clone().any(|other| comes_before(one, other) && is_inside(other, one));
        let goes_on = all.clone().any(|other| comes_before(other, one) && around[other] == around[one]);
        holds[places[one].index()] = !is_hoisted && !goes_on;
    }
    holds
}

#[cfg(test)]
mod tests {
    use heuristics::Observer;

    use super::*;
    use crate::LaneSource;
    use crate::in_memory::InMemory;

    /// The first addresses of the places at which visits of a line begin; each instruction is a branch, one lane runs
    /// these one after another.
    fn heads_of(runs: &[u64], line: &[u64]) -> Vec<u64> {
        let lanes = InMemory::of_branches(&[runs]);
        let mut observer = Observer::new(lanes.segments());
        let (mut stream, mut batch) = (lanes.stream(0), crate::Batch::default());
        while stream.next_batch(&mut batch).unwrap() {
            batch.codes.iter().filter_map(|code| code.as_segment()).for_each(|id| observer.segment(id, 1));
        }
        observer.end();
        let flow = observer.control_flow(lanes.segments());
        let line: BTreeSet<Pc> = line.iter().map(|pc| Pc(*pc)).collect();
        let heads = heads(&flow, lanes.segments(), &line);
        let mut found: Vec<u64> =
            lanes.segments().iter().filter(|(_, s)| heads[s.place.0 as usize]).map(|(_, s)| s.start().0).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn code_behind_an_inlined_call_is_of_the_same_visit() {
        // A loop of 20, 30, 40, 50: the line has what is before the call at 30 and what is behind.
        let turn = [20, 30, 40, 50];
        let runs = [&[10], &turn[..], &turn, &[60]].concat();
        assert_eq!(heads_of(&runs, &[20, 40]), [20]);
    }

    #[test]
    fn hoisted_code_is_no_visit() {
        let turn = [20, 30];
        let runs = [&[10], &turn[..], &turn, &[60]].concat();
        assert_eq!(heads_of(&runs, &[10, 30]), [30]);
    }

    #[test]
    fn both_sides_of_a_branch_are_visits() {
        let runs = [10, 20, 40, 10, 30, 40, 50];
        assert_eq!(heads_of(&runs, &[20, 30]), [20, 30]);
    }

    #[test]
    fn a_loop_of_one_line_is_one_visit() {
        // The guard at 10, the loop at 20; the loop around both is that of 5.
        let runs = [5, 10, 20, 20, 20, 30, 5, 10, 30, 40];
        assert_eq!(heads_of(&runs, &[10, 20]), [10]);
        // Another line has a part of the loop: each turn is a visit.
        let runs = [5, 10, 20, 25, 20, 25, 30, 5, 10, 30, 40];
        assert_eq!(heads_of(&runs, &[10, 20]), [20]);
    }
}
