//! The lane map: which lane ran what at each fetch, drawn coarser and coarser.
//!
//! A run is a row of fetches. The map cuts it into bins of equal length. For each bin and lane it says in how many
//! fetches the lane was active, and in which class of code (a function, say) and at which place most of them were. A
//! *level* is such a row of bins; the bins of each next level are [`FACTOR`] times as long. Single fetches are kept
//! whole for a short run. For a longer one they are kept in *windows*: in each of [`PARTS`] equal parts of the run, the
//! first window and the one in which live lanes lost most lane-slots. So the memory that the map takes does not grow
//! with the run.
//!
//! Worked number: two lanes, 5 fetches, bins of 2: both lanes run `a` twice, then lane 0 runs `b` twice, then lane 1
//! once. Bins: (2 a, 2 a), (2 b, 0), (0, 1 b).

use std::sync::Arc;

use heuristics::{LaneSet, SegmentId};

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::Result;
use crate::entry::Entry;

/// The measure, which is asked for with a plan: see [`LaneMaps::measure`].
pub(crate) static ENTRY: Entry = Entry {
    name: "lane-map",
    file: "replay/src/metrics/lane_map.rs",
    switch: None,
    needs_addresses: false,
    measure: None,
    columns: &[],
    table: None,
};

/// How many bins of one level make a bin of the next.
pub const FACTOR: u64 = 4;
/// Parts of a long run in which single fetches are kept.
pub const PARTS: u64 = 32;
/// Fetches in a window of a long run.
pub const WINDOW: u64 = 512;
/// A run of at most this many fetches is kept whole.
pub const WHOLE: u64 = 1 << 17;
/// Cells of the finest level of all maps of a replay together, about.
const CELLS: u64 = 1 << 18;
/// The most bins of the finest level: a screen shows a quarter of them, so that one step of zooming needs no coarser
/// drawing.
const MOST_BINS: u64 = 1 << 14;
/// The next level is not made from one of at most this many bins.
const FEWEST_BINS: usize = 512;

/// What must be known before a map is made.
#[derive(Clone, Debug, Default)]
pub struct LaneMapPlan {
    /// By place: its class.
    pub classes: Vec<u16>,
    /// By warp: its fetches under the same model, as an earlier replay found; none for a warp that is not to be mapped.
    pub fetches: Vec<Option<u64>>,
}

/// A bin of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cell {
    /// Fetches of the bin in which the lane was active.
    pub active: u64,
    /// The class of most of them; means nothing where there are none.
    pub class: u16,
    /// The place (number) of that class that most of them were at.
    pub place: u32,
}

/// A row of bins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Fetches in a bin; the last may have fewer.
    pub bin: u64,
    /// Bin after bin, of each the lanes in order.
    pub cells: Vec<Cell>,
}

/// Fetches of one segment for the same lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The segment.
    pub segment: SegmentId,
    /// The first of its instructions.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The active lanes.
    pub lanes: LaneSet,
}

/// Why a window was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is the whole run.
    Whole,
    /// It is the first of its part.
    First,
    /// Live lanes lost the most lane-slots in it, of all windows of its part.
    Worst,
}

/// Fetches in a row, each by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The number of its first fetch, from 0.
    pub start: u64,
    /// Why it was kept.
    pub kept: Kept,
    /// Lane-slots that live lanes lost in it.
    pub lost: u64,
    /// Its fetches.
    pub stretches: Vec<Stretch>,
}

/// The map of one warp's replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMap {
    /// The warp's number.
    pub warp: usize,
    /// Its lanes, by their numbers in the replay.
    pub lanes: Vec<usize>,
    /// Its fetches.
    pub fetches: u64,
    /// The finest first.
    pub levels: Vec<Level>,
    /// In the order of the run; they do not overlap.
    pub windows: Vec<Window>,
}

/// The maps of the warps that the plan names, in order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LaneMaps(pub Vec<LaneMap>);

impl LaneMaps {
    /// Asks for them, by a plan that holds for one heuristic.
    #[must_use]
    pub fn measure(plan: LaneMapPlan) -> Measure {
        let plan = Arc::new(plan);
        Measure::new(ENTRY.name, move |warp| {
            let mapper = LaneMapper::new(warp.lanes().len(), warp.number(), &plan)?;
            Some(Box::new(mapper))
        })
    }
}

impl Measured for LaneMaps {
    fn merge(&mut self, other: &LaneMaps) {
        self.0.extend_from_slice(&other.0);
    }
}

/// Fetches of a lane, by place; a place may stand in it several times.
type Tally = Vec<(u32, u64)>;
/// A tally of more entries than this is made shorter where it can be.
const LONG_TALLY: usize = 4096;
/// How many of the last entries of a tally are searched: code that runs again mostly ran just before.
const RECENT: usize = 8;
/// How many entries are kept of lanes that run together before they are shared out.
const MOST_TOGETHER: usize = 64;

/// A level under way.
struct Filling {
    bin: u64,
    filled: u64,
    tallies: Vec<Tally>,
    cells: Vec<Cell>,
}

/// Draws the map of one warp while it is replayed.
pub struct LaneMapper {
    plan: Arc<LaneMapPlan>,
    fetches: u64,
    levels: Vec<Filling>,
    /// What these lanes ran of the finest level's bin since others did; not in their tallies yet.
    together: (LaneSet, Tally),
    window: u64,
    parts: u64,
    current: Window,
    filled: u64,
    /// Of the part under way.
    first: Option<Window>,
    worst: Option<Window>,
    kept: Vec<Window>,
}

impl LaneMapper {
    /// For a warp of so many lanes, which takes so many fetches, if the plan has a map of it. More or fewer fetches are
    /// mapped too, only less well.
    #[must_use]
    pub fn new(lanes: usize, warp: usize, plan: &Arc<LaneMapPlan>) -> Option<LaneMapper> {
        let fetches = (*plan.fetches.get(warp)?)?.max(1);
        let mapped = plan.fetches.iter().flatten().count().max(1) as u64;
        let bins = (CELLS / mapped / lanes.max(1) as u64).clamp(FEWEST_BINS as u64, MOST_BINS);
        let mut levels = Vec::new();
        let mut bin = fetches.div_ceil(bins);
        loop {
            levels.push(Filling { bin, filled: 0, tallies: vec![Tally::new(); lanes], cells: Vec::new() });
            if fetches.div_ceil(bin) <= FEWEST_BINS as u64 {
                break;
            }
            bin *= FACTOR;
        }
        let whole = fetches <= WHOLE / mapped;
        let (window, parts) = if whole { (fetches, 1) } else { (WINDOW, PARTS) };
        let current =
            Window { start: 0, kept: if whole { Kept::Whole } else { Kept::First }, lost: 0, stretches: Vec::new() };
        let (first, worst, kept) = (None, None, Vec::new());
        Some(LaneMapper {
            plan: Arc::clone(plan),
            fetches,
            levels,
            together: (LaneSet::EMPTY, Tally::new()),
            window,
            parts,
            current,
            filled: 0,
            first,
            worst,
            kept,
        })
    }

    /// The map, after the replay has ended.
    fn map(mut self, warp: usize, lanes: &[usize]) -> LaneMap {
        for level in 0..self.levels.len() {
            if self.levels[level].filled > 0 {
                self.close_bin(level);
            }
        }
        if self.filled > 0 {
            self.close_window();
        }
        self.close_part();
        let fetches = self.current.start;
        let levels = self.levels.into_iter().map(|l| Level { bin: l.bin, cells: l.cells }).collect();
        LaneMap { warp, lanes: lanes.to_vec(), fetches, levels, windows: self.kept }
    }

    /// Fetches of a place for these lanes go into bins.
    fn fill_bins(&mut self, lanes: LaneSet, place: u32, mut count: u64) {
        if lanes != self.together.0 || self.together.1.len() >= MOST_TOGETHER {
            self.share_out();
            self.together.0 = lanes;
        }
        while count > 0 {
            let finest = &mut self.levels[0];
            let taken = count.min(finest.bin - finest.filled);
            add(&mut self.together.1, place, taken);
            finest.filled += taken;
            count -= taken;
            if finest.filled == finest.bin {
                self.close_bin(0);
            }
        }
    }

    /// What lanes ran together goes into the tally of each.
    fn share_out(&mut self) {
        let (lanes, tally) = &mut self.together;
        for lane in *lanes {
            let own = &mut self.levels[0].tallies[lane.index()];
            tally.iter().for_each(|(place, count)| add(own, *place, *count));
        }
        tally.clear();
    }

    /// The level's bin is full, or is its last: it becomes cells, and a part of the next level's bin.
    fn close_bin(&mut self, level: usize) {
        self.share_out();
        let (upper, lower) = self.levels.split_at_mut(level + 1);
        let (this, mut next) = (&mut upper[level], lower.first_mut());
        for (lane, tally) in this.tallies.iter_mut().enumerate() {
            compact(tally);
            this.cells.push(cell(tally, &self.plan.classes));
            for (place, count) in tally.drain(..) {
                if let Some(next) = &mut next {
                    add(&mut next.tallies[lane], place, count);
                }
            }
        }
        let filled = std::mem::take(&mut this.filled);
        if let Some(next) = next {
            next.filled += filled;
            if next.filled >= next.bin {
                self.close_bin(level + 1);
            }
        }
    }

    fn fill_windows(&mut self, mut stretch: Stretch, lost_per_fetch: u64) {
        while stretch.count > 0 {
            let room = self.window - self.filled;
            let taken = u64::from(stretch.count).min(room) as u32;
            self.current.lost += lost_per_fetch * u64::from(taken);
            self.filled += u64::from(taken);
            match self.current.stretches.last_mut() {
                Some(last) if goes_on(last, &stretch) => last.count += taken,
                _ => self.current.stretches.push(Stretch { count: taken, ..stretch }),
            }
            stretch.first += taken;
            stretch.count -= taken;
            if self.filled == self.window {
                self.close_window();
            }
        }
    }

    fn part_of(&self, fetch: u64) -> u64 {
        // 128 bits: a run may have more fetches than 2^59.
        (u128::from(fetch) * u128::from(self.parts) / u128::from(self.fetches)) as u64
    }

    fn close_window(&mut self) {
        let start = self.current.start + std::mem::take(&mut self.filled);
        let next = Window { start, kept: Kept::First, lost: 0, stretches: Vec::new() };
        let mut done = std::mem::replace(&mut self.current, next);
        let part = self.part_of(done.start);
        if self.first.as_ref().is_some_and(|first| self.part_of(first.start) != part) {
            self.close_part();
        }
        if self.first.is_none() {
            self.first = Some(done);
        } else if self.worst.as_ref().or(self.first.as_ref()).is_some_and(|worst| worst.lost < done.lost) {
            done.kept = Kept::Worst;
            self.worst = Some(done);
        }
    }

    fn close_part(&mut self) {
        self.kept.extend(self.first.take());
        self.kept.extend(self.worst.take());
    }
}

/// Whether one stretch begins where the other ends, as it does under models that choose by instruction.
fn goes_on(last: &Stretch, next: &Stretch) -> bool {
    last.segment == next.segment && last.first + last.count == next.first && last.lanes == next.lanes
}

fn add(tally: &mut Tally, place: u32, count: u64) {
    if let Some((_, sum)) = tally.iter_mut().rev().take(RECENT).find(|(p, _)| *p == place) {
        *sum += count;
        return;
    }
    if tally.len() == tally.capacity() && tally.len() >= LONG_TALLY {
        compact(tally);
    }
    tally.push((place, count));
}

/// Each place once.
fn compact(tally: &mut Tally) {
    tally.sort_unstable_by_key(|(place, _)| *place);
    tally.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
}

/// The bin of a lane that ran these.
fn cell(tally: &Tally, classes: &[u16]) -> Cell {
    let class_of = |place: u32| classes.get(place as usize).copied().unwrap_or(u16::MAX);
    let mut by_class: Vec<(u16, u64)> = Vec::new();
    for (place, count) in tally {
        match by_class.iter_mut().find(|(class, _)| *class == class_of(*place)) {
            Some((_, sum)) => *sum += count,
            None => by_class.push((class_of(*place), *count)),
        }
    }
    // Among equals the lower number, so that the order in which lanes meet decides nothing.
    let Some((class, _)) = by_class.iter().copied().max_by_key(|(class, sum)| (*sum, std::cmp::Reverse(*class))) else {
        return Cell::default();
    };
    let of_class = tally.iter().filter(|(place, _)| class_of(*place) == class);
    let place = of_class.max_by_key(|(place, sum)| (*sum, std::cmp::Reverse(*place))).map_or(0, |(place, _)| *place);
    Cell { active: tally.iter().map(|(_, count)| count).sum(), class, place }
}

impl Metric for LaneMapper {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (segment, first) = step.place();
        let count = step.instructions.len() as u32;
        self.fill_bins(step.lanes, step.place_id().0, u64::from(count));
        let lost = (step.live.len() - step.lanes.len()) as u64;
        self.fill_windows(Stretch { segment, first, count, lanes: step.lanes }, lost);
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let lanes = run.lanes();
        let lost = (run.first.live.len() - lanes.len()) as u64;
        for (segment, brief) in run.briefs() {
            self.fill_bins(lanes, brief.place.0, u64::from(brief.instructions));
            self.fill_windows(Stretch { segment, first: 0, count: brief.instructions, lanes }, lost);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, ended: &Ended) -> Result<Finding> {
        let map = self.map(ended.warp.number(), ended.warp.lanes());
        Ok(Finding::new(LaneMaps(vec![map])))
    }
}

#[cfg(test)]
mod tests {
    use heuristics::Lane;

    use super::*;

    fn set(lanes: &[u8]) -> LaneSet {
        lanes.iter().map(|l| Lane(*l)).collect()
    }

    fn stretch(segment: u32, count: u32, lanes: &[u8]) -> Stretch {
        Stretch { segment: SegmentId(segment), first: 0, count, lanes: set(lanes) }
    }

    fn plan(fetches: u64) -> LaneMapPlan {
        LaneMapPlan { classes: vec![0, 1, 1], fetches: vec![Some(fetches)] }
    }

    fn map(plan: &LaneMapPlan, bin: u64, run: &[(u32, u64, &[u8])]) -> LaneMap {
        let mut mapper = LaneMapper::new(2, 0, &Arc::new(plan.clone())).unwrap();
        mapper.levels[0].bin = bin;
        for (place, count, lanes) in run {
            mapper.fill_bins(set(lanes), *place, *count);
            mapper.fill_windows(stretch(*place, *count as u32, lanes), 2 - lanes.len() as u64);
        }
        mapper.map(0, &[0, 1])
    }

    #[test]
    fn the_worked_number_of_the_head() {
        let found = map(&plan(5), 2, &[(0, 2, &[0, 1]), (1, 2, &[0]), (1, 1, &[1])]);
        let cells: Vec<(u64, u16)> = found.levels[0].cells.iter().map(|c| (c.active, c.class)).collect();
        assert_eq!(cells, [(2, 0), (2, 0), (2, 1), (0, 0), (0, 0), (1, 1)]);
        assert_eq!(found.fetches, 5);
    }

    #[test]
    fn a_short_run_is_kept_whole() {
        let found = map(&plan(5), 1, &[(0, 2, &[0, 1]), (1, 2, &[0]), (1, 1, &[1])]);
        assert_eq!(found.windows.len(), 1);
        assert_eq!((found.windows[0].kept, found.windows[0].lost), (Kept::Whole, 3));
        assert_eq!(found.windows[0].stretches.iter().map(|s| s.count).sum::<u32>(), 5);
    }

    #[test]
    fn of_a_long_run_each_part_keeps_its_first_and_its_worst_window() {
        let fetches = PARTS * WINDOW * 16;
        let mut run: Vec<(u32, u64, &[u8])> = Vec::new();
        for window in 0..PARTS * 16 {
            // The sixth window of each part loses a slot at each fetch.
            run.push((2, WINDOW, if window % 16 == 5 { &[1] } else { &[0, 1] }));
        }
        assert!(fetches > WHOLE);
        let found = map(&plan(fetches), fetches.div_ceil(MOST_BINS), &run);
        assert_eq!(found.windows.len() as u64, 2 * PARTS);
        for (part, pair) in found.windows.chunks(2).enumerate() {
            let at = part as u64 * WINDOW * 16;
            assert_eq!(
                [(pair[0].start, pair[0].kept), (pair[1].start, pair[1].kept)],
                [(at, Kept::First), (at + 5 * WINDOW, Kept::Worst)]
            );
            assert_eq!(pair[1].lost, WINDOW);
        }
    }

    #[test]
    fn levels_agree_on_what_was_active() {
        let fetches = 3_000_000;
        let found = map(
            &plan(fetches),
            fetches.div_ceil(MOST_BINS),
            &[(0, 1_000_000, &[0, 1]), (1, 1_500_000, &[1]), (2, 500_000, &[0])],
        );
        assert!(found.levels.len() > 2);
        for level in &found.levels {
            let active: u64 = level.cells.iter().map(|c| c.active).sum();
            assert_eq!(active, 2 * 1_000_000 + 1_500_000 + 500_000);
        }
        assert!(found.levels.last().unwrap().cells.len() <= 2 * FEWEST_BINS);
    }

    #[test]
    fn a_warp_that_is_not_in_the_plan_has_no_map() {
        let plan = Arc::new(LaneMapPlan { classes: Vec::new(), fetches: vec![None] });
        assert!(LaneMapper::new(2, 0, &plan).is_none() && LaneMapper::new(2, 1, &plan).is_none());
    }
}
