//! A warp whose lanes go on in any order, alone or together, as independent thread scheduling allows it: only what
//! lanes ask each other holds them.

use std::collections::HashMap;

use transform::Flow;
use transform::llvm::{Block, Function, Instruction, Opcode, Value};

use crate::random::holds;

/// How lanes answer what they ask each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Votes {
    /// All that a mask names.
    OfMask,
    /// Those that happen to run together.
    OfGroup,
}

/// What became of a run: by lane, what it stored, in order; or what went wrong.
pub type Outcome = Result<Vec<Vec<u64>>, String>;

/// So many blocks are run at most.
const MOST: usize = 60_000;

struct Lane<'m> {
    block: Block<'m>,
    /// Which instruction is next; none where it has returned.
    next: Option<usize>,
    from: Option<Block<'m>>,
    values: HashMap<Value<'m>, Option<u64>>,
    /// The mask and the condition of a vote that it waits at.
    vote: Option<(u64, bool)>,
    log: Vec<u64>,
}

pub struct Machine<'m> {
    lanes: Vec<Lane<'m>>,
    code: HashMap<Block<'m>, Vec<Instruction<'m>>>,
    votes: Votes,
    random: u64,
    parameter: u64,
}

impl<'m> Machine<'m> {
    pub fn new(function: Function<'m>, lanes: usize, votes: Votes, seed: u64) -> Machine<'m> {
        let lane = |_| Lane {
            block: function.entry(),
            next: Some(0),
            from: None,
            values: HashMap::new(),
            vote: None,
            log: Vec::new(),
        };
        let code = Flow::of(function).blocks().iter().map(|block| (*block, block.instructions())).collect();
        let mut machine =
            Machine { lanes: (0..lanes).map(lane).collect(), code, votes, random: seed | 1, parameter: seed % 13 };
        for lane in &mut machine.lanes {
            lane.values.insert(function.parameters()[0], Some(machine.parameter));
        }
        machine
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % bound
    }

    /// Runs until all lanes have returned.
    pub fn run(mut self) -> Outcome {
        for _ in 0..MOST {
            let ready: Vec<usize> = (0..self.lanes.len())
                .filter(|&l| self.lanes[l].next.is_some() && self.lanes[l].vote.is_none())
                .collect();
            if ready.is_empty() {
                let lost = self.lanes.iter().filter(|lane| lane.next.is_some()).count();
                return match lost {
                    0 => Ok(self.lanes.into_iter().map(|lane| lane.log).collect()),
                    _ => Err(format!("{lost} lanes wait for ever")),
                };
            }
            let first = ready[self.below(ready.len())];
            let at = |lane: &Lane<'m>| (lane.block, lane.next);
            let place = at(&self.lanes[first]);
            let mut group = vec![first];
            for lane in ready {
                // Mostly lanes go on together.
                if lane != first && at(&self.lanes[lane]) == place && self.below(4) > 0 {
                    group.push(lane);
                }
            }
            self.go_on(&group)?;
        }
        Err("it does not end".to_owned())
    }

    /// Runs lanes that stand at one instruction to the end of the block, or to a vote.
    fn go_on(&mut self, group: &[usize]) -> Result<(), String> {
        let block = self.lanes[group[0]].block;
        let code = self.code[&block].clone();
        let mut next = self.lanes[group[0]].next.expect("it has not returned");
        if next == 0 {
            next = code.iter().take_while(|i| i.is_phi()).count();
            for &lane in group {
                let from = self.lanes[lane].from;
                let joined: Vec<_> = code[..next]
                    .iter()
                    .map(|phi| (phi.as_value(), self.value(lane, phi.incoming_from(from.unwrap()).unwrap())))
                    .collect();
                self.lanes[lane].values.extend(joined);
            }
        }
        for (at, i) in code.iter().enumerate().skip(next) {
            if i.is_terminator() {
                return group.iter().try_for_each(|&lane| self.lead_on(lane, *i));
            }
            let name = i.callee().map(|callee| callee.name()).unwrap_or_default();
            if name.starts_with("llvm.nvvm.vote") || name.starts_with("llvm.amdgcn.ballot") {
                return self.vote(group, *i, at);
            }
            let together = group.iter().fold(0, |mask, lane| mask | 1 << lane);
            for &lane in group {
                let made = match name.as_str() {
                    "llvm.nvvm.activemask" => Some(together),
                    _ => self.result(lane, *i, &name),
                };
                self.lanes[lane].values.insert(i.as_value(), made);
            }
        }
        unreachable!("a block ends with a terminator")
    }

    fn vote(&mut self, group: &[usize], i: Instruction<'m>, at: usize) -> Result<(), String> {
        let arguments = i.arguments();
        let condition = *arguments.last().expect("a vote is on something");
        for &lane in group {
            let mask = match self.votes {
                Votes::OfMask => self.value(lane, arguments[0]).ok_or("a vote of nobody knows whom")?,
                Votes::OfGroup => group.iter().fold(0, |mask, lane| mask | 1 << lane),
            };
            let condition = self.value(lane, condition).ok_or("a vote on what is undefined")? != 0;
            (self.lanes[lane].vote, self.lanes[lane].next) = (Some((mask, condition)), Some(at));
        }
        group.iter().try_for_each(|&lane| self.answer(lane, i, at))
    }

    /// Answers a lane's vote if all that it asks have come.
    fn answer(&mut self, lane: usize, i: Instruction<'m>, at: usize) -> Result<(), String> {
        let Some((mask, _)) = self.lanes[lane].vote else { return Ok(()) };
        let mut ballot = 0;
        for lane in (0..self.lanes.len()).filter(|lane| mask >> lane & 1 == 1) {
            let Lane { block, next, vote, .. } = &self.lanes[lane];
            match vote {
                _ if next.is_none() => return Err("a lane left that others still ask".to_owned()),
                None => return Ok(()),
                // It is in a region inside of this one.
                Some((other, _)) if *other != mask => return Ok(()),
                Some(_) if self.code[block][next.unwrap_or_default()] != i => {
                    return Err("lanes ask different things".to_owned());
                }
                Some((_, holds)) => ballot |= u64::from(*holds) << lane,
            }
        }
        let answer = if i.type_of().bits() == Some(1) { u64::from(ballot != 0) } else { ballot };
        for lane in (0..self.lanes.len()).filter(|lane| mask >> lane & 1 == 1) {
            self.lanes[lane].values.insert(i.as_value(), Some(answer));
            (self.lanes[lane].vote, self.lanes[lane].next) = (None, Some(at + 1));
        }
        Ok(())
    }

    fn lead_on(&mut self, lane: usize, end: Instruction<'m>) -> Result<(), String> {
        let next = end.successors();
        let undefined = || "a branch on what is undefined".to_owned();
        let chosen = match end.opcode() {
            Opcode::LLVMRet => {
                self.lanes[lane].next = None;
                return Ok(());
            }
            Opcode::LLVMSwitch => {
                let by = self.value(lane, end.operand(0)).ok_or_else(undefined)?;
                let cases = end.operands()[2..].chunks(2).map(|case| case[0]).collect::<Vec<_>>();
                cases.into_iter().position(|case| self.value(lane, case) == Some(by)).map_or(0, |i| i + 1)
            }
            Opcode::LLVMBr => match end.condition() {
                Some(by) => usize::from(self.value(lane, by).ok_or_else(undefined)? == 0),
                None => 0,
            },
            _ => return Err(format!("control comes to {end}")),
        };
        let from = self.lanes[lane].block;
        let lane = &mut self.lanes[lane];
        (lane.block, lane.next, lane.from) = (next[chosen], Some(0), Some(from));
        Ok(())
    }

    fn value(&self, lane: usize, value: Value<'m>) -> Option<u64> {
        if let Some(known) = self.lanes[lane].values.get(&value) {
            return *known;
        }
        let number = || value.as_number().map(|number| number as u64 & mask(value));
        if value.is_undefined() { None } else { number() }
    }

    fn result(&mut self, lane: usize, i: Instruction<'m>, called: &str) -> Option<u64> {
        let operands = i.operands();
        let get = |n: usize| self.value(lane, operands[n]);
        let own = if i.type_of().is_void() { 0 } else { mask(i.as_value()) };
        Some(match i.opcode() {
            Opcode::LLVMCall => match called {
                "tid" => lane as u64,
                "mix" => get(0)?.wrapping_mul(0x9E37_79B1).rotate_right(7) & own,
                "llvm.ctpop.i32" | "llvm.ctpop.i64" => u64::from(get(0)?.count_ones()),
                _ => return None,
            },
            Opcode::LLVMStore => {
                let value = get(0).unwrap_or(u64::MAX);
                self.lanes[lane].log.push(value);
                return None;
            }
            Opcode::LLVMSelect => return if get(0)? != 0 { get(1) } else { get(2) },
            Opcode::LLVMICmp => {
                let bits = operands[0].type_of().bits().unwrap_or(64);
                u64::from(holds(i.comparison()?, get(0)?, get(1)?, bits))
            }
            Opcode::LLVMAdd => get(0)?.wrapping_add(get(1)?) & own,
            Opcode::LLVMSub => get(0)?.wrapping_sub(get(1)?) & own,
            Opcode::LLVMMul => get(0)?.wrapping_mul(get(1)?) & own,
            Opcode::LLVMAnd => get(0)? & get(1)?,
            Opcode::LLVMOr => get(0)? | get(1)?,
            Opcode::LLVMXor => get(0)? ^ get(1)?,
            Opcode::LLVMLShr => get(0)? >> get(1)?,
            opcode => panic!("{opcode:?} is not made"),
        })
    }
}

fn mask(value: Value<'_>) -> u64 {
    u64::MAX >> (64 - value.type_of().bits().unwrap_or(64))
}
