//! Superblocks are given up. Counts what happens to those whose code changed, or could have: whether they are
//! translated again unchanged.

use rustc_hash::FxHashMap;

use super::{Made, Translator};
use crate::translate::addresses::ProgramPc;
use crate::translate::code::superblock::{Checked, Trap};
use crate::usage::Why;

/// So many bytes of a superblock's code are compared with those that it had before, of so many superblocks at once.
const LOOKED_AT: usize = 64;
const MOST_CHANGED: usize = 1 << 16;

/// The first bytes of superblocks that were thrown away since their code changed, or could have.
#[derive(Default)]
pub(super) struct Changed(FxHashMap<ProgramPc, Vec<u8>>);

impl Changed {
    /// A superblock with this code is thrown away.
    pub(super) fn thrown_away(&mut self, head: ProgramPc, code: &[u8], why: Why) {
        let has_changed =
            matches!(why, Why::Written | Why::WrittenByCall | Why::Unmapped | Why::Protection | Why::Shared);
        if has_changed && self.0.len() < MOST_CHANGED {
            self.0.insert(head, code[..code.len().min(LOOKED_AT)].to_vec());
        }
    }

    /// One has come back.
    pub(super) fn forget(&mut self, head: ProgramPc) {
        self.0.remove(&head);
    }

    /// One is translated.
    pub(super) fn translated(&mut self, head: ProgramPc, code: &[u8], made: &mut Made) {
        if let Some(before) = self.0.remove(&head) {
            made.again += 1;
            made.again_the_same += u64::from(before.iter().zip(code).all(|(before, now)| before == now));
        }
    }
}

impl Translator {
    /// Gives up what was translated from `pc` on.
    pub fn give_up(&mut self, pc: ProgramPc, why: Why) {
        if let Some(number) = self.kept.heads.remove(pc) {
            self.may_come_back(number, why);
            let superblock = &mut self.kept.superblocks[number as usize];
            superblock.dead = true;
            self.made.thrown_away.add(why);
            self.changed.thrown_away(pc, superblock.code(), why);
            let (body, checked) = (superblock.body, superblock.checked);
            // A thread that reaches it, by a jump or by a lookup, stops; the next translation takes the jumps over.
            self.space.trap_at(body);
            self.kept.places.add_traps([(body, Trap::Missing(pc))].into_iter());
            if let Some(Checked { entry: Some(_), landing }) = checked {
                self.space.tables.make_unknown(pc);
                if landing != body {
                    self.space.trap_at(landing);
                    self.kept.places.add_traps([(landing, Trap::Missing(pc))].into_iter());
                }
            }
        }
    }

    /// Gives up all superblocks that run the instruction at `pc`.
    pub fn give_up_all_with(&mut self, pc: ProgramPc, why: Why) {
        for number in self.kept.pages.of(pc.page()).to_vec() {
            let superblock = self.superblock(number);
            if !superblock.dead && superblock.instructions().any(|i| ProgramPc::from(i.pc) == pc) {
                let head = superblock.head;
                self.give_up(head, why);
            }
        }
    }
}
