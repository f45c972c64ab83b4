//! Where melding can begin: a branch, and the subgraphs with one entry and one exit on each of its two paths.

use flowgraph::{Dominators, Loops, NodeId, PostDominators};
use rustc_hash::FxHashSet;

use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Location, Opcode, Value};
use crate::remark::Unmeldable;

/// Subgraphs of more blocks than this are left: what is compared grows with the product of both sides.
const MOST_BLOCKS: usize = 96;

/// So many subgraphs of a path are looked at, in their order.
const MOST_SUBGRAPHS: usize = 48;

/// A branch whose paths have something to meld (definition 5 of the paper), and what is on them.
pub(super) struct Region<'m> {
    /// The block that ends with the branch.
    pub(super) head: Block<'m>,
    /// What it decides by.
    pub(super) condition: Value<'m>,
    /// The subgraphs on the path where the condition holds, and where it does not, each in the order of the path.
    pub(super) paths: [Vec<Subgraph<'m>>; 2],
    /// Values that the condition chose before the branch, in whatever was melded there: the two values of each choice.
    pub(super) chosen: FxHashSet<(Value<'m>, Value<'m>)>,
}

/// A part of one path: all of it is entered at `entry`, and all edges that leave it lead to `exit`.
pub(super) struct Subgraph<'m> {
    /// Where control comes in.
    pub(super) entry: NodeId,
    /// Where control goes on: not a member.
    pub(super) exit: NodeId,
    /// The members' blocks, in preorder, the entry first.
    pub(super) blocks: Vec<Block<'m>>,
}

impl Subgraph<'_> {
    /// Whether it is one block.
    pub(super) fn is_lone(&self) -> bool {
        self.blocks.len() == 1 && self.blocks[0].terminator().successors().len() == 1
    }
}

/// What the branch of a block begins.
pub(super) struct Found<'m> {
    /// A region, if there is something on both of its paths.
    pub(super) region: Option<Region<'m>>,
    /// Of paths that have something to meld or could have had it: where the first part begins that is no subgraph, and
    /// why. Empty where one of the paths is no arm.
    pub(super) left: Vec<(Block<'m>, Unmeldable)>,
}

/// The control flow of a function, as the search sees it.
pub(super) struct Analyses<'a, 'm> {
    pub(super) flow: &'a Flow<'m>,
    pub(super) dominators: &'a Dominators,
    pub(super) post: &'a PostDominators,
}

impl<'m> Region<'m> {
    /// What begins with the branch of a block.
    pub(super) fn at(analyses: &Analyses<'_, 'm>, node: NodeId) -> Found<'m> {
        let head = analyses.flow.block(node);
        let mut found = Found { region: None, left: Vec::new() };
        let Some(condition) = head.terminator().condition().filter(|c| !c.is_constant()) else { return found };
        let successors = head.terminator().successors();
        let [yes, no] = [successors[0], successors[1]];
        if yes == no || analyses.dominators.depth(node).is_none() {
            return found;
        }
        let meets = analyses.post.ipdom(node);
        let [ours, theirs] = [yes, no].map(|first| path(analyses, node, analyses.flow.node(first), meets));
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return found };
        found.left = ours.left.into_iter().chain(theirs.left).collect();
        let paths = [ours.subgraphs, theirs.subgraphs];
        if paths.iter().any(Vec::is_empty) {
            return found;
        }
        let before = |select: Instruction<'m>| {
            let of = select.block().and_then(|block| analyses.flow.find(block));
            of.is_some_and(|of| analyses.dominators.dominates(of, node))
        };
        let users = condition.uses().into_iter().map(|u| u.user);
        let selects = users.filter(|user| user.opcode() == Opcode::LLVMSelect && user.operand(0) == condition);
        let chosen = selects.filter(|select| before(*select)).map(|i| (i.operand(1), i.operand(2))).collect();
        found.region = Some(Region { head, condition, paths, chosen });
        found
    }

    /// Whether both paths have loops whose loads and stores have the same places in the source: the optimiser made two
    /// of one, with a test before them.
    pub(super) fn has_versions(&self, flow: &Flow<'m>, loops: &Loops) -> bool {
        let depth = loops.depth(flow.node(self.head));
        let accesses = |path: &Vec<Subgraph<'m>>| -> FxHashSet<Location<'m>> {
            let blocks = path.iter().flat_map(|subgraph| &subgraph.blocks);
            let turning = blocks.filter(|block| loops.depth(flow.node(**block)) > depth);
            let all = turning.flat_map(|block| block.instructions());
            let accesses = all.filter(|i| matches!(i.opcode(), Opcode::LLVMLoad | Opcode::LLVMStore));
            accesses.filter_map(Instruction::location).collect()
        };
        let [ours, theirs] = [0, 1].map(|side| accesses(&self.paths[side]));
        !ours.is_empty() && !theirs.is_empty() && (ours.is_subset(&theirs) || theirs.is_subset(&ours))
    }

    /// All blocks that melding here may change, those behind the paths aside.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block<'m>> {
        self.paths.iter().flatten().flat_map(|subgraph| subgraph.blocks.iter().copied()).chain([self.head])
    }
}

/// What is on one path.
struct Path<'m> {
    subgraphs: Vec<Subgraph<'m>>,
    /// The first part of it that is no subgraph, and why.
    left: Option<(Block<'m>, Unmeldable)>,
}

/// The subgraphs from `first` on, along its post-dominators, up to where the paths meet: those that only the edge from
/// `head` to `first` leads to. None where there is no such path.
fn path<'m>(analyses: &Analyses<'_, 'm>, head: NodeId, first: NodeId, meets: Option<NodeId>) -> Option<Path<'m>> {
    let Analyses { flow, dominators, post } = *analyses;
    let mut path = Path { subgraphs: Vec::new(), left: None };
    if Some(first) == meets || !flow.edge_dominates(dominators, head, first, first) {
        return None;
    }
    let mut next = Some(first);
    while let Some(entry) = next.filter(|&entry| Some(entry) != meets && dominators.dominates(first, entry)) {
        if path.subgraphs.len() == MOST_SUBGRAPHS {
            break;
        }
        match subgraph_at(analyses, entry) {
            Ok(subgraph) => path.subgraphs.push(subgraph),
            // A bare return is nothing that could be melded.
            Err(Unmeldable::Ends) if flow.block(entry).len() == 1 => {}
            Err(why) => {
                path.left.get_or_insert((flow.block(entry), why));
            }
        }
        next = post.ipdom(entry);
    }
    Some(path)
}

/// The subgraph that begins at a block; why there is none.
pub(super) fn subgraph_at<'m>(analyses: &Analyses<'_, 'm>, entry: NodeId) -> Result<Subgraph<'m>, Unmeldable> {
    let exit = analyses.post.ipdom(entry);
    let members = members(analyses, entry, exit)?;
    let exit = exit.ok_or(Unmeldable::Ends)?;
    let blocks: Vec<Block> = members.into_iter().map(|node| analyses.flow.block(node)).collect();
    let movable = blocks.iter().all(|&block| can_be_taken_apart(block)) && can_be_entered_otherwise(&blocks);
    if movable { Ok(Subgraph { entry, exit, blocks }) } else { Err(Unmeldable::Fixed) }
}

/// What `entry` reaches without passing `exit`, in preorder, where nothing else leads into it and something leaves it.
fn members(analyses: &Analyses<'_, '_>, entry: NodeId, exit: Option<NodeId>) -> Result<Vec<NodeId>, Unmeldable> {
    let graph = analyses.flow.graph();
    let mut seen: FxHashSet<NodeId> = exit.into_iter().collect();
    let mut members = Vec::new();
    let mut open = vec![entry];
    while let Some(node) = open.pop() {
        if seen.insert(node) {
            if members.len() == MOST_BLOCKS {
                return Err(Unmeldable::TooLarge);
            }
            if !analyses.dominators.dominates(entry, node) {
                return Err(Unmeldable::LeavesEarly);
            }
            members.push(node);
            open.extend(graph.successors(node).iter().rev());
        }
    }
    let is_inside = |node: &NodeId| Some(*node) != exit && seen.contains(node);
    let closed = members[1..].iter().all(|&node| graph.predecessors(node).iter().all(is_inside));
    let leaves = exit.is_some_and(|exit| graph.predecessors(exit).iter().any(is_inside));
    match (closed, leaves) {
        (true, true) => Ok(members),
        (true, false) => Err(Unmeldable::Ends),
        (false, _) => Err(Unmeldable::LeavesEarly),
    }
}

/// Whether the instructions of a block can be moved to another that the same lanes reach, and its branch be built
/// again.
pub(super) fn can_be_taken_apart(block: Block<'_>) -> bool {
    let terminator = block.terminator();
    let successors = terminator.successors();
    let plain = terminator.opcode() == Opcode::LLVMBr && (successors.len() == 1 || successors[0] != successors[1]);
    plain && !block.has_address() && !block.is_handler() && block.instructions().into_iter().all(can_be_moved)
}

pub(super) fn can_be_moved(i: Instruction<'_>) -> bool {
    let stays = i.must_be_tail() || i.has_bundles() || i.begins_handler() || i.opcode() == Opcode::LLVMAlloca;
    let of_group = i.opcode() == Opcode::LLVMCall && (i.call_has("convergent") || i.call_has("returns_twice"));
    !stays && !of_group && (i.type_of().is_void() || i.type_of().is_first_class())
}

/// Whether all edges into a subgraph can be moved.
fn can_be_entered_otherwise(blocks: &[Block<'_>]) -> bool {
    let fixed = |i: Instruction<'_>| matches!(i.opcode(), Opcode::LLVMIndirectBr | Opcode::LLVMCallBr);
    !blocks[0].entering().into_iter().any(fixed)
}
