//! Decoded instructions, packed.

use std::ops::Range;

use iced_x86::{InstructionInfoFactory, OpAccess};
use trace_format::Pc;

use super::instruction::{self, Instruction};
use super::{access, decode, part};
use crate::{Memory, Use};

/// Instructions one after another, with what they use.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<Entry>,
    uses: Vec<Use>,
    memory: Vec<Memory>,
}

/// An instruction, and where what it uses ends.
#[derive(Clone, Debug, Default)]
struct Entry {
    /// Invalid where nothing is known.
    decoded: iced_x86::Instruction,
    uses: u32,
    memory: u32,
}

impl Table {
    /// So many instructions at these addresses, each of exactly these bytes. Of one that has no bytes, or other ones by
    /// now, nothing is known.
    pub fn of<'a>(code: impl Iterator<Item = (Pc, &'a [u8])>, count: usize) -> Table {
        let (mut table, mut factory) = (Table::default(), InstructionInfoFactory::new());
        table.entries.reserve_exact(count);
        for (pc, bytes) in code {
            table.push(decode(pc, bytes).filter(|decoded| decoded.len() == bytes.len()), &mut factory);
        }
        table.uses.shrink_to_fit();
        table.memory.shrink_to_fit();
        table
    }

    /// All instructions from `pc` on, one behind another, that these bytes are. A byte with which none begins is one of
    /// which nothing is known.
    #[must_use]
    pub fn row(pc: Pc, bytes: &[u8]) -> Table {
        let (mut table, mut factory) = (Table::default(), InstructionInfoFactory::new());
        let mut at = 0;
        while at < bytes.len() {
            let decoded = decode(Pc(pc.0 + at as u64), &bytes[at..]);
            at += decoded.as_ref().map_or(1, iced_x86::Instruction::len);
            table.push(decoded, &mut factory);
        }
        table
    }

    /// The one instruction at `pc` that these bytes begin with.
    #[must_use]
    pub fn first(pc: Pc, bytes: &[u8]) -> Table {
        let mut table = Table::default();
        table.push(decode(pc, bytes), &mut InstructionInfoFactory::new());
        table
    }

    fn push(&mut self, decoded: Option<iced_x86::Instruction>, factory: &mut InstructionInfoFactory) {
        if let Some(decoded) = &decoded {
            self.add_uses(decoded, factory);
        }
        let [uses, memory] = [self.uses.len(), self.memory.len()].map(|length| length as u32);
        self.entries.push(Entry { decoded: decoded.unwrap_or_default(), uses, memory });
    }

    fn add_uses(&mut self, decoded: &iced_x86::Instruction, factory: &mut InstructionInfoFactory) {
        let info = factory.info(decoded);
        for used in info.used_registers() {
            if let Some(part) = part(used.register()) {
                self.uses.push(Use { part, access: access(used.access()) });
            }
        }
        let accessed = |access| !matches!(access, OpAccess::None | OpAccess::NoMemAccess);
        for used in info.used_memory().iter().filter(|used| accessed(used.access())) {
            self.memory.push(Memory {
                segment: instruction::segment(used.segment()),
                base: part(used.base()),
                index: part(used.index()),
                scale: used.scale() as u8,
                displacement: used.displacement().cast_signed(),
                size: used.memory_size().size() as u16,
                access: access(used.access()),
                by_pc: decoded.is_ip_rel_memory_operand() && used.base() == iced_x86::Register::None,
            });
        }
    }

    /// A row of them.
    #[must_use]
    pub fn listing(&self, range: Range<usize>) -> Listing<'_> {
        Listing { table: self, first: range.start, len: range.len() }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Listing<'_> {
        self.listing(0..self.entries.len())
    }
}

/// Instructions that stand in a row.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    table: &'a Table,
    first: usize,
    len: usize,
}

impl<'a> Listing<'a> {
    /// The one of this index; none where it is not known.
    #[must_use]
    pub fn get(self, index: usize) -> Option<Instruction<'a>> {
        let Table { entries, uses, memory } = self.table;
        let at = self.first + index;
        let entry = entries[..self.first + self.len].get(at).filter(|entry| !entry.decoded.is_invalid())?;
        let (uses_begin, memory_begin) = at.checked_sub(1).map_or((0, 0), |at| (entries[at].uses, entries[at].memory));
        let uses = &uses[uses_begin as usize..entry.uses as usize];
        let memory = &memory[memory_begin as usize..entry.memory as usize];
        Some(Instruction::new(&entry.decoded, uses, memory))
    }

    /// All of them in order; none for each that is not known.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Option<Instruction<'a>>> {
        (0..self.len).map(move |index| self.get(index))
    }

    /// The last one, where it is known.
    #[must_use]
    pub fn last(self) -> Option<Instruction<'a>> {
        self.get(self.len.checked_sub(1)?)
    }
}
