//! Making SSA form again after the control flow was changed.
//!
//! A pass that joins paths leaves values that no longer dominate their uses, although on each path that the program really takes the
//! definition still comes first. Each such value gets a variable in the stack frame: stored after the definition, loaded at the uses
//! that are no longer dominated. LLVM's `mem2reg` then turns the variables into phis, with undefined values on the paths on which nothing was
//! stored, which are the paths that the program cannot take.
//!
//! In a loop, such a path would lead through the definition of the turn before, and the phi would carry that value
//! around the loop for nothing. So the value is *forgotten* (an undefined one is stored) at each branch whose paths
//! were joined, that strictly dominates the definition, and whose paths have not come together again before it. That is
//! sound: from such a branch no path leads to a use without the definition, or a path from the entry to the branch and
//! on to the use would avoid the definition, which dominated the use before the change. Forgetting at fewer branches is
//! sound too; at most [`MOST_OPEN`] are taken, the innermost.

use flowgraph::{Dominators, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::{Context, Joined};
use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Opcode, Slot, Use, Value};

/// What has to follow when a function was repaired: the passes that turn variables into phis.
pub(crate) const MEMORY_TO_REGISTERS: &str = "function(mem2reg)";

/// At so many branches a value is forgotten: more branches inside each other, all joined, would make the work grow with
/// the square of their depth.
const MOST_OPEN: usize = 64;

/// Gives every use a definition that dominates it. Returns how many values had to go through a variable.
pub(crate) fn repair<'m>(context: &mut Context<'m>, joined: &[Joined<'m>]) -> usize {
    let (flow, dominators) = (context.flow(), context.dominators());
    let open = OpenBranches::of(&flow, &dominators, joined);
    let mut repaired = 0;
    for &block in flow.blocks() {
        let node = flow.node(block);
        if dominators.depth(node).is_none() {
            continue;
        }
        for instruction in block.instructions() {
            let broken = broken_uses(instruction, node, &flow, &dominators);
            if !broken.is_empty() {
                through_variable(instruction, block, &broken, open.at(node).map(|branch| flow.block(branch)));
                repaired += 1;
            }
        }
    }
    repaired
}

/// Of each block the joined branches that strictly dominate it and whose paths have not come together before it: lists
/// that share their ends.
struct OpenBranches {
    /// By node: the number of its innermost branch's entry.
    innermost: Vec<Option<u32>>,
    /// A branch, and the entry of the one around it.
    entries: Vec<(NodeId, Option<u32>)>,
}

impl OpenBranches {
    fn of<'m>(flow: &Flow<'m>, dominators: &Dominators, joined: &[Joined<'m>]) -> OpenBranches {
        let mut branches = FxHashSet::default();
        let mut meeting: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        let mut times: FxHashMap<NodeId, u32> = FxHashMap::default();
        for joined in joined {
            let Some(branch) = flow.find(joined.branch) else { continue };
            branches.insert(branch);
            *times.entry(branch).or_default() += 1;
            if let Some(meets) = flow.find(joined.meets) {
                meeting.entry(meets).or_default().push(branch);
            }
        }
        // Paths that are joined again further down have parted again: such a branch stays open.
        meeting.values_mut().for_each(|branches| branches.retain(|branch| times[branch] == 1));
        let mut open = OpenBranches { innermost: vec![None; flow.blocks().len()], entries: Vec::new() };
        let mut nodes: Vec<(u32, NodeId)> =
            flow.graph().nodes().filter_map(|node| Some((dominators.depth(node)?, node))).collect();
        // What dominates a node comes before it.
        nodes.sort_unstable();
        let mut entry_of: FxHashMap<NodeId, u32> = FxHashMap::default();
        for (_, node) in nodes {
            let Some(above) = dominators.idom(node) else { continue };
            let mut list = open.innermost[above.index()];
            if branches.contains(&above) {
                list = Some(*entry_of.entry(above).or_insert_with(|| {
                    open.entries.push((above, list));
                    open.entries.len() as u32 - 1
                }));
            }
            let closed =
                meeting.get(&node).into_iter().flatten().filter(|&&b| b != node && dominators.dominates(b, node));
            if let Some(outermost) = closed.min_by_key(|&&branch| dominators.depth(branch)) {
                list = open.innermost[outermost.index()];
            }
            open.innermost[node.index()] = list;
        }
        open
    }

    /// The open branches of a block, the innermost first.
    fn at(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        let next = |&entry: &u32| self.entries[entry as usize].1;
        std::iter::successors(self.innermost[node.index()], next)
            .map(|entry| self.entries[entry as usize].0)
            .take(MOST_OPEN)
    }
}

/// The uses that the definition does not dominate.
fn broken_uses<'m>(
    instruction: Instruction<'m>,
    node: NodeId,
    flow: &Flow<'m>,
    dominators: &Dominators,
) -> Vec<Use<'m>> {
    if instruction.type_of().is_void() {
        return Vec::new();
    }
    let is_broken = |u: &Use<'m>| {
        u.needed_in().is_some_and(|b| {
            let needed = flow.node(b);
            dominators.depth(needed).is_some() && !dominators.dominates(node, needed)
        })
    };
    instruction.as_value().uses().into_iter().filter(is_broken).collect()
}

fn through_variable<'m>(
    instruction: Instruction<'m>,
    block: Block<'m>,
    broken: &[Use<'m>],
    forgotten_at: impl Iterator<Item = Block<'m>>,
) {
    let slot = block.function().add_slot(instruction.type_of());
    slot.store_before(instruction.as_value(), after(instruction, block));
    for branch in forgotten_at {
        slot.store_before(slot.holds().undef(), branch.terminator());
    }
    // A phi may name a block twice, and then wants the same value for both.
    let mut at_end: FxHashMap<Block<'m>, Value<'m>> = FxHashMap::default();
    for u in broken {
        let value = load_for(*u, slot, &mut at_end);
        u.user.set_operand(u.operand, value);
    }
}

fn load_for<'m>(u: Use<'m>, slot: Slot<'m>, at_end: &mut FxHashMap<Block<'m>, Value<'m>>) -> Value<'m> {
    match u.needed_in() {
        Some(block) if u.user.is_phi() => *at_end.entry(block).or_insert_with(|| slot.load_before(block.terminator())),
        _ => slot.load_before(u.user),
    }
}

/// The first instruction at which the value is there: for the result of an invoke, in the block where it goes on.
fn after<'m>(instruction: Instruction<'m>, block: Block<'m>) -> Instruction<'m> {
    if instruction.opcode() == Opcode::LLVMInvoke {
        return instruction.successors()[0].first_insertion_point();
    }
    if instruction.is_phi() || instruction.begins_handler() {
        return block.first_insertion_point();
    }
    instruction.next().expect("what makes a value does not end a block")
}
