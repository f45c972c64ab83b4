//! Segments: the static program as a replay sees it.
//!
//! A trace's blocks may begin inside one another. Replay cuts them into *segments*, such that no lane can ever stand
//! inside a segment while a choice is made: a segment ends before the first address of any block, before one to which a
//! conditional branch can lead, after an instruction that transfers control, and after one that changes the stack
//! pointer. Hence pcs and stack pointer of a segment's instructions lie between its first pc and the next segment's,
//! and a model that looks at both chooses the same lanes at each instruction of a segment as at its first. Segments
//! with equal first pc always have equal pcs.

use std::sync::OnceLock;

use crate::program::decoded::{Decoded, operations, ways};
use crate::program::linkage::{Pieces, Stub};
use machine::Listing;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Block, BlockId, BlockTable, Instruction, Kind, Pc, SpEffect};

/// A segment, numbered from 0; always below 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u32);

/// A place: segments with the same first pc share one. Numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// Instructions that always run in a row, see the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The instructions; never empty. For an elided call the last one is a [`Kind::Jump`] that leaves the stack pointer
    /// alone.
    pub instructions: Vec<Instruction>,
    /// Its place: equal for segments with the same first pc.
    pub place: PlaceId,
    /// A block that holds it, and the index there of its first instruction; of a copy, which none holds, no index.
    pub origin: (BlockId, u32),
    /// How many memory addresses the stream holds for each execution of it.
    pub addresses: u32,
    /// What its last instruction does to the stack pointer; the others do nothing to it.
    pub sp: SpEffect,
    /// Where its last instruction can lead, taken and not: of a conditional branch whose code bytes are known.
    pub ways: Option<[Pc; 2]>,
    /// Whether it is a part of a stub of the linkage table that a lane was sent to: of the call, not of a function.
    pub in_stub: bool,
}

impl Segment {
    /// The address of its first instruction.
    #[inline]
    #[must_use]
    pub fn start(&self) -> Pc {
        self.instructions[0].pc
    }

    /// How many instructions it has.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Never: a segment has at least one instruction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty()
    }

    /// Its last instruction.
    #[inline]
    #[must_use]
    pub fn last(&self) -> &Instruction {
        &self.instructions[self.instructions.len() - 1]
    }
}

/// More instructions than any arm has that is predicated.
const NOT_PREDICATED: u32 = 1 << 16;

/// All segments of a trace, and which segments each block is.
#[derive(Clone, Debug, Default)]
pub struct SegmentTable {
    segments: Vec<Segment>,
    /// The segment as it is when the code called is not part of the replay; itself where it is no call.
    elided: Vec<SegmentId>,
    /// The segment as it is in a stub of the linkage table; itself where its code cannot be one.
    in_stub: Vec<SegmentId>,
    /// Whether it calls the loader to bind a slot of the linkage table, if it is in a stub.
    binds: Vec<bool>,
    /// The code bytes of segments, one segment after another, and where in them each begins whose bytes are known.
    code: Vec<u8>,
    code_of: Vec<Option<u32>>,
    /// What the instructions of all segments do, once somebody asked.
    decoded: OnceLock<Decoded>,
    /// The segments of all blocks, in order, one block after another; and where each block's begin, and the last's end.
    of_blocks: Vec<SegmentId>,
    begins: Vec<u32>,
    places: u32,
    /// By segment: whether it is a library's whose atomic operations are no lanes' own; empty: none is.
    of_libraries: Vec<bool>,
    /// By the first segment of a row that is several copies of one: that, and how many.
    copies: FxHashMap<SegmentId, (SegmentId, u32)>,
}

impl SegmentTable {
    /// Cuts the blocks of a trace into segments. `cuts` are further addresses before which to cut: those after
    /// the instructions at which a block was left half-way.
    #[must_use]
    pub fn new(blocks: &BlockTable, cuts: &[Pc]) -> SegmentTable {
        let mut leaders = leaders(blocks, cuts);
        let pieces = Pieces::of(blocks);
        loop {
            let sorted = sorted(&leaders);
            match SegmentTable::cut(blocks, &sorted, &pieces) {
                Ok(table) => return table,
                Err(conflicting) => {
                    let before = leaders.len();
                    leaders.extend(conflicting);
                    assert!(leaders.len() > before, "cutting at every conflicting pc resolves the conflict");
                }
            }
        }
    }

    /// Says whose code is a library's whose atomic operations are not the program's: lanes yield at none of them.
    pub fn name_libraries(&mut self, is_library: impl Fn(Pc) -> bool) {
        self.of_libraries = self.segments.iter().map(|segment| is_library(segment.start())).collect();
    }

    /// Whether the segment was said to be such a library's.
    #[must_use]
    pub fn is_of_library(&self, segment: SegmentId) -> bool {
        self.of_libraries.get(segment.0 as usize) == Some(&true)
    }

    /// Cuts at the leaders. When two segments begin at one pc and then differ (code that was changed at run time),
    /// the error holds the pcs of both: cut there too, and try again.
    fn cut(blocks: &BlockTable, leaders: &[Pc], pieces: &Pieces) -> Result<SegmentTable, Vec<Pc>> {
        let mut table = SegmentTable::default();
        // By first pc: the segment that began there last. By segment: the one before it that begins at the same pc.
        let mut latest: FxHashMap<Pc, SegmentId> = FxHashMap::default();
        let mut earlier: Vec<Option<SegmentId>> = Vec::new();
        let mut conflicts = Vec::new();
        for (id, block) in blocks.iter() {
            table.begins.push(table.end_of_blocks());
            let mut code = &block.code[..];
            let mut cutter = Cutter::new(block, leaders);
            while let Some((first, run)) = cutter.next_run() {
                let bytes = run.iter().map(|i| usize::from(i.len)).sum::<usize>().min(code.len());
                let (own, rest) = code.split_at(bytes);
                code = rest;
                let before = latest.get(&run[0].pc).copied();
                let is_it = |known: &SegmentId| table[*known].instructions == run;
                let known = std::iter::successors(before, |known| earlier[known.0 as usize]).find(is_it);
                let segment = known.unwrap_or_else(|| {
                    let new = SegmentId(table.segments.len() as u32);
                    let place = if let Some(other) = before.map(|other| &table[other]) {
                        if !other.instructions.iter().map(|i| i.pc).eq(run.iter().map(|i| i.pc)) {
                            conflicts.extend(other.instructions.iter().chain(run).map(|i| i.pc));
                        }
                        other.place
                    } else {
                        table.add_place()
                    };
                    let ways = ways(block, first + run.len() - 1);
                    table.push(run, own, place, (id, first as u32), ways, pieces.stub(run[0].pc));
                    latest.insert(run[0].pc, new);
                    earlier.resize(table.len(), before);
                    new
                });
                table.of_blocks.push(segment);
            }
        }
        table.begins.push(table.end_of_blocks());
        if conflicts.is_empty() { Ok(table) } else { Err(conflicts) }
    }

    fn push(
        &mut self,
        run: &[Instruction],
        code: &[u8],
        place: PlaceId,
        origin: (BlockId, u32),
        ways: Option<[Pc; 2]>,
        stub: Option<Stub>,
    ) {
        let addresses = run.iter().map(|i| u32::from(i.memory)).sum();
        let last = run[run.len() - 1];
        let id = SegmentId(self.segments.len() as u32);
        let segment =
            Segment { instructions: run.to_vec(), place, origin, addresses, sp: last.sp, ways, in_stub: false };
        if last.kind.is_call() {
            let mut elided = segment.clone();
            let call = elided.instructions.last_mut().expect("a segment has at least one instruction");
            call.kind = Kind::Jump;
            call.sp = SpEffect::Add(0);
            elided.sp = SpEffect::Add(0);
            self.segments.extend([segment, elided]);
            self.elided.extend([SegmentId(id.0 + 1); 2]);
            self.in_stub.extend([id, SegmentId(id.0 + 1)]);
        } else if stub.is_some() {
            let in_stub = Segment { in_stub: true, ..segment.clone() };
            self.segments.extend([segment, in_stub]);
            self.elided.extend([id, SegmentId(id.0 + 1)]);
            self.in_stub.extend([SegmentId(id.0 + 1); 2]);
        } else {
            self.segments.push(segment);
            self.elided.push(id);
            self.in_stub.push(id);
        }
        let begins = (!code.is_empty()).then_some(self.code.len() as u32);
        self.code_of.resize(self.segments.len(), begins);
        self.code.extend_from_slice(code);
        self.binds.resize(self.segments.len(), stub == Some(Stub::Binds));
        assert!(self.segments.len() < 1 << 31, "the high bit of a segment's number is kept free");
    }

    /// Adds a segment with a place of its own that no thread ran: these instructions of others that run in a row, in
    /// order, each by its segment and index, and not with the first of all. Of that the row that begins with this
    /// segment is so many copies.
    ///
    /// # Panics
    /// When there are no such instructions.
    pub fn add_copy(&mut self, of: SegmentId, instructions: &[(SegmentId, usize)], copies: u32) {
        let run: Vec<Instruction> = instructions.iter().map(|(id, at)| self[*id].instructions[*at]).collect();
        let bytes = |(id, at): &(SegmentId, usize)| {
            let length = |one: &Instruction| usize::from(one.len);
            let before: usize = self[*id].instructions[..*at].iter().map(length).sum();
            self.code(*id).get(before..before + length(&self[*id].instructions[*at]))
        };
        let code: Vec<u8> = instructions.iter().filter_map(bytes).flatten().copied().collect();
        // In no block as it is.
        let (last, _) = instructions[instructions.len() - 1];
        let (origin, ways) = ((self[of].origin.0, u32::MAX - self.copies.len() as u32), self[last].ways);
        let copy = SegmentId(self.segments.len() as u32);
        let place = self.add_place();
        self.push(&run, &code, place, origin, ways, None);
        self.decoded = OnceLock::new();
        self.copies.insert(of, (copy, copies));
    }

    /// One of the copies of which the row is several that begins with a segment, and how many: see
    /// [`SegmentTable::add_copy`].
    #[must_use]
    pub fn copy_in(&self, segment: SegmentId) -> Option<(SegmentId, u32)> {
        self.copies.get(&segment).copied()
    }

    /// The segments of a block, in order.
    #[inline]
    #[must_use]
    pub fn of_block(&self, block: BlockId) -> &[SegmentId] {
        let [begin, end] = [self.begins[block.index()], self.begins[block.index() + 1]];
        &self.of_blocks[begin as usize..end as usize]
    }

    fn end_of_blocks(&self) -> u32 {
        u32::try_from(self.of_blocks.len()).expect("fewer than 2^32 segments in all blocks")
    }

    /// The code bytes of its instructions, one after another; empty where they are not known.
    #[must_use]
    pub fn code(&self, segment: SegmentId) -> &[u8] {
        let Some(begin) = self.code_of[segment.0 as usize] else { return &[] };
        let bytes: usize = self[segment].instructions.iter().map(|i| usize::from(i.len)).sum();
        let begin = begin as usize;
        &self.code[begin..(begin + bytes).min(self.code.len())]
    }

    /// What each of its instructions does, as far as their code bytes are known. Decoded once for all segments.
    #[must_use]
    pub fn listing(&self, segment: SegmentId) -> Listing<'_> {
        self.decoded.get_or_init(|| Decoded::of(self)).listing(segment, self[segment].len())
    }

    /// What is noted in the segment of the costs of its basic blocks on a GPU, in tenths of an instruction; none where
    /// nothing is. Only `lockstep cc` notes it.
    #[must_use]
    pub fn block_cost(&self, segment: SegmentId) -> Option<u32> {
        let noted = self.listing(segment).iter().flatten().filter_map(machine::Instruction::block_cost);
        noted.map(|cost| cost.tenths()).reduce(|one, other| one + other)
    }

    /// The segment's instructions, those that compute in memory counted as the several that a GPU has for them. Where
    /// costs are noted, so is what a GPU predicates: none, or too many for it.
    #[must_use]
    pub fn operations(&self, segment: SegmentId) -> u32 {
        match self.block_cost(segment) {
            Some(0) => 0,
            Some(_) => NOT_PREDICATED,
            None => self.listing(segment).iter().map(|instruction| instruction.map_or(1, operations)).sum(),
        }
    }

    /// The segment with its call left out: for a call whose callee is not part of the replay. The same pcs, but the
    /// last instruction neither opens a frame nor moves the stack pointer. Other segments are their own.
    #[inline]
    #[must_use]
    pub fn elided(&self, segment: SegmentId) -> SegmentId {
        self.elided[segment.0 as usize]
    }

    /// The segment as it is in a stub of the linkage table that a lane was sent to: the same, marked so. Segments that
    /// cannot be in one are their own.
    #[inline]
    #[must_use]
    pub fn in_stub(&self, segment: SegmentId) -> SegmentId {
        self.in_stub[segment.0 as usize]
    }

    /// Whether the segment calls the loader to bind a slot of the linkage table, if it is in a stub.
    #[must_use]
    pub fn binds(&self, segment: SegmentId) -> bool {
        self.binds[segment.0 as usize]
    }

    /// How many segments there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// How many places (distinct first pcs) there are.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places as usize
    }

    fn add_place(&mut self) -> PlaceId {
        self.places += 1;
        PlaceId(self.places - 1)
    }

    /// All segments in order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (SegmentId, &Segment)> {
        self.segments.iter().enumerate().map(|(i, s)| (SegmentId(i as u32), s))
    }
}

impl std::ops::Index<SegmentId> for SegmentTable {
    type Output = Segment;

    #[inline]
    fn index(&self, id: SegmentId) -> &Segment {
        &self.segments[id.0 as usize]
    }
}

/// The addresses at which a segment must begin.
fn leaders(blocks: &BlockTable, cuts: &[Pc]) -> FxHashSet<Pc> {
    let mut leaders: FxHashSet<Pc> = cuts.iter().copied().collect();
    for (_, block) in blocks.iter() {
        leaders.insert(block.start());
        // Where a branch could have gone: the control-flow graph has an edge there, so something must begin there.
        leaders.extend((0..block.instructions.len()).filter_map(|index| ways(block, index)).flatten());
        for pair in block.instructions.windows(2) {
            if pair[0].kind.transfers_control() || pair[0].sp != SpEffect::Add(0) {
                leaders.insert(pair[1].pc);
            }
        }
    }
    leaders
}

fn sorted(leaders: &FxHashSet<Pc>) -> Vec<Pc> {
    let mut sorted: Vec<Pc> = leaders.iter().copied().collect();
    sorted.sort_unstable();
    sorted
}

/// Cuts a block. A run ends where the next pc is not above, or where a leader lies between a pc (exclusive) and the
/// next (inclusive).
struct Cutter<'a> {
    instructions: &'a [Instruction],
    leaders: &'a [Pc],
    /// The first instruction of the next run.
    at: usize,
    /// The first leader behind the last pc.
    next_leader: usize,
}

impl<'a> Cutter<'a> {
    fn new(block: &'a Block, leaders: &'a [Pc]) -> Cutter<'a> {
        let instructions = &block.instructions[..];
        let next_leader = instructions.first().map_or(0, |first| leaders.partition_point(|l| *l <= first.pc));
        Cutter { instructions, leaders, at: 0, next_leader }
    }

    /// The next run, and the index of its first instruction.
    fn next_run(&mut self) -> Option<(usize, &'a [Instruction])> {
        let first = self.at;
        let mut before = self.instructions.get(first)?;
        for (i, instruction) in self.instructions.iter().enumerate().skip(first + 1) {
            let pc = instruction.pc;
            let is_above = pc > before.pc;
            let comes_to_leader = self.leaders.get(self.next_leader).is_some_and(|l| *l <= pc);
            if is_above && comes_to_leader && pc.0 - before.pc.0 < NEAR {
                let passed = self.leaders[self.next_leader..].iter().take_while(|l| **l <= pc).count();
                self.next_leader += passed;
            } else if !is_above || comes_to_leader {
                self.next_leader = self.leaders.partition_point(|l| *l <= pc);
            }
            let ends = before.kind.transfers_control() || before.sp != SpEffect::Add(0);
            if !is_above || comes_to_leader || ends {
                self.at = i;
                return Some((first, &self.instructions[first..i]));
            }
            before = instruction;
        }
        self.at = self.instructions.len();
        Some((first, &self.instructions[first..]))
    }
}

/// Between instructions that lie less far apart, leaders are counted one by one.
const NEAR: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(pc: u64) -> Instruction {
        Instruction { pc: Pc(pc), len: 1, kind: Kind::Plain, sp: SpEffect::Add(0), memory: 0 }
    }

    fn block(pcs: impl IntoIterator<Item = u64>) -> Block {
        Block { instructions: pcs.into_iter().map(plain).collect(), ..Block::default() }
    }

    fn table(blocks: impl IntoIterator<Item = Block>) -> (BlockTable, SegmentTable) {
        let mut all = BlockTable::default();
        for b in blocks {
            all.push(b);
        }
        let segments = SegmentTable::new(&all, &[]);
        (all, segments)
    }

    fn starts(t: &SegmentTable, block: u32) -> Vec<u64> {
        t.of_block(BlockId(block)).iter().map(|s| t[*s].start().0).collect()
    }

    #[test]
    fn a_block_is_cut_where_another_begins_inside_it() {
        let (_, t) = table([block(10..15), block(12..15)]);
        assert_eq!(starts(&t, 0), [10, 12]);
        assert_eq!(starts(&t, 1), [12]);
        assert_eq!(t.of_block(BlockId(0))[1], t.of_block(BlockId(1))[0]);
    }

    #[test]
    fn a_stack_pointer_change_ends_a_segment() {
        let mut b = block(10..14);
        b.instructions[1].sp = SpEffect::Add(-8);
        let (_, t) = table([b]);
        assert_eq!(starts(&t, 0), [10, 12]);
    }

    #[test]
    fn a_jump_inside_a_block_ends_a_segment() {
        let mut b = block([10, 11, 40, 41]);
        b.instructions[1].kind = Kind::Jump;
        let (_, t) = table([b]);
        assert_eq!(starts(&t, 0), [10, 40]);
    }

    #[test]
    fn a_leader_in_a_gap_between_two_instructions_cuts_there() {
        let (_, t) = table([block([10, 11, 20, 21]), block([15, 16])]);
        assert_eq!(starts(&t, 0), [10, 20]);
    }

    #[test]
    fn code_that_changed_is_cut_to_single_instructions() {
        let (_, t) = table([block([10, 12, 13]), block([10, 11, 13])]);
        assert_eq!(starts(&t, 0), [10, 12, 13]);
        assert_eq!(starts(&t, 1), [10, 11, 13]);
        assert_eq!(t.of_block(BlockId(0))[0], t.of_block(BlockId(1))[0]);
    }

    #[test]
    fn an_elided_call_keeps_pcs_and_place_but_no_frame() {
        let mut b = block([10, 11]);
        b.instructions[1].kind = Kind::Call;
        b.instructions[1].sp = SpEffect::Add(-8);
        let (_, t) = table([b]);
        let call = t.of_block(BlockId(0))[0];
        let elided = t.elided(call);
        assert_ne!(call, elided);
        assert_eq!(t[call].place, t[elided].place);
        assert_eq!(t[elided].sp, SpEffect::Add(0));
        assert_eq!(t.elided(elided), elided);
        assert!(t[elided].last().kind.transfers_control() && !t[elided].last().kind.is_call());
    }
}
