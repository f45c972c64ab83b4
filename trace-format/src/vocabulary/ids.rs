//! Names for the integers of a trace, so that one cannot be passed for another.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A traced thread: 0 is the program's first thread, the others follow in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

/// An address of code in the traced program (never one of ours).
///
/// A process may become other programs, which may use the same addresses. Bits 48 to 62 number the programs of a run,
/// in the order in which they first ran. The first program has number 0, so that its pcs are plain addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Pc(pub u64);

/// A block of the block table: blocks are numbered from 0 in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId(pub u32);

/// A module (an executable or a library as mapped into the program), numbered from 0 in order of mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModuleId(pub u32);

impl Pc {
    /// Where a program's number lies in its pcs.
    const PROGRAM_AT: u32 = 48;
    /// The number that stands for all programs beyond it.
    pub const LAST_PROGRAM: u16 = (1 << 15) - 1;

    /// This address in the program of that number, at most [`Pc::LAST_PROGRAM`]. Addresses of the kernel belong to
    /// none.
    #[must_use]
    pub fn in_program(self, program: u16) -> Pc {
        if self.0 >> Pc::PROGRAM_AT == 0 { Pc(self.0 | u64::from(program) << Pc::PROGRAM_AT) } else { self }
    }

    /// Where it lies in its program's memory.
    #[must_use]
    pub fn address(self) -> u64 {
        self.0 & !(u64::from(self.program()) << Pc::PROGRAM_AT)
    }

    /// The number of the program that it belongs to.
    #[must_use]
    pub fn program(self) -> u16 {
        if self.0 >> 63 == 0 { (self.0 >> Pc::PROGRAM_AT) as u16 } else { 0 }
    }
}

impl ThreadId {
    /// The number as an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl BlockId {
    /// The number as an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ModuleId {
    /// The number as an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pc_tells_its_program_and_where_it_lies_there() {
        let pc = Pc(0x7fff_1234_5678);
        assert_eq!(pc.in_program(0), pc);
        let moved = pc.in_program(Pc::LAST_PROGRAM);
        assert_eq!((moved.program(), moved.address()), (Pc::LAST_PROGRAM, pc.0));
        assert!(moved > pc);
    }

    #[test]
    fn code_of_the_kernel_belongs_to_no_program() {
        let pc = Pc(0xffff_ffff_ff60_0000);
        assert_eq!((pc.in_program(7), pc.program(), pc.address()), (pc, 0, pc.0));
    }
}
