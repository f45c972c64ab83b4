//! Looks at the records, to find code that runs often.

use trace_format::Kind;

use super::Translator;
use crate::translate::addresses::ProgramPc;
use crate::translate::code::route::{Ran, WORDS_OF_RECORD, look_along};
use crate::translate::layout::record;
use crate::usage::Why;

impl Translator {
    /// Looks at some of the records, to find code that runs often in short records: it is translated again, along the
    /// route that is taken from there.
    pub fn sample(&mut self, words: &[u32]) {
        if self.memory {
            return self.sample_first(words);
        }
        for at in (0..words.len()).step_by(self.routes.step) {
            // Some of the words are not path numbers, and count for a superblock that has not run. What results is
            // right, but useless.
            self.look_at(&words[at..]);
        }
    }

    /// Where most words are values, which may look like path numbers, the first records are looked at, one after
    /// another: about as many as are looked at elsewhere.
    fn sample_first(&mut self, words: &[u32]) {
        let mut rest = words;
        for _ in 0..words.len().div_ceil(WORDS_OF_RECORD * self.routes.step) {
            let Some(&word) = rest.first() else { break };
            let path_len = || self.path(word).map(|path| record::path_len(self.values_of(path)));
            let Some(len) = record::other_len(word).or_else(path_len) else { break };
            self.look_at(rest);
            rest = rest.get(len as usize / 4..).unwrap_or_default();
        }
    }

    /// Looks at the record that the words begin with.
    fn look_at(&mut self, words: &[u32]) {
        let Some(path) = self.path(words[0]) else { return };
        let head = self.superblock(path.superblock).head;
        if self.routes.is_time_to_look(head, path.executed)
            && let Some(sight) = look_along(words, |word| self.run_by(word))
            && self.routes.add(head, sight)
        {
            self.give_up(head, Why::Route);
        }
    }

    /// What a record says that was run.
    fn run_by(&self, word: u32) -> Option<Ran<impl Iterator<Item = (ProgramPc, Kind)>>> {
        let path = self.path(word)?;
        let executed = usize::from(path.executed);
        let instructions =
            self.superblock(path.superblock).instructions().take(executed).map(|i| (i.pc.into(), i.kind));
        Some(Ran { instructions, executed, words: (record::path_len(self.values_of(path)) / 4) as usize })
    }
}
