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
//! LLVM sees one loop with two ends of its turn in the former, and takes it apart before it reduces the strength of
//! what loops count: sometimes so that the outer loop is left by a jump out of the inner one, and control flow is
//! structured no more.

use flowgraph::{Builder, Graph, NodeId};

use super::prepare::replace_phi;
use super::{Parts, is_structured};
use crate::context::Context;
use crate::llvm::Block;

/// Gives each back edge of a structured function a header of its own, as long as it stays structured.
pub(super) fn separate(context: &mut Context<'_>) {
    while let Some((head, inner)) = next(context) {
        before(head, &inner);
    }
}

/// The next head of several loops, and the ends of all but the outermost.
fn next<'m>(context: &mut Context<'m>) -> Option<(Block<'m>, Vec<Block<'m>>)> {
    let (flow, loops, dominators) = (context.flow(), context.loops(), context.dominators());
    if !is_structured(&flow) {
        return None;
    }
    loops.ids().find_map(|id| {
        let (graph, head) = (flow.graph(), loops.header(id));
        let ends: Vec<NodeId> =
            graph.predecessors(head).iter().copied().filter(|&from| loops.contains(id, from)).collect();
        let is_simple = |&end: &NodeId| {
            let ways = flow.block(end).terminator().successors();
            dominators.dominates(head, end) && ways.iter().filter(|&&to| to == flow.block(head)).count() == 1
        };
        if ends.len() < 2 || !ends.iter().all(is_simple) || flow.block(head).is_handler() {
            return None;
        }
        let inner = |outer: NodeId| ends.iter().copied().filter(|&end| end != outer).collect::<Vec<_>>();
        let fits = |inner: &Vec<NodeId>| Parts::of_graph(&with_outer(graph, head, inner), &[]).left.len() == 1;
        let inner = ends.iter().map(|&outer| inner(outer)).find(fits)?;
        Some((flow.block(head), inner.into_iter().map(|end| flow.block(end)).collect()))
    })
}

/// The graph with a node before a head, to which all lead but the ends of inner loops.
fn with_outer(graph: &Graph, head: NodeId, inner: &[NodeId]) -> Graph {
    let outer = NodeId(graph.node_count() as u32);
    let mut builder = Builder::new(graph.node_count() + 1);
    for from in graph.nodes() {
        for &to in graph.successors(from) {
            builder.edge(from, if to == head && !inner.contains(&from) { outer } else { to });
        }
    }
    builder.edge(outer, head);
    builder.build(graph.entry())
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
