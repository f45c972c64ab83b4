//! Code for a plan.

use rustc_hash::{FxHashMap, FxHashSet};

use super::plan::{Plan, Step};
use super::prepare::replace_phi;
use crate::context::Context;
use crate::llvm::{Block, Builder, Comparison, Instruction, Slot, Value};

/// A part of the code with one way in, and with edges out of one block, or to one block.
pub(super) struct Part<'m> {
    /// Where control comes in.
    pub(super) entry: Block<'m>,
    /// In the order of the function; the entry is among them.
    pub(super) blocks: Vec<Block<'m>>,
}

/// Parts that are entered at the first and left to one block.
pub(super) struct Region<'m> {
    pub(super) parts: Vec<Part<'m>>,
    /// What follows.
    pub(super) behind: Block<'m>,
}

impl Region<'_> {
    /// By part: the parts that it leads to, their number for what follows.
    pub(super) fn leads(&self) -> Vec<Vec<usize>> {
        let mut number: FxHashMap<Block<'_>, usize> = FxHashMap::default();
        for (part, blocks) in self.parts.iter().map(|part| &part.blocks).enumerate() {
            number.extend(blocks.iter().map(|&block| (block, part)));
        }
        let leads = |(part, Part { entry, blocks }): (usize, &Part<'_>)| {
            let to = blocks.iter().flat_map(|block| block.terminator().successors());
            let to =
                to.filter_map(|to| if to == self.behind { Some(self.parts.len()) } else { number.get(&to).copied() });
            let mut to: Vec<usize> = to.filter(|&to| to != part).collect();
            // A part that leads back to itself by an edge that no reduction folded is met nowhere.
            assert!(number[entry] == part, "a part holds its entry");
            to.sort_unstable();
            to.dedup();
            to
        };
        self.parts.iter().enumerate().map(leads).collect()
    }
}

/// Puts the parts of a region in the row that the plan says. `fresh` says that no part uses what another one gave when
/// control came through the region before. Returns where control comes in from now on, if that is another block.
/// Choices of whose turn it is that a branch of the same condition follows are added to `choices`.
pub(super) fn linearize<'m>(
    region: &Region<'m>,
    plan: &Plan,
    level: i64,
    fresh: bool,
    choices: &mut Vec<Instruction<'m>>,
    context: &mut Context<'m>,
) -> Option<Block<'m>> {
    let function = region.behind.function();
    let turn = function.add_slot(function.integer_type(32));
    context.promote(turn);
    let mut surgery = Surgery {
        region,
        plan,
        level,
        entries: plan.entries(),
        turn,
        part_of: FxHashMap::default(),
        comes_back: plan.comes_back,
        outside: Vec::new(),
        landings: FxHashMap::default(),
    };
    for (number, part) in region.parts.iter().enumerate() {
        surgery.part_of.extend(part.blocks.iter().map(|&block| (block, number)));
    }
    let entering = region.parts[0].entry.entering().into_iter().filter_map(|end| end.block());
    surgery.outside = entering.filter(|block| !surgery.part_of.contains_key(block)).collect();
    let leaving = surgery.leaving();
    surgery.carry_phis(&leaving, context);
    let starts = surgery.starts(&leaving);
    surgery.guard(&leaving, &starts);
    choices.extend(surgery.lead_on(&leaving, &starts));
    let enter = surgery.comes_back.then(|| surgery.enter(starts[plan.start]));
    // From here on, until all paths meet again, no value of the region exists yet.
    let first = leaving.iter().filter(|leaving| leaving.part == 0);
    let only = first.map(|leaving| leaving.block).reduce(|_, _| region.behind);
    if let Some(branch) = enter.or(only).filter(|&branch| fresh && branch != region.behind) {
        context.joined(branch, starts[plan.steps.len() - 1]);
    }
    surgery.lay_out(enter, &starts);
    enter
}

/// A block with edges that leave its part.
struct Leaving<'m> {
    block: Block<'m>,
    part: usize,
    /// The places among its successors, and where they lead.
    edges: Vec<(usize, Block<'m>)>,
}

struct Surgery<'a, 'm> {
    region: &'a Region<'m>,
    plan: &'a Plan,
    level: i64,
    /// By step: how many edges lead there.
    entries: Vec<usize>,
    /// Whose turn it is.
    turn: Slot<'m>,
    part_of: FxHashMap<Block<'m>, usize>,
    /// Whether something leads back to the first part.
    comes_back: bool,
    /// The blocks outside of the region from which edges lead to the first part.
    outside: Vec<Block<'m>>,
    /// Blocks just before others, where their phis get what parts bring.
    landings: FxHashMap<Block<'m>, Block<'m>>,
}

impl<'m> Surgery<'_, 'm> {
    /// The number that says whose turn it is: that of a part by its entry, or of what follows.
    fn number(&self, target: Block<'m>) -> usize {
        if target == self.region.behind { self.region.parts.len() } else { self.part_of[&target] }
    }

    fn leaving(&self) -> Vec<Leaving<'m>> {
        let mut leaving = Vec::new();
        for (part, blocks) in self.region.parts.iter().map(|part| &part.blocks).enumerate() {
            for &block in blocks {
                let leaves = |&(_, to): &(usize, Block<'m>)| self.part_of.get(&to) != Some(&part);
                let edges: Vec<_> = block.terminator().successors().into_iter().enumerate().filter(leaves).collect();
                if !edges.is_empty() {
                    leaving.push(Leaving { block, part, edges });
                }
            }
        }
        leaving
    }

    /// Where a phi joins values from other parts, a variable carries them: stored where a part is left, loaded where
    /// the next one begins.
    fn carry_phis(&mut self, leaving: &[Leaving<'m>], context: &mut Context<'m>) {
        let mut targets: Vec<Block<'m>> = self.region.parts.iter().map(|part| part.entry).collect();
        if !self.comes_back {
            targets.remove(0);
        }
        targets.push(self.region.behind);
        for target in targets {
            let mut carried: Vec<Block<'m>> = Vec::new();
            let leads = |leaving: &&Leaving<'m>| leaving.edges.iter().any(|(_, to)| *to == target);
            carried.extend(leaving.iter().filter(leads).map(|leaving| leaving.block));
            if target == self.region.parts[0].entry {
                carried.extend(&self.outside);
            }
            self.carry(target, &carried, context);
        }
    }

    fn carry(&mut self, target: Block<'m>, carried: &[Block<'m>], context: &mut Context<'m>) {
        let from: FxHashSet<Block<'m>> = carried.iter().copied().collect();
        let phis = target.phis();
        let mut variables: Vec<(Instruction<'m>, Slot<'m>)> = Vec::new();
        for phi in phis {
            let slot = target.function().add_slot(phi.type_of());
            context.promote(slot);
            for &block in carried {
                let value = phi.incoming_from(block).expect("a phi names each predecessor");
                slot.store_before(value, block.terminator());
            }
            variables.push((phi, slot));
        }
        // Other ways into the block stay as they are: those of a loop that is a part, those of other parts of the code.
        let stays = target.entering().into_iter().any(|end| end.block().is_some_and(|block| !from.contains(&block)));
        let landing = (stays && !variables.is_empty()).then(|| target.insert_before("in"));
        self.landings.extend(landing.map(|landing| (target, landing)));
        let at = landing.map_or_else(|| target.first_insertion_point(), |landing| landing.branch_to(target));
        let loads: Vec<Value<'m>> = variables.iter().map(|(_, slot)| slot.load_before(at)).collect();
        for ((phi, _), load) in variables.into_iter().zip(loads) {
            let Some(landing) = landing else {
                phi.as_value().replace_all_uses_with(load);
                phi.erase();
                continue;
            };
            let mut incoming = phi.incoming();
            incoming.retain(|(_, block)| !from.contains(block));
            incoming.push((load, landing));
            replace_phi(target, phi, &incoming);
        }
    }

    /// By step: the block in which it begins.
    fn starts(&self, leaving: &[Leaving<'m>]) -> Vec<Block<'m>> {
        let landing = |block: Block<'m>| self.landings.get(&block).copied().unwrap_or(block);
        let function = self.region.behind.function();
        let start = |(number, step): (usize, &Step)| match *step {
            // What nothing leads to, or stands in the block before it, has no block.
            Step::Guard { .. } | Step::Back { .. } if self.entries[number] == 0 || self.joins(leaving, number) => {
                self.region.behind
            }
            Step::Guard { .. } => function.add_block("guard"),
            Step::Back { .. } => function.add_block("back"),
            Step::Body { part, .. } | Step::Endless { part } => landing(self.region.parts[part].entry),
            Step::End => landing(self.region.behind),
        };
        self.plan.steps.iter().enumerate().map(start).collect()
    }

    /// Whether a guard stands at the end of a part: the only step before it, with one block and one way on.
    fn joins(&self, leaving: &[Leaving<'m>], guard: usize) -> bool {
        let leads = |step: &&Step| matches!(step, Step::Body { next, .. } if *next == guard);
        let Some(Step::Body { part, .. }) = self.plan.steps.iter().find(leads) else { return false };
        let mut ends = leaving.iter().filter(|leaving| leaving.part == *part);
        let one = (ends.next(), ends.next());
        self.level >= 3
            && self.entries[guard] == 1
            && matches!(one, (Some(end), None) if end.edges.len() == end.block.terminator().successors().len())
    }

    /// Fills the guards that have blocks of their own.
    fn guard(&self, leaving: &[Leaving<'m>], starts: &[Block<'m>]) {
        for (place, (step, &block)) in self.plan.steps.iter().zip(starts).enumerate() {
            let (Step::Guard { part: number, yes, no } | Step::Back { head: number, yes, no }) = *step else {
                continue;
            };
            if self.entries[place] == 0 || self.joins(leaving, place) {
                continue;
            }
            // The load has a place once there is an instruction to stand before.
            let jump = block.branch_to(starts[no]);
            let turn = self.turn.load_before(jump);
            let is_its = Builder::before(jump).compare(Comparison::Equal, turn, turn.type_of().number(number as u64));
            jump.erase();
            block.branch_on(is_its, starts[yes], starts[no]);
        }
    }

    /// Has each part say whose turn is next, and go on to the next step. Returns the choices of whose turn it is that a
    /// branch of the same condition follows.
    fn lead_on(&self, leaving: &[Leaving<'m>], starts: &[Block<'m>]) -> Vec<Instruction<'m>> {
        let mut choices = Vec::new();
        let mut next = vec![0; self.region.parts.len()];
        for step in &self.plan.steps {
            if let Step::Body { part, next: step } = *step {
                next[part] = step;
            }
        }
        for Leaving { block, part, edges } in leaving {
            let (end, next) = (block.terminator(), next[*part]);
            let number = |target: Block<'m>| self.turn.holds().number(self.number(target) as u64);
            let first = edges[0].1;
            let choice = end.condition().filter(|_| edges.iter().any(|(_, to)| *to != first));
            let turn = match choice {
                Some(condition) => Builder::before(end).select(condition, number(first), number(edges[1].1)),
                None => {
                    assert!(edges.iter().all(|(_, to)| *to == first), "a part is left to several places by one branch");
                    number(first)
                }
            };
            self.turn.store_before(turn, end);
            let joined = match self.plan.steps[next] {
                Step::Guard { part, yes, no } | Step::Back { head: part, yes, no } if self.joins(leaving, next) => {
                    Some((part, starts[yes], starts[no]))
                }
                _ => None,
            };
            if let Some((part, yes, no)) = joined {
                let asked = |target: Block<'m>| self.number(target) == part;
                let by_choice = choice.filter(|_| self.level >= 4 && (asked(first) || asked(edges[1].1)));
                choices.extend(by_choice.and_then(|_| turn.as_instruction()));
                let new = match by_choice {
                    Some(condition) if asked(first) => block.branch_on(condition, yes, no),
                    Some(condition) => block.branch_on(condition, no, yes),
                    _ => {
                        let number = self.turn.holds().number(part as u64);
                        let is_its = Builder::before(end).compare(Comparison::Equal, turn, number);
                        block.branch_on(is_its, yes, no)
                    }
                };
                new.take_location(end);
                end.erase();
            } else if edges.len() == end.successors().len() {
                block.branch_to(starts[next]).take_location(end);
                end.erase();
            } else {
                edges.iter().for_each(|(place, _)| end.set_successor(*place, starts[next]));
            }
        }
        choices
    }

    /// The block through which control comes in from outside.
    fn enter(&self, start: Block<'m>) -> Block<'m> {
        let first = self.region.parts[0].entry;
        let enter = first.insert_before("enter");
        let jump = enter.branch_to(start);
        self.turn.store_before(self.turn.holds().number(0), jump);
        for end in self.outside.iter().map(|block| block.terminator()) {
            for (place, _) in end.successors().into_iter().enumerate().filter(|(_, to)| *to == first) {
                end.set_successor(place, enter);
            }
        }
        enter
    }

    /// Puts the blocks in the order of the steps.
    fn lay_out(&self, enter: Option<Block<'m>>, starts: &[Block<'m>]) {
        let mut last = enter;
        let mut put = |block: Block<'m>| {
            if let Some(last) = last {
                block.move_after(last);
            }
            last = Some(block);
        };
        for (step, &start) in self.plan.steps.iter().zip(starts) {
            match *step {
                // One without a block of its own.
                Step::Guard { .. } | Step::Back { .. } if start == self.region.behind => {}
                Step::Guard { .. } | Step::Back { .. } => put(start),
                Step::Body { part, .. } | Step::Endless { part } => {
                    let Part { entry, blocks } = &self.region.parts[part];
                    if start != *entry {
                        put(start);
                    }
                    put(*entry);
                    blocks.iter().copied().filter(|block| block != entry).for_each(&mut put);
                }
                Step::End => {}
            }
        }
    }
}
