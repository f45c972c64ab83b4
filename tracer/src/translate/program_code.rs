//! The program's code as the translator reads it: pages, what may be executed, which functions are hooked.

use nix::libc;
use rustc_hash::{FxHashMap, FxHashSet};

use super::assembler::register;

use super::expansions::Lookup;
use super::layout::PAGE;
use super::plan::{Hook, Source};
use super::remote;
use crate::modules::{ModuleMap, Region, regions};
use crate::ptrace::{self, Address, Tid};
use crate::sync_functions::{Argument, Role};

/// The most pages of it that are kept: 4 MiB.
const MOST_PAGES: usize = 1024;

/// What is known of a process's code.
pub struct ProgramCode {
    /// A stopped thread through which memory is read.
    pub reader: Tid,
    /// The process.
    pub process: Tid,
    /// Where a `syscall` instruction lies.
    pub syscall_at: u64,
    /// Its modules.
    pub modules: ModuleMap,
    /// Writable pages that we made read-only, since code was translated from them.
    pub protected: FxHashSet<u64>,
    /// The places and roles of hooks, by number.
    pub roles: Vec<(u64, Role)>,
    /// Entries of the table of return addresses that are marked: functions may return to any address that shares one.
    pub returns: FxHashSet<u64>,
    /// How addresses share entries.
    pub lookup: Lookup,
    /// Routines that were handed to a function that runs them.
    routines: FxHashMap<u64, Role>,
    hooks: FxHashMap<u64, Hook>,
    looked_up: FxHashSet<u64>,
    pages: FxHashMap<u64, Option<Box<[u8; PAGE as usize]>>>,
    regions: Vec<Region>,
    regions_known: bool,
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
            protected: FxHashSet::default(),
            roles: Vec::new(),
            returns: FxHashSet::default(),
            lookup,
            routines: FxHashMap::default(),
            hooks: FxHashMap::default(),
            looked_up: FxHashSet::default(),
            pages: FxHashMap::default(),
            regions: Vec::new(),
            regions_known: false,
        }
    }

    /// The mapped region with this address.
    pub fn region(&mut self, address: u64) -> Option<&Region> {
        if !self.regions_known {
            self.regions = regions(self.process);
            self.regions_known = true;
        }
        let after = self.regions.partition_point(|r| r.start <= address);
        self.regions[..after].last().filter(|r| r.contains(address))
    }

    /// The memory map has changed.
    pub fn map_changed(&mut self) {
        self.regions_known = false;
    }

    /// Forgets what is known of the pages in this memory.
    pub fn forget(&mut self, start: u64, end: u64) {
        if (end - start) / PAGE < (self.pages.len() + self.protected.len()) as u64 {
            for page in (start..end).step_by(PAGE as usize) {
                self.pages.remove(&page);
                self.protected.remove(&page);
            }
        } else {
            self.pages.retain(|page, _| !(start..end).contains(page));
            self.protected.retain(|page| !(start..end).contains(page));
        }
    }

    /// Forgets all that was read, and which functions were found where.
    pub fn forget_all(&mut self) {
        self.pages = FxHashMap::default();
        self.roles = Vec::new();
        self.modules_changed();
    }

    /// Modules have come or gone: hooks are looked for anew.
    pub fn modules_changed(&mut self) {
        self.hooks.clear();
        self.looked_up.clear();
        self.map_changed();
    }

    /// Gives the routine at this address a role. False when it has one.
    pub fn add_routine(&mut self, address: u64, role: Role) -> bool {
        self.looked_up.remove(&address);
        self.routines.insert(address, role).is_none()
    }

    /// Whether functions that were entered may return to this address.
    #[must_use]
    pub fn returned_to(&self, pc: u64) -> bool {
        self.returns.contains(&self.lookup.index(pc))
    }

    /// Whether the routine is known.
    #[must_use]
    pub fn knows_routine(&self, address: u64) -> bool {
        self.routines.contains_key(&address)
    }

    /// Finds out whether a function that starts here is to be hooked.
    pub fn look_up_hook(&mut self, pc: u64) -> Option<Hook> {
        if self.looked_up.insert(pc) && !self.hooks.contains_key(&pc) {
            let role = self.modules.role(pc).or_else(|| self.routines.get(&pc).copied());
            if let Some(role) = role {
                let routine = match role {
                    Role::Sync { function, object: Argument::Register(n), .. }
                        if crate::sync_functions::routine_role(function, 1).is_some() =>
                    {
                        Some([register::RDI, register::RSI, register::RDX, register::RCX][usize::from(n.min(3))])
                    }
                    _ => None,
                };
                let number = self.roles.len() as u32;
                self.roles.push((pc, role));
                self.hooks.insert(pc, Hook { number, routine });
            }
        }
        self.hooks.get(&pc).copied()
    }

    fn page(&mut self, page: u64) -> Option<&[u8; PAGE as usize]> {
        if !self.pages.contains_key(&page) {
            if self.pages.len() >= MOST_PAGES {
                self.pages.clear();
            }
            let read = self.read_page(page);
            self.pages.insert(page, read);
        }
        // What cannot be read now may be mapped later.
        if self.pages[&page].is_none() {
            self.pages.remove(&page);
        }
        self.pages.get(&page)?.as_deref()
    }

    fn read_page(&mut self, page: u64) -> Option<Box<[u8; PAGE as usize]>> {
        let region = self.region(page).filter(|r| r.executable)?;
        if region.writable && self.protected.insert(page) {
            // A write to it will be reported to us, and the translations given up.
            let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
            let arguments = [page, PAGE, protection, 0, 0, 0];
            if remote::call(self.reader, self.syscall_at, libc::SYS_mprotect, arguments) != Ok(0) {
                self.protected.remove(&page);
            }
            self.map_changed();
        }
        let mut bytes = Box::new([0; PAGE as usize]);
        (ptrace::read_code(self.reader, Address(page), &mut bytes[..]) == bytes.len()).then_some(bytes)
    }
}

impl Source for ProgramCode {
    fn fetch(&mut self, pc: u64, bytes: &mut [u8; 16]) -> usize {
        let (page, offset) = (pc & !(PAGE - 1), (pc & (PAGE - 1)) as usize);
        let first = bytes.len().min(PAGE as usize - offset);
        match self.page(page) {
            Some(contents) => bytes[..first].copy_from_slice(&contents[offset..offset + first]),
            None => return 0,
        }
        if first == bytes.len() {
            return first;
        }
        match self.page(page.wrapping_add(PAGE)) {
            Some(contents) => {
                let rest = bytes.len() - first;
                bytes[first..].copy_from_slice(&contents[..rest]);
                bytes.len()
            }
            None => first,
        }
    }

    fn hook(&mut self, pc: u64) -> Option<Hook> {
        self.look_up_hook(pc)
    }

    fn returns_here(&self, pc: u64) -> bool {
        self.returns.contains(&self.lookup.index(pc))
    }
}
