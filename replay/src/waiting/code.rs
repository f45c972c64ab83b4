//! What is known about code before any thread is followed: which segments can be a part of a turn that waits.
//!
//! Most of a program cannot: what writes elsewhere than to its stack does something, and what is left, once that is
//! taken out of the control-flow graph, is mostly no cycle. So following a thread costs little where it works.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use flowgraph::{Builder, Components, NodeId};
use heuristics::{Segment, SegmentId, SegmentTable};
use machine::{Instruction, Operation, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{BlockId, Kind, LibraryCode, ModuleRole, Pc, Trace};

use super::candidate::{self, Candidate};
use super::cycle::Turn;
use super::reaching_constants::{self, Leading};
use super::registers::{self, Registers, Touch};

/// How far apart the code of a function lies at most, as far as its slots go.
const NEAR: u64 = 4096;

/// The bits of both ways of a branch.
const BOTH_WAYS: u8 = 3;

/// What an instruction says about the frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    /// `mov rbp, rsp`: the register is one from here on.
    Frame,
    /// The register gets another value.
    Other,
    /// The address so far from it is taken.
    Taken(i64),
    /// The address so far from the stack pointer is taken.
    TakenFromStack(i64),
}

/// The registers and slots that a segment touches: all of them as bits, and one after another.
type Touched = (Registers, Vec<Touch>);

/// What is known about code, for all threads.
pub(crate) struct Code<'a> {
    pub(super) trace: &'a Trace,
    pub(super) table: &'a SegmentTable,
    /// Whose loops wait for nobody.
    pub(super) libraries: LibraryCode<'a>,
    /// Where the loader's code is.
    loader: Vec<Range<Pc>>,
    /// By segment: whether it can be a part of a turn.
    can_wait: Vec<bool>,
    /// By block: whether one of its segments can.
    blocks: Vec<bool>,
    /// By segment that can: whether it ends with a branch that may lead back to another.
    pub(super) leads_back: Vec<bool>,
    /// By address.
    signs: Vec<(Pc, Sign)>,
    /// Segments that the user named as waiting.
    named: FxHashSet<SegmentId>,
    /// Where jumps and calls lead.
    pub(super) targets: FxHashMap<SegmentId, Pc>,
    /// By address: the segments that start there.
    starts: FxHashMap<Pc, Vec<SegmentId>>,
    /// Once it was asked for: what leads where.
    leading: OnceLock<Leading>,
    /// By block, once a thread has run it.
    wholes: Vec<OnceLock<Whole>>,
    /// What turns are that some thread has made, and how often one was judged.
    verdicts: RwLock<FxHashMap<Turn, Option<Candidate>>>,
    pub(super) judgements: AtomicUsize,
    /// By segment, once it was asked for: the registers and slots that it touches.
    touched: Vec<OnceLock<Touched>>,
    /// By segment that can wait: a bit for each way of its branch that a thread went; both where it has none.
    gone: Vec<AtomicU8>,
}

impl<'a> Code<'a> {
    /// Of a whole trace; `named` are addresses in loops that wait because the user says so.
    pub fn new(trace: &'a Trace, table: &'a SegmentTable, named: &[Pc]) -> Code<'a> {
        let mut can_wait = vec![false; table.len()];
        // What the loader does before a program begins, and when it binds a function, is no wait.
        let loader: Vec<Range<Pc>> = loader(trace);
        let (mut signs, mut targets) = (Vec::new(), FxHashMap::default());
        let mut starts: FxHashMap<Pc, Vec<SegmentId>> = FxHashMap::default();
        table.iter().for_each(|(id, segment)| starts.entry(segment.start()).or_default().push(id));
        // Other forms of a segment, as a call that is left out, have its code.
        let mut seen = vec![false; table.len()];
        for segment in trace.blocks().iter().flat_map(|(id, _)| table.of_block(id)) {
            let is_seen = std::mem::replace(&mut seen[segment.0 as usize], true);
            let all: Option<Vec<Instruction>> = if is_seen { None } else { table.listing(*segment).iter().collect() };
            if let Some(all) = all {
                signs.extend(all.iter().filter_map(|instruction| sign(*instruction)));
                let leads = matches!(table[*segment].last().kind, Kind::Jump | Kind::Call);
                let target = all.last().filter(|_| leads).and_then(|last| last.target());
                targets.extend(target.map(|target| (*segment, target)));
                can_wait[segment.0 as usize] = !is_in(&loader, table[*segment].start()) && registers::may_wait(&all);
            }
        }
        signs.sort_unstable();
        signs.dedup();
        keep_cycles(trace, table, &targets, &mut can_wait);
        let leads_back = |(id, of): (SegmentId, &Segment)| {
            let is_back = |way: &Pc| *way < of.start() && starts.contains_key(way);
            can_wait[id.0 as usize] && of.ways.is_some_and(|ways| ways.iter().any(is_back))
        };
        let leads_back = table.iter().map(leads_back).collect();
        let blocks = trace.blocks().iter();
        let blocks = blocks.map(|(id, _)| table.of_block(id).iter().any(|s| can_wait[s.0 as usize])).collect();
        let holds = |s: &SegmentId| table[*s].instructions.iter().any(|i| named.contains(&i.pc));
        let named = if named.is_empty() {
            FxHashSet::default()
        } else {
            table.iter().map(|(id, _)| id).filter(holds).collect()
        };
        let gone = table.iter().map(|(_, s)| AtomicU8::new(if s.ways.is_some() { 0 } else { BOTH_WAYS })).collect();
        let (verdicts, judgements) = (RwLock::default(), AtomicUsize::new(0));
        let touched = can_wait.iter().map(|_| OnceLock::new()).collect();
        let wholes = trace.blocks().iter().map(|_| OnceLock::new()).collect();
        Code {
            trace,
            table,
            libraries: LibraryCode::new(trace.modules(), trace.symbols()),
            loader,
            can_wait,
            blocks,
            leads_back,
            signs,
            named,
            targets,
            starts,
            leading: OnceLock::new(),
            wholes,
            verdicts,
            judgements,
            touched,
            gone,
        }
    }

    /// How many blocks there are.
    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Whether some of the block can be a part of a turn.
    #[inline]
    pub fn can_block_wait(&self, block: BlockId) -> bool {
        self.blocks[block.index()]
    }

    /// The constant that a general register holds at an address, whichever way led there.
    pub fn constant_at(&self, pc: Pc, register: usize) -> Option<u64> {
        reaching_constants::constant_at(pc, register, self, self.leading.get_or_init(|| Leading::of(self)))
    }

    /// The segments that start at an address.
    pub(super) fn starting_at(&self, pc: Pc) -> &[SegmentId] {
        self.starts.get(&pc).map_or(&[], Vec::as_slice)
    }

    /// Whether the segment can be a part of a turn.
    #[inline]
    pub fn can_wait(&self, segment: SegmentId) -> bool {
        self.can_wait[segment.0 as usize]
    }

    /// What the code of a turn says about it; judged once for all threads.
    pub(super) fn candidate(&self, segments: &Turn) -> Option<Candidate> {
        if let Some(known) = self.verdicts.read().unwrap_or_else(PoisonError::into_inner).get(segments) {
            return known.clone();
        }
        let candidate = candidate::judge(segments, self);
        self.judgements.fetch_add(1, Ordering::Relaxed);
        self.verdicts.write().unwrap_or_else(PoisonError::into_inner).insert(segments.clone(), candidate.clone());
        candidate
    }

    /// The registers and slots that a segment touches.
    #[inline]
    pub(super) fn touches(&self, segment: SegmentId) -> &Touched {
        self.touched[segment.0 as usize].get_or_init(|| {
            let all = self.decode(segment).filter(|_| !self.is_loaders(self.table[segment].start()));
            all.map_or((0, Vec::new()), |all| registers::touches(&all))
        })
    }

    /// What need be known about a block that a thread runs, to follow it as a whole.
    #[inline]
    pub(super) fn whole(&self, block: BlockId) -> &Whole {
        self.wholes[block.index()].get_or_init(|| Whole::of(self.table.of_block(block), self))
    }

    /// A thread went from one segment, which can wait, to another.
    #[inline]
    pub fn went(&self, from: SegmentId, to: SegmentId) {
        let gone = &self.gone[from.0 as usize];
        let known = gone.load(Ordering::Relaxed);
        if known == BOTH_WAYS {
            return;
        }
        let Some(ways) = self.table[from].ways else { return };
        let bit = if ways[0] == self.table[to].start() { 1 } else { 2 };
        if known & bit == 0 {
            gone.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether a thread went from this segment along this way of its branch.
    pub fn has_gone(&self, from: SegmentId, to: Pc) -> bool {
        let Some(ways) = self.table[from].ways else { return false };
        let bit = if ways[0] == to { 1 } else { 2 };
        self.gone[from.0 as usize].load(Ordering::Relaxed) & bit != 0
    }

    /// Whether the user named the segment.
    pub fn is_named(&self, segment: SegmentId) -> bool {
        self.named.contains(&segment)
    }

    /// The instructions of a segment, decoded; none where their bytes are not known.
    pub fn decode(&self, segment: SegmentId) -> Option<Vec<Instruction<'a>>> {
        self.table.listing(segment).iter().collect()
    }

    /// Whether the frame pointer is one in the code at this address, as far as instructions before it tell.
    pub fn has_frame(&self, pc: Pc) -> bool {
        let before = self.signs[..self.signs.partition_point(|(at, _)| *at < pc)].iter().rev();
        let of_frame = |sign: &&Sign| matches!(sign, Sign::Frame | Sign::Other);
        before.map(|(_, sign)| sign).find(of_frame) == Some(&Sign::Frame)
    }

    /// Whether code around this takes the address that lies so far from its frame pointer, or else from its stack
    /// pointer.
    pub fn is_taken(&self, pc: Pc, by_frame: bool, displacement: i64) -> bool {
        let at = self.signs.partition_point(|(at, _)| *at < pc);
        if !by_frame {
            let near = |(at, _): &&(Pc, Sign)| at.0.abs_diff(pc.0) < NEAR;
            let (before, behind) = (self.signs[..at].iter().rev(), self.signs[at..].iter());
            let mut all = before.take_while(near).chain(behind.take_while(near));
            return all.any(|(at, sign)| *sign == Sign::TakenFromStack(displacement) && self.may_be_one(pc, *at));
        }
        let is_inside = |(_, sign): &&(Pc, Sign)| !matches!(sign, Sign::Frame | Sign::Other);
        let before = self.signs[..at].iter().rev().take_while(is_inside);
        let mut all = before.chain(self.signs[at..].iter().take_while(is_inside));
        all.any(|(_, sign)| *sign == Sign::Taken(displacement))
    }

    /// Whether both addresses may be in one function, of which compilers put parts elsewhere (`work.cold`).
    fn may_be_one(&self, a: Pc, b: Pc) -> bool {
        let function = |pc| self.trace.symbol_of(pc).and_then(|symbol| symbol.name.split('.').next());
        function(a).zip(function(b)).is_none_or(|(a, b)| a == b)
    }

    /// Whether it is the loader's, which saves and restores registers of others when it looks up a function.
    pub fn is_loaders(&self, pc: Pc) -> bool {
        is_in(&self.loader, pc)
    }
}

/// What need be known about a block to follow it as a whole, where no turn begins in it.
///
/// A *cut* is a segment that cannot wait: what ran before it is forgotten.
pub(super) struct Whole {
    /// The segments that stand in it once more without a cut between.
    pub again: Vec<SegmentId>,
    /// Bits of the segments before the first cut.
    pub before: u64,
    /// How many those are.
    pub before_count: usize,
    /// Bits of those that are left of it: behind the last cut.
    pub left: u64,
    /// The first of those.
    pub first_left: usize,
    pub has_cut: bool,
    /// The segments that have another behind them, and may lead back.
    pub leading_back: Vec<SegmentId>,
}

impl Whole {
    fn of(segments: &[SegmentId], code: &Code) -> Whole {
        let leading_back =
            segments[..segments.len() - 1].iter().copied().filter(|one| code.leads_back[one.0 as usize]).collect();
        let (before, before_count, left, first_left) = (0, 0, 0, 0);
        let mut whole =
            Whole { again: Vec::new(), before, before_count, left, first_left, has_cut: false, leading_back };
        for (i, segment) in segments.iter().enumerate() {
            if !code.can_wait(*segment) {
                (whole.has_cut, whole.left, whole.first_left) = (true, 0, i + 1);
                continue;
            }
            if segments[whole.first_left..i].contains(segment) && !whole.again.contains(segment) {
                whole.again.push(*segment);
            }
            whole.left |= bit(*segment);
            if !whole.has_cut {
                whole.before |= bit(*segment);
                whole.before_count = i + 1;
            }
            if let Some(next) = segments.get(i + 1) {
                code.went(*segment, *next);
            }
        }
        whole
    }
}

/// A bit that stands for the segment, and for others.
pub(super) fn bit(segment: SegmentId) -> u64 {
    1 << (segment.0 % 64)
}

fn loader(trace: &Trace) -> Vec<Range<Pc>> {
    let loaders = trace.modules().iter().filter(|module| module.role == ModuleRole::Loader);
    loaders.flat_map(|module| &module.mappings).filter(|m| m.executable).map(|m| m.start..m.end).collect()
}

fn is_in(ranges: &[Range<Pc>], pc: Pc) -> bool {
    ranges.iter().any(|range| range.contains(&pc))
}

fn sign(instruction: Instruction) -> Option<(Pc, Sign)> {
    use Operation::{Address, Compare, Leave, Move, Pop, Push, Test};
    let at = instruction.pc();
    let [to, from] = [instruction.register(0), instruction.register(1)];
    let is_sp = from.is_some_and(|from| from.is_whole(Register::SP));
    let (operation, address) = (instruction.operation(), instruction.address());
    let base = address.and_then(|address| address.base).filter(|base| base.size == 8).map(|base| base.register);
    let taken = |is_by_frame: bool| {
        let displacement = address.map_or(0, |address| address.displacement);
        Some((at, if is_by_frame { Sign::Taken(displacement) } else { Sign::TakenFromStack(displacement) }))
    };
    match operation {
        Move | Address if to.is_some_and(|to| to.is_whole(Register::BP)) => {
            let from_sp = is_sp || operation == Address && base == Some(Register::SP);
            Some((at, if from_sp { Sign::Frame } else { Sign::Other }))
        }
        Address if base == Some(Register::BP) => taken(true),
        Move if is_sp => taken(false),
        Address if base == Some(Register::SP) && !to.is_some_and(|to| to.is_whole(Register::SP)) => taken(false),
        Pop | Push | Leave | Compare | Test => None,
        _ if to.is_some_and(|to| to.register == Register::BP) => Some((at, Sign::Other)),
        _ => None,
    }
}

/// Of the segments that can wait, leaves those that lie on a cycle of such.
fn keep_cycles(trace: &Trace, table: &SegmentTable, targets: &FxHashMap<SegmentId, Pc>, can_wait: &mut [bool]) {
    let count = can_wait.len();
    if count == 0 {
        return;
    }
    let mut starts: FxHashMap<Pc, Vec<u32>> = FxHashMap::default();
    let mut sites: FxHashSet<Pc> = FxHashSet::default();
    for (id, segment) in table.iter() {
        if can_wait[id.0 as usize] {
            starts.entry(segment.start()).or_default().push(id.0);
        }
        if segment.last().kind.is_call() {
            sites.extend(segment.last().next_pc());
        }
    }
    // Two nodes stand for what a return, and what an indirect jump, may lead to.
    let (returns, jumps) = (NodeId(count as u32), NodeId(count as u32 + 1));
    let mut edges = Builder::new(count + 2);
    let mut lead = |from: NodeId, to: Pc| {
        for to in starts.get(&to).into_iter().flatten() {
            edges.edge(from, NodeId(*to));
        }
    };
    for (id, segment) in table.iter().filter(|(id, _)| can_wait[id.0 as usize]) {
        let (from, last) = (NodeId(id.0), segment.last());
        for to in segment.ways.into_iter().flatten().chain(targets.get(&id).copied()) {
            lead(from, to);
        }
        if !matches!(last.kind, Kind::Jump | Kind::IndirectJump | Kind::Return)
            && let Some(next) = last.next_pc()
        {
            lead(from, next);
        }
    }
    sites.iter().for_each(|site| {
        lead(returns, *site);
        lead(jumps, *site);
    });
    trace.blocks().iter().for_each(|(_, block)| lead(jumps, block.start()));
    for (id, segment) in table.iter().filter(|(id, _)| can_wait[id.0 as usize]) {
        match segment.last().kind {
            Kind::Return => _ = edges.edge(NodeId(id.0), returns),
            Kind::IndirectJump | Kind::IndirectCall => _ = edges.edge(NodeId(id.0), jumps),
            _ => {}
        }
    }
    for (id, _) in trace.blocks().iter() {
        for pair in table.of_block(id).windows(2) {
            let [from, to] = [pair[0].0, pair[1].0];
            let is_open = matches!(table[pair[0]].last().kind, Kind::Return | Kind::IndirectJump | Kind::IndirectCall);
            if is_open && can_wait[from as usize] && can_wait[to as usize] {
                edges.edge(NodeId(from), NodeId(to));
            }
        }
    }
    let graph = edges.build(NodeId(0));
    let components = Components::of(&graph);
    for (index, can) in can_wait.iter_mut().enumerate().filter(|(_, can)| **can) {
        *can = components.is_cyclic(components.component(NodeId(index as u32)));
    }
}

/// Which segments write elsewhere than to the stack, worked out when it is asked.
#[derive(Debug)]
pub(crate) struct Writes {
    /// By segment: 0 not looked at yet, 1 it does not, as far as is known, 2 it does.
    known: Vec<AtomicU8>,
}

impl Writes {
    pub fn new(segments: usize) -> Writes {
        Writes { known: (0..segments).map(|_| AtomicU8::new(0)).collect() }
    }

    /// Whether this segment does.
    pub fn is_set(&self, segment: SegmentId, table: &SegmentTable) -> bool {
        let known = &self.known[segment.0 as usize];
        if known.load(Ordering::Relaxed) == 0 {
            let all: Option<Vec<Instruction>> = table.listing(segment).iter().collect();
            let writes = all.is_some_and(|all| !registers::may_wait(&all));
            known.store(if writes { 2 } else { 1 }, Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed) == 2
    }
}
