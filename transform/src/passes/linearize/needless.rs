//! Checks of a plan whose answer is known: they are removed.
//!
//! For each edge of a plan, the possible turns are found, to a fixed point: a part makes it the turn of those that it
//! leads to, and a guard's two sides share the turns that reach it. Then edges are moved past guards whose answer is
//! known there:
//!
//! - level 1 (the paper's O1): if only one edge to a guard can bring its turn, the others go where its *no* leads; and
//!   if only one cannot, that one does.
//! - level 2 (O2): where a part is dominated by another, its guard is passed by when it was not that one's turn.
//! - level 3 (O3): a guard to which one part alone leads stands in that part's block (`surgery.rs`).
//! - level 4 (what the paper leaves open): guards with one answer are removed. Each edge skips each guard whose turn it
//!   cannot bring, and goes straight to the part if it can bring only that part's turn. A guard in a part's block
//!   decides by the condition of the part's branch.
//!
//! A step is taken only if the result is structured: the second half of O1 alone would turn `if (p ? a : (b && c)) X`
//! back into the original. No step skips a place where lanes have to meet: it would put interleaved arms one after the
//! other again.

use std::collections::BTreeSet;

use flowgraph::{Dominators, Graph, NodeId};

use super::plan::{Plan, Step};

/// Plans of more steps are left as they are: each step that is tried costs a reduction, some tens of microseconds here.
const MOST_STEPS: usize = 256;

/// An edge of a plan: the step where it starts, none where control comes in, and whether it is the *yes* of a guard.
type Edge = (Option<usize>, bool);

/// Takes away what needs no check, up to this level. `leads` says by part whose turn may be next.
pub(super) fn take_away(plan: &mut Plan, graph: &Graph, leads: &[Vec<usize>], level: i64) {
    if level == 0 || plan.steps.len() > MOST_STEPS {
        return;
    }
    let dominators = Dominators::of(graph);
    // Each step that is taken moves an edge on, and none comes back: a loop's end is passed forwards only.
    for _ in 0..plan.steps.len() {
        let mut changed = by_guard(plan, leads);
        if level >= 2 {
            changed |= by_edge(plan, leads, |plan, from, part| {
                let Some(Step::Guard { part: around, .. }) = from.0.map(|from| plan.steps[from]) else { return false };
                !from.1 && around != part && dominators.dominates(NodeId(around as u32), NodeId(part as u32))
            });
        }
        if level >= 4 {
            changed |= by_answer(plan, leads);
            changed |= by_edge(plan, leads, |_, _, _| true);
        }
        if !changed {
            return;
        }
    }
}

/// Where an edge leads.
fn target(plan: &Plan, edge: Edge) -> usize {
    match edge.0.map(|from| plan.steps[from]) {
        None => plan.start,
        Some(Step::Guard { yes, no, .. } | Step::Back { yes, no, .. }) => {
            if edge.1 {
                yes
            } else {
                no
            }
        }
        Some(Step::Body { next, .. }) => next,
        Some(Step::Endless { .. } | Step::End) => unreachable!("nothing follows the end"),
    }
}

fn lead(plan: &mut Plan, edge: Edge, to: usize) {
    let Some(from) = edge.0 else {
        plan.start = to;
        return;
    };
    match &mut plan.steps[from] {
        Step::Guard { yes, no, .. } | Step::Back { yes, no, .. } => *(if edge.1 { yes } else { no }) = to,
        Step::Body { next, .. } => *next = to,
        Step::Endless { .. } | Step::End => unreachable!("nothing follows the end"),
    }
}

/// The edges that can be taken, and whose turn it can be there.
fn turns(plan: &Plan, leads: &[Vec<usize>]) -> Vec<(Edge, BTreeSet<usize>)> {
    let mut at: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); plan.steps.len()];
    let mut open = vec![plan.start];
    at[plan.start].insert(0);
    let ways = |step: usize, here: &BTreeSet<usize>| -> Vec<(Edge, BTreeSet<usize>)> {
        match plan.steps[step] {
            Step::Guard { part, .. } | Step::Back { head: part, .. } => {
                let (yes, no) = here.iter().partition(|&&turn| turn == part);
                vec![((Some(step), true), yes), ((Some(step), false), no)]
            }
            Step::Body { part, .. } => vec![((Some(step), false), leads[part].iter().copied().collect())],
            Step::Endless { .. } | Step::End => Vec::new(),
        }
    };
    while let Some(step) = open.pop() {
        for (edge, bring) in ways(step, &at[step]) {
            let to = target(plan, edge);
            let before = at[to].len();
            at[to].extend(bring);
            if at[to].len() > before {
                open.push(to);
            }
        }
    }
    let start = ((None, false), BTreeSet::from([0]));
    let all = (0..plan.steps.len()).flat_map(|step| ways(step, &at[step]));
    std::iter::once(start).chain(all).filter(|(_, bring)| !bring.is_empty()).collect()
}

/// The part whose turn a step asks for, and where it leads when it is and when it is not.
fn asks(plan: &Plan, step: usize) -> Option<(usize, usize, usize)> {
    match plan.steps[step] {
        // An edge that skipped the one back edge of merged loops would be a second back edge.
        Step::Back { yes, .. } if yes + 1 == plan.steps.len() => None,
        Step::Guard { part, yes, no } | Step::Back { head: part, yes, no } => Some((part, yes, no)),
        _ => None,
    }
}

/// Moves edges, if what comes of it is structured and lanes still meet where they have to.
fn try_to_lead(plan: &mut Plan, edges: &[Edge], to: usize) -> bool {
    let mut tried = plan.clone();
    edges.iter().for_each(|&edge| lead(&mut tried, edge, to));
    let fits = tried != *plan && tried.is_structured() && tried.keeps_meets();
    if fits {
        *plan = tried;
    }
    fits
}

/// Level 1. Edges that nothing takes may stay.
fn by_guard(plan: &mut Plan, leads: &[Vec<usize>]) -> bool {
    let mut changed = false;
    for step in 0..plan.steps.len() {
        let Some((part, _, no)) = asks(plan, step) else { continue };
        let edges = turns(plan, leads);
        let (with, without): (Vec<_>, Vec<_>) = edges
            .into_iter()
            .filter(|&(edge, _)| target(plan, edge) == step)
            .partition(|(_, bring)| bring.contains(&part));
        if without.is_empty() || (with.len() != 1 && without.len() != 1) {
            continue;
        }
        let without: Vec<Edge> = without.into_iter().map(|(edge, _)| edge).collect();
        changed |= try_to_lead(plan, &without, no);
    }
    changed
}

/// Moves all edges to a guard whose answer is always the same.
fn by_answer(plan: &mut Plan, leads: &[Vec<usize>]) -> bool {
    let mut changed = false;
    for step in 0..plan.steps.len() {
        let Some((part, yes, no)) = asks(plan, step) else { continue };
        let to_it: Vec<_> = turns(plan, leads).into_iter().filter(|&(edge, _)| target(plan, edge) == step).collect();
        let to = if to_it.iter().all(|(_, bring)| bring.len() == 1 && bring.contains(&part)) {
            yes
        } else if to_it.iter().all(|(_, bring)| !bring.contains(&part)) {
            no
        } else {
            continue;
        };
        let edges: Vec<Edge> = to_it.into_iter().map(|(edge, _)| edge).collect();
        changed |= !edges.is_empty() && try_to_lead(plan, &edges, to);
    }
    changed
}

/// Moves single edges past guards whose turn they cannot bring, and straight to a part whose turn alone they bring,
/// where `may` says so of an edge and the part that is asked for.
fn by_edge(plan: &mut Plan, leads: &[Vec<usize>], may: impl Fn(&Plan, Edge, usize) -> bool) -> bool {
    let mut changed = false;
    for (edge, bring) in turns(plan, leads) {
        while let Some((part, yes, no)) = asks(plan, target(plan, edge)).filter(|&(part, ..)| may(plan, edge, part)) {
            let to = if !bring.contains(&part) {
                no
            } else if bring.len() == 1 {
                yes
            } else {
                break;
            };
            if !try_to_lead(plan, &[edge], to) {
                break;
            }
            changed = true;
        }
    }
    changed
}
