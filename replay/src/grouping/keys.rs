//! What lanes are sorted by.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use heuristics::{SegmentId, SegmentTable};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};
use trace_format::Kind;

use crate::survey::Survey;
use crate::{Batch, Result};

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
            let trips = |lane| Ok((Walked::of(survey, lane)?.trips, instructions(lane), 0));
            lanes.into_par_iter().map(trips).collect()
        }
        SortKey::Path => {
            let walked: Vec<(Vec<u32>, u64)> = lanes
                .into_par_iter()
                .map(|lane| Walked::of(survey, lane).map(|walked| (walked.places, walked.hash)))
                .collect::<Result<_>>()?;
            let mut paths: Vec<&[u32]> = walked.iter().map(|(places, _)| &places[..]).collect();
            paths.sort_unstable();
            paths.dedup();
            let rank: FxHashMap<&[u32], u64> = paths.into_iter().zip(0..).collect();
            let keys = walked.iter().enumerate();
            Ok(keys.map(|(lane, (places, hash))| (rank[&places[..]], instructions(lane), *hash)).collect())
        }
    }
}

/// What a lane was seen to do.
struct Walked {
    trips: u64,
    /// The places that it reached first, in order.
    places: Vec<u32>,
    /// Of all that it ran, in order.
    hash: u64,
}

impl Walked {
    fn of(survey: &Survey, lane: usize) -> Result<Walked> {
        let segments = survey.source().segments();
        let (mut trips, mut places, mut hasher) = (0, Vec::new(), FxHasher::default());
        let (mut batch, mut stream) = (Batch::default(), survey.stream(lane));
        let mut before = None;
        while stream.next_batch(&mut batch)? {
            for id in batch.codes.iter().filter_map(|code| code.as_segment()) {
                trips += u64::from(before.is_some_and(|before| goes_back(segments, before, id)));
                let place = segments[id].place.0;
                if places.len() < PLACES && !places.contains(&place) {
                    places.push(place);
                }
                hasher.write_u32(id.0);
                before = Some(id);
            }
        }
        places.shrink_to_fit();
        Ok(Walked { trips, places, hash: hasher.finish() })
    }
}

/// Whether a jump from the one segment to the other leads back.
fn goes_back(segments: &SegmentTable, from: SegmentId, to: SegmentId) -> bool {
    let last = segments[from].last();
    matches!(last.kind, Kind::Branch | Kind::Jump | Kind::IndirectJump) && segments[to].start() <= last.pc
}
