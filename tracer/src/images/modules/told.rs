//! Pieces of code about which an answer was given: who asks for the function of each instruction that runs wants each
//! function once, and programs go back and forth between functions.

use std::cell::Cell;
use std::ops::Range;

/// So many pieces are remembered.
const PIECES: usize = 1 << 12;
/// Addresses that differ in so many lower bits only have the same place among them.
const BITS: u32 = 6;

/// The pieces, and the one that was looked at last.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pieces: Vec<Cell<(u64, u64)>>,
    last: Cell<(u64, u64)>,
}

impl Default for Told {
    fn default() -> Told {
        Told { pieces: vec![Cell::new((0, 0)); PIECES], last: Cell::new((0, 0)) }
    }
}

impl Told {
    fn piece(&self, pc: u64) -> &Cell<(u64, u64)> {
        &self.pieces[(pc >> BITS) as usize % PIECES]
    }

    /// Whether the address lies in one of the pieces that are remembered.
    pub(super) fn contains(&self, pc: u64) -> bool {
        let lies_in = |(start, end): (u64, u64)| (start..end).contains(&pc);
        if lies_in(self.last.get()) {
            return true;
        }
        let piece = self.piece(pc).get();
        let contains = lies_in(piece);
        if contains {
            self.last.set(piece);
        }
        contains
    }

    /// The answer was given for this address, and is the same in all of the piece.
    pub(super) fn add(&self, pc: u64, piece: &Range<u64>) {
        self.piece(pc).set((piece.start, piece.end));
        self.last.set((piece.start, piece.end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_so_until_another_piece_takes_its_place() {
        let told = Told::default();
        let far = 0x1000 + ((PIECES as u64) << BITS);
        told.add(0x1010, &(0x1000..0x1100));
        told.add(0x2000, &(0x2000..0x2001));
        assert!(told.contains(0x1010) && told.contains(0x10ff) && !told.contains(0x1100) && told.contains(0x2000));
        told.add(far, &(far..far + 1));
        assert!(told.contains(far) && !told.contains(0x1000), "the same place");
    }
}
