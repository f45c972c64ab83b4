//! The lookup tables: they find the code of an address, for jumps whose target is known only when they are made.
//!
//! The first table is indexed by bits of the address. A lookup that does not find its address there searches the
//! second, which holds an address only when another one has taken its entry of the first. It is used from its start on;
//! the more addresses are in it, the more of its length is used. Most pages of the first table are never used: they
//! take no memory until an address in them becomes known. Until then they hold zeros. So a thread that jumps to 0
//! through them looks for an address that is unknown.

use nix::libc;
use rustc_hash::FxHashMap;

use crate::kernel::ptrace::SharedMemory;
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::calls::{FILLING_CALLS, TAKEN_SYSCALLS, WRITING_CALLS};
use crate::translate::code::expansions::Lookup;
use crate::translate::layout::{
    CALLS, FIRST, FIRST_MASK, LOOKS, MASK, PAGE, RETURNS, ROUTINES, SECOND, SECOND_ENTRIES, SECOND_MASK, call, look,
};

/// Multiplying by it spreads addresses over the upper bits (2^64 divided by the golden ratio).
pub const HASH: u64 = 0x9e37_79b9_7f4a_7c15;
/// How full the second table may get: beyond, searches in it take long.
const SECOND_LIMIT: u64 = SECOND_ENTRIES / 4 * 3;
/// In so many entries of the second table searches begin at first: those of a page.
const SECOND_AT_FIRST: u64 = PAGE / 16;

/// The tables of one process.
pub struct Tables {
    /// Where they lie in the program.
    pub lookup: Lookup,
    memory: SharedMemory,
    /// Where lookups go on that did not find what they looked for.
    miss: CachePc,
    /// What the entries of the first table find that are set, by index.
    first: FxHashMap<u64, Found>,
    /// Which pages of the first table have been filled.
    filled: Vec<bool>,
    /// The entries of the second table that are set, as offsets.
    second: Vec<usize>,
    /// In so many entries of it searches begin.
    homes: u64,
    /// Whether calls that change memory are looked at before they are made.
    careful: bool,
    /// Whether calls that write to files are.
    watches_files: bool,
}

/// What an entry finds.
#[derive(Clone, Copy)]
struct Found {
    pc: ProgramPc,
    /// Where lookups by the second table go on.
    landing: CachePc,
}

impl Tables {
    /// Tables in this memory, in which nothing is known.
    #[must_use]
    pub fn new(memory: SharedMemory, lookup: Lookup) -> Tables {
        set_constants(&memory);
        let filled = vec![false; ((SECOND - FIRST) / PAGE) as usize];
        memory.store(SECOND_MASK as usize, SECOND_AT_FIRST - 1);
        let (first, second) = (FxHashMap::default(), Vec::new());
        Tables {
            lookup,
            memory,
            miss: CachePc(0),
            first,
            filled,
            second,
            homes: SECOND_AT_FIRST,
            careful: false,
            watches_files: false,
        }
    }

    /// Lookups that do not find what they look for in the first table go on there from now on.
    pub fn set_miss(&mut self, miss: CachePc) {
        self.miss = miss;
    }

    /// From now on calls that write into memory, or take away what it holds, are looked at before they are made.
    pub fn be_careful(&mut self) {
        if !std::mem::replace(&mut self.careful, true) {
            for number in FILLING_CALLS {
                self.look_at(number);
            }
        }
    }

    /// From now on calls that write to files are looked at before they are made.
    pub fn watch_files(&mut self) {
        if !std::mem::replace(&mut self.watches_files, true) {
            for (number, _) in WRITING_CALLS {
                self.look_at(number);
            }
        }
    }

    /// From now on every call is looked at that the program makes by itself, except returns from handlers.
    pub fn watch_all_calls(&self) {
        for number in 0..1 << 16 {
            if number != libc::SYS_rt_sigreturn {
                self.look_at(number);
            }
        }
    }

    /// From now on the program's break is moved only after a look.
    pub fn watch_break(&self) {
        self.look_at(libc::SYS_brk);
    }

    /// From now on this call is looked at before it is made.
    fn look_at(&self, number: i64) {
        self.memory.patch_byte((LOOKS + number.cast_unsigned()) as usize, look::STOP);
    }

    /// Whether the second table takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.second.len() as u64 >= SECOND_LIMIT
    }

    /// Lets lookups find nothing.
    pub fn clear(&mut self) {
        for (index, _) in self.first.drain() {
            self.memory.store(entry_of_first(index), self.miss.0);
        }
        for place in self.second.drain(..) {
            self.memory.store(place, 0);
        }
    }

    /// Lets lookups find nothing, also where they went on before to a place that has moved.
    pub fn find_nothing(&mut self) {
        self.clear();
        for page in 0..self.filled.len() {
            if std::mem::take(&mut self.filled[page]) {
                self.fill((FIRST + page as u64 * PAGE) as usize);
            }
        }
    }

    /// Lets lookups of `pc` find code: `checked` through the first table, `landing` through the second.
    pub fn make_known(&mut self, pc: ProgramPc, checked: CachePc, landing: CachePc) {
        let index = self.lookup.index(pc);
        self.fill(entry_of_first(index));
        if let Some(before) = self.first.insert(index, Found { pc, landing })
            && before.pc != pc
        {
            self.move_to_second(before);
            self.spread();
        }
        self.memory.store(entry_of_first(index), checked.0);
    }

    /// Where searches in the second table for `pc` end: at its entry, or at one that is not set. They begin in one of
    /// `homes` entries.
    fn place_in_second(&self, pc: ProgramPc, homes: u64) -> usize {
        let mut entry = (pc.0.wrapping_mul(HASH) >> (64 - SECOND_ENTRIES.trailing_zeros())) & (homes - 1);
        loop {
            let place = (SECOND + 16 * entry) as usize;
            match self.memory.load(place) {
                found if found == pc.0 || found == 0 => return place,
                _ => entry = (entry + 1) % SECOND_ENTRIES,
            }
        }
    }

    fn move_to_second(&mut self, found: Found) {
        let place = self.place_in_second(found.pc, self.homes);
        if self.memory.load(place) == 0 {
            if self.is_full() {
                return;
            }
            self.second.push(place);
        }
        // The value first: who sees the address takes the value.
        self.memory.store(place + 8, found.landing.0);
        self.memory.store(place, found.pc.0);
    }

    /// Lets searches in the second table begin in more of its entries, when half of them are taken. What is there is
    /// added once more, and stays where it was: threads may be searching. A thread that finds an older entry first does
    /// so at each search, and changes that one.
    fn spread(&mut self) {
        if self.second.len() as u64 <= self.homes / 2 || self.homes == SECOND_ENTRIES {
            return;
        }
        let more = (4 * self.homes).min(SECOND_ENTRIES);
        for place in self.second.clone() {
            let pc = ProgramPc(self.memory.load(place));
            let new = self.place_in_second(pc, more);
            if self.place_in_second(pc, self.homes) == place && self.memory.load(new) == 0 && !self.is_full() {
                self.memory.store(new + 8, self.memory.load(place + 8));
                self.memory.store(new, pc.0);
                self.second.push(new);
            }
        }
        self.homes = more;
        self.memory.store(SECOND_MASK as usize, more - 1);
    }

    /// Lets lookups of the first table that would find `pc` search on.
    pub fn make_unknown(&mut self, pc: ProgramPc) {
        let index = self.lookup.index(pc);
        if self.first.get(&index).is_some_and(|found| found.pc == pc) {
            self.first.remove(&index);
            self.memory.store(entry_of_first(index), self.miss.0);
        }
    }

    /// Fills all of the first table: jumps to 0 would go to the program's own code there.
    pub fn fill_all(&mut self) {
        for page in 0..self.filled.len() {
            self.fill((FIRST + page as u64 * PAGE) as usize);
        }
    }

    /// Gives new memory the same contents, except for the marks in the tables of bytes.
    pub fn copy_to(&self, memory: &SharedMemory) {
        set_constants(memory);
        for page in (0..self.filled.len()).filter(|&page| self.filled[page]) {
            memory.copy_from(&self.memory, FIRST as usize + page * PAGE as usize, PAGE as usize);
        }
        for &place in &self.second {
            memory.copy_from(&self.memory, place, 16);
        }
        memory.store(SECOND_MASK as usize, self.homes - 1);
    }

    /// The same tables in memory that was filled by `copy_to`.
    #[must_use]
    pub fn in_copy(&self, memory: SharedMemory) -> Tables {
        let (first, filled, second) = (self.first.clone(), self.filled.clone(), self.second.clone());
        let (lookup, miss, homes) = (self.lookup, self.miss, self.homes);
        let mut copy =
            Tables { lookup, memory, miss, first, filled, second, homes, careful: false, watches_files: false };
        if self.careful {
            copy.be_careful();
        }
        if self.watches_files {
            copy.watch_files();
        }
        copy
    }

    /// Lets lookups search on from every entry of this page of the first table.
    fn fill(&mut self, place: usize) {
        let page = (place - FIRST as usize) / PAGE as usize;
        if !std::mem::replace(&mut self.filled[page], true) {
            let start = FIRST as usize + page * PAGE as usize;
            for place in (start..start + PAGE as usize).step_by(8) {
                self.memory.store(place, self.miss.0);
            }
        }
    }

    /// Notes that functions return to `pc`.
    pub fn mark_return(&self, pc: ProgramPc) {
        self.mark_return_at(self.lookup.index(pc));
    }

    /// The same for all addresses with this entry.
    pub fn mark_return_at(&self, index: u64) {
        self.memory.patch_byte((RETURNS + index) as usize, 1);
    }

    /// Notes that the routine `pc` is known.
    pub fn mark_routine(&self, pc: ProgramPc) {
        self.memory.patch_byte((ROUTINES + self.lookup.index(pc)) as usize, 1);
    }
}

/// The parts of the tables that never change.
fn set_constants(memory: &SharedMemory) {
    memory.store(MASK as usize, FIRST_MASK);
    let how = |number: i64, how: u8| memory.patch_byte(CALLS as usize + number as usize, how);
    for number in TAKEN_SYSCALLS {
        how(number, call::TAKEN);
    }
    how(libc::SYS_futex, call::FUTEX);
    memory.patch_byte(LOOKS as usize + libc::SYS_rt_sigreturn as usize, look::RETURN);
}

fn entry_of_first(index: u64) -> usize {
    (FIRST + 8 * index) as usize
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::kernel::ptrace::Tid;
    use crate::translate::layout::TABLES_LEN;

    const MISS: u64 = 0x77;

    fn empty() -> Tables {
        let file = nix::sys::memfd::memfd_create(c"test", nix::sys::memfd::MFdFlags::empty()).unwrap();
        let me = Tid(std::process::id().cast_signed());
        let memory = SharedMemory::take(me, file.as_raw_fd(), TABLES_LEN as usize).unwrap();
        Tables::new(memory, Lookup { tables: 0x6000_0000, bmi2: true })
    }

    fn tables() -> Tables {
        let mut tables = empty();
        tables.set_miss(CachePc(MISS));
        tables
    }

    fn known(tables: &mut Tables, pc: u64, checked: u64, landing: u64) {
        tables.make_known(ProgramPc(pc), CachePc(checked), CachePc(landing));
    }

    /// What code finds that looks an address up as it does in the program: the first table, then the second. Zero:
    /// nothing.
    fn find(tables: &Tables, pc: u64, checks: &[(u64, u64)]) -> u64 {
        let first = tables.memory.load(entry_of_first(tables.lookup.index(ProgramPc(pc))));
        match checks.iter().find(|(checked, _)| *checked == first) {
            Some((checked, head)) if *head == pc => return *checked,
            None if first == 0 => return 0,
            None => assert_eq!(first, MISS),
            Some(_) => {}
        }
        let mask = tables.memory.load(SECOND_MASK as usize);
        let mut entry = (pc.wrapping_mul(HASH) >> (64 - SECOND_ENTRIES.trailing_zeros())) & mask;
        loop {
            match tables.memory.load((SECOND + 16 * entry) as usize) {
                0 => return 0,
                found if found == pc => return tables.memory.load((SECOND + 16 * entry + 8) as usize),
                _ => entry = (entry + 1) % SECOND_ENTRIES,
            }
        }
    }

    #[test]
    fn an_address_is_found_also_when_another_has_taken_its_entry() {
        let mut tables = tables();
        let (one, two) = (0x40_1000, 0x40_1000 + (1 << 30));
        let checks = [(0x10, one), (0x20, two)];
        assert_eq!(find(&tables, one, &checks), 0);
        known(&mut tables, one, 0x10, 0x18);
        assert_eq!((find(&tables, one, &checks), find(&tables, two, &checks)), (0x10, 0));
        known(&mut tables, two, 0x20, 0x28);
        assert_eq!((find(&tables, one, &checks), find(&tables, two, &checks)), (0x18, 0x20));
        known(&mut tables, one, 0x10, 0x18);
        assert_eq!((find(&tables, one, &checks), find(&tables, two, &checks)), (0x10, 0x28));
        tables.make_unknown(ProgramPc(two));
        assert_eq!(find(&tables, one, &checks), 0x10, "the entry is not that of the one that goes");
        tables.make_unknown(ProgramPc(one));
        assert_eq!(find(&tables, two, &checks), 0x28);
        tables.clear();
        assert_eq!((find(&tables, one, &checks), find(&tables, two, &checks)), (0, 0));
    }

    #[test]
    fn the_second_table_is_used_from_its_start_and_all_of_it_when_there_are_many() {
        let mut tables = tables();
        let (heads, landing) = (1..40_000u64, |head: u64, turn: u64| 2 * head + turn);
        let pc = |head: u64| 0x40_1000 + (head << 30);
        let last_place = |tables: &Tables| tables.second.iter().max().map(|place| (*place as u64 - SECOND) / PAGE);
        for head in heads.clone() {
            known(&mut tables, pc(head), 3, landing(head, 0));
            if head == 100 {
                assert_eq!(last_place(&tables), Some(0), "a hundred fit into a page");
            }
        }
        assert!(last_place(&tables) > Some(200));
        for turn in [1, 0] {
            let checks = [(3, pc(39_999))];
            let found =
                heads.clone().filter(|&head| find(&tables, pc(head), &checks) == landing(head, 1 - turn)).count();
            // All but the last, which is in the first table.
            assert_eq!(found, 39_998);
            for head in heads.clone() {
                known(&mut tables, pc(head), 3, landing(head, turn));
            }
        }
        assert!(!tables.is_full());
    }

    #[test]
    fn a_copy_finds_the_same_and_changes_by_itself() {
        let mut tables = tables();
        let (one, two) = (0x40_1000, 0x40_1000 + (1 << 30));
        let checks = [(0x10, one), (0x20, two)];
        known(&mut tables, one, 0x10, 0x18);
        known(&mut tables, two, 0x20, 0x28);
        let mut copy = empty();
        tables.copy_to(&copy.memory);
        copy = tables.in_copy(copy.memory);
        assert_eq!((find(&copy, one, &checks), find(&copy, two, &checks)), (0x18, 0x20));
        copy.clear();
        assert_eq!((find(&copy, one, &checks), find(&tables, one, &checks)), (0, 0x18));
    }

    #[test]
    fn pages_are_filled_when_an_address_in_them_gets_known() {
        let mut tables = tables();
        known(&mut tables, 0x40_1000, 0x10, 0x18);
        let index = tables.lookup.index(ProgramPc(0x40_1000));
        assert_eq!(tables.memory.load(entry_of_first(index + 1)), MISS);
        assert_eq!(tables.memory.load(entry_of_first(index + 512)), 0);
        tables.fill_all();
        assert_eq!(tables.memory.load(entry_of_first(index + 512)), MISS);
        assert_eq!(tables.memory.load(entry_of_first(index)), 0x10);
    }
}
