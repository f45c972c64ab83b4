//! The surgery: two subgraphs are merged into one.
//!
//! ```text
//!   …T path   F path…            the melded subgraph has the cells in preorder;
//!        \     /                 `meet` holds phis for values that both sides bring from outside;
//!         meet                   its last block joins what both leave with,
//!          |                     and the branch behind it parts the paths again
//!       melded …
//!        /     \
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use super::gather::{drop_single_phis, fold, gather, straighten};
use super::matching::joined_operands;
use super::pairs::Candidate;
use super::plan::{Plan, Step};
use super::region::Region;
use crate::context::Context;
use crate::flow::Flow;
use crate::joining::{Place, pair};
use crate::llvm::{Block, Builder, Instruction, Value};

/// A side's subgraph on its way out.
struct Side<'m> {
    /// The members, and the block through which all of them are left.
    blocks: Vec<Block<'m>>,
    /// Through which control comes in.
    before: Block<'m>,
    /// The last of `blocks`: it only joins.
    last: Block<'m>,
    /// Through which the side's lanes go on.
    behind: Block<'m>,
}

/// What was chosen in a cell between the values of both sides.
#[derive(Default)]
struct Chosen<'m> {
    known: FxHashMap<[Value<'m>; 2], Value<'m>>,
    /// Whether constants are chosen here.
    late: bool,
}

/// A phi of the melded subgraph, and what it stands for, by side.
struct Joined<'m> {
    cell: usize,
    phi: Instruction<'m>,
    of: [Option<Instruction<'m>>; 2],
}

struct Surgery<'a, 'm> {
    condition: Value<'m>,
    sides: [Side<'m>; 2],
    meet: Block<'m>,
    /// What is made inside of the subgraphs.
    inside: FxHashSet<Value<'m>>,
    /// Choices between values from outside.
    outside: FxHashMap<[Value<'m>; 2], Value<'m>>,
    /// The first block of each cell, and the last; the exit is the last cell.
    firsts: Vec<Block<'m>>,
    lasts: Vec<Block<'m>>,
    /// By block of a side: its cell.
    cells: FxHashMap<Block<'m>, usize>,
    made: Vec<Block<'m>>,
    context: &'a mut Context<'m>,
}

/// Melds a candidate as planned.
pub(super) fn meld<'m>(
    region: &Region<'m>,
    mut candidate: Candidate<'m>,
    plan: Plan<'m>,
    flow: &Flow<'m>,
    replaced: &mut FxHashMap<Instruction<'m>, Instruction<'m>>,
    context: &mut Context<'m>,
) {
    let widened = candidate.widened.map(|(side, from, to)| (side, gather(to, "", |b| b == from, replaced)));
    if let Some((side, added)) = widened {
        let missing = candidate.cells.iter_mut().find(|cell| cell.blocks[side].is_none());
        missing.expect("the cell that has no partner").blocks[side] = Some(added);
    }
    let sides = [0, 1].map(|side| {
        let subgraph = &region.paths[side][candidate.places[side]];
        let mut blocks = subgraph.blocks.clone();
        blocks.extend(widened.filter(|(of, _)| *of == side).map(|(_, added)| added));
        let entry = blocks[0];
        let before = gather(entry, "", |from| !blocks.contains(&from), replaced);
        let exit = flow.block(subgraph.exit);
        let last = gather(exit, "", |from| blocks.contains(&from), replaced);
        let behind = gather(exit, "apart", |from| from == last, replaced);
        blocks.iter().for_each(|&block| drop_single_phis(block));
        blocks.push(last);
        Side { blocks, before, last, behind }
    });
    let mut phis = Vec::new();
    for pair in plan.phis {
        let pair = pair.map(|phi| newest(phi, replaced));
        phis.extend(pair.iter().all(|phi| phi.block().is_some()).then_some(pair));
    }
    let all = sides.iter().flat_map(|side| &side.blocks);
    let inside = all.flat_map(|block| block.instructions()).map(Instruction::as_value).collect();
    let at = sides[1].blocks[0];
    let meet = at.insert_before("meet");
    let firsts: Vec<Block> = candidate.cells.iter().map(|_| at.insert_before("melded")).collect();
    let mut cells = FxHashMap::default();
    for (number, cell) in candidate.cells.iter().enumerate() {
        cells.extend(cell.blocks.into_iter().flatten().map(|block| (block, number)));
    }
    cells.extend(sides.iter().map(|side| (side.last, candidate.cells.len())));
    context.joined(region.head, meet);
    let mut surgery = Surgery {
        condition: region.condition.as_instruction().map_or(region.condition, |i| newest(i, replaced).as_value()),
        sides,
        meet,
        inside,
        outside: FxHashMap::default(),
        lasts: firsts.clone(),
        firsts,
        cells,
        made: Vec::new(),
        context,
    };
    surgery.run(&candidate, phis, plan.steps, &plan.late);
    let Surgery { made, meet, lasts, sides, .. } = surgery;
    if let [terminator] = sides[0].before.entering()[..] {
        terminator.block().into_iter().for_each(|head| _ = fold(head));
    }
    drop_single_phis(meet);
    let exit = *lasts.last().expect("the exit's block");
    fold(exit);
    for block in made.into_iter().chain([meet, exit]).chain(sides.map(|side| side.behind)) {
        if !block.is_empty() {
            straighten(block);
        }
    }
}

/// What stands for a phi now.
fn newest<'m>(mut phi: Instruction<'m>, replaced: &FxHashMap<Instruction<'m>, Instruction<'m>>) -> Instruction<'m> {
    while let Some(&new) = replaced.get(&phi) {
        phi = new;
    }
    phi
}

impl<'m> Surgery<'_, 'm> {
    fn run(
        &mut self,
        candidate: &Candidate<'m>,
        pairs: Vec<[Instruction<'m>; 2]>,
        steps: Vec<Vec<Step<'m>>>,
        late: &[bool],
    ) {
        let mut phis = self.begin_phis(candidate, &pairs);
        for (number, steps) in steps.into_iter().enumerate() {
            let mut at = Place::at(self.firsts[number]);
            let mut chosen = Chosen { late: late[number], ..Chosen::default() };
            for step in steps {
                at = self.step(step, at, &mut chosen);
            }
            self.lasts[number] = at.block;
            self.made.push(self.firsts[number]);
            self.made.push(at.block);
            self.branch(candidate, number, at, &mut chosen);
        }
        self.leave(&mut phis);
        for joined in &phis {
            self.fill(joined);
        }
        for side in &self.sides {
            side.before.terminator().set_successor(0, self.meet);
        }
        self.meet.branch_to(self.firsts[0]);
        self.erase_the_old();
    }

    /// Phis of the cells: one for each pair, and those that have no partner. They stand for the old ones from here on;
    /// what they join is known when all else is done.
    fn begin_phis(&mut self, candidate: &Candidate<'m>, pairs: &[[Instruction<'m>; 2]]) -> Vec<Joined<'m>> {
        let mut phis = Vec::new();
        for (number, cell) in candidate.cells.iter().enumerate() {
            let mut wanted: Vec<[Option<Instruction<'m>>; 2]> = Vec::new();
            for (side, block) in cell.blocks.into_iter().enumerate() {
                for phi in block.into_iter().flat_map(Block::phis) {
                    match pairs.iter().find(|pair| pair[side] == phi) {
                        Some(pair) if side == 0 => wanted.push(pair.map(Some)),
                        Some(_) => {}
                        None => {
                            let mut alone = [None; 2];
                            alone[side] = Some(phi);
                            wanted.push(alone);
                        }
                    }
                }
            }
            for of in wanted {
                phis.push(self.begin_phi(number, self.firsts[number], of));
            }
        }
        phis
    }

    fn begin_phi(&mut self, cell: usize, block: Block<'m>, of: [Option<Instruction<'m>>; 2]) -> Joined<'m> {
        let some = of.into_iter().flatten().next().expect("a phi stands for another");
        // A phi is put before something.
        let held = block.is_empty().then(|| block.branch_to(self.meet));
        let phi = block.begin_phi(some.type_of(), "");
        held.into_iter().for_each(Instruction::erase);
        match of {
            [Some(a), Some(b)] => phi.join_locations(a, b),
            _ => phi.take_location(some),
        }
        for old in of.into_iter().flatten() {
            if !old.as_value().uses().is_empty() {
                old.as_value().replace_all_uses_with(phi.as_value());
            }
        }
        self.inside.insert(phi.as_value());
        Joined { cell, phi, of }
    }

    fn step(&mut self, step: Step<'m>, at: Place<'m>, chosen: &mut Chosen<'m>) -> Place<'m> {
        match step {
            Step::Pair(a, b) => {
                let operands = joined_operands(a, b, &|x, y| x == y);
                pair([a, b], at.block, operands, |values| self.choose(values, at, chosen));
                at
            }
            Step::Plain(list) => {
                list.into_iter().for_each(|i| i.move_to_end_of(at.block));
                at
            }
            Step::Guarded(one, other) => {
                let next = self.sides[1].blocks[0].insert_before("next");
                next.move_after(at.block);
                self.made.push(at.block);
                at.apart(self.condition, [one, other], next, self.context)
            }
        }
    }

    /// The value of one side or of the other: from outside by a phi where the paths meet; else where it is needed.
    fn choose(&mut self, values: [Value<'m>; 2], at: Place<'m>, chosen: &mut Chosen<'m>) -> Value<'m> {
        let [yes, no] = values;
        if yes == no {
            return yes;
        }
        let here = chosen.late && values.iter().all(|value| value.is_constant());
        if !here && values.iter().all(|value| !self.inside.contains(value)) {
            return self.choose_outside(values);
        }
        if let Some(&known) = chosen.known.get(&values) {
            return known;
        }
        let value = at.choose(self.condition, values);
        self.inside.insert(value);
        chosen.known.insert(values, value);
        value
    }

    fn choose_outside(&mut self, values: [Value<'m>; 2]) -> Value<'m> {
        let incoming = [(values[0], self.sides[0].before), (values[1], self.sides[1].before)];
        let meet = self.meet;
        *self.outside.entry(values).or_insert_with(|| meet.add_phi(&incoming, "").as_value())
    }

    /// Ends a cell as the blocks that it stands for end.
    fn branch(&mut self, candidate: &Candidate<'m>, number: usize, at: Place<'m>, chosen: &mut Chosen<'m>) {
        let cell = &candidate.cells[number];
        let ends = cell.blocks.map(|block| block.map(Block::terminator));
        let main = ends[candidate.shape].expect("a cell stands for a block of the side that has the shape");
        let leads = |i: &Surgery<'_, 'm>, end: Instruction<'m>| -> Vec<usize> {
            end.successors().into_iter().map(|to| i.cells[&to]).collect()
        };
        let ways = leads(self, main);
        let exit = self.firsts.len();
        if self.lasts.len() == exit {
            let block = self.sides[1].blocks[0].insert_before("left");
            self.lasts.push(block);
        }
        let to: Vec<Block> =
            ways.iter().map(|&way| if way == exit { self.lasts[exit] } else { self.firsts[way] }).collect();
        let Some(condition) = main.condition() else {
            at.block.branch_to(to[0]).take_location(main);
            return;
        };
        let mut conditions = [condition; 2];
        for (side, end) in ends.into_iter().enumerate() {
            if end == Some(main) {
                continue;
            }
            match end.filter(|end| end.condition().is_some()) {
                Some(end) => {
                    let own = end.condition().expect("looked at");
                    let turned = leads(self, end) != ways;
                    conditions[side] = if turned { Builder::at_end_of(at.block).not(own) } else { own };
                    if turned {
                        self.inside.insert(conditions[side]);
                    }
                }
                None => {
                    if let Some(edge) = cell.steer {
                        conditions[side] = at.block.function().truth(edge == 0);
                    }
                }
            }
        }
        let condition = self.choose(conditions, at, chosen);
        let branch = at.block.branch_on(condition, to[0], to[1]);
        match ends {
            [Some(a), Some(b)] => branch.join_locations(a, b),
            _ => branch.take_location(main),
        }
    }

    /// The last block: what both sides bring, and the branch by which they part again.
    fn leave(&mut self, phis: &mut Vec<Joined<'m>>) {
        let number = self.firsts.len();
        let block = self.lasts[number];
        self.firsts.push(block);
        let [ours, theirs] = [0, 1].map(|side| self.sides[side].last);
        let mut free = theirs.phis();
        for phi in ours.phis() {
            let alike = |other: &Instruction<'m>| {
                let cell = |from: Block<'m>| self.cells[&from];
                let mine: FxHashMap<_, _> = phi.incoming().into_iter().map(|(v, from)| (cell(from), v)).collect();
                let incoming = other.incoming();
                phi.type_of() == other.type_of()
                    && incoming.len() == mine.len()
                    && incoming.into_iter().all(|(v, from)| mine.get(&cell(from)) == Some(&v))
            };
            let found = free.iter().position(alike).map(|place| free.remove(place));
            let joined = self.begin_phi(number, block, [Some(phi), found]);
            phis.push(joined);
        }
        for phi in free {
            let joined = self.begin_phi(number, block, [None, Some(phi)]);
            phis.push(joined);
        }
        block.branch_on(self.condition, self.sides[0].behind, self.sides[1].behind);
        for side in 0..2 {
            // Phis behind name the block that leads there.
            let Side { behind, last, .. } = self.sides[side];
            assert!(behind.phis().is_empty() && last != behind, "the way out of a subgraph joins nothing");
        }
    }

    /// Gives a phi what the old ones joined.
    fn fill(&mut self, joined: &Joined<'m>) {
        let from = |surgery: &Surgery<'_, 'm>, side: usize, block: Block<'m>| {
            if block == surgery.sides[side].before { None } else { Some(surgery.cells[&block]) }
        };
        let mut values: Vec<(Option<usize>, [Option<Value<'m>>; 2])> = Vec::new();
        for (side, old) in joined.of.into_iter().enumerate() {
            for (value, block) in old.into_iter().flat_map(Instruction::incoming) {
                let cell = from(self, side, block);
                let place = values.iter().position(|(of, _)| *of == cell).unwrap_or_else(|| {
                    values.push((cell, [None; 2]));
                    values.len() - 1
                });
                values[place].1[side] = Some(value);
            }
        }
        for (cell, values) in values {
            let block = cell.map_or(self.meet, |cell| self.lasts[cell]);
            let value = match values {
                [Some(a), Some(b)] if a == b => a,
                [Some(a), Some(b)] if cell.is_none() => self.choose_outside([a, b]),
                [Some(a), Some(b)] => Builder::before(block.terminator()).select(self.condition, a, b),
                [a, b] => a.or(b).expect("a value of one side"),
            };
            joined.phi.add_incoming(value, block);
        }
        self.complete(joined);
    }

    /// Where lanes of the other side come by another way, there is nothing to bring.
    fn complete(&self, joined: &Joined<'m>) {
        let block = self.firsts[joined.cell];
        let mut missing: Vec<Block> = block.entering().into_iter().filter_map(Instruction::block).collect();
        if joined.cell == 0 {
            missing.push(self.meet);
        }
        missing.retain(|&from| joined.phi.incoming_from(from).is_none());
        for from in missing {
            joined.phi.add_incoming(joined.phi.type_of().poison(), from);
        }
    }

    fn erase_the_old(&self) {
        let blocks = || self.sides.iter().flat_map(|side| side.blocks.iter().copied());
        blocks().for_each(|block| block.terminator().erase());
        for block in blocks() {
            for phi in block.phis() {
                phi.erase();
            }
            assert!(block.is_empty(), "an instruction of a melded block was forgotten");
        }
        blocks().for_each(Block::erase);
    }
}
