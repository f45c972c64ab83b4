//! What is the same for each execution of a block, worked out once: its codes, and whether it can be taken whole.

use std::ops::Range;
use std::sync::Arc;

use heuristics::{Segment, SegmentId, SegmentTable};
use rustc_hash::FxHashMap;
use trace_format::{BlockId, Kind, STUB_NAME, SpEffect, Trace};

use super::code::filter::{Class, Classifier};
use super::code::switches::switches;
use super::first_look::region::RegionRule;
use super::thread_state::Side;
use super::waits::own_locks::{Does, OwnLocks};
use crate::waiting::Waiting;
use crate::{Code, Rows};

/// Of a block, what its execution needs. `Flags` tell whether the short way is open to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Where its codes are.
    first: u32,
    pub segments: u16,
    /// What stands for it in a folded stream when it is taken whole: its segments, of which those in stubs of the
    /// linkage table are marked.
    pub whole: Code,
    /// How many instructions it has.
    pub len: u32,
    pub flags: Flags,
    /// Whether all of it is a mathematical function's, and calls nothing: then nothing of it is kept.
    pub is_mathematics: bool,
    /// What it adds to the stack pointer; after its last recorded change, where it has one.
    pub net: i32,
    /// Where its outline is in the list of all.
    outline: u32,
    outline_count: u16,
}

/// Of a piece of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceFacts {
    pub facts: Facts,
    /// How many of its stack pointers are recorded.
    pub recorded: u16,
    pub addresses: u32,
}

/// What happens in a block to the stack pointer and to frames, where more happens than that it moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// How far above its beginning, or above its last recorded value, the stack pointer is at most before this.
    pub rise: i32,
    /// Where it is behind this, above the same.
    pub sp: i32,
    pub event: MarkEvent,
}

/// What happens there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkEvent {
    /// A function is called.
    Call,
    /// A function returns.
    Return,
    /// The stack pointer is recorded.
    Recorded,
    /// The last segment begins, whatever it does.
    Last(Ends),
}

/// What a block's last instruction does to frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Otherwise,
    WithCall,
    WithReturn,
}

/// Properties of a block, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u16);

impl Flags {
    /// It has a `pause` that is not filtered out.
    pub const PAUSE: u16 = 1;
    /// Some of it is filtered out.
    pub const FILTERED: u16 = 2;
    /// The region's function begins in it.
    pub const ENTRY: u16 = 4;
    /// A marker stands in it, in a region of markers.
    pub const MARKER: u16 = 8;
    /// Some of it is a part of a turn that waits.
    pub const WAITS: u16 = 16;
    /// Some of it can be in a stub of the linkage table, and whether it is depends on more than how the thread reached
    /// the block.
    pub const STUB: u16 = 32;
    /// It begins with what is a stub of the linkage table if a call led there.
    pub const STUB_FIRST: u16 = 64;
    /// Something in it takes or gives a lock of the program's own.
    pub const LOCK: u16 = 128;
    /// Something in it may go on with another stack, where lanes end with it.
    pub const SWITCH: u16 = 256;

    /// Whether one of these bits is set.
    #[inline]
    pub fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

/// Which lock of the program's own a segment acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnLock {
    /// Its address stands in the code.
    At(u64),
    /// Its address is recorded.
    Recorded,
    /// The thread took it last.
    Last,
}

/// By segment: what it begins with.
fn acts(table: &SegmentTable, own_locks: &OwnLocks) -> FxHashMap<SegmentId, (Does, OwnLock)> {
    let act = |(id, segment): (SegmentId, &Segment)| {
        let (does, is_last) = own_locks.acts.get(&segment.start())?;
        let place = table.listing(id).iter().next()??.place();
        let lock = if *is_last { OwnLock::Last } else { place.map_or(OwnLock::Recorded, OwnLock::At) };
        Some((id, (*does, lock)))
    };
    if own_locks.acts.is_empty() { FxHashMap::default() } else { table.iter().filter_map(act).collect() }
}

/// What of a block is in stubs of the linkage table.
struct Stubs {
    /// [`Flags::STUB`] and [`Flags::STUB_FIRST`].
    flags: u16,
    /// By segment: whether it is in one, if the thread was sent to the block by a call.
    within: Vec<bool>,
}

/// The facts of all blocks and segments.
#[derive(Default)]
pub(super) struct BlockFacts {
    facts: Vec<Facts>,
    /// Blocks in which an extent of a function may begin or end, or with stubs of the linkage table, or with
    /// mathematical functions, as pieces in which none does, or that are what may be a stub, or such a function's:
    /// those of one block after those of another.
    pieces: Vec<PieceFacts>,
    /// By block: where its pieces are.
    pieces_of: Vec<Range<u32>>,
    codes: Vec<Code>,
    /// The blocks that are taken whole.
    pub rows: Arc<Rows>,
    /// The outlines of blocks, one after another.
    marks: Vec<Mark>,
    classes: Vec<Class>,
    sides: Vec<Side>,
    entries: Vec<bool>,
    exits: Vec<bool>,
    /// Segments with a `pause`, without filtered code.
    pauses: Vec<bool>,
    /// Stubs that a symbol names so: they are ones however a lane reaches them.
    named_stubs: Vec<bool>,
    marked: bool,
    /// Segments of turns that wait.
    waits: Vec<bool>,
    /// Segments that begin with what takes or gives a lock of the program's own.
    acts: FxHashMap<SegmentId, (Does, OwnLock)>,
    /// Segments that end with what may go on with another stack, and whether it surely does; none where lanes don't end
    /// there.
    switches: FxHashMap<SegmentId, bool>,
}

impl BlockFacts {
    /// Works the facts out, for a region. Without a classifier all code is kept.
    pub fn new(
        trace: &Trace,
        table: &SegmentTable,
        classifier: Option<&Classifier>,
        (region, waiting, own_locks): (&RegionRule, &Waiting, &OwnLocks),
    ) -> BlockFacts {
        let named_stub = |pc| trace.symbol_of(pc).is_some_and(|symbol| symbol.name.ends_with(STUB_NAME));
        let class = |pc| classifier.map_or(Class::Keep, |c| c.class(pc));
        let has_pause = |s: &Segment| s.instructions.iter().any(|i| i.kind == Kind::Pause);
        let mut all = BlockFacts {
            pauses: table.iter().map(|(_, s)| has_pause(s) && class(s.start()) == Class::Keep).collect(),
            classes: table.iter().map(|(_, s)| class(s.start())).collect(),
            sides: table.iter().map(|(_, s)| classifier.map_or(Side::Program, |c| c.side(s.start()))).collect(),
            entries: table.iter().map(|(_, s)| region.entries.contains(&s.start())).collect(),
            exits: table.iter().map(|(_, s)| region.exits.iter().flatten().any(|exit| *exit == s.start())).collect(),
            named_stubs: table.iter().map(|(id, s)| table.in_stub(id) != id && named_stub(s.start())).collect(),
            marked: region.exits.is_some(),
            waits: table
                .iter()
                .map(|(id, _)| waiting.is_member(id) || waiting.is_lone(id) || waiting.asks(id))
                .collect(),
            acts: acts(table, own_locks),
            switches: if region.by_stack { switches(trace, table) } else { FxHashMap::default() },
            ..BlockFacts::default()
        };
        let mut rows = Rows::default();
        for (id, _) in trace.blocks().iter() {
            let ids = table.of_block(id);
            let first = u32::try_from(all.codes.len()).expect("fewer than 2^32 segments in all blocks");
            all.codes.extend(ids.iter().map(|s| Code::segment(*s)));
            let facts = all.work_out(table, (ids, first), &mut rows);
            all.facts.push(facts);
            let is_of_function = !region.entries.is_empty() && !all.marked;
            let ends = all.ends_of_pieces(table, ids, is_of_function, facts.flags.has(Flags::STUB));
            all.divide(table, (ids, first), &ends, &mut rows);
        }
        all.rows = Arc::new(rows);
        all
    }

    /// The facts of these segments, the first of which is at this place in the list of all codes.
    fn work_out(&mut self, table: &SegmentTable, (ids, first): (&[SegmentId], u32), rows: &mut Rows) -> Facts {
        let stubs = self.look_at_stubs(table, ids);
        let whole = ids.iter().zip(&stubs.within).map(|(s, in_stub)| if *in_stub { table.in_stub(*s) } else { *s });
        let whole: Vec<Code> = whole.map(Code::segment).collect();
        let call = whole.last().and_then(|code| code.as_segment()).filter(|id| table[*id].last().kind.is_call());
        let outline = outline(table, ids);
        let mut facts = Facts {
            first,
            segments: u16::try_from(ids.len()).expect("a block has at most 4096 instructions"),
            whole: rows.add(&whole, call.map(|call| Code::segment(table.elided(call)))),
            len: 0,
            flags: Flags(stubs.flags),
            is_mathematics: false,
            net: 0,
            outline: self.marks.len() as u32,
            outline_count: outline.len() as u16,
        };
        self.marks.extend(outline);
        self.look_at_segments(table, ids, &mut facts);
        facts
    }

    fn look_at_segments(&self, table: &SegmentTable, ids: &[SegmentId], facts: &mut Facts) {
        let mut flags = 0;
        for id in ids {
            let segment = &table[*id];
            facts.len += segment.len() as u32;
            facts.net = match segment.sp {
                SpEffect::Add(change) => facts.net.saturating_add(change),
                SpEffect::Recorded => 0,
            };
            if self.classes[id.0 as usize] != Class::Keep {
                flags |= Flags::FILTERED;
            }
            if self.entries[id.0 as usize] {
                flags |= Flags::ENTRY;
            }
            if self.marked && (self.is_entry(*id) || self.is_exit(*id)) {
                flags |= Flags::MARKER;
            }
            if self.waits[id.0 as usize] {
                flags |= Flags::WAITS;
            }
            if self.pauses(*id) {
                flags |= Flags::PAUSE;
            }
            if self.acts.contains_key(id) {
                flags |= Flags::LOCK;
            }
            if self.switches.contains_key(id) {
                flags |= Flags::SWITCH;
            }
        }
        facts.flags.0 |= flags;
        let is_inside = |id: &SegmentId| self.is_mathematics(*id) && !table[*id].last().kind.is_call();
        facts.is_mathematics = facts.flags.0 == Flags::FILTERED && ids.iter().all(is_inside);
    }

    fn is_mathematics(&self, id: SegmentId) -> bool {
        self.class(id) == Class::Mathematics
    }

    /// Behind which of a block's segments it is to be divided, and its end: where an extent of a function may end or
    /// begin, if the region is a function's; before what may be in a stub of the linkage table, if whether it is
    /// depends on more than the block; and where a mathematical function begins or ends.
    fn ends_of_pieces(&self, table: &SegmentTable, ids: &[SegmentId], of_function: bool, has_stub: bool) -> Vec<usize> {
        let mut ends = if of_function { may_end(table, ids, |id| self.is_entry(id)) } else { vec![ids.len()] };
        if has_stub {
            ends.extend((1..ids.len()).filter(|i| table.in_stub(ids[*i]) != ids[*i]));
        }
        ends.extend((1..ids.len()).filter(|i| self.is_mathematics(ids[i - 1]) != self.is_mathematics(ids[*i])));
        ends.sort_unstable();
        ends.dedup();
        ends
    }

    /// Makes the pieces of the last block, of these segments: they end at these places.
    fn divide(&mut self, table: &SegmentTable, (ids, first): (&[SegmentId], u32), ends: &[usize], rows: &mut Rows) {
        let begin = self.pieces.len() as u32;
        if let [_, _, ..] = ends {
            let mut from = 0;
            for &to in ends {
                let own = &ids[from..to];
                let recorded = own.iter().filter(|id| table[**id].sp == SpEffect::Recorded).count() as u16;
                let addresses = own.iter().map(|id| table[*id].addresses).sum();
                let facts = self.work_out(table, (own, first + from as u32), rows);
                self.pieces.push(PieceFacts { facts, recorded, addresses });
                from = to;
            }
        }
        self.pieces_of.push(begin..self.pieces.len() as u32);
    }

    /// Which of a block's segments are in stubs of the linkage table, where all of it is kept.
    fn look_at_stubs(&self, table: &SegmentTable, ids: &[SegmentId]) -> Stubs {
        let mut stubs = Stubs { flags: 0, within: vec![false; ids.len()] };
        // Whether the thread was sent to what comes now.
        let mut sent = true;
        for (i, id) in ids.iter().enumerate() {
            if table.in_stub(*id) != *id {
                let is_named = self.named_stubs[id.0 as usize];
                if i == 0 && !is_named {
                    stubs.flags |= Flags::STUB_FIRST;
                }
                sent |= is_named;
                stubs.within[i] = sent;
                if i + 1 == ids.len() || table.binds(*id) {
                    stubs.flags |= Flags::STUB;
                }
            } else {
                sent = false;
            }
            sent |= table[*id].last().kind.is_call();
        }
        stubs
    }

    /// What the first instruction of the segment does to a lock of the program's own, and to which.
    #[inline]
    pub fn act(&self, id: SegmentId) -> Option<(Does, OwnLock)> {
        if self.acts.is_empty() { None } else { self.acts.get(&id).copied() }
    }

    /// Whether the segment ends with what may go on with another stack: where it does, whether that is sure.
    #[inline]
    pub fn switch(&self, id: SegmentId) -> Option<bool> {
        if self.switches.is_empty() { None } else { self.switches.get(&id).copied() }
    }

    /// The facts of a block.
    #[inline]
    pub fn of(&self, block: BlockId) -> Facts {
        self.facts[block.index()]
    }

    /// The pieces of a block in which an extent of a function may begin or end: one begins at most with the first
    /// segment of one, and as a rule ends with the last of one. So does what may be in a stub of the linkage table.
    /// Empty where there are not several.
    pub fn pieces(&self, block: BlockId) -> &[PieceFacts] {
        &self.pieces[self.place_of_pieces(block)]
    }

    fn place_of_pieces(&self, block: BlockId) -> Range<usize> {
        self.pieces_of.get(block.index()).map_or(0..0, |at| at.start as usize..at.end as usize)
    }

    /// The codes of a block: its segments, whole.
    #[inline]
    pub fn codes(&self, facts: Facts) -> &[Code] {
        &self.codes[facts.first as usize..][..facts.segments as usize]
    }

    /// What happens in a block to the stack pointer and to frames, up to its last segment.
    #[inline]
    pub fn outline(&self, facts: Facts) -> &[Mark] {
        &self.marks[facts.outline as usize..][..facts.outline_count as usize]
    }

    /// What the code filter says about a segment.
    pub fn class(&self, segment: SegmentId) -> Class {
        self.classes[segment.0 as usize]
    }

    /// On whose side a segment is.
    pub fn side(&self, segment: SegmentId) -> Side {
        self.sides[segment.0 as usize]
    }

    /// Whether the segment has a `pause` and is not filtered out.
    pub fn pauses(&self, segment: SegmentId) -> bool {
        self.pauses[segment.0 as usize]
    }

    /// Whether a symbol says that the segment is in a stub of the linkage table.
    pub fn is_named_stub(&self, segment: SegmentId) -> bool {
        self.named_stubs[segment.0 as usize]
    }

    /// Whether the segment begins with a marker that ends the region.
    pub fn is_exit(&self, segment: SegmentId) -> bool {
        self.exits[segment.0 as usize]
    }

    /// Whether the region's function begins with this segment, or a marker does that begins the region.
    pub fn is_entry(&self, segment: SegmentId) -> bool {
        self.entries[segment.0 as usize]
    }
}

/// Behind which of a block's segments the extent of a function may end, or before which one may begin, and the block's
/// end: a return that leaves the stack pointer higher than any before it may be the function's.
fn may_end(table: &SegmentTable, ids: &[SegmentId], is_entry: impl Fn(SegmentId) -> bool) -> Vec<usize> {
    let (mut ends, mut sp, mut highest) = (Vec::new(), 0, 0);
    for (i, id) in ids.iter().enumerate() {
        if is_entry(*id) {
            ends.extend((i > 0 && ends.last() != Some(&i)).then_some(i));
            highest = sp;
        }
        match table[*id].sp {
            SpEffect::Add(change) => sp += i64::from(change),
            SpEffect::Recorded => (sp, highest) = (0, i64::MIN),
        }
        if table[*id].last().kind == Kind::Return && sp > highest {
            ends.push(i + 1);
            highest = sp;
        }
    }
    ends.extend((ends.last() != Some(&ids.len())).then_some(ids.len()));
    ends
}

/// What happens in a block of these segments to the stack pointer and to frames, up to its last segment; empty where a
/// call or a return leaves the stack pointer at what has to be recorded.
fn outline(table: &SegmentTable, ids: &[SegmentId]) -> Vec<Mark> {
    let (mut marks, mut rise, mut sp) = (Vec::new(), i32::MIN, 0i32);
    for (i, id) in ids.iter().enumerate() {
        let segment = &table[*id];
        rise = rise.max(sp);
        let ends = match segment.last().kind {
            kind if kind.is_call() => Ends::WithCall,
            Kind::Return => Ends::WithReturn,
            _ => Ends::Otherwise,
        };
        let event = match (segment.sp, ends) {
            (SpEffect::Recorded, Ends::WithCall | Ends::WithReturn) => return Vec::new(),
            _ if i + 1 == ids.len() => MarkEvent::Last(ends),
            (SpEffect::Recorded, Ends::Otherwise) => MarkEvent::Recorded,
            (SpEffect::Add(change), ends) => {
                sp = sp.saturating_add(change);
                match ends {
                    Ends::Otherwise => continue,
                    Ends::WithCall => MarkEvent::Call,
                    Ends::WithReturn => MarkEvent::Return,
                }
            }
        };
        marks.push(Mark { rise, sp, event });
        rise = i32::MIN;
        if event == MarkEvent::Recorded {
            sp = 0;
        }
    }
    marks
}
