//! Writes to files with mapped code.

use std::fs;

use crate::kernel::ptrace::{Registers, Tid};
use crate::translate::program::code_files::key_of;
use crate::translate::remote::Result;
use crate::translate::session::Session;
use crate::usage::Why;

impl Session<'_> {
    /// A thread stands at a landing before a call that writes to a file. If code of the file has been translated, we
    /// make the call in the thread's place.
    pub(in crate::translate::session) fn write_to_file(
        &mut self,
        tid: Tid,
        registers: &Registers,
        descriptor: u64,
    ) -> Result<()> {
        let file = format!("/proc/{tid}/fd/{}", descriptor as i32);
        let Some(key) = fs::metadata(file).ok().map(|metadata| key_of(&metadata)) else { return Ok(()) };
        let translator = self.translator_mut(tid)?;
        let pages = translator.pages_of_file(&key);
        if pages.is_empty() {
            return Ok(());
        }
        for page in pages {
            translator.memory_changes(page, 1, Why::WrittenByCall);
        }
        self.leave_changed(tid)?;
        self.make_at_landing(tid, registers)?;
        self.translator_mut(tid)?.code.files.saw_write(&key);
        Ok(())
    }

    /// A process ends, or becomes another program: warns of code that may have been recorded wrongly.
    pub(in crate::translate::session) fn warn_of_unseen_changes(&mut self, process: Tid) {
        let Some(code) = self.processes.space_of(process).map(|space| &space.translator.code) else { return };
        let mut warnings: Vec<String> = code
            .files
            .modified()
            .map(|path| {
                format!(
                    "{path} was modified while its code ran, and not every such change is noticed: the recorded \
                 instructions may be the old ones (use --engine step to record such a program)"
                )
            })
            .collect();
        if code.ran_freed {
            warnings.push(
                "the program ran code in memory that it had given back with MADV_FREE: lockstep does not see when \
                 the kernel takes such memory, so translated code may have run longer than the program's own could \
                 (use --engine step to record such a program)"
                    .to_owned(),
            );
        }
        for warning in warnings {
            if !self.found.warnings.contains(&warning) {
                self.found.warnings.push(warning);
            }
        }
    }
}
