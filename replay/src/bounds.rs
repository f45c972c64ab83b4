//! Bounds that hold for every reconvergence model, with any hardware: the least that any schedule needs, and what the
//! best one needs.
//!
//! *Lower bound.* In one phase of one warp, the lane that runs a static instruction most often, n times, needs n
//! fetches of it, and no fetch of another instruction helps; so the phase needs at least the sum over instructions of
//! the largest count that any lane has. A phase ends where all lanes of the warp meet at one barrier: code before it is
//! fetched before code after it, so the phases' bounds add up. In a block of warps, lanes with one home lane can't
//! share a fetch either, so there the largest sum over the lanes of any home lane counts.
//!
//! *Optimum of two lanes.* A schedule of two lanes is a common supersequence of their instructions, and each such
//! sequence is a schedule. The shortest has (n + m + D) / 2 instructions, where D is the number of instructions to
//! delete and insert to make one lane of the other: Myers, *An O(ND) difference algorithm and its variations*
//! (Algorithmica 1, 1986). Phases add up here too. Locks are ignored.
//!
//! Worked number: lane 0 runs 1 2 3 5, lane 1 runs 1 2 4 5. D = 2 (3 goes, 4 comes), so the optimum is (4 + 4 + 2) / 2
//! = 5, and so is the bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use heuristics::{SegmentId, SegmentTable};
use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::lanes::stream::RowId;
use crate::survey::Survey;
use crate::warps::Unit;
use crate::{Batch, Control, Entry, EpisodeId, LaneStream, Result, Rows};

/// The most steps that the search for an optimum may take, per thread instruction of the two lanes. A step, a
/// comparison of two numbers, takes about 2 ns, a replay 5 to 20 ns per thread instruction under most models: the
/// search takes as long as one or two replays.
const STEPS_PER_INSTRUCTION: u64 = 8;

/// Steps that it may take in any case: some 10 ms.
const STEPS_AT_LEAST: u64 = 1 << 22;

/// The most instructions of a phase that are compared: they are held in memory, four bytes each.
const MOST_INSTRUCTIONS: usize = 1 << 26;

/// Where phases end.
#[derive(Default)]
struct Cuts {
    episodes: FxHashSet<EpisodeId>,
    /// So many of a lane's [`Control::MeetAll`] are every lane's.
    meet_alls: u64,
}

/// What ended a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PhaseEnd {
    Episode(EpisodeId),
    MeetAll,
    LaneEnd,
}

/// What a lane ran.
enum Ran {
    Segment(SegmentId),
    Row(RowId),
}

/// A lane, phase by phase.
struct Phases<'a> {
    stream: Box<dyn LaneStream + 'a>,
    batch: Batch,
    at: usize,
    meet_alls: u64,
}

impl Phases<'_> {
    /// Shows the segments up to the end of the phase, and the rows of segments.
    fn next(&mut self, cuts: &Cuts, mut see: impl FnMut(Ran)) -> Result<PhaseEnd> {
        loop {
            while let Some(code) = self.batch.codes.get(self.at) {
                self.at += 1;
                if let Some(row) = code.as_row() {
                    see(Ran::Row(row));
                    continue;
                }
                match code.entry() {
                    Entry::Segment(id) => see(Ran::Segment(id)),
                    Entry::Control(index) => match self.batch.controls[index] {
                        Control::Meet(episode) if cuts.episodes.contains(&episode) => {
                            return Ok(PhaseEnd::Episode(episode));
                        }
                        Control::MeetAll if self.meet_alls < cuts.meet_alls => {
                            self.meet_alls += 1;
                            return Ok(PhaseEnd::MeetAll);
                        }
                        _ => {}
                    },
                }
            }
            self.at = 0;
            if !self.stream.next_folded(&mut self.batch)? {
                return Ok(PhaseEnd::LaneEnd);
            }
        }
    }
}

/// The barriers at which all these lanes meet.
fn cuts(survey: &Survey, lanes: &[usize]) -> Cuts {
    let mut episodes: Option<FxHashSet<EpisodeId>> = None;
    for lane in lanes {
        let all = &survey.lanes[*lane].episodes;
        episodes = Some(match episodes {
            None => all.iter().copied().collect(),
            Some(common) => all.iter().copied().filter(|m| common.contains(m)).collect(),
        });
    }
    let meet_alls = lanes.iter().map(|l| survey.lanes[*l].meet_alls).min().unwrap_or(0);
    Cuts { episodes: episodes.unwrap_or_default(), meet_alls }
}

fn phases<'a>(survey: &'a Survey, lanes: &[usize]) -> Vec<Phases<'a>> {
    let phases = |l: &usize| Phases { stream: survey.stream(*l), batch: Batch::default(), at: 0, meet_alls: 0 };
    lanes.iter().map(phases).collect()
}

/// What the bounds of many warps are worked out with: tables that have the size of the program.
pub(crate) struct Least<'a> {
    survey: &'a Survey<'a>,
    /// By segment: its place. Packed, as it is asked for at every step of every lane.
    place_of: Arc<Vec<u32>>,
    scratch: Scratch,
}

/// Counts of one warp; all are 0 between warps.
#[derive(Clone, Default)]
struct Scratch {
    /// By place.
    counts: Vec<u64>,
    most: Vec<u64>,
    rows: Arc<Rows>,
    row_counts: Vec<u64>,
    /// By row: its places, each by the first segment that begins there, and how often it has each; empty where it was
    /// not asked for yet.
    row_places: Vec<Vec<(SegmentId, u32)>>,
}

impl Clone for Least<'_> {
    /// For another worker.
    fn clone(&self) -> Self {
        Least { survey: self.survey, place_of: Arc::clone(&self.place_of), scratch: self.scratch.clone() }
    }
}

impl<'a> Least<'a> {
    pub(crate) fn new(survey: &'a Survey<'a>) -> Least<'a> {
        let segments = survey.source().segments();
        let places = segments.places();
        let scratch = Scratch { counts: vec![0; places], most: vec![0; places], ..Scratch::default() };
        Least { survey, place_of: Arc::new(segments.iter().map(|(_, s)| s.place.0).collect()), scratch }
    }

    /// The least number of fetches that a warp of these lanes, or a block of warps, needs.
    pub(crate) fn fetches(&mut self, unit: &Unit) -> Result<u64> {
        let columns = unit.columns();
        if let Some(fetches) = self.by_phase(&columns, &cuts(self.survey, &unit.lanes))? {
            return Ok(fetches);
        }
        // Lanes that reach the same barriers in different orders: one phase.
        let Scratch { counts, most, .. } = &mut self.scratch;
        counts.fill(0);
        most.fill(0);
        Ok(self.by_phase(&columns, &Cuts::default())?.unwrap_or(0))
    }

    fn by_phase(&mut self, columns: &[Vec<usize>], cuts: &Cuts) -> Result<Option<u64>> {
        let (segments, place_of) = (self.survey.source().segments(), &self.place_of);
        let Scratch { counts, most, rows, row_counts, row_places } = &mut self.scratch;
        let mut columns: Vec<Vec<Phases>> = columns.iter().map(|lanes| phases(self.survey, lanes)).collect();
        let mut rows_visited: Vec<RowId> = Vec::new();
        let (mut visited, mut of_phase): (Vec<SegmentId>, Vec<SegmentId>) = (Vec::new(), Vec::new());
        let mut total = 0;
        loop {
            let mut end = None;
            for column in &mut columns {
                for lane in column {
                    let of_lane = lane.stream.rows();
                    let mut count = |id: SegmentId, times: u64| {
                        let count = &mut counts[place_of[id.0 as usize] as usize];
                        if *count == 0 {
                            visited.push(id);
                        }
                        *count += times;
                    };
                    if !Arc::ptr_eq(rows, &of_lane) {
                        *row_counts = vec![0; of_lane.len()];
                        *row_places = vec![Vec::new(); of_lane.len()];
                        *rows = of_lane;
                    }
                    // Rows are counted first, and their segments when the phase is over.
                    let this = lane.next(cuts, |ran| match ran {
                        Ran::Segment(id) => count(id, 1),
                        Ran::Row(row) => {
                            let times = &mut row_counts[row.0 as usize];
                            if *times == 0 {
                                rows_visited.push(row);
                            }
                            *times += 1;
                        }
                    })?;
                    for row in rows_visited.drain(..) {
                        let times = std::mem::take(&mut row_counts[row.0 as usize]);
                        let places = &mut row_places[row.0 as usize];
                        if places.is_empty() {
                            *places = places_of(rows.segments(row), place_of);
                        }
                        places.iter().for_each(|(id, each)| count(*id, times * u64::from(*each)));
                    }
                    if *end.get_or_insert(this) != this {
                        return Ok(None);
                    }
                }
                for id in visited.drain(..) {
                    let place = place_of[id.0 as usize] as usize;
                    if most[place] == 0 {
                        of_phase.push(id);
                    }
                    most[place] = most[place].max(std::mem::take(&mut counts[place]));
                }
            }
            for id in of_phase.drain(..) {
                total += std::mem::take(&mut most[place_of[id.0 as usize] as usize]) * segments[id].len() as u64;
            }
            if end.is_none_or(|e| e == PhaseEnd::LaneEnd) {
                return Ok(Some(total));
            }
        }
    }
}

/// The places at which these segments begin, each by the first of them, and how many do.
fn places_of(row: impl Iterator<Item = SegmentId>, place_of: &[u32]) -> Vec<(SegmentId, u32)> {
    let mut places: Vec<(SegmentId, u32)> = Vec::new();
    for id in row {
        let place = place_of[id.0 as usize];
        match places.iter_mut().find(|(known, _)| place_of[known.0 as usize] == place) {
            Some((_, times)) => *times += 1,
            None => places.push((id, 1)),
        }
    }
    places.shrink_to_fit();
    places
}

/// The fetches that the best schedule needs, locks aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimum {
    /// So many.
    Fetches(u64),
    /// It was not found in as much time as a replay takes: two lanes differ too much, or are too long.
    LeftOut,
    /// Nothing finds it: a warp has more than two lanes.
    Unknown,
}

impl Optimum {
    /// That of two warps together.
    pub(crate) fn plus(self, other: Optimum) -> Optimum {
        match (self, other) {
            (Optimum::Fetches(a), Optimum::Fetches(b)) => Optimum::Fetches(a + b),
            (Optimum::Unknown, _) | (_, Optimum::Unknown) => Optimum::Unknown,
            _ => Optimum::LeftOut,
        }
    }

    /// The fetches, where they are known.
    #[must_use]
    pub fn fetches(self) -> Option<u64> {
        if let Optimum::Fetches(fetches) = self { Some(fetches) } else { None }
    }
}

/// That of all these warps together.
pub(crate) fn optimum_of_all(survey: &Survey, units: &[Unit]) -> Result<Optimum> {
    if !units.iter().all(may_be_found) {
        return Ok(Optimum::Unknown);
    }
    // Where one is left out, so is the sum.
    let left_out = AtomicBool::new(false);
    let of_one = |unit| {
        if left_out.load(Ordering::Relaxed) {
            return Ok(Optimum::LeftOut);
        }
        let optimum = optimum(survey, unit)?;
        left_out.fetch_or(optimum == Optimum::LeftOut, Ordering::Relaxed);
        Ok(optimum)
    };
    let optima: Vec<Optimum> = units.par_iter().map(of_one).collect::<Result<_>>()?;
    Ok(optima.into_iter().fold(Optimum::Fetches(0), Optimum::plus))
}

/// Whether something finds the best schedule: of one warp with one or two lanes.
fn may_be_found(unit: &Unit) -> bool {
    matches!((unit.lanes.len(), unit.seats.warps().len()), (1, _) | (2, 1))
}

/// The fetches that the best schedule of a warp of one or two lanes needs.
pub(crate) fn optimum(survey: &Survey, unit: &Unit) -> Result<Optimum> {
    let lanes = &unit.lanes;
    if let [only] = lanes[..] {
        return Ok(Optimum::Fetches(survey.lanes[only].instructions));
    }
    if !may_be_found(unit) {
        return Ok(Optimum::Unknown);
    }
    let instructions: u64 = lanes.iter().map(|l| survey.lanes[*l].instructions).sum();
    let mut steps = Steps { taken: 0, most: STEPS_AT_LEAST + STEPS_PER_INSTRUCTION * instructions };
    Ok(best_of_two(survey, lanes, &mut steps)?.map_or(Optimum::LeftOut, Optimum::Fetches))
}

/// Comparisons.
struct Steps {
    taken: u64,
    most: u64,
}

/// As [`optimum`], for two lanes; none where it takes more steps than it may.
fn best_of_two(survey: &Survey, lanes: &[usize], steps: &mut Steps) -> Result<Option<u64>> {
    let segments = survey.source().segments();
    let numbers = Numbers::of(segments);
    let cuts = cuts(survey, lanes);
    let mut pair = phases(survey, lanes);
    let mut total = 0;
    let mut sequences: [Vec<u32>; 2] = Default::default();
    loop {
        let mut ends = [PhaseEnd::LaneEnd; 2];
        for ((lane, sequence), end) in pair.iter_mut().zip(&mut sequences).zip(&mut ends) {
            sequence.clear();
            let rows = lane.stream.rows();
            let mut add = |id| {
                if sequence.len() < MOST_INSTRUCTIONS {
                    sequence.extend(numbers.of_segment(segments, id));
                }
            };
            *end = lane.next(&cuts, |ran| match ran {
                Ran::Segment(id) => add(id),
                Ran::Row(row) => rows.segments(row).for_each(&mut add),
            })?;
        }
        if ends[0] != ends[1] || sequences.iter().any(|s| s.len() >= MOST_INSTRUCTIONS) {
            return Ok(None);
        }
        let Some(difference) = difference(&sequences[0], &sequences[1], steps) else { return Ok(None) };
        total += (sequences[0].len() + sequences[1].len()) as u64 + difference;
        if ends[0] == PhaseEnd::LaneEnd {
            return Ok(Some(total / 2));
        }
    }
}

/// A number for each static instruction: places' instructions one after another.
struct Numbers {
    first: Vec<u32>,
}

impl Numbers {
    fn of(segments: &SegmentTable) -> Numbers {
        let mut lengths = vec![0; segments.places()];
        for (_, segment) in segments.iter() {
            lengths[segment.place.0 as usize] = segment.len() as u32;
        }
        let first = lengths.iter().scan(0, |next, length| Some(std::mem::replace(next, *next + length))).collect();
        Numbers { first }
    }

    fn of_segment(&self, segments: &SegmentTable, id: SegmentId) -> std::ops::Range<u32> {
        let first = self.first[segments[id].place.0 as usize];
        first..first + segments[id].len() as u32
    }
}

/// How many instructions must be deleted and inserted to make `b` of `a`; none when that takes more steps than it may.
fn difference(a: &[u32], b: &[u32], steps: &mut Steps) -> Option<u64> {
    let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    steps.taken += common as u64;
    let (a, b) = (&a[common..], &b[common..]);
    let (n, m) = (a.len() as i64, b.len() as i64);
    // furthest[k + middle]: how far along `a` the paths of so many edits on diagonal k (place in a - place in b) reach.
    let middle = m + 1;
    let mut furthest = vec![0i64; (n + m + 3) as usize];
    for edits in 0..=n + m {
        for diagonal in (-edits.min(2 * m - edits).min(m)..=edits.min(2 * n - edits).min(n)).step_by(2) {
            steps.taken += 1;
            let at = |k: i64| (k + middle) as usize;
            let down =
                diagonal == -edits || (diagonal != edits && furthest[at(diagonal - 1)] < furthest[at(diagonal + 1)]);
            let mut x = if down { furthest[at(diagonal + 1)] } else { furthest[at(diagonal - 1)] + 1 };
            let start = x;
            while x < n && x - diagonal < m && a[x as usize] == b[(x - diagonal) as usize] {
                x += 1;
            }
            steps.taken += (x - start) as u64;
            furthest[at(diagonal)] = x;
            if x >= n && x - diagonal >= m {
                return Some(edits as u64);
            }
        }
        if steps.taken > steps.most {
            return None;
        }
    }
    // n + m edits always suffice.
    Some((n + m) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trace_format::{Instruction, Kind, Pc, SpEffect};

    use super::*;
    use crate::lanes::in_memory::{Does, InMemory};

    /// By the table of longest common subsequences.
    fn by_table(a: &[u32], b: &[u32]) -> u64 {
        let mut row = vec![0u64; b.len() + 1];
        for x in a {
            let mut diagonal = 0;
            for (j, y) in b.iter().enumerate() {
                let above = row[j + 1];
                row[j + 1] = if x == y { diagonal + 1 } else { above.max(row[j]) };
                diagonal = above;
            }
        }
        (a.len() + b.len()) as u64 - 2 * row[b.len()]
    }

    proptest! {
        #[test]
        fn the_difference_is_that_of_the_longest_common_subsequence(
            a in prop::collection::vec(0u32..4, 0..24),
            b in prop::collection::vec(0u32..4, 0..24),
        ) {
            let mut steps = Steps { taken: 0, most: u64::MAX };
            prop_assert_eq!(difference(&a, &b, &mut steps), Some(by_table(&a, &b)));
        }
    }

    /// Two lanes of so many instructions; `b` runs none, all, or every second of those that `a` runs.
    fn lanes(length: u64, b: impl Fn(u64) -> u64) -> InMemory {
        let at = |pc: u64| Instruction { pc: Pc(pc), len: 1, kind: Kind::Branch, sp: SpEffect::Add(0), memory: 0 };
        let runs = |pc: u64| Does::Runs(at(pc), Vec::new());
        InMemory::new(&[(0..length).map(runs).collect(), (0..length).map(|n| runs(b(n))).collect()])
    }

    fn searched(source: &InMemory) -> (Option<u64>, u64) {
        let survey = Survey::new(source, false).unwrap();
        let instructions: u64 = survey.lanes.iter().map(|l| l.instructions).sum();
        let mut steps = Steps { taken: 0, most: STEPS_AT_LEAST + STEPS_PER_INSTRUCTION * instructions };
        let found = best_of_two(&survey, &[0, 1], &mut steps).unwrap();
        (found, steps.taken)
    }

    #[test]
    fn the_search_for_the_best_of_two_lanes_is_in_proportion_to_them() {
        for length in [10_000, 40_000, 160_000] {
            // Nothing alike: as many edits as instructions, and rounds that grow.
            let (found, steps) = searched(&lanes(length, |n| 1_000_000 + n));
            let most = STEPS_AT_LEAST + STEPS_PER_INSTRUCTION * 2 * length;
            // A round is carried to its end; there are as many rounds as edits.
            assert!(found.is_none() && steps < most + 2 * length, "{length}: {found:?} {steps}");
        }
    }

    #[test]
    fn lanes_that_differ_little_are_searched_to_the_end() {
        let length = 100_000;
        let (found, _) = searched(&lanes(length, |n| if n % 1000 == 0 { 1_000_000 + n } else { n }));
        assert_eq!(found, Some(length + length / 1000));
    }
}
