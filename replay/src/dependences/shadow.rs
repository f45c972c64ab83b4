//! Which lane wrote each byte of memory, and which read it before another one's write.

use rustc_hash::FxHashMap;

use super::value::Value;

const PAGE: usize = 1 << 10;

/// The most pages that are known: some 700 MB, for 32 MiB of the program's memory. Accesses to others are not looked
/// at.
const MOST_PAGES: usize = 1 << 15;

/// A lane and one of its instructions; lane 0 stands for none, n + 1 for lane n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Reader {
    pub lane: u32,
    /// With the bit [`Reader::LOCKED`] where a lock was held.
    pub site: u32,
}

impl Reader {
    /// No instruction has so high a number.
    pub const LOCKED: u32 = 1 << 31;
}

/// What is known about a byte.
#[derive(Clone, Copy, Default)]
pub(super) struct Byte {
    pub value: Value,
    /// Who read what another had written, or what was there before.
    pub reader: Reader,
}

/// What is known about memory.
#[derive(Default)]
pub(super) struct Shadow {
    pages: FxHashMap<u64, Box<[Byte; PAGE]>>,
    /// Whether there was more than can be known.
    pub is_full: bool,
}

impl Shadow {
    /// Shows these bytes, each in turn.
    pub fn each(&mut self, address: u64, size: u8, mut see: impl FnMut(&mut Byte)) {
        let mut at = address;
        let end = address.saturating_add(u64::from(size));
        while at < end {
            let page = at / PAGE as u64;
            let stop = end.min((page + 1).saturating_mul(PAGE as u64));
            if !self.pages.contains_key(&page) && self.pages.len() >= MOST_PAGES {
                self.is_full = true;
            } else {
                let bytes = self.pages.entry(page).or_insert_with(|| Box::new([Byte::default(); PAGE]));
                let first = (at % PAGE as u64) as usize;
                bytes[first..first + (stop - at) as usize].iter_mut().for_each(&mut see);
            }
            at = stop;
        }
    }
}
