//! Memory that instructions access.

use crate::{Access, Register, RegisterPart};

/// A segment that begins where the thread has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// `fs`
    Fs,
    /// `gs`
    Gs,
}

/// An access to memory, or an address that is only worked out.
///
/// Its address is segment + base + index * scale + displacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The segment, where it does not begin at 0.
    pub segment: Option<Segment>,
    /// The base register.
    pub base: Option<RegisterPart>,
    /// The index register; a vector holds several indices.
    pub index: Option<RegisterPart>,
    /// By how much the index counts.
    pub scale: u8,
    /// What is added. Of an address beside the instruction it is the whole address, without a base.
    pub displacement: i64,
    /// Its size in bytes; 0 where that hangs on the processor's state.
    pub size: u16,
    /// Whether it is read or written.
    pub access: Access,
    /// Whether it lies at a fixed distance from the instruction.
    pub by_pc: bool,
}

impl Memory {
    /// Whether it lies at a constant distance from this register.
    #[must_use]
    pub fn is_at(&self, base: Register) -> bool {
        self.segment.is_none() && self.index.is_none() && self.base.is_some_and(|part| part.is_whole(base))
    }

    /// Whether it is at a constant distance from the stack pointer or the frame pointer.
    #[must_use]
    pub fn is_in_frame(&self) -> bool {
        self.is_at(Register::SP) || self.is_at(Register::BP)
    }

    /// Whether it is a variable of the function's own: at the stack pointer, or below the frame pointer. Above that may
    /// be parameters, but optimised code has no frame pointer, and what it finds by that register may be anything.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.is_at(Register::SP) || self.is_at(Register::BP) && self.displacement < 0
    }

    /// Whether it is several places, one for each number of a vector.
    #[must_use]
    pub fn is_gathered(&self) -> bool {
        self.index.is_some_and(|index| !index.register.is_general())
    }

    /// How many bytes it surely has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        usize::from(self.size).max(1)
    }
}
