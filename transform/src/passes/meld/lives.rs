//! Which values are needed after an instruction of a region, so that what would destroy them needs a copy.

use flowgraph::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::Weights;
use super::region::{Region, Subgraph};
use crate::llvm::{Block, Instruction, Value};

/// Of values that more instructions use all uses are taken to live on: each would be looked at for each region.
const MOST_USES: usize = 64;

/// What is needed after instructions of two subgraphs, in the function as it is.
pub(super) struct Lives<'m> {
    /// What is needed after the end of a block.
    behind: FxHashSet<(Block<'m>, Value<'m>)>,
    /// What is needed after the end of its side's subgraph.
    left: FxHashSet<Value<'m>>,
    /// The last instruction of a block that needs a value.
    last: FxHashMap<(Block<'m>, Value<'m>), Instruction<'m>>,
    /// How many operands of a side's instructions a value is.
    operands: [FxHashMap<Value<'m>, usize>; 2],
}

impl<'m> Lives<'m> {
    /// What lives on in the subgraphs of these places.
    pub(super) fn of(region: &Region<'m>, places: [usize; 2], weights: &Weights<'_, 'm>) -> Lives<'m> {
        let (behind, left, last) = (FxHashSet::default(), FxHashSet::default(), FxHashMap::default());
        let mut lives = Lives { behind, left, last, operands: Default::default() };
        for (side, place) in places.into_iter().enumerate() {
            lives.side(region, side, place, weights);
        }
        lives
    }

    /// Whether a value is needed after an instruction that uses it.
    pub(super) fn on(&self, value: Value<'m>, after: Instruction<'m>) -> bool {
        let Some(block) = after.block() else { return true };
        self.behind.contains(&(block, value)) || self.last.get(&(block, value)).is_some_and(|last| *last != after)
    }

    /// Whether a value lives on where so many of the operands that it is in its side's subgraph are exchanged.
    pub(super) fn on_without(&self, side: usize, value: Value<'m>, exchanged: usize) -> bool {
        let all = self.operands[side].get(&value).copied().unwrap_or_default();
        self.left.contains(&value) || all > exchanged
    }

    fn side(&mut self, region: &Region<'m>, side: usize, place: usize, weights: &Weights<'_, 'm>) {
        let subgraph = &region.paths[side][place];
        let members: FxHashSet<Block<'m>> = subgraph.blocks.iter().copied().collect();
        let mut needed: FxHashMap<Value<'m>, Vec<Block<'m>>> = FxHashMap::default();
        for &block in &subgraph.blocks {
            for i in block.instructions() {
                for value in i.operands().into_iter().filter(|value| !value.is_constant()) {
                    *self.operands[side].entry(value).or_default() += 1;
                    if !i.is_phi() {
                        self.last.insert((block, value), i);
                        needed.entry(value).or_default().push(block);
                    }
                }
            }
        }
        let leaving: Vec<Block<'m>> = subgraph.blocks.iter().copied().filter(|b| leaves(*b, &members)).collect();
        for (value, blocks) in needed {
            let made = value.as_instruction().and_then(Instruction::block);
            // What is needed in the next turn of a loop that it is not made in is needed everywhere.
            let depth_of = |block: Block<'m>| weights.flow.find(block).map_or(0, |node| weights.loops.depth(node));
            let made_at = made.map_or(0, depth_of);
            let mut open = blocks.clone();
            if blocks.iter().any(|&block| depth_of(block) > made_at)
                || self.is_left(value, region, side, subgraph, weights)
            {
                self.left.insert(value);
                for &block in &leaving {
                    self.behind.insert((block, value));
                    open.push(block);
                }
            }
            for user in value.few_uses(MOST_USES).into_iter().flatten().filter(|u| u.user.is_phi()) {
                // The value is needed at the end of the block from which the phi has it.
                let end = user.needed_in().filter(|end| members.contains(end));
                if let Some(end) = end.filter(|end| self.behind.insert((*end, value))) {
                    open.push(end);
                }
            }
            let mut seen: FxHashSet<Block<'m>> = FxHashSet::default();
            while let Some(block) = open.pop() {
                if made == Some(block) || !seen.insert(block) {
                    continue;
                }
                for from in block.entering().into_iter().filter_map(Instruction::block) {
                    if members.contains(&from) {
                        self.behind.insert((from, value));
                        open.push(from);
                    }
                }
            }
        }
    }

    /// Whether something behind a side's subgraph needs a value.
    fn is_left(
        &self,
        value: Value<'m>,
        region: &Region<'m>,
        side: usize,
        subgraph: &Subgraph<'m>,
        weights: &Weights<'_, 'm>,
    ) -> bool {
        let node_of = |block: Block<'m>| weights.flow.find(block);
        let head = node_of(region.head);
        let on_path = |path: usize, block: Block<'m>| region.paths[path].iter().any(|s| s.blocks.contains(&block));
        let comes_before = |node: NodeId| head.is_some_and(|head| weights.dominators.dominates(node, head));
        let needs = |block: Block<'m>| {
            let before = node_of(block).is_none_or(comes_before) || on_path(1 - side, block);
            !before && !subgraph.blocks.contains(&block)
        };
        let Some(uses) = value.few_uses(MOST_USES) else { return true };
        uses.into_iter().filter_map(|u| u.needed_in()).any(needs)
    }
}

/// Whether an edge leads from a block out of its subgraph.
fn leaves<'m>(block: Block<'m>, members: &FxHashSet<Block<'m>>) -> bool {
    block.terminator().successors().iter().any(|to| !members.contains(to))
}
