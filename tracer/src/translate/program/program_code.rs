//! The program's code as the translator reads it: pages, what may be executed, which functions are hooked.

use std::rc::Rc;

use nix::libc;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::decode::MAX_LENGTH;
use crate::images::modules::{Changes, Images, ModuleMap, Region, regions};
use crate::images::sync_functions::Role;
use crate::kernel::ptrace::{self, Address, Tid};
use crate::translate::addresses::ProgramPc;
use crate::translate::code::assembler::register;
use crate::translate::code::expansions::Hook;
use crate::translate::code::expansions::Lookup;
use crate::translate::code::plan::Source;
use crate::translate::layout::PAGE;
use crate::translate::program::code_files::CodeFiles;
use crate::translate::program::code_pages::{CodePages, Page};
use crate::translate::program::gates::Gates;
use crate::translate::remote;

/// What is known about a page that we made read-only.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    /// What the program may do with it, as for `mprotect`.
    pub allowed: u64,
    /// The pages of code that change with it: itself, or others that show the same memory.
    code: Vec<u64>,
}

/// What is known about a process's code.
#[derive(Clone)]
pub struct ProgramCode {
    /// A stopped thread through which memory is read.
    pub reader: Tid,
    /// The process.
    pub process: Tid,
    /// Where a `syscall` instruction lies.
    pub syscall_at: u64,
    /// Its modules.
    pub modules: ModuleMap,
    /// Writable pages that we made read-only, since they show memory from which code was translated.
    pub protected: FxHashMap<u64, Protected>,
    /// Pages that were protected once: a thread may still report a write to one that no longer is.
    pub protected_once: FxHashSet<u64>,
    /// Pages from which code was read that another page may show too.
    shared: FxHashSet<u64>,
    /// The places and roles of hooks, by number.
    pub roles: Vec<(ProgramPc, Role)>,
    /// Entries of the table of return addresses that are marked: functions may return to any address that shares one.
    pub returns: FxHashSet<u64>,
    /// How addresses share entries.
    pub lookup: Lookup,
    /// Routines that were handed to a function that runs them.
    routines: FxHashMap<ProgramPc, Role>,
    /// Bodies of taskloops, where their calls do not tell.
    pub taskloops: FxHashSet<u64>,
    hooks: FxHashMap<ProgramPc, Hook>,
    /// Where the window may begin or end.
    pub gates: Gates,
    /// The synchronisation functions of the modules, by address.
    functions: FxHashMap<ProgramPc, Role>,
    /// Whether one of these gives threads iterations of loops.
    gives_chunks: bool,
    pages: CodePages,
    /// The files that were read.
    pub files: CodeFiles,
    /// Pages with code that were given back by `MADV_FREE`, and not read since.
    pub freed: FxHashSet<u64>,
    /// Whether code was read from such a page that had not been written since.
    pub ran_freed: bool,
    /// What is mapped, as far as that is known. What we made read-only may still count as writable.
    regions: Vec<Region>,
    /// Whether nothing else is mapped.
    all_known: bool,
}

impl ProgramCode {
    /// Nothing is known yet of this process.
    #[must_use]
    pub fn new(process: Tid, syscall_at: u64, lookup: Lookup) -> ProgramCode {
        ProgramCode {
            reader: process,
            process,
            syscall_at,
            modules: ModuleMap::default(),
            protected: FxHashMap::default(),
            protected_once: FxHashSet::default(),
            shared: FxHashSet::default(),
            roles: Vec::new(),
            returns: FxHashSet::default(),
            lookup,
            routines: FxHashMap::default(),
            taskloops: FxHashSet::default(),
            hooks: FxHashMap::default(),
            gates: Gates::default(),
            functions: FxHashMap::default(),
            gives_chunks: false,
            pages: CodePages::default(),
            files: CodeFiles::default(),
            freed: FxHashSet::default(),
            ran_freed: false,
            regions: Vec::new(),
            all_known: false,
        }
    }

    /// The mapped region with this address.
    pub fn region(&mut self, address: u64) -> Option<&Region> {
        if !self.all_known && self.known_region(address).is_none() {
            self.read_map();
        }
        self.known_region(address)
    }

    /// Whether code at this address shows a file, and can change by no write.
    pub fn is_fixed(&mut self, pc: ProgramPc) -> bool {
        let region = self.region(pc.0);
        region.is_some_and(|region| region.executable && !region.is_volatile() && region.file.1 != 0)
    }

    fn known_region(&self, address: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|r| r.start <= address);
        self.regions[..after].last().filter(|r| r.contains(address))
    }

    fn read_map(&mut self) {
        self.regions = regions(self.process);
        self.all_known = true;
    }

    /// The memory map has changed.
    pub fn map_changed(&mut self) {
        self.regions.clear();
        self.all_known = false;
    }

    /// The memory map has changed between these addresses.
    pub fn map_changed_in(&mut self, start: u64, end: u64) {
        self.regions.retain(|region| region.end <= start || end <= region.start);
        self.all_known = false;
    }

    /// Forgets what was read from a page. It stays protected.
    pub fn forget_page(&mut self, page: u64) {
        self.pages.forget(page);
        self.shared.remove(&page);
    }

    /// Forgets what is known about the pages in this memory, and returns the pages of code that change with it.
    pub fn forget(&mut self, start: u64, end: u64) -> Vec<u64> {
        let mut changed = Vec::new();
        if (end - start) / PAGE < (self.pages.len() + self.protected.len()) as u64 {
            for page in (start..end).step_by(PAGE as usize) {
                self.pages.forget(page);
                self.shared.remove(&page);
                changed.extend(self.protected.remove(&page).into_iter().flat_map(|protected| protected.code));
            }
        } else {
            let within = |page: &u64| (start..end).contains(page);
            self.pages.forget_within(start, end);
            self.shared.retain(|page| !within(page));
            for (_, protected) in self.protected.extract_if(|page, _| within(page)) {
                changed.extend(protected.code);
            }
        }
        changed
    }

    /// The pages of code that change with this memory.
    #[must_use]
    pub fn shown_by(&self, start: u64, end: u64) -> Vec<u64> {
        let within = self.protected.iter().filter(|(page, _)| (start..end).contains(*page));
        within.flat_map(|(_, protected)| protected.code.iter().copied()).collect()
    }

    /// The kernel may take pages of this memory at any time from now on.
    pub fn remember_freed(&mut self, start: u64, length: u64) {
        self.freed.extend(self.pages.within(start, start.saturating_add(length)));
    }

    /// Forgets what was read from this memory. It stays protected.
    pub fn forget_bytes(&mut self, start: u64, end: u64) {
        self.pages.forget_within(start, end);
    }

    /// The pages from which code was read that another page may show too.
    #[must_use]
    pub fn shared_pages(&self) -> Vec<u64> {
        self.shared.iter().copied().collect()
    }

    /// The protected pages that lie in one of the pieces of memory.
    #[must_use]
    pub fn protected_in(&self, pieces: &[(u64, u64)]) -> Vec<u64> {
        let touched = |page: u64| {
            pieces.iter().any(|&(start, length)| start < page + PAGE && page < start.saturating_add(length))
        };
        self.protected.keys().copied().filter(|page| touched(*page)).collect()
    }

    /// Forgets all that was read, and which functions are hooked.
    pub fn forget_all(&mut self) {
        self.pages.clear();
        self.roles = Vec::new();
        self.find_functions();
        self.map_changed();
    }

    /// Looks at the memory map again and says which modules came and went. Hooks are looked for again.
    pub fn refresh_modules(&mut self, images: &mut Images) -> Changes {
        self.read_map();
        let changes = self.modules.refresh_from(self.process, &self.regions, images);
        self.find_functions();
        changes
    }

    fn find_functions(&mut self) {
        self.hooks.clear();
        self.functions.clear();
        self.functions.extend(self.modules.roles().into_iter().map(|(pc, role)| (ProgramPc(pc), role)));
        self.gives_chunks = self.functions.values().any(|role| matches!(role, Role::GivesChunk(_)));
    }

    /// Gives the routine at this address a role. False when it has one.
    pub fn add_routine(&mut self, address: ProgramPc, role: Role) -> bool {
        self.routines.insert(address, role).is_none()
    }

    /// Whether functions that were entered may return to this address.
    #[must_use]
    pub fn returned_to(&self, pc: ProgramPc) -> bool {
        self.returns.contains(&self.lookup.index(pc))
    }

    /// Whether the routine is known.
    #[must_use]
    pub fn knows_routine(&self, address: ProgramPc) -> bool {
        self.routines.contains_key(&address)
    }

    /// Finds out whether a function that starts here is to be hooked.
    pub fn look_up_hook(&mut self, pc: ProgramPc) -> Option<Hook> {
        if let Some(&hook) = self.hooks.get(&pc) {
            return Some(hook);
        }
        let role = *self.functions.get(&pc).or_else(|| self.routines.get(&pc))?;
        let routine = role.routine().map(|number| register::ARGUMENTS[usize::from(number)]);
        let registers = [0, 1, 2, 3, 4, 5].map(|number| role.names(number));
        let chunk = if let Role::GivesChunk(call) = role { Some(call) } else { None };
        let makes_pieces = role == Role::MakesPieces;
        let number = self.roles.len() as u32;
        let (timed, words) = (role.timed(), role.words());
        let hook = Hook { number, routine, makes_pieces, registers, timed, words, chunk };
        self.roles.push((pc, role));
        self.hooks.insert(pc, hook);
        Some(hook)
    }

    fn page(&mut self, page: u64) -> Option<&Page> {
        // What cannot be read now may be mapped later.
        if self.pages.get(page).is_none() {
            let read = self.read_page(page)?;
            self.pages.insert(page, read);
        }
        self.pages.get(page)
    }

    fn read_page(&mut self, page: u64) -> Option<Rc<Page>> {
        let region = self.region(page).filter(|r| r.executable)?.clone();
        self.files.add(self.process, &region);
        if self.freed.remove(&page) {
            self.ran_freed |= is_freed(self.process, page);
        }
        // Writes will be reported to us, and the translations given up.
        if region.writable {
            self.protect(page, &region, page);
        }
        if region.shared {
            self.shared.insert(page);
            for (other, region) in self.other_views(page, &region) {
                self.protect(other, &region, page);
            }
        }
        let mut bytes = [0; PAGE as usize];
        (ptrace::read_code(self.reader, Address(page), &mut bytes) == bytes.len()).then(|| Rc::new(bytes))
    }

    /// Makes a page read-only that shows the memory of the page `code`.
    fn protect(&mut self, page: u64, region: &Region, code: u64) {
        if let Some(known) = self.protected.get_mut(&page) {
            if !known.code.contains(&code) {
                known.code.push(code);
            }
            return;
        }
        let kept = libc::PROT_READ | if region.executable { libc::PROT_EXEC } else { 0 };
        let arguments = [page, PAGE, kept as u64, 0, 0, 0];
        if remote::call(self.reader, self.syscall_at, libc::SYS_mprotect, arguments) == Ok(0) {
            let allowed = (kept | libc::PROT_WRITE) as u64;
            self.protected.insert(page, Protected { allowed, code: vec![code] });
            self.protected_once.insert(page);
        }
    }

    /// The other pages that show the memory of a page of a shared mapping, and can be written: JIT compilers map one
    /// file twice.
    fn other_views(&mut self, page: u64, region: &Region) -> Vec<(u64, Region)> {
        let place = region.offset + (page - region.start);
        if !self.all_known {
            self.read_map();
        }
        let view = |other: &Region| {
            let at = other.start + place.checked_sub(other.offset)?;
            let shows = other.shared && other.file == region.file && other.contains(at) && at != page;
            (shows && (other.writable || self.protected.contains_key(&at))).then(|| (at, other.clone()))
        };
        self.regions.iter().filter_map(view).collect()
    }
}

impl Source for ProgramCode {
    fn fetch(&mut self, pc: ProgramPc, bytes: &mut [u8]) -> usize {
        let (page, offset) = (pc.page(), (pc.0 & (PAGE - 1)) as usize);
        let first = bytes.len().min(PAGE as usize - offset);
        match self.page(page) {
            Some(contents) => bytes[..first].copy_from_slice(&contents[offset..offset + first]),
            None => return 0,
        }
        let wanted = bytes.len().min(MAX_LENGTH);
        if first >= wanted {
            return first;
        }
        match self.page(page.wrapping_add(PAGE)) {
            Some(contents) => {
                bytes[first..wanted].copy_from_slice(&contents[..wanted - first]);
                wanted
            }
            None => first,
        }
    }

    fn hook(&mut self, pc: ProgramPc) -> Option<Hook> {
        self.look_up_hook(pc)
    }

    fn gate(&mut self, pc: ProgramPc) -> Option<bool> {
        if self.gates.are_none() {
            return None;
        }
        let mut bytes = [0; 16];
        if self.gates.with_markers {
            self.fetch(pc, &mut bytes);
        }
        self.gates.at(pc, &bytes).map(|gate| self.gates.heeded(gate))
    }

    fn wants_atomics(&self, pc: ProgramPc) -> bool {
        self.modules.wants_atomics(pc.0)
    }

    fn returns_here(&self, pc: ProgramPc) -> bool {
        self.returns.contains(&self.lookup.index(pc))
    }

    fn gives_chunks(&self) -> bool {
        self.gives_chunks
    }
}

/// Whether the mapping with this page, which is not backed by a file, has pages that have not been written since they
/// were given back: the kernel may take them at any time. The kernel's count of such pages (`LazyFree`) lags behind;
/// clean pages are such.
fn is_freed(process: Tid, page: u64) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{process}/smaps")).unwrap_or_default();
    let starts_before = |line: &str| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        range.map(|(start, end)| [start, end].map(|n| u64::from_str_radix(n, 16).unwrap_or(0)))
    };
    let mut inside = false;
    for line in about.lines() {
        if let Some([start, end]) = starts_before(line) {
            inside = (start..end).contains(&page);
        } else if inside && let Some(size) = line.strip_prefix("Private_Clean:") {
            return size.trim() != "0 kB";
        }
    }
    false
}
