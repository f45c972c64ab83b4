//! Random SPMD programs: every lane runs the same one.

use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::{Control, EpisodeId, LockId};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// Statements of a program; every lane runs the same program and decides by its number and a counter.
#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Straight(u8),
    Branch {
        seed: u8,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Loop {
        seed: u8,
        most: u8,
        body: Vec<Statement>,
    },
    Call {
        function: u8,
    },
    Meet,
    Locked {
        lock: u8,
        body: Vec<Statement>,
    },
    /// A critical section with a body, which may hold others: their locks are other ones, so no order of locks is
    /// broken.
    Section {
        lock: u8,
        body: Vec<Statement>,
    },
}

/// Straight code of fewer than so many instructions, or a call.
fn leaf(length: u8) -> impl Strategy<Value = Statement> {
    prop_oneof![(1..length).prop_map(Statement::Straight), (0u8..2).prop_map(|function| Statement::Call { function })]
}

/// A branch or a loop around blocks.
fn around(block: impl Strategy<Value = Vec<Statement>> + Clone + 'static) -> [BoxedStrategy<Statement>; 2] {
    let branch = (any::<u8>(), block.clone(), block.clone());
    let branch = branch.prop_map(|(seed, then, otherwise)| Statement::Branch { seed, then, otherwise });
    let repeated = (any::<u8>(), 1u8..4, block).prop_map(|(seed, most, body)| Statement::Loop { seed, most, body });
    [branch.boxed(), repeated.boxed()]
}

pub(crate) fn statements(depth: u32) -> impl Strategy<Value = Vec<Statement>> {
    leaf(5)
        .prop_recursive(depth, 24, 4, |inner| {
            let block = prop::collection::vec(inner, 0..4);
            let [branch, repeated] = around(block.clone());
            prop_oneof![branch, repeated, (0u8..2, block).prop_map(|(lock, body)| Statement::Locked { lock, body })]
        })
        .prop_flat_map(|s| (Just(s), any::<bool>()))
        .prop_map(|(s, meets)| if meets { vec![s, Statement::Meet] } else { vec![s] })
        .prop_flat_map(|first| prop::collection::vec(Just(first), 1..3))
        .prop_map(|all| all.concat())
}

/// Statements, and critical sections in critical sections.
pub(crate) fn sections(depth: u32) -> impl Strategy<Value = Vec<Statement>> {
    let statement = leaf(4).prop_recursive(depth, 24, 4, |inner| {
        let block = prop::collection::vec(inner, 0..4);
        let [branch, repeated] = around(block.clone());
        prop_oneof![branch, repeated, (any::<u8>(), block).prop_map(|(lock, body)| Statement::Section { lock, body })]
    });
    prop::collection::vec(statement, 1..4)
}

/// Runs the program for one lane. Code addresses follow from the place in the program, so that lanes share them.
struct Run {
    lane: u64,
    decisions: u64,
    does: Vec<Does>,
    episodes: u32,
    inside_branch: u32,
    inside_sections: u32,
}

impl Run {
    fn instruction(&mut self, pc: u64, kind: Kind, sp: i32, memory: u8) {
        let instruction = Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(sp), memory };
        let addresses = (0..u64::from(memory)).map(|m| pc * 64 + self.lane * 8 + m).collect();
        self.does.push(Does::Runs(instruction, addresses));
    }

    fn decide(&mut self, seed: u8) -> u64 {
        self.decisions += 1;
        (self.lane + 1).wrapping_mul(u64::from(seed) + self.decisions).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33
    }

    /// Runs the statements, whose code begins at `pc`; returns where it ends.
    fn run(&mut self, all: &[Statement], mut pc: u64, runs: bool) -> u64 {
        for statement in all {
            pc = self.statement(statement, pc, runs);
        }
        pc
    }

    fn emit(&mut self, runs: bool, pc: u64, kind: Kind, sp: i32, memory: u8) -> u64 {
        if runs {
            self.instruction(pc, kind, sp, memory);
        }
        pc + 1
    }

    fn statement(&mut self, statement: &Statement, pc: u64, runs: bool) -> u64 {
        match statement {
            Statement::Straight(length) => {
                (0..*length).fold(pc, |pc, i| self.emit(runs, pc, Kind::Plain, 0, u8::from(i == 1)))
            }
            Statement::Branch { seed, then, otherwise } => {
                let taken = runs && self.decide(*seed).is_multiple_of(2);
                let pc = self.emit(runs, pc, Kind::Branch, 0, 0);
                self.inside_branch += 1;
                let pc = self.run(then, pc, runs && taken);
                let pc = self.emit(runs && taken, pc, Kind::Jump, 0, 0);
                let pc = self.run(otherwise, pc, runs && !taken);
                self.inside_branch -= 1;
                pc
            }
            Statement::Loop { seed, most, body } => {
                let trips = if runs { 1 + self.decide(*seed) % u64::from(*most) } else { 1 };
                self.inside_branch += 1;
                let end = (0..trips).fold(pc, |_, _| {
                    let end = self.run(body, pc, runs);
                    self.emit(runs, end, Kind::Branch, 0, 0)
                });
                self.inside_branch -= 1;
                end
            }
            Statement::Call { function } => {
                let after = self.emit(runs, pc, Kind::Call, -8, 0);
                // One function lies below all callers, the other above.
                let entry = if *function == 0 { 0x10 } else { 0x10_0000 };
                let pc = self.emit(runs, entry, Kind::Plain, -16, 0);
                let pc = self.emit(runs, pc, Kind::Plain, 0, 1);
                let pc = self.emit(runs, pc, Kind::Plain, 16, 0);
                self.emit(runs, pc, Kind::Return, 8, 0);
                after
            }
            // Only where every lane comes: a barrier in a branch would never open.
            Statement::Meet if self.inside_branch == 0 => {
                // Every other one in a function that is not replayed: who waits there goes on in the caller.
                let called = self.episodes % 2 == 1;
                let pc = if called { self.emit(true, pc, Kind::Call, 0, 0) } else { pc };
                self.does.push(Does::Comes(Control::Meet(EpisodeId(self.episodes))));
                self.does.extend(called.then_some(Does::Comes(Control::Level(1))));
                self.episodes += 1;
                pc
            }
            Statement::Meet => pc,
            Statement::Locked { lock, body } => {
                if runs {
                    self.does.push(Does::Comes(Control::Acquire(LockId(u32::from(*lock)))));
                }
                // Episodes inside would deadlock, nested locks might: code inside is straight.
                let pc = self.emit(runs, pc, Kind::Plain, 0, body.len().min(2) as u8);
                if runs {
                    self.does.push(Does::Comes(Control::Release(LockId(u32::from(*lock)))));
                }
                pc
            }
            Statement::Section { lock, body } => {
                // By lane and statement one of two locks of this depth.
                let number = 10 + 2 * self.inside_sections + (self.lane as u32 + u32::from(*lock)) / 2 % 2;
                let control = |does: &mut Vec<Does>, control| does.extend(runs.then_some(Does::Comes(control)));
                control(&mut self.does, Control::Acquire(LockId(number)));
                (self.inside_sections, self.inside_branch) = (self.inside_sections + 1, self.inside_branch + 1);
                let pc = self.emit(runs, pc, Kind::Plain, 0, 0);
                let pc = self.run(body, pc, runs);
                (self.inside_sections, self.inside_branch) = (self.inside_sections - 1, self.inside_branch - 1);
                control(&mut self.does, Control::Release(LockId(number)));
                self.emit(runs, pc, Kind::Plain, 0, 0)
            }
        }
    }
}

/// What each lane of the program does.
pub(crate) fn does(program: &[Statement], lanes: u64) -> Vec<Vec<Does>> {
    (0..lanes)
        .map(|lane| {
            let mut run =
                Run { lane, decisions: 0, does: Vec::new(), episodes: 0, inside_branch: 0, inside_sections: 0 };
            let end = run.run(program, 0x1000, true);
            run.instruction(end, Kind::Return, 8, 0);
            run.does
        })
        .collect()
}

/// The lanes of the program.
pub(crate) fn lanes_of(program: &[Statement], lanes: u64) -> InMemory {
    InMemory::new(&does(program, lanes))
}

/// Whether a lane may reach a lock.
pub(crate) fn has_locks(program: &[Statement]) -> bool {
    program.iter().any(|s| match s {
        Statement::Locked { .. } | Statement::Section { .. } => true,
        Statement::Branch { then, otherwise, .. } => has_locks(then) || has_locks(otherwise),
        Statement::Loop { body, .. } => has_locks(body),
        _ => false,
    })
}

/// The same program with one instruction in the place of each critical section.
pub(crate) fn without_locks(program: &[Statement]) -> Vec<Statement> {
    let without = |statement: &Statement| match statement {
        Statement::Locked { .. } | Statement::Section { .. } => Statement::Straight(1),
        Statement::Branch { seed, then, otherwise } => {
            Statement::Branch { seed: *seed, then: without_locks(then), otherwise: without_locks(otherwise) }
        }
        Statement::Loop { seed, most, body } => Statement::Loop { seed: *seed, most: *most, body: without_locks(body) },
        other => other.clone(),
    };
    program.iter().map(without).collect()
}
