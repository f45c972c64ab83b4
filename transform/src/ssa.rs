//! Restores SSA form after the control flow was changed.
//!
//! A pass that joins paths leaves values that no longer dominate their uses, although on each path that the program
//! really takes the definition still comes first. Each such value gets phis where its definition meets other paths.
//! Paths that pass no definition bring undefined values; the program cannot take these paths.
//!
//! In a loop, such a path would lead through the definition of the iteration before, and the phi would carry that value
//! around the loop for nothing. So the value is *forgotten* (it is undefined from there on) at each branch whose paths
//! were joined, that strictly dominates the definition, and whose paths have not met again before it. That is sound:
//! from such a branch no path leads to a use without the definition. Otherwise a path from the entry to the branch and
//! on to the use would avoid the definition, which dominated the use before the change. Forgetting at fewer branches is
//! sound too; at most [`MOST_OPEN`] are taken, the innermost.
//!
//! # Steps
//! 1. Find the values, and their uses that they don't dominate.
//! 2. For each value: where it would need phis if it were live everywhere, which is the iterated dominance frontier of
//!    the places that define or forget it; then what each use needs, up the dominator tree; then what those phis need
//!    in turn. Only these are made.
//! 3. Phis that join one value with nothing else make way for that value.
//!
//! Source: Cytron et al., ACM TOPLAS 13(4), 1991; phis where they are needed only, as in Choi, Cytron, Ferrante,
//! *Automatic construction of sparse data flow evaluation graphs*, POPL 1991. The phis, their order and their names are
//! those that LLVM's `mem2reg` makes of a variable for each value (a test compares the two). But work for a value is
//! that of the blocks between its definition and its uses, while `mem2reg` walks all that the definition, and each phi,
//! dominates, and back from the uses to where all paths begin.

use flowgraph::{Components, DominanceFrontiers, Dominators, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::{Context, Joined};
use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Opcode, Type, Use, Value};

mod variables;

pub(crate) use self::variables::promote;

/// At so many branches a value is forgotten: more branches inside each other, all joined, would make the work grow with
/// the square of their depth.
const MOST_OPEN: usize = 64;

/// Gives every use a definition that dominates it. Returns how many values had uses without one.
pub(crate) fn repair<'m>(context: &mut Context<'m>, joined: &[Joined<'m>]) -> usize {
    let (flow, dominators) = (context.flow(), context.dominators());
    let open = OpenBranches::of(&flow, &dominators, joined);
    let broken = broken_values(&flow, &dominators);
    let mut placing = Placing::new(&flow, &dominators);
    let mut phis = Vec::new();
    // Of several phis of a block, that of the first value comes first: each is put in front of those before.
    for value in broken.iter().rev() {
        placing.place(value, open.at(value.node), &mut phis);
    }
    simplify(phis, &flow, &dominators);
    broken.len()
}

/// A value that does not dominate all of its uses.
struct Broken<'m> {
    instruction: Instruction<'m>,
    node: NodeId,
    /// The uses that it does not dominate.
    uses: Vec<Use<'m>>,
}

/// All of them, in the order of the blocks.
fn broken_values<'m>(flow: &Flow<'m>, dominators: &Dominators) -> Vec<Broken<'m>> {
    let mut broken = Vec::new();
    for &block in flow.blocks() {
        let node = flow.node(block);
        if dominators.depth(node).is_none() {
            continue;
        }
        for instruction in block.instructions() {
            let uses = broken_uses(instruction, node, flow, dominators);
            if !uses.is_empty() {
                broken.push(Broken { instruction, node, uses });
            }
        }
    }
    broken
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

/// A block as one value sees it; what it holds of a value before is out of date.
#[derive(Default)]
struct Place<'m> {
    /// The number of the value.
    of: usize,
    /// What the value is from here on: itself, or undefined.
    defines: Option<Value<'m>>,
    /// Whether a phi is needed here, if the value is live.
    joins: bool,
    phi: Option<Instruction<'m>>,
    /// What reaches the beginning of the block, where it was asked for.
    source: Option<Source>,
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From what this block defines.
    Definition(NodeId),
    /// From the phi of this block.
    Phi(NodeId),
    /// From no definition.
    Nowhere,
}

/// The placing of phis, value after value.
struct Placing<'a, 'm> {
    flow: &'a Flow<'m>,
    dominators: &'a Dominators,
    frontiers: DominanceFrontiers,
    components: Components,
    entries: Vec<Vec<NodeId>>,
    /// By node.
    places: Vec<Place<'m>>,
    /// The number of the value that is looked at.
    number: usize,
}

impl<'a, 'm> Placing<'a, 'm> {
    fn new(flow: &'a Flow<'m>, dominators: &'a Dominators) -> Placing<'a, 'm> {
        Placing {
            flow,
            dominators,
            frontiers: DominanceFrontiers::of(flow.graph(), dominators),
            components: Components::of(flow.graph()),
            entries: entries(flow),
            places: flow.blocks().iter().map(|_| Place::default()).collect(),
            number: 0,
        }
    }

    /// Places the phis of a value, adds them to `phis`, and mends its uses.
    fn place(&mut self, value: &Broken<'m>, forgotten_at: impl Iterator<Item = NodeId>, phis: &mut Vec<Phi<'m>>) {
        self.number += 1;
        let of_type = value.instruction.type_of();
        let mut definitions = vec![match value.instruction.opcode() {
            // The result of an invoke is there in the block where it goes on.
            Opcode::LLVMInvoke => self.flow.node(value.instruction.successors()[0]),
            _ => value.node,
        }];
        definitions.extend(forgotten_at);
        for &node in &definitions[1..] {
            self.at(node).defines = Some(of_type.undef());
        }
        if self.at(definitions[0]).defines.is_none() {
            self.at(definitions[0]).defines = Some(value.instruction.as_value());
        }
        let needed: Vec<(NodeId, bool)> = value.uses.iter().map(|&u| self.needed(u, definitions[0])).collect();
        let top = self.top(&definitions, &needed);
        let values = self.join(definitions, &needed, top, of_type, phis);
        for (u, value) in value.uses.iter().zip(values) {
            u.user.set_operand(u.operand, value);
        }
    }

    /// Places phis below `top` where what the blocks define meets: the values that are needed.
    fn join(
        &mut self,
        definitions: Vec<NodeId>,
        needed: &[(NodeId, bool)],
        top: NodeId,
        of_type: Type<'m>,
        phis: &mut Vec<Phi<'m>>,
    ) -> Vec<Value<'m>> {
        self.mark_joins(definitions, top);
        let sources: Vec<Source> = needed.iter().map(|&(node, at_end)| self.source(node, at_end, top)).collect();
        let joins = self.live_joins(&sources, top);
        for (version, &join) in joins.iter().enumerate() {
            let phi = self.flow.block(join).begin_phi(of_type, &format!(".{version}"));
            self.at(join).phi = Some(phi);
        }
        for &join in &joins {
            let phi = self.at(join).phi.expect("one was made just now");
            let mut unreached = Vec::new();
            for place in 0..self.entries[join.index()].len() {
                let from = self.entries[join.index()][place];
                if self.dominators.depth(from).is_some() {
                    let source = self.source(from, true, top);
                    phi.add_incoming(self.value(source, of_type), self.flow.block(from));
                } else {
                    unreached.push(self.flow.block(from));
                }
            }
            phis.push(Phi { phi, unreached });
        }
        sources.into_iter().map(|source| self.value(source, of_type)).collect()
    }

    /// What the value that is looked at knows of a block.
    fn at(&mut self, node: NodeId) -> &mut Place<'m> {
        let place = &mut self.places[node.index()];
        if place.of != self.number {
            *place = Place { of: self.number, ..Place::default() };
        }
        place
    }

    /// The block where a use needs the value, and whether at its end: a branch forgets before it decides, and what
    /// an invoke makes is there from the first instruction on.
    fn needed(&self, u: Use<'m>, defined_in: NodeId) -> (NodeId, bool) {
        let node = self.flow.node(u.needed_in().expect("a broken use has a place"));
        (node, u.user.is_phi() || u.user.is_terminator() || node == defined_in)
    }

    /// A block that dominates the definition and all that needs it, and at whose beginning nothing of it is left, or
    /// nobody asks: the phis are below.
    fn top(&mut self, definitions: &[NodeId], needed: &[(NodeId, bool)]) -> NodeId {
        let common = |top: NodeId, &(node, _): &(NodeId, bool)| {
            self.dominators.nearest_common(top, node).expect("control reaches both")
        };
        let mut top = needed.iter().fold(definitions[0], common);
        let is_asked = needed.contains(&(top, false));
        if top != definitions[0] && !is_asked && self.at(top).defines.is_some() {
            return top;
        }
        // The value of the iteration before would still be there at the beginning of a block of its loop.
        let in_loop = |top| definitions.iter().any(|&d| self.components.component(top) == self.components.component(d));
        while let Some(above) = self.dominators.idom(top).filter(|_| in_loop(top)) {
            top = above;
        }
        top
    }

    /// Marks the iterated dominance frontier of the definitions, as far as it lies below `top`.
    fn mark_joins(&mut self, definitions: Vec<NodeId>, top: NodeId) {
        let mut open = definitions;
        while let Some(node) = open.pop() {
            for place in 0..self.frontiers.frontier(node).len() {
                let join = self.frontiers.frontier(node)[place];
                let is_new = join != top && self.dominators.dominates(top, join) && !self.at(join).joins;
                if is_new {
                    self.at(join).joins = true;
                    open.push(join);
                }
            }
        }
    }

    /// The joins whose phis somebody asks for, in order.
    fn live_joins(&mut self, asked: &[Source], top: NodeId) -> Vec<NodeId> {
        let mut found = FxHashSet::default();
        let mut open: Vec<Source> = asked.to_vec();
        while let Some(source) = open.pop() {
            let Source::Phi(join) = source else { continue };
            if found.insert(join) {
                for &from in self.flow.graph().predecessors(join) {
                    if self.dominators.depth(from).is_some() {
                        open.push(self.source(from, true, top));
                    }
                }
            }
        }
        let mut found: Vec<NodeId> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    /// Where the value at the beginning or end of a block comes from: the nearest block above that defines it or needs
    /// a phi. All that is found on the way is kept.
    fn source(&mut self, node: NodeId, at_end: bool, top: NodeId) -> Source {
        if at_end && self.at(node).defines.is_some() {
            return Source::Definition(node);
        }
        let mut way = Vec::new();
        let mut here = node;
        let source = loop {
            let place = self.at(here);
            if let Some(known) = place.source {
                break known;
            }
            way.push(here);
            if place.joins {
                break Source::Phi(here);
            }
            let Some(above) = self.dominators.idom(here).filter(|_| here != top) else { break Source::Nowhere };
            if self.at(above).defines.is_some() {
                break Source::Definition(above);
            }
            here = above;
        };
        for node in way {
            self.at(node).source = Some(source);
        }
        source
    }

    fn value(&mut self, source: Source, of_type: Type<'m>) -> Value<'m> {
        match source {
            Source::Definition(node) => self.at(node).defines.expect("the block defines it"),
            Source::Phi(node) => self.at(node).phi.expect("the join is live").as_value(),
            Source::Nowhere => of_type.undef(),
        }
    }
}

/// By node: from where it is entered, once for each edge, in the order in which `mem2reg` visits them: it goes on to a
/// block's first successor, and to the others when that leads to nothing new, the last one first. Then what is not
/// reached, in the order of the blocks.
fn entries(flow: &Flow<'_>) -> Vec<Vec<NodeId>> {
    let mut entries: Vec<Vec<NodeId>> = vec![Vec::new(); flow.blocks().len()];
    let mut seen = vec![false; flow.blocks().len()];
    // The edges that leave a block, and how many there are to each successor.
    let leaving = |node: NodeId| {
        let mut edges: Vec<(NodeId, NodeId, usize)> = Vec::new();
        let mut places: FxHashMap<NodeId, usize> = FxHashMap::default();
        for to in flow.block(node).terminator().successors() {
            let to = flow.node(to);
            let place = *places.entry(to).or_insert(edges.len());
            if place == edges.len() {
                edges.push((node, to, 0));
            }
            edges[place].2 += 1;
        }
        edges
    };
    let mut node = flow.graph().entry();
    let mut edges = Vec::new();
    loop {
        if !std::mem::replace(&mut seen[node.index()], true) {
            let mut leaving = leaving(node);
            // The last one put there is gone on to at once.
            if !leaving.is_empty() {
                leaving.rotate_left(1);
            }
            edges.extend(leaving);
        }
        let Some((from, to, times)) = edges.pop() else { break };
        entries[to.index()].extend(std::iter::repeat_n(from, times));
        node = to;
    }
    for node in flow.graph().nodes().filter(|node| !seen[node.index()]) {
        for (from, to, times) in leaving(node) {
            entries[to.index()].extend(std::iter::repeat_n(from, times));
        }
    }
    entries
}

/// A phi that was placed.
struct Phi<'m> {
    phi: Instruction<'m>,
    /// Where control could come from, if it came there.
    unreached: Vec<Block<'m>>,
}

/// Takes phis away that join one value with nothing else, and finishes the others.
fn simplify<'m>(phis: Vec<Phi<'m>>, flow: &Flow<'m>, dominators: &Dominators) {
    let numbers: FxHashMap<Instruction, usize> = phis.iter().enumerate().map(|(i, placed)| (placed.phi, i)).collect();
    let mut gone = vec![false; phis.len()];
    let mut open: Vec<usize> = (0..phis.len()).collect();
    while let Some(number) = open.pop() {
        let phi = phis[number].phi;
        let Some(only) = (if gone[number] { None } else { only_value(phi, flow, dominators) }) else { continue };
        gone[number] = true;
        open.extend(phi.as_value().uses().into_iter().filter_map(|u| numbers.get(&u.user)));
        phi.as_value().replace_all_uses_with(only);
        phi.erase();
    }
    for (placed, _) in phis.iter().zip(gone).filter(|(_, gone)| !gone) {
        for &from in &placed.unreached {
            placed.phi.add_incoming(placed.phi.type_of().poison(), from);
        }
    }
}

/// The one value, besides itself, that a phi joins, or joins with undefined ones where that value is there anyway.
fn only_value<'m>(phi: Instruction<'m>, flow: &Flow<'m>, dominators: &Dominators) -> Option<Value<'m>> {
    let undefined = phi.type_of().undef();
    let mut only = None;
    let mut joins_undefined = false;
    for (value, _) in phi.incoming() {
        if value == undefined {
            joins_undefined = true;
        } else if value != phi.as_value() && only.replace(value).is_some_and(|other| other != value) {
            return None;
        }
    }
    match only.map(|value| (value, value.as_instruction())) {
        None => Some(undefined),
        Some((_, Some(made))) if joins_undefined && !is_there_before(made, phi, flow, dominators) => None,
        Some((value, _)) => Some(value),
    }
}

/// Whether what an instruction makes is there when control reaches the block of a phi.
fn is_there_before<'m>(made: Instruction<'m>, phi: Instruction<'m>, flow: &Flow<'m>, dominators: &Dominators) -> bool {
    let [made_in, joined_in] = [made, phi].map(|i| flow.node(i.block().expect("neither was erased")));
    if made.opcode() == Opcode::LLVMInvoke {
        let goes_on = flow.node(made.successors()[0]);
        return flow.edge_dominates(dominators, made_in, goes_on, joined_in);
    }
    made_in != joined_in && dominators.dominates(made_in, joined_in)
}

#[cfg(test)]
mod tests;
