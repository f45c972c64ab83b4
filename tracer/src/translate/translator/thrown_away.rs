//! What becomes of superblocks whose code changes, or could have: whether they are translated again as they were.

use rustc_hash::FxHashMap;

use super::Made;
use crate::translate::addresses::ProgramPc;
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

    /// One is translated.
    pub(super) fn translated(&mut self, head: ProgramPc, code: &[u8], made: &mut Made) {
        if let Some(before) = self.0.remove(&head) {
            made.again += 1;
            made.again_the_same += u64::from(before.iter().zip(code).all(|(before, now)| before == now));
        }
    }
}
