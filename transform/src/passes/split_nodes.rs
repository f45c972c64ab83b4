//! `split-nodes`: structured control flow by copies of code, a baseline for `linearize`.
//!
//! ```text
//! before: if (a || b) x; y            after
//!   branch a, X, B                      branch a, X, B
//! B:                                  B:
//!   branch b, X, Y                      branch b, X', Y
//! X:                                  X':
//!   x                                   x
//!   goto Y                              goto Y
//! Y:                                  X:
//!   y                                   x
//!                                       goto Y
//!                                     Y:
//!                                       y
//! ```
//!
//! # Steps
//! 1. As for `linearize`: switches become branches, and control leaves at one place. Values that are used in other
//!    blocks live in variables while the pass works; LLVM's `mem2reg` makes values of them in the end.
//! 2. What reduces to one node is a part ([`flowgraph::Reduction`]). One of these is done, then again from here:
//!    - *backward copy*, of the innermost loop that is entered at several parts: its parts other than the head are
//!      copied, and edges from outside enter the copy, which leads to the head. So its first iteration is peeled.
//!    - *cut*, of the innermost loop that is left or continued by several edges: each notes where it leads and goes to
//!      one block at the loop's end, which leads back to the head or out of the loop; outside, branches lead on.
//!    - *forward copy*: the last part, in topological order, to which several others lead gets a copy for one of them.
//!
//! # Why the meaning is kept
//! Each path runs the same instructions in the same order, in copies or not; a cut adds a note and branches by it.
//!
//! # Limitation
//! The size may grow exponentially: a function stops growing at `growth` times its instructions, with a remark, and is
//! left as it is then. So is one that takes too many steps.
//! Functions with exceptions and the like are left, as `linearize` leaves them, and those in which lanes wait for what
//! others do in them. The order of copies is our own, since the paper leaves it open in part; copies that neighbours
//! could share are not shared.
//!
//! Source: Zhang and D'Hollander, *Using hammock graphs to structure programs*, IEEE TSE 30(4), 2004.

use std::rc::Rc;

use flowgraph::{DepthFirst, Graph, LoopId, Loops, NodeId};
use parameters::Settings;
use rustc_hash::FxHashSet;

use super::linearize::estimate::LEAST_SIZE;
use super::linearize::{GROWTH, Parts, is_structured, prepare, quotient};
use crate::flow::Flow;
use crate::llvm::{Block, Builder, Comparison, Function, Instruction, Module, Opcode};
use crate::pass::{Pass, Run};
use crate::remark::{Place, Reason, Remark, Split};

const NAME: &str = "split-nodes";

/// So many blocks are looked at for each instruction of a function, step by step: about as long as clang takes for it.
const LOOKS: usize = 64;

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: NAME,
    summary: "makes unstructured control flow structured by copies of code, the baseline of linearize; it has to run last",
    source: "Zhang, D'Hollander, TSE 2004",
    parameters: &[GROWTH],
    structures: true,
    run: Run::Module(run),
};

/// Structures functions one by one.
fn run(module: &mut Module, settings: &Settings) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let waits = Rc::default();
    for function in module.functions_to_optimise() {
        let switches = prepare::switches(function);
        if switches.is_empty() && is_structured(&Flow::of(function)) {
            continue;
        }
        let uncopied = || {
            let all = || function.blocks().into_iter().flat_map(Block::instructions);
            all().find(|i| !i.can_be_copied() && !i.is_terminator()).map(|i| (i, Reason::NoMerge))
        };
        let together = || prepare::convergent_in(function).or_else(|| prepare::held_up(function, &waits));
        if let Some((at, reason)) = prepare::obstacle(function).or_else(together).or_else(uncopied) {
            remarks.push(remark(NAME, function.name(), vec![at.place()], reason));
            continue;
        }
        let before = size(function);
        let mut done = Split { before, ..Split::default() };
        switches.into_iter().for_each(|block| prepare::lower_switch(block.terminator()));
        if !is_structured(&Flow::of(function)) {
            prepare::one_end(function);
            to_variables(function);
            let most = settings.number(GROWTH.name) as usize * before.1.max(LEAST_SIZE);
            let mut looks = 0;
            while looks < LOOKS * before.1.max(LEAST_SIZE) && step(function, most, &mut done) {
                looks += function.blocks().len();
            }
        }
        remarks.extend(outcome(NAME, function, done));
    }
    if remarks.iter().any(Remark::is_taken) {
        module.sweep();
        module.run_passes("function(mem2reg)").expect("LLVM knows its own passes, and the module is well formed");
    }
    remarks
}

pub(super) fn remark(pass: &'static str, function: String, places: Vec<Option<Place>>, reason: Reason) -> Remark {
    Remark { pass, function, subject: "control flow".to_owned(), places, reason, gain: None }
}

/// What became of a function, and how many parts are left if it is not structured.
pub(super) fn outcome(pass: &'static str, function: Function<'_>, done: Split) -> Vec<Remark> {
    let done = Split { after: size(function), ..done };
    let left = Parts::of(&Flow::of(function), &[]).left.len();
    let of = |reason| remark(pass, function.name(), Vec::new(), reason);
    std::iter::once(of(Reason::Split(done))).chain((left > 1).then(|| of(Reason::GoneOver { left }))).collect()
}

/// The blocks of a function, and the instructions but those that have to do with variables, which become values.
pub(super) fn size(function: Function<'_>) -> (usize, usize) {
    let blocks = function.blocks();
    let counts = |i: &Instruction<'_>| {
        !i.is_phi() && !matches!(i.opcode(), Opcode::LLVMAlloca | Opcode::LLVMLoad | Opcode::LLVMStore)
    };
    (blocks.len(), blocks.into_iter().flat_map(Block::instructions).filter(counts).count())
}

/// Has values that are used in other blocks, and phis, live in variables.
fn to_variables(function: Function<'_>) {
    for block in function.blocks() {
        for phi in block.phis() {
            let slot = function.add_slot(phi.type_of());
            for (value, from) in phi.incoming() {
                slot.store_before(value, from.terminator());
            }
            let load = slot.load_before(block.first_insertion_point());
            phi.as_value().replace_all_uses_with(load);
            phi.erase();
        }
    }
    let entry = function.entry();
    for block in function.blocks() {
        for instruction in block.instructions() {
            if block == entry && instruction.opcode() == Opcode::LLVMAlloca {
                continue;
            }
            let elsewhere: Vec<_> =
                instruction.as_value().uses().into_iter().filter(|u| u.user.block() != Some(block)).collect();
            if elsewhere.is_empty() {
                continue;
            }
            let slot = function.add_slot(instruction.type_of());
            slot.store_before(instruction.as_value(), instruction.next().expect("no terminator makes a value here"));
            for place in elsewhere {
                place.user.set_operand(place.operand, slot.load_before(place.user));
            }
        }
    }
}

/// One copy or cut, unless the function had more than `most` instructions then; whether there was anything to do.
fn step(function: Function<'_>, most: usize, done: &mut Split) -> bool {
    let flow = Flow::of(function);
    let parts = Parts::of(&flow, &[]);
    if parts.left.len() < 2 {
        return false;
    }
    let graph = quotient(flow.graph(), &parts.of, true);
    let room = most.saturating_sub(size(function).1);
    let work = Work { flow: &flow, parts: &parts, graph: &graph, function, room };
    let loops = Loops::of(&graph);
    for id in loops.ids().rev() {
        let members: FxHashSet<NodeId> = loops.members(id).iter().copied().collect();
        if loops.is_irreducible(id) {
            let copied = work.copy_backward(&loops, id, &members);
            done.backward += usize::from(copied);
            return copied;
        }
        if work.cut(loops.header(id), &members) {
            done.cuts += 1;
            return true;
        }
        if work.copy_forward(Some((loops.header(id), &members))) {
            done.forward += 1;
            return true;
        }
    }
    let copied = work.copy_forward(None);
    done.forward += usize::from(copied);
    copied
}

struct Work<'a, 'm> {
    flow: &'a Flow<'m>,
    parts: &'a Parts,
    /// Of the parts.
    graph: &'a Graph,
    function: Function<'m>,
    /// So many instructions may be added.
    room: usize,
}

impl<'m> Work<'_, 'm> {
    fn part(&self, block: Block<'m>) -> NodeId {
        self.parts.of[self.flow.node(block).index()]
    }

    fn blocks(&self, part: impl Fn(NodeId) -> bool) -> Vec<Block<'m>> {
        self.flow.blocks().iter().copied().filter(|&block| part(self.part(block))).collect()
    }

    /// The edges between parts, as a block and the place among its successors, that lead from and to such parts.
    fn edges(&self, fits: impl Fn(NodeId, NodeId) -> bool) -> Vec<(Block<'m>, usize, Block<'m>)> {
        let mut edges = Vec::new();
        for &block in self.flow.blocks() {
            let reached = self.flow.find(block).is_some();
            for (place, to) in block.terminator().successors().into_iter().enumerate() {
                if reached && self.part(to) != self.part(block) && fits(self.part(block), self.part(to)) {
                    edges.push((block, place, to));
                }
            }
        }
        edges
    }

    /// Whether blocks may be copied: whether the function does not get too large by it.
    fn has_room_for(&self, blocks: &[Block<'m>]) -> bool {
        blocks.iter().map(|block| block.len()).sum::<usize>() <= self.room
    }

    /// Peels the first iteration of a loop that is entered at several parts; whether there is room for that.
    fn copy_backward(&self, loops: &Loops, id: LoopId, members: &FxHashSet<NodeId>) -> bool {
        let head = loops.header(id);
        let blocks = self.blocks(|part| part != head && members.contains(&part));
        if !self.has_room_for(&blocks) {
            return false;
        }
        let entering = self.edges(|from, to| !members.contains(&from) && members.contains(&to) && to != head);
        let copies = self.function.copy_blocks(&blocks, &[]);
        for (block, place, to) in entering {
            block.terminator().set_successor(place, copies.of_block(to));
        }
        self.remove_unreached();
        true
    }

    /// Lets a loop be left and continued in one place; whether it was not so before.
    fn cut(&self, head: NodeId, members: &FxHashSet<NodeId>) -> bool {
        let edges = self.edges(|from, to| members.contains(&from) && (to == head || !members.contains(&to)));
        let ends: FxHashSet<Block<'m>> = edges.iter().map(|(block, ..)| *block).collect();
        let mut targets: Vec<Block<'m>> =
            edges.iter().map(|(.., to)| *to).filter(|to| self.part(*to) != head).collect();
        targets.sort_by_key(|target| self.flow.node(*target));
        targets.dedup();
        type Edges<'a, 'm> = Vec<&'a (Block<'m>, usize, Block<'m>)>;
        let (backs, exits): (Edges<'_, 'm>, Edges<'_, 'm>) = edges.iter().partition(|(.., to)| self.part(*to) == head);
        let from_head = exits.iter().all(|(block, ..)| self.part(*block) == head);
        // A block with one back edge and one exit, through which all others pass, is what a cut would make; one exit at
        // the head does as well.
        if targets.len() < 2 && (ends.len() == 1 || (backs.len() == 1 && from_head)) {
            return false;
        }
        let head = self.flow.block(head);
        let slot = self.function.add_slot(self.function.integer_type(32));
        let number = |target: Block<'m>| targets.iter().position(|other| *other == target).map_or(0, |i| i as u64 + 1);
        let foot = self.function.add_block("cut");
        for (block, place, to) in edges {
            let edge = self.function.add_block("leads");
            slot.store_before(slot.holds().number(number(to)), edge.branch_to(foot));
            block.terminator().set_successor(place, edge);
        }
        let mut at = foot;
        for (i, target) in std::iter::once(head).chain(targets.iter().copied()).take(targets.len().max(1)).enumerate() {
            // What is none of the others is the last.
            let next = match targets.last() {
                None => head,
                Some(&last) if i + 1 == targets.len() => last,
                Some(_) => self.function.add_block("out"),
            };
            let jump = at.branch_to(next);
            let (noted, number) = (slot.load_before(jump), slot.holds().number(i as u64));
            let is_it = Builder::before(jump).compare(Comparison::Equal, noted, number);
            jump.erase();
            at.branch_on(is_it, target, next);
            at = next;
        }
        true
    }

    /// Copies the last part of the function, or of a loop whose edges back do not count, that several parts lead to;
    /// whether there is one that can be copied.
    fn copy_forward(&self, within: Option<(NodeId, &FxHashSet<NodeId>)>) -> bool {
        let inside = |node: NodeId| within.is_none_or(|(_, members)| members.contains(&node));
        let walk = DepthFirst::of(self.graph);
        let order: Vec<NodeId> = walk.reverse_postorder().filter(|&node| inside(node)).collect();
        let place = |node: NodeId| order.iter().position(|&other| other == node);
        let last = within.is_none().then(|| order.iter().copied().find(|&n| self.graph.successors(n).is_empty()));
        for &node in order.iter().rev() {
            let from: Vec<NodeId> =
                self.graph.predecessors(node).iter().copied().filter(|&from| place(from).is_some()).collect();
            let is_head = node == self.graph.entry() || within.is_some_and(|(head, _)| head == node);
            // The one block where a loop or the function ends is not copied: what reaches it is done.
            let leaves = |&to: &NodeId| !inside(to) || within.is_some_and(|(head, _)| head == to);
            let is_end = Some(Some(node)) == last || self.graph.successors(node).iter().any(leaves);
            if from.len() < 2 || is_head || is_end {
                continue;
            }
            let chosen = from.into_iter().max_by_key(|&from| place(from)).expect("several lead here");
            let blocks = self.blocks(|part| part == node);
            if !self.has_room_for(&blocks) {
                return false;
            }
            let copies = self.function.copy_blocks(&blocks, &[]);
            for (block, place, to) in self.edges(|from, to| from == chosen && to == node) {
                block.terminator().set_successor(place, copies.of_block(to));
            }
            return true;
        }
        false
    }

    fn remove_unreached(&self) {
        let flow = Flow::of(self.function);
        let walk = DepthFirst::of(flow.graph());
        let dead: Vec<Block<'m>> =
            flow.graph().nodes().filter(|&node| !walk.reaches(node)).map(|node| flow.block(node)).collect();
        dead.iter().for_each(|block| block.terminator().erase());
        dead.into_iter().for_each(Block::erase);
    }
}
