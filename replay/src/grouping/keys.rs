//! What lanes are sorted by.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use heuristics::{SegmentId, SegmentTable};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use trace_format::Kind;

use crate::survey::Survey;
use crate::{Batch, Result, Rows};

/// What lanes are sorted by, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// How many instructions they run.
    Instructions,
    /// How many jumps back they take: the turns of all loops in them, recursion aside.
    Trips,
    /// The places that they reach, in the order in which they reach each first; then how many instructions they
    /// run; lanes that run the very same ones stand together. It is what a GPU's reordering of invocations sorts by.
    Path,
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SortKey::Instructions => "instructions",
            SortKey::Trips => "trips",
            SortKey::Path => "path",
        })
    }
}

impl FromStr for SortKey {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<SortKey, ()> {
        let all = [SortKey::Instructions, SortKey::Trips, SortKey::Path];
        all.into_iter().find(|key| key.to_string() == text).ok_or(())
    }
}

/// So many of the places that a lane reaches count for its path: with 10^6 lanes that are all different, 128 MB.
const PLACES: usize = 32;

/// A lane's key: what it is sorted by first, then what, and what tells it from others that are equal so far.
pub(crate) type Key = (u64, u64, u64);

/// The keys of all lanes.
pub(crate) fn of(survey: &Survey, key: SortKey) -> Result<Vec<Key>> {
    let lanes = 0..survey.lanes.len();
    let instructions = |lane: usize| survey.lanes[lane].instructions;
    match key {
        SortKey::Instructions => Ok(lanes.map(|lane| (instructions(lane), 0, 0)).collect()),
        SortKey::Trips => {
            let trips = |walker: &mut Walker, lane| {
                walker.walk(lane)?;
                Ok((walker.trips, instructions(lane), 0))
            };
            lanes.into_par_iter().map_init(|| Walker::new(survey), trips).collect()
        }
        SortKey::Path => {
            // Lanes that come to the same places share what is kept of those.
            let share = lanes.len().div_ceil(4 * rayon::current_num_threads()).max(1);
            let of_share = |lanes: &[usize]| -> Result<Paths> {
                let (mut walker, mut paths) = (Walker::new(survey), FxHashMap::default());
                let walk = |lane: &usize| {
                    walker.walk(*lane)?;
                    let next = paths.len() as u32;
                    let path = match paths.get(&walker.places) {
                        Some(path) => *path,
                        None => *paths.entry(walker.places.clone()).or_insert(next),
                    };
                    Ok((path, walker.hash.finish()))
                };
                let walked = lanes.iter().map(walk).collect::<Result<_>>()?;
                let mut listed = vec![Vec::new(); paths.len()];
                paths.into_iter().for_each(|(places, path)| listed[path as usize] = places);
                Ok((walked, listed))
            };
            let lanes: Vec<usize> = lanes.collect();
            let walked: Vec<_> = lanes.par_chunks(share).map(of_share).collect::<Result<_>>()?;
            let mut paths: Vec<&[u32]> = walked.iter().flat_map(|(_, paths)| paths).map(Vec::as_slice).collect();
            paths.sort_unstable();
            paths.dedup();
            let rank: FxHashMap<&[u32], u64> = paths.into_iter().zip(0..).collect();
            let mut keys = Vec::with_capacity(lanes.len());
            for (of_lanes, paths) in &walked {
                let ranks: Vec<u64> = paths.iter().map(|places| rank[&places[..]]).collect();
                keys.extend(of_lanes.iter().map(|(path, hash)| (ranks[*path as usize], *hash)));
            }
            Ok(keys.into_iter().enumerate().map(|(lane, (rank, hash))| (rank, instructions(lane), hash)).collect())
        }
    }
}

/// By lane, the number of its path and the hash of all that it ran; and the paths by number.
type Paths = (Vec<(u32, u64)>, Vec<Vec<u32>>);

/// Looks at what lanes do, one after another: what each row of segments amounts to is worked out once.
struct Walker<'a> {
    survey: &'a Survey<'a>,
    rows: Arc<Rows>,
    /// By row; none where it was not seen yet.
    of_rows: Vec<Option<OfRow>>,
    batch: Batch,
    /// Of the last lane.
    trips: u64,
    /// The places that it reached first, in order.
    places: Vec<u32>,
    /// Of all that it ran, in order.
    hash: PathHash,
}

/// What a row of segments amounts to.
struct OfRow {
    first: SegmentId,
    last: SegmentId,
    /// Jumps back in it.
    trips: u64,
    /// Its places, each once, in order.
    places: Vec<u32>,
    /// The hash of it alone, and what that of what was before is to be multiplied with.
    hash: PathHash,
    times: u64,
    /// The lane that came to it last, and 1.
    seen_by: usize,
}

/// A hash of numbers in order, of which that of several in a row follows from their own: the polynomial of Orson
/// Peters's `FxHasher` (rustc-hash 2).
#[derive(Clone, Copy, Default)]
struct PathHash(u64);

impl PathHash {
    /// Good for a multiplicative congruential generator, by Steele and Vigna, *Computationally easy, spectrally good
    /// multipliers for congruential pseudorandom number generators* (2022).
    const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;

    #[inline]
    fn add(&mut self, number: u32) {
        self.0 = self.0.wrapping_add(u64::from(number)).wrapping_mul(Self::FACTOR);
    }

    /// The bits that depend on most of the numbers first.
    fn finish(self) -> u64 {
        self.0.rotate_left(26)
    }
}

impl<'a> Walker<'a> {
    fn new(survey: &'a Survey<'a>) -> Walker<'a> {
        Walker {
            survey,
            rows: Arc::default(),
            of_rows: Vec::new(),
            batch: Batch::default(),
            trips: 0,
            places: Vec::new(),
            hash: PathHash::default(),
        }
    }

    /// Looks at a lane.
    fn walk(&mut self, lane: usize) -> Result<()> {
        let segments = self.survey.source().segments();
        let mut stream = self.survey.stream(lane);
        let rows = stream.rows();
        if !Arc::ptr_eq(&self.rows, &rows) {
            self.of_rows.clear();
            self.of_rows.resize_with(rows.len(), || None);
            self.rows = rows;
        }
        (self.trips, self.hash) = (0, PathHash::default());
        self.places.clear();
        let mut before = None;
        let mut batch = std::mem::take(&mut self.batch);
        while stream.next_folded(&mut batch)? {
            for code in &batch.codes {
                if let Some(row) = code.as_row() {
                    let rows = &self.rows;
                    let known = &mut self.of_rows[row.0 as usize];
                    if known.is_none() {
                        *known = OfRow::of(rows.segments(row), segments);
                    }
                    let Some(row) = known else { continue };
                    self.trips += u64::from(before.is_some_and(|before| goes_back(segments, before, row.first)));
                    self.trips += row.trips;
                    if std::mem::replace(&mut row.seen_by, lane + 1) != lane + 1 {
                        row.places.iter().for_each(|place| add_place(&mut self.places, *place));
                    }
                    self.hash.0 = self.hash.0.wrapping_mul(row.times).wrapping_add(row.hash.0);
                    before = Some(row.last);
                } else if let Some(id) = code.as_segment() {
                    self.trips += u64::from(before.is_some_and(|before| goes_back(segments, before, id)));
                    add_place(&mut self.places, segments[id].place.0);
                    self.hash.add(id.0);
                    before = Some(id);
                }
            }
        }
        self.batch = batch;
        Ok(())
    }
}

fn add_place(places: &mut Vec<u32>, place: u32) {
    if places.len() < PLACES && !places.contains(&place) {
        places.push(place);
    }
}

impl OfRow {
    /// None where there is nothing in it.
    fn of(row: impl Iterator<Item = SegmentId>, segments: &SegmentTable) -> Option<OfRow> {
        let row: Vec<SegmentId> = row.collect();
        let (first, last) = (*row.first()?, *row.last()?);
        let trips = row.windows(2).filter(|pair| goes_back(segments, pair[0], pair[1])).count() as u64;
        let (mut places, mut hash, mut times) = (Vec::new(), PathHash::default(), 1_u64);
        for id in &row {
            add_place(&mut places, segments[*id].place.0);
            hash.add(id.0);
            times = times.wrapping_mul(PathHash::FACTOR);
        }
        places.shrink_to_fit();
        Some(OfRow { first, last, trips, places, hash, times, seen_by: 0 })
    }
}

/// Whether a jump from the one segment to the other leads back.
fn goes_back(segments: &SegmentTable, from: SegmentId, to: SegmentId) -> bool {
    let last = segments[from].last();
    matches!(last.kind, Kind::Branch | Kind::Jump | Kind::IndirectJump) && segments[to].start() <= last.pc
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use super::*;

    #[test]
    fn the_hash_of_a_path_is_that_of_its_pieces_and_of_the_hasher_that_it_is_named_after() {
        let numbers: Vec<u32> = (0..40).map(|n| n * n * 977 % 1009).collect();
        let (mut whole, mut hasher) = (PathHash::default(), rustc_hash::FxHasher::default());
        numbers.iter().for_each(|n| whole.add(*n));
        numbers.iter().for_each(|n| hasher.write_u32(*n));
        assert_eq!(whole.finish(), hasher.finish());
        let mut pieces = PathHash::default();
        for piece in numbers.chunks(7) {
            let (mut own, mut times) = (PathHash::default(), 1_u64);
            piece.iter().for_each(|n| {
                own.add(*n);
                times = times.wrapping_mul(PathHash::FACTOR);
            });
            pieces.0 = pieces.0.wrapping_mul(times).wrapping_add(own.0);
        }
        assert_eq!(pieces.finish(), whole.finish());
    }
}
