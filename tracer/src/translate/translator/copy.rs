//! Translations for a process that was forked: all that its maker has, since its memory is a copy.

use std::collections::VecDeque;

use iced_x86::InstructionInfoFactory;

use super::Translator;
use crate::decode::InstructionDecoder;
use crate::ptrace::Tid;
use crate::translate::mapper::SetUpError;
use crate::translate::plan::Translation;

impl Translator {
    /// A copy for `child`, a copy of the process, with memory of its own for it. The child must be stopped since it was
    /// made, and nothing may have been translated or given up in the meantime.
    pub fn copy_for(&self, child: Tid) -> Result<Translator, SetUpError> {
        let space = self.space.copy_for(child)?;
        let mut code = self.code.clone();
        (code.reader, code.process) = (child, child);
        // The other tables of bytes fill again as they are needed.
        for &index in &code.returns {
            space.tables.mark_return_at(index);
        }
        Ok(Translator {
            code,
            space,
            memory: self.memory,
            superblocks: self.superblocks.clone(),
            paths: self.paths.clone(),
            partial_paths: self.partial_paths.clone(),
            by_head: self.by_head.clone(),
            lasting_traps: self.lasting_traps,
            traps: self.traps.clone(),
            incoming: self.incoming.clone(),
            jumps: self.jumps.clone(),
            ranges: self.ranges.clone(),
            page_superblocks: self.page_superblocks.clone(),
            changed: Default::default(),
            looked_up: self.looked_up.clone(),
            ahead: VecDeque::new(),
            routes: self.routes.clone(),
            expecting: self.expecting.clone(),
            singles: self.singles.clone(),
            held: self.held,
            made: [0; 2],
            decoder: InstructionDecoder::new(false),
            factory: InstructionInfoFactory::new(),
            translation: Translation::default(),
        })
    }
}
