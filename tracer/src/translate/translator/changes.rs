//! Code that changes: what was translated of it is given up.

use super::Translator;
use crate::translate::addresses::CachePc;
use crate::translate::layout::PAGE;
use crate::translate::program::code_files::FileKey;
use crate::usage::Why;

impl Translator {
    /// Code in this memory is about to change: gives up what was translated from it, and from other pages that show the
    /// same. Threads may still be in it: see [`Translator::is_in_changed`].
    pub fn memory_changes(&mut self, start: u64, length: u64, why: Why) {
        let (start, end) = pages_of(start, length);
        let elsewhere = self.code.shown_by(start, end);
        self.code.forget_bytes(start, end);
        self.give_pages_up(start, end, elsewhere, why);
    }

    /// The same for memory that may have changed already, in which other things may be mapped now.
    pub fn memory_changed(&mut self, start: u64, length: u64, why: Why) {
        let (start, end) = pages_of(start, length);
        self.code.map_changed_in(start, end);
        let elsewhere = self.code.forget(start, end);
        self.give_pages_up(start, end, elsewhere, why);
    }

    fn give_pages_up(&mut self, start: u64, end: u64, elsewhere: Vec<u64>, why: Why) {
        if why == Why::Unmapped {
            self.revivable.forget(start, end);
        }
        let mut translated: Vec<u64> = if (end - start) / PAGE < self.kept.pages.len() as u64 {
            (start..end).step_by(PAGE as usize).filter(|&page| self.kept.pages.contains(page)).collect()
        } else {
            self.kept.pages.all().filter(|page| (start..end).contains(page)).collect()
        };
        translated.extend(elsewhere.into_iter().filter(|page| !(start..end).contains(page)));
        for page in translated {
            self.give_page_up(page, why);
        }
    }

    /// The pages with translated code.
    #[must_use]
    pub fn translated_pages(&self) -> Vec<u64> {
        self.kept.pages.all().collect()
    }

    /// The pages with translated code that show a file.
    pub fn pages_of_file(&mut self, key: &FileKey) -> Vec<u64> {
        let pages = self.translated_pages();
        pages.into_iter().filter(|&page| self.code.region(page).is_some_and(|region| region.file == *key)).collect()
    }

    /// Whether code has been given up since it changes, and threads may still be in it.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        !self.kept.pages.changed.is_empty()
    }

    /// Whether a thread with this pc is in such code.
    #[must_use]
    pub fn is_in_changed(&self, address: CachePc) -> bool {
        self.kept.places.superblock(address).is_some_and(|number| self.kept.pages.changed.contains(&number))
    }

    /// No thread is in such code any more.
    pub fn has_left_changed(&mut self) {
        self.kept.pages.changed.clear();
    }

    /// Memory that several places of the program may show can be written at one more of them.
    pub fn shared_memory_changed(&mut self) {
        self.code.map_changed();
        for page in self.code.shared_pages() {
            self.give_page_up(page, Why::Shared);
        }
    }

    /// Gives up what was translated from a page.
    fn give_page_up(&mut self, page: u64, why: Why) {
        self.code.forget_page(page);
        for number in self.kept.pages.change(page) {
            let head = self.superblock(number).head;
            if self.kept.heads.get(head) == Some(number) {
                self.give_up(head, why);
            }
        }
    }
}

/// The whole pages of a piece of memory: start and end.
fn pages_of(start: u64, length: u64) -> (u64, u64) {
    let end = start.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(!(PAGE - 1));
    (start & !(PAGE - 1), end)
}
