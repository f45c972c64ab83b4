//! Translations for a process that was forked: all that its maker has, since its memory is a copy.

use std::collections::VecDeque;

use super::revalidation::Revivable;
use super::thrown_away::Changed;
use super::{Made, Tools, Translator};
use crate::kernel::ptrace::Tid;
use crate::translate::memory::mapper::SetUpError;

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
        let mut kept = self.kept.clone();
        kept.pages.changed.clear();
        Ok(Translator {
            code,
            space,
            memory: self.memory,
            kept,
            ahead: VecDeque::new(),
            returned: self.returned.clone(),
            recalled: self.recalled.clone(),
            routes: self.routes.clone(),
            made: Made::default(),
            changed: Changed::default(),
            revivable: Revivable::default(),
            tools: Tools::default(),
        })
    }
}
