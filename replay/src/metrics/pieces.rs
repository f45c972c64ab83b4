//! Runs of segments in *pieces*. Each piece has one number however often it runs. What is measured about a run is
//! counted once for each of its pieces, and listed segment by segment at the end.
//!
//! A piece ends where the lanes leave the function in which it began, so that the call paths of its segments follow
//! from that of the first. It also ends at the first transfer back after so many segments, so that the iterations of a
//! long loop are the same few pieces.

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::Pc;

use crate::lanes::brief::Brief;

/// A piece, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PieceId(pub u32);

/// What is known about a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    begins: u32,
    ends: u32,
    /// The address of its first instruction.
    pub start: Pc,
    /// How its last segment changes the call level.
    pub last_change: i8,
}

/// Segments that were looked up together.
struct Stretch {
    begins: u32,
    ends: u32,
    pieces: (u32, u32),
    /// Another of the same hash.
    next: Option<u32>,
}

/// All pieces that were run.
#[derive(Default)]
pub(super) struct Pieces {
    segments: Vec<SegmentId>,
    stretches: Vec<Stretch>,
    by_hash: FxHashMap<u64, u32>,
    pieces: Vec<Piece>,
}

impl Pieces {
    /// A piece is this long at least where nothing but its length ends it, and this long at most.
    const LONG: usize = 64;
    const LONGEST: usize = 1024;

    /// Cuts off the front of a run, and returns the rest.
    pub(super) fn cut<'r>(&self, run: &'r [SegmentId], briefs: &[Brief]) -> (&'r [SegmentId], &'r [SegmentId]) {
        let brief = |at: usize| &briefs[run[at].0 as usize];
        let goes_back = |at: &usize| brief(at - 1).transfers && brief(*at).start < brief(at - 1).last;
        let end = (Pieces::LONG..run.len().min(Pieces::LONGEST)).find(goes_back);
        run.split_at(end.unwrap_or(run.len().min(Pieces::LONGEST)))
    }

    /// The pieces of these segments, in their order; they have consecutive numbers.
    pub(super) fn of(&mut self, run: &[SegmentId], briefs: &[Brief]) -> impl Iterator<Item = PieceId> + use<> {
        let hash = hash(run);
        let first = self.by_hash.get(&hash).copied();
        let mut known = first;
        while let Some(at) = known {
            let stretch = &self.stretches[at as usize];
            if self.segments[stretch.begins as usize..stretch.ends as usize] == *run {
                return (stretch.pieces.0..stretch.pieces.1).map(PieceId);
            }
            known = stretch.next;
        }
        let begins = self.segments.len() as u32;
        let pieces = self.pieces.len() as u32;
        self.segments.extend_from_slice(run);
        self.divide(begins, briefs);
        let (ends, pieces) = (self.segments.len() as u32, (pieces, self.pieces.len() as u32));
        self.by_hash.insert(hash, self.stretches.len() as u32);
        self.stretches.push(Stretch { begins, ends, pieces, next: first });
        (pieces.0..pieces.1).map(PieceId)
    }

    /// Makes pieces of the segments from here on.
    fn divide(&mut self, begins: u32, briefs: &[Brief]) {
        let run = &self.segments[begins as usize..];
        let mut piece: Option<Piece> = None;
        let mut level = 0;
        for (id, at) in run.iter().zip(begins..) {
            let brief = &briefs[id.0 as usize];
            let piece = match &mut piece {
                Some(piece) if level >= 0 => piece,
                begun => {
                    self.pieces.extend(begun.take());
                    level = 0;
                    begun.insert(Piece { begins: at, ends: at, start: brief.start, last_change: 0 })
                }
            };
            piece.ends = at + 1;
            piece.last_change = brief.level;
            level += i32::from(brief.level);
        }
        self.pieces.extend(piece);
    }

    pub(super) fn piece(&self, id: PieceId) -> Piece {
        self.pieces[id.0 as usize]
    }

    pub(super) fn segments(&self, id: PieceId) -> &[SegmentId] {
        let piece = &self.pieces[id.0 as usize];
        &self.segments[piece.begins as usize..piece.ends as usize]
    }

    /// How many segments are kept.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Forgets all; numbers begin again.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
        self.stretches.clear();
        self.by_hash.clear();
        self.pieces.clear();
    }
}

fn hash(run: &[SegmentId]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (pairs, rest) = run.as_chunks::<2>();
    let hash = pairs.iter().fold(run.len() as u64, |h, [a, b]| mix(h, u64::from(a.0) << 32 | u64::from(b.0)));
    rest.iter().fold(hash, |h, id| mix(h, u64::from(id.0)))
}

#[cfg(test)]
mod tests {
    use heuristics::PlaceId;

    use super::*;
    use crate::GpuCost;

    /// Segments of two instructions, one behind the other, that change the call level so.
    fn briefs(levels: &[i8]) -> Vec<Brief> {
        let brief = |(n, level): (usize, &i8)| {
            let start = 10 * n as u64;
            Brief {
                start: Pc(start),
                last: Pc(start + 1),
                place: PlaceId(n as u32),
                instructions: 2,
                gpu: GpuCost::default(),
                addresses: 0,
                sp: 0,
                level: *level,
                recorded: false,
                transfers: true,
                in_stub: false,
            }
        };
        levels.iter().enumerate().map(brief).collect()
    }

    fn ids(run: &[u32]) -> Vec<SegmentId> {
        run.iter().map(|id| SegmentId(*id)).collect()
    }

    #[test]
    fn pieces_end_where_the_function_is_left_in_which_they_began() {
        // 0 calls 1, which returns to 2, which returns to 0.
        let briefs = briefs(&[1, -1, -1]);
        let mut pieces = Pieces::default();
        let found: Vec<PieceId> = pieces.of(&ids(&[0, 1, 2, 0, 1]), &briefs).collect();
        assert_eq!(
            found.iter().map(|p| pieces.segments(*p).to_vec()).collect::<Vec<_>>(),
            [ids(&[0, 1, 2]), ids(&[0, 1])]
        );
        let [one, two] = [found[0], found[1]].map(|id| pieces.piece(id));
        assert_eq!((one.last_change, two.last_change, two.start), (-1, -1, Pc(0)));
        assert_eq!(pieces.of(&ids(&[2]), &briefs).count(), 1);
        assert_eq!(pieces.of(&ids(&[0, 1, 2, 0, 1]), &briefs).collect::<Vec<_>>(), found, "the same again");
        assert_eq!(pieces.len(), 6);
    }

    #[test]
    fn long_runs_are_cut_at_the_turns_of_their_loop() {
        let (briefs, pieces) = (briefs(&[0; 5]), Pieces::default());
        let run = ids(&[0, 1, 2, 3, 4].repeat(100));
        let (front, rest) = pieces.cut(&run, &briefs);
        assert_eq!((front.len(), rest.len()), (65, 435));
        assert_eq!(pieces.cut(rest, &briefs).0, front);
        assert_eq!(pieces.cut(&run[..7], &briefs).0.len(), 7);
        let straight: Vec<Brief> = briefs.iter().map(|brief| Brief { transfers: false, ..*brief }).collect();
        assert_eq!(pieces.cut(&ids(&[3; 3000]), &straight).0.len(), Pieces::LONGEST);
    }
}
