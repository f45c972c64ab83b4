//! Edges: how often lanes went from one place of a function to the next, and the lane-slots lost after each edge.
//!
//! An edge leads from the place that a frame ran last to the one that it runs now; a call's edge leads to where the
//! call returned to. Each lane that goes over it is one *crossing*, each step in which lanes do is one *time*. A fetch
//! loses warp size - active lanes slots; they are charged to the edge over which the lowest active lane reached the
//! fetched place, so that the sum over edges is all that was lost.
//!
//! Worked number: W = 2. Both lanes run `a`, then lane 0 runs `b` (3 instructions) and lane 1 `c` (1): a-b has 1
//! crossing and 3 lost slots, a-c 1 and 1.

use heuristics::{Lane, PlaceId, SegmentId};
use rustc_hash::FxHashMap;
use trace_format::Kind;

use super::{Ended, Finding, Measure, Measured, Metric, Run, Step};
use crate::Result;
use crate::entry::Entry;
use crate::lanes::brief::Brief;

/// The measure.
pub(crate) static ENTRY: Entry = Entry {
    name: "edges",
    file: "replay/src/metrics/edges.rs",
    switch: None,
    needs_addresses: false,
    measure: Some(|_| Edges::measure()),
    columns: &[],
    table: None,
};

/// From where to where; from none where the function was entered.
pub type Edge = (Option<PlaceId>, PlaceId);

/// What went over an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Crossed {
    /// Steps in which lanes went over it.
    pub times: u64,
    /// Lanes that did, summed over steps.
    pub crossings: u64,
    /// Lane-slots lost at the place that it leads to, by fetches whose lowest active lane came over it.
    pub lost: u64,
}

/// The edges of a replay, in the order of their places.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Edges {
    /// Each once.
    pub all: Vec<(Edge, Crossed)>,
}

impl Edges {
    /// Asks for them.
    #[must_use]
    pub fn measure() -> Measure {
        Measure::new(ENTRY.name, |warp| Some(Box::new(EdgeCounter::new(warp.lanes().len(), warp.seats().width()))))
    }
}

impl Measured for Edges {
    fn merge(&mut self, other: &Edges) {
        let mut sum: FxHashMap<Edge, Crossed> = self.all.drain(..).collect();
        for (edge, more) in &other.all {
            sum.entry(*edge).or_default().add(*more);
        }
        self.all = sorted(sum);
    }
}

impl Crossed {
    fn add(&mut self, more: Crossed) {
        self.times += more.times;
        self.crossings += more.crossings;
        self.lost += more.lost;
    }
}

fn sorted(map: FxHashMap<Edge, Crossed>) -> Vec<(Edge, Crossed)> {
    let mut all: Vec<(Edge, Crossed)> = map.into_iter().collect();
    all.sort_unstable_by_key(|(edge, _)| *edge);
    all
}

/// Where a lane has been.
#[derive(Clone, Default)]
struct Trail {
    /// The place that each of its frames ran last, the outermost first.
    frames: Vec<Option<PlaceId>>,
    /// Whether its last instruction was a return.
    returned: bool,
    /// The edge over which it reached its place.
    came_by: Option<Edge>,
}

impl Trail {
    /// Deeper frames than this are taken for the last of these, so that a damaged trace cannot ask for endless memory.
    const MOST: usize = 1 << 16;

    /// The lane begins a segment at this place and call level: the edge over which it came.
    fn goes_to(&mut self, place: PlaceId, level: u32) -> Edge {
        let level = (level as usize).clamp(1, Trail::MOST);
        // A return without a frame to return to ends the region's function: what follows is a new run of it.
        let restarts = self.returned && self.frames.len() <= level;
        self.frames.truncate(if restarts { level - 1 } else { level });
        self.frames.resize(level, None);
        let edge = (self.frames[level - 1].replace(place), place);
        self.came_by = Some(edge);
        edge
    }
}

/// Counts the edges of one warp's replay.
pub struct EdgeCounter {
    warp_size: u64,
    trails: Vec<Trail>,
    known: Known,
    /// The edges of one step, and the lanes that went over each.
    crossed: Vec<(Edge, u64)>,
    /// Room for the levels of lanes.
    levels: Vec<(Lane, u32)>,
}

/// Edges by number.
#[derive(Default)]
struct Known {
    all: Vec<(Edge, Crossed)>,
    numbers: FxHashMap<Edge, usize>,
    /// By place: the edge over which lanes came there last.
    latest: Vec<usize>,
}

impl Known {
    #[inline]
    fn crossed(&mut self, edge: Edge) -> &mut Crossed {
        let place = edge.1.0 as usize;
        let latest = self.latest.get(place).copied().filter(|at| self.all.get(*at).is_some_and(|(e, _)| *e == edge));
        let at = latest.unwrap_or_else(|| self.find(edge));
        &mut self.all[at].1
    }

    fn find(&mut self, edge: Edge) -> usize {
        let next = self.all.len();
        let at = *self.numbers.entry(edge).or_insert_with(|| {
            self.all.push((edge, Crossed::default()));
            next
        });
        let place = edge.1.0 as usize;
        if self.latest.len() <= place {
            self.latest.resize(place + 1, 0);
        }
        self.latest[place] = at;
        at
    }
}

impl EdgeCounter {
    /// For a warp of so many lanes and seats.
    #[must_use]
    pub fn new(lanes: usize, warp_size: usize) -> EdgeCounter {
        EdgeCounter {
            warp_size: warp_size as u64,
            trails: vec![Trail::default(); lanes],
            known: Known::default(),
            crossed: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Lanes at these levels run instructions of this place, from its first one where it `begins`.
    fn goes(&mut self, lanes: &[(Lane, u32)], place: PlaceId, (begins, returns): (bool, bool), fetches: u64) {
        self.crossed.clear();
        for (lane, level) in lanes {
            let trail = &mut self.trails[lane.index()];
            if begins {
                let edge = trail.goes_to(place, *level);
                match self.crossed.iter_mut().find(|(e, _)| *e == edge) {
                    Some((_, lanes)) => *lanes += 1,
                    None => self.crossed.push((edge, 1)),
                }
            }
            trail.returned = returns;
        }
        for (edge, crossings) in &self.crossed {
            self.known.crossed(*edge).add(Crossed { times: 1, crossings: *crossings, lost: 0 });
        }
        let lost = (self.warp_size - lanes.len() as u64) * fetches;
        let lowest = lanes.first().and_then(|(lane, _)| self.trails[lane.index()].came_by);
        if let Some(edge) = lowest {
            self.known.crossed(edge).lost += lost;
        }
    }

    /// The lanes, which all began a segment just now, go on through these and stay in the function of that one or above
    /// it: they leave the same trail.
    fn go_alike(&mut self, lanes: &[(Lane, u32)], begun: &Brief, rest: &[SegmentId], briefs: &[Brief]) {
        let Some(((first, start), others)) = lanes.split_first() else { return };
        let (trails, mut level) = (&mut self.trails, *start);
        let active = lanes.len() as u64;
        let mut before = begun;
        for id in rest {
            level = level.saturating_add_signed(i32::from(before.level)).max(1);
            before = &briefs[id.0 as usize];
            let trail = &mut trails[first.index()];
            let edge = trail.goes_to(before.place, level);
            trail.returned = before.level < 0;
            let lost = (self.warp_size - active) * u64::from(before.instructions);
            self.known.crossed(edge).add(Crossed { times: 1, crossings: active, lost });
        }
        let leader = std::mem::take(&mut trails[first.index()]);
        for (lane, level) in others {
            let own = &mut trails[lane.index()];
            own.frames.truncate(*level as usize - 1);
            own.frames.extend_from_slice(&leader.frames[*start as usize - 1..]);
            (own.returned, own.came_by) = (leader.returned, leader.came_by);
        }
        trails[first.index()] = leader;
    }
}

impl Metric for EdgeCounter {
    fn step(&mut self, step: &Step) -> Result<()> {
        let (place, begins) = (step.place_id(), step.place().1 == 0);
        let returns = step.instructions.last().is_some_and(|i| i.kind == Kind::Return);
        let mut levels = std::mem::take(&mut self.levels);
        levels.clear();
        levels.extend(step.lanes.iter().map(|lane| (lane, step.state(lane).level)));
        self.goes(&levels, place, (begins, returns), step.instructions.len() as u64);
        self.levels = levels;
        Ok(())
    }

    fn ran(&mut self, run: &Run) -> Result<()> {
        let briefs = run.first.standing.briefs;
        let mut levels = std::mem::take(&mut self.levels);
        levels.clear();
        levels.extend(run.lanes().iter().map(|lane| (lane, run.first.state(lane).level)));
        let mut rest = run.segments;
        while let Some((id, behind)) = rest.split_first() {
            let begun = &briefs[id.0 as usize];
            self.goes(&levels, begun.place, (true, begun.level < 0), u64::from(begun.instructions));
            // Up to where the function is left in which this began: where it returns to differs from lane to lane.
            let (mut change, mut alike) = (i32::from(begun.level), 0);
            while change >= 0 && alike < behind.len() {
                change += i32::from(briefs[behind[alike].0 as usize].level);
                alike += 1;
            }
            let highest = levels.iter().map(|(_, level)| *level as usize).max().unwrap_or(0);
            if highest + run.segments.len() >= Trail::MOST {
                (change, alike) = (i32::from(begun.level), 0);
            }
            self.go_alike(&levels, begun, &behind[..alike], briefs);
            levels.iter_mut().for_each(|(_, level)| *level = level.saturating_add_signed(change).max(1));
            rest = &behind[alike..];
        }
        self.levels = levels;
        Ok(())
    }

    fn finish(self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        let mut all = self.known.all;
        all.sort_unstable_by_key(|(edge, _)| *edge);
        Ok(Finding::new(Edges { all }))
    }
}
