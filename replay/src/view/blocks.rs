//! What is the same for each execution of a block, worked out once: its codes, and whether it can be taken whole.

use heuristics::{Segment, SegmentId, SegmentTable};
use trace_format::{BlockId, Kind, STUB_NAME, SpEffect, Trace};

use super::code_filter::{Class, Classifier};
use super::region::RegionRule;
use super::waiting::Waiting;
use crate::Code;

/// Of a block, what its execution needs. `Flags` tell whether the short way is open to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Where its codes are.
    first: u32,
    segments: u16,
    /// How many instructions it has.
    pub len: u32,
    pub flags: Flags,
    /// What it adds to the stack pointer; after its last recorded change, where it has one.
    pub net: i32,
    /// How far above its beginning the stack pointer is before the last segment's change, at most, where nothing is recorded.
    pub rise: i32,
    /// What its last segment alone adds to the stack pointer; 0 where that is recorded.
    pub last: i32,
}

/// Properties of a block, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u16);

impl Flags {
    /// Its last instruction is a call.
    pub const CALL: u16 = 1;
    /// Its last instruction is a return.
    pub const RETURN: u16 = 2;
    /// It has a `pause` that is not filtered out.
    pub const PAUSE: u16 = 4;
    /// It has recorded stack pointers.
    pub const RECORDED: u16 = 8;
    /// A call or return stands before its last instruction.
    pub const INNER: u16 = 16;
    /// Some of it is filtered out.
    pub const FILTERED: u16 = 32;
    /// The region's function begins in it.
    pub const ENTRY: u16 = 64;
    /// A marker stands in it, in a region of markers.
    pub const MARKER: u16 = 128;

    /// Some of it is a part of a turn that waits.
    pub const WAITS: u16 = 256;
    /// Some of it can be in a stub of the linkage table.
    pub const STUB: u16 = 512;

    /// Whether one of these bits is set.
    #[inline]
    pub fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
}

/// The facts of all blocks and segments.
#[derive(Default)]
pub(super) struct BlockFacts {
    facts: Vec<Facts>,
    codes: Vec<Code>,
    classes: Vec<Class>,
    entries: Vec<bool>,
    exits: Vec<bool>,
    /// Segments with a `pause`, of which nothing is filtered out.
    pauses: Vec<bool>,
    /// Stubs that a symbol names so: they are ones however a lane comes to them.
    named_stubs: Vec<bool>,
    marked: bool,
}

impl BlockFacts {
    /// Works the facts out, for a region. Without a classifier all code is kept.
    pub fn new(
        trace: &Trace,
        table: &SegmentTable,
        classifier: Option<&Classifier>,
        region: &RegionRule,
    ) -> BlockFacts {
        let named_stub = |pc| trace.symbol_of(pc).is_some_and(|symbol| symbol.name.ends_with(STUB_NAME));
        let class = |pc| classifier.map_or(Class::Keep, |c| c.class(pc));
        let has_pause = |s: &Segment| s.instructions.iter().any(|i| i.kind == Kind::Pause);
        let mut all = BlockFacts {
            pauses: table.iter().map(|(_, s)| has_pause(s) && class(s.start()) == Class::Keep).collect(),
            classes: table.iter().map(|(_, s)| class(s.start())).collect(),
            entries: table.iter().map(|(_, s)| region.entries.contains(&s.start())).collect(),
            exits: table.iter().map(|(_, s)| region.exits.iter().flatten().any(|exit| *exit == s.start())).collect(),
            named_stubs: table.iter().map(|(id, s)| table.in_stub(id) != id && named_stub(s.start())).collect(),
            marked: region.exits.is_some(),
            ..BlockFacts::default()
        };
        for (id, _) in trace.blocks().iter() {
            let facts = all.work_out(table, table.of_block(id));
            all.facts.push(facts);
            all.codes.extend(table.of_block(id).iter().map(|s| Code::segment(*s)));
        }
        all
    }

    fn work_out(&self, table: &SegmentTable, ids: &[SegmentId]) -> Facts {
        let mut facts = Facts {
            first: u32::try_from(self.codes.len()).expect("fewer than 2^32 segments in all blocks"),
            segments: u16::try_from(ids.len()).expect("a block has at most 4096 instructions"),
            len: 0,
            flags: Flags(0),
            net: 0,
            rise: 0,
            last: 0,
        };
        let mut flags = 0;
        for (i, id) in ids.iter().enumerate() {
            let segment = &table[*id];
            let last = i + 1 == ids.len();
            facts.len += segment.len() as u32;
            facts.rise = facts.rise.max(facts.net);
            match segment.sp {
                SpEffect::Add(change) => {
                    facts.net = facts.net.saturating_add(change);
                    facts.last = change;
                }
                SpEffect::Recorded => {
                    flags |= Flags::RECORDED;
                    (facts.net, facts.last) = (0, 0);
                }
            }
            let kind = segment.last().kind;
            match (kind.is_call(), kind == Kind::Return) {
                (true, _) => flags |= if last { Flags::CALL } else { Flags::INNER },
                (_, true) => flags |= if last { Flags::RETURN } else { Flags::INNER },
                _ => {}
            }
            if self.classes[id.0 as usize] != Class::Keep {
                flags |= Flags::FILTERED;
            }
            if self.entries[id.0 as usize] {
                flags |= Flags::ENTRY;
            }
            if self.marked && (self.is_entry(*id) || self.is_exit(*id)) {
                flags |= Flags::MARKER;
            }
            if table.in_stub(*id) != *id {
                flags |= Flags::STUB;
            }
            if self.pauses(*id) {
                flags |= Flags::PAUSE;
            }
        }
        facts.flags = Flags(flags);
        facts
    }

    /// Marks the blocks with segments of turns that wait.
    pub fn mark(&mut self, trace: &Trace, table: &SegmentTable, waiting: &Waiting) {
        if waiting.longest() == 0 {
            return;
        }
        for (id, _) in trace.blocks().iter() {
            if table.of_block(id).iter().any(|segment| waiting.is_member(*segment)) {
                self.facts[id.index()].flags.0 |= Flags::WAITS;
            }
        }
    }

    /// The facts of a block.
    #[inline]
    pub fn of(&self, block: BlockId) -> Facts {
        self.facts[block.index()]
    }

    /// The codes of a block: its segments, whole.
    #[inline]
    pub fn codes(&self, facts: Facts) -> &[Code] {
        &self.codes[facts.first as usize..][..facts.segments as usize]
    }

    /// What the code filter says of a segment.
    pub fn class(&self, segment: SegmentId) -> Class {
        self.classes[segment.0 as usize]
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
