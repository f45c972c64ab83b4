//! What a loop's body does, block by block, and whether other blocks do the same: what [`super::copies`] compares.

use flowgraph::NodeId;
use heuristics::{SegmentId, SegmentTable};
use machine::{Instruction, Operand, Operation, Operator, Register, Registers, Step};
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc, SpEffect};

use super::copies::Part;
use super::loops::LoopsOf;

/// The code of nodes.
pub(super) struct Code<'a> {
    segments: &'a SegmentTable,
    loops: &'a LoopsOf<'a>,
    of_place: &'a [SegmentId],
    /// What works on vectors may be there or not, and what turns a bit round.
    is_of_vectors: bool,
}

/// An instruction of a block, as it is compared.
pub(super) struct Line<'a> {
    pub instruction: Instruction<'a>,
    /// Where it stands: a segment, and the index there.
    pub at: (SegmentId, usize),
    /// What it does, to operands of which kinds: equal for copies.
    pub sign: String,
    /// It may be there or not: it counts, or sets a register to a constant.
    pub is_step: bool,
    /// It works on a vector or one of its numbers, or turns bits round, and writes no memory.
    is_of_vectors: bool,
    /// It does nothing but set flags for a branch.
    pub is_test: bool,
    /// It moves a number, and may make it wider.
    pub is_move: bool,
    /// It writes to memory outside of the frame, or calls.
    pub works: bool,
    /// What it reads and writes.
    reads: Registers,
    writes: Registers,
    /// Which of the segment's addresses are its own: the first, and how many.
    pub addresses: (u32, u32),
}

/// A segment's instructions, without jumps and the branch at its end.
pub(super) struct Block<'a> {
    pub lines: Vec<Line<'a>>,
    pub branch: Option<Instruction<'a>>,
    /// Nothing of it moves the stack pointer or leaves the frame.
    pub is_plain: bool,
}

/// What takes the place of others.
struct Fit {
    takes: Vec<u32>,
    /// By line of what is compared: whether it is taken.
    used: Vec<bool>,
}

impl<'a> Code<'a> {
    pub fn new(segments: &'a SegmentTable, loops: &'a LoopsOf<'a>, of_place: &'a [SegmentId]) -> Code<'a> {
        Code { segments, loops, of_place, is_of_vectors: false }
    }

    /// The same for copies that work on numbers of one vector, each: what belongs to the whole vector is in some only.
    pub fn of_vectors(self) -> Code<'a> {
        Code { is_of_vectors: true, ..self }
    }

    /// The segment of a node.
    pub fn segment(&self, node: NodeId) -> SegmentId {
        self.of_place[node.index()]
    }

    /// Whether it calls, or writes to memory outside of the frame, or is not known.
    pub fn works(&self, node: NodeId) -> bool {
        self.block(node).is_none_or(|block| block.lines.iter().any(|line| line.works))
    }

    /// None where not all of its code is known.
    pub fn block(&self, node: NodeId) -> Option<Block<'a>> {
        let mut block = Block::of(self.segments, &[*self.of_place.get(node.index())?])?;
        block.lines.iter_mut().for_each(|line| line.is_step |= self.is_of_vectors && line.is_of_vectors);
        Some(block)
    }

    /// Parts of a block in which a copy ends and the next one begins.
    pub fn join(&self, node: NodeId, test: NodeId, begin: NodeId) -> Option<Vec<Part>> {
        let [own, tail, head] = [self.block(node)?, self.block(test)?, self.block(begin)?];
        if !own.is_plain || !tail.is_plain || !head.is_plain || turned(&head, &own).is_none() {
            return None;
        }
        let tail = tail.fit(&own, vec![false; own.lines.len()], true)?;
        let ending = Part { begins: false, ends: true, stands: test, takes: tail.takes };
        let head = head.fit(&own, tail.used, false)?;
        let beginning = Part { begins: true, ends: false, stands: begin, takes: head.takes };
        own.left(&head.used).all(|line| line.is_step && line.addresses.1 == 0).then(|| vec![ending, beginning])
    }

    /// The part of a block beside the loop with which a copy begins.
    pub fn head(&self, node: NodeId, begin: NodeId) -> Option<Part> {
        let [own, head] = [self.block(node)?, self.block(begin)?];
        if !own.is_plain || !head.is_plain || turned(&head, &own).is_none() {
            return None;
        }
        let head = head.fit(&own, vec![false; own.lines.len()], false)?;
        let part = Part { begins: true, ends: false, stands: begin, takes: head.takes };
        own.left(&head.used).all(|line| !line.works).then_some(part)
    }

    /// The part of a block beside the loop with which a copy ends.
    pub fn tail(&self, node: NodeId, test: NodeId) -> Option<Part> {
        let [own, tail] = [self.block(node)?, self.block(test)?];
        if !own.is_plain || !tail.is_plain {
            return None;
        }
        let tail = tail.fit(&own, vec![false; own.lines.len()], true)?;
        let part = Part { begins: false, ends: true, stands: test, takes: tail.takes };
        own.left(&tail.used).all(|line| !line.works).then_some(part)
    }

    /// Whether nothing but the loop's test stands there.
    pub fn may_lack_tail(&self, test: NodeId) -> bool {
        let nothing = Block { lines: Vec::new(), branch: None, is_plain: true };
        self.block(test).and_then(|tail| tail.fit(&nothing, Vec::new(), true)).is_some()
    }

    /// What stands for a whole block that does the same.
    pub fn same(&self, node: NodeId, as_this: NodeId) -> Option<Part> {
        let [own, known] = [self.block(node)?, self.block(as_this)?];
        let [a, b] = [node, as_this].map(|node| &self.segments[self.segment(node)]);
        if a.sp != b.sp || a.last().kind.is_call() != b.last().kind.is_call() || turned(&known, &own).is_none() {
            return None;
        }
        let fit = known.fit(&own, vec![false; own.lines.len()], false)?;
        let part = Part { begins: false, ends: false, stands: as_this, takes: fit.takes };
        own.left(&fit.used).all(|line| line.is_step && line.addresses.1 == 0).then_some(part)
    }

    /// Where a node leads: to the side that the other one's branch takes, and to the other side.
    fn sides(&self, node: NodeId, as_this: NodeId) -> Option<[Option<NodeId>; 2]> {
        let next = self.loops.graph().successors(node);
        let [own, known] = [self.block(node)?, self.block(as_this)?];
        let Some(branch) = own.branch else {
            return match next {
                [] => Some([None; 2]),
                [one] => Some([Some(*one), None]),
                _ => None,
            };
        };
        let at = |pc: Option<Pc>| {
            let begins = |node: &&NodeId| pc == Some(self.segments[self.segment(**node)].start());
            next.iter().find(begins).copied()
        };
        let mut sides = [at(branch.target()), at(Some(branch.next_pc()))];
        if turned(&known, &own)? {
            sides.reverse();
        }
        Some(sides)
    }

    /// Where jumps lead from here that have a node of their own: those nodes, and the next one.
    fn behind_jumps(&self, node: NodeId) -> (Vec<NodeId>, NodeId) {
        let (mut jumps, mut at) = (Vec::new(), node);
        while let Some(block) = self.block(at)
            && block.lines.is_empty()
            && block.branch.is_none()
            && let [next] = self.loops.graph().successors(at)
            && !jumps.contains(next)
        {
            jumps.push(at);
            at = *next;
        }
        (jumps, at)
    }
}

/// Whether the second block's branch is the first one's turned round; none where it is another one.
fn turned(known: &Block, own: &Block) -> Option<bool> {
    match (known.branch, own.branch) {
        (None, None) => Some(false),
        (Some(known), Some(own)) if known.mnemonic() == own.mnemonic() => Some(false),
        (Some(known), Some(own)) if known.is_opposite(own) => Some(true),
        _ => None,
    }
}

impl<'a> Block<'a> {
    /// That of segments that run in a row, whose addresses are counted through. None where not all of their code is
    /// known.
    pub fn of(segments: &'a SegmentTable, row: &[SegmentId]) -> Option<Block<'a>> {
        let mut block = Block { lines: Vec::new(), branch: None, is_plain: true };
        let mut first = 0;
        for id in row {
            let segment = &segments[*id];
            block.is_plain &= segment.sp == SpEffect::Add(0);
            for (at, (own, instruction)) in segment.instructions.iter().zip(segments.listing(*id).iter()).enumerate() {
                let instruction = instruction?;
                match own.kind {
                    Kind::Jump if instruction.target().is_some() => {}
                    Kind::Jump => return None,
                    Kind::Branch => block.branch = Some(instruction),
                    kind => {
                        block.is_plain &= !kind.transfers_control();
                        block.lines.push(Line::of(instruction, (*id, at), (first, u32::from(own.memory))));
                    }
                }
                first += u32::from(own.memory);
            }
        }
        Some(block)
    }

    /// Finds this block's instructions among others that were not taken before, in order. Steps may be missing, and
    /// at the end of a turn its test.
    fn fit(&self, own: &Block, mut used: Vec<bool>, is_tail: bool) -> Option<Fit> {
        let mut takes = Vec::new();
        let test = self.lines.iter().rposition(|line| line.is_test).filter(|_| is_tail);
        // What is worked out for the test alone.
        let is_for_test = |line: &Line| test.is_some_and(|test| self.lines[test].reads & line.writes != 0);
        for (number, line) in self.lines.iter().enumerate() {
            let is_it = |at: &usize| !used[*at] && own.lines[*at].sign == line.sign;
            match (0..own.lines.len()).find(is_it).filter(|_| test != Some(number)) {
                Some(at) => {
                    used[at] = true;
                    let (first, count) = own.lines[at].addresses;
                    takes.extend(first..first + count);
                }
                None if (line.is_step || test == Some(number) || is_for_test(line)) && line.addresses.1 == 0 => {}
                None => return None,
            }
        }
        Some(Fit { takes, used })
    }

    /// Those that were not taken.
    fn left(&self, used: &[bool]) -> impl Iterator<Item = &Line<'a>> {
        self.lines.iter().zip(used).filter(|(_, used)| !**used).map(|(line, _)| line)
    }
}

impl<'a> Line<'a> {
    fn of(instruction: Instruction<'a>, at: (SegmentId, usize), addresses: (u32, u32)) -> Line<'a> {
        let is_general = |operand: Operand| matches!(operand, Operand::Register(part) if part.register.is_general());
        let address = instruction.address().filter(|_| instruction.operation() == Operation::Address);
        let is_step = match instruction.step() {
            Step::Update { operator: Operator::Add, acc, by: Operand::Constant(_), to, .. } => {
                is_general(to) && (acc == to || address.is_some())
            }
            Step::Copy { from: Operand::Register(_) | Operand::Constant(_), to, .. } => {
                is_general(to) && instruction.operation() == Operation::Move
            }
            _ => address.is_some_and(|address| address.by_pc),
        };
        let writes = instruction.memory().iter().any(|memory| memory.access.writes && !memory.is_in_frame());
        Line {
            instruction,
            at,
            sign: sign(instruction),
            is_step,
            is_of_vectors: !writes
                && (instruction.is_of_vectors()
                    || instruction.operation() == Operation::Not && is_general(instruction.operand(0))),
            is_test: matches!(instruction.operation(), Operation::Compare | Operation::Test),
            is_move: instruction.mnemonic().trim_start_matches('v').starts_with("mov"),
            reads: instruction.reads() & !instruction.flags_read(),
            writes: instruction.writes() & !instruction.flags_written(),
            works: writes || instruction.kind().is_call(),
            addresses,
        }
    }
}

/// What an instruction does, to operands of which kinds. Where memory lies is left out, and which registers are meant.
fn sign(instruction: Instruction) -> String {
    let mut sign = instruction.mnemonic();
    let is_in_frame = instruction.memory().first().is_some_and(|memory| memory.is_at(Register::SP));
    let place = if is_in_frame { "frame" } else { "m" };
    for (index, operand) in instruction.operands().enumerate() {
        sign += &match operand {
            Operand::Register(part) if part.register.is_general() => format!(" r{}", part.size),
            Operand::Register(part) => format!(" x{}", part.size),
            Operand::Memory => format!(" {place}{}", instruction.size_of(index)),
            Operand::Constant(value) => format!(" {value}"),
            Operand::Several => " ?".to_owned(),
        };
    }
    if let Some(address) = instruction.address().filter(|_| instruction.operation() == Operation::Address) {
        let one_twice = address.base.map(|part| part.register) == address.index.map(|part| part.register);
        // Arithmetic, not a place that is the next one's in the next copy.
        let constant = if one_twice || address.base.is_none() { address.displacement } else { 0 };
        sign += &format!(" {} {} {one_twice} {constant}", address.scale, address.index.is_some());
    }
    if instruction.kind().is_call() {
        sign += &format!(" {:?}", instruction.target());
    }
    sign
}

/// A block of the body.
struct Member {
    /// The node that it was first seen as.
    node: NodeId,
    /// Where its branch leads if it is taken, and if not.
    next: [Option<Next>; 2],
}

/// Where a side of a branch leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Member(usize),
    /// To the end of the copy.
    End,
}

/// What the copies have in common, put together of all of them: each ran what some did not.
pub(super) struct Body<'a> {
    code: &'a Code<'a>,
    members: Vec<Member>,
}

impl<'a> Body<'a> {
    /// Of which only the first block is known.
    pub fn new(code: &'a Code<'a>, begin: NodeId) -> Body<'a> {
        Body { code, members: vec![Member { node: begin, next: [None; 2] }] }
    }

    /// Walks through the copy that begins there, to where `is_end` says that it ends; or, without it, to where the body
    /// is known to end. Notes what its blocks are shown as. Where it ended; none where it is no copy.
    pub fn walk(
        &mut self,
        head: NodeId,
        is_inside: &dyn Fn(NodeId) -> bool,
        is_end: Option<&dyn Fn(NodeId) -> bool>,
        shown: &mut FxHashMap<NodeId, Vec<Part>>,
    ) -> Option<Vec<NodeId>> {
        let (mut known, mut left, mut ends) = (FxHashMap::from_iter([(head, 0)]), vec![(head, 0)], Vec::new());
        while let Some((node, member)) = left.pop() {
            let sides = self.code.sides(node, self.members[member].node)?;
            for (side, next) in sides.into_iter().enumerate().filter_map(|(side, next)| Some((side, next?))) {
                let (jumps, next) = self.code.behind_jumps(next);
                if !jumps.iter().all(|jump| is_inside(*jump)) {
                    return None;
                }
                shown.extend(jumps.into_iter().map(|jump| (jump, Vec::new())));
                let led = self.members[member].next[side];
                let ends_here = is_end.map_or(led == Some(Next::End), |is_end| is_end(next));
                if ends_here {
                    if *self.members[member].next[side].get_or_insert(Next::End) != Next::End {
                        return None;
                    }
                    ends.push(next);
                    continue;
                }
                if !is_inside(next) || led == Some(Next::End) || is_end.is_none() && led.is_none() {
                    return None;
                }
                let met = known.get(&next).copied();
                let to = match (met, led) {
                    (Some(met), Some(Next::Member(to))) if met != to => return None,
                    (Some(met), _) => met,
                    (None, Some(Next::Member(to))) => to,
                    (None, _) => {
                        self.members.push(Member { node: next, next: [None; 2] });
                        self.members.len() - 1
                    }
                };
                self.members[member].next[side] = Some(Next::Member(to));
                if met.is_none() {
                    shown.insert(next, vec![self.code.same(next, self.members[to].node)?]);
                    known.insert(next, to);
                    left.push((next, to));
                }
            }
        }
        Some(ends)
    }
}
