//! Arms of branches: paths that only one branch leads to.

use flowgraph::{Graph, Join, NodeId, StructuredJoins};
use rustc_hash::FxHashSet;
use trace_format::Kind;

use crate::{PlaceId, Segment};

/// A way of a conditional branch that only this branch leads to, up to the next jump, branch, or place that others come
/// to as well, which a compiler could predicate. It lies in the branch's innermost loop, has no calls, and is not where
/// the branch's lanes come together; from its end it goes there, or leaves the loop, as where the compiler doubled the
/// test of the loop. A way that is only a jump is one, too. The branch's other way leads to the same place at once, or
/// is one that only this branch leads to, however long: in a chain of `else if`, ptxas predicates a short arm and has
/// its lanes jump over the rest.
///
/// Its length is in the instructions that a GPU would have: one that computes in memory is several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Its places, which run in a row; at least one.
    pub places: Box<[PlaceId]>,
    /// Their instructions, see [`SegmentTable::operations`](crate::SegmentTable::operations).
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
    let is_only_jump = |node: NodeId| {
        ends[node.index()] == End::Jumps && lengths[node.index()] == 1 && graph.successors(node).len() == 1
    };
    // Whether lanes of the branch come together at a place, or leave the loop there.
    let is_home = |branch: NodeId, to: NodeId| {
        let join = structured.join(branch);
        match loops.innermost(branch) {
            Some(around) if !loops.contains(around, to) => true,
            Some(around) if loops.header(around) == to => matches!(join, Some(Join::TurnEnd(_))),
            _ => join == Some(Join::Node(to)),
        }
    };
    // A way as far as only the branch leads to it, if it ends where the lanes come together.
    let arm = |branch: NodeId, first: NodeId| {
        if !continues(branch, first) || structured.join(branch) == Some(Join::Node(first)) {
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
        let instructions = places.iter().map(|place| lengths[place.0 as usize]).sum();
        let is_led_home = is_only_jump(first) || graph.successors(at).iter().all(|to| is_home(branch, *to));
        is_led_home.then(|| Arm { places: places.into(), instructions })
    };
    let of_place = |place: usize| {
        let branch = NodeId(place as u32);
        let ways = graph.successors(branch);
        if ends[place] != End::Branches || ways.len() < 2 {
            return Box::default();
        }
        let is_own = |first: &NodeId| graph.predecessors(*first) == [branch] || is_home(branch, *first);
        if !ways.iter().all(is_own) {
            return Box::default();
        }
        ways.iter().filter_map(|first| arm(branch, *first)).collect()
    };
    (0..ends.len()).map(of_place).collect()
}
