//! Addresses of different kinds, all of 64 bits, which must never be mixed.
//!
//! What the kernel and the processor hold (registers, words of a slot) has no type. Each place that takes a number from
//! there, or puts one there, says which kind it is.

use trace_format::Pc;

use crate::translate::layout::PAGE;

/// An address of code in the program, as the program knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramPc(pub u64);

impl ProgramPc {
    /// The address of its page.
    #[must_use]
    pub fn page(self) -> u64 {
        self.0 & !(PAGE - 1)
    }

    /// The address so many bytes before.
    #[must_use]
    pub fn minus(self, bytes: u64) -> ProgramPc {
        ProgramPc(self.0.wrapping_sub(bytes))
    }
}

/// Of a decoded instruction, which is not yet said in terms of modules.
impl From<Pc> for ProgramPc {
    fn from(pc: Pc) -> ProgramPc {
        ProgramPc(pc.0)
    }
}

/// An address of translated code, or of other code of ours beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CachePc(pub u64);

impl CachePc {
    /// The address so many bytes further.
    #[must_use]
    pub fn plus(self, bytes: u64) -> CachePc {
        CachePc(self.0.wrapping_add(bytes))
    }

    /// The address so many bytes before.
    #[must_use]
    pub fn minus(self, bytes: u64) -> CachePc {
        CachePc(self.0.wrapping_sub(bytes))
    }

    /// How many bytes it lies behind another, modulo 2^64.
    #[must_use]
    pub fn behind(self, other: CachePc) -> u64 {
        self.0.wrapping_sub(other.0)
    }
}

/// A place among the records of a thread, as an address in the program's memory: what r11 holds in translated code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordPlace(pub u64);

impl RecordPlace {
    /// The place so many bytes further.
    #[must_use]
    pub fn plus(self, bytes: u64) -> RecordPlace {
        RecordPlace(self.0.wrapping_add(bytes))
    }

    /// The place so many bytes before.
    #[must_use]
    pub fn minus(self, bytes: u64) -> RecordPlace {
        RecordPlace(self.0.wrapping_sub(bytes))
    }

    /// How many bytes it lies behind another; 0 when it lies before it.
    #[must_use]
    pub fn behind(self, other: RecordPlace) -> u64 {
        self.0.saturating_sub(other.0)
    }
}
