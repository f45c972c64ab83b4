//! Pages of the program's code, as they were read last.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::translate::layout::PAGE;

/// The bytes of a page.
pub type Page = [u8; PAGE as usize];

/// The most pages that are kept: 16 MiB. The start of a compiler or of a virtual machine reads half of that.
const MOST: usize = 4096;

/// Pages by address.
#[derive(Clone, Default)]
pub struct CodePages {
    pages: FxHashMap<u64, Rc<Page>>,
    /// The one that was asked for last: code is read instruction by instruction.
    last: Option<(u64, Rc<Page>)>,
}

impl CodePages {
    /// The page at this address, if it is known.
    #[must_use]
    pub fn get(&mut self, page: u64) -> Option<&Page> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != page) {
            self.last = Some((page, self.pages.get(&page)?.clone()));
        }
        self.last.as_ref().map(|(_, page)| &**page)
    }

    /// Keeps a page. Where there are too many, the others are forgotten.
    pub fn insert(&mut self, page: u64, bytes: Rc<Page>) {
        if self.pages.len() >= MOST {
            self.clear();
        }
        self.pages.insert(page, bytes);
    }

    /// Forgets a page.
    pub fn forget(&mut self, page: u64) {
        self.last = None;
        self.pages.remove(&page);
    }

    /// Forgets the pages from `start` to `end`.
    pub fn forget_within(&mut self, start: u64, end: u64) {
        self.last = None;
        self.pages.retain(|page, _| !(start..end).contains(page));
    }

    /// The pages from `start` to `end`.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = u64> {
        self.pages.keys().copied().filter(move |page| (start..end).contains(page))
    }

    /// Forgets all pages.
    pub fn clear(&mut self) {
        self.last = None;
        self.pages = FxHashMap::default();
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages() -> CodePages {
        let mut pages = CodePages::default();
        for page in 1..=3 {
            pages.insert(page * PAGE, Rc::new([page as u8; PAGE as usize]));
        }
        pages
    }

    #[test]
    fn what_is_forgotten_is_not_found_though_it_was_asked_for_last() {
        let first = |pages: &mut CodePages| pages.get(PAGE).map(|page| page[0]);
        let mut forgotten = pages();
        assert_eq!((first(&mut forgotten), forgotten.get(3 * PAGE).map(|page| page[9])), (Some(1), Some(3)));
        assert_eq!((first(&mut forgotten), forgotten.get(0)), (Some(1), None));
        assert_eq!(first(&mut forgotten), Some(1));
        forgotten.forget(PAGE);
        assert_eq!(first(&mut forgotten), None);
        let mut forgotten = pages();
        assert_eq!(first(&mut forgotten), Some(1));
        forgotten.forget_within(0, 3 * PAGE);
        assert_eq!((first(&mut forgotten), forgotten.len()), (None, 1));
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut pages = CodePages::default();
        for page in 0..2 * MOST as u64 {
            pages.insert(page * PAGE, Rc::new([0; PAGE as usize]));
            assert!(pages.len() <= MOST && pages.get(page * PAGE).is_some());
        }
    }
}
