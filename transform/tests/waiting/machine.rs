//! A warp that runs in lockstep with a reconvergence stack: lanes that part at a branch meet again at its immediate
//! post-dominator, and those that are behind in the stack wait until those on top have come there.

use std::collections::{BTreeMap, HashMap};

use flowgraph::{NodeId, PostDominators};
use transform::Flow;
use transform::llvm::{Function, Instruction, Module, Opcode, Value};

use crate::random::holds;

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What each lane noted, in order, and what memory holds.
    Ended(Vec<Vec<u64>>, BTreeMap<String, u64>),
    /// Lanes that run wait for what lanes below them in the stack would do.
    Hangs,
}

/// Which of the lanes that part run first.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Those that go to a branch's first target.
    First,
    /// Those that go to its last one.
    Last,
    /// Drawn anew at each branch.
    Drawn(u64),
}

/// So many instructions are run before lanes are taken to wait for ever.
const MOST: usize = 6000;

pub const LANES: usize = 4;

struct Group {
    block: NodeId,
    /// Where they wait for others.
    meet: Option<NodeId>,
    lanes: Vec<usize>,
}

/// The control flow of a function, and where lanes meet in it.
struct Code<'m> {
    flow: Flow<'m>,
    meets: PostDominators,
    blocks: Vec<Vec<Instruction<'m>>>,
}

/// The code of a module.
pub struct Program<'m> {
    functions: HashMap<String, Code<'m>>,
}

impl<'m> Program<'m> {
    pub fn of(module: &'m Module) -> Program<'m> {
        let code = |function: Function<'m>| {
            let flow = Flow::of(function);
            let graph = flow.graph();
            let ends: Vec<NodeId> = graph.nodes().filter(|&node| graph.successors(node).is_empty()).collect();
            let meets = PostDominators::of(graph, &ends);
            let blocks = flow.blocks().iter().map(|block| block.instructions()).collect();
            Code { flow, meets, blocks }
        };
        Program { functions: module.functions().into_iter().map(|f| (f.name(), code(f))).collect() }
    }

    /// Runs a function with all lanes. What goes wrong in it is no wait.
    pub fn run(&self, name: &str, order: Order) -> Outcome {
        let seed = if let Order::Drawn(seed) = order { seed } else { 0 };
        let mut warp = Warp {
            program: self,
            values: vec![HashMap::new(); LANES],
            memory: BTreeMap::new(),
            notes: vec![Vec::new(); LANES],
            order,
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            steps: 0,
        };
        let parameter = self.functions[name].flow.block(NodeId(0)).function().parameters()[0];
        for lane in 0..LANES {
            warp.values[lane].insert(parameter, lane as u64);
        }
        match warp.call(name, &(0..LANES).collect::<Vec<_>>()) {
            Some(()) => {
                warp.memory.retain(|name, value| name.starts_with("count") && *value != 0);
                Outcome::Ended(warp.notes, warp.memory)
            }
            None => Outcome::Hangs,
        }
    }
}

struct Warp<'a, 'm> {
    program: &'a Program<'m>,
    values: Vec<HashMap<Value<'m>, u64>>,
    memory: BTreeMap<String, u64>,
    notes: Vec<Vec<u64>>,
    order: Order,
    random: u64,
    steps: usize,
}

impl<'m> Warp<'_, 'm> {
    /// Runs a function with these lanes up to its end; none where they wait for ever.
    fn call(&mut self, name: &str, lanes: &[usize]) -> Option<()> {
        let code = &self.program.functions[name];
        let mut from: HashMap<usize, NodeId> = HashMap::new();
        let mut stack = vec![Group { block: NodeId(0), meet: None, lanes: lanes.to_vec() }];
        while let Some(group) = stack.last() {
            if Some(group.block) == group.meet {
                stack.pop();
                continue;
            }
            let (block, lanes) = (group.block, group.lanes.clone());
            let (phis, rest): (Vec<Instruction<'m>>, Vec<Instruction<'m>>) =
                code.blocks[block.index()].iter().partition(|i| i.is_phi());
            for &lane in &lanes {
                let read: Vec<_> = phis
                    .iter()
                    .map(|phi| {
                        let value = phi.incoming_from(code.flow.block(from[&lane])).expect("a phi names each way");
                        (phi.as_value(), self.value(lane, value))
                    })
                    .collect();
                self.values[lane].extend(read);
            }
            let (end, body) = rest.split_last().expect("a block has an end");
            for i in body {
                self.steps += 1;
                self.execute(&lanes, *i)?;
            }
            self.steps += 1;
            if self.steps > MOST {
                return None;
            }
            let mut next: Vec<(NodeId, Vec<usize>)> = Vec::new();
            for to in end.successors() {
                let to = code.flow.node(to);
                if next.iter().all(|(node, _)| *node != to) {
                    next.push((to, Vec::new()));
                }
            }
            for &lane in &lanes {
                let Some(to) = self.target(lane, *end, &code.flow) else { continue };
                from.insert(lane, block);
                next.iter_mut().find(|(node, _)| *node == to).expect("a successor").1.push(lane);
            }
            next.retain(|(_, lanes)| !lanes.is_empty());
            let top = stack.last_mut().expect("the group that ran");
            match next.as_mut_slice() {
                [] => _ = stack.pop(),
                [(to, lanes)] => (top.block, top.lanes) = (*to, std::mem::take(lanes)),
                _ => {
                    let meet = code.meets.ipdom(block);
                    match meet {
                        Some(meet) => top.block = meet,
                        None => _ = stack.pop(),
                    }
                    self.arrange(&mut next);
                    stack.extend(next.into_iter().map(|(block, lanes)| Group { block, meet, lanes }));
                }
            }
        }
        Some(())
    }

    /// Puts the groups in the order in which they are stacked: the last runs first.
    fn arrange(&mut self, groups: &mut [(NodeId, Vec<usize>)]) {
        match self.order {
            Order::First => groups.reverse(),
            Order::Last => {}
            Order::Drawn(_) => {
                for i in (1..groups.len()).rev() {
                    self.random ^= self.random << 13;
                    self.random ^= self.random >> 7;
                    self.random ^= self.random << 17;
                    groups.swap(i, (self.random >> 11) as usize % (i + 1));
                }
            }
        }
    }

    /// Where a lane goes; none at the end.
    fn target(&self, lane: usize, end: Instruction<'m>, flow: &Flow<'m>) -> Option<NodeId> {
        let next = end.successors();
        let chosen = match end.opcode() {
            Opcode::LLVMRet => return None,
            Opcode::LLVMSwitch => {
                let (by, operands) = (self.value(lane, end.operand(0)), end.operands());
                let case = operands[2..].chunks(2).position(|case| self.value(lane, case[0]) == by);
                case.map_or(0, |i| i + 1)
            }
            Opcode::LLVMBr => end.condition().map_or(0, |by| usize::from(self.value(lane, by) == 0)),
            other => panic!("no lane comes to {other:?}"),
        };
        Some(flow.node(next[chosen]))
    }

    fn value(&self, lane: usize, value: Value<'m>) -> u64 {
        let known = self.values[lane].get(&value).copied();
        // What is undefined is anything.
        known.or_else(|| value.as_number().map(|number| number as u64 & mask(value))).unwrap_or(0)
    }

    /// The name of what is at an address.
    fn place(&self, lane: usize, address: Value<'m>) -> String {
        match self.values[lane].get(&address) {
            Some(&number) => NAMES[number as usize].to_owned(),
            None => address.name(),
        }
    }

    /// An address is kept by its place among the names.
    fn kept(&self, lane: usize, value: Value<'m>) -> u64 {
        let named = value.type_of().is_pointer() && !self.values[lane].contains_key(&value);
        if !named {
            return self.value(lane, value);
        }
        NAMES.iter().position(|name| *name == value.name()).unwrap_or(0) as u64
    }

    fn execute(&mut self, lanes: &[usize], i: Instruction<'m>) -> Option<()> {
        if i.opcode() == Opcode::LLVMCall {
            let name = i.callee().expect("a call of something").name();
            if self.program.functions.contains_key(&name) {
                return self.call(&name, lanes);
            }
        }
        for &lane in lanes {
            let made = self.result(lane, i)?;
            if !i.type_of().is_void() {
                self.values[lane].insert(i.as_value(), made);
            }
        }
        Some(())
    }

    /// What an instruction gives a lane; none where it waits for ever.
    fn result(&mut self, lane: usize, i: Instruction<'m>) -> Option<u64> {
        use Opcode::*;
        let operands = i.operands();
        let get = |n: usize| self.value(lane, operands[n]);
        let own = mask(i.as_value());
        Some(match i.opcode() {
            LLVMCall => return self.known_call(lane, i),
            LLVMLoad => self.memory.get(&self.place(lane, operands[0])).copied().unwrap_or(0),
            LLVMStore => {
                let (value, place) = (get(0), self.place(lane, operands[1]));
                self.memory.insert(place, value);
                0
            }
            // All of them are exchanges.
            LLVMAtomicRMW => {
                let (value, place) = (get(1), self.place(lane, operands[0]));
                self.memory.insert(place, value).unwrap_or(0)
            }
            LLVMAtomicCmpXchg => {
                let (expected, new, place) = (get(1), get(2), self.place(lane, operands[0]));
                let old = self.memory.get(&place).copied().unwrap_or(0);
                if old == expected {
                    self.memory.insert(place, new);
                }
                old | u64::from(old == expected) << 32
            }
            LLVMExtractValue if i.type_of().bits() == Some(1) => get(0) >> 32,
            LLVMExtractValue => get(0) & u64::from(u32::MAX),
            LLVMSelect => self.kept(lane, operands[if get(0) != 0 { 1 } else { 2 }]),
            LLVMFreeze | LLVMZExt => get(0),
            LLVMTrunc => get(0) & own,
            LLVMAdd => get(0).wrapping_add(get(1)) & own,
            LLVMSub => get(0).wrapping_sub(get(1)) & own,
            LLVMMul => get(0).wrapping_mul(get(1)) & own,
            LLVMAnd => get(0) & get(1),
            LLVMOr => get(0) | get(1),
            LLVMXor => get(0) ^ get(1),
            LLVMICmp => {
                let bits = operands[0].type_of().bits().unwrap_or(64);
                u64::from(holds(i.comparison().expect("a comparison compares"), get(0), get(1), bits))
            }
            other => panic!("the machine does not know {other:?}"),
        })
    }

    /// A call of what the module only declares.
    fn known_call(&mut self, lane: usize, i: Instruction<'m>) -> Option<u64> {
        let (callee, argument) = (i.callee().expect("a call of something").name(), i.arguments()[0]);
        match callee.as_str() {
            "note" => {
                let value = self.value(lane, argument);
                self.notes[lane].push(value);
                Some(0)
            }
            "f" => {
                let value = self.value(lane, argument) * 10;
                self.notes[lane].push(value);
                Some(value)
            }
            "pthread_mutex_lock" => {
                // Lanes that have it already wait for those beside them, which wait for it.
                let place = self.place(lane, argument);
                (self.memory.insert(place, 1).unwrap_or(0) == 0).then_some(0)
            }
            "pthread_mutex_unlock" => {
                let place = self.place(lane, argument);
                self.memory.insert(place, 0);
                Some(0)
            }
            name => panic!("the machine does not know {name}"),
        }
    }
}

/// What addresses are of.
const NAMES: [&str; 8] = ["lock0", "lock1", "mutex0", "mutex1", "flag0", "flag1", "count0", "count1"];

fn mask(value: Value<'_>) -> u64 {
    u64::MAX >> (64 - value.type_of().bits().unwrap_or(64))
}
