//! Loops that wait: turns that do nothing, found by following each thread once.
//!
//! A thread that comes back to a block, and has run on the way no block that writes elsewhere than to its stack, has
//! made a *turn*. Turns are told apart by the blocks that they run, one after another, and each is judged once
//! ([`turn::deeds`]). One that could be waiting is waiting for sure when
//!
//! - it carries nothing from turn to turn: then it can be left only because memory has changed that another writes; or
//! - some thread left it at a branch that follows from memory alone, so that another has written there; and no thread
//!   reads later what it carries.
//!
//! Of the others, those whose carried registers nobody reads later look like waiting; they are told, and left out on
//! request.

mod turn;

use std::sync::atomic::{AtomicU8, Ordering};

use iced_x86::InstructionInfoFactory;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Block, BlockId, ModuleRole, Pc, Trace};

use self::turn::{Deeds, Registers, Touch};

/// The most blocks of a turn.
const MOST_BLOCKS: usize = 64;

/// Turns that are told apart in one thread; further ones are taken for work.
const MOST_TURNS: usize = 1 << 14;

/// Times that a thread's registers are watched after it has left a turn.
const MOST_WATCHED: u32 = 4;

/// Turns that begin at one block and are work, before the block is no longer looked at.
const MOST_REFUSED: u32 = 256;

/// The blocks of a turn, in order.
pub(super) type Turn = Box<[BlockId]>;

/// What threads made of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Instructions of all turns but one for each time that the loop was come to.
    pub instructions: u64,
    /// It carries registers.
    carries: bool,
    /// A thread left it since memory had changed.
    left_by_memory: bool,
    /// A thread read later what it carries.
    lives_on: bool,
}

impl Found {
    /// Whether it is waiting for sure.
    pub fn waits(&self) -> bool {
        !self.carries || self.left_by_memory && !self.lives_on
    }

    /// Whether it is waiting as far as can be told, and not for sure.
    pub fn looks_like_waiting(&self) -> bool {
        !self.waits() && !self.lives_on
    }

    fn add(&mut self, other: &Found) {
        self.instructions += other.instructions;
        self.carries |= other.carries;
        self.left_by_memory |= other.left_by_memory;
        self.lives_on |= other.lives_on;
    }
}

/// The turns that could be waiting.
pub(super) type Turns = FxHashMap<Turn, Found>;

/// Adds what another thread made of turns.
pub(super) fn merge(all: &mut Turns, more: Turns) {
    for (turn, found) in more {
        all.entry(turn).or_default().add(&found);
    }
}

/// What is known of blocks, for all threads.
pub(super) struct Code<'a> {
    trace: &'a Trace,
    /// By block: 0 not looked at yet, 1 it may be a part of a turn that does nothing, 2 it does something.
    may_wait: Vec<AtomicU8>,
}

impl<'a> Code<'a> {
    pub fn new(trace: &'a Trace) -> Code<'a> {
        Code { trace, may_wait: (0..trace.blocks().len()).map(|_| AtomicU8::new(0)).collect() }
    }

    #[inline]
    fn may_wait(&self, block: BlockId) -> bool {
        match self.may_wait[block.index()].load(Ordering::Relaxed) {
            0 => self.look(block),
            known => known == 1,
        }
    }

    #[cold]
    fn look(&self, block: BlockId) -> bool {
        let may = turn::may_wait(&self.trace.blocks()[block], &mut InstructionInfoFactory::new());
        self.may_wait[block.index()].store(if may { 1 } else { 2 }, Ordering::Relaxed);
        may
    }

    /// Whether it is the loader's, which saves and restores registers of others when it looks up a function.
    fn is_loaders(&self, pc: Pc) -> bool {
        let loaders = self.trace.modules().iter().filter(|module| module.role == ModuleRole::Loader);
        loaders.flat_map(|module| &module.mappings).any(|m| m.executable && m.start <= pc && pc < m.end)
    }
}

/// A turn that a thread goes on making.
struct Going {
    turn: usize,
    /// The block of it that comes next.
    next: usize,
}

/// Registers that are followed after a loop.
struct Watched {
    turn: usize,
    registers: Registers,
    /// By register: how often it lies saved on the stack.
    saved: [u32; 64],
}

struct Judged {
    blocks: Turn,
    deeds: Deeds,
    instructions: u64,
    found: Found,
    left: u32,
}

/// Follows one thread.
pub(super) struct Follower<'a> {
    code: &'a Code<'a>,
    factory: InstructionInfoFactory,
    /// The blocks since one that does something, the latest last.
    run: Vec<BlockId>,
    /// By block: where it stands in the run, plus one, and which run that is.
    last: Vec<(u32, u32)>,
    number: u32,
    judged: Vec<Judged>,
    /// By blocks: the turn's number; none where it is work.
    known: FxHashMap<Turn, Option<usize>>,
    refused: FxHashMap<BlockId, u32>,
    going: Option<Going>,
    watched: Vec<Watched>,
    watching: Registers,
    touches: FxHashMap<BlockId, (Registers, Vec<Touch>)>,
}

impl<'a> Follower<'a> {
    pub fn new(code: &'a Code<'a>) -> Follower<'a> {
        Follower {
            code,
            factory: InstructionInfoFactory::new(),
            run: Vec::new(),
            last: vec![(0, 0); code.may_wait.len()],
            number: 1,
            judged: Vec::new(),
            known: FxHashMap::default(),
            refused: FxHashMap::default(),
            going: None,
            watched: Vec::new(),
            watching: 0,
            touches: FxHashMap::default(),
        }
    }

    /// The thread runs a block.
    #[inline]
    pub fn block(&mut self, block: BlockId) {
        if let Some(going) = &mut self.going {
            let judged = &mut self.judged[going.turn];
            if judged.blocks[going.next] == block {
                going.next += 1;
                if going.next == judged.blocks.len() {
                    going.next = 0;
                    judged.found.instructions += judged.instructions;
                }
                return;
            }
            self.leave(Some(block));
        }
        if self.watching != 0 {
            self.watch(block);
        }
        if !self.code.may_wait(block) {
            self.forget();
            return;
        }
        let (at, number) = self.last[block.index()];
        if number == self.number && self.turn(block, at as usize) {
            return;
        }
        if self.run.len() == 4 * MOST_BLOCKS {
            let kept = self.run.split_off(3 * MOST_BLOCKS);
            self.forget();
            kept.into_iter().for_each(|block| self.push(block));
        }
        self.push(block);
    }

    fn push(&mut self, block: BlockId) {
        self.last[block.index()] = (self.run.len() as u32, self.number);
        self.run.push(block);
    }

    /// The thread does something that is no part of a turn.
    pub fn interrupt(&mut self) {
        if self.going.is_some() {
            self.leave(None);
        }
        self.forget();
    }

    #[inline]
    fn forget(&mut self) {
        if !self.run.is_empty() {
            self.run.clear();
            self.number += 1;
        }
    }

    /// Before this block, which stands at this place of the run: whether the way from there is a turn that could be
    /// waiting.
    fn turn(&mut self, block: BlockId, from: usize) -> bool {
        let blocks = &self.run[from..];
        if blocks.len() > MOST_BLOCKS || self.refused.get(&block).is_some_and(|n| *n >= MOST_REFUSED) {
            return false;
        }
        let turn = match self.known.get(blocks) {
            Some(known) => *known,
            None if self.known.len() >= MOST_TURNS => None,
            None => self.judge(from),
        };
        let Some(turn) = turn else {
            *self.refused.entry(block).or_default() += 1;
            return false;
        };
        let judged = &mut self.judged[turn];
        judged.found.instructions += judged.instructions;
        self.going = Some(Going { turn, next: 1 % judged.blocks.len() });
        if judged.blocks.len() == 1 {
            // The block that begins the next turn is all of it, and is counted when it is followed by another.
            self.going = Some(Going { turn, next: 0 });
        }
        self.forget();
        true
    }

    fn judge(&mut self, from: usize) -> Option<usize> {
        let blocks: Turn = self.run[from..].into();
        let table = self.code.trace.blocks();
        let code: Vec<&Block> = blocks.iter().map(|block| &table[*block]).collect();
        let deeds = turn::deeds(&code, &mut self.factory);
        let turn = deeds.map(|deeds| {
            let instructions = code.iter().map(|block| block.instructions.len() as u64).sum();
            let found = Found { carries: deeds.carried != 0, ..Found::default() };
            self.judged.push(Judged { blocks: blocks.clone(), deeds, instructions, found, left: 0 });
            self.judged.len() - 1
        });
        self.known.insert(blocks, turn);
        turn
    }

    /// The thread leaves the turn that it went on making, for this block.
    fn leave(&mut self, to: Option<BlockId>) {
        let Some(Going { turn, next }) = self.going.take() else { return };
        let table = self.code.trace.blocks();
        let judged = &mut self.judged[turn];
        let last = if next == 0 { judged.blocks.len() - 1 } else { next - 1 };
        if let Some(to) = to {
            // Where the block that came has the beginning of the one expected, the thread left inside of that.
            let inside = table[to].start() == table[judged.blocks[next]].start();
            judged.found.left_by_memory |= judged.deeds.by_memory[if inside { next } else { last }];
        }
        judged.left += 1;
        if judged.deeds.carried != 0 && !judged.found.lives_on && judged.left <= MOST_WATCHED {
            self.watched.push(Watched { turn, registers: judged.deeds.carried, saved: [0; 64] });
            self.watching |= judged.deeds.carried;
        }
        let blocks: Vec<BlockId> = judged.blocks[..next].to_vec();
        self.forget();
        for block in blocks {
            self.push(block);
        }
    }

    /// Whether the registers that are followed are read, or written over, in this block.
    fn watch(&mut self, block: BlockId) {
        let (code, factory) = (self.code, &mut self.factory);
        let content = &code.trace.blocks()[block];
        let (every, touches) = self.touches.entry(block).or_insert_with(|| {
            if code.is_loaders(content.start()) { (0, Vec::new()) } else { turn::touches(content, factory) }
        });
        if *every & self.watching == 0 {
            return;
        }
        for watched in &mut self.watched {
            for touch in touches.iter() {
                match *touch {
                    Touch::Saves(one) if one & watched.registers != 0 => {
                        watched.saved[one.trailing_zeros() as usize] += 1
                    }
                    Touch::Restores(one) if one & watched.registers != 0 => {
                        let saved = &mut watched.saved[one.trailing_zeros() as usize];
                        match saved.checked_sub(1) {
                            Some(left) => *saved = left,
                            None => watched.registers &= !one,
                        }
                    }
                    Touch::Uses(read, written) => {
                        let here = (0..64).filter(|r| watched.saved[*r] == 0).fold(0, |all, r| all | 1u64 << r)
                            & watched.registers;
                        self.judged[watched.turn].found.lives_on |= read & here != 0;
                        watched.registers &= !(written & here);
                    }
                    _ => {}
                }
            }
        }
        let judged = &self.judged;
        self.watched.retain(|watched| watched.registers != 0 && !judged[watched.turn].found.lives_on);
        self.watching = self.watched.iter().fold(0, |all, watched| all | watched.registers);
    }

    /// The turns that could be waiting, and what the thread made of them.
    pub fn finish(mut self) -> Turns {
        self.interrupt();
        self.judged.into_iter().map(|judged| (judged.blocks, judged.found)).collect()
    }
}

/// The turns that are left out of the streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    turns: FxHashSet<Turn>,
    /// Blocks with which they begin.
    heads: FxHashSet<BlockId>,
    /// All blocks of them.
    members: FxHashSet<BlockId>,
    /// The most blocks of one.
    longest: usize,
}

impl Waiting {
    pub fn new(turns: impl Iterator<Item = Turn>) -> Waiting {
        let turns: FxHashSet<Turn> = turns.collect();
        Waiting {
            heads: turns.iter().map(|turn| turn[0]).collect(),
            members: turns.iter().flat_map(|turn| turn.iter().copied()).collect(),
            longest: turns.iter().map(|turn| turn.len()).max().unwrap_or(0),
            turns,
        }
    }

    pub fn is_head(&self, block: BlockId) -> bool {
        self.heads.contains(&block)
    }

    pub fn is_member(&self, block: BlockId) -> bool {
        self.members.contains(&block)
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    pub fn contains(&self, blocks: &[BlockId]) -> bool {
        self.turns.contains(blocks)
    }
}
