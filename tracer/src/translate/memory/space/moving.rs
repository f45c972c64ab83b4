//! Our memory moves out of the program's way: where the program asks for addresses at which it would find nothing
//! without us.
//!
//! All threads are at rest or wait in the kernel, and there are no translations. Memory keeps its contents; what the
//! caches start with is made anew for the new places.

use std::ops::Range;

use nix::libc;

use super::Space;
use crate::images::modules::{Region, regions};
use crate::kernel::ptrace::{Registers, Tid};
use crate::translate::addresses::{CachePc, RecordPlace};
use crate::translate::layout::{CACHE_LEN, SLOT_BASES, TABLE_BASES, TABLES_LEN, slots_len};
use crate::translate::memory::mapper::{far, low, near};
use crate::translate::memory::space::Landing;
use crate::translate::remote::{self, Result};

/// Where addresses end that programs can have.
pub const END: u64 = 0x7fff_ffff_f000;
/// Below, no program may map anything, unless the machine was told so.
const START: u64 = 0x1_0000;

/// A piece of memory of ours before and after it has moved.
#[derive(Clone, Copy, Debug)]
struct Move {
    from: u64,
    to: u64,
    len: u64,
}

/// Where our memory lay before it moved.
pub struct Moved {
    slots: u64,
    /// Where each cache began, and its `syscall` instructions.
    caches: Vec<(CachePc, [CachePc; 2])>,
}

/// Whether two pieces of memory, as starts and lengths, have bytes in common.
fn overlap((a, a_len): (u64, u64), (b, b_len): (u64, u64)) -> bool {
    a < b.saturating_add(b_len) && b < a.saturating_add(a_len)
}

impl Space {
    /// All memory of ours: starts and lengths.
    #[must_use]
    pub fn pieces(&self) -> Vec<(u64, u64)> {
        let fixed = [(self.tables.lookup.tables, TABLES_LEN), (self.slot_base, slots_len(self.buffer_len))];
        fixed.into_iter().chain(self.caches.iter().map(|cache| (cache.base.0, CACHE_LEN))).collect()
    }

    /// Whether some of ours lies in this memory.
    #[must_use]
    pub fn is_in(&self, start: u64, len: u64) -> bool {
        self.pieces().into_iter().any(|piece| overlap(piece, (start, len)))
    }

    /// What is mapped in the process besides ours.
    #[must_use]
    pub fn others(&self) -> Vec<Region> {
        let ours = self.pieces();
        let is_ours = |region: &Region| {
            ours.iter().any(|&(start, len)| start <= region.start && region.end <= start.saturating_add(len))
        };
        regions(self.process).into_iter().filter(|region| !is_ours(region)).collect()
    }

    /// Memory between these addresses that is free only when ours is gone, where no other piece of this length is: its
    /// start and length. It is the upper end of what is free there, where the kernel looks first.
    #[must_use]
    pub fn in_way_of(&self, len: u64, within: &Range<u64>) -> Option<(u64, u64)> {
        let gaps = |taken: &mut Vec<(u64, u64)>| {
            taken.sort_unstable();
            let (mut from, mut gaps) = (within.start.max(START), Vec::new());
            for &(start, end) in taken.iter().chain(&[(within.end, within.end)]) {
                let to = start.min(within.end);
                gaps.extend((to > from).then(|| (from, to - from)));
                from = from.max(end);
            }
            gaps.into_iter().max_by_key(|gap| gap.1).filter(|gap| gap.1 >= len)
        };
        let mut taken: Vec<(u64, u64)> = self.others().iter().map(|region| (region.start, region.end)).collect();
        let without = gaps(&mut taken)?;
        taken.extend(self.pieces().into_iter().map(|(start, len)| (start, start + len)));
        gaps(&mut taken).is_none().then_some((without.0 + without.1 - len, len))
    }

    /// Moves what of ours lies in this memory. `thread` makes the calls for that. Nothing is moved where there is no
    /// place for one of the pieces.
    pub fn move_away(&mut self, thread: Tid, wanted: &[(u64, u64)]) -> Result<Option<Moved>> {
        let is_wanted = |piece| wanted.iter().any(|&range| overlap(range, piece));
        let mut taken: Vec<(u64, u64)> =
            regions(self.process).iter().map(|region| (region.start, region.end - region.start)).collect();
        let mut moves = Vec::new();
        let anywhere = [0x0200_0000_0000, 0x0600_0000_0000, 0x2600_0000_0000, 0x4600_0000_0000, 0x6600_0000_0000];
        let anywhere = anywhere.into_iter().flat_map(|start| (0..16).map(move |step| start + (step << 33)));
        for (number, piece) in self.pieces().into_iter().enumerate() {
            if !is_wanted(piece) {
                continue;
            }
            let (from, len) = piece;
            let places: Vec<u64> = match number {
                0 => TABLE_BASES.into_iter().chain(low()).collect(),
                1 => SLOT_BASES.into_iter().chain(anywhere.clone()).collect(),
                cache => {
                    near(self.caches[cache - 2].around.0).into_iter().chain(far()).chain(anywhere.clone()).collect()
                }
            };
            let is_free = |place: u64| {
                place.saturating_add(len) <= END
                    && !is_wanted((place, len))
                    && !taken.iter().any(|&range| overlap(range, (place, len)))
            };
            let Some(to) = places.into_iter().find(|&place| is_free(place)) else { return Ok(None) };
            taken.push((to, len));
            moves.push(Move { from, to, len });
        }
        let before = Moved {
            slots: self.slot_base,
            caches: self.caches.iter().map(|cache| (cache.base, cache.calls)).collect(),
        };
        for place in &moves {
            self.remap(thread, *place)?;
        }
        let new = |at: u64| moves.iter().find(|place| place.from == at).map_or(at, |place| place.to);
        self.tables.lookup.tables = new(self.tables.lookup.tables);
        self.slot_base = new(self.slot_base);
        self.traps.clear();
        for cache in std::mem::take(&mut self.caches) {
            let base = CachePc(new(cache.base.0));
            self.add_cache(cache.memory, base, cache.around);
        }
        self.syscall_at = self.caches[0].base.0;
        self.tables.set_miss(self.caches[0].miss);
        self.tables.find_nothing();
        Ok(Some(before))
    }

    /// Moves one piece: pages of it that may be used in other ways are mappings of their own for the kernel.
    fn remap(&self, thread: Tid, Move { from, to, len }: Move) -> Result<()> {
        // The instruction that makes the call may be in what moves: it is not reached again.
        let elsewhere = self.caches.iter().find(|cache| cache.base.0 != from);
        let at = elsewhere.map_or(self.syscall_at, |cache| cache.base.0);
        for region in regions(self.process) {
            if region.start >= from && region.end <= from + len {
                let size = region.end - region.start;
                let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
                let place = to + (region.start - from);
                let moved = remote::call(thread, at, libc::SYS_mremap, [region.start, size, size, flags, place, 0])?;
                // Nobody else maps memory meanwhile, and the place was free.
                assert!(moved.cast_unsigned() == place, "memory of ours moves to a free place");
            }
        }
        Ok(())
    }

    /// The registers of a thread of this slot after the move, which stands in our memory, or waits in the kernel for a
    /// call that it makes there.
    #[must_use]
    pub fn after_move(&self, moved: &Moved, slot: u32, registers: &Registers, was_at: Option<Landing>) -> Registers {
        let mut registers = Registers { gs_base: self.slot_address(slot), ..*registers };
        let rip = CachePc(registers.rip);
        if was_at.is_some() {
            for (&(base, calls), cache) in moved.caches.iter().zip(&self.caches) {
                let nearest = calls.iter().zip(&cache.calls).find(|(call, _)| rip.0.wrapping_sub(call.0) <= 2);
                if base <= rip
                    && rip.behind(base) < CACHE_LEN
                    && let Some((before, now)) = nearest
                {
                    registers.rip = now.plus(rip.behind(*before)).0;
                    break;
                }
            }
        } else {
            registers.rip = self.rest().0;
        }
        registers
    }

    /// Where a place for records lies after the move.
    #[must_use]
    pub fn record_after_move(&self, moved: &Moved, place: RecordPlace) -> RecordPlace {
        RecordPlace(place.0.wrapping_sub(moved.slots).wrapping_add(self.slot_base))
    }
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn pieces_that_touch_have_nothing_in_common() {
        assert!(overlap((0x1000, 0x1000), (0x1fff, 1)) && overlap((0x1fff, 1), (0x1000, 0x1000)));
        assert!(!overlap((0x1000, 0x1000), (0x2000, 0x1000)) && !overlap((0x2000, 0x1000), (0x1000, 0x1000)));
        assert!(overlap((0x1000, u64::MAX), (u64::MAX - 1, 1)));
        assert!(!overlap((0x1000, 0), (0x1000, 0)));
    }
}
