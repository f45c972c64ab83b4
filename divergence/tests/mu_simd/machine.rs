//! The semantics of µ-SIMD (Coutinho et al. 2011): processing elements in lockstep, each with variables of its own (θ),
//! all with one memory (Σ), and a stack of elements that wait.
//!
//! Where elements part at a branch, those that jump wait on the stack while the others go on. At the branch's immediate
//! post-dominator the others wait in turn; when all are there, they go on together. So `sync` has nothing left to do:
//! the paper omits it where a γ or an η stands.

use std::collections::HashMap;

use flowgraph::{Builder, NodeId, PostDominators};

use crate::language::{Binary, Instruction, Operand, Program, Unary, Variable};

/// Elements that wait for those which run.
struct Waiting {
    /// Where all meet.
    meet: Option<usize>,
    /// Those that have not run yet, and where they begin.
    other: (Vec<usize>, usize),
    /// Those that have come to the meeting.
    done: Vec<usize>,
}

/// A run.
pub struct Machine<'p> {
    program: &'p Program,
    after: PostDominators,
    /// By element and variable.
    pub theta: Vec<Vec<i64>>,
    pub sigma: HashMap<i64, i64>,
    active: Vec<usize>,
    at: usize,
    stack: Vec<Waiting>,
}

impl<'p> Machine<'p> {
    /// Elements with these identifiers at the start of a program, whose parameters have these values.
    pub fn new(program: &'p Program, tids: &[i64], parameter: impl Fn(Variable) -> i64) -> Machine<'p> {
        let count = program.instructions.len();
        let mut graph = Builder::new(count);
        let mut ends = Vec::new();
        for (at, instruction) in program.instructions.iter().enumerate() {
            for to in instruction.successors(at) {
                graph.edge(NodeId(at as u32), NodeId(to as u32));
            }
            if *instruction == Instruction::Stop {
                ends.push(NodeId(at as u32));
            }
        }
        let own = |&tid: &i64| {
            let value = |v| {
                if v == 0 {
                    tid
                } else if program.is_parameter(v) {
                    parameter(v)
                } else {
                    0
                }
            };
            (0..program.names.len()).map(value).collect()
        };
        Machine {
            program,
            after: PostDominators::of(&graph.build(NodeId(0)), &ends),
            theta: tids.iter().map(own).collect(),
            sigma: HashMap::new(),
            active: (0..tids.len()).collect(),
            at: 0,
            stack: Vec::new(),
        }
    }

    /// Runs one instruction, if any element is left: its place, and the elements that ran it.
    pub fn step(&mut self) -> Option<(usize, Vec<usize>)> {
        self.meet();
        if self.active.is_empty() {
            return None;
        }
        let (at, active) = (self.at, self.active.clone());
        self.at += 1;
        match self.program.instructions[at] {
            Instruction::Branch { zero, by, to } => self.branch(at, to, |theta| (theta[by] == 0) == zero),
            Instruction::Jump(to) => self.at = to,
            Instruction::Stop => self.active.clear(),
            Instruction::Sync => {}
            instruction => active.iter().for_each(|&element| self.execute(element, instruction)),
        }
        Some((at, active))
    }

    /// Lets those go on that wait, where the active elements have come to their meeting, or have stopped.
    fn meet(&mut self) {
        while let Some(top) = self.stack.last_mut() {
            if !self.active.is_empty() && top.meet != Some(self.at) {
                return;
            }
            if top.other.0.is_empty() {
                self.active.append(&mut top.done);
                self.active.sort_unstable();
                if let Some(meet) = top.meet.filter(|_| !self.active.is_empty()) {
                    self.at = meet;
                }
                self.stack.pop();
            } else {
                top.done.append(&mut self.active);
                (self.active, self.at) = std::mem::take(&mut top.other);
            }
        }
    }

    fn branch(&mut self, at: usize, to: usize, jumps: impl Fn(&[i64]) -> bool) {
        let (jump, stay): (Vec<usize>, Vec<usize>) = self.active.iter().partition(|&&e| jumps(&self.theta[e]));
        match (jump.is_empty(), stay.is_empty()) {
            (false, true) => self.at = to,
            (true, _) => {}
            (false, false) => {
                let meet = self.after.ipdom(NodeId(at as u32)).map(NodeId::index);
                self.stack.push(Waiting { meet, other: (jump, to), done: Vec::new() });
                self.active = stay;
            }
        }
    }

    fn execute(&mut self, element: usize, instruction: Instruction) {
        let theta = &self.theta[element];
        let get = |operand| match operand {
            Operand::Variable(v) => theta[v],
            Operand::Constant(c) => c,
        };
        let value = match instruction {
            Instruction::Store(address, value) => {
                self.sigma.insert(get(address), get(value));
                return;
            }
            Instruction::Load(_, address) => {
                self.sigma.get(&get(address)).copied().unwrap_or_else(|| cell(get(address)))
            }
            Instruction::Atomic(_, address, by) => {
                let cell = self.sigma.entry(get(address)).or_insert_with_key(|&address| cell(address));
                *cell = cell.wrapping_add(by);
                *cell
            }
            Instruction::Binary(_, operation, left, right) => apply(operation, get(left), get(right)),
            Instruction::Unary(_, Unary::Minus, value) => get(value).wrapping_neg(),
            Instruction::Unary(_, Unary::Not, value) => i64::from(get(value) == 0),
            Instruction::Copy(_, value) => get(value),
            _ => unreachable!("control is handled where elements part"),
        };
        if let Some(to) = instruction.assigns() {
            self.theta[element][to] = value;
        }
    }
}

/// What lies in memory before the run.
pub fn cell(address: i64) -> i64 {
    address.wrapping_mul(address) % 7
}

fn apply(operation: Binary, left: i64, right: i64) -> i64 {
    match operation {
        Binary::Sum => left.wrapping_add(right),
        Binary::Product => left.wrapping_mul(right),
        Binary::Difference => left.wrapping_sub(right),
        Binary::Less => i64::from(left < right),
        Binary::Equal => i64::from(left == right),
        Binary::Remainder => left.checked_rem(right).unwrap_or(0),
        Binary::And => left & right,
        Binary::Shift => left >> (right & 63),
    }
}
