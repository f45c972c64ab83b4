//! An interpreter of a subset of LLVM IR that runs lanes in lockstep: lanes that part at a branch meet again at its
//! immediate post-dominator.

use std::collections::HashMap;

use flowgraph::{NodeId, PostDominators};
use transform::Flow;
use transform::llvm::{Function, Instruction, Opcode, Value};

use crate::random::holds;

/// A value; none is poison.
pub type Word = Option<u64>;

/// Lanes that go on together.
struct Group {
    block: NodeId,
    /// Where they wait for others.
    meet: Option<NodeId>,
    lanes: Vec<usize>,
}

/// What is told about each step: the lanes, the instruction, what each lane has of any value.
pub type Watch<'a, 'm> = dyn FnMut(&[usize], Instruction<'m>, &Machine<'m>) + 'a;

/// Lanes, their values and the memory that they share.
pub struct Machine<'m> {
    flow: Flow<'m>,
    pub tids: Vec<u64>,
    parameters: Vec<u64>,
    /// By lane.
    values: Vec<HashMap<Value<'m>, Word>>,
    came_from: Vec<Option<NodeId>>,
    memory: HashMap<(u32, u64), Word>,
    pub steps: usize,
}

pub fn bits(value: Value<'_>) -> u32 {
    value.type_of().bits().unwrap_or(64)
}

pub fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn signed(word: u64, bits: u32) -> i64 {
    ((word << (64 - bits)) as i64) >> (64 - bits)
}

/// Where constant tables and memory begin.
const TABLE: u64 = 1 << 20;
const MEMORY: u64 = 1 << 24;
const MOST_STEPS: usize = 6000;

impl<'m> Machine<'m> {
    pub fn new(function: Function<'m>, tids: &[u64], parameters: &[u64]) -> Machine<'m> {
        let table = [3u64, 1, 4, 1, 5, 9, 2, 6].iter().enumerate();
        let mut memory: HashMap<(u32, u64), Word> = table.map(|(i, &v)| ((4, TABLE + 4 * i as u64), Some(v))).collect();
        memory.extend((0..256).map(|i| ((1, MEMORY + 4 * i), Some(i * i % 7))));
        let mut machine = Machine {
            flow: Flow::of(function),
            tids: tids.to_vec(),
            parameters: parameters.to_vec(),
            values: vec![HashMap::new(); tids.len()],
            came_from: vec![None; tids.len()],
            memory,
            steps: 0,
        };
        for lane in 0..tids.len() {
            for (i, parameter) in function.parameters().into_iter().enumerate() {
                machine.values[lane].insert(parameter, Some(machine.parameters[i]));
            }
        }
        machine
    }

    /// What a lane has of a value.
    pub fn value(&self, lane: usize, value: Value<'m>) -> Word {
        if let Some(&word) = self.values[lane].get(&value) {
            return word;
        }
        if value.is_undefined() {
            return None;
        }
        if let Some(number) = value.as_number() {
            return Some(number as u64 & mask(bits(value)));
        }
        match value.name().as_str() {
            "mem" => Some(MEMORY),
            "rom" => Some(TABLE),
            _ => None,
        }
    }

    /// Whether a lane has computed a value.
    pub fn has(&self, lane: usize, value: Value<'m>) -> bool {
        value.as_instruction().is_none() || self.values[lane].contains_key(&value)
    }

    /// Runs until all lanes have returned, or too many steps were made, or control would depend on poison.
    pub fn run(&mut self, watch: &mut Watch<'_, 'm>) {
        let ends: Vec<NodeId> =
            self.flow.graph().nodes().filter(|&n| self.flow.graph().successors(n).is_empty()).collect();
        let after = PostDominators::of(self.flow.graph(), &ends);
        let lanes = (0..self.tids.len()).collect();
        let mut stack = vec![Group { block: NodeId(0), meet: None, lanes }];
        while let Some(group) = stack.last() {
            if Some(group.block) == group.meet || group.lanes.is_empty() {
                stack.pop();
                continue;
            }
            let (block, lanes) = (group.block, group.lanes.clone());
            let mut next: Vec<(NodeId, Vec<usize>)> = Vec::new();
            let mut instructions = self.flow.block(block).instructions();
            let end = instructions.pop().expect("a block has an end");
            // Phis read what was there before any of them.
            let phis: Vec<Instruction<'m>> = instructions.iter().copied().take_while(|i| i.is_phi()).collect();
            for &lane in &lanes {
                let from = self.came_from[lane].map(|from| self.flow.block(from));
                let read: Vec<(Value<'m>, Word)> = phis
                    .iter()
                    .map(|phi| {
                        (phi.as_value(), from.and_then(|b| phi.incoming_from(b)).and_then(|v| self.value(lane, v)))
                    })
                    .collect();
                self.values[lane].extend(read);
            }
            for instruction in instructions {
                self.steps += 1;
                if !instruction.is_phi() {
                    self.execute(&lanes, instruction);
                }
                watch(&lanes, instruction, self);
            }
            self.steps += 1;
            watch(&lanes, end, self);
            if self.steps > MOST_STEPS {
                return;
            }
            for &lane in &lanes {
                let Some(to) = self.target(lane, end) else { return };
                self.came_from[lane] = Some(block);
                let Some(to) = to else { continue };
                match next.iter_mut().find(|(b, _)| *b == to) {
                    Some((_, lanes)) => lanes.push(lane),
                    None => next.push((to, vec![lane])),
                }
            }
            let top = stack.last_mut().expect("the group that ran");
            match next.as_slice() {
                [] => _ = stack.pop(),
                [(to, lanes)] => (top.block, top.lanes) = (*to, lanes.clone()),
                _ => {
                    let meet = after.ipdom(block);
                    match meet {
                        Some(meet) => top.block = meet,
                        None => _ = stack.pop(),
                    }
                    next.sort_by_key(|(b, _)| std::cmp::Reverse(*b));
                    stack.extend(next.into_iter().map(|(block, lanes)| Group { block, meet, lanes }));
                }
            }
        }
    }

    /// Where a lane goes; an outer none is poison, an inner one the end.
    fn target(&self, lane: usize, end: Instruction<'m>) -> Option<Option<NodeId>> {
        let next = end.successors();
        let chosen = match end.opcode() {
            Opcode::LLVMRet => return Some(None),
            Opcode::LLVMSwitch => {
                let by = self.value(lane, end.operand(0))?;
                let operands = end.operands();
                let case = operands[2..].chunks(2).position(|case| self.value(lane, case[0]) == Some(by));
                case.map_or(0, |i| i + 1)
            }
            _ => match end.condition() {
                Some(by) => usize::from(self.value(lane, by)? == 0),
                None => 0,
            },
        };
        Some(Some(self.flow.node(next[chosen])))
    }

    fn execute(&mut self, lanes: &[usize], i: Instruction<'m>) {
        // Lanes load together before any stores; atomics take turns.
        for &lane in lanes {
            let word = self.result(lane, i);
            if !i.type_of().is_void() {
                self.values[lane].insert(i.as_value(), word);
            }
        }
    }

    fn result(&mut self, lane: usize, i: Instruction<'m>) -> Word {
        use Opcode::*;
        let operands = i.operands();
        let get = |n: usize| self.value(lane, operands[n]);
        let width = bits(i.as_value());
        let own = mask(width);
        match i.opcode() {
            LLVMCall => Some(self.tids[lane]),
            LLVMStore => {
                let (value, address) = (get(0), get(1));
                if let Some(address) = address {
                    self.memory.insert((operands[1].type_of().address_space(), address), value);
                }
                None
            }
            LLVMLoad => self.memory.get(&(operands[0].type_of().address_space(), get(0)?)).copied().flatten(),
            LLVMAtomicRMW => {
                let key = (operands[0].type_of().address_space(), get(0)?);
                let by = get(1)?;
                let old = self.memory.get(&key).copied().flatten();
                self.memory.insert(key, old.map(|old| old.wrapping_add(by) & own));
                old
            }
            LLVMSelect => {
                if get(0)? != 0 {
                    get(1)
                } else {
                    get(2)
                }
            }
            LLVMFreeze => Some(get(0).unwrap_or(0)),
            LLVMTrunc => {
                let (word, (nsw, nuw)) = (get(0)?, i.promises());
                let fits_unsigned = word & own == word;
                let fits_signed = signed(word & own, width) == signed(word, bits(operands[0]));
                ((!nuw || fits_unsigned) && (!nsw || fits_signed)).then_some(word & own)
            }
            LLVMZExt => {
                let word = get(0)?;
                let negative = signed(word, bits(operands[0])) < 0;
                (!i.is_non_negative_extension() || !negative).then_some(word)
            }
            LLVMSExt => Some(signed(get(0)?, bits(operands[0])) as u64 & own),
            LLVMGetElementPtr => {
                let parts = i.address_parts()?;
                let mut address = self.value(lane, parts.base)?.wrapping_add(parts.offset as u64);
                for (index, stride) in parts.terms {
                    let index_word = signed(self.value(lane, index)?, bits(index));
                    address = address.wrapping_add((index_word as u64).wrapping_mul(stride as u64));
                }
                Some(address)
            }
            LLVMICmp => Some(holds(i.comparison()?, get(0)?, get(1)?, bits(operands[0])).into()),
            opcode => {
                let (a, b) = (get(0)?, get(1)?);
                let (sa, sb) = (i128::from(signed(a, width)), i128::from(signed(b, width)));
                let (ua, ub) = (i128::from(a), i128::from(b));
                let (exact_signed, exact_unsigned) = match opcode {
                    LLVMAdd => (sa + sb, ua + ub),
                    LLVMSub => (sa - sb, ua - ub),
                    LLVMMul => (sa * sb, (u128::from(a) * u128::from(b)).min(i128::MAX as u128) as i128),
                    LLVMShl if b < u64::from(width) => (sa << b, ua << b),
                    LLVMLShr if b < u64::from(width) => (ua >> b, ua >> b),
                    LLVMAShr if b < u64::from(width) => (sa >> b, sa >> b),
                    LLVMAnd => (ua & ub, ua & ub),
                    LLVMOr => (ua | ub, ua | ub),
                    LLVMXor => (ua ^ ub, ua ^ ub),
                    LLVMUDiv if b != 0 => (ua / ub, ua / ub),
                    LLVMSDiv if b != 0 => (sa / sb, sa / sb),
                    LLVMURem if b != 0 => (ua % ub, ua % ub),
                    _ => return None,
                };
                let word = exact_signed as u64 & own;
                let (nsw, nuw) = i.promises();
                let kept_signed = !nsw || i128::from(signed(word, width)) == exact_signed;
                let kept_unsigned = !nuw || i128::from(word) == exact_unsigned;
                (kept_signed && kept_unsigned && !(i.is_disjoint_or() && a & b != 0)).then_some(word)
            }
        }
    }
}
