//! Loops in which lanes wait for others: those that are left by what another lane writes.
//!
//! ```text
//! again:
//!   was = exchange lock, 1
//!   branch (was != 0), again, on
//! ```
//!
//! A loop waits if a branch that leaves it depends, inside of the loop, on what may tell of another lane: a volatile or
//! atomic access, assembly, a call of what has these. Branches that choose between values count too.
//!
//! Two kinds go on by themselves, whatever others do:
//! - A loop that goes back only where its compare-and-exchange failed, of what it read itself before: another lane's
//!   exchange succeeded then.
//! - What a lane adds a number to and reads is another number each time: it takes the next item, and the items end.
//!
//! *Limitation*: what goes by way of memory that is read plainly is not followed.

use flowgraph::{Dominators, Loops, NodeId};
use rustc_hash::FxHashSet;

use crate::flow::Flow;
use crate::llvm::{Block, Instruction, Opcode, Value};

/// The members of each loop in which lanes wait for others; `tells` says which instructions tell of others.
pub(super) fn turning<'m>(
    flow: &Flow<'m>,
    loops: &Loops,
    mut tells: impl FnMut(Instruction<'m>) -> bool,
) -> Vec<Vec<Block<'m>>> {
    if loops.count() == 0 {
        return Vec::new();
    }
    let dominators = Dominators::of(flow.graph());
    let mut found = Vec::new();
    for id in loops.ids() {
        let members: FxHashSet<NodeId> = loops.members(id).iter().copied().collect();
        let turn = Turn { flow, dominators: &dominators, members: &members, header: loops.header(id) };
        let latches = loops.latches(id);
        if !latches.iter().all(|&latch| turn.fails_for_another(latch)) && turn.is_left_by(latches.len(), &mut tells) {
            found.push(members.iter().map(|&node| flow.block(node)).collect());
        }
    }
    found
}

struct Turn<'a, 'm> {
    flow: &'a Flow<'m>,
    dominators: &'a Dominators,
    members: &'a FxHashSet<NodeId>,
    header: NodeId,
}

impl<'m> Turn<'_, 'm> {
    fn is_inside(&self, i: Instruction<'m>) -> bool {
        i.block().and_then(|block| self.flow.find(block)).is_some_and(|node| self.members.contains(&node))
    }

    fn inside(&self, value: Value<'m>) -> Option<Instruction<'m>> {
        value.as_instruction().filter(|&i| self.is_inside(i))
    }

    fn end(&self, node: NodeId) -> Instruction<'m> {
        self.flow.block(node).terminator()
    }

    /// Whether a branch that leaves the loop depends on what tells of others.
    fn is_left_by(&self, latches: usize, tells: &mut impl FnMut(Instruction<'m>) -> bool) -> bool {
        let leaves = |&node: &NodeId| self.flow.graph().successors(node).iter().any(|to| !self.members.contains(to));
        let mut open: Vec<Value<'m>> = Vec::new();
        for node in self.members.iter().copied().filter(leaves) {
            open.extend(self.end(node).operands());
        }
        let mut seen: FxHashSet<Instruction<'m>> = FxHashSet::default();
        while let Some(value) = open.pop() {
            let Some(i) = self.inside(value).filter(|&i| seen.insert(i)) else { continue };
            if tells(i) && !self.takes_the_next(i) {
                return true;
            }
            open.extend(i.operands());
            if i.is_phi() {
                for node in self.deciding(i, latches) {
                    open.extend(self.end(node).operands());
                }
            }
        }
        false
    }

    /// The blocks whose branches decide which value a phi gets: those between it and what dominates it.
    fn deciding(&self, phi: Instruction<'m>, latches: usize) -> Vec<NodeId> {
        let Some(home) = phi.block().and_then(|block| self.flow.find(block)) else { return Vec::new() };
        if home == self.header && latches < 2 {
            return Vec::new();
        }
        let top = self.dominators.idom(home).filter(|_| home != self.header);
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut open: Vec<NodeId> = self.flow.graph().predecessors(home).to_vec();
        while let Some(node) = open.pop() {
            if self.members.contains(&node) && seen.insert(node) && Some(node) != top && node != self.header {
                open.extend(self.flow.graph().predecessors(node));
            }
        }
        seen.into_iter().collect()
    }

    /// Whether control goes back from a block only where a compare-and-exchange failed, of what the loop read itself.
    fn fails_for_another(&self, latch: NodeId) -> bool {
        let end = self.end(latch);
        let Some(condition) = end.condition().and_then(|condition| self.inside(condition)) else { return false };
        let header = self.flow.block(self.header);
        if condition.opcode() != Opcode::LLVMExtractValue || end.successors()[1] != header {
            return false;
        }
        // What it found is no truth value, whether it succeeded is one.
        let exchange = condition.operands().first().and_then(|&of| self.inside(of));
        exchange.is_some_and(|exchange| {
            exchange.opcode() == Opcode::LLVMAtomicCmpXchg
                && condition.type_of().bits() == Some(1)
                && exchange.operand(2).type_of().bits() != Some(1)
                && self.inside(exchange.operand(1)).is_some()
        })
    }

    /// Whether it adds a number to what nothing else in the loop changes.
    fn takes_the_next(&self, i: Instruction<'m>) -> bool {
        let is_of_the_same = |other: Instruction<'m>| {
            let is_atomic = matches!(other.opcode(), Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg);
            other != i && is_atomic && other.operand(0) == i.operand(0)
        };
        let others = || self.members.iter().flat_map(|&node| self.flow.block(node).instructions());
        i.is_atomic_count() && !others().any(is_of_the_same)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::{InFunction, Waits};
    use super::*;
    use crate::llvm::Module;

    /// Whether lanes wait for others in a loop of these lines, which end with a branch to `%on` or `%again`.
    fn waits(body: &str) -> bool {
        let text = format!(
            "@x = global i32 0\n@y = global i32 0\ndeclare i32 @pthread_mutex_trylock(ptr)\n\
             declare i32 @unknown()\n\
             define internal i32 @is_set() noinline {{\n  %v = load volatile i32, ptr @x\n  ret i32 %v\n}}\n\
             define void @f(i32 %n) {{\nentry:\n  br label %again\nagain:\n\
             %i = phi i32 [ 0, %entry ], [ %more, %last ]\n{body}\nlast:\n  %more = add i32 %i, 1\n\
             br label %again\non:\n  ret void\n}}\n"
        );
        let module = Module::parse(text.as_bytes(), "loop.ll").unwrap();
        let flow = Flow::of(module.functions()[1]);
        let waits = Rc::new(RefCell::new(Waits::default()));
        InFunction::of(&waits, &flow, &Loops::of(flow.graph())).any()
    }

    #[test]
    fn loops_that_are_left_by_what_another_lane_writes_wait() {
        let leave = "%c = icmp eq i32 %v, 0\nbr i1 %c, label %on, label %last";
        for read in [
            "%v = atomicrmw xchg ptr @x, i32 1 acquire",
            "%v = load volatile i32, ptr @x",
            "%v = load atomic i32, ptr @x acquire, align 4",
            "%p = cmpxchg ptr @x, i32 0, i32 1 acquire monotonic\n%v = extractvalue { i32, i1 } %p, 0",
            "%v = call i32 @is_set()",
            "%v = call i32 @pthread_mutex_trylock(ptr @x)",
            "%v = call i32 asm sideeffect \"xchg $0, ($1)\", \"=r,r,~{memory}\"(ptr @x)",
            // As many as it adds it takes away again.
            "%v = atomicrmw add ptr @x, i32 1 acquire\n%u = atomicrmw sub ptr @x, i32 1 acquire",
            "%v = atomicrmw add ptr @x, i32 0 acquire",
        ] {
            assert!(waits(&format!("{read}\n{leave}")), "{read}");
        }
        // By a branch in it, which chooses what is asked at the end.
        assert!(waits(
            "%v = load volatile i32, ptr @x\n%c = icmp eq i32 %v, 0\nbr i1 %c, label %a, label %b\n\
             a:\nbr label %b\nb:\n%go = phi i1 [ true, %a ], [ false, %again ]\nbr i1 %go, label %on, label %last"
        ));
    }

    #[test]
    fn loops_that_end_whatever_others_do_wait_for_nobody() {
        for read in [
            // A volatile or atomic access by which the loop is not left.
            "%v = load volatile i32, ptr @x\nstore i32 %v, ptr @y\n%c = icmp eq i32 %i, %n",
            "%v = atomicrmw xchg ptr @x, i32 1 acquire\n%c = icmp eq i32 %i, %n",
            // The next item.
            "%v = atomicrmw add ptr @x, i32 1 monotonic\n%c = icmp sge i32 %v, %n",
            // What is not known.
            "%v = call i32 @unknown()\n%c = icmp sge i32 %v, %n",
            "%v = load i32, ptr @x\n%c = icmp sge i32 %v, %n",
        ] {
            assert!(!waits(&format!("{read}\nbr i1 %c, label %on, label %last")), "{read}");
        }
    }
}
