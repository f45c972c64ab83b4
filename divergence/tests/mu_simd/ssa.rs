//! A µ-SIMD program as a function in SSA form: what the analysis is given.
//!
//! Each block with several predecessors gets a φ for each variable; those that join one value only are removed. ⊕ is
//! the paper's general operation, about which the analysis knows nothing else.

use std::collections::HashMap;
use std::sync::Arc;

use divergence::{Binary as Arithmetic, Builder, Decision, Function, Kind, Memory, Op, Promise, ValueId};
use flowgraph::NodeId;

use crate::language::{Binary, Instruction, Operand, Program, Variable};

const WORD: Kind = Kind::Bits(64);

/// What makes a value, before there are numbers for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Made {
    /// What a variable has at the start.
    Start(Variable),
    Constant(i64),
    /// By the instruction at this place.
    At(usize),
    /// By a φ of a variable, at the start of a block.
    Joined(usize, Variable),
}

/// The function, and where its values are.
pub struct Ssa {
    pub function: Arc<Function>,
    /// By instruction: the value that it assigns.
    pub assigned: HashMap<usize, ValueId>,
    /// By place of a block's first instruction: the values of its φs.
    pub joined: HashMap<usize, Vec<(Variable, ValueId)>>,
}

/// The blocks of a program: where each begins, and its predecessors. Block 0 is an empty one before the first.
struct Blocks {
    starts: Vec<usize>,
    predecessors: Vec<Vec<usize>>,
}

impl Blocks {
    fn of(program: &Program) -> Blocks {
        let count = program.instructions.len();
        let mut starts = vec![0];
        for (at, instruction) in program.instructions.iter().enumerate() {
            let successors = instruction.successors(at);
            if successors != [at + 1] || matches!(instruction, Instruction::Branch { .. }) {
                starts.extend(successors);
                starts.push(at + 1);
            }
        }
        starts.retain(|&start| start < count);
        starts.sort_unstable();
        starts.dedup();
        // The empty block.
        starts.insert(0, 0);
        let mut blocks = Blocks { predecessors: vec![Vec::new(); starts.len()], starts };
        blocks.predecessors[1].push(0);
        for block in 1..blocks.starts.len() {
            let last = blocks.end(block, count) - 1;
            for to in program.instructions[last].successors(last) {
                let to = blocks.starting(to);
                blocks.predecessors[to].push(block);
            }
        }
        blocks
    }

    fn starting(&self, at: usize) -> usize {
        1 + self.starts[1..].binary_search(&at).expect("control goes to the start of a block")
    }

    fn end(&self, block: usize, count: usize) -> usize {
        if block == 0 { 0 } else { self.starts.get(block + 1).copied().unwrap_or(count) }
    }
}

impl Ssa {
    pub fn of(program: &Program) -> Ssa {
        let blocks = Blocks::of(program);
        let (count, variables) = (program.instructions.len(), program.names.len());
        // What each variable has at the start of each block, and before each instruction.
        let begin = |block: usize, v| if block == 0 { Made::Start(v) } else { Made::Joined(block, v) };
        let mut ends: Vec<Vec<Made>> = Vec::new();
        let mut before: Vec<Vec<Made>> = Vec::new();
        for block in 0..blocks.starts.len() {
            let mut now: Vec<Made> = (0..variables).map(|v| begin(block, v)).collect();
            for at in blocks.starts[block]..blocks.end(block, count) {
                before.push(now.clone());
                if let Some(v) = program.instructions[at].assigns() {
                    now[v] = Made::At(at);
                }
            }
            ends.push(now);
        }
        let mut same: HashMap<Made, Made> = HashMap::new();
        let operands = |block: usize, v: Variable| blocks.predecessors[block].iter().map(|&p| ends[p][v]).collect();
        loop {
            let known = same.len();
            for block in 1..blocks.starts.len() {
                for v in 0..variables {
                    let own = Made::Joined(block, v);
                    if same.contains_key(&own) {
                        continue;
                    }
                    let of: Vec<Made> = operands(block, v);
                    let mut others: Vec<Made> = of.into_iter().map(|made| resolve(&same, made)).collect();
                    others.retain(|made| *made != own);
                    others.sort_unstable();
                    others.dedup();
                    if let [only] = others[..] {
                        same.insert(own, only);
                    }
                }
            }
            if same.len() == known {
                break;
            }
        }
        let mut making = Making { b: Builder::new(blocks.starts.len()), same, ids: HashMap::new(), program };
        making.fill(&blocks, &before, operands)
    }
}

fn resolve(same: &HashMap<Made, Made>, mut made: Made) -> Made {
    while let Some(&other) = same.get(&made) {
        made = other;
    }
    made
}

struct Making<'p> {
    b: Builder,
    same: HashMap<Made, Made>,
    ids: HashMap<Made, ValueId>,
    program: &'p Program,
}

impl Making<'_> {
    /// The number of a value; one that is made in a block must have been added there.
    fn id(&mut self, made: Made) -> ValueId {
        let made = resolve(&self.same, made);
        if let Some(&id) = self.ids.get(&made) {
            return id;
        }
        let (op, name) = match made {
            Made::Start(0) => (Op::Thread { dimension: 0, scale: 1 }, "tid"),
            Made::Start(v) if self.program.is_parameter(v) => (Op::Uniform, self.program.names[v].as_str()),
            Made::Start(_) => (Op::Number(0), ""),
            Made::Constant(number) => (Op::Number(number), ""),
            Made::At(_) | Made::Joined(..) => unreachable!("{made:?} was not added"),
        };
        let id = self.b.free(WORD, op, name);
        self.ids.insert(made, id);
        id
    }

    fn fill(&mut self, blocks: &Blocks, before: &[Vec<Made>], operands: impl Fn(usize, Variable) -> Vec<Made>) -> Ssa {
        let count = self.program.instructions.len();
        let (mut assigned, mut joined) = (HashMap::new(), HashMap::<usize, Vec<(Variable, ValueId)>>::new());
        for block in 0..blocks.starts.len() {
            let node = NodeId(block as u32);
            for v in 0..self.program.names.len() {
                let made = Made::Joined(block, v);
                if block > 0 && !self.same.contains_key(&made) {
                    let id = self.b.add(node, WORD, Op::Undefined, self.program.names[v].as_str());
                    self.ids.insert(made, id);
                    joined.entry(blocks.starts[block]).or_default().push((v, id));
                }
            }
            for at in blocks.starts[block]..blocks.end(block, count) {
                let instruction = self.program.instructions[at];
                let makes = !matches!(instruction, Instruction::Branch { .. } | Instruction::Jump(_))
                    && !matches!(instruction, Instruction::Sync | Instruction::Stop);
                if makes {
                    let name = instruction.assigns().map_or("", |v| self.program.names[v].as_str());
                    let kind = if instruction.assigns().is_some() { WORD } else { Kind::Opaque };
                    let id = self.b.add(node, kind, Op::Undefined, name);
                    self.ids.insert(Made::At(at), id);
                    if instruction.assigns().is_some() {
                        assigned.insert(at, id);
                    }
                }
            }
        }
        for (block, preds) in blocks.predecessors.iter().enumerate() {
            for &from in preds {
                self.b.edge(NodeId(from as u32), NodeId(block as u32));
            }
            for (v, id) in joined.get(&blocks.starts[block]).filter(|_| block > 0).cloned().unwrap_or_default() {
                let made = operands(block, v);
                let from = preds.iter().zip(made).map(|(&from, made)| (NodeId(from as u32), self.id(made))).collect();
                self.b.set(id, Op::Phi(from));
            }
            for at in blocks.starts[block]..blocks.end(block, count) {
                self.define(at, NodeId(block as u32), before);
            }
        }
        let b = std::mem::replace(&mut self.b, Builder::new(1));
        Ssa { function: b.build(), assigned, joined }
    }

    fn define(&mut self, at: usize, block: NodeId, before: &[Vec<Made>]) {
        let now = &before[at];
        let instruction = self.program.instructions[at];
        if let Instruction::Branch { by, .. } = instruction {
            let by = self.id(now[by]);
            self.b.decide(block, Decision::By(by));
        }
        let mut get = |operand| match operand {
            Operand::Variable(v) => self.id(now[v]),
            Operand::Constant(c) => self.id(Made::Constant(c)),
        };
        let plain = Promise::default();
        let op = match instruction {
            Instruction::Branch { .. } => return,
            Instruction::Jump(_) | Instruction::Sync | Instruction::Stop => return,
            Instruction::Store(address, value) => Op::Store(get(address), get(value)),
            Instruction::Load(_, address) => Op::Load(get(address), Memory::Shared),
            Instruction::Atomic(_, address, _) => Op::Atomic(vec![get(address)]),
            Instruction::Binary(_, Binary::Sum, a, b) => Op::Binary(Arithmetic::Add, get(a), get(b), plain),
            Instruction::Binary(_, Binary::Product, a, b) => Op::Binary(Arithmetic::Mul, get(a), get(b), plain),
            Instruction::Binary(_, _, a, b) => Op::General(vec![get(a), get(b)]),
            Instruction::Unary(_, _, value) => Op::General(vec![get(value)]),
            Instruction::Copy(_, value) => Op::Copy(get(value)),
        };
        let id = self.ids[&Made::At(at)];
        self.b.set(id, op);
    }
}
