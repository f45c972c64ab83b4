//! Synchronisation functions become known while the program runs: where they return to, and which routines are theirs.

use rustc_hash::FxHashSet;

use super::{Kept, Translator};
use crate::translate::addresses::ProgramPc;
use crate::usage::Why;

impl Translator {
    /// Synchronisation functions return to these addresses. Addresses that share an entry of the table with one are
    /// recorded as such too: the reader of the records decides by the stack pointer.
    pub fn add_returns(&mut self, pcs: &[ProgramPc]) {
        let lookup = self.space.tables.lookup;
        let mut new = FxHashSet::default();
        for &pc in pcs {
            self.kept.heads.look_up(pc);
            self.returned.push(pc);
            if self.code.returns.insert(lookup.index(pc)) {
                new.insert(lookup.index(pc));
            }
        }
        if !new.is_empty() {
            self.revivable.clear();
            for head in self.heads_at(&new) {
                self.give_up(head, Why::Function);
            }
        }
        for number in new.iter().flat_map(|&index| self.kept.heads.take_expecting(index)).collect::<Vec<u32>>() {
            let head = self.superblock(number).head;
            if self.kept.heads.get(head) == Some(number) {
                self.give_up(head, Why::Function);
            }
        }
        for &pc in pcs {
            self.space.tables.mark_return(pc);
        }
    }

    /// The heads of the superblocks that are run from places with these entries of the table.
    fn heads_at(&mut self, entries: &FxHashSet<u64>) -> Vec<ProgramPc> {
        let Kept { superblocks, heads, sharing, .. } = &mut self.kept;
        let lookup = self.space.tables.lookup;
        let head = |number: u32| superblocks[number as usize].head;
        let mut found = Vec::new();
        for &entry in entries {
            let sharing = sharing.at(entry, superblocks.len(), |number| lookup.index(head(number)));
            found.extend(sharing.filter(|&number| heads.get(head(number)) == Some(number)).map(head));
        }
        found
    }

    /// A routine that was handed to a function gets a role: all code that runs into it is translated again.
    pub fn add_routine(&mut self, pc: ProgramPc, role: crate::images::sync_functions::Role) {
        if !self.code.knows_routine(pc) && self.code.add_routine(pc, role) {
            self.revivable.clear();
            self.give_up_all_with(pc, Why::Function);
        }
        self.space.tables.mark_routine(pc);
    }
}
