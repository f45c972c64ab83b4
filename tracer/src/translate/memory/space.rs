//! The memory that we share with one process: tables, slots and code caches, and where they lie in it.

mod copy;
mod moving;
mod slots;

pub use moving::{END, Moved};
pub use slots::Written;

use nix::errno::Errno;
use nix::libc;
use rustc_hash::FxHashSet;

use crate::kernel::ptrace::{self, Address, Registers, SharedMemory, Tid};
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::assembler::Assembler;
use crate::translate::code::expansions::{self, Lookup, SYSCALL_LEN};
use crate::translate::code::handler_code::{self, ReturnCode};
use crate::translate::code::plan::{Landings, Room};
use crate::translate::code::superblock::Trap;
use crate::translate::hooks::SmallBuffers;
use crate::translate::layout::{CACHE_LEN, COLD_START, PAGE, SLOT_BASES, TABLE_BASES, TABLES_LEN, slots_len};
use crate::translate::memory::mapper::{Mapper, SetUpError, far, near};
use crate::translate::memory::tables::{HASH, Tables};
use crate::translate::remote::{self, Result};

/// Room that a cache must have for one more superblock with all that belongs to it.
const RESERVE: u64 = 64 << 10;
/// How far a jump reaches, less the length of a cache.
const REACH: u64 = (1 << 31) - 2 * CACHE_LEN;

/// So much of a cache is made ready at once.
const PREPARED: u64 = 64 << 10;

/// Where in the slots the name of memory files is written, when one is made.
const NAME_AT: u64 = 2048;
/// Code whose addresses differ in so many lower bits only has its caches in the same places.
const CROWDED_BITS: u32 = 20;

/// A code cache.
struct Cache {
    memory: SharedMemory,
    base: CachePc,
    /// The code of the program that it was made for.
    around: ProgramPc,
    /// Where the next code goes, from the start of the cache.
    hot: u64,
    /// The same for seldom executed code.
    cold: u64,
    /// How far memory has been made ready for both.
    ready: [u64; 2],
    /// Where code starts.
    first: u64,
    /// Where lookups go on that did not find what they looked for.
    miss: CachePc,
    /// Where system calls are made.
    landings: Landings,
    /// The addresses of their `syscall` instructions.
    calls: [CachePc; 2],
    /// The way out of signal handlers.
    returns: ReturnCode,
}

impl Cache {
    /// Makes memory ready up to the ends of the code.
    fn prepare(&mut self) {
        let ends = [(self.hot, COLD_START), (self.cold, CACHE_LEN)];
        for (ready, (end, limit)) in self.ready.iter_mut().zip(ends) {
            if end > *ready {
                let new = (end.next_multiple_of(PAGE) + PREPARED - PAGE).min(limit);
                self.memory.prepare(*ready as usize, (new - *ready) as usize);
                *ready = new;
            }
        }
    }

    /// Adds seldom executed code, which there must be room for.
    fn add_cold(&mut self, code: &[u8]) {
        let at = self.cold;
        self.cold += code.len() as u64;
        self.prepare();
        self.memory.write(at as usize, code);
    }
}

/// Where a thread at a landing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// Before the system call, whose path is recorded already.
    Before,
    /// In the call, or right behind it.
    After,
}

/// What we have mapped into one process.
pub struct Space {
    /// A process that it is mapped in.
    pub process: Tid,
    /// How many bytes each buffer of the first slots has.
    buffer_len: u64,
    /// How many bytes of each buffer are used from its next start on: no more than it has.
    pub room: u64,
    /// Where tests ask for less.
    pub small: SmallBuffers,
    /// The buffer of each slot that is written to.
    open: Vec<slots::Open>,
    /// Where a `syscall` instruction lies.
    pub syscall_at: u64,
    /// The program's break when it began.
    first_break: u64,
    /// What the program has said about new code, as for `PR_SET_MDWE`; 0: nothing.
    pub no_new_code: u64,
    /// The last system call, with its arguments, out of whose way our memory could not be moved.
    pub refused: Option<(i64, [u64; 6])>,
    /// Where lookups look.
    pub tables: Tables,
    slots: SharedMemory,
    slot_base: u64,
    free_slots: Vec<u32>,
    next_slot: u32,
    caches: Vec<Cache>,
    /// Addresses near which there was no room for another.
    crowded: FxHashSet<u64>,
    /// How often that was found, since this was last looked at.
    pub without_room: u64,
    /// Traps that stay as long as there is the memory.
    pub traps: Vec<(CachePc, Trap)>,
    /// Where threads stand that are at rest.
    rest: CachePc,
    /// Where the kernel lets threads begin to handle signals, and where they look the handler up.
    pub signal_entry: CachePc,
    signal_lookup: CachePc,
    /// Where they go on behind handlers, and where they look for what comes next.
    signal_left: CachePc,
    left_lookup: CachePc,
}

impl Space {
    /// Maps tables, slots with buffers of this length and a first cache into a process that stands at the first
    /// instruction of a new program, at `pc`.
    pub fn set_up(process: Tid, pc: ProgramPc, stack: u64, buffer_len: u64) -> std::result::Result<Space, SetUpError> {
        // The first calls are made by a `syscall` instruction that lies for a moment where the program begins.
        let mut before = [0; 8];
        if ptrace::read_code(process, Address(pc.0), &mut before) < before.len() {
            return Err(SetUpError::Refused("cannot read its first instruction", Errno::EFAULT));
        }
        let mut patched = before;
        patched[..2].copy_from_slice(&[0x0f, 0x05]);
        ptrace::poke(process, pc.0, patched).map_err(|_| remote::Lost::Gone)?;
        let name = stack - 512;
        ptrace::write(process, Address(name), b"lockstep\0");
        let mapper = Mapper { process, syscall_at: pc.0, name };
        let bmi2 = std::arch::is_x86_feature_detected!("bmi2");
        let (tables, base) = mapper.map(&TABLE_BASES, TABLES_LEN, libc::PROT_READ)?;
        let (slots, slot_base) = mapper.map(&SLOT_BASES, slots_len(buffer_len), libc::PROT_NONE)?;
        let mut space = Space {
            process,
            buffer_len,
            room: buffer_len,
            small: SmallBuffers::new(None),
            open: Vec::new(),
            syscall_at: pc.0,
            first_break: remote::call(process, pc.0, libc::SYS_brk, [0; 6])?.cast_unsigned(),
            no_new_code: 0,
            refused: None,
            tables: Tables::new(tables, Lookup { tables: base, bmi2 }),
            slots,
            slot_base,
            free_slots: Vec::new(),
            next_slot: 0,
            caches: Vec::new(),
            crowded: FxHashSet::default(),
            without_room: 0,
            traps: Vec::new(),
            rest: CachePc(0),
            signal_entry: CachePc(0),
            signal_lookup: CachePc(0),
            signal_left: CachePc(0),
            left_lookup: CachePc(0),
        };
        let places: Vec<u64> = near(pc.0).into_iter().chain(far()).collect();
        let cache = mapper.map(&places, CACHE_LEN, libc::PROT_READ | libc::PROT_EXEC)?;
        space.add_cache(cache.0, CachePc(cache.1), pc);
        space.syscall_at = space.caches[0].base.0;
        space.tables.set_miss(space.caches[0].miss);
        ptrace::poke(process, pc.0, before).map_err(|_| remote::Lost::Gone)?;
        Ok(space)
    }

    fn add_cache(&mut self, memory: SharedMemory, base: CachePc, around: ProgramPc) {
        let mut code = Assembler::at(base);
        code.raw(&expansions::SYSCALL); // for calls that we make
        code.trap();
        let rest = code.trap();
        // A thread that has run into the trap stands after it; no other place may have that address.
        code.trap();
        if self.caches.is_empty() {
            self.rest = rest;
            self.traps.push((rest, Trap::Rest));
            self.signal_entry = code.here();
            self.signal_lookup = handler_code::signal_entry(&mut code, &self.tables.lookup);
            self.signal_left = code.here();
            self.left_lookup = handler_code::signal_left(&mut code, &self.tables.lookup);
        }
        let returns = handler_code::signal_return(&mut code, self.signal_left);
        self.traps.push((returns.looked_at, Trap::Return));
        let [futex, other] = [None, Some(returns.entry)].map(|returns| {
            let landing = expansions::landing(&mut code, &self.tables.lookup, returns);
            self.traps.push((landing.fault, Trap::Fault(landing.call)));
            self.traps.push((landing.looked_at, Trap::Filling));
            landing
        });
        let landings = Landings { futex: futex.entry, other: other.entry };
        let calls = [futex.call, other.call];
        let (stub, trap) = expansions::miss_stub(code.here(), &self.tables.lookup, HASH);
        self.traps.push((trap, Trap::Lookup));
        let miss = stub.base;
        code.raw(&stub.bytes);
        let hot = (code.bytes.len() as u64).next_multiple_of(64);
        let ready = [0, COLD_START];
        let mut cache =
            Cache { memory, base, around, hot, cold: COLD_START, ready, first: hot, miss, landings, calls, returns };
        cache.prepare();
        cache.memory.write(0, &code.bytes);
        self.caches.push(cache);
        self.watch_break();
    }

    /// Looks at the program's break where it could reach memory of ours, if nothing else lay between.
    fn watch_break(&self) {
        /// No program has so much memory there.
        const FAR: u64 = 1 << 40;
        let reach = self.first_break..self.first_break.saturating_add(FAR);
        if self.pieces().iter().any(|(start, _)| reach.contains(start)) {
            self.tables.watch_break();
        }
    }

    /// Where a thread with this pc stands, if it makes a system call.
    #[must_use]
    pub fn landing(&self, pc: CachePc) -> Option<Landing> {
        let calls = self.caches[self.cache_with(pc)?].calls;
        if calls.contains(&pc) {
            return Some(Landing::Before);
        }
        calls.contains(&pc.minus(SYSCALL_LEN)).then_some(Landing::After)
    }

    /// Where a thread stands before a system call that it makes.
    #[must_use]
    pub fn call(&self) -> CachePc {
        self.caches[0].calls[1]
    }

    /// The `syscall` instruction behind this place at a landing.
    #[must_use]
    pub fn call_near(&self, address: CachePc) -> Option<CachePc> {
        self.caches[self.cache_with(address)?].calls.into_iter().filter(|call| address <= *call).min()
    }

    /// The registers of the program for the thread of this slot, where it looks for what comes next: the handler of a
    /// signal, or what the handler has returned to.
    #[must_use]
    pub fn around_handler(&self, slot: u32, registers: &Registers) -> Option<Registers> {
        let looks = [self.signal_lookup, self.left_lookup].contains(&CachePc(registers.rip));
        looks.then(|| self.before_target(slot, registers))
    }

    /// Whether a thread with this pc has run nothing of the program since a handler was to begin, or has ended.
    #[must_use]
    pub fn has_not_run(&self, pc: CachePc) -> bool {
        pc == self.signal_entry || pc == self.signal_left
    }

    /// Where a thread with this pc stands, if it makes the call by which it returns from a handler. Before the call,
    /// the frame of the handler may lead to our code already, which the second value says.
    #[must_use]
    pub fn returning(&self, pc: CachePc) -> Option<(Landing, bool)> {
        let ReturnCode { entry, call, .. } = self.caches[self.cache_with(pc)?].returns;
        let before = entry <= pc && pc <= call;
        let after = (pc == call.plus(SYSCALL_LEN)).then_some((Landing::After, false));
        before.then_some((Landing::Before, pc == call)).or(after)
    }

    /// The number of the memory file of the slots.
    #[must_use]
    pub fn inode(&self) -> u64 {
        self.slots.inode
    }

    /// Where threads stand that are at rest.
    #[must_use]
    pub fn rest(&self) -> CachePc {
        self.rest
    }

    /// How many bytes of code there are.
    #[must_use]
    pub fn code_len(&self) -> u64 {
        self.caches.iter().map(|c| c.hot - c.first + c.cold - COLD_START).sum()
    }

    /// Throws all code away but what stands at the start of each cache, and lets lookups find nothing. No thread may be
    /// in that code.
    pub fn clear(&mut self) {
        for c in &mut self.caches {
            c.memory.give_back(c.first as usize, (c.hot - c.first) as usize);
            c.memory.give_back(COLD_START as usize, (c.cold - COLD_START) as usize);
            (c.hot, c.cold) = (c.first, COLD_START);
            c.ready = [c.first / PAGE * PAGE, COLD_START];
        }
        self.tables.clear();
        self.crowded.clear();
    }

    fn cache_with(&self, address: CachePc) -> Option<usize> {
        self.caches.iter().position(|c| c.base <= address && address.behind(c.base) < CACHE_LEN)
    }

    /// Whether the address lies in a cache.
    #[must_use]
    pub fn is_ours(&self, address: CachePc) -> bool {
        self.cache_with(address).is_some()
    }

    /// Room for the code of a superblock that starts at `pc`, near it where possible. `thread` makes the calls for a
    /// new cache.
    pub fn room(&mut self, thread: Tid, pc: ProgramPc) -> Result<Room> {
        let fits = |c: &Cache| c.hot + RESERVE < COLD_START && c.cold + RESERVE < CACHE_LEN;
        let near_pc = |c: &Cache| c.base.0.abs_diff(pc.0) < REACH;
        let mut found = self.caches.iter().position(|c| fits(c) && near_pc(c));
        if found.is_none() {
            let name = self.slot_base + NAME_AT;
            let mapper = Mapper { process: self.process, syscall_at: self.syscall_at, name };
            self.slots.write(NAME_AT as usize, b"lockstep\0");
            let mapper = Mapper { process: thread, ..mapper };
            // Where nothing was free for one superblock, nothing is for the next.
            let around = pc.0 >> CROWDED_BITS;
            let nearby = if self.crowded.contains(&around) { Vec::new() } else { near(pc.0) };
            for places in [nearby, far()] {
                let mapped = match places.is_empty() {
                    true => Err(SetUpError::Refused("no room for translated code near the program's", Errno::ENOMEM)),
                    false => mapper.map_of(self.process, &places, CACHE_LEN, libc::PROT_READ | libc::PROT_EXEC),
                };
                found = match mapped {
                    Ok((memory, base)) => {
                        self.add_cache(memory, CachePc(base), pc);
                        Some(self.caches.len() - 1)
                    }
                    Err(SetUpError::Lost(lost)) => return Err(lost),
                    // Code that is far from what it uses is slower, but right.
                    Err(SetUpError::Refused(..)) => {
                        self.crowded.insert(around);
                        self.without_room += u64::from(!places.is_empty());
                        self.caches.iter().position(fits)
                    }
                };
                if found.is_some() {
                    break;
                }
            }
        }
        let cache = found.ok_or(remote::Lost::NoRoom)?;
        let c = &mut self.caches[cache];
        c.hot = c.hot.next_multiple_of(16);
        Ok(Room { cache, hot: c.base.plus(c.hot), cold: c.base.plus(c.cold), miss: c.miss, landings: c.landings })
    }

    /// Puts code where there was room for it.
    pub fn publish(&mut self, room: &Room, hot: &[u8], cold: &[u8]) {
        let c = &mut self.caches[room.cache];
        let end = c.cold + cold.len() as u64;
        c.hot += hot.len() as u64;
        assert!(c.hot <= COLD_START && end <= CACHE_LEN, "a superblock fits into the room it was given");
        c.add_cold(cold);
        c.memory.write(room.hot.behind(c.base) as usize, hot);
    }

    /// Adds code behind the seldom executed code of the cache in which `near` lies. None when there is no room.
    pub fn publish_cold(&mut self, near: CachePc, build: impl FnOnce(&mut Assembler, CachePc)) -> Option<CachePc> {
        let cache = self.cache_with(near)?;
        let c = &mut self.caches[cache];
        let mut code = Assembler::at(c.base.plus(c.cold));
        build(&mut code, c.miss);
        if c.cold + code.bytes.len() as u64 > CACHE_LEN {
            return None;
        }
        c.add_cold(&code.bytes);
        Some(code.base)
    }

    /// Lets the jump at `site` go to `to`, over a far jump where it does not reach.
    pub fn link(&mut self, site: CachePc, to: CachePc) {
        let Some(cache) = self.cache_with(site) else { return };
        let distance = |to: CachePc| i32::try_from(to.behind(site.plus(4)).cast_signed()).ok();
        let distance = distance(to).or_else(|| {
            let far = self.publish_cold(site, |code, _| {
                code.raw(&[0xff, 0x25, 0, 0, 0, 0]); // jmp [rip]
                code.raw(&to.0.to_le_bytes());
            })?;
            distance(far)
        });
        if let Some(distance) = distance {
            let c = &self.caches[cache];
            c.memory.patch(site.behind(c.base) as usize, distance.cast_unsigned());
        }
    }

    /// The word at an address of ours.
    #[must_use]
    pub fn word(&self, address: CachePc) -> Option<u32> {
        let c = &self.caches[self.cache_with(address)?];
        let mut words = Vec::with_capacity(1);
        c.memory.read_words(address.behind(c.base) as usize, &mut words, 1);
        words.first().copied()
    }

    /// Puts a trap at an address of ours.
    pub fn trap_at(&self, address: CachePc) {
        self.byte_at(address, 0xcc);
    }

    /// Puts a byte there.
    pub fn byte_at(&self, address: CachePc, byte: u8) {
        if let Some(cache) = self.cache_with(address) {
            let c = &self.caches[cache];
            c.memory.patch_byte(address.behind(c.base) as usize, byte);
        }
    }

    /// The bytes of our code at an address; zeros where there is none of ours.
    #[must_use]
    pub fn code_at(&self, address: CachePc) -> [u8; 16] {
        let mut bytes = [0; 16];
        if let Some(cache) = self.cache_with(address) {
            let c = &self.caches[cache];
            let offset = address.behind(c.base) as usize;
            let end = (CACHE_LEN as usize - offset).min(bytes.len());
            c.memory.read(offset, &mut bytes[..end]);
        }
        bytes
    }
}
