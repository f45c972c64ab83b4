//! Isomorphism of small parts of graphs that are entered at one node and left to one node.

use std::collections::BTreeMap;

use crate::{Graph, NodeId, RegionId, Regions};

/// A part of a graph: what `entry` reaches without passing `exit`, which is not a member.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The graph that it is a part of.
    pub graph: &'a Graph,
    /// Where control comes in.
    pub entry: NodeId,
    /// Where control leaves to.
    pub exit: NodeId,
}

impl<'a> Part<'a> {
    /// A region as a part of its graph.
    #[must_use]
    pub fn of(graph: &'a Graph, regions: &Regions, id: RegionId) -> Part<'a> {
        Part { graph, entry: regions.entry(id), exit: regions.exit(id) }
    }

    /// The members, in a depth-first preorder that takes successors in their order: each, except the entry, comes after
    /// one of its predecessors.
    #[must_use]
    pub fn members(&self) -> Vec<NodeId> {
        let mut seen = BTreeMap::from([(self.exit, ())]);
        let mut members = Vec::new();
        let mut open = vec![self.entry];
        while let Some(node) = open.pop() {
            if seen.insert(node, ()).is_none() {
                members.push(node);
                open.extend(self.graph.successors(node).iter().rev());
            }
        }
        members
    }
}

/// How many pairs of nodes a search tries for each member. Parts whose successors correspond in their order need as
/// many pairs as they have members.
const PAIRS_PER_MEMBER: usize = 64;

/// Which member of `b` stands for which member of `a`, if the two have the same shape: a one-to-one map that takes
/// entry to entry and exit to exit and under which there is an edge between two nodes of `a` exactly where there is one
/// between their images. Pairs come in the order of [`Part::members`] of `a`. The search prefers images in the order of
/// the successors, so that the first way on from a branch stands for the first way on from its image where it can.
///
/// `None` if there is no such map, or if it was not found among 64 pairs tried for each member: such parts have many
/// similar nodes, and are far larger than what is worth comparing.
///
/// ```
/// use flowgraph::{Builder, NodeId, Part, isomorphism};
///
/// // 0 leads to two triangles: 1, 2 and 4, 5, both left to 3. The second has its sides swapped.
/// let mut builder = Builder::new(6);
/// for (from, to) in [(0, 1), (0, 4), (1, 2), (1, 3), (2, 3), (4, 3), (4, 5), (5, 3)] {
///     builder.edge(NodeId(from), NodeId(to));
/// }
/// let graph = builder.build(NodeId(0));
/// let part = |entry| Part { graph: &graph, entry: NodeId(entry), exit: NodeId(3) };
/// let expected = vec![(NodeId(1), NodeId(4)), (NodeId(2), NodeId(5))];
/// assert_eq!(isomorphism(part(1), part(4)), Some(expected));
/// ```
#[must_use]
pub fn isomorphism(a: Part, b: Part) -> Option<Vec<(NodeId, NodeId)>> {
    let (of_a, of_b) = (Shape::of(a), Shape::of(b));
    if of_a.members.len() != of_b.members.len() || of_a.edges != of_b.edges {
        return None;
    }
    let images = Search { a: &of_a, b: &of_b, image: vec![None; of_a.members.len()], taken: Vec::new() }.run()?;
    Some(of_a.members.iter().copied().zip(images.into_iter().map(|i| of_b.members[i])).collect())
}

/// A part with its nodes numbered from 0 in preorder; the exit has the number behind them.
struct Shape {
    members: Vec<NodeId>,
    /// By member: where its edges lead.
    successors: Vec<Vec<usize>>,
    /// By member, and for the exit: how many edges of members lead there.
    entered: Vec<usize>,
    /// By member: the first member in preorder with an edge to it; itself for the entry.
    from: Vec<usize>,
    edges: usize,
}

impl Shape {
    fn of(part: Part) -> Shape {
        let members = part.members();
        let mut numbers: BTreeMap<_, _> = members.iter().copied().zip(0..).collect();
        numbers.insert(part.exit, members.len());
        let successors: Vec<Vec<usize>> = members
            .iter()
            .map(|&node| part.graph.successors(node).iter().map(|successor| numbers[successor]).collect())
            .collect();
        let mut entered = vec![0; members.len() + 1];
        let mut from: Vec<usize> = (0..members.len()).collect();
        for (source, successors) in successors.iter().enumerate() {
            for &to in successors {
                entered[to] += 1;
                if to < members.len() {
                    from[to] = from[to].min(source);
                }
            }
        }
        let edges = entered.iter().sum();
        Shape { members, successors, entered, from, edges }
    }

    fn has_edge(&self, from: usize, to: usize) -> bool {
        self.successors[from].contains(&to)
    }

    fn exit(&self) -> usize {
        self.members.len()
    }
}

/// Maps the members of `a` in preorder: each has a predecessor that is mapped already, so its image is among the
/// successors of that one's image.
struct Search<'s> {
    a: &'s Shape,
    b: &'s Shape,
    image: Vec<Option<usize>>,
    /// The members of `b` that are images, in the order of those that they stand for.
    taken: Vec<usize>,
}

impl Search<'_> {
    fn run(mut self) -> Option<Vec<usize>> {
        let count = self.a.members.len();
        let mut budget = PAIRS_PER_MEMBER * count;
        // By mapped member: which of its candidates comes next, should the search come back to it.
        let mut next = vec![0];
        while self.taken.len() < count {
            let member = self.taken.len();
            let choice = next.last_mut().expect("one more than are mapped");
            let candidate = self.candidate(member, *choice);
            *choice += 1;
            match candidate {
                None => {
                    // All were tried: the one before needs another image.
                    next.pop();
                    let undone = self.taken.len().checked_sub(1)?;
                    self.taken.pop();
                    self.image[undone] = None;
                }
                Some(image) => {
                    budget = budget.checked_sub(1)?;
                    if self.fits(member, image) {
                        self.image[member] = Some(image);
                        self.taken.push(image);
                        next.push(0);
                    }
                }
            }
        }
        Some(self.taken)
    }

    /// The image to try as number `choice`, in the order of successors, starting with the place that the member has
    /// among its predecessor's.
    fn candidate(&self, member: usize, choice: usize) -> Option<usize> {
        if member == 0 {
            return (choice == 0).then_some(0);
        }
        let from = self.a.from[member];
        let place = self.a.successors[from].iter().position(|&to| to == member).expect("an edge");
        let candidates = &self.b.successors[self.taken[from]];
        (choice < candidates.len()).then(|| candidates[(place + choice) % candidates.len()])
    }

    /// Whether the edges between the member, those mapped before it and the exit are those between their images.
    fn fits(&self, member: usize, image: usize) -> bool {
        let (a, b) = (self.a, self.b);
        if image == b.exit() || self.taken.contains(&image) {
            return false;
        }
        let alike = a.successors[member].len() == b.successors[image].len()
            && a.entered[member] == b.entered[image]
            && a.has_edge(member, a.exit()) == b.has_edge(image, b.exit())
            && a.has_edge(member, member) == b.has_edge(image, image);
        let mapped = || self.taken.iter().copied().enumerate();
        alike
            && mapped().all(|(other, of_other)| {
                a.has_edge(member, other) == b.has_edge(image, of_other)
                    && a.has_edge(other, member) == b.has_edge(of_other, image)
            })
    }
}
