//! Translations that come back: a compiler writes to a page of its code, and most of the other code in the page stays
//! the same.
//!
//! What was translated from a page is given up when the page is written to. It stays in the cache, with traps at its
//! entries. When the program reaches such code again, the bytes are compared, and unchanged code takes the traps'
//! places back, in the whole page at once: without a stop for each, and without new room in the cache.
//!
//! Other changes drop all that could come back, since translations depend on them too: where synchronisation functions
//! return to, routines, gates, and what is mapped.

use rustc_hash::FxHashMap;

use super::Translator;
use crate::translate::addresses::{CachePc, ProgramPc};
use crate::translate::code::plan::Source;
use crate::translate::code::superblock::{Checked, Superblock};
use crate::translate::layout::PAGE;
use crate::usage::Why;

/// The instruction `int3`.
const TRAP: u8 = 0xcc;

/// So many of one page come back at once: others when the program reaches them.
const AT_ONCE: usize = 64;

/// A superblock that was given up, with what the traps at its entries have taken the place of.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    number: u32,
    at_body: u8,
    at_landing: u8,
}

/// Superblocks that may come back, by page and head.
#[derive(Default)]
pub(super) struct Revivable(FxHashMap<u64, FxHashMap<ProgramPc, GivenUp>>);

impl Revivable {
    /// None can.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Those in this memory cannot.
    pub(super) fn forget(&mut self, start: u64, end: u64) {
        self.0.retain(|page, _| !(start..end).contains(page));
    }
}

impl Translator {
    /// A superblock is about to be given up: its entries get traps.
    pub(super) fn may_come_back(&mut self, number: u32, why: Why) {
        if !matches!(why, Why::Written | Why::WrittenByCall | Why::Protection) {
            return;
        }
        let &Superblock { head, body, checked, .. } = self.superblock(number);
        let byte = |address: CachePc| self.space.code_at(address)[0];
        let landing = checked.filter(|checked| checked.entry.is_some()).map_or(body, |checked| checked.landing);
        // Code that begins with a trap of its own, or stands where functions return to (which is recorded before it):
        // neither is compiled while the program runs, or worth it.
        if byte(body) == TRAP || byte(landing) == TRAP || self.code.returns_here(head) {
            return;
        }
        let given_up = GivenUp { number, at_body: byte(body), at_landing: byte(landing) };
        self.revivable.0.entry(head.page()).or_default().insert(head, given_up);
    }

    /// The program reaches `pc`: what was translated from its page before, and is unchanged, comes back.
    pub(super) fn revive(&mut self, pc: ProgramPc) {
        let Some(of_page) = self.revivable.0.get_mut(&pc.page()) else { return };
        let Some(first) = of_page.remove(&pc) else { return };
        let others: Vec<ProgramPc> = of_page.keys().copied().take(AT_ONCE - 1).collect();
        let others = others.into_iter().filter_map(|head| of_page.remove(&head));
        let all: Vec<GivenUp> = std::iter::once(first).chain(others).collect();
        for given_up in all {
            let head = self.superblock(given_up.number).head;
            if self.kept.heads.get(head).is_none() && self.is_as_it_was(given_up.number) {
                self.bring_back(given_up);
            }
        }
    }

    /// Whether the program has the instructions that the superblock was translated from. The page is protected, if so.
    fn is_as_it_was(&mut self, number: u32) -> bool {
        let superblock = &self.kept.superblocks[number as usize];
        let mut code = superblock.code();
        superblock.instructions().all(|instruction| {
            let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
            code = rest;
            let mut bytes = [0; crate::decode::MAX_LENGTH];
            let bytes = &mut bytes[..own.len()];
            self.code.fetch(instruction.pc.into(), bytes) >= own.len() && bytes == own
        })
    }

    fn bring_back(&mut self, GivenUp { number, at_body, at_landing }: GivenUp) {
        let superblock = &mut self.kept.superblocks[number as usize];
        superblock.dead = false;
        let (head, body, checked) = (superblock.head, superblock.body, superblock.checked);
        let mut pages: Vec<u64> = Vec::new();
        for instruction in superblock.instructions() {
            let start: ProgramPc = instruction.pc.into();
            for page in [start.page(), (start.0 + u64::from(instruction.len) - 1) & !(PAGE - 1)] {
                if !pages.contains(&page) {
                    pages.push(page);
                }
            }
        }
        pages.into_iter().for_each(|page| self.kept.pages.add(page, number));
        self.kept.pages.changed.remove(&number);
        self.kept.heads.set(head, number);
        // The traps are kept in mind: a thread may have stopped at one.
        if let Some(Checked { entry: Some(entry), landing }) = checked {
            if landing != body {
                self.space.byte_at(landing, at_landing);
            }
            self.space.tables.make_known(head, entry, landing);
        }
        self.space.byte_at(body, at_body);
        for jump in self.kept.jumps.to(head) {
            self.space.link(jump.site, body);
        }
        self.made.revived += 1;
        self.changed.forget(head);
    }
}
