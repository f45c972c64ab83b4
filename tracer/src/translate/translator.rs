//! All translations of one process: made, found, linked and given up.

mod changes;
mod copy;
mod functions;
mod gates;
mod persistent;
mod revalidation;
mod samples;
mod tables;
mod thrown_away;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};
use machine::x86_64;
use rustc_hash::FxHashMap;
use trace_format::SpEffect;

use crate::kernel::ptrace::{self, Address, Tid};
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::builder::Builder;
use crate::translate::code::expansions;
use crate::translate::code::loop_code;
use crate::translate::code::plan::{Plan, Source, Translation};
use crate::translate::code::route::Routes;
use crate::translate::code::superblock::{Checked, Draft, MAX_INSTRUCTIONS, Mark, Superblock, Trap};
use crate::translate::code::values::{Value, Values};
use crate::translate::hooks::Hooks;
use crate::translate::memory::space::Space;
use crate::translate::program::program_code::ProgramCode;
use crate::translate::remote::Result;
use crate::usage::{ThrownAway, Why};
use persistent::Recalled;
use revalidation::Revivable;
use tables::{Heads, Jumps, Pages, Paths, Places, Sharing};
use thrown_away::Changed;

/// How many successors are translated ahead of time: fewer stops, little code that never runs.
const AHEAD: usize = 12;
/// The same for each function that will be called: itself, and what comes next in it.
const AHEAD_OF_EACH: usize = 8;

/// What a path, a partial one, and a jump with its trap take of our memory, in bytes: entries of tables, with what is
/// free in them.
const PATH_SIZE: u64 = 60;
const PARTIAL_PATH_SIZE: u64 = 100;
const LINK_SIZE: u64 = 80;

/// What a record stands for: the first instructions of a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The superblock.
    pub superblock: u32,
    /// How many of its instructions.
    pub executed: u16,
}

/// All that was translated of one process.
pub struct Translator {
    /// The program's code.
    pub code: ProgramCode,
    /// Our memory in it.
    pub space: Space,
    /// Whether memory addresses are recorded.
    pub memory: bool,
    kept: Kept,
    /// What is known about superblocks that run often.
    pub routes: Routes,
    /// What is to be translated ahead of time, and whether lookups reach it.
    ahead: VecDeque<(ProgramPc, bool)>,
    /// Where synchronisation functions are known to return to.
    returned: Vec<ProgramPc>,
    /// What is left of former runs.
    recalled: Option<Recalled>,
    /// What was done since this was last looked at.
    pub made: Made,
    changed: Changed,
    revivable: Revivable,
    tools: Tools,
}

/// What was translated and given up, and how long that took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    /// Superblocks.
    pub superblocks: u64,
    /// The instructions in them.
    pub instructions: u64,
    /// Superblocks of former runs.
    pub recalled: u64,
    /// Superblocks that were thrown away.
    pub thrown_away: ThrownAway,
    /// Superblocks that were translated again, whose code had changed or could have; those whose code had not.
    pub again: u64,
    /// See there.
    pub again_the_same: u64,
    /// Superblocks that came back as they were.
    pub revived: u64,
    /// How often there was no room for code near that of the program.
    pub without_room: u64,
    /// The time that translating took.
    pub time: Duration,
}

/// What is known about the translations there are: forgotten as a whole.
#[derive(Clone, Default)]
struct Kept {
    superblocks: Vec<Superblock>,
    /// Superblocks of one instruction that is in no translation, by address.
    singles: FxHashMap<ProgramPc, u32>,
    paths: Paths,
    heads: Heads,
    sharing: Sharing,
    jumps: Jumps,
    places: Places,
    pages: Pages,
    /// About how many bytes of our own memory they take.
    held: u64,
}

impl Kept {
    /// Nothing but the traps of this memory, which last.
    fn nothing(space: &Space) -> Kept {
        Kept { places: Places::with(&space.traps), ..Kept::default() }
    }

    /// Makes room for so many more superblocks.
    fn reserve(&mut self, superblocks: usize) {
        /// Superblocks have about three paths and three jumps each.
        const EACH: usize = 3;
        self.superblocks.reserve(superblocks);
        self.heads.reserve(superblocks);
        self.paths.reserve(EACH * superblocks);
        self.jumps.reserve(EACH * superblocks);
    }
}

/// What translating takes, and gives back.
struct Tools {
    factory: InstructionInfoFactory,
    /// Room for the next translation.
    room: Option<Box<Translation>>,
}

impl Default for Tools {
    fn default() -> Tools {
        Tools { factory: InstructionInfoFactory::new(), room: None }
    }
}

impl Translator {
    /// Nothing is translated yet.
    #[must_use]
    pub fn new(code: ProgramCode, space: Space, memory: bool, hooks: Hooks) -> Translator {
        Translator {
            code,
            memory,
            kept: Kept::nothing(&space),
            space,
            routes: Routes::new(hooks.routes_at_once),
            ahead: VecDeque::new(),
            returned: Vec::new(),
            recalled: None,
            made: Made::default(),
            changed: Changed::default(),
            revivable: Revivable::default(),
            tools: Tools::default(),
        }
    }

    /// How many bytes of code there are, and about how many bytes of our own memory the translations take.
    #[must_use]
    pub fn takes(&self) -> [u64; 2] {
        [self.space.code_len(), self.held()]
    }

    /// About how many bytes of our own memory the translations take.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.kept.held + self.routes.held()
    }

    /// Forgets all that was translated. No thread may be in the code.
    pub fn forget_all(&mut self) {
        self.revivable.clear();
        self.made.thrown_away.renewal += self.kept.heads.len() as u64;
        self.space.clear();
        self.code.forget_all();
        self.kept = Kept::nothing(&self.space);
        self.ahead.clear();
        self.routes.forget_all();
    }

    /// Our memory has moved, when all was forgotten.
    pub fn has_moved(&mut self) {
        self.kept = Kept::nothing(&self.space);
        self.code.syscall_at = self.space.syscall_at;
        self.code.lookup = self.space.tables.lookup;
    }

    /// Takes a superblock of one instruction over, which ran before all was forgotten or outside of the cache. Returns
    /// the number of its path.
    pub fn adopt(&mut self, single: Superblock) -> u32 {
        let pc = single.head;
        // Instructions that run outside do so each time.
        let superblock = match self.kept.singles.get(&pc) {
            Some(&number) if self.superblock(number).code() == single.code() => number,
            _ => {
                let number = self.add_superblock(single);
                self.kept.singles.insert(pc, number);
                number
            }
        };
        self.partial_path(Path { superblock, executed: 1 })
    }

    fn add_superblock(&mut self, superblock: Superblock) -> u32 {
        self.kept.held += superblock.size();
        self.kept.superblocks.push(superblock);
        self.kept.superblocks.len() as u32 - 1
    }

    /// The trap at this address.
    #[must_use]
    pub fn trap(&self, address: CachePc) -> Option<Trap> {
        if let Some(trap) = self.kept.places.trap(address) {
            return Some(trap);
        }
        // Behind the trap of a jump lies the jump's number.
        let jump = self.kept.jumps.get(self.space.word(address.plus(1))?)?;
        (jump.trap == address).then_some(Trap::Missing(jump.target))
    }

    /// What a record stands for.
    #[must_use]
    pub fn path(&self, number: u32) -> Option<Path> {
        self.kept.paths.get(number)
    }

    /// How many values the record of a path has.
    #[must_use]
    pub fn values_of(&self, path: Path) -> u16 {
        self.superblock(path.superblock).values_after(path.executed.into())
    }

    /// The superblock of that number.
    #[must_use]
    pub fn superblock(&self, number: u32) -> &Superblock {
        &self.kept.superblocks[number as usize]
    }

    /// The superblock whose code lies there, and the mark at exactly that address.
    #[must_use]
    pub fn mark(&self, address: CachePc) -> Option<(u32, Mark)> {
        let number = self.kept.places.superblock(address)?;
        self.superblock(number).mark_at(address).map(|mark| (number, mark))
    }

    /// The record for the first instructions of a superblock.
    pub fn partial_path(&mut self, path: Path) -> u32 {
        let (number, is_new) = self.kept.paths.partial(path);
        self.kept.held += if is_new { PARTIAL_PATH_SIZE } else { 0 };
        number
    }

    /// The record for one instruction that ran outside of the cache, and the values that belong to it.
    pub fn single_path(&mut self, pc: ProgramPc) -> Option<(u32, Vec<Value>)> {
        let mut bytes = [0; 16];
        let mut available = self.code.fetch(pc, &mut bytes);
        if available == 0 {
            available = ptrace::read_code(self.code.reader, Address(pc.0), &mut bytes);
        }
        let instruction = Decoder::with_ip(64, &bytes[..available], pc.0, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        let mut described = x86_64::recorded(&instruction, &mut self.tools.factory);
        let mut values = Values::new(self.memory);
        if self.memory || x86_64::is_atomic(&instruction) && self.code.modules.wants_atomics(pc.0) {
            described.memory = values.reads(self.tools.factory.info(&instruction).used_memory());
        }
        if described.sp == SpEffect::Recorded {
            values.record_stack_pointer();
        }
        values.ran();
        let recorded = values.recorded;
        let mut draft = Draft {
            head: pc,
            instructions: vec![described],
            code: bytes[..instruction.len()].to_vec(),
            values: values.after,
            operands: values.operands,
            ..Draft::default()
        };
        let mut superblock = draft.pack();
        superblock.dead = true;
        Some((self.adopt(superblock), recorded))
    }

    /// Whether code that could not be translated before can be now (it was mapped in the meantime). If so, it will be.
    pub fn can_run_now(&mut self, pc: ProgramPc) -> bool {
        self.code.map_changed();
        let mut bytes = [0; 16];
        let available = self.code.fetch(pc, &mut bytes);
        let can = available > 0 && !crate::translate::code::outside::must_run_outside(pc.0, &bytes[..available]);
        if can {
            self.give_up(pc, Why::Late);
        }
        can
    }

    /// Where the code of `pc` lies; translates it where that was not done. `looked_up` tells whether a lookup has come
    /// to it, and will again. Returns the address for a thread whose registers are the program's (with the record
    /// pointer in r11).
    pub fn enter(&mut self, thread: Tid, pc: ProgramPc, looked_up: bool) -> Result<CachePc> {
        self.code.reader = thread;
        let number = match self.kept.heads.get(pc) {
            Some(number) => number,
            None => {
                let start = Instant::now();
                self.translate_recalled(thread, pc)?;
                self.revive(pc);
                let number = match self.kept.heads.get(pc) {
                    Some(number) => number,
                    None => self.translate(thread, pc, looked_up)?,
                };
                let beside = if looked_up { self.code.modules.resolvers_beside(pc.0) } else { Vec::new() };
                self.translate_ahead(thread, &beside)?;
                self.made.time += start.elapsed();
                number
            }
        };
        if looked_up {
            return Ok(self.make_checked(number));
        }
        Ok(self.superblock(number).body)
    }

    fn translate_ahead(&mut self, thread: Tid, called: &[u64]) -> Result<()> {
        let mut left = AHEAD + AHEAD_OF_EACH * called.len();
        self.ahead.extend(called.iter().map(|&pc| (ProgramPc(pc), true)));
        while left > 0
            && let Some((pc, looked_up)) = self.ahead.pop_front()
        {
            if let Some(number) = self.kept.heads.get(pc) {
                if looked_up {
                    self.make_checked(number);
                }
            } else if self.code.fetch(pc, &mut [0; 16]) > 0 {
                self.translate(thread, pc, looked_up)?;
                left -= 1;
            }
        }
        self.ahead.clear();
        Ok(())
    }

    fn translate(&mut self, thread: Tid, pc: ProgramPc, looked_up: bool) -> Result<u32> {
        let room = self.space.room(thread, pc)?;
        self.made.without_room += std::mem::take(&mut self.space.without_room);
        self.kept.places.keep_up(&self.space.traps);
        let checked = looked_up || self.kept.heads.is_looked_up(pc);
        let route = self.routes.from(pc);
        let plan = Plan {
            head: pc,
            hot: room.hot,
            cold: room.cold,
            miss: room.miss,
            landings: room.landings,
            lookup: self.space.tables.lookup,
            first_path: self.kept.paths.next(),
            first_link: self.kept.jumps.next(),
            checked,
            limit: route.as_ref().map_or(MAX_INSTRUCTIONS, |route| route.len()),
            route: route.as_deref(),
            memory: self.memory,
        };
        let mut built = self.tools.room.take().unwrap_or_default();
        Builder::build(plan, &mut self.code, &mut self.tools.factory, &mut built);
        if !self.code.protected.is_empty() {
            self.space.tables.be_careful();
        }
        if self.code.files.writable {
            self.space.tables.watch_files();
        }
        self.space.publish(&room, &built.hot, &built.cold);
        self.made.superblocks += 1;
        self.changed.translated(pc, &built.superblock.code, &mut self.made);
        self.made.instructions += built.superblock.instructions.len() as u64;
        let number = self.kept.superblocks.len() as u32;
        self.kept.paths.add(built.paths.iter().map(|&executed| Path { superblock: number, executed }));
        self.kept.places.add_traps(built.traps.drain(..));
        self.kept.places.add(room.hot, room.hot.plus(built.hot.len() as u64), number);
        for &target in &built.expected {
            self.kept.heads.expect(self.space.tables.lookup.index(target), number);
        }
        for &page in &built.pages {
            self.kept.pages.add(page, number);
        }
        let (head, body) = (built.superblock.head, built.superblock.body);
        let known = built.superblock.checked;
        self.kept.held += PATH_SIZE * built.paths.len() as u64 + LINK_SIZE * built.links.len() as u64;
        self.add_superblock(built.superblock.pack());
        self.kept.heads.set(head, number);
        for &link in &built.links {
            self.kept.jumps.add(link);
            // Links to the head itself are made below, with those of older superblocks.
            if let Some(known) = self.kept.heads.get(link.target)
                && link.target != head
            {
                let to = self.superblock(known).body;
                self.space.link(link.site, to);
            }
        }
        for jump in self.kept.jumps.to(head) {
            self.space.link(jump.site, body);
        }
        if checked {
            self.kept.heads.look_up(head);
        }
        if let Some(Checked { entry: Some(entry), landing }) = known {
            self.space.tables.make_known(head, entry, landing);
        }
        self.ahead.extend(built.next.drain(..));
        built.clear();
        self.tools.room = Some(built);
        Ok(number)
    }

    /// Makes sure that lookups find a superblock, and returns where they go on.
    fn make_checked(&mut self, number: u32) -> CachePc {
        let superblock = &self.kept.superblocks[number as usize];
        let (head, body) = (superblock.head, superblock.body);
        self.kept.heads.look_up(head);
        let known = superblock.checked;
        let checked = known.unwrap_or_else(|| {
            let (leaves, chunks) = (self.code.returns_here(head), self.code.gives_chunks());
            let lookup = self.space.tables.lookup;
            let mut landing = body;
            let entry = self.space.publish_cold(body, |code, miss| {
                landing = expansions::checked_entry(code, head, miss);
                if leaves {
                    expansions::record_leave(code, &lookup);
                    if chunks {
                        loop_code::record_chunk(code, head);
                    }
                }
                code.jump(body);
            });
            Checked { entry, landing: if entry.is_some() { landing } else { body } }
        });
        self.kept.superblocks[number as usize].checked = Some(checked);
        if let Some(entry) = checked.entry {
            self.space.tables.make_known(head, entry, checked.landing);
        }
        checked.landing
    }
}
