//! Arms of branches: ways that only one branch leads to.

use flowgraph::{Graph, Join, NodeId, StructuredJoins};
use rustc_hash::FxHashSet;
use trace_format::Kind;

use crate::{PlaceId, Segment};

/// A way of a conditional branch that only this branch leads to, up to the next jump, branch, or place that others come
/// to as well, which a compiler could predicate. It lies in the branch's innermost loop, has no calls, and is not where
/// the branch's lanes come together. From its end
///
/// - it goes there, or leaves the loop, as where the compiler doubled the test of the loop; or
/// - both ways of the branch are such, end in a branch each, and can go on to one place: `if (a ? b : c)`.
///
/// A way that is only a jump is one, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Its places, which run in a row; at least one.
    pub places: Box<[PlaceId]>,
    /// Their instructions.
    pub instructions: u32,
}

/// How the code of a place ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It goes on at the next address.
    Falls,
    Jumps,
    Branches,
    /// It has calls, returns, calls of the kernel, or jumps nobody knows where.
    Otherwise,
}

impl End {
    pub(crate) fn of(segment: &Segment) -> End {
        let (last, before) = segment.instructions.split_last().expect("a segment has instructions");
        if before.iter().any(|instruction| instruction.kind != Kind::Plain) {
            return End::Otherwise;
        }
        match last.kind {
            Kind::Plain => End::Falls,
            Kind::Jump => End::Jumps,
            Kind::Branch => End::Branches,
            _ => End::Otherwise,
        }
    }
}

/// The arms of each place of a graph, by how places end and how many instructions they have.
pub(crate) fn all(
    graph: &Graph,
    structured: &StructuredJoins,
    exits: &[NodeId],
    ends: &[End],
    lengths: &[u32],
) -> Vec<Box<[Arm]>> {
    let loops = structured.loops();
    let exits: FxHashSet<NodeId> = exits.iter().copied().collect();
    let continues = |from: NodeId, to: NodeId| {
        graph.predecessors(to) == [from]
            && ends.get(to.index()).is_some_and(|end| *end != End::Otherwise)
            && loops.innermost(to) == loops.innermost(from)
            && !exits.contains(&to)
    };
    // Where a place leads that is nothing but a jump.
    let behind = |node: NodeId| match graph.successors(node) {
        [to] if ends.get(node.index()) == Some(&End::Jumps) && lengths[node.index()] == 1 => *to,
        _ => node,
    };
    // A way as far as only the branch leads to it, and where it goes on from there.
    let way = |branch: NodeId, first: NodeId| {
        let join = structured.join(branch);
        if !continues(branch, first) || join == Some(Join::Node(first)) {
            return None;
        }
        let mut places = vec![PlaceId(first.0)];
        let mut at = first;
        while let ([next], End::Falls) = (graph.successors(at), ends[at.index()])
            && continues(at, *next)
        {
            places.push(PlaceId(next.0));
            at = *next;
        }
        // From its end lanes go to where those of the branch come together, or leave the loop.
        let around = loops.innermost(branch);
        let is_led_home = |to: &NodeId| match around {
            Some(around) if !loops.contains(around, *to) => true,
            Some(around) if loops.header(around) == *to => matches!(join, Some(Join::TurnEnd(_))),
            _ => join == Some(Join::Node(*to)),
        };
        let on = graph.successors(at);
        let instructions = places.iter().map(|place| lengths[place.0 as usize]).sum();
        let is_jump = behind(first) != first;
        Some((Arm { places: places.into(), instructions }, on, is_jump || on.iter().all(is_led_home)))
    };
    let of_place = |place: usize| {
        let branch = NodeId(place as u32);
        let ways = graph.successors(branch);
        if ends[place] != End::Branches || ways.len() < 2 {
            return Box::default();
        }
        let found: Vec<_> = ways.iter().filter_map(|first| way(branch, *first)).collect();
        // Both go on to one place, or elsewhere, each by a branch of its own: one branch, once the arms are predicated.
        let crosses = match &found[..] {
            [(_, a, _), (_, b, _)] => {
                a.len() > 1 && b.len() > 1 && a.iter().any(|to| b.iter().any(|other| behind(*to) == behind(*other)))
            }
            _ => false,
        };
        found.into_iter().filter(|(.., is_led_home)| crosses || *is_led_home).map(|(arm, ..)| arm).collect()
    };
    (0..ends.len()).map(of_place).collect()
}
