//! The ready lanes of a warp by pc.

use std::ops::Deref;

use trace_format::Pc;

use crate::LaneSet;

/// The ready lanes at one pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The pc.
    pub pc: Pc,
    /// The lanes, at least one.
    pub lanes: LaneSet,
}

/// The groups of a warp, each found by its pc at once. Their order means nothing.
#[derive(Clone, Debug)]
pub struct Groups {
    all: Vec<Group>,
    slots: Box<[Slot; SLOTS]>,
}

/// What is known of the groups whose pcs share a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// How many there are.
    count: u16,
    /// The number of one of them, as a rule: of several the one that came or moved last, which may have gone since.
    likely: u16,
}

/// Two groups for each lane of the largest warp, so that few share a slot.
const SLOTS: usize = 512;

fn slot(pc: Pc) -> usize {
    (pc.0 ^ pc.0 >> 9) as usize % SLOTS
}

impl Default for Groups {
    fn default() -> Groups {
        Groups { all: Vec::new(), slots: Box::new([Slot::default(); SLOTS]) }
    }
}

impl Deref for Groups {
    type Target = [Group];

    #[inline]
    fn deref(&self) -> &[Group] {
        &self.all
    }
}

impl Groups {
    /// The number of the group at this pc.
    #[inline]
    #[must_use]
    pub fn find(&self, pc: Pc) -> Option<usize> {
        let Slot { count, likely } = self.slots[slot(pc)];
        if count == 0 {
            return None;
        }
        match self.all.get(usize::from(likely)) {
            Some(group) if group.pc == pc => Some(usize::from(likely)),
            _ => self.all.iter().position(|group| group.pc == pc),
        }
    }

    /// The lanes at this pc.
    #[inline]
    #[must_use]
    pub fn at(&self, pc: Pc) -> LaneSet {
        self.find(pc).map_or(LaneSet::EMPTY, |index| self.all[index].lanes)
    }

    /// Puts lanes, at least one, into the group at this pc.
    #[inline]
    pub fn join(&mut self, pc: Pc, lanes: LaneSet) {
        match self.find(pc) {
            Some(index) => self.all[index].lanes = self.all[index].lanes | lanes,
            None => {
                let slot = &mut self.slots[slot(pc)];
                *slot = Slot { count: slot.count + 1, likely: self.all.len() as u16 };
                self.all.push(Group { pc, lanes });
            }
        }
    }

    /// Takes lanes out of the group of this number. The last group may get the number.
    #[inline]
    pub fn leave(&mut self, index: usize, lanes: LaneSet) {
        let group = &mut self.all[index];
        group.lanes = group.lanes - lanes;
        if group.lanes.is_empty() {
            self.slots[slot(group.pc)].count -= 1;
            self.all.swap_remove(index);
            if let Some(moved) = self.all.get(index) {
                self.slots[slot(moved.pc)].likely = index as u16;
            }
        }
    }

    /// Takes all lanes out of all groups.
    #[inline]
    pub fn clear(&mut self) {
        self.all.drain(..).for_each(|group| self.slots[slot(group.pc)] = Slot::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lane;

    #[test]
    fn groups_are_found_whatever_shares_their_slot() {
        // Three pcs of one slot, and one of another.
        let pcs = [5, 5 + (1 << 18), 5 + (1 << 19), 6].map(Pc);
        assert_eq!(pcs.map(slot), [5, 5, 5, 6]);
        let lanes = |number: usize| LaneSet::only(Lane(number as u8));
        for gone in 0..4 {
            let mut groups = Groups::default();
            (0..4).for_each(|i| groups.join(pcs[i], lanes(i)));
            groups.leave(groups.find(pcs[gone]).unwrap(), lanes(gone));
            for (i, pc) in pcs.into_iter().enumerate() {
                assert_eq!(groups.at(pc), if i == gone { LaneSet::EMPTY } else { lanes(i) });
            }
            groups.join(pcs[gone], lanes(gone));
            groups.join(pcs[gone], lanes(7));
            assert_eq!((groups.at(pcs[gone]), groups.len()), (lanes(gone) | lanes(7), 4));
            groups.clear();
            assert!(groups.is_empty() && pcs.iter().all(|pc| groups.find(*pc).is_none()));
        }
    }
}
