//! A header for each loop: where nested loops share one, the outer ones get blocks of their own before it.
//!
//! ```text
//! before                    after
//! head:                     outer:
//!   phi (0, enter), (i, a), (j, b)      phi (0, enter), (j, b)
//!   …                       head:
//! a:                          phi (outer's), (i, a)
//!   branch again, head, b     …
//! b:                        a:
//!   branch more, head, end    branch again, head, b
//!                           b:
//!                             branch more, outer, end
//! ```
//!
//! LLVM sees one loop with two ends of its turn in the former, and takes it apart before it reduces the strength of what
//! loops count: sometimes so that the outer loop is left by a jump out of the inner one, and control flow is structured
//! no more.

use std::cmp::Reverse;

use flowgraph::{Graph, NodeId};

use super::prepare::replace_phi;
use crate::context::Context;
use crate::llvm::Block;

/// Gives each back edge of the function a header of its own; that of the smallest loop keeps the block.
pub(super) fn separate(context: &mut Context<'_>) {
    let (flow, loops, dominators) = (context.flow(), context.loops(), context.dominators());
    let graph = flow.graph();
    for id in loops.ids() {
        let head = loops.header(id);
        let mut ends: Vec<NodeId> =
            graph.predecessors(head).iter().copied().filter(|&from| loops.contains(id, from)).collect();
        ends.sort_by_key(|&end| Reverse(body(graph, head, end)));
        let is_simple = |&end: &NodeId| {
            let ways = flow.block(end).terminator().successors();
            dominators.dominates(head, end) && ways.iter().filter(|&&to| to == flow.block(head)).count() == 1
        };
        if ends.iter().all(is_simple) && !flow.block(head).is_handler() {
            let mut inner: Vec<Block<'_>> = ends.iter().map(|&end| flow.block(end)).collect();
            while inner.len() > 1 {
                inner.remove(0);
                before(flow.block(head), &inner);
            }
        }
    }
}

/// How many nodes lead to the end of a turn without going through the head.
fn body(graph: &Graph, head: NodeId, end: NodeId) -> usize {
    let mut found = vec![head];
    let mut open = vec![end];
    while let Some(node) = open.pop() {
        if !found.contains(&node) {
            found.push(node);
            open.extend_from_slice(graph.predecessors(node));
        }
    }
    found.len()
}

/// Puts a block before a head, into which all lead but the ends of inner loops.
fn before<'m>(head: Block<'m>, inner: &[Block<'m>]) {
    let outside: Vec<_> =
        head.entering().into_iter().filter(|end| end.block().is_some_and(|b| !inner.contains(&b))).collect();
    let outer = head.insert_before("outer");
    outer.branch_to(head);
    for phi in head.phis() {
        let (kept, moved): (Vec<_>, Vec<_>) = phi.incoming().into_iter().partition(|(_, from)| inner.contains(from));
        let joined = outer.add_phi_in_front(&moved, "");
        joined.take_location(phi);
        replace_phi(head, phi, &[kept, vec![(joined.as_value(), outer)]].concat());
    }
    for end in outside {
        for (place, _) in end.successors().into_iter().enumerate().filter(|(_, to)| *to == head) {
            end.set_successor(place, outer);
        }
    }
}
