//! What threads wait at that no function says by itself: barriers made of condition variables, semaphores that are
//! locks and those by which threads hand over, locks and barriers of a program's own, and waits that order nothing.

pub(super) mod conditions;
pub(super) mod gatherings;
pub(super) mod hand_overs;
pub(super) mod of_block;
pub(super) mod own_locks;
pub(super) mod semaphores;
pub(super) mod unordered;
mod values;

use std::ops::Range;

use trace_format::{LibraryCode, Trace};

/// Where libraries whose locks are known by their functions keep others for themselves: those of files, of the heap.
#[derive(Clone, Debug, Default)]
pub(super) struct LibraryData {
    ranges: Vec<Range<u64>>,
    /// Whether the C library's lie among the program's: only its code tells them then.
    pub is_linked: bool,
}

impl LibraryData {
    /// What stands behind a library's file in memory, at most: data that are zero at first.
    const ZEROES: u64 = 1 << 16;
    /// glibc's further heaps begin at multiples of this, and the lock of one shortly behind.
    const HEAP: u64 = 1 << 26;
    const HEAP_LOCK: Range<u64> = 0x10..0x40;

    /// Those of a trace.
    pub fn of(trace: &Trace) -> LibraryData {
        let known = trace.modules().iter().filter(|module| module.has_known_locks());
        let data = known.filter_map(|module| {
            let begin = module.mappings.iter().map(|mapping| mapping.start.0).min()?;
            let end = module.mappings.iter().map(|mapping| mapping.end.0).max()?;
            Some(begin..end + LibraryData::ZEROES)
        });
        LibraryData {
            ranges: data.collect(),
            is_linked: LibraryCode::new(trace.modules(), trace.symbols()).is_linked(),
        }
    }

    /// Whether a word that threads wait at is a library's own.
    pub fn has(&self, address: u64) -> bool {
        LibraryData::HEAP_LOCK.contains(&(address % LibraryData::HEAP))
            || self.ranges.iter().any(|data| data.contains(&address))
    }
}
