//! The input of one translation, its questions about the program, and its result.

use super::expansions::{Hook, Lookup};
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::route::Route;
use crate::translate::code::superblock::{Draft, Link, Trap};

/// What the translator asks about the program.
pub trait Source {
    /// The bytes at this address: 15 or more, or as many as can be executed. No more pages are read than that takes.
    fn fetch(&mut self, pc: ProgramPc, bytes: &mut [u8]) -> usize;
    /// The hook of the function that starts here.
    fn hook(&mut self, pc: ProgramPc) -> Option<Hook>;
    /// Whether the recording may begin or end before the instruction at this address, and if so, whether it does so the
    /// next time.
    fn gate(&mut self, pc: ProgramPc) -> Option<bool>;
    /// Whether addresses of atomic instructions at this address are wanted, where others are not.
    fn wants_atomics(&self, _: ProgramPc) -> bool {
        true
    }
    /// Whether synchronisation functions return to this address.
    fn returns_here(&self, pc: ProgramPc) -> bool;
    /// Whether some of these give threads iterations of loops.
    fn gives_chunks(&self) -> bool {
        false
    }
}

/// The `syscall` instructions of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landings {
    /// For futex calls, which are recorded when they are done.
    pub futex: CachePc,
    /// For others.
    pub other: CachePc,
}

/// Where a translation goes, and what it may use.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// Where it starts in the program.
    pub head: ProgramPc,
    /// Where its code goes.
    pub hot: CachePc,
    /// Where its seldom executed code goes.
    pub cold: CachePc,
    /// Where lookups go on that find something else.
    pub miss: CachePc,
    /// Where system calls are made.
    pub landings: Landings,
    /// Lookup tables.
    pub lookup: Lookup,
    /// The number of its first path.
    pub first_path: u32,
    /// The number of its first link.
    pub first_link: u32,
    /// Whether lookups come here.
    pub checked: bool,
    /// The most instructions it may have.
    pub limit: usize,
    /// The route from its head, if it is to follow one.
    pub route: Option<&'a Route>,
    /// Whether memory addresses are recorded.
    pub memory: bool,
}

/// A finished translation.
#[derive(Debug, Default)]
pub struct Translation {
    /// What it stands for.
    pub superblock: Draft,
    /// Its code.
    pub hot: Vec<u8>,
    /// Its seldom executed code.
    pub cold: Vec<u8>,
    /// Jumps to be linked.
    pub links: Vec<Link>,
    /// Traps, by address.
    pub traps: Vec<(CachePc, Trap)>,
    /// The paths, by number from [`Plan::first_path`] on: how many instructions each has.
    pub paths: Vec<u16>,
    /// What comes next, for translation ahead of time, and whether a lookup will come there.
    pub next: Vec<(ProgramPc, bool)>,
    /// The pages it was read from.
    pub pages: Vec<u64>,
    /// Where indirect jumps, indirect calls and returns in the middle of it are expected to go.
    pub expected: Vec<ProgramPc>,
    /// Room for the places in its code that need the distance to a constant.
    pub constants: Vec<(usize, ProgramPc)>,
}

impl Translation {
    /// Makes it empty, and keeps its room.
    pub fn clear(&mut self) {
        let Translation { superblock, hot, cold, links, traps, paths, next, pages, expected, constants } = self;
        superblock.clear();
        hot.clear();
        cold.clear();
        links.clear();
        traps.clear();
        paths.clear();
        next.clear();
        pages.clear();
        expected.clear();
        constants.clear();
    }
}

/// A place for a new superblock.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// The cache.
    pub cache: usize,
    /// Where its code goes.
    pub hot: CachePc,
    /// Where its seldom executed code goes.
    pub cold: CachePc,
    /// Where lookups go on.
    pub miss: CachePc,
    /// Where system calls are made.
    pub landings: Landings,
}
